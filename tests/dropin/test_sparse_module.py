"""`gradtape.scipy.sparse`: SciPy's classes and functions without a tensor, ours with one."""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import gradtape as gt
from gradtape.errors import ConversionError, UnsupportedError
from gradtape.scipy import sparse
from gradtape.scipy.sparse import linalg

RNG = np.random.default_rng(0)
S = scipy.sparse.random_array((3, 3), density=0.6, rng=RNG)
DATA, PLACES = np.array([1.0, 2.0, 3.0]), ([0, 1, 2], [1, 0, 2])
FORMATS = ["csr_array", "csc_array", "coo_array", "csr_matrix", "csc_matrix", "coo_matrix"]


@pytest.mark.parametrize(
    ("ours", "theirs"), [(sparse, scipy.sparse), (linalg, scipy.sparse.linalg)]
)
def test_names_and_signatures_are_those_of_scipy(ours: Any, theirs: Any) -> None:
    for name in theirs.__all__:
        original = getattr(theirs, name)
        found = getattr(ours, name)
        if isinstance(original, FunctionType) and name not in ("splu", "factorized"):
            if name == "aslinearoperator":
                continue
            assert inspect.signature(found) == inspect.signature(original), name


@pytest.mark.parametrize("name", FORMATS)
def test_without_a_tensor_they_are_scipys(name: str) -> None:
    ours, theirs = getattr(sparse, name), getattr(scipy.sparse, name)
    for args in (((DATA, PLACES),), (np.eye(3),), (S,), ((2, 3),)):
        made = ours(*args)
        assert type(made) is theirs
        assert isinstance(made, ours)
    assert ours((DATA, PLACES), shape=(4, 4), dtype=np.float32, copy=True).dtype == np.float32
    assert issubclass(theirs, ours)

    class Own(ours):  # type: ignore[valid-type, misc]
        pass

    assert issubclass(Own, theirs)
    assert isinstance(Own(np.eye(2)), ours)
    for other in set(FORMATS) - {name}:
        assert isinstance(made, getattr(sparse, other)) == (other == name)


@pytest.mark.parametrize("name", FORMATS)
def test_with_a_tensor_they_are_ours(name: str) -> None:
    ours, theirs = getattr(sparse, name), getattr(scipy.sparse, name)
    made = ours((gt.tensor(DATA), PLACES), shape=(3, 3), copy=False)
    expected = theirs((DATA, PLACES), shape=(3, 3))
    assert isinstance(made, gt.scipy.sparse.SparseArray)
    assert isinstance(made, ours)
    assert not isinstance(made, theirs)
    np.testing.assert_array_equal(made.toarray().numpy(), expected.toarray())
    assert sparse.issparse(made)
    assert sparse.isspmatrix(made) == scipy.sparse.isspmatrix(expected)
    for kind in ("csr", "csc"):
        for family in ("array", "matrix"):
            same = f"{kind}_{family}" == name or (name == f"coo_{family}" and kind == "csr")
            assert isinstance(made, getattr(sparse, f"{kind}_{family}")) == same
        asked = getattr(sparse, f"isspmatrix_{kind}")(made)
        assert asked == isinstance(made, getattr(sparse, f"{kind}_matrix"))
    assert sparse.issparse(S)
    assert not sparse.issparse(np.eye(2))
    assert made.row.shape == made.col.shape == (3,)


def test_bad_arguments_of_a_class() -> None:
    with pytest.raises(TypeError, match=r"unexpected keyword|nonsense"):
        sparse.csr_array(gt.tensor(DATA), nonsense=1)
    with pytest.raises(gt.GradtapeError, match=r"csr_matrix: got .* expected two axes"):
        sparse.csr_matrix(gt.tensor(DATA))


def matrix(data: Any) -> Any:
    return sparse.csr_matrix((data, PLACES), shape=(3, 3))


