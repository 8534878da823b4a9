"""NumPy's functions and operators on tensors: they record, or raise and name the replacement."""

import math
import operator
import re

import numpy as np
import pytest
import scipy.special

import gradtape as gt
from gradtape.errors import ConversionError, GradtapeError, UnsupportedError

X = np.array([0.5, 1.0, 2.0])
M = np.arange(6.0).reshape(2, 3) + 1


def slope(function, x):
    """The gradient of the summed result, by a backward pass through a context."""
    leaf = gt.tensor(x, requires_grad=True)
    out = function(leaf)
    assert isinstance(out, gt.Tensor), type(out)
    assert out.requires_grad
    gt.compute_gradients(out)
    return np.asarray(leaf.grad)


# ---- ufuncs and functions record ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "derivative"),
    [
        (np.exp, np.exp),
        (np.log, lambda x: 1 / x),
        (np.tanh, lambda x: 1 - np.tanh(x) ** 2),
        (np.square, lambda x: 2 * x),
        (np.negative, lambda x: -np.ones(3)),
        (scipy.special.erf, lambda x: 2 / np.sqrt(np.pi) * np.exp(-(x**2))),
        (lambda x: np.add(x, X), lambda x: np.ones(3)),
        (lambda x: np.multiply(X, x), lambda x: X),
        (lambda x: np.maximum(x, 0.7), lambda x: (x > 0.7) * 1.0),
    ],
)
def test_ufuncs_record(function, derivative):
    np.testing.assert_allclose(slope(function, X), derivative(X), rtol=1e-14)


FUNCTIONS = {
    "sum": lambda m: np.sum(m, axis=0) * X,
    "sum keepdims": lambda m: np.sum(m, axis=1, keepdims=True) * M,
    "mean": lambda m: np.mean(m) * m,
    "reshape": lambda m: np.reshape(m, (3, 2)) * M.reshape(3, 2),
    "transpose": lambda m: np.transpose(m) * M.T,
    "concatenate": lambda m: np.concatenate([m, M, m]) * m[0],
    "stack": lambda m: np.stack([m, 2 * m]) * M,
    "where": lambda m: np.where(M > 3, m * m, m),
    "einsum": lambda m: np.einsum("ij,kj->ik", m, m),
    "dot": lambda m: np.dot(m, m.T),
    "matmul": lambda m: np.matmul(m.T, m),
    "tensordot": lambda m: np.tensordot(m, m, axes=([0, 1], [0, 1])),
    "outer": lambda m: np.outer(m, m),
    "norm": lambda m: np.linalg.norm(m),
    "clip": lambda m: np.clip(m, 2.5, 4.5) * m,
    "max": lambda m: np.max(m, axis=1),
    "prod": lambda m: np.prod(m, axis=0),
    "cumsum": lambda m: np.cumsum(m) ** 2,
    "var": lambda m: np.var(m, axis=1),
    "take": lambda m: np.take(m, [0, 2], axis=1) ** 2,
    "copy": lambda m: np.copy(m) * m,
    "broadcast_to": lambda m: np.broadcast_to(m, (4, 2, 3)) * m,
    "zeros_like": lambda m: np.zeros_like(m) + m,
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_functions_record_and_have_numpys_values(function):
    tensor = function(gt.tensor(M))
    assert isinstance(tensor, gt.Tensor)
    np.testing.assert_allclose(np.asarray(tensor), function(M), rtol=1e-14)
    expected = np.zeros_like(M)
    for index in np.ndindex(M.shape):
        step = np.zeros_like(M)
        step[index] = 1e-6
        expected[index] = np.sum(function(M + step) - function(M - step)) / 2e-6
    np.testing.assert_allclose(slope(function, M), expected, rtol=1e-6, atol=1e-6)


def test_a_nested_list_of_tensors_reaches_functions_that_take_sequences():
    def f(x):
        return np.concatenate([np.stack([x[0], x[1]]), np.hstack((x, X))])

    np.testing.assert_array_equal(slope(f, X), [2, 2, 1])


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda t: scipy.special.kolmogorov(t), "scipy.special.kolmogorov"),
        (lambda t: scipy.special.mathieu_a(t, t), "scipy.special.mathieu_a"),
        (lambda t: np.packbits(t > 1), "np.packbits"),
        (lambda t: np.save("nowhere", t), "np.save"),
        (lambda t: np.frompyfunc(math.floor, 1, 1)(t), "floor"),
    ],
)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_what_gradtape_does_not_have_is_named(call, name, requires_grad):
    with pytest.raises(UnsupportedError, match=name.replace(".", r"\.")) as caught:
        call(gt.tensor(X, requires_grad=requires_grad))
    assert isinstance(caught.value, TypeError)
    assert "use t.detach().numpy()" in str(caught.value)


