"""Some eigenvalues and singular values of large matrices: eigsh, svds.

SciPy finds them. Their derivatives follow from the equations that a pair of value and vector
solves, one pair at a time; they exist where the value differs from all others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.autodiff.host_call import host_call
from gradtape.core.aval import Aval, aval_of
from gradtape.errors import ArgumentError, DTypeError, LinAlgError, ShapeError
from gradtape.ops.arguments import as_array, as_integer
from gradtape.ops.arithmetic import abs as abs_of
from gradtape.ops.cast import astype, stop_gradient
from gradtape.ops.join import stack
from gradtape.ops.linalg.common import check_fit
from gradtape.ops.matmul import matmul
from gradtape.ops.norm import inexact
from gradtape.ops.reduce import max as max_of, sum as sum_of
from gradtape.ops.sparse.arrays import as_sparse, is_sparse
from gradtape.ops.which import all as all_of
from gradtape.solvers.implicit import ImplicitFunction
from gradtape.solvers.linear import linear_solver

# Products with a matrix, and with its transpose, given its numbers.
Product = Callable[[Any, Any], Any]


class _Matrix:
    """A real matrix, sparse or dense, by its numbers.

    Attributes:
        numbers: They, which may be a tensor.
        shape: The shape of the matrix.
    """

    def __init__(self, name: str, a: Any) -> None:
        self._sparse = as_sparse(a).in_order() if is_sparse(a) else None
        if self._sparse is None:
            if hasattr(a, "matvec"):
                raise ArgumentError(
                    f"{name}: got a LinearOperator and a tensor, expected a matrix, sparse or dense"
                )
            self.numbers = inexact(as_array(a))
        else:
            self.numbers = inexact(self._sparse.data)
        self.shape = tuple(a.shape)
        if len(self.shape) != 2:
            raise ShapeError(f"{name}: got shape {self.shape}, expected a matrix")
        if self.numbers.dtype.kind == "c":
            raise DTypeError(
                f"{name}: got a complex matrix, whose vectors are not unique; use gt.linalg"
            )

    def times(self, numbers: Any, v: Any) -> Any:
        """The product with a vector."""
        return matmul(numbers, v) if self._sparse is None else self._sparse.with_data(numbers) @ v

    def transposed_times(self, numbers: Any, v: Any) -> Any:
        """The product of the transpose with a vector."""
        if self._sparse is None:
            return matmul(numbers.mT, v)
        return self._sparse.with_data(numbers).T @ v

    def of_scipy(self, numbers: Any) -> Any:
        """The matrix as SciPy takes it, of plain numbers."""
        return numbers if self._sparse is None else self._sparse.with_data(numbers).toscipy()


def _found(name: str, function: Callable[[Any], Any], likes: Any, matrix: _Matrix) -> Any:
    """What SciPy finds, without derivatives."""
    import scipy.sparse.linalg

    def called(numbers: Any) -> Any:
        try:
            return function(matrix.of_scipy(numbers))
        except scipy.sparse.linalg.ArpackError as error:
            raise LinAlgError(f"{name}: {error}") from error

    found = host_call(called, likes, stop_gradient(matrix.numbers), deterministic=True)
    return [stop_gradient(one) for one in found]


def _alone(values: Any) -> Any:
    """For each value 1 if it differs from all others that were found, otherwise 0."""
    size = abs_of(values)
    rounding = 100 * np.finfo(values.dtype).eps * max_of(size)
    apart = abs_of(values[:, None] - values[None]) > rounding
    return astype(all_of(apart | np.eye(len(values), dtype=bool), axis=1), values.dtype)


def _solution(
    name: str, what: str, residual: Callable[..., Any], x: Sequence[Any], alone: Any, numbers: Any
) -> Any:
    """A known solution of equations that depend on the numbers of a matrix, with derivatives.

    Args:
        name: The function, for errors.
        what: The value whose equations they are, for errors.
        residual: `residual(x, numbers)`, with a symmetric Jacobian by x.
        x: The solution, without derivatives.
        alone: 0 for a value that is repeated, otherwise 1: a factor of the last equation. The
            Jacobian is then singular not only but for rounding.
        numbers: The numbers of the matrix.
    """
    count = len(x)

    def equations(x: Any, _constants: Any, leaves: Sequence[Any]) -> Any:
        *first, last = residual(x, leaves[count + 1])
        return (*first, leaves[count] * last)

    jacobian = f"a Jacobian of the equations of {what}, which may be repeated,"
    linear = linear_solver(name, jacobian, "auto")
    avals = [aval_of(leaf) for leaf in x]
    function = ImplicitFunction(name, equations, avals, (), linear, symmetric=True)
    return function(lambda *leaves: leaves[:count], [*x, alone, numbers], guesses=count)


def _check_count(name: str, k: Any, most: int) -> int:
    count = as_integer(k, name, "k")
    if not 1 <= count <= most:
        raise ArgumentError(f"{name}: got k={count}, expected a number from 1 to {most}")
    return count


def eigsh(
    A: Any,
    k: int = 6,
    *,
    sigma: float | None = None,
    which: str = "LM",
    v0: Any = None,
    ncv: int | None = None,
    maxiter: int | None = None,
    tol: float = 0,
    return_eigenvectors: bool = True,
) -> Any:
    """Some eigenvalues of a real symmetric matrix and their eigenvectors.

    A derivative exists where the eigenvalue differs from all others, and costs the solution of
    equations of as many unknowns as the matrix has rows. It is that with respect to a symmetric
    matrix: the matrix has to stay so.

    Args:
        A: The matrix, sparse or dense.
        k: How many, fewer than the matrix has rows.
        sigma: The number near which they are, or None.
        which: Which ones, as in SciPy: the largest by size ("LM"), the smallest ("SA"), …
        v0: Where the iteration begins.
        ncv: How many vectors it works with.
        maxiter: How many times it begins again at most.
        tol: The accuracy; 0 is that of the floats. Derivatives are as accurate as the vectors.
        return_eigenvectors: Whether to return the vectors, too.

    Returns:
        The eigenvalues, in rising order for most of `which`, and the eigenvectors as columns.

    Raises:
        ShapeError: The matrix is not square.
        LinAlgError: The iteration does not converge; or in a derivative, an eigenvalue is repeated.
        DTypeError: The matrix is complex.

    >>> s = gt.scipy.sparse.diags_array(gt.tensor([1.0, 5.0, 3.0, 2.0]))
    >>> gt.scipy.sparse.linalg.eigsh(s, k=2, return_eigenvectors=False).numpy().round(6)
    array([3., 5.])
    """
    matrix = _Matrix("eigsh", A)
    n = matrix.shape[0]
    check_fit("eigsh", n == matrix.shape[1], "a square matrix", A)
    k = _check_count("eigsh", k, n - 1)
    options: dict[str, Any] = {
        "sigma": sigma,
        "which": which,
        "ncv": ncv,
        "maxiter": maxiter,
        "tol": tol,
    }
    options["v0"] = None if v0 is None else np.asarray(v0)

    def computed(plain: Any) -> Any:
        import scipy.sparse.linalg

        return tuple(scipy.sparse.linalg.eigsh(plain, k, **options))

    dtype = matrix.numbers.dtype
    likes = Aval((k,), dtype), Aval((n, k), dtype)
    values, vectors = _found("eigsh", computed, likes, matrix)

    # A·v − w·v = 0 and (1 − v·v)/2 = 0: the Jacobian [[A − w, −v], [−vᵀ, 0]] is regular for a w
    # that differs from the other eigenvalues
    def residual(pair: Any, numbers: Any) -> Any:
        v, w = pair
        return matrix.times(numbers, v) - w * v, (1.0 - sum_of(v * v)) / 2.0

    alone, what = _alone(values), "an eigenvalue"
    pairs = [
        _solution("eigsh", what, residual, (vectors[:, i], values[i]), alone[i], matrix.numbers)
        for i in range(k)
    ]
    found = stack([w for _, w in pairs])
    return (found, stack([v for v, _ in pairs], axis=1)) if return_eigenvectors else found


def svds(
    A: Any,
    k: int = 6,
    ncv: int | None = None,
    tol: float = 0,
    which: str = "LM",
    v0: Any = None,
    maxiter: int | None = None,
    return_singular_vectors: bool | str = True,
    solver: str = "arpack",
) -> Any:
    """Some singular values of a real matrix and their singular vectors.

    A derivative exists where the singular value differs from all others and from 0, and costs the
    solution of equations of as many unknowns as the matrix has rows and columns.

    Args:
        A: The matrix, sparse or dense.
        k: How many, fewer than the matrix has rows or columns.
        ncv: How many vectors the iteration works with.
        tol: The accuracy; 0 is that of the floats. Derivatives are as accurate as the vectors.
        which: The largest ("LM") or the smallest ("SM") ones.
        v0: Where the iteration begins.
        maxiter: How many times it begins again at most.
        return_singular_vectors: Whether to return the vectors, too; "u" and "vh" ask for one side.
        solver: "arpack", "lobpcg" or "propack".

    Returns:
        The vectors U as columns, the values in rising order, and the vectors Vᵀ as rows.

    Raises:
        ShapeError: It is not a matrix.
        LinAlgError: The iteration does not converge; or in a derivative, a value is repeated or 0.
        DTypeError: The matrix is complex.

    >>> s = gt.scipy.sparse.diags_array(gt.tensor([1.0, 5.0, 3.0, 2.0]))
    >>> gt.scipy.sparse.linalg.svds(s, k=2, return_singular_vectors=False).numpy().round(6)
    array([3., 5.])
    """
    matrix = _Matrix("svds", A)
    m, n = matrix.shape
    k = _check_count("svds", k, min(m, n) - (solver == "arpack"))
    options: dict[str, Any] = {"ncv": ncv, "tol": tol, "which": which, "maxiter": maxiter}
    options |= {"solver": solver, "v0": None if v0 is None else np.asarray(v0)}

    def computed(plain: Any) -> Any:
        import scipy.sparse.linalg

        return tuple(scipy.sparse.linalg.svds(plain, k, **options))

    dtype = matrix.numbers.dtype
    likes = Aval((m, k), dtype), Aval((k,), dtype), Aval((k, n), dtype)
    left, values, right = _found("svds", computed, likes, matrix)

    # A·v − s·u = 0, Aᵀ·u − s·v = 0 and 1 − (u·u + v·v)/2 = 0
    def residual(triple: Any, numbers: Any) -> Any:
        u, v, s = triple
        first = matrix.times(numbers, v) - s * u
        second = matrix.transposed_times(numbers, u) - s * v
        return first, second, 1.0 - (sum_of(u * u) + sum_of(v * v)) / 2.0

    alone, what = _alone(values), "a singular value"
    triples = [
        _solution(
            "svds", what, residual, (left[:, i], right[i], values[i]), alone[i], matrix.numbers
        )
        for i in range(k)
    ]
    found = stack([s for _, _, s in triples])
    if return_singular_vectors is False:
        return found
    sides = stack([u for u, _, _ in triples], axis=1), stack([v for _, v, _ in triples])
    asked = return_singular_vectors
    return sides[0] if asked != "vh" else None, found, sides[1] if asked != "u" else None
