"""Levels, and the nodes that say at which level a tensor is.

Every running transform and every tape is a level of its own; gradient contexts share the lowest
one. A tensor is a value with a node: a leaf, a record of reverse mode, a tangent, a batch axis.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any

from gradtape.core.aval import Aval
from gradtape.core.lines import user_line
from gradtape.core.op import Op
from gradtape.locks import guard

# A segment with more roots than this drops those that are no longer alive.
_FEW_ROOTS = 64
# A reference to each living segment with modes: ops look for them only if there is one.
WITH_MODES: list[weakref.ref[Segment]] = []


class Level:
    """One transformation in progress. An op is handled by the highest level among its operands.

    Attributes:
        lazy: Whether it is a graph that derivatives of its tensors are added to later on.
        modes: Modes that see every op on its tensors, as in a block of their own.
        made_plain: The method that last made plain numbers of one of its tensors, `item()`; None
            if none did.
    """

    __slots__ = ("active", "label", "made_plain", "number")
    lazy = False
    modes: tuple[Any, ...] = ()

    def __init__(self, number: int, label: str) -> None:
        self.number = number
        self.label = label
        self.active = True
        self.made_plain: str | None = None

    def process(self, op: Op, args: list[Any], params: dict[str, Any]) -> Any:
        """Run `op` on operands, at least one of which belongs to this level."""
        raise NotImplementedError(self.label)

    def read(self, tensor: Any, what: str) -> None:
        """Raise if the value of a tensor of this level cannot be read as one array.

        Args:
            tensor: The tensor.
            what: The expression that reads it, for errors: `float(tensor)`.
        """


class Segment(Level):
    """A stretch of reverse-mode recording: one generation of a context's tape, a tape, a `grad`.

    Attributes:
        active: Whether ops on its tensors are recorded.
        walkable: Whether gradients can still be computed.
        strict: Whether using one of its tensors afterwards is an error (a transform's tensor that
            leaked), as opposed to computing without recording (a tape whose `with` block ended).
        idle: Has one item unless a walk is under way that keeps cotangents in the records; other
            walks use a dict meanwhile. In a child process whose parent was walking in another
            thread it never comes back, as the cotangents of that walk stay in the records.
        next_sequence: Numbers its records in the order they are made.
        roots: Weak references to records to free when the segment ends, see `core.release`.
        policy: Decides which results records keep (`core.recomputable.RecordPolicy`); None to keep
            what their rules read.
        modes: Modes that see every op on its tensors while it records (`core.tape_modes`); its
            tensors are `Nested` then, which keeps them off the fast paths.
        hooked: The nodes that have hooks (`core.gradient_hooks`); None if there were never any.
        lines: The line of the user's code for each number, if they are noted.
    """

    __slots__ = (
        "__weakref__", "_most_roots", "_peeks", "hooked", "idle", "lines", "modes",
        "next_sequence", "policy", "roots", "strict", "walkable",
    )  # fmt: skip

    def __init__(
        self,
        number: int,
        label: str,
        *,
        strict: bool = False,
        policy: Any = None,
        modes: tuple[Any, ...] = (),
    ) -> None:
        super().__init__(number, label)
        self.modes = modes
        if modes:
            WITH_MODES.append(weakref.ref(self, WITH_MODES.remove))
        self.walkable = True
        self.strict = strict
        self.policy = policy
        self.hooked: weakref.WeakSet[Node] | None = None
        self.idle = [True]
        self.next_sequence: Callable[[], int] = itertools.count(1).__next__
        self._peeks = 0
        self.roots: list[weakref.ref[Node]] = []
        self._most_roots = _FEW_ROOTS
        self.lines: dict[int, str] = {}

    def note_lines(self) -> None:
        """From now on, note the line of the user's code for each record.

        Every record takes a number when it is made, on all paths, so that is where it is done.
        """
        count, lines = self.next_sequence, self.lines

        def next_sequence() -> int:
            number = count()
            lines[number] = user_line()
            return number

        self.next_sequence = next_sequence

    def remember(self, root: Node) -> None:
        """Note a record whose result users keep for its value: a loss, or the root of a walk."""
        roots, reference = self.roots, weakref.ref(root)
        if roots and roots[-1] is reference:
            return  # a loss that is now walked; it is noted already
        roots.append(reference)
        if len(roots) > self._most_roots:
            self.roots = roots = [root for root in roots if root() is not None]
            self._most_roots = 2 * len(roots) + _FEW_ROOTS

    def count(self) -> int:
        """The number of records made. Counting is free: it is read off the next number."""
        self._peeks += 1
        return max(0, self.next_sequence() - self._peeks)  # threads may count at once


# Below the levels of all transforms and tapes are the leaves of gradient contexts, and the
# records of contexts.
LEAF_LEVEL, CONTEXT_LEVEL = 0, 1
# All leaves of gradient contexts carry this segment: a leaf takes part in every context.
LEAVES = Segment(LEAF_LEVEL, "a gradient context")


def joint_segment(one: Segment, other: Segment) -> Segment | None:
    """The segment that records an op on values of two segments; None if their levels differ.

    A leaf goes with any record of the active context.
    """
    if one is LEAVES:
        one, other = other, one
    return one if other is LEAVES and one.number == CONTEXT_LEVEL else None


class Node:
    """Base of leaves and records: has a segment, and a number greater than its parents'.

    Few have `hooks`; the others do not even have the attribute set (`core.gradient_hooks`).
    """

    __slots__ = ("__weakref__", "hooks", "segment", "sequence")
    hooks: Any
    segment: Any
    sequence: int

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape users see, given the shape of the value (a batched tensor hides an axis)."""
        return shape

    def free(self) -> None:
        """Drop everything it holds; it can no longer be walked."""


class Leaf(Node):
    """A tensor to compute gradients for: `requires_grad`, or an argument of a transform.

    Args:
        segment: The segment its gradients are computed in.
        value: The value of the tensor; only its shape and dtype are kept.

    Attributes:
        grad: The gradient so far, None for none. Zeros are made when they are read: as a rule the
            next backward pass takes their place.
        so_far: Likewise, but None also for zeros that nobody has read. Setting it calls nothing, so
            no signal handler can come in between.
    """

    __slots__ = ("_zeros", "aval", "off", "so_far")

    def __init__(self, segment: Segment, value: Any) -> None:
        self.segment = segment
        self.sequence = 0
        self.aval = Aval(value.shape, value.dtype)
        self.so_far: Any = None
        self._zeros: Callable[[], Any] | None = None
        self.off = False  # whether its tensor is switched off: requires no gradient for now

    @property
    def grad(self) -> Any:
        if self._zeros is not None and self.so_far is None:
            zeros = self._zeros()
            with guard:
                if self.so_far is None:  # otherwise something has been added meanwhile
                    self.so_far = zeros
        return self.so_far

    @grad.setter
    def grad(self, gradient: Any) -> None:
        self._zeros, self.so_far = None, gradient

    def zero(self, zeros: Callable[[], Any]) -> None:
        """Set the gradient to what `zeros` makes, unless it is None."""
        if self.so_far is not None:
            self._zeros, self.so_far = zeros, None
