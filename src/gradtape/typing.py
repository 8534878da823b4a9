"""Names for the types of arguments and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

# Arrays in, arrays out; tensors in, tensors out: a type checker cannot follow which, so both are
# `Any` under a name that tells the reader.
Array: TypeAlias = Any
ArrayLike: TypeAlias = Any
Shape: TypeAlias = int | Sequence[int]
Axis: TypeAlias = int | Sequence[int] | None
