"""The cases of `opcases` as one table, and what the tests that go through it have in common."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import gradtape as gt
import opcases
from gradtape import containers
from opcall import Call, noting
from opcases.case import OpCase

MODULES = sorted(module.name for module in pkgutil.iter_modules(opcases.__path__))
CASES: list[OpCase] = [
    case
    for name in MODULES
    if name != "case"
    for case in importlib.import_module(f"opcases.{name}").CASES
]
FUNCTIONS: dict[str, list[OpCase]] = {}
for _case in CASES:
    FUNCTIONS.setdefault(_case.function.__name__, []).append(_case)
# Those that go through the same rules as the first two of the same function, or as other cases.
FURTHER = {
    case.id
    for cases in FUNCTIONS.values()
    for n, case in enumerate(cases)
    if n > 1 or case.composed
}
# So many functions are one test of pytest.
TOGETHER = 8


def each(wanted: Callable[[OpCase], Any] = lambda case: True) -> Callable[..., Any]:
    """Run a test for every case, or for those that are wanted.

    Cases of some functions are one test of pytest, for which thousands cost more than they take.
    Its name holds theirs, so that `-k` finds it.
    """
    functions = [
        (name, chosen) for name, cases in FUNCTIONS.items() if (chosen := [*filter(wanted, cases)])
    ]
    groups = {
        ",".join(name for name, _ in some): [case for _, cases in some for case in cases]
        for some in (functions[n : n + TOGETHER] for n in range(0, len(functions), TOGETHER))
    }

    def decorate(test: Callable[..., None]) -> Any:
        @functools.wraps(test)
        def run(cases: Sequence[OpCase], **fixtures: Any) -> None:
            for case in cases:
                with noting(f"in the case {case.id}"):
                    test(case, **fixtures)

        signature = inspect.signature(test)
        first, *fixtures = signature.parameters.values()
        run.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[first.replace(name="cases"), *fixtures]
        )
        return pytest.mark.parametrize("cases", groups.values(), ids=groups)(run)

    return decorate


def call_of(case: OpCase) -> Call:
    return Call(case.function, case.args, case.params)


def cast(args: Any, dtype: Any) -> Any:
    """The arguments with another dtype in place of float64."""
    with np.errstate(invalid="ignore"):  # NaN as an integer is some number
        return containers.map_leaves(
            lambda x: x.astype(dtype) if isinstance(x, np.ndarray) and x.dtype == np.float64 else x,
            tuple(args),
        )


def with_arrays(args: Any) -> Any:
    """The arguments of a special point with floats and lists of them made arrays."""
    if isinstance(args, list | float):
        leaves = containers.flatten(args)[0]
        if any(isinstance(x, float) for x in leaves) and not any(np.ndim(x) for x in leaves):
            return np.array(args)
    return type(args)(map(with_arrays, args)) if isinstance(args, tuple | list) else args


def pulled(function: Callable[..., Any], floats: Sequence[Any]) -> list[Any]:
    """The gradient of the sum of squares of all results, which depends on everything."""
    out, pullback = gt.vjp(function, *floats)
    return list(pullback(out))
