"""Which results checkpointed functions keep, by the name of the op or by size.

A policy is a function of the name of an op and the abstract value of its result, which says whether
to keep the result. Write your own, or take one of these.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gradtape.core.aval import nbytes as nbytes_of
from gradtape.errors import ArgumentError

# Whether to keep a result, given the name of the op and the `Aval` of the result, or a tuple of
# them for an op with several.
Keeps = Callable[[str, Any], bool]


def keep_ops(*names: str) -> Keeps:
    """Keep the results of some ops, and compute others again.

    Args:
        *names: Names of ops, such as "matmul", as `print(gt.jit(f).graph(x))` shows them.

    Raises:
        ArgumentError: A name is not a string.

    >>> gt.keep_ops("matmul", "conv2d")("matmul", None)
    True
    """
    return functools.partial(_is_among, _names("keep_ops", names))


def drop_ops(*names: str) -> Keeps:
    """Compute the results of some ops again, and keep others.

    Args:
        *names: Names of ops.

    Raises:
        ArgumentError: A name is not a string.

    >>> gt.drop_ops("gelu", "softmax")("gelu", None)
    False
    """
    return functools.partial(_is_not_among, _names("drop_ops", names))


def keep_up_to(nbytes: int) -> Keeps:
    """Keep results up to a size, and compute larger ones again.

    Args:
        nbytes: The size in bytes; that of all results, for an op with several.

    Raises:
        ArgumentError: It is negative, or not a number.

    >>> keeps = gt.keep_up_to(1000)
    >>> keeps("sum", gt.zeros(10)), keeps("exp", gt.zeros(1000))
    (True, False)
    """
    check_bytes("keep_up_to", nbytes)
    return functools.partial(_is_up_to, nbytes)


def check_bytes(function: str, number: object) -> None:
    """Raise if something is not a number of bytes.

    Raises:
        ArgumentError: It is not.
    """
    if isinstance(number, bool) or not isinstance(number, int | float) or not number >= 0:
        raise ArgumentError(f"{function}: got {number!r}, expected a number of bytes, 0 or more")


# Policies are pickled together with checkpointed functions, so they are made of these.


def _is_among(chosen: frozenset[str], name: str, _result: Any) -> bool:
    return name in chosen


def _is_not_among(chosen: frozenset[str], name: str, _result: Any) -> bool:
    return name not in chosen


def _is_up_to(most: float, _name: str, result: Any) -> bool:
    return sum(map(nbytes_of, result if isinstance(result, tuple) else (result,))) <= most


def _names(function: str, names: tuple[str, ...]) -> frozenset[str]:
    for name in names:
        if not isinstance(name, str):
            raise ArgumentError(f"{function}: got {name!r}, expected names of ops")
    return frozenset(names)
