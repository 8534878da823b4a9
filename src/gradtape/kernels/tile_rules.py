"""Native kernels for the derivative rules of eager ops on large arrays.

The cotangents of operands that have the rows of the result are computed tile by tile, all in one
pass. An operand that all rows share, such as the weights of a layer, gets a sum over rows: first
over parts of them, then over the results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.kernels import Task
from gradtape.core.op import Op
from gradtape.core.promotion import NATIVE, is_half
from gradtape.graph.passes.hopeful import UnsettledError
from gradtape.kernels.tile_kernels import (
    Bounded,
    TileCall,
    TileKernels,
    constant_of,
    signature,
)
from gradtape.kernels.tiling import WITH_ROWS, TileOperands, Tiling, rows_of_part, tiling_of
from gradtape.ops.shape import reshape


class _Pull(NamedTuple):
    """How to compute the cotangents of the inputs of an op.

    Attributes:
        by_rows: Computes those of inputs with the rows of the result.
        sums: Computes, for the other inputs, a sum over each part of the rows.
        rest: Computes the sums over rows that are in no part; None if there are none.
        left: Inputs whose rules are left to NumPy.
    """

    by_rows: TileCall | None
    sums: TileCall | None
    rest: Callable[[Sequence[Any]], Sequence[Any]] | None
    left: tuple[int, ...]


class _Rules(NamedTuple):
    """The rules of an op, applied to tiles, or rows, of the values they read.

    Attributes:
        op: The op.
        rules: One per input.
        constant: A number compiled into the code in place of the last input; None for none.
        tiling: How arrays are cut.
        unread: For cotangent, result and each input: an `Aval` if only the shape is known, None if
            it is missing, `...` if it is read.
        settling: Whether to settle 0·∞, or report that it would have to be.
    """

    op: Op
    rules: Sequence[Callable[..., Any]]
    constant: float | None
    tiling: Tiling
    unread: tuple[Any, ...]
    settling: bool

    def __call__(self, wanted: Sequence[bool], tiles: Sequence[Any], rows: int) -> tuple[Any, ...]:
        """The results of the wanted rules for a number of rows of the values they read."""
        given = iter(tiles)
        ct, out, *xs = [next(given) if x is ... else self._shape(x, rows) for x in self.unread]
        if self.constant is not None:
            xs[-1] = self.constant
        return tuple(
            rule(ct, out, *xs, **self.tiling.params) if want else None
            for rule, want in zip(self.rules, wanted, strict=True)
        )

    def _shape(self, x: Aval | None, rows: int) -> Aval | None:
        """The shape of some rows of a value of which only the shape is read."""
        if x is None:
            return None
        if (tail := self.tiling.tail(x.shape)) is not None:
            return Aval((rows, *tail), x.dtype)
        return Aval((1, *(self.tiling.shared(x.shape) or ())), x.dtype)

    @property
    def key(self) -> tuple[Any, ...]:
        """The part of a kernel's key that is not about the values it reads."""
        unread = [x if x is ... else self._shape(x, 0) for x in self.unread]
        return (*unread, self.constant, *self.tiling.params.items())


