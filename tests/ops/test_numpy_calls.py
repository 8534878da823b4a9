"""NumPy's functions on tensors in every form in which NumPy lets them be called."""

import inspect

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import DTypeError, GradtapeError, UnsupportedError

M = np.arange(6.0).reshape(2, 3) + 1
NO = np._NoValue

CALLS = {
    "sum in full": lambda m: np.sum(m, 0, None, None, True),
    "sum of a=": lambda m: np.sum(a=m),
    "sum of a=, axis=": lambda m: np.sum(axis=0, a=m, keepdims=True),
    "sum without value": lambda m: np.sum(m, 1, None, None, NO, NO, NO),
    "sum keepdims without value": lambda m: np.sum(m, axis=1, keepdims=NO, where=NO),
    "sum out=None": lambda m: np.sum(m, out=None),
    "mean": lambda m: np.mean(m, 0, None, None, True),
    "max": lambda m: np.max(m, 0, None, True),
    "min": lambda m: np.min(m, None, None, True),
    "clip": lambda m: np.clip(m, 2, 3, None),
    "clip by name": lambda m: np.clip(a=m, a_min=2, a_max=3),
    "clip max": lambda m: np.clip(m, max=3, out=None),
    "dot": lambda m: np.dot(a=m, b=m.T),
    "dot out": lambda m: np.dot(m, m.T, None),
    "var": lambda m: np.var(m, 0, None, None, 1, True),
    "var around where": lambda m: np.var(m, 1, where=M > 1, mean=np.ones((len(M), 1))),
    "var around": lambda m: np.var(m, 1, mean=np.mean(m, axis=1, keepdims=True)),
    "std": lambda m: np.std(m, ddof=1, axis=0),
    "std around": lambda m: np.std(m, 0, ddof=1, mean=np.mean(m, axis=0, keepdims=True)),
    "take": lambda m: np.take(m, [0, 4], 1, None, "wrap"),
    "take by name": lambda m: np.take(axis=1, indices=[0], a=m),
    "round": lambda m: np.round(m / 7, 1, None),
    "cumsum": lambda m: np.cumsum(m, 0, None, None),
    "trace": lambda m: np.trace(m, 0, 0, 1, None, None),
    "reshape": lambda m: np.reshape(m, shape=(3, 2)),
    "broadcast_to": lambda m: np.broadcast_to(array=m, shape=(2, 2, 3), subok=False),
    "broadcast_arrays": lambda m: np.broadcast_arrays(m, 1.0, subok=False)[1] + m,
    "copy": lambda m: np.copy(m, "K"),
    "copy by name": lambda m: np.copy(a=m, order="K", subok=False),
    "zeros_like": lambda m: np.zeros_like(m, None, "K", True, (2,)),
    "full_like": lambda m: np.full_like(a=m, fill_value=2.0),
    "concatenate": lambda m: np.concatenate([m, m], 1, None, casting="same_kind"),
    "stack": lambda m: np.stack(arrays=[m, m], axis=1),
    "split": lambda m: np.split(ary=m, indices_or_sections=3, axis=1)[1],
    "transpose": lambda m: np.transpose(a=m),
    "norm": lambda m: np.linalg.norm(x=m, axis=1),
    "argmax": lambda m: np.argmax(m, 1, None),
    "real": lambda m: np.real(val=m),
    "pad": lambda m: np.pad(array=m, pad_width=1, constant_values=2.0),
    "einsum": lambda m: np.einsum("ij->j", m, optimize=True),
    "exp": lambda m: np.exp(m, where=True, dtype=None),
    "fabs": lambda m: np.fabs(-m),
    "fabs of integers": lambda m: np.fabs(m.astype(np.int64)),
    "float_power": lambda m: np.float_power(m, 1.5),
    "float_power of number": lambda m: np.float_power(2, m),
    "float_power of float32": lambda m: np.float_power(m.astype(np.float32), 2),
}


if np.lib.NumpyVersion(np.__version__) < "2.1.0":
    del CALLS["clip max"], CALLS["reshape"]  # NumPy itself did not take these names
try:
    inspect.signature(np.dot)
