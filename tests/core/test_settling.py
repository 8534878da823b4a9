"""How 0·∞ is settled at values that are not finite: in which modes, when, and by whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.finite import is_finite

inf, nan = np.inf, np.nan


def entropy(x: Any) -> Any:
    return np.where(x > 0, x * np.log(x), 0.0)


def pushed_along_records(f: Callable[..., Any], x: Any) -> Any:
    with gt.GradientTape() as tape:
        source = tape.watch(x)
        target = f(source)
    return tape.forward_gradient(source, target, np.ones(x.shape)).numpy()


def grads_of_context(f: Callable[..., Any], x: Any, **options: Any) -> Any:
    leaf = gt.tensor(x, requires_grad=True)
    gt.compute_gradients(f(leaf), **options)
    return leaf.grad.detach().numpy()


def tangent(f: Callable[..., Any], x: Any) -> Any:
    return gt.jvp(f, (x,), (np.ones(x.shape),))[1]


def summed(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: gt.sum(f(x))


# Every way to the derivatives of an elementwise function.
WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda f, x: gt.grad(summed(f))(x),
    "vjp": lambda f, x: gt.vjp(f, x)[1](np.ones(x.shape))[0],
    "context": grads_of_context,
    "released": lambda f, x: grads_of_context(f, x, release=True),
    "recorded": lambda f, x: grads_of_context(f, x, create_graph=True),
    "jvp": tangent,
    "along records": pushed_along_records,
    "vmap of grad": lambda f, x: gt.vmap(gt.grad(f))(x),
    "vmap of jvp": lambda f, x: gt.vmap(lambda one: gt.jvp(f, (one,), (1.0,))[1])(x),
    "jacrev": lambda f, x: np.diagonal(gt.jacrev(f)(x)),
    "jacfwd": lambda f, x: np.diagonal(gt.jacfwd(f)(x)),
    "compiled grad": lambda f, x: gt.jit(gt.grad(summed(f)))(x),
    "compiled grad, debugging": lambda f, x: gt.jit(gt.grad(summed(f)), debug=True)(x),
    "compiled jvp": lambda f, x: gt.jit(lambda x: tangent(f, x))(x),
    "grad of compiled": lambda f, x: gt.grad(summed(gt.jit(f)))(x),
    "jvp of compiled": lambda f, x: tangent(gt.jit(f), x),
    "compiled vmap of grad": lambda f, x: gt.jit(gt.vmap(gt.grad(f)))(x),
}

# name: (function, points, derivatives)
EXAMPLES: dict[str, tuple[Callable[..., Any], list[float], list[float]]] = {
    "entropy": (entropy, [0.0, 1.0], [0.0, 1.0]),
    "product with a pole": (lambda x: x * np.log(x), [0.0, 1.0], [-inf, 1.0]),
    "imaginary part of a real number": (lambda x: np.sqrt(np.imag(x)) + x, [0.0, 2.0], [1.0, 1.0]),
    "root of a sign": (lambda x: np.sqrt(np.sign(x)) + x, [0.0, 2.0], [1.0, 1.0]),
    "bump": (lambda x: np.exp(-1 / x**2), [0.0, 1.0], [0.0, 2 / np.e]),
    "missing data": (lambda x: np.where(np.isnan(x), 0.0, (x - 1) ** 2), [nan, 3.0], [0.0, 4.0]),
    "flat at infinity": (lambda x: np.log(x) ** 2, [inf, 1.0], [0.0, 0.0]),
    "infinite": (np.log, [0.0, 2.0], [inf, 0.5]),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
@pytest.mark.parametrize(("function", "points", "expected"), EXAMPLES.values(), ids=EXAMPLES.keys())
def test_all_ways_agree(way: Any, function: Any, points: Any, expected: Any) -> None:
    with np.errstate(all="ignore"):
        found = way(function, np.array(points))
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_what_the_reference_says_of_finite_values_with_infinite_slopes() -> None:
    def chosen(x: Any) -> Any:
        return np.where(x > 0, np.sqrt(x), 0.0)

    assert np.isnan(gt.grad(chosen)(0.0))
    assert gt.jvp(chosen, (0.0,), (1.0,))[1] == 0


def test_second_derivatives() -> None:
    x = np.array([0.0, 2.0])
    with np.errstate(all="ignore"):
        for outer in (gt.jacrev, gt.jacfwd):
            for inner in (gt.jacrev, gt.jacfwd):
                found = outer(lambda x, inner=inner: np.diagonal(inner(entropy)(x)))(x)
                np.testing.assert_array_equal(found, [[0, 0], [0, 0.5]])
        np.testing.assert_array_equal(gt.jit(gt.hessian(summed(entropy)))(x), [[0, 0], [0, 0.5]])


# ---- large arrays -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_large_arrays(dtype: Any) -> None:
    x = np.linspace(0.0, 4.0, 40_000, dtype=dtype).reshape(200, 200)
    w = np.full((200, 1), 2, dtype)
    w[3] = nan

    def loss(x: Any, w: Any) -> Any:
        return np.sum(np.where((x > 0) & (w == w), w * x * np.log(x), 0))

    small, large = x[:, ::50], x
    with np.errstate(all="ignore"):
        by_x, by_w = gt.grad(loss, (0, 1))(large, w)
        expected, _ = gt.grad(loss, (0, 1))(small, w)
        tangent = gt.jvp(lambda x: loss(x, w), (large,), (np.ones_like(large),))[1]
    assert np.isfinite(by_x).all()
    assert np.isfinite(by_w).all()
    assert by_x[0, 0] == 0
    assert not by_x[3].any()
    np.testing.assert_allclose(by_x[:, ::50], expected, rtol=1e-5)
    np.testing.assert_allclose(tangent, by_x.sum(), rtol=1e-4)


# ---- when it is done ----------------------------------------------------------------------------


class Rule:
    """The identity, with a backward rule that counts its calls and hides NaN."""

    def __init__(self) -> None:
        self.seen: list[float] = []
        self.function = gt.custom_vjp(lambda x: x * 1.0)
        self.function.defvjp(self._backward)

    def _backward(self, ct: Any, _out: Any, _x: Any) -> Any:
        self.seen.append(float(ct))
        return (np.nan_to_num(ct),)


def test_finite_derivatives_are_computed_once() -> None:
    rule = Rule()
    assert gt.grad(lambda x: 3.0 * rule.function(x))(2.0) == 3
    assert rule.seen == [3]


def test_rules_of_users_get_what_is_settled() -> None:
    rule = Rule()

    def function(x: Any) -> Any:
        y = rule.function(x)
        return 5.0 * y + np.where(y > 0, y * np.log(y), 0.0)

    with np.errstate(all="ignore"):
        assert gt.grad(function)(0.0) == 5  # and not 0, which it would make of NaN
    assert rule.seen == [5]


def test_compiled_code_settles_once_it_has_to() -> None:
    compiled = gt.jit(gt.grad(summed(entropy)))
    x = np.array([1.0, 2.0])
    first = compiled(x)
    assert "log_settled" in [node.op.name for node in compiled.graph(x).nodes]
    before = compiled.explain(x).kernels[0].ops
    assert "watched" in before
    with np.errstate(all="ignore"):
        for _ in range(3):
            np.testing.assert_array_equal(compiled(np.array([0.0, 2.0])), [0, first[1]])
    after = compiled.explain(x).kernels[0].ops
    assert "watched" not in after
    assert len(after) > len(before)
    np.testing.assert_array_equal(compiled(x), first)


def test_compiled_code_looks_before_it_compares() -> None:
    def clipped(x: Any) -> Any:
        gradient = gt.grad(summed(entropy))(x)
        return np.where(gradient > -1.0, gradient, -1.0), 1.0 / (2.0 + gradient)

    x = np.array([0.0, 0.01, 2.0])
    with np.errstate(all="ignore"):
        for one, other in zip(clipped(x), gt.jit(clipped)(x), strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-15)


def test_compiled_code_with_eager_ops() -> None:
    def function(x: Any) -> Any:
        gradient = gt.grad(summed(entropy))(x)
        return np.linalg.cholesky(np.diag(gradient + 3.0))

    x = np.array([0.0, 1.0])
    with np.errstate(all="ignore"):
        compiled = gt.jit(function)
        for _ in range(2):
            np.testing.assert_allclose(compiled(x), np.diag([3.0**0.5, 2.0]))


def test_compiled_code_of_dtypes_without_native_code() -> None:
    def function(x: Any) -> Any:
        return gt.jvp(lambda x: x * np.log(x), (x,), (np.ones(2, np.float16),))[1]

    x = np.array([0.0, 1.0], np.float16)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(gt.jit(function)(x), [-inf, 1])


# ---- looking at all elements --------------------------------------------------------------------


@pytest.mark.parametrize(
    "laid_out",
    [
        lambda x: x,
        lambda x: x.T,
        lambda x: x[::2, ::-1],
        lambda x: x.transpose(1, 0)[:, 1:],
        lambda x: np.broadcast_to(x[:1], (3, 4)),
        lambda x: np.broadcast_to(x[0, 0], (3, 4)),
        lambda x: np.broadcast_to(x[:, :1], (4, 4)),
    ],
)
def test_every_element_of_any_layout_is_looked_at(laid_out: Callable[[Any], Any]) -> None:
    x = np.ones((4, 4))
    assert is_finite(laid_out(x))
    with np.errstate(over="ignore"):
        assert is_finite(laid_out(1e200 * x))  # its square is not
    for place in np.ndindex(x.shape):
        for number in (inf, -inf, nan):
            other = x.copy()
            other[place] = number
            assert is_finite(laid_out(other)) == np.isfinite(laid_out(other)).all()


@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_looking_at_large_numbers_gives_no_warning(shape: tuple[int, ...]) -> None:
    assert is_finite(np.full(shape, 1e200))
    assert not is_finite(np.full(shape, inf))
    slope = pushed_along_records(lambda x: x * np.exp(400 * np.sqrt(x)), np.ones(shape))
    np.testing.assert_allclose(slope, 201 * np.exp(400.0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_element_of_long_arrays_is_looked_at(dtype: Any) -> None:
    x = np.ones(100_003, dtype)
    assert is_finite(x)
    with np.errstate(all="raise"):
        assert is_finite(np.finfo(dtype).max * x)  # its sum is not
    for place in (0, 50_000, 100_002):
        for number in (inf, -inf, nan):
            other = x.copy()
            other[place] = number
            assert not is_finite(other)
    x[::2] = inf
    x[1::2] = -inf
    assert not is_finite(x)


def test_kernels_of_rules_settle_from_the_call_on_that_has_to() -> None:
    x = np.linspace(0.0, 1.0, 70_001)
    inside = np.where(x > 0, np.log(x, out=np.zeros_like(x), where=x > 0) + 1.0, 0.0)
    with np.errstate(all="ignore"):
        for start in (1, 0, 0, 1):  # without 0 at first
            got = grads_of_context(entropy, x[start : start + 70_000])
            np.testing.assert_allclose(got, inside[start : start + 70_000], atol=1e-14)


LINEAR: dict[str, Callable[[Any], Any]] = {
    "numbers": lambda x: 3.0 * x / 2.0 - x + 1.0,
    "rearranged": lambda x: gt.roll(x[::-1].reshape(2, -1), 3).T,
    "summed": lambda x: gt.mean(x.reshape(2, -1), axis=0),
    "chosen": lambda x: gt.relu(x) + gt.nn.hardswish(x) + np.where(x > 0, x, 0.0),
}


@pytest.mark.parametrize("size", [10, 50_000])
@pytest.mark.parametrize("name", LINEAR)
def test_nothing_is_looked_at_where_slopes_are_finite(
    name: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(_value: Any) -> bool:
        raise AssertionError("looked at")

    x = np.linspace(-1.0, 1.0, size)
    expected = grads_of_context(LINEAR[name], x)
    monkeypatch.setattr("gradtape.core.walk.is_finite", never)
    np.testing.assert_array_equal(grads_of_context(LINEAR[name], x), expected)
    logarithm = lambda x: LINEAR[name](gt.log(x))  # noqa: E731
    if size == 10:
        with pytest.raises(AssertionError, match="looked at"):
            grads_of_context(logarithm, abs(x))
    else:  # native kernels of rules notice by themselves
        assert np.isfinite(grads_of_context(logarithm, abs(x))).all()


@pytest.mark.parametrize("size", [10, 50_000])
@pytest.mark.parametrize("number", [0.0, inf])
def test_a_number_that_is_no_slope_is_looked_for(number: float, size: int) -> None:
    x = np.full(size, -1.0)
    with np.errstate(all="ignore"):
        for way in ("grad", "vjp", "context", "recorded"):
            got = WAYS[way](lambda x: np.where(x > 0, gt.log(x * number), 0.0), x)
            np.testing.assert_array_equal(got, np.zeros(size))


@pytest.mark.parametrize("size", [10, 50_000])
def test_small_ops_after_long_sums(size: int) -> None:
    def function(x: Any) -> Any:
        total = np.sum(x * 2.0)
        return np.where(total > 0, np.log(total), 0.0)

    with np.errstate(all="ignore"):
        for way in ("grad", "context", "recorded"):
            np.testing.assert_array_equal(WAYS[way](function, np.zeros(size)), np.zeros(size))
