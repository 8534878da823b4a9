"""Sparse matrices: how they are made, what they refuse, and what is done with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import gradtape as gt
import our_scipy
from gradtape.errors import ArgumentError, ShapeError, UnsupportedError
from gradtape.ops.sparse import product as products

RNG = np.random.default_rng(0)
S = scipy.sparse.random_array((5, 4), density=0.4, rng=RNG)


def in_detail(thorough: bool) -> dict[str, Any]:
    """Options of `check_grads`: entry by entry, or along random directions of all entries."""
    return {} if thorough else {"entries": 0}


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia", "lil"])
def test_every_format_of_scipy(kind: str) -> None:
    for cls in ("array", "matrix"):
        s = getattr(scipy.sparse, f"{kind}_{cls}")(S)
        np.testing.assert_array_equal(our_scipy.sparse.from_scipy(s).toarray(), S.toarray())
        np.testing.assert_allclose(our_scipy.sparse.matmul(s, np.ones(4)), S @ np.ones(4))


def test_the_same_as_scipy_from_the_same_arrays() -> None:
    rows, columns, places = S.tocsr(), S.tocsc(), S.tocoo()
    ours = (
        our_scipy.sparse.csr_array((rows.data, rows.indices, rows.indptr), shape=S.shape),
        our_scipy.sparse.csc_array((columns.data, columns.indices, columns.indptr), shape=S.shape),
        our_scipy.sparse.coo_array((places.data, places.coords), shape=S.shape),
    )
    for s in ours:
        assert (s.shape, s.ndim, s.nnz, s.dtype) == (S.shape, 2, S.nnz, S.dtype)
        np.testing.assert_array_equal(s.toarray(), S.toarray())
        np.testing.assert_array_equal(s.T.toarray(), S.toarray().T)
        np.testing.assert_array_equal(s.toscipy().toarray(), S.toarray())
        np.testing.assert_array_equal(s.diagonal(), S.diagonal())
        np.testing.assert_array_equal((2 * s / 4).toarray(), S.toarray() / 2)
        assert our_scipy.sparse.csr_array(s) is s
        assert "5, 4" in repr(s)


def test_half_precision_stays_what_it_is() -> None:
    data = S.tocsr().data.astype(np.float16)
    rows = S.tocsr()

    def function(data: Any, x: Any) -> Any:
        return our_scipy.sparse.csr_array((data, rows.indices, rows.indptr), shape=S.shape) @ x

    x = np.ones(4, np.float16)
    for made in (function(gt.tensor(data), x), gt.jit(function)(data, x)):
        assert made.dtype == np.float16
        np.testing.assert_allclose(np.asarray(made, float), S @ np.ones(4), 1e-2)


def test_numbers_for_one_place_are_added() -> None:
    s = our_scipy.sparse.coo_array((np.array([1.0, 2.0]), ([1, 1], [0, 0])))
    np.testing.assert_array_equal(s.toarray(), [[0.0], [3.0]])


def test_operators_from_both_sides() -> None:
    s, x = our_scipy.sparse.from_scipy(S), RNG.normal(size=(3, 5))
    for left in (x, gt.Tensor(x)):
        np.testing.assert_allclose(np.asarray(left @ s), x @ S.toarray())
        np.testing.assert_allclose(np.asarray(left[0] @ s), x[0] @ S.toarray())
    stack = RNG.normal(size=(2, 4, 3))
    np.testing.assert_allclose(s @ stack, S.toarray() @ stack)


def test_gradient_of_a_constant_matrix_of_scipy() -> None:
    x = RNG.normal(size=4)
    grad = gt.grad(lambda x: gt.sum(our_scipy.sparse.matmul(S, x) ** 2))(x)
    np.testing.assert_allclose(grad, 2 * S.T @ (S @ x))


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "dia", "bsr", "lil", "dok"])
@pytest.mark.parametrize("family", ["array", "matrix"])
def test_matrices_of_scipy_from_the_left(kind: str, family: str) -> None:
    """`a @ t` of SciPy's own matrices, which leave the operator to the tensor."""
    s = getattr(scipy.sparse, f"{kind}_{family}")(S)
    x, columns = RNG.normal(size=4), RNG.normal(size=(4, 2))
    dense = S.toarray()
    for t in (x, columns):
        for function in (lambda t: s @ t, lambda t: s.T.T @ t, lambda t: s.tocsr().dot(t)):
            expected = dense @ t
            np.testing.assert_allclose(function(gt.tensor(t)).numpy(), expected, rtol=1e-14)
            np.testing.assert_allclose(gt.jit(function)(t), expected, rtol=1e-14)
            gt.testing.check_grads(function, (t,), order=2)
    grad = gt.grad(lambda t: gt.sum((s @ t) ** 2))(x)
    np.testing.assert_allclose(grad, 2 * dense.T @ (dense @ x))
    np.testing.assert_allclose(gt.vmap(lambda t: s @ t)(columns.T), (dense @ columns).T)
    np.testing.assert_allclose(gt.jacobian(lambda t: s @ t)(x), dense)
    leaf = gt.tensor(x, requires_grad=True)
    gt.sum(s @ leaf).backward()
    np.testing.assert_allclose(leaf.grad.numpy(), dense.sum(0), rtol=1e-13)
    assert type(s @ x) is np.ndarray


