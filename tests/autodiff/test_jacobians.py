"""`jacfwd`, `jacrev`, `jacobian`, `hessian`, `hvp`: shapes, containers and agreement."""

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import DTypeError, ShapeError

JACOBIANS = [gt.jacfwd, gt.jacrev, gt.jacobian]
each = pytest.mark.parametrize("jac", JACOBIANS, ids=["jacfwd", "jacrev", "jacobian"])

A = np.arange(6.0).reshape(2, 3) / 3 - 0.7
B = np.arange(12.0).reshape(3, 4) / 7 + 0.1


@each
@pytest.mark.parametrize(
    ("function", "argument"),
    [
        (lambda x: np.sum(x**2), A),
        (lambda x: x**2, np.float64(3.0)),
        (lambda x: x * np.ones(4), 2.0),
        (lambda x: np.sin(x), A[0]),
        (lambda x: x @ B, A),
        (lambda x: x.T[:, None] * np.ones((1, 5, 1)), A),
        (lambda x: np.stack([x[0], x[1] * 2]), A),
        (lambda x: x[:0], A[0]),
    ],
    ids=["scalar", "numbers", "curve", "diagonal", "matrix", "broadcast", "stack", "empty"],
)
def test_shape_is_that_of_the_output_and_then_the_argument(jac, function, argument):
    out = function(np.asarray(argument))
    result = jac(function)(argument)
    assert not isinstance(result, gt.Tensor)
    assert result.shape == out.shape + np.shape(argument)
    assert result.dtype == np.float64


@each
def test_matrix_to_matrix_elements(jac):
    result = jac(lambda x: x @ B)(A)
    # d (A·B)ₘₙ / d Aᵢⱼ = δₘᵢ Bⱼₙ
    np.testing.assert_allclose(result, np.einsum("mi,jn->mnij", np.eye(2), B), rtol=1e-14)


@each
def test_containers_nest_as_output_then_argument(jac):
    def f(p, s):
        return {"product": p["a"] * s, "parts": (np.sum(p["a"] * p["b"]),)}

    p = {"a": A[0], "b": A[1]}
    result = jac(f)(p, 2.0)
    assert result["product"]["a"].shape == (3, 3)
    np.testing.assert_allclose(result["product"]["a"], 2 * np.eye(3))
    np.testing.assert_array_equal(result["product"]["b"], np.zeros((3, 3)))
    np.testing.assert_allclose(result["parts"][0]["a"], A[1])
    both = jac(f, (1, 0))(p, 2.0)
    np.testing.assert_allclose(both["product"][0], A[0])
    np.testing.assert_allclose(both["parts"][0][1]["b"], A[0])


@each
def test_argnums_and_keywords(jac):
    def f(x, y, scale=1.0):
        return x * y * scale

    np.testing.assert_allclose(jac(f, 1)(A[0], A[1], scale=2.0), np.diag(2 * A[0]))
    np.testing.assert_allclose(jac(f, -2)(A[0], A[1]), np.diag(A[1]))
    result = jac(f, (0,))(A[0], A[1])
    assert isinstance(result, tuple)
    np.testing.assert_allclose(result[0], np.diag(A[1]))


@each
def test_tensors_in_tensors_out(jac):
    result = jac(lambda x: x * x)(gt.tensor(A[0]))
    assert type(result) is gt.Tensor
    np.testing.assert_allclose(np.asarray(result), np.diag(2 * A[0]))
    x = gt.tensor(A[0], requires_grad=True)
    tracked = jac(lambda v: v**3)(x)
    gt.sum(tracked).backward()
    np.testing.assert_allclose(np.asarray(x.grad), 6 * A[0])


@each
def test_float32_stays_float32(jac):
    assert jac(lambda x: np.tanh(x) * 2.0)(A[0].astype(np.float32)).dtype == np.float32


@each
def test_integers_are_refused(jac):
    with pytest.raises(DTypeError, match=f"{jac.__name__}.*int64"):
        jac(lambda x: x * 1.0)(np.arange(3))


@each
def test_an_output_that_does_not_depend_on_the_argument(jac):
    result = jac(lambda x: (np.ones(2), x))(A[0])
    np.testing.assert_array_equal(result[0], np.zeros((2, 3)))
    np.testing.assert_array_equal(result[1], np.eye(3))


def test_modes_agree_on_a_map_that_is_neither_tall_nor_wide(rng):
    w = rng.normal(size=(4, 4))

    def f(x):
        return np.linalg.solve(w + 5 * np.eye(4), np.tanh(w @ x)) * np.cumsum(x)

    x = rng.normal(size=4)
    np.testing.assert_allclose(gt.jacfwd(f)(x), gt.jacrev(f)(x), rtol=1e-12, atol=1e-14)


def counted(function):
    """The function with a count of its calls."""

    def call(x):
        call.count += 1
        return function(x)

    call.count = 0
    return call


@pytest.mark.parametrize("jac", [gt.jacfwd, gt.jacrev])
def test_all_rows_or_columns_are_one_batched_run(jac):
    f = counted(lambda x: np.sin(x))
    jac(f)(np.ones(50))
    assert f.count == 1


# ---- second order -------------------------------------------------------------------------------


def scalar(x):
    return np.sum(np.tanh(x) * x[::-1] ** 2) + x[0] * x[1] * x[2]


