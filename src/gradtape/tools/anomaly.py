"""A debug mode that finds the op, and the line of code, that made the first NaN or infinity."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
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
from gradtape.core.state import Proceed, Proceeding, Scope, State
from gradtape.core.tensor import Tensor, innermost
from gradtape.errors import AnomalyError
from gradtape.graph.ir import Graph, value_of

# An array, and the index of an element that is not finite; None if all are.
_Found = tuple[Any, tuple[int, ...]] | None


class detect_anomaly(Scope):  # noqa: N801 - used like a function, as no_grad is
    """Raise at the first op in a block whose result, or whose gradient, is not finite.

    An op counts only if its operands are finite: infinities that you put in on purpose, such as
    those of a mask, pass, and so does what is computed from them. The error names the op, the
    element and the line of your code; in a backward pass, the line where the op was called, if that
    was in the block, too, or on a tape made with `lines=True`. In a backward pass, gradients that
    you begin it with (`output_gradients`) and those that hooks return have to be finite; cotangents
    given to a pullback of `gt.vjp` pass, as tangents do. Every result is looked at, which is slow:
    use it to find the place, not in production.

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
        pushed = self._first([tangent for result in results for tangent in tangents_of(result)])
        found = self._first(results) or pushed
        given = [*args, *[tangent for arg in args for tangent in tangents_of(arg)]]
        if found is None or self._first(given) is not None:
            return out
        if found is pushed:
            raise _error(f"the tangent of {op.name} gives", found, line)
        if op.graph is not None:
            inner = self._inside(op.graph, args)
            raise inner or _error(f"the compiled function {op.name} gives", found, line)
        raise _error(f"{op.name} gives", found, line, _operands(args, found))

    def pull(self, record: Record, proceed: Proceeding) -> Sequence[Any]:
        """Apply the rules of a record, and look at the cotangents of its parents."""
        before = proceed.so_far()
        given: Sequence[Any] = proceed()
        found = self._spoiled(before, given)
        changed = self._spoiled(*[[tangents_of(one) for one in all_] for all_ in (before, given)])
        if (found or changed) is not None:
            self._blame(record, proceed, found, changed)
        self._note_computed(given, self._line(record))
        return given

    def _blame(self, record: Record, proceed: Proceeding, found: _Found, changed: _Found) -> None:
        """Raise for what is not finite in cotangents, unless what the rules read is not either."""
        inputs, out = proceed.read()
        given = _parts([proceed.cotangent, *inputs])
        if self._first(given) is not None:
            return
        inside = record.op.graph is not None
        more = ", compiled (run it without gt.jit to see which op in it)" if inside else ""
        what = f"the gradient of {record.op.name}{more} gives"
        if self._first(_parts([out])) is not None:
            if record not in self._lines:  # otherwise its operands were not finite either
                why = f"{record.op.name} gave a result that is not finite"
                raise _error(what, found or changed, self._line(record), why=why, advise=True)
        elif found is not None:
            raise _error(what, found, self._line(record), advise=True)
        elif self._first([t for x in _parts([*given, out]) for t in tangents_of(x)]) is None:
            what = f"the tangent of the gradient of {record.op.name} gives"
            raise _error(what, changed, self._line(record), advise=True)

    def push(self, record: Record, given: Sequence[Any], proceed: Proceeding) -> Any:
        """Push the tangents of the parents of a record on, and look at what comes of them."""
        tangent = proceed()
        found = self._first(_parts([tangent]))
        if found is None or self._first(_parts(given)) is not None:
            return tangent
        inputs, out = proceed.read()
        if self._first(inputs) is None and self._first(_parts([out])) is None:
            what = f"the tangent of {record.op.name} gives"
            raise _error(what, found, self._line(record), advise=True)
        return tangent

    def note_cotangent(self, by: str, value: Any, before: Any) -> None:
        """Look at a cotangent that the user gave, or that a hook returned."""
        found = self._spoiled([before], [value])
        if found is not None:
            why = "no op made it" if before is None else "the gradient that it got is finite there"
            raise _error(by, found, "", why=why)

    def _line(self, record: Record) -> str:
        """The line that made a record, as this block or its tape has noted it; "" if none has."""
        line = self._lines.get(record)
        return record.segment.lines.get(record.sequence, "") if line is None else line

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

    def _first(self, values: Sequence[Any]) -> _Found:
        """The first value with an element that is not finite, and the index of that."""
        for value in values:
            array = _array(value)
            found = None if array is None else _at(array, self._wrong(array))
            if found is not None:
                return found
        return None

    def _spoiled(self, before: Sequence[Any], after: Sequence[Any]) -> _Found:
        """The first element that is not finite, of those that were finite before or not there."""
        for old, new in zip(before, after, strict=True):
            if isinstance(new, list):
                known = old if isinstance(old, list) and len(old) == len(new) else [None] * len(new)
                found = self._spoiled(known, new)
            elif (array := _array(new)) is not None:
                was = _array(old)
                wrong = self._wrong(array)
                found = _at(array, wrong if was is None else wrong & ~self._wrong(was))
            else:
                continue
            if found is not None:
                return found
        return None

    def _wrong(self, array: Any) -> Any:
        return np.isnan(array) if not self._check_inf else ~np.isfinite(array)

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


def _at(array: Any, wrong: Any) -> _Found:
    """An array with the index of its first element that is wrong."""
    return (array, tuple(int(n) for n in np.argwhere(wrong)[0])) if wrong.any() else None


def _parts(values: Sequence[Any]) -> list[Any]:
    """Values, with those of an op of several results one by one."""
    return [part for one in values for part in (one if isinstance(one, tuple | list) else (one,))]


def tangents_of(value: Any) -> list[Any]:
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
    what: str,
    found: _Found,
    line: str,
    operands: str = "",
    why: str = "everything it was computed from is finite",
    *,
    advise: bool = False,
) -> AnomalyError:
    """The error; if `advise`, it says how to see the line where that is not known."""
    assert found is not None
    array, index = found
    where = f", at {line}" if line else ""
    if advise and not line:
        why += (
            "; to see the line of code, put the forward pass into the block, too, or make the tape "
            "with gt.GradientTape(lines=True)"
        )
    return AnomalyError(
        f"detect_anomaly: {what} {array[index]} at index {index} of {aval_of(array)}{operands}"
        f"{where}; {why}"
    )
