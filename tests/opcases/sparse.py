"""Samples of sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

import our_scipy
from gradtape.errors import LinAlgError, ShapeError
from opcases.case import OpCase, Raises, draw

PRODUCT = ("sparse_matmul", "sampled_matmul")
SOLVE = ("sparse_solve", *PRODUCT)
ALL = (np.float64, np.float32, np.complex128)
# A matrix of 3 × 4, by rows: the last but one number is stored for a place that has one already.
COLUMNS, STARTS, SHAPE = np.array([1, 3, 0, 2, 2, 0]), np.array([0, 2, 2, 6]), (3, 4)
DATA = draw(6)
# A square one, far from singular.
SQUARE = (np.array([0, 2, 1, 0, 2]), np.array([0, 2, 3, 5]))
STRONG = np.array([3.0, 0.5, -2.0, 1.0, 4.0])


def theirs(kind: str, *args: Any, shape: Any) -> Any:
    return getattr(scipy.sparse, kind)(*args, shape=shape)


def product(data: Any, x: Any) -> Any:
    return our_scipy.sparse.csr_array((data, COLUMNS, STARTS), shape=SHAPE) @ x


def product_reference(data: Any, x: Any) -> Any:
    return theirs("csr_array", (data, COLUMNS, STARTS), shape=SHAPE) @ x


def from_left(x: Any, data: Any) -> Any:
    return x @ our_scipy.sparse.csr_array((data, COLUMNS, STARTS), shape=SHAPE)


def from_left_reference(x: Any, data: Any) -> Any:
    return x @ theirs("csr_array", (data, COLUMNS, STARTS), shape=SHAPE)


def by_columns(data: Any, x: Any) -> Any:
    return our_scipy.sparse.csc_array((data, COLUMNS, STARTS), shape=SHAPE[::-1]) @ x


def by_columns_reference(data: Any, x: Any) -> Any:
    return theirs("csc_array", (data, COLUMNS, STARTS), shape=SHAPE[::-1]) @ x


PLACES = (np.array([2, 0, 0, 2]), np.array([1, 3, 0, 1]))


def by_places(data: Any, x: Any) -> Any:
    return our_scipy.sparse.coo_array((data, PLACES), shape=SHAPE) @ x


def by_places_reference(data: Any, x: Any) -> Any:
    return theirs("coo_array", (data, PLACES), shape=SHAPE) @ x


CONSTANT = scipy.sparse.random_array((3, 4), density=0.5, rng=np.random.default_rng(0))


def constant(x: Any) -> Any:
    return our_scipy.sparse.matmul(CONSTANT.tocsc(), x)


def constant_left(x: Any) -> Any:
    return our_scipy.sparse.matmul(x, scipy.sparse.csr_matrix(CONSTANT))


def dense(data: Any) -> Any:
    return our_scipy.sparse.csr_array((data, COLUMNS, STARTS), shape=SHAPE).T.todense()


def dense_reference(data: Any) -> Any:
    return theirs("csr_array", (data, COLUMNS, STARTS), shape=SHAPE).toarray().T


def scaled(data: Any, x: Any) -> Any:
    s = our_scipy.sparse.csr_array((data, *SQUARE), shape=(3, 3))
    return (-s * x.sum() / 2.0).diagonal()


def scaled_reference(data: Any, x: Any) -> Any:
    s = theirs("csr_array", (data, *SQUARE), shape=(3, 3))
    return (-s * x.sum() / data.dtype.type(2)).diagonal()


def solve(data: Any, b: Any) -> Any:
    return our_scipy.sparse.linalg.spsolve(
        our_scipy.sparse.csr_array((data, *SQUARE), shape=(3, 3)), b
    )


def solve_reference(data: Any, b: Any) -> Any:
    return np.linalg.solve(theirs("csr_array", (data, *SQUARE), shape=(3, 3)).toarray(), b)


def solve_transposed(data: Any, b: Any) -> Any:
    return our_scipy.sparse.linalg.spsolve(
        our_scipy.sparse.csr_array((data, *SQUARE), shape=(3, 3)).T, b
    )


def solve_transposed_reference(data: Any, b: Any) -> Any:
    return np.linalg.solve(theirs("csr_array", (data, *SQUARE), shape=(3, 3)).toarray().T, b)


def torch_product(torch: Any, data: Any, x: Any) -> Any:
    rows = torch.tensor(np.repeat(np.arange(3), np.diff(STARTS)))
    places = torch.stack([rows, torch.tensor(COLUMNS)])
    return torch.sparse.mm(torch.sparse_coo_tensor(places, data, SHAPE, check_invariants=True), x)


def torch_solve(torch: Any, data: Any, b: Any) -> Any:
    """PyTorch solves sparse equations on few machines: the dense ones."""
    rows = torch.tensor(np.repeat(np.arange(3), np.diff(SQUARE[1])))
    places = torch.stack([rows, torch.tensor(SQUARE[0])])
    matrix = torch.sparse_coo_tensor(places, data, (3, 3), check_invariants=True)
    return torch.linalg.solve(matrix.to_dense(), b)


def row(
    function: Any, reference: Any, *args: Any, label: str = "", ops: Any = PRODUCT, **more: Any
) -> OpCase:
    label = f"sparse-{label}" if label else "sparse"
    return OpCase(function, args, reference, ops=ops, label=label, rtol=64, **more)


CASES = [
    row(
        product,
        product_reference,
        DATA,
        draw(4, 2),
        dtypes=ALL,
        torch=torch_product,
        raises=[
            Raises((DATA, draw(3)), ShapeError, r"matmul: got shapes \(3, 4\) and \(3,\)"),
            Raises((DATA, np.array(1.0)), ShapeError, "matmul"),
            Raises((draw(5), draw(4)), ShapeError, r"csr_array: got data \(5,\)"),
        ],
    ),
    row(product, product_reference, DATA, draw(4), label="vector"),
    row(
        product,
        product_reference,
        DATA,
        draw(4) + 1j * draw(4, seed=1),
        label="complex",
        dtypes=(np.float64,),
    ),
    row(from_left, from_left_reference, draw(2, 3), DATA),
    row(from_left, from_left_reference, draw(3), DATA, label="vector"),
    row(by_columns, by_columns_reference, DATA, draw(3, 2), dtypes=ALL),
    row(by_places, by_places_reference, draw(4), draw(4, 1)),
    row(constant, lambda x: CONSTANT @ x, draw(4, 2), ops=PRODUCT[:1], dtypes=(np.float64,)),
    row(constant_left, lambda x: x @ CONSTANT, draw(2, 3), ops=PRODUCT[:1], dtypes=(np.float64,)),
    row(dense, dense_reference, DATA, ops=("scatter",)),
    row(scaled, scaled_reference, STRONG, draw(2), ops=("gather", "scatter"), dtypes=(np.float64,)),
    row(
        solve,
        solve_reference,
        STRONG,
        draw(3, 2),
        ops=SOLVE,
        dtypes=ALL,
        torch=torch_solve,
        raises=[
            Raises((np.zeros(5), draw(3)), LinAlgError, "spsolve: got float64.*singular"),
            Raises((STRONG, draw(2)), ShapeError, r"spsolve: got shapes \(3, 3\) and \(2,\)"),
        ],
    ),
    row(solve, solve_reference, STRONG, draw(3), ops=SOLVE, label="vector"),
    row(solve_transposed, solve_transposed_reference, STRONG, draw(3), ops=SOLVE, dtypes=ALL),
]

NOT_NATIVE = {
    "sparse_matmul": "SciPy does it",
    "sampled_matmul": "NumPy does it, some of the stored numbers at a time",
    "sparse_solve": "SuperLU does it",
}
