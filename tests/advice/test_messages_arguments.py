"""Whatever is wrong with an argument, the error names the function, what came and what was needed.

The functions of the namespaces are wrapped (`advice.public`), which explains errors of Python and
NumPy after the fact. The functions at `gt` itself check what they are given.
"""

import contextlib
import gc
import importlib
import inspect
import pickle
import re
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
import our_scipy
from gradtape.advice import public
from gradtape.errors import (
    ArgumentError,
    DTypeError,
    GradtapeError,
    LinAlgError,
    ShapeError,
    UnsupportedError,
)

X = np.array([1.0, 2.0, 3.0, 4.0])
M = np.array([[2.0, 1.0], [1.0, 3.0]])

# ---- wrapped functions: what does not fit its annotation is named -------------------------------

NAMED: dict[str, tuple[Callable[[], Any], str]] = {
    "an integer": (lambda: gt.fft.dct(X, n=1j), r"^dct: got n=1j, expected an integer or None$"),
    "an integer by position": (
        lambda: our_scipy.signal.decimate(np.ones(40), None),
        r"^decimate: got q=None, expected an integer$",
    ),
    "a number": (
        lambda: gt.nn.local_response_norm(np.ones((1, 2, 3)), 2, alpha="half"),
        r"^local_response_norm: got alpha='half', expected a real number$",
    ),
    "a word": (
        lambda: our_scipy.signal.butter(2, 0.3, btype=None),
        r"^butter: got btype=None, expected a string$",
    ),
    "an array": (
        lambda: gt.nn.pairwise_distance(np.array([object()]), X),
        r"^pairwise_distance: got x1=object\[1\], expected an array of numbers$",
    ),
    "a tuple of integers": (
        lambda: gt.indices(("a", 2)),
        r"^indices: got dimensions=\('a', 2\), expected a tuple of integers",
    ),
    "a function": (lambda: gt.apply_along_axis(3.0, 0, X), r"got func1d=3.0, expected a function"),
    "what has no annotation": (
        lambda: gt.histogram(X, 3, True),
        r"^histogram: got x=float64\[4\], bins=3, range=True; cannot unpack",
    ),
    "a text that is too long": (
        lambda: gt.fft.dct(X, n="x" * 100),
        r"^dct: got n=<str>, expected an integer or None$",
    ),
}


@pytest.mark.parametrize("kind", NAMED)
def test_what_does_not_fit_is_named(kind: str) -> None:
    call, text = NAMED[kind]
    with pytest.raises(DTypeError, match=text) as caught:
        call()
    # Nothing of the error of old is lost.
    assert isinstance(caught.value.__cause__, TypeError | AttributeError)


def test_errors_of_other_kinds_keep_their_kind() -> None:
    with pytest.raises(ArgumentError, match=r"^resample_poly: got x=.*window=None") as caught:
        our_scipy.signal.resample_poly(X, 1, 2, window=None)
    assert isinstance(caught.value.__cause__, ValueError)
    with (
        np.errstate(all="ignore"),
        pytest.raises(GradtapeError, match=r"bessel: got N=99, Wn=0\.3; Root-finding"),
    ):
        our_scipy.signal.bessel(99, 0.3)
    with pytest.raises(LinAlgError):
        gt.linalg.inv(np.zeros((2, 2)))


@pytest.mark.parametrize(
    "call",
    [
        lambda t: np.fft.fft(t, n=1j),
        lambda t: np.diff(t, n={}),
        lambda t: t.median(keepdims=np.ones(2)),
        lambda t: t.argpartition(None),
    ],
)
def test_numpys_functions_and_methods_are_explained_too(call: Callable[[Any], Any]) -> None:
    with pytest.raises(GradtapeError, match=r"^(fft|diff|median|argpartition): got "):
        call(gt.tensor(X, requires_grad=True))


def test_a_wrong_number_of_arguments_is_left_to_python() -> None:
    with pytest.raises(TypeError, match="missing 1 required") as caught:
        gt.linalg.solve(M)
    assert not isinstance(caught.value, GradtapeError)
    # Which array is meant by a name that is none of an option, Python's message leaves open.
    with pytest.raises(TypeError, match="unexpected keyword argument 'input'"):
        gt.nn.conv1d(input=X, weight=X)


def test_options_are_listed_for_one_that_there_is_not() -> None:
    with pytest.raises(UnsupportedError, match=r"^fftfreq: got zzz=, expected d=, dtype=,"):
        gt.fft.fftfreq(4, zzz=1)
    with pytest.raises(UnsupportedError, match=r"axis=, norm=; did you mean axis=\?$"):
        gt.jit(lambda x: gt.fft.fft(x, axes=0))(X)
    with pytest.raises(UnsupportedError, match=r"got out=, expected arrays only; leave it out$"):
        our_scipy.special.multigammaln(X, 1, out=1)


