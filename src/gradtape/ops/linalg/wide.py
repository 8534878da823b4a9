"""Functions of linear algebra, declared such that they take float16 and bfloat16 as well.

LAPACK has no such numbers. A function computes in float32 from beginning to end, and what it gives
is rounded once, to what came; so are its derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from gradtape.core import define
from gradtape.core.in_float32 import in_float32

F = TypeVar("F", bound=Callable[..., Any])


def public(*replaces: Any) -> Callable[[F], F]:
    """As `core.define.public`, for a function that computes in float32 or wider."""
    register = define.public(*replaces)
    return lambda function: register(in_float32(function))


def answers(*replaces: Any) -> Callable[[F], F]:
    """As `core.define.answers`, for a function that computes in float32 or wider."""
    register = define.answers(*replaces)
    return lambda function: register(in_float32(function))
