"""Signatures of SciPy's functions, and when functions that SciPy calls are compiled."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import scipy.cluster
import scipy.optimize

import gradtape as gt
import our_scipy
from builds import SCIPY
from gradtape.solvers.optimize import evaluator
from gradtape.solvers.optimize.evaluator import Evaluator, evaluated

NAMES = our_scipy.optimize.__all__


@pytest.mark.parametrize("name", NAMES)
def test_signature_is_scipys(name: str) -> None:
    ours = inspect.signature(getattr(gt.scipy.optimize, name)).parameters
    theirs = inspect.signature(getattr(scipy.optimize, name)).parameters
    newest = SCIPY >= (1, 17)
    # Older versions lack parameters, and have other defaults for a few.
    assert [n for n in ours if n in theirs] == list(theirs)
    if newest:
        assert list(ours) == list(theirs)
    for key, theirs_ in theirs.items():
        assert ours[key].kind is theirs_.kind
        if newest:
            assert ours[key].default == theirs_.default


def test_namespaces() -> None:
    assert gt.scipy.__name__ == "gradtape.scipy"
    assert "optimize" in dir(gt.scipy)
    assert gt.scipy.cluster is scipy.cluster
    with pytest.raises(AttributeError, match="has no attribute 'statistics'"):
        _ = gt.scipy.statistics


# ---- compiling ----------------------------------------------------------------------------------


def square(x: Any) -> Any:
    return np.sum(x * x)


def test_a_function_is_compiled_after_many_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluator, "_MANY", 3)
    calls = [0]

    def counted(x: Any) -> Any:
        calls[0] += 1
        return square(x)

    called = Evaluator("test", gt.value_and_grad(counted))
    for n in range(6):
        value, slope = called(np.full(2, float(n)))
        assert value == 2.0 * n * n
        np.testing.assert_array_equal(slope, np.full(2, 2.0 * n))
    assert calls[0] == 4  # three times, and once to be traced
    assert called.holds()


def test_a_function_that_looks_at_values_is_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluator, "_MANY", 2)
    called = Evaluator("test", gt.grad(lambda x: x * x if x > 0 else 0.0 * x))
    assert [called(x) for x in (1.0, -1.0, 2.0, -2.0)] == [2.0, 0.0, 4.0, 0.0]


def test_a_function_that_changes_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluator, "_MANY", 2)
    state = {"scale": 1.0}

    def solve(make: Any) -> Any:
        state["scale"] = 1.0
        called = make(lambda x: state["scale"] * square(x))
        found = [called(np.ones(2)) for _ in range(3)]
        state["scale"] = 2.0  # as a callback may do
        return [*found, called(np.ones(2))]

    assert evaluated("test", solve) == [2.0, 2.0, 2.0, 4.0]


def test_random_numbers_are_not_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluator, "_MANY", 2)
    generator = np.random.default_rng(0)
    called = Evaluator("test", lambda x: square(x) + generator.normal())
    assert len({float(called(np.ones(2))) for _ in range(5)}) == 5


def test_a_long_minimization_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [0]

    def rosenbrock(x: Any, a: Any) -> Any:
        calls[0] += 1
        return np.sum(a * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    start = np.linspace(-1.5, 1.5, 8)
    eager = gt.scipy.optimize.minimize(rosenbrock, start, (100.0,), tol=1e-10)
    assert eager.nfev < 100
    assert calls[0] == eager.nfev
    monkeypatch.setattr(evaluator, "_MANY", 10)
    calls[0] = 0
    compiled = gt.scipy.optimize.minimize(rosenbrock, start, (100.0,), tol=1e-10)
    # Ten times, once to be traced, once at the end; all that lies between is compiled.
    assert calls[0] <= 13
    np.testing.assert_allclose(compiled.x, eager.x, rtol=1e-6)
