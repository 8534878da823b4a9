"""A target that is no machine: plans are run by NumPy, on whole grids of indices at once.

It shows that a plan says all there is to do, and what a target has to understand: places in
buffers, stages, accumulators, guards, conditions, axes that are gone through in order, matrix
products, calls of LAPACK, loops and branches. Temporaries are where the arena of the plan has them:
it is tested, too.
"""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.compiler.array_loop import ArrayLoop
from gradtape.compiler.element_program import (
    Block,
    Carried,
    Choose,
    ElementProgram,
    For,
    GoBack,
    Statement as ElementStatement,
    WhileHolds,
)
from gradtape.compiler.kernel import (
    Accumulate,
    Accumulator,
    Axis,
    Buffer,
    Failure,
    Kernel,
    Place,
    Statement,
)
from gradtape.compiler.library_call import LibraryCall, MatrixArgument
from gradtape.compiler.plan import Plan
from gradtape.compiler.product import Product
from gradtape.compiler.target import Code, Target
from gradtape.core.evaluate import evaluate as evaluate_op
from gradtape.core.scalar import Scalar
from gradtape.graph.passes.hopeful import UnsettledError
from lowering_interpreter import evaluate, instruction

COMBINE: dict[str, Any] = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
}
# What is there before anything is written.
GARBAGE = 0xA5


class NumpyTarget(Target[Code]):
    """Interprets plans.

    Attributes:
        kernels: How many loop nests it has run.
        products: How many matrix products.
        library_calls: How many steps of calls of LAPACK.
        element_programs: How many loops and branches, element by element.
        array_loops: How many of them on arrays.
    """

    def __init__(self) -> None:
        self.kernels = 0
        self.products = 0
        self.library_calls = 0
        self.element_programs = 0
        self.array_loops = 0

    def compile(self, plans: Sequence[Plan]) -> list[Code]:
        return [Code(plan) for plan in plans]

    def call(self, code: Code, arrays: Sequence[Any]) -> list[Any]:
        run = _Run(code.plan, arrays)
        for step in code.plan.steps:
            if isinstance(step, Product):
                self.products += 1
                run.multiply(step)
            elif isinstance(step, LibraryCall):
                self.library_calls += 1
                run.call_library(step)
            elif isinstance(step, ElementProgram):
                self.element_programs += 1
                run.elements(step)
            elif isinstance(step, ArrayLoop):
                self.array_loops += 1
                run.arrays(step)
            else:
                self.kernels += 1
                run.loop(step)
        run.finish()
        return [run.memory[b].reshape(b.shape) for b in code.plan.outputs]


class _Run:
    """One call of a plan."""

    def __init__(self, plan: Plan, arrays: Sequence[Any]) -> None:
        self._plan = plan
        self.memory: dict[Buffer, Any] = {
            buffer: np.ravel(array) for buffer, array in zip(plan.inputs, arrays, strict=True)
        }
        arena = np.full(plan.arena.size, GARBAGE, np.uint8)
        for buffer, offset in plan.arena.offsets.items():
            self.memory[buffer] = arena[offset : offset + buffer.nbytes].view(buffer.dtype)
        for buffer in plan.outputs:
            self.memory[buffer] = np.full(buffer.nbytes, GARBAGE, np.uint8).view(buffer.dtype)
        self.unsettled = False
        self.failed: dict[Failure, int] = {}

    def multiply(self, product: Product) -> None:
        m, n, k = product.m, product.n, product.k
        for *offsets, count in product.calls:
            for number in range(count):
                starts = [o + number * s for o, s in zip(offsets, product.strides, strict=True)]
                a = self._matrix(product.a, starts[0], (m, k), product.transpose_a)
                b = self._matrix(product.b, starts[1], (k, n), product.transpose_b)
                self._matrix(product.c, starts[2], (m, n), False)[...] = np.matmul(a, b)

    def _matrix(self, buffer: Buffer, start: int, shape: tuple[int, int], transposed: bool) -> Any:
        stored = shape[::-1] if transposed else shape
        matrix = self.memory[buffer][start : start + math.prod(shape)].reshape(stored)
        return matrix.T if transposed else matrix

    def call_library(self, step: LibraryCall) -> None:
        """Call routines of LAPACK with the addresses of what is in memory."""
        for number, call in itertools.product(range(step.matrices), step.calls):
            info = np.zeros(1, step.integers)
            pointers = [self._pointer(arg, number, step.integers) for arg in call.args]
            lengths = [ctypes.c_size_t(1) for arg in call.args if isinstance(arg, str)]
            routine = ctypes.CFUNCTYPE(None)(call.address)
            routine(*pointers, ctypes.c_void_p(info.ctypes.data), *lengths)
            assert info[0] >= 0 or call.settles, f"argument {-info[0]} of {call.symbol} is wrong"
            if info[0] and call.failure is not None:
                self.failed.setdefault(call.failure, int(info[0]) - 1)
            self.unsettled |= call.settles and info[0] != 0

    def _pointer(self, arg: Any, number: int, integers: Any) -> Any:
        if isinstance(arg, MatrixArgument):
            memory = self.memory[arg.buffer]
            assert number * arg.stride < memory.size
            return ctypes.c_void_p(memory.ctypes.data + number * arg.stride * memory.itemsize)
        if isinstance(arg, str):
            return ctypes.c_char_p(arg.encode())
        return ctypes.byref(np.ctypeslib.as_ctypes_type(integers)(arg))

    def elements(self, program: ElementProgram) -> None:
        """Run a loop or branch statement by statement, one element at a time."""
        with np.errstate(all="ignore"):
            _Elements(self, program).run(program.statements)

    def arrays(self, loop: ArrayLoop) -> None:
        """Run a loop or branch as its op says; its plans are for machines."""
        operands = []
        for given, operand in zip(loop.operands, loop.node.operands, strict=True):
            if not isinstance(given, Buffer):
                operands.append(given.value)
                continue
            array = self.memory[given].reshape(given.shape)
            operands.append(array.item() if operand.aval.weak else array.copy())
        with np.errstate(all="ignore"):
            made = evaluate_op(loop.node.op, operands, loop.node.params)
        for buffer, array in zip(loop.outputs, made, strict=True):
            assert np.shape(array) == buffer.shape
            self.memory[buffer][...] = np.ravel(array)

    def loop(self, kernel: Kernel) -> None:
        """Go through the serial axes in order; all others are done at once."""
        with np.errstate(all="ignore"):
            loop = _Loop(self, kernel)
            serial = [axis for axis in kernel.axes if axis.serial]
            for point in itertools.product(*(range(axis.size) for axis in serial)):
                loop.at(dict(zip(serial, point, strict=True)))

    def finish(self) -> None:
        """Raise what went wrong, as eager code would have found it first."""
        if self.unsettled:
            raise UnsettledError
        for failure in self._plan.failures:
            if failure in self.failed:
                raise failure.error(str(failure).replace("{}", str(self.failed[failure]), 1))


