"""`gt.detect_anomaly`: the line that made the first NaN or infinity, forward or backward."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import AnomalyError

ZERO = np.array([4.0, 0.0])


def line_of(function: Any, offset: int) -> str:
    """The place of a line of a function, counted from its `def`, as errors name it."""
    return f"{__file__}:{inspect.getsourcelines(function)[1] + offset}"


def root(x: Any) -> Any:
    y = np.sqrt(x)
    return np.sum(y * 2.0)


def logarithm(x: Any) -> Any:
    y = x * 2.0
    return np.sum(np.log(y))


def pieces(x: Any) -> Any:
    first, second = np.split(x, 2)
    return np.sqrt(second) * first


def power(x: Any) -> Any:
    y = x * 2.0
    return np.sum(np.abs(y) ** 1.5)


def overflowing(x: Any) -> Any:
    return np.sum(np.exp(x * 1000.0))


@pytest.mark.parametrize(
    ("run", "message", "line"),
    [
        (lambda: logarithm(gt.tensor(ZERO)), "log gives -inf at index (1,)", (logarithm, 2)),
        (lambda: gt.grad(logarithm)(ZERO), "log gives -inf", (logarithm, 2)),
        (
            lambda: gt.jit(logarithm)(ZERO),
            "in the compiled function logarithm, log",
            (logarithm, 2),
        ),
        (lambda: gt.vmap(np.log)(ZERO), "log gives -inf", None),
        (lambda: gt.grad(overflowing)(ZERO), "exp gives inf at index (0,)", (overflowing, 1)),
        (lambda: gt.grad(root)(ZERO), "the gradient of sqrt gives inf", (root, 1)),
        (lambda: gt.jit(gt.grad(root))(ZERO), "in the compiled function root, divide", None),
        (lambda: gt.grad(gt.jit(root))(ZERO), "the gradient of root, compiled", None),
        (lambda: gt.jvp(root, (ZERO,), (ZERO + 1.0,)), "the tangent of sqrt gives inf", (root, 1)),
        (lambda: gt.linearize(root, ZERO)[1](ZERO + 1.0), "the tangent of sqrt gives", (root, 1)),
        (lambda: gt.jacobian(pieces, mode="forward")(ZERO), "the tangent of sqrt", (pieces, 2)),
        (lambda: gt.jet(root, (ZERO,), ([ZERO + 1.0],)), "the tangent of sqrt gives", (root, 1)),
        (lambda: gt.jet(root, (ZERO,), ([ZERO + 1.0, None],)), "gives inf at index", (root, 1)),
        (
            lambda: gt.hvp(power, (ZERO,), (ZERO + 1.0,)),
            "the tangent of the gradient of power gives nan",
            (power, 2),
        ),
        (lambda: gt.hessian(power)(ZERO), "the tangent of power gives nan", (power, 2)),
    ],
    ids=[
        "eager",
        "grad",
        "jit",
        "vmap",
        "overflow",
        "backward",
        "jit of grad",
        "grad of jit",
        "jvp",
        "linearize",
        "forward along records",
        "jet",
        "jet of order 2",
        "hvp",
        "hessian",
    ],
)
def test_the_op_and_its_line_are_named(run: Any, message: str, line: Any) -> None:
    with gt.detect_anomaly(), pytest.raises(AnomalyError) as caught:
        run()
    assert message in str(caught.value)
    if line is not None:
        assert f"at {line_of(*line)};" in str(caught.value)
    assert isinstance(caught.value, FloatingPointError)


def test_backward_in_contexts_and_on_tapes() -> None:
    with gt.detect_anomaly():
        x = gt.tensor(ZERO, requires_grad=True)
        loss = root(x)
        with pytest.raises(AnomalyError, match="the gradient of sqrt gives inf"):
            loss.backward()
        assert x.grad is None
        tape = gt.GradientTape()
        watched = tape.watch(ZERO)
        loss = root(watched)
        with pytest.raises(AnomalyError, match="the gradient of sqrt gives inf"):
            tape.gradient(loss, watched)


def test_a_loss_from_before_the_block_is_found_without_its_line() -> None:
    x = gt.tensor(ZERO, requires_grad=True)
    loss = root(x)
    with gt.detect_anomaly(), pytest.raises(AnomalyError) as caught:
        loss.backward()
    assert ".py" not in str(caught.value)
    assert str(caught.value).endswith(
        "is finite; to see the line of code, put the forward pass into the block, too, or make the "
        "tape with gt.GradientTape(lines=True)"
    )


def test_the_line_that_a_tape_has_noted_is_used() -> None:
    tape = gt.GradientTape(lines=True, persistent=True)
    x = tape.watch(ZERO)
    loss = root(x)
    with gt.detect_anomaly(), pytest.raises(AnomalyError) as caught:
        tape.gradient(loss, x)
    assert f"at {line_of(root, 1)}; everything" in str(caught.value)
    assert "lines=True" not in str(caught.value)
    first, second = np.split(np.sqrt(x), 2)
    with gt.detect_anomaly(), pytest.raises(AnomalyError) as caught:
        tape.jacobian(first + second, x)
    assert f"{__file__}:" in str(caught.value)
    number = tape.watch(0.0)
    slope = np.sqrt(number)
    with gt.detect_anomaly(), pytest.raises(AnomalyError) as caught:
        tape.forward_gradient(number, slope)
    assert "the tangent of sqrt gives inf" in str(caught.value)
    assert f"{__file__}:" in str(caught.value)


HALF_NAN = np.array([np.nan, 1.0])


def spoiling(gradient: Any) -> Any:
    return gradient + np.array([np.nan, 0.0])


def test_a_hook_that_returns_nan_is_named() -> None:
    place = f"{__file__}:{inspect.getsourcelines(spoiling)[1]}"
    for inner in (True, False):
        x = gt.tensor([1.0, 2.0], requires_grad=True)
        y = x * 2.0
        (y if inner else x).register_hook(spoiling)
        loss = gt.sum(y * y)
        with gt.detect_anomaly(), pytest.raises(AnomalyError) as caught:
            loss.backward()
        assert str(caught.value) == (
            f"detect_anomaly: the hook spoiling ({place}) returned nan at index (0,) of "
            "float64[2]; the gradient that it got is finite there"
        )
    tape = gt.GradientTape()
    x = tape.watch(HALF_NAN)
    y = np.sin(x)
    y.register_hook(lambda gradient: 2.0 * gradient)
    with gt.detect_anomaly():  # the hook made nothing worse
        found = tape.gradient(y * x, x)
    np.testing.assert_array_equal(np.isnan(found), [True, False])


def test_what_a_backward_pass_begins_with_is_named() -> None:
    tape = gt.GradientTape()
    x = tape.watch(np.ones(2))
    y = np.sin(x)
    message = r"output_gradients have nan at index \(0,\) of float64\[2\]; no op made it"
    with gt.detect_anomaly(), pytest.raises(AnomalyError, match=message):
        tape.gradient(y, x, output_gradients=HALF_NAN)
    leaf = gt.ones(2, requires_grad=True)
    with (
        gt.detect_anomaly(),
        pytest.raises(AnomalyError, match="that the backward pass begins with has nan at"),
    ):
        np.sin(leaf).backward(HALF_NAN)
    with gt.detect_anomaly():  # as tangents given to a pushforward do
        (found,) = gt.vjp(np.sin, np.ones(2))[1](HALF_NAN)
    np.testing.assert_array_equal(np.isnan(found), [True, False])


def checkpointed(function: Any, x: Any) -> Any:
    tape = gt.GradientTape(checkpoint=gt.CheckpointConfig(strategy=gt.CheckpointStrategy.Full))
    watched = tape.watch(x)
    loss = function(watched * 1.0)
    with gt.detect_anomaly():
        return tape.gradient(loss, watched)


@pytest.mark.parametrize("op", [np.sin, np.exp, np.sqrt, np.tanh, lambda x: np.sin(x) + 3.0 * x])
def test_operands_that_are_not_finite_are_blamed_on_no_op(op: Any) -> None:
    def function(x: Any) -> Any:
        return np.sum(op(x))

    with gt.detect_anomaly():
        found = [
            gt.grad(function)(HALF_NAN),
            gt.hvp(function, (HALF_NAN,), (np.ones(2),)),
            gt.linearize(op, HALF_NAN)[1](np.ones(2)),
        ]
    for result in found:
        np.testing.assert_array_equal(np.isnan(result), [True, False])


def test_operands_that_are_computed_again_are_looked_at() -> None:
    found = checkpointed(lambda x: np.sum(np.sin(x)), HALF_NAN)
    np.testing.assert_array_equal(np.isnan(found), [True, False])
    with pytest.raises(AnomalyError, match="the gradient of sqrt gives inf at index"):
        checkpointed(lambda x: np.sum(np.sqrt(x)), ZERO)


def test_what_is_new_is_told_from_what_was_not_finite_before() -> None:
    # Both ops add to the gradient of x: one passes on the NaN of x, the other makes infinity.
    def function(x: Any) -> Any:
        return np.sum(np.sqrt(np.array([1.0, 0.0]) * x[1]) + np.sin(x))

    with gt.detect_anomaly(), pytest.raises(AnomalyError, match="the gradient of sqrt gives inf"):
        gt.grad(function)(HALF_NAN)


def test_a_result_that_was_not_finite_before_the_block_is_said_so() -> None:
    x = gt.tensor([1000.0, 0.0], requires_grad=True)
    with np.errstate(all="ignore"):
        loss = gt.sum(np.exp(x))
    message = "the gradient of exp gives inf .*; exp gave a result that is not finite; to see"
    with gt.detect_anomaly(), pytest.raises(AnomalyError, match=message):
        loss.backward()


def test_several_results_of_different_sizes() -> None:
    with gt.detect_anomaly():
        found = gt.grad(lambda x: sum(np.sum(part**2) for part in np.split(x, [2])))(np.ones(5))
        np.testing.assert_array_equal(found, np.full(5, 2.0))
        with pytest.raises(AnomalyError, match=r"the gradient of sqrt gives inf at index \(0,\)"):
            gt.grad(lambda x: sum(np.sum(np.sqrt(part)) for part in np.split(x, [2])))(np.zeros(5))


def test_infinities_that_were_put_in_pass() -> None:
    mask = np.array([0.0, -np.inf])
    with gt.detect_anomaly():
        out = gt.grad(lambda x: np.sum(gt.softmax(x + mask)[0]))(np.array([1.0, 2.0]))
    assert np.all(np.isfinite(out))


def test_tangents_that_were_given_so_pass() -> None:
    push = gt.linearize(lambda x: 2.0 * np.sin(x), np.ones(2))[1]
    with gt.detect_anomaly():
        assert np.isinf(push(np.array([np.inf, 1.0]))[0])
        tangents = (np.array([np.inf, 1.0]),)
        assert np.isinf(gt.hvp(lambda x: np.sum(x**3), (np.ones(2),), tangents)[0])


def test_slopes_that_no_tangent_meets_settle() -> None:
    with np.errstate(all="ignore"):
        push = gt.linearize(lambda x: np.where(x > 0, np.log(x), 0.0), ZERO)[1]
    with gt.detect_anomaly():
        np.testing.assert_array_equal(push(np.array([1.0, 0.0])), [0.25, 0.0])


def test_branches_that_are_not_taken_settle() -> None:
    # 0·∞ in a branch that was not taken counts as 0, in this mode as without it.
    def function(x: Any) -> Any:
        return np.sum(np.where(x > 0, np.log(x), 0.0))

    with gt.detect_anomaly(check_inf=False):
        np.testing.assert_array_equal(gt.grad(function)(ZERO), [0.25, 0.0])


def test_nan_only() -> None:
    with gt.detect_anomaly(check_inf=False):
        assert np.isinf(gt.log(gt.tensor(ZERO)).numpy()[1])
        with pytest.raises(AnomalyError, match="log gives nan at index"):
            gt.log(gt.tensor([-1.0]))


def test_nothing_is_found_where_all_is_finite_or_no_float() -> None:
    def function(x: Any) -> Any:
        order = np.argsort(x)
        return (
            np.sum(np.tanh(x[order]) * (x > 0)) + np.linalg.slogdet(np.outer(x, x) + np.eye(2))[1]
        )

    with gt.detect_anomaly():
        found = gt.grad(function)(ZERO)
        compiled = gt.jit(gt.grad(function))(ZERO)
    np.testing.assert_allclose(found, gt.grad(function)(ZERO), rtol=1e-14)
    np.testing.assert_allclose(compiled, found, rtol=1e-12)
