"""Calls of compiled functions that do not fit the native entry point of the last form.

The entry points check the arguments themselves, faster than Python could, so those of recent forms
are tried in turn. They take keyword arguments in the order of their names, and copies of arrays
that are not contiguous. Tensors are taken apart here, and results that depend on tracked ones are
recorded, as `core.call` would record the op of the graph.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape import containers
from gradtape.core.aval import Aval
from gradtape.core.call import record, recording_segment
from gradtape.core.level import Node, Segment, joint_segment
from gradtape.core.nested import Alias, View
from gradtape.core.op import Op
from gradtape.core.record import General, Output
from gradtape.core.state import STATE, current
from gradtape.core.tensor import Tensor, is_place

# The most forms to try in turn, and the most sets of keywords to keep them for.
_MOST_FORMS = 8
_MOST_NAMES = 16
# Larger arrays are copied where free memory is checked first.
_MOST_BYTES = 1 << 20

ndarray, generic = np.ndarray, np.generic
Entry = Callable[..., Any]
_TENSORS = frozenset({Tensor, View, Alias})
_next_use = itertools.count().__next__


class Flat(NamedTuple):
    """A graph as a function of flat arguments, for tensors.

    Attributes:
        entry: Gives a tuple of all outputs for values of the arguments, or `NotImplemented`.
        op: The graph as an op.
        avals: The outputs; those that are not results are kept for the backward pass.
        reached: For each result, the inputs that its gradient reaches, as bits of a number; 0 for
            one that has no derivatives.
        numbers: For each result, whether it is a Python number if no argument is tracked.
        places: The arguments that are inputs: those that are not static.
        hidden: The arrays from outside, which are inputs too.
        structure: The containers of the results.
    """

    entry: Entry
    op: Op
    avals: tuple[Aval, ...]
    reached: tuple[int, ...]
    numbers: tuple[bool, ...]
    places: tuple[int, ...]
    hidden: tuple[Any, ...]
    structure: containers.Structure

    def untracked(self, outs: Sequence[Any]) -> Any:
        """The results of a call with tensors, none of them tracked."""
        if self.structure is containers.SINGLE and not self.numbers[0]:
            return Tensor(outs[0])
        made = [
            out if number else Tensor(out) for out, number in zip(outs, self.numbers, strict=True)
        ]
        return containers.unflatten(self.structure, made)

    def recorded(
        self,
        segment: Segment,
        parents: Sequence[Node | None],
        values: Sequence[Any],
        outs: tuple[Any, ...],
    ) -> Any:
        """The results of a call with some tracked arguments.

        Args:
            segment: The segment to record in.
            parents: The node of each argument; None if it is not tracked.
            values: The arguments without records.
            outs: The outputs.
        """
        above = [parents[n] for n in self.places]
        inputs = (*[values[n] for n in self.places], *self.hidden)
        tracked = sum([1 << n for n, parent in enumerate(above) if parent is not None])
        above += [None] * len(self.hidden)
        if segment.policy is not None:
            recorded = record(segment, self.op, above, inputs, outs, {})
            nodes = [getattr(out, "record", None) for out in recorded]
        else:
            node = General(self.op, segment, tuple(above), inputs, outs, {}, self.avals)
            nodes = [Output(node, n) for n in range(len(self.reached))]
        made = [
            # Results that depend on nothing tracked are not recorded, as in eager code.
            Tensor(outs[n], nodes[n] if reached & tracked else None)
            for n, reached in enumerate(self.reached)
        ]
        return (
            made[0]
            if self.structure is containers.SINGLE
            else containers.unflatten(self.structure, made)
        )


class Form:
    """A form of arguments with its entry points; None for those not needed so far.

    Attributes:
        call: The `__call__` of the compiled function after a call of this form.
        entry: The same, but returns `NotImplemented` for arguments of another form.
        untracked: For tensors that are not tracked.
        recording: For tracked ones.
        used: A number greater than that of forms used before it.
        key: Its key in the compiled function.
        numbers: Which leaves of the arguments were tensors that are numbers, not places.
    """

    __slots__ = ("call", "entry", "key", "numbers", "recording", "untracked", "used")

    def __init__(self) -> None:
        self.used = _next_use()
        self.key: Any = None
        self.numbers: frozenset[int] = frozenset()
        self.call: Entry | None = None
        self.entry: Entry | None = None
        self.untracked: Flat | None = None
        self.recording: Flat | None = None

    def numbers_at(self, places: Sequence[int]) -> list[int]:
        """Those of the places of leaves at which there were numbers."""
        return [place for n, place in enumerate(places) if n in self.numbers]

    def __bool__(self) -> bool:
        return bool(self.entry or self.untracked or self.recording)


class RecentForms:
    """The recently used forms, by the names of the keyword arguments."""

    def __init__(self) -> None:
        # Other threads call meanwhile: the tuples are replaced, never changed.
        self._forms: dict[tuple[str, ...], tuple[Form, ...]] = {}

    def add(self, names: tuple[str, ...], form: Form) -> None:
        """Try a form first from now on."""
        others = [other for other in self._forms.get(names, ()) if other is not form]
        if len(self._forms) >= _MOST_NAMES and names not in self._forms:
            self._forms = {}
        self._forms[names] = (form, *others[: _MOST_FORMS - 1])

    def in_order(self) -> list[Form]:
        """All forms, the most recently used one last."""
        # Another thread may add one meanwhile: a copy is made in one go.
        found = {form for forms in self._forms.copy().values() for form in forms}
        return sorted(found, key=lambda form: form.used)

    def retain(self, known: set[Form]) -> None:
        """Forget forms that are not known any more: others have replaced them."""
        forms = self._forms.copy().items()
        self._forms = {names: tuple([f for f in some if f in known]) for names, some in forms}

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Entry | None]:
        """The result of a call, or `NotImplemented`; and the entry for the next call, if known."""
        names = tuple(kwargs)
        forms = self._forms.get(names)
        if forms is None:
            return NotImplemented, None
        if kwargs:
            args = (*args, *[kwargs[name] for name in sorted(names)])
        if not _TENSORS.isdisjoint(map(type, args)):
            return _with_tensors(forms, args), None
        given: Sequence[Any] | None = args
        while given is not None:
            for form in forms:
                if form.entry is not None:
                    out = form.entry(*given)
                    if out is not NotImplemented:
                        form.used = _next_use()
                        return out, form.call
            given = _ordered(given)
        return NotImplemented, None


def _ordered(values: Sequence[Any]) -> list[Any] | None:
    """Contiguous, aligned copies of small arrays, for native code; None if all are so already."""
    made: list[Any] | None = None
    for n, value in enumerate(values):
        if type(value) is ndarray:
            flags = value.flags
            if not (flags.c_contiguous and flags.aligned) and value.nbytes <= _MOST_BYTES:
                made = made or list(values)
                made[n] = value.copy()
    return made


def _with_tensors(forms: tuple[Form, ...], args: Sequence[Any]) -> Any:
    """The results for tensors of the lowest level; `NotImplemented` for others."""
    state = STATE.get()
    if not state.plain:
        return NotImplemented
    values: list[Any] = []
    arrays: list[Any] = []
    parents: list[Node | None] = []
    numbers: list[int] = []
    segment: Any = None
    for place, arg in enumerate(args):
        value, array, parent = arg, arg, None
        if isinstance(arg, Tensor):
            tensor = arg if type(arg) is Tensor else arg.fresh()
            value = array = tensor.value
            parent = tensor.record
            if type(value) is not ndarray:
                # The entry points do not know NumPy scalars held by tensors.
                if not isinstance(value, generic):
                    return NotImplemented
                array = np.asarray(value)
            if type(tensor) is not Tensor:
                return NotImplemented
            if parent is not None and not value.shape and not is_place(arg):
                numbers.append(place)
            if parent is not None and parent.segment is not segment:
                segment = _common(segment, parent.segment)
                if segment is None:
                    return NotImplemented
        values.append(value)
        arrays.append(array)
        parents.append(parent)
    if segment is not None and segment is not state.recorder.segment:
        # Under `no_grad` tracked tensors are like others.
        segment = None if current().stops(segment.number) else segment
    given: Sequence[Any] | None = arrays
    while given is not None:
        for form in forms:
            flat = form.untracked if segment is None else form.recording
            if flat is None:
                continue
            if (numbers or form.numbers) and numbers != form.numbers_at(flat.places):
                continue
            outs = flat.entry(*given)
            if outs is NotImplemented:
                continue
            form.used = _next_use()
            if segment is None:
                return flat.untracked(outs)
            where = segment
            if where is not state.recorder.segment:
                where = recording_segment(segment, flat.op)
            if where is None:
                made = [Tensor(outs[n]) for n in range(len(flat.reached))]
                return containers.unflatten(flat.structure, made)
            return flat.recorded(where, parents, values, outs)
        given = _ordered(given)
    return NotImplemented


def _common(one: Any, other: Any) -> Any:
    """The segment for tensors of two segments; None if `core.call` has to decide."""
    return other if one is None else joint_segment(one, other)
