"""Our side of the compiled benchmarks; uncompiled it is NumPy's, and the reference of all sides."""

from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as gt
from benchmarks import THREADS
from benchmarks.compiled_cases import Arrays
from benchmarks.compiled_functions import KINDS, Library
from benchmarks.compiled_program import Program, UnavailableError
from benchmarks.plain_loops import PlainLoops

_COMMON = (np, gt.relu, gt.softmax, gt.logsumexp, gt.value_and_grad, gt.vjp, gt.sigmoid)
_PLAIN = PlainLoops(np.stack)


def _loop(name: str) -> Callable[..., Any]:
    """Return a loop of gradtape; earlier states, which are measured too, have none."""

    def missing(*args: Any, **options: Any) -> Any:
        raise UnavailableError(f"this gradtape has no {name}")

    return getattr(gt, name, missing)


LIB = Library(*_COMMON, *map(_loop, ("scan", "while_loop", "map")))
EAGER = Library(*_COMMON, _PLAIN.scan, _PLAIN.while_loop, _PLAIN.map)


def program(kind: str, arrays: Arrays) -> Program:
    """Return the compiled program of a kind."""
    if not hasattr(gt, "jit"):
        raise UnavailableError("this gradtape has no jit")
    gt.set_num_threads(THREADS)
    return _program(kind, arrays, LIB, gt.jit)


def numpy_program(kind: str, arrays: Arrays) -> Program:
    """Return the same program run by NumPy, array by array."""
    if kind == "add":  # NumPy's own function, with no function of ours around it
        return Program("add(x, y)", arrays | {"add": np.add})
    return _program(kind, arrays, EAGER, _uncompiled)


def reference(kind: str, arrays: Arrays) -> list[np.ndarray]:
    """Compute the results in float64: NumPy's values, gradients by eager differentiation.

    Loops are those of Python. The peers are checked against these gradients too, so that an error
    in ours would be noticed.
    """
    return _program(kind, _double(arrays), EAGER, _uncompiled).results()


def _uncompiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def _double(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _double(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(_double(part) for part in value)
    return value.astype(np.float64) if value.dtype.kind == "f" else value


def _program(
    kind: str,
    arrays: Arrays,
    lib: Library,
    compiled: Callable[[Callable[..., Any]], Callable[..., Any]],
) -> Program:
    function, data, state = KINDS[kind].of(lib), KINDS[kind].data, KINDS[kind].state
    names = {name: arrays[name] for name in data.split(", ")} | {"f": compiled(function)}
    if not state:
        return Program(f"f({data})", names)
    return Program(
        f"{state}, loss = f({state}, {data})",
        names | {"given": [arrays[name] for name in state.split(", ")]},
        start=f"{state}, = given",
        result=f"({state}, loss)",
    )
