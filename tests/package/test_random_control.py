"""Random programs with loops and branches: all ways to run and differentiate them agree.

A failure names the number of the program, and prints the smallest one found that fails.
"""

from __future__ import annotations

from typing import Any

import pytest

from control_ways import WAYS, check
from random_control import control_programs

TOGETHER = 5
QUICK = 3


def starts(first: int, end: int) -> list[Any]:
    """Numbers of programs to begin with; all but the first few are slow."""
    return [
        pytest.param(n, marks=pytest.mark.slow) if n >= first + QUICK * TOGETHER else n
        for n in range(first, end, TOGETHER)
    ]


@pytest.mark.parametrize("first", starts(0, 400))
@pytest.mark.parametrize("number", range(TOGETHER))
def test_each_way_on_some_programs(first: int, number: int) -> None:
    # In turns, so that few programs see all ways.
    (program,) = control_programs(first + number, 1)
    for way in list(WAYS)[(first // TOGETHER + number) % 4 :: 4]:
        check(program, way)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1100, TOGETHER))
def test_every_way_on_a_program(first: int) -> None:
    for program in control_programs(first, TOGETHER):
        for way in WAYS:
            check(program, way)
