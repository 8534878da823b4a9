"""Kernels: what computes large raw arrays in place of NumPy.

A kernel strategy either does a task — the forward of an op, or its derivative rules — or leaves it
to the next one; NumPy does what is left. They are in the package `gradtape.kernels`, known here by
what it installs, and loaded by the first large array. Only this module says from which size on an
array is large: ops, rules and walks do not ask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from gradtape.core.aval import Aval, aval_of
from gradtape.core.lazy import lazy
from gradtape.core.lowering import Scan
from gradtape.core.op import Op
from gradtape.core.state import STATE
from gradtape.locks import loading

# From so many elements on, a kernel makes up for what calling it costs.
LARGE = 1 << 15
# Fresh memory for so many bytes takes a millisecond or more.
_HUGE = 1 << 22


def is_large(operands: Sequence[Any]) -> bool:
    """Whether there is a large array among raw values."""
    # Not by `any`, which takes twice as long: every op that is not on a fast path asks.
    for x in operands:  # noqa: SIM110
        if type(x) is np.ndarray and x.size >= LARGE:
            return True
    return False


# ---- strategies -------------------------------------------------------------------------------


class Task(NamedTuple):
    """What there is to compute.

    Attributes:
        op: The op.
        values: Its operands; for its rules the cotangent, the result and the operands, of which
            those that no rule reads are None or an `Aval`.
        params: The parameters of the call.
        wanted: For each operand whether its cotangent is wanted; None for the forward.
    """

    op: Op
    values: Sequence[Any]
    params: dict[str, Any]
    wanted: tuple[bool, ...] | None = None


class Ran(NamedTuple):
    """A task that was done.

    Attributes:
        op: The name of the op.
        gradient: Whether it was its derivative rules.
        operands: What the op was given: shapes and dtypes.
        strategy: The name of the strategy, or "numpy".
    """

    op: str
    gradient: bool
    operands: tuple[Aval | None, ...]
    strategy: str

    def __str__(self) -> str:
        called = f"{self.op}({', '.join(str(x) for x in self.operands if x is not None)})"
        return f"{'gradient of ' if self.gradient else ''}{called}: {self.strategy}"


class Strategy(Protocol):
    """One way to do tasks on large arrays."""

    name: str

    def run(self, task: Task) -> Any:
        """The result of a forward, or a cotangent for each operand; `NotImplemented` to pass.

        Cotangents are those of the op's `careful` rules, None for those that are not wanted.
        """
        ...


class Kernels(Protocol):
    """What `gradtape.kernels` installs."""

    strategies: tuple[Strategy, ...]
    # Calls a function of NumPy, whose arrays get kept memory: `(function, *args, **kwargs)`.
    pooled: Callable[..., Any]

    def copied(self, array: Any) -> Any:
        """A copy of a large array that is not contiguous, its elements in order."""
        ...

    def copy_into(self, target: Any, source: Any) -> bool:
        """Copy an array into one of the same shape and dtype; False to leave it to NumPy."""
        ...

    def threads(self) -> int:
        """How many threads are to be used."""
        ...


class NotLoadedError(Exception):
    """A module is not there yet."""


class Installed:
    """Where the kernels of this process are found.

    Attributes:
        provider: Makes them; None stands for NumPy alone.
    """

    def __init__(self) -> None:
        self.provider: Callable[[], Kernels | None] = lambda: None

    @lazy
    def kernels(self) -> Kernels | None:
        """The kernels, loaded when they are first asked for.

        Raises:
            NotLoadedError: This thread is in the middle of loading something, interrupted by a
                signal handler or the garbage collector.
        """
        with loading() as half_loaded:
            if half_loaded:
                raise NotLoadedError
            return self.provider()

    @property
    def loaded(self) -> Kernels | None:
        """The same if they were needed before; None otherwise."""
        return vars(self).get("kernels")


INSTALLED = Installed()


def installed() -> Kernels | None:
    """The kernels of this process; None for NumPy alone."""
    try:
        return INSTALLED.kernels
    except NotLoadedError:
        return None


# ---- running them -----------------------------------------------------------------------------


def goes_by_parts(op: Op) -> bool:
    """Whether an op has native code and goes by elements, rows or planes."""
    if op.outputs != 1 or op.lower is None:
        return False
    return op.kind in ("elementwise", "planewise") or works_along_axis(op)


def works_along_axis(op: Op) -> bool:
    """Whether an op treats rows along its parameter `axis` alike, and each by itself."""
    return op.kind in ("reduction", "axiswise") or isinstance(op.lower, Scan)


def compute(op: Op, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """The forward of an op on raw values, some of them large arrays."""
    known = op.composed is not None or goes_by_parts(op)
    if known and (kernels := installed()) is not None and _quiet():
        task = Task(op, operands, params)
        for strategy in kernels.strategies:
            out = strategy.run(task)
            if out is not NotImplemented:
                if STATE.get().log is not None:
                    _note(task, strategy.name)
                return out
    if STATE.get().log is not None:
        _note(Task(op, operands, params), "numpy")
    if op.fast is None:
        return pooled(op.evaluate, np, *operands, **params)
    return pooled(op.fast, *operands, **params)


def pull(task: Task) -> Any:
    """The cotangents that rules give for large arrays, or `NotImplemented` to apply the rules."""
    op = task.op
    if type(task.values[0]) is not np.ndarray or not op.vjps or not goes_by_parts(op):
        return NotImplemented
    kernels = installed()
    if kernels is None:
        return NotImplemented
    for strategy in kernels.strategies:
        given = strategy.run(task)
        if given is not NotImplemented:
            if STATE.get().log is not None:
                _note(task, strategy.name)
            return given
    return NotImplemented


def _note(task: Task, strategy: str) -> None:
    """Write down who did a task, for whoever wants to know."""
    values = task.values if task.wanted is None else task.values[2:]
    avals = [x if x is None or isinstance(x, Aval) else aval_of(x) for x in values]
    log = STATE.get().log
    assert log is not None
    log.append(Ran(task.op.name, task.wanted is not None, tuple(avals), strategy))


def _quiet() -> bool:
    """Whether nobody asked NumPy to tell of floating-point errors; native code does not notice."""
    return not {"raise", "call", "log", "print"} & set(np.geterr().values())


def pooled(function: Callable[..., Any], /, *args: Any, **params: Any) -> Any:
    """Call a function of NumPy on large arrays; those it makes get memory that is kept for them.

    If kernels were not needed up to now, they are loaded for this where fresh memory takes long.
    """
    kernels = INSTALLED.loaded
    if kernels is None and any(type(x) is np.ndarray and x.nbytes >= _HUGE for x in args):
        kernels = installed()
    if kernels is None:
        return function(*args, **params)
    return kernels.pooled(function, *args, **params)
