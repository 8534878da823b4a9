"""Reports on compiled functions: `gt.jit(f).explain(*args)`.

The report goes from the whole to the parts: one line for the function, its graph after all passes,
then the parts in the order in which they run, with the loop nests and matrix products of each
native part. All times, bytes and flops are estimates from the plan; nothing is run or measured.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from gradtape.compiler.array_loop import ArrayLoop
from gradtape.compiler.element_listing import element_listing
from gradtape.compiler.element_program import ElementProgram
from gradtape.compiler.estimates import flops_of, in_bytes, in_flops, scaled, traffic_of
from gradtape.compiler.fuse import Group
from gradtape.compiler.kernel import Kernel
from gradtape.compiler.library_call import LibraryCall
from gradtape.compiler.listing import listing
from gradtape.compiler.plan import Step
from gradtape.compiler.product import Product
from gradtape.compiler.program import NativeFunction, Program
from gradtape.compiler.target import Code
from gradtape.core.aval import Aval
from gradtape.core.lazy import lazy
from gradtape.graph.ir import Graph, Operand, Value
from gradtape.graph.text import short_line, show, show_operand, value_names

_WIDTH = 100


class EagerOp(NamedTuple):
    """An op that runs its eager kernel.

    Attributes:
        op: Its name.
        reason: Why it has no native code here.
        line: The line of the user's code it is from; "" if that is not known.
    """

    op: str
    reason: str
    line: str


class KernelReport(NamedTuple):
    """One step of a native part: a loop nest, a matrix product, or calls of LAPACK.

    Attributes:
        name: Its name.
        ops: The names of the ops that are computed in it, in order.
        lines: The lines of the user's code they are from, without repetition.
        listing: The loop nest as text; "" for other steps.
        lanes: The number of elements done at once; 1 without vectors, 0 for other steps.
        parts: The number of parts it is divided into for threads; 0 for a matrix product, which
            divides itself.
        bytes_read: Sizes of the arrays it reads, each once.
        bytes_written: Sizes of the arrays it writes, each once.
        flops: Arithmetic instructions on elements; an elementary function counts as about 20.
        nanoseconds: A rough time on one core.
        cuts: The ops next to it that are not in it, and why.
        function: The name of the function of a loop nest in the IR. Loop nests that differ only in
            arrays and numbers share one, named after the first of them. "" for other steps.
        calls_library: Whether it calls LAPACK.
    """

    name: str
    ops: tuple[str, ...]
    lines: tuple[str, ...]
    listing: str
    lanes: int
    parts: int
    bytes_read: int
    bytes_written: int
    flops: int
    nanoseconds: float
    cuts: tuple[str, ...]
    function: str
    calls_library: bool = False

    def __str__(self) -> str:
        how = [] if not self.listing else [_plural(self.lanes, "lane"), _plural(self.parts, "part")]
        figures = [
            *how,
            f"reads {in_bytes(self.bytes_read)}",
            f"writes {in_bytes(self.bytes_written)}",
            in_flops(self.flops),
            _time(self.nanoseconds),
        ]
        lines = [f"{self.name}: {', '.join(figures)}"]
        lines += _wrapped("ops: ", _counted(self.ops), "    ")
        lines += _wrapped("from: ", [short_line(line) for line in self.lines], "    ")
        lines += _wrapped("not fused: ", self.cuts, "    ", "; ")
        if self.function in ("", self.name):
            lines += [f"    | {line}" for line in self.listing.splitlines()]
        else:
            lines.append(f"    the code of {self.function}, for other arrays or numbers")
        return "\n".join(lines)


class Explanation:
    """How a function is compiled for one form of its arguments; `str()` of it is a report.

    Attributes:
        graph: The graph after all passes.
        kernels: The loop nests and matrix products of all native parts, in order.
        eager: The ops that run their eager kernel, with the reason and the user's line.
        hidden: Shapes and dtypes of the arrays and tensors that the function uses besides its
            arguments; they are the last inputs of the graph.
        nanoseconds: A rough time of a call on one core, without the eager ops.
        temporary_bytes: The memory that a call takes for results on the way, of all native parts.

    >>> def energy(x):
    ...     return np.sum(np.tanh(x) * x)
    >>> explained = gt.jit(energy).explain(np.ones((4, 3), np.float32))
    >>> [kernel.ops for kernel in explained.kernels]
    [('tanh', 'multiply', 'sum')]
    >>> print(explained)
    energy: 1 native part (1 loop nest), no eager ops, no hidden inputs...
    >>> "define" in explained.ir, "ret" in explained.assembly
    (True, True)
    """

    def __init__(self, program: Program, hidden: Sequence[Aval] = ()) -> None:
        self.graph: Graph = program.graph
        self.eager: list[EagerOp] = []
        self.hidden = tuple(hidden)
        self._parts: list[NativeFunction | EagerOp] = []
        self._kernels: dict[NativeFunction, list[KernelReport]] = {}
        for step in program.steps:
            if isinstance(step, NativeFunction):
                self._kernels[step] = list(_reports(step.code))
                self._parts.append(step)
            else:
                self.eager.append(EagerOp(step.node.op.name, step.reason, step.node.line))
                self._parts.append(self.eager[-1])
        self.kernels = [kernel for kernels in self._kernels.values() for kernel in kernels]
        self.nanoseconds = sum(kernel.nanoseconds for kernel in self.kernels)
        self.temporary_bytes = sum(part.code.plan.arena.size for part in self._kernels)

    @property
    def ir(self) -> str:
        """The LLVM IR of all native parts, before LLVM's own passes."""
        return "\n".join(f"; part {n}\n{part.code.text}" for n, part in self._native_parts())

    @lazy
    def assembly(self) -> str:
        """The machine code of all native parts as a listing for this machine's CPU."""
        return "\n".join(f"# part {n}\n{part.code.assembly}" for n, part in self._native_parts())

    def _native_parts(self) -> Iterator[tuple[int, NativeFunction]]:
        for number, part in enumerate(self._parts, 1):
            if isinstance(part, NativeFunction):
                yield number, part

    def __repr__(self) -> str:
        kinds = f"{_kinds(self.kernels)}, {_plural(len(self.eager), 'eager op')}"
        return f"<explanation of {self.graph.name}: {kinds}; print it>"

    def __str__(self) -> str:
        hidden = f" ({', '.join(map(repr, self.hidden))})" if self.hidden else ""
        head = [
            f"{_plural(len(self._kernels), 'native part')} ({_kinds(self.kernels)})",
            _plural(len(self.eager), "eager op"),
            f"{_plural(len(self.hidden), 'hidden input')}{hidden}",
            f"{_time(self.nanoseconds)} on one core",
        ]
        lines = [*_wrapped(f"{self.graph.name}: ", head), "", show(self.graph)]
        names = value_names(self.graph)
        for number, part in enumerate(self._parts, 1):
            lines.append("")
            if isinstance(part, EagerOp):
                line = f", from {short_line(part.line)}" if part.line else ""
                lines.append(f"part {number}, eager: {part.op}{line}: {part.reason}")
            else:
                lines += self._native_part(number, part, names)
        return "\n".join(lines)

    def _native_part(
        self, number: int, function: NativeFunction, names: dict[Value, str]
    ) -> list[str]:
        part, kernels = function.part, self._kernels[function]
        size = function.code.plan.arena.size
        memory = f"{in_bytes(size)} of temporaries" if size else ""
        time = _time(sum(kernel.nanoseconds for kernel in kernels))
        head = filter(None, [_kinds(kernels), memory, time])
        lines = _wrapped(f"part {number}, native: ", list(head))
        lines += _wrapped("takes ", _places("in", part.inputs, names), "  ")
        lines += _wrapped("makes ", _places("out", part.outputs, names), "  ")
        for kernel in kernels:
            lines += ["", textwrap.indent(str(kernel), "  ", lambda _line: True)]
        return lines


