"""Who records: gradient contexts, `no_grad`, modes. One context variable, changed only by `with`.

A `State` says which gradient context is active, which levels record (`floor`) and which modes wrap
op calls. It is immutable; a `Scope` (`no_grad()`, a gradient context, a profiler) derives a new one
on entry. On exit it removes *its own* change from wherever it now is in the chain of states:
generators may leave their `with` blocks in another order than they were entered, and every block
must undo itself and nothing else.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Protocol

from gradtape.core.decorate import Decorator
from gradtape.core.op import Op
from gradtape.core.record import (
    CONTEXT_LEVEL as CONTEXT_LEVEL,
    LEAF_LEVEL,
    ContextTape,
    Segment,
)
from gradtape.errors import ContextError

# Levels of transforms and tapes are numbered in order of creation, above those of contexts.
_EVERYTHING_RECORDS = -1
_numbers = itertools.count(CONTEXT_LEVEL + 1)


def next_level() -> int:
    """A number greater than that of every level made before."""
    return next(_numbers)


Spans = tuple[tuple[int, int], ...]
Proceed = Callable[[Op, tuple[Any, ...], dict[str, Any]], Any]


class Mode(Protocol):
    """Something that sees every op call of a block: a profiler, autocast, determinism."""

    def run(self, op: Op, args: tuple[Any, ...], params: dict[str, Any], proceed: Proceed) -> Any:
        """Handle one op call; `proceed(op, args, params)` runs it as if the mode were off."""
        ...


def adopted(value: Any) -> Any:
    """A value that a transform is about to take, as the modes in force see it.

    A trace has to know of a tensor from outside before a transform reads what it holds: it says so
    by a method `adopt`.
    """
    for mode in current().modes:
        adopt = getattr(mode, "adopt", None)
        value = value if adopt is None else adopt(value)
    return value


class Recorder(Protocol):
    """What the fast path asks where to record."""

    segment: Segment


class _NoRecorder:
    """The recorder where the active context does not record: no record has its segment."""

    segment = Segment(CONTEXT_LEVEL, "nothing")
    segment.active = False


class State:
    """What is switched on; see the module's docstring. Treat as immutable."""

    __slots__ = ("context", "floor", "modes", "outer", "plain", "recorder", "scope", "spared")

    def __init__(
        self,
        context: GradientContext | None,
        floor: int = _EVERYTHING_RECORDS,
        modes: tuple[Mode, ...] = (),
        outer: State | None = None,
        scope: Scope | None = None,
        spared: Spans = (),
    ) -> None:
        self.context = context
        self.floor = floor
        self.spared = spared
        self.modes = modes
        self.outer = outer
        self.scope = scope
        # Derived for the fast path of every op, which must not ask more than once.
        self.plain = context is not None and not modes
        recording = context is not None and floor < LEAF_LEVEL
        self.recorder: Recorder = context.tape if recording and context else _NoRecorder

    def derive(self, scope: Scope, **changes: Any) -> State:
        """This state with some fields changed, to be undone by `scope`."""
        fields: dict[str, Any] = {"context": self.context, "modes": self.modes}
        fields |= {"floor": self.floor, "spared": self.spared, **changes}
        return State(**fields, outer=self, scope=scope)

    def stops(self, number: int) -> bool:
        """Whether `no_grad` keeps a level from recording: one that was not opened inside of it.

        A generator may have opened some before it was suspended, between the numbers in `spared`.
        """
        return number <= self.floor and not any(low < number < high for low, high in self.spared)

    def inside(self, number: int) -> Spans:
        """Where the levels are that were opened inside, if it is suspended at that number."""
        spans = self.spared if number == self.floor + 1 else (*self.spared, (self.floor, number))
        # Not more than a few are kept apart, however often it is suspended.
        return spans if len(spans) <= 8 else ((spans[0][0], spans[1][1]), *spans[2:])


# A thread or task that has not used gradtape yet finds UNSET: not plain, so that the fast paths
# leave it alone and `current()` gives it the default context of its thread first.
UNSET = State(None)
STATE: ContextVar[State] = ContextVar("gradtape_state", default=UNSET)


def current() -> State:
    """The state of this thread or task."""
    state = STATE.get()
    if state is UNSET:
        state = State(_thread.context)
        STATE.set(state)
    return state


class Scope(Decorator):
    """Base of everything that changes the state for the length of a `with` block."""

    def change(self, state: State, before: State | None = None) -> State:
        """The state inside the block, derived from the one outside.

        `before` is what it was, if a block further out has ended and this one goes on.
        """
        raise NotImplementedError

    def __enter__(self) -> Any:
        STATE.set(self.change(current()))
        return self

    def __exit__(self, *error: object) -> None:
        STATE.set(_without(current(), self))

    def suspend(self) -> tuple[int, list[State]]:
        own, above = _found(current(), self)
        assert own.outer is not None  # a state made by a scope has one outside it
        STATE.set(own.outer)
        return next_level(), [*above, own]

    def resume(self, suspended: tuple[int, list[State]]) -> None:
        number, states = suspended
        state = current()
        for kept in reversed(states):
            assert kept.scope is not None  # likewise
            # What was opened in between belongs to others, as what was opened before.
            before = State(kept.context, next_level(), spared=kept.inside(number))
            state = kept.scope.change(state, before)
        STATE.set(state)


