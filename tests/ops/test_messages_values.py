"""Values that have no meaning raise, where a number would have come out that means nothing.

NumPy, SciPy or PyTorch refuse each of these. In compiled code, where values are not known, there is
NaN instead.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
import our_scipy
from gradtape.errors import ArgumentError, DTypeError, GradtapeError, LinAlgError, ShapeError

X = np.array([1.0, 2.0, 3.0, 4.0])
M = np.array([[2.0, 1.0], [1.0, 3.0]])
P = np.array([[0.2, 0.7, 0.1], [0.3, 0.3, 0.4]])
T = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
SIGNS = np.array([[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]])
TREND = np.arange(64.0)

# ---- losses -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [np.asarray, gt.tensor, lambda x: gt.tensor(x, requires_grad=True)]
)
def test_probabilities_are_from_0_to_1(make: Callable[[Any], Any]) -> None:
    for bad, got in ((P + 1.0, "1.7"), (P - 0.5, "-0.4")):
        with pytest.raises(ArgumentError, match=rf"a probability of {got}.*from 0 to 1; of logits"):
            gt.nn.binary_cross_entropy(make(bad), T)
    with pytest.raises(ArgumentError, match=r"a target of 6\.0, expected numbers from 0 to 1"):
        gt.nn.binary_cross_entropy(P, make(T + 5.0))
    with pytest.raises(ArgumentError, match="a probability of"):
        gt.vmap(gt.nn.binary_cross_entropy)(make(P * 2), T)
    assert np.isnan(gt.nn.binary_cross_entropy(make(P * np.nan), T))


def test_what_is_no_probability_gives_nan_in_compiled_code() -> None:
    with np.errstate(invalid="ignore"):
        assert np.isnan(gt.jit(gt.nn.binary_cross_entropy)(P + 1.0, T))
    np.testing.assert_allclose(
        gt.jit(gt.nn.binary_cross_entropy)(P, T), gt.nn.binary_cross_entropy(P, T)
    )


COMPLEX: dict[str, Callable[[Any], Any]] = {
    "mse_loss": lambda z: gt.nn.mse_loss(z, T),
    "huber_loss": lambda z: gt.nn.huber_loss(z, T),
    "smooth_l1_loss": lambda z: gt.nn.smooth_l1_loss(z, T),
    "kl_div": lambda z: gt.nn.kl_div(z, T),
    "poisson_nll_loss": lambda z: gt.nn.poisson_nll_loss(z, T),
    "gaussian_nll_loss": lambda z: gt.nn.gaussian_nll_loss(P, T, z),
    "binary_cross_entropy": lambda z: gt.nn.binary_cross_entropy(z, T),
    "binary_cross_entropy_with_logits": lambda z: gt.nn.binary_cross_entropy_with_logits(z, T),
    "hinge_embedding_loss": lambda z: gt.nn.hinge_embedding_loss(z, SIGNS),
    "soft_margin_loss": lambda z: gt.nn.soft_margin_loss(z, SIGNS),
    "focal_loss": lambda z: gt.nn.focal_loss(z, T),
    "dice_loss": lambda z: gt.nn.dice_loss(z, T),
    "triplet_margin_loss": lambda z: gt.nn.triplet_margin_loss(z, P, T),
    "cosine_similarity": lambda z: gt.nn.cosine_similarity(z, T),
    "log_sigmoid": gt.log_sigmoid,
    "softplus": gt.softplus,
    "relu6": gt.relu6,
    "elu": gt.elu,
    "gelu": gt.gelu,
    "leaky_relu": gt.leaky_relu,
    "celu": gt.nn.celu,
    "selu": gt.nn.selu,
    "mish": gt.nn.mish,
    "hardtanh": gt.nn.hardtanh,
    "hardswish": gt.nn.hardswish,
    "hardsigmoid": gt.nn.hardsigmoid,
    "hardshrink": gt.nn.hardshrink,
    "softshrink": gt.nn.softshrink,
    "prelu": lambda z: gt.nn.prelu(z, np.ones(1)),
    "threshold": lambda z: gt.nn.threshold(z, 0.0, 0.0),
    "glu": lambda z: gt.nn.glu(z, 0),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers_have_no_order(name: str) -> None:
    for z in (P + 1j, gt.tensor(P + 1j)):
        with pytest.raises(DTypeError, match=rf"{name}: got .*complex128.*expected real numbers"):
            COMPLEX[name](z)


def test_distances_of_complex_numbers_are_real() -> None:
    assert gt.nn.l1_loss(np.array([3.0 + 4.0j]), np.array([0.0])) == 5.0


OPTIONS: dict[str, tuple[Callable[[], Any], str]] = {
    "margin": (
        lambda: gt.nn.triplet_margin_loss(P, T, P, margin=-1.0),
        "triplet_margin_loss: .*-1",
    ),
    "eps": (lambda: gt.nn.cosine_similarity(P, T, eps=-1.0), "cosine_similarity: got eps=-1"),
    "class": (lambda: gt.nn.cross_entropy(P, np.array([0, 3])), "cross_entropy: got class 3"),
    "variance": (lambda: gt.nn.gaussian_nll_loss(P, T, -P), "gaussian_nll_loss: got a variance"),
    "share": (lambda: gt.quantile(X, gt.tensor(1.5)), "quantile: got q outside of the range"),
    "percentage": (lambda: gt.nanpercentile(X, gt.tensor(150.0)), "nanpercentile: got q outside"),
    "bins": (lambda: gt.histogram(X, gt.tensor([0, 2, 1])), "histogram: got bins that decrease"),
    "words as bins": (lambda: gt.histogram(X, np.array(["a", "b"])), "histogram: got bins of <U1"),
    "sorter": (lambda: gt.searchsorted(X, 2.0, sorter=[0, 1]), r"sorter of shape \(2,\)"),
    "start": (lambda: gt.sum(X, initial=X), "sum: got initial="),
    "complex start": (lambda: gt.max(X, initial=1j), "max: got initial=1j for float64"),
    "correction": (lambda: gt.nanvar(X, correction=X), "nanvar: got correction=float64"),
    "inserted": (lambda: gt.insert(X, 0, 1j), "insert: got values of complex128 for float64"),
    "end": (lambda: gt.interp(X, X, X, left=np.array("a")), "interp: got left of <U1"),
    "columns": (lambda: gt.vander(X, -1), r"vander: got shape \(-1,\)"),
    "no function": (lambda: gt.vectorize(3.0), "vectorize: got a float, expected a function"),
    "cutoff": (lambda: gt.linalg.pinvh(M, rtol=-1.0), "pinvh: got rtol=-1.0"),
    "order": (lambda: gt.fft.fht(X, 0.1, 1j), "fht: got mu=1j, expected a real number"),
    "bias": (lambda: gt.fft.ifht(X, 0.1, 1.0, bias=1j), "ifht: got bias=1j, expected a real"),
    "size": (
        lambda: our_scipy.ndimage.fourier_gaussian(M, 1.0, n=2.5),
        "fourier_gaussian: got n=2.5",
    ),
    "width": (lambda: our_scipy.ndimage.fourier_gaussian(M, 1j), "fourier_gaussian: got sigma=1j"),
    "sigma": (
        lambda: our_scipy.ndimage.gaussian_filter1d(X, 1j),
        "gaussian_filter1d: got sigma=1j",
    ),
    "shift": (lambda: our_scipy.ndimage.shift(M, [0.5]), r"shift: got shift of shape \(1,\)"),
    "index": (
        lambda: our_scipy.ndimage.sum(X, [1, 1, 2, 2], ["a"]),
        "got index of <U1, expected integers",
    ),
    "rate": (
        lambda: our_scipy.signal.welch(TREND, fs=-7.0),
        r"welch: got fs=-7\.0, expected one number",
    ),
    "complex rate": (
        lambda: our_scipy.signal.stft(TREND, fs=1j),
        "stft: got fs=1j, expected one number",
    ),
    "rates": (lambda: our_scipy.signal.freqz(X, fs=X), "freqz: got fs=array"),
    "rate of a filter": (lambda: our_scipy.signal.butter(2, 0.1, fs=np.nan), "butter: got fs=nan"),
    "rate of a window": (lambda: our_scipy.signal.firwin(3, 0.1, fs=1j), "firwin: got fs=1j"),
    "ripple": (
        lambda: our_scipy.signal.cheby1(2, -1.0, 0.3),
        "cheby1: got rp=-1.0, expected one number",
    ),
    "attenuation": (lambda: our_scipy.signal.cheby2(2, (1, 2), 0.3), r"cheby2: got rs=\(1, 2\)"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_values_without_meaning(name: str) -> None:
    call, text = OPTIONS[name]
    with pytest.raises((GradtapeError, LinAlgError), match=text):
        call()


def test_shares_that_are_not_known_give_nan() -> None:
    assert np.isnan(gt.jit(lambda q: gt.quantile(X, q))(np.array(1.5)))


# ---- padding by tensors -------------------------------------------------------------------------

PADS: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "one constant": (lambda x, c: gt.pad(x, 1, constant_values=c), np.array(2.0)),
    "a constant per end": (
        lambda x, c: gt.pad(x, ((1, 2), (0, 1)), constant_values=c),
        np.array([[1.0, 2.0], [3.0, 4.0]]),
    ),
    "a number and a tensor": (
        lambda x, c: gt.pad(x, (1, 2), constant_values=(c, 0.5)),
        np.array(2.0),
    ),
    "ramps": (lambda x, c: gt.pad(x, 2, "linear_ramp", end_values=c), np.array([3.0, 5.0])),
    "NumPy's": (lambda x, c: np.pad(x, 1, constant_values=c), np.array(2.0)),
}


@pytest.mark.parametrize("name", PADS)
def test_padding_has_a_gradient_by_what_is_added(name: str) -> None:
    pad, c = PADS[name]
    x = np.arange(6.0).reshape(2, 3)
    expected = pad(x, c)
    gt.testing.check_grads(lambda x, c: gt.sin(pad(x, c)), (x, c))
    np.testing.assert_array_equal(pad(gt.tensor(x), gt.tensor(c)).numpy(), expected)
    np.testing.assert_array_equal(gt.jit(pad)(x, c), expected)
    several = gt.vmap(pad)(np.stack([x, x + 1]), np.stack([c, c + 1]))
    np.testing.assert_array_equal(several[1], pad(x + 1, c + 1))
    assert gt.grad(lambda c: gt.sum(pad(gt.tensor(x), c)))(c).any()


def test_padding_an_array_by_a_tensor_names_the_function() -> None:
    with pytest.raises(GradtapeError, match=r"np\.pad asks for an array: use gt\.pad"):
        gt.grad(lambda c: np.sum(np.pad(X, 1, constant_values=c)))(2.0)


# ---- what is written over all passes nothing on ------------------------------------------------


@pytest.mark.parametrize("index", [np.full(4, True), slice(None), ..., np.arange(4)])
def test_nothing_flows_into_what_was_overwritten(index: Any) -> None:
    def rewritten(x: Any) -> Any:
        y = ((x - x) / (x - x)) ** 2  # NaN, and so is its derivative
        y[index] = 3 * x[index]
        return np.sum(y)

    with np.errstate(invalid="ignore"):
        for derivative in (gt.grad(rewritten), gt.jit(gt.grad(rewritten)), gt.jacfwd(rewritten)):
            np.testing.assert_array_equal(derivative(X), np.full(4, 3.0))


def test_assigning_to_all_is_still_recorded() -> None:
    x = gt.tensor(X, requires_grad=True)
    y = x * 2
    y[np.full(4, True)] = 1.0
    np.sum(y).backward()
    assert x.grad is None or x.grad.tolist() == [0.0] * 4


def test_a_part_that_is_left_keeps_its_gradient() -> None:
    def some(x: Any) -> Any:
        y = x * x
        y[np.array([3, 0, 1])] = x[:3]
        return np.sum(y * X)

    gt.testing.check_grads(some, (X,))


# ---- sparse matrices as arguments ---------------------------------------------------------------


def sparse(numbers: Any = (1.0, 2.0, 3.0)) -> Any:
    return our_scipy.sparse.csr_array((np.array(numbers), [0, 1, 1], [0, 2, 3]), shape=(2, 2))


V = np.array([1.0, 2.0])


def test_compiled_functions_take_sparse_matrices() -> None:
    traced = []

    def times(s: Any, x: Any) -> Any:
        traced.append(s.shape)
        return s @ x

    compiled = gt.jit(times)
    for matrix in (sparse(), sparse((4.0, 5.0, 6.0)), sparse().T):
        np.testing.assert_array_equal(compiled(matrix, V), matrix.toarray() @ V)
    # The numbers are an argument; other places are another function.
    assert len(traced) == 2
    inside = gt.jit(lambda params: params["s"].T * params["scale"])({"s": sparse(), "scale": 2.0})
    np.testing.assert_array_equal(inside.toarray(), 2 * sparse().toarray().T)


def test_gradients_by_sparse_matrices_are_sparse() -> None:
    def energy(s: Any, x: Any) -> Any:
        return np.sum((s @ x) ** 2)

    numbers = gt.grad(lambda data: energy(sparse().with_data(data), V))(sparse().data)
    for differentiate in (gt.grad(energy), gt.jit(gt.grad(energy))):
        np.testing.assert_allclose(differentiate(sparse(), V).data, numbers)
    _, pullback = gt.vjp(lambda s: s @ V, sparse())
    assert pullback(np.ones(2))[0].nnz == 3
    out, tangent = gt.jvp(lambda s: s @ V, (sparse(),), (sparse(),))
    np.testing.assert_array_equal(out, tangent)
    gt.testing.check_grads(lambda s: s @ V, (sparse(),))


def test_sparse_matrices_are_no_batches() -> None:
    np.testing.assert_array_equal(
        gt.vmap(lambda s, x: s @ x, (None, 0))(sparse(), np.eye(2)), sparse().toarray().T
    )
    for call in (
        lambda: gt.vmap(lambda s, x: s @ x)(sparse(), np.ones((3, 2))),
        lambda: gt.vmap(lambda a: sparse() * a)(np.ones(2)),
        lambda: gt.jacobian(lambda s: s @ V)(sparse()),
    ):
        with pytest.raises(ShapeError, match=r"expected \(3,\); .*given the numbers s\.data"):
            call()


def test_leaves_of_sparse_matrices_are_located() -> None:
    with pytest.raises(DTypeError, match=r"argument 0\.data is int64\[3\]"):
        gt.grad(lambda s: np.sum(s @ V))(sparse((1, 2, 3)))