# ---- operators with arrays and numbers ----------------------------------------------------------

OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow]


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.__name__)
@pytest.mark.parametrize(
    "other",
    [X, X[:, None], np.float64(1.5), np.float32(1.5), np.array(1.5), 1.5, 2, [1.0, 2.0, 3.0]],
    ids=["array", "column", "float64", "float32", "0-d", "float", "int", "list"],
)
def test_arrays_and_numbers_on_either_side(op, other):
    x = gt.tensor(X + 1, requires_grad=True)
    for left, right, plain in ((x, other, (X + 1, other)), (other, x, (other, X + 1))):
        out = op(left, right)
        assert isinstance(out, gt.Tensor)
        assert out.requires_grad
        expected = op(*map(np.asarray, plain))
        assert (out.shape, out.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(np.asarray(out.detach()), expected, rtol=1e-15)


@pytest.mark.parametrize("op", [*OPERATORS, operator.floordiv, operator.mod], ids=str)
@pytest.mark.parametrize("shape", [(3,), ()])
def test_python_scalars_are_weak(op, shape):
    x = gt.tensor(np.full(shape, 2.5, np.float32), requires_grad=True)
    for number in (2, 2.5, True):
        for out in (op(x, number), op(number, x)):
            assert out.dtype == np.float32
    assert (x * 1j).dtype == np.complex64
    gt.compute_gradients(op(x, 3.0) + op(3.0, x))
    if x.grad is not None:
        assert x.grad.dtype == np.float32


def test_numpy_scalars_are_not_weak():
    x = gt.tensor(X.astype(np.float32), requires_grad=True)
    assert (x * np.float64(2)).dtype == (np.float64(2) * x).dtype == np.float64
    assert (x * np.float32(2)).dtype == np.float32
    gt.compute_gradients(np.float64(2) * x)
    assert x.grad.dtype == np.float32


@pytest.mark.parametrize("op", [operator.lt, operator.ge, operator.eq, operator.ne])
def test_comparisons_are_untracked_and_elementwise(op):
    x = gt.tensor(X, requires_grad=True)
    for other in (1.0, X[::-1].copy(), gt.tensor(X[::-1].copy())):
        out = op(x, other)
        assert isinstance(out, gt.Tensor)
        assert not out.requires_grad
        np.testing.assert_array_equal(np.asarray(out), op(X, np.asarray(other)))
        reflected = op(other, x)
        np.testing.assert_array_equal(np.asarray(reflected), op(np.asarray(other), X))


def test_matmul_with_an_array_on_either_side():
    np.testing.assert_array_equal(slope(lambda x: M @ x, X), M.sum(0))
    np.testing.assert_array_equal(slope(lambda x: x @ M.T, X), M.sum(0))


def test_foreign_classes_get_their_say():
    class Other:
        def __radd__(self, other):
            return "radd"

        def __rmatmul__(self, other):
            return "rmatmul"

    assert gt.tensor(X) + Other() == "radd"
    assert gt.tensor(X) @ Other() == "rmatmul"
    with pytest.raises(TypeError):
        gt.tensor(X) + "x"
    with pytest.raises(TypeError):
        gt.tensor(X) * None


# ---- what would lose a gradient raises ----------------------------------------------------------


def number():
    return gt.tensor(2.0, requires_grad=True) * 1.5


def vector():
    return gt.tensor(X, requires_grad=True) * 2.0


def fill(array, index, value):
    array[index] = value


LOSING = {
    "float": lambda: float(number()),
    "int": lambda: int(number()),
    "complex": lambda: complex(number()),
    "math.sin": lambda: math.sin(number()),
    "round": lambda: math.floor(number()),
    "asarray": lambda: np.asarray(vector()),
    "array": lambda: np.array(vector()),
    "array of dtype": lambda: np.array(vector(), dtype=np.float32),
    "array of list": lambda: np.array([number(), number()]),
    "array of vectors": lambda: np.array([vector(), vector()]),
    "numpy()": lambda: vector().numpy(),
    "full": lambda: np.full(3, number()),
    "full of vector": lambda: np.full(3, vector()),
    "full of dtype": lambda: np.full(3, number(), dtype=np.float64),
    "ascontiguousarray": lambda: np.ascontiguousarray(vector()),
    "np.float64": lambda: np.float64(number()),
    "tensor of it": lambda: gt.tensor(vector()),
    "a leaf": lambda: np.asarray(gt.tensor(X, requires_grad=True)),
}


@pytest.mark.parametrize("lose", LOSING.values(), ids=LOSING.keys())
def test_conversion_of_a_recorded_tensor_raises(lose):
    with pytest.raises(GradtapeError):
        lose()


def on_a_tape(function, x):
    tape = gt.GradientTape()  # one that is dropped does not record
    return function(tape.watch(x))


@pytest.mark.parametrize(
    "run",
    [
        lambda f, x: gt.grad(f)(x),
        lambda f, x: gt.vjp(f, x),
        lambda f, x: gt.jvp(f, (x,), (x,)),
        lambda f, x: gt.vmap(f)(np.array([x, x])),
        lambda f, x: gt.grad(lambda y: gt.jvp(lambda z: f(y), (1.0,), (1.0,))[0])(x),
        on_a_tape,
    ],
    ids=["grad", "vjp", "jvp", "vmap", "grad of jvp", "tape"],
)
@pytest.mark.parametrize(
    "convert",
    [float, math.sin, lambda x: np.asarray(x, float), lambda x: np.array([x, x], float)],
    ids=["float", "math.sin", "asarray", "array"],
)
def test_conversion_inside_transforms_raises(run, convert):
    with pytest.raises(ConversionError):
        run(lambda x: x * convert(x), 2.0)


@pytest.mark.parametrize(
    ("convert", "advice"),
    [
        (lambda: float(number()), r"item\(\).*detach\(\)"),
        (lambda: math.sin(number()), "np.sin"),
        (lambda: np.array([number(), number()]), "np.stack"),
        (lambda: np.full(3, number()), r"np.full_like"),
    ],
)
def test_the_error_names_the_ways_out(convert, advice):
    with pytest.raises(ConversionError, match=advice) as caught:
        convert()
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("index", "make"), [(0, number), (slice(None), vector), ([0, 1, 2], vector)]
)
def test_writing_into_an_ndarray_raises(index, make):
    buffer = np.zeros(3)
    with pytest.raises((GradtapeError, ValueError)) as caught:
        fill(buffer, index, make())
    error = caught.value
    chain = [error, error.__cause__, error.__context__]
    assert any(isinstance(e, ConversionError) and "zeros_like" in str(e) for e in chain)
    assert not buffer.any()


