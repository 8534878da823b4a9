"""NumPy's functions that make arrays, for tensors, too: of lists, as buffers, by index tricks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.autodiff.arguments import is_running
from gradtape.core.lazy import Deferred
from gradtape.core.tensor import Tensor
from gradtape.dropin.held_tensors import any_tensor, holds_tensor
from gradtape.errors import ArgumentError
from gradtape.ops.arguments import as_array
from gradtape.ops.cast import copy as copy_of
from gradtape.ops.counted import arange, linspace, meshgrid
from gradtape.ops.creation import asarray as as_tensor, full as full_of
from gradtape.ops.gather import take
from gradtape.ops.join import concatenate, stack
from gradtape.ops.joined import joined
from gradtape.ops.like import full_like as full_like_of
from gradtape.ops.protocols import answer_function
from gradtape.ops.shape import reshape
from gradtape.typing import Array

_copy: Any = np.copy
_vectorize = Deferred("gradtape.ops.arrays.functional:vectorize")

# ---- arrays of what there is --------------------------------------------------------------------


def array(object: Any, dtype: Any = None, *, copy: Any = True, **options: Any) -> Any:
    """`np.array`, which makes a tensor of a list that holds tensors.

    Args:
        object: A tensor, an array, a number, or nested sequences of these.
        dtype: The dtype of the result.
        copy: Whether to copy a tensor: True, False or None.
        **options: Further options of `np.array`; of tensors, `ndmin` adds axes in front.

    >>> import gradtape.numpy as gnp
    >>> gt.grad(lambda x: gnp.sum(gnp.array([x, [1.0, 2.0][0]]) ** 2))(3.0)
    np.float64(6.0)
    """
    if not holds_tensor(object) or _is_object(dtype):
        return np.array(object, dtype, copy=copy, **options)
    made = as_tensor(joined(object), dtype, copy=True if copy else None)
    missing = options.get("ndmin", 0) - len(made.shape)
    return reshape(made, (1,) * missing + made.shape) if missing > 0 else made


def asarray(a: Any, dtype: Any = None, *args: Any, **options: Any) -> Any:
    """`np.asarray`, which makes a tensor of a list that holds tensors; a tensor stays itself.

    Args:
        a: A tensor, an array, a number, or nested sequences of these.
        dtype: The dtype of the result.
        *args: Further options of `np.asarray` by position.
        **options: Further options of `np.asarray`.
    """
    return _converted(np.asarray, a, dtype, args, options)


def _converted(original: Callable[..., Any], a: Any, dtype: Any, args: Any, options: Any) -> Any:
    if not holds_tensor(a) or _is_object(dtype):
        return original(a, dtype, *args, **options)
    return as_tensor(joined(a), dtype, copy=options.get("copy"))


def _conversion(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def function(a: Any, dtype: Any = None, *args: Any, **options: Any) -> Any:
        return _converted(original, a, dtype, args, options)

    function.__module__ = "gradtape.numpy"
    return function


def _is_object(dtype: Any) -> bool:
    return dtype is not None and np.dtype(dtype) == object


# ---- buffers ------------------------------------------------------------------------------------


def _buffer(original: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes an array, which is a tensor while a transform runs."""

    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        if any_tensor(args, kwargs):
            return answer_function(original, args, kwargs)
        return _recording(original(*args, **kwargs))

    function.__module__ = "gradtape.numpy"
    return function


def _recording(made: Any) -> Any:
    """A new array; a tensor of it while a transform runs."""
    return Tensor(made) if made.dtype.kind in "biufc" and is_running() else made


def full(shape: Any, fill_value: Any, dtype: Any = None, *args: Any, **options: Any) -> Any:
    """`np.full`, also of a tensor: every element has its history.

    Args:
        shape: The size or sizes.
        fill_value: The number, or what broadcasts to the shape.
        dtype: The dtype of the result.
        *args: Further options of `np.full` by position.
        **options: Further options of `np.full`.
    """
    if holds_tensor(fill_value):
        return full_of(shape, joined(fill_value), dtype)
    return _recording(np.full(shape, fill_value, dtype, *args, **options))


def full_like(a: Any, fill_value: Any, dtype: Any = None, *args: Any, **options: Any) -> Any:
    """`np.full_like`, also of a tensor.

    Args:
        a: What to take shape and dtype from.
        fill_value: The number, or what broadcasts to the shape.
        dtype: The dtype of the result.
        *args: Further options of `np.full_like` by position.
        **options: Further options of `np.full_like`.
    """
    if holds_tensor(a) or holds_tensor(fill_value):
        shape = options.get("shape")
        like = joined(a)
        if not isinstance(like, Tensor):
            kind = np.asarray(a).dtype if dtype is None else dtype
            return full_of(np.shape(a) if shape is None else shape, joined(fill_value), kind)
        return full_like_of(like, joined(fill_value), dtype, shape=shape)
    return _recording(np.full_like(a, fill_value, dtype, *args, **options))


# ---- index tricks -------------------------------------------------------------------------------


