"""NumPy's arrays of tracked numbers: every function of NumPy is right on them, or raises."""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import containers
from gradtape.core.tracked_number import TrackedNumber
from gradtape.errors import ConversionError, WriteError
from numpy_calls import CALLS, POINT, by_floats, call, flat, slopes

# What a function may raise on an array of objects, besides errors of gradtape.
REFUSED = (TypeError, ValueError, IndexError, AttributeError, NotImplementedError)
# Differences between objects and floats that no number can see.
EXEMPT = {
    "np.geomspace": "its samples are numbers, no arrays; at NaN ours gives NaN throughout",
    "np.can_cast": "it is about dtypes, and that of objects is another",
    "np.nan_to_num": "it leaves objects alone, NaN included",
}


def by_objects(name: str, p: Any) -> Any:
    out = call(name, p, np.array)
    # As a transform does with what a function returns.
    return flat(containers.map_leaves(lambda x: gt.asarray(x) if is_objects(x) else x, out))


def is_objects(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == object


def pushed(f: Callable[[Any], Any], direction: Any) -> Any:
    return gt.jvp(f, (POINT,), (direction,))


def pulled(f: Callable[[Any], Any], direction: Any) -> Any:
    value, pull = gt.vjp(f, POINT)
    if value.dtype.kind == "c":
        raise TypeError("its Jacobian is not one of real numbers")
    rows = [pull(row.astype(value.dtype))[0] for row in np.eye(value.size)]
    return value, np.array(rows).reshape(value.size, POINT.size) @ direction


def compiled(f: Callable[[Any], Any], direction: Any) -> Any:
    return gt.jit(lambda p, d: gt.jvp(f, (p,), (d,)))(POINT, direction)


def mapped(f: Callable[[Any], Any], direction: Any) -> Any:
    stacked = np.stack([POINT, POINT])
    values, slope = gt.vmap(lambda p, d: gt.jvp(f, (p,), (d,)), (0, None))(stacked, direction)
    return values[1], slope[1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_a_function_of_numpy_is_right_or_raises(name: str, rng: np.random.Generator) -> None:
    if name in EXEMPT:
        pytest.skip(EXEMPT[name])
    direction = rng.normal(size=POINT.size)
    value = by_floats(name, POINT)
    for way in (pushed, pulled, compiled, mapped):
        try:
            got, slope = way(lambda p: by_objects(name, p), direction)
        except (*REFUSED, gt.GradtapeError):
            continue
        np.testing.assert_allclose(got, value, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(slope, slopes(name, direction), rtol=1e-5, atol=1e-6)


AWKWARD = {
    "nan": (1, np.nan),
    "infinity": (1, np.inf),
    "negative zero": (0, -0.0),
    "ties": (1, 0.25),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_awkward_numbers_give_the_values_of_floats_or_raise(name: str) -> None:
    if name in EXEMPT:
        pytest.skip(EXEMPT[name])
    for place, number in AWKWARD.values():
        point = POINT.copy()
        point[place] = number
        try:
            expected = by_floats(name, point)
        except Exception:
            continue
        try:
            got = gt.jvp(lambda p: by_objects(name, p), (point,), (np.ones(POINT.size),))[0]
        except (*REFUSED, gt.GradtapeError):
            continue
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


def test_nearly_all_functions_are_right() -> None:
    """That they may raise is no excuse to raise always."""
    right = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in CALLS:
            try:
                gt.jvp(lambda p, name=name: by_objects(name, p), (POINT,), (POINT,))
                right += 1
            except (*REFUSED, gt.GradtapeError):
                pass
    assert right > 0.6 * len(CALLS), f"{right} of {len(CALLS)}"


# ---- programs of users --------------------------------------------------------------------------


def rotated(x: Any) -> Any:
    c, s = np.cos(x[0]), np.sin(x[0])
    return np.array([[c, -s], [s, c]]) @ np.array([x[1], 2.0])


def pendulum(x: Any) -> Any:
    state = np.array([x[0], x[1]])
    for _ in range(20):
        slope = np.array([state[1], -9.81 * np.sin(state[0])])
        state = state + 0.01 * slope
    return state


def statistics(x: Any) -> Any:
    a = np.array([x[0], x[1], x[0] * x[1]])
    return np.array(
        [np.mean(a), a.std(), np.median(a), np.linalg.norm(a), np.max(a), np.nanmean(a)]
    )


def joined_by_index_tricks(x: Any) -> Any:
    diagonal = np.diag(np.array([x[0], x[1], 1.0]))[1]
    return np.cross(np.r_[x[0], 1.0, x[1]], np.array([1.0, x[0], x[1]])) + diagonal


PROGRAMS = (rotated, pendulum, statistics, joined_by_index_tricks)
X = np.array([0.3, 1.5])


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_are_differentiated_as_they_are(program: Callable[[Any], Any]) -> None:
    plain = [float(v) for v in X]
    np.testing.assert_allclose(gt.vjp(program, X)[0], program(plain), rtol=1e-14)
    h = 1e-6
    expected = np.stack(
        [(program(X + h * row) - program(X - h * row)) / (2 * h) for row in np.eye(2)], axis=-1
    )
    for jacobian in (gt.jacrev(program), gt.jacfwd(program)):
        np.testing.assert_allclose(jacobian(X), expected, rtol=1e-7, atol=1e-8)
    hessian = gt.hessian(lambda x: np.sum(gt.asarray(program(x)) ** 2))(X)
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("program", [rotated, pendulum, joined_by_index_tricks])
def test_programs_are_compiled_and_mapped(program: Callable[[Any], Any]) -> None:
    expected = gt.jacrev(program)(X)
    np.testing.assert_allclose(gt.jit(gt.jacfwd(program))(X), expected, rtol=1e-12)
    mapped = gt.vmap(gt.jacrev(program))(np.stack([X, X]))
    np.testing.assert_allclose(mapped[1], expected, rtol=1e-12)


def test_a_tape_keeps_the_history() -> None:
    with gt.GradientTape() as tape:
        x, y = tape.watch(2.0), tape.watch(3.0)
        out = gt.asarray(np.array([x * y, x]) * np.array([1.0, 10.0]))
        total = np.sum(out)
    assert [g.item() for g in tape.gradient(total, [x, y])] == [13.0, 2.0]


def test_an_array_of_numbers_as_a_target_of_a_tape() -> None:
    tape = gt.GradientTape(persistent=True)
    x = tape.watch(2.0)
    out = np.array([x * x, 3.0 * x])
    assert tape.gradient(np.sum(out), x).item() == 7.0
    assert tape.gradient(out, x).item() == 7.0


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"persistent": True},
        {"checkpoint": gt.CheckpointConfig(strategy=gt.CheckpointStrategy.Full)},
    ],
    ids=["once", "persistent", "checkpoint"],
)
def test_an_array_of_numbers_as_a_target_after_the_block(options: dict[str, Any]) -> None:
    def ask(question: Callable[[Any, Any, Any], Any]) -> Any:
        with gt.GradientTape(**options) as outer:
            outside = outer.watch(2.0)
            with gt.GradientTape(**options) as tape:
                x = tape.watch(outside)
                out = np.array([x, x * x * x])
            answer = question(tape, out, x)
            again = np.array([answer, answer])
        np.testing.assert_allclose(float(outer.gradient(again, outside).item()), 24.0)
        return answer

    assert ask(lambda tape, out, x: tape.gradient(out, x)).item() == 13.0
    assert ask(lambda tape, out, x: tape.gradient({"a": out}, [x])[0]).item() == 13.0
    assert ask(lambda tape, out, x: tape.jacobian(out, x)[1]).item() == 12.0
    with gt.GradientTape(**options) as tape:
        x = tape.watch(2.0)
        out = np.array([x, x * x])
    ct = np.array([1.0, 10.0])
    assert tape.gradient(out, x, output_gradients=ct).item() == 41.0


def test_results_of_a_context_are_refused() -> None:
    x = gt.tensor(2.0, requires_grad=True)
    for make in (lambda: np.array([x, x * x]), lambda: np.asarray(x), lambda: np.mean([x * x])):
        with pytest.raises(ConversionError, match=r"recorded by (a gradient )?context"):
            make()


def test_what_raises_as_before() -> None:
    def refuses(call: Callable[[Any], Any]) -> None:
        with pytest.raises(ConversionError):
            gt.grad(lambda x: (call(x), x * 1.0)[1])(2.0)

    refuses(lambda x: np.array([x], dtype=float))
    refuses(lambda x: np.array([x, 1.0]).astype(float))
    refuses(lambda x: np.zeros(2).__setitem__(0, x))
    refuses(lambda x: np.zeros(2).__setitem__(slice(None), np.array([x, x])))
    refuses(lambda x: math.sin(np.array([x])[0]))
    refuses(lambda x: float(np.array([x]).sum()))
    refuses(lambda x: np.asarray(np.ones(3) * x))
    refuses(lambda x: np.array([x + 1j]))
    refuses(lambda x: pickle.dumps(np.array([x])))
    refuses(lambda x: copy.deepcopy(np.array([x])))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.exp(np.array([x, 1.0])),
        lambda x: np.linalg.solve(np.array([[x, 0.0], [0.0, x]]), np.ones(2)),
        lambda x: np.linalg.inv(np.array([[x, 0.0], [0.0, x]])),
        lambda x: np.arctan2(1.0, np.array([x])),
        lambda x: np.angle(np.array([x])),
    ],
)
def test_what_numpy_cannot_do_with_objects_is_explained(call: Callable[[Any], Any]) -> None:
    ways = r"gt\.asarray\(\[\.\.\.\]\).*import gradtape\.numpy as np"
    with pytest.raises(ConversionError, match=ways):
        gt.grad(lambda x: np.sum(call(x)))(2.0)
    with pytest.raises((TypeError, AttributeError)) as caught, gt.GradientTape() as tape:
        call(tape.watch(2.0))
    assert "import gradtape.numpy as np" in caught.value.__notes__[0]


