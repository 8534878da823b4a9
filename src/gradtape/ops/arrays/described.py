"""NumPy functions that describe arrays (text, dtype, memory), or make new ones like them.

They read values and shapes only; nothing here is differentiated, and nothing needs to be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.backends import to_numpy
from gradtape.core.define import broadcast_sizes
from gradtape.core.tensor import Tensor, innermost
from gradtape.ops import counted, creation
from gradtape.ops.arguments import as_shape
from gradtape.ops.shape import reshape
from gradtape.typing import ArrayLike


def _read(x: Any) -> Any:
    return to_numpy(innermost(x)) if isinstance(x, Tensor) else x


# ---- texts --------------------------------------------------------------------------------------


def _reading(original: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy, called on what tensors hold."""

    def answer(*args: Any, **options: Any) -> Any:
        return original(*map(_read, args), **options)

    return answer


array2string = _reading(np.array2string)
array_repr = _reading(np.array_repr)
array_str = _reading(np.array_str)
may_share_memory = _reading(np.may_share_memory)
min_scalar_type = _reading(np.min_scalar_type)
shares_memory = _reading(np.shares_memory)

# ---- dtypes and shapes --------------------------------------------------------------------------


def common_type(*arrays: ArrayLike) -> Any:
    return np.common_type(*(np.empty(0, x.dtype) if isinstance(x, Tensor) else x for x in arrays))


def einsum_path(*operands: Any, **options: Any) -> Any:
    # Only shapes matter: one element, broadcast to the shape, stands for the array.
    shaped = (np.broadcast_to(0.0, x.shape) if isinstance(x, Tensor) else x for x in operands)
    return np.einsum_path(*shaped, **options)


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to.

    Args:
        *shapes: Sizes, or tuples of them.

    Raises:
        ShapeError: They do not broadcast.

    >>> gt.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    return broadcast_sizes(*(as_shape(shape, "broadcast_shapes") for shape in shapes))


# ---- np.array(data, like=tensor) ----------------------------------------------------------------


def array(
    data: Any, /, dtype: Any = None, *, copy: bool | None = True, ndmin: int = 0, **_layout: Any
) -> Tensor:
    made = creation.asarray(data, dtype, copy=copy)
    missing = ndmin - len(made.shape)
    return reshape(made, (1,) * missing + made.shape) if missing > 0 else made


def as_array(
    data: Any, /, dtype: Any = None, *_layout: Any, copy: bool | None = None, **_options: Any
) -> Tensor:
    return creation.asarray(data, dtype, copy=copy)


def _made(original: Callable[..., Any]) -> Callable[..., Tensor]:
    """A function of NumPy that makes an array; the result is a tensor without history."""

    def answer(*args: Any, **options: Any) -> Tensor:
        return Tensor(original(*args, **options))

    return answer


frombuffer = _made(np.frombuffer)
fromfile = _made(np.fromfile)
fromfunction = _made(np.fromfunction)
fromiter = _made(np.fromiter)
fromstring = _made(np.fromstring)
genfromtxt = _made(np.genfromtxt)
loadtxt = _made(np.loadtxt)


def _in_any_order(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function of ours for NumPy's of the same name; the memory order has no effect here."""

    def made(*args: Any, order: str = "C", **options: Any) -> Tensor:
        return make(*args, **options)

    return made


arange = _in_any_order(counted.arange)
asarray = _in_any_order(creation.asarray)
empty = _in_any_order(creation.empty)
eye = _in_any_order(creation.eye)
full = _in_any_order(creation.full)
identity = _in_any_order(creation.identity)
ones = _in_any_order(creation.ones)
zeros = _in_any_order(creation.zeros)
