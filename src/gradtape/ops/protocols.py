"""NumPy's protocols: `np.exp(t)`, `np.sum(t)`, `ndarray + t` reach gradtape's functions.

Functions that gradtape lacks raise an error that names them; nothing is computed on a tensor behind
its tape's back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape import advice
from gradtape.core.adopted_calls import call_adopted
from gradtape.core.lazy import Deferred
from gradtape.core.state import STATE
from gradtape.core.tensor import Tensor, concrete
from gradtape.errors import ConversionError, UnknownSizeError, UnsupportedError
from gradtape.ops.adapt import Adapter, qualified_name

# Ufunc -> the function that answers for it; filled at the first call.
_answers: dict[np.ufunc, Callable[..., Any]] = {}
# NumPy function -> the adapter that passes its calls on; filled at the first call.
_adapters: dict[Any, Adapter] = {}
# Of einsum: the order of the products, which is searched for by default.
_WITHOUT_EFFECT = frozenset({"optimize"})

_INSTEAD = (
    "write it with other functions, or give it a rule with gt.custom_vjp; to compute without "
    "gradient use t.detach().numpy()"
)

_answer = Deferred("gradtape.ops.answers:answer")
_ufunc_call = Deferred("gradtape.ops.arrays.ufunc_options:ufunc_call")
_ufunc_into = Deferred("gradtape.ops.arrays.ufunc_options:ufunc_into")
_ufunc_method = Deferred("gradtape.ops.arrays.ufunc_methods:ufunc_method")

# ---- ufuncs -------------------------------------------------------------------------------------


def _array_ufunc(self: Tensor, ufunc: np.ufunc, method: str, /, *inputs: Any, **kwargs: Any) -> Any:
    """Answer a NumPy ufunc called on a tensor."""
    try:
        if method == "__call__" and not kwargs:
            function = _answers.get(ufunc) or _answer_for(ufunc)
            if function is not None:
                return function(*inputs)
        return _ufunc_otherwise(ufunc, method, inputs, kwargs)
    except UnknownSizeError as error:
        called = ufunc if method == "__call__" else getattr(ufunc, method)
        return error.deferred(called, inputs, kwargs)


def _answer_for(ufunc: np.ufunc) -> Callable[..., Any] | None:
    function: Callable[..., Any] | None = _answer(ufunc)
    if function is not None:
        _answers[ufunc] = function
    return function


# Options of ufuncs that have no effect on values.
_LAYOUT = ("order", "subok")


def _ufunc_otherwise(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: Any) -> Any:
    """A ufunc with options, or a method of it."""
    name = qualified_name(ufunc) + ("" if method == "__call__" else f".{method}")
    options = {
        key: value
        for key, value in kwargs.items()
        if key not in _LAYOUT and value is not np._NoValue
    }
    out = options.pop("out", None)
    if out is not None and not any(isinstance(target, Tensor) for target in out):
        return _into_arrays(ufunc, method, name, out, inputs, options)
    function = _answers.get(ufunc) or _answer_for(ufunc)
    if function is None:
        raise UnsupportedError(f"{name} is not differentiable by gradtape yet; {_INSTEAD}")
    if method == "__call__":
        return _ufunc_call(ufunc, function, name, inputs, out, options)
    results = _ufunc_method(ufunc, function, method, inputs, options)
    return results if out is None else _ufunc_into(name, out, results)


_SYMBOLS: dict[Any, str] = {
    np.add: "+",
    np.subtract: "-",
    np.multiply: "*",
    np.true_divide: "/",
    np.floor_divide: "//",
    np.remainder: "%",
    np.power: "**",
    np.matmul: "@",
}


def _into_arrays(
    ufunc: Any, method: str, name: str, out: Any, inputs: tuple[Any, ...], options: Any
) -> Any:
    """A ufunc with ndarrays as `out=`: write results to them, which must have no history."""
    try:
        arrays = [concrete(x, name) if isinstance(x, Tensor) else x for x in inputs]
        options = {
            key: concrete(value, name) if isinstance(value, Tensor) else value
            for key, value in options.items()
        }
    except ConversionError:
        symbol, instead = _SYMBOLS.get(ufunc), "drop out= and use the result"
        if symbol and len(inputs) == 2 and inputs[0] is out[0]:
            instead = f"write w = w {symbol} t instead of w {symbol}= t"
        raise UnsupportedError(
            f"{name}: an ndarray cannot hold the history of a tensor; {instead}"
        ) from None
    return getattr(ufunc, method)(*arrays, out=out if len(out) > 1 else out[0], **options)


# ---- functions ----------------------------------------------------------------------------------


def _array_function(
    self: Tensor, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
) -> Any:
    """Answer a NumPy function called on a tensor."""
    return answer_function(function, args, kwargs)


def answer_of(function: Any) -> Callable[..., Any] | None:
    """The function of ours that answers for a function or ufunc of NumPy; None if there is none."""
    if isinstance(function, np.ufunc):
        return _answers.get(function) or _answer_for(function)
    adapter = _adapters.get(function)
    if adapter is None:
        replacement = _answer(function)
        if replacement is None:
            return None
        adapter = Adapter(function, replacement, without_effect=_WITHOUT_EFFECT)
        _adapters[function] = adapter
    return adapter.function


def answer_function(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call the function of ours that answers for one of NumPy.

    Raises:
        UnsupportedError: There is none.
    """
    if answer_of(function) is None:
        raise UnsupportedError(
            f"{qualified_name(function)} has no counterpart in gradtape yet; {_INSTEAD}"
        )
    adapter = _adapters[function]
    try:
        if STATE.get().modes:
            return call_adopted(lambda *args, **kwargs: adapter(args, kwargs), args, kwargs)
        if not kwargs and len(args) <= adapter.positions:
            return adapter.function(*args)
        return adapter(args, kwargs)
    except UnknownSizeError as error:
        return error.deferred(function, args, kwargs)
    except Exception as error:
        advice.raise_explained(adapter.function, args, kwargs, error)


Tensor.__array_ufunc__ = _array_ufunc  # type: ignore[attr-defined]
Tensor.__array_function__ = _array_function  # type: ignore[attr-defined]
