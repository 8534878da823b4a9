"""The methods tensors have in common with arrays, each the function of the same name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
    "clip",
    "round",
    "squeeze",
    "unsqueeze",
    "flatten",
    "swapaxes",
    "take",
    "dot",
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


def _real(self: Tensor) -> Any:
    """The real part."""
    return registry.functions["real"](self)


def _imag(self: Tensor) -> Any:
    """The imaginary part."""
    return registry.functions["imag"](self)


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
    }
    for name, method in methods.items():
        setattr(Tensor, name, method)
    for name, getter in {"T": _t, "mT": _mt, "real": _real, "imag": _imag}.items():
        setattr(Tensor, name, property(getter))
