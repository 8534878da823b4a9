"""The recording state: contexts, `no_grad`, modes. One context variable, set only by `with`.

A `State` says which gradient context is active, which levels record (`floor`) and which modes wrap
op calls. It is immutable; a `Scope` (`no_grad()`, a gradient context, a profiler) derives a new one
on entry. On exit it removes *its own* change from wherever it now is in the chain of states:
generators may leave their `with` blocks in another order than they were entered, and every block
must undo only itself.

Ctrl-C may come after any call, even in the middle of entering or leaving a block, which Python then
never leaves. `run_inside` restores the state by a `finally` before which no interrupt can come. For
users' own blocks, see `Entry`: a block whose frame is gone is found and undone when the state is
next read.
"""

from __future__ import annotations

import functools
import itertools
import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from gradtape.core.decorate import Decorator, F
from gradtape.core.level import CONTEXT_LEVEL as CONTEXT_LEVEL, LEAF_LEVEL, WITH_MODES, Segment
from gradtape.core.lines import later_warning
from gradtape.core.op import Op
from gradtape.core.release import end
from gradtape.errors import ArgumentError, ContextError, UnusedScopeWarning, a_type

# Levels of transforms and tapes are numbered in order of creation, above those of contexts.
_EVERYTHING_RECORDS = -1
_numbers = itertools.count(CONTEXT_LEVEL + 1)
T = TypeVar("T")


def next_level() -> int:
    """A number greater than that of every level made before."""
    return next(_numbers)


Spans = tuple[tuple[int, int], ...]
Proceed = Callable[[Op, tuple[Any, ...], dict[str, Any]], Any]


class Mode(Protocol):
    """Something that sees every op on tensors in a block: a profiler, autocast, determinism.

    It sees the ops of the forward and of the backward pass, and those that push tangents. It does
    not see the ops it calls itself.

    A mode with a method `pull(record, proceed)` sees the backward pass record by record in place of
    op by op: `proceed()` applies the rules of one record, by the kernels that are used without
    modes, and returns the cotangents of its parents so far. If it has a method
    `push(record, given, proceed)` as well, it sees likewise how tangents are pushed along records:
    `given` are those of the parents, None for none, and `proceed()` returns that of the result.
    Both get a `Proceeding`, which also tells what goes into the rules.

    A mode with a method `passes(op, args)` is left out of the calls for which that returns True,
    which saves most of what it costs.

    Attributes:
        kind: "observing" if it only looks: it sees each call of a compiled function as one op,
            whose `graph` says what is in it. "rewriting" if it changes what is computed: it is
            applied while a function is traced, and functions are compiled for it; separately for
            each value of its attribute `key`, if it has one.
        family: Of modes of one family only the innermost is in force. Of the others, there may be
            any number.
        rules: False if it does not see the ops that derivative rules are made of.
    """

    kind: str

    def run(self, op: Op, args: tuple[Any, ...], params: dict[str, Any], proceed: Proceed) -> Any:
        """Handle one op call; `proceed(op, args, params)` runs it as if the mode were off."""
        ...


class Proceeding:
    """Applies the rules of one record for a mode, when it is called.

    Attributes:
        read: Returns the operands and the result that the rules read; None or an `Aval` for others.
        cotangent: In reverse mode, that of the record; a list for an op with several results.
        so_far: In reverse mode, returns the cotangents of the parents that are there already.
    """

    __slots__ = ("_apply", "cotangent", "read", "so_far")

    def __init__(
        self,
        apply: Callable[[], Any],
        read: Callable[[], tuple[tuple[Any, ...], Any]],
        cotangent: Any = None,
        so_far: Callable[[], list[Any]] = list,
    ) -> None:
        self._apply = apply
        self.read, self.cotangent, self.so_far = read, cotangent, so_far

    def __call__(self) -> Any:
        return self._apply()

    def seen(self, see: Callable[[Proceeding], Any]) -> Proceeding:
        """The same as the next mode gets it, with a mode that sees it in between."""
        apply = functools.partial(see, self)
        return Proceeding(apply, self.read, self.cotangent, self.so_far)