def test_hessian_matches_its_product_and_differences(rng):
    x, v = rng.normal(size=3), rng.normal(size=3)
    hessian = gt.hessian(scalar)(x)
    assert type(hessian) is np.ndarray
    np.testing.assert_allclose(hessian @ v, gt.hvp(scalar, (x,), (v,)), rtol=1e-12)
    step = 1e-5
    numeric = (gt.grad(scalar)(x + step * v) - gt.grad(scalar)(x - step * v)) / (2 * step)
    np.testing.assert_allclose(hessian @ v, numeric, rtol=1e-7)


def test_hessian_of_a_matrix_argument():
    result = gt.hessian(lambda x: np.sum(x @ x.T))(A)
    assert result.shape == (2, 3, 2, 3)
    # sum(A·Aᵀ) = Σ_ij (Σ_k A_ik A_jk): its Hessian is 2·1·δ
    np.testing.assert_allclose(result, 2 * np.einsum("mi,jn->mjin", np.ones((2, 2)), np.eye(3)))


def test_hessian_of_several_arguments_and_containers():
    def f(x, p):
        return np.sum(x**2 * p["w"]) + p["b"] ** 3

    x, p = A[0], {"w": A[1], "b": 2.0}
    blocks = gt.hessian(f, (0, 1))(x, p)
    np.testing.assert_allclose(blocks[0][0], np.diag(2 * A[1]))
    np.testing.assert_allclose(blocks[0][1]["w"], np.diag(2 * A[0]))
    np.testing.assert_array_equal(blocks[0][1]["b"], np.zeros(3))
    np.testing.assert_allclose(blocks[1]["b"][1]["b"], 12.0)
    np.testing.assert_array_equal(blocks[1]["w"][1]["w"], np.zeros((3, 3)))


@pytest.mark.parametrize("shape", [(3,), (1,), (2, 2)])
def test_hessians_of_each_output(shape, rng):
    weights = rng.normal(size=(*shape, 2, 2))

    def function(x):
        return np.einsum("...ij,ij->...", weights, x**3)

    x = rng.normal(size=(2, 2))
    hessian = gt.hessian(function)(x)
    assert hessian.shape == (*shape, 2, 2, 2, 2)
    for index in np.ndindex(*shape):
        one = gt.hessian(lambda x, index=index: function(x)[index])(x)
        np.testing.assert_allclose(hessian[index], one, rtol=1e-12)
    np.testing.assert_allclose(gt.jit(gt.hessian(function))(x), hessian, rtol=1e-12)


def test_hessians_of_several_outputs_and_arguments():
    def function(x, y):
        return {"product": x * y, "sum": np.sum(x**2)}

    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    hessian = gt.hessian(function, (0, 1))(x, y)
    np.testing.assert_allclose(hessian["sum"][0][0], 2 * np.eye(2))
    diagonal = np.zeros((2, 2, 2))
    diagonal[[0, 1], [0, 1], [0, 1]] = 1.0
    np.testing.assert_allclose(hessian["product"][0][1], diagonal)
    np.testing.assert_allclose(hessian["product"][0][0], np.zeros((2, 2, 2)))


def test_hessian_of_complex_results_is_refused():
    with pytest.raises(DTypeError, match="hessian: got"):
        gt.hessian(lambda x: 1j * x)(np.ones(2))


def test_hvp_of_several_arguments():
    def f(x, y):
        return np.sum(x**2 * y)

    x, y, u, v = A[0], A[1], np.ones(3), np.array([1.0, 0.0, 2.0])
    by_x, by_y = gt.hvp(f, (x, y), (u, v))
    np.testing.assert_allclose(by_x, 2 * y * u + 2 * x * v)
    np.testing.assert_allclose(by_y, 2 * x * u)


def test_hvp_refuses_tangents_that_do_not_fit():
    with pytest.raises(ShapeError, match="2 primals and 1 tangents"):
        gt.hvp(lambda x, y: x * y, (1.0, 2.0), (1.0,))
    with pytest.raises(ShapeError, match=r"\(2,\).*\(3,\)"):
        gt.hvp(scalar, (A[0],), (np.ones(2),))


def test_hvp_returns_tensors_for_tensors():
    out = gt.hvp(lambda x: gt.sum(x**3), (gt.tensor(A[0]),), (gt.ones(3),))
    assert isinstance(out, gt.Tensor)
    np.testing.assert_allclose(np.asarray(out), 6 * A[0])


@each
def test_complex_numbers_are_refused(jac):
    with pytest.raises(gt.errors.DTypeError, match="complex128"):
        jac(lambda x: x * 1j)(A[0])
    with pytest.raises(gt.errors.DTypeError, match="complex128"):
        jac(lambda z: z * z)(A[0] * 1j)


def test_a_function_without_forward_mode_is_differentiated_in_reverse():
    f = gt.custom_vjp(lambda x: x * x)
    f.defvjp(lambda ct, out, x: (2 * x * ct,))
    np.testing.assert_allclose(gt.hessian(lambda x: gt.sum(f(x) * x))(A[0]), np.diag(6 * A[0]))
    tall = gt.jacobian(lambda x: gt.concatenate([f(x), f(x)]))(A[0])
    np.testing.assert_allclose(tall, np.concatenate([np.diag(2 * A[0])] * 2))
