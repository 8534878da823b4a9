"""Random programs with checkpointing: gradients are those without, bit for bit.

A failure names the seed, and prints the smallest program found that fails.
"""

from __future__ import annotations

from typing import Any

import pytest

from checkpoint_ways import check


def seeds(first: int, end: int, quick: int) -> list[Any]:
    """Numbers of programs; all but the first few are slow."""
    return [
        pytest.param(n, marks=pytest.mark.slow) if n >= first + quick else n
        for n in range(first, end)
    ]


@pytest.mark.parametrize("seed", seeds(0, 600, 12))
def test_eager_programs(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", seeds(20_001, 20_100, 1))
def test_large_arrays(seed: int) -> None:
    check(seed, large=True)


@pytest.mark.parametrize("seed", seeds(40_000, 40_100, 3))
def test_compiled_programs(seed: int) -> None:
    check(seed, compiled=True)
