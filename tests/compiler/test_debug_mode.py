"""`gt.jit(f, debug=True)`: right programs pass, wrong kernels are found and named."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as gt
from gradtape.compiler.program import NativeFunction
from gradtape.core import scalar
from gradtape.core.lowering import Elements, Pointwise, Reduction
from gradtape.core.op import registry


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def layer_norm(x):
    centred = x - np.mean(x, axis=-1, keepdims=True)
    return centred / np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + 1e-5)


def attention(x):
    return softmax(x @ x.T / 2.0) @ x


FUNCTIONS = {
    "chain": lambda x: np.tanh(2.0 * x + 1.0) * np.exp(-x * x) + np.log1p(np.abs(x)),
    "softmax": softmax,
    "layer_norm": layer_norm,
    "attention": attention,
    "log_softmax": lambda x: x - np.log(np.sum(np.exp(x), axis=1, keepdims=True)),
    "broadcast": lambda x: x[:, None] * x[None] - x[0],
    "transpose": lambda x: np.sin(x).T @ np.cos(x),
    "column_sums": lambda x: np.sum(np.exp(x), axis=0) * np.max(x, axis=0),
    "both_axes": lambda x: np.sum(x, axis=0) @ np.ones(5) + np.sum(np.sin(x), axis=1),
    "prod": lambda x: np.prod(x + 2.0, axis=1),
    "norm": lambda x: np.sqrt(np.sum(x**2)),
    "slices": lambda x: x[1:, ::-1] * x[:-1],
    "flipped_sums": lambda x: np.sum(x, axis=1)[::-1] * x[:, 0],
    "rolled_rows": lambda x: np.roll(x - np.mean(x, axis=0), 3, axis=1),
    "concatenate": lambda x: np.concatenate([np.exp(x), x[:, :2]], axis=1),
    "pad_and_roll": lambda x: np.roll(np.pad(x, 1), 2, axis=0) * 3.0,
    "where": lambda x: np.where(x > 0.1, np.sqrt(np.abs(x)), x**3),
    "clip": lambda x: np.clip(x, -0.5, 0.5) + np.maximum(x, 0.2),
    "gelu": lambda x: gt.gelu(x) + gt.sigmoid(x) + gt.softplus(x),
    "solve_between": lambda x: np.exp(np.linalg.solve(x @ x.T + 4.0 * np.eye(4), np.sin(x))),
    "cumulative": lambda x: np.cumsum(np.exp(x), axis=1) * np.sum(x),
    "repeated_squares": lambda x: ((x**2) ** 2 - x**4) + x,
}


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        # Every other function in the one dtype, the rest in the other: it is the ops that differ.
        pytest.param(name, dtype, marks=[] if k % 2 == n else pytest.mark.slow)
        for k, name in enumerate(FUNCTIONS)
        for n, dtype in enumerate([np.float32, np.float64])
    ],
)
def test_right_functions_pass(name, dtype, rng):
    function = FUNCTIONS[name]

    def value_and_gradient(x):
        return function(x), gt.grad(lambda x: np.sum(np.sin(function(x))))(x)

    x = rng.normal(size=(4, 5)).astype(dtype)
    got = gt.jit(value_and_gradient, debug=True)(x)
    tolerance = 1e3 * np.finfo(dtype).eps
    for one, other in zip(got, value_and_gradient(x), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, tolerance, tolerance)


@pytest.mark.parametrize(
    "x",
    [
        np.float64(0.5),
        np.zeros((0, 3)),
        np.array([np.nan, np.inf, -np.inf, -0.0, 1e308, 5e-324]),
        np.arange(6).reshape(2, 3),
        np.array([True, False]),
    ],
    ids=["0-d", "empty", "specials", "integers", "truth values"],
)
def test_awkward_arrays_pass(x):
    def function(x):
        return np.exp(x), x * x > x, np.sum(x), np.sum(np.tanh(x) * 2.0, axis=-1) if x.ndim else x

    with np.errstate(all="ignore"):
        expected = function(x)
    for one, other in zip(gt.jit(function, debug=True)(x), expected, strict=True):
        np.testing.assert_allclose(one, other, 1e-12)


# ---- rounding is no difference ------------------------------------------------------------------

ROUNDING = {
    # A jump: eager and compiled code may be on different sides of it.
    "floor": (lambda x: np.floor(np.exp(x) * 1e5), np.log(np.arange(1.0, 400.0))),
    "compare": (lambda x: np.exp(np.log(x)) >= x, np.linspace(1.0, 9.0, 999)),
    # What cancels leaves nothing but rounding.
    "cancel": (lambda x: np.exp(x) * np.exp(-x) - 1.0, np.linspace(-9.0, 9.0, 999)),
    "saturated": (gt.grad(lambda x: np.sum(np.tanh(x) ** 2)), np.linspace(-19.0, 19.0, 999)),
    "variance": (lambda x: np.mean(x * x) - np.mean(x) ** 2, 1e4 + np.linspace(0.0, 1.0, 99)),
    "gelu": (gt.gelu, np.array(-7.5)),
    # x² − max x² is no longer 0 where the product is not rounded.
    "contracted": (lambda x: np.floor(x * x - np.max(x * x)), np.linspace(0.1, 0.7, 9)),
    # Added up in another order, or in one row after the other.
    "sum": (lambda x: np.sum(np.sin(x)), np.arange(100000.0, dtype=np.float32)),
    "rows": (lambda x: np.sum(x, axis=0), np.full((100000, 3), 0.1, np.float32)),
    "products": (lambda x: np.sin(x) @ np.cos(x), np.arange(4000.0).reshape(40, 100)[:, :40]),
    "overflow": (lambda x: np.exp(x) * 0.5, np.nextafter(np.full(9, 709.78271289338399), 0)),
}


@pytest.mark.parametrize("name", ROUNDING)
def test_rounding_is_no_difference(name):
    function, x = ROUNDING[name]
    gt.jit(function, debug=True)(x)


# ---- wrong kernels are named --------------------------------------------------------------------


@pytest.fixture
def wrong(monkeypatch):
    """Replaces the native form of an op."""

    def replace(name, lowering):
        monkeypatch.setattr(registry[name], "lower", lowering)

    return replace


def times(factor, above=-np.inf):
    """The exponential function, wrong by a factor above some argument."""
    right = registry["exp"].lower.expression
    return Pointwise(lambda x: scalar.where(x > above, right(x) * factor, right(x)))


def found(function, *args):
    with pytest.raises(gt.GradtapeError) as caught:
        gt.jit(function, debug=True)(*args)
    return str(caught.value)


def test_a_wrong_op_is_named_with_its_line_and_element(wrong):
    wrong("exp", times(1.5, above=0.75))

    def function(x):
        y = 2.0 * x
        return np.sum(np.tanh(np.exp(y)))

    x = np.linspace(0.0, 0.55, 12).reshape(3, 4)
    message = found(function, x)
    line = function.__code__.co_firstlineno + 2
    assert message.startswith("exp: compiled code gives ")
    assert f"gives {1.5 * np.exp(0.8)}" in message
    assert f"expected {np.exp(0.8)}" in message
    assert "at index (2, 0) of float64[3, 4]" in message
    assert f"{__file__}:{line}, in kernel run_k0 (multiply, exp, tanh, sum)" in message
    assert "the native form of this op is wrong" in message


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_small_errors_are_found(wrong, dtype):
    wrong("exp", times(1.0 + 200 * float(np.finfo(dtype).eps)))
    assert found(np.exp, np.ones(3, dtype)).startswith("exp: ")


def test_an_error_in_one_element_is_found(wrong):
    wrong("exp", times(1.001, above=0.999))
    message = found(lambda x: np.exp(x) * np.sum(x), np.linspace(0.0, 1.0, 1001))
    assert "at index (1000,)" in message


def test_the_first_kernel_that_is_wrong_is_named(wrong):
    wrong("exp", times(2.0))

    def function(x):
        y = x @ np.sin(x)
        z = y @ np.exp(y)
        return z @ np.cos(z)

    report = gt.jit(function).explain(np.ones((3, 3)))
    (kernel,) = (kernel for kernel in report.kernels if "exp" in kernel.ops)
    message = found(function, np.ones((3, 3)))
    assert message.startswith("exp: ")
    assert f"in kernel {kernel.name} (" in message


def test_an_error_without_effect_on_the_result_is_found(wrong):
    wrong("exp", times(2.0))
    assert found(lambda x: (np.exp(x) @ x) @ np.zeros(3), np.ones((3, 3))).startswith("exp: ")


def test_wrong_elements_are_found(wrong):
    wrong("flip", Elements(lambda index, x, axis: x(*index)))
    assert found(lambda x: np.flip(x) * 2.0, np.arange(4.0)).startswith("flip: ")


def test_a_wrong_reduction_is_found(wrong):
    wrong("sum", Reduction("add", lambda x: x * 1.0001))
    message = found(lambda x: np.exp(np.sum(np.sin(x))), np.arange(50.0))
    assert message.startswith("sum: compiled code gives ")
    assert " as result from " in message


def test_wrong_integers_are_found(wrong):
    right = registry["multiply"].lower.expression
    wrong("multiply", Pointwise(lambda x, y: right(x, y) + 1))
    assert found(lambda x: x * x, np.arange(4)).startswith("multiply: compiled code gives 1 ")


def test_nan_is_not_taken_for_a_number(wrong):
    right = registry["exp"].lower.expression
    wrong("exp", Pointwise(lambda x: scalar.where(x > 0.0, right(x), scalar.constant(np.nan))))
    assert "compiled code gives nan" in found(np.exp, np.array([1.0, -1.0]))
    wrong("exp", Pointwise(lambda x: scalar.where(x == x, right(x), scalar.constant(1.0))))
    assert "expected nan" in found(np.exp, np.array([1.0, np.nan]))


def test_infinity_is_not_taken_for_a_number(wrong):
    right = registry["exp"].lower.expression
    wrong("exp", Pointwise(lambda x: scalar.minimum(right(x), 1e300)))
    assert "expected inf" in found(np.exp, np.array([1.0, 1e5]))


def test_ops_that_are_wrong_only_when_they_are_fused(wrong):
    right = registry["exp"].lower.expression
    wrong("exp", Pointwise(lambda x: right(x) * (1.0 if x.name in ("load", "argument") else 2.0)))
    message = found(lambda x: np.exp(x * 3.0), np.ones(3))
    assert message.startswith("exp: ")
    assert "ops are right by themselves but not as they are fused" in message


def test_kernels_that_are_wrong_only_together(monkeypatch):
    right = NativeFunction.__call__
    monkeypatch.setattr(
        NativeFunction, "__call__", lambda self, arrays: [out + 1.0 for out in right(self, arrays)]
    )
    message = found(lambda x: np.sin(x) @ np.cos(x), np.ones((3, 3)))
    assert message.startswith("matmul: ")
    assert "kernels are right by themselves but not together" in message


# ---- when it checks -----------------------------------------------------------------------------


def test_every_call_is_checked(wrong):
    wrong("exp", times(2.0, above=10.0))
    compiled = gt.jit(np.exp, debug=True)
    for _ in range(3):
        np.testing.assert_allclose(compiled(np.ones(3)), np.exp(np.ones(3)))
    with pytest.raises(gt.GradtapeError, match="exp: compiled code gives"):
        compiled(np.full(3, 11.0))


def test_without_debug_mode_nothing_is_checked(wrong):
    wrong("exp", times(2.0))
    np.testing.assert_allclose(gt.jit(np.exp)(np.ones(3)), 2.0 * np.exp(np.ones(3)))


def test_derivatives_of_a_compiled_function_are_checked(wrong):
    compiled = gt.jit(lambda x: np.sum(np.sin(x)), debug=True)
    compiled(np.ones(3))
    right = registry["cos"].lower.expression
    wrong("cos", Pointwise(lambda x: right(x) * 2.0))
    with pytest.raises(gt.GradtapeError, match="cos: compiled code gives"):
        gt.grad(compiled)(np.ones(3))


def test_parts_around_an_eager_op_are_checked(wrong):
    def function(a, b):
        return np.exp(np.linalg.pinv(a * 2.0) @ np.exp(b))

    a, b = np.eye(2), np.ones(2)
    np.testing.assert_allclose(gt.jit(function, debug=True)(a, b), function(a, b))
    wrong("exp", times(2.0, above=1.1))
    assert "expected 3.89" in found(function, a, b)


# ---- what an eager kernel gives -----------------------------------------------------------------


def test_an_eager_kernel_must_give_what_its_shape_rule_says(monkeypatch):
    monkeypatch.setattr(registry["exp"], "evaluate", lambda xp, x: xp.exp(x).astype(np.float32))
    with pytest.raises(gt.GradtapeError, match=r"exp: its eager kernel gives float32\[3\]"):
        gt.jit(np.exp, debug=True)(np.ones(3))


def test_python_numbers_keep_the_dtype_of_what_an_eager_op_multiplies(wrong):
    wrong("multiply", None)
    result = gt.jit(lambda x, y: x * y + 1.0)(np.ones(3, np.float32), 2.5)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, [3.5, 3.5, 3.5])


# ---- loops and branches -------------------------------------------------------------------------


def recurrence(x):
    return gt.scan(lambda c, _: (np.sin(c) + np.exp(-c * c), None), x, length=5)[0]


def newton(x):
    return gt.while_loop(lambda s: s * s - x > 1e-9, lambda s: 0.5 * (s + x / s), np.exp(x))


def mapped(x):
    return gt.map(lambda v: gt.cond(np.sum(v) > 1.0, np.exp, np.sin, v), x)


@pytest.mark.parametrize(
    ("function", "x", "op"),
    [
        (recurrence, np.linspace(0.0, 1.0, 3), "scan"),  # in registers
        (recurrence, np.linspace(0.0, 1.0, 400), "scan"),  # on arrays
        (gt.grad(lambda x: np.sum(recurrence(x))), np.linspace(0.0, 1.0, 3), "scan"),
        (newton, 2.0, "exp"),
        (mapped, np.array([[0.1, 0.2], [0.8, 0.9]]), "scan"),
    ],
)
def test_an_op_that_is_wrong_in_a_loop_is_found(function, x, op, wrong):
    np.testing.assert_allclose(gt.jit(function, debug=True)(x), function(x), rtol=1e-12)
    wrong("exp", times(1.001))
    message = found(function, x)
    assert message.startswith(f"{op}: compiled code gives ")
    assert "the native form of this op is wrong" in message


@pytest.mark.parametrize("size", [3, 400])
def test_rounding_that_grows_from_step_to_step_is_not_an_error(size):
    # Each step about doubles distances: thirty make a large one of a unit in the last place.
    def doubling(x):
        return gt.fori_loop(0, 30, lambda _, s: np.exp(np.log(3.99 * s * (1.0 - s))), x)

    x = np.linspace(0.1, 0.9, size)
    compiled, eager = gt.jit(doubling)(x), doubling(x)
    assert np.abs(compiled - eager).max() > 1e-9  # or this test shows nothing
    np.testing.assert_allclose(gt.jit(doubling, debug=True)(x), compiled)