def _places(kind: str, operands: Iterable[Operand], names: dict[Value, str]) -> list[str]:
    """The values of the whole graph that the buffers of a part stand for, as text."""
    return [f"{kind}{n} = {show_operand(operand, names)}" for n, operand in enumerate(operands)]


# ---- groups and their steps ---------------------------------------------------------------------


def _reports(code: Code) -> Iterator[KernelReport]:
    plan = code.plan
    for group, steps in plan.steps_of_groups:
        nodes = plan.fusion.nodes_of(group)
        lines = tuple(dict.fromkeys(node.line for node in nodes if node.line))
        ops = tuple(node.op.name for node in nodes)
        for number, step in enumerate(steps):
            first = number == 0
            time, lanes, parts, function = code.report(step)
            yield KernelReport(
                step.name,
                _ops(step, ops, first),
                lines,
                _listing(step),
                lanes,
                parts,
                *traffic_of(step),
                flops_of(step),
                time,
                _cuts(group) if first else (),
                function,
                isinstance(step, LibraryCall),
            )


def _ops(step: Step, ops: tuple[str, ...], first: bool) -> tuple[str, ...]:
    """The names of the ops in a step; those of a group are told of its first one."""
    if isinstance(step, ElementProgram | ArrayLoop):
        return step.ops
    return ops if first else () if isinstance(step, Product) else step.ops


