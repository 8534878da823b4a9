"""How the time to trace and compile grows with the function: ten times the steps, at most that.

Every case is a family of functions with a number of steps. It is compiled for some steps and for
ten times as many, with no cache on disk; the ratio is that of the times over ten, so 1 is linear
growth, and less if there is a fixed part.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

import gradtape as gt
from benchmarks.harness import Settings, time_once
from benchmarks.result import Row
from gradtape.errors import UnrolledLoopWarning
from gradtape.tools.statistics import Spread

NAME = "compile-growth"
TIMES = 10
BAR = 1.5
MOST_ROUNDS = 3

Function = Callable[..., Any]


class Family(NamedTuple):
    """Functions of so many steps."""

    what: str
    steps: int
    make: Callable[[int], tuple[Function, tuple[Any, ...]]]
    """The function of a number of steps, and arguments for it."""
    gradient: bool = True
    """Whether its gradient is timed as well."""


# ---- the functions ------------------------------------------------------------------------------


def add_to_part(n: int) -> tuple[Function, tuple[Any, ...]]:
    """`K[0:2] += E[e]`."""

    def function(elements: Any) -> Any:
        total = np.zeros_like(elements, shape=(4,))
        for e in range(n):
            total[0:2] += elements[e]
        return total

    return function, (np.ones((n, 2)),)


def fill(n: int) -> tuple[Function, tuple[Any, ...]]:
    """`t[i] = v`."""

    def function(x: Any) -> Any:
        filled = np.zeros_like(x, shape=(n,))
        for i in range(n):
            filled[i] = x[i % 4] * 2.0
        return filled

    return function, (np.ones(4),)


def recurrence(n: int) -> tuple[Function, tuple[Any, ...]]:
    """`t[i + 1] = a·t[i] + b`."""

    def function(x: Any) -> Any:
        path = np.zeros_like(x, shape=(n + 1,))
        path[0] = x[0]
        for i in range(n):
            path[i + 1] = 0.9 * path[i] + x[1]
        return path

    return function, (np.ones(4),)


def chain(n: int) -> tuple[Function, tuple[Any, ...]]:
    """A chain of elementwise functions."""

    def function(x: Any) -> Any:
        for _ in range(n):
            x = np.sin(x)
        return x

    return function, (np.ones(100),)


def residual(n: int) -> tuple[Function, tuple[Any, ...]]:
    """Layers of a residual network, each with a matrix of its own."""

    def function(x: Any, matrices: Any) -> Any:
        for matrix in matrices:
            x = x + np.tanh(x @ matrix)
        return x

    return function, (np.ones((8, 16)), [np.full((16, 16), 0.01) for _ in range(n)])


def wide_sum(n: int) -> tuple[Function, tuple[Any, ...]]:
    """A sum of terms that differ in a number."""

    def function(x: Any) -> Any:
        return sum((np.sin(x * float(i)) for i in range(n)), start=x)

    return function, (np.ones(100),)


def runge_kutta(n: int) -> tuple[Function, tuple[Any, ...]]:
    """The classical method, on a pendulum."""

    def slope(y: Any, k: Any) -> Any:
        return np.stack([y[1], -k * np.sin(y[0])])

    def function(y: Any, k: Any) -> Any:
        for _ in range(n):
            a = slope(y, k)
            b = slope(y + 0.005 * a, k)
            c = slope(y + 0.005 * b, k)
            d = slope(y + 0.01 * c, k)
            y = y + 0.01 / 6.0 * (a + 2.0 * b + 2.0 * c + d)
        return y

    return function, (np.array([1.0, 0.0]), 1.0)


def euler(n: int) -> tuple[Function, tuple[Any, ...]]:
    """Euler's method, on a linear system."""

    def function(y: Any, rates: Any) -> Any:
        for _ in range(n):
            y = y + 0.01 * (rates @ y)
        return y

    return function, (np.ones(8), np.eye(8))


def leaves(n: int) -> tuple[Function, tuple[Any, ...]]:
    """A list of arrays, of which three are used."""
    return lambda arrays: arrays[0] * arrays[1] + arrays[-1], ([np.ones(3) for _ in range(n)],)


def results(n: int) -> tuple[Function, tuple[Any, ...]]:
    """A list of results."""
    return lambda x: [x * float(i) for i in range(n)], (np.ones(10),)


FAMILIES = (
    Family("K[0:2] += E[e]", 30, add_to_part),
    Family("t[i] = v", 100, fill),
    Family("t[i + 1] = a·t[i] + b", 30, recurrence),
    Family("chain of ops", 300, chain),
    Family("residual layers", 50, residual),
    Family("terms of a sum", 100, wide_sum),
    Family("Runge–Kutta steps", 20, runge_kutta),
    Family("Euler steps", 100, euler),
    Family("leaves, three used", 1000, leaves),
    Family("results", 300, results, gradient=False),
)


# ---- the times ----------------------------------------------------------------------------------


def run(settings: Settings) -> Iterator[Row]:
    """Time the families, and their gradients."""
    rounds = min(settings.rounds, MOST_ROUNDS)
    with patch.dict(os.environ, GRADTAPE_CACHE="0"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UnrolledLoopWarning)
        seconds(FAMILIES[0], FAMILIES[0].steps)  # loads LLVM
        for family in FAMILIES:
            for gradient in (False, True) if family.gradient else (False,):
                yield growth(family, rounds, gradient=gradient)


def growth(family: Family, rounds: int, *, gradient: bool) -> Row:
    """Make the row of a family."""
    few, many = family.steps, TIMES * family.steps
    small = [seconds(family, few, gradient=gradient) for _ in range(rounds)]
    large = [seconds(family, many, gradient=gradient) for _ in range(rounds)]
    of = "gradient, " if gradient else ""
    return Row(
        name=NAME,
        what=f"{of}{many} {family.what}",
        ours=Spread.of(large).median,
        peer_name=f"{TIMES} times the time for {few}",
        peer=TIMES * Spread.of(small).median,
        ratio=Spread.of_ratio(large, [TIMES * time for time in small]),
        bar=BAR,
    )


def seconds(family: Family, steps: int, *, gradient: bool = False) -> float:
    """Time the first call of a function, which traces and compiles it."""
    function, args = family.make(steps)
    made = gt.grad(lambda *given: np.sum(function(*given) ** 2)) if gradient else function
    return time_once(lambda: gt.jit(made)(*args))
