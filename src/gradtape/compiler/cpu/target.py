"""The CPU as a target: plans become machine code of this process."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from gradtape.compiler import free_memory
from gradtape.compiler.argument_specs import ArrayLeaf, Result, ResultLeaf, Spec, TupleSpec
from gradtape.compiler.cpu.llvm.builder import Module
from gradtape.compiler.cpu.llvm.link import Cpu, Library, assembly, host
from gradtape.compiler.cpu.llvm.scratch import NO_MEMORY
from gradtape.compiler.cpu.printer import Printed, print_plan
from gradtape.compiler.cpu.routine import FIRST_FAILURE
from gradtape.compiler.cpu.runtime import cache
from gradtape.compiler.cpu.runtime.entry_point import make_callable
from gradtape.compiler.cpu.runtime.symbols import imports
from gradtape.compiler.cpu.schedule import nanoseconds
from gradtape.compiler.kernel import Kernel
from gradtape.compiler.plan import Plan, Step
from gradtape.compiler.target import Code, StepReport, Target
from gradtape.core.lazy import lazy
from gradtape.errors import GradtapeError
from gradtape.graph.passes.hopeful import UnsettledError
from gradtape.locks import once

# Functions that take longer than this, in nanoseconds, let other Python threads run meanwhile.
_LONG = 20_000


class CpuCode(Code):
    """A plan as a native function, `i32 run(ptr inputs, ptr outputs)`.

    Attributes:
        library: The machine code.
        direct: The entry point for arrays. It also returns `NotImplemented` if something has to be
            settled.
        failed: Raises the error for a nonzero status.
    """

    def __init__(self, printed: Printed, text: str, library: Library, cpu: Cpu) -> None:
        plan = printed.plan
        super().__init__(plan)
        self.text = text
        self.library = library
        self._printed = printed
        self._cpu = cpu
        conditions = tuple((failure.error, str(failure)) for failure in plan.failures)
        culprit = printed.culprit
        number = culprit and ctypes.c_int64.from_address(library.address(culprit))
        self.failed = functools.partial(_failed, conditions, number)
        self._long = plan.endless or sum(map(nanoseconds, plan.steps)) > _LONG
        # Only the direct entry point checks that there is enough memory before it takes a lot.
        memory = plan.arena.size + sum(buffer.nbytes for buffer in plan.outputs)
        self._asks = free_memory.is_noticed(memory)
        self.direct = self._callable(  # type: ignore[method-assign]
            [ArrayLeaf(buffer.dtype, buffer.shape) for buffer in plan.inputs],
            TupleSpec(tuple(map(ResultLeaf, range(len(plan.outputs))))),
            [Result(buffer.dtype, buffer.shape) for buffer in plan.outputs],
            scratch=plan.arena.size,
        )

    def _callable(
        self, args: Sequence[Spec], result: Spec, results: Sequence[Result], **options: Any
    ) -> Callable[..., Any]:
        return make_callable(
            self.library,
            self.plan.name,
            args,
            result,
            results,
            on_error=self.failed,
            release_gil=self._long,
            name=self.plan.graph.name,
            **options,
        )

    def entry(
        self,
        args: Sequence[Spec],
        result: Spec,
        results: Sequence[Result],
        *,
        otherwise: Callable[..., Any] | None = None,
        unless: list[Any] | None = None,
        bound: Sequence[Any] = (),
    ) -> Callable[..., Any] | None:
        """A native function that takes Python's arguments; None if a call takes much memory."""
        if self._asks:
            return None
        return self._callable(
            args, result, results, otherwise=otherwise, unless=unless, bound=bound
        )

    @property
    def address(self) -> int:
        """The address of the function."""
        return self.library.address(self.plan.name)

    @lazy
    def assembly(self) -> str:
        """The machine code as a listing."""
        return assembly(self.text, self._cpu)

    def report(self, step: Step) -> StepReport:
        """A report on how a step is run; matrix products divide themselves."""
        if not isinstance(step, Kernel):
            return StepReport(nanoseconds(step))
        schedule = self._printed.schedules[step]
        function = self._printed.functions[step]
        return StepReport(nanoseconds(step), schedule.lanes, schedule.parts, function)


def _failed(
    conditions: Sequence[tuple[type[GradtapeError], str]], number: Any, status: int
) -> None:
    """Raise the error for the status of a native function that checks some conditions."""
    if status == NO_MEMORY:
        raise MemoryError("jit: no memory for intermediate results")
    if FIRST_FAILURE <= status < FIRST_FAILURE + len(conditions):
        error, message = conditions[status - FIRST_FAILURE]
        raise error(message.replace("{}", str(number.value), 1))
    raise GradtapeError(f"jit: the compiled function failed with status {status}")


class CpuTarget(Target[CpuCode]):
    """Compiles plans for a CPU."""

    def __init__(self, cpu: Cpu) -> None:
        self._cpu = cpu
        # In an unrolled loop with an eager op in it, all native parts are alike.
        self._libraries: WeakValueDictionary[str, Library] = WeakValueDictionary()

    def compile(self, plans: Sequence[Plan]) -> list[CpuCode]:
        """Native functions in one library, an existing one if it has the same text."""
        module = Module(has_half=self._cpu.has_half)
        printed = [print_plan(plan, module, self._cpu) for plan in plans]
        text = str(module)
        library = self._libraries.get(text)
        if library is None:
            exports = [name for each in printed for name in each.exports]
            routines = {name: at for each in printed for name, at in each.routines.items()}
            symbols = imports(text) | routines
            library = Library(cache.compiled(text, self._cpu), symbols, exports)
            self._libraries[text] = library
        return [CpuCode(each, text, library, self._cpu) for each in printed]

    def call(self, code: CpuCode, arrays: Sequence[Any]) -> list[Any]:
        out = code.direct(*arrays)
        if out is NotImplemented:  # not because of the arrays, which were prepared for it
            raise UnsettledError
        return [np.asarray(array) for array in out]


@once
def host_target() -> CpuTarget:
    """This machine's CPU, or the older one that the user named."""
    return CpuTarget(host())
