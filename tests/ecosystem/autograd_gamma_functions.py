"""The functions of autograd-gamma, whose release has no tests: values and derivatives."""

import autograd.numpy as np
import autograd_gamma as ag
import numpy
import pytest
import scipy.special
from autograd import elementwise_grad, grad, jacobian
from autograd.scipy.special import gammaln

A = numpy.array([0.5, 1.0, 2.5, 7.0])
X = numpy.array([0.3, 1.7, 2.0, 5.5])
UNIT = numpy.array([0.2, 0.45, 0.6, 0.9])

# Name, arguments, SciPy's function.
CASES = {
    "gammainc": ((A, X), scipy.special.gammainc),
    "gammaincc": ((A, X), scipy.special.gammaincc),
    "gammaincln": ((A, X), lambda a, x: numpy.log(scipy.special.gammainc(a, x))),
    "gammainccln": ((A, X), lambda a, x: numpy.log(scipy.special.gammaincc(a, x))),
    "gammaincinv": ((A, UNIT), scipy.special.gammaincinv),
    "gammainccinv": ((A, UNIT), scipy.special.gammainccinv),
    "betainc": ((A, X, UNIT), scipy.special.betainc),
    "betaincln": ((A, X, UNIT), lambda a, b, x: numpy.log(scipy.special.betainc(a, b, x))),
    "betaincinv": ((A, X, UNIT), scipy.special.betaincinv),
}
ARGUMENTS = [(name, n) for name, (args, _) in CASES.items() for n in range(len(args))]


def difference(f, args, n, step=1e-4):
    """The derivative for argument n, to fourth order in the step."""
    h = step * args[n]

    def at(k):
        return f(*args[:n], args[n] + k * h, *args[n + 1 :])

    return (at(-2) - 8 * at(-1) + 8 * at(1) - at(2)) / (12 * h)


@pytest.mark.parametrize("name", CASES)
def test_value(name, found):
    args, reference = CASES[name]
    value = getattr(ag, name)(*args)
    numpy.testing.assert_allclose(value, reference(*args), rtol=1e-12)
    found("value", value)


@pytest.mark.parametrize(("name", "n"), ARGUMENTS)
def test_gradient(name, n, found):
    args, reference = CASES[name]
    slopes = elementwise_grad(getattr(ag, name), n)(*args)
    numpy.testing.assert_allclose(slopes, difference(reference, args, n), rtol=1e-5, atol=1e-7)
    found("gradient", slopes)


@pytest.mark.parametrize(("name", "n"), ARGUMENTS)
def test_gradient_of_one_number(name, n, found):
    args, reference = CASES[name]
    one = tuple(float(arg[1]) for arg in args)
    slope = grad(getattr(ag, name), n)(*one)
    numpy.testing.assert_allclose(slope, difference(reference, one, n), rtol=1e-5)
    found("gradient", slope)


@pytest.mark.parametrize(("name", "n"), ARGUMENTS)
def test_gradient_of_broadcast_argument(name, n, found):
    args, reference = CASES[name]
    mixed = tuple(arg if k == n else arg[:, None] for k, arg in enumerate(args))
    slopes = grad(lambda x: np.sum(getattr(ag, name)(*mixed[:n], x, *mixed[n + 1 :])))(mixed[n])
    numpy.testing.assert_allclose(
        slopes, numpy.sum(difference(reference, mixed, n), axis=0), rtol=1e-5, atol=1e-7
    )
    found("gradient", slopes)


@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "betainc"])
def test_second_derivative_of_last_argument(name, found):
    args, reference = CASES[name]
    n = len(args) - 1
    second = elementwise_grad(elementwise_grad(getattr(ag, name), n), n)(*args)
    expected = difference(lambda *a: difference(reference, a, n, 1e-3), args, n, 1e-3)
    numpy.testing.assert_allclose(second, expected, rtol=1e-4, atol=1e-6)
    found("second derivative", second)


def test_fit_of_a_gamma_distribution(found):
    """Newton's method on a likelihood with observed and censored times."""
    times = numpy.random.default_rng(0).gamma(2.0, 3.0, 200)
    seen = times < 8.0
    cut = numpy.minimum(times, 8.0)

    def loss(logs):
        shape, rate = np.exp(logs[0]), np.exp(logs[1])
        died = shape * np.log(rate) + (shape - 1) * np.log(cut) - rate * cut - gammaln(shape)
        return -np.mean(np.where(seen, died, ag.gammainccln(shape, rate * cut)))

    at = numpy.array([0.5, -1.0])
    slope, bend = grad(loss), jacobian(grad(loss))
    for _ in range(12):
        at = at - numpy.linalg.solve(bend(at), slope(at))
    assert numpy.max(numpy.abs(slope(at))) < 1e-8
    numpy.testing.assert_allclose(numpy.exp(at), [2.0, 1 / 3.0], rtol=0.3)
    found("parameters", at)