class _Loop:
    """One loop nest; arrays have an axis for each of its axes."""

    def __init__(self, run: _Run, kernel: Kernel) -> None:
        self._run = run
        self._kernel = kernel
        self._results: dict[Accumulator, Any] = {}
        self._index: dict[Axis, Any] = {}
        outer = math.prod(axis.size for axis in kernel.outer)
        # Each point of the outer axes has scratch memory of its own.
        self._scratch = {
            b: np.empty(outer * b.size, b.dtype) for b in kernel.buffers if b.kind == "scratch"
        }

    def at(self, point: dict[Axis, int]) -> None:
        """Do all stages at a point of the serial axes."""
        axes = self._kernel.axes
        for number, axis in enumerate(axes):
            shape = [1] * len(axes)
            places = np.arange(axis.size) if axis not in point else np.array([point[axis]])
            shape[number] = places.size
            self._index[axis] = places.reshape(shape)
        if not all(axis.size for axis in self._kernel.outer):
            return
        for stage in self._kernel.stages:
            if all(axis.size for axis in self._kernel.inner):
                self._perform(stage.inner)
            else:
                self._results |= {t: np.asarray(t.start, t.dtype) for t in stage.targets}
            self._perform(stage.outer)

    def _perform(self, statements: Sequence[Statement]) -> None:
        done: dict[int, Any] = {}
        for statement in statements:
            value = evaluate(statement.value, done, self._compute)
            if isinstance(statement, Accumulate):
                self._accumulate(statement.target, value)
                continue
            further = statement.further
            places = self._places(statement.place)
            if further is not None:
                places = places + evaluate(further, done, self._compute)
            memory = self._memory(statement.place.buffer)
            places, value = np.broadcast_arrays(places, value)
            if statement.adds:
                np.add.at(memory, places, value)
            else:
                memory[places] = value

    def _accumulate(self, target: Accumulator, value: Any) -> None:
        start = np.asarray(target.start, target.dtype)
        if self._kernel.serial:  # one step of many
            so_far = self._results.get(target, start)
            if target.combine != "replace":
                value = COMBINE[target.combine](so_far, value)
            self._results[target] = value
            return
        axes = self._kernel.axes
        self._results[target] = COMBINE[target.combine].reduce(
            np.broadcast_to(value, [axis.size for axis in axes]),
            axis=tuple(n for n, axis in enumerate(axes) if axis.reduced),
            dtype=target.dtype,
            keepdims=True,
            initial=start,
        )

    # ---- expressions -----------------------------------------------------------------------

    def _compute(self, part: Scalar, values: list[Any]) -> Any:
        if part.name == "axis":
            return self._index[part.extra]
        if part.name == "reduced":
            return self._results[part.extra]
        if part.name == "running":
            return self._results.get(part.extra, np.asarray(part.extra.start, part.dtype))
        if part.name in ("load", "gather"):
            further, guard = (values[:1], values[1:]) if part.name == "gather" else ([0], values)
            return self._read(part.extra, self._places(part.extra) + further[0], *guard)
        if part.name == "check":
            value, holds, given, *guard = values
            self._note(part.extra, given, ~holds, *guard)
            return np.where(holds, value, np.zeros((), part.dtype))
        if part.name == "watch":
            value, *guard = values
            seen = np.where(guard[0], value, 0) if guard else value
            self._run.unsettled |= not np.isfinite(seen).all()
            return value
        return instruction(part, values)

    def _note(self, failure: Failure, given: Any, wrong: Any, guard: Any = True) -> None:
        given, wrong = np.broadcast_arrays(given, wrong & guard)
        if wrong.any():
            self._run.failed.setdefault(failure, int(given[wrong][0]))

    def _read(self, place: Place, places: Any, guard: Any = True) -> Any:
        """Elements where a guard holds, else 0; nothing outside of the buffer is read."""
        places, guard = np.broadcast_arrays(places, guard)
        found = np.zeros(places.shape, place.buffer.dtype)
        chosen = places[guard]
        assert np.all(chosen >= 0), "read before the first element"
        found[guard] = self._memory(place.buffer)[chosen]
        return found

    # ---- memory ----------------------------------------------------------------------------

    def _memory(self, buffer: Buffer) -> Any:
        return self._scratch[buffer] if buffer.kind == "scratch" else self._run.memory[buffer]

    def _places(self, place: Place) -> Any:
        """The places of elements at all points of the axes."""
        places = place.offset + sum(step * self._index[axis] for axis, step in place.steps)
        if place.buffer.kind == "scratch":
            row: Any = 0
            for axis in self._kernel.outer:
                row = row * axis.size + self._index[axis]
            places = places + row * place.buffer.size
        return np.asarray(places)


