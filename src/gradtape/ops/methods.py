"""The methods tensors have in common with arrays, each the function of the same name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape import advice
from gradtape.core.lazy import Deferred
from gradtape.core.nested import Alias
from gradtape.core.tensor import Tensor
from gradtape.errors import UnsupportedError
from gradtape.ops import (
    activation,
    arithmetic,
    arrays,
    cast,
    cumulative,
    diagonal,
    exponential,
    gather,
    matmul,
    moments,
    product,
    rearrange,
    reduce,
    rounding,
    select,
    shape,
    trigonometric,
    which,
)
from gradtape.ops.into import INTO, method as into_method
from gradtape.ops.nonzero import nonzero
from gradtape.ops.norm import norm

# The methods that are functions of the same name.
_SAME_NAME: tuple[Callable[..., Any], ...] = (
    reduce.sum, reduce.mean, product.prod, reduce.max, reduce.min, moments.var, moments.std,
    which.argmax, which.argmin, which.any, which.all, cumulative.cumsum, cumulative.cumprod,
    nonzero, diagonal.trace, diagonal.diagonal, norm, select.clip, rounding.round,
    shape.squeeze, shape.expand_dims, shape.flatten, shape.swapaxes, gather.take, rearrange.repeat,
    matmul.dot, matmul.matmul, cast.copy, exponential.exp, exponential.log, exponential.sqrt,
    trigonometric.sin, trigonometric.cos, trigonometric.tanh, activation.sigmoid, activation.relu,
    arithmetic.abs,
)  # fmt: skip
# Those in modules that not every program uses.
_DEFERRED = (
    "argsort", "argpartition", "searchsorted", "topk", "kthvalue", "median", "quantile",
    "cummax", "cummin", "logcumsumexp", "unique", "choose", "compress",
)  # fmt: skip
# Those of lazy tensors. All tensors have them, as a view of a lazy tensor is a handle like others.
_OF_LAZY_TENSORS = {
    "eval": "gradtape.lazy.methods:evaluated",
    "raw_hook": "gradtape.lazy.hooks:raw_hook",
    "show": "gradtape.lazy.hooks:show",
    "show_shape": "gradtape.lazy.hooks:show_shape",
}


def _method(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        try:
            return function(self, *args, **kwargs)
        except (TypeError, ValueError) as error:
            advice.raise_explained(_itself(function), (self, *args), kwargs, error, name)

    method.__name__ = name
    method.__doc__ = f"See `gt.{name}`."
    return method


def _itself(function: Callable[..., Any]) -> Callable[..., Any]:
    return function.function if isinstance(function, Deferred) else function


def _sizes(args: tuple[Any, ...]) -> Any:
    """`t.reshape(2, 3)` and `t.reshape((2, 3))` mean the same."""
    return args[0] if len(args) == 1 and not isinstance(args[0], int) else args


def _reshape(self: Tensor, *sizes: Any, order: str = "C") -> Any:
    """See `gt.reshape`; sizes may be given one by one."""
    return shape.reshape(self, _sizes(sizes), order=order)


def _view(self: Tensor, *sizes: Any, order: str = "C") -> Any:
    """See `gt.reshape`; sizes may be given one by one. Without sizes it has those of the tensor."""
    if not sizes:
        return _reshape(self, self.shape)
    if len(sizes) == 1 and isinstance(sizes[0], type | np.dtype | str):
        raise UnsupportedError(
            f"view: got dtype {np.dtype(sizes[0])}, expected sizes; the bytes of a tensor cannot "
            "be read as another dtype; use t.astype(dtype), or t.detach().numpy().view(dtype)"
        )
    return _reshape(self, *sizes, order=order)


def _transpose(self: Tensor, *axes: Any) -> Any:
    """See `gt.transpose`; axes may be given one by one."""
    order = None if not axes or axes == (None,) else _sizes(axes)
    return shape.transpose(self, order)


def _astype(self: Tensor, dtype: Any, *, copy: bool = True) -> Any:
    """See `gt.astype`."""
    return cast.astype(self, dtype, copy=copy)


def _part(function: Callable[..., Any], doc: str) -> Callable[[Tensor], Any]:
    """A part of complex numbers: it follows the tensor as a view does, and refuses writes."""

    def part(self: Tensor) -> Any:
        return Alias(self, function, function(self).fresh())

    part.__doc__ = doc
    return part


def _round(self: Tensor, ndigits: int | None = None) -> Any:
    """`round(t)` and `round(t, 2)`: see `gt.round`."""
    return rounding.round(self, ndigits or 0)


def _divmod(self: Any, other: Any) -> Any:
    """`divmod(t, other)`: the rounded quotient and the remainder."""
    return self // other, self % other


def _rdivmod(self: Any, other: Any) -> Any:
    """`divmod(other, t)`."""
    return other // self, other % self


def _fill(self: Tensor, value: Any) -> None:
    """Write a value everywhere, differentiable in the value."""
    self[...] = value


_at_of = Deferred("gradtape.ops.at:at")


def _at(self: Tensor) -> Any:
    """`t.at[index].set(values)` and its kin return a new tensor, as in JAX: see `gt.at`."""
    return _at_of(self)


_sort_of = Deferred(arrays.place_of("sort"))
_partition_of = Deferred(arrays.place_of("partition"))


def _sort(
    self: Tensor, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> None:
    """Sort in place, as NumPy's method does, and differentiably; `gt.sort` returns a new tensor."""
    options = {"kind": kind, "order": order, "stable": stable}
    given = {name: value for name, value in options.items() if value is not None}
    self[...] = _sort_of(self, axis, **given)


def _partition(self: Tensor, kth: Any, axis: int = -1, kind: str = "introselect") -> None:
    """Partition in place, as NumPy's method does; `gt.partition` returns a new tensor."""
    self[...] = _partition_of(self, kth, axis, kind)


def _conj(self: Tensor) -> Tensor:
    """Complex conjugate; booleans stay booleans, as in NumPy's method."""
    # NumPy's function turns them into integers.
    return cast.copy(self) if self.dtype == np.bool else cast.conj(self)  # type: ignore[no-any-return]


def install() -> None:
    """Give tensors their methods and properties."""
    for function in _SAME_NAME:
        setattr(Tensor, function.__name__, _method(function.__name__, function))
    for name in _DEFERRED:
        setattr(Tensor, name, _method(name, Deferred(arrays.place_of(name))))
    for name, place in _OF_LAZY_TENSORS.items():
        setattr(Tensor, name, _method(name, Deferred(place)))
        getattr(Tensor, name).__doc__ = f"See `{place}`."
    for name in INTO:
        setattr(Tensor, name, into_method(name))
    methods: dict[str, Callable[..., Any]] = {
        "reshape": _reshape,
        "view": _view,
        "transpose": _transpose,
        "permute": _transpose,
        "astype": _astype,
        "ravel": shape.ravel,
        "conj": _conj,
        "conjugate": _conj,
        "clone": _method("copy", cast.copy),
        "unsqueeze": _method("unsqueeze", shape.expand_dims),
        "fill": _fill,
        "sort": _sort,
        "partition": _partition,
        "__round__": _round,
        "__divmod__": _divmod,
        "__rdivmod__": _rdivmod,
    }
    for name, method in methods.items():
        setattr(Tensor, name, method)
    properties: dict[str, Callable[[Tensor], Any]] = {
        "T": shape.transpose,
        "mT": shape.matrix_transpose,
        "at": _at,
        "real": _part(cast.real, "The real part."),
        "imag": _part(cast.imag, "The imaginary part."),
    }
    for name, getter in properties.items():
        setattr(Tensor, name, property(getter))