def test_other_operators_with_arrays_of_scipy() -> None:
    s, dense = S.tocsr(), S.toarray()
    t = RNG.uniform(1, 2, dense.shape)
    for function in (
        lambda s, t: s + t,
        lambda s, t: s - t,
        lambda s, t: t + s,
        lambda s, t: t - s,
        lambda s, t: t * s,
        lambda s, t: s / t,
    ):
        expected = function(dense, t)
        got = function(s, gt.tensor(t))
        got = got.toarray() if hasattr(got, "toarray") else got
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-13)
    half = gt.grad(lambda c: (c * s).sum() + (s / c).sum())(2.0)
    np.testing.assert_allclose(half, dense.sum() * (1 - 1 / 4), rtol=1e-13)


def test_matrices_of_scipy_keep_their_own_product() -> None:
    """For `csr_matrix`, as opposed to `csr_array`, `*` multiplies matrices."""
    s, x, y = scipy.sparse.csr_matrix(S), RNG.normal(size=4), RNG.normal(size=(2, 5))
    np.testing.assert_allclose((s * gt.tensor(x)).numpy(), S @ x, rtol=1e-13)
    np.testing.assert_allclose((gt.tensor(y) * s).numpy(), y @ S, rtol=1e-13)
    gt.testing.check_grads(lambda x: s * x, (x,))
    scaled = gt.tensor(2.0) * s
    np.testing.assert_allclose((scaled * x).numpy(), 2 * (S @ x), rtol=1e-13)
    with pytest.raises(UnsupportedError, match=r"a numpy\.matrix in SciPy, .* use toarray"):
        s + gt.tensor(S.toarray())


def test_other_conversions_of_a_recorded_tensor_still_raise() -> None:
    s = S.tocsr()
    for function in (
        lambda t: s * t,
        lambda t: s.multiply(t),
        lambda t: scipy.sparse.csr_array(t),
        lambda t: s._matmul_dispatch(t),
        lambda t: np.asarray(t),
    ):
        with pytest.raises(gt.GradtapeError, match="recorded by"):
            gt.grad(lambda t, f=function: (f(t), gt.sum(t))[1])(np.ones(S.shape))
    # SciPy 1.15 raises an error of its own.
    with pytest.raises((gt.GradtapeError, ValueError), match=r"recorded"):
        gt.grad(lambda t: (s.maximum(t), gt.sum(t))[1])(np.ones(S.shape))


def test_many_stored_numbers_are_sampled_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:

    s, x = our_scipy.sparse.from_scipy(S), RNG.normal(size=(4, 3))

    def grad() -> Any:
        return gt.grad(lambda data: gt.sum((s.with_data(data) @ x) ** 2))(s.data)

    at_once = grad()
    monkeypatch.setattr(products, "_CHUNK", 6)
    np.testing.assert_allclose(grad(), at_once)


