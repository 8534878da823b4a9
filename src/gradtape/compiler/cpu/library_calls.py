"""Calls of LAPACK as functions of LLVM IR: a loop over the matrices of a stack."""

from __future__ import annotations

from collections.abc import Mapping

from gradtape.compiler.cpu.llvm.builder import I64, PTR, VOID, Builder, Module, Type, Value
from gradtape.compiler.cpu.llvm.instructions import memory_type
from gradtape.compiler.cpu.runtime.entry_tables import UNSETTLED_STATUS
from gradtape.compiler.kernel import Buffer, Failure
from gradtape.compiler.library_call import LibraryCall, MatrixArgument, RoutineCall


def write_library_call(module: Module, step: LibraryCall, codes: Mapping[Failure, int]) -> None:
    """Write the function of a step, `void name(ptr status, ptr …)` with its buffers in order.

    Args:
        module: The module.
        step: The step.
        codes: The most the status can be after a condition did not hold.
    """
    b = Builder(module)
    places = {buffer: Value(PTR, f"%b{n}") for n, buffer in enumerate(step.buffers)}
    passed = _Passed(b, step)
    with b.loop(step.matrices) as number:
        for call in step.calls:
            _write_call(b, call, passed, places, number)
            if call.failure is not None:
                _write_check(b, passed, codes[call.failure], numbered=True)
            if call.settles:
                _write_check(b, passed, UNSETTLED_STATUS, numbered=False)
    b.emit("ret void")
    given = ", ".join(f"ptr %b{n}" for n in range(len(places)))
    module.define(b.function(f"define internal void @{step.name}(ptr %status, {given})"))


class _Passed:
    """Letters, integers and the status in memory, where routines read them."""

    def __init__(self, b: Builder, step: LibraryCall) -> None:
        self.integer = Type(f"i{8 * step.integers.itemsize}")
        self.info = b.alloca(self.integer)
        self._known: dict[str | int, Value] = {}
        for call in step.calls:
            for arg in call.args:
                if not isinstance(arg, MatrixArgument) and arg not in self._known:
                    self._known[arg] = self._stored(b, arg)

    def _stored(self, b: Builder, arg: str | int) -> Value:
        type = self.integer if isinstance(arg, int) else Type("i8")
        place = b.alloca(type)
        b.store(Value(type, str(arg if isinstance(arg, int) else ord(arg))), place)
        return place

    def __getitem__(self, arg: str | int) -> Value:
        return self._known[arg]


def _write_call(
    b: Builder, call: RoutineCall, passed: _Passed, places: Mapping[Buffer, Value], number: Value
) -> None:
    pointers = []
    for arg in call.args:
        if isinstance(arg, MatrixArgument):
            further = b.mul(number, arg.stride) if arg.stride else Value(I64, "0")
            pointers.append(b.element(places[arg.buffer], further, memory_type(arg.buffer.dtype)))
        else:
            pointers.append(passed[arg])
    b.store(Value(passed.integer, "0"), passed.info)
    # Fortran passes the lengths of letters after all arguments.
    lengths = [Value(I64, "1") for arg in call.args if isinstance(arg, str)]
    b.call(call.symbol, VOID, *pointers, passed.info, *lengths)


def _write_check(b: Builder, passed: _Passed, code: int, *, numbered: bool) -> None:
    """Note a status above 0 with its number, or any but 0 where the code has no number."""
    info = b.load(passed.info, passed.integer)
    with b.only_if(b.icmp("sgt" if numbered else "ne", info, 0)):
        status = Value(PTR, "%status")
        if numbered:
            wide = info if passed.integer == I64 else b.convert("sext", info, "i64")
            b.store(b.sub(wide, 1), b.element(status, code, I64), "monotonic")
        b.lower(status, Value(I64, str(code)))