# A reference to each living state that has a mode of the user's. Native entry points of compiled
# functions look whether it is empty: a list, of which they can read the length.
WATCHING: list[weakref.ref[Any]] = []


def mode_keys(rewriting: tuple[Mode, ...]) -> tuple[Any, ...]:
    """The part of a cache key that stands for rewriting modes: their `key`, or the modes."""
    return tuple([getattr(mode, "key", mode) for mode in rewriting])


def in_force(modes: tuple[Mode, ...]) -> tuple[Mode, ...]:
    """The modes, the innermost first, without those that one of their family takes the place of."""
    found: list[Mode] = []
    families: set[Any] = set()
    for mode in modes:
        family = getattr(mode, "family", None)
        if family is None or family not in families:
            families.add(family)
            found.append(mode)
    return tuple(found)


def rules_apart(state: State) -> seen_by | None:
    """A scope for derivative rules, without the modes that do not see them; None if it is in force.

    Modes of tapes are not looked for in rules: they apply where the ops of users do.
    """
    modes, hidden = (
        tuple([mode for mode in some if getattr(mode, "rules", True)])
        for some in (state.modes, state.hidden)
    )
    if len(modes) + len(hidden) == len(state.modes) + len(state.hidden):
        tapes = [segment for known in WITH_MODES if (segment := known()) is not None]
        if all(segment.number <= state.inner for segment in tapes):
            return None
    return seen_by(modes, hidden)


def adopted(value: Any) -> Any:
    """A value as the modes in force see it, for a transform that is about to take it.

    A trace has to know of a tensor from outside before a transform reads its value, and takes it by
    a method `adopt`.
    """
    for mode in current().modes:
        adopt = getattr(mode, "adopt", None)
        value = value if adopt is None else adopt(value)
    return value


def values_read(array: Any) -> None:
    """Tell the modes in force that the elements of an array decide what is computed.

    A trace then checks at each call that they are still the same, by its method `depend_on`.
    """
    for mode in current().modes:
        depend_on = getattr(mode, "depend_on", None)
        if depend_on is not None:
            depend_on(array)


def cotangent_given(by: str, value: Any, before: Any = None) -> None:
    """Tell the modes in force of a cotangent that comes from the user, by their `note_cotangent`.

    Args:
        by: What it was given by, with a verb, for messages: "output_gradients have".
        value: The cotangent.
        before: The one that it takes the place of, if there is one.
    """
    for mode in current().modes:
        note = getattr(mode, "note_cotangent", None)
        if note is not None:
            note(by, value, before)


class Recorder(Protocol):
    """Tells the fast path where to record."""

    segment: Segment


class _NoRecorder:
    """The recorder where the active context does not record: no record has its segment."""

    segment = Segment(CONTEXT_LEVEL, "nothing")
    segment.active = False