def test_a_compiled_solver(thorough: bool) -> None:
    """A chain of springs: the gradient of the energy in their strengths, inside of a plan."""
    n = 6
    left = scipy.sparse.diags_array([np.ones(n), -np.ones(n - 1)], offsets=[0, -1]).tocoo()

    def energy(k: Any, f: Any) -> Any:
        def stiffness(x: Any) -> Any:
            return our_scipy.sparse.matmul(left.T, k * our_scipy.sparse.matmul(left, x))

        matrix = gt.vmap(stiffness, out_axes=1)(np.eye(n))
        row, col = np.nonzero(np.abs(left.T @ left).toarray())
        s = our_scipy.sparse.coo_array((matrix[row, col], (row, col)), shape=(n, n))
        return f @ our_scipy.sparse.linalg.spsolve(s, f)

    k, f = RNG.uniform(1, 2, n), RNG.normal(size=n)
    gt.testing.check_grads(energy, (k, f), order=2, **in_detail(thorough))
    compiled = gt.jit(gt.grad(energy))(k, f)
    np.testing.assert_allclose(compiled, gt.grad(energy)(k, f), rtol=1e-12)


@pytest.mark.parametrize("kind", ["csr_array", "csc_array"])
def test_equations_with_stored_numbers_of_any_layout(kind: str) -> None:
    """Every second one, backwards, and batches along the last axis."""
    matrix = getattr(scipy.sparse, kind)(S @ S.T + 4 * np.eye(S.shape[0]))
    b = RNG.normal(size=S.shape[0])

    def solved(data: Any) -> Any:
        made = getattr(our_scipy.sparse, kind)(
            (data, matrix.indices, matrix.indptr), shape=matrix.shape
        )
        return our_scipy.sparse.linalg.spsolve(made, b)

    expected = np.linalg.solve(matrix.toarray(), b)
    slope = gt.grad(lambda data: gt.sum(solved(data)))
    for data in (np.repeat(matrix.data, 2)[::2], matrix.data[::-1].copy()[::-1]):
        np.testing.assert_allclose(solved(data), expected, rtol=1e-10)
        np.testing.assert_allclose(slope(data), slope(matrix.data), rtol=1e-10)
    batch = np.stack([matrix.data, 2 * matrix.data], axis=1)
    both = gt.vmap(solved, in_axes=1)(batch)
    np.testing.assert_allclose(both, [expected, expected / 2], rtol=1e-10)