@pytest.mark.parametrize("op", [operator.iadd, operator.imul, operator.isub, operator.itruediv])
def test_augmented_assignment_to_an_ndarray_raises(op):
    buffer = X.copy()
    symbol = {"iadd": "+", "imul": "*", "isub": "-", "itruediv": "/"}[op.__name__]
    advice = f"an ndarray cannot hold the history of a tensor; write w = w {symbol} t instead of w"
    with pytest.raises(UnsupportedError, match=re.escape(advice)):
        op(buffer, vector())
    np.testing.assert_array_equal(buffer, X)


@pytest.mark.parametrize("op", [operator.iadd, operator.imul, operator.isub, operator.itruediv])
def test_augmented_assignment_of_an_untracked_tensor_to_an_ndarray(op):
    buffer, expected = X.copy(), op(X.copy(), X + 1)
    same = buffer
    assert op(buffer, gt.tensor(X + 1)) is same
    np.testing.assert_array_equal(buffer, expected)
    out = np.zeros(3)
    assert np.exp(gt.tensor(X), out=out) is out
    np.testing.assert_array_equal(out, np.exp(X))
    with gt.no_grad():
        np.subtract(X, gt.tensor(X, requires_grad=True), out)
    assert not out.any()


@pytest.mark.parametrize(
    "call",
    [
        lambda out: np.exp(vector(), out=out),
        lambda out: np.add(vector(), X, out=out),
        lambda out: np.add(X, vector(), out),
        lambda out: np.sum(gt.stack([vector()]), axis=0, out=out),
        lambda out: np.matmul(np.eye(3), vector(), out=out),
        lambda out: np.concatenate([vector()], out=out),
    ],
)
def test_out_is_refused(call):
    out = np.zeros(3)
    with pytest.raises(GradtapeError, match="out"):
        call(out)
    assert not out.any()


def test_out_may_be_a_tensor():
    target = gt.zeros(3)
    np.add.reduce(gt.tensor(M), out=target)
    np.testing.assert_array_equal(np.asarray(target), M.sum(0))
    np.add(gt.tensor(X), 1.0, out=target)
    np.testing.assert_array_equal(np.asarray(target), X + 1)
