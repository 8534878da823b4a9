"""Events of `solve_ivp`: where SciPy finds them, and how they depend on everything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate

import gradtape as gt
from builds import NATIVE
from gradtape.errors import ConvergenceError, IndexingError, LinAlgError, UnsupportedError

solve_ivp = gt.scipy.integrate.solve_ivp
TIGHT = {"rtol": 1e-9, "atol": 1e-11}


def with_attributes(function: Callable[..., Any], **attributes: Any) -> Callable[..., Any]:
    """A new function that has attributes, as SciPy reads them of events."""

    def event(*args: Any) -> Any:
        return function(*args)

    for name, value in attributes.items():
        setattr(event, name, value)
    return event


def oscillator(t: Any, y: Any) -> Any:
    return np.stack([y[1], -y[0]])


START = np.array([1.0, 0.5])


def first(t: Any, y: Any) -> Any:
    return y[0]


def second(t: Any, y: Any) -> Any:
    return y[1] + 0.2


EVENTS: dict[str, Any] = {
    "any": first,
    "rising": with_attributes(first, direction=1),
    "falling": with_attributes(first, direction=-1),
    "terminal": with_attributes(first, terminal=True),
    "after the second": with_attributes(first, terminal=2),
    "two": [first, with_attributes(second, terminal=3)],
    "one that never happens": [with_attributes(lambda t, y: y[0] + 5.0), first],
    "where it begins": with_attributes(lambda t, y: t),
    "stops where it begins": with_attributes(lambda t, y: t, terminal=True),
    "of time": lambda t, y: t * t - 9.0,
    "where it ends": lambda t, y: t * t - 100.0,
    "several in a step": [lambda t, y: y[0] - 0.01, first, lambda t, y: y[0] + 0.01],
}


@pytest.mark.parametrize("options", [{}, {"t_eval": np.linspace(0, 1, 9)}, {"dense_output": True}])
@pytest.mark.parametrize("span", [(0.0, 10.0), (0.0, -10.0)])
@pytest.mark.parametrize("events", EVENTS)
def test_events_are_where_scipy_finds_them(events: str, span: Any, options: dict[str, Any]) -> None:
    given = dict(options, events=EVENTS[events], rtol=1e-6)
    if "t_eval" in given:
        given["t_eval"] = given["t_eval"] * span[1]
    theirs = scipy.integrate.solve_ivp(oscillator, span, START, **given)
    ours = solve_ivp(oscillator, span, gt.tensor(START), **given)
    assert (ours.status, ours.message) == (theirs.status, theirs.message)
    np.testing.assert_allclose(ours.t, theirs.t, atol=1e-8)
    np.testing.assert_allclose(ours.y, theirs.y, atol=1e-8)
    for one, other in zip(ours.t_events, theirs.t_events, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-8)
    for one, other in zip(ours.y_events, theirs.y_events, strict=True):
        # SciPy's is of shape (0,) if there is none.
        np.testing.assert_allclose(one, other.reshape(-1, 2), atol=1e-8)
    if theirs.sol is not None:
        np.testing.assert_allclose(ours.sol.ts, theirs.sol.ts, atol=1e-8)
        times = np.linspace(theirs.sol.t_min, theirs.sol.t_max, 7)
        np.testing.assert_allclose(ours.sol(times), theirs.sol(times), atol=1e-8)
        np.testing.assert_allclose(
            [ours.sol.t_min, ours.sol.t_max], [theirs.sol.t_min, theirs.sol.t_max], atol=1e-8
        )


def test_events_of_radau() -> None:
    theirs, ours = (
        function(oscillator, (0, 10), y0, "Radau", events=[first, second], rtol=1e-8, atol=1e-10)
        for function, y0 in ((scipy.integrate.solve_ivp, START), (solve_ivp, gt.tensor(START)))
    )
    for key in ("t_events", "y_events"):
        for one, other in zip(ours[key], theirs[key], strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)


# ---- gradients ----------------------------------------------------------------------------------


def flight(t: Any, y: Any, gravity: Any) -> Any:
    """A stone that is thrown: height and speed."""
    return np.stack([y[1], 0 * y[1] - gravity])


def landed(ground: Any, **attributes: Any) -> Callable[..., Any]:
    return with_attributes(lambda t, y, *_: y[0] - ground, direction=-1, **attributes)


def exact_landing(y0: Any, gravity: Any, ground: Any, t0: Any) -> Any:
    """When and how fast: h + v·T − g·T²/2 = ground."""
    root = np.sqrt(y0[1] ** 2 + 2 * gravity * (y0[0] - ground))
    return np.stack([t0 + (y0[1] + root) / gravity, ground, -root])


POINT = np.array([2.0, 3.0]), 9.81, 0.25, 0.5


@pytest.mark.parametrize("method", ["RK23", "RK45", "DOP853", "Radau"])
def test_a_landing_and_its_derivatives(method: str) -> None:
    def landing(y0: Any, gravity: Any, ground: Any, t0: Any) -> Any:
        found = solve_ivp(
            flight, (t0, t0 + 5.0), y0, method, events=landed(ground, terminal=True),
            args=(gravity,),
        )  # fmt: skip
        assert found.status == 1
        return np.concatenate([found.t_events[0], found.y_events[0][0]])

    # The methods are exact for polynomials of second degree.
    np.testing.assert_allclose(landing(*POINT), exact_landing(*POINT), rtol=1e-9)
    everything = (0, 1, 2, 3)
    expected = gt.jacrev(exact_landing, everything)(*POINT)
    for mode in (gt.jacrev, gt.jacfwd):
        for one, other in zip(mode(landing, everything)(*POINT), expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-8)


@pytest.mark.parametrize("outer", [gt.jacrev, gt.jacfwd])
@pytest.mark.parametrize("inner", [gt.grad, gt.jacfwd])
def test_second_derivatives_of_an_event(outer: Any, inner: Any) -> None:
    def when(y0: Any) -> Any:
        stop = landed(0.0, terminal=True)
        return solve_ivp(flight, (0.0, 5.0), y0, events=stop, args=(9.81,)).t_events[0][0]

    y0 = POINT[0]
    expected = gt.hessian(lambda y0: exact_landing(y0, 9.81, 0.0, 0.0)[0])(y0)
    np.testing.assert_allclose(outer(inner(when))(y0), expected, rtol=1e-6)


def test_every_crossing_and_the_end_of_the_solution_have_gradients() -> None:
    # y = A·sin(ω·t + φ) with y0 = (A·sin φ, ω·A·cos φ): crossings at (n·π − φ)/ω
    def crossings(w: Any, phase: Any, terminal: Any) -> Any:
        y0 = np.stack([np.sin(phase), w * np.cos(phase)])
        stop = with_attributes(first, terminal=terminal)
        fun = lambda t, y: np.stack([y[1], -(w**2) * y[0]])  # noqa: E731
        return solve_ivp(fun, (0.0, 10.0), y0, "DOP853", events=stop, dense_output=True, **TIGHT)

    w, phase = 1.4, 0.6
    for terminal, count in ((False, 4), (2, 2)):
        times = (np.arange(1, count + 1) * np.pi - phase) / w
        found = crossings(gt.tensor(w), phase, terminal)
        np.testing.assert_allclose(found.t_events[0], times, rtol=1e-8)
        for mode in (gt.jacrev, gt.jacfwd):
            by_w, by_phase = mode(lambda *x: crossings(*x, terminal).t_events[0], (0, 1))(w, phase)  # noqa: B023
            np.testing.assert_allclose(by_w, -times / w, rtol=1e-7)
            np.testing.assert_allclose(by_phase, np.full(count, -1 / w), rtol=1e-7)
    # What a terminal event ends, ends with it: t and y of the last column, and the dense output.
    times = (2 * np.pi - phase) / w
    for entry in (lambda f: f.t[-1], lambda f: f.sol.ts[-1]):
        slope = gt.grad(lambda w: entry(crossings(w, phase, 2)))(w)  # noqa: B023
        np.testing.assert_allclose(slope, -times / w, rtol=1e-7)
    # y₂ = ω·cos(2·π) there, whatever the phase.
    end = gt.jacrev(lambda w, phase: crossings(w, phase, 2).y[:, -1], (0, 1))(w, phase)
    np.testing.assert_allclose(end, [[0.0, 1.0], [0.0, 0.0]], atol=1e-7)


def test_what_an_event_uses_from_outside() -> None:
    def when(ground: Any, scale: Any) -> Any:
        leave = with_attributes(
            lambda t, y, g: scale * (y[0] - ground), terminal=True, direction=-1
        )
        return solve_ivp(flight, (0, 5), [2.0, 3.0], events=leave, args=(9.81,)).t_events[0][0]

    expected = gt.grad(lambda h: exact_landing(POINT[0], 9.81, h, 0.0)[0])(0.25)
    for way in (when, gt.jit(when)):
        np.testing.assert_allclose(gt.grad(way, (0, 1))(0.25, 2.0), (expected, 0.0), atol=1e-9)
        np.testing.assert_allclose(gt.jvp(way, (0.25, 2.0), (1.0, 1.0))[1], expected, rtol=1e-8)
    leaf = gt.tensor(0.25, requires_grad=True)
    when(leaf, 2.0).backward()
    np.testing.assert_allclose(leaf.grad, expected, rtol=1e-8)


# ---- compiled and batched -----------------------------------------------------------------------


def landing(y0: Any, gravity: Any) -> Any:
    """When and where of the first of two events, and the height at times before and after."""
    stop = landed(0.0, terminal=True)
    top = with_attributes(lambda t, y, g: y[0] - 50.0, terminal=True)
    found = solve_ivp(
        flight, (0.0, 5.0), y0, events=[top, stop], args=(gravity,), t_eval=[0.5, 4.0]
    )
    return found.t_events[1][0], found.y_events[1][0], found.y[0, 0]


def test_terminal_events_compiled_and_batched() -> None:
    y0, gravity = POINT[0], 9.81
    expected = landing(y0, gt.tensor(gravity))
    by_rows = gt.jacrev(landing, (0, 1))
    slopes = by_rows(y0, gravity)
    for way in (gt.jit(landing), lambda *x: gt.jit(gt.vmap(landing, (0, None)))(x[0][None], x[1])):
        for one, other in zip(way(y0, gravity), expected, strict=True):
            np.testing.assert_allclose(np.squeeze(one), other, rtol=1e-12)
    compiled = gt.jit(by_rows)
    leaves = zip(*(gt.tree.flatten(x)[0] for x in (compiled(y0, gravity), slopes)), strict=True)
    for one, other in leaves:
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    assert compiled.explain(y0, gravity).eager == [] or not NATIVE
    several = np.array([[2.0, 3.0], [1.0, 0.5], [0.1, 8.0]])
    times, ys, _ = gt.vmap(landing, (0, None))(several, gravity)
    exact = np.stack([exact_landing(y, gravity, 0.0, 0.0) for y in several])
    np.testing.assert_allclose(times, exact[:, 0], rtol=1e-9)
    np.testing.assert_allclose(ys, exact[:, 1:], atol=1e-8)
    when = gt.vmap(gt.grad(lambda y0: landing(y0, gravity)[0]))(several)
    each = [gt.grad(lambda y0: exact_landing(y0, gravity, 0.0, 0.0)[0])(y) for y in several]
    np.testing.assert_allclose(when, each, rtol=1e-8)


def test_what_compiled_functions_return_after_an_event_and_of_other_events() -> None:
    def result(y0: Any) -> Any:
        events = [landed(height, terminal=True) for height in (50.0, 0.0)]
        found = solve_ivp(
            flight, (0.0, 5.0), y0, events=events, args=(9.81,), t_eval=[0.0, 0.5, 4.0]
        )
        return found.t_events, found.y_events, found.y

    (other, own), (other_y, own_y), y = gt.jit(result)(POINT[0])
    assert (other.shape, own.shape, other_y.shape, own_y.shape) == ((1,), (1,), (1, 2), (1, 2))
    assert np.isnan(other).all()
    assert np.isnan(other_y).all()
    assert np.isfinite(own).all()
    np.testing.assert_array_equal(np.isnan(y), [[False, False, True]] * 2)


def test_a_time_at_which_an_event_happens_is_still_reached() -> None:
    stop = with_attributes(lambda t, y: t - 1.0, terminal=True)

    def ys(y0: Any) -> Any:
        return solve_ivp(oscillator, (0.0, 2.0), y0, t_eval=[0.5, 1.0], events=stop).y

    expected = scipy.integrate.solve_ivp(oscillator, (0, 2), START, t_eval=[0.5, 1.0], events=stop)
    for way in (lambda y0: ys(gt.tensor(y0)), gt.jit(ys)):
        np.testing.assert_allclose(way(START), expected.y, rtol=1e-12)


def test_the_first_of_two_events_in_one_step() -> None:
    def times(y0: Any) -> Any:
        events = [landed(height, terminal=True) for height in (1.0, 1.001, 0.999)]
        options = {"first_step": 5.0, "rtol": 0.9, "atol": 10.0}
        found = solve_ivp(flight, (0, 5), y0, events=events, args=(9.81,), **options)
        return [t[0] if t.shape[0] else np.nan for t in found.t_events]

    expected = exact_landing(POINT[0], 9.81, 1.001, 0.0)[0]
    for way in (times, gt.jit(times)):
        found = way(gt.tensor(POINT[0]) if way is times else POINT[0])
        np.testing.assert_allclose([float(t) for t in found], [np.nan, expected, np.nan], rtol=1e-9)


# ---- what is refused ----------------------------------------------------------------------------


def test_an_event_that_never_happens() -> None:
    def when(y0: Any) -> Any:
        event = with_attributes(lambda t, y: y[0] + 5.0, terminal=True)
        return solve_ivp(oscillator, (0.0, 2.0), y0, events=event)

    found = when(gt.tensor(START))
    assert found.t_events[0].size == 0
    assert found.y_events[0].shape == (0, 2)
    assert found.status == 0
    for read in (lambda f: f.t_events[0][0], lambda f: f.y_events[0][-1]):
        with pytest.raises(
            IndexingError, match="event 0 did not happen between t = 0 and 2; check"
        ):
            read(found)
        with pytest.raises(IndexingError, match="event 0 did not happen"):
            gt.grad(lambda y0: read(when(y0)).sum())(START)  # noqa: B023
        with pytest.raises(ConvergenceError, match=r"solve_ivp: no event happened before the end"):
            gt.jit(lambda y0: read(when(y0)))(START)  # noqa: B023


@pytest.mark.parametrize("power", [2, 3])
@pytest.mark.parametrize("way", [lambda f: f, gt.jit])
def test_an_event_that_the_solution_only_touches(way: Any, power: int) -> None:
    # y = t; the event is as flat as t² where it passes through 0.
    def when(level: Any) -> Any:
        def event(t: Any, y: Any) -> Any:
            return np.abs(y[0] - 1.1) ** power * np.sign(y[0] - 1.1) - level

        stop = with_attributes(event, terminal=True)
        return solve_ivp(lambda t, y: 1.0 + 0 * y, (0, 2), [0.0], events=stop).t_events[0][0]

    np.testing.assert_allclose(when(gt.tensor(0.0)), 1.1, atol=1e-5)
    with pytest.raises(LinAlgError, match="slope along the solution is 0"):
        way(gt.grad(when))(0.0)
    # y = 1.1 + level^(1/power)
    slope = 0.125 ** (1 / power - 1) / power
    np.testing.assert_allclose(way(gt.grad(when))(0.125), slope, rtol=1e-8)


@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_units_of_events_do_not_matter(unit: float) -> None:
    def when(start: Any) -> Any:
        event = lambda t, y: (y[0] - 0.5) * unit  # noqa: E731
        fun = lambda t, y: -y / unit  # noqa: E731
        return solve_ivp(fun, (0, unit), np.stack([start]), events=event, **TIGHT).t_events[0][0]

    # log(start/0.5)
    np.testing.assert_allclose(when(gt.tensor(1.0)), unit * np.log(2), rtol=1e-8)
    np.testing.assert_allclose(gt.grad(when)(1.0), unit, rtol=1e-7)


def test_an_event_may_return_an_array_of_one_number() -> None:
    found = solve_ivp(oscillator, (0, 10), gt.tensor(START), events=lambda t, y: y[:1])
    expected = solve_ivp(oscillator, (0, 10), gt.tensor(START), events=first)
    np.testing.assert_array_equal(found.t_events[0], expected.t_events[0])


def test_events_that_compiled_functions_do_not_take() -> None:
    for terminal in (False, 2):
        event = with_attributes(first, terminal=terminal)
        for way in (gt.jit, gt.vmap):
            with pytest.raises(UnsupportedError, match=r"set event.terminal = True"):
                way(lambda y: solve_ivp(oscillator, (0, 9), y, events=event).t_events[0])(  # noqa: B023
                    START if way is gt.jit else START[None]
                )
