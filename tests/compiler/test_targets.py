"""The seam between plans and machines: plans run by NumPy give what eager code gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from control_ways import difference as control_difference
from every_case import CASES, cast
from gradtape.compiler.elementary import ELEMENTARY
from gradtape.compiler.program import Program
from gradtape.core.aval import aval_of
from gradtape.core.scalar import Scalar
from gradtape.errors import IndexingError
from gradtape.graph.trace import trace
from lowering_interpreter import ELEMENTARY as REFERENCE, evaluate, instruction
from numpy_target import NumpyTarget
from opcall import Call, noting
from random_code import random_program
from random_control import control_programs
from random_ways import difference
from test_compiled_ops import NOT_TRACED, assert_close, value_and_pullback

COMPILER = Path(gt.__file__).parent / "compiler"


def by_numpy(function: Callable[..., Any], *arrays: Any, settling: bool = False) -> tuple[Any, Any]:
    """The results of a function, traced and run by NumPy's target; and the target."""
    traced = trace(lambda *xs: gt.tree.flatten(function(*xs))[0], [aval_of(x) for x in arrays])
    target = NumpyTarget()
    program = Program(traced.graph, target=target, settling=settling)
    return program(*arrays, *(capture.current() for capture in traced.captures)), target


# ---- ops ----------------------------------------------------------------------------------------

TRACED = [case for case in CASES if case.function.__name__ not in NOT_TRACED]
PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_values_and_gradients_of_op_cases(part: int, thorough: bool) -> None:
    kernels = 0
    for case in TRACED[part :: PARTS if thorough else 10 * PARTS]:
        call = Call(case.function, cast(case.args, (*case.dtypes, np.float64)[0]), case.params)
        run = value_and_pullback(call) if case.differentiable else call
        with noting(f"of {case.id}"), np.errstate(all="ignore"):
            expected = gt.tree.flatten(run(*call.arrays))[0]
            found, target = by_numpy(run, *call.arrays)
            assert_close(found, expected, 64)
        kernels += target.kernels
    assert kernels


@pytest.mark.parametrize("first", [70_000, 70_020])
def test_random_programs(first: int) -> None:
    for seed in range(first, first + 20):
        program = random_program(seed)
        arrays = program.arguments()
        with np.errstate(all="ignore"):
            expected = program.function()(*arrays)
            found, _ = by_numpy(program.function(), *arrays)
        assert difference(program, found, expected) is None, program.source


@pytest.mark.parametrize("first", [0, pytest.param(10, marks=pytest.mark.slow)])
def test_random_loops_and_branches(first: int) -> None:
    steps = 0
    for program in control_programs(80_000 + first, 10):
        arrays = program.arguments()
        with np.errstate(all="ignore"):
            for function in (program.function(), gt.grad(program.loss(), program.floating)):
                expected = function(*arrays)
                found, target = by_numpy(function, *arrays)
                wrong = control_difference(program.dtype, found, expected)
                assert wrong is None, f"{program.seed}: {wrong}\n{program.source}"
                steps += target.element_programs
    assert steps


@pytest.mark.parametrize("size", [2, 300], ids=["elements", "arrays"])
def test_forms_of_loops(size: int) -> None:
    def function(x: Any) -> Any:
        carry, ys = gt.scan(lambda c, v: (np.sin(c) * v, c + v), x, np.linspace(0.1, 1.0, 4))
        root = gt.while_loop(lambda s: np.sum(s) < 9.0, lambda s: s * 1.3 + 0.1, np.abs(x))
        chosen = gt.cond(np.sum(x) > 0.0, np.exp, np.cos, x)
        backwards = gt.fori_loop(0, 3, lambda i, s: np.tanh(s) + i, carry)
        return np.sum(ys) + np.sum(root * chosen) + np.sum(backwards)

    x = np.linspace(-1.0, 1.2, size)
    for run in (function, gt.grad(function)):
        found, target = by_numpy(run, x)
        assert_close(found, [run(x)], 4096)
        assert (target.element_programs if size == 2 else target.array_loops) >= 4


