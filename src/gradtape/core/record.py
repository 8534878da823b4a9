"""Records: a reverse-mode level's memory of the ops it saw.

A record is owned by the tensors that came out of it and never refers to them, so history dies with
the results that need it. It has

- `op`, `parents` (the nodes of the inputs, None for one that is not tracked), `inputs` and `out`
  (the values that rules read; otherwise an `Aval`, or None), `params`, and `aval`, the shape and
  dtype of the result;
- `pull`, which gives cotangents to its parents in reverse mode;
- `push`, which takes tangents from them in forward mode;
- `free`, which drops everything it holds, and `keeps_large`, whether that is worth doing before the
  walk ends.

A tensor is just a value with a node, so an input can be rebuilt as `wrap(value, parent)`.

`Unary` and `Binary` are made by the fast paths: every tracked input has the shape and the dtype of
the result (or the op takes parameters, and one input), so that the bare rules `op.flat_vjps` hold.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from gradtape.core.aval import Aval, aval_of
from gradtape.core.broadcasting import fit
from gradtape.core.copies import copied
from gradtape.core.evaluate import (
    lifted,
    lowered,
    pull as pull_op,
    push as push_op,
    sum_of_terms,
)
from gradtape.core.finite import is_finite, is_plain_factor
from gradtape.core.kernels import is_large
from gradtape.core.level import Leaf, Node, Segment
from gradtape.core.nested import wrap
from gradtape.core.op import Op
from gradtape.core.small_floats import computes_wide
from gradtape.core.state import STATE, WATCHING
from gradtape.errors import NotDifferentiableError, TapeError

Tangents = Mapping[Node, Any]


class Taker:
    """Takes the cotangents that records give: the interface of a walk, see `core.walk`.

    Attributes:
        careful: Whether rules have to look for 0·∞ at values that are not finite.
        rebuild: Whether rules are given tensors with their records, and are recorded themselves.
        unsure: Whether a rule was applied that has a careful form, which might give something else.
        give: Adds to the cotangent of a node; returns whether it is the first.
        give_part: Adds to a part of the cotangent of a node, in place; False if that is not
            possible: `(node, whole, index, ct)`, with the `Aval` of the whole.
        give_output: Adds to the cotangent of one output of an op with several.
        owned: The nodes whose cotangents are arrays of the walk's own; None if that is not known.
        wanted: The nodes whose cotangents were requested, and must not be written to.
        watched: Whether modes see what rules do with raw arrays.
        make_restorer: Makes what finds the values of records that can be recomputed.
    """

    __slots__ = (
        "_restorer", "careful", "give", "give_output", "give_part", "make_restorer", "owned",
        "rebuild", "unsure", "wanted", "watched",
    )  # fmt: skip

    def __init__(
        self,
        give: Callable[[Node, Any], bool],
        give_part: Callable[[Node, Any, Any, Any], bool],
        give_output: Callable[[General, int, Any], None],
        owned: set[Node] | None = None,
        wanted: Collection[Node] = (),
        *,
        careful: bool = False,
        rebuild: bool = False,
        watched: bool = False,
        make_restorer: Callable[[], Any] | None = None,
    ) -> None:
        self.give = give
        self.give_part = give_part
        self.give_output = give_output
        self.owned = owned
        self.wanted = wanted
        self.careful = careful
        self.rebuild = rebuild
        self.watched = watched
        self.make_restorer = make_restorer
        self._restorer: Any = None
        self.unsure = False

    @property
    def restorer(self) -> Any:
        """Finds the values of records that can be recomputed, see `core.restore`."""
        if self._restorer is None:  # most walks need none
            assert self.make_restorer is not None
            self._restorer = self.make_restorer()
        return self._restorer


class Pusher:
    """What a push along records tells them, and they tell it: see `autodiff.pushforward`.

    Attributes:
        careful: Whether rules have to look for 0·∞ at values that are not finite.
        unsure: Whether a rule was applied that has a careful form, which might give something else.
        restorer: Finds the values of records that can be recomputed, see `core.restore`.
    """

    __slots__ = ("careful", "restorer", "unsure")

    def __init__(self, restorer: Any, *, careful: bool) -> None:
        self.restorer = restorer
        self.careful = careful
        self.unsure = False


class Record(Node):
    """A record whose cotangent the walk keeps in `ct` until it gets there."""

    __slots__ = ("ct", "op", "out")
    op: Op
    out: Any
    ct: Any
    parents: Any
    inputs: Any
    params: Any

    def pull(self, ct: Any, taker: Taker) -> None:
        """Give cotangents to the parents."""
        self.give(ct, taker, self.inputs, self.out)

    def give(self, ct: Any, taker: Taker, inputs: Any, out: Any) -> None:
        """Give cotangents to the parents, with these values of inputs and result."""
        op, parents = self.op, self.parents
        rules = op.flat_vjps
        if op.careful_flat is not None:
            if taker.careful:
                rules = op.careful_flat
            else:
                taker.unsure = True
        if taker.rebuild:
            inputs = tuple(map(_rebuilt, inputs, parents))
            out = _rebuilt(out, self)
        elif taker.watched:
            ct, out, inputs = lifted(ct), lifted(out), lifted(inputs)
        params = self.params or {}
        for rule, parent in zip(rules, parents, strict=True):
            result = None if parent is None else rule(ct, out, *inputs, **params)
            if result is not None:
                taker.give(parent, lowered(result) if taker.watched else result)

    def push(self, tangents: Tangents, pusher: Pusher) -> Any:
        """The tangent of the result, given those of some nodes; None if no parent has one."""
        given = tuple([None if node is None else tangents.get(node) for node in self.parents])
        if all(tangent is None for tangent in given):
            return None
        return self.pushed(given, pusher, self.inputs, self.out)

    def pushed(self, given: tuple[Any, ...], pusher: Pusher, inputs: Any, out: Any) -> Any:
        """The tangent of the result, given those of the inputs and the values."""
        op = self.op
        if op.jvp is None:
            raise NotDifferentiableError(f"{op.name}: has no forward-mode derivative")
        if not op.partials:
            return self.pushed_by_op(given, pusher, inputs, out)
        # The op's own rule would ask for shapes the fast path did not keep; here all are the same.
        if WATCHING and STATE.get().watched:
            given, out, inputs = lifted(given), lifted(out), lifted(inputs)
        total = sum_of_terms(op.partials, given, out, inputs)
        if op.careful_flat is not None:
            if not pusher.careful:
                pusher.unsure = True
            elif total is not None and not is_finite(total):
                total = sum_of_terms(op.careful_flat, given, out, inputs)
        return lowered(total)

    def pushed_by_op(self, given: tuple[Any, ...], pusher: Pusher, inputs: Any, out: Any) -> Any:
        """The same by the op's own rule for tangents."""
        if self.op.careful_jvp is not None and not pusher.careful:
            pusher.unsure = True
        params = self.params or {}
        return push_op(self.op, given, out, inputs, params, careful=pusher.careful)

    @property
    def aval(self) -> Any:
        """Shape and dtype of the result; a tuple of them for an op with several results."""
        return find_aval(self, {})

    def own_aval(self, known: Mapping[Node, Any]) -> Any:
        """The same, if it can be told from what is kept and the avals of parents; else None."""
        raise NotImplementedError

    def read_values(self, restorer: Callable[[], Any]) -> tuple[tuple[Any, ...], Any]:
        """The operands and the result that its rules read; others are None or an `Aval`.

        Args:
            restorer: Returns what finds the values of records that can be recomputed.
        """
        return getattr(self, "inputs", ()), self.out

    def keeps_large(self) -> bool:
        """Whether it keeps a large array that may live only for it, so that it is worth freeing."""
        return False

    def free(self) -> None:
        self.out = None
        self.op = _RELEASED


