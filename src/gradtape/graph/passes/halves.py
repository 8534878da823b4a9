"""Arithmetic on 16-bit floats as arithmetic on float32 between casts.

Native code loads and stores float16 and bfloat16, and computes in float32. So each op on them
becomes casts of its operands, the op, and a cast of its result, which rounds it once: what the
eager op does. The casts become part of the loops around them, and arrays stay in 16 bits.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gradtape import config
from gradtape.core.aval import Aval
from gradtape.core.lowering import Composite, Elements, Relabel
from gradtape.core.promotion import FLOAT16, FLOAT32, INT64, is_half
from gradtape.core.scalar import Scalar, check, convert, known_half, scalar, watch
from gradtape.core.small_floats import OWN_DTYPES
from gradtape.errors import UnsupportedError
from gradtape.graph.inline import expand
from gradtape.graph.ir import Graph, Literal, Node, Operand, Rewriter, Value
from gradtape.ops.cast import astype_op
from gradtape.ops.shape import broadcast_op, transpose_op

# These move elements as they are.
_MOVES = (astype_op, broadcast_op, transpose_op)


def halves(graph: Graph) -> Graph:
    """The graph with ops computing in float32 rather than in 16 bits, if they have native code."""
    if not config.uses("halves") or not any(map(_has_half, graph.nodes)):
        return graph
    rewriter = Rewriter(graph)
    for node in graph.nodes:
        if _computes_in_half(node) and not _stays_eager(node):
            _widen(node, rewriter)
        else:
            rewriter.copy(node)
    return rewriter.finish()


def halved(graph: Graph) -> Graph:
    """The graph with arrays in 16 bits where those in float32 would hold no more.

    These are the operands and results of eager ops, once composite ops are expanded, and the
    results of ops that only move elements.
    """
    if not config.uses("halves") or not any(map(_has_half, graph.nodes)):
        return graph
    rewriter, users = Rewriter(graph), graph.users()
    for node in graph.nodes:
        half = _half_of_operands(node)
        if half is None or any(value.dtype != FLOAT32 for value in node.outputs):
            rewriter.copy(node)
        elif _only_rounded(node, half, users):
            _narrow(node, half, rewriter)
        elif isinstance(node.op.lower, Elements) and _moves(node, half):
            made = rewriter.add(astype_op, rewriter.copy(node).outputs, {"dtype": half}, node.line)
            wide = rewriter.add(astype_op, [made], {"dtype": FLOAT32}, node.line)
            rewriter.replace(node.outputs[0], wide)
        else:
            rewriter.copy(node)
    return rewriter.finish()


def _has_half(node: Node) -> bool:
    return any(is_half(value.dtype) for value in (*node.operands, *node.outputs))


def _computes_in_half(node: Node) -> bool:
    op = node.op
    if op.lower is None or op.kind in OWN_DTYPES or op.effect is not None:
        return False
    if op in _MOVES or isinstance(op.lower, Relabel):
        return False
    dtypes = {value.dtype for value in (*node.operands, *node.outputs)}
    return any(map(is_half, dtypes)) and not any(dtype.kind == "c" for dtype in dtypes)


def _stays_eager(node: Node) -> bool:
    """Whether an op on samples has no native code for its sizes, or is made of one that has none.

    Eager code converts some samples at a time, so nothing as large as the arrays is in float32.
    """
    if not node.op.facts.samples or not isinstance(node.op.lower, Composite):
        return False
    inputs = [Value(Aval(x.shape, FLOAT32 if is_half(x.dtype) else x.dtype)) for x in node.operands]
    inferred = node.op.infer(*(value.aval for value in inputs), **node.params)
    wide = Node(node.op, inputs, node.params, [inferred], node.line)
    alone = Graph(node.op.name, inputs, [wide], wide.outputs)
    return any(made.op.facts.samples for made in expand(alone).nodes)


def _half_of_operands(node: Node) -> np.dtype[Any] | None:
    """The 16-bit dtype that all operands of a node were cast from; None if there is none."""
    sources = {_source(x).dtype for x in node.operands if x.dtype == FLOAT32}
    half = sources.pop() if len(sources) == 1 else FLOAT32
    return half if is_half(half) else None


def _only_rounded(node: Node, half: np.dtype[Any], users: dict[Value, list[Node]]) -> bool:
    """Whether an eager product has operands from 16 bits and results that are rounded to them.

    So rules of derivatives compute; on operands in 16 bits the eager op does the same, and the
    arrays that it reads and writes are half as large.
    """
    eager = node.op.lower is None or isinstance(node.op.lower, Composite)
    if not eager or node.op.kind != "contraction":
        return False  # other ops may not take 16 bits
    if any(x.dtype != FLOAT32 for x in node.operands):
        return False
    casts = [user for value in node.outputs for user in users.get(value, ())]
    return bool(casts) and all(
        user.op is astype_op and user.outputs[0].dtype == half for user in casts
    )


def _moves(node: Node, half: np.dtype[Any]) -> bool:
    """Whether elements of the result are elements of operands, or numbers that fit 16 bits."""
    lowering = node.op.lower
    assert isinstance(lowering, Elements)
    point = tuple(Scalar("axis", (), INT64) for _ in node.outputs[0].shape)
    readers = [_HalfReader(operand, half) for operand in node.operands]
    try:
        made = scalar(lowering.expression(point, *readers, **node.params))
    except UnsupportedError:
        return False
    return known_half(made, half) is not None


class _HalfReader:
    """An operand that was cast from 16 bits, in the expression of `Elements`."""

    def __init__(self, operand: Operand, half: np.dtype[Any]) -> None:
        self.aval, self.shape, self.dtype = operand.aval, operand.shape, operand.dtype
        element = Scalar("argument", (), half if self.dtype == FLOAT32 else self.dtype)
        self._element = convert(element, self.dtype)

    def __call__(self, *_index: Any, inside: Any = None) -> Scalar:
        return self._element

    check = staticmethod(check)
    watch = staticmethod(watch)


def _source(operand: Operand) -> Operand:
    """What a cast was made from; any other operand itself."""
    if isinstance(operand, Value) and operand.node is not None and operand.node.op is astype_op:
        return operand.node.operands[0]
    return operand


def _narrow(node: Node, dtype: np.dtype[Any], rewriter: Rewriter) -> None:
    """Append a node with operands before their casts, and results to be cast again."""
    operands = [rewriter[_source(operand)] for operand in node.operands]
    avals = [Aval(value.shape, dtype) for value in node.outputs]
    made = Node(node.op, operands, node.params, avals, node.line, node.region)
    rewriter.nodes.append(made)
    for old, value in zip(node.outputs, made.outputs, strict=True):
        rewriter.replace(old, rewriter.add(astype_op, [value], {"dtype": FLOAT32}, node.line))


def _widen(node: Node, rewriter: Rewriter) -> None:
    """Append a node computed in float32, its results in the dtypes they had."""
    own = {operand.dtype for operand in node.operands if is_half(operand.dtype)}
    numbers = own.pop() if len(own) == 1 and _rounds_numbers(node, *own) else None
    operands = [_wide(operand, numbers, rewriter) for operand in rewriter.operands(node)]
    params = {
        name: FLOAT32 if name == "dtype" and is_half(np.dtype(value)) else value
        for name, value in node.params.items()
    }
    inferred = node.op.infer(*(operand.aval for operand in operands), **params)
    avals = (inferred,) if isinstance(inferred, Aval) else inferred
    new = Node(node.op, operands, params, avals, node.line, node.region)
    rewriter.nodes.append(new)
    for old, value in zip(node.outputs, new.outputs, strict=True):
        same = value.dtype == old.dtype
        to = {"dtype": old.dtype}
        rewriter.replace(old, value if same else rewriter.add(astype_op, [value], to, node.line))


def _wide(operand: Operand, numbers: np.dtype[Any] | None, rewriter: Rewriter) -> Operand:
    """An operand in float32; Python numbers are rounded to a 16-bit dtype first, if it is given."""
    if operand.aval.weak and numbers is not None:
        if isinstance(operand, Literal):
            return Literal(_rounded(operand.value, numbers))
        operand = rewriter.add(astype_op, [operand], {"dtype": numbers})
    if not is_half(operand.dtype):
        return operand
    if isinstance(operand, Literal):
        return Literal(np.float32(operand.value))
    return rewriter.add(astype_op, [operand], {"dtype": FLOAT32})


def _rounded(number: Any, dtype: np.dtype[Any]) -> Any:
    with np.errstate(all="ignore"):
        rounded = float(np.asarray(number).astype(dtype))
    # A whole number stays one: there is better code for powers with such exponents.
    return number if rounded == number else rounded


@functools.cache
def _has_loop(ufunc: np.ufunc, dtype: np.dtype[Any]) -> bool:
    """Whether ml_dtypes computes a ufunc in a dtype, rather than NumPy in a wider one."""
    try:
        return ufunc.resolve_dtypes((dtype,) * ufunc.nin + (None,) * ufunc.nout)[0] == dtype
    except TypeError:
        return False


def _rounds_numbers(node: Node, dtype: np.dtype[Any]) -> bool:
    """Whether the eager op converts Python numbers to the dtype of its other operands."""
    ufunc = node.op.fast
    if dtype == FLOAT16:
        return node.op.kind == "elementwise"
    return isinstance(ufunc, np.ufunc) and _has_loop(ufunc, dtype)
