"""`vmap`: which axis is the batch, in containers and nested, and together with derivatives."""

import math

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError, AxisError, ConversionError, DTypeError, ShapeError


def looped(function, *batches):
    return np.stack([function(*args) for args in zip(*batches, strict=True)])


@pytest.fixture
def a(rng):
    return rng.normal(size=(4, 3))


@pytest.fixture
def b(rng):
    return rng.normal(size=(4, 3))


# ---- axes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_axes", [0, (0, 0), [0, 0], (-2, 0)])
def test_the_first_axis_is_the_batch(a, b, in_axes):
    def f(x, y):
        return np.sin(x) @ y + x

    out = gt.vmap(f, in_axes)(a, b)
    assert type(out) is np.ndarray
    np.testing.assert_allclose(out, looped(f, a, b), rtol=1e-14)


@pytest.mark.parametrize(("left", "right"), [(0, 1), (1, 0), (1, 1), (-1, 0), (-1, -1)])
def test_the_batch_axis_can_be_any(a, b, left, right):
    def f(x, y):
        return x * y[::-1]

    out = gt.vmap(f, (left, right))(np.moveaxis(a, 0, left), np.moveaxis(b, 0, right))
    np.testing.assert_allclose(out, looped(f, a, b), rtol=1e-14)


@pytest.mark.parametrize("out_axes", [0, 1, 2, -1, -3])
def test_where_the_batch_axis_goes(a, out_axes):
    out = gt.vmap(lambda x: x[:, None] * np.ones(5), out_axes=out_axes)(a)
    expected = np.moveaxis(a[:, :, None] * np.ones(5), 0, out_axes)
    np.testing.assert_array_equal(out, expected)


def test_none_is_the_same_for_the_whole_batch(a):
    w = np.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(gt.vmap(np.matmul, (None, 0))(w, a), a @ w.T, rtol=1e-14)
    np.testing.assert_allclose(gt.vmap(np.matmul, (None, 1))(w, a.T), a @ w.T, rtol=1e-14)
    assert gt.vmap(lambda x, n: x**n, (0, None))(a, 2).tolist() == (a**2).tolist()


def test_axes_of_containers(a, b):
    def f(p, q):
        return {"sum": p["x"] + p["y"][0], "scaled": (p["x"] * q, q)}

    p, q = {"x": a, "y": [b.T]}, 2.0
    out_axes = {"sum": 0, "scaled": (1, 0)}
    out = gt.vmap(f, ({"x": 0, "y": [1]}, None), out_axes)(p, q)
    np.testing.assert_array_equal(out["sum"], a + b)
    np.testing.assert_array_equal(out["scaled"][0], (2 * a).T)
    np.testing.assert_array_equal(out["scaled"][1], np.full(4, 2.0))


def test_one_axis_for_a_whole_container(a, b):
    out = gt.vmap(lambda p, w: p["x"] * p["y"] * w, ({"x": 0, "y": 0}, None))({"x": a, "y": b}, 2.0)
    np.testing.assert_array_equal(out, 2 * a * b)
    np.testing.assert_array_equal(gt.vmap(lambda p: p[0] - p[1])((a, b)), a - b)


def test_none_in_a_container_is_no_argument(a):
    def f(p):
        return p["x"] * 2.0 if p["mask"] is None else p["x"]

    np.testing.assert_array_equal(gt.vmap(f)({"x": a, "mask": None}), 2 * a)
    out = gt.vmap(lambda x: (x, None))(a)
    assert out[1] is None


def test_results_that_do_not_depend_on_the_batch_are_repeated(a):
    one, number, array = gt.vmap(lambda x: (x[0], 7.0, np.ones(2)))(a)
    assert one.tolist() == a[:, 0].tolist()
    assert number.tolist() == [7.0] * 4
    assert array.shape == (4, 2)


