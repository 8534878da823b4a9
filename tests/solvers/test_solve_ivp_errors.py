"""What `solve_ivp` refuses: errors that say what is wrong, after which everything is as it was."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import (
    ArgumentError,
    ConvergenceError,
    DTypeError,
    ShapeError,
    UnknownSizeError,
    UnsupportedError,
)

solve_ivp = gt.scipy.integrate.solve_ivp
START = np.array([1.0, 0.5])


def oscillator(t: Any, y: Any) -> Any:
    return np.stack([y[1], -y[0]])


def with_terminal(value: Any) -> Callable[..., Any]:
    def event(t: Any, y: Any) -> Any:
        return y[0]

    event.terminal = value  # type: ignore[attr-defined]
    return event


TENSOR = gt.tensor(0.1)
# Arguments in place of good ones; the class of the error; a part of its message.
BAD: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "method": ({"method": "Euler"}, ArgumentError, "method='Euler', expected 'RK23', 'RK45'"),
    "BDF": ({"method": "BDF"}, UnsupportedError, "use 'Radau' for stiff equations"),
    "LSODA": ({"method": "LSODA"}, UnsupportedError, "got a tensor with method='LSODA'"),
    "gradient": ({"gradient": "exact"}, ArgumentError, "expected 'discrete' or 'adjoint'"),
    "fun": ({"fun": 3}, ArgumentError, "got an int, expected a function"),
    "fun of fewer": ({"fun": lambda t, y: y[:1]}, ShapeError, "shape (1,) from the right-hand"),
    "fun of a number": ({"fun": lambda t, y: 1.0}, ShapeError, "shape () from the right-hand"),
    "fun of a matrix": ({"fun": lambda t, y: [y, y]}, ShapeError, "shape (2, 2) from the right"),
    "fun is complex": ({"fun": lambda t, y: 1j * y}, DTypeError, "begin with a complex y0"),
    "fun of nothing": ({"fun": lambda t, y: None}, DTypeError, "got None"),
    "a span of one": ({"t_span": (0,)}, ArgumentError, "1 numbers in t_span, expected two times"),
    "a span of three": ({"t_span": (0, 1, 2)}, ArgumentError, "got 3 numbers in t_span"),
    "a number as span": ({"t_span": 1.0}, ShapeError, "t_span of shape ()"),
    "a tensor as span": ({"t_span": TENSOR}, ShapeError, "t_span of shape ()"),
    "an infinite span": ({"t_span": (0, np.inf)}, ArgumentError, "expected finite times"),
    "a complex span": ({"t_span": (0, 1j)}, ArgumentError, "expected two times"),
    "y0 of a number": ({"y0": gt.tensor(1.0)}, ShapeError, "y0 of shape (), expected a vector"),
    "y0 of a matrix": ({"y0": gt.tensor([[1.0]])}, ShapeError, "y0 of shape (1, 1)"),
    "y0 of nothing": ({"y0": gt.tensor(np.zeros(0))}, ShapeError, "y0 of shape (0,)"),
    "y0 of text": ({"y0": "one"}, DTypeError, "got a str"),
    "times outside": ({"t_eval": [0, 3]}, ArgumentError, "t_eval that are out of order or outside"),
    "times before": ({"t_eval": [-1, 1]}, ArgumentError, "t_eval that are out of order or outside"),
    "times in disorder": ({"t_eval": [1, 0.5]}, ArgumentError, "t_eval that are out of order"),
    "times twice": ({"t_eval": [1, 1]}, ArgumentError, "each to come after the one before"),
    "times not numbers": ({"t_eval": [np.nan]}, ArgumentError, "t_eval that are out of order"),
    "complex times": ({"t_eval": [1j]}, DTypeError, "t_eval of complex128, expected real"),
    "one time": ({"t_eval": 1.0}, ShapeError, "t_eval of shape (), expected one axis"),
    "a matrix of times": ({"t_eval": [[1.0]]}, ShapeError, "t_eval of shape (1, 1)"),
    "negative atol": ({"atol": -1.0}, ArgumentError, "atol=-1.0, expected no negative"),
    "atol of three": ({"atol": [1, 2, 3]}, ShapeError, "atol of shape (3,), expected a number"),
    "negative rtol": ({"rtol": -1.0}, ArgumentError, "rtol=-1.0, expected a positive number"),
    "no first step": ({"first_step": 0.0}, ArgumentError, "first_step=0.0, expected a positive"),
    "no longest step": ({"max_step": -1.0}, ArgumentError, "max_step=-1.0, expected a positive"),
    "tensor rtol": ({"rtol": TENSOR}, ArgumentError, "a tensor as a tolerance"),
    "tensor atol": ({"atol": TENSOR}, ArgumentError, "a tensor as a tolerance"),
    "tensor step": ({"first_step": TENSOR}, ArgumentError, "a tensor as first_step"),
    "tensor max_step": ({"max_step": TENSOR}, ArgumentError, "a tensor as max_step"),
    "save": ({"save": 0}, ArgumentError, "save=0, expected 'all', 'sqrt', or the number"),
    "save without times": ({"save": 3}, ArgumentError, "save=3, expected it with t_eval"),
    "save and dense": (
        {"save": "sqrt", "t_eval": [1.0], "dense_output": True}, ArgumentError, "keep every step",
    ),
    "event": ({"events": 3}, ArgumentError, "got an int, expected a function"),
    "event of a vector": ({"events": lambda t, y: y}, ShapeError, "shape (2,) from an event"),
    "negative terminal": ({"events": with_terminal(-1)}, ArgumentError, "terminal=-1, expected"),
    "half terminal": ({"events": with_terminal(0.5)}, ArgumentError, "terminal=0.5, expected"),
    "terminal text": ({"events": with_terminal("yes")}, ArgumentError, "terminal='yes', expected"),
    "jac": ({"method": "Radau", "jac": np.eye(3)}, ShapeError, "jac of shape (3, 3), expected (2"),
    "jac function": (
        {"method": "Radau", "jac": lambda t, y: y}, ShapeError, "jac of shape (2,), expected (2",
    ),
    "complex Radau": (
        {"method": "Radau", "y0": gt.tensor([1j, 0])}, UnsupportedError, "y0 = [y.real, y.imag]",
    ),
    "complex adjoint": (
        {"gradient": "adjoint", "y0": gt.tensor([1j, 0])}, UnsupportedError, "y0 = [y.real, y.imag",
    ),
    "adjoint events": (
        {"gradient": "adjoint", "events": lambda t, y: y[0]}, UnsupportedError, "leave out events",
    ),
    "adjoint dense": (
        {"gradient": "adjoint", "dense_output": True}, UnsupportedError, "leave out events, dense",
    ),
    "adjoint save": ({"gradient": "adjoint", "save": 3}, UnsupportedError, "dense_output and save"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments(case: str) -> None:
    changed, error, message = BAD[case]
    arguments = {"fun": oscillator, "t_span": (0, 2), "y0": gt.tensor(START)} | changed
    leaf = gt.tensor(START, requires_grad=True)
    with gt.GradientTape() as tape:
        watched = tape.watch(2.0)
        with pytest.raises(error, match=re.escape(message)):
            solve_ivp(**arguments)
        total = watched * watched
    # The tape goes on, and the next solution is what it would have been.
    assert tape.gradient(total, watched) == 4.0
    found = solve_ivp(oscillator, (0, 2), leaf, t_eval=[2.0], rtol=1e-6)
    gt.sum(found.y).backward()
    expected = [np.cos(2) - np.sin(2), np.sin(2) + np.cos(2)]
    np.testing.assert_allclose(leaf.grad, expected, rtol=1e-4)


@pytest.mark.parametrize("way", [gt.jit, gt.vmap])
@pytest.mark.parametrize("case", ["fun of fewer", "fun is complex", "y0 of a matrix", "jac"])
def test_bad_arguments_of_compiled_and_batched_functions(way: Any, case: str) -> None:
    changed, error, message = BAD[case]
    arguments = {"fun": oscillator, "t_span": (0, 2), "t_eval": [1.0]} | changed
    begin = arguments.pop("y0", START)
    if isinstance(begin, gt.Tensor):
        begin = begin.numpy()
    with pytest.raises(error, match=re.escape(message)):
        way(lambda y0: solve_ivp(y0=y0, **arguments).y)(begin if way is gt.jit else begin[None])


# ---- sizes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("gradient", ["discrete", "adjoint"])
@pytest.mark.parametrize("method", ["RK45", "Radau"])
def test_the_number_of_steps_is_not_known(method: str, gradient: str) -> None:
    def all_steps(y0: Any) -> Any:
        return solve_ivp(oscillator, (0, 2), y0, method, gradient=gradient).y

    for way, y0 in (
        (gt.jit, START),
        (gt.vmap, START[None]),
        (lambda f: gt.jit(gt.vmap(f)), START[None]),
    ):
        with pytest.raises(
            UnknownSizeError, match="got no t_eval in a compiled or batched function"
        ):
            way(all_steps)(y0)


def test_dense_output_of_compiled_and_batched_functions() -> None:
    def dense(y0: Any) -> Any:
        return solve_ivp(oscillator, (0, 2), y0, t_eval=[1.0], dense_output=True).sol(1.0)

    for way, y0 in ((gt.jit, START), (gt.vmap, START[None])):
        with pytest.raises(
            UnsupportedError, match="dense_output needs to know the number of steps"
        ):
            way(dense)(y0)


def test_times_that_are_only_known_in_compiled_functions() -> None:
    def at(times: Any, y0: Any) -> Any:
        return solve_ivp(oscillator, (0.0, 2.0), y0, t_eval=times).y

    compiled = gt.jit(at)
    assert compiled(np.array([0.5, 1.0]), START).shape == (2, 2)
    for times in ([0.5, 3.0], [1.0, 0.5], [1.0, 1.0], [0.5, np.nan]):
        with pytest.raises(
            ArgumentError, match="got times in t_eval that are out of order or outsi"
        ):
            compiled(np.array(times), START)
    with pytest.raises(ArgumentError, match="got times in t_eval that are out of order or outside"):
        gt.vmap(at, in_axes=(0, None))(np.array([[0.5, 1.0], [1.0, 0.5]]), START)


# ---- solutions that end -------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["RK23", "RK45", "DOP853", "Radau"])
def test_a_solution_that_grows_beyond_all_bounds(method: str) -> None:
    # y = 1/(1/y0 − t)
    def end(y0: Any, last: float, **options: Any) -> Any:
        return solve_ivp(lambda t, y: y**2, (0, last), y0, method, t_eval=[last], **options).y[0, 0]

    assert not solve_ivp(lambda t, y: y**2, (0, 2), [1.0], method).success
    message = "solve_ivp: no step is short enough for the error that is allowed"
    ways = [lambda f: f, gt.grad, gt.jit] if method == "RK45" else [lambda f: f]
    for way in ways:
        with pytest.raises(ConvergenceError, match=message):
            way(lambda y0: end(y0 + gt.tensor(0.0), 2.0))(np.ones(1))
    if method == "RK45":
        with pytest.raises(ConvergenceError, match=message):
            end(gt.tensor(np.ones(1)), 2.0, gradient="adjoint")
        with pytest.raises(ConvergenceError, match=message):
            gt.vmap(lambda y0: end(y0, 2.0))(np.array([[0.1], [1.0]]))
    np.testing.assert_allclose(gt.grad(lambda y: end(y, 0.5))(np.ones(1)), [4.0], rtol=0.05)


@pytest.mark.parametrize("method", ["RK45", "DOP853", "Radau"])
def test_a_right_hand_side_that_is_not_a_number(method: str) -> None:
    for fun in (lambda t, y: y * np.nan, lambda t, y: np.sqrt(0.5 - t) * y):
        with (
            np.errstate(invalid="ignore"),
            pytest.raises(ConvergenceError, match="no step is short"),
        ):
            solve_ivp(fun, (0, 2), gt.tensor(START), method)


def test_errors_of_the_right_hand_side_are_the_users() -> None:
    def broken(t: Any, y: Any) -> Any:
        raise KeyError("mine")

    for method in ("RK45", "Radau"):
        for y0 in (START, gt.tensor(START)):
            with pytest.raises(KeyError, match="mine"):
                solve_ivp(broken, (0, 1), y0, method)
        with pytest.raises(KeyError, match="mine"):
            gt.jit(lambda y0: solve_ivp(broken, (0, 1), y0, method, t_eval=[1.0]).y)(START)  # noqa: B023


@pytest.mark.parametrize(("out", "said"), [(None, "got None"), (np.array([None]), "got object")])
def test_a_right_hand_side_that_returns_no_numbers(out: Any, said: str) -> None:
    with pytest.raises(DTypeError, match=f"solve_ivp: {said} from the right-hand side"):
        solve_ivp(lambda t, y: out, (0, 1), gt.tensor([1.0]))


# ---- the same in every way ----------------------------------------------------------------------

WAYS: dict[str, Callable[[Callable[[Any], Any]], Callable[[Any], Any]]] = {
    "plain": lambda f: f,
    "grad": gt.grad,
    "compiled": gt.jit,
    "batched": lambda f: lambda a: gt.vmap(f)(np.array([a, a])),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("t_eval", [[0.5, 0.2], [0.5, 2.0], [-1.0, 0.5], [0.5, 0.5], [np.nan]])
def test_times_that_are_out_of_order(t_eval: Any, way: str) -> None:
    def captured(rate: Any) -> Any:
        return solve_ivp(lambda t, y: -rate * y, (0, 1), [1.0], t_eval=t_eval).y[0, 0]

    def ending(end: Any) -> Any:
        return solve_ivp(lambda t, y: -y, (0, end), [1.0], t_eval=t_eval).y[0, 0]

    for function in (captured, ending):
        with pytest.raises(ArgumentError, match="solve_ivp: got times in t_eval that are out of"):
            WAYS[way](function)(1.0)


@pytest.mark.parametrize("way", WAYS)
def test_a_first_step_that_is_too_long(way: str) -> None:
    def captured(rate: Any, first_step: float = 2.0) -> Any:
        options: Any = {"t_eval": [0.5], "first_step": first_step}
        return solve_ivp(lambda t, y: -rate * y, (1, 0), [1.0], **options).y[0, 0]

    def ending(end: Any, first_step: float = 2.0) -> Any:
        options: Any = {"t_eval": [0.5], "first_step": first_step}
        return solve_ivp(lambda t, y: -y, (0, end), [1.0], **options).y[0, 0]

    for function in (captured, ending):
        with pytest.raises(ArgumentError, match=r"solve_ivp: got first_step=2.*length of t_span"):
            WAYS[way](function)(1.0)
        assert np.isfinite(WAYS[way](lambda x, f=function: f(x, 1.0))(1.0)).all()


@pytest.mark.parametrize("way", WAYS)
def test_what_comes_after_the_last_time(way: str) -> None:
    def early(rate: Any) -> Any:
        # 1/(1 − rate·t), which ends at 1.
        return solve_ivp(lambda t, y: rate * y**2, (0, 2), [1.0], t_eval=[0.5], rtol=1e-8).y[0, 0]

    np.testing.assert_allclose(WAYS[way](early)(1.0), 2.0, rtol=1e-5)
