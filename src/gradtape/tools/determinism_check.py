"""Does a function do the same again, to the last bit? `check_deterministic` names the first op."""

from __future__ import annotations

import copy
import functools
import hashlib
import json
import os
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gradtape import containers
from gradtape.compiler.cpu.runtime.pool import get_num_threads, set_num_threads
from gradtape.core.aval import Abstract
from gradtape.core.blas_threads import on_one_thread
from gradtape.core.evaluate import evaluate
from gradtape.core.level import Node as RecordNode
from gradtape.core.lines import user_line
from gradtape.core.op import Op
from gradtape.core.record import Output, Record
from gradtape.core.state import Proceed, Proceeding, Scope, State, current, run_inside
from gradtape.core.tensor import Tensor, innermost
from gradtape.errors import ArgumentError, FileFormatError, GradtapeError, a_type
from gradtape.graph.ir import Graph, Node, value_of
from gradtape.io.atomic import replacing
from gradtape.ops.checks import check_least
from gradtape.ops.generator import default_generator
from gradtape.tools.anomaly import tangents_of

_AGAIN, _ALONE, _OTHER = "in another run", "with one thread", "in the run of the file"


class Step(NamedTuple):
    """One op of a run, or the rules of one.

    Attributes:
        what: Its name.
        line: The line of code that called it.
        given: A digest of its operands.
        made: A digest of its results.
    """

    what: str
    line: str
    given: str
    made: str


@dataclass(frozen=True)
class FirstDifference:
    """Where two runs of a function part.

    Attributes:
        op: The name of the op, or "gradient of" it; "the result" if all ops agree.
        number: Which op of the run it is, counted from 0.
        line: The line of code that called it; "" if it is not known.
        when: What was different about the other run.
        cause: "op" if it made other results of the same operands; "operand" if one that no op made
            was another; "random" for a draw; "order" if the other run called something else;
            "result" if only the result of the function differs.
        max_error: The largest difference of two elements; None if it is not known.
        index: Where that is, in the result that differs.
        values: The two elements.
    """

    op: str
    number: int
    line: str
    when: str
    cause: str
    max_error: float | None = None
    index: tuple[int, ...] | None = None
    values: tuple[Any, Any] | None = None

    def __str__(self) -> str:
        where = f" at {self.line}" if self.line else ""
        how = ""
        if self.values is not None:
            one, other = self.values
            how = f": {other} instead of {one} at index {self.index}"
            how += f", and differences up to {self.max_error:.1e}"
        which = "" if self.cause == "result" else f", op {self.number}{where},"
        return f"{self.op}{which} {_CAUSES[self.cause].format(self.when)}{how}"


_OUTSIDE = (
    "from outside of gradtape: from np.random, a clock, the order of a set, or something that the "
    "function has changed"
)
_CAUSES = {
    "op": "makes something else of the same operands {}; compute it inside gt.deterministic()",
    "operand": f"gets another operand {{}}, which comes {_OUTSIDE}",
    "random": (
        "draws other numbers {}; call gt.manual_seed(0) before, or make the generator inside of "
        "the function"
    ),
    "order": f"is another op {{}}: the function decides by something {_OUTSIDE}",
    "result": f"is another one {{}}, though all ops gave the same; it has something {_OUTSIDE}",
}


@dataclass(frozen=True)
class DeterminismReport:
    """The findings of `gt.check_deterministic`.

    Attributes:
        is_deterministic: Whether all runs gave the same bits.
        ops: How many ops, and rules of ops in backward passes, were compared.
        runs: What each of the runs was.
        digest: Stands for all bits of the first run: the same digest, the same bits.
        difference: Where the first run and another one part; None if they agree.
    """

    is_deterministic: bool
    ops: int
    runs: tuple[str, ...]
    digest: str
    difference: FirstDifference | None

    def __str__(self) -> str:
        if self.difference is None:
            return f"deterministic: {self.ops} ops gave the same bits ({', '.join(self.runs)})"
        return f"NOT deterministic: {self.difference}"


