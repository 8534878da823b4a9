"""What the tests of ops are made of: calls seen as functions of arrays, and modes that look on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import ml_dtypes
import numpy as np

import gradtape as gt
from gradtape import containers
from gradtape.core.aval import Aval, aval_of
from gradtape.core.level import Node
from gradtape.core.op import Op
from gradtape.core.record import Binary, General, Record, Unary
from gradtape.core.state import Proceed


@contextmanager
def noting(note: str) -> Iterator[None]:
    """Say in an error of a block what it is about."""
    try:
        yield
    except BaseException as error:
        error.add_note(note)
        raise


class Call:
    """A function as a function of the arrays among its arguments, with a flat list of results."""

    def __init__(self, function: Any, args: Sequence[Any], params: dict[str, Any]) -> None:
        self._function, self._params = function, params
        self._leaves, self._structure = containers.flatten(tuple(args))
        self._places = [i for i, x in enumerate(self._leaves) if isinstance(x, np.ndarray)]
        self.arrays = [self._leaves[i] for i in self._places]

    def __call__(self, *arrays: Any) -> list[Any]:
        leaves = list(self._leaves)
        for i, array in zip(self._places, arrays, strict=True):
            leaves[i] = array
        result = self._function(*containers.unflatten(self._structure, leaves), **self._params)
        return containers.flatten(result)[0]

    def differentiable(self) -> tuple[Callable[..., list[Any]], list[Any]]:
        """The function of the floating arrays only, with floating results, and those arrays."""
        chosen = [i for i, x in enumerate(self.arrays) if is_floating(x)]

        def function(*floats: Any) -> list[Any]:
            arrays = list(self.arrays)
            for i, x in zip(chosen, floats, strict=True):
                arrays[i] = x
            return [out for out in self(*arrays) if is_floating(out)]

        return function, [self.arrays[i] for i in chosen]


def is_floating(value: Any) -> bool:
    return aval_of(value).dtype.kind in "fc"


def as_tensors(arrays: Sequence[Any], requires_grad: bool = False) -> list[Any]:
    tensors = [gt.Tensor(array) for array in arrays]
    for tensor in tensors:
        if requires_grad and is_floating(tensor):
            tensor.set_requires_grad(True)
    return tensors


def resolution(dtype: Any) -> float:
    """The spacing of a dtype's numbers at 1; 0 for those that are exact."""
    return float(ml_dtypes.finfo(dtype).eps) if dtype.kind in "fcV" else 0.0


def assert_same(got: Any, expected: Any, ulps: float) -> None:
    """Same number, shapes and dtypes of results; values equal to so many units of resolution."""
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        tolerance = ulps * resolution(other.dtype)
        if other.dtype.kind == "V":
            one, other = one.astype(np.float64), other.astype(np.float64)
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


class CheckInfer:
    """A mode that compares the shape rule of every op with what comes out of it."""

    kind = "observing"

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def run(self, op: Op, args: tuple[Any, ...], params: dict[str, Any], proceed: Proceed) -> Any:
        self.seen.add(op.name)
        out = proceed(op, args, params)
        inferred = op.infer(*self._avals(args), **params)
        for one, other in zip(
            *(x if op.outputs != 1 else (x,) for x in (out, inferred)), strict=True
        ):
            # What comes of numbers alone is a NumPy scalar, and weak only where it is traced.
            made = aval_of(one)
            same = (made.shape, made.dtype) == (other.shape, other.dtype)
            assert same, f"{op.name}: infer says {other}, got {made}"
        return out

    def _avals(self, args: tuple[Any, ...]) -> list[Aval]:
        known = (int, float, complex, np.generic, np.ndarray, gt.Tensor)
        return [aval_of(arg if isinstance(arg, known) else np.asarray(arg)) for arg in args]


class PassOn:
    """A mode that does nothing; where one is on, ops leave the fast path."""

    kind = "observing"

    def run(self, op: Op, args: tuple[Any, ...], params: dict[str, Any], proceed: Proceed) -> Any:
        return proceed(op, args, params)


def check_kept(record: Node | None) -> None:
    """All records from here on hold no values but those their rules read."""
    rest, seen = [record], set[int]()
    while rest:
        found = rest.pop()
        if isinstance(found, Record) and id(found) not in seen:
            seen.add(id(found))
            _check_kept(found)
            rest.extend(found.parents)


def _check_kept(record: Record) -> None:
    if isinstance(record, Unary | Binary | General):
        keep_out, *keep = record.op.keeps(tuple(parent is not None for parent in record.parents))
        for value, kept in zip(record.inputs, keep, strict=True):
            number = isinstance(value, int | float)
            assert kept or number or value is None or isinstance(value, Aval), record.op
        outs = record.out if isinstance(record, General) and record.avals else [record.out]
        assert keep_out or all(out is None or isinstance(out, Aval) for out in outs), record.op