def find_aval(record: Node, known: dict[Node, Any]) -> Any:
    """Shape and dtype of the result of a record.

    Args:
        record: A record, or a leaf.
        known: The avals of nodes that are known already; those found on the way are added.
    """
    found = known.get(record)
    if found is None and isinstance(record, Record):
        found = record.own_aval(known)
    if found is not None:  # mostly
        known[record] = found
        return found
    stack: list[Any] = [record]
    while stack:
        node = stack[-1]
        if node not in known:
            found = node.own_aval(known) if isinstance(node, Record) else node.aval
            if found is None:  # that of a parent is needed first
                stack += [parent for parent in node.parents if parent and parent not in known]
                continue
            known[node] = found
        stack.pop()
    return known[record]


def _flat_aval(record: Unary | Binary, known: Mapping[Node, Any]) -> Any:
    """The aval of a record of the fast paths, which keep no more than what rules read."""
    op, inputs = record.op, record.inputs
    if op.partials:  # all have one shape, but for numbers
        for value in (record.out, *inputs):
            if hasattr(value, "shape"):
                return Aval(value.shape, value.dtype)
        return next((known.get(parent) for parent in record.parents if parent), None)
    avals: list[Any] = []
    for value, parent in zip(inputs, record.parents, strict=True):
        avals.append(known.get(parent) if value is None and parent else aval_of(value))
    return None if None in avals else op.infer(*avals, **record.params or {})


