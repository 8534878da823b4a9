"""Plans: every number can be told from the sweeps, and there are few of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, strategies as st

import gradtape as gt
from every_case import CASES, FURTHER
from gradtape.sparsity.pattern import SparsityPattern
from gradtape.sparsity.plan import MODES, SparsePlan, hessian_plan, jacobian_plan
from opcall import noting
from real_cases import of_real_arrays


def recovered(plan: SparsePlan, matrix: Any) -> Any:
    """The matrix from the sums of columns and rows that sweeps would give."""
    found = [np.zeros(0)]
    for number in range(plan.forward):
        found.append(matrix @ (plan.columns == number))
    for number in range(plan.reverse):
        found.append((plan.rows == number) @ matrix)
    pattern = plan.pattern.matrix
    data = np.concatenate(found)[plan.places]
    return scipy.sparse.csr_array((data, pattern.indices, pattern.indptr), pattern.shape).toarray()


def pattern_of(places: Any) -> SparsityPattern:
    return SparsityPattern(scipy.sparse.csr_array(places != 0))


@st.composite
def matrices(draw: Any) -> Any:
    """Matrices with some dense rows and columns among sparse ones."""
    rows, columns = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    places = rng.random((rows, columns)) < draw(st.sampled_from([0.0, 0.1, 0.3, 1.0]))
    places[rng.integers(rows, size=draw(st.integers(0, 2)))] = True
    places[:, rng.integers(columns, size=draw(st.integers(0, 2)))] = True
    return places * rng.normal(size=places.shape)


@given(matrices())
def test_every_number_is_found(matrix: Any) -> None:
    sweeps = {}
    for mode in MODES:
        plan = jacobian_plan(pattern_of(matrix), mode)
        np.testing.assert_allclose(recovered(plan, matrix), matrix, atol=1e-14)
        sweeps[mode] = plan.forward + plan.reverse
    assert sweeps["auto"] == min(sweeps.values()) or sweeps["auto"] <= sweeps["mixed"]
    assert sweeps["auto"] <= min(sweeps["forward"], sweeps["reverse"])


@given(matrices())
def test_every_number_of_a_symmetric_matrix_is_found(matrix: Any) -> None:
    size = min(matrix.shape)
    symmetric = matrix[:size, :size] + matrix[:size, :size].T
    plan = hessian_plan(pattern_of(symmetric), True)
    np.testing.assert_allclose(recovered(plan, symmetric), symmetric, atol=1e-14)
    general = hessian_plan(pattern_of(matrix[:size, :size]), False)
    np.testing.assert_allclose(recovered(general, matrix[:size, :size]), matrix[:size, :size])


def test_few_sweeps() -> None:
    size = 40
    line = np.eye(size) + np.eye(size, k=1) + np.eye(size, k=-1)
    grid = np.kron(line, np.eye(size)) + np.kron(np.eye(size), line)
    assert jacobian_plan(pattern_of(line), "auto").forward == 3
    assert jacobian_plan(pattern_of(grid), "auto").forward <= 7
    assert hessian_plan(pattern_of(line), True).forward == 3
    assert hessian_plan(pattern_of(grid), True).forward <= 6
    arrow = np.eye(size)
    arrow[0] = arrow[:, 0] = 1.0
    plan = jacobian_plan(pattern_of(arrow), "auto")
    assert (plan.forward, plan.reverse) == (2, 1)
    assert hessian_plan(pattern_of(arrow), True).forward == 2
    # Two dense columns, and rows that share none but these: the other way round.
    broad = np.kron(np.eye(4), np.ones((1, 10)))
    broad[:, [3, 25]] = 1.0
    plan = jacobian_plan(pattern_of(broad), "auto")
    assert (plan.forward, plan.reverse) == (2, 1)
    np.testing.assert_allclose(recovered(plan, broad), broad)


def test_large_patterns_are_coloured_quickly(rng: Any) -> None:
    """100,000 columns and 15 places in each row: a fraction of a second."""
    columns = np.concatenate(
        [
            rng.integers(500, size=(100_000, 1)) * 9 + np.arange(9),
            4_500 + np.arange(100_000)[:, None] % 31_000 * 3 + np.arange(3),
        ],
        axis=1,
    )
    starts = np.arange(100_001) * 12
    true = np.ones(columns.size, bool)
    matrix = scipy.sparse.csr_array((true, columns.reshape(-1), starts), (100_000, 97_500))
    plan = jacobian_plan(SparsityPattern(matrix), "auto")
    assert (plan.forward, plan.reverse) == (12, 0)


def test_printed() -> None:
    arrow = np.eye(5)
    arrow[0] = arrow[:, 0] = 1.0
    plan = jacobian_plan(pattern_of(arrow), "auto")
    assert str(plan).splitlines() == [
        "sparse_jacobian",
        "forward sweeps: 2 for 5 columns",
        "reverse sweeps: 1 for 1 rows",
        "pattern of 5 × 5 with 13 places (52 %); no dense blocks",
    ]
    plan = hessian_plan(pattern_of(arrow), True)
    assert str(plan).splitlines()[:2] == [
        "sparse_hessian",
        "products with vectors: 2 for 5 columns",
    ]


# ---- bundle adjustment --------------------------------------------------------------------------


def turned(rotation: Any, points: Any) -> Any:
    """Points turned by rotation vectors: Rodrigues' formula."""
    angle = np.sqrt(np.sum(rotation**2, axis=-1, keepdims=True))
    axis = rotation / angle
    along = np.sum(axis * points, axis=-1, keepdims=True) * (1.0 - np.cos(angle))
    return points * np.cos(angle) + np.cross(axis, points) * np.sin(angle) + axis * along


