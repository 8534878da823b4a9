"""autograd's differential operators: values by formulas, conventions, and what is refused."""

import numpy as np
import pytest

import gradtape as gt
import gradtape.numpy as gnp
from gradtape.compat import autograd as ag
from gradtape.compat.autograd import core
from gradtape.compat.autograd.differential_operators import make_jvp_reversemode
from gradtape.errors import ArgumentError, DTypeError

close = np.testing.assert_allclose


def cubes(x, y, scale=1.0):
    return gnp.sum(scale * x**3 * y)


X, Y = np.array([1.0, -2.0, 0.5]), np.array([3.0, 1.0, 2.0])


# ---- gradients ----------------------------------------------------------------------------------


def test_argnum_is_a_position_or_several():
    close(ag.grad(cubes)(X, Y), 3 * X**2 * Y)
    close(ag.grad(cubes, 1)(X, Y, scale=2.0), 2 * X**3)
    close(ag.grad(cubes, -1)(X, Y), X**3)
    for argnum in ([1, 0], (1, 0)):
        of_y, of_x = ag.grad(cubes, argnum)(X, Y)
        close(of_y, X**3)
        close(of_x, 3 * X**2 * Y)
    assert isinstance(ag.grad(cubes, argnum=[0])(X, Y), tuple)


def test_value_and_grad():
    value, (of_y, of_x) = ag.value_and_grad(cubes, (1, 0))(X, Y)
    close(value, np.sum(X**3 * Y))
    close(of_y, X**3)
    close(of_x, 3 * X**2 * Y)
    # A value may be an argument itself, and must not share memory with it.
    x = np.array([2.0])
    value, _ = ag.value_and_grad(lambda x: x)(x)
    assert not np.shares_memory(value, x)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_results_of_one_element_have_gradients(shape):
    close(ag.grad(lambda x: gnp.reshape(gnp.sum(x**2), shape))(X), 2 * X)


def test_results_are_plain():
    assert type(ag.grad(cubes)(X, Y)) is np.ndarray
    assert isinstance(ag.grad(lambda x: x**2)(3.0), float)
    found = ag.grad(lambda p: p["a"] * p["b"][0] + p["b"][1][0])({"a": 2.0, "b": (3.0, [1.0])})
    assert found == {"a": 3.0, "b": (2.0, [1.0])}
    assert type(found["b"]) is tuple


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_gradients_have_the_dtype_of_the_argument(dtype):
    assert ag.grad(lambda x: gnp.sum(x**2))(X.astype(dtype)).dtype == dtype


def test_elementwise_grad_and_deriv():
    close(ag.elementwise_grad(gnp.tanh)(X), 1 - np.tanh(X) ** 2)
    close(ag.deriv(gnp.tanh)(X), 1 - np.tanh(X) ** 2)
    nth = gnp.tanh
    for _ in range(3):
        nth = ag.elementwise_grad(nth)
    t = np.tanh(X)
    close(nth(X), (1 - t**2) * (6 * t**2 - 2))


def test_named_arguments():
    close(ag.grad_named(cubes, "y")(X, Y), X**3)
    found = ag.multigrad_dict(lambda a, b, c=3.0: a * b * c)(2.0, b=5.0)
    assert found == {"a": 15.0, "b": 6.0, "c": 10.0}
    found = ag.multigrad_dict(lambda a, *rest, **named: a * rest[0] * named["z"])(2.0, 3.0, z=4.0)
    assert found == {"a": 12.0, "rest": (8.0,), "named": {"z": 6.0}}


def test_grad_and_aux():
    gradient, aux = ag.grad_and_aux(lambda x: (gnp.sum(x**2), {"x": x, "name": "x"}))(X)
    close(gradient, 2 * X)
    assert aux["name"] == "x"
    close(aux["x"], X)


def test_names_and_docs():
    def f(x):
        """A function."""

    made = ag.grad(f, 1)
    assert made.__name__ == "grad_of_f_wrt_argnum_1"
    assert "grad of function f with respect to argument number 1" in made.__doc__
    assert ag.grad.__name__ == "grad"


# ---- matrices and products ----------------------------------------------------------------------

A = np.array([[1.0, 2.0, 0.5], [-1.0, 0.3, 2.0]])


def tanhs(x):
    return gnp.tanh(A @ x)


