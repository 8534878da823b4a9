"""Functions whose result lost its history because `item()` or `tolist()` made numbers of it."""

import math

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ConversionError, DifferencesWarning
from gradtape.scipy import optimize

X = np.array([1.0, 2.0])
LOSSES = {
    "item": lambda x: np.sum(x**2).item(),
    "tolist": lambda x: math.hypot(*x.tolist()),
    "array": lambda x: np.sum(np.array(x.tolist()) ** 2),
}
TRANSFORMS = {
    "grad": lambda f: gt.grad(f)(X),
    "vjp": lambda f: gt.vjp(f, X),
    "jvp": lambda f: gt.jvp(f, (X,), (X,)),
    "jacobian": lambda f: gt.jacobian(f)(X),
    "hessian": lambda f: gt.hessian(f)(X),
    "nested": lambda f: gt.grad(lambda y: gt.grad(lambda x: f(x * y))(X)[0])(2.0),
}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_a_result_made_of_plain_numbers_raises(transform, loss):
    with pytest.raises(ConversionError, match=r"read as plain numbers by (item|tolist)\(\)"):
        transform(loss)


def test_minimize_takes_differences_of_such_a_function():
    with pytest.warns(DifferencesWarning, match=r"by item\(\)"):
        found = optimize.minimize(lambda x: np.sum((x - X) ** 2).item(), np.zeros(2))
    np.testing.assert_allclose(found.x, X, atol=1e-6)


def test_numbers_may_be_read_for_other_purposes():
    seen = []

    def loss(x):
        seen.append(x[0].item())
        return np.sum(3.0 * x)

    np.testing.assert_array_equal(gt.grad(loss)(X), [3.0, 3.0])
    np.testing.assert_array_equal(gt.grad(lambda x: np.sum(gt.grad(loss)(x)))(X), [0.0, 0.0])
    np.testing.assert_array_equal(gt.jvp(loss, (X,), (X,))[1], 9.0)
    assert seen == [1.0] * 3


def test_steps_and_constants_have_the_gradient_zero():
    assert gt.grad(lambda x: (x.item(), np.floor(x))[1])(2.5) == 0.0
    assert gt.grad(lambda x: 3.0)(2.5) == 0.0
    assert gt.value_and_grad(lambda x: (x * x, x.item()), has_aux=True)(2.0)[1] == 4.0