def test_keyword_arguments_are_not_batched(a):
    out = gt.vmap(lambda x, *, w: x * w)(a, w=np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(out, a * [1, 2, 3])


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: gt.vmap(np.add)(np.ones(3), np.ones(4)), ShapeError, "different sizes"),
        (lambda: gt.vmap(np.add)(np.ones(3), 1.0), AxisError, r"\(\).*in_axes=None"),
        (lambda: gt.vmap(np.sin, 1)(np.ones(3)), AxisError, r"\(3,\) and no axis 1"),
        (lambda: gt.vmap(np.add, (0,))(np.ones(3), np.ones(3)), ArgumentError, "1 entries"),
        (lambda: gt.vmap(np.sin, None)(np.ones(3)), ArgumentError, "None for every"),
        (lambda: gt.vmap(lambda p: p["x"], ({"y": 0},))({"x": np.ones(3)}), ArgumentError, "match"),
    ],
    ids=["sizes", "number", "no such axis", "too few", "no batch", "structure"],
)
def test_axes_that_do_not_fit(call, error, match):
    with pytest.raises(error, match=match):
        call()


@pytest.mark.parametrize("read", [float, bool, lambda x: np.asarray(x, float), lambda x: x.item()])
def test_a_batch_has_no_single_value(read):
    with pytest.raises(ConversionError, match="whole batch"):
        gt.vmap(lambda x: x * read(x))(np.ones(3))


@pytest.mark.parametrize(
    ("ask", "advice", "misleading"),
    [
        (lambda x: np.array([x[0], x[1]], float), r"np\.stack \(or gt\.stack\)", "where"),
        (lambda x: np.array([x, x]), r"`import gradtape\.numpy as np`", "where"),
        (lambda x: np.asarray(x), r"np\.stack", "where"),
        (lambda x: np.zeros(2).__setitem__(0, x[0]), r"gt\.zeros\(n\)", "where"),
        (lambda x: math.sin(x[0]), r"np\.sin instead of math\.sin", "where"),
        (
            lambda x: x if x[0] > 0 else -x,
            r"np\.where \(or gt\.where\) instead of branching",
            "stack",
        ),
        (lambda x: max(x[0], x[1]), r"gt\.where", "stack"),
        (lambda x: x[x > 0], r"gt\.where.*mask", "stack"),
        (lambda x: np.ones(int(x[0])), r"in_axes=None", "where"),
        (lambda x: [1, 2][x[0].astype(int)], r"gt\.tensor\(table\)\[i\]", "where"),
        (lambda x: x[0].item(), "the tensor itself", "where"),
        (lambda x: f"{x[0]:.2f}", "print it as it is", "where"),
    ],
)
def test_the_error_says_what_to_do_instead_of_what_was_done(ask, advice, misleading):
    with pytest.raises(ConversionError, match=f"whole batch.*{advice}") as caught:
        gt.vmap(ask)(np.ones((3, 2)))
    assert misleading not in str(caught.value)


def test_numbers_are_joined_as_the_error_says():
    batch = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(gt.vmap(lambda x: np.stack([x[1], x[0]]))(batch), batch[:, ::-1])


# ---- nested, and with derivatives ---------------------------------------------------------------


def test_nested_vmap(a, b):
    def f(x, y):
        return np.tanh(x) @ y

    table = gt.vmap(gt.vmap(f, (None, 0)), (0, None))(a, b)
    np.testing.assert_allclose(table, np.tanh(a) @ b.T, rtol=1e-13)
    swapped = gt.vmap(gt.vmap(f, (0, None)), (None, 0))(a, b)
    np.testing.assert_allclose(swapped, table.T, rtol=1e-13)


def test_an_inner_vmap_may_close_over_an_outer_batch(a, b):
    out = gt.vmap(lambda x: gt.vmap(lambda y: np.sum(x * y))(b))(a)
    np.testing.assert_allclose(out, a @ b.T, rtol=1e-13)
    deeper = gt.vmap(lambda x: gt.vmap(lambda s: gt.vmap(lambda t: s * t)(x))(x))(a)
    np.testing.assert_allclose(deeper, a[:, :, None] * a[:, None, :], rtol=1e-13)


def loss(w, x, y):
    h = np.tanh(w["layer"] @ x)
    return np.sum((h - y) ** 2) + w["bias"] * h[0]


