"""Print a plan as LLVM IR: one function per family of kernels, and one that runs all steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gradtape.compiler.array_loop import ArrayLoop
from gradtape.compiler.cpu.gemm.gemm import gemms_of
from gradtape.compiler.cpu.gemm.pairs import with_pairs
from gradtape.compiler.cpu.kernel_families import Pattern, families
from gradtape.compiler.cpu.library_calls import write_library_call
from gradtape.compiler.cpu.llvm.builder import Module
from gradtape.compiler.cpu.llvm.element_code import ElementCode
from gradtape.compiler.cpu.llvm.link import Cpu
from gradtape.compiler.cpu.llvm.loops import Loops
from gradtape.compiler.cpu.loop_function import LoopFunction
from gradtape.compiler.cpu.parameters import Parameters
from gradtape.compiler.cpu.routine import FIRST_FAILURE, KernelCall, Routine, write_routine
from gradtape.compiler.cpu.schedule import Schedule, divided, scheduled, scheduled_loop
from gradtape.compiler.element_program import ElementProgram
from gradtape.compiler.kernel import Buffer, Failure, Kernel
from gradtape.compiler.library_call import LibraryCall
from gradtape.compiler.plan import Plan, Step
from gradtape.compiler.product import Product


class Printed(NamedTuple):
    """A plan as functions of a module, not compiled yet.

    Attributes:
        plan: The plan with steps as the CPU runs them.
        schedules: How each loop nest is run.
        functions: The name of the function of each loop nest; similar ones share one.
    """

    plan: Plan
    schedules: dict[Kernel, Schedule]
    functions: dict[Kernel, str]

    @property
    def culprit(self) -> str | None:
        """The variable with the number for which a condition failed; None without conditions."""
        return f"{self.plan.name}_wrong" if self.plan.failures else None

    @property
    def routines(self) -> dict[str, int]:
        """The addresses of routines of libraries, by their symbols."""
        return _routines(self.plan)

    @property
    def exports(self) -> list[str]:
        """The symbols that are used from outside."""
        return [name for name in (self.plan.name, self.culprit) if name is not None]


def _routines(plan: Plan) -> dict[str, int]:
    found: dict[str, int] = {}
    for step in plan.steps:
        if isinstance(step, LibraryCall):
            found |= {call.symbol: call.address for call in step.calls}
        elif isinstance(step, ArrayLoop):
            for inner in step.plans:
                found |= _routines(inner)
    return found


def print_plan(plan: Plan, module: Module, cpu: Cpu) -> Printed:
    """Write the functions of a plan into a module; the one to call has the name of the plan."""
    name = plan.name
    plan = plan.with_steps(lambda step: _for_cpu(step, cpu, name))
    slots = {buffer: n for n, buffer in enumerate(plan.buffers)}
    codes = {failure: FIRST_FAILURE + n for n, failure in enumerate(plan.failures)}
    schedules = {
        step: scheduled(step, cpu.vector_bytes) for step in plan.steps if isinstance(step, Kernel)
    }
    for step in plan.steps:
        if isinstance(step, LibraryCall):
            write_library_call(module, step, codes)
    calls = _write_kernels(module, schedules, slots, codes)
    table = Parameters(slots, len(slots), codes)
    for step in plan.steps:
        if isinstance(step, ElementProgram):
            schedule = scheduled_loop(step)
            ElementCode(module, step, schedule, table).write()
            calls[step] = KernelCall(step.name, schedule.parts)
        elif isinstance(step, ArrayLoop):
            for inner in step.plans:
                print_plan(inner, module, cpu)
            schedule = scheduled_loop(step)
            LoopFunction(module, step, schedule, table).write()
            calls[step] = KernelCall(step.name, schedule.parts)
    write_routine(module, Routine(plan, calls, slots), cpu)
    functions = {step: call.function for step, call in calls.items() if isinstance(step, Kernel)}
    return Printed(plan, schedules, functions)


def _for_cpu(step: Step, cpu: Cpu, name: str) -> Sequence[Step]:
    """A step as the CPU runs it: long reductions in two, products with memory for partial sums."""
    if isinstance(step, Kernel):
        return divided(step)
    if isinstance(step, ElementProgram | ArrayLoop | LibraryCall):
        return (step,)
    *before, product = with_pairs(step, cpu, name)
    assert isinstance(product, Product)
    size = max((gemm.work_bytes(cpu) for gemm in gemms_of(product)), default=0)
    if not size:
        return (*before, product)
    work = Buffer(f"{step.c}_parts", (size,), np.dtype(np.uint8), "temporary")
    return (*before, product._replace(work=work))


def _write_kernels(
    module: Module,
    schedules: Mapping[Kernel, Schedule],
    slots: Mapping[Buffer, int],
    codes: Mapping[Failure, int],
) -> dict[Step, KernelCall]:
    """Write the functions of kernels, one for those alike; returns how each is called."""
    calls: dict[Step, KernelCall] = {}
    table = Parameters(slots, len(slots), codes)
    patterns = [Pattern(kernel, schedule, codes) for kernel, schedule in schedules.items()]
    for family in families(patterns):
        first = family.patterns[0]
        schedule = schedules[first.kernel]
        if len(family.patterns) == 1:
            Loops(module, first.kernel, schedule, table).write()
            calls[first.kernel] = KernelCall(first.kernel.name, schedule.parts)
            continue
        Loops(module, *first.with_parameters(schedule, family.places)).write()
        for pattern in family.patterns:
            words = tuple(pattern.words[place] for place in family.places)
            calls[pattern.kernel] = KernelCall(
                first.kernel.name, schedule.parts, pattern.buffers, words
            )
    return calls
