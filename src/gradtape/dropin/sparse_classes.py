"""Classes with the names of SciPy's sparse formats: SciPy's own, or ours where there is a tensor.

`csr_array(...)` without a tensor among its arguments makes SciPy's matrix. `isinstance` knows both,
and a class derived from one of them is derived from SciPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape.dropin.held_tensors import any_tensor
from gradtape.locks import load
from gradtape.ops.adapt import Adapter
from gradtape.ops.sparse import making
from gradtape.ops.sparse.arrays import SparseArray, is_sparse
from gradtape.ops.sparse.matrices import SparseMatrix, as_matrix, is_matrix


def _scipys(name: str) -> type:
    return getattr(load("scipy.sparse"), name)  # type: ignore[no-any-return]


class Format(type):
    """The metaclass of the formats.

    Attributes:
        on_tensors: What makes a matrix of tensors.
    """

    on_tensors: Callable[..., Any]

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        """Make a format, or a class derived from SciPy's format."""
        if bases:
            known = (_scipys(base.__name__) if isinstance(base, Format) else base for base in bases)
            return type(name, tuple(known), namespace)
        return super().__new__(mcs, name, bases, namespace)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        original = _scipys(cls.__name__)
        if not any_tensor(args, kwargs):
            return original(*args, **kwargs)
        name = f"scipy.sparse.{cls.__name__}"
        return Adapter(original, cls.on_tensors, name, _WITHOUT_EFFECT)(args, kwargs)

    def __instancecheck__(cls, x: Any) -> bool:
        if not isinstance(x, SparseArray):
            return isinstance(x, _scipys(cls.__name__))
        kind, _, family = cls.__name__.partition("_")
        # Any matrix has the places that `coo_array` has.
        return (family == "matrix") == isinstance(x, SparseMatrix) and kind in (x.format, "coo")

    def __subclasscheck__(cls, other: type) -> bool:
        return other is cls or issubclass(other, _scipys(cls.__name__))


# How long an array lives does not matter to tensors; `maxprint` is for printing.
_WITHOUT_EFFECT = frozenset({"copy", "maxprint"})


class csr_array(metaclass=Format):  # noqa: N801 (SciPy's name)
    """A sparse matrix stored row by row; a `SparseArray` if a tensor is among the arguments.

    The arguments are SciPy's: `(data, indices, indptr)`, `(data, (row, col))`, a dense matrix, a
    sparse one, or a shape; and `shape`, `dtype`, `copy`.

    >>> s = gt.scipy.sparse.csr_array((gt.tensor([1.0, 2.0]), ([0, 1], [1, 0])), shape=(2, 2))
    >>> s @ np.array([3.0, 4.0])
    tensor([4., 6.])
    >>> gt.scipy.sparse.csr_array(np.eye(2)) @ gt.tensor([3.0, 4.0])
    tensor([3., 4.])
    """

    on_tensors = making.csr_array


class csc_array(metaclass=Format):  # noqa: N801
    """A sparse matrix stored column by column, as `csr_array` by rows.

    >>> gt.scipy.sparse.csc_array(gt.tensor([[1.0, 0.0], [0.0, 2.0]]))
    <sparse float64[2, 2] with 2 stored numbers>
    """

    on_tensors = making.csc_array


class coo_array(metaclass=Format):  # noqa: N801
    """A sparse matrix of numbers and their places, `(data, (row, col))`.

    >>> gt.scipy.sparse.coo_array((gt.tensor([1.0, 2.0]), ([0, 0], [1, 1]))).toarray()
    tensor([[0., 3.]])
    """

    on_tensors = making.coo_array


class csr_matrix(metaclass=Format):  # noqa: N801
    """As `csr_array`, with the operators of SciPy's older classes: `*` multiplies matrices.

    >>> s = gt.scipy.sparse.csr_matrix(gt.tensor([[1.0, 0.0], [0.0, 2.0]]))
    >>> s * np.array([3.0, 4.0])
    tensor([3., 8.])
    """

    @staticmethod
    def on_tensors(arg1: Any, shape: Any = None, dtype: Any = None) -> SparseMatrix:
        """Make a matrix of tensors."""
        return as_matrix(making.csr_array(arg1, shape, dtype))


class csc_matrix(metaclass=Format):  # noqa: N801
    """As `csc_array`, with the operators of SciPy's older classes: `*` multiplies matrices.

    >>> s = gt.scipy.sparse.csc_matrix(gt.tensor([[1.0, 0.0], [0.0, 2.0]]))
    >>> s * np.array([3.0, 4.0])
    tensor([3., 8.])
    """

    @staticmethod
    def on_tensors(arg1: Any, shape: Any = None, dtype: Any = None) -> SparseMatrix:
        """Make a matrix of tensors."""
        return as_matrix(making.csc_array(arg1, shape, dtype))


class coo_matrix(metaclass=Format):  # noqa: N801
    """As `coo_array`, with the operators of SciPy's older classes: `*` multiplies matrices.

    >>> s = gt.scipy.sparse.coo_matrix((gt.tensor([1.0, 2.0]), ([0, 1], [0, 1])))
    >>> s * np.array([3.0, 4.0])
    tensor([3., 8.])
    """

    @staticmethod
    def on_tensors(arg1: Any, shape: Any = None, dtype: Any = None) -> SparseMatrix:
        """Make a matrix of tensors."""
        return as_matrix(making.coo_array(arg1, shape, dtype))


def issparse(x: Any) -> bool:
    """Whether something is a sparse matrix, of SciPy or with tensors.

    >>> gt.scipy.sparse.issparse(gt.scipy.sparse.csr_array(gt.tensor([[1.0]])))
    True
    """
    return is_sparse(x)


def isspmatrix(x: Any) -> bool:
    """Whether something is a sparse matrix with the operators of SciPy's older classes.

    >>> gt.scipy.sparse.isspmatrix(gt.scipy.sparse.csr_array(gt.tensor([[1.0]])))
    False
    """
    return is_sparse(x) and is_matrix(x)


def isspmatrix_csr(x: Any) -> bool:
    """Whether something is a `csr_matrix`.

    >>> gt.scipy.sparse.isspmatrix_csr(gt.scipy.sparse.csr_matrix(gt.tensor([[1.0]])))
    True
    """
    return isinstance(x, csr_matrix)


def isspmatrix_csc(x: Any) -> bool:
    """Whether something is a `csc_matrix`.

    >>> gt.scipy.sparse.isspmatrix_csc(gt.scipy.sparse.csr_matrix(gt.tensor([[1.0]])))
    False
    """
    return isinstance(x, csc_matrix)


def isspmatrix_coo(x: Any) -> bool:
    """Whether something is a `coo_matrix`.

    >>> gt.scipy.sparse.isspmatrix_coo(gt.scipy.sparse.csr_matrix(gt.tensor([[1.0]])))
    True
    """
    return isinstance(x, coo_matrix)
