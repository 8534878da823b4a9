"""Patterns that depend on data: found again when it changes, and checked when they are given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import gradtape as gt
from gradtape.errors import ArgumentError, FrozenRandomWarning, PatternError, ShapeError


def same(got: Any, expected: Any) -> None:
    np.testing.assert_allclose(got.toarray(), expected, rtol=1e-12, atol=1e-14)


# ---- values that a pattern relied on ------------------------------------------------------------


def test_captured_index_that_is_written_into(rng: Any) -> None:
    places, x = np.array([0, 3, 1]), rng.normal(size=5)

    def function(x: Any) -> Any:
        return x[places] ** 2

    jacobian = gt.sparse_jacobian(function)
    for new in ([0, 3, 1], [4, 4, 4], [-1, 2, 0]):
        places[:] = new
        same(jacobian(x), gt.jacrev(function)(x))
        assert set(jacobian.plan(x).pattern.matrix.indices) == {k % 5 for k in new}


def test_index_as_an_argument(rng: Any) -> None:
    def function(x: Any, places: Any, k: Any) -> Any:
        return x[places + 1] * x[k]

    jacobian, x = gt.sparse_jacobian(function), rng.normal(size=6)
    for places, k in (([0, 1], 0), ([0, 1], 3), ([3, 4], 3), ([0, 1], 0)):
        same(jacobian(x, np.array(places), k), gt.jacrev(function)(x, np.array(places), k))


def test_mask_that_is_written_into(rng: Any) -> None:
    mask, x = np.array([True, False, True, False]), rng.normal(size=4)

    def function(x: Any) -> Any:
        return np.concatenate([np.where(mask, x, x[::-1] ** 2), x[mask] * 2.0])

    jacobian = gt.sparse_jacobian(function)
    for new in ([True, False, True, False], [False, True, True, False], [True, True, True, True]):
        mask[:] = new
        same(jacobian(x), gt.jacrev(function)(x))


def test_zeros_of_a_matrix(rng: Any) -> None:
    matrix, x = np.eye(5), rng.normal(size=5)
    jacobian = gt.sparse_jacobian(lambda x, matrix: matrix @ x**2)
    first = jacobian.plan(x, matrix)
    assert (first.pattern.nnz, first.forward) == (5, 1)
    # Other numbers at the same places: nothing is found again.
    assert jacobian.plan(x, 3.0 * matrix) is first
    same(jacobian(x, 3.0 * matrix), np.diag(6.0 * x))
    matrix[0, 4] = 2.0
    assert jacobian.plan(x, matrix).pattern.nnz == 6
    same(jacobian(x, matrix), matrix * 2.0 * x)
    # A pattern with more places holds as well, but is found again: it was relied on.
    same(jacobian(x, np.eye(5)), np.diag(2.0 * x))


def test_zeros_in_the_memory_of_a_transpose(rng: Any) -> None:
    matrix, x = np.asfortranarray(np.tri(4)), rng.normal(size=4)

    def function(x: Any) -> Any:
        return matrix @ x

    jacobian = gt.sparse_jacobian(function)
    assert jacobian(x).nnz == 10
    matrix[0, 3] = 1.0
    same(jacobian(x), matrix)
    matrix *= 2.0
    plan = jacobian.plan(x)
    matrix *= 2.0
    assert jacobian.plan(x) is plan
    same(jacobian(x), matrix)


def test_zeros_that_were_computed(rng: Any) -> None:
    scale, x = np.array([1.0, 2.0, 3.0]), rng.normal(size=3)

    def function(x: Any, scale: Any) -> Any:
        return (scale - 2.0) * x

    jacobian = gt.sparse_jacobian(function)
    same(jacobian(x, scale), np.diag(scale - 2.0))
    assert jacobian(x, scale).nnz == 2
    same(jacobian(x, scale + 1.0), np.diag(scale - 1.0))


@pytest.mark.parametrize("reverse", [False, True])
def test_zeros_that_were_computed_and_that_a_loop_goes_through(reverse: bool, rng: Any) -> None:
    """The zeros of `rates - 1` are not those of `rates`."""

    def function(x: Any, rates: Any) -> Any:
        return gt.scan(lambda s, t: (s, s * t), x, rates - 1.0, reverse=reverse)[1]

    jacobian, x = gt.sparse_jacobian(function), rng.normal(size=2)
    for rates in ([[1.0, 2.0]], [[2.0, 1.0]], [[1.0, 1.0]], [[3.0, 2.0]]):
        same(jacobian(x, np.array(rates)), np.diag(np.array(rates)[0] - 1.0))
        rows = [[1.0, 1.0], *rates]
        expected = gt.jacrev(function)(x, np.array(rows)).reshape(4, 2)
        same(jacobian(x, np.array(rows)), expected)
    # Of elements of an argument itself only the zeros count.
    loop = gt.sparse_jacobian(lambda x, rates: gt.scan(lambda s, t: (s, s * t), x, rates)[1])
    plan = loop.plan(x, np.eye(2))
    assert plan.pattern.nnz == 2
    assert loop.plan(x, 2.0 * np.eye(2)) is plan


def test_captured_tensor_of_indices(rng: Any) -> None:
    places, x = gt.tensor(np.array([0, 1])), rng.normal(size=4)

    def function(x: Any) -> Any:
        return x[places] * 2.0

    jacobian = gt.sparse_jacobian(function)
    same(jacobian(x), gt.jacrev(function)(x))
    places[0] = 3
    same(jacobian(x), gt.jacrev(function)(x))


def test_known_branch(rng: Any) -> None:
    def function(x: Any, which: Any) -> Any:
        return gt.switch(which, [lambda y: y, lambda y: y[::-1]], x)

    jacobian, x = gt.sparse_jacobian(function), rng.normal(size=3)
    for which in (0, 1, 0):
        same(jacobian(x, which), np.eye(3)[:: -1 if which else 1])


def test_shapes_of_captured_arrays_may_change(rng: Any) -> None:
    held = {"weights": gt.tensor(rng.normal(size=3))}
    jacobian = gt.sparse_jacobian(lambda x: np.outer(held["weights"], x)[:, 0])
    x = rng.normal(size=2)
    assert jacobian(x).shape == (3, 2)
    held["weights"].rebind(gt.tensor(rng.normal(size=4)))
    assert jacobian(x).shape == (4, 2)


ZEROS = np.array([1.0, 0.0, 2.0])


def of_factor(m: Any) -> Any:
    """A function of a factor that a sparse Jacobian is told about, or sees from outside."""
    return gt.sparse_jacobian(lambda x: m * x**2)(np.ones(3)) @ np.ones(3) + 1.0


@pytest.mark.parametrize("given", [True, False])
def test_zeros_of_a_factor_that_is_differentiated_do_not_count(given: bool) -> None:
    """What is 0 now has a derivative all the same."""
    jacobian = gt.sparse_jacobian(lambda x, m: m * x**2)

    def function(m: Any) -> Any:
        return jacobian(np.ones(3), m) @ np.ones(3) + 1.0 if given else of_factor(m)

    assert jacobian(np.ones(3), ZEROS).nnz == 2
    expected = 4.0 * (2.0 * ZEROS + 1.0)
    np.testing.assert_allclose(gt.grad(lambda m: np.sum(function(m) ** 2))(ZEROS), expected)
    np.testing.assert_allclose(gt.jvp(function, (ZEROS,), (np.ones(3),))[1], [2.0, 2.0, 2.0])
    np.testing.assert_allclose(
        gt.jet(function, (ZEROS,), ([np.ones(3), None],))[1][0], [2.0, 2.0, 2.0]
    )
    with gt.GradientTape() as tape:
        m = tape.watch(ZEROS)
        total = np.sum(function(m) ** 2)
    np.testing.assert_allclose(tape.gradient(total, m).numpy(), expected)
    leaf = gt.tensor(ZEROS, requires_grad=True)
    np.sum(function(leaf) ** 2).backward()
    assert leaf.grad is not None
    np.testing.assert_allclose(leaf.grad.numpy(), expected)
    # Where nothing is differentiated, they count.
    assert jacobian(np.ones(3), ZEROS).nnz == 2


def test_zeros_of_a_captured_tensor_that_comes_to_be_differentiated() -> None:
    weights = gt.tensor(ZEROS)
    jacobian = gt.sparse_jacobian(lambda x: weights * x**2)
    assert jacobian(np.ones(3)).nnz == 2
    weights.set_requires_grad()
    np.sum((jacobian(np.ones(3)) @ np.ones(3) + 1.0) ** 2).backward()
    assert weights.grad is not None
    np.testing.assert_allclose(weights.grad.numpy(), 4.0 * (2.0 * ZEROS + 1.0))


def test_zeros_in_hessians_of_factors_that_are_differentiated() -> None:
    def function(m: Any) -> Any:
        hessian = gt.sparse_hessian(lambda x: np.sum(m * x**2))
        return np.sum((hessian(np.ones(3)) @ np.ones(3) + 1.0) ** 2)

    np.testing.assert_allclose(gt.grad(function)(ZEROS), 4.0 * (2.0 * ZEROS + 1.0))


def test_inside_of_a_compiled_function(rng: Any) -> None:
    places, x = np.array([0, 1]), rng.normal(size=4)
    jacobian = gt.sparse_jacobian(lambda x: x[places] ** 2)
    compiled = gt.jit(lambda x: jacobian(x) @ x)
    for new in ([0, 1], [3, 2], [1, 1]):
        places[:] = new
        np.testing.assert_allclose(compiled(x), 2.0 * x[places] ** 2)


def test_index_that_is_traced_or_batched_is_not_known(rng: Any) -> None:
    jacobian, x = gt.sparse_jacobian(lambda x, places: x[places] ** 2), rng.normal(size=4)

    def product(places: Any) -> Any:
        return jacobian(x, places) @ x

    compiled = gt.jit(product)
    for places in (np.array([0, 1]), np.array([3, 3])):
        np.testing.assert_allclose(compiled(places), 2.0 * x[places] ** 2)
    many = np.array([[0, 1], [2, 3], [3, 0]])
    np.testing.assert_allclose(gt.vmap(product)(many), 2.0 * x[many] ** 2)
    # Outside it is known again, and the pattern is small.
    assert jacobian.plan(x, np.array([0, 1])).pattern.nnz == 2


def test_random_numbers_are_drawn_at_each_call(rng: Any) -> None:
    def function(x: Any) -> Any:
        return x * gt.random.normal(shape=(3,))

    jacobian, x = gt.sparse_jacobian(function), rng.normal(size=3)
    first, second = jacobian(x), jacobian(x)
    assert first.nnz == 3
    assert (first != second).nnz == 3
    # Plans and patterns draw none, and the same seed gives the same numbers.
    gt.manual_seed(5)
    gt.jacobian_sparsity(function)(x)
    jacobian.plan(x)
    got = jacobian(x)
    gt.manual_seed(5)
    same(got, np.diag(function(np.ones(3))))


def test_numbers_of_numpy_are_drawn_once_and_that_is_said(rng: Any) -> None:
    def function(x: Any) -> Any:
        return x * rng.normal(size=3)

    jacobian = gt.sparse_jacobian(function)
    with pytest.warns(FrozenRandomWarning, match="function"):
        first = jacobian(np.ones(3))
    same(jacobian(np.ones(3)), first.toarray())


# ---- patterns that are given --------------------------------------------------------------------


def coupled(x: Any) -> Any:
    return x**2 + np.roll(x, 1) * 0.5


FULL = (np.eye(6) + np.roll(np.eye(6), 1, axis=0)) != 0
FORMS = {
    "dense": lambda p: p,
    "lists": lambda p: p.tolist(),
    "numbers": lambda p: p * 3.0,
    "csr": scipy.sparse.csr_array,
    "coo matrix": lambda p: scipy.sparse.coo_matrix(p.astype(float)),
    "found": lambda p: gt.jacobian_sparsity(coupled)(np.ones(6)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mode", ["auto", "reverse", "mixed"])
def test_given_patterns(form: str, mode: str, rng: Any) -> None:
    x = rng.normal(size=6)
    jacobian = gt.sparse_jacobian(coupled, pattern=FORMS[form](FULL), mode=mode)
    for _ in range(2):
        same(jacobian(x), gt.jacrev(coupled)(x))
    single = jacobian(x.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single.toarray(), gt.jacrev(coupled)(x), rtol=1e-5)


@pytest.mark.parametrize("mode", ["forward", "reverse", "mixed"])
def test_a_place_that_is_missing_is_named(mode: str, rng: Any) -> None:
    x = rng.normal(size=6)
    for dtype in (np.float64, np.float32):
        for row in range(6):
            lacking = FULL.copy()
            lacking[row, row - 1] = False
            jacobian = gt.sparse_jacobian(coupled, pattern=lacking, mode=mode)
            place = f"row {row}" if mode != "reverse" else f"column {(row - 1) % 6}"
            with pytest.raises(PatternError, match=f"without a place in {place} where"):
                jacobian(x.astype(dtype))


def test_missing_places_are_found_inside_of_transforms_too(rng: Any) -> None:
    x = rng.normal(size=6)
    jacobian = gt.sparse_jacobian(coupled, pattern=np.eye(6))
    for call, given in (
        (gt.jit(lambda x: jacobian(x) @ x), x),
        (gt.grad(lambda x: np.sum(jacobian(x).data)), x),
        (gt.vmap(lambda x: jacobian(x).data), np.stack([x, x])),
    ):
        with pytest.raises(PatternError, match="row 0"):
            call(given)
    good = gt.sparse_jacobian(coupled, pattern=FULL)
    got = gt.grad(lambda x: np.sum(good(x).data ** 2))(x)
    np.testing.assert_allclose(got, 8.0 * x)


def test_empty_and_full_patterns(rng: Any) -> None:
    x = rng.normal(size=6)
    with pytest.raises(PatternError, match="row 0"):
        gt.sparse_jacobian(coupled, pattern=np.zeros((6, 6)))(x)
    assert gt.sparse_jacobian(np.sign, pattern=np.zeros((6, 6)))(x).nnz == 0
    full = gt.sparse_jacobian(coupled, pattern=np.ones((6, 6)))(x)
    same(full, gt.jacrev(coupled)(x))
    assert full.nnz == 36


def test_given_patterns_of_hessians(rng: Any) -> None:
    def energy(x: Any) -> Any:
        return np.sum(x[1:] ** 2 * x[:-1])

    x = rng.normal(size=5)
    upper = np.triu(np.tri(5, k=1))
    hessian = gt.sparse_hessian(energy, pattern=upper)
    same(hessian(x), gt.hessian(energy)(x))
    assert hessian.plan(x).forward == 3
    with pytest.raises(
        PatternError, match="sparse_hessian: got a pattern= without a place in row 0"
    ):
        gt.sparse_hessian(energy, pattern=np.eye(5))(x)


def test_values_that_are_not_finite_are_no_missing_places() -> None:
    x = np.array([0.0, 1.0, 2.0])
    with np.errstate(all="ignore"):
        got = gt.sparse_jacobian(np.sqrt, pattern=np.eye(3))(x)
        np.testing.assert_array_equal(got.data, gt.jacrev(np.sqrt)(x).diagonal())
        turned = np.eye(3)[::-1].copy()
        turned[2, 0] = 0.0
        with pytest.raises(PatternError, match="row 2"):
            gt.sparse_jacobian(lambda x: np.sqrt(x[::-1]), pattern=turned)(x)


SMALL_BESIDE_OTHERS: dict[str, tuple[Any, Any, Any]] = {
    "row": (
        lambda x: np.stack([1e14 * x[0], x[1] + x[2]]), [[1, 0, 0], [0, 1, 0]], np.float64
    ),
    "same row": (
        lambda x: np.stack([1e9 * x[0] + x[1], x[2]]), [[1, 0, 0], [0, 0, 1]], np.float64
    ),
    "huge": (lambda x: np.stack([1e30 * x[0], x[1] + x[2]]), [[1, 0, 0], [0, 1, 0]], np.float64),
    "float32": (lambda x: x + np.float32(1e-4) * x[0], np.eye(3), np.float32),
    "float32 row": (
        lambda x: np.stack([1e9 * x[0], x[1] + x[2]]), [[1, 0, 0], [0, 1, 0]], np.float32
    ),
    "float16": (lambda x: x + np.float16(0.02) * x[0], np.eye(3), np.float16),
}  # fmt: skip


@pytest.mark.parametrize("mode", ["auto", "reverse"])
@pytest.mark.parametrize("name", SMALL_BESIDE_OTHERS)
def test_missing_numbers_that_are_small_beside_others(name: str, mode: str) -> None:
    """A row is only compared with its own rounding."""
    function, pattern, dtype = SMALL_BESIDE_OTHERS[name]
    jacobian = gt.sparse_jacobian(function, pattern=np.array(pattern), mode=mode)
    with pytest.raises(PatternError, match="off by"):
        jacobian(np.array([1.0, 2.0, 3.0], dtype))


def _deep(x: Any) -> Any:
    for _ in range(12):
        x = np.sin(x * x.dtype.type(1.1)) + np.roll(x, 1) * x.dtype.type(0.3)
    return x


HONEST: dict[str, Any] = {
    "chain": lambda x: np.tanh(np.sin(x * 1.3) + np.roll(x, 1) ** 2) * np.exp(-x),
    "deep": _deep,
    "mean": lambda x: x - np.mean(x),
    "norm": lambda x: x / np.sqrt(np.sum(x * x)),
    "scan": lambda x: gt.scan(lambda c, s: (np.sin(c) + s, c * s), x[0], x)[1],
    "scales": lambda x: x * np.logspace(-3, 3, 40).astype(x.dtype) + np.roll(x, 2),
    "cancels": lambda x: 500 * (x + np.roll(x, 1)) - 500 * x - 500 * np.roll(x, 1) + x * x,
    "differences": lambda x: np.diff(100 * x, 2) * np.cos(x[2:]),
    "products": lambda x: np.cumprod(1 + x / 40),
    "sums": lambda x: np.log(np.cumsum(np.exp(x))),
    "kinks": lambda x: np.maximum(x, np.roll(x, 1)) * np.abs(x) + np.where(x > 1.0, x, 0.0),
}


@pytest.mark.parametrize("mode", ["forward", "reverse", "mixed"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("name", HONEST)
def test_rounding_is_no_missing_place(name: str, dtype: Any, mode: str, rng: Any) -> None:
    function = HONEST[name]
    pattern = gt.jacobian_sparsity(function)(np.ones(40, dtype))
    jacobian = gt.sparse_jacobian(function, pattern=pattern, mode=mode)
    for _ in range(3):
        jacobian(rng.normal(size=40).astype(dtype))
        jacobian(rng.integers(-2, 3, size=40).astype(dtype) + dtype(4 * (name == "norm")))


def test_rows_that_are_nothing_but_rounding(rng: Any) -> None:
    def function(x: Any) -> Any:
        return (x - 1.0) ** 3 - (x**3 - 3.0 * x**2 + 3.0 * x - 1.0)

    for pattern in (np.eye(40), np.eye(40) + np.roll(np.eye(40), 1, axis=0)):
        jacobian = gt.sparse_jacobian(function, pattern=pattern)
        for _ in range(10):
            jacobian(rng.normal(size=40))


def test_patterns_without_rows_or_columns() -> None:
    for shape, function in (((0, 3), lambda x: x[:0]), ((3, 0), lambda x: np.zeros(3) + np.sum(x))):
        for mode in ("forward", "reverse"):
            jacobian = gt.sparse_jacobian(function, pattern=np.zeros(shape), mode=mode)
            assert jacobian(np.ones(shape[1])).shape == shape


@pytest.mark.slow
def test_solvers_are_less_exact_than_their_dtype(rng: Any) -> None:
    from gradtape.scipy import integrate

    def function(x: Any) -> Any:
        parts = [integrate.quad(lambda t, s: np.exp(-s * t), 0.0, 1.0, args=(s,))[0] for s in x]
        return np.stack(parts) * x[0]

    x = rng.uniform(0.2, 0.8, size=3)
    pattern = gt.jacobian_sparsity(function)(x)
    for mode in ("forward", "reverse"):
        gt.sparse_jacobian(function, pattern=pattern, mode=mode)(x)
    with pytest.raises(PatternError, match="row 1"):
        gt.sparse_jacobian(function, pattern=np.eye(3))(x)


@pytest.mark.parametrize(
    ("pattern", "error", "text"),
    [
        (np.ones((2, 6)), ShapeError, r"got a pattern of shape \(2, 6\), expected \(6, 6\)"),
        (np.ones(6), ShapeError, "expected"),
        ("dense", ArgumentError, "got pattern=a str"),
        (object(), ArgumentError, "scipy.sparse"),
    ],
)
def test_bad_patterns(pattern: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text) as caught:
        gt.sparse_jacobian(coupled, pattern=pattern)(np.ones(6))
    assert str(caught.value).startswith("sparse_jacobian: ")
