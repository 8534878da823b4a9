"""Derivatives of lazy tensors: more tensors of the same graph.

The graph has every value already, so nothing is run again: the ops between the tensors to
differentiate and those to differentiate by get records that hold the values there are, and the
backward walk over the records adds its ops to the graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.autodiff.arguments import checked
from gradtape.autodiff.forward import ones_like, zeros_like
from gradtape.autodiff.transforms import vmap
from gradtape.backends import is_raw
from gradtape.core.call import is_differentiable, record
from gradtape.core.checkpoint_statistics import STATISTICS
from gradtape.core.level import Leaf, Node as RecordNode, Segment
from gradtape.core.lines import user_line
from gradtape.core.nested import unshell
from gradtape.core.state import current, keeping, next_level, run_inside
from gradtape.core.tensor import Tensor
from gradtape.core.walk import walk
from gradtape.errors import ArgumentError, DTypeError, UnknownSizeError, a_type
from gradtape.graph.ir import Literal, Operand
from gradtape.graph.trace import Symbol, TraceLevel, operand_of
from gradtape.lazy.level import check_outside
from gradtape.lazy.programs import subgraph
from gradtape.lazy.recomputed import recomputing
from gradtape.ops.like import zeros_like as zeros_of_shape
from gradtape.ops.shape import reshape


def grad(
    ys: Sequence[Tensor], xs: Sequence[Tensor], grad_ys: Sequence[Any] | None = None
) -> list[Tensor]:
    """Lazy tensors with the gradients of the sum of some lazy tensors.

    Args:
        ys: The tensors to differentiate; arrays count as the sum of their elements.
        xs: What to differentiate by: placeholders, variables, or results.
        grad_ys: The weights of the elements of each tensor in the sum; ones if not given.

    Returns:
        A lazy tensor for each of `xs`, zeros where `ys` do not depend on it. They can be
        differentiated again.

    Raises:
        ArgumentError: Something is not a lazy tensor, or there are more or fewer weights.
        DTypeError: A tensor has no derivatives, as integers have none.

    >>> def program(ctx):
    ...     x = ctx.placeholder("x", ())
    ...     (first,) = gt.graph.grad([x**3], [x])
    ...     (second,) = gt.graph.grad([first], [x])
    ...     return ctx.evaluator().push(first).push(second).feed(x, 2.0).run()
    >>> gt.run(program)
    [np.float64(12.0), np.float64(12.0)]
    """
    ys, xs = _tensors("grad", "ys", ys), _tensors("grad", "xs", xs)
    return _as_soon_as_sized(gradients, "grad", ys, xs, grad_ys)


def jacobians(y: Tensor, xs: Sequence[Tensor]) -> list[Tensor]:
    """Lazy tensors with the Jacobians of a lazy tensor.

    Args:
        y: The tensor to differentiate.
        xs: What to differentiate by.

    Returns:
        A lazy tensor for each of `xs`, with the axes of `y` and then those of x.

    Raises:
        ArgumentError: Something is not a lazy tensor.
        DTypeError: A tensor has no derivatives.

    >>> def program(ctx):
    ...     x = ctx.constant([1.0, 2.0])
    ...     (jacobian,) = gt.graph.jacobians(x * x, [x])
    ...     return jacobian.eval(ctx)
    >>> gt.run(program)
    array([[2., 0.],
           [0., 4.]])
    """
    (y,), xs = _tensors("jacobians", "y", [y]), _tensors("jacobians", "xs", xs)
    return _as_soon_as_sized(_jacobians, "jacobians", [y], xs, None)


def _jacobians(name: str, ys: Sequence[Tensor], xs: Sequence[Tensor], _seeds: None) -> list[Tensor]:
    (y,) = ys
    size = math.prod(y.shape)
    directions = np.eye(size, dtype=y.dtype).reshape(size, *y.shape)

    def row(direction: Any) -> list[Tensor]:
        return gradients(name, [y], xs, [direction])

    if not size:
        return [zeros_of_shape(x, shape=y.shape + x.shape) for x in xs]
    rows = vmap(row)(directions)
    return [reshape(found, y.shape + x.shape) for found, x in zip(rows, xs, strict=True)]


def hessian_vector_product(
    ys: Sequence[Tensor], xs: Sequence[Tensor], vectors: Sequence[Any]
) -> list[Tensor]:
    """Lazy tensors with the Hessian of the sum of some lazy tensors, times vectors.

    Args:
        ys: The tensors to differentiate.
        xs: What to differentiate by.
        vectors: A tensor or array of the shape of each of `xs`.

    Returns:
        A lazy tensor for each of `xs`.

    Raises:
        ArgumentError: Something is not a lazy tensor, or there are more or fewer vectors.
        DTypeError: A tensor has no derivatives.

    >>> def program(ctx):
    ...     x = ctx.constant([1.0, 2.0])
    ...     (product,) = gt.graph.hessian_vector_product(
    ...         [np.sum(x**3)], [x], [np.array([1.0, 0.0])]
    ...     )
    ...     return product.eval(ctx)
    >>> gt.run(program)
    array([6., 0.])
    """
    name = "hessian_vector_product"
    ys, xs = _tensors(name, "ys", ys), _tensors(name, "xs", xs)
    first = _as_soon_as_sized(gradients, name, ys, xs, None)
    return _as_soon_as_sized(gradients, name, first, xs, vectors)


def _tensors(name: str, what: str, given: Any) -> list[Tensor]:
    """Lazy tensors given by users, without handles.

    Raises:
        ArgumentError: They are something else.
    """
    if isinstance(given, Tensor) or not isinstance(given, Sequence):
        raise ArgumentError(
            f"{name}: got {a_type(given)} for {what}, expected a list of lazy tensors; use "
            f"gt.graph.{name}([y], [x])"
        )
    found = [unshell(tensor) for tensor in given]
    for tensor, value in zip(given, found, strict=True):
        if not (isinstance(value, Tensor) and isinstance(value.record, Symbol)):
            if isinstance(value, Tensor):
                check_outside(value)
            raise ArgumentError(
                f"{name}: got {a_type(tensor)} in {what} that is not lazy, expected tensors of a "
                "gt.run; use gt.grad to differentiate functions of arrays"
            )
    return found


def _as_soon_as_sized(
    derive: Callable[..., list[Tensor]],
    name: str,
    ys: Sequence[Tensor],
    xs: Sequence[Tensor],
    seeds: Any,
) -> list[Tensor]:
    """Derivatives now, or as a deferred call if a size is not known."""
    try:
        return derive(name, ys, xs, seeds)
    except UnknownSizeError as error:
        args = name, list(ys), list(xs), seeds
        return error.deferred(derive, args, {}, len(xs))  # type: ignore[no-any-return]


# ---- the walk -----------------------------------------------------------------------------------


def gradients(
    name: str, ys: Sequence[Tensor], xs: Sequence[Tensor], seeds: Sequence[Any] | None
) -> list[Tensor]:
    """The gradients of traced tensors, added to their graph."""
    level = _level_of((*xs, *ys))
    if level is None:
        return [zeros_like(x) for x in xs]  # constants, now that sizes are known
    ys, xs = [_traced(name, level, y) for y in ys], [_traced(name, level, x) for x in xs]
    for tensor in (*ys, *xs):
        if not is_differentiable(tensor):
            raise DTypeError(
                f"{name}: got a tensor of {tensor.dtype}, expected a floating or complex dtype, as "
                "others have no derivatives; use x.astype(float)"
            )
    cotangents = _cotangents(name, level, ys, seeds)
    segment = Segment(next_level(), f"gt.graph.{name}", strict=True)
    records = run_inside(keeping(None), _recorded, level, segment, ys, xs, current().policy)
    segment.active = False
    roots = [
        (records[operand_of(y)], ct)
        for y, ct in zip(ys, cotangents, strict=True)
        if operand_of(y) in records
    ]
    sources = [records[operand_of(x)] for x in xs]
    statistics = STATISTICS.get()
    if statistics is not None and segment.policy is not None:
        statistics.add(0, segment.policy.checkpoints)
    line, level.line = level.line, user_line()
    try:
        found = walk(segment, roots, sources=sources)
    finally:
        level.line = line
    results = []
    for x, node in zip(xs, sources, strict=True):
        result = found.get(node)
        results.append(zeros_like(x) if result is None else result)
    return results


def _level_of(tensors: Sequence[Any]) -> TraceLevel | None:
    """The trace that tensors belong to; None if none belongs to one."""
    for tensor in tensors:
        if isinstance(tensor, Tensor) and isinstance(tensor.record, Symbol):
            return tensor.record.segment  # type: ignore[no-any-return]
    return None


def _traced(name: str, level: TraceLevel, value: Any) -> Tensor:
    """A tensor of a trace; a constant that a deferred call returned becomes one.

    Raises:
        ArgumentError: The deferred call returned a container, or no array at all.
    """
    if isinstance(value, Tensor) and isinstance(value.record, Symbol):
        if value.record.segment is level:
            return value
        check_outside(value)
    if not (isinstance(value, Tensor) or is_raw(value)):
        raise ArgumentError(
            f"{name}: got {a_type(value)}, the result of a function, expected one tensor; if it "
            "has several results, take one by index: t[0]"
        )
    return level.symbol(level.operand(value))


def _cotangents(
    name: str, level: TraceLevel, ys: Sequence[Tensor], seeds: Sequence[Any] | None
) -> list[Any]:
    if seeds is None:
        for y in ys:
            if y.dtype.kind == "c":
                raise DTypeError(
                    f"{name}: got a tensor of {y.dtype} to differentiate, expected a real one; "
                    "give the weights of its elements as grad_ys"
                )
        return [ones_like(y) for y in ys]
    if not isinstance(seeds, Sequence) or len(seeds) != len(ys):
        got = f"{len(seeds)}" if isinstance(seeds, Sequence) else a_type(seeds)
        raise ArgumentError(
            f"{name}: got {got} for the weights of {len(ys)} tensors, expected a list with one "
            "for each"
        )
    every = zip(seeds, ys, strict=True)
    given = [checked(seed, y, name, f"weight {n}", "tensor") for n, (seed, y) in enumerate(every)]
    # As values of the graph: the walk takes care of 0·∞ where it cannot see elements.
    return [ct if isinstance(ct, Tensor) else level.symbol(level.operand(ct)) for ct in given]


def _recorded(
    level: TraceLevel, segment: Segment, ys: Sequence[Tensor], xs: Sequence[Tensor], inside: Any
) -> dict[Operand, RecordNode]:
    """Records of the values between `xs` and `ys`, as eager code would have made them.

    Inside of a checkpointed function, its policy is given.
    """
    wanted = {operand_of(x) for x in xs}
    _, nodes = subgraph(level.nodes, [*map(operand_of, ys), *wanted])
    policy = segment.policy = recomputing(nodes, wanted, inside)
    made = {value for node in nodes for value in node.outputs}
    records: dict[Operand, RecordNode] = {x: Leaf(segment, x) for x in wanted if x not in made}
    symbols: dict[Operand, Any] = {}

    def symbol(operand: Operand) -> Any:
        if isinstance(operand, Literal):
            return operand.value
        known = symbols.get(operand)
        if known is None:
            known = symbols[operand] = level.symbol(operand)
        return known

    for node in nodes:
        if node.op.tracked and not records.keys().isdisjoint(node.operands):
            parents = [records.get(operand) for operand in node.operands]
            outs = tuple([symbol(value) for value in node.outputs])
            out = outs[0] if node.op.outputs == 1 else outs
            if policy is not None:
                policy.node = node
            results = record(
                segment, node.op, parents, list(map(symbol, node.operands)), out, node.params
            )
            for value, result in node.paired(results):
                if result.record.segment is segment:
                    records[value] = result.record
        for value in node.outputs:
            if value in wanted and value not in records:
                records[value] = Leaf(segment, value)
    return records
