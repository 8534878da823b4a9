"""Calls of the functions of `gradtape.scipy` beside SciPy's, with arrays and with tensors."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import pkgutil
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

import gradtape as gt
from gradtape.core.tensor import Tensor
from gradtape.dropin.held_tensors import any_tensor
from scipy_calls import CALLS
from scipy_samples import SAMPLES, X

Function = Callable[..., Any]


@functools.cache
def modules() -> list[str]:
    """The names of all modules, as "sparse.linalg"."""
    found = pkgutil.walk_packages(gt.scipy.__path__, "gradtape.scipy.")
    return [module.name.removeprefix("gradtape.scipy.") for module in found]


def pair(name: str) -> tuple[Any, Any]:
    """What gradtape and SciPy have under a name such as "linalg.qr"."""
    module, _, function = name.rpartition(".")
    ours, theirs = (
        importlib.import_module(f"{root}.{module}") for root in ("gradtape.scipy", "scipy")
    )
    return getattr(ours, function), getattr(theirs, function, None)


@functools.cache
def public_names() -> list[str]:
    """What is ours and a function of SciPy's as well, such as "linalg.qr"."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in modules():
            names = importlib.import_module(f"gradtape.scipy.{module}").__all__
            found += [f"{module}.{name}" for name in sorted(names)]
        return [name for name in found if _is_ours(*pair(name))]


def _is_ours(ours: Any, theirs: Any) -> bool:
    """Whether it is a function of ours, not a distribution: those are objects without a name."""
    if ours is theirs or not hasattr(theirs, "__name__"):
        return False
    return isinstance(ours, types.FunctionType) or callable(getattr(ours, "on_tensors", None))


@functools.cache
def functions() -> list[str]:
    """The functions of SciPy for which there is one for tensors, and classes with a sample."""
    return [
        name
        for name in public_names()
        if hasattr(pair(name)[0], "on_tensors")
        and (not isinstance(pair(name)[1], type) or f"scipy.{name}" in SAMPLES)
    ]


def signature_of(function: Function) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except ValueError:
        return None


def sample_of(name: str) -> Callable[[Function], Any]:
    """How a function is called: by its row, one of SciPy's calls, or as the ufunc it is."""
    if f"scipy.{name}" in SAMPLES:
        return SAMPLES[f"scipy.{name}"]
    known = CALLS.get(name)
    if known is not None:
        return lambda f: known.call(f, known.point)
    # With SciPy's setting for arrays of other libraries, a function stands before the ufunc.
    theirs = getattr(pair(name)[1], "__wrapped__", pair(name)[1])
    assert isinstance(theirs, np.ufunc), f"expected a row for scipy.{name} in scipy_samples.py"
    leading = (1.5, 2.0, 2.5, 3.0)[: theirs.nin - 1]
    return lambda f: f(*leading, X)


class Watched:
    """A function that keeps its last result."""

    def __init__(self, function: Function) -> None:
        self.function, self.result = function, None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.result = self.function(*args, **kwargs)
        return self.result


class NoTensorError(Exception):
    """There was nothing to make a tensor of."""


class OnTensors(Watched):
    """The same, which is given tensors in place of arrays, or else of numbers."""

    def __init__(self, function: Function, convert: Callable[[Any], Any]) -> None:
        super().__init__(function)
        self.convert = convert

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args = tuple(map(self.convert, args))
        kwargs = {key: self.convert(value) for key, value in kwargs.items()}
        if not any_tensor(args, kwargs):
            raise NoTensorError
        return super().__call__(*args, **kwargs)


def arrays_to_tensors(value: Any) -> Any:
    """Arrays of floats as tensors, also in tuples and lists; sparse ones as ours."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fc":
        return gt.tensor(value)
    if scipy.sparse.issparse(value):
        return gt.scipy.sparse.from_scipy(value)
    return type(value)(map(arrays_to_tensors, value)) if type(value) in (tuple, list) else value


def floats_to_tensors(value: Any) -> Any:
    return gt.tensor(value) if type(value) is float else value


def by_name(function: Function) -> Function:
    """The function called with as many arguments by name as its signature allows."""
    signature = inspect.signature(function)
    known = signature.parameters
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in known.values()):
        return function

    def call(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        first = {n for n in given if known[n].kind is inspect.Parameter.POSITIONAL_ONLY}
        named = {name: value for name, value in given.items() if name not in first}
        for name in [n for n in named if known[n].kind is inspect.Parameter.VAR_KEYWORD]:
            named |= named.pop(name)
        return function(*(given[name] for name in given if name in first), **named)

    return call


def run_on_tensors(name: str, called: Function) -> tuple[Any, Any]:
    """The result of the sample with tensors, and what the sample makes of it."""
    for convert in (arrays_to_tensors, floats_to_tensors):
        watched = OnTensors(called, convert)
        with contextlib.suppress(NoTensorError):
            processed = sample_of(name)(watched)
            return watched.result, processed
    raise NoTensorError(name)


def assert_alike(got: Any, expected: Any) -> None:
    """The same containers and shapes; a tuple may have names, and an array be a tensor."""
    if isinstance(expected, tuple | list):
        assert isinstance(got, tuple | list)
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            assert_alike(one, other)
    elif expected is None:
        assert got is None
    elif isinstance(expected, np.ndarray | np.generic | float | complex):
        assert isinstance(got, Tensor | np.ndarray | np.generic | bool | float | complex)
        assert np.shape(got) == np.shape(expected)
        assert np.asarray(got).dtype.kind == np.asarray(expected).dtype.kind