JACOBIAN = (1 - np.tanh(A @ X) ** 2)[:, None] * A


def test_jacobian():
    close(ag.jacobian(tanhs)(X), JACOBIAN)
    close(ag.jacobian(lambda s: gnp.array([s, s**2]))(3.0), [1.0, 6.0])
    assert ag.jacobian(lambda x: x[:, None, None] * x)(X).shape == (3, 1, 3, 3)
    assert ag.jacobian(lambda x: x[:0])(X).shape == (0, 3)


def test_hessian_and_products(rng):
    def f(x):
        return gnp.sum(gnp.exp(A @ x))

    H = A.T @ np.diag(np.exp(A @ X)) @ A
    v, w = rng.standard_normal(3), rng.standard_normal(2)
    close(ag.hessian(f)(X), H)
    close(ag.hessian_vector_product(f)(X, v), H @ v)
    hvp, gradient = ag.make_hvp(f)(X)
    close(hvp(v), H @ v)
    close(gradient, A.T @ np.exp(A @ X))
    close(ag.vector_jacobian_product(tanhs)(X, w), w @ JACOBIAN)
    value, pushed = ag.make_jvp(tanhs)(X)(v)
    close(value, np.tanh(A @ X))
    close(pushed, JACOBIAN @ v)
    close(make_jvp_reversemode(tanhs)(X)(v), JACOBIAN @ v)
    vjp, value = ag.make_vjp(tanhs)(X)
    close(vjp(w), w @ JACOBIAN)
    close(vjp(2 * w), 2 * w @ JACOBIAN)
    close(ag.make_ggnvp(tanhs)(X)(v), JACOBIAN.T @ JACOBIAN @ v)
    close(
        ag.make_ggnvp(tanhs, lambda y: gnp.sum(y**3))(X)(v),
        JACOBIAN.T @ (6 * np.tanh(A @ X) * (JACOBIAN @ v)),
    )


def test_a_hessian_of_third_order():
    found = ag.jacobian(ag.hessian(lambda x: x[0] ** 2 * x[1] * x[2]))(X)
    for place in np.ndindex(3, 3, 3):
        expected = {(0, 0, 1): 2 * X[2], (0, 0, 2): 2 * X[1], (0, 1, 2): 2 * X[0]}
        close(found[place], expected.get(tuple(sorted(place)), 0.0), atol=1e-14)


def test_checkpoint():
    f = ag.checkpoint(lambda x, scale=1.0: scale * gnp.sin(gnp.sin(x)))
    close(ag.grad(f)(0.3, scale=2.0), 2 * np.cos(np.sin(0.3)) * np.cos(0.3))
    close(ag.grad(ag.grad(f))(0.0), 0.0)


@pytest.mark.parametrize("wrap", [lambda f: f, gt.jit])
def test_inside_gradtapes_own_transforms(wrap):
    gradient = wrap(ag.grad(cubes))
    close(gradient(X, Y), 3 * X**2 * Y)
    close(gt.jacfwd(gradient)(X, Y), np.diag(6 * X * Y))
    close(gt.jacrev(gradient)(X, Y), np.diag(6 * X * Y))
    close(gt.vmap(gradient)(np.stack([X, Y]), np.stack([Y, X])), [3 * X**2 * Y, 3 * Y**2 * X])


# ---- complex numbers ----------------------------------------------------------------------------

Z = np.array([1.0 + 2.0j, -0.5 + 0.3j])


def test_gradients_of_complex_arguments_are_conjugates_of_gradtapes():
    # df/dx − i·df/dy, for f = |z|² + 3·Im z
    def f(z):
        return gnp.sum(gnp.abs(z) ** 2 + 3.0 * gnp.imag(z))

    close(ag.grad(f)(Z), 2 * np.conj(Z) - 3j)
    close(gt.grad(f)(Z), 2 * Z + 3j)
    close(ag.jacobian(lambda z: gnp.real(z**2))(Z), np.diag(2 * Z))


def test_holomorphic_grad():
    close(ag.holomorphic_grad(lambda z: gnp.sum(z**3))(Z), 3 * Z**2)
    with pytest.warns(UserWarning, match="not complex"):
        close(ag.holomorphic_grad(lambda x: x**2 + 0j)(3.0), 6.0)