def _rebuilt(value: Any, node: Node | None) -> Any:
    """The tensor that a kept value came from: a tensor is a value with a node."""
    return value if node is None or not hasattr(value, "size") else wrap(value, node)


class Unary(Record):
    """One input; `x` and `out` are kept if a rule reads them."""

    __slots__ = ("params", "parent", "x")

    def __init__(
        self, op: Op, segment: Segment, parent: Node | None, x: Any, out: Any, params: Any = None
    ) -> None:
        self.op = op
        self.segment = segment
        self.sequence = segment.next_sequence()
        self.parent = parent
        self.x = x
        self.out = out
        self.params = params
        self.ct = None

    @property
    def parents(self) -> tuple[Node | None]:
        return (self.parent,)

    @property
    def inputs(self) -> tuple[Any]:
        return (self.x,)

    def own_aval(self, known: Mapping[Node, Any]) -> Any:
        return _flat_aval(self, known)

    def pull(self, ct: Any, taker: Taker) -> None:
        if taker.rebuild or taker.watched:
            super().pull(ct, taker)
            return
        op = self.op
        rule = op.flat_vjps[0]
        if op.careful_flat is not None:
            if taker.careful:
                rule = op.careful_flat[0]
            else:
                taker.unsure = True
        result = rule(ct, self.out, self.x, **self.params or {})
        if result is not None and self.parent is not None:
            taker.give(self.parent, result)

    def free(self) -> None:
        self.op = _RELEASED
        self.parent = self.x = self.out = None


class Binary(Record):
    """Two inputs, at least one of them tracked, without parameters."""

    __slots__ = ("parent", "parent2", "x", "y")
    params = None

    def __init__(
        self,
        op: Op,
        segment: Segment,
        parent: Node | None,
        parent2: Node | None,
        x: Any,
        y: Any,
        out: Any,
    ) -> None:
        self.op = op
        self.segment = segment
        self.sequence = segment.next_sequence()
        self.parent = parent
        self.parent2 = parent2
        self.x = x
        self.y = y
        self.out = out
        self.ct = None

    @property
    def parents(self) -> tuple[Node | None, Node | None]:
        return self.parent, self.parent2

    @property
    def inputs(self) -> tuple[Any, Any]:
        return self.x, self.y

    def own_aval(self, known: Mapping[Node, Any]) -> Any:
        return _flat_aval(self, known)

    def pull(self, ct: Any, taker: Taker) -> None:
        if taker.rebuild or taker.watched:
            super().pull(ct, taker)
            return
        op, out, x, y = self.op, self.out, self.x, self.y
        rule, rule2 = op.flat_vjps
        if op.careful_flat is not None:
            read = y if x is None else x if y is None else None
            if out is not None or not is_plain_factor(read):
                if not taker.careful:
                    taker.unsure = True
                else:
                    rule, rule2 = op.careful_flat
        if self.parent is not None:
            result = rule(ct, out, x, y)
            if result is not None:
                taker.give(self.parent, result)
        if self.parent2 is not None:
            result = rule2(ct, out, x, y)
            if result is not None:
                taker.give(self.parent2, result)

    def free(self) -> None:
        self.op = _RELEASED
        self.parent = self.parent2 = self.x = self.y = self.out = None


