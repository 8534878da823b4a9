"""SciPy's functions as they are shipped, on tensors: value, derivatives, or an error that helps.

SciPy looks once, when it is imported, whether SCIPY_ARRAY_API is set. So the tests here hold for
either case, and one of them runs the others in a process where it is the other way round.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.linalg
import scipy.optimize
import scipy.special
import scipy.stats

import gradtape as gt
from gradtape.advice.foreign_names import WITH_ARRAY_API
from gradtape.advice.scipy_counterparts import counterpart
from gradtape.errors import ConversionError, UnsupportedError
from opcall import noting
from paths import DOCS
from scipy_calls import ALWAYS, CALLS, NEVER, SETTING, SINCE_1_18, WITH_SETTING, Call

PAGE = DOCS / "scipy.md"
ADVICE = "set SCIPY_ARRAY_API=1 before SciPy is imported"

with_setting = pytest.mark.skipif(not SETTING, reason="SCIPY_ARRAY_API is not set")
without_setting = pytest.mark.skipif(SETTING, reason="SCIPY_ARRAY_API is set")

pytest.importorskip("scipy", minversion="1.17", reason="older versions of SciPy take less")

# SciPy warns of small samples and of precision lost, of arrays just as of tensors; lagrange is on
# its way out since 1.18.
pytestmark = pytest.mark.filterwarnings(
    "ignore::RuntimeWarning", "ignore::UserWarning", "ignore:`lagrange`:DeprecationWarning"
)


def differences(function: Any, x: Any) -> Any:
    """The Jacobian by central differences."""
    steps = 1e-6 * np.eye(x.size).reshape(-1, *x.shape)
    columns = [(function(x + step) - function(x - step)) / 2e-6 for step in steps]
    return np.stack(columns, axis=-1).reshape(-1, *x.shape)


# ---- each function ------------------------------------------------------------------------------


def of_each_namespace(runs: bool) -> pytest.MarkDecorator:
    """A test for the calls of each namespace that run, or do not; 300 would take twice the time."""
    found: dict[str, list[Call]] = {}
    for call in CALLS.values():
        if call.runs == runs:
            found.setdefault(call.name.split(".")[0], []).append(call)
    return pytest.mark.parametrize("calls", found.values(), ids=found.keys())


def check_one_direction(call: Call) -> None:
    """The Jacobian by `jacfwd` in a random direction from either side.

    An error in any of its entries shows as well as if each was compared with a difference.
    """
    x, rng = call.point, np.random.default_rng(3)
    forward, (value, pullback) = gt.jacfwd(call)(x), gt.vjp(call, x)
    v, w = rng.standard_normal(x.shape), rng.standard_normal(np.shape(value))
    numeric = (call(x + 1e-6 * v) - call(x - 1e-6 * v)) / 2e-6
    scale = 1 + np.abs(numeric).max()
    assert np.abs(numeric).max() > 1e-9, "nothing is tested where the derivative is zero"
    slope = np.tensordot(forward, v, axes=x.ndim)
    np.testing.assert_allclose(slope, numeric, rtol=1e-6, atol=1e-7 * scale)
    reverse = np.tensordot(w, forward, axes=w.ndim)
    np.testing.assert_allclose(pullback(w)[0], reverse, rtol=1e-9, atol=1e-12 * scale)


def check_derivatives(call: Call, thorough: bool) -> None:
    value, x = call(call.point), call.point
    np.testing.assert_allclose(call(gt.tensor(x)).numpy(), value, rtol=1e-12, atol=1e-12)
    if not thorough:
        check_one_direction(call)
        return

    numeric = differences(call, x)
    scale = 1 + np.abs(numeric).max()
    reverse, forward = gt.jacrev(call)(x), gt.jacfwd(call)(x)
    assert np.abs(numeric).max() > 1e-9, "nothing is tested where the derivative is zero"
    np.testing.assert_allclose(reverse, numeric, rtol=1e-6, atol=1e-7 * scale)
    np.testing.assert_allclose(forward, reverse, rtol=1e-9, atol=1e-12 * scale)


@of_each_namespace(runs=True)
def test_it_runs_and_differentiates(calls: list[Call], thorough: bool) -> None:
    for call in calls:
        with noting(f"in scipy.{call.name}"):
            check_derivatives(call, thorough)


def refusal(call: Any, x: Any) -> str:
    """What we say about a call that raises; SciPy may have wrapped it in an error of its own."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - SciPy's may be of any class
        call(gt.tensor(x, requires_grad=True))
    error: BaseException | None = caught.value
    while error is not None and not isinstance(error, ConversionError):
        error = error.__cause__
    assert error is not None, f"no ConversionError, but {caught.value!r}"
    return str(error)