# ---- what a target has to understand ------------------------------------------------------------

X = np.random.default_rng(3).normal(size=(6, 7))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: gt.softmax(x, axis=1),  # rows that wait for a later stage
        lambda x: gt.softmax(x, axis=0) * x.sum(),
        lambda x: (np.cumsum(x, axis=0), np.cumsum(x, axis=1), np.cumprod(x[:, ::-1], axis=1)),
        lambda x: x[np.array([0, 5, 5]), :] @ x.T,
        lambda x: np.matmul(np.stack([x, x + 1.0]), x.T) + (x @ x[0])[:, None],
        lambda x: gt.grad(lambda x: np.sum(x[np.array([1, 1, 4])] ** 2))(x),  # adds at places
        lambda x: (x[:, :0].sum(axis=1), x[:0].max(axis=0, initial=2.0)),
        lambda x: (x > 0).any(axis=0) & (x < 2).all(axis=0),
    ],
)
def test_forms_of_kernels(function: Callable[..., Any]) -> None:
    found, target = by_numpy(function, X)
    assert_close(found, gt.tree.flatten(function(X))[0], 64)
    assert target.kernels + target.products


def test_temporaries_share_memory() -> None:
    def function(x: Any) -> Any:
        for _ in range(5):
            x = np.tanh(x @ x.T) @ x
        return x

    found, target = by_numpy(function, X)
    assert_close(found, [function(X)], 64)
    assert target.products == 10


def test_a_condition_that_does_not_hold() -> None:
    def function(x: Any, i: Any) -> Any:
        return x[i] * 2.0

    assert_close(by_numpy(function, X, np.array([0, -6, 5]))[0], [X[[0, -6, 5]] * 2.0], 1)
    with pytest.raises(IndexingError, match=r"index 6.*expected"):
        by_numpy(function, X, np.array([0, 6, 9]))


def test_what_has_to_be_settled_is_compiled_again() -> None:
    function = gt.grad(lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)))
    x = np.array([0.0, 4.0])
    assert_close(by_numpy(function, x)[0], [function(x)], 1)


# ---- elementary functions -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_elementary_functions_are_expressions(dtype: Any) -> None:
    x = np.linspace(0.02, 0.98, 97, dtype=dtype)
    for name, function in ELEMENTARY.items():
        arrays = [x + (name == "arccosh"), x[::-1].copy()]
        arrays = arrays[: 2 if name in ("power", "hypot", "arctan2") else 1]
        args = [Scalar("argument", (), a.dtype, extra=a) for a in arrays]
        whole = function(*args)
        assert whole.dtype == dtype, name
        with np.errstate(all="ignore"):
            found = evaluate(whole, compute=near)
            expected = REFERENCE[name](*arrays)
        # SciPy's lgamma has no more digits than that close to its zeros.
        eps = 16 * np.finfo(dtype).eps
        np.testing.assert_allclose(found, expected, rtol=eps, atol=eps / 16, err_msg=name)


def near(part: Scalar, values: list[Any]) -> Any:
    """The instructions of a target that has no remainders of huge arguments."""
    if part.name in ("far_remainder", "far_multiple"):
        return values[1 if part.name == "far_remainder" else 2]
    return instruction(part, values)


# ---- who knows the CPU --------------------------------------------------------------------------


def test_only_what_runs_programs_knows_the_cpu() -> None:
    knows = {
        path.name
        for path in COMPILER.glob("*.py")
        if "gradtape.compiler.cpu" in path.read_text(encoding="utf-8")
    }
    # Programs are for the CPU if nobody says otherwise.
    assert knows == {"program.py"}
    for path in (COMPILER / "elementary").glob("*.py"):
        assert "gradtape.compiler.cpu" not in path.read_text(encoding="utf-8")
