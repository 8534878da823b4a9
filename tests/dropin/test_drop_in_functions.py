"""Functions of `gradtape.scipy`: SciPy's own for arrays, ours for tensors, nothing dropped."""

from __future__ import annotations

import copy
import importlib
import inspect
import os
import pickle
import pydoc
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.ndimage
import scipy.signal
import scipy.sparse
import scipy.special

import gradtape as gt
from builds import needs_scipy_1_17
from gradtape.dropin.functions import WITHOUT_EFFECT, drop_in
from gradtape.errors import ConversionError, MissingNameError, UnsupportedError
from gradtape.scipy import ndimage, signal, sparse, special

X = np.linspace(0.2, 0.9, 8)
MODULES = ("integrate", "ndimage", "optimize", "signal", "sparse", "special", "stats")


def forms(name: str) -> dict[str, Any]:
    """The functions and classes of ours in a module, by their names."""
    found = vars(getattr(gt.scipy, name)).items()
    return {
        key: value
        for key, value in found
        if hasattr(value, "on_tensors") and hasattr(value, "__name__")
    }


FORMS = [(module, name) for module in MODULES for name in forms(module)]


# ---- arrays -------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [0.3, X, X.astype(np.float32), [0.2, 0.4], (0.2, 0.4), X.tolist()])
def test_arrays_are_scipys_to_the_bit(x: Any) -> None:
    for ours, theirs in (
        (special.gammaln, scipy.special.gammaln),
        (special.logsumexp, scipy.special.logsumexp),
        (lambda x: signal.lfilter([1.0], [1.0, -0.5], np.atleast_1d(x)),) * 2,
    ):
        got, expected = ours(x), theirs(x)
        assert type(got) is type(expected)
        assert got.dtype == expected.dtype
        assert got.tobytes() == expected.tobytes()


def test_arrays_have_all_of_scipys_options() -> None:
    assert special.comb(5, 2, exact=True) == 10
    assert type(special.comb(5, 2, exact=True)) is int
    np.testing.assert_array_equal(ndimage.sobel(X, output=np.float32).dtype, np.float32)
    assert isinstance(sparse.csr_array(np.eye(2)), scipy.sparse.csr_array)
    assert sparse.hstack([sparse.eye_array(2)], format="csr").format == "csr"


def test_arrays_get_scipys_errors() -> None:
    for module in (special, scipy.special):
        with pytest.raises(TypeError, match="unexpected keyword argument 'dim'"):
            module.logsumexp(X, dim=0)


def test_names_without_a_form_are_scipys() -> None:
    assert signal.find_peaks is scipy.signal.find_peaks
    assert special.itj0y0 is scipy.special.itj0y0
    assert sparse.linalg is scipy.sparse.linalg or sparse.linalg.__name__.startswith("gradtape")
    assert gt.scipy.constants.pi == np.pi
    with pytest.raises(ConversionError, match=r"scipy\.signal\.find_peaks|np\.asarray"):
        gt.grad(lambda x: signal.find_peaks(x)[1])(X)


# ---- tensors, wherever they are -----------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda t: special.logsumexp(t),
        lambda t: special.logsumexp(a=t),
        lambda t: special.logsumexp(X, b=t),
        lambda t: sparse.csr_array((t, ([0] * 8, range(8)))).data,
        lambda t: sparse.hstack([sparse.csr_array(t[None]), sparse.csr_array(X[None])]).data,
        lambda t: signal.freqz_zpk([0.5], t, 1.0, worN=3)[1],
        lambda t: special.expit(t, out=None),
    ],
)
def test_tensors_are_found(call: Callable[[Any], Any]) -> None:
    assert isinstance(call(gt.tensor(X)), gt.Tensor)
    assert np.abs(gt.grad(lambda t: gt.sum(gt.real(call(t))))(X)).max() > 0
    np.testing.assert_allclose(gt.jit(call)(X), call(gt.tensor(X)), rtol=1e-12)