def test_equations_leave_the_matrix_as_it_is() -> None:
    """Also one whose places repeat and are in no order, which SciPy's solver changes."""
    places = [0, 2, 0, 1, 2, 0], [2, 1, 2, 0, 0, 0]
    numbers = np.array([1.5, -0.7, 0.4, 2.0, -1.2, 0.9])
    order = np.argsort(places[0], kind="stable")
    rows = (numbers[order], np.array(places[1])[order], np.array([0, 3, 4, 6]))
    dense = scipy.sparse.coo_array((numbers, places), shape=(3, 3)).toarray()
    for kind, given in (("coo", (numbers, places)), ("csr", rows), ("csc", rows)):
        make = getattr(our_scipy.sparse, f"{kind}_array")
        s, b = make(given, shape=(3, 3)), np.ones(3)
        expected = dense.T if kind == "csc" else dense
        gt.testing.check_grads(
            lambda data, make=make, given=given: our_scipy.sparse.linalg.spsolve(
                make((data, *given[1:]), shape=(3, 3)), np.ones(3)
            ),
            (given[0],),
        )
        gt.grad(lambda b, s=s: gt.sum(our_scipy.sparse.linalg.spsolve(s, b)))(b)
        np.testing.assert_allclose(
            our_scipy.sparse.linalg.spsolve(s, b), np.linalg.solve(expected, b)
        )
        np.testing.assert_allclose(s @ b, expected @ b, rtol=1e-12)
        np.testing.assert_array_equal(s.toarray(), expected)


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (
            lambda: our_scipy.sparse.csr_array(np.ones(2)),
            ShapeError,
            r"csr_array: got .*\(2,\), expected two",
        ),
        (
            lambda: our_scipy.sparse.csr_array((np.ones(2), 3)),
            ArgumentError,
            r"got a tuple \(ndarray, int\), expected \(data, indices, indptr\), \(data, \(row, col",
        ),
        (
            lambda: our_scipy.sparse.coo_array((np.ones(2), [0, 1], [0, 1, 2])),
            ArgumentError,
            r"coo_array: got a tuple \(ndarray, list, list\), expected \(data, \(row, col",
        ),
        (
            lambda: our_scipy.sparse.csc_array((2, 2), shape=(3, 3)),
            ShapeError,
            r"shape \(2, 2\) and shape",
        ),
        (
            lambda: our_scipy.sparse.csr_array(S, shape=(9, 9)),
            ShapeError,
            r"\(5, 4\) and shape=\(9, 9\)",
        ),
        (
            lambda: our_scipy.sparse.csr_array(S, shape=(9,)),
            ShapeError,
            "numbers of rows and columns",
        ),
        (
            lambda: our_scipy.sparse.csr_array((np.ones(1), [2], [0, 1]), shape=(1, 2)),
            ArgumentError,
            "got index 2, expected numbers from 0 to 1",
        ),
        (
            lambda: our_scipy.sparse.coo_array((np.ones(1), ([0], [-1])), shape=(1, 2)),
            ArgumentError,
            "got column -1",
        ),
        (
            lambda: our_scipy.sparse.csr_array((np.ones(2), [0, 1], [0, 3, 2]), shape=(2, 2)),
            ShapeError,
            "indptr to rise",
        ),
        (
            lambda: our_scipy.sparse.csr_array((np.ones(1), [0.5], [0, 1]), shape=(1, 2)),
            ArgumentError,
            "got indices of float64",
        ),
        (
            lambda: our_scipy.sparse.coo_array((np.ones(2), ([0], [0]))),
            ShapeError,
            "expected the same",
        ),
        (
            lambda: our_scipy.sparse.from_scipy(S) @ S,
            ShapeError,
            "expected as many rows of the second",
        ),
        (
            lambda: our_scipy.sparse.from_scipy(S) * np.ones(5),
            ShapeError,
            "broadcasts to the matrix",
        ),
        (lambda: our_scipy.sparse.from_scipy(S) + 1, UnsupportedError, "fill all places"),
        (lambda: our_scipy.sparse.from_scipy(S) + S.T, ShapeError, r"\(5, 4\) and \(4, 5\)"),
        (lambda: our_scipy.sparse.from_scipy(S) ** -1, UnsupportedError, "a number above 0"),
        (lambda: our_scipy.sparse.hstack([S, S.T]), ShapeError, "hstack: got blocks of shapes"),
        (lambda: our_scipy.sparse.vstack([]), ArgumentError, "vstack: expected a sequence"),
        (lambda: our_scipy.sparse.linalg.matrix_power(S, 2), ShapeError, "a square matrix"),
        (
            lambda: our_scipy.sparse.diags_array([np.ones(2)], offsets=[0, 1]),
            ShapeError,
            "1 diagonals",
        ),
        (
            lambda: our_scipy.sparse.diags_array(np.ones(3), shape=(2, 2)),
            ShapeError,
            r"expected \(2,\)",
        ),
        (lambda: our_scipy.sparse.from_scipy(S).with_data(np.ones(1)), ShapeError, "with_data"),
        (lambda: our_scipy.sparse.matmul(np.eye(2), np.eye(2)), ArgumentError, "use gt.matmul"),
        (
            lambda: our_scipy.sparse.linalg.spsolve(np.eye(2), np.ones(2)),
            ArgumentError,
            "use gt.solve",
        ),
        (lambda: our_scipy.sparse.linalg.spsolve(S, np.ones(5)), ShapeError, "square matrix"),
    ],
)
def test_what_is_refused(make: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        make()


@pytest.mark.parametrize("kind", ["csr_array", "csc_matrix", "coo_array", "dia_array"])
def test_products_with_matrices_of_scipy_by_the_operator(kind: str) -> None:
    s = getattr(scipy.sparse, kind)(S)
    x, y = RNG.normal(size=(2, S.shape[0])), RNG.normal(size=(S.shape[1], 2))
    for function in (lambda t: t @ s, lambda t: gt.matmul(t, s), lambda t: np.matmul(t, s)):
        out = function(gt.tensor(x))
        assert isinstance(out, gt.Tensor)
        np.testing.assert_allclose(out.numpy(), x @ S.toarray(), rtol=1e-14)
    gt.testing.check_grads(lambda t: gt.matmul(t, s), (x,))
    np.testing.assert_allclose(gt.jit(lambda t: t @ s)(x), x @ S.toarray(), rtol=1e-14)
    np.testing.assert_allclose(gt.vmap(lambda t: t @ s)(x), x @ S.toarray(), rtol=1e-14)
    np.testing.assert_allclose(gt.matmul(s, y), S @ y, rtol=1e-14)


def test_places_cannot_be_batched() -> None:

    def one(indices: Any) -> Any:
        return products.product(
            np.ones(1), np.ones((2, 1)), indices, np.array([0, 1]), shape=(1, 2), transpose=False
        )

    with pytest.raises(UnsupportedError, match="a batch of places"):
        gt.vmap(one)(np.array([[0], [1]]))


# ---- matrices with each other -------------------------------------------------------------------

# By rows with a place that is stored twice, by columns, and one of SciPy.
A = (RNG.normal(size=5), np.array([2, 0, 1, 1, 2]), np.array([0, 2, 4, 5]))
B = (RNG.normal(size=4), np.array([1, 2, 0, 2]), np.array([0, 1, 3, 4]))
C = scipy.sparse.random_array((3, 3), density=0.5, rng=RNG)
DENSE = RNG.normal(size=(3, 3))
PAIRS: dict[str, Any] = {
    "product": lambda m, a, b, c: a @ b,
    "product with SciPy's": lambda m, a, b, c: a @ c + c @ b,
    "sum": lambda m, a, b, c: a + b - c,
    "sum with nothing": lambda m, a, b, c: sum([a, b]) - 0,
    "elements": lambda m, a, b, c: a * b.multiply(3.0),
    "elements with dense": lambda m, a, b, c: a * DENSE + b * DENSE[0] + DENSE[:, :1] * a,
    "dense sum": lambda m, a, b, c: a + DENSE,
    "dense difference": lambda m, a, b, c: DENSE - b,
    "quotient": lambda m, a, b, c: a / (2 + DENSE**2) + b / 4.0,
    "power": lambda m, a, b, c: a**2 + b.power(3),
    "sizes": lambda m, a, b, c: abs(a) + abs(b).T,
    "formats": lambda m, a, b, c: a.tocsc() @ b.tocsr() + a.T.tocsr() + b.tocoo().conj(),
    "part": lambda m, a, b, c: a[:2, 1:] @ b[1:, [0, 2]],
    "row and column": lambda m, a, b, c: dense(a[1]) * dense(b[:, 2]) + dense(b[-1]),
    "single elements": lambda m, a, b, c: a[1, 1] + b[0, 1] + a[0, 1] + (a[[0, 1], [2, 1]]).sum(),
    "sums": lambda m, a, b, c: a.sum(0) + b.sum(1) + a.sum() + b.mean(axis=0) + a.mean(),
    "diagonals": lambda m, a, b, c: a.diagonal() + b.trace() + (a.diagonal(1)).sum(),
    "lower diagonal": lambda m, a, b, c: b.diagonal(-1) + a.T.diagonal(-1) + a.diagonal(-2),
    "side by side": lambda m, a, b, c: m.hstack([a, c, b.T]),
    "above": lambda m, a, b, c: m.vstack([a, b]),
    "blocks": lambda m, a, b, c: m.block_array([[a, None], [c, b]]) + m.block_diag([b, a]),
    "triangles": lambda m, a, b, c: m.tril(a, 1) + m.triu(b) + m.tril(c, -1),
    "Kronecker": lambda m, a, b, c: m.kron(a, b[:2]) + m.kron(c, b[1:]),
    "identity": lambda m, a, b, c: a + 2.0 * m.eye_array(3, k=1) + m.eye_array(3, 3),
    "diagonal matrices": lambda m, a, b, c: (
        m.diags_array([a.data[:2], b.data[:1]], offsets=[1, -2]) + m.diags_array(a.data[:3])
    ),
}


def dense(x: Any) -> Any:
    return x.toarray() if hasattr(x, "toarray") else x


@pytest.mark.parametrize("name", PAIRS)
def test_matrices_with_each_other(name: str, thorough: bool) -> None:
    """Value, derivatives, compiled and batched, against SciPy."""

    def matrices(module: Any, a: Any, b: Any) -> Any:
        return (
            module.csr_array((a, *A[1:]), shape=(3, 3)),
            module.csc_array((b, *B[1:]), shape=(3, 3)),
        )

    def ours(a: Any, b: Any) -> Any:
        return dense(PAIRS[name](our_scipy.sparse, *matrices(our_scipy.sparse, a, b), C))

    theirs = tuple(one.copy() for one in matrices(scipy.sparse, A[0], B[0]))
    if "power" in name or "sizes" in name:
        for one in theirs:
            one.sum_duplicates()  # SciPy takes powers of what is stored
    expected = dense(PAIRS[name](scipy.sparse, *theirs, C))
    got = ours(A[0], B[0])
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-13)
    gt.testing.check_grads(ours, (A[0], B[0]), **in_detail(thorough))
    np.testing.assert_allclose(gt.jit(ours)(A[0], B[0]), expected, rtol=1e-12, atol=1e-13)
    rows = gt.vmap(ours)(np.stack([A[0], 2 * A[0]]), np.stack([B[0], -B[0]]))
    np.testing.assert_allclose(rows[1], ours(2 * A[0], -B[0]), rtol=1e-12, atol=1e-13)


