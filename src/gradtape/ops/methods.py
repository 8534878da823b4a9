"""The methods tensors have in common with arrays, each the function of the same name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape import help
from gradtape.core.nested import Alias
from gradtape.core.op import registry
from gradtape.core.tensor import Tensor
from gradtape.errors import UnsupportedError
from gradtape.ops.into import INTO, method as into_method

_SAME_NAME = (
    "sum mean prod max min var std argmax argmin any all cumsum cumprod nonzero trace diagonal "
    "norm clip round squeeze unsqueeze flatten swapaxes take repeat dot matmul copy exp log sqrt "
    "sin cos tanh sigmoid relu abs argsort argpartition searchsorted topk kthvalue median "
    "quantile cummax cummin logcumsumexp unique choose compress"
)


def _method(name: str) -> Callable[..., Any]:
    functions = registry.functions

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        try:
            return functions[name](self, *args, **kwargs)
        except (TypeError, ValueError) as error:
            help.raise_explained(functions[name], (self, *args), kwargs, error, name)

    method.__name__ = name
    method.__doc__ = f"See `gt.{name}`."
    return method


def _sizes(args: tuple[Any, ...]) -> Any:
    """`t.reshape(2, 3)` and `t.reshape((2, 3))` mean the same."""
    return args[0] if len(args) == 1 and not isinstance(args[0], int) else args


def _reshape(self: Tensor, *shape: Any, order: str = "C") -> Any:
    """See `gt.reshape`; sizes may be given one by one."""
    return registry.functions["reshape"](self, _sizes(shape), order=order)


def _view(self: Tensor, *shape: Any, order: str = "C") -> Any:
    """See `gt.reshape`; sizes may be given one by one."""
    if len(shape) == 1 and isinstance(shape[0], type | np.dtype | str):
        raise UnsupportedError(
            f"view: got dtype {np.dtype(shape[0])}, expected sizes; the bytes of a tensor cannot "
            "be read as another dtype; use t.astype(dtype), or t.detach().numpy().view(dtype)"
        )
    return _reshape(self, *shape, order=order)


def _transpose(self: Tensor, *axes: Any) -> Any:
    """See `gt.transpose`; axes may be given one by one."""
    order = None if not axes or axes == (None,) else _sizes(axes)
    return registry.functions["transpose"](self, order)


def _astype(self: Tensor, dtype: Any, *, copy: bool = True) -> Any:
    """See `gt.astype`."""
    return registry.functions["astype"](self, dtype, copy=copy)


def _ravel(self: Tensor, order: str = "C") -> Any:
    """See `gt.ravel`."""
    return registry.functions["ravel"](self, order)


def _t(self: Tensor) -> Any:
    """The array with its axes reversed."""
    return registry.functions["transpose"](self)


def _mt(self: Tensor) -> Any:
    """The array with its last two axes swapped."""
    return registry.functions["swapaxes"](self, -1, -2)


def _part(name: str, doc: str) -> Callable[[Tensor], Any]:
    """A part of complex numbers: it follows the tensor as a view does, and refuses writes."""
    functions = registry.functions

    def part(self: Tensor) -> Any:
        return Alias(self, functions[name], functions[name](self).fresh())

    part.__doc__ = doc
    return part


def _round(self: Tensor, ndigits: int | None = None) -> Any:
    """`round(t)` and `round(t, 2)`: see `gt.round`."""
    return registry.functions["round"](self, ndigits or 0)


def _divmod(self: Any, other: Any) -> Any:
    """`divmod(t, other)`: the rounded quotient and what is left."""
    return self // other, self % other


def _rdivmod(self: Any, other: Any) -> Any:
    """`divmod(other, t)`."""
    return other // self, other % self


def _fill(self: Tensor, value: Any) -> None:
    """Write a value everywhere, differentiable in the value."""
    self[...] = value


def _sort(
    self: Tensor, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> None:
    """Sort in place, as NumPy's method does, and differentiably; `gt.sort` gives a new tensor."""
    options = {"kind": kind, "order": order, "stable": stable}
    given = {name: value for name, value in options.items() if value is not None}
    self[...] = registry.functions["sort"](self, axis, **given)


def _partition(self: Tensor, kth: Any, axis: int = -1, kind: str = "introselect") -> None:
    """Partition in place, as NumPy's method does; `gt.partition` gives a new tensor."""
    self[...] = registry.functions["partition"](self, kth, axis, kind)


def _conj(self: Tensor) -> Tensor:
    """Complex conjugate; booleans are left as they are, as by NumPy's method."""
    # NumPy's function makes integers of them.
    name = "copy" if self.dtype == np.bool else "conj"
    return registry.functions[name](self)  # type: ignore[no-any-return]


def install() -> None:
    """Give tensors their methods and properties."""
    for name in _SAME_NAME.split():
        setattr(Tensor, name, _method(name))
    for name in INTO:
        setattr(Tensor, name, into_method(name))
    methods: dict[str, Callable[..., Any]] = {
        "reshape": _reshape,
        "view": _view,
        "transpose": _transpose,
        "permute": _transpose,
        "astype": _astype,
        "ravel": _ravel,
        "conj": _conj,
        "conjugate": _conj,
        "clone": _method("copy"),
        "expand_dims": _method("expand_dims"),
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
        "T": _t,
        "mT": _mt,
        "real": _part("real", "The real part."),
        "imag": _part("imag", "The imaginary part."),
    }
    for name, getter in properties.items():
        setattr(Tensor, name, property(getter))