def test_numbers_in_arrays_do_not_change() -> None:
    def f(x: Any) -> Any:
        s = x * 1.0
        kept = np.array([s, s])
        s += 1.0
        with pytest.raises(WriteError, match="element of an array"):
            kept[0][...] = 5.0
        return kept[0] + 10.0 * s

    value, slope = gt.value_and_grad(f)(2.0)
    assert (value, slope) == (32.0, 11.0)


def test_views_are_refused() -> None:
    with pytest.raises(ConversionError, match="view of a tensor"):
        gt.grad(lambda x: np.sum(np.array([x.reshape(()), 1.0])))(np.array([2.0]))


def test_nan_is_not_ordered_and_objects_have_no_truth() -> None:
    with pytest.raises(ConversionError, match="NaN in an array"):
        gt.grad(lambda x: np.max(np.array([x * np.nan, x])))(2.0)
    with pytest.raises(ConversionError, match="truth"):
        gt.grad(lambda x: np.sum(np.logical_and(np.array([x]), np.array([x]))) * x)(2.0)


def test_arrays_of_numbers_as_arguments() -> None:
    def inner(v: Any) -> Any:
        return np.sum(v**3)

    def by(transformed: Callable[[Any], Any]) -> Any:
        return gt.grad(lambda x: np.sum(transformed(np.array([x, 2.0 * x]))))(2.0)

    assert by(gt.grad(inner)) == gt.grad(lambda x: 3 * x**2 + 3 * (2 * x) ** 2)(2.0)
    assert by(gt.jit(inner)) == gt.grad(lambda x: 9 * x**3)(2.0)
    assert by(gt.vmap(lambda v: v**2)) == 20.0
    assert by(lambda v: gt.jvp(inner, (v,), (v,))[1]) == gt.grad(lambda x: 27 * x**3)(2.0)
    assert by(gt.checkpoint(inner)) == gt.grad(lambda x: 9 * x**3)(2.0)
    assert by(lambda v: gt.vjp(inner, v)[1](v[0])[0]) == gt.grad(lambda x: 15 * x**3)(2.0)
    assert by(lambda v: gt.cond(True, lambda v: v * 2.0, lambda v: v, v)) == 6.0
    assert by(lambda v: gt.scan(lambda c, e: (c + e, c), 0.0, v)[0]) == 3.0


