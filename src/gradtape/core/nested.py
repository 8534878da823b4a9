"""Tensors that are not a raw array with a reverse-mode record, and handles on other tensors.

`Nested` is a value that is itself a tensor of an outer level, a forward-mode dual, a batched value,
or recorded by a tape with modes: its record tells which. `View` and `Alias` are handles: they show
what their base holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape.core.level import Node, Segment
from gradtape.core.needed_ops import needed
from gradtape.core.places import composed
from gradtape.core.state import no_grad
from gradtape.core.tensor import Tensor
from gradtape.errors import LeakedTensorError, TapeError, WriteError


class Nested(Tensor):
    """A tensor that is more than a raw array with a reverse-mode record; fast paths pass it by."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes, without a batch axis."""
        record = self.record
        shape: tuple[int, ...] = self.value.shape
        return shape if record is None else record.shape(shape)


class Handle(Tensor):
    """A tensor whose elements are those of another one, its base.

    The base may be a handle itself; `_root` is the tensor they all come from. A handle remembers
    the value of the root it saw, and reads again when the root has another one: comparing identity
    replaces version numbers.
    """

    __slots__ = ("_root", "_seen", "_target", "base")
    _is_view = True

    def __init__(self, base: Tensor, target: Tensor) -> None:
        self.base = base
        self._root: Tensor = base._root if isinstance(base, Handle) else base
        self._seen = self._root.value
        self._target = target

    def fresh(self) -> Tensor:
        if self._root.value is not self._seen and self._root is not self._target:
            stale: list[Handle] = []
            handle: Tensor = self
            while isinstance(handle, Handle) and handle._root.value is not handle._seen:
                stale.append(handle)
                handle = handle.base
            below: Tensor | None = None
            for handle in reversed(stale):
                target = handle.read(handle.base if below is None else below)
                # A value read under no_grad has no history, and must not be kept.
                if target.record is None and handle._root.record is not None:
                    below = target
                else:
                    below, handle._target, handle._seen = None, target, handle._root.value
            if below is not None:
                return below
        return self._target

    def peek(self) -> Tensor:
        try:
            return self.fresh()
        except (TapeError, LeakedTensorError):
            with no_grad():
                return self.fresh()

    def read(self, base: Tensor) -> Tensor:
        """The tensor it stands for, given its base."""
        raise NotImplementedError

    def pass_on(self, other: Tensor) -> tuple[Tensor, Tensor]:
        """The next tensor to rebind, and its new value, if this becomes `other`; equal if done."""
        raise NotImplementedError

    # The root is reached by loops, not recursion: there may be thousands of handles in between.
    def rebind(self, other: Tensor) -> None:
        handle: Tensor = self
        while isinstance(handle, Handle) and other is not handle:
            own = handle.base is handle._target
            handle, other = (handle._target, other) if own else handle.pass_on(other)
        if other is not handle:
            handle.rebind(other)

    def check_writable(self, what: str) -> None:
        handle: Tensor = self
        while isinstance(handle, Handle):
            if isinstance(handle, Alias) and handle.refuses_writes():
                raise WriteError(
                    f"{what}: got a view that cannot be written through to the tensor it is a view "
                    "of; write to a copy()"
                )
            handle = handle.base
        handle.check_writable(what)

    @property
    def value(self) -> Any:
        """The current elements."""
        return self.fresh().value

    @value.setter
    def value(self, value: Any) -> None:
        self._own().value = value

    @property
    def record(self) -> Node | None:
        """The record of the current elements."""
        return self.fresh().record

    @record.setter
    def record(self, record: Node | None) -> None:
        self._own().record = record

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self._target.shape

    def _own(self) -> Tensor:
        """Detach from the base: from now on the handle refers to a tensor of its own, returned."""
        target = self.fresh()
        if self._root is not target:
            target = type(target)(target.value, target.record)
            self.base = self._root = self._target = target
            self._seen = target.value
        return target


class View(Handle):
    """A basic-index view: writing through it writes the base, as in NumPy."""

    __slots__ = ("index",)

    def __init__(self, base: Tensor, index: Any, target: Tensor) -> None:
        super().__init__(base, target)
        self.index = index

    def read(self, base: Tensor) -> Tensor:
        return needed.getitem(base, self.index).fresh()  # type: ignore[no-any-return]

    def pass_on(self, other: Tensor) -> tuple[Tensor, Tensor]:
        base, indices = self.base, [self.index]
        while isinstance(base, View) and base.base is not base._target:
            indices.append(base.index)
            base = base.base
        index = self.index if len(indices) == 1 else composed(base.shape, indices[::-1])
        if index is None:  # no elements
            return base, base
        if isinstance(base, Handle):
            return base, needed.setitem(base, other, index)
        base[index] = other
        return base, base


class Alias(Handle):
    """The result of an op that rearranges its input without copying.

    If it has each element of the base once (reshape, transpose, flip), `back` puts new elements in
    their places in the base, as NumPy's views do. Otherwise (broadcast) it is None, and writes are
    refused.
    """

    __slots__ = ("_again", "_back")

    def __init__(
        self,
        base: Tensor,
        again: Callable[[Tensor], Tensor],
        target: Tensor,
        back: Callable[[Any], Any] | None = None,
    ) -> None:
        super().__init__(base, target)
        self._again = again
        self._back = back

    def read(self, base: Tensor) -> Tensor:
        return self._again(base).fresh()

    def pass_on(self, other: Tensor) -> tuple[Tensor, Tensor]:
        if self._back is not None:
            return self.base, self._back(other.fresh())
        return self._own(), other

    def refuses_writes(self) -> bool:
        """Whether writes to it would not reach its base."""
        return self._back is None and self.base is not self._target


def wrap(value: Any, record: Node | None) -> Tensor:
    """A tensor of the right class: exactly `Tensor` for a raw array recorded in reverse mode."""
    value = unshell(value)
    if isinstance(value, Tensor):
        return Nested(value, record)
    if record is None or (isinstance(record.segment, Segment) and not record.segment.modes):
        return Tensor(value, record)
    return Nested(value, record)


def unshell(value: Any) -> Any:
    """The current content of a tensor: the array if it is untracked, a snapshot if recorded.

    An untracked tensor is only a shell around its array. A recorded one is a handle that its owner
    may give another value later, which records must not see.
    """
    if isinstance(value, Tensor):
        value = value.fresh()
        return value.value if value.record is None else type(value)(value.value, value.record)
    return value
