"""`grad`, `value_and_grad`, `vjp`, `jvp`: arguments, containers, what comes out, higher orders."""

import numpy as np
import pytest
import scipy.optimize

import gradtape as gt
from gradtape import containers
from gradtape.errors import (
    ArgumentError,
    ConversionError,
    DTypeError,
    GradtapeError,
    LeakedTensorError,
    ShapeError,
)

X = np.array([1.0, 2.0, 3.0])


# ---- which arguments ----------------------------------------------------------------------------


def polynomial(x, y, z=1.0, *, scale=1.0):
    return scale * np.sum(x * x * y) + z


@pytest.mark.parametrize(
    ("argnums", "expected"),
    [
        (0, 12.0),
        (1, 4.0),
        (-1, 1.0),
        (-3, 12.0),
        ((0,), (12.0,)),
        ((2, 0), (1.0, 12.0)),
        ([1, -1], (4.0, 1.0)),
    ],
)
def test_argnums(argnums, expected):
    assert gt.grad(polynomial, argnums)(2.0, 3.0, 5.0) == expected
    assert gt.value_and_grad(polynomial, argnums)(2.0, 3.0, 5.0) == (17.0, expected)


@pytest.mark.parametrize("argnums", [2, -3, (0, 2)])
@pytest.mark.parametrize("transform", [gt.grad, gt.value_and_grad, gt.jacrev, gt.jacfwd])
def test_argnums_out_of_range(transform, argnums):
    with pytest.raises(ArgumentError, match=r"2 positional argument.*by position"):
        transform(polynomial, argnums)(2.0, 3.0)


@pytest.mark.parametrize("argnums", [(0, 0), (1, -1)])
def test_an_argument_named_twice_is_refused(argnums):
    with pytest.raises(ArgumentError):
        gt.grad(lambda x, y: x * x * y, argnums)(2.0, 3.0)


def test_keyword_arguments_are_passed_on():
    assert gt.grad(polynomial)(2.0, 3.0, scale=10.0) == 120.0
    assert gt.grad(polynomial)(2.0, y=3.0) == 12.0


def test_one_array_given_twice_is_two_arguments():
    assert gt.grad(lambda a, b: np.sum(a * a * b), (0, 1))(X, X)[0].tolist() == (2 * X * X).tolist()
    x = gt.tensor(2.0)
    assert float(gt.grad(lambda a, b: a * b)(x, x)) == 2.0
    both = [x, x]
    assert [float(g) for g in gt.grad(lambda pair: pair[0] * pair[1] ** 2)(both)] == [4.0, 8.0]


def test_the_wrapped_function_keeps_its_name():
    def energy(x):
        """Docstring of it."""
        return x * x

    for transform in (gt.grad, gt.value_and_grad, gt.vmap, gt.jacfwd, gt.jacrev, gt.jacobian):
        assert transform(energy).__doc__ == "Docstring of it."


# ---- auxiliary results --------------------------------------------------------------------------


def with_aux(x):
    y = x * x
    return np.sum(y), {"squares": y, "name": "aux", "count": 3, "none": None}


def test_has_aux():
    slope, aux = gt.grad(with_aux, has_aux=True)(X)
    (total, aux2), slope2 = gt.value_and_grad(with_aux, has_aux=True)(X)
    assert slope.tolist() == slope2.tolist() == [2, 4, 6]
    assert total == 14.0
    for found in (aux, aux2):
        assert type(found["squares"]) is np.ndarray
        assert found["squares"].tolist() == [1, 4, 9]
        assert (found["name"], found["count"], found["none"]) == ("aux", 3, None)


def test_has_aux_of_vjp_and_jvp():
    out, pullback, aux = gt.vjp(with_aux, X, has_aux=True)
    assert out == 14.0
    assert pullback(1.0)[0].tolist() == [2, 4, 6]
    assert aux["squares"].tolist() == [1, 4, 9]
    out, tangent, aux = gt.jvp(with_aux, (X,), (np.ones(3),), has_aux=True)
    assert (out, tangent) == (14.0, 12.0)
    assert aux["squares"].tolist() == [1, 4, 9]
    assert aux["name"] == "aux"