def test_another_spelling_of_a_keyword_is_named() -> None:
    with pytest.raises(UnsupportedError, match=r"diff: got dim=; it is called axis= here"):
        gt.diff(X, dim=0)
    with pytest.raises(UnsupportedError, match=r"mse_loss: got dim=, expected reduction="):
        gt.nn.mse_loss(X, X, dim=0)


def test_errors_of_the_users_functions_are_theirs() -> None:
    def fails(x: Any) -> Any:
        raise TypeError("mine")

    for call in (
        lambda: gt.apply_along_axis(fails, 0, X),
        lambda: gt.linalg.cg(fails, X),
        lambda: np.apply_along_axis(fails, 0, gt.tensor(X)),
    ):
        with pytest.raises(TypeError, match=r"^mine$") as caught:
            call()
        assert not isinstance(caught.value, GradtapeError)
        assert caught.value.__cause__ is None


def test_errors_of_tensors_that_numpy_wraps_come_out() -> None:
    def lost(x: Any) -> Any:
        values = np.zeros(2)
        values[0] = x[0]
        return values

    wrapped = public._wrapper(lost)
    with pytest.raises(gt.errors.ConversionError, match="history would be lost"):
        gt.grad(lambda x: np.sum(wrapped(x)))(X)


# ---- wrapped functions: what stays as it was ----------------------------------------------------

NAMESPACES = (
    "fft",
    "linalg",
    "nn.functional",
    "scipy.signal",
    "scipy.ndimage",
    "scipy.sparse",
    "scipy.special",
    "scipy.stats",
)


def test_wrappers_look_like_what_they_wrap() -> None:
    assert inspect.signature(gt.linalg.svd) == inspect.signature(gt.linalg.svd.__wrapped__)
    assert gt.linalg.svd.__doc__ == gt.linalg.svd.__wrapped__.__doc__
    assert gt.solve is gt.linalg.solve
    assert gt.digamma is our_scipy.special.digamma


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_functions_of_the_namespaces_are_pickled_by_name(namespace: str) -> None:
    module = importlib.import_module(f"gradtape.{namespace}")
    own = [vars(module)[name] for name in module.__all__ if name in vars(module)]
    wrappers = [value for value in own if hasattr(value, "__wrapped__")]
    assert wrappers or namespace == "scipy.stats"
    for wrapper in wrappers:
        assert pickle.loads(pickle.dumps(wrapper)) is wrapper


def test_ops_with_a_fast_path_are_not_wrapped() -> None:
    for function in (gt.exp, gt.add, gt.relu, our_scipy.special.erfcx, gt.nn.relu):
        assert function.__module__.startswith(("gradtape.ops.", "gradtape.core."))
        assert public.explained(function, "gradtape") is function


# ---- functions at gt itself ---------------------------------------------------------------------

INTEGERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "diag": (lambda k: gt.diag(X, k), "diag: got k="),
    "diagonal": (lambda k: gt.diagonal(M, k), "diagonal: got offset="),
    "tril": (lambda k: gt.tril(M, k), "tril: got k="),
    "triu": (lambda k: gt.triu(M, k), "triu: got k="),
    "eye": (lambda k: gt.eye(2, k=k), "eye: got k="),
    "rot90": (lambda k: gt.rot90(M, k), "rot90: got k="),
    "linspace": (lambda k: gt.linspace(0, 1, k), "linspace: got num="),
    "chunk": (lambda k: gt.chunk(X, k), "chunk: got chunks="),
    "split": (lambda k: gt.split(X, [k]), "split: got a place to cut at="),
    "one_hot": (lambda k: gt.one_hot([0], k), "one_hot: got num_classes="),
    "roll": (lambda k: gt.roll(X, [k, 1], (0, 0)), "roll: got shift="),
    "cross_entropy": (
        lambda k: gt.nn.cross_entropy(M, np.array([0, 1]), ignore_index=k),
        "cross_entropy: got ignore_index=",
    ),
    "cg": (lambda k: gt.linalg.cg(M, X[:2], maxiter=k), "cg: got maxiter="),
    "check_grads": (lambda k: gt.testing.check_grads(gt.sin, X, order=k), "check_grads: got ord"),
}


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("value", [1.5, 1.0, "x"])
def test_options_that_are_not_integers(name: str, value: Any) -> None:
    call, text = INTEGERS[name]
    if name == "roll" and value == "x":
        text = "roll: got a list that is no array"
    with pytest.raises(DTypeError, match=text):
        call(value)


