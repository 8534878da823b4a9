"""A sample call of each NumPy function that cannot simply be called on an array or two.

The page of NumPy's functions (`numpy_page.py`) runs them on recorded tensors to see
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


# A call of a function on the samples.
Call = Callable[[Any, Samples], Any]


def _after(write: Call) -> Call:
    """Turn a call that writes into the symmetric matrix into one that returns the matrix."""

    def call(f: Any, t: Samples) -> Any:
        write(f, t)
        return t.s

    return call


# Functions that give a tensor only if `like=` tells NumPy what the result is to be like.
_LIKE = "array asanyarray asarray ascontiguousarray asfortranarray require"
LIKE = frozenset(f"np.{name}" for name in _LIKE.split())

# The functions that a call is for.
_CALLS: dict[str, Call] = {
    _LIKE: lambda f, t: f(t.v, like=t.v),
    "delete pad roll": lambda f, t: f(t.v, 1),
    # By these two of the four are sorted: the order of others depends on the CPU.
    "argpartition partition": lambda f, t: f(t.v, (1, 2)),
    "hsplit repeat split tile": lambda f, t: f(t.v, 2),
    "array_split resize": lambda f, t: f(t.v, 3),
    "nanpercentile nanquantile percentile quantile": lambda f, t: f(t.v, 0.5),
    "geomspace linspace logspace": lambda f, t: f(t.v[0], t.v[1], 3),
    "block column_stack concat concatenate dstack hstack stack vstack": lambda f, t: f([t.v, t.v]),
    "save savetxt savez savez_compressed": lambda f, t: f("", t.v),
    "moveaxis swapaxes": lambda f, t: f(t.m, 0, 1),
    "ravel_multi_index": lambda f, t: f((t.i, t.i), (3, 3)),
    "unravel_index": lambda f, t: f(t.i, (3, 3)),
    "cross linalg.cross": lambda f, t: f(t.s, t.s[0]),
    "tensordot linalg.tensordot": lambda f, t: f(t.v, t.v, axes=1),
    "linalg.eig linalg.eigvals": lambda f, t: f(t.s),
    "linalg.matrix_power": lambda f, t: f(t.s, 3),
    "linalg.multi_dot": lambda f, t: f([t.s, t.s, t.s]),
    "linalg.tensorinv": lambda f, t: f(t.s, ind=1),
    "apply_along_axis": lambda f, t: f(lambda v: v * v, 0, t.m),
    "apply_over_axes": lambda f, t: f(np.sum, t.m, [0, 1]),
    "astype": lambda f, t: f(t.v, np.float32),
    "bincount": lambda f, t: f(t.i, t.v),
    "bmat": lambda f, t: f([[t.s, t.s]]),
    "broadcast_to": lambda f, t: f(t.v, (2, 4)),
    "busday_offset": lambda f, t: f(t.i, t.i),
    "can_cast": lambda f, t: f(t.v, np.float64),
    "choose": lambda f, t: f(t.b * 1, [t.v, t.v]),
    "clip": lambda f, t: f(t.v, 0.3, 0.6),
    "compress": lambda f, t: f([True, False, True], t.v),
    "copyto": _after(lambda f, t: f(t.s, t.s[0])),
    "digitize": lambda f, t: f(t.v, [0.3, 0.6]),
    "dsplit": lambda f, t: f(t.m[None], 3),
    "einsum einsum_path": lambda f, t: f("i,i->", t.v, t.v),
    "expand_dims": lambda f, t: f(t.v, 0),
    "extract": lambda f, t: f([True, False, True, True], t.v),
    "fill_diagonal": _after(lambda f, t: f(t.s, 2.0)),
    "full_like": lambda f, t: f(t.v, t.v[0]),
    "histogram": lambda f, t: f(t.v, weights=t.v),
    "histogram2d": lambda f, t: f(t.v, t.v, weights=t.v),
    "histogramdd": lambda f, t: f(t.v[:, None], weights=t.v),
    "insert": lambda f, t: f(t.v, 1, t.v[0]),
    "interp": lambda f, t: f(t.v, [0.0, 0.5, 1.0], t.v[:3]),
    "kaiser": lambda f, t: f(3, t.v[0]),
    "lexsort": lambda f, t: f((t.v,)),
    "nested_iters": lambda f, t: f([t.m], [[0], [1]]),
    "permute_dims": lambda f, t: f(t.m),
    "piecewise": lambda f, t: f(t.v, [t.v > 0.3], [lambda v: v * v, 0]),
    "place putmask": _after(lambda f, t: f(t.s, t.s > 1, t.v)),
    "polyfit": lambda f, t: f(t.v, t.v, 1),
    "put": _after(lambda f, t: f(t.s, [0], t.v)),
    "put_along_axis": _after(lambda f, t: f(t.s, t.i[:3, None], t.v[0], 1)),
    "reshape": lambda f, t: f(t.v, (2, 2)),
    "rollaxis": lambda f, t: f(t.m, 1),
    "select": lambda f, t: f([t.v > 0.3], [t.v]),
    "take": lambda f, t: f(t.v, [0, 2]),
    "take_along_axis": lambda f, t: f(t.v, t.i, 0),
    "vsplit": lambda f, t: f(t.m, 2),
    "where": lambda f, t: f(t.v > 0.3, t.v, 0.0),
}
SAMPLES = {f"np.{name}": call for names, call in _CALLS.items() for name in names.split()}

# Calls to try for the others, in this order, until one fits.
GENERAL: tuple[Call, ...] = (
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
