"""The methods tensors have in common with arrays, each the function of the same name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape.core.nested import Alias
from gradtape.core.op import registry
from gradtape.core.tensor import Tensor

_SAME_NAME = [
    "sum",
    "mean",
    "prod",
    "max",
    "min",
    "var",
    "std",
    "argmax",
    "argmin",
    "any",
    "all",
    "cumsum",
    "cumprod",
    "nonzero",
    "trace",
    "diagonal",
    "norm",
    "clip",
    "round",
    "squeeze",
    "unsqueeze",
    "flatten",
    "swapaxes",
    "take",
    "repeat",
    "dot",
    "matmul",
    "conj",
    "copy",
    "exp",
    "log",
    "sqrt",
    "sin",
    "cos",
    "tanh",
    "sigmoid",
    "relu",
    "abs",
]


def _method(name: str) -> Callable[..., Any]:
    functions = registry.functions

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return functions[name](self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"See `gt.{name}`."
    return method


def _sizes(args: tuple[Any, ...]) -> Any:
    """`t.reshape(2, 3)` and `t.reshape((2, 3))` mean the same."""
    return args[0] if len(args) == 1 and not isinstance(args[0], int) else args


def _reshape(self: Tensor, *shape: Any, order: str = "C") -> Any:
    """See `gt.reshape`; sizes may be given one by one."""
    return registry.functions["reshape"](self, _sizes(shape), order=order)


def _transpose(self: Tensor, *axes: Any) -> Any:
    """See `gt.transpose`; axes may be given one by one."""
    order = None if not axes or axes == (None,) else _sizes(axes)
    return registry.functions["transpose"](self, order)


def _astype(self: Tensor, dtype: Any, *, copy: bool = True) -> Any:
    """See `gt.astype`."""
    return registry.functions["astype"](self, dtype, copy=copy)


def _ravel(self: Tensor) -> Any:
    """The elements along one axis."""
    return registry.functions["reshape"](self, -1)


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
        def again() -> Any:
            return functions[name](self)

        return Alias(self, again, again().fresh())

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


def install() -> None:
    """Give tensors their methods and properties."""
    for name in _SAME_NAME:
        setattr(Tensor, name, _method(name))
    methods: dict[str, Callable[..., Any]] = {
        "reshape": _reshape,
        "view": _reshape,
        "transpose": _transpose,
        "permute": _transpose,
        "astype": _astype,
        "ravel": _ravel,
        "conjugate": _method("conj"),
        "clone": _method("copy"),
        "expand_dims": _method("expand_dims"),
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
