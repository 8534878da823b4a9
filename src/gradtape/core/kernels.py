"""Kernels, which compute large raw arrays in place of NumPy.

A kernel strategy either does a task — the forward of an op, or its derivative rules — or leaves it
to the next one; NumPy does the rest. Strategies are in the package `gradtape.kernels`, which
installs them here and is loaded by the first large array. Only this module says from which size on
an array is large: ops, rules and walks do not ask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from gradtape.core.aval import Aval, aval_of
from gradtape.core.lazy import lazy
from gradtape.core.lowering import Scan
from gradtape.core.op import Op
from gradtape.core.promotion import is_half
from gradtape.core.state import STATE
from gradtape.locks import loading

# Arrays with at least this many elements are worth calling a kernel for.
LARGE = 1 << 15
# Allocating this many bytes takes a millisecond or more.
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
    """Something to compute on large arrays: the forward of an op, or its derivative rules.

    Attributes:
        op: The op.
        values: Its operands; for its rules the cotangent, the result and the operands, with None or
            an `Aval` for those that no rule reads.
        params: The parameters of the call.
        wanted: For each operand, whether its cotangent is wanted; None for the forward.
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
        operands: The shapes and dtypes the op was given.
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
    """One way to do tasks on large arrays.

    Attributes:
        name: Its name, for `gt.explain_call`.
        for_elements: Whether it is only for ops that go by elements or rows, none of which is heavy
            on small arrays.
    """

    name: str
    for_elements: bool

    def run(self, task: Task) -> Any:
        """The result of a forward, or a cotangent for each operand; `NotImplemented` to pass.

        Cotangents are those of the op's `careful` rules, None for those that are not wanted.
        """
        ...


class Kernels(Protocol):
    """The interface that `gradtape.kernels` installs."""

    strategies: tuple[Strategy, ...]
    # Calls a NumPy function whose arrays get pooled memory: `(function, *args, **kwargs)`.
    pooled: Callable[..., Any]

    def copied(self, array: Any) -> Any:
        """A C-contiguous copy of a large array that is not contiguous."""
        ...

    def converted(self, array: Any, dtype: np.dtype[Any]) -> Any:
        """A large array of 16-bit floats in float32, or back; None to leave it to NumPy."""
        ...

    def copy_into(self, target: Any, source: Any) -> bool:
        """Copy an array into one of the same shape and dtype; False to leave it to NumPy."""
        ...

    def threads(self) -> int:
        """The number of threads to use."""
        ...


class NotLoadedError(Exception):
    """A module is not there yet."""


class Installed:
    """Holds the kernels of this process.

    Attributes:
        provider: Makes them; None stands for NumPy alone.
    """

    def __init__(self) -> None:
        self.provider: Callable[[], Kernels | None] = lambda: None

    @lazy
    def kernels(self) -> Kernels | None:
        """The kernels, loaded when they are first needed.

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
        """The kernels if they have been loaded already; None otherwise."""
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
    """Whether an op has native code and works by elements, rows or planes."""
    if op.outputs != 1 or op.lower is None:
        return False
    return op.kind in ("elementwise", "planewise") or works_along_axis(op)


def has_kernel(op: Op) -> bool:
    """Whether there may be native code for an op by itself."""
    return op.composed is not None or op.heavy is not None or goes_by_parts(op)


def works_along_axis(op: Op) -> bool:
    """Whether an op treats every row along its parameter `axis` alike and separately."""
    return op.kind in ("reduction", "axiswise") or isinstance(op.lower, Scan)


def compute(op: Op, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """The forward of an op on raw values, some of them large arrays."""
    task = Task(op, operands, params)
    if has_kernel(op) and numpy_is_quiet():
        out = _run(task)
        if out is not NotImplemented:
            return out
    if STATE.get().log is not None:
        _note(task, "numpy")
    if op.fast is None:
        return pooled(op.evaluate, np, *operands, **params)
    return pooled(op.fast, *operands, **params)


def by_kernels(op: Op, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """The forward of an op on arrays of 16-bit floats, some of them large, or `NotImplemented`."""
    arrays = all(type(x) is np.ndarray and is_half(x.dtype) for x in operands)
    return _run(Task(op, operands, params)) if arrays and goes_by_parts(op) else NotImplemented


def pull(task: Task) -> Any:
    """The cotangents that rules give for large arrays, or `NotImplemented` to apply the rules."""
    op = task.op
    if type(task.values[0]) is np.ndarray and op.vjps and goes_by_parts(op):
        return _run(task)
    return NotImplemented


def _run(task: Task) -> Any:
    """The result of the first strategy that takes a task; `NotImplemented` if none does."""
    kernels = installed()
    if kernels is None:
        return NotImplemented
    heavy = task.op.heavy is not None
    for strategy in kernels.strategies:
        if heavy and strategy.for_elements:
            continue
        out = strategy.run(task)
        if out is not NotImplemented:
            if STATE.get().log is not None:
                _note(task, strategy.name)
            return out
    return NotImplemented


def _note(task: Task, strategy: str) -> None:
    """Log which strategy did a task; a log is kept."""
    values = task.values if task.wanted is None else task.values[2:]
    avals = [x if x is None or isinstance(x, Aval) else aval_of(x) for x in values]
    log = STATE.get().log
    assert log is not None
    log.append(Ran(task.op.name, task.wanted is not None, tuple(avals), strategy))


def numpy_is_quiet() -> bool:
    """Whether NumPy is to ignore floating-point errors, which native code does not notice."""
    return {"raise", "call", "log", "print"}.isdisjoint(np.geterr().values())


def pooled(function: Callable[..., Any], /, *args: Any, **params: Any) -> Any:
    """Call a NumPy function on large arrays; the arrays it makes get pooled memory.

    If kernels have not been needed so far, they are loaded only where fresh memory takes long.
    """
    kernels = INSTALLED.loaded
    if kernels is None and any(type(x) is np.ndarray and x.nbytes >= _HUGE for x in args):
        kernels = installed()
    if kernels is None:
        return function(*args, **params)
    return kernels.pooled(function, *args, **params)
