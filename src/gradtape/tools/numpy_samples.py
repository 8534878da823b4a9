"""A sample call of each NumPy function that cannot simply be called on an array or two.

The page of NumPy's functions (`gradtape.tools.numpy_page`) runs them on recorded tensors to see
what happens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.ops.creation import tensor


class Samples:
    """Tensors to call functions on; the floating ones are recorded.

    Attributes:
        v: Four numbers.
        m: A matrix.
        s: A symmetric positive definite matrix.
        z: Complex numbers.
        i: Integers.
        b: Truth values.
    """

    def __init__(self) -> None:
        self.v = _recorded(np.array([0.25, 0.5, 0.75, 0.625]))
        self.m = _recorded(np.array([[0.5, 0.25, 0.75], [0.125, 0.625, 0.375]]))
        self.s = _recorded(np.array([[2.0, 0.5, 0.25], [0.5, 3.0, 0.125], [0.25, 0.125, 1.0]]))
        self.z = _recorded(np.array([0.5 + 1j, 0.25 - 0.5j, 1.0 + 0.25j]))
        self.i: Any = tensor([1, 0, 2, 1])
        self.b: Any = tensor([True, False, True, True])


def _recorded(array: Any) -> Any:
    # Not a leaf, which could not be written to.
    return tensor(array, requires_grad=True) * 1


def _after(write: Callable[[Any, Samples], Any]) -> Callable[[Samples], Any]:
    """Turn a function that writes into a matrix into one that returns the matrix."""

    def call(t: Samples) -> Any:
        write(t.s, t)
        return t.s

    return call


Call = Callable[[Samples], Any]

SAMPLES: dict[str, Call] = {
    "np.apply_along_axis": lambda t: np.apply_along_axis(lambda v: v * v, 0, t.m),
    "np.apply_over_axes": lambda t: np.apply_over_axes(np.sum, t.m, [0, 1]),
    "np.array": lambda t: np.array(t.v, like=t.v),
    "np.array_split": lambda t: np.array_split(t.v, 3),
    "np.asanyarray": lambda t: np.asanyarray(t.v, like=t.v),
    "np.asarray": lambda t: np.asarray(t.v, like=t.v),
    "np.ascontiguousarray": lambda t: np.ascontiguousarray(t.v, like=t.v),
    "np.asfortranarray": lambda t: np.asfortranarray(t.v, like=t.v),
    "np.astype": lambda t: np.astype(t.v, np.float32),
    "np.bincount": lambda t: np.bincount(t.i, t.v),
    "np.bmat": lambda t: np.bmat([[t.s, t.s]]),
    "np.block": lambda t: np.block([t.v, t.v]),
    "np.broadcast_to": lambda t: np.broadcast_to(t.v, (2, 4)),
    "np.busday_offset": lambda t: np.busday_offset(t.i, t.i),
    "np.can_cast": lambda t: np.can_cast(t.v, np.float64),
    "np.choose": lambda t: np.choose(t.b * 1, [t.v, t.v]),
    "np.clip": lambda t: np.clip(t.v, 0.3, 0.6),
    "np.compress": lambda t: np.compress([True, False, True], t.v),
    "np.copyto": _after(lambda x, t: np.copyto(x, t.s[0])),
    "np.cross": lambda t: np.cross(t.s, t.s[0]),
    "np.delete": lambda t: np.delete(t.v, 1),
    "np.digitize": lambda t: np.digitize(t.v, [0.3, 0.6]),
    "np.dsplit": lambda t: np.dsplit(t.m[None], 3),
    "np.einsum": lambda t: np.einsum("i,i->", t.v, t.v),
    "np.einsum_path": lambda t: np.einsum_path("i,i->", t.v, t.v),
    "np.expand_dims": lambda t: np.expand_dims(t.v, 0),
    "np.extract": lambda t: np.extract([True, False, True, True], t.v),
    "np.fill_diagonal": _after(lambda x, t: np.fill_diagonal(x, 2.0)),
    "np.full_like": lambda t: np.full_like(t.v, t.v[0]),
    "np.geomspace": lambda t: np.geomspace(t.v[0], t.v[1], 3),
    "np.histogram": lambda t: np.histogram(t.v, weights=t.v),
    "np.histogram2d": lambda t: np.histogram2d(t.v, t.v, weights=t.v),
    "np.histogramdd": lambda t: np.histogramdd(t.v[:, None], weights=t.v),
    "np.hsplit": lambda t: np.hsplit(t.v, 2),
    "np.insert": lambda t: np.insert(t.v, 1, t.v[0]),
    "np.interp": lambda t: np.interp(t.v, [0.0, 0.5, 1.0], t.v[:3]),
    "np.kaiser": lambda t: np.kaiser(3, t.v[0]),
    "np.lexsort": lambda t: np.lexsort((t.v,)),
    "np.linspace": lambda t: np.linspace(t.v[0], t.v[1], 3),
    "np.logspace": lambda t: np.logspace(t.v[0], t.v[1], 3),
    "np.moveaxis": lambda t: np.moveaxis(t.m, 0, 1),
    "np.nested_iters": lambda t: np.nested_iters([t.m], [[0], [1]]),
    "np.pad": lambda t: np.pad(t.v, 1),
    "np.partition": lambda t: np.partition(t.v, 1),
    "np.argpartition": lambda t: np.argpartition(t.v, 1),
    "np.permute_dims": lambda t: np.permute_dims(t.m),
    "np.piecewise": lambda t: np.piecewise(t.v, [t.v > 0.3], [lambda v: v * v, 0]),
    "np.place": _after(lambda x, t: np.place(x, x > 1, t.v)),
    "np.polyfit": lambda t: np.polyfit(t.v, t.v, 1),
    "np.put": _after(lambda x, t: np.put(x, [0], t.v)),
    "np.put_along_axis": _after(lambda x, t: np.put_along_axis(x, t.i[:3, None], t.v[0], 1)),
    "np.putmask": _after(lambda x, t: np.putmask(x, x > 1, t.v)),
    "np.ravel_multi_index": lambda t: np.ravel_multi_index((t.i, t.i), (3, 3)),
    "np.repeat": lambda t: np.repeat(t.v, 2),
    "np.require": lambda t: np.require(t.v, like=t.v),
    "np.reshape": lambda t: np.reshape(t.v, (2, 2)),
    "np.resize": lambda t: np.resize(t.v, 3),
    "np.roll": lambda t: np.roll(t.v, 1),
    "np.rollaxis": lambda t: np.rollaxis(t.m, 1),
    "np.save": lambda t: np.save("", t.v),
    "np.savetxt": lambda t: np.savetxt("", t.v),
    "np.savez": lambda t: np.savez("", t.v),
    "np.savez_compressed": lambda t: np.savez_compressed("", t.v),
    "np.select": lambda t: np.select([t.v > 0.3], [t.v]),
    "np.split": lambda t: np.split(t.v, 2),
    "np.swapaxes": lambda t: np.swapaxes(t.m, 0, 1),
    "np.take": lambda t: np.take(t.v, [0, 2]),
    "np.take_along_axis": lambda t: np.take_along_axis(t.v, t.i, 0),
    "np.tensordot": lambda t: np.tensordot(t.v, t.v, 1),
    "np.tile": lambda t: np.tile(t.v, 2),
    "np.unravel_index": lambda t: np.unravel_index(t.i, (3, 3)),
    "np.vsplit": lambda t: np.vsplit(t.m, 2),
    "np.where": lambda t: np.where(t.v > 0.3, t.v, 0.0),
    "np.linalg.matrix_power": lambda t: np.linalg.matrix_power(t.s, 3),
    "np.linalg.multi_dot": lambda t: np.linalg.multi_dot([t.s, t.s, t.s]),
    "np.linalg.tensordot": lambda t: np.linalg.tensordot(t.v, t.v, axes=1),
    "np.linalg.tensorinv": lambda t: np.linalg.tensorinv(t.s, ind=1),
    "np.linalg.eig": lambda t: np.linalg.eig(t.s),
    "np.linalg.eigvals": lambda t: np.linalg.eigvals(t.s),
    "np.linalg.cross": lambda t: np.linalg.cross(t.s, t.s[0]),
}
for _name in ("percentile", "quantile", "nanpercentile", "nanquantile"):
    SAMPLES[f"np.{_name}"] = lambda t, name=_name: getattr(np, name)(t.v, 0.5)  # type: ignore[misc]
for _name in ("concatenate", "concat", "stack", "vstack", "hstack", "dstack", "column_stack"):
    SAMPLES[f"np.{_name}"] = lambda t, name=_name: getattr(np, name)([t.v, t.v])  # type: ignore[misc]

# Calls to try for the others, in this order, until one fits.
GENERAL: tuple[Callable[[Any, Samples], Any], ...] = (
    lambda f, t: f(t.m),
    lambda f, t: f(t.v),
    lambda f, t: f(t.s),
    lambda f, t: f(t.v, t.v),
    lambda f, t: f(t.s, t.s),
    lambda f, t: f(t.s, t.s[0]),
    lambda f, t: f(t.s[0], t.s),
    lambda f, t: f(t.v, t.i),
    lambda f, t: f(t.i),
    lambda f, t: f(t.i, t.i),
)

# Functions that give a tensor only if `like=` tells NumPy what the result is to be like.
LIKE = frozenset(
    {"np.array", "np.asanyarray", "np.asarray", "np.ascontiguousarray", "np.asfortranarray"}
    | {"np.require"}
)

# Functions that NumPy supports only for its own arrays, and that raise an error of NumPy's.
ONLY_ARRAYS = {"np.nested_iters": "it goes through the memory of arrays; use t.detach().numpy()"}

# Functions that are not about the elements of arrays: settings, files, sizes, dtypes, numbers.
NO_ARRAYS = frozenset(
    {
        "np.arange", "np.bartlett", "np.base_repr", "np.binary_repr", "np.blackman",
        "np.broadcast_shapes", "np.datetime_data", "np.diag_indices", "np.empty", "np.eye",
        "np.format_float_positional", "np.format_float_scientific", "np.from_dlpack",
        "np.frombuffer", "np.fromfile", "np.fromfunction", "np.fromiter", "np.frompyfunc",
        "np.fromregex", "np.fromstring", "np.full", "np.genfromtxt", "np.get_include",
        "np.get_printoptions", "np.getbufsize", "np.geterr", "np.geterrcall", "np.hamming",
        "np.hanning", "np.identity", "np.indices", "np.info", "np.isdtype", "np.issctype",
        "np.issubdtype", "np.load", "np.loadtxt", "np.mask_indices", "np.mintypecode", "np.ones",
        "np.printoptions", "np.promote_types", "np.set_printoptions", "np.setbufsize", "np.seterr",
        "np.seterrcall", "np.show_config", "np.show_runtime", "np.test", "np.tri",
        "np.tril_indices", "np.triu_indices", "np.typename", "np.zeros", "np.linalg.test",
        "np.fft.test", "np.fft.fftfreq", "np.fft.rfftfreq",
    }
)  # fmt: skip
