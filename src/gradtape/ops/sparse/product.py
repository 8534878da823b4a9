"""Products of a sparse matrix as ops, differentiable in its stored numbers as in the dense factor.

A matrix is given by its rows (CSR): the stored numbers `data`, the columns `indices` they stand in,
and where each row begins and ends in them, `indptr`. The places are constant. Arrays are
stacks: data (…, stored), dense matrices (…, rows, columns).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.call import call
from gradtape.core.define import broadcast_sizes, multilinear, unbroadcast
from gradtape.core.op import Op, Zero, op_of
from gradtape.errors import UnsupportedError
from gradtape.ops.arguments import Batch
from gradtape.ops.cast import conj_if_complex
from gradtape.ops.linalg.stacks import batch_first

Shape = tuple[int, int]
# The number of products held at once where they are summed up.
_CHUNK = 1 << 20


def rows_of(indptr: Any) -> Any:
    """The row of each stored number."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def by_columns(apply: Callable[[Any], Any], x: Any) -> Any:
    """Apply a function of a matrix to a stack: all of them side by side are one matrix."""
    if x.ndim == 2:
        return apply(x)
    lead, (rows, columns) = x.shape[:-2], x.shape[-2:]
    count = math.prod(lead)
    wide = np.moveaxis(x.reshape(count, rows, columns), 0, 1).reshape(rows, count * columns)
    out = apply(wide)
    out = np.moveaxis(out.reshape(out.shape[0], count, columns), 1, 0)
    return out.reshape(*lead, *out.shape[-2:])


def for_each(apply: Callable[[Any, Any], Any], data: Any, x: Any) -> Any:
    """Apply a function of stored numbers and a matrix to each pair of two stacks."""
    lead = np.broadcast_shapes(data.shape[:-1], x.shape[:-2])
    data = np.broadcast_to(data, (*lead, data.shape[-1]))
    x = np.broadcast_to(x, (*lead, *x.shape[-2:]))
    parts = [apply(data[i], x[i]) for i in np.ndindex(*lead)]
    if not parts:
        raise UnsupportedError("a stack of no sparse matrices has no product; leave it out")
    return np.stack(parts).reshape(*lead, *parts[0].shape)


# ---- forwards -----------------------------------------------------------------------------------


def matrix_of(data: Any, indices: Any, indptr: Any, shape: Shape, transpose: bool) -> Any:
    """SciPy's matrix, which shares the arrays."""
    import scipy.sparse

    matrix = scipy.sparse.csr_array((data, indices, indptr), shape=shape)
    return matrix.T if transpose else matrix


def _product_forward(
    xp: Any, data: Any, x: Any, indices: Any, indptr: Any, shape: Shape, transpose: bool
) -> Any:
    def product(data: Any, x: Any) -> Any:
        return matrix_of(data, indices, indptr, shape, transpose) @ x

    one = data.ndim == 1
    made = by_columns(lambda x: product(data, x), x) if one else for_each(product, data, x)
    # SciPy multiplies in single precision at least.
    return made.astype(np.result_type(data.dtype, x.dtype), copy=False)


def _sampled_forward(xp: Any, u: Any, v: Any, indices: Any, indptr: Any) -> Any:
    rows, columns = rows_of(indptr), u.shape[-1]
    lead = np.broadcast_shapes(u.shape[:-2], v.shape[:-2])
    out = np.empty((*lead, len(indices)), np.result_type(u, v))
    step = max(1, _CHUNK // max(1, columns * math.prod(lead)))
    for start in range(0, len(indices), step):
        part = slice(start, start + step)
        left, right = u[..., rows[part], :], v[..., indices[part], :]
        out[..., part] = np.einsum("...kj,...kj->...k", left, right)
    return out


# ---- rules --------------------------------------------------------------------------------------


def _by_data(
    ct: Any, _out: Any, _data: Any, x: Any, *places: Any, shape: Shape, transpose: bool
) -> Any:
    pair = (conj_if_complex(x), ct) if transpose else (ct, conj_if_complex(x))
    return unbroadcast(sampled(*pair, *places), _data.shape)


def _by_dense(
    ct: Any, _out: Any, data: Any, _x: Any, *places: Any, shape: Shape, transpose: bool
) -> Any:
    back = product(conj_if_complex(data), ct, *places, shape=shape, transpose=not transpose)
    return unbroadcast(back, _x.shape)


def _by_left(ct: Any, _out: Any, _u: Any, v: Any, *places: Any) -> Any:
    shape = (_u.shape[-2], v.shape[-2])
    back = product(ct, conj_if_complex(v), *places, shape=shape, transpose=False)
    return unbroadcast(back, _u.shape)


def _by_right(ct: Any, _out: Any, u: Any, _v: Any, *places: Any) -> Any:
    shape = (u.shape[-2], _v.shape[-2])
    back = product(ct, conj_if_complex(u), *places, shape=shape, transpose=True)
    return unbroadcast(back, _v.shape)


_PLACE = Zero("where a number is stored does not change by a little")


def batch_sparse(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> Batch:
    """Batching of stored numbers and dense matrices; the places are the same for all."""
    if any(axis is not None for axis in axes[2:]):
        raise UnsupportedError(
            f"{op.name}: got a batch of places of the stored numbers, expected the same for all; "
            "use vmap over the numbers, and a loop over the places"
        )
    own = (2, 2) if op is op_of(sampled) else (1, 2)
    both = list(zip(args, own, axes, strict=False))
    lead = max(len(x.shape) - n - (axis is not None) for x, n, axis in both)
    stacks = [batch_first(x, axis, lead + n) for x, n, axis in both]
    return call(op, (*stacks, *args[2:]), params), 0


def _infer_product(
    data: Aval, x: Aval, _indices: Aval, _indptr: Aval, shape: Shape, transpose: bool
) -> Aval:
    lead = broadcast_sizes(data.shape[:-1], x.shape[:-2])
    dtype = np.result_type(data.dtype, x.dtype)
    return Aval((*lead, shape[1 if transpose else 0], x.shape[-1]), dtype)


def _infer_sampled(u: Aval, v: Aval, indices: Aval, _indptr: Aval) -> Aval:
    lead = broadcast_sizes(u.shape[:-2], v.shape[:-2])
    return Aval((*lead, *indices.shape), np.result_type(u.dtype, v.dtype))


# y = S(d)·x: dy = S(dd)·x + S(d)·dx; transpose: x̄ = Sᴴ·ȳ, d̄ = the product ȳ·xᴴ where S is stored
product: Callable[..., Any] = multilinear(
    "sparse_matmul",
    _product_forward,
    _by_data,
    _by_dense,
    _PLACE,
    _PLACE,
    infer=_infer_product,
    batch=batch_sparse,
)
# d[k] = Σ_j u[row k, j]·v[column k, j]: bilinear; transpose: ū = S(d̄)·conj(v), v̄ = S(d̄)ᵀ·conj(u)
sampled: Callable[..., Any] = multilinear(
    "sampled_matmul",
    _sampled_forward,
    _by_left,
    _by_right,
    _PLACE,
    _PLACE,
    infer=_infer_sampled,
    batch=batch_sparse,
)
