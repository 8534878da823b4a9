"""Thousands of random programs, compiled: values and gradients are those of eager code.

Many programs are compiled together, as parts of one function: that is faster, and the more there is
to fuse wrongly. A failure names the seed and prints the smallest program found that fails.
"""

from __future__ import annotations

from typing import Any

import pytest

from random_ways import (
    Way,
    batched,
    batched_compiled,
    check,
    check_captured,
    check_together,
    compiled,
    compiled_gradient_of_compiled,
    gradient_of,
    gradient_of_compiled,
    programs,
    replayed,
    tangents_of,
    tangents_of_compiled,
    values_of,
    watched_gradient,
    watched_gradient_of_compiled,
    watched_tangents,
)

TOGETHER = 25


def starts(first: int, end: int, step: int, quick: int) -> list[Any]:
    """Numbers of programs to begin with; all but the first few are slow."""
    return [
        pytest.param(n, marks=pytest.mark.slow) if n >= first + quick * step else n
        for n in range(first, end, step)
    ]


@pytest.mark.parametrize("first", starts(0, 1250, TOGETHER, 8))
def test_values(first: int) -> None:
    check_together([values_of], programs(first, TOGETHER))


@pytest.mark.parametrize("first", starts(10_000, 10_750, TOGETHER, 4))
def test_values_and_gradients(first: int) -> None:
    check_together([values_of, gradient_of], programs(first, TOGETHER, floating=True))


@pytest.mark.parametrize("first", starts(60_000, 60_250, TOGETHER, 2))
def test_captured_arrays_that_change(first: int) -> None:
    check_captured([values_of, gradient_of], programs(first, TOGETHER, floating=True))


@pytest.mark.parametrize("first", starts(40_000, 40_080, 10, 2))
def test_large_arrays(first: int) -> None:
    check_together([values_of, gradient_of], programs(first, 10, floating=True, large=True))


@pytest.mark.parametrize("first", starts(20_000, 20_200, TOGETHER, 2))
def test_compiled_transforms(first: int) -> None:
    check_together([tangents_of, batched], programs(first, TOGETHER))


@pytest.mark.parametrize("first", starts(30_000, 30_040, 10, 1))
@pytest.mark.parametrize(
    ("way", "reference"),
    [
        (replayed, values_of),
        (compiled, values_of),
        (gradient_of_compiled, gradient_of),
        (compiled_gradient_of_compiled, gradient_of),
        (watched_gradient, gradient_of),
        (watched_gradient_of_compiled, gradient_of),
        (watched_tangents, tangents_of),
        (tangents_of_compiled, tangents_of),
        (batched_compiled, batched),
    ],
)
def test_ways_agree(way: Way, reference: Way, first: int) -> None:
    for program in programs(first, 10):
        check(way, program, reference)
