"""Every name of the modules of `gradtape.scipy`: signatures, and calls with arrays and tensors."""

from __future__ import annotations

import functools
import importlib
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from builds import SCIPY
from drop_in_calls import (
    Function,
    Watched,
    assert_alike,
    by_name,
    functions,
    modules,
    pair,
    public_names,
    run_on_tensors,
    sample_of,
    signature_of,
)
from gradtape.dropin.functions import WITHOUT_EFFECT
from gradtape.errors import UnsupportedError
from scipy_samples import NO_TENSOR, parts

# SciPy warns of what it computes, and of names that it is going to drop.
pytestmark = pytest.mark.filterwarnings("ignore")


# ---- names and signatures -----------------------------------------------------------------------


@pytest.mark.parametrize("module", modules())
def test_a_module_has_every_name_of_scipys(module: str) -> None:
    ours = importlib.import_module(f"gradtape.scipy.{module}")
    theirs = importlib.import_module(f"scipy.{module}")
    public = {name for name in dir(theirs) if not name.startswith("_")}
    assert public <= set(dir(ours))
    assert not [name for name in public if not hasattr(ours, name)]
    assert set(theirs.__all__) <= set(ours.__all__)


def test_functions_are_found() -> None:
    assert len(functions()) > 400
    assert {"linalg.qr", "fft.fft", "special.gamma", "signal.welch"} <= set(functions())


def own_functions() -> list[str]:
    """Functions that are ours whatever they are called with, as they call functions of users."""
    return [name for name in public_names() if not hasattr(pair(name)[0], "on_tensors")]


# Ours names the options of the methods.
OTHER_SIGNATURE = {"integrate.solve_ivp"}
if SCIPY < (1, 16):
    OTHER_SIGNATURE.add("optimize.least_squares")


def test_functions_have_the_signatures_of_scipys() -> None:
    for name in (*functions(), *sorted({*own_functions()} - OTHER_SIGNATURE)):
        ours, theirs = pair(name)
        assert ours.__name__ == name.rpartition(".")[2]
        expected = signature_of(theirs)
        if expected is None:
            assert signature_of(ours) is None, name
            continue
        assert [key_of(p) for p in expected.parameters.values()] == [
            key_of(p)
            for p in inspect.signature(ours).parameters.values()
            if p.name in expected.parameters or not is_own_option(ours, p)
        ], name


def is_own_option(function: Any, parameter: inspect.Parameter) -> bool:
    """Whether it is an option that a function has besides SciPy's, whatever it is called with."""
    by_name = parameter.kind is inspect.Parameter.KEYWORD_ONLY
    return by_name and not hasattr(function, "on_tensors")


def key_of(parameter: inspect.Parameter) -> tuple[Any, ...]:
    """What of a parameter matters in a call."""
    return parameter.name, parameter.kind, parameter.default


# ---- calls --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", functions())
def test_arrays_give_what_scipy_gives(name: str) -> None:
    run, (ours, theirs) = sample_of(name), pair(name)
    got, expected = Watched(ours), Watched(theirs)
    run(got), run(expected)
    assert_identical(got.result, expected.result)


def assert_identical(got: Any, expected: Any) -> None:
    assert type(got) is type(expected)
    if isinstance(expected, tuple | list):
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            assert_identical(one, other)
    elif isinstance(expected, np.ndarray | np.generic):
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        assert got.tobytes() == expected.tobytes()
    else:
        assert (
            vars(got).keys() == vars(expected).keys()
            if hasattr(got, "__dict__")
            else got == expected
        )


@pytest.mark.parametrize("way", [lambda function: function, by_name], ids=["", "by name"])
@pytest.mark.parametrize("name", functions())
def test_tensors_give_what_arrays_give(name: str, way: Callable[[Function], Function]) -> None:
    if name in NO_TENSOR:
        pytest.skip(NO_TENSOR[name])
    ours, theirs = pair(name)
    if way is by_name and signature_of(theirs) is None:
        pytest.skip("it takes no arguments by name")
    expected = Watched(theirs)
    processed = sample_of(name)(expected)
    result, got = run_on_tensors(name, way(ours))
    assert_alike(result, expected.result)
    pairs = list(zip(parts(got), parts(processed), strict=True))
    assert any(np.asarray(part).size and np.isfinite(part).any() for _, part in pairs)
    for one, other in pairs:
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-8, atol=1e-10)


# ---- options ------------------------------------------------------------------------------------


def lacking(name: str) -> list[str]:
    """The options of SciPy's that ours lacks, and that change results."""
    ours, theirs = pair(name)
    if isinstance(theirs, np.ufunc) or signature_of(theirs) is None:
        return []
    own = inspect.signature(ours.on_tensors).parameters
    unnamed = sum(p.kind is inspect.Parameter.POSITIONAL_ONLY for p in own.values())
    return [
        parameter.name
        for place, parameter in enumerate(inspect.signature(theirs).parameters.values())
        if parameter.kind
        in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        and place >= unnamed
        and parameter.name not in WITHOUT_EFFECT.union(own)
    ]


def other_than(default: Any) -> Any:
    """A value that is not the default of an option."""
    if isinstance(default, bool):
        return not default
    if isinstance(default, int | float):
        return default + 1
    return "other" if default != "other" else "another"


REFUSED = [(name, option) for name in functions() for option in lacking(name)]


@pytest.mark.parametrize(("name", "option"), REFUSED, ids=[f"{n}-{o}" for n, o in REFUSED])
def test_options_for_arrays_only_are_refused(name: str, option: str) -> None:
    ours, theirs = pair(name)
    default = inspect.signature(theirs).parameters[option].default
    with pytest.raises(UnsupportedError, match=rf"{name}: got {option}="):
        run_on_tensors(name, functools.partial(ours, **{option: other_than(default)}))


@pytest.mark.parametrize("x", [np.eye(3), gt.tensor(np.eye(3))], ids=["array", "tensor"])
@pytest.mark.parametrize(
    ("name", "option"),
    [("linalg.svd", "hermitian"), ("linalg.eigh", "UPLO"), ("linalg.pinv", "rcond")],
)
def test_options_that_only_ours_have_are_unknown(name: str, option: str, x: Any) -> None:
    with pytest.raises(TypeError, match="unexpected keyword"):
        pair(name)[0](x, **{option: 1})


def test_options_without_effect_are_ignored() -> None:
    x = gt.tensor(np.array([[4.0, 1.0], [1.0, 3.0]]))
    plain = gt.scipy.linalg.solve(x, x[0])
    for options in ({"check_finite": False}, {"overwrite_a": True}, {"overwrite_b": 1}):
        np.testing.assert_array_equal(gt.scipy.linalg.solve(x, x[0], **options), plain)
    np.testing.assert_array_equal(gt.scipy.fft.fft(x, workers=2), gt.scipy.fft.fft(x))


def test_a_default_is_not_none_unless_scipys_is() -> None:
    x = gt.tensor(np.eye(4))
    with pytest.raises(UnsupportedError, match=r"spline_filter: got output="):
        gt.scipy.ndimage.spline_filter(x, output=None)


@pytest.mark.parametrize("name", ["linalg.qr", "special.expit", "special.jn", "ndimage.sum"])
def test_functions_are_pickled_by_name(name: str) -> None:
    ours = pair(name)[0]
    assert pickle.loads(pickle.dumps(ours)) is ours
    assert (ours.__module__, ours.__qualname__) == tuple(f"gradtape.scipy.{name}".rsplit(".", 1))