class _Watch(Scope):
    """Notes digests of all that ops and rules give in a block; keeps the results of one of them.

    Args:
        keep: The number of the op whose results are kept; None for none.
    """

    kind = "observing"

    def __init__(self, keep: int | None = None) -> None:
        self.steps: list[Step] = []
        self.kept: list[Any] = []
        # The graph and the arguments of the op whose results are kept, if it is compiled.
        self.compiled: tuple[Graph, list[Any]] | None = None
        self._keep = keep
        self._lines: weakref.WeakKeyDictionary[RecordNode, str] = weakref.WeakKeyDictionary()

    def change(self, state: State, before: State | None = None) -> State:
        return state.derive(modes=(self, *state.modes))

    def run(self, op: Op, args: tuple[Any, ...], params: dict[str, Any], proceed: Proceed) -> Any:
        """Run an op, and note what it was given and what it made."""
        given = _digest(args)
        if op.graph is not None and len(self.steps) == self._keep:
            self.compiled = op.graph, [np.array(_array(arg)) for arg in args]
        out = proceed(op, args, params)
        line = user_line()
        results = (out,) if op.outputs == 1 else out
        for result in results:
            self._note_line(result, line)
        name = op.name if op.graph is None else f"the compiled {op.name}"
        self._note(name, line, given, results)
        return out

    def pull(self, record: Record, proceed: Proceeding) -> Sequence[Any]:
        """Apply the rules of a record, and note the cotangents of its parents."""
        read = _digest((proceed.cotangent, proceed.so_far()))
        given: Sequence[Any] = proceed()
        self._note(f"gradient of {record.op.name}", self._lines.get(record, ""), read, given)
        return given

    def push(self, record: Record, given: Sequence[Any], proceed: Proceeding) -> Any:
        """Push tangents along a record, and note the tangent of its result."""
        read = _digest(given)
        tangent = proceed()
        self._note(f"tangent of {record.op.name}", self._lines.get(record, ""), read, [tangent])
        return tangent

    def _note(self, what: str, line: str, given: str, results: Iterable[Any]) -> None:
        results = tuple(results)
        if len(self.steps) == self._keep:
            arrays = [_array(each) for each in _flat(results)]
            self.kept = [np.array(array) for array in arrays if array is not None]
        self.steps.append(Step(what, line, given, _digest(results)))

    def _note_line(self, result: Any, line: str) -> None:
        while isinstance(result, Tensor):
            node = result.record
            if isinstance(node, Record):
                self._lines[node] = line
                if isinstance(node, Output):
                    self._lines[node.parent] = line
            result = result.value


def _flat(values: Iterable[Any]) -> list[Any]:
    """Values and their tangents, with those of an op of several results one by one."""
    parts = [part for one in values for part in (one if isinstance(one, tuple | list) else (one,))]
    return [each for part in parts for each in (part, *tangents_of(part))]


def _array(value: Any) -> Any:
    """The numbers that a value holds; None if it has none."""
    raw = innermost(value, show=True) if isinstance(value, Tensor) else value
    if raw is None or isinstance(raw, Abstract):
        return None
    return np.asarray(raw.get() if hasattr(raw, "get") else raw)


def _digest(values: Iterable[Any]) -> str:
    """A digest of the bits of some values, in containers or not."""
    found = hashlib.sha256()
    for value in _flat(values):
        if (array := _array(value)) is not None:
            found.update(f"{array.shape} {array.dtype}".encode())
            found.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return found.hexdigest()[:32]


# ---- runs ---------------------------------------------------------------------------------------


class _Run(NamedTuple):
    """What a run did.

    Attributes:
        steps: Its ops, in order.
        result: A digest of what the function returned.
        kept: The results of the op that was asked for.
        compiled: Its graph and arguments, if it is compiled.
    """

    steps: list[Step]
    result: str
    kept: list[Any]
    compiled: tuple[Graph, list[Any]] | None = None

    @property
    def digest(self) -> str:
        """Stands for all that was computed."""
        every = "".join(step.what + step.made for step in self.steps)
        return hashlib.sha256((every + self.result).encode()).hexdigest()[:32]


