"""Statistics of gradients, leaf by leaf, and what looks wrong about them."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.errors import ConversionError
from gradtape.gradients.leaves import Gradients, norm_of, scaled_norm
from gradtape.graph.known_values import is_unknown
from gradtape.io.leaf_names import named_leaves
from gradtape.locks import load
from gradtape.optim.numbers import not_negative

_COLUMNS = ("norm", "relative", "mean", "std", "min", "max", "zeros", "dead")


@dataclass(frozen=True)
class LeafStatistics:
    """Statistics of the gradient by one array.

    Figures are of the finite elements; of complex numbers, of magnitudes.

    Attributes:
        name: The keys, positions and fields on the way to it: `layers.0.w`.
        shape: Its shape.
        dtype: Its dtype.
        norm: The norm, NaN or infinite if elements are; infinite, too, if it is too large for
            float64.
        mean: The mean.
        std: The standard deviation.
        min: The smallest element.
        max: The largest.
        zeros: The part of the elements that is zero.
        nans: How many elements are NaN.
        infs: How many are infinite.
        param_norm: The norm of the parameter; None if there was none.
        units: How many units it has: entries along the first axis; 0 for fewer than two axes.
        dead_units: How many of them have a gradient of zeros.
        problems: What looks wrong: "nan", "inf", "vanishing", "exploding", "dead units".
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    norm: float
    mean: float
    std: float
    min: float
    max: float
    zeros: float
    nans: int
    infs: int
    param_norm: float | None
    units: int
    dead_units: int
    problems: tuple[str, ...]

    @property
    def relative(self) -> float | None:
        """The norm divided by that of the parameter; None if there is none, or 0, or not finite."""
        if not self.param_norm or not math.isfinite(self.param_norm):
            return None
        return self.norm / self.param_norm


