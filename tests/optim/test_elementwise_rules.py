"""The rules of optimizers against PyTorch's, and against formulas where it has none."""

import numpy as np
import pytest

import gradtape as gt
from optimizer_rules import EVERY, IN_TORCH, NOT_IN_TORCH

SHAPES = [(4, 3), (3,), (), (300, 2)]
STEPS = 100


def arrays_of(rng, dtype):
    parts = [rng.normal(size=(2, *shape)) for shape in SHAPES]
    is_complex = np.dtype(dtype).kind == "c"
    return [np.array(x[0] + 1j * x[1] if is_complex else x[0], dtype) for x in parts]


def run_of(name, options, dtype, steps=STEPS):
    """The start, the gradients of all steps, and the values after them."""
    rng = np.random.default_rng(1)
    start = arrays_of(rng, dtype)
    start[2][...] = 0.0  # a norm of zero
    grads = [arrays_of(rng, dtype) for _ in range(steps)]
    for step in grads[:3]:
        step[1][...] = 0.0  # no gradient yet
    params = [gt.tensor(x, requires_grad=True) for x in start]
    optimizer = getattr(gt.optim, name)(params, **options)
    for number, step in enumerate(grads):
        step[3] = None if number == 5 else step[3]
        optimizer.step(step)
    return start, grads, [np.asarray(param.detach()) for param in params]


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize(("name", "options"), IN_TORCH)
def test_rules_are_those_of_torch(name, options, dtype):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    start, grads, got = run_of(name, options, dtype)
    params = [torch.tensor(x, requires_grad=True) for x in start]
    torch.set_default_dtype(torch.float64)  # of the product of momenta in NAdam
    try:
        theirs = getattr(torch.optim, name)(params, **options)
        for step in grads:
            for param, gradient in zip(params, step, strict=True):
                param.grad = None if gradient is None else torch.tensor(gradient)
            theirs.step()
    finally:
        torch.set_default_dtype(torch.float32)
    for x, param in zip(got, params, strict=True):
        np.testing.assert_allclose(x, param.detach().numpy(), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", sorted({name for name, _ in IN_TORCH}))
def test_defaults_are_those_of_torch(name):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    theirs = getattr(torch.optim, name)([torch.zeros(1, requires_grad=True)], lr=0.5).defaults
    ours = getattr(gt.optim, name)(lr=0.5).defaults
    assert {key: theirs[key] for key in ours} == dict(ours)
    assert (
        name == "SGD"
        or getattr(gt.optim, name)().lr
        == getattr(torch.optim, name)([torch.zeros(1, requires_grad=True)]).defaults["lr"]
    )


@pytest.mark.parametrize(("name", "options", "formula", "numbers"), NOT_IN_TORCH)
def test_rules_that_torch_lacks_are_their_formulas(name, options, formula, numbers):
    start, grads, got = run_of(name, options, np.float64)
    for place, x in enumerate(start):
        m, s, t = np.zeros_like(x), np.zeros_like(x), 0
        for step in grads:
            if step[place] is not None:
                t += 1
                x, m, s = formula(x, step[place], m, s, t, **numbers)
        np.testing.assert_allclose(got[place], x, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(("name", "options"), EVERY)
def test_the_pure_form_and_compiled_code_do_the_same(name, options):
    start, grads, expected = run_of(name, options, np.float64, steps=5)
    optimizer = getattr(gt.optim, name)(**options)
    pure, compiled = (list(start), optimizer.init(start)), (list(start), optimizer.init(start))
    apply = gt.jit(optimizer.apply)
    for step in grads:
        pure = optimizer.apply(pure[0], step, pure[1])
        compiled = apply(compiled[0], step, compiled[1])
    for one, other, x in zip(pure[0], compiled[0], expected, strict=True):
        np.testing.assert_array_equal(one, x)
        np.testing.assert_allclose(other, x, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("name", "options"), EVERY)
def test_going_up_is_going_down_against_the_gradient(name, options):
    options = {"lr": 0.01} | options | {"maximize": not options.get("maximize", False)}
    w, gradient = np.array([1.0, -2.0]), np.array([0.5, 0.1])
    up = getattr(gt.optim, name)(**options)
    down = up.replace(maximize=not up.defaults["maximize"])
    got, _ = up.apply(w, gradient, up.init(w))
    expected, _ = down.apply(w, -gradient, down.init(w))
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("name", "options"), EVERY)
def test_slopes_by_the_learning_rate(name, options):
    def moved(lr):
        optimizer = getattr(gt.optim, name)(**(options | {"lr": lr}))
        w = np.array([1.0, -2.0, 0.0])
        state = optimizer.init(w)
        for _ in range(7):  # the rectified form of RAdam begins at the sixth
            w, state = optimizer.apply(w, 2 * w * np.array([1.0, 1.0, 0.0]), state)
        return gt.sum(w)

    step = 1e-6
    slope = (moved(0.01 + step) - moved(0.01 - step)) / (2 * step)
    for transform in (lambda f: f, gt.jit):
        np.testing.assert_allclose(transform(gt.grad(moved))(0.01), slope, rtol=1e-5, atol=1e-8)