def test_norms_powers_and_triangles(thorough: bool) -> None:
    options = in_detail(thorough)
    data, places = (
        np.array([2.0, -1.0, 0.5, 3.0, 4.0, 1.5]),
        (
            np.array([0, 2, 0, 1, 1, 2]),
            np.array([0, 2, 4, 6]),
        ),
    )

    def matrix(data: Any, module: Any = our_scipy.sparse) -> Any:
        return module.csr_array((data, *places), shape=(3, 3))

    plain = matrix(data, scipy.sparse)
    b = RNG.normal(size=3)
    for ord, axis in ((None, None), ("fro", None), (1, None), (np.inf, None), (None, 0), (1, 1)):
        expected = scipy.sparse.linalg.norm(plain, ord, axis)
        np.testing.assert_allclose(
            our_scipy.sparse.linalg.norm(matrix(data), ord, axis), expected, rtol=1e-14
        )
        gt.testing.check_grads(
            lambda d, o=ord, a=axis: our_scipy.sparse.linalg.norm(matrix(d), o, a),
            (data,),
            **options,
        )
    for power in (0, 1, 2, 5):
        expected = scipy.sparse.linalg.matrix_power(plain, power).toarray()
        got = our_scipy.sparse.linalg.matrix_power(matrix(data), power).toarray()
        np.testing.assert_allclose(got, expected, rtol=1e-13)
    gt.testing.check_grads(
        lambda d: our_scipy.sparse.linalg.matrix_power(matrix(d), 3).toarray(), (data,), **options
    )
    for lower in (True, False):
        for unit in (True, False):
            triangle = (np.tril if lower else np.triu)(plain.toarray())
            if unit:
                np.fill_diagonal(triangle, 1)

            def solved(data: Any, b: Any, lower: bool = lower, unit: bool = unit) -> Any:
                return our_scipy.sparse.linalg.spsolve_triangular(
                    matrix(data), b, lower, unit_diagonal=unit
                )

            np.testing.assert_allclose(solved(data, b), np.linalg.solve(triangle, b), rtol=1e-12)
            gt.testing.check_grads(solved, (data, b), **options)