def test_loops_and_rules_of_users_give_arrays_of_numbers() -> None:
    def step(state: Any, _: Any) -> Any:
        return np.array([state[1], -state[0]]), np.array([state[0]])

    out = gt.grad(lambda x: np.sum(gt.scan(step, np.array([x, x * x]), None, length=3)[1]))(2.0)
    assert out == gt.grad(lambda x: x + x * x - x)(2.0)

    @gt.custom_vjp
    def pair(x: Any) -> Any:
        return np.array([x, 2.0 * x]) * 1.0

    pair.defvjp(lambda ct, out, x: (np.array([100.0 * ct[0] + ct[1]])[0],))
    assert gt.grad(lambda x: np.sum(pair(x)))(3.0) == 101.0


def test_leaked_arrays_are_refused() -> None:
    kept = []
    gt.grad(lambda x: (kept.append(np.array([x, x])), x)[1])(2.0)
    with pytest.raises(gt.GradtapeError):
        gt.sum(kept[0])


def test_numbers_without_history_are_plain() -> None:
    with gt.GradientTape() as tape:
        x = tape.watch(2.0)
        with gt.no_grad():
            assert np.array([x, x]).dtype == np.float64
    assert np.array([gt.ones(()), 2.0]).dtype == np.float64
    assert np.array([x, 1.0]).dtype == np.float64  # the block of the tape has ended


def test_the_numbers_are_tensors() -> None:
    def f(x: Any) -> Any:
        number = np.array([x, 1.0])[0]
        assert isinstance(number, TrackedNumber)
        assert isinstance(number, gt.Tensor)
        assert (number.dtype, number.shape) == (np.float64, ())
        assert isinstance(number * np.ones(2), gt.Tensor)
        assert math.floor(number).item() == 2.0
        return np.sin(number) + gt.sum([number, number])

    assert gt.grad(f)(2.0) == np.cos(2.0) + 2.0


def test_errors_inside_of_numpy_say_what_to_write() -> None:
    def covariance(x: Any) -> Any:
        return np.sum(np.cov(np.array([[x, 2.0], [1.0, x]])))

    with pytest.raises(ConversionError, match=r"attribute 'shape'.*gt\.asarray"):
        gt.grad(covariance)(2.0)
    with pytest.raises(AttributeError, match=r"^'float' object has no attribute 'shape'$"):
        gt.grad(lambda x: x * (1.0).shape)(2.0)  # type: ignore[attr-defined]