class _Joining:
    """`np.r_` and `np.c_`, whose parts may be tensors."""

    def __init__(self, original: Any) -> None:
        self._original = original

    def __getitem__(self, key: Any) -> Any:
        if not _holds_in_slices(key):
            return self._original[key]
        # NumPy joins the positions of the elements; the elements are then taken in that order.
        parts: list[Any] = []
        places: list[Any] = []
        count = 0
        for item in key if isinstance(key, tuple) else (key,):
            if isinstance(item, str):
                places.append(item)
                continue
            part = as_array(_range(item) if isinstance(item, slice) else joined(item))
            size = int(np.prod(part.shape))
            numbers = np.arange(count, count + size).reshape(part.shape)
            places.append(numbers if part.shape else int(numbers))
            parts.append(reshape(part, -1))
            count += size
        return take(concatenate(parts), self._original[tuple(places)])

    def __len__(self) -> int:
        return 0


class _Grid:
    """`np.mgrid` and `np.ogrid`, whose bounds may be tensors."""

    def __init__(self, original: Any, *, sparse: bool) -> None:
        self._original, self._sparse = original, sparse

    def __getitem__(self, key: Any) -> Any:
        if not _holds_in_slices(key):
            return self._original[key]
        if isinstance(key, slice):
            return _range(key)
        axes = [_range(item) for item in key]
        grids = meshgrid(*axes, sparse=self._sparse, indexing="ij")
        return grids if self._sparse else stack(grids)


def _holds_in_slices(key: Any) -> bool:
    items = key if isinstance(key, tuple) else (key,)
    return any(
        holds_tensor((item.start, item.stop, item.step))
        if isinstance(item, slice)
        else holds_tensor(item)
        for item in items
    )


def _range(part: slice) -> Array:
    """The numbers of a slice such as `0:1:5j` or `0:10:2`."""
    if not holds_tensor((part.start, part.stop, part.step)):
        return np.r_[part]
    start = 0 if part.start is None else part.start
    if isinstance(part.step, complex):
        return linspace(start, part.stop, int(abs(part.step)))
    if isinstance(part.stop, Tensor) or isinstance(part.step, Tensor):
        raise ArgumentError(
            "np.mgrid, np.r_: got a slice whose end or step is a tensor, so that the number of "
            "elements would depend on it; give the number, as in start:stop:5j"
        )
    return start + arange(0, part.stop - start, part.step or 1)


# ---- others -------------------------------------------------------------------------------------


class vectorize(np.vectorize):  # noqa: N801 - NumPy's name
    """`np.vectorize`, whose function may be called with tensors.

    >>> import gradtape.numpy as gnp
    >>> gt.grad(gnp.vectorize(lambda x: x * x))(3.0)
    np.float64(6.0)
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if any_tensor(args, kwargs):
            options = {"excluded": self.excluded, "signature": self.signature}
            split = _vectorize(self.pyfunc, self.otypes or None, **options)
            return split(*args, **kwargs)
        return super().__call__(*args, **kwargs)


def isscalar(element: Any) -> bool:
    """`np.isscalar`, which is True for 0-d tensors, too.

    Args:
        element: The object to test.

    >>> import gradtape.numpy as gnp
    >>> gnp.isscalar(gt.ones(())), gnp.isscalar(gt.ones(1))
    (True, False)
    """
    return not element.shape if isinstance(element, Tensor) else bool(np.isscalar(element))


def copy(a: Any, order: Any = "K", subok: bool = False) -> Any:
    """`np.copy`, also of a tensor or of a list of tensors.

    Args:
        a: What to copy.
        order: The layout of memory of an array; without effect on a tensor.
        subok: Whether an instance of a subclass of arrays stays one.
    """
    return copy_of(joined(a)) if holds_tensor(a) else _copy(a, order, subok)


def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Any:
    """`np.asarray_chkfinite`, which does not look at the values of tensors.

    Args:
        a: What to convert.
        dtype: The dtype of the result.
        order: The layout of memory of an array; without effect on a tensor.
    """
    return asarray(a, dtype) if holds_tensor(a) else np.asarray_chkfinite(a, dtype, order)


def require(a: Any, dtype: Any = None, requirements: Any = None, **options: Any) -> Any:
    """`np.require`; for a tensor `np.asarray`, as the layout of its memory cannot be chosen.

    Args:
        a: What to convert.
        dtype: The dtype of the result.
        requirements: What an array has to be; without effect on a tensor.
        **options: Further options of `np.require`.
    """
    return asarray(a, dtype) if holds_tensor(a) else np.require(a, dtype, requirements, **options)


_BUFFERS = ("zeros", "ones", "empty", "eye", "identity", "zeros_like", "ones_like", "empty_like")
_CONVERSIONS = ("asanyarray", "ascontiguousarray", "asfortranarray")
MADE: dict[str, Any] = {
    **{name: _buffer(getattr(np, name)) for name in _BUFFERS},
    **{name: _conversion(getattr(np, name)) for name in _CONVERSIONS},
    **{f.__name__: f for f in (array, asarray, full, full_like, vectorize, isscalar, copy)},
    **{f.__name__: f for f in (asarray_chkfinite, require)},
    "r_": _Joining(np.r_),
    "c_": _Joining(np.c_),
    "mgrid": _Grid(np.mgrid, sparse=False),
    "ogrid": _Grid(np.ogrid, sparse=True),
}
