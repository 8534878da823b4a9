"""The door to CUDA: ops on CuPy arrays compute, record and differentiate where the data is."""

import numpy as np
import pytest

import gradtape as gt

pytestmark = pytest.mark.cuda

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
if not cupy.is_available():
    pytest.skip("there is no CUDA device", allow_module_level=True)

X = np.linspace(-2.0, 2.0, 12).reshape(3, 4)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_an_op_runs_and_differentiates_on_the_device(dtype):
    x = gt.Tensor(cupy.asarray(X, dtype)).set_requires_grad(True)
    loss = gt.sum(gt.tanh(x) * x + 2.0)
    assert isinstance(loss.value, cupy.ndarray)
    loss.backward()
    assert isinstance(x.grad.value, cupy.ndarray)
    assert x.grad.dtype == dtype
    expected = gt.grad(lambda v: np.sum(np.tanh(v) * v + 2.0))(X.astype(dtype))
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=10 * np.finfo(dtype).eps)
    x.zero_grad()
    assert isinstance(x.grad.value, cupy.ndarray)


def test_transforms_and_tapes_stay_on_the_device():
    x = cupy.asarray(X)
    slope = gt.grad(lambda v: gt.sum(gt.exp(v) * v))(x)
    assert isinstance(slope, cupy.ndarray)
    np.testing.assert_allclose(slope.get(), np.exp(X) * (1 + X), rtol=1e-14)
    with gt.GradientTape() as tape:
        watched = tape.watch(x)
        y = gt.sum(watched @ watched.T)
    assert isinstance(tape.gradient(y, watched).value, cupy.ndarray)


def test_forward_mode_stays_on_the_device():
    x = cupy.asarray(X)
    _, tangent = gt.jvp(lambda v: gt.exp(v) * v, (x,), (cupy.ones_like(x),))
    assert isinstance(tangent, cupy.ndarray)
    np.testing.assert_allclose(tangent.get(), np.exp(X) * (1 + X), rtol=1e-14)


def test_printing_and_reading_copy_from_the_device():
    t = gt.Tensor(cupy.asarray([1.0, 2.0]))
    assert repr(t) == "tensor([1., 2.])"
    assert t.tolist() == [1.0, 2.0]
    np.testing.assert_array_equal(np.asarray(t), [1.0, 2.0])


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
def test_functions_of_rows_run_on_the_device(name):
    def loss(x):
        return gt.sum(getattr(gt, name)(x, -1) ** 2)

    got = gt.grad(loss)(cupy.asarray(X))
    assert isinstance(got, cupy.ndarray)
    np.testing.assert_allclose(got.get(), gt.grad(loss)(X), rtol=1e-12, atol=1e-14)