def _listing(step: Step) -> str:
    if isinstance(step, Product | LibraryCall):
        return ""
    if isinstance(step, ArrayLoop):
        return "\n".join(_loop_lines(step))
    return listing(step) if isinstance(step, Kernel) else element_listing(step)


def _loop_lines(loop: ArrayLoop) -> Iterator[str]:
    """A loop as text: the steps of each of its graphs."""
    length = "" if loop.length is None else f" of {_plural(loop.length, 'step')}"
    yield f"{loop.node.op.name}{length}:"
    for plan in loop.plans:
        yield f"    {plan.graph.name}:"
        for step in plan.steps:
            yield textwrap.indent(_listing(step) or step.name, " " * 8)


def _cuts(group: Group) -> tuple[str, ...]:
    """The reasons why neighbours are not in a group: each op with its reason, once."""
    if group.opaque is not None:
        return (f"a {group.opaque.op.name} has no loop that others could join",)
    noted = (cut.partition(": ") for cut in group.cuts)
    return tuple(dict.fromkeys(f"{op} ({reason})" if reason else op for op, _, reason in noted))


# ---- numbers as text ----------------------------------------------------------------------------


def _wrapped(label: str, items: Sequence[str], indent: str = "", between: str = ", ") -> list[str]:
    """A label and the items after it, wrapped to lines that begin where the first item does."""
    if not items:
        return []
    return textwrap.wrap(
        between.join(items),
        _WIDTH,
        initial_indent=indent + label,
        subsequent_indent=" " * len(indent + label),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _counted(names: Sequence[str]) -> list[str]:
    return [f"{name} ×{n}" if n > 1 else name for name, n in Counter(names).items()]


def _kinds(kernels: Sequence[KernelReport]) -> str:
    loops = sum(bool(kernel.listing) for kernel in kernels)
    calls = sum(kernel.calls_library for kernel in kernels)
    products = len(kernels) - loops - calls
    counts = {"loop nest": loops, "matrix product": products, "LAPACK call": calls}
    found = [_plural(count, what) for what, count in counts.items() if count]
    return ", ".join(found) or _plural(0, "loop nest")


def _plural(count: int, what: str) -> str:
    return f"{count or 'no'} {what}{'' if count == 1 else 's'}"


def _time(nanoseconds: float) -> str:
    return f"about {scaled(nanoseconds, ('ns', 'µs', 'ms', 's'))}"
