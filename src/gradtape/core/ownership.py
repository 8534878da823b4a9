"""Whether an array belongs to one tensor only, so that no one else sees a write into it.

A record, a view or a variable that sees the array refers to it, and CPython counts references. It
does not count all references of a running function, though: Python 3.14 leaves some out. So C code
counts while the array is in a tuple, where every reference shows. The count for an array that
nothing else refers to is measured at import; if other references do not show, nothing is written
in place.
"""

from __future__ import annotations

from sys import getrefcount
from typing import Any

import numpy as np


class _Holder:
    """Stands in for a tensor while reference counts are measured."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _count(held: tuple[Any]) -> int:
    """The reference count of a tuple's item: higher than the true number by a constant."""
    return next(map(getrefcount, held))


def _count_of_one() -> int | None:
    """`_count` of an array without other references; None if it does not show all of them."""
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
    """Whether only this tensor refers to its array; False where that cannot be known.

    The caller must not hold the array in a variable.
    """
    return _count((tensor.value,)) == _ALONE


def are_alone(arrays: list[Any]) -> bool:
    """Whether only their tensors, and this list, refer to arrays."""
    return set(map(getrefcount, arrays)) == {_ALONE}


def other_references(held: tuple[Any]) -> int | None:
    """References to a tuple's item besides those of the tuple and its owner; None if unknown."""
    return None if _ALONE is None else _count(held) - _ALONE
