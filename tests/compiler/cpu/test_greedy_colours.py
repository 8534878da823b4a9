"""Greedy colouring in native code against the plain algorithm in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from gradtape.compiler.cpu.runtime import greedy_colours


def first_fit(starts: Any, rows: Any, order: Any, height: int) -> list[int]:
    """The same as `columns`, with sets."""
    used: list[set[int]] = [set() for _ in range(height)]
    colours = [-1] * (len(starts) - 1)
    for column in order:
        own = rows[starts[column] : starts[column + 1]]
        taken = set().union(*(used[row] for row in own))
        colour = next(c for c in range(len(taken) + 1) if c not in taken)
        colours[column] = colour
        for row in own:
            used[row].add(colour)
    return colours


def star_fit(starts: Any, neighbours: Any, order: Any) -> list[int]:
    """The same as `symmetric`, with sets."""
    colours = [-1] * (len(starts) - 1)

    def around(vertex: int) -> Any:
        return neighbours[starts[vertex] : starts[vertex + 1]]

    for vertex in order:
        taken = set()
        for other in around(vertex):
            if colours[other] >= 0:
                taken.add(colours[other])
            for further in around(other):
                if colours[other] < 0 or 0 <= colours[further] < colours[other]:
                    taken.add(colours[further])
        colours[vertex] = next(c for c in range(len(taken) + 1) if c not in taken)
    return colours


# The third has far more than 64 colours, so that sets are gone through in several rounds.
@pytest.mark.parametrize(("shape", "density"), [((30, 20), 0.1), ((1, 9), 1.0), ((150, 200), 0.4)])
def test_columns(rng: Any, shape: tuple[int, int], density: float) -> None:
    matrix = scipy.sparse.random_array(shape, density=density, rng=rng, format="csc")
    for order in (np.arange(shape[1]), rng.permutation(shape[1])):
        got = greedy_colours.columns(matrix.indptr, matrix.indices, order, shape[0])
        assert list(got) == first_fit(matrix.indptr, matrix.indices, order, shape[0])


@pytest.mark.parametrize(("size", "density"), [(40, 0.05), (150, 0.4)])
def test_symmetric(rng: Any, size: int, density: float) -> None:
    half = scipy.sparse.random_array((size, size), density=density, rng=rng)
    matrix = scipy.sparse.csr_array(scipy.sparse.triu(half, 1) + scipy.sparse.triu(half, 1).T)
    for order in (np.arange(size), rng.permutation(size)):
        got = greedy_colours.symmetric(matrix.indptr, matrix.indices, order)
        assert list(got) == star_fit(matrix.indptr, matrix.indices, order)


def test_nothing_to_colour() -> None:
    none = np.zeros(0, np.int32)
    assert not len(greedy_colours.columns(np.zeros(1, np.int32), none, none, 3))
    assert list(greedy_colours.columns(np.zeros(3, np.int32), none, np.arange(2), 0)) == [0, 0]