def test_repeats_are_integers_from_0() -> None:
    for repeats in (1.5, [1.5] * 4, "x"):
        with pytest.raises(DTypeError, match=r"repeat: got "):
            gt.repeat(X, repeats)
    with pytest.raises(ArgumentError, match=r"repeat: got repeats=.*0 or more"):
        gt.repeat(X, [1, 1, 1, -1])


@pytest.mark.parametrize("value", [None, "x", object(), {}])
def test_options_that_are_not_numbers(value: Any) -> None:
    for call, text in (
        (lambda: gt.leaky_relu(X, value), "leaky_relu: got negative_slope="),
        (lambda: gt.elu(X, value), "elu: got alpha="),
        (lambda: gt.softplus(X, value), "softplus: got beta="),
        (lambda: gt.softplus(X, 1.0, value), "softplus: got threshold="),
        (lambda: gt.isclose(X, X, value), "isclose: got rtol="),
        (lambda: gt.allclose(X, X, atol=value), "isclose: got atol="),
        (lambda: gt.var(X, ddof=value), "var: got ddof="),
        (lambda: gt.nanstd(X, ddof=value), "nanstd: got ddof="),
        (lambda: gt.optim.Adam(eps=value), "Adam: got eps="),
        (lambda: gt.optim.SGD(lr=0.1, momentum=value), "SGD: got momentum="),
    ):
        with pytest.raises(DTypeError, match=text):
            call()


@pytest.mark.parametrize("axis", [True, np.ones(1)])
def test_truth_values_are_no_axes(axis: Any) -> None:
    for function in (gt.sum, gt.sort, gt.softmax, gt.flip, gt.fft.fft, gt.argmax, gt.concat):
        with pytest.raises(DTypeError, match=r"got axis=.*, expected an integer"):
            function([M, M] if function is gt.concat else M, axis=axis)


def test_integers_of_numpy_are_axes() -> None:
    assert gt.sum(M, axis=np.int64(1)).tolist() == [3.0, 4.0]
    assert gt.sum(M, axis=gt.tensor(1)).tolist() == [3.0, 4.0]


@pytest.mark.parametrize("shape", [True, (2, True), "2", None, (2.0,), {}])
def test_sizes_are_integers(shape: Any) -> None:
    for function in (gt.zeros, gt.ones, gt.rand):
        with pytest.raises(ShapeError, match=r"(zeros|ones|rand): got (shape|sizes)? ?"):
            function(shape)
    with pytest.raises(ShapeError, match="broadcast_shapes: got shape"):
        gt.broadcast_shapes((3,), (shape,))


@pytest.mark.parametrize("shape", [None, {"a": 2}, (None, 2), (np.ones(2), 2), object()])
def test_shapes_to_reshape_to(shape: Any) -> None:
    with pytest.raises(ShapeError, match="reshape: got shape"):
        gt.reshape(X, shape)


@pytest.mark.parametrize("dtype", ["nonsense", "U3", "datetime64[D]", object, True, gt.tensor(2.0)])
def test_dtypes_are_of_numbers(dtype: Any) -> None:
    for call in (
        lambda: gt.zeros(2, dtype=dtype),
        lambda: gt.zeros_like(X, dtype=dtype),
        lambda: gt.asarray(gt.ones(2), dtype=dtype),
        lambda: gt.one_hot([0], 2, dtype=dtype),
        lambda: gt.linspace(0, 1, 3, dtype=dtype),
        lambda: gt.full(3, 1.0, dtype=dtype),
    ):
        with pytest.raises(DTypeError, match=r"got dtype .*such as gt\.float32"):
            call()


