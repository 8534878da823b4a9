"""Whether an array belongs to one tensor only, so that a write into it is seen by nobody else.

A record, a view or a variable that sees the array refers to it, and CPython counts references. It
does not count all references of a running function, though: Python 3.14 leaves some out. So C code
counts while the array stands in a tuple, where every reference shows. What that comes to for an
array that is alone is found out at import; where other references do not show, nothing is written
in place.
"""

from __future__ import annotations

from sys import getrefcount
from typing import Any

import numpy as np


class _Holder:
    """Stands for a tensor while it is found out what is counted."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _count(held: tuple[Any]) -> int:
    """The references to what a tuple holds: a fixed number more than there are."""
    return next(map(getrefcount, held))


def _count_of_one() -> int | None:
    """What `_count` gives if there is no other reference; None if it does not tell others apart."""
    holder = _Holder(np.empty(1))
    alone = _count((holder.value,))
    another = _Holder(holder.value)
    shared = [_count((holder.value,))]
    another.value = holder.value[:]  # a view refers to its base
    shared.append(_count((holder.value,)))
    another.value = [holder.value]
    shared.append(_count((holder.value,)))
    another.value = None
    variable = holder.value
    shared.append(_count((holder.value,)))
    del variable
    again = _count((holder.value,))
    return alone if again == alone and shared == [alone + 1] * 4 else None


_ALONE = _count_of_one()


def is_alone(tensor: Any) -> bool:
    """Whether nothing but this tensor refers to its array; False where that cannot be told.

    The caller must not hold the array in a variable.
    """
    return _count((tensor.value,)) == _ALONE


def other_references(held: tuple[Any]) -> int | None:
    """How many refer to what a tuple holds besides the tuple and its owner; None for not known."""
    return None if _ALONE is None else _count(held) - _ALONE
