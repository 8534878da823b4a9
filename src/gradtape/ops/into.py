"""`x.mul_into(y, out)` and the like: results written into a tensor that exists already.

Where nothing is recorded and nobody else holds the memory of `out`, the result is computed into
it, without an array in between. Elsewhere `out` gets the result as by `out[...] = x * y`, which
stays differentiable and leaves arrays that a record or another tensor holds unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.ownership import is_alone
from gradtape.core.state import STATE
from gradtape.core.tensor import Tensor
from gradtape.errors import DTypeError, ShapeError

# The methods, and NumPy's name of the function whose result they write if it is another.
_METHODS = (
    "abs add cos div=divide exp log matmul maximum minimum mul=multiply neg=negative pow=power sin "
    "sqrt square sub=subtract tanh"
)
INTO: dict[str, np.ufunc] = {
    f"{name}_into": getattr(np, ufunc or name)
    for name, _, ufunc in (method.partition("=") for method in _METHODS.split())
}


def method(name: str) -> Callable[..., Any]:
    """The method of that name."""
    ufunc = INTO[name]
    binary = ufunc.nin == 2

    def into(self: Tensor, *args: Any) -> Any:
        if len(args) != binary + 1:
            raise TypeError(f"{name}: got {len(args)} arguments, expected {_signature(name)}")
        *others, out = args
        if isinstance(out, np.ndarray):
            return ufunc(self, *others, out=out)
        if not isinstance(out, Tensor):
            raise TypeError(
                f"{name}: got {type(out).__name__} to write into, expected a tensor or an ndarray: "
                f"{_signature(name)}"
            )
        out.check_writable(name)
        if not _write(ufunc, [self, *others], out):
            _rebind(name, ufunc(self, *others), out)
        return out

    into.__name__ = name
    into.__doc__ = f"{_signature(name)}: write `np.{ufunc.__name__}` into `out`; returns it."
    return into


def _signature(name: str) -> str:
    return f"x.{name}({'y, ' if INTO[name].nin == 2 else ''}out)"


def _write(ufunc: np.ufunc, operands: list[Any], out: Tensor) -> bool:
    """Compute into the memory of a tensor, if nobody else holds it and nothing is recorded."""
    if type(out) is not Tensor or not STATE.get().plain:
        return False
    if type(out.value) is not np.ndarray or not is_alone(out):
        return False
    target = out.value
    if target.base is not None or not target.flags.writeable:
        return False
    arrays = []
    for operand in operands:
        if isinstance(operand, Tensor):
            if type(operand) is not Tensor or operand.record is not None:
                return False
            operand = operand.value
        if not isinstance(operand, np.ndarray | int | float | complex):
            return False
        arrays.append(operand)
    if out.record is not None or _result_shape(ufunc, arrays) != target.shape:
        return False
    if not np.can_cast(ufunc.resolve_dtypes(_dtypes(ufunc, arrays))[-1], target.dtype, "same_kind"):
        return False
    ufunc(*arrays, out=target, casting="same_kind")
    return True


def _result_shape(ufunc: np.ufunc, arrays: list[Any]) -> tuple[int, ...] | None:
    """The shape of the result; None if it is not simply that of broadcasting."""
    if ufunc is np.matmul:
        a, b = (np.shape(x) for x in arrays)
        return (a[0], b[1]) if len(a) == len(b) == 2 and a[1] == b[0] else None
    try:
        return np.broadcast_shapes(*map(np.shape, arrays))
    except ValueError:
        return None


def _dtypes(ufunc: np.ufunc, arrays: list[Any]) -> tuple[Any, ...]:
    kinds = (x.dtype if isinstance(x, np.ndarray) else type(x) for x in arrays)
    return (*kinds, *(None,) * ufunc.nout)


def _rebind(name: str, result: Any, out: Tensor) -> None:
    """Give a tensor a result, which has to fit it."""
    if result.shape != out.shape:
        raise ShapeError(
            f"{name}: got out of shape {out.shape}, expected {result.shape}, that of the result"
        )
    if not np.can_cast(result.dtype, out.dtype, "same_kind"):
        raise DTypeError(
            f"{name}: got out of dtype {out.dtype}, expected one that can hold {result.dtype}"
        )
    out[...] = result