class _Elements(_Loop):
    """One loop or branch; at each point of its axes there are single numbers."""

    def __init__(self, run: _Run, program: ElementProgram) -> None:
        self._run = run
        self._results = {}
        self._index = {}
        self._variables: dict[Any, Any] = {}
        self._own = {b: np.full(b.nbytes, GARBAGE, np.uint8).view(b.dtype) for b in program.locals}

    def run(self, statements: Sequence[ElementStatement]) -> None:
        """Do statements in order."""
        for statement in statements:
            if isinstance(statement, For):
                self._start(statement.carried)
                for step in range(statement.axis.size):
                    self._index[statement.axis] = np.asarray(step)
                    self._step(statement.body, statement.carried)
            elif isinstance(statement, WhileHolds):
                self._start(statement.carried)
                while self._holds(statement.condition):
                    self._step(statement.body, statement.carried)
            elif isinstance(statement, GoBack):
                self._go_back(statement)
            elif isinstance(statement, Choose):
                branch = statement.branches[int(self._value(statement.number))]
                self.run(branch.statements)
                self._bind(statement.variables, [self._value(x) for x in branch.results])
            else:
                self._perform([statement])

    def _go_back(self, statement: GoBack) -> None:
        """All states are kept: which ones a machine keeps makes no difference to results."""
        pulled = [self._value(each.start) for each in statement.pulled]
        self._start(statement.state)
        variables, states = [each.variable for each in statement.state], []
        while self._holds(statement.condition):
            states.append([self._variables[variable.extra] for variable in variables])
            self._step(statement.body, statement.state)
        self._bind([each.variable for each in statement.pulled], pulled)
        for state in reversed(states):
            self._bind(variables, state)
            self._step(statement.pull, statement.pulled)

    def _holds(self, condition: Block) -> bool:
        self.run(condition.statements)
        return bool(self._value(condition.results[0]))

    def _start(self, carried: Sequence[Carried]) -> None:
        self._bind([x.variable for x in carried], [self._value(x.start) for x in carried])

    def _step(self, body: Block, carried: Sequence[Carried]) -> None:
        self.run(body.statements)
        self._bind([x.variable for x in carried], [self._value(x.next) for x in carried])

    def _bind(self, variables: Sequence[Scalar], values: Sequence[Any]) -> None:
        for variable, value in zip(variables, values, strict=True):
            self._variables[variable.extra] = np.asarray(value, variable.dtype)

    def _value(self, expression: Scalar) -> Any:
        return evaluate(expression, {}, self._compute)

    def _compute(self, part: Scalar, values: list[Any]) -> Any:
        if part.name == "variable":
            return self._variables[part.extra]
        return super()._compute(part, values)

    def _memory(self, buffer: Buffer) -> Any:
        return self._own[buffer] if buffer in self._own else self._run.memory[buffer]

    def _places(self, place: Place) -> Any:
        return np.asarray(
            place.offset + sum(step * self._index[axis] for axis, step in place.steps)
        )
