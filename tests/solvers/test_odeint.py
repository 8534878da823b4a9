"""`odeint` against SciPy's, and its derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate

import gradtape as gt
from gradtape.errors import ArgumentError, ShapeError, UnsupportedError
from gradtape.testing import check_grads

odeint = gt.scipy.integrate.odeint
TIMES = np.linspace(0.0, 4.0, 9)
START = np.array([1.0, 0.3])


def pendulum(y: Any, _t: Any, friction: Any, pull: Any) -> Any:
    return [y[1], -friction * y[1] - pull * np.sin(y[0])]


def solution(y0: Any, t: Any, friction: Any, pull: Any, **options: Any) -> Any:
    return odeint(pendulum, y0, t, args=(friction, pull), **options)


def test_plain_arguments_are_scipys() -> None:
    wanted = scipy.integrate.odeint(pendulum, START, TIMES, args=(0.25, 5.0))
    np.testing.assert_array_equal(solution(START, TIMES, 0.25, 5.0), wanted)
    found = odeint(lambda y, t: -y, 1.0, [0, 1], full_output=1)
    assert found[1]["message"] == "Integration successful."


def test_values_are_scipys() -> None:
    wanted = scipy.integrate.odeint(pendulum, START, TIMES, args=(0.25, 5.0))
    found = solution(gt.tensor(START), TIMES, 0.25, 5.0)
    assert isinstance(found, gt.Tensor)
    np.testing.assert_allclose(found, wanted, atol=5e-7)


def test_derivatives() -> None:
    def end(y0: Any, friction: Any, pull: Any) -> Any:
        return solution(gt.asarray(y0), TIMES[:5], friction, pull)[-1]

    check_grads(end, (START, 0.25, 5.0), order=1, rtol=1e-4, atol=1e-4)

    def slope(pull: Any) -> Any:
        return gt.grad(lambda pull: end(START, 0.25, pull)[0])(pull)

    step = 1e-4
    wanted = (slope(5.0 + step) - slope(5.0 - step)) / (2 * step)
    np.testing.assert_allclose(gt.grad(slope)(5.0), wanted, rtol=1e-4)


def test_derivatives_in_times() -> None:
    def values(t: Any) -> Any:
        return solution(gt.tensor(START), t, 0.25, 5.0)

    check_grads(values, (TIMES[:3],), order=1, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("way", [{"method": "Radau"}, {"gradient": "adjoint"}, {"rtol": 1e-10}])
def test_ways(way: Any) -> None:
    def end(rate: Any) -> Any:
        return odeint(lambda y, t, rate: -rate * y, 1.0, [0.0, 1.0], (rate,), **way)[1, 0]

    np.testing.assert_allclose(gt.grad(end)(0.5), -np.exp(-0.5), rtol=1e-6)


def test_tensors_from_outside() -> None:
    def end(stiffness: Any) -> Any:
        return odeint(lambda y, t: np.array([y[1], -stiffness * y[0]]), [1.0, 0.0], TIMES)[-1, 0]

    root = np.sqrt(2.0)
    np.testing.assert_allclose(gt.grad(end)(2.0), -2.0 * np.sin(4.0 * root) / root, rtol=1e-6)
    np.testing.assert_allclose(gt.jit(end)(2.0), np.cos(4.0 * root), rtol=1e-6)
    found = gt.vmap(end)(np.array([1.0, 2.0]))
    np.testing.assert_allclose(found, np.cos(4.0 * np.sqrt([1.0, 2.0])), rtol=1e-6)
    tensor = gt.tensor(2.0, requires_grad=True)
    odeint(lambda y, t: [y[1], -tensor * y[0]], [1.0, 0.0], TIMES)[-1, 0].backward()
    np.testing.assert_allclose(tensor.grad, -2.0 * np.sin(4.0 * root) / root, rtol=1e-6)


def test_equal_and_falling_times() -> None:
    def values(rate: Any, times: Any) -> Any:
        return odeint(lambda t, y, rate: -rate * y, 1.0, times, (rate,), tfirst=True)

    for times in ([0, 1, 1, 2.0], [0.0, -1.0, -2.0], [1.0, 1.0, 1.0], [3.0]):
        found = values(gt.tensor(0.5), times)
        np.testing.assert_allclose(found, values(0.5, times), atol=1e-7)
    found = gt.grad(lambda rate: values(rate, [0, 1, 1, 2.0])[2, 0])(0.5)
    np.testing.assert_allclose(found, -np.exp(-0.5), rtol=1e-7)


def test_wrong_arguments() -> None:
    y0 = gt.tensor(START)
    with pytest.raises(ArgumentError, match="times in t in no order"):
        solution(y0, [0.0, 2.0, 1.0], 0.25, 5.0)
    for option in ({"full_output": 1}, {"tcrit": [1.0]}, {"hmin": 0.1}):
        with pytest.raises(UnsupportedError, match=f"{next(iter(option))}="):
            solution(y0, TIMES, 0.25, 5.0, **option)
    with pytest.raises(ShapeError, match=r"array of shape \(\) from the function"):
        odeint(lambda y, t: y[0], y0, TIMES)
    with pytest.raises(ShapeError, match="y0 of shape"):
        solution(gt.ones((2, 2)), TIMES, 0.25, 5.0)
    with pytest.raises(ArgumentError, match="complex y0"):
        solution(y0 * 1j, TIMES, 0.25, 5.0)


def test_errors_of_users_stay_theirs() -> None:
    def broken(y: Any, _t: Any) -> Any:
        raise KeyError("mine")

    for y0 in (START, gt.tensor(START)):
        with pytest.raises(KeyError, match="mine"):
            odeint(broken, y0, TIMES)