class State:
    """The settings in force; see the module's docstring. Treat as immutable."""

    __slots__ = (
        "context", "entry", "floor", "hidden", "inner", "log", "modes", "observed", "outer",
        "plain", "policy", "pullers", "recorder", "rewriting", "spared", "transposing", "watched",
    )  # fmt: skip

    def __init__(
        self,
        context: GradientContext | None,
        floor: int = _EVERYTHING_RECORDS,
        modes: tuple[Mode, ...] = (),
        outer: State | None = None,
        spared: Spans = (),
        log: list[Any] | None = None,
        hidden: tuple[Mode, ...] = (),
        policy: Any = None,
        inner: int = _EVERYTHING_RECORDS,
        transposing: tuple[Any, ...] = (),
    ) -> None:
        self.context = context
        self.floor = floor
        self.spared = spared
        self.modes = modes
        self.outer = outer
        # The list in which kernels log what they did (`core.kernels`), if one is kept.
        self.log = log
        # Decides which results records keep, a `core.recomputable.RecordPolicy`; None to keep what
        # their rules read, or what the tape's own policy says.
        self.policy = policy
        # Modes that have seen an op and do not see how it is carried out, see `unseen`.
        self.hidden = hidden
        # Modes of tapes up to this level have seen the op or rule that is being carried out.
        self.inner = inner
        # Calls whose forward rules are being transposed, see `transposing`; the outermost first.
        self.transposing = transposing
        # The modes that functions are compiled for; whether modes see what is computed, unless a
        # trace does; those that see a record's rules as one; and whether others see their ops.
        self.rewriting = tuple([mode for mode in modes if mode.kind == "rewriting"])
        self.observed = bool(modes) and all(mode.kind != "tracing" for mode in modes)
        pulling = [mode for mode in modes if hasattr(mode, "pull")] if self.observed else ()
        self.pullers: tuple[Any, ...] = tuple(pulling)
        self.watched = self.observed and len(self.pullers) < len(modes)
        # The block that made it; None for the state that a thread or task begins with.
        self.entry: Entry | None = None
        # Derived here because the fast path of every op can afford only one check.
        self.plain = context is not None and not modes and policy is None
        recording = context is not None and context.checkpoint is None and floor < LEAF_LEVEL
        self.recorder: Recorder = context.tape if recording and context else _NoRecorder

    def derive(self, **changes: Any) -> State:
        """This state with some fields changed."""
        fields: dict[str, Any] = {"context": self.context, "modes": self.modes}
        fields |= {"floor": self.floor, "spared": self.spared, "log": self.log}
        fields |= {"hidden": self.hidden, "policy": self.policy, "inner": self.inner}
        fields |= {"transposing": self.transposing, **changes}
        watching = any(mode.kind != "tracing" for mode in (*fields["modes"], *fields["hidden"]))
        return (_WatchingState if watching else State)(**fields, outer=self)

    def stops(self, number: int) -> bool:
        """Whether `no_grad` keeps a level from recording: one that was not opened inside it.

        A generator may have opened some before it was suspended, between the numbers in `spared`.
        """
        return number <= self.floor and not any(low < number < high for low, high in self.spared)

    def inside(self, number: int) -> Spans:
        """The ranges of levels opened inside, if it is suspended at that number."""
        spans = self.spared if number == self.floor + 1 else (*self.spared, (self.floor, number))
        # Only a few ranges are kept apart, however often it is suspended.
        return spans if len(spans) <= 8 else ((spans[0][0], spans[1][1]), *spans[2:])


class _WatchingState(State):
    """A state with users' modes; as long as it lives, compiled functions look for modes.

    It may live longer than its block, in a task that was started there.
    """

    __slots__ = ("__weakref__",)

    def __init__(self, *args: Any, **fields: Any) -> None:
        super().__init__(*args, **fields)
        # Taken out by C code, in which no interrupt is lost as it would be in a `__del__`.
        WATCHING.append(weakref.ref(self, WATCHING.remove))


# A thread or task that has not used gradtape yet finds UNSET: not plain, so that the fast paths
# leave it alone and `current()` gives it the default context of its thread first.
UNSET = State(None)
STATE: ContextVar[State] = ContextVar("gradtape_state", default=UNSET)


def current() -> State:
    """The state of this thread or task, without blocks that were abandoned."""
    state = STATE.get()
    if state.entry is not None:
        if state.entry.abandoned():
            state = _without_abandoned(state)
    elif state is UNSET:
        state = State(_thread.context)
        STATE.set(state)
    return state