def test_aux_of_an_inner_transform_is_differentiable_outside():
    def outer(x):
        slope, square = gt.grad(lambda y: (y**3, y * y), has_aux=True)(x)
        return slope + square

    assert gt.grad(outer)(2.0) == 6 * 2.0 + 2 * 2.0


@pytest.mark.parametrize("returned", [1.0, (1.0, 2.0, 3.0), [1.0, 2.0]])
def test_has_aux_needs_a_pair(returned):
    with pytest.raises(ShapeError, match="pair"):
        gt.grad(lambda x: returned, has_aux=True)(2.0)


# ---- containers ---------------------------------------------------------------------------------


def test_nested_containers_in_and_out():
    params = {"w": X, "b": [2.0, (np.float32(3), None)], "empty": {}}

    def loss(p):
        return np.sum(p["w"] * p["b"][0]) * p["b"][1][0]

    grads = gt.grad(loss)(params)
    assert list(grads) == ["w", "b", "empty"]
    assert grads["w"].tolist() == [6, 6, 6]
    assert grads["b"][0] == 18.0
    assert isinstance(grads["b"][1], tuple)
    assert grads["b"][1][0] == 12.0
    assert type(grads["b"][1][0]) is np.float32
    assert grads["b"][1][1] is None
    assert grads["empty"] == {}


def test_vjp_and_jvp_of_containers():
    def f(p, q):
        return {"product": p["a"] * q[0], "sum": [p["a"] + q[1]]}

    p, q = {"a": X}, [2.0, np.ones(3)]
    out, pullback = gt.vjp(f, p, q)
    assert out["product"].tolist() == [2, 4, 6]
    by_p, by_q = pullback({"product": np.ones(3), "sum": [X]})
    assert by_p["a"].tolist() == [3, 4, 5]
    assert by_q[0] == 6.0
    assert by_q[1].tolist() == X.tolist()
    _, tangent = gt.jvp(f, (p, q), ({"a": np.ones(3)}, [1.0, np.zeros(3)]))
    assert tangent["product"].tolist() == [3, 4, 5]
    assert tangent["sum"][0].tolist() == [1, 1, 1]


def test_containers_that_do_not_match():
    _, pullback = gt.vjp(lambda x: (x, x), X)
    with pytest.raises(ShapeError, match="structure"):
        pullback([X, X])
    with pytest.raises(ShapeError, match=r"\(2,\).*\(3,\)"):
        pullback((X, np.ones(2)))
    with pytest.raises(ShapeError, match="structure"):
        gt.jvp(lambda x, y: x, (X, X), (X,))
    with pytest.raises(ShapeError, match=r"\(2,\).*\(3,\)"):
        gt.jvp(lambda x: x, (X,), (np.ones(2),))


def test_what_is_no_array_is_refused():
    with pytest.raises(DTypeError, match="str"):
        gt.grad(lambda p: p["x"] ** 2)({"x": 2.0, "name": "weights"})
    with pytest.raises(DTypeError, match="object"):
        gt.grad(lambda x: 1.0)(object())


# ---- arrays in, arrays out; tensors in, tensors out ---------------------------------------------


