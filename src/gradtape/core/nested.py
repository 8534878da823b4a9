"""Tensors that are not a raw array with a reverse-mode record, and handles on other tensors.

`Nested` is a value that is itself a tensor of an outer level, a forward-mode dual, a batched value:
its record tells which. `View` and `Alias` are handles: what they hold is what their base holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape.core.record import Node, Segment
from gradtape.core.tensor import Tensor, functions
from gradtape.errors import GradtapeError


class Nested(Tensor):
    """A tensor that is not a raw array with a reverse-mode record; the fast paths pass it by."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes, without a batch axis."""
        record = self.record
        shape: tuple[int, ...] = self.value.shape
        return shape if record is None else record.shape(shape)


class Handle(Tensor):
    """A tensor whose elements are those of another one, its base.

    It remembers the value of the base it saw, and reads again when the base has another one:
    comparing identity replaces version numbers.
    """

    __slots__ = ("_seen", "_target", "base")

    def __init__(self, base: Tensor, target: Tensor) -> None:
        self.base = base
        self._seen = base.value
        self._target = target

    def fresh(self) -> Tensor:
        base = self.base
        if base.value is not self._seen:
            target = self.read()
            if target.record is None and base.record is not None:
                return target  # read under no_grad: not to be kept
            self._target = target
            self._seen = base.value
        return self._target

    def read(self) -> Tensor:
        """What the base gives now."""
        raise NotImplementedError

    @property
    def value(self) -> Any:
        """What the elements are now."""
        return self.fresh().value

    @property
    def record(self) -> Node | None:  # type: ignore[override]
        """Where they come from."""
        return self.fresh().record

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self._target.shape

    def set_requires_grad(self, requires_grad: bool = True) -> Tensor:
        """Refused: a view is part of its base, and cannot have a history of its own."""
        raise GradtapeError(
            "set_requires_grad: came a view of another tensor; use it on that one, or on a copy()"
        )


class View(Handle):
    """A basic-index view: writing through it writes the base, as in NumPy."""

    __slots__ = ("index",)

    def __init__(self, base: Tensor, index: Any, target: Tensor) -> None:
        super().__init__(base, target)
        self.index = index

    def read(self) -> Tensor:
        return functions["getitem"](self.base, self.index).fresh()  # type: ignore[no-any-return]

    def rebind(self, other: Tensor) -> None:
        self.base[self.index] = other

    def check_writable(self, what: str) -> None:
        self.base.check_writable(what)


class Alias(Handle):
    """The result of an op that rearranges its input without copying (reshape, transpose).

    NumPy would carry a write to it on to the input; here it is refused.
    """

    __slots__ = ("_again",)

    def __init__(self, base: Tensor, again: Callable[[], Tensor], target: Tensor) -> None:
        super().__init__(base, target)
        self._again = again

    def read(self) -> Tensor:
        return self._again().fresh()

    def check_writable(self, what: str) -> None:
        raise GradtapeError(
            f"{what}: came the result of a reshape, transpose or broadcast, which shares its "
            "elements with another tensor; write to that one, or to a copy()"
        )


def wrap(value: Any, record: Node | None) -> Tensor:
    """A tensor of the class that fits: exactly `Tensor` for a raw array recorded in reverse."""
    value = unshell(value)
    if isinstance(value, Tensor) or not (record is None or isinstance(record.segment, Segment)):
        return Nested(value, record)
    return Tensor(value, record)


def unshell(value: Any) -> Any:
    """The raw array of an untracked tensor, which is only a shell; views brought up to date."""
    if isinstance(value, Tensor):
        value = value.fresh()
        if value.record is None:
            return value.value
    return value
