"""`gradtape.scipy.integrate.solve_ivp` against SciPy's: the same function, and the same steps."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.sparse

import gradtape as gt
from gradtape.errors import UnsupportedError

solve_ivp = gt.scipy.integrate.solve_ivp
METHODS = ("RK23", "RK45", "DOP853", "Radau")
EXPLICIT = METHODS[:3]


def pendulum(t: Any, y: Any, friction: Any = 0.1, force: Any = 0.5) -> Any:
    return np.stack([y[1], -np.sin(y[0]) - friction * y[1] + force * np.cos(t)])


START = np.array([1.0, 0.5])


def with_attributes(function: Callable[..., Any], **attributes: Any) -> Callable[..., Any]:
    """A new function that has attributes, as SciPy reads them of events."""

    def event(*args: Any) -> Any:
        return function(*args)

    for name, value in attributes.items():
        setattr(event, name, value)
    return event


def assert_same(ours: Any, theirs: Any) -> None:
    """Two results are the same, to the last bit and in their types."""
    assert type(ours) is type(theirs)
    assert set(ours) == set(theirs)
    for key in theirs:
        assert type(ours[key]) is type(theirs[key]), key
        if key == "sol":
            if theirs.sol is not None:
                times = np.linspace(theirs.sol.t_min, theirs.sol.t_max, 7)
                np.testing.assert_array_equal(ours.sol(times), theirs.sol(times))
        elif isinstance(theirs[key], list):
            for one, other in zip(ours[key], theirs[key], strict=True):
                np.testing.assert_array_equal(one, other)
        elif isinstance(theirs[key], np.ndarray):
            np.testing.assert_array_equal(ours[key], theirs[key])
        else:
            assert ours[key] == theirs[key], key


# ---- without tensors ----------------------------------------------------------------------------


def test_the_signature_is_scipys_and_further_options_are_keywords() -> None:
    ours, theirs = (inspect.signature(f).parameters for f in (solve_ivp, scipy.integrate.solve_ivp))
    positional = [name for name, p in theirs.items() if p.kind is not p.VAR_KEYWORD]
    assert list(ours)[: len(positional)] == positional
    for name in positional:
        default = theirs[name].default
        assert ours[name].default is default or ours[name].default == default, name
    further = list(ours.values())[len(positional) :]
    assert all(p.kind is p.KEYWORD_ONLY for p in further)
    assert [p.name for p in further] == [
        "rtol", "atol", "first_step", "max_step", "jac", "jac_sparsity", "lband", "uband",
        "min_step", "gradient", "save",
    ]  # fmt: skip
    solver = inspect.signature(scipy.integrate.RK45).parameters
    for name in ("rtol", "atol", "first_step", "max_step"):
        assert ours[name].default == solver[name].default


PLAIN: dict[str, dict[str, Any]] = {
    "nothing": {},
    "times": {"t_eval": np.linspace(0, 5, 6)},
    "no times": {"t_eval": []},
    "dense": {"dense_output": True},
    "tuple": {"args": (0.2, 0.1)},
    "list": {"args": [0.2, 0.1]},
    "array": {"args": np.array([0.2, 0.1])},
    "steps": {"first_step": 0.01, "max_step": 0.3, "rtol": 1e-5, "atol": [1e-6, 1e-8]},
    "event": {"events": with_attributes(lambda t, y, *_: y[0], terminal=2, direction=-1)},
    "events": {"events": [lambda t, y, *_: y[0], with_attributes(lambda t, y, *_: t - 3.0)]},
}


@pytest.mark.parametrize("options", PLAIN)
@pytest.mark.parametrize("method", [*METHODS, "BDF", "LSODA"])
def test_without_tensors_it_is_scipys_function(method: str, options: str) -> None:
    ours, theirs = (
        module.solve_ivp(pendulum, (0, 5), [1, 0.5], method, **PLAIN[options])
        for module in (gt.scipy.integrate, scipy.integrate)
    )
    assert_same(ours, theirs)


def test_scipys_other_options_without_tensors() -> None:
    def fun(t: Any, y: Any) -> Any:
        return np.stack([y[1], -np.sin(y[0])])

    def jac(t: Any, y: Any) -> Any:
        return [[0.0, 1.0], [-np.cos(y[0]), 0.0]]

    for options in ({"jac": jac}, {"jac": np.eye(2)}, {"vectorized": True}):
        for method in ("Radau", "BDF"):
            pair = [
                module.solve_ivp(fun, (0, 3), START, method, **options)
                for module in (gt.scipy.integrate, scipy.integrate)
            ]
            assert_same(*pair)
    for span, y0 in (((3, 0), START), ((1, 1), START), ((0, 1), np.array([1.0 + 2.0j]))):
        pair = [
            module.solve_ivp(lambda t, y: -y, span, y0)
            for module in (gt.scipy.integrate, scipy.integrate)
        ]
        assert_same(*pair)


def test_a_number_as_args_is_one_argument() -> None:
    # SciPy asks for a tuple here.
    found = solve_ivp(lambda t, y, rate: -rate * y, (0, 1), [1.0], args=2.0, rtol=1e-8)
    np.testing.assert_allclose(found.y[0, -1], np.exp(-2), rtol=1e-5)
    found = solve_ivp(lambda t, y, rate: -rate * y, (0, 1), [1.0], args=gt.tensor(2.0), rtol=1e-8)
    np.testing.assert_allclose(found.y[0, -1], np.exp(-2), rtol=1e-5)


def test_failure_without_tensors_is_scipys() -> None:
    ours = solve_ivp(lambda t, y: y**2, (0, 2), [1.0])
    assert_same(ours, scipy.integrate.solve_ivp(lambda t, y: y**2, (0, 2), [1.0]))
    assert not ours.success


# ---- with tensors: SciPy's steps ----------------------------------------------------------------

TAKEN: dict[str, dict[str, Any]] = {
    "nothing": {},
    "small tolerances": {"rtol": 1e-6, "atol": 1e-8},
    "first_step": {"first_step": 0.1},
    "max_step": {"max_step": 0.2},
    "atol of components": {"atol": [1e-5, 1e-7]},
    "times": {"t_eval": [0.0, 0.3, 2.5, 4.0]},
    "first time": {"t_eval": [0.0]},
    "last time": {"t_eval": [4.0]},
}


def both(method: str, span: Any, fun: Any = pendulum, y0: Any = START, **options: Any) -> Any:
    """The results of gradtape with a tensor, and of SciPy."""
    theirs = scipy.integrate.solve_ivp(fun, span, y0, method, **options)
    return solve_ivp(fun, span, gt.tensor(y0), method, **options), theirs


@pytest.mark.parametrize("options", TAKEN)
@pytest.mark.parametrize("span", [(0.0, 4.0), (4.0, 0.0)])
@pytest.mark.parametrize("method", EXPLICIT)
def test_explicit_methods_take_scipys_steps(method: str, span: Any, options: str) -> None:
    given = dict(TAKEN[options])
    if "t_eval" in given and span[0] > span[1]:
        given["t_eval"] = given["t_eval"][::-1]
    ours, theirs = both(method, span, **given)
    assert set(ours) == set(theirs)
    assert isinstance(ours.y, gt.Tensor)
    if method == "RK23" and span[0] > span[1]:  # there its derivatives need a few steps more
        assert theirs.t.size <= ours.t.size <= 1.05 * theirs.t.size
        tolerance = 10 * given.get("rtol", 1e-3)
        np.testing.assert_allclose(ours.y[:, -1], theirs.y[:, -1], rtol=0, atol=tolerance)
    else:
        # Rounding errors of the error estimate grow with the steps.
        np.testing.assert_allclose(ours.t, theirs.t, atol=2e-6)
        np.testing.assert_allclose(ours.y, theirs.y, rtol=0, atol=2e-6)
    # One call in each step, and four at first, tell how fast errors change. DOP853 also computes
    # what it needs between the ends of a step along with every step.
    if given.get("t_eval", span)[-1] == span[1]:
        assert theirs.nfev + 4 < ours.nfev <= 1.5 * theirs.nfev + 4
    else:  # it ends after the last time that is asked for
        assert ours.nfev < theirs.nfev
    for key in ("nfev", "njev", "nlu", "status", "message", "success"):
        assert type(ours[key]) is type(theirs[key])
        assert key == "nfev" or ours[key] == theirs[key]


@pytest.mark.parametrize("span", [(0.0, 4.0), (4.0, 0.0)])
def test_radau_agrees_within_tolerances(span: Any) -> None:
    times = np.linspace(*span, 9)
    ours, theirs = both("Radau", span, t_eval=times, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(ours.t, times)
    np.testing.assert_allclose(ours.y, theirs.y, atol=5e-6)
    for key in ("nfev", "njev", "nlu"):
        assert type(ours[key]) is int
        assert ours[key] > 0
    exact = scipy.integrate.solve_ivp(pendulum, span, START, t_eval=times, rtol=1e-11, atol=1e-12)
    for count, rtol in enumerate((1e-4, 1e-7)):
        found, _ = both("Radau", span, t_eval=times, rtol=rtol, atol=rtol)
        assert np.abs(found.y.numpy() - exact.y).max() < (1e-3, 1e-6)[count]
    # Not many more steps than SciPy's, which keeps its Jacobian for several.
    ours, theirs = both("Radau", span, rtol=1e-6, atol=1e-8)
    assert abs(ours.t.shape[0] - theirs.t.shape[0]) < 0.3 * theirs.t.shape[0]


@pytest.mark.parametrize("method", METHODS)
def test_an_interval_of_length_zero(method: str) -> None:
    ours, theirs = both(method, (1.0, 1.0))
    np.testing.assert_array_equal(ours.t, theirs.t)
    np.testing.assert_array_equal(ours.y, theirs.y)
    dense = solve_ivp(pendulum, (1, 1), gt.tensor(START), method, dense_output=True).sol
    np.testing.assert_array_equal(dense(1.0), START)
    found = solve_ivp(pendulum, (1, 1), gt.tensor(START), method, t_eval=[1.0])
    np.testing.assert_array_equal(found.y, START[:, None])


@pytest.mark.parametrize("method", METHODS)
def test_one_component_and_numbers_in_place_of_vectors(method: str) -> None:
    # SciPy's Radau does not take numbers.
    theirs = scipy.integrate.solve_ivp(lambda t, y: -y, (0, 1), [2.0], method, t_eval=[0.5, 1.0])
    for fun in (lambda t, y: -y, lambda t, y: [-y[0]], lambda t, y: -y[0]):
        ours = solve_ivp(fun, (0, 1), gt.tensor([2.0]), method, t_eval=[0.5, 1.0])
        np.testing.assert_allclose(ours.y, theirs.y, rtol=1e-3 if method == "Radau" else 1e-13)


@pytest.mark.parametrize("method", EXPLICIT)
def test_complex_numbers(method: str) -> None:
    def fun(t: Any, y: Any) -> Any:
        return np.stack([1j * y[0], -y[1] + np.conj(y[0])])

    ours, theirs = both(method, (0, 3), fun, np.array([1.0 + 0.5j, -1j]), rtol=1e-5)
    np.testing.assert_allclose(ours.t, theirs.t, atol=1e-9)
    np.testing.assert_allclose(ours.y, theirs.y, atol=1e-9)
    np.testing.assert_allclose(ours.y[0, -1], np.exp(3j) * (1 + 0.5j), rtol=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_vectorized(method: str) -> None:
    shapes = []

    def fun(t: Any, y: Any) -> Any:
        shapes.append(y.shape)
        return np.stack([y[1], -y[0]])

    expected = solve_ivp(fun, (0, 2), gt.tensor(START), method)
    shapes.clear()
    for right in (fun, lambda t, y: [y[1], -y[0]]):
        found = solve_ivp(right, (0, 2), gt.tensor(START), method, vectorized=True)
        np.testing.assert_allclose(found.y, expected.y, rtol=1e-14)
    assert set(shapes) == {(2, 1)}


def test_what_may_be_given_in_lists() -> None:
    expected = solve_ivp(pendulum, (0, 2), gt.tensor(START)).y
    half, four = gt.tensor(0.5), gt.tensor(2.0)
    np.testing.assert_array_equal(solve_ivp(pendulum, (0, 2), [gt.tensor(1.0), half]).y, expected)
    np.testing.assert_array_equal(solve_ivp(pendulum, [0, 2], (1, half)).y, expected)
    np.testing.assert_array_equal(solve_ivp(pendulum, (0, four), [1, 0.5]).y, expected)
    np.testing.assert_array_equal(solve_ivp(pendulum, gt.tensor([0.0, 2.0]), [1, 0.5]).y, expected)
    as_list = solve_ivp(lambda t, y: list(pendulum(t, y)), (0, 2), gt.tensor(START)).y
    np.testing.assert_array_equal(as_list, expected)
    times = solve_ivp(pendulum, (0, 2), START, t_eval=[0, half, 2])
    np.testing.assert_array_equal(times.t, [0.0, 0.5, 2.0])
    assert isinstance(times.t, gt.Tensor)
    integers = solve_ivp(lambda t, y: -y, (0, 1), gt.tensor([1, 2]))
    np.testing.assert_array_equal(
        integers.y, solve_ivp(lambda t, y: -y, (0, 1), gt.tensor([1.0, 2.0])).y
    )


def test_no_times() -> None:
    for options in ({}, {"method": "Radau"}, {"gradient": "adjoint"}):
        found = solve_ivp(pendulum, (0, 2), gt.tensor(START), t_eval=[], **options)
        assert found.t.shape == (0,)
        assert found.y.shape == (2, 0)
        assert found.success


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("gradient", ["discrete", "adjoint"])
def test_nested_arguments(method: str, gradient: str) -> None:
    def fun(t: Any, y: Any, p: Any, extra: Any) -> Any:
        return -p["rates"][0] * y + p["rates"][1] * extra[0]

    p = {"rates": [gt.tensor(1.5), 2], "name": "unused"}
    found = solve_ivp(fun, (0, 1), [1.0], method, args=(p, (3.0,)), rtol=1e-7, gradient=gradient)
    # y′ = −1.5·y + 6
    np.testing.assert_allclose(found.y[0, -1], 4 - 3 * np.exp(-1.5), rtol=1e-5)


def test_tensors_that_only_a_function_or_an_event_uses() -> None:
    rate = gt.tensor(2.0)
    found = solve_ivp(lambda t, y: -rate * y, (0, 1), [1.0], rtol=1e-8)
    assert isinstance(found.y, gt.Tensor)
    np.testing.assert_allclose(found.y[0, -1], np.exp(-2.0), rtol=1e-5)
    level = lambda t, y: y[0] - rate / 4  # noqa: E731
    found = solve_ivp(lambda t, y: -y, (0, 1), [1.0], events=level, rtol=1e-6)
    np.testing.assert_allclose(found.t_events[0], [np.log(2.0)], rtol=1e-5)


@pytest.mark.parametrize("jac", ["function", "lists", "matrix", "none"])
def test_radau_with_a_jacobian(jac: str) -> None:
    matrix = np.array([[-3.0, 1.0], [0.5, -200.0]])
    asked = []

    def function(t: Any, y: Any, rate: Any) -> Any:
        asked.append(t)
        return matrix * rate

    def lists(t: Any, y: Any, rate: Any) -> Any:
        asked.append(t)
        return [[-3.0 * rate, rate], [0.5 * rate, -200.0 * rate]]

    given = {"function": function, "lists": lists, "matrix": matrix, "none": None}[jac]

    def end(rate: Any) -> Any:
        found = solve_ivp(
            lambda t, y, rate: rate * (matrix @ y), (0.0, 1.0), START, "Radau", args=(rate,),
            t_eval=[1.0], jac=given, rtol=1e-5, atol=1e-8,
        )  # fmt: skip
        return found.y[:, 0]

    expected = scipy.linalg.expm(matrix) @ START
    value, slope = gt.jvp(end, (1.0,), (1.0,))
    np.testing.assert_allclose(value, expected, rtol=1e-4)
    np.testing.assert_allclose(slope, matrix @ expected, rtol=1e-3)
    assert bool(asked) == (jac in ("function", "lists"))


# ---- what only SciPy has ------------------------------------------------------------------------

DIAGONAL = scipy.sparse.csr_array(np.diag([-1.0, -2.0]))


class OwnSolver(scipy.integrate.RK45):
    pass


ONLY_SCIPY: dict[str, dict[str, Any]] = {
    "bands": {"method": "LSODA", "lband": 0, "uband": 0},
    "min_step": {"method": "LSODA", "min_step": 1e-9},
    "sparsity": {"method": "BDF", "jac_sparsity": np.eye(2)},
    "sparse sparsity": {"method": "Radau", "jac_sparsity": DIAGONAL},
    "class": {"method": scipy.integrate.RK45},
    "stiff class": {"method": scipy.integrate.BDF},
    "own class": {"method": OwnSolver},
    "sparse jac": {"method": "Radau", "jac": DIAGONAL},
    "sparse jac function": {"method": "BDF", "jac": lambda t, y: DIAGONAL},
}


@pytest.mark.parametrize("case", ONLY_SCIPY)
def test_plain_calls_take_what_scipy_takes(case: str) -> None:
    def f(t: Any, y: Any) -> Any:
        return np.array([-1.0, -2.0]) * y

    options = ONLY_SCIPY[case]
    expected = scipy.integrate.solve_ivp(f, (0, 1), [1.0, 2.0], **options)
    found = solve_ivp(f, (0, 1), [1.0, 2.0], **options)
    np.testing.assert_array_equal(found.y, expected.y)


@pytest.mark.parametrize("method", ["RK45", "Radau", "BDF", "LSODA"])
def test_an_empty_system(method: str) -> None:
    expected = scipy.integrate.solve_ivp(lambda t, y: y, (0, 1), [], method=method)
    found = solve_ivp(lambda t, y: y, (0, 1), [], method=method)
    np.testing.assert_array_equal(found.t, expected.t)
    assert found.y.shape == expected.y.shape


@pytest.mark.parametrize("case", ["bands", "min_step", "sparsity", "stiff class", "own class"])
@pytest.mark.parametrize("way", [gt.grad, gt.jit])
def test_with_tensors_they_are_named(case: str, way: Any) -> None:
    options = ONLY_SCIPY[case]
    wrong = next(name for name in options if name != "method" or len(options) == 1)

    def end(rate: Any) -> Any:
        return solve_ivp(lambda t, y: -rate * y, (0, 1), [1.0], t_eval=[1.0], **options).y[0, 0]

    with pytest.raises(UnsupportedError, match=f"solve_ivp: got .*{wrong}="):
        way(end)(2.0)


@pytest.mark.parametrize("way", [lambda f: f, gt.jit])
def test_classes_of_scipy_and_sparse_jacobians_with_tensors(way: Any) -> None:
    def end(rate: Any, **options: Any) -> Any:
        def f(t: Any, y: Any) -> Any:
            return np.array([-1.0, -2.0]) * rate * y

        return solve_ivp(f, (0, 1), [1.0, 2.0], t_eval=[1.0], rtol=1e-8, **options).y[1, 0]

    for options in (
        {"method": scipy.integrate.RK45},
        {"method": scipy.integrate.Radau},
        {"method": "Radau", "jac": DIAGONAL},
        {"method": "Radau", "jac": lambda t, y: DIAGONAL},
    ):
        slope = way(gt.grad(lambda rate, options=options: end(rate, **options)))(1.0)
        np.testing.assert_allclose(slope, -4 * np.exp(-2.0), rtol=1e-5)