@pytest.mark.parametrize(
    ("argument", "kind"),
    [
        (2.0, np.float64),
        (np.float64(2), np.float64),
        (np.float32(2), np.float32),
        (np.array(2.0), np.ndarray),
        (X, np.ndarray),
        (np.ones((0, 2)), np.ndarray),
        (X.astype(np.float32), np.ndarray),
        (X.astype(np.float16), np.ndarray),
        (gt.tensor(X), gt.Tensor),
        (gt.tensor(np.float32(2)), gt.Tensor),
    ],
    ids=[
        "float",
        "float64",
        "float32",
        "0-d",
        "array",
        "empty",
        "array32",
        "array16",
        "tensor",
        "tensor32",
    ],
)
def test_a_gradient_has_the_form_of_its_argument(argument, kind):
    dtype = argument.dtype if hasattr(argument, "dtype") else np.float64
    value, slope = gt.value_and_grad(lambda x: np.sum(np.tanh(x) * 2.0 + x**2 / 3))(argument)
    _, pullback = gt.vjp(lambda x: x * 2.0, argument)
    pulled = pullback(np.ones(np.shape(argument), dtype))[0]
    for result in (slope, pulled):
        assert type(result) is kind
        assert (result.shape, result.dtype) == (np.shape(argument), dtype)
    assert isinstance(value, gt.Tensor) == (kind is gt.Tensor)
    assert value.dtype == dtype
    _, tangent = gt.jvp(lambda x: x * 2.0, (argument,), (np.ones(np.shape(argument), dtype),))
    assert isinstance(tangent, gt.Tensor) == (kind is gt.Tensor)
    assert (tangent.shape, tangent.dtype) == (np.shape(argument), dtype)


@pytest.mark.parametrize("function", [lambda x: x * x, lambda x: 7.0, np.floor])
def test_derivatives_of_numbers_are_numpy_numbers(function):
    assert type(gt.grad(function)(2.0)) is np.float64
    assert type(gt.jvp(function, (2.0,), (1.0,))[1]) is np.float64
    assert type(gt.vjp(function, 2.0)[1](1.0)[0]) is np.float64


def test_a_closure_over_a_tracked_tensor_gives_tensors():
    w = gt.tensor(X, requires_grad=True)
    value, slope = gt.value_and_grad(lambda x: gt.sum(w * x * x))(X)
    assert isinstance(value, gt.Tensor)
    assert isinstance(slope, gt.Tensor)
    gt.sum(slope).backward()
    np.testing.assert_array_equal(np.asarray(w.grad), 2 * X)
    out, tangent = gt.jvp(lambda x: w * x, (X,), (np.ones(3),))
    assert out.requires_grad
    assert tangent.requires_grad


def test_a_closure_over_an_untracked_tensor_gives_arrays():
    w = gt.tensor(X)
    assert type(gt.grad(lambda x: gt.sum(w * x))(X)) is np.ndarray


def test_a_tracked_argument_is_differentiated_outside_too():
    x = gt.tensor(X, requires_grad=True)
    slope = gt.grad(lambda v: gt.sum(v**3))(x)
    assert x.grad is None
    gt.sum(slope).backward()
    np.testing.assert_array_equal(np.asarray(x.grad), 6 * X)


OWNED = {
    "grad of both": lambda x, y: gt.grad(lambda a, b: np.sum(a + b), (0, 1))(x, y),
    "value": lambda x, y: gt.vjp(lambda a: a, x)[0],
    "values": lambda x, y: gt.vjp(lambda a: (a, a.T), x)[0],
    "pullback": lambda x, y: gt.vjp(lambda a, b: a + b, x, y)[1](y),
    "pullback of parts": lambda x, y: gt.vjp(lambda a: (a, a.T), x)[1]((x, y)),
    "constant": lambda x, y: gt.vjp(lambda a, b: a, x, y)[1](x),
    "jvp": lambda x, y: gt.jvp(lambda a: a, (x,), (y,)),
    "jvp of a view": lambda x, y: gt.jvp(lambda a: a.T, (x,), (y,)),
    "jvp of both": lambda x, y: gt.jvp(lambda a: (a, a), (x,), (y,)),
    "vmap": lambda x, y: gt.vmap(lambda a: a)(x),
    "vmap of both": lambda x, y: gt.vmap(lambda a, b: (a, a, b), out_axes=1)(x, y),
    "vmap of a constant": lambda x, y: gt.vmap(lambda a: 1.0)(x),
    "jacfwd": lambda x, y: gt.jacfwd(lambda a: a.T)(x),
    "jacrev": lambda x, y: gt.jacrev(lambda a: a.T)(x),
    "jacrev of a constant": lambda x, y: gt.jacrev(lambda a: np.ones(2))(x),
    "jacfwd of a constant": lambda x, y: gt.jacfwd(lambda a: np.ones(2))(x),
    "hessian": lambda x, y: gt.hessian(lambda a: np.sum(a.T @ a))(x),
    "hvp": lambda x, y: gt.hvp(lambda a: np.sum(a * a), (x,), (y,)),
}