def test_tensors_in_lists_and_arrays_of_objects_are_not_given_to_scipy() -> None:
    calls: list[Any] = []
    function = drop_in(lambda a, b=None: calls.append("SciPy's"), lambda a, b: "ours", "scipy.x.f")
    t = gt.tensor(1.0)
    objects = np.empty(2, object)
    objects[:] = [1.0, t]
    for value in (t, [t], [1.0, (2.0, [t])], {"t": t}, objects, {"a": [objects]}):
        assert function(value, 1) == "ours"
        assert function(1.0, b=value) == "ours"
    assert calls == []
    for plain in (1.0, [1.0, [X]], {"x": X}, np.array([None, "a"]), X, np.float32(1.0), len):
        function(plain)
    assert len(calls) == 7


# ---- SciPy's signature --------------------------------------------------------------------------


def test_arguments_by_position_and_by_name() -> None:
    t = gt.tensor(np.stack([X, X**2]))
    for args, options in (
        ((t, 0), {}),
        ((t,), {"axis": 0}),
        ((t, 0, None, True), {}),
        ((), {"keepdims": True, "axis": (1,), "a": t}),
    ):
        plain = [np.asarray(arg) if isinstance(arg, gt.Tensor) else arg for arg in args]
        named = {k: np.asarray(v) if isinstance(v, gt.Tensor) else v for k, v in options.items()}
        expected = scipy.special.logsumexp(*plain, **named)
        got = special.logsumexp(*args, **options)
        assert isinstance(got, gt.Tensor)
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-14)
        assert got.shape == expected.shape


def test_the_defaults_of_scipy_count() -> None:
    def theirs(x: Any, lower: bool = False, size: int = 3, *, kind: str = "a") -> Any:
        return None

    def ours(x: Any, /, *, size: int = 5, lower: bool = True, kind: Any = None) -> Any:
        return lower, size, kind

    function, t = drop_in(theirs, ours, "scipy.x.f"), gt.tensor(1.0)
    assert function(t) == (False, 3, "a")
    assert function(t, True) == (True, 3, "a")
    assert function(t, size=4, kind="b") == (False, 4, "b")
    # Ours is what it was.
    assert function.on_tensors(t) == (True, 5, None)


def test_nothing_given_is_not_given() -> None:
    nothing = object()  # as several functions of SciPy have it

    def theirs(x: Any, dtype: Any = nothing, rtol: Any = None, precenter: Any = nothing) -> Any:
        return None

    function = drop_in(theirs, lambda x, dtype="own", rtol=1.0: (dtype, rtol), "scipy.x.f")
    t = gt.tensor(1.0)
    assert function(t) == ("own", 1.0)
    assert function(t, precenter=nothing, dtype="other") == ("other", 1.0)
    with pytest.raises(UnsupportedError, match="got precenter="):
        function(t, precenter=None)


def test_signatures_and_names_are_scipys() -> None:
    for module, name in FORMS:
        ours = getattr(getattr(gt.scipy, module), name)
        theirs = getattr(importlib.import_module(f"scipy.{module}"), name)
        assert (ours.__name__, ours.__module__) == (name, f"gradtape.scipy.{module}")
        try:
            expected = inspect.signature(theirs)
        except ValueError:  # ufuncs of older NumPy
            continue
        assert inspect.signature(ours) == expected, f"{module}.{name}"


def test_pickle_and_copy_find_the_function() -> None:
    for module, name in FORMS:
        function = getattr(getattr(gt.scipy, module), name)
        assert pickle.loads(pickle.dumps(function)) is function, f"{module}.{name}"
        assert copy.deepcopy(function) is function, f"{module}.{name}"


def test_functions_at_gt_are_pickled_too() -> None:
    for function in (gt.digamma, gt.xlogy, gt.polygamma, gt.logsumexp, gt.linalg.det):
        assert pickle.loads(pickle.dumps(function)) is function


def test_help_says_what_ours_does() -> None:
    text = pydoc.plain(pydoc.render_doc(special.logsumexp))
    assert f"logsumexp{inspect.signature(scipy.special.logsumexp)}" in text
    text = pydoc.plain(pydoc.render_doc(special.expit))
    assert "in module gradtape.scipy.special" in text
    assert "The logistic function" in text


# ---- what is refused, and what is not -----------------------------------------------------------