def test_cotangents_of_complex_results():
    vjp, value = ag.make_vjp(lambda z: z**2)(Z)
    close(value, Z**2)
    g = np.array([1.0 + 1.0j, 2.0 - 1.0j])
    close(vjp(g), g * 2 * Z)  # no conjugate anywhere: that is the convention
    vjp, _ = ag.make_vjp(lambda x: x * (2.0 + 1.0j))(3.0)
    close(vjp(1.0 + 1.0j), np.real((1 + 1j) * (2 + 1j)))


# ---- what depends on nothing --------------------------------------------------------------------


@pytest.mark.parametrize("out", [1.0, np.ones(1)])
def test_a_constant_warns(out):
    with pytest.warns(UserWarning, match="Output seems independent of input") as caught:
        close(ag.grad(lambda x: out)(X), np.zeros(3))
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="independent"):
        vjp, _ = core.make_vjp(lambda x: out > 2, X)
    close(vjp(1.0), np.zeros(3))


# ---- what is refused ----------------------------------------------------------------------------

REFUSED = [
    (lambda: ag.grad(cubes)(X > 0, Y), DTypeError, r"argument 0 is bool\[3\].*astype"),
    (lambda: ag.grad(cubes, 1)(X, 3), DTypeError, "argument 1 is the int 3"),
    (lambda: ag.grad(cubes, (0, 1))(X, 3), DTypeError, "argument 1 is the int 3"),
    (lambda: ag.grad(gnp.sin)({"a": "x"}), DTypeError, r"argument 0\['a'\] is a str"),
    (lambda: ag.grad(gnp.sin)(X), DTypeError, r"scalar-output functions, got float64\[3\]"),
    (lambda: ag.grad(lambda x: x * 1j)(1.0), DTypeError, "real scalar-output"),
    (lambda: ag.value_and_grad(gnp.sin)(X), DTypeError, "Value_and_grad only applies"),
    (lambda: ag.elementwise_grad(lambda x: x * 1j)(X), DTypeError, "real-output"),
    (lambda: ag.jacobian(lambda x: x * 1j)(X), DTypeError, "split the result"),
    (lambda: ag.jacobian(lambda x: [x, x])(X), DTypeError, r"2 result\(s\)"),
    (lambda: ag.jacobian(lambda x: x["a"])({"a": 1.0}), DTypeError, "got a dict as argument"),
    (lambda: ag.grad(cubes, 2)(X, Y), ArgumentError, "argnum=2 for 2 positional"),
    (lambda: ag.grad(cubes, (0, -2))(X, Y), ArgumentError, "each argument once"),
    (lambda: ag.grad(cubes, "y"), ArgumentError, "argnum='y'"),
    (lambda: ag.grad(3.0), ArgumentError, "got a float, expected a function"),
    (lambda: ag.grad_named(cubes, "w"), ArgumentError, "x, y, scale"),
    (lambda: ag.grad_and_aux(gnp.sum)(X), ArgumentError, "expected a pair"),
]


@pytest.mark.filterwarnings("ignore:Output seems independent")
@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.filterwarnings("ignore:Output seems independent")
def test_errors_are_those_that_programs_of_autograd_catch():
    for call in (
        lambda: ag.grad(gnp.sin)(X),
        lambda: ag.grad(lambda x: gnp.allclose(x, x))(X),
        lambda: ag.grad(cubes)(3, Y),
    ):
        with pytest.raises(TypeError):
            call()


def test_arrays_of_integers_are_differentiated_by_as_floats():
    """As in autograd; one integer is refused by both."""
    at = np.arange(3)
    for got in (
        ag.elementwise_grad(lambda t: t**2)(at),
        np.diag(ag.jacobian(lambda t: t**2)(at)),
        ag.make_vjp(lambda t: t**2)(at)[0](np.ones(3)),
        ag.make_jvp(lambda t: t**2)(at)(np.ones(3))[1],
    ):
        np.testing.assert_array_equal(got, [0.0, 2.0, 4.0])
        assert got.dtype == float
    assert ag.grad(lambda x: gnp.sum(ag.elementwise_grad(lambda t: x * t**2)(at)))(2.0) == 6.0
    with pytest.raises(DTypeError, match="use float"):
        ag.grad(lambda t: t**2)(3)