@pytest.mark.parametrize("compute", OWNED.values(), ids=OWNED.keys())
def test_results_are_writeable_contiguous_and_share_no_memory(compute):
    x, y = np.arange(9.0).reshape(3, 3), np.eye(3)
    results = compute(x, y)
    leaves = containers.flatten(results)[0]
    for i, a in enumerate(leaves):
        assert type(a) is np.ndarray
        assert a.flags.writeable
        assert a.flags.c_contiguous
        for b in [x, y, *leaves[i + 1 :]]:
            assert not np.shares_memory(a, b)


def test_a_pullback_can_be_called_again():
    out, pullback = gt.vjp(lambda x: x * x, X)
    first = pullback(np.ones(3))[0]
    first[:] = -1.0
    assert pullback(np.ones(3))[0].tolist() == [2, 4, 6]
    assert pullback(X)[0].tolist() == [2, 8, 18]
    assert out.tolist() == [1, 4, 9]


def test_assigning_to_an_argument_leaves_the_callers_array_alone():
    def f(x):
        x[0] = 10.0
        x += 1.0
        x[1:] *= 2.0
        return np.sum(x)

    x = X.copy()
    assert gt.grad(f)(x).tolist() == [0, 2, 2]
    assert gt.jvp(f, (x,), (np.ones(3),)) == (25.0, 4.0)
    assert gt.vmap(f)(np.stack([x, x])).tolist() == [25, 25]
    assert x.tolist() == X.tolist()
    tensor = gt.tensor(X)
    gt.grad(f)(tensor)
    assert np.asarray(tensor).tolist() == X.tolist()


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("argument", [3, np.arange(3), True, gt.tensor([1, 2]), [1.0, 2]])
def test_integer_arguments_are_refused(argument):
    with pytest.raises(DTypeError, match=r"grad: argument 0.* is .*(int|bool).*use .*float"):
        gt.grad(lambda x: 1.0)(argument)
    with pytest.raises(DTypeError, match=r"jvp: primals.* is .*(int|bool)"):
        gt.jvp(lambda x: x, (argument,), (argument,))


@pytest.mark.parametrize(
    ("function", "error", "match"),
    [
        (lambda x: x * X, ShapeError, r"\(3,\).*gt.jacobian"),
        (lambda x: (x, x), ShapeError, "2 values.*has_aux"),
        (lambda x: None, ShapeError, "0 values"),
        (lambda x: x * 1j, DTypeError, "complex128.*gt.vjp"),
        (lambda x: x > 0, DTypeError, "bool"),
        (lambda x: 1, DTypeError, "int64"),
    ],
    ids=["vector", "pair", "nothing", "complex", "bool", "int"],
)
def test_outputs_that_have_no_gradient(function, error, match):
    with pytest.raises(error, match=match):
        gt.grad(function)(2.0)


def test_a_tensor_leaked_out_of_a_transform_is_refused():
    leaked = []

    def f(x):
        leaked.append(x * x)
        return x * 1.0

    gt.grad(f)(2.0)
    gt.jvp(f, (2.0,), (1.0,))
    gt.vmap(f)(X)
    for tensor in leaked:
        for use in (np.exp, lambda t: t * 2.0, lambda t: t + gt.ones(3), lambda t: t[None]):
            with pytest.raises(LeakedTensorError, match="return the value"):
                use(tensor)