OPERATIONS: dict[str, Any] = {
    "product": lambda a, x: a * x,
    "matrix product": lambda a, x: a @ x + a.dot(x),
    "from the left": lambda a, x: x * a + x @ a,
    "of matrices": lambda a, x: (a * a).toarray() + (a * S).toarray() + (a @ a).toarray(),
    "powers": lambda a, x: (a**2).toarray() + (a**0).toarray() + a.power(2).toarray(),
    "numbers": lambda a, x: (2.0 * a - a / 4.0 + -a).toarray(),
    "elements": lambda a, x: (a.multiply(a) + a.multiply(S)).toarray(),
    "then a product": lambda a, x: (2.0 * a) * x + a.T * x + (a + a) * x + a.tocsc() * x,
    "parts": lambda a, x: (a[0] * x) + (a[:, 1].T * x) + (a[:2, :] * x)[:1] + a[0, 1],
    "rows and columns": lambda a, x: a.getrow(1) * x + a.getcol(0).T * x,
    "sums": lambda a, x: a.sum() + a.mean() + abs(a).sum(),
    "scaled": lambda a, x: (x[0] * a) * x,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_matrices_multiply_as_scipys_do(name: str) -> None:
    """`*` of `csr_matrix` is the product of matrices, also of what is made of it."""
    x = RNG.normal(size=3)
    expected = OPERATIONS[name](scipy.sparse.csr_matrix((DATA, PLACES)), x)
    got = OPERATIONS[name](matrix(gt.tensor(DATA)), x)
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-13)
    gt.testing.check_grads(lambda data, x: OPERATIONS[name](matrix(data), x), (DATA, x))


@pytest.mark.parametrize(
    "use",
    [
        lambda a: a.sum(0),
        lambda a: a.mean(axis=1),
        lambda a: a.todense(),
        lambda a: a + np.eye(3),
        lambda a: np.eye(3) - a,
        lambda a: a[[0, 1], [1, 0]],
    ],
)
def test_what_scipy_gives_as_a_numpy_matrix_is_refused(use: Any) -> None:
    with pytest.raises(UnsupportedError, match=r"which is a numpy\.matrix in SciPy"):
        use(matrix(gt.tensor(DATA)))


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csr_matrix])
def test_matrices_are_containers_for_transforms(make: Any) -> None:
    s, x = make((gt.tensor(DATA), PLACES), shape=(3, 3)), np.array([1.0, 2.0, 3.0])

    def energy(s: Any) -> Any:
        return gt.sum((s @ (s @ x)) ** 2)

    slope = gt.grad(energy)(s)
    assert type(slope) is type(s)
    expected = gt.grad(lambda data: energy(make((data, PLACES), shape=(3, 3))))(DATA)
    np.testing.assert_allclose(np.asarray(slope.data), expected)
    np.testing.assert_allclose(np.asarray(gt.jit(gt.grad(energy))(s).data), expected)


def test_numbers_from_arrays_of_tracked_numbers() -> None:
    def first(x: Any) -> Any:
        data = np.array([np.cos(x[0]), x[1], x[0] * x[1]])
        return sparse.csr_array((data, PLACES), shape=(3, 3)) @ np.array([1.0, 2.0, 3.0])

    gt.testing.check_grads(first, (np.array([0.3, 2.0]),))

    def second(x: Any) -> Any:
        return scipy.sparse.csr_array(np.eye(2)) @ np.array([x[0] * x[1], x[0]])

    with pytest.raises(ConversionError, match=r"make a tensor of the array by gt\.asarray"):
        gt.jacobian(second)(np.array([0.3, 2.0]))


BUILDERS: dict[str, Any] = {
    "hstack": lambda m, a: m.hstack([a, np.eye(3), S]),
    "vstack": lambda m, a: m.vstack([S, a], format="csc"),
    "block_diag": lambda m, a: m.block_diag([a, np.ones((1, 2)), 2.0]),
    "block_array": lambda m, a: m.block_array([[a, None], [None, S]], format="csr"),
    "bmat": lambda m, a: m.bmat([[a, S], [None, a]], dtype=np.float32),
    "kron": lambda m, a: m.kron(a, np.array([[1.0, 2.0]])),
    "kronsum": lambda m, a: m.kronsum(a, S),
    "tril": lambda m, a: m.tril(a, 0),
    "triu": lambda m, a: m.triu(a, k=-1, format="csc"),
}


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("kind", ["csr_array", "csc_matrix"])
def test_matrices_made_of_others(name: str, kind: str) -> None:
    theirs = getattr(scipy.sparse, kind)((DATA, PLACES), shape=(3, 3))
    expected = BUILDERS[name](scipy.sparse, theirs)
    plain = BUILDERS[name](sparse, theirs)
    assert type(plain) is type(expected)
    got = BUILDERS[name](sparse, getattr(sparse, kind)((gt.tensor(DATA), PLACES), shape=(3, 3)))
    assert got.dtype == expected.dtype
    assert sparse.isspmatrix(got) == scipy.sparse.isspmatrix(expected)
    np.testing.assert_allclose(got.toarray().numpy(), expected.toarray(), rtol=1e-6)
    if "bmat" not in name:
        gt.testing.check_grads(
            lambda data: BUILDERS[name](
                sparse, getattr(sparse, kind)((data, PLACES), shape=(3, 3))
            ).toarray(),
            (DATA,),
        )