def check_refusal(call: Call) -> None:
    message = refusal(call, call.point)
    assert f"scipy.{call.name}" in message
    assert (ADVICE in message) == (call.works == WITH_SETTING)
    if call.instead is not None:
        assert f"use gt.{call.instead};" in message
    else:
        assert "use gt." not in message
    assert "t.detach() computes without gradient" in message


@of_each_namespace(runs=False)
def test_it_raises_and_names_the_way_out(calls: list[Call]) -> None:
    for call in calls:
        with noting(f"in scipy.{call.name}"):
            check_refusal(call)


def test_enough_is_tested() -> None:
    works = [call.works for call in CALLS.values()]
    assert works.count(WITH_SETTING) > 100
    assert works.count(ALWAYS) > 90
    assert works.count(NEVER) > 50


def test_second_derivatives() -> None:
    x = np.array([0.3, 0.5, 0.9, 0.4])
    function = scipy.stats.skew if SETTING else scipy.special.gammaln
    numeric = differences(gt.grad(lambda x: np.sum(function(x))), x)
    np.testing.assert_allclose(
        gt.hessian(lambda x: np.sum(function(x)))(x), numeric, rtol=1e-6, atol=1e-6
    )


# ---- what holds of many -------------------------------------------------------------------------


def test_values_without_history_are_computed_as_ever() -> None:
    x = gt.tensor(np.diag([1.0, 2.0]))
    assert scipy.linalg.det(x) == 2
    with gt.no_grad():
        assert scipy.linalg.det(gt.tensor(np.diag([1.0, 3.0]), requires_grad=True)) == 3


def test_a_ufunc_without_a_rule_is_named() -> None:
    with pytest.raises(UnsupportedError, match=r"scipy\.special\.itj0y0 is not differentiable"):
        scipy.special.itj0y0(gt.ones(2, requires_grad=True))


@without_setting
def test_ufuncs_take_arrays_beside_tensors() -> None:
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    np.testing.assert_allclose(
        gt.grad(lambda x: np.sum(scipy.special.xlogy(x, y)))(x), np.log(y), rtol=1e-15
    )


@with_setting
def test_arrays_beside_tensors_are_refused_by_scipy() -> None:
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    with pytest.raises(TypeError, match="Multiple namespaces for array inputs"):
        gt.grad(lambda x: np.sum(scipy.special.xlogy(x, y)))(x)
    np.testing.assert_allclose(
        gt.grad(lambda x: np.sum(scipy.special.xlogy(x, gt.asarray(y))))(x), np.log(y), rtol=1e-15
    )