def test_options_that_ours_lacks_are_refused() -> None:
    t = gt.tensor(X)
    with pytest.raises(
        UnsupportedError, match=r"scipy\.special\.comb: got exact=; gradtape does not take it"
    ):
        special.comb(t, 2, exact=True)
    with pytest.raises(UnsupportedError, match=r"scipy\.ndimage\.sobel: got output="):
        ndimage.sobel(t, output=np.float32)
    with pytest.raises(UnsupportedError, match=r"got output="):
        ndimage.sobel(t, -1, np.empty(8))
    with pytest.raises(UnsupportedError, match=r"scipy\.sparse\.linalg\.gmres: got callback="):
        sparse.linalg.gmres(np.eye(8), t, callback=print)
    # With SciPy's default, nothing is asked for.
    np.testing.assert_allclose(special.comb(t, 2, exact=False), scipy.special.comb(X, 2))
    np.testing.assert_allclose(ndimage.sobel(t, -1, None), scipy.ndimage.sobel(X))


def test_none_is_no_default_where_it_means_something() -> None:
    function = drop_in(lambda x, pad="odd": None, lambda x: "ours", "scipy.x.f")
    assert function(gt.tensor(1.0), pad="odd") == "ours"
    with pytest.raises(UnsupportedError, match="got pad="):
        function(gt.tensor(1.0), pad=None)


def test_options_that_do_not_change_values_are_taken() -> None:
    t = gt.tensor(X)
    assert isinstance(signal.detrend(t, overwrite_data=True), gt.Tensor)
    assert isinstance(sparse.csr_array(t[None], copy=True).data, gt.Tensor)
    function = drop_in(lambda x, **o: None, lambda x: "ours", "scipy.x.f")
    with pytest.raises(UnsupportedError, match="got zzz="):
        function(t, zzz=1)
    for option in WITHOUT_EFFECT:
        namespace: dict[str, Any] = {}
        exec(f"def f(x, {option}=None): pass", namespace)
        assert drop_in(namespace["f"], lambda x: "ours", "scipy.x.f")(t, **{option: True}) == "ours"


def test_calls_that_do_not_fit_are_explained() -> None:
    t = gt.tensor(X)
    with pytest.raises(
        UnsupportedError,
        match=r"scipy\.special\.logsumexp: .*keyword argument 'dim'; it is called axis= here",
    ):
        special.logsumexp(t, dim=0)
    with pytest.raises(UnsupportedError, match=r"expected a=, axis=.*did you mean keepdims="):
        special.logsumexp(t, keepdim_=True)
    with pytest.raises(TypeError, match=r"scipy\.special\.logsumexp: too many positional"):
        special.logsumexp(t, 0, None, False, False, 1)
    with pytest.raises(TypeError, match="lfilter"):
        signal.lfilter(t)


# ---- ufuncs and classes -------------------------------------------------------------------------


def test_ufuncs_keep_what_they_have() -> None:
    ours, theirs = special.expit, scipy.special.expit
    assert (ours.types, ours.nin, ours.nout) == (theirs.types, theirs.nin, theirs.nout)
    array = X.copy()
    ours.at(array, [0, 0])
    np.testing.assert_array_equal(array[1:], X[1:])
    assert array[0] == theirs(theirs(X[0]))
    buffer = np.zeros(8)
    assert ours(X, out=buffer) is buffer
    assert ours(X, buffer) is buffer
    kept = np.zeros(8)
    ours(X, out=kept, where=X > 0.5)
    np.testing.assert_array_equal(kept, np.where(X > 0.5, theirs(X), 0.0))
    assert ours(X, dtype=np.float32).dtype == np.float32
    np.testing.assert_array_equal(special.xlogy.outer(X, X), scipy.special.xlogy.outer(X, X))


def test_ufuncs_with_tensors_and_out() -> None:
    t, buffer = gt.tensor(X), gt.zeros(8)
    for written in (special.expit(t, out=buffer), special.expit(t, buffer)):
        np.testing.assert_allclose(written.numpy(), scipy.special.expit(X), rtol=1e-14)
        np.testing.assert_allclose(buffer.numpy(), scipy.special.expit(X), rtol=1e-14)
    with pytest.raises(TypeError):
        special.expit(t, t, t)