def _without(state: State, scope: Scope) -> State:
    """`state` with the innermost change of `scope` undone and the changes above it kept."""
    own, above = _found(state, scope)
    assert own.outer is not None  # a state made by a scope has one outside it
    result = own.outer
    for kept in reversed(above):
        assert kept.scope is not None  # likewise
        result = kept.scope.change(result, kept)
    return result


def _found(state: State, scope: Scope) -> tuple[State, list[State]]:
    """The innermost state that `scope` made, and those above it, the topmost first."""
    above: list[State] = []
    inner = state
    while inner.scope is not scope:
        if inner.outer is None:
            raise ContextError(
                f"{type(scope).__name__}: this `with` block was entered in another thread or "
                "task; leave it where it was entered"
            )
        above.append(inner)
        inner = inner.outer
    return inner, above


class no_grad(Scope):  # noqa: N801 - used like a function, as in PyTorch
    """Stop recording in a block: nothing opened outside it records the ops inside.

    Transforms started inside (`gt.grad` in the block) work, and forward-mode tangents pass.

    >>> x = gt.ones(3, requires_grad=True)
    >>> with gt.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    def change(self, state: State, before: State | None = None) -> State:
        if before is None:
            return state.derive(self, floor=next_level(), spared=())
        return state.derive(self, floor=before.floor, spared=before.spared)


class enable_grad(Scope):  # noqa: N801
    """Record again in a block inside `no_grad`.

    >>> x = gt.ones(3, requires_grad=True)
    >>> with gt.no_grad(), gt.enable_grad():
    ...     (x * 2).requires_grad
    True
    """

    def change(self, state: State, before: State | None = None) -> State:
        return state.derive(self, floor=_EVERYTHING_RECORDS)


class using_mode(Scope):  # noqa: N801
    """Let `mode` see every op on tensors in a block; inner modes see a call first.

    Args:
        mode: An object with `run(op, args, params, proceed)`; see `gt.core.state.Mode`.

    >>> class Count:
    ...     calls = 0
    ...
    ...     def run(self, op, args, params, proceed):
    ...         self.calls += 1
    ...         return proceed(op, args, params)
    >>> count = Count()
    >>> with gt.using_mode(count):
    ...     _ = gt.exp(gt.ones(3)) + 1.0
    >>> count.calls
    2
    """

    def __init__(self, mode: Mode) -> None:
        self.mode = mode

    def change(self, state: State, before: State | None = None) -> State:
        return state.derive(self, modes=(self.mode, *state.modes))


_context_ids = itertools.count(1)


class GradientContext(Scope):
    """An independent tape: what is recorded in its `with` block belongs to it and ends with it.

    Entering makes it the active context; entering it again (`with ctx:`) from inside another one
    returns to it. Leaving its outermost block, also by an exception, deletes it. As a decorator it
    opens a new context at every call; one that is open is returned to.

    >>> x = gt.ones(3, requires_grad=True)
    >>> with gt.GradientContext():
    ...     gt.compute_gradients(gt.sum(x * 3.0))
    >>> x.grad
    tensor([3., 3., 3.])
    """

    def __init__(self) -> None:
        self.id = self._new_id()
        thread = threading.current_thread()
        where = "" if thread is threading.main_thread() else f" of thread {thread.name}"
        self.tape = ContextTape(f"context {self.id}{where}")
        self._depth = 0
        self._deleted = False

    @staticmethod
    def _new_id() -> int:
        return next(_context_ids)

    def again(self) -> GradientContext:
        return self if self._depth or self._deleted else type(self)()

    def change(self, state: State, before: State | None = None) -> State:
        return state.derive(self, context=self)

    def __enter__(self) -> GradientContext:
        if self._deleted:
            raise ContextError(
                f"context {self.id} was deleted when its `with` block ended; "
                "open a new gt.GradientContext()"
            )
        super().__enter__()
        self._depth += 1
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._depth -= 1
        if self._depth == 0:
            self._delete()

    def _delete(self) -> None:
        self._deleted = True
        self.tape.end("exited")

    def __repr__(self) -> str:
        return f"<gradient context {self.id}, {len(self.tape)} ops recorded since cleared>"


class _DefaultContext(GradientContext):
    """Context 0, there from the start and never deleted."""

    @staticmethod
    def _new_id() -> int:
        return 0

    def again(self) -> GradientContext:
        return _thread.context  # of the thread that calls

    def _delete(self) -> None:
        """Only its tape can be cleared."""


class _Thread(threading.local):
    """The default context of each thread, which the tasks of the thread share."""

    def __init__(self) -> None:
        self.context = _DefaultContext()


_thread = _Thread()


def default_context() -> GradientContext:
    """Return context 0 of this thread; `with gt.default_context():` re-enters it.

    >>> gt.default_context().id
    0
    """
    return _thread.context


def current_context() -> GradientContext:
    """Return the active gradient context.

    >>> with gt.GradientContext() as ctx:
    ...     gt.current_context() is ctx
    True
    """
    context = current().context
    assert context is not None  # only UNSET has none
    return context


def clear_tape() -> None:
    """Clear the tape of the active context.

    >>> x = gt.ones(3, requires_grad=True)
    >>> y = x * 2.0
    >>> gt.clear_tape()
    >>> len(gt.current_context().tape)
    0
    """
    current_context().tape.clear()


def clear_default_context_tape() -> None:
    """Clear the tape of context 0 of this thread, whichever context is active.

    >>> gt.clear_default_context_tape()
    >>> len(gt.default_context().tape)
    0
    """
    _thread.context.tape.clear()