class Entry:
    """One use of a scope. It is abandoned if its block is gone and was never left.

    A block is the function that a `with` statement calls at its end; only the frame of the
    statement refers to it. So an interrupt inside `__enter__` or `__exit__` is noticed: Python has
    dropped the frame, and with it the block, but the state is still there.
    """

    __slots__ = ("__weakref__", "_block", "closed", "entered", "scope")

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.entered = self.closed = False
        self._block: weakref.ref[Block] | None = None

    def block(self) -> Block:
        """The function that leaves it; in C, as traceback frames would keep a Python one alive."""
        block = functools.partial(_leave, self.scope, self)
        self._block = weakref.ref(block)
        return block

    def abandoned(self) -> bool:
        """Whether it can no longer be left. An entry without a block lasts until it is left."""
        return self._block is not None and self._block() is None

    def close(self) -> None:
        """Note that it was left: tasks that inherited its state keep it."""
        self.closed = True
        self._block = None


Block = functools.partial[None]


class _Exit:
    """`__exit__` of a scope: each lookup gives the block of a new entry.

    Python looks it up before it calls `__enter__`, and keeps it on the frame until the block ends.
    Looked up in the class, as `contextlib.ExitStack` does, it is a function.
    """

    def __get__(self, scope: Scope | None, owner: type) -> Callable[..., None]:
        if scope is None:
            return lambda scope, *error: _leave(scope, None, *error)
        entry = Entry(scope)
        _thread.entering = weakref.ref(entry)
        return entry.block()


class Scope(Decorator):
    """Base of everything that changes the state for the length of a `with` block."""

    def change(self, state: State, before: State | None = None) -> State:
        """The state inside the block, derived from the one outside.

        `before` is the former state inside, if a block further out has ended and this one goes on.
        """
        raise NotImplementedError

    def entering(self, entry: Entry) -> None:
        """Called before the state changes; if it raises, the block is not entered."""

    def left(self, entry: Entry, *error: object) -> None:
        """Called before the state is restored; without `error` if the block was abandoned.

        It may be called again for the same entry if it was interrupted.
        """

    def __enter__(self) -> Any:
        entry = _new_entry(self)
        self.entering(entry)
        state = self.change(current())
        state.entry = entry
        STATE.set(state)
        return self

    if TYPE_CHECKING:

        def __exit__(self, *error: object) -> None: ...
    else:
        __exit__ = _Exit()

    def suspend(self) -> tuple[int, list[State]]:
        own, above = current(), []
        while own.entry is None or own.entry.scope is not self:
            assert own.outer is not None  # it was entered by the generator that is suspended
            above.append(own)
            own = own.outer
        assert own.outer is not None  # a state made by a scope has one outside it
        STATE.set(own.outer)
        return next_level(), [*above, own]

    def resume(self, suspended: tuple[int, list[State]]) -> None:
        number, states = suspended
        state = current()
        for kept in reversed(states):
            assert kept.entry is not None  # likewise
            # Levels opened in between belong to others, like those opened before.
            before = State(kept.context, next_level(), spared=kept.inside(number))
            state = kept.entry.scope.change(state, before)
            state.entry = kept.entry
        STATE.set(state)


def _new_entry(scope: Scope) -> Entry:
    """The entry that a `with` statement of this thread has just made for `scope`."""
    entry = None if _thread.entering is None else _thread.entering()
    if entry is None or entry.scope is not scope or entry.entered:
        entry = Entry(scope)  # entered by a call of __enter__, as ExitStack does
    entry.entered = True
    return entry


def _leave(scope: Scope, entry: Entry | None, *error: object) -> None:
    """Undo the change of an entry; if it was not entered, of the innermost entry of `scope`."""
    if entry is not None and not entry.entered:
        entry = None
    state = current()
    inner: State | None = state
    while inner is not None:
        found = inner.entry
        if found is not None and (found is entry if entry is not None else found.scope is scope):
            break
        inner = inner.outer
    else:
        raise ContextError(
            f"{type(scope).__name__}: this `with` block was entered in another thread or "
            "task; leave it where it was entered"
        )
    assert found is not None
    rest = _without(state, found)
    try:
        scope.left(found, *error)
    except Exception:
        STATE.set(rest)
        raise
    # An interrupt before this leaves an abandoned block behind, which is undone later.
    STATE.set(rest)
    found.close()


