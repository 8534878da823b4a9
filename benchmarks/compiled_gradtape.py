"""Our side of the compiled benchmarks; uncompiled it is NumPy's, and the reference of all sides."""

from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as gt
from benchmarks import THREADS
from benchmarks.compiled_cases import Arrays
from benchmarks.compiled_functions import KINDS, Library
from benchmarks.compiled_program import Program, UnavailableError

LIB = Library(np, gt.relu, gt.softmax, gt.logsumexp, gt.value_and_grad, gt.vjp)


def program(kind: str, arrays: Arrays) -> Program:
    """Return the compiled program of a kind."""
    if not hasattr(gt, "jit"):
        raise UnavailableError("this gradtape has no jit")
    gt.set_num_threads(THREADS)
    return _program(kind, arrays, gt.jit)


def numpy_program(kind: str, arrays: Arrays) -> Program:
    """Return the same program run by NumPy, array by array."""
    if kind == "add":  # NumPy's own function, with no function of ours around it
        return Program("add(x, y)", arrays | {"add": np.add})
    return _program(kind, arrays, _uncompiled)


def reference(kind: str, arrays: Arrays) -> list[np.ndarray]:
    """Compute the results in float64: NumPy's values, gradients by eager differentiation.

    The peers are checked against these gradients too, so that an error in ours would be noticed.
    """
    return _program(kind, _double(arrays), _uncompiled).results()


def _uncompiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def _double(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _double(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(_double(part) for part in value)
    return value.astype(np.float64) if value.dtype.kind == "f" else value


def _program(
    kind: str, arrays: Arrays, compiled: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Program:
    function, data, state = KINDS[kind].of(LIB), KINDS[kind].data, KINDS[kind].state
    names = {name: arrays[name] for name in data.split(", ")} | {"f": compiled(function)}
    if not state:
        return Program(f"f({data})", names)
    return Program(
        f"{state}, loss = f({state}, {data})",
        names | {"given": [arrays[name] for name in state.split(", ")]},
        start=f"{state}, = given",
        result=f"({state}, loss)",
    )
