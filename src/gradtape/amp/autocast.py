"""`gt.autocast`: a mode that casts the operands of ops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gradtape.amp.precision import (
    FLOAT16,
    FLOAT32,
    Lists,
    PrecisionMode,
    is_narrow_op,
    lists,
    precision_mode,
)
from gradtape.core.aval import Abstract, is_extended_float
from gradtape.core.op import Op
from gradtape.core.state import Proceed, Scope, State, checked_flag, in_force
from gradtape.core.tensor import Tensor, innermost
from gradtape.ops.cast import astype


class Casting:
    """The mode: casts float32 operands to 16 bits, or those of 16 bits to float32, by the op.

    Rules of derivatives are left alone: cotangents have the dtypes of what they belong to.

    Args:
        dtype: The dtype of 16 bits; None to cast nothing, and keep modes further out from doing so.
        chosen: Ops whose precision was decided.
    """

    kind, family, rules = "rewriting", "autocast", False

    def __init__(self, dtype: np.dtype[Any] | None, chosen: Lists) -> None:
        self.dtype = dtype
        self._chosen = chosen
        self.key = ("autocast", None if dtype is None else (dtype.name, *chosen))
        # By identity, as users' functions may have the names of ops.
        self._dtypes: dict[Op, np.dtype[Any] | None] = {}

    def passes(self, op: Op, args: Sequence[Any]) -> bool:
        """Whether a call is left as it is."""
        return self._casts(op, args) is None

    def run(self, op: Op, args: tuple[Any, ...], params: dict[str, Any], proceed: Proceed) -> Any:
        """Cast the operands, and go on."""
        dtype = self._casts(op, args)
        if dtype is not None:
            args = tuple([astype(arg, dtype) if _differs(arg, dtype) else arg for arg in args])
        return proceed(op, args, params)

    def _casts(self, op: Op, args: Sequence[Any]) -> np.dtype[Any] | None:
        """The dtype that operands are cast to; None if all are as they should be.

        If one of them is of a wider type, none are cast.
        """
        try:
            dtype = self._dtypes[op]
        except KeyError:
            dtype = self._dtype_of_op(op)
        if dtype is None or any(map(_is_wide, args)):
            return None
        return dtype if any(_differs(arg, dtype) for arg in args) else None

    def _dtype_of_op(self, op: Op) -> np.dtype[Any] | None:
        narrow = None if self.dtype is None else is_narrow_op(op, self._chosen)
        found = None if narrow is None else self.dtype if narrow else FLOAT32
        if op.kind not in ("custom", "host", "graph", "control"):  # those are made for each call
            self._dtypes[op] = found
        return found


def _dtype_of(value: Any) -> np.dtype[Any] | None:
    """The dtype of an array; None for numbers, which adapt to any, also those of a trace."""
    if isinstance(value, Tensor):
        inner = innermost(value, show=True)
        return None if isinstance(inner, Abstract) and inner.weak else inner.dtype
    return value.dtype if isinstance(value, np.ndarray | np.generic) else None


def _is_wide(value: Any) -> bool:
    """Whether a value is of float64, or complex."""
    dtype = _dtype_of(value)
    return dtype is not None and dtype.kind in "fc" and dtype.itemsize > 4


def _differs(value: Any, dtype: np.dtype[Any]) -> bool:
    """Whether a value is of float32 or 16 bits, and not of a dtype."""
    own = _dtype_of(value)
    if own is None or own == dtype:
        return False
    return own in (FLOAT32, FLOAT16) or (is_extended_float(own) and own.itemsize == 2)


class autocast(Scope):  # noqa: N801 - used like a function, as in PyTorch
    """Compute matrix products in 16 bits in a block, and what needs it in float32.

    Operands of `matmul`, `conv2d`, `linear`, `attention` and other products are cast to 16 bits,
    those of sums, exponentials, softmax, norms and losses to float32; all other ops compute in what
    they are given, and results of mixed operands are float32. float64 is left alone. Parameters
    stay float32, and so do their gradients. It holds for tensors and in what is traced; ops on
    arrays alone may be computed by NumPy as they are.

    Args:
        dtype: `gt.bfloat16` or `gt.float16`, or a `gt.PrecisionMode`. float16 needs a
            `gt.LossScaler`.
        allow: Names of ops that are computed in 16 bits besides.
        deny: Names of ops that are computed in float32 besides.
        enabled: If False, nothing is cast in the block, whatever blocks and tapes are around it.

    Raises:
        ArgumentError: The dtype is another one, or there is no op of a name.

    >>> w = gt.ones((3, 2), dtype=gt.float32, requires_grad=True)
    >>> with gt.autocast():
    ...     y = gt.tanh(np.ones((1, 3), np.float32) @ w)
    ...     loss = gt.sum(y)
    >>> y.dtype, loss.dtype
    (dtype(bfloat16), dtype('float32'))
    >>> loss.backward()
    >>> w.grad.dtype
    dtype('float32')
    """

    def __init__(
        self,
        dtype: Any = PrecisionMode.BFloat16,
        *,
        allow: Iterable[str] = (),
        deny: Iterable[str] = (),
        enabled: bool = True,
    ) -> None:
        mode = precision_mode(dtype, "autocast")
        chosen = lists(allow, deny, "autocast", ("allow", "deny"))
        off = not checked_flag("autocast", "enabled", enabled) or mode is PrecisionMode.Float32
        self.mode = Casting(None if off else mode.dtype, chosen)

    def change(self, state: State, before: State | None = None) -> State:
        return state.derive(modes=in_force((self.mode, *state.modes)))