def run_inside(scope: Scope, function: Callable[..., T], *args: Any) -> T:
    """Call a function with the change of `scope`, which is undone whatever happens."""
    rest = current()
    inside = scope.change(rest)
    inside.entry = entry = Entry(scope)
    # Interrupts are raised after calls. So none can come between the end of the body and the last
    # statement here, and `rest` is restored.
    try:
        STATE.set(inside)
        result = function(*args)
    finally:
        try:
            now = STATE.get()
            if now is not inside:
                rest = _without(now, entry)
        finally:
            STATE.set(rest)
    return result


def _without(state: State, entry: Entry) -> State:
    """`state` with the change of `entry` undone and the changes above it kept."""
    above: list[State] = []
    inner: State | None = state
    while inner is not None and inner.entry is not entry:
        above.append(inner)
        inner = inner.outer
    if inner is None:
        return state  # interrupted before it was entered
    assert inner.outer is not None  # a state made by a scope has one outside it
    result = inner.outer
    for kept in reversed(above):
        assert kept.entry is not None  # likewise
        result = kept.entry.scope.change(result, kept)
        result.entry = kept.entry
    return result


def _without_abandoned(state: State) -> State:
    """Undo the innermost blocks whose frames are gone."""
    while (entry := state.entry) is not None and entry.abandoned():
        assert state.outer is not None  # a state made by a scope has one outside it
        entry.scope.left(entry)
        state = state.outer
        STATE.set(state)
    return state


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
            return state.derive(floor=next_level(), spared=())
        return state.derive(floor=before.floor, spared=before.spared)


class enable_grad(Scope):  # noqa: N801
    """Record again in a block inside `no_grad`.

    >>> x = gt.ones(3, requires_grad=True)
    >>> with gt.no_grad(), gt.enable_grad():
    ...     (x * 2).requires_grad
    True
    """

    def change(self, state: State, before: State | None = None) -> State:
        return state.derive(floor=_EVERYTHING_RECORDS)


class set_grad_enabled(Scope):  # noqa: N801
    """Record in a block, or not: `gt.enable_grad()` or `gt.no_grad()`, as a flag says.

    It needs `with`, or a function to decorate. A call alone, PyTorch's other form, changes nothing
    and warns of that.

    Args:
        mode: Whether to record.

    Raises:
        ArgumentError: The mode is not True or False.

    >>> x = gt.ones(3, requires_grad=True)
    >>> with gt.set_grad_enabled(False):
    ...     (x * 2).requires_grad
    False
    """

    def __init__(self, mode: bool) -> None:
        self._mode = checked_flag("set_grad_enabled", "mode", mode)
        self._scope = enable_grad() if self._mode else no_grad()
        self._warn: Callable[[], None] | None = later_warning(
            f"gt.set_grad_enabled({self._mode}): got a call without `with`, which changes nothing; "
            f"write `with gt.set_grad_enabled({self._mode}):`",
            UnusedScopeWarning,
        )

    def change(self, state: State, before: State | None = None) -> State:
        return self._scope.change(state, before)

    def entering(self, entry: Entry) -> None:
        self._warn = None

    def __call__(self, function: F) -> F:
        self._warn = None
        return super().__call__(function)

    def __repr__(self) -> str:
        return f"<set_grad_enabled({self._mode}): in force only in a `with` block>"

    def __del__(self) -> None:
        warn = getattr(self, "_warn", None)  # one that was refused has none
        if warn is not None:
            warn()


def checked_flag(name: str, option: str, value: Any) -> bool:
    """A flag of a function as True or False.

    Raises:
        ArgumentError: It is something else.
    """
    if not isinstance(value, bool | np.bool_):
        got = repr(value) if isinstance(value, str | int | float) else a_type(value)
        raise ArgumentError(f"{name}: got {got} for {option}, expected True or False")
    return bool(value)