except ValueError:  # before functions written in C told their signatures
    del CALLS["dot"], CALLS["dot out"], CALLS["concatenate"]


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_every_form_of_a_call(call):
    expected = call(M)
    for tensor in (gt.tensor(M), gt.tensor(M, requires_grad=True)):
        out = call(tensor)
        assert isinstance(out, gt.Tensor)
        assert out.dtype == expected.dtype
        np.testing.assert_allclose(np.asarray(out.detach()), expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda m: np.sum(m, 0, None, np.zeros(3)), "out="),
        (lambda m: np.clip(m, 0, 1, np.zeros((2, 3))), r"np\.clip: got out="),
        (lambda m: np.round(m, 1, np.zeros((2, 3))), r"np\.round: got out="),
        (lambda m: np.copy(m, subok=True), r"np\.copy: got subok="),
        (lambda m: np.nan_to_num(m, False), r"np\.nan_to_num: got copy="),
        (lambda m: np.median(m, 0, np.zeros(3)), r"np\.median: got out="),
        (lambda m: np.quantile(m, 0.5, 0, np.zeros(3)), r"np\.quantile: got out="),
        (lambda m: np.sort(m, 0, None, "x"), r"np\.sort: got order="),
        (lambda m: np.fft.fft(m, out=np.zeros((2, 3), complex)), r"np\.fft\.fft: got out="),
        (lambda m: np.nanmax(m, out=np.zeros(())), r"np\.nanmax: got out="),
        (lambda m: np.exp(m, where=M > 2), r"np\.exp: got where="),
    ],
)
def test_what_is_not_taken_is_named(call, match):
    with pytest.raises(UnsupportedError, match=match):
        call(gt.tensor(M))


def test_gradient_through_full_calls():
    gt.testing.check_grads(lambda m: np.max(m, 0, None, True) * np.float_power(m, 1.5), (M,))
    gt.testing.check_grads(lambda m: np.fabs(m - 2.5), (M,))


def test_fabs_is_for_real_numbers():
    with pytest.raises(DTypeError, match="fabs: got complex128"):
        np.fabs(gt.tensor([1j]))


# ---- comparisons of whole arrays ----------------------------------------------------------------

NAN = np.array([1.0, np.nan])


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize(
    ("compare", "x", "y", "options"),
    [
        (np.allclose, M, M + 1e-9, {}),
        (np.allclose, M, M + 1e-3, {}),
        (np.allclose, M, M + 1e-3, {"atol": 1e-2}),
        (np.allclose, M, 1.0, {}),
        (np.allclose, NAN, NAN, {}),
        (np.allclose, NAN, NAN, {"equal_nan": True}),
        (np.array_equal, M, M, {}),
        (np.array_equal, M, M[:1], {}),
        (np.array_equal, M, M + 1, {}),
        (np.array_equal, NAN, NAN, {}),
        (np.array_equal, NAN, NAN, {"equal_nan": True}),
        (np.array_equiv, M, M[:1], {}),
        (np.array_equiv, M * 0, M[:1] * 0, {}),
        (np.array_equiv, M, M.T, {}),
    ],
)
def test_comparisons_of_arrays_are_python_truths(compare, x, y, options, requires_grad):
    expected = compare(x, y, **options)
    own = getattr(gt, compare.__name__)
    t = gt.tensor(x, requires_grad=requires_grad)
    if requires_grad:
        t = t * 1.0
    for answer in (
        compare(t, y, **options),
        compare(x, gt.tensor(y), **options),
        own(t, y, **options),
        own(x, y, **options),
    ):
        assert answer is bool(expected)


def test_comparing_inside_transforms():
    def f(x):
        assert np.allclose(x, M)
        assert not np.array_equal(x, M + 1)
        assert not gt.isclose(x, M).requires_grad
        return gt.sum(x * x)

    np.testing.assert_array_equal(gt.grad(f)(M), 2 * M)
    with pytest.raises(GradtapeError):
        gt.vmap(f)(M)
    assert gt.vmap(lambda x: gt.isclose(x, M[0]))(M).tolist() == [[True] * 3, [False] * 3]


@pytest.mark.parametrize("name", ["allclose", "isclose"])
def test_numpys_own_assertions_see_tensors(name):
    np.testing.assert_allclose(gt.tensor(M), M)
    assert np.all(getattr(np, name)(a=gt.tensor(M), b=M, rtol=0.0))