def test_diagonals_and_what_is_stored() -> None:
    for make in ("diags", "diags_array"):
        ours, theirs = getattr(sparse, make), getattr(scipy.sparse, make)
        expected = theirs([DATA, DATA[:2]], offsets=[0, 1])
        got = ours([gt.tensor(DATA), DATA[:2]], offsets=[0, 1], format="csc")
        assert got.format == "csc"
        np.testing.assert_array_equal(got.toarray().numpy(), expected.toarray())
        assert sparse.isspmatrix(got) == scipy.sparse.isspmatrix(expected)
    zeros = np.array([[0.0, 2.0], [3.0, 0.0]])
    rows, columns, numbers = sparse.find(sparse.coo_array(gt.tensor(zeros)))
    for one, other in zip((rows, columns, numbers), scipy.sparse.find(zeros), strict=True):
        np.testing.assert_array_equal(
            np.asarray(one), other[np.lexsort(scipy.sparse.find(zeros)[1::-1])]
        )


# ---- linear operators ---------------------------------------------------------------------------

DENSE = RNG.normal(size=(4, 3))


@pytest.mark.parametrize(
    "make",
    [
        lambda: linalg.LinearOperator((4, 3), lambda v: DENSE @ v, lambda v: DENSE.T @ v),
        lambda: linalg.aslinearoperator(DENSE),
        lambda: linalg.aslinearoperator(scipy.sparse.csr_array(DENSE)),
        lambda: linalg.aslinearoperator(sparse.csr_array(gt.tensor(DENSE))),
        lambda: linalg.aslinearoperator(gt.tensor(DENSE)),
        lambda: linalg.LinearOperator((3, 4), lambda v: DENSE.T @ v, lambda v: DENSE @ v).T,
        lambda: linalg.LinearOperator((3, 4), lambda v: DENSE.T @ v, lambda v: DENSE @ v).H,
        lambda: linalg.LinearOperator(
            (4, 3), lambda v: DENSE @ v, lambda v: DENSE.T @ v, lambda v: DENSE @ v, float,
            lambda v: DENSE.T @ v,
        ),
    ],
)  # fmt: skip
def test_linear_operators(make: Any) -> None:
    operator = make()
    assert isinstance(operator, scipy.sparse.linalg.LinearOperator)
    assert isinstance(operator, linalg.LinearOperator)
    x, y, wide = RNG.normal(size=3), RNG.normal(size=4), RNG.normal(size=(3, 2))
    np.testing.assert_allclose(np.asarray(operator @ x), DENSE @ x)
    np.testing.assert_allclose(np.asarray(operator(wide)), DENSE @ wide)
    np.testing.assert_allclose(np.asarray(operator.matvec(x[:, None])), DENSE @ x[:, None])
    for function, at in (
        (lambda x: operator @ x, x),
        (lambda x: operator * x, wide),
        (operator.matvec, x),
        (operator.rmatvec, y),
        (operator.matmat, wide),
        (operator.rmatmat, np.stack([y, y], 1)),
        (lambda y: operator.T @ y, y),
        (lambda y: operator.H.dot(y), y),
    ):
        assert isinstance(function(gt.tensor(at)), gt.Tensor)
        gt.testing.check_grads(function, (at,))
    for bad in (gt.tensor(y), gt.tensor(wide)):
        with pytest.raises(gt.GradtapeError, match=r"LinearOperator: got shape \("):
            operator.matvec(bad)


def test_operators_derived_from_a_linear_operator() -> None:
    class Scaled(linalg.LinearOperator):  # type: ignore[misc, name-defined]
        def __init__(self, factor: Any) -> None:
            super().__init__(dtype=float, shape=(3, 3))
            self.factor = factor

        def _matvec(self, x: Any) -> Any:
            return self.factor * x

    x, wide = RNG.normal(size=3), RNG.normal(size=(3, 2))
    np.testing.assert_allclose(Scaled(2.0) @ x, 2 * x)
    np.testing.assert_allclose((Scaled(2.0) + Scaled(1.0)) @ x, 3 * x)
    np.testing.assert_allclose(gt.grad(lambda c: gt.sum(Scaled(c) @ x))(2.0), x.sum())
    np.testing.assert_allclose(gt.grad(lambda c: gt.sum(Scaled(c) @ wide))(2.0), wide.sum())
    # Also where SciPy's solver would be called with arrays.
    solved = gt.grad(lambda c: gt.sum(linalg.cg(Scaled(c), x)[0]))(2.0)
    np.testing.assert_allclose(solved, -x.sum() / 4)
    values = linalg.eigsh(Scaled(2.0), 1, return_eigenvectors=False)
    np.testing.assert_allclose(values, 2)