def residuals(parameters: Any, camera: Any, point: Any, seen: Any) -> Any:
    """Where points are seen by cameras with 9 parameters each, less where they should be."""
    chosen = parameters["cameras"][camera]
    moved = turned(chosen[:, :3], parameters["points"][point]) + chosen[:, 3:6]
    flat = -moved[:, :2] / moved[:, 2:]
    square = np.sum(flat**2, axis=-1, keepdims=True)
    focal, first, second = chosen[:, 6:7], chosen[:, 7:8], chosen[:, 8:9]
    return focal * (1.0 + first * square + second * square**2) * flat - seen


def test_bundle_adjustment(rng: Any) -> None:
    cameras, points, count = 5, 40, 150
    parameters = {
        "cameras": rng.normal(size=(cameras, 9)) * 0.1 + [0, 0, 0, 0, 0, -5.0, 2.0, 0, 0],
        "points": rng.normal(size=(points, 3)),
    }
    camera, point = rng.integers(cameras, size=count), rng.integers(points, size=count)
    data = (camera, point, rng.normal(size=(count, 2)))
    jacobian = gt.sparse_jacobian(residuals)
    plan = jacobian.plan(parameters, *data)
    assert (plan.forward, plan.reverse, plan.pattern.nnz) == (12, 0, 24 * count)
    assert plan.pattern.blocks == ()
    dense = gt.jacfwd(residuals)(parameters, *data)
    expected = [dense[name].reshape(2 * count, -1) for name in ("cameras", "points")]
    np.testing.assert_allclose(
        jacobian(parameters, *data).toarray(),
        np.concatenate(expected, axis=1),
        rtol=1e-9,
        atol=1e-12,
    )

    def error(parameters: Any) -> Any:
        return np.sum(residuals(parameters, *data) ** 2) / 2

    hessian = gt.sparse_hessian(error)
    assert hessian.plan(parameters).forward <= 60
    assert not hessian.plan(parameters).pattern.blocks
    matrix, v = hessian(parameters), rng.normal(size=9 * cameras + 3 * points)
    parts = {"cameras": v[: 9 * cameras].reshape(-1, 9), "points": v[9 * cameras :].reshape(-1, 3)}
    product = gt.hvp(error, (parameters,), (parts,))
    flat = np.concatenate([product[name].reshape(-1) for name in ("cameras", "points")])
    np.testing.assert_allclose(matrix @ v, flat, rtol=1e-9, atol=1e-9)


# ---- Hessians of all cases ----------------------------------------------------------------------


def check_hessian(case: Any) -> None:
    """The pattern contains every nonzero second derivative, and the matrix is the dense one."""
    function, args = of_real_arrays(case)
    if not 0 < sum(x.size for x in args) <= 60 or any(x.dtype != np.float64 for x in args):
        return

    def total(x: Any) -> Any:
        parts, begin = [], 0
        for arg in args:
            parts.append(gt.reshape(x[begin : begin + arg.size], arg.shape))
            begin += arg.size
        return np.sum(np.sin(function(tuple(parts)))).astype(np.float64)

    x = np.concatenate([arg.reshape(-1) for arg in args])
    with np.errstate(all="ignore"):
        dense = gt.hessian(total)(x)
        found = gt.hessian_sparsity(total)(x).toarray()
        assert not (found < (dense != 0)).any()
        if np.isfinite(dense).all():
            size = np.abs(dense).max(initial=1.0)
            np.testing.assert_allclose(
                gt.sparse_hessian(total)(x).toarray(), dense, atol=1e-7 * size
            )


TWICE = [case for case in CASES if case.differentiable and case.second_order]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(2))
def test_hessians_of_some_cases(first: int) -> None:
    for case in [case for case in TWICE if case.id not in FURTHER][first::400]:
        with noting(f"in the case {case.id}"):
            check_hessian(case)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(16))
def test_hessians_of_all_cases(first: int) -> None:
    for case in TWICE[first::16]:
        with noting(f"in the case {case.id}"):
            check_hessian(case)
