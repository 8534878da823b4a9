"""Refuting patterns that users give: products with a vector, compared with the numbers found.

The product of the matrix with a random vector is computed once from the numbers of all places, and
once by a sweep of its own. Where a place is missing, they differ. They also differ by rounding,
which has nothing to do with other rows. Three things bound it for a row:

- the size of its terms, Σ|number|·|probe|, times the rounding of as many operations as there are;
- where numbers cancel inside of the function, products with multiples of the same vector, at
  arguments that differ in the last digit: without rounding they would be multiples. What they
  differ by is the rounding of the row, and relative to the size of its terms much the same for all
  rows;
- functions of users and solvers may be less exact than their dtype.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.call import is_differentiable
from gradtape.errors import PatternError
from gradtape.graph.ir import Graph
from gradtape.graph.scan_op import scan_op
from gradtape.graph.while_op import while_op
from gradtape.ops.arithmetic import absolute
from gradtape.ops.cast import astype
from gradtape.ops.gather import scatter
from gradtape.ops.inspection import finfo
from gradtape.ops.join import concatenate
from gradtape.ops.linalg.checks import verified
from gradtape.ops.shape import reshape
from gradtape.sparsity.plan import SparsePlan

# The multiples of the probe. They are no powers of two, so that they are rounded differently.
_MULTIPLES = np.array([1.0, 0.73, 0.57, 0.87])
# Steps that are assumed of a loop of unknown length.
_UNKNOWN_STEPS = 1000
# The rounding of n operations is taken to be below this times √n.
_PER_OPERATION = 2.0
# What multiples differ by is typical of a row's rounding; twice as much is rare.
_OF_ALL_ROWS = 4.0
# The same of a single row whose numbers cancel: how far they differ is a matter of luck.
_OF_ONE_ROW = 256.0


class Probes(NamedTuple):
    """How a pattern is checked.

    Attributes:
        vectors: Multiples of a random vector, with an element for each column, or row in reverse.
        changes: For each of them but the first, and each element of the argument, by how many units
            in the last digit to change it.
    """

    vectors: Any
    changes: Any


def probes_for(plan: SparsePlan, eps: float) -> Probes:
    """Random numbers that are the same for the same plan.

    Args:
        plan: The plan of the sweeps.
        eps: The elements of the first vector are exact in dtypes with this precision.
    """
    rng = np.random.default_rng(plan.pattern.nnz)
    size = plan.pattern.shape[0 if plan.only_reverse else 1]
    step = 2.0 ** math.ceil(math.log2(2 * eps))
    probe = 1.0 + step * np.floor(rng.uniform(0.0, 1.0, size) / step)
    vectors = _MULTIPLES[:, None] * (probe * rng.choice([-1.0, 1.0], size))
    shape = (len(_MULTIPLES) - 1, plan.pattern.shape[1])
    changes = rng.integers(2, 9, shape) * rng.choice([-1.0, 1.0], shape)
    return Probes(vectors, changes)


def coarsest(graph: Graph) -> Any:
    """The least precise dtype among the floating values of a graph, as its limits."""
    dtypes = {value.dtype for value in graph.values() if is_differentiable(value)}
    return max((finfo(dtype) for dtype in dtypes), key=lambda limits: float(limits.eps))


def checked(plan: SparsePlan, graph: Graph, data: Any, products: Any, probe: Any) -> Any:
    """The numbers, after products with vectors were compared with those of the function itself.

    Args:
        plan: The plan; its pattern is in question.
        graph: The function.
        data: The numbers of all places.
        products: Those of the function with each probe, in rows.
        probe: The first probe.
    """
    matrix, forward = plan.pattern.matrix, not plan.only_reverse
    dtype, wide = data.dtype, np.promote_types(data.dtype, np.float64)
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    seeded, met = (matrix.indices, row) if forward else (row, matrix.indices)
    shape = products.shape[1:]
    data = astype(data, wide)
    terms = data * probe[seeded]
    sums = [scatter(part, met.astype(np.int64), shape=shape) for part in (terms, absolute(terms))]
    limits = coarsest(graph)
    operations = np.bincount(met, minlength=shape[0]) + _operations(graph)
    factors = _PER_OPERATION * np.sqrt(operations)
    if _is_inexact(graph):
        factors = np.maximum(factors, 1.0 / math.sqrt(limits.eps))
    numbers = (float(limits.eps), float(limits.tiny), float(limits.max))
    test = functools.partial(_test, plan.name, "row" if forward else "column", shape[0], numbers)
    parts = [reshape(astype(products, wide), -1), *sums, factors, data]
    whole = verified(concatenate(parts), test)
    return astype(whole[(len(_MULTIPLES) + 3) * shape[0] :], dtype)


def _operations(graph: Graph) -> int:
    """How many operations a function is made of; those of loops count once for each step."""
    total = 0
    for node in graph.nodes:
        inside = sum(map(_operations, node.graphs()))
        if node.op is scan_op:
            inside *= node.params["length"]
        total += 1 + (inside * _UNKNOWN_STEPS if node.op is while_op else inside)
    return total


def _is_inexact(graph: Graph) -> bool:
    nodes = (node for inner in graph.nested() for node in inner.nodes)
    return any(node.op.kind in ("custom", "host") for node in nodes)


def _test(
    name: str, side: str, count: int, numbers: tuple[float, float, float], _xp: Any, values: Any
) -> None:
    """Raise if a product with a vector differs from the sum of its terms by more than rounding."""
    if not count:
        return
    parts = np.moveaxis(values[..., : (len(_MULTIPLES) + 3) * count].astype(np.float64), -1, 0)
    *products, total, size, factor = parts.reshape(len(_MULTIPLES) + 3, count, *parts.shape[1:])
    with np.errstate(all="ignore"):
        same = np.stack([part / by for part, by in zip(products, _MULTIPLES, strict=True)])
        spread = same.max(axis=0) - same.min(axis=0)
        bound = _bound(spread, size, factor, numbers)
        finite = np.isfinite(total) & ~(np.isinf(products[0]) & (size > numbers[2] / 4))
        off = abs(products[0] - total)
        wrong = finite & ~(np.isfinite(off) & (off <= bound))
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0])
        raise PatternError(
            f"{name}: got a pattern= without a place in {side} {place[0]} where the matrix is not "
            f"zero: a product with a random vector is off by {off[place]:.3g} there, expected "
            f"{bound[place]:.1g} at most by rounding; leave pattern= out to have it found"
        )


def _bound(spread: Any, size: Any, factor: Any, numbers: tuple[float, float, float]) -> Any:
    """What the product may differ by in each row."""
    eps, tiny, _ = numbers
    unit = eps * (size + tiny)  # with the smallest number there is
    relative = np.where((size > 0) & np.isfinite(spread), spread / unit, 0.0)
    # A few rows that are nothing but rounding do not count for the others, most rows do.
    most = np.minimum(relative.max(axis=0, initial=0.0), 1.0 / math.sqrt(eps))
    typical = _OF_ALL_ROWS * np.maximum(most, np.median(relative, axis=0))
    own = unit * np.maximum(factor, typical)
    cancels = (typical > _OF_ALL_ROWS * factor) | (spread > own)
    # A row may differ by nothing as chance has it, while most rows do not.
    seen = np.where(np.isfinite(spread), spread, 0.0)
    most_differ = 2.0 * _OF_ALL_ROWS * np.median(seen, axis=0)
    bound = own + np.where(cancels, _OF_ONE_ROW * spread + most_differ, _OF_ALL_ROWS * spread)
    return np.where(np.isfinite(spread), bound, np.inf)
