"""What a sample of an op is; the op record is the table, a case only adds arguments.

A module of cases has a list `CASES`, and may have two tables: `NOT_NATIVE` gives the reason for
each op that runs its eager forward inside compiled functions, `ULPS` by how many units of the last
place the native form of an elementwise function may differ from the eager one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class At:
    """A special point: the gradient of `sum(function(*args))` is known there.

    One gradient per floating array or number in `args`, in the same order. Lists of numbers are
    arrays. Where PyTorch says otherwise and we mean what we say, `unlike_torch` gives the reason.
    """

    args: tuple[Any, ...]
    grads: tuple[Any, ...]
    params: dict[str, Any] = field(default_factory=dict)
    unlike_torch: str = ""


@dataclass(frozen=True)
class Raises:
    """Arguments that must raise `error` with a message that matches."""

    args: tuple[Any, ...]
    error: type[Exception]
    match: str
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class OpCase:
    """One function with arguments, and what is known about it.

    Attributes:
        function: The public gradtape function.
        args: Its positional arguments; float64 arrays are differentiated, others are not.
        ref: The same in NumPy or SciPy, called with the same arguments and parameters.
        params: Keyword arguments.
        ops: Names of the registered ops it goes through; the function's name if none are given.
        elementwise: Whether broadcast, 0-d, empty and non-contiguous variants are to be tried.
        dtypes: Dtypes the value is compared in, with the reference in the same dtype.
        second_order: Whether second derivatives are checked (off only where they do not exist).
        differences: Whether derivatives are compared with differences (off where those cannot
            tell: infinite or huge values, single precision inside; give `at` points instead).
        differentiable: Whether the result is tracked; if not, that is what is tested.
        batched: Whether `vmap` over every argument is compared with a loop.
        fixed: Positions, among the arrays in the arguments, of those vmap cannot batch (masks).
        composed: Whether it is a formula of functions that have cases of their own. Quick tests
            take its first derivative only.
        rtol: Relative tolerance of the value, in multiples of the dtype's resolution.
        at: Special points with known gradients.
        raises: Bad inputs.
        label: Tells cases of one function apart.
        torch: The same in PyTorch: a name below `torch` that takes the same arguments and
            parameters, or a function `(torch, *args, **params)`.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    ref: Callable[..., Any]
    params: dict[str, Any] = field(default_factory=dict)
    ops: Sequence[str] = ()
    elementwise: bool = False
    dtypes: Sequence[Any] = (np.float64, np.float32)
    second_order: bool = True
    differences: bool = True
    differentiable: bool = True
    batched: bool = True
    fixed: Sequence[int] = ()
    composed: bool = False
    rtol: float = 16
    at: Sequence[At] = ()
    raises: Sequence[Raises] = ()
    label: str = ""
    torch: str | Callable[..., Any] | None = None

    @property
    def names(self) -> Sequence[str]:
        """The registered ops this case covers."""
        return self.ops or (self.function.__name__,)

    @property
    def id(self) -> str:
        """How pytest names it."""
        return self.function.__name__ + (f"-{self.label}" if self.label else "")


def with_torch(
    table: dict[str, str | Callable[..., Any] | None], cases: Sequence[OpCase]
) -> list[OpCase]:
    """The cases with PyTorch's functions, by the names of ours or by the ids of single cases.

    None for the id of a case says that PyTorch has nothing like it. What a case names itself stays.
    """

    def found(case: OpCase) -> str | Callable[..., Any] | None:
        return table.get(case.id, table.get(case.function.__name__))

    return [replace(case, torch=case.torch or found(case)) for case in cases]


def draw(*shape: int, low: float = -2.0, high: float = 2.0, seed: int = 0) -> Any:
    """Reproducible float64 samples, uniform in an interval."""
    return np.random.default_rng((seed, *shape)).uniform(low, high, shape)
