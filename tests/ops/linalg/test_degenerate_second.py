"""Second derivatives where values are repeated or 0: right, or refused, in all four ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from degenerate import DIRECTION, REPEATED, SINGULAR, WEIGHTS, symmetric, weighted
from gradtape.errors import NotDifferentiableError


def mixes(function: Any, x: Any, e: Any, z: Any) -> dict[str, Callable[[], Any]]:
    """The second derivative along two directions, in all ways."""

    def push(function: Any, x: Any, v: Any) -> Any:
        return gt.jvp(function, (x,), (v,))[1]

    return {
        "forward over forward": lambda: push(lambda x: push(function, x, e), x, z),
        "forward over reverse": lambda: np.sum(push(gt.grad(function), x, z) * e),
        "reverse over forward": lambda: np.sum(gt.grad(lambda x: push(function, x, e))(x) * z),
        "reverse over reverse": lambda: np.sum(
            gt.grad(lambda x: gt.sum(gt.grad(function)(x) * e))(x) * z
        ),
    }


def by_eigenvectors(x: Any, function: Any) -> Any:
    w, v = gt.linalg.eigh(x)
    return (v * function(w)) @ v.T


def by_singular_vectors(x: Any, function: Any) -> Any:
    u, s, vh = gt.linalg.svd(x)
    return (u * function(s)) @ vh


FIRST, LAST = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])
# In two ways: by values and vectors, and by functions of the matrix.
TWICE: dict[str, tuple[Any, Any, Any]] = {
    "sum": (gt.linalg.eigvalsh, lambda x: gt.diagonal(x), gt.sum),
    "squares": (
        lambda x: gt.linalg.eigvalsh(x) ** 2,
        lambda x: gt.diagonal(x @ x),
        gt.sum,
    ),
    "largest": (
        lambda x: gt.linalg.eigvalsh(x)[2] ** 2,
        lambda x: gt.trace(gt.linalg.hermitian_function(x, lambda w: LAST * w * w)),
        gt.sum,
    ),
    "trace": (
        lambda x: by_eigenvectors(x, gt.exp),
        lambda x: gt.linalg.hermitian_function(x, gt.exp),
        gt.trace,
    ),
    "function": (
        lambda x: by_eigenvectors(x, gt.exp),
        lambda x: gt.linalg.hermitian_function(x, gt.exp),
        weighted,
    ),
    "projection": (
        lambda x: by_eigenvectors(x, lambda w: LAST + 0.0 * w),
        lambda x: gt.linalg.hermitian_function(x, lambda w: LAST + 0.0 * w),
        weighted,
    ),
}
TWICE_SINGULAR: dict[str, tuple[Any, Any, Any]] = {
    "squares": (lambda x: gt.linalg.svdvals(x) ** 2, lambda x: x * x, gt.sum),
    "squares of svd": (lambda x: gt.linalg.svd(x).S ** 2, lambda x: x * x, gt.sum),
    "largest": (
        lambda x: gt.linalg.svdvals(x)[0] ** 2,
        lambda x: gt.linalg.singular_function(x, lambda s: FIRST * s) ** 2,
        gt.sum,
    ),
    "product": (lambda x: by_singular_vectors(x, lambda s: s), lambda x: x, weighted),
    "rank one": (
        lambda x: by_singular_vectors(x, lambda s: FIRST * s),
        lambda x: gt.linalg.singular_function(x, lambda s: FIRST * s),
        weighted,
    ),
    "polar": (
        lambda x: by_singular_vectors(x, gt.ones_like),
        lambda x: gt.linalg.polar(x)[0],
        weighted,
    ),
}


def check_never_wrong(functions: tuple[Any, Any, Any], x: Any, part: Any) -> None:
    """Second derivatives by values and vectors are refused, or those of the matrix function."""
    by_vectors, by_matrix, total = functions

    def function(x: Any) -> Any:
        return total(by_vectors(part(x)))

    def expected(x: Any) -> Any:
        return total(by_matrix(part(x)))

    for z in (WEIGHTS, np.eye(3)):
        exact = None
        for way, compute in mixes(function, x, DIRECTION, z).items():
            try:
                got = compute()
            except NotDifferentiableError:
                continue
            if exact is None:
                exact = mixes(expected, x, DIRECTION, z)["reverse over reverse"]()
            assert got == pytest.approx(exact, rel=1e-7, abs=1e-7), way


@pytest.mark.parametrize("x", REPEATED.values(), ids=REPEATED)
@pytest.mark.parametrize("functions", TWICE.values(), ids=TWICE)
def test_second_derivatives_are_never_wrong(functions: Any, x: Any) -> None:
    check_never_wrong(functions, x, symmetric)


@pytest.mark.parametrize("x", SINGULAR.values(), ids=SINGULAR)
@pytest.mark.parametrize("functions", TWICE_SINGULAR.values(), ids=TWICE_SINGULAR)
def test_second_derivatives_of_singular_values_are_never_wrong(functions: Any, x: Any) -> None:
    check_never_wrong(functions, x, lambda x: x)


def test_second_derivatives_of_repeated_eigenvalues_are_refused() -> None:
    def energy(x: Any) -> Any:
        return gt.sum(gt.linalg.eigvalsh(symmetric(x)) ** 2)

    with pytest.raises(NotDifferentiableError):
        gt.jvp(gt.grad(energy), (np.eye(3),), (DIRECTION,))
    with pytest.raises(NotDifferentiableError):
        gt.grad(lambda x: weighted(gt.grad(energy)(x)))(np.eye(3))


@pytest.mark.parametrize("scale", [1e-16, 1e-30])
def test_small_cotangents_are_checked_like_others(scale: float) -> None:
    with pytest.raises(NotDifferentiableError, match=r"eigh: got .*repeated eigenvalues"):
        gt.grad(lambda a: scale * gt.sum(gt.linalg.eigh(a)[1]))(np.diag([1.0, 1.0, 3.0]))