def test_per_sample_gradients(a, rng):
    w, y = {"layer": rng.normal(size=(2, 3)), "bias": 0.5}, rng.normal(size=(4, 2))
    out = gt.vmap(gt.grad(loss), (None, 0, 0))(w, a, y)
    for i in range(4):
        single = gt.grad(loss)(w, a[i], y[i])
        np.testing.assert_allclose(out["layer"][i], single["layer"], rtol=1e-12)
        np.testing.assert_allclose(out["bias"][i], single["bias"], rtol=1e-12)


def test_gradient_of_a_batch(a, rng):
    w, y = {"layer": rng.normal(size=(2, 3)), "bias": 0.5}, rng.normal(size=(4, 2))

    def total(w):
        return np.sum(gt.vmap(loss, (None, 0, 0))(w, a, y))

    grads = gt.grad(total)(w)
    per_sample = gt.vmap(gt.grad(loss), (None, 0, 0))(w, a, y)
    np.testing.assert_allclose(grads["layer"], per_sample["layer"].sum(0), rtol=1e-12)
    np.testing.assert_allclose(grads["bias"], per_sample["bias"].sum(), rtol=1e-12)


def test_jvp_and_vmap_commute(a, b):
    def f(x):
        return np.sin(x) * x[::-1]

    def push(x, t):
        return gt.jvp(f, (x,), (t,))

    outs = gt.vmap(push)(a, b)
    whole = gt.jvp(gt.vmap(f), (a,), (b,))
    for one, other in zip(outs, whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)


def test_second_derivatives_in_a_batch(a):
    def f(x):
        return np.sum(np.tanh(x) ** 3) * x[0]

    np.testing.assert_allclose(
        gt.vmap(gt.hessian(f))(a), looped(gt.hessian(f), a), rtol=1e-11, atol=1e-13
    )
    whole = gt.hessian(lambda a: np.sum(gt.vmap(f)(a)))(a)
    np.testing.assert_allclose(whole[1, :, 1], gt.hessian(f)(a[1]), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(gt.vmap(gt.grad(gt.grad(np.sin)))(a[0]), -np.sin(a[0]), rtol=1e-13)


def test_forward_over_reverse_in_a_batch_whose_tangent_is_the_argument(a):
    def f(x):
        return gt.grad(lambda y: gt.jvp(np.sum, (y**3,), (y,))[1])(x)

    np.testing.assert_allclose(gt.vmap(f)(a), np.ones((4, 3)))


def test_assignment_and_indices_in_a_batch(a):
    def f(x, i):
        y = x * 2.0
        y[0] = x[i] ** 2
        y[1:] += x[:-1]
        return y

    i = np.array([0, 2, 1, 2])
    np.testing.assert_allclose(gt.vmap(f)(a, i), looped(lambda x, i: f(x.copy(), i), a, i))


def test_branching_on_a_batch_is_refused_and_where_works(a):
    with pytest.raises(ConversionError, match="where"):
        gt.vmap(lambda x: x if x[0] > 0 else -x)(a)
    out = gt.vmap(lambda x: np.where(x > 0, x, -x))(a)
    np.testing.assert_array_equal(out, np.abs(a))


# ---- tensors ------------------------------------------------------------------------------------


def test_tensors_in_tensors_out(a):
    out = gt.vmap(np.sin)(gt.tensor(a))
    assert type(out) is gt.Tensor
    assert not out.requires_grad


def test_a_recorded_batch_stays_recorded(a):
    x = gt.tensor(a, requires_grad=True)
    gt.sum(gt.vmap(lambda r: r * r)(x)).backward()
    np.testing.assert_allclose(np.asarray(x.grad), 2 * a)


def test_a_closure_over_a_tracked_tensor_gives_tensors(a):
    w = gt.tensor([1.0, 2.0, 3.0], requires_grad=True)
    out = gt.vmap(lambda x: x @ w)(a)
    assert isinstance(out, gt.Tensor)
    gt.sum(out).backward()
    np.testing.assert_allclose(np.asarray(w.grad), a.sum(0))


def test_results_that_are_no_arrays_are_named():
    with pytest.raises(DTypeError, match=r"vmap: the result\['name'\] is a str, expected an array"):
        gt.vmap(lambda x: {"x": x, "name": "x"})(np.ones(3))
    with pytest.raises(DTypeError, match=r"vmap: the result is an object, expected an array"):
        gt.vmap(lambda x: object())(np.ones(3))