@dataclass(frozen=True)
class GradientStatistics:
    """Statistics of gradients: `print` shows a table.

    Attributes:
        leaves: Those of each array, by name.
        norm: The norm of all gradients together.
    """

    leaves: dict[str, LeafStatistics]
    norm: float

    @property
    def problems(self) -> list[str]:
        """What looks wrong, a sentence for each: `w: 3 of 100 elements are NaN`."""
        return [text for leaf in self.leaves.values() for text in _sentences(leaf)]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as dicts, lists and numbers, for a log."""
        leaves = {name: asdict(leaf) for name, leaf in self.leaves.items()}
        return {"norm": self.norm, "leaves": leaves, "problems": self.problems}

    def table(self) -> Any:
        """Return a table of the package rich, with problems in red: `rich.print(stats.table())`."""
        table = load("rich.table").Table("gradient", *_COLUMNS, "problems")
        as_it_is = load("rich.text").Text  # a name like a[b] is no markup
        for leaf in self.leaves.values():
            style = "red" if leaf.problems else None
            table.add_row(as_it_is(leaf.name), *_cells(leaf), ", ".join(leaf.problems), style=style)
        return table

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [("gradient", *_COLUMNS, "problems")]
        rows += [
            (leaf.name, *_cells(leaf), ", ".join(leaf.problems)) for leaf in self.leaves.values()
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        first, *middle, _ = widths
        lines = []
        for name, *cells, problems in rows:
            figures = [f"{cell:>{width}}" for cell, width in zip(cells, middle, strict=True)]
            lines.append("  ".join([f"{name:{first}}", *figures, problems]).rstrip())
        return "\n".join([*lines, f"norm of all: {self.norm:.4g}", *self.problems])


def statistics(
    grads: Any, params: Any = None, *, vanishing: float = 1e-7, exploding: float = 1e3
) -> GradientStatistics:
    """Statistics of gradients, and what looks wrong about them.

    It reads values, so it is called outside of compiled functions.

    Args:
        grads: Nested containers of gradients.
        params: The parameters in the same containers. With them, norms are compared with those of
            the parameters, unless these are zero or not finite.
        vanishing: A gradient vanishes if its norm, or its norm divided by that of the parameter, is
            smaller than this and not zero.
        exploding: It explodes if its norm, or its norm divided by that of the parameter, is larger.

    Returns:
        The statistics by the names of the leaves, `.problems`, and tables of them.

    Raises:
        ArgumentError: The containers differ, or a threshold is negative.
        ShapeError: A gradient has another shape than its parameter.
        DTypeError: A leaf is neither an array nor a number, or not of floats.
        ConversionError: Values are not known, in a compiled function or under `gt.vmap`.

    >>> stats = gt.gradients.statistics({"w": np.array([[3.0, 4.0], [0.0, 0.0]]), "b": np.ones(2)})
    >>> stats.leaves["w"].norm, stats.leaves["w"].dead_units, stats.problems
    (5.0, 1, ['w: 1 of 2 units have a gradient of zeros'])
    >>> print(stats)
    gradient   norm  relative  mean   std  min  max  zeros  dead  problems
    b         1.414                1     0    1    1    0%
    w             5             1.75  1.785    0    4   50%   1/2  dead units
    norm of all: 5.196
    w: 1 of 2 units have a gradient of zeros
    """
    least = not_negative(vanishing, "statistics", "vanishing")
    most = not_negative(exploding, "statistics", "exploding")
    gradients = Gradients("statistics", grads)
    names = list(named_leaves(grads, "statistics")[0])
    weights = [None] * len(names) if params is None else gradients.beside(params)
    leaves = {}
    for name, g, w in zip(names, gradients.values, weights, strict=True):
        leaves[name] = _of_leaf(name, _known(g), None if w is None else _known(w), least, most)
    norms = np.array([leaf.norm for leaf in leaves.values()], float)
    return GradientStatistics(leaves, _norm(norms))


def _known(x: Any) -> Any:
    """The values of a gradient as an array."""
    if isinstance(x, Tensor) and is_unknown(x):
        raise ConversionError(
            "statistics: the values of gradients are not known in a compiled function or under "
            "vmap; return the gradients, and call it outside"
        )
    return np.asarray(x.detach().numpy() if isinstance(x, Tensor) else x)


def _double(x: Any) -> Any:
    """An array in float64 or complex128, as norms of float32 may be too large for float32."""
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _norm(x: Any) -> float:
    return float(norm_of(*scaled_norm([x])))


def _mean_and_std(x: Any) -> tuple[float, float]:
    """The mean and the standard deviation; sums and squares do not overflow."""
    # Powers of two keep all bits.
    exponent = int(np.frexp(np.abs(x).max())[1])
    scaled = np.ldexp(x, -exponent)
    mean = np.clip(np.ldexp(scaled.mean(), exponent), x.min(), x.max())
    return float(mean), float(np.ldexp(scaled.std(), exponent))


@np.errstate(all="ignore")  # what is too large is infinite
def _of_leaf(name: str, x: Any, weight: Any, least: float, most: float) -> LeafStatistics:
    full = _double(x)
    sizes = np.abs(full) if full.dtype.kind == "c" else full
    finite = sizes[np.isfinite(full)]
    shown = finite if finite.size else np.full(1, np.nan if x.size else 0.0)
    mean, std = _mean_and_std(shown)
    units = x.shape[0] if x.ndim > 1 else 0
    leaf = LeafStatistics(
        name=name,
        shape=x.shape,
        dtype=x.dtype.name,
        norm=_norm(full),
        mean=mean,
        std=std,
        min=float(shown.min()),
        max=float(shown.max()),
        zeros=float(np.mean(full == 0)) if x.size else 0.0,
        nans=int(np.isnan(full).sum()),
        infs=int((np.isinf(full) & ~np.isnan(full)).sum()),
        param_norm=None if weight is None else _norm(_double(weight)),
        units=units,
        dead_units=int(np.sum(~np.any(full.reshape(units, -1) != 0, axis=1))) if units else 0,
        problems=(),
    )
    return replace(leaf, problems=_problems(leaf, least, most))


def _problems(leaf: LeafStatistics, least: float, most: float) -> tuple[str, ...]:
    size = leaf.norm if leaf.relative is None else leaf.relative
    found = {
        "nan": leaf.nans > 0,
        "inf": leaf.infs > 0,
        "vanishing": leaf.norm > 0 and size < least,
        "exploding": not leaf.nans and not leaf.infs and size > most,
        "dead units": leaf.dead_units > 0,
    }
    return tuple([name for name, is_so in found.items() if is_so])


def _sentences(leaf: LeafStatistics) -> list[str]:
    size = math.prod(leaf.shape)
    norm = f"the norm is {leaf.norm:.3g}"
    if leaf.relative is not None:
        norm = f"the norm is {leaf.relative:.3g} times that of the parameter"
    texts = {
        "nan": f"{leaf.nans} of {size} elements are NaN",
        "inf": f"{leaf.infs} of {size} elements are infinite",
        "vanishing": f"vanishing, {norm}",
        "exploding": f"exploding, {norm}",
        "dead units": f"{leaf.dead_units} of {leaf.units} units have a gradient of zeros",
    }
    return [f"{leaf.name}: {texts[problem]}" for problem in leaf.problems]


def _cells(leaf: LeafStatistics) -> list[str]:
    """The columns of a table."""
    numbers = [leaf.norm, leaf.relative, leaf.mean, leaf.std, leaf.min, leaf.max]
    cells = ["" if number is None else f"{number:.4g}" for number in numbers]
    dead = f"{leaf.dead_units}/{leaf.units}" if leaf.units else ""
    return [*cells, f"{leaf.zeros:.0%}", dead]