def test_classes_stay_classes() -> None:
    made = sparse.csr_array(np.eye(2))
    assert isinstance(made, sparse.csr_array)
    assert isinstance(made, sparse.sparray)
    assert not isinstance(made, sparse.csc_array)
    assert issubclass(scipy.sparse.csr_array, sparse.csr_array)

    class Own(sparse.csr_array):  # type: ignore[misc, name-defined]
        """A class of a user's."""

    assert isinstance(Own(np.eye(2)), scipy.sparse.csr_array)
    assert sparse.csr_array.__name__ == "csr_array"
    assert "csr_array" in repr(sparse.csr_array)
    ours = sparse.csr_array(gt.eye(2))
    assert isinstance(ours, sparse.SparseArray)
    assert sparse.csr_array(ours) is ours


# ---- modules ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODULES)
def test_modules_list_scipys_names_and_ours(name: str) -> None:
    ours, theirs = getattr(gt.scipy, name), importlib.import_module(f"scipy.{name}")
    assert set(theirs.__all__) <= set(ours.__all__)
    assert {*ours.__all__, *(n for n in dir(theirs) if not n.startswith("_"))} <= set(dir(ours))
    assert "_make_scipy" not in dir(ours)
    space: dict[str, Any] = {}
    exec(f"from gradtape.scipy.{name} import *", space)
    assert set(ours.__all__) <= space.keys()


def test_names_that_nobody_has() -> None:
    with pytest.raises(MissingNameError, match=r"did you mean gt\.scipy\.special\.gammaln\?"):
        _ = special.gamaln
    # With SciPy's path Python would load SciPy's modules a second time.
    assert special.__path__ == []


def run(program: str, **environment: str) -> None:
    kept = {key: value for key, value in os.environ.items() if key != "SCIPY_ARRAY_API"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=kept | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_scipy_is_loaded_when_it_is_needed() -> None:
    run(
        "import sys, gradtape as gt\nassert 'scipy' not in sys.modules\n"
        "gt.scipy\nassert 'scipy.special' not in sys.modules\n"
        "gt.scipy.special.gammaln\nassert 'scipy.special' in sys.modules\n"
        "assert 'scipy.stats' not in sys.modules"
    )


@needs_scipy_1_17
def test_with_the_setting_of_scipy() -> None:
    run(
        "import numpy as np, gradtape as gt\n"
        "from gradtape.scipy import special, signal\n"
        "import scipy.special\n"
        "assert not isinstance(scipy.special.gammaln, np.ufunc)\n"
        "x = np.array([1.5, 2.5])\n"
        "for name in ('gammaln', 'expit', 'ndtr', 'logsumexp'):\n"
        "    f, g = getattr(special, name), getattr(scipy.special, name)\n"
        "    assert isinstance(f(x), (np.ndarray, np.floating))\n"
        "    assert np.array_equal(f(x), g(x))\n"
        "    slope = gt.grad(lambda t: gt.sum(f(t)))(x)\n"
        "    assert np.allclose(slope, gt.grad(lambda t: gt.sum(g(t)))(x), rtol=1e-14)\n"
        "# Arrays beside tensors, which SciPy refuses then.\n"
        "assert isinstance(special.xlogy(gt.tensor(x), x), gt.Tensor)\n"
        "assert isinstance(signal.hilbert(gt.tensor(x)), gt.Tensor)\n"
        "assert not hasattr(gt, 'special')\n",
        SCIPY_ARRAY_API="1",
    )


def test_threads_load_modules_and_call_at_once() -> None:
    run(
        "import numpy as np, gradtape as gt\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def one(k):\n"
        "    x = np.array([0.3 + k, 1.5])\n"
        "    special, signal = gt.scipy.special, gt.scipy.signal\n"
        "    value = special.logsumexp(signal.lfilter([1.0], [1.0, 0.5], gt.tensor(x)))\n"
        "    assert isinstance(value, gt.Tensor)\n"
        "    return float(value.numpy()) - special.logsumexp(signal.lfilter([1.], [1., .5], x))\n"
        "with ThreadPoolExecutor(8) as pool:\n"
        "    assert max(map(abs, pool.map(one, range(32)))) < 1e-14\n"
    )


def test_threads_get_their_own_results() -> None:
    def one(k: int) -> Any:
        x = X + k
        slope = gt.grad(lambda t: gt.sum(special.gammaln(t)))(x)
        np.testing.assert_array_equal(special.gammaln(x), scipy.special.gammaln(x))
        return np.abs(slope - scipy.special.digamma(x)).max()

    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(one, range(40))) < 1e-13
