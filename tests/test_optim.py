"""Optimizers: their steps, what they do with the tape, their state."""

import gc
import weakref

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError, DTypeError, GradtapeError, ShapeError

SHAPES = [(4, 3), (3,), ()]


def gradients(rng, dtype, steps=7):
    return [[rng.normal(size=shape).astype(dtype) for shape in SHAPES] for _ in range(steps)]


def initial(rng, dtype):
    return [rng.normal(size=shape).astype(dtype) for shape in SHAPES]


def trained(make, start, steps):
    """The values after steps with given gradients; one parameter has none in the third."""
    params = [gt.tensor(x, requires_grad=True) for x in start]
    optimizer = make(params)
    for number, grads in enumerate(steps):
        for param, grad in zip(params, grads, strict=True):
            param.grad = gt.Tensor(grad)
        if number == 2:
            params[1].grad = None
        optimizer.step()
    return [np.asarray(param.detach()) for param in params]


# ---- literal references ----


def reference_sgd(x, grads, lr, momentum=0.0, weight_decay=0.0, nesterov=False):
    v = None
    for g in grads:
        g = g + weight_decay * x
        v = g if v is None else momentum * v + g
        x = x - lr * (g + momentum * v if nesterov else v)
    return x


def reference_adam(x, grads, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    m = v = 0
    for t, g in enumerate(grads, start=1):
        g = g + weight_decay * x
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        x = x - lr * (m / (1 - betas[0] ** t)) / (np.sqrt(v / (1 - betas[1] ** t)) + eps)
    return x


FORMS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.3}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1}),
    ("Adam", {"lr": 0.02, "betas": (0.5, 0.8), "eps": 1e-3, "weight_decay": 0.2}),
    ("Adam", {"lr": 0.1, "betas": (0.0, 0.0), "eps": 0.1}),
]
REFERENCES = {"SGD": reference_sgd, "Adam": reference_adam}
TOLERANCE = {np.float64: 1e-13, np.float32: 1e-5}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("name", "options"), FORMS)
def test_steps_against_the_formula(name, options, dtype, rng):
    start, steps = initial(rng, dtype), gradients(rng, dtype)
    got = trained(lambda params: getattr(gt.optim, name)(params, **options), start, steps)
    for i, x in enumerate(got):
        grads = [grads[i] for number, grads in enumerate(steps) if not (i == 1 and number == 2)]
        expected = REFERENCES[name](start[i], grads, **options)
        assert x.dtype == dtype
        assert x.shape == SHAPES[i]
        np.testing.assert_allclose(x, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("name", "options"), FORMS)
