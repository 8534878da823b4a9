"""Debug mode: runs every kernel beside its eager twin, and names the first that differs.

A native part is run three times. First eagerly, node by node: these are the values that count. Then
each of its kernels, compiled separately and given eager values to read, so that a kernel is not
blamed for the errors of an earlier one. Last the part as it is compiled without debug mode, which
also tests the order of the kernels and the memory they share.

Compiled and eager code round differently: products and sums become one instruction, sums are added
up in another order. How much that matters depends on the computation: where a difference is larger
than a few units of the last place, the eager twin is run again with the rounding of every op
disturbed at random, and only results outside the range of these runs count as different.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.compiler.classify import sample
from gradtape.compiler.disturbed_loops import disturbed_loop
from gradtape.compiler.kernel import walk
from gradtape.compiler.partition import NativePart, native_part
from gradtape.compiler.plan import plan_of
from gradtape.compiler.program import NativeFunction, Program, evaluated
from gradtape.compiler.target import Code, Target
from gradtape.core.evaluate import evaluate
from gradtape.core.lowering import Contraction, Elements, Matrices, Pointwise, Reduction
from gradtape.errors import GradtapeError, LinAlgError
from gradtape.graph.ir import Graph, Node, Value, value_of
from gradtape.graph.text import show
from gradtape.graph.trace import Trace

Arrays = dict[Value, Any]

# Differences up to this are rounding, in units of the resolution of the dtype.
_CLOSE = 64
# The disturbance of one op's rounding, in the same units; reductions of n terms add some √n to it.
_DISTURBANCE, _PER_ROOT = 16, 4
# Disturbances come in pairs of opposite ones, so that both sides of a jump are seen.
_PAIRS = 6
# Instructions on floating-point numbers whose results are among their arguments, or integers.
_EXACT = frozenset(
    {"constant", "argument", "axis", "load", "gather", "convert", "select", "negative"}
    | {"absolute", "copysign", "maximum", "minimum", "floor", "ceil", "trunc", "rint"}
)


class CheckedProgram(Program):
    """A program that compares every kernel with eager code, at each call.

    It takes several times as long as eager code.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph, debug=True)
        self._twins = {
            step: _Twin(step, self.target)
            for step in self.steps
            if isinstance(step, NativeFunction)
        }

    @property
    def native(self) -> None:
        """None: native code that is called directly would not be checked."""
        return None

    def run_native(self, function: NativeFunction, arrays: Sequence[Any]) -> list[Any]:
        """The outputs of a native function, after comparing all of it.

        Raises:
            GradtapeError: A kernel's result differs from eager code.
        """
        outputs = function(arrays)
        self._twins[function].compare(arrays, outputs)
        return outputs


def check_same(known: Trace, now: Trace) -> None:
    """Raise if a function, traced again, is not the same as when it was compiled.

    Raises:
        GradtapeError: It now computes something else, because something outside has changed.
    """
    one, other = known.graph, now.graph
    if _shown(one) != _shown(other):
        pairs = zip(_shown(one), _shown(other), strict=False)
        line = next((f"`{b}` in place of `{a}`" for a, b in pairs if a != b), "another length")
        raise _changed(f"its graph has {line}")
    for (a, aval), b in zip(known.hidden, now.captures, strict=True):
        # Random draws differ anyway, and the same object is read at each call.
        made = a.is_array and b.is_array and a.value is not b.value
        if made and not np.array_equal(a.value, b.value, equal_nan=a.value.dtype.kind in "fc"):
            raise _changed(f"an array that it makes ({aval}) has other elements")


def _shown(graph: Graph) -> list[str]:
    """A graph as lines of text, without the lines of the user's code."""
    return [line.split("    #")[0] for line in show(graph).splitlines()]


def _changed(what: str) -> GradtapeError:
    return GradtapeError(
        f"jit: the function is not what it was when it was compiled: {what}. It computes something "
        "with NumPy from arrays, numbers or random generators outside of it, which is done only "
        "when it is traced; give them as arguments, make a tensor of the array (gt.tensor(w) * 2), "
        "or draw with gt.random"
    )


class _Piece(NamedTuple):
    """Nodes of a graph that are compiled as a function of their own.

    Attributes:
        name: Its name in messages.
        nodes: The nodes, in order.
        part: The same nodes as a graph.
    """

    name: str
    nodes: Sequence[Node]
    part: NativePart