class using_mode(Scope):  # noqa: N801
    """Let `mode` see every op on tensors in a block; inner modes see a call first.

    Args:
        mode: An object with `kind`, "observing" or "rewriting", and `run(op, args, params,
            proceed)`; see `gt.core.state.Mode`.

    Raises:
        ArgumentError: The mode does not say which kind it is, or has no method `run`.

    >>> class Count:
    ...     kind, calls = "observing", 0
    ...
    ...     def run(self, op, args, params, proceed):
    ...         self.calls += 1 if op.graph is None else len(op.graph.nodes)
    ...         return proceed(op, args, params)
    >>> count = Count()
    >>> with gt.using_mode(count):
    ...     _ = gt.exp(gt.ones(3)) + 1.0
    >>> count.calls
    2
    """

    def __init__(self, mode: Mode) -> None:
        kind = getattr(mode, "kind", None)
        if kind not in ("observing", "rewriting"):
            raise ArgumentError(
                f"using_mode: got a mode of kind {kind!r}, expected one that has "
                'kind = "observing" (it looks at calls) or kind = "rewriting" (it changes them)'
            )
        if isinstance(mode, type) or not callable(getattr(mode, "run", None)):
            got = f"the class {mode.__name__}" if isinstance(mode, type) else a_type(mode)
            raise ArgumentError(
                f"using_mode: got {got}, expected an object with a method run(op, args, params, "
                "proceed)"
            )
        self.mode = mode

    def change(self, state: State, before: State | None = None) -> State:
        return state.derive(modes=in_force((self.mode, *state.modes)))


class keeping(Scope):  # noqa: N801
    """Let a policy decide in a block which results records keep.

    Args:
        policy: A `core.recomputable.RecordPolicy`; None to keep what rules read.
    """

    def __init__(self, policy: Any) -> None:
        self._policy = policy

    def change(self, state: State, before: State | None = None) -> State:
        return state.derive(policy=self._policy)


class transposing(Scope):  # noqa: N801
    """Say of which calls the forward rules are being transposed, so that a rule can be stopped.

    Args:
        calls: The name, shapes and dtypes of each, the outermost first.
    """

    def __init__(self, calls: tuple[Any, ...]) -> None:
        self._calls = calls

    def change(self, state: State, before: State | None = None) -> State:
        return state.derive(transposing=self._calls)


class recording_from(Scope):  # noqa: N801
    """Record from a level on, as it was when something was first computed.

    Args:
        floor: The attributes `floor` and `spared` of the state at that time.
    """

    def __init__(self, floor: tuple[int, Spans]) -> None:
        self._floor, self._spared = floor

    def change(self, state: State, before: State | None = None) -> State:
        return state.derive(floor=self._floor, spared=self._spared)


class seen_by(Scope):  # noqa: N801
    """Let certain modes see what happens, and no others.

    Args:
        modes: The modes in force inside; the first one sees a call first.
        hidden: Other modes, which still see derivatives.
        inner: Up to which level modes of tapes see nothing; that of all there are, if not given.
    """

    def __init__(
        self, modes: tuple[Mode, ...], hidden: tuple[Mode, ...] = (), inner: int | None = None
    ) -> None:
        self._modes = modes
        self._hidden = hidden
        self._inner = next_level() if inner is None else inner

    def change(self, state: State, before: State | None = None) -> State:
        return state.derive(modes=self._modes, hidden=self._hidden, inner=self._inner)


def unseen(state: State) -> seen_by | None:
    """A scope that hides how an op is carried out from modes that saw the op; None without any."""
    if not (state.observed or state.rewriting):
        return None
    tracing = tuple([mode for mode in state.modes if mode.kind == "tracing"])
    return seen_by(tracing, hidden=state.modes)


class Checkpointing(Protocol):
    """Says what tapes keep: a `gt.CheckpointConfig`."""

    def policy(self) -> Any:
        """A `core.recomputable.RecordPolicy` for one tape; None to keep what rules read."""
        ...


