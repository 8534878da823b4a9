"""The operations of the per-op table, each as an expression of ours and of PyTorch's."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

SIZES = (100, 10_000, 1_000_000)
DTYPES = ("float32", "float64")
BAR = 1.5
"""How many times as long as PyTorch an operation may take, at the largest size."""

Arrays = dict[str, np.ndarray]
Make = Callable[[np.random.Generator, int], Arrays]


@dataclass(frozen=True, slots=True)
class OpCase:
    """One operation at one size."""

    ours: str
    pytorch: str
    make: Make
    size: int
    dtype: str

    @property
    def name(self) -> str:
        """What the processes of both sides call it."""
        return f"{self.ours}, {self.dtype}, {self.size}"

    def arrays(self) -> Arrays:
        """Make the arguments, the same in every process."""
        made = self.make(np.random.default_rng(0), self.size)
        return {name: np.asarray(x, self.dtype) for name, x in made.items()}


# ---- arguments of about n elements --------------------------------------------------------------


def _uniform(low: float, high: float, names: str = "x") -> Make:
    return lambda rng, n: {name: rng.uniform(low, high, n) for name in names}


def _matrix(rng: np.random.Generator, n: int) -> Arrays:
    side = round(math.sqrt(n))
    return {"x": rng.normal(size=(side, side))}


def _row_and_column(rng: np.random.Generator, n: int) -> Arrays:
    side = round(math.sqrt(n))
    return {"x": rng.normal(size=(side, side)), "y": rng.normal(size=side)}


def _two_matrices(rng: np.random.Generator, n: int) -> Arrays:
    """Well conditioned, so that equations can be solved."""
    side = round(math.sqrt(n))
    return {
        name: rng.normal(size=(side, side)) + 3 * math.sqrt(side) * np.eye(side) for name in "xy"
    }


ANY, POSITIVE = _uniform(-3.0, 3.0), _uniform(0.1, 3.0)
INSIDE, ABOVE_1 = _uniform(-0.9, 0.9), _uniform(1.1, 3.0)
PAIR, POSITIVE_PAIR = _uniform(-3.0, 3.0, "xy"), _uniform(0.1, 3.0, "xy")

# ---- the operations -----------------------------------------------------------------------------

# Arguments -> functions of the same name and arguments on both sides.
_SAME_NAME: tuple[tuple[Make, str, str], ...] = (
    (ANY, "x", "exp exp2 expm1 sin cos tan sinh cosh tanh arctan arcsinh sigmoid relu abs square"),
    (ANY, "x", "negative erf erfc sinc deg2rad sum mean max"),
    (POSITIVE, "x", "log log2 log10 log1p sqrt reciprocal lgamma digamma"),
    (INSIDE, "x", "arcsin arccos arctanh erfinv"),
    (ABOVE_1, "x", "arccosh"),
    (PAIR, "x, y", "add subtract multiply divide maximum minimum arctan2 hypot logaddexp dot"),
    (POSITIVE_PAIR, "x, y", "xlogy"),
    (_two_matrices, "x, y", "matmul"),
)
# Ours, PyTorch's (None: ours with the other module), arguments.
_SPELLED: tuple[tuple[str, str | None, Make], ...] = (
    ("x * 2.0 + 1.0", None, ANY),
    ("x**2", None, ANY),
    ("x**3.5", None, POSITIVE),
    ("gt.power(x, y)", "torch.pow(x, y)", POSITIVE_PAIR),
    ("gt.clip(x, -1.0, 1.0)", None, ANY),
    ("gt.where(x > 0, x, y)", None, PAIR),
    ("gt.gelu(x)", "F.gelu(x)", ANY),
    ("gt.silu(x)", "F.silu(x)", ANY),
    ("gt.softplus(x)", "F.softplus(x)", ANY),
    ("gt.elu(x)", "F.elu(x)", ANY),
    ("gt.leaky_relu(x)", "F.leaky_relu(x)", ANY),
    ("gt.log_sigmoid(x)", "F.logsigmoid(x)", ANY),
    ("gt.sum(x, 0)", None, _matrix),
    ("gt.sum(x, 1)", None, _matrix),
    ("gt.prod(x, 1)", None, _matrix),
    ("gt.max(x, 1)", "torch.amax(x, 1)", _matrix),
    ("gt.std(x)", "torch.std(x, correction=0)", ANY),
    ("gt.var(x, 1)", "torch.var(x, 1, correction=0)", _matrix),
    ("gt.cumsum(x, 1)", None, _matrix),
    ("gt.cumprod(x, 1)", None, _matrix),
    ("gt.logsumexp(x, 1)", None, _matrix),
    ("gt.softmax(x, 1)", None, _matrix),
    ("gt.log_softmax(x, 1)", None, _matrix),
    ("gt.norm(x)", "torch.linalg.vector_norm(x)", ANY),
    ("x + y", None, _row_and_column),
    ("x * y[:, None]", None, _row_and_column),
    ("x.T.reshape(-1)", None, _matrix),
    ("x[:, ::2]", None, _matrix),
    ("x[::-1]", "x.flip(0)", ANY),
    ("gt.roll(x, 3)", None, ANY),
    ("gt.concat([x, y])", "torch.cat([x, y])", PAIR),
    ("gt.stack([x, y])", None, PAIR),
    ("gt.repeat(x, 2)", "torch.repeat_interleave(x, 2)", ANY),
    ("gt.tile(x, (2,))", None, ANY),
    ("gt.pad(x, 3)", "F.pad(x, (3, 3))", ANY),
    ("x[index]", None, ANY),
    ("gt.tril(x)", None, _matrix),
    ("gt.solve(x, y)", "torch.linalg.solve(x, y)", _two_matrices),
    ("gt.linalg.inv(x)", None, _two_matrices),
    ("gt.linalg.det(x / 1e3)", None, _two_matrices),
    ("gt.linalg.cholesky(x @ x.T)", None, _two_matrices),
    ('gt.einsum("ij,jk->ik", x, y)', None, _two_matrices),
)


def _cases() -> list[OpCase]:
    rows: list[tuple[str, str | None, Make]] = []
    for make, args, names in _SAME_NAME:
        rows += [(f"gt.{name}({args})", None, make) for name in names.split()]
    rows += _SPELLED
    return [
        OpCase(ours, other or ours.replace("gt.", "torch."), make, size, dtype)
        for ours, other, make in rows
        for size in SIZES
        for dtype in (DTYPES if size == SIZES[-1] else DTYPES[:1])
    ]


CASES = {case.name: case for case in _cases()}