def test_a_sparse_right_hand_side() -> None:
    s, b = our_scipy.sparse.csr_array(A, shape=(3, 3)), our_scipy.sparse.csc_array(B, shape=(3, 3))
    expected = np.linalg.solve(s.toarray(), b.toarray())
    solved = our_scipy.sparse.linalg.spsolve
    np.testing.assert_allclose(solved(s, b).toarray(), expected, rtol=1e-12)
    np.testing.assert_allclose(solved(s, b[:, [1]]), expected[:, 1], rtol=1e-12)


def test_tensors_and_matrices_with_operators() -> None:
    """A tensor leaves operators with a sparse matrix to it."""
    s, t = our_scipy.sparse.csr_array(A, shape=(3, 3)), gt.tensor(DENSE)
    np.testing.assert_allclose((t @ s).numpy(), DENSE @ s.toarray(), rtol=1e-13)
    np.testing.assert_allclose((t + s).numpy(), DENSE + s.toarray(), rtol=1e-13)
    np.testing.assert_allclose((t - s).numpy(), DENSE - s.toarray(), rtol=1e-13)
    np.testing.assert_allclose((t * s).toarray(), DENSE * s.toarray(), rtol=1e-13)
    gradient = gt.grad(lambda c: (c * s).sum())(2.0)
    np.testing.assert_allclose(gradient, A[0].sum(), rtol=1e-13)
