"""Steps of optimizers by native code: one kernel for all parameters.

The rule is compiled for a tile of elements. It reads an element of the parameter, of its gradient
and of what is remembered before it writes their new values, so these may take the place of the old
ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.compiler.cpu.runtime import blocks
from gradtape.compiler.cpu.runtime.blocks import pooled as pooled
from gradtape.compiler.cpu.runtime.row_loop import (
    AT_ONCE,
    MOST_COLUMNS,
    TILE,
    RowLoop,
    Rows,
)
from gradtape.compiler.program import Program
from gradtape.core.aval import Aval
from gradtape.core.lowering import Pointwise
from gradtape.graph.ir import Graph
from gradtape.kernels.tile_kernels import Bounded, TileKernel, trace_present
from gradtape.locks import once
from gradtape.ops.reduce import sum as sum_of

_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
# Value, gradient and slots of a parameter, and where the new value and slots go.
_Row = tuple[list[Any], list[Any]]
# The dtypes that are stored and computed, for those that are not computed as they are stored.
_OTHERS = {np.dtype(np.complex64): (_F32, _F32), np.dtype(np.complex128): (_F64, _F64)}


class _Kernel(NamedTuple):
    """A compiled rule.

    Attributes:
        codes: The machine code, which the loop refers to.
        loop: Runs it; None if nothing is computed.
        reads: Which arguments it reads: value, gradient, slots, and numbers.
        results: For each result None, or the argument it is.
    """

    codes: tuple[Any, ...]
    loop: RowLoop | None
    reads: tuple[int, ...]
    results: tuple[int | None, ...]


# From so many elements on, a larger tile is worth compiling.
_LARGE = 1 << 16

_kernels = Bounded()


def prepared(
    rule: Any, items: Sequence[Any], results: Sequence[tuple[Any, Sequence[Any]]]
) -> list[PreparedStep] | None:
    """The calls that make a step, one for each dtype; None if there is no native form of it.

    Args:
        rule: The rule, with its `update`, `factors` and `maximize`.
        items: Value, gradient and slots of each parameter.
        results: Where the new value and the new slots go: contiguous arrays of the same shapes,
            which may be the old ones.
    """
    if not all(x is None or isinstance(x, float | int) for x in rule.factors):
        return None
    groups: dict[Any, list[_Row]] = {}
    for (value, gradient, slots), (new, after) in zip(items, results, strict=True):
        dtypes = _dtypes(value.dtype)
        kept = value.dtype if dtypes[0] == dtypes[1] else dtypes[1]
        if not all(type(x) is np.ndarray for x in (value, gradient, new, *slots)):
            return None
        if any(x.dtype != kept or x.shape != value.shape for x in slots):
            return None
        given = [_flat(x, value.dtype, dtypes[0]) for x in (value, gradient)]
        given += [_flat(x, kept, dtypes[1]) for x in slots]
        assert all(x.flags.carray for x in (new, *after))  # what is written to a copy would be lost
        into = [_flat(new, value.dtype, dtypes[0]), *[_flat(x, kept, dtypes[1]) for x in after]]
        groups.setdefault((dtypes, len(slots)), []).append((given, into))
    calls = []
    for (dtypes, count), rows in groups.items():
        pattern = tuple([factor is None for factor in rule.factors])
        is_large = max([row[0][0].size for row in rows]) >= _LARGE
        key = (rule.update, rule.maximize, pattern, dtypes, count, is_large)
        kernel = _kernels.find(key, _kernel, rule, pattern, dtypes, count, is_large)
        if kernel is None:
            return None
        calls.append(PreparedStep(kernel, dtypes, rows, rule.factors))
    return calls


def _dtypes(dtype: Any) -> tuple[Any, Any]:
    """The real dtypes in which the elements of arrays are stored and computed."""
    narrow = (dtype, _F32) if dtype.itemsize <= 2 else (dtype, dtype)
    return _OTHERS.get(dtype, narrow)


def empty_like(array: Any) -> Any:
    """An array of the same shape and dtype, in kept memory if it is large."""
    return blocks.maker(array.shape, array.dtype)()


class PreparedStep:
    """A step of parameters of one dtype: everything but the data, so that it can be repeated."""

    __slots__ = ("_dtypes", "_kernel", "_numbers", "_rows", "_table", "_views")

    def __init__(
        self,
        kernel: _Kernel,
        dtypes: tuple[Any, Any],
        rows: list[_Row],
        factors: Sequence[float | None],
    ) -> None:
        self._kernel = kernel
        self._dtypes = dtypes
        self._numbers = np.array([x for x in factors if x is not None], dtypes[1])
        self._views = [self._numbers[i : i + 1] for i in range(self._numbers.size)]
        table = []
        for given, into in rows:
            arguments = [*given, *self._views]
            made = [x for x, as_is in zip(into, kernel.results, strict=True) if as_is is None]
            table.append([*[arguments[place] for place in kernel.reads], *made])
        self._table = Rows(table)
        self._rows: list[_Row] | None = rows

    def run(self) -> None:
        """Make the step."""
        if self._kernel.loop is not None:
            self._kernel.loop(self._table)
        for given, into in self._rows or ():
            for target, place in zip(into, self._kernel.results, strict=True):
                if place is not None and target is not given[place]:
                    target[...] = given[place]

    def let_go(self) -> bool:
        """Forget all arrays but the slots, which the caller keeps; whether it can be repeated."""
        self._rows, kernel = None, self._kernel
        is_plain = kernel.reads[:2] == (0, 1) and set(kernel.results) == {None}
        return is_plain and self._table.is_open

    def renew(self, values: list[Any], gradients: list[Any], results: list[Any]) -> bool:
        """Put in the arrays of another step, which the caller keeps; whether they fit."""
        table, reads = self._table, self._kernel.reads
        table.replace(0, values)
        table.replace(1, gradients)
        table.replace(len(reads), results)
        # With the first of the slots, if there are any: the others are like it.
        has_slots = len(reads) > 2 and reads[2] <= len(self._kernel.results)
        return table.are_alike(2 + has_slots)

    def is_finite(self) -> bool:
        """Whether all gradients are finite."""
        check = _finite_check(self._dtypes[0], 1)
        return check is not None and not check[1](self._table)

    def count(self, factors: Sequence[float | None]) -> None:
        """Set the numbers of the step."""
        self._numbers[:] = [x for x in factors if x is not None]


def _flat(array: Any, dtype: Any, real: Any) -> Any:
    """The elements as contiguous real numbers."""
    if array.dtype != dtype:
        array = array.astype(dtype)
    if not array.flags.carray and not (array.flags.c_contiguous and array.flags.aligned):
        array = array.copy()
    return array if dtype is real or dtype == real else array.reshape(-1).view(real)


def _kernel(
    rule: Any, pattern: tuple[bool, ...], dtypes: tuple[Any, Any], count: int, is_large: bool
) -> _Kernel | None:
    """The kernel of a rule for arrays of some dtypes with so many slots."""
    stored, real = dtypes
    small = _compiled(rule, pattern, dtypes, count, TILE)
    large = _compiled(rule, pattern, dtypes, count, TILE * AT_ONCE) if is_large else None
    if small is None:
        return None
    columns, made = [stored, stored, *[real] * count], [stored, *[real] * count]
    for result, dtype in zip(small.results, made, strict=True):
        is_argument = isinstance(result, int) and columns[result : result + 1] == [dtype]
        if result != (dtype, ()) and not is_argument:
            return None
    places = tuple([result if isinstance(result, int) else None for result in small.results])
    reads, arrays = small.reads, len(columns)
    if small.code is None:
        return _Kernel((), None, (), places)
    sizes = [columns[place].itemsize if place < arrays else 0 for place in reads]
    sizes += [dtype.itemsize for dtype, place in zip(made, places, strict=True) if place is None]
    if not _is_one_loop(small.code) or len(sizes) > MOST_COLUMNS or reads[0] >= arrays:
        return None
    codes = [small.code]
    if large is not None and large[1:] == small[1:] and _is_one_loop(large.code):
        codes.append(large.code)
    address, *more = [code.address for code in codes]
    loop = RowLoop(address, sizes, len(reads), large=sum(more))
    return _Kernel(tuple(codes), loop, reads, places)


def _compiled(
    rule: Any, pattern: tuple[bool, ...], dtypes: tuple[Any, Any], count: int, length: int
) -> Any:
    """A rule compiled for arrays of a length; None if it has no native form."""
    stored, real = dtypes

    def function(value: Any, gradient: Any, *rest: Any) -> tuple[Any, ...]:
        numbers = iter(rest[count:])
        factors = tuple([None if missing else next(numbers) for missing in pattern])
        if stored != real:
            value, gradient = value.astype(real), gradient.astype(real)
        ct = -gradient if rule.maximize else gradient
        new, after = rule.update(value, ct, rest[:count], factors)
        return new if stored == real else new.astype(stored), *after

    avals = [Aval((length,), stored)] * 2 + [Aval((length,), real)] * count
    avals += [Aval((), real)] * pattern.count(False)
    kernel = TileKernel.of(function, avals, length, "optimizer_step", settling=False)
    return None if kernel is None or len(kernel.results) != 1 + count else kernel


def _is_one_loop(code: Any) -> bool:
    """Whether it goes through the arrays once, so that results may take the place of arguments."""
    plan = code.plan
    apart = all(isinstance(node.op.lower, Pointwise) for node in plan.graph.nodes)
    return apart and len(plan.steps) == 1 and not plan.arena.size and not plan.failures


# ---- finite gradients ---------------------------------------------------------------------------


def are_finite(arrays: Sequence[Any]) -> bool:
    """Whether all elements are known to be finite."""
    groups: dict[Any, list[list[Any]]] = {}
    for array in arrays:
        stored, _ = _dtypes(array.dtype)
        groups.setdefault(stored, []).append([_flat(array, array.dtype, stored)])
    checks = {stored: _finite_check(stored, 0) for stored in groups}
    if None in checks.values():
        return False
    return not any(checks[stored][1](Rows(rows)) for stored, rows in groups.items())  # type: ignore[index]


@once
def _finite_check(stored: Any, column: int) -> tuple[Any, RowLoop] | None:
    """Adds up x − x, which is 0 for finite numbers and NaN for others."""

    def function(x: Any) -> Any:
        x = x if stored.itemsize > 2 else x.astype(_F32)
        return sum_of(x - x)

    codes: list[Any] = []
    for length in (TILE, TILE * AT_ONCE):
        traced, _ = trace_present(function, [Aval((length,), stored)], "finite")
        assert traced is not None
        graph = Graph("finite", traced.graph.inputs, traced.graph.nodes, traced.graph.outputs)
        native = Program(graph, settling=False).native
        if native is None:
            return None
        codes.append(native.code)
    small, large = [code.address for code in codes]
    sizes = [stored.itemsize]
    return codes, RowLoop(small, sizes, 1, large=large, first=column, checks=True)