class TiledRules:
    """The kernels of all rules."""

    def __init__(self, kernels: TileKernels) -> None:
        self._kernels = kernels
        self._pulls = Bounded()

    def run(self, task: Task) -> Any:
        """The cotangents of the wanted inputs, None for others; or `NotImplemented`.

        They are those of the careful rules. Kernels do not settle 0·∞ until it matters for the
        first time for arrays of these shapes, like compiled functions.
        """
        op, values, params, wanted = task
        if any(is_half(x.dtype) for x in values if hasattr(x, "dtype")):
            return NotImplemented  # sums of parts would be rounded
        constant = constant_of(op, values)
        key = (op, wanted, constant, *map(signature, values), *params.items())
        pull = self._pulls.find(key, self._pull, task, constant)
        if pull is None:
            return NotImplemented
        try:
            return _pulled(pull, task)
        except UnsettledError:
            pull = self._pulls[key] = self._pull(task, constant, settling=True)
        return NotImplemented if pull is None else _pulled(pull, task)

    def _pull(self, task: Task, constant: float | None, *, settling: bool = False) -> _Pull | None:
        """How to apply the rules of an op; None to leave them to NumPy."""
        op, values, params, wanted = task
        assert wanted is not None
        ct, _out, *inputs = values
        tiling = tiling_of(op, inputs, params, ct.shape)
        if tiling is None:
            return None
        lined_up = [*values[:2], *map(tiling.lined_up, inputs)]
        found = TileOperands.of(lined_up, tiling, ct.dtype)
        if found is None or not all(_has_rows(x, tiling) for x in lined_up):
            return None
        # Flat rules are for arrays of one shape and dtype.
        alike = tiling.whole and all(getattr(x, "dtype", ct.dtype) == ct.dtype for x in inputs)
        unread = tuple(x if x is None or isinstance(x, Aval) else ... for x in lined_up)
        flat = op.careful_flat or op.flat_vjps
        rules = _Rules(op, flat if alike else op.careful, constant, tiling, unread, settling)
        by_rows = tuple(
            want and (x is None or tiling.tail(getattr(x, "shape", ())) is not None)
            for want, x in zip(wanted, lined_up[2:], strict=True)
        )
        summed = tuple(want and not own for want, own in zip(wanted, by_rows, strict=True))
        launch = self._by_rows(rules, found, by_rows, inputs) if any(by_rows) else None
        summing = rules._replace(rules=op.careful)
        sums = self._sums(summing, found, summed) if any(summed) else None
        if launch is None and sums is None:
            return None
        left = [i for i, want in enumerate(by_rows) if want and launch is None]
        left += [i for i, want in enumerate(summed) if want and sums is None]
        rest = None if sums is None else _rest(summing, found, summed)
        return _Pull(launch, sums, rest, tuple(left))

    def _by_rows(
        self, rules: _Rules, found: TileOperands, wanted: tuple[bool, ...], inputs: Sequence[Any]
    ) -> TileCall | None:
        """The cotangents of inputs that have the rows of the result."""
        tiling, settling = rules.tiling, rules.settling

        def function(*tiles: Any) -> Any:
            return rules(wanted, tiles, tiling.rows)

        shapes = [getattr(x, "shape", None) for x in inputs]
        key = (wanted, *rules.key)
        return self._kernels.call(rules.op, key, function, found, tiling, shapes, settling=settling)

    def _sums(
        self, rules: _Rules, found: TileOperands, wanted: tuple[bool, ...]
    ) -> TileCall | None:
        """The cotangents of inputs that all rows share, per part of the rows."""
        rows = _rows_of_part(rules.tiling, found)
        if not rows:
            return None
        tiling = Tiling.by_parts(rules.tiling.length // rows, rules.tiling.params)
        cut = found.by_parts(rows)

        def function(*tiles: Any) -> Any:
            flat = [
                reshape(tile, tail) if kind in WITH_ROWS else tile
                for tile, (_, tail, kind) in zip(tiles, cut.kinds, strict=True)
            ]
            # Flattened, so that one kernel serves operands of different shapes with equal rows.
            return tuple(
                None if result is None else reshape(result, (1, math.prod(result.shape)))
                for result in rules(wanted, flat, rows)
            )

        key = ("sums", wanted, *rules.key)
        shapes, settling = [None] * len(wanted), rules.settling
        return self._kernels.call(rules.op, key, function, cut, tiling, shapes, settling=settling)


def _pulled(pull: _Pull, task: Task) -> list[Any]:
    """The cotangents of all inputs.

    Raises:
        UnsettledError: Something has to be settled, by other kernels.
    """
    op, values, params, _ = task
    ct, out, *inputs = values
    results: list[Any] = [None] * len(inputs)
    if pull.by_rows is not None:
        results = pull.by_rows(values)
    if pull.sums is not None:
        for i, parts in enumerate(pull.sums(values)):
            if parts is not None:
                results[i] = parts.sum(axis=0).reshape(inputs[i].shape)
        if pull.rest is not None:
            for i, more in enumerate(pull.rest(values)):
                if more is not None:
                    results[i] = results[i] + more.reshape(inputs[i].shape)
    for i in pull.left:
        results[i] = op.careful[i](ct, out, *inputs, **params)
    return results


def _rows_of_part(tiling: Tiling, found: TileOperands) -> int:
    """The number of rows to add up at a time; 0 if that is not worth it."""
    sizes = [math.prod(tail) for _, tail, kind in found.kinds if kind in WITH_ROWS]
    return rows_of_part(tiling.length, max(sizes, default=1))


def _rest(
    rules: _Rules, found: TileOperands, wanted: tuple[bool, ...]
) -> Callable[[Sequence[Any]], Sequence[Any]] | None:
    """A function that applies the rules to the rows that are in no part."""
    length = rules.tiling.length
    rows = length % _rows_of_part(rules.tiling, found)
    if not rows:
        return None

    def rest(values: Sequence[Any]) -> Sequence[Any]:
        read = []
        for place, (_, tail, kind) in zip(found.places, found.kinds, strict=True):
            x = values[place]
            if kind == "spread":
                x = np.broadcast_to(x[(0,) * x.ndim], (rows, *tail))
            elif kind == "rows":
                x = x.reshape(length, *tail)[-rows:]
            elif kind == "shared":
                x = x.reshape(1, *tail)
            read.append(x)
        return rules(wanted, read, rows)

    return rest


def _has_rows(x: Any, tiling: Tiling) -> bool:
    """Whether a value of which only the shape is read can be cut; true of all others."""
    if not isinstance(x, Aval):
        return True
    cut = tiling.tail(x.shape) is not None or tiling.shared(x.shape) is not None
    return cut and x.dtype in NATIVE