OTHERS: dict[str, tuple[Callable[[], Any], str]] = {
    "axes of transpose": (lambda: gt.transpose(M, 1.5), r"transpose: got axis=1.5"),
    "axes of rot90": (lambda: gt.rot90(M, 1, None), r"rot90: got axes None, expected two"),
    "axis of expand_dims": (lambda: gt.expand_dims(X, None), r"expand_dims: got axis=None"),
    "axis of linspace": (lambda: gt.linspace(0, 1, 3, axis=None), r"linspace: got axis=None"),
    "nothing to join": (lambda: gt.concat(None), r"concatenate: got arrays=None, .*list or tuple"),
    "nothing to cut": (lambda: gt.split(X, None), r"split: got None, expected the number of parts"),
    "axes of tensordot": (lambda: gt.tensordot(M, M, None), r"tensordot: got axes=None, expected"),
    "pairs of axes": (lambda: gt.tensordot(M, M, ("a", 0)), r"tensordot: got an axis='a'"),
    "path of einsum": (lambda: gt.einsum("ij->j", M, optimize=3), r"einsum: got optimize=3"),
    "casting": (lambda: gt.can_cast(gt.float32, gt.float64, None), r"got casting=None, .*safe"),
    "dtype to cast": (lambda: gt.can_cast(None, gt.float64), r"can_cast: got None, expected a dty"),
    "device": (lambda: gt.zeros(2, device=np.ones(2)), r"zeros: got device"),
    "mean of var": (lambda: gt.var(X, mean={}), r"var: got a dict that is no array"),
    "nothing there": (lambda: gt.nonzero(1.5), r"nonzero: got shape \(\), .*atleast_1d"),
    "fill": (lambda: gt.full_like(X, 1j), r"full_like: got fill_value=1j for float64"),
    "elements that are objects": (
        lambda: gt.arctan2(np.array([object()]), X),
        r"arctan2: got object\[1\], float64\[4\]",
    ),
    "pad_width": (lambda: gt.pad(X, None), r"pad: got None, expected an array"),
    "truth as pad_width": (lambda: gt.pad(X, True), r"pad: got pad_width of bool, .*integers"),
    "constants of pad": (lambda: gt.pad(X, 1, constant_values={}), r"pad: got a dict"),
    "steps": (
        lambda: gt.linalg.gmres(M, X[:2], maxiter=0),
        r"gmres: got maxiter=0, expected 1 or more",
    ),
    "betas": (lambda: gt.optim.Adam(betas=None), r"Adam: got betas=None, expected two numbers"),
    "a rule of nothing": (lambda: gt.custom_vjp(3.0), r"custom_vjp: got a float, expected a func"),
    "no function to check": (lambda: gt.testing.check_grads(3.0, X), r"got a float, expected a fu"),
    "several truths": (lambda: bool(gt.ones(3)), r"bool\(tensor\): got shape \(3,\).*gt\.any"),
    "a tensor as a flag": (lambda: gt.sum(M, keepdims=gt.ones(3)), r"bool\(tensor\): got shape"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_arguments(name: str) -> None:
    call, text = OTHERS[name]
    with pytest.raises(GradtapeError, match=text):
        call()


@pytest.mark.parametrize(
    "function",
    [
        gt.exp,
        gt.sum,
        gt.sort,
        gt.linalg.inv,
        gt.fft.fft,
        our_scipy.special.erfcx,
        gt.where,
        gt.nn.glu,
    ],
)
@pytest.mark.parametrize("value", [None, "text", {}, [[1.0], [1.0, 2.0]]])
def test_what_is_no_array_is_told_by_the_name_of_the_function(function: Any, value: Any) -> None:
    args = (True, value, 0.0) if function is gt.where else (value,)
    with pytest.raises(GradtapeError, match=rf"^{re.escape(function.__name__)}: got "):
        function(*args)


# ---- what is not ours to explain ----------------------------------------------------------------


def test_what_is_handled_further_out_is_not_raised_again() -> None:
    try:
        gt.linalg.inv(np.zeros((2, 2)))
    except GradtapeError:
        with pytest.raises(DTypeError, match=r"firwin: got numtaps=2\.5"):
            our_scipy.signal.firwin(2.5, 0.3)
        with pytest.raises(KeyError, match="k"):
            gt.apply_along_axis(lambda row: {}["k"], 0, np.ones((2, 2)))


def test_errors_that_users_make_of_ours_stay_theirs() -> None:
    def translated(row: Any) -> Any:
        try:
            return float(row[0])
        except GradtapeError:
            raise RuntimeError("mine") from None

    with pytest.raises(RuntimeError, match="mine"):
        gt.grad(lambda x: np.sum(gt.apply_along_axis(translated, 0, x)))(np.ones((2, 2)))


def test_floating_point_errors_stay_what_they_are() -> None:
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        np.linalg.norm(gt.tensor([1e200]))


def test_errors_hold_no_arguments() -> None:
    x = np.zeros((3, 3))
    held = weakref.ref(x)
    for function in (gt.linalg.inv, lambda x: np.linalg.inv(gt.tensor(x))):
        with pytest.raises(LinAlgError):
            function(x)
    gc.collect()
    gc.disable()
    try:
        with contextlib.suppress(LinAlgError):
            gt.linalg.inv(x)
        del x
        assert held() is None
    finally:
        gc.enable()