class LargeBinary(Binary):
    """A `Binary` record that keeps a large array, besides those of leaves, which users hold."""

    __slots__ = ()

    def keeps_large(self) -> bool:
        return True


class General(Record):
    """Any number of inputs, outputs and parameters. With several outputs `ct` is a list."""

    __slots__ = ("avals", "inputs", "params", "parents")

    def __init__(
        self,
        op: Op,
        segment: Segment,
        parents: tuple[Node | None, ...],
        inputs: tuple[Any, ...],
        out: Any,
        params: dict[str, Any],
        avals: Any,
    ) -> None:
        self.op = op
        self.segment = segment
        self.sequence = segment.next_sequence()
        self.parents = parents
        self.inputs = inputs
        self.out = out
        self.params = params
        self.avals = avals
        self.ct = None

    def give(self, ct: Any, taker: Taker, inputs: Any, out: Any) -> None:
        op, parents = self.op, self.parents
        if op.outputs != 1:
            ct = self._whole(ct)
        if taker.rebuild:
            inputs = tuple(map(_rebuilt, inputs, parents))
            out = self._rebuilt_out(out)
        wanted = tuple([parent is not None for parent in parents])
        given, unsure = pull_op(
            op,
            wanted,
            ct,
            out,
            inputs,
            self.params,
            taker.careful,
            raw=not taker.rebuild,
            watched=taker.watched,
        )
        if unsure:
            taker.unsure = True
        for parent, result, value in zip(parents, given, inputs, strict=True):
            if parent is not None and result is not None:
                taker.give(parent, fit(result, value))

    def own_aval(self, known: Mapping[Node, Any]) -> Any:
        return aval_of(self.out) if self.avals is None else self.avals

    def _whole(self, ct: Any) -> tuple[Any, ...]:
        """The cotangents of all outputs; zeros for missing ones, unless the rule handles None."""
        if getattr(self.op.vjp_all, "takes_none", False):
            return tuple(ct)
        return tuple(
            [
                np.zeros(aval.shape, aval.dtype) if part is None else part
                for part, aval in zip(ct, self.avals, strict=True)
            ]
        )

    def _rebuilt_out(self, out: Any) -> Any:
        if self.op.outputs == 1:
            return _rebuilt(out, self)
        return tuple([_rebuilt(value, Output(self, i)) for i, value in enumerate(out)])

    def pushed(self, given: tuple[Any, ...], pusher: Pusher, inputs: Any, out: Any) -> Any:
        op = self.op
        if op.jvp is None:
            raise NotDifferentiableError(f"{op.name}: has no forward-mode derivative")
        tangent = self.pushed_by_op(given, pusher, inputs, out)
        if tangent is None or not computes_wide(op, given):
            return tangent
        if op.outputs == 1:
            return fit(tangent, out)
        return tuple(
            [
                None if part is None else fit(part, aval)
                for part, aval in zip(tangent, self.avals, strict=True)
            ]
        )

    def keeps_large(self) -> bool:
        if is_large((self.out,) if self.op.outputs == 1 else self.out):
            return True
        # Users hold the arrays of leaves.
        for x, parent in zip(self.inputs, self.parents, strict=True):
            if type(parent) is not Leaf and is_large((x,)):
                return True
        return False

    def free(self) -> None:
        super().free()
        self.parents = self.inputs = ()


