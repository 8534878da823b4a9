"""Rules on complex arrays: derivatives by real and imaginary parts, and PyTorch's convention.

`check_grads` takes a complex number as two real ones, so that differences, forward mode, reverse
mode and the adjoint identity are compared over the reals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.testing import check_grads


def draw(*shape: int, seed: int = 0) -> Any:
    """Reproducible complex samples of the order of 1."""
    rng = np.random.default_rng((seed, *shape))
    return rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)


def regular(*shape: int) -> Any:
    """Square matrices far from singular."""
    return draw(*shape) + 3 * np.eye(shape[-1])


def einsum(subscripts: str) -> Callable[..., Any]:
    return lambda *arrays: gt.einsum(subscripts, *arrays)


def cholesky(x: Any) -> Any:
    return gt.linalg.cholesky(x @ gt.conj(x).mT + np.eye(x.shape[-1]))


REAL = np.arange(6.0).reshape(3, 2) - 2.5

CASES: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
    ("matmul", gt.matmul, (draw(2, 3), draw(3, 2))),
    ("matmul-vectors", gt.matmul, (draw(3), draw(3, seed=1))),
    ("matmul-vector-matrix", gt.matmul, (draw(3), draw(3, 2))),
    ("matmul-matrix-vector", gt.matmul, (draw(2, 3), draw(3))),
    ("matmul-batched", gt.matmul, (draw(2, 2, 3), draw(2, 3, 2))),
    ("matmul-batched-matrix", gt.matmul, (draw(2, 2, 3), draw(3, 2))),
    ("matmul-matrix-batched", gt.matmul, (draw(2, 3), draw(2, 3, 2))),
    ("matmul-batched-vector", gt.matmul, (draw(2, 2, 3), draw(3))),
    ("matmul-vector-batched", gt.matmul, (draw(3), draw(2, 3, 2))),
    ("matmul-with-real", gt.matmul, (draw(2, 3), REAL)),
    ("matmul-real-first", gt.matmul, (REAL.T, draw(3, 2))),
    ("vdot", gt.vdot, (draw(2, 3), draw(2, 3, seed=1))),
    ("inner", gt.inner, (draw(2, 3), draw(2, 3, seed=1))),
    ("outer", gt.outer, (draw(3), draw(2))),
    ("kron", gt.kron, (draw(2), draw(2, 2))),
    ("tensordot", gt.tensordot, (draw(2, 2, 3), draw(2, 3, 2))),
    ("einsum-trace", einsum("ii"), (draw(3, 3),)),
    ("einsum", einsum("ij,jk->ki"), (draw(2, 3), draw(3, 2))),
    ("einsum-batch", einsum("bij,bj->bi"), (draw(2, 2, 3), draw(2, 3))),
    ("einsum-three", einsum("ij,jk,ki->"), (draw(2, 2), draw(2, 3), draw(3, 2))),
    ("einsum-with-real", einsum("ij,jk->ik"), (draw(2, 3), REAL)),
    ("solve-vector", gt.solve, (regular(3, 3), draw(3))),
    ("solve-matrix", gt.solve, (regular(3, 3), draw(3, 2))),
    ("solve-batched", gt.solve, (regular(2, 2, 2), draw(2, 1))),
    ("solve-with-real", gt.solve, (regular(3, 3), REAL)),
    ("solve-real-matrix", gt.solve, (np.eye(2) * 2 + 0.5, draw(2))),
    ("inv", gt.linalg.inv, (regular(3, 3),)),
    ("det", gt.linalg.det, (regular(3, 3),)),
    ("slogdet", lambda x: tuple(gt.linalg.slogdet(x)), (regular(3, 3),)),
    ("cholesky", cholesky, (draw(3, 3),)),
    ("softsign", gt.softsign, (draw(3),)),
    ("power", gt.power, (draw(3) + 2, draw(3, seed=1))),
    ("power-of-negative", gt.power, (np.array([-2.0, 0.5, 3.0]), draw(3, seed=1))),
    ("power-of-negative-number", lambda y: gt.power(-2.0, y), (draw(3),)),
    ("power-to-number", lambda x: x ** (1.5 + 0.5j), (np.array([-2.0, 0.5, 3.0]),)),
    ("norm", gt.norm, (draw(2, 3),)),
    ("norm-1", lambda x: gt.norm(x, 1), (draw(3),)),
    ("norm-3", lambda x: gt.norm(x, 3), (draw(3),)),
    ("norm-inf", lambda x: gt.norm(x, np.inf), (draw(3),)),
    ("norm-matrix-1", lambda x: gt.norm(x, 1), (draw(3, 2),)),
]


@pytest.mark.parametrize(
    ("function", "args"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_derivatives(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    check_grads(function, args, order=2)


def test_gradient_is_the_direction_of_steepest_ascent() -> None:
    # L(z) = |z|² has dL = 2·Re(z̄·dz): the gradient is 2z, as in PyTorch, and not 2z̄.
    z = draw(3)
    np.testing.assert_allclose(gt.grad(lambda z: gt.real(gt.vdot(z, z)))(z), 2 * z)
    np.testing.assert_allclose(gt.grad(gt.norm)(z), z / np.linalg.norm(z))


def test_cotangent_of_a_real_factor_is_real() -> None:
    matrix, vector = draw(2, 3), np.ones(3)
    gradient = gt.grad(lambda v: gt.real(gt.sum(gt.matmul(matrix, v))))(vector)
    assert gradient.dtype == np.float64
    np.testing.assert_allclose(gradient, matrix.real.sum(axis=0))


def test_singular_determinant() -> None:
    # The cofactors of a singular matrix exist: det is a polynomial in the elements.
    rows = np.array([1.0 + 1j, 2.0])
    singular = np.outer(rows, [1j, 3.0])
    check_grads(gt.linalg.det, (singular,), order=1)
