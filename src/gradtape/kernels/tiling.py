"""How the arrays of a call are cut into tiles, for kernels that take a tile at a time."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.compiler.cpu.runtime.tile_loop import MOST_ARRAYS
from gradtape.core.aval import Aval
from gradtape.core.kernels import works_along_axis
from gradtape.core.op import Op
from gradtape.core.promotion import NATIVE, is_half
from gradtape.ops.shape import broadcast_to

# Elements of a tile: enough to be worth a call, few enough to stay in the first-level cache.
TILE = 1024
# Longer rows are left to NumPy, and so are broadcast rows shorter than the other limit.
_LONGEST_ROW = 1 << 16
_SHORTEST_ROW = 16
# Sums over rows are taken over parts of the rows first.
_LEAST_PARTS = 32
_LEAST_ROWS = 4
_LARGEST_PART = 1 << 15


def rows_of_part(length: int, size: int) -> int:
    """The number of rows to add up at a time, given their number and size; 0 if not worth it.

    A power of two, so that arrays of different lengths share a kernel; and such that there are at
    least some dozens of parts for threads to share.
    """
    most = min(length // _LEAST_PARTS, _LARGEST_PART // max(size, 1))
    return 1 << (most.bit_length() - 1) if most >= _LEAST_ROWS else 0


class Tiling(NamedTuple):
    """How arrays are cut.

    Attributes:
        batch: The leading axes of the arrays, along which they are cut.
        rows: The number of steps along these axes, taken together, in a tile.
        params: The parameters of the op for a tile.
        whole: Whether arrays have no other axes.
    """

    batch: tuple[int, ...]
    rows: int
    params: dict[str, Any]
    whole: bool

    @classmethod
    def of(cls, op: Op, shape: tuple[int, ...], params: dict[str, Any]) -> Tiling | None:
        """How to cut the arrays of an op on an array of this shape; None to leave it whole."""
        if not works_along_axis(op) or len(shape) < 2 or not 0 < shape[-1] <= _LONGEST_ROW:
            return None
        axis = params["axis"]
        if axis not in (len(shape) - 1, (len(shape) - 1,)):
            return None
        rows = max(1, min(TILE // shape[-1], math.prod(shape[:-1])))
        along = (1,) if isinstance(axis, tuple) else 1
        return cls(shape[:-1], rows, params | {"axis": along}, False)

    @classmethod
    def by_parts(cls, parts: int, params: dict[str, Any]) -> Tiling:
        """How to cut an array whose first axis numbers parts, one per tile."""
        return cls((parts,), 1, params, False)

    @classmethod
    def elementwise(
        cls, shapes: Sequence[tuple[int, ...]], params: dict[str, Any]
    ) -> Tiling | None:
        """How to cut arrays that are broadcast against each other; None to leave them whole."""
        try:
            out = np.broadcast_shapes(*shapes)
        except ValueError:
            return None  # NumPy says what is wrong
        if math.prod(out) < TILE:
            return None
        if all(shape in ((), out) for shape in shapes):
            return cls(out, TILE, params, True)
        if len(out) < 2 or not _SHORTEST_ROW <= out[-1] <= _LONGEST_ROW:
            return None
        return cls(out[:-1], max(1, TILE // out[-1]), params, False)

    def lined_up(self, x: Any) -> Any:
        """An operand of an elementwise op with as many axes as the result."""
        missing = len(self.batch) + 1 - len(getattr(x, "shape", ()))
        if self.whole or not missing or not hasattr(x, "shape") or not x.shape:
            return x
        shape = (1,) * missing + x.shape
        return Aval(shape, x.dtype) if isinstance(x, Aval) else x.reshape(shape)

    @property
    def length(self) -> int:
        """The number of rows."""
        return math.prod(self.batch)

    def tail(self, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        """The axes of an array that every row has; None if the array does not have these rows."""
        n = len(self.batch)
        if shape[:n] != self.batch or (self.whole and len(shape) > n):
            return None
        return shape[n:]

    def shared(self, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        """The axes of an array that is the same for all rows, such as the weights of a layer."""
        n = len(self.batch)
        return shape[n:] if len(shape) >= n and set(shape[:n]) <= {1} else None


def tiling_of(
    op: Op, operands: Sequence[Any], params: dict[str, Any], *results: tuple[int, ...]
) -> Tiling | None:
    """How to cut the operands of an op, and results of these shapes; None to leave them whole."""
    shapes = [getattr(x, "shape", ()) for x in operands]
    if op.kind == "elementwise":
        return Tiling.elementwise([*results, *shapes], params)
    # Rows match if the operands of an op along an axis have equally many axes.
    in_line = all(len(shape) == len(shapes[0]) for shape in shapes)
    return Tiling.of(op, shapes[0], params) if in_line else None


# The kinds of operands that have a row for each row of the result.
WITH_ROWS = ("rows", "spread")


class TileOperands(NamedTuple):
    """Arrays with the same leading axes, arrays that all rows share, and numbers.

    Attributes:
        places: Their positions among the operands.
        takes: Functions that make an array of each; None for one that is used as it is.
        kinds: For each the dtype, the axes of a row, and how it is cut: into "rows", "shared" by
            all rows, one number "spread" over all rows, or a "number".
    """

    places: list[int]
    takes: list[Callable[[Any], Any] | None]
    kinds: tuple[tuple[np.dtype[Any], tuple[int, ...], str], ...]

    @classmethod
    def of(cls, operands: Sequence[Any], tiling: Tiling, dtype: Any) -> TileOperands | None:
        """The operands of a call; None if kernels do not take them.

        Args:
            operands: Raw values; missing ones are None or an `Aval`.
            tiling: How arrays are cut.
            dtype: That of the result, which Python numbers take if it is floating; otherwise they
                take that of the arrays they are compared with.
        """
        arrays = [x for x in operands if type(x) is np.ndarray and x.dtype.kind == "f"]
        floating = np.result_type(*arrays) if arrays else None
        if dtype.kind == "f":
            floating = dtype
        places: list[int] = []
        takes: list[Any] = []
        kinds: list[Any] = []
        for place, operand in enumerate(operands):
            if operand is None or isinstance(operand, Aval):
                continue
            tail: tuple[int, ...] | None = ()
            kind, array = "number", operand
            take: Callable[[Any], Any] | None = None
            if type(operand) in (int, float) and floating is not None:
                take = functools.partial(np.asarray, dtype=floating)
            elif isinstance(operand, np.generic):
                take = np.asarray
            elif type(operand) is not np.ndarray:
                return None
            elif operand.ndim:
                kind, tail = "rows", tiling.tail(operand.shape)
                if tail is None:
                    kind, tail = "shared", tiling.shared(operand.shape)
                if tail is None:
                    return None
                if kind == "shared":
                    take = None if operand.flags.c_contiguous else np.ascontiguousarray
                elif operand.size > 1 and not any(operand.strides):
                    # Like the gradient of a sum: one number everywhere.
                    kind, array = "spread", operand[(slice(1),) * operand.ndim]
            if take is not None:
                array = take(operand)
            flags = array.flags
            known = array.dtype in NATIVE or is_half(array.dtype)
            if not (flags.c_contiguous and flags.aligned and known):
                return None
            places.append(place)
            takes.append(take)
            kinds.append((array.dtype, tail, kind))
        return None if len(places) > MOST_ARRAYS - 2 else cls(places, takes, tuple(kinds))

    def avals(self, tiling: Tiling) -> list[Aval]:
        """The shape and dtype of a tile of each operand."""
        lead = {"rows": (tiling.rows,), "shared": (1,)}
        return [
            Aval((*lead[kind], *tail) if kind in lead else (), dtype)
            for dtype, tail, kind in self.kinds
        ]

    def spread(self, tiles: Sequence[Any], tiling: Tiling) -> list[Any]:
        """The tiles, with numbers that stand for all elements broadcast to their shape."""
        return [
            broadcast_to(tile, (tiling.rows, *tail)) if kind == "spread" else tile
            for tile, (_, tail, kind) in zip(tiles, self.kinds, strict=True)
        ]

    def row_bytes(self, i: int) -> int:
        """The bytes of a row; 0 for an operand that every tile reads as a whole."""
        dtype, tail, kind = self.kinds[i]
        return math.prod(tail) * dtype.itemsize if kind == "rows" else 0

    def by_parts(self, rows: int) -> TileOperands:
        """The same operands with this many rows taken as one."""
        return self._replace(
            kinds=tuple(
                (dtype, (rows, *tail) if kind in WITH_ROWS else tail, kind)
                for dtype, tail, kind in self.kinds
            )
        )