class Assigning(General):
    """`x[index] = value` done in place: its cotangent is passed on in place too, O(part)."""

    __slots__ = ()

    def pull(self, ct: Any, taker: Taker) -> None:
        owned = taker.owned
        if owned is None or type(ct) is not np.ndarray or not self.parents:
            super().pull(ct, taker)
            return
        index, (whole, part) = self.params["index"], self.parents
        taken = ct[index]
        if part is not None:
            taker.give(part, np.array(taken))
        # No cotangent flows into a tensor that was overwritten as a whole.
        if whole is not None and taken.size < ct.size:
            if self not in owned or self in taker.wanted:
                ct = copied(ct)
            ct[index] = 0
            if taker.give(whole, ct):
                owned.add(whole)


class Output(Record):
    """Output number `index` of the record of an op with several outputs."""

    __slots__ = ("index", "parent")

    def __init__(self, parent: General, index: int) -> None:
        self.op = parent.op
        self.segment = parent.segment
        self.sequence = parent.segment.next_sequence()
        self.parent = parent
        self.index = index
        self.out = None
        self.ct = None

    @property
    def parents(self) -> tuple[General]:
        return (self.parent,)

    def pull(self, ct: Any, taker: Taker) -> None:
        taker.give_output(self.parent, self.index, ct)

    def push(self, tangents: Tangents, pusher: Pusher) -> Any:
        parts = tangents.get(self.parent)
        return None if parts is None else parts[self.index]

    def own_aval(self, known: Mapping[Node, Any]) -> Any:
        return self.parent.avals[self.index]

    def free(self) -> None:
        super().free()
        self.parent.free()


class Indexing(Record):
    """`x[index]`: its cotangent is added into that part of the cotangent of `x`, in place."""

    __slots__ = ("index", "parent", "x")

    def __init__(self, op: Op, segment: Segment, parent: Node, x: Aval, index: Any) -> None:
        self.op = op
        self.segment = segment
        self.sequence = segment.next_sequence()
        self.parent: Any = parent
        self.x: Any = x
        self.index = index
        self.out = None
        self.ct = None

    @property
    def parents(self) -> tuple[Node]:
        return (self.parent,)

    @property
    def inputs(self) -> tuple[Aval]:
        return (self.x,)

    @property
    def params(self) -> dict[str, Any]:
        return {"index": self.index}

    def own_aval(self, known: Mapping[Node, Any]) -> Any:
        return self.op.infer(self.x, index=self.index)

    def pull(self, ct: Any, taker: Taker) -> None:
        give_part(self, ct, taker, self.parent, self.x, self.index)

    def free(self) -> None:
        super().free()
        self.parent = self.x = None


def give_part(record: Record, ct: Any, taker: Taker, parent: Node, x: Aval, index: Any) -> None:
    """Give the cotangent of `x[index]` to `x`, whose other parts get nothing."""
    if not taker.give_part(parent, x, index, ct):
        (rule,) = record.op.flat_vjps
        taker.give(parent, rule(ct, None, x, index=index))


class Constant(Record):
    """A value lifted to a level where it depends on nothing: its gradient is 0 there."""

    __slots__ = ()
    parents = inputs = ()

    def __init__(self, segment: Segment, aval: Aval) -> None:
        self.segment = segment
        self.sequence = segment.next_sequence()
        self.out = aval
        self.ct = None

    def own_aval(self, known: Mapping[Node, Any]) -> Any:
        return self.out

    def pull(self, ct: Any, taker: Taker) -> None:
        """Do nothing: it has no parents."""


class _Released:
    """Stands in for the op of a freed record: raises when a walk reaches it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise TapeError(
            "gradient: this part of the tape was released by a backward pass with release=True; "
            "leave that out to walk it again"
        )


_RELEASED: Any = _Released()