class _Function:
    """A function that can be run again from the same beginning, with copies of its arguments."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._function, self._args = function, args
        # Whatever draws, if it has a seed: without one, every run draws other numbers.
        generator = default_generator()
        self._sources: list[Any] = [generator] if generator.seeded else []
        self._sources += [mode for mode in current().modes if hasattr(mode, "load_state_dict")]
        self._beginning = [source.state_dict() for source in self._sources]

    def run(self, *, alone: bool = False, keep: int | None = None) -> _Run:
        """Run it, `alone` on one thread; `keep` is the number of the op whose results to keep."""
        self.begin()
        watch, args = _Watch(keep), self._copied()
        if not alone:
            result = run_inside(watch, self._function, *args)
        else:
            before = get_num_threads()
            try:
                set_num_threads(1)
                result = on_one_thread(run_inside, watch, self._function, *args)
            finally:
                set_num_threads(before)
        leaves = containers.flatten(result, view=containers.ALL_ARRAYS)[0]
        return _Run(watch.steps, _digest(leaves), watch.kept, watch.compiled)

    def begin(self) -> None:
        """Set what draws back to where it was."""
        for source, state in zip(self._sources, self._beginning, strict=True):
            source.load_state_dict(state)

    def _copied(self) -> tuple[Any, ...]:
        try:
            return copy.deepcopy(self._args)
        except (GradtapeError, TypeError, NotImplementedError):
            return self._args  # recorded tensors, open files


def check_deterministic(
    function: Callable[..., Any],
    /,
    *args: Any,
    runs: int = 2,
    save: str | os.PathLike[str] | None = None,
    against: str | os.PathLike[str] | None = None,
) -> DeterminismReport:
    """Run a function several times, and find the first op whose bits differ.

    It runs some times in the same way and once with one thread, from copies of the arguments and
    the same state of the default generator. Digests of the results of each op are compared, and of
    what the rules of each op give in a backward pass: of ops on tensors, and in transforms. Other
    processes are compared by a file.

    Args:
        function: The function: a step of training, or a whole loop.
        *args: Its arguments.
        runs: How many times to run it in the same way.
        save: A file to write the digests of the first run to.
        against: A file that another process wrote, to compare the first run with.

    Returns:
        A report to be printed: whether all was the same, and if not, the op, its line, and by how
        much its results differ.

    Raises:
        ArgumentError: What was given is not a function, or `runs` is below 1.
        FileFormatError: The file of `against` is something else.

    >>> x = np.ones((300, 200))
    >>> print(gt.check_deterministic(gt.grad(lambda x: np.sum(np.tanh(x))), x))
    deterministic: 4 ops gave the same bits (the first run, in another run, with one thread)
    >>> rng = np.random.default_rng(0)
    >>> report = gt.check_deterministic(lambda x: gt.exp(x) + rng.normal(), gt.ones(3))
    >>> print(report)
    NOT deterministic: add, op 1 at ..., gets another operand in another run, which comes from ...
    """
    if not callable(function):
        raise ArgumentError(
            f"check_deterministic: got {a_type(function)}, expected a function; give it what to "
            "call, and the arguments after that: gt.check_deterministic(step, x)"
        )
    check_least("check_deterministic", 1, runs=runs)
    runner = _Function(function, args)
    other = None if against is None else _read(against)
    try:
        first, names, found = runner.run(), ["the first run"], None
        if other is not None:
            names.append(_OTHER)
            found = _first_difference(first, other, _OTHER)
        for when in [_AGAIN] * (runs - 1) + [_ALONE]:
            if found is not None:
                break
            names.append(when)
            found = _first_difference(first, runner.run(alone=when == _ALONE), when)
            if found is not None and found.cause != "order":
                found = _measured(found, runner)
    finally:
        runner.begin()
    if save is not None:
        _write(save, first)
    return DeterminismReport(found is None, len(first.steps), tuple(names), first.digest, found)


def _first_difference(first: _Run, other: _Run, when: str) -> FirstDifference | None:
    """Where two runs part; None if they do not."""
    for number, (one, two) in enumerate(zip(first.steps, other.steps, strict=False)):
        if one.what == two.what and one.made == two.made:
            continue
        if one.what != two.what:
            cause = "order"
        elif one.what.startswith("random_"):
            cause = "random"
        else:
            cause = "op" if one.given == two.given else "operand"
        return FirstDifference(one.what, number, one.line, when, cause)
    number = min(len(first.steps), len(other.steps))
    if len(first.steps) != len(other.steps):
        last = max(first.steps, other.steps, key=len)[number]
        return FirstDifference(last.what, number, last.line, when, "order")
    same = first.result == other.result
    return None if same else FirstDifference("the result", number, "", when, "result")


def _measured(found: FirstDifference, runner: _Function) -> FirstDifference:
    """The difference with its size, from two more runs that keep the results of the op."""
    ways = (False, found.when == _ALONE)
    first, other = (runner.run(alone=alone, keep=found.number) for alone in ways)
    if found.cause == "op" and first.compiled is not None:
        inside = _inside(*first.compiled, alone=ways[1])
        if inside is not None:
            node, one, two = inside
            name = f"{node.op.name} in {found.op}"
            return _sized(replace(found, op=name, line=node.line), one, two)
    return _sized(found, first.kept, other.kept)


def _inside(
    graph: Graph, arguments: list[Any], *, alone: bool
) -> tuple[Node, list[Any], list[Any]] | None:
    """The first op of a graph that differs when it is run twice, and its results.

    It is run as eager code, whose linear algebra and functions of users are those of compiled code.
    """
    values = dict(zip(graph.inputs, arguments, strict=True))
    for node in graph.nodes:
        operands = [value_of(operand, values) for operand in node.operands]
        run = functools.partial(evaluate, node.op, operands, node.params)
        one, two = run(), on_one_thread(run) if alone else run()
        several = node.op.outputs != 1
        one, two = (list(out) if several else [out] for out in (one, two))
        if _digest(one) != _digest(two):
            return node, one, two
        values.update(zip(node.outputs, one, strict=True))
    return None


def _sized(found: FirstDifference, one: list[Any], two: list[Any]) -> FirstDifference:
    """A difference with the elements that are furthest apart, in the first array that differs."""
    for x, y in zip(map(np.asarray, one), map(np.asarray, two), strict=False):
        if x.shape != y.shape or x.tobytes() == y.tobytes():
            continue
        with np.errstate(all="ignore"):
            error = np.abs(np.subtract(x, y, dtype=np.result_type(x, y, np.float32)))
        places = np.where(np.isnan(error), np.inf, error)
        index = tuple(int(n) for n in np.unravel_index(np.argmax(places), places.shape))
        return replace(
            found, max_error=float(error[index]), index=index, values=(x[index], y[index])
        )
    return found


# ---- files --------------------------------------------------------------------------------------

_FORMAT = "digests of gradtape 1"


def _write(path: str | os.PathLike[str], run: _Run) -> None:
    with replacing(path) as name, open(name, "w", encoding="utf-8") as file:
        json.dump({"format": _FORMAT, "steps": run.steps, "result": run.result}, file)


def _read(path: str | os.PathLike[str]) -> _Run:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        if found["format"] != _FORMAT:
            raise KeyError
        steps = [Step(*map(str, step)) for step in found["steps"]]
        return _Run(steps, str(found["result"]), [])
    except (ValueError, KeyError, TypeError) as error:
        raise FileFormatError(
            f"check_deterministic: {os.fspath(path)!r} is no file that check_deterministic(…, "
            "save=…) has written"
        ) from error
