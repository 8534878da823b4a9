"""A debug mode that finds the op, and the line of code, that made the first NaN or infinity."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.autodiff.forward import Tangent
from gradtape.autodiff.power_series import Known
from gradtape.core.aval import Abstract, aval_of
from gradtape.core.evaluate import evaluate
from gradtape.core.level import Node
from gradtape.core.lines import user_line
from gradtape.core.op import Op
from gradtape.core.record import Output, Record
from gradtape.core.state import Proceed, Scope, State
from gradtape.core.tensor import Tensor, innermost
from gradtape.errors import AnomalyError
from gradtape.graph.ir import Graph, value_of


class detect_anomaly(Scope):  # noqa: N801 - used like a function, as no_grad is
    """Raise at the first op in a block whose result, or whose gradient, is not finite.

    An op counts only if its operands are finite: infinities that you put in on purpose, such as
    those of a mask, pass, and so does what is computed from them. The error names the op, the
    element and the line of your code; in a backward pass, the line where the op was called, if that
    was in the block, too. Every result is looked at, which is slow: use it to find the place, not
    in production.

    Args:
        check_inf: Whether infinities count; NaN always does.

    Raises:
        AnomalyError: Something is not finite.

    >>> x = gt.tensor([1.0, 0.0], requires_grad=True)
    >>> with gt.detect_anomaly():
    ...     y = gt.log(x)
    Traceback (most recent call last):
        ...
    gradtape.errors.AnomalyError: detect_anomaly: log gives -inf at index (1,) of float64[2] ...
    >>> with gt.detect_anomaly():
    ...     gt.sum(gt.sqrt(x)).backward()
    Traceback (most recent call last):
        ...
    gradtape.errors.AnomalyError: detect_anomaly: the gradient of sqrt gives inf at index (1,) ...
    """

    kind = "observing"

    def __init__(self, *, check_inf: bool = True) -> None:
        self._check_inf = check_inf
        # Where records were made, as long as they exist.
        self._lines: weakref.WeakKeyDictionary[Node, str] = weakref.WeakKeyDictionary()

    def again(self) -> detect_anomaly:
        return type(self)(check_inf=self._check_inf)

    def change(self, state: State, before: State | None = None) -> State:
        return state.derive(modes=(self, *state.modes))

    def run(self, op: Op, args: tuple[Any, ...], params: dict[str, Any], proceed: Proceed) -> Any:
        """Run an op and look at its results."""
        with np.errstate(all="ignore"):  # what would be warned of is an error here
            out = proceed(op, args, params)
        line = user_line()
        results = (out,) if op.outputs == 1 else out
        for result in results:
            self._note(result, line)
        pushed = self._first([tangent for result in results for tangent in _tangents(result)])
        found = self._first(results) or pushed
        given = [*args, *[tangent for arg in args for tangent in _tangents(arg)]]
        if found is None or self._first(given) is not None:
            return out
        if found is pushed:
            raise _error(f"the tangent of {op.name} gives", found, line)
        if op.graph is not None:
            inner = self._inside(op.graph, args)
            raise inner or _error(f"the compiled function {op.name} gives", found, line)
        raise _error(f"{op.name} gives", found, line, _operands(args, found))

    def pull(self, record: Record, proceed: Callable[[], Sequence[Any]]) -> Sequence[Any]:
        """Apply the rules of a record, and look at the cotangents of its parents."""
        given = proceed()
        found = self._first(given)
        if found is not None:
            line, inside = self._lines.get(record, ""), record.op.graph is not None
            more = ", compiled (run it without gt.jit to see which op in it)" if inside else ""
            raise _error(f"the gradient of {record.op.name}{more} gives", found, line)
        changed = self._first([tangent for one in given for tangent in _tangents(one)])
        inputs = getattr(record, "inputs", ())
        if changed is not None and not self._first([t for x in inputs for t in _tangents(x)]):
            line = self._lines.get(record, "")
            raise _error(f"the tangent of the gradient of {record.op.name} gives", changed, line)
        self._note_computed(given, self._lines.get(record, ""))
        return given

    def push(self, record: Record, given: Sequence[Any], proceed: Callable[[], Any]) -> Any:
        """Push the tangents of the parents of a record on, and look at what comes of them."""
        tangent = proceed()
        found = self._first(_parts([tangent]))
        if found is not None and self._first(_parts(given)) is None:
            line = self._lines.get(record, "")
            raise _error(f"the tangent of {record.op.name} gives", found, line)
        return tangent

    def _note(self, result: Any, line: str) -> None:
        """Remember the line of the records of a result, at all levels."""
        while isinstance(result, Tensor):
            node = result.record
            if isinstance(node, Record):
                self._lines[node] = line
                if isinstance(node, Output):
                    self._lines[node.parent] = line
            result = result.value

    def _note_computed(self, values: Sequence[Any], line: str) -> None:
        """Remember a line for what some values were computed from and has no line yet."""
        nodes: list[Any] = []
        for value in values if line else ():
            while isinstance(value, Tensor):
                nodes.append(value.record)
                value = value.value
        while nodes:
            node = nodes.pop()
            if isinstance(node, Record) and node not in self._lines:
                self._lines[node] = line
                nodes.extend(node.parents)

    def _first(self, values: Sequence[Any]) -> tuple[Any, tuple[int, ...]] | None:
        """The first value with an element that is not finite, and the index of that."""
        for value in values:
            array = _array(value)
            if array is None:
                continue
            wrong = np.isnan(array) if not self._check_inf else ~np.isfinite(array)
            if wrong.any():
                return array, tuple(int(n) for n in np.argwhere(wrong)[0])
        return None

    def _inside(self, graph: Graph, args: Sequence[Any]) -> AnomalyError | None:
        """The error for the first op in a compiled function; None if it cannot be told."""
        arrays = [innermost(arg, show=True) if isinstance(arg, Tensor) else arg for arg in args]
        values = dict(zip(graph.inputs, arrays, strict=True))
        with np.errstate(all="ignore"):
            for node in graph.nodes:
                operands = [value_of(operand, values) for operand in node.operands]
                out = evaluate(node.op, operands, node.params)
                results = (out,) if node.op.outputs == 1 else out
                found = self._first(results)
                if found is not None and self._first(operands) is None:
                    inside = f"in the compiled function {graph.name}, {node.op.name} gives"
                    return _error(inside, found, node.line, _operands(operands, found))
                values.update(zip(node.outputs, results, strict=True))
        return None


def _parts(values: Sequence[Any]) -> list[Any]:
    """Values, with those of an op of several results one by one."""
    return [part for one in values for part in (one if isinstance(one, tuple) else (one,))]


def _tangents(value: Any) -> list[Any]:
    """The tangents of a value at all levels, and what `jet` has in place of them."""
    found: list[Any] = []
    while isinstance(value, Tensor):
        if isinstance(value.record, Tangent):
            found.append(value.record.tangent)
        elif isinstance(series := getattr(value.record, "series", None), Known):
            found.extend(series.coefficients)
        value = value.value
    return found


def _array(value: Any) -> Any:
    """The floating-point numbers of a value; None for other values, and those of a trace."""
    raw = innermost(value, show=True) if isinstance(value, Tensor) else value
    if raw is None or isinstance(raw, Abstract | int):
        return None
    array = np.asarray(raw)
    if array.dtype.kind == "V":
        array = array.astype(np.float32)
    return array if array.dtype.kind in "fc" else None


def _operands(args: Sequence[Any], found: tuple[Any, tuple[int, ...]]) -> str:
    """The elements of operands that an element of the result was made of, if they are known."""
    array, index = found
    known = [_array(arg) for arg in args]
    same = [x for x in known if x is not None and x.shape in (array.shape, ())]
    if len(same) < len([x for x in known if x is not None]) or not same:
        return ""
    elements = [x[index] if x.shape == array.shape else x[()] for x in same]
    return " from " + " and ".join(f"{element:.6g}" for element in elements)


def _error(
    what: str, found: tuple[Any, tuple[int, ...]], line: str, operands: str = ""
) -> AnomalyError:
    array, index = found
    where = f", at {line}" if line else ""
    return AnomalyError(
        f"detect_anomaly: {what} {array[index]} at index {index} of {aval_of(array)}{operands}"
        f"{where}; everything it was computed from is finite"
    )