class _Twin:
    """The eager twin that a native function is compared with."""

    def __init__(self, function: NativeFunction, target: Target[Any]) -> None:
        plan, self._target = function.code.plan, target
        fusion, self._graph = plan.fusion, plan.graph
        self._pieces: list[_Piece] = []
        for group, steps in plan.steps_of_groups:
            nodes = fusion.nodes_of(group)
            stored = [value for value in group.members if value in fusion.stored]
            ops = ", ".join(dict.fromkeys(node.op.name for node in nodes))
            name = f"{steps[0].name} ({ops})"
            self._pieces.append(_Piece(name, nodes, native_part(self._graph, nodes, stored)))
        # A single kernel is the whole function, and is compared as such.
        self._codes = self._compiled(self._pieces) if len(self._pieces) > 1 else []

    def compare(self, arrays: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Raise if a kernel, or the function as a whole, differs from eager code."""
        values: Arrays = dict(zip(self._graph.inputs, arrays, strict=True))
        for node in self._graph.nodes:
            values.update(evaluated(node, values))
        if self._codes:
            for piece, code in zip(self._pieces, self._codes, strict=True):
                made = self._made(piece, code, values)
                self._check(piece, piece.nodes, made, values, alone=True)
        results = {
            value: array
            for value, array in zip(self._graph.outputs, outputs, strict=True)
            if isinstance(value, Value)
        }
        for piece in self._pieces:
            own = {v: results[v] for v in piece.part.outputs if v in results}
            self._check(piece, self._graph.nodes, own, values, alone=not self._codes)

    def _check(
        self, piece: _Piece, nodes: Sequence[Node], made: Arrays, values: Arrays, *, alone: bool
    ) -> None:
        """Raise if the results of a kernel differ from eager values.

        Args:
            piece: The kernel.
            nodes: All nodes that compiled code computed for it.
            made: The values it stored.
            values: All eager values.
            alone: Whether it read eager values.
        """
        place = _first_difference(nodes, made, values)
        if place is None:
            return
        if not alone:
            raise _differs(place, piece, "kernels are right by themselves but not together")
        # Each op of the kernel by itself.
        singles = [
            _Piece("", [node], native_part(self._graph, [node], node.outputs))
            for node in piece.nodes
        ]
        for single, code in zip(singles, self._compiled(singles), strict=True):
            wrong = _first_difference(single.nodes, self._made(single, code, values), values)
            if wrong is not None:
                raise _differs(wrong, piece, "the native form of this op is wrong")
        raise _differs(place, piece, "ops are right by themselves but not as they are fused")

    def _compiled(self, pieces: Sequence[_Piece]) -> Sequence[Code]:
        """The code of each piece, all compiled at once."""
        plans = [plan_of(piece.part.graph, f"piece{n}") for n, piece in enumerate(pieces)]
        return self._target.compile(plans)

    def _made(self, piece: _Piece, code: Code, values: Arrays) -> Arrays:
        """The results of a compiled piece for eager values."""
        made = self._target.call(code, [values[value] for value in piece.part.inputs])
        return dict(zip(piece.part.outputs, made, strict=True))  # type: ignore[arg-type]


# ---- differences --------------------------------------------------------------------------------


class _Place(NamedTuple):
    """The first difference of compiled and eager code: an element of a value, with both results."""

    value: Value
    position: tuple[int, ...]
    compiled: Any
    eager: Any


def _differs(place: _Place, piece: _Piece, reason: str) -> GradtapeError:
    node = place.value.node
    assert node is not None  # inputs are not computed
    line = f" from {node.line}" if node.line else ""
    whole = not place.position
    where = "as result" if whole else f"at index {place.position} of {place.value.aval}"
    return GradtapeError(
        f"{node.op.name}: compiled code gives {place.compiled} {where}{line}, in kernel "
        f"{piece.name}, expected {place.eager}, which eager code gives, up to rounding. This is a "
        f"bug of the compiler ({reason}); call the function without jit"
    )


def _first_difference(nodes: Sequence[Node], made: Arrays, values: Arrays) -> _Place | None:
    """The first element, of the first value in order, that differs by more than rounding."""
    suspects = {
        value: wrong
        for value, array in made.items()
        if (wrong := ~_close(array, values[value])).any()
        and (wrong := wrong & ~_close_for_its_op(value, array, values)).any()
    }
    if not suspects:
        return None
    ranges = _ranges(nodes, values, suspects)
    for value, wrong in suspects.items():
        wrong &= ~ranges[value].holds(made[value])
        if wrong.any():
            index = tuple(int(i) for i in np.argwhere(wrong)[0])
            return _Place(value, index, made[value][index], values[value][index])
    return None


def _close(array: Any, expected: Any) -> Any:
    """A mask of elements that are equal up to a few units of the last place."""
    same = array == expected
    if expected.dtype.kind != "f":
        return same
    info = np.finfo(expected.dtype)
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(expected), info.tiny)
        near = np.abs(array - expected) <= _CLOSE * info.eps * size
    # An infinite size would let everything pass.
    near &= np.isfinite(expected)
    return same | near | (np.isnan(array) & np.isnan(expected))


def _close_for_its_op(value: Value, array: Any, values: Arrays) -> Any:
    """A mask of elements that are as close as one op on the same operands: sums may cancel."""
    node, expected = value.node, values[value]
    if node is None or expected.dtype.kind != "f":
        return np.zeros(array.shape, bool)
    amount = _rounding(node, values, expected)
    with np.errstate(all="ignore"):
        return np.abs(array - expected) <= (0.0 if amount is None else amount)


class _Range(NamedTuple):
    """The range of a result when every op rounds a little differently."""

    low: Any
    high: Any
    undefined: Any

    def holds(self, array: Any) -> Any:
        """A mask of elements in the range, or at most as far outside as it is wide."""
        low, high, undefined = self
        if array.dtype.kind != "f":
            return (low <= array) & (array <= high)
        with np.errstate(all="ignore"):
            width = high - low + _CLOSE * np.finfo(array.dtype).eps * np.maximum(-low, high)
            width = np.where(np.isfinite(width), width, 0)
            inside = (low - width <= array) & (array <= high + width)
        return inside | (np.isnan(array) & undefined)


def _ranges(nodes: Sequence[Node], values: Arrays, wanted: Iterable[Value]) -> dict[Value, _Range]:
    found = {value: [values[value]] for value in wanted}
    disturbances = [(np.random.default_rng(n), sign) for n in range(_PAIRS) for sign in (1.0, -1.0)]
    # Once without any disturbance, but with sums in a wider dtype.
    for rng, sign in ((None, 1.0), *disturbances):
        run = _disturbed(nodes, values, rng, sign)
        for value, arrays in found.items():
            arrays.append(run[value])
    return {value: _range_of(arrays) for value, arrays in found.items()}


def _range_of(arrays: Sequence[Any]) -> _Range:
    # fmin and fmax ignore NaN, which is noted apart.
    low, high = (functools.reduce(end, arrays) for end in (np.fmin, np.fmax))
    return _Range(low, high, functools.reduce(np.logical_or, map(_isnan, arrays)))


def _isnan(array: Any) -> Any:
    return np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, bool)


def _disturbed(
    nodes: Sequence[Node], values: Arrays, rng: np.random.Generator | None, sign: float = 1.0
) -> Arrays:
    """The values of some nodes, computed again from the others with different rounding."""
    own = {value for node in nodes for value in node.outputs}
    found = {value: array for value, array in values.items() if value not in own}
    for node in nodes:
        if isinstance(node.op.lower, Matrices):
            found.update(_disturbed_matrices(node, found, rng, sign))
            continue
        if node.op.kind == "control":
            found.update(_disturbed_steps(node, found, rng, sign))
            continue
        results = evaluated(node, found)
        value = node.outputs[0]
        if value.dtype.kind == "f":
            if rng is None:
                results[value] = _wide(node, found, results[value])
            elif (amount := _rounding(node, found, results[value])) is not None:
                results[value] = _moved(results[value], amount, rng, sign)
        found.update(results)
    return found


def _moved(result: Any, amount: Any, rng: np.random.Generator, sign: float) -> Any:
    """A result, moved by at most an amount at random."""
    # Of different magnitudes: equal ones would often cancel to the last bit.
    parts = sign * rng.choice([-1.0, 1.0], result.shape)
    parts *= rng.uniform(0.25, 1.0, result.shape)
    with np.errstate(all="ignore"):
        return np.asarray(result + parts * amount).astype(result.dtype)


def _disturbed_steps(
    node: Node, values: Arrays, rng: np.random.Generator | None, sign: float
) -> Arrays:
    """The results of a loop or branch, each op in it disturbed at every step."""
    if rng is None:
        return evaluated(node, values)

    def disturb(inner: Node, result: Any, operands: list[Any]) -> Any:
        if isinstance(inner.op.lower, Matrices):
            # Its errors grow with the condition, which operands that are a little off show.
            near = [_moved(x, _DISTURBANCE * _unit(x) * np.abs(x), rng, sign) for x in operands]
            try:
                return evaluate(inner.op, near, inner.params)
            except LinAlgError:
                return result
        amount = _rounding_of(inner, operands, result)
        return result if amount is None else _moved(result, amount, rng, sign)

    disturbed = disturbed_loop(node, disturb)
    made = evaluated(disturbed, values)
    return {
        value: made[other] for value, other in zip(node.outputs, disturbed.outputs, strict=True)
    }


def _unit(array: Any) -> float:
    """The resolution of a dtype; 0 for integers."""
    return float(np.finfo(array.dtype).eps) if array.dtype.kind == "f" else 0.0


def _disturbed_matrices(
    node: Node, values: Arrays, rng: np.random.Generator | None, sign: float
) -> Arrays:
    """The results of an op on matrices from disturbed operands: errors grow with the condition."""
    if rng is None:
        return evaluated(node, values)
    near = dict(values)
    for operand in node.operands:
        if isinstance(operand, Value) and operand.dtype.kind == "f":
            parts = (
                sign * rng.uniform(0.25, 1.0, operand.shape) * rng.choice([-1, 1], operand.shape)
            )
            eps = float(np.finfo(operand.dtype).eps)
            with np.errstate(all="ignore"):
                moved = values[operand] * (1 + _DISTURBANCE * eps * parts)
            near[operand] = moved.astype(operand.dtype)
    try:
        return evaluated(node, near)
    except LinAlgError:  # on the edge of being singular
        return evaluated(node, values)


def _wide(node: Node, values: Arrays, result: Any) -> Any:
    """The result of a reduction added up in a wider dtype; results of other ops as they are."""
    wider = np.dtype(np.float64 if result.dtype == np.float32 else np.longdouble)
    lowering = node.op.lower
    matrices = isinstance(lowering, Contraction) and result.dtype == np.float32
    if not matrices and not isinstance(lowering, Reduction):
        return result
    operands = [np.asarray(value_of(operand, values)).astype(wider) for operand in node.operands]
    with np.errstate(all="ignore"):
        return np.asarray(evaluate(node.op, operands, node.params)).astype(result.dtype)


def _rounding(node: Node, values: Arrays, result: Any) -> Any:
    """The most that compiled and eager code may differ by for one op; None for 0."""
    operands = [np.asarray(value_of(operand, values)) for operand in node.operands]
    return _rounding_of(node, operands, result)


def _rounding_of(node: Node, operands: list[Any], result: Any) -> Any:
    """The same, for given operands."""
    eps = float(np.finfo(result.dtype).eps)
    with np.errstate(all="ignore"):
        size = _size_of_errors(node, operands, result)
        # Infinite results are infinite in both.
        return None if size is None else np.where(np.isfinite(size), eps * size, 0.0)


def _size_of_errors(node: Node, operands: list[Any], result: Any) -> Any:
    """The same, in units of the resolution of the dtype."""
    lowering = node.op.lower
    if isinstance(lowering, Reduction | Contraction):
        terms = math.prod(operands[0].shape) / max(result.size, 1)
        if isinstance(lowering, Contraction):
            terms = operands[0].shape[-1]
        elif lowering.combine not in ("add", "multiply"):
            return None
        # |Σ xᵢ| may be small where Σ |xᵢ|, which the error goes with, is not.
        size = np.abs(evaluate(node.op, [np.abs(x) for x in operands], node.params))
        return (_DISTURBANCE + _PER_ROOT * math.sqrt(terms)) * size
    if not isinstance(lowering, Pointwise | Elements):
        return None
    size, instructions = _DISTURBANCE * np.abs(result), _rounding_instructions(node)
    if isinstance(lowering, Pointwise) and instructions != ["multiply"]:
        # Intermediate results may be as large as the operands, and cancel. A sum alone has none,
        # but its operands may be products that compiled code does not round.
        factor = 1 if instructions in (["add"], ["subtract"]) else _DISTURBANCE
        size = functools.reduce(np.maximum, [factor * np.abs(x) for x in operands], size)
    if isinstance(lowering, Elements) and not {"add", "subtract"}.isdisjoint(instructions):
        # Elements from anywhere may be added up, as in windows of an image, and may cancel.
        size = np.maximum(size, _DISTURBANCE * max(map(_largest, operands)))
    return size if instructions else None


def _largest(array: Any) -> Any:
    return np.abs(array[np.isfinite(array)]).max(initial=0) if array.dtype.kind == "f" else 0


def _rounding_instructions(node: Node) -> list[str]:
    """The instructions that round, in the expression of an element."""
    parts = walk(sample(node).expression, set())
    return [part.name for part in parts if part.dtype.kind == "f" and part.name not in _EXACT]
