"""What NumPy's functions say about tensors: texts, dtypes, memory; and arrays made like them.

They read values and shapes only; nothing here is differentiated, and nothing needs to be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.backends import to_numpy
from gradtape.core.define import answers, broadcast_sizes
from gradtape.core.tensor import Tensor, innermost
from gradtape.ops.arguments import as_shape
from gradtape.ops.creation import asarray
from gradtape.ops.shape import reshape
from gradtape.typing import Array, ArrayLike


def _read(x: Any) -> Any:
    return to_numpy(innermost(x)) if isinstance(x, Tensor) else x


# ---- texts --------------------------------------------------------------------------------------


def _reading(original: Callable[..., Any]) -> None:
    """Answer a function of NumPy by calling it on what a tensor holds."""

    def answer(*args: Any, **options: Any) -> Any:
        return original(*map(_read, args), **options)

    answers(original)(answer)


for _name in (
    "array2string",
    "array_repr",
    "array_str",
    "may_share_memory",
    "min_scalar_type",
    "shares_memory",
):
    _reading(getattr(np, _name))


# ---- dtypes and shapes --------------------------------------------------------------------------


@answers(np.common_type)
def _common_type(*arrays: ArrayLike) -> Any:
    return np.common_type(*(np.empty(0, x.dtype) if isinstance(x, Tensor) else x for x in arrays))


@answers(np.einsum_path)
def _einsum_path(*operands: Any, **options: Any) -> Any:
    # Only shapes matter; an array of one element under all indices has them.
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


@answers(np.array)
def _array(
    data: Any, /, dtype: Any = None, *, copy: bool | None = True, ndmin: int = 0, **_layout: Any
) -> Tensor:
    made = asarray(data, dtype, copy=copy)
    missing = ndmin - len(made.shape)
    return reshape(made, (1,) * missing + made.shape) if missing > 0 else made


@answers(np.asanyarray, np.ascontiguousarray, np.asfortranarray, np.require)
def _as_array(
    data: Any, /, dtype: Any = None, *_layout: Any, copy: bool | None = None, **_options: Any
) -> Tensor:
    return asarray(data, dtype, copy=copy)


def _made(original: Callable[..., Any]) -> None:
    """Answer a function of NumPy that makes an array: what comes is a tensor without history."""

    def answer(*args: Any, **options: Any) -> Array:
        return Tensor(original(*args, **options))

    answers(original)(answer)


for _name in (
    "frombuffer",
    "fromfile",
    "fromfunction",
    "fromiter",
    "fromstring",
    "genfromtxt",
    "loadtxt",
):
    _made(getattr(np, _name))
