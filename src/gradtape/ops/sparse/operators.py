"""Python's operators with a tensor on one side and a sparse matrix of SciPy on the other."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from gradtape.core.op import Op, op_of
from gradtape.ops.arithmetic import add, divide, multiply, subtract
from gradtape.ops.matmul import matmul_op
from gradtape.ops.sparse.arrays import as_sparse, is_scipy_sparse
from gradtape.ops.sparse.functions import matmul
from gradtape.ops.sparse.matrices import as_matrix, is_matrix

_OPERATORS = {
    op_of(add): operator.add,
    op_of(subtract): operator.sub,
    op_of(multiply): operator.mul,
    op_of(divide): operator.truediv,
}


def with_sparse(op: Op, args: Sequence[Any]) -> Any:
    """What an operator gives for a tensor and a sparse matrix of SciPy, or NotImplemented."""
    x, y = args
    if is_scipy_sparse(x) == is_scipy_sparse(y):
        return NotImplemented  # a matrix of ours comes next
    matrix = x if is_scipy_sparse(x) else y
    if op is matmul_op:
        return matmul(x, y)
    convert = as_matrix if is_matrix(matrix) else as_sparse
    known = _OPERATORS.get(op)
    if known is None or (known is operator.truediv and matrix is y):
        return NotImplemented
    return known(*(convert(one) if one is matrix else one for one in args))