class TapeConfig(Protocol):
    """Says what modes a tape has: a `gt.AmpConfig`."""

    @property
    def configures(self) -> str:
        """The option of `gt.GradientTape` that it is for."""
        ...

    def tape_mode(self) -> Mode | None:
        """A mode for one tape; None if it changes nothing."""
        ...


class ContextTape:
    """The tape of a gradient context; `len(tape)` is the number of records since it was cleared.

    It does not hold the records. They belong to the tensors that came out of them, so forgetting to
    clear does not leak; clearing makes every record made so far refuse to be walked.
    """

    __slots__ = ("_checkpoint", "_label", "segment")

    def __init__(self, label: str, checkpoint: Checkpointing | None = None) -> None:
        self._label = label
        self._checkpoint = checkpoint
        self.segment = self._new_segment()

    def _new_segment(self) -> Segment:
        policy = None if self._checkpoint is None else self._checkpoint.policy()
        return Segment(CONTEXT_LEVEL, self._label, policy=policy)

    def __len__(self) -> int:
        return self.segment.count()

    def __repr__(self) -> str:
        return f"<tape of {self._label}, {len(self)} ops recorded since it was cleared>"

    @property
    def checkpoint_report(self) -> Any:
        """What it kept and computed again since it was cleared, if it has a checkpoint config."""
        return None if self.segment.policy is None else self.segment.policy.report

    def clear(self) -> None:
        """Start afresh: records made so far can no longer be walked or built upon."""
        self.end("cleared")
        self.segment = self._new_segment()

    def end(self, why: str) -> None:
        """Close the current segment for good; `why` is for the errors of its tensors."""
        end((self.segment,), f"{self._label} ({why})")


_context_ids = itertools.count(1)


class GradientContext(Scope):
    """An independent tape: what is recorded in its `with` block belongs to it and ends with it.

    Entering makes it the active context; entering it again (`with ctx:`) from inside another one
    returns to it. Leaving its outermost block, also by an exception, deletes it. As a decorator it
    opens a new context at every call; one that is open is returned to.

    Args:
        checkpoint: What its tape keeps for the backward pass, a `gt.CheckpointConfig`; the rest is
            computed again. Everything that rules read if not given.

    >>> x = gt.ones(3, requires_grad=True)
    >>> with gt.GradientContext():
    ...     gt.compute_gradients(gt.sum(x * 3.0))
    >>> x.grad
    tensor([3., 3., 3.])
    """

    def __init__(self, *, checkpoint: Checkpointing | None = None) -> None:
        if not (checkpoint is None or callable(getattr(checkpoint, "policy", None))):
            raise ArgumentError(
                f"GradientContext: got {a_type(checkpoint)} for checkpoint, expected a "
                "gt.CheckpointConfig"
            )
        self.id = self._new_id()
        self.checkpoint = checkpoint
        thread = threading.current_thread()
        where = "" if thread is threading.main_thread() else f" of thread {thread.name}"
        self.tape = ContextTape(f"context {self.id}{where}", checkpoint)
        self._entries: list[Entry] = []
        self._deleted = False

    @staticmethod
    def _new_id() -> int:
        return next(_context_ids)

    def again(self) -> GradientContext:
        again = self._entries or self._deleted
        return self if again else type(self)(checkpoint=self.checkpoint)

    def change(self, state: State, before: State | None = None) -> State:
        return state.derive(context=self)

    def entering(self, entry: Entry) -> None:
        if self._deleted:
            raise ContextError(
                f"context {self.id} was deleted when its `with` block ended; "
                "open a new gt.GradientContext()"
            )
        self._entries.append(entry)

    def left(self, entry: Entry, *error: object) -> None:
        self._entries = [
            other
            for other in self._entries
            if not (other is entry or other.closed or other.abandoned())
        ]
        if not self._entries:
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
        """Do nothing: only its tape can be cleared."""


class _Thread(threading.local):
    """State of one thread: the default context, which its tasks share, and what it is entering."""

    def __init__(self) -> None:
        self.context = _DefaultContext()
        self.entering: weakref.ref[Entry] | None = None


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
