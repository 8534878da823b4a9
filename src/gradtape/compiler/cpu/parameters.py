"""The table that the function of a kernel is given: addresses of arrays, and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gradtape.compiler.kernel import Buffer, Failure
from gradtape.core.scalar import Scalar


class Parameters(NamedTuple):
    """The contents of the table that a function is given.

    Attributes:
        slots: The position of the address of each buffer.
        status: The position of the address of the status.
        codes: The most the status can be after a condition did not hold: a number, or the position
            of one.
    """

    slots: Mapping[Buffer, int]
    status: int
    codes: Mapping[Failure, int | Scalar]
