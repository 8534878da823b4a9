"""Functions of gradtape that errors name in place of SciPy's give what SciPy's do."""

from __future__ import annotations

import importlib
import re
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.advice.foreign_names import SCIPY
from gradtape.advice.scipy_counterparts import counterpart
from gradtape.dropin.held_tensors import any_tensor
from gradtape.errors import ConversionError
from scipy_calls import CALLS
from scipy_samples import CALLED, EXEMPT, SAMPLES, X, but_residues, parts

NAMESPACES = "fft linalg ndimage signal sparse special stats"

# SciPy warns of what it computes, of arrays just as of tensors.
pytestmark = pytest.mark.filterwarnings("ignore")


def named() -> list[str]:
    """Every function of SciPy for which there is one of the same name."""
    found = []
    for namespace in NAMESPACES.split():
        module = importlib.import_module(f"scipy.{namespace}")
        for name in module.__all__:
            call = f"scipy.{namespace}.{name}"
            if callable(getattr(module, name, None)) and "(" not in (counterpart(call) or "("):
                found.append(call)
    return found


def theirs(call: str) -> Any:
    module, _, name = call.rpartition(".")
    return getattr(importlib.import_module(module), name)


def ours(path: str) -> Any:
    found: Any = gt
    for part in path.split(".")[1:]:
        found = getattr(found, part)
    return found


def sample_of(call: str) -> Callable[[Any], Any] | None:
    """How a function is called: by its row, one of SciPy's calls, or as the ufunc it is."""
    if call in SAMPLES:
        return SAMPLES[call]
    known = CALLS.get(call.removeprefix("scipy."))
    if known is not None:
        return lambda f: known.call(f, known.point)
    function = theirs(call)
    if isinstance(function, np.ufunc):
        leading = (1.5, 2.0, 2.5, 3.0)[: function.nin - 1]
        return lambda f: f(*leading, X)
    return None


def assert_same(got: Any, expected: Any) -> None:
    pairs = list(zip(parts(got), parts(expected), strict=True))
    assert pairs
    for one, other in pairs:
        one, other = np.asarray(one), np.asarray(other)
        # NumPy's functions keep an axis of one element where some of SciPy's have none.
        assert one.size == other.size
        np.testing.assert_allclose(one.ravel(), other.ravel(), rtol=1e-8, atol=1e-10)
    assert any(np.asarray(part).size and np.isfinite(part).any() for part in parts(expected))


class OnTensors:
    """A function called with tensors in place of arrays, or an object with such methods."""

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped

    def __call__(self, *args: Any, **options: Any) -> Any:
        args, options = tensors(args), tensors(options)
        ours = self.wrapped
        if not any_tensor(args, options):  # sizes only, of which SciPy's own would be called
            ours = getattr(ours, "on_tensors", ours)
        return ours(*args, **options)

    def __getattr__(self, name: str) -> Any:
        return OnTensors(getattr(self.wrapped, name))


def tensors(value: Any) -> Any:
    """Arrays of floating numbers as tensors, in a container, too."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fc":
        return gt.tensor(value)
    if isinstance(value, dict):
        return {key: tensors(one) for key, one in value.items()}
    return type(value)(map(tensors, value)) if isinstance(value, (tuple, list)) else value


@pytest.mark.parametrize("call", named())
def test_the_function_of_the_same_name(call: str) -> None:
    if call in EXEMPT:
        pytest.skip(EXEMPT[call])
    run = sample_of(call)
    assert run is not None, "expected a row in scipy_samples.py"
    assert_same(run(OnTensors(ours(str(counterpart(call))))), run(theirs(call)))


@pytest.mark.parametrize(
    ("name", "given", "compared"), CALLED, ids=[f"{n}-{'-'.join(g)}" for n, g, _ in CALLED]
)
def test_options_of_scipy(name: str, given: dict[str, Any], compared: Any) -> None:
    function = theirs(f"scipy.{name}")
    said = counterpart(f"scipy.{name}")
    assert said is not None
    got = eval(said, {"gt": gt, "np": np, **given})
    if callable(got):
        got = got(**tensors(given))
    if compared is but_residues:
        got = but_residues(got)
    assert_same(got, compared(function(**given)))


@pytest.mark.parametrize("options", [{}, {"lower": True}, {"check_finite": False}])
def test_the_same_is_said_whatever_the_options(options: dict[str, Any]) -> None:
    cholesky = theirs("scipy.linalg.cholesky")
    t = gt.tensor(np.eye(2), requires_grad=True)
    with pytest.raises(ConversionError, match=r"use gt\.scipy\.linalg\.cholesky;"):
        cholesky(t, **options)
    with pytest.raises(ConversionError, match=r"use gt\.scipy\.linalg\.cholesky;"):
        cholesky(a=t, **options)


def test_arguments_that_a_decorator_has_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    source = """
import functools, numpy
def _decorated(function):
    @functools.wraps(function)
    def _wrapper(*args, **options):
        given, name = args[0], function.__name__
        del args, options
        return numpy.asarray(given)
    return _wrapper
@_decorated
def skew(x, axis=0): ...
"""
    module = types.ModuleType("scipy.stats")
    exec(source, vars(module))
    monkeypatch.setitem(sys.modules, "scipy.stats", module)
    with pytest.raises(ConversionError, match=r"scipy\.stats\.skew asks for"):
        module.skew(gt.tensor([1.0, 2.0], requires_grad=True))


def test_what_takes_tensors_in_place_of_others() -> None:
    for said in SCIPY.values():
        ours = re.match(r"use gt\.scipy\.(\w+)\.(\w+)", said)
        if ours is None:
            assert said.startswith("give it arrays")
        else:
            assert ours[2] in getattr(gt.scipy, ours[1]).__all__


@pytest.mark.parametrize("name", ["quad", "solve_ivp"])
def test_integrators_of_scipy_name_ours(name: str) -> None:
    module = importlib.import_module("scipy.integrate")
    calls = {
        "quad": lambda a: module.quad(lambda x: a * x, 0.0, 1.0)[0],
        "solve_ivp": lambda a: module.solve_ivp(lambda t, y: -a * y, (0.0, 1.0), [1.0]).y[0, -1],
    }
    with pytest.raises(ConversionError, match=rf"use gt\.scipy\.integrate\.{name};"):
        gt.grad(calls[name])(1.0)