def test_steps_against_torch(name, options, dtype, rng):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    start, steps = initial(rng, dtype), gradients(rng, dtype)
    got = trained(lambda params: getattr(gt.optim, name)(params, **options), start, steps)
    params = [torch.tensor(x, requires_grad=True) for x in start]
    optimizer = getattr(torch.optim, name)(params, **options)
    for number, grads in enumerate(steps):
        for i, (param, grad) in enumerate(zip(params, grads, strict=True)):
            param.grad = None if i == 1 and number == 2 else torch.tensor(grad)
        optimizer.step()
    for x, param in zip(got, params, strict=True):
        expected = param.detach().numpy()
        np.testing.assert_allclose(x, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_dtypes_stay(name, dtype):
    w = gt.ones(3, getattr(gt, dtype), requires_grad=True)
    optimizer = getattr(gt.optim, name)([w], lr=np.float64(0.25), weight_decay=1e-3)
    for _ in range(2):
        w.grad = gt.ones(3, w.dtype)
        optimizer.step()
        assert w.dtype == getattr(gt, dtype)
    np.testing.assert_allclose(np.asarray(w.detach()).astype(float), 0.5, rtol=1e-2)


@pytest.mark.parametrize("name", REFERENCES)
def test_minimizes(name):
    target = np.array([1.0, -2.0, 3.0])
    w, b = gt.zeros(3, requires_grad=True), gt.zeros((), requires_grad=True)
    optimizer = getattr(gt.optim, name)({"w": w, "b": b}, lr=0.1)
    for _ in range(400):
        optimizer.zero_grad()
        loss = gt.sum((w - target) ** 2) + (b - 1.0) ** 2
        loss.backward()
        optimizer.step()
    np.testing.assert_allclose(w.detach(), target, atol=1e-3)
    assert b.item() == pytest.approx(1, abs=1e-3)


# ---- arrays and tapes ----


@pytest.mark.parametrize("make", [gt.optim.SGD, gt.optim.Adam])
def test_a_step_leaves_recorded_arrays_alone(make):
    w = gt.tensor([2.0, 3.0], requires_grad=True)
    optimizer = make([w], lr=0.1)
    before = w.value
    loss = gt.sum(w * w)
    for _ in range(3):
        w.grad = gt.ones(2)
        gradient = w.grad.value
        optimizer.step()
        np.testing.assert_array_equal(gradient, [1, 1])
    np.testing.assert_array_equal(before, [2, 3])
    assert w.is_leaf
    w.zero_grad()
    loss.backward()
    np.testing.assert_array_equal(w.grad, [4, 6])


@pytest.mark.parametrize("make", [gt.optim.SGD, gt.optim.Adam])
def test_zero_grad_with_parameters_clears_the_default_tape(make):
    w = gt.ones(3, requires_grad=True)
    optimizer = make(lr=0.1)
    gt.sum(w * 2.0).backward()
    kept = w * 3.0
    with gt.GradientContext() as context:
        inner = w * 4.0
        optimizer.zero_grad([w])
        assert len(context.tape) == 1
        gt.compute_gradients(inner)
    assert len(gt.default_context().tape) == 0
    np.testing.assert_array_equal(w.grad, [4, 4, 4])
    with pytest.raises(GradtapeError, match="cleared"):
        kept.backward()


@pytest.mark.parametrize("make", [gt.optim.SGD, gt.optim.Adam])
def test_zero_grad_without_parameters_only_zeroes(make):
    w = gt.ones(3, requires_grad=True)
    optimizer = make([w], lr=0.1)
    loss = gt.sum(w * 2.0)
    optimizer.zero_grad()
    assert w.grad is None
    loss.backward()
    optimizer.zero_grad()
    np.testing.assert_array_equal(w.grad, np.zeros(3))
    loss.backward()
    np.testing.assert_array_equal(w.grad, [2, 2, 2])


def test_a_frozen_parameter_is_skipped():
    w = gt.ones(2, requires_grad=True)
    optimizer = gt.optim.SGD([w], lr=0.1)
    w.set_requires_grad(False)
    optimizer.step()
    np.testing.assert_array_equal(w, [1, 1])


def test_learning_rate_may_change():
    w = gt.ones((), requires_grad=True)
    optimizer = gt.optim.SGD([w], lr=0.5)
    w.grad = gt.ones(())
    optimizer.step()
    optimizer.lr = 0.25
    optimizer.step()
    assert w.item() == 0.25
    with pytest.raises(ArgumentError, match="lr=0"):
        optimizer.lr = 0
    assert "SGD, lr=0.25, 1 param" in repr(optimizer)


def test_parameters_may_come_from_a_generator():
    params = [gt.ones(2, requires_grad=True) for _ in range(3)]
    assert gt.optim.SGD((param for param in params), lr=0.1).params == params


# ---- state ----


def test_state_dies_with_its_parameter():
    optimizer = gt.optim.Adam(lr=0.1)
    w = gt.ones(1000, requires_grad=True)
    w.grad = gt.ones(1000)
    optimizer.step([w])
    (entry,) = optimizer._states._entries.values()
    buffer = weakref.ref(entry[1]["sum"])
    del w, entry
    gc.collect()
    assert len(optimizer._states) == 0
    assert buffer() is None


def test_another_parameter_has_its_own_state():
    optimizer = gt.optim.SGD(lr=1.0, momentum=0.5)
    for _ in range(20):  # a new tensor often gets the memory of the one before
        w = gt.zeros(2, requires_grad=True)
        w.grad = gt.ones(2)
        optimizer.step([w])
        np.testing.assert_array_equal(w.detach(), [-1, -1])
        del w


@pytest.mark.parametrize(("name", "options"), FORMS)
def test_state_can_be_saved(name, options, rng, tmp_path):
    def run(optimizer, steps):
        for grads in steps:
            for param, grad in zip(optimizer.params, grads, strict=True):
                param.grad = gt.Tensor(grad)
            optimizer.step()

    start, steps = initial(rng, np.float64), gradients(rng, np.float64)
    whole, parts = ([gt.tensor(x, requires_grad=True) for x in start] for _ in range(2))
    make = getattr(gt.optim, name)
    run(make(whole, **options), steps)

    first, second = make(parts, **options), make(parts, **options)
    run(first, steps[:3])
    np.savez(tmp_path / "state.npz", **first.state_dict())
    with np.load(tmp_path / "state.npz") as saved:
        second.load_state_dict(saved)
    run(second, steps[3:])
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one.detach(), other.detach())


def test_states_that_do_not_fit():
    w = gt.ones(3, requires_grad=True)
    optimizer = gt.optim.SGD([w], lr=0.1, momentum=0.9)
    for name in ("1.momentum", "momentum", "-1.momentum", "0."):
        with pytest.raises(ArgumentError, match=r"'0\.momentum'"):
            optimizer.load_state_dict({name: np.ones(3)})
    with pytest.raises(ShapeError, match=r"expected \(3,\)"):
        optimizer.load_state_dict({"0.momentum": np.ones(2)})
    with pytest.raises(ArgumentError, match="state_dict"):
        gt.optim.SGD(lr=0.1).state_dict()


