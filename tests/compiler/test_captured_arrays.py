"""Arrays from outside are read at each call of a compiled function, and in its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from every_case import CASES
from gradtape.compiler.debug import check_same
from gradtape.core.aval import aval_of
from gradtape.errors import GradtapeError
from gradtape.graph.trace import trace
from graphcall import run_trace
from opcall import Call, is_floating
from opcases.case import OpCase
from test_compiled_ops import NOT_TRACED, assert_close, weights


def value_and_gradients(call: Call, case: OpCase, arrays: list[Any], given: int) -> Any:
    """A function of one array of a call, which captures the others: results and gradient."""

    def run(x: Any) -> Any:
        def function(x: Any) -> list[Any]:
            return call(*arrays[:given], x, *arrays[given + 1 :])

        if not is_floating(arrays[given]) or not case.differentiable:
            return function(x), ()
        results, pullback = gt.vjp(lambda x: list(filter(is_floating, function(x))), x)
        return function(x), pullback([weights(y.shape).astype(y.dtype) for y in results])

    return run


def turned_round(array: Any) -> None:
    array[...] = array.reshape(-1)[::-1].reshape(array.shape).copy()


def check_captures(case: OpCase, call: Call, given: int) -> None:
    """All arrays but one are captured, and then changed."""
    arrays = [array.copy() for array in call.arrays]
    run, x = value_and_gradients(call, case, arrays, given), arrays[given].copy()
    with np.errstate(all="ignore"):
        known = trace(run, [aval_of(x)], case.id)
        for n, array in enumerate(arrays):
            if n != given:
                turned_round(array)
        if any(guard.changed() for guard in known.guards):
            return  # it is traced again
        try:
            expected = run(x)
        except GradtapeError:
            return  # no longer an argument that it takes
        got = run_trace(known, x)
    try:
        assert_close(got, expected, 1e4)
    except AssertionError:
        if case.function.__module__.startswith("gradtape"):
            raise
        # The function is one of the tests' and computes with a captured array alone.
        with pytest.raises(GradtapeError, match="is not what it was"):
            check_same(known, trace(run, [aval_of(x)], case.id))


def families() -> dict[str, list[OpCase]]:
    """The cases with several arrays that can be traced, by the module of the function."""
    found: dict[str, list[OpCase]] = {}
    for case in CASES:
        several = len(Call(case.function, case.args, case.params).arrays) > 1
        if several and case.function.__name__ not in NOT_TRACED:
            found.setdefault(case.function.__module__.removeprefix("gradtape."), []).append(case)
    return found


FAMILIES = families()


def check_family(cases: list[OpCase], every_argument: bool = False) -> None:
    errors: list[Exception] = []
    for case in cases:
        call = Call(case.function, case.args, case.params)
        first = next((n for n, x in enumerate(call.arrays) if is_floating(x)), 0)
        for given in range(len(call.arrays)) if every_argument else [first]:
            try:
                check_captures(case, call, given)
            except Exception as error:
                error.add_note(f"in {case.id}, as a function of its array {given}")
                errors.append(error)
    if errors:
        raise ExceptionGroup("captured arrays are not read", errors)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_op(family: str) -> None:
    """The first and the last case of each function; more of them go the same way."""
    cases = FAMILIES[family]
    first = {case.function: case for case in reversed(cases)}
    last = {case.function: case for case in cases}
    check_family(
        [case for case in cases if case is first[case.function] or case is last[case.function]]
    )


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_every_argument_of_every_op(family: str) -> None:
    check_family(FAMILIES[family], every_argument=True)


W = (np.array([2.0, 3.0]), np.array([3.0, 4.0]))
X = np.array([1.5, 2.5])


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: np.sum(x**w),
        lambda x, w: np.sum(np.arctan2(x, w)),
        lambda x, w: np.sum(x * w) / np.sum(x * x),
        lambda x, w: np.average(x, weights=w) ** 2,
        lambda x, w: np.sum(np.interp(x, w - 2.0 * x, w * x)),
        lambda x, w: gt.jvp(lambda x: np.sum(x**3), (x,), (w,))[1],
        lambda x, w: np.sum(gt.vjp(lambda x: x**3, x)[1](w)[0] ** 2),
        lambda x, w: gt.jit(lambda x: np.sum(x**w))(x),
    ],
    ids=["power", "arctan2", "ratio", "average", "interp", "jvp", "vjp", "jit"],
)
def test_gradients_see_writes(function):
    w = W[0].copy()
    gradient = gt.jit(gt.grad(lambda x: function(x, w)))
    np.testing.assert_allclose(gradient(X), gt.grad(lambda x: function(x, W[0]))(X))
    w[:] = W[1]
    np.testing.assert_allclose(gradient(X), gt.grad(lambda x: function(x, W[1]))(X))


@pytest.mark.parametrize(
    "function",
    [
        lambda w: lambda x: w,
        lambda w: lambda x: gt.vjp(lambda x: [x * 2.0, w], x)[0][1],
        lambda w: lambda x: gt.vjp(lambda x: [x * 2.0, w], x)[0][1] * x,
        lambda w: lambda x: gt.jvp(lambda x: [x * 2.0, w], (x,), (x,))[0][1],
        lambda w: lambda x: gt.vmap(lambda x: (x * 2.0, w))(x)[1],
        lambda w: lambda x: gt.grad(lambda x: (gt.sum(x * x), w), has_aux=True)(x)[1],
        lambda w: lambda x: gt.value_and_grad(lambda x: gt.sum(x * w))(x)[0],
        lambda w: lambda x: gt.clip(w, w - w, x),
    ],
    ids=["alone", "vjp", "vjp and more", "jvp", "vmap", "aux", "value", "clip"],
)
def test_arrays_that_are_returned_are_read(function):
    w = W[0].copy()
    eager, compiled = function(w), gt.jit(function(w))
    compiled(X)
    w[:] = W[1]
    np.testing.assert_array_equal(compiled(X), np.asarray(eager(X)))


def test_a_mask_from_outside():
    mask = np.array([True, False])
    gradient = gt.jit(gt.grad(lambda x: np.sum(np.where(mask, x, 2 * x))))
    np.testing.assert_array_equal(gradient(X), [1.0, 2.0])
    mask[:] = [False, True]
    np.testing.assert_array_equal(gradient(X), [2.0, 1.0])


def test_a_mask_that_selects_is_looked_at():
    """How many elements it selects is part of the graph, which is traced again."""
    mask = np.array([True, False])
    gradient = gt.jit(gt.grad(lambda x: np.sum(x[mask] ** 2)))
    for selected in ([True, False], [True, True], [False, True]):
        mask[:] = selected
        for _ in range(2):
            np.testing.assert_array_equal(gradient(X), np.where(selected, 2 * X, 0.0))
    inner = gt.jit(lambda x: np.sum(x[mask] ** 2))
    outer = gt.jit(lambda x: inner(x) * 2.0)
    for selected in ([True, False], [True, True]):
        mask[:] = selected
        assert outer(X) == pytest.approx(2 * np.sum(X[mask] ** 2))


def test_integers_that_select_are_read():
    index = np.array([0, 0])
    gather = gt.jit(gt.grad(lambda x: np.sum(x[index] ** 2)))
    np.testing.assert_array_equal(gather(X), [4 * X[0], 0.0])
    index[:] = 1
    np.testing.assert_array_equal(gather(X), [0.0, 4 * X[1]])

    def written(x):
        y = x * 1.0
        y[index] = 7.0
        return np.sum(y * y)

    scatter = gt.jit(gt.grad(written))
    np.testing.assert_array_equal(scatter(X), [2 * X[0], 0.0])
    index[:] = 0
    np.testing.assert_array_equal(scatter(X), [0.0, 2 * X[1]])


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state["w"].__imul__(2.0),
        lambda state: state.update(factor=3.0),
        lambda state: state["list"].append(1.0),
    ],
    ids=["array", "number", "list"],
)
def test_debug_mode_notices_what_is_computed_once(change):
    state = {"w": W[0].copy(), "factor": 2.0, "list": [1.0, 2.0]}

    def function(x):
        y = x * (state["w"] + 1.0) * state["factor"]
        for number in state["list"]:
            y = y + number
        return y

    compiled = gt.jit(function, debug=True)
    for _ in range(2):
        np.testing.assert_allclose(compiled(X), function(X))
    change(state)
    with pytest.raises(GradtapeError, match="is not what it was when it was compiled"):
        compiled(X)


def test_debug_mode_lets_draws_and_changed_arguments_pass():
    w = W[0].copy()
    compiled = gt.jit(lambda x: x * w + gt.random.normal((2,)), debug=True)
    one = compiled(X)
    w[:] = W[1]
    other = compiled(X)
    assert np.all(one != other)


@pytest.mark.parametrize(
    "write",
    [
        lambda array, x: np.copyto(array, x),
        lambda array, x: np.put(array, [0], x[:1]),
        lambda array, x: np.add.at(array, [0], x[:1]),
        lambda array, x: gt.nn.batch_norm(x[:, None], array[:1], array[1:], training=True),
    ],
    ids=["copyto", "put", "at", "batch_norm"],
)
def test_writes_into_captured_arrays_are_refused(write):
    """What is written into an array would be written to an input of the trace, and be lost."""
    array = np.ones(2)

    def function(x):
        write(array, x)
        return x

    with pytest.raises(GradtapeError):
        gt.jit(function)(X)
    np.testing.assert_array_equal(array, 1.0)


def test_captured_tensors_of_indices_are_read_at_each_call() -> None:
    places, one, x = gt.tensor(np.array([0, 1])), gt.tensor(2), np.arange(4.0)

    def function(x: Any) -> Any:
        y = gt.zeros_like(x)
        y[places] = x[places] * 2.0 + x[one]
        return y

    compiled = gt.jit(function)
    np.testing.assert_array_equal(compiled(x), [2.0, 4.0, 0.0, 0.0])
    places[0] = 3
    one[...] = 1
    np.testing.assert_array_equal(compiled(x), [0.0, 3.0, 0.0, 7.0])
