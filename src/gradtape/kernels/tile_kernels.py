"""Kernels of tiles, and prepared calls of them.

Everything a call needs except the data (the kernel, where tiles begin, the shapes of the results)
is worked out once for given shapes and dtypes, and kept as a `TileCall`. The rest of a call then
takes a few microseconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.compiler.cpu.runtime import blocks
from gradtape.compiler.cpu.runtime.entry_tables import UNSETTLED_STATUS
from gradtape.compiler.cpu.runtime.tile_loop import TileLoop
from gradtape.compiler.cpu.target import CpuCode
from gradtape.compiler.program import Program
from gradtape.core.aval import Aval
from gradtape.core.lowering import Pointwise
from gradtape.core.op import Op
from gradtape.errors import GradtapeError
from gradtape.graph.ir import Graph, Value
from gradtape.graph.passes.hopeful import UnsettledError
from gradtape.graph.trace import Trace, trace
from gradtape.kernels.tiling import TileOperands, Tiling
from gradtape.locks import Once, guard

# The most kernels to compile for one op: a parameter or row length that differs at each call is not
# worth compiling for.
MOST_VARIANTS = 64
_MOST_ENTRIES = 4096


def trace_present(
    function: Callable[..., Any], avals: Sequence[Aval], name: str
) -> tuple[Trace | None, list[bool]]:
    """Trace a function that returns a tensor, or a tuple of tensors and None.

    Returns:
        The trace, without results that are None; it is None if the function reads values. And
        which results there are.
    """
    present: list[bool] = []

    def results(*args: Any) -> Any:
        out = function(*args)
        out = out if isinstance(out, tuple) else (out,)
        present[:] = [x is not None for x in out]
        return tuple(x for x in out if x is not None)

    try:
        return trace(results, avals, name), present
    except GradtapeError:
        return None, present


class TileKernel(NamedTuple):
    """A compiled function of tiles.

    Attributes:
        code: The machine code; None if nothing is computed.
        reads: The positions of the arguments it reads.
        results: Per result: its dtype and the axes of a row; the argument it equals; or None.
    """

    code: CpuCode | None
    reads: tuple[int, ...]
    results: tuple[tuple[Any, tuple[int, ...]] | int | None, ...]

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        avals: Sequence[Aval],
        rows: int,
        name: str,
        settling: bool,
    ) -> TileKernel | None:
        """Compile a function of tiles; None if it has no native form.

        Args:
            function: Takes tensors; returns one, or a tuple of tensors and None.
            avals: Its arguments.
            rows: The number of rows in a tile, which every result must have too.
            name: Its name.
            settling: Whether it settles 0·∞ in derivatives, or reports that it would have to.
        """
        traced, present = trace_present(function, avals, name)
        if traced is None or traced.captures:
            return None  # it reads values, or arrays of its own
        graph, outputs = traced.graph, iter(traced.graph.outputs)
        slots = [next(outputs) if there else None for there in present]
        made = [x for x in slots if x is not None and x not in graph.inputs]
        if not all(isinstance(x, Value) and x.shape[:1] == (rows,) for x in made):
            return None
        code: CpuCode | None = None
        reads: tuple[int, ...] = ()
        if made:
            read = {operand for node in graph.nodes for operand in node.operands}
            reads = tuple(i for i, value in enumerate(graph.inputs) if value in read)
            inputs = [graph.inputs[i] for i in reads]
            program = Program(Graph(name, inputs, graph.nodes, made), settling=settling)
            if program.native is None:
                return None
            assert isinstance(program.native.code, CpuCode)
            code = program.native.code
        return cls(code, reads, tuple(_found(x, graph) for x in slots))

    def failed(self, status: int) -> None:
        """Raise the error for a nonzero status."""
        if status == UNSETTLED_STATUS:
            raise UnsettledError
        assert self.code is not None
        self.code.failed(status)


def _found(slot: Any, graph: Graph) -> tuple[Any, tuple[int, ...]] | int | None:
    if slot is None:
        return None
    return graph.inputs.index(slot) if slot in graph.inputs else (slot.dtype, slot.shape[1:])


class TileCall:
    """A kernel with everything a call needs except the data."""

    __slots__ = ("_empty", "_kernel", "_loop", "_reads", "_results")

    def __init__(
        self, kernel: TileKernel, call: TileOperands, tiling: Tiling, shapes: Sequence[Any]
    ) -> None:
        """Prepare the call.

        Args:
            kernel: The kernel to run.
            call: The operands it was compiled for.
            tiling: How arrays are cut.
            shapes: The shapes of the results; None for the one a result has by itself.
        """
        self._kernel = kernel
        self._reads = tuple((call.places[i], call.takes[i]) for i in kernel.reads)
        # Per result: True for a new array, None for nothing, or the operand it is, and its shape.
        self._results: list[Any] = []
        self._empty: list[Callable[[], Any]] = []
        row_bytes = [call.row_bytes(i) for i in kernel.reads]
        for how, shape in zip(kernel.results, shapes, strict=True):
            if isinstance(how, tuple):
                dtype, tail = how
                self._results.append(True)
                self._empty.append(
                    blocks.maker((*tiling.batch, *tail) if shape is None else shape, dtype)
                )
                row_bytes.append(math.prod(tail) * dtype.itemsize)
            else:
                self._results.append(None if how is None else (call.places[how], shape))
        made = len(self._empty)
        address = 0 if kernel.code is None else kernel.code.address
        self._loop = TileLoop(address, tiling.length, tiling.rows, row_bytes, made)

    def __call__(self, operands: Sequence[Any]) -> list[Any]:
        """The results for raw values; None for nothing.

        Raises:
            UnsettledError: Something has to be settled, by another kernel.
        """
        made = [empty() for empty in self._empty]
        if made:
            read = [operands[i] if take is None else take(operands[i]) for i, take in self._reads]
            status = self._loop(read + made)
            if status:
                self._kernel.failed(status)
        fresh = iter(made)
        return [
            next(fresh) if result is True else result and _shaped(operands[result[0]], result[1])
            for result in self._results
        ]


def _shaped(array: Any, shape: tuple[int, ...] | None) -> Any:
    return array if shape is None or array.shape == shape else array.reshape(shape)


class Bounded(dict[Hashable, Any]):
    """A dict that empties itself when it has become large: a cache.

    Another thread may empty it at any time: an item that was just put in may be gone.
    """

    def find(self, key: Hashable, make: Callable[..., Any], *args: Any) -> Any:
        """The value of a key, `make(*args)` at first; None for a key that cannot be hashed."""
        try:
            return self[key]
        except KeyError:
            if len(self) >= _MOST_ENTRIES:
                self.clear()
            made = self[key] = make(*args)
            return made
        except TypeError:
            return None


class Variants:
    """Code compiled for each op, up to a limit per op; None where there is no native form.

    Attributes:
        made: All of it, by key.
    """

    def __init__(self) -> None:
        self._variants: Once[Any] = Once()
        self.made = self._variants.made
        self._counts: dict[Op, int] = {}

    def find(self, op: Op, key: Hashable, make: Callable[[], Any], most: int) -> Any:
        """The code for a key, made if necessary.

        None if the key cannot be hashed, or if the op has `most` others already.
        """
        try:
            if key in self.made:  # nothing is ever removed
                return self.made[key]
        except TypeError:
            return None
        if self._counts.get(op, 0) >= most:
            return None

        def counted() -> Any:
            with guard:
                self._counts[op] = 1 + (self._counts[op] if op in self._counts else 0)  # noqa: SIM401
            return make()

        return self._variants.find(key, counted)


class TileKernels(Variants):
    """The kernels of tiles of this process."""

    def call(
        self,
        op: Op,
        key: tuple[Hashable, ...],
        function: Callable[..., Any],
        call: TileOperands | None,
        tiling: Tiling,
        shapes: Sequence[Any] = (None,),
        *,
        settling: bool = True,
    ) -> TileCall | None:
        """A call of a function of tiles; None if it has no native form.

        Args:
            op: The op it belongs to.
            key: Anything else that the function depends on.
            function: Takes tensors; returns one, or a tuple of tensors and None.
            call: The operands; None if kernels do not take them.
            tiling: How they are cut.
            shapes: The shapes of the results; None for the one a result has by itself.
            settling: Whether to settle 0·∞ in derivatives; otherwise the call raises if needed.
        """
        if call is None:
            return None

        def spread(*tiles: Any) -> Any:
            return function(*call.spread(tiles, tiling))

        def make() -> TileKernel | None:
            return TileKernel.of(spread, call.avals(tiling), tiling.rows, op.name, settling)

        key = (op, tiling.rows, call.kinds, settling, *key)
        kernel = self.find(op, key, make, MOST_VARIANTS)
        return None if kernel is None else TileCall(kernel, call, tiling, shapes)


def signature(x: Any) -> Any:
    """The properties of a raw value, or of a missing one, that a prepared call depends on."""
    if type(x) is np.ndarray:
        return x.shape, x.strides, x.dtype, x.flags.aligned
    if isinstance(x, Aval):
        return x.shape, x.dtype, x.weak  # hashed faster than the object
    if x is None:
        return x
    if isinstance(x, np.generic):
        return x.dtype
    return type(x)  # numbers are read at each call


def constant_of(op: Op, operands: Sequence[Any]) -> float | None:
    """A number to compile into the code instead of passing it, such as the exponent 2."""
    last = operands[-1]
    if type(last) in (int, float) and isinstance(op.lower, Pointwise) and last in op.lower.numbers:
        return last  # type: ignore[no-any-return]
    return None