# ---- bad arguments ----


def leaf():
    return gt.ones(3, requires_grad=True)


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: gt.optim.SGD(lr=0.0), ArgumentError, "SGD: got lr=0.0"),
        (lambda: gt.optim.Adam(lr=-1), ArgumentError, "Adam: got lr=-1"),
        (lambda: gt.optim.SGD(lr=float("nan")), ArgumentError, "positive"),
        (lambda: gt.optim.SGD(lr=float("inf")), ArgumentError, "positive"),
        (lambda: gt.optim.SGD(lr=0.1, momentum=1.0), ArgumentError, "momentum=1.0"),
        (lambda: gt.optim.SGD(lr=0.1, weight_decay=-1), ArgumentError, "weight_decay=-1"),
        (lambda: gt.optim.SGD(lr=0.1, nesterov=True), ArgumentError, "without momentum"),
        (lambda: gt.optim.Adam(betas=(0.9, 1.0)), ArgumentError, "betas"),
        (lambda: gt.optim.Adam(betas=(0.9,)), ArgumentError, "betas"),
        (lambda: gt.optim.Adam(eps=-1e-8), ArgumentError, "eps"),
        (lambda: gt.optim.Adam(weight_decay=-1), ArgumentError, "weight_decay"),
        (lambda: gt.optim.SGD(leaf(), lr=0.1), DTypeError, r"\[w, b\]"),
        (lambda: gt.optim.SGD(0.1), ArgumentError, "number 0.1 as parameters.*lr=0.1"),
        (lambda: gt.optim.Adam(3, lr=0.1), ArgumentError, "number 3 as parameters"),
        (lambda: gt.optim.SGD([leaf()]), ArgumentError, "SGD: got no learning rate.*lr="),
        (lambda: gt.optim.SGD(lr=0.1).step(object()), DTypeError, "object"),
        (lambda: gt.optim.SGD([np.ones(3)], lr=0.1), DTypeError, "ndarray"),
        (lambda: gt.optim.SGD([gt.ones(3)], lr=0.1), ArgumentError, "does not require"),
        (lambda: gt.optim.SGD([leaf() * 2], lr=0.1), ArgumentError, "recorded result"),
        (lambda: gt.optim.SGD(lr=0.1).step([leaf() * 2]), ArgumentError, "recorded result"),
        (lambda: gt.optim.SGD(lr=0.1).step(), ArgumentError, "SGD.step: got no parameters"),
        (lambda: gt.optim.SGD(lr=0.1).zero_grad(), ArgumentError, "zero_grad"),
    ],
)
def test_bad_arguments(make, error, match):
    with pytest.raises(error, match=match):
        make()


def test_a_parameter_that_changes_its_shape():
    w = leaf()
    optimizer = gt.optim.SGD([w], lr=0.1, momentum=0.9)
    w.grad = gt.ones(3)
    optimizer.step()
    w.value = np.ones(2)
    with pytest.raises(ShapeError, match=r"gradient of shape \(3,\)"):
        optimizer.step()
    w.grad = gt.ones(2)
    with pytest.raises(ShapeError, match=r"at its first step it had shape \(3,\)"):
        optimizer.step()


# ---- complex parameters, and parameters that come twice ----


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
def test_adam_divides_by_the_size_of_a_complex_gradient(dtype, weight_decay):
    rng = np.random.default_rng(0)
    start, *grads = (rng.normal(size=(5, 3)) + 1j * rng.normal(size=(5, 3))).astype(dtype)
    w = gt.tensor(start, requires_grad=True)
    optimizer = gt.optim.Adam([w], lr=0.1, weight_decay=weight_decay)
    expected, m, v = start, 0, 0
    for t, grad in enumerate(grads, start=1):
        w.grad = gt.Tensor(grad)
        optimizer.step()
        g = grad + weight_decay * expected
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * np.abs(g) ** 2
        expected = expected - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    assert w.dtype == dtype
    np.testing.assert_allclose(w.tolist(), expected, rtol=50 * np.finfo(dtype).eps)
    assert optimizer.state_dict()["0.square"].dtype == np.finfo(dtype).dtype


def test_a_parameter_listed_twice_is_stepped_once():
    first, second = leaf(), leaf()
    nested = {"a": [first, {"b": second}], "b": (first, second), "c": first}
    optimizer = gt.optim.SGD(nested, lr=0.5)
    assert [id(param) for param in optimizer.params] == [id(first), id(second)]
    gt.compute_gradients(gt.sum(first + second))
    optimizer.step()
    optimizer.step([first, [first]])
    assert first.tolist() == [0.0] * 3
    assert second.tolist() == [0.5] * 3