@with_setting
@pytest.mark.parametrize(
    "name",
    ["special.logsumexp", "fft.rfft", "signal.fftconvolve", "stats.zscore", "integrate.trapezoid"],
)
def test_what_does_not_look_at_values_compiles_and_maps(name: str) -> None:
    call = CALLS[name]
    value, batch = call(call.point), np.stack([call.point, call.point + 0.1])
    np.testing.assert_allclose(gt.jit(call)(call.point), value, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(gt.vmap(call)(batch)[0], value, rtol=1e-12, atol=1e-14)


@with_setting
def test_what_follows_ranks_is_constant() -> None:
    x = gt.tensor([3.0, 1.0, 2.0], requires_grad=True)
    ranks = scipy.stats.rankdata(x)
    assert ranks.tolist() == [3, 1, 2]
    assert not ranks.requires_grad


def test_a_backend_for_scipy_fft_needs_no_setting() -> None:
    x = np.array([0.3, 0.5, 0.9, 0.4])
    with scipy.fft.set_backend(gt.fft):
        gradient = gt.grad(lambda x: np.sum(scipy.fft.dct(x) ** 2))(x)
    np.testing.assert_allclose(gradient, gt.grad(lambda x: np.sum(gt.fft.dct(x) ** 2))(x))


def test_optimizers_take_our_gradients() -> None:
    def loss(x: Any) -> Any:
        return np.sum((x - np.array([1.0, 2.0])) ** 2)

    found = scipy.optimize.minimize(gt.value_and_grad(loss), np.zeros(2), jac=True)
    np.testing.assert_allclose(found.x, [1, 2], atol=1e-6)
    message = refusal(lambda x: scipy.optimize.minimize(loss, x), np.zeros(2))
    assert "use gt.scipy.optimize.minimize;" in message


# ---- the error ----------------------------------------------------------------------------------


def test_other_conversions_are_advised_as_before() -> None:
    assert "or gt.zeros(n) instead of np.zeros(n)" in refusal(np.asarray, np.ones(2))


@pytest.mark.parametrize("make", [lambda: gt.zeros(3), lambda: gt.asarray(np.arange(3.0))])
def test_buffers_that_the_error_names_record_everywhere(make: Callable[[], Any]) -> None:
    def fill(x: Any) -> Any:
        buffer = make()
        buffer[0] = x
        return np.sum(buffer**2)

    assert gt.grad(fill)(3.0) == gt.jit(gt.grad(fill))(3.0) == 6.0
    assert gt.vmap(gt.grad(fill))(np.array([3.0])) == 6.0
    with gt.GradientTape() as tape:
        x = tape.watch(3.0)
        y = fill(x)
    assert tape.gradient(y, x) == 6.0


def test_a_conversion_in_a_function_that_scipy_calls_is_not_its_own() -> None:
    def objective(x: Any) -> Any:
        return np.sum(np.asarray(gt.tensor(x, requires_grad=True)))

    message = refusal(lambda x: scipy.optimize.minimize(objective, np.ones(2)), np.ones(2))
    assert "scipy" not in message


@pytest.mark.parametrize("transform", [gt.vmap, gt.jit])
def test_transforms_name_the_counterpart_too(transform: Any) -> None:
    with pytest.raises(ConversionError) as caught:
        transform(lambda x: scipy.linalg.det(x))(np.ones((3, 2, 2)))
    assert any("use gt.scipy.linalg.det" in note for note in caught.value.__notes__)


def test_counterparts() -> None:
    assert counterpart("scipy.linalg.det") == "gt.scipy.linalg.det"
    assert counterpart("scipy.stats.norm.logpdf") == "gt.scipy.stats.norm.logpdf"
    assert counterpart("scipy.integrate.trapezoid") == "gt.scipy.integrate.trapezoid"
    assert counterpart("scipy.interpolate.interp1d") == "gt.scipy.interpolate.interp1d"
    assert counterpart("scipy.interpolate.griddata") is None
    assert counterpart("scipy.stats.nct.logpdf") is None
    assert counterpart("scipy.stats.kstat") is None  # SciPy's own, also below gt.scipy
    assert counterpart("scipy.cluster.vq.vq") is None
    assert counterpart("scipy.io.loadmat") is None
    assert counterpart("scipy.special") is None
    assert counterpart("sklearn.linalg.det") is None


def test_the_advice_to_set_it_is_given_where_it_helps() -> None:
    helped = {f"scipy.{call.name}" for call in CALLS.values() if call.works == WITH_SETTING}
    assert helped == WITH_ARRAY_API


# ---- the page -----------------------------------------------------------------------------------


def table(page: str, library: str) -> dict[str, tuple[str, ...]]:
    """The rows about a library: dotted name -> the other cells."""
    rows = {}
    for line in page.splitlines():
        first, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        names = re.findall(r"`([\w.]+)`", first)
        if line.startswith(f"| `{library}.") and cells:
            rows.update({f"{names[0]}.{name}": tuple(cells) for name in names[1:]})
    return rows


def test_the_page_tells_what_the_tests_found() -> None:
    rows = table(PAGE.read_text(encoding="utf-8"), "scipy")
    cells = {
        ALWAYS: ("runs", "runs"),
        WITH_SETTING: ("raises", "runs"),
        SINCE_1_18: ("raises", "runs since SciPy 1.18"),
        NEVER: ("raises", "raises"),
    }
    assert {name: row[:2] for name, row in rows.items()} == {
        f"scipy.{call.name}": cells[call.works] for call in CALLS.values()
    }
    for call in CALLS.values():
        if call.instead is not None:
            place = re.match(r"(scipy\.)?\w+", call.instead)[0]
            assert f"`gt.{place}" in rows[f"scipy.{call.name}"][2]


def run_examples(library: str) -> None:
    """Run the examples of the page that usual tests skip, because they need the setting."""
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    chosen = [block for block in blocks if "+SKIP" in block and f"import {library}" in block]
    assert chosen
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    for block in chosen:
        block = block.replace("# doctest: +SKIP", "")
        test = doctest.DocTestParser().get_doctest(block, {"gt": gt, "np": np}, "page", None, 0)
        assert doctest.DocTestRunner(optionflags=flags).run(test).failed == 0


@with_setting
def test_examples_of_the_page() -> None:
    run_examples("gradtape")
    run_examples("scipy")


# ---- the other way round ------------------------------------------------------------------------


def run_tests(path: str, setting: bool, *options: str) -> None:
    """Run a file of tests in a process of its own, where SCIPY_ARRAY_API is set or not."""
    environment = {key: value for key, value in os.environ.items() if key != "SCIPY_ARRAY_API"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", path, *options],
        env=environment | ({"SCIPY_ARRAY_API": "1"} if setting else {}),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_with_the_setting_the_other_way_round(thorough: bool) -> None:
    # Not this one again, which would go on for ever.
    options = ["--thorough"] if thorough else []
    run_tests(__file__, not SETTING, "-k", "not other_way_round", *options)