def test_our_error_inside_numpys_comes_out_as_ours():
    def fills(x):
        out = np.zeros(3)
        out[0] = x[0]
        return np.sum(out)

    for transform in (gt.grad, gt.jacfwd, gt.jacrev, gt.vmap):
        with pytest.raises(GradtapeError, match=r"gt\.zeros|where") as caught:
            transform(fills)(np.ones((3, 3)) if transform is gt.vmap else X)
        assert isinstance(caught.value, ConversionError)


@pytest.mark.parametrize("transform", [gt.jvp, gt.hvp])
def test_primals_and_tangents_come_in_tuples(transform):
    with pytest.raises(ArgumentError, match="tuple"):
        transform(np.sin, np.ones(2), np.ones(2))


@pytest.mark.parametrize("shape", [(1,), (1, 1)])
def test_gradients_of_results_of_one_element(shape):
    def function(x):
        return np.sum(x**2).reshape(shape)

    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(gt.grad(function)(x), 2 * x)
    value, gradient = gt.value_and_grad(function)(x)
    np.testing.assert_array_equal(value, np.full(shape, 5.0))
    np.testing.assert_array_equal(gradient, 2 * x)
    np.testing.assert_array_equal(gt.jit(gt.grad(function))(x), 2 * x)
    np.testing.assert_array_equal(gt.grad(lambda a, b: function(a * b), (0, 1))(x, x)[1], 2 * x**3)
    np.testing.assert_array_equal(gt.vmap(gt.grad(function))(x[None])[0], 2 * x)
    with pytest.raises(gt.errors.ShapeError, match=r"returned shape \(2, 1\), expected a scalar"):
        gt.grad(lambda x: x[:, None])(x)


# ---- results that are no arrays -----------------------------------------------------------------


class Solution:
    def __init__(self, x):
        self.x = x


NO_ARRAYS = {
    "an object": (lambda x: Solution(x**2), r"the result is a Solution, expected arrays, numbers"),
    "a dict of SciPy": (lambda x: scipy.optimize.OptimizeResult(x=x**2), "is an OptimizeResult"),
    "a generator": (lambda x: (t**2 for t in x), "is a generator"),
    "a text": (lambda x: {"x": x, "name": "x"}, r"the result\['name'\] is a str"),
    "an array of texts": (lambda x: [x, np.array(["x"])], r"the result\[1\] is <U1\[1\]"),
    "an array of objects": (lambda x: np.array([None, 1.0]), r"the result is object\[2\]"),
}


@pytest.mark.parametrize("name", NO_ARRAYS)
def test_results_that_are_no_arrays_are_refused(name):
    """Their derivatives would be zeros, whatever is inside of them."""
    function, message = NO_ARRAYS[name]
    for transform in (gt.jacobian, gt.jacrev, gt.jacfwd, gt.hessian, gt.laplacian):
        with pytest.raises(DTypeError, match=message):
            transform(function)(X)
    with pytest.raises(DTypeError, match=message):
        gt.vjp(function, X)
    with pytest.raises(DTypeError, match=message):
        gt.linearize(function, X)
    with pytest.raises(DTypeError, match=message):
        gt.jvp(function, (X,), (X,))
    with pytest.raises(DTypeError, match=message):
        gt.jet(function, (X,), ([X],))


def test_an_object_of_which_a_gradient_is_asked_is_refused():
    with pytest.raises(DTypeError, match=r"grad: the result is a Solution.*has_aux=True"):
        gt.grad(lambda x: Solution(np.sum(x)))(X)


def test_what_a_function_returns_besides_may_be_anything():
    note = Solution("note")
    assert gt.jacobian(lambda x: (x, note), has_aux=True)(X)[1] is note
    assert gt.jvp(lambda x: (x, note), (X,), (X,), has_aux=True)[2] is note
    assert gt.linearize(lambda x: ({"x": x, "nothing": None}, note), X, has_aux=True)[2] is note
