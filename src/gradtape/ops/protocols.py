"""NumPy's protocols: `np.exp(t)`, `np.sum(t)`, `ndarray + t` reach gradtape's functions.

What NumPy offers and gradtape has not raises an error that names it; nothing is computed on a
tensor behind its tape's back.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.op import registry
from gradtape.core.tensor import Tensor
from gradtape.errors import UnsupportedError

_replacements = registry.replacements


def _array_ufunc(self: Tensor, ufunc: np.ufunc, method: str, /, *inputs: Any, **kwargs: Any) -> Any:
    """Answer a NumPy ufunc called on a tensor."""
    if method == "__call__" and not kwargs:
        function = _replacements.get(ufunc) or _scipy_replacement(ufunc)
        if function is not None:
            return function(*inputs)
    return _ufunc_otherwise(ufunc, method, inputs, kwargs)


def _scipy_replacement(ufunc: np.ufunc) -> Callable[..., Any] | None:
    """What answers for a ufunc of SciPy, which ops name in words as they do not import it."""
    name = ufunc.__name__
    if getattr(sys.modules.get("scipy.special"), name, None) is not ufunc:
        return None
    function = _replacements.get(f"scipy.special.{name}")
    if function is not None:
        _replacements[ufunc] = function
    return function


def _ufunc_otherwise(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: Any) -> Any:
    module = "np" if getattr(np, ufunc.__name__, None) is ufunc else "ufunc"
    name = f"{module}.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
    out = kwargs.pop("out", None)
    if out is not None:
        return _augmented(ufunc, name, out, inputs, kwargs)
    reduction = _REDUCTIONS.get((ufunc, method))
    if reduction is not None:
        kwargs.setdefault("axis", 0)
        return registry.functions[reduction](*inputs, **kwargs)
    if kwargs:
        raise UnsupportedError(
            f"{name}: came {', '.join(kwargs)}=; gradtape takes none of these on a tensor; "
            "use gt.where for where=, astype for dtype="
        )
    raise UnsupportedError(
        f"{name} is not differentiable by gradtape yet; write it with other functions, or "
        "give it a rule with gt.custom_vjp"
    )


_REDUCTIONS: dict[tuple[Any, str], str] = {
    (np.add, "reduce"): "sum",
    (np.multiply, "reduce"): "prod",
    (np.maximum, "reduce"): "max",
    (np.minimum, "reduce"): "min",
    (np.add, "accumulate"): "cumsum",
}


def _augmented(ufunc: Any, name: str, out: Any, inputs: tuple[Any, ...], kwargs: Any) -> Any:
    (target,) = out
    function = _replacements.get(ufunc) or _scipy_replacement(ufunc)
    if isinstance(target, Tensor) and function is not None and not kwargs:
        target[...] = function(*inputs)
        return target
    raise UnsupportedError(
        f"{name}: came out= with an ndarray, which cannot hold the history of a tensor; "
        "drop out= and use the result"
    )


def _array_function(
    self: Tensor, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
) -> Any:
    """Answer a NumPy function called on a tensor."""
    replacement = _replacements.get(function)
    if replacement is None:
        raise UnsupportedError(
            f"np.{function.__name__} has no counterpart in gradtape yet; write it with other "
            "functions, or give it a rule with gt.custom_vjp"
        )
    return replacement(*args, **kwargs)


def install() -> None:
    """Give tensors the protocols."""
    Tensor.__array_ufunc__ = _array_ufunc  # type: ignore[attr-defined]
    Tensor.__array_function__ = _array_function  # type: ignore[attr-defined]
