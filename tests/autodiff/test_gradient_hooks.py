"""Hooks on gradients, and ops that scale them."""

from __future__ import annotations

import gc
import inspect
import subprocess
import sys
import weakref
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.level import LEAVES
from gradtape.errors import (
    ArgumentError,
    DTypeError,
    ShapeError,
    TapeError,
    UnsupportedError,
    UnusedScopeWarning,
    WriteError,
)

X = np.array([1.0, 2.0, 3.0])


def leaf(value: Any = X) -> Any:
    return gt.tensor(np.array(value), requires_grad=True)


# ---- hooks of tensors ---------------------------------------------------------------------------


def test_a_hook_sees_the_whole_gradient_once() -> None:
    x, seen = leaf(), []
    y = x * 2.0
    loss = gt.sum(y * y) + gt.sum(y)  # two uses of y
    y.register_hook(lambda ct: seen.append(ct.numpy()))
    loss.backward()
    assert len(seen) == 1
    np.testing.assert_array_equal(seen[0], 2 * 2 * X + 1)
    np.testing.assert_array_equal(x.grad.numpy(), 2 * (4 * X + 1))


def test_what_a_hook_returns_takes_the_place_of_the_gradient() -> None:
    x = leaf()
    y = x * 2.0
    y.register_hook(lambda ct: ct * 10.0)
    y.register_hook(lambda ct: np.full(3, 1.0) + ct.numpy())  # sees what the first one returned
    gt.sum(y).backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.full(3, 22.0))


def test_removed_hooks_are_not_called() -> None:
    x = leaf()
    handle = x.register_hook(lambda ct: ct * 0.0)
    handle.remove()
    handle.remove()
    with x.register_hook(lambda ct: ct * 5.0):
        gt.sum(x).backward()
    gt.sum(x).backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.full(3, 6.0))
    assert not LEAVES.hooked


def test_on_tapes_and_in_transforms() -> None:
    tape = gt.GradientTape(persistent=True)
    x = tape.watch(X)
    y = x**2
    y.register_hook(lambda ct: 3.0 * ct)
    np.testing.assert_array_equal(np.asarray(tape.gradient(gt.sum(y), x)), 6 * X)
    by_y, by_x = tape.gradient(gt.sum(y), [y, x])  # by y: what its hooks left
    np.testing.assert_array_equal(np.asarray(by_y), np.full(3, 3.0))
    np.testing.assert_array_equal(np.asarray(by_x), 6 * X)

    def function(x: Any) -> Any:
        y = np.sin(x)
        y.register_hook(lambda ct: 2.0 * ct)
        return np.sum(y)

    np.testing.assert_allclose(gt.grad(function)(X), 2 * np.cos(X))
    np.testing.assert_allclose(gt.jit(gt.grad(function))(X), 2 * np.cos(X))
    np.testing.assert_allclose(gt.vmap(gt.grad(function))(X[None]), 2 * np.cos(X)[None])
    second = gt.grad(lambda x: np.sum(gt.grad(function)(x)))(X)
    np.testing.assert_allclose(second, -2 * np.sin(X))
    _, pull = gt.vjp(function, X)
    np.testing.assert_allclose(pull(1.0)[0], 2 * np.cos(X))


def test_a_hook_may_depend_on_what_is_differentiated_further_out() -> None:
    def scaled(w: Any) -> Any:
        def inner(x: Any) -> Any:
            y = x * 1.0
            y.register_hook(lambda ct: w * ct)
            return np.sum(y * y)

        return np.sum(gt.grad(inner)(X))

    # The inner gradient is w·2x.
    assert gt.grad(scaled)(3.0) == 2 * np.sum(X)


@pytest.mark.parametrize("mode", ["auto", "mixed", "reverse"])
def test_jacobians_are_computed_in_reverse_where_there_are_hooks(mode: str) -> None:
    """Whatever the sizes: what a hook does is not to depend on them."""

    def tall(x: Any) -> Any:
        y = np.sin(x)
        y.register_hook(lambda gradient: 0.5 * gradient)
        return np.tile(y, 40)

    expected = np.tile(0.5 * np.diag(np.cos(X)), (40, 1))
    jacobian = gt.jacobian(tall, mode=mode)
    np.testing.assert_allclose(jacobian(X), expected, rtol=1e-14)
    assert jacobian.schedule(X).mode == "reverse"
    config = gt.SchedulerConfig(strategy=gt.SchedulingStrategy(mode))
    with gt.GradientTape(scheduler=config) as tape:
        x = tape.watch(X)
        y = tall(x)
    np.testing.assert_allclose(tape.jacobian(y, x).numpy(), expected, rtol=1e-14)
    assert tape.schedule.mode == "reverse"


def test_forward_mode_calls_no_hooks() -> None:
    def scaled(x: Any) -> Any:
        y = np.sin(x)
        y.register_hook(lambda gradient: 0.5 * gradient)
        return y

    np.testing.assert_allclose(gt.jacobian(scaled, mode="forward")(X), np.diag(np.cos(X)))


def test_hooks_in_contexts_do_not_record() -> None:
    x, w = leaf(), leaf([2.0, 2.0, 2.0])
    x.register_hook(lambda ct: ct * w)
    gt.sum(x).backward()
    assert x.grad.record is None
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 2.0, 2.0])
    x, w = leaf(), leaf([2.0, 2.0, 2.0])
    y = x * x
    y.register_hook(lambda ct: ct * w)
    gt.sum(y).backward(create_graph=True)
    gt.sum(x.grad).backward()
    np.testing.assert_array_equal(w.grad.numpy(), 2 * X)


def test_with_create_graph_checkpoints_and_release() -> None:
    for options in ({"release": True}, {"create_graph": True}):
        x, seen = leaf(), []
        y = np.exp(x)
        y.register_hook(lambda ct, seen=seen: seen.append(1))
        gt.sum(y * y).backward(**options)
        assert seen == [1]
        np.testing.assert_allclose(x.grad.detach().numpy(), 2 * np.exp(2 * X))
    config = gt.CheckpointConfig(strategy=gt.CheckpointStrategy.Full)
    tape = gt.GradientTape(checkpoint=config)
    x = tape.watch(X)
    y = np.exp(x)
    y.register_hook(lambda ct: 2.0 * ct)
    np.testing.assert_allclose(np.asarray(tape.gradient(gt.sum(y * y), x)), 4 * np.exp(2 * X))


def test_a_hook_is_called_once_even_where_values_are_not_finite() -> None:
    x, seen = leaf([0.0, 1.0]), []
    with np.errstate(divide="ignore"):
        y = np.where(x > 0, np.log(x), 0.0)
    y.register_hook(lambda ct: seen.append(1))
    gt.sum(y).backward()
    assert seen == [1]
    np.testing.assert_array_equal(x.grad.numpy(), [0.0, 1.0])


def test_results_of_ops_with_several_outputs() -> None:
    x, seen = leaf([[2.0, 1.0], [1.0, 3.0]]), []
    values, _ = np.linalg.eigh(x)
    values.register_hook(lambda ct: seen.append(ct.numpy()))
    gt.sum(values).backward()
    np.testing.assert_array_equal(seen, [[1.0, 1.0]])
    np.testing.assert_allclose(x.grad.numpy(), np.eye(2), atol=1e-14)


def test_errors_of_hooks() -> None:
    x = leaf()
    y = x * 2.0
    with y.register_hook(lambda ct: ct[:2]), pytest.raises(ShapeError, match=r"shape \(2,\)"):
        gt.sum(y).backward()
    with y.register_hook(lambda ct: np.arange(3)), pytest.raises(DTypeError, match="int64"):
        gt.sum(y).backward()

    def fails(_ct: Any) -> None:
        raise RuntimeError("mine")

    with y.register_hook(fails), pytest.raises(RuntimeError, match="mine"):
        gt.sum(y).backward()
    assert x.grad is None
    gt.sum(y).backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.full(3, 2.0))


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ([1.0, 2.0, 3.0], "returned a list, expected float64\\[3\\], an array or a tensor; return"),
        ("x", "returned a str, expected"),
        (True, "returned a bool, expected"),
        (2, "returned the number 2.0, expected shape \\(3,\\)"),
        (np.True_, "returned shape \\(\\), expected shape \\(3,\\)"),
        (np.array(["a"] * 3), "returned <U1, expected float64"),
        (1j * X, "returned complex128, expected float64"),
    ],
)
def test_what_a_hook_must_not_return(result: Any, message: str) -> None:
    y = leaf() * 2.0
    y.register_hook(lambda ct: result)
    with pytest.raises((ShapeError, DTypeError), match=f"register_hook: the hook {message}"):
        gt.sum(y).backward()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("number", [3, 3.0, np.float64(3.0), np.array(3.0)])
def test_numbers_for_the_gradient_of_a_number(number: Any, dtype: Any) -> None:
    x = gt.tensor(np.array(2.0, dtype), requires_grad=True)
    y = x * x
    y.register_hook(lambda ct: number)
    y.backward()
    assert x.grad.dtype == dtype
    assert x.grad.item() == 12.0
    with y.register_hook(lambda ct: 1j), pytest.raises(DTypeError, match="returned complex128"):
        y.backward()
    with y.register_hook(lambda ct: np.int64(3)), pytest.raises(DTypeError, match="int64"):
        y.backward()


def multiplied(gradient: Any) -> None:
    gradient *= 5.0


def written(gradient: Any) -> None:
    gradient[0] = 5.0


def written_through_a_view(gradient: Any) -> None:
    part = gradient[1:]
    part += 1.0


def written_by_numpy(gradient: Any) -> None:
    np.multiply(gradient, 2.0, out=gradient)


@pytest.mark.parametrize("hook", [multiplied, written, written_through_a_view, written_by_numpy])
@pytest.mark.parametrize("create_graph", [False, True])
def test_writes_to_the_gradient_are_not_lost_silently(hook: Any, create_graph: bool) -> None:
    x = leaf()
    y = x * x
    message = rf"register_hook: the hook {hook.__name__} \({__file__}:\d+\) wrote to the gradient"
    with y.register_hook(hook), pytest.raises(WriteError, match=message):
        gt.sum(y * 3.0).backward(create_graph=create_graph)
    assert x.grad is None

    def returned(gradient: Any) -> Any:
        hook(gradient)
        return gradient

    y.register_hook(returned)
    gt.sum(y * 3.0).backward(create_graph=create_graph)
    expected = {
        multiplied: [15.0, 15.0, 15.0],
        written: [5.0, 3.0, 3.0],
        written_through_a_view: [3.0, 4.0, 4.0],
        written_by_numpy: [6.0, 6.0, 6.0],
    }
    np.testing.assert_array_equal(x.grad.detach().numpy(), 2.0 * X * expected[hook])


def test_hooks_of_tapes_and_of_functions_write_to_a_handle_of_their_own() -> None:
    def function(x: Any) -> Any:
        y = x * x
        y.register_hook(multiplied)
        return np.sum(y)

    for run in (gt.grad(function), gt.grad(lambda x: np.sum(gt.grad(function)(x)))):
        with pytest.raises(WriteError, match="wrote to the gradient that it got"):
            run(X)
    tape = gt.GradientTape()
    x = tape.watch(X)
    loss = function(x)
    with pytest.raises(WriteError, match="wrote to the gradient that it got"):
        tape.gradient(loss, x)


TWO = np.array([1.0, 2.0])
# What docs/reference.md says of functions that register hooks: how often these are called, None if
# they cannot be registered.
HOOKS_CALLED: dict[str, tuple[Any, int | None]] = {
    "grad": (lambda f, _: gt.grad(f)(TWO), 1),
    "vjp": (lambda f, _: gt.vjp(f, TWO)[1](1.0), 1),
    "jacrev": (lambda _, g: gt.jacrev(g)(TWO), 1),
    "jacobian": (lambda _, g: gt.jacobian(g, mode="reverse")(TWO), 1),
    "forward jacobian": (lambda _, g: gt.jacobian(g, mode="forward")(TWO), 0),
    "hessian": (lambda f, _: gt.hessian(f)(TWO), 1),
    "hvp": (lambda f, _: gt.hvp(f, (TWO,), (TWO,)), 1),
    "linearize": (lambda f, _: gt.linearize(f, TWO)[1](TWO), 0),
    "per_sample_gradients": (
        lambda f, _: gt.per_sample_gradients(lambda w, x: f(w * x))(TWO, np.ones((3, 2))),
        1,
    ),
    "vmap of grad": (lambda f, _: gt.vmap(gt.grad(f))(np.ones((3, 2))), 1),
    "jit of grad": (lambda f, _: gt.jit(gt.grad(f))(TWO), 1),
    "jvp": (lambda f, _: gt.jvp(f, (TWO,), (TWO,)), None),
    "jacfwd": (lambda _, g: gt.jacfwd(g)(TWO), None),
    "gnvp": (lambda f, g: gt.gnvp(g, np.sum, (TWO,), (TWO,)), None),
    "fvp": (lambda _, g: gt.fvp(g, (TWO,), (TWO,)), None),
    "jet": (lambda f, _: gt.jet(f, (TWO,), ([TWO],)), None),
    "nth_derivative": (lambda f, _: gt.nth_derivative(f, 2)(1.0), None),
    "laplacian": (lambda f, _: gt.laplacian(f)(TWO), None),
    "vmap": (lambda f, _: gt.vmap(f)(np.ones((3, 2))), None),
    "jit": (lambda f, _: gt.jit(f)(TWO), None),
    "sparse_jacobian": (lambda _, g: gt.sparse_jacobian(g)(TWO), None),
    "sparse_hessian": (lambda f, _: gt.sparse_hessian(f)(TWO), None),
}


@pytest.mark.parametrize("name", HOOKS_CALLED)
def test_functions_that_register_hooks(name: str) -> None:
    calls: list[Any] = []

    def many(x: Any) -> Any:
        h = np.sin(x)
        h.register_hook(calls.append)
        return h * h

    run, count = HOOKS_CALLED[name]
    if count is None:
        with pytest.raises(UnsupportedError, match="register_hook: got a tensor of"):
            run(lambda x: np.sum(many(x)), many)
    else:
        run(lambda x: np.sum(many(x)), many)
        assert len(calls) == count


def test_tensors_that_get_no_gradient() -> None:
    with pytest.raises(TapeError, match="register_hook: got a tensor that requires no gradient"):
        gt.ones(3).register_hook(print)
    with pytest.raises(ArgumentError, match="register_hook: got an int"):
        leaf().register_hook(3)
    with pytest.raises(ArgumentError, match="expected a leaf"):
        (leaf() * 2.0).register_post_accumulate_grad_hook(print)

    def hooked(x: Any) -> Any:
        x.register_hook(print)
        return x

    with pytest.raises(UnsupportedError, match="register_hook: got a tensor of vmap"):
        gt.vmap(hooked)(X)
    with pytest.raises(UnsupportedError, match="register_hook: got a tensor of jvp"):
        gt.jvp(hooked, (X,), (X,))


# ---- hooks of leaves ----------------------------------------------------------------------------


def test_leaves_are_complete_as_soon_as_all_their_uses_are_pulled() -> None:
    first, second, order = leaf(), leaf(), []
    h = first * 2.0
    h.register_hook(lambda ct: order.append("h"))
    y = h * second
    z = y * second
    z.register_hook(lambda ct: order.append("z"))
    y.register_hook(lambda ct: order.append("y"))
    second.register_hook(lambda ct: order.append("second"))
    first.register_hook(lambda ct: order.append("first"))
    gt.sum(z).backward()
    # `second` is used by y and z: it is complete before h is reached.
    assert order == ["z", "y", "second", "h", "first"]


def test_steps_are_taken_while_the_backward_pass_goes_on() -> None:
    weights = [leaf(np.full((2, 2), 0.5)) for _ in range(4)]
    pending: list[int] = []

    def step(weight: Any) -> None:
        pending.append(sum(w.grad is not None for w in weights))
        with gt.no_grad():
            weight[...] = weight - 0.1 * weight.grad
        weight.grad = None

    for weight in weights:
        weight.register_post_accumulate_grad_hook(step)
    plain = [leaf(np.full((2, 2), 0.5)) for _ in range(4)]
    for own in (weights, plain):
        h: Any = np.ones(2)
        for weight in own:
            h = np.tanh(weight @ h)
        gt.sum(h).backward()
    assert pending == [1, 1, 1, 1]  # never more than one gradient at a time
    for weight, other in zip(weights, plain, strict=True):
        np.testing.assert_allclose(
            weight.detach().numpy(), 0.5 - 0.1 * other.grad.numpy(), rtol=1e-15
        )


def test_the_gradient_is_accumulated_before_the_hook() -> None:
    x, seen = leaf(), []
    x.register_hook(lambda ct: 2.0 * ct)
    x.register_post_accumulate_grad_hook(lambda x: seen.append(x.grad.numpy().copy()))
    gt.sum(x).backward()
    gt.sum(x).backward()
    np.testing.assert_array_equal(seen, [np.full(3, 2.0), np.full(3, 4.0)])


def test_leaves_that_are_the_target_or_not_reached() -> None:
    x, other, seen = leaf(), leaf(), []
    x.register_hook(lambda ct: seen.append("x"))
    x.backward(np.ones(3))
    assert seen == ["x"]
    other.register_hook(lambda ct: seen.append("other"))
    gt.sum(gt.floor(other) * 0.0 + x).backward()  # floor passes nothing on
    assert seen == ["x", "x"]
    # The record of floor is never reached, so that `other` is complete only at the end.
    gt.sum(other * 2.0 + gt.sign(gt.floor(other * 1.5))).backward()
    assert seen == ["x", "x", "other"]


def test_hooks_die_with_their_tensor() -> None:
    def made() -> weakref.ref[Any]:
        x = leaf()
        x.register_post_accumulate_grad_hook(lambda _: x)  # refers to its own tensor
        return weakref.ref(x)

    held = made()
    gc.collect()
    assert held() is None
    assert not LEAVES.hooked


def test_handles_do_not_keep_history() -> None:
    x = leaf()
    y = x * 2.0
    handle = y.register_hook(print)
    record = weakref.ref(y.record)
    del y
    gc.collect()
    assert record() is None
    handle.remove()


# ---- scaling ------------------------------------------------------------------------------------


def test_scaled_gradients_in_both_modes() -> None:
    def function(x: Any) -> Any:
        return gt.scale_gradient(x, 0.5) ** 2

    np.testing.assert_array_equal(function(X), X**2)
    np.testing.assert_array_equal(gt.grad(lambda x: np.sum(function(x)))(X), X)
    np.testing.assert_array_equal(gt.jvp(function, (X,), (np.ones(3),))[1], X)
    np.testing.assert_array_equal(gt.jit(gt.grad(lambda x: np.sum(function(x))))(X), X)
    assert gt.grad(lambda x, f: np.sum(gt.scale_gradient(x, f)), 1)(X, 2.0) == 0.0
    reversed_ = gt.grad(lambda x: np.sum(gt.reverse_gradient(x, 3.0) * 2.0))(X)
    np.testing.assert_array_equal(reversed_, np.full(3, -6.0))
    assert gt.scale_gradient(np.float32(2.0), 0.5).dtype == np.float32
    with pytest.raises(ShapeError, match=r"factor of shape \(2,\), expected one number"):
        gt.scale_gradient(X, factor=np.ones(2))
    with pytest.raises(DTypeError, match="a complex factor for a real value"):
        gt.scale_gradient(X, 1j)
    assert gt.grad(lambda z: gt.scale_gradient(z, 1j) ** 2, holomorphic=True)(2 + 0j) == 4j


# ---- gradients only where they are needed -------------------------------------------------------


@pytest.mark.parametrize("enabled", [True, False])
def test_a_tape_that_is_off_records_nothing(enabled: bool) -> None:
    tape = gt.GradientTape(enabled=enabled)
    x = tape.watch(X)
    loss = gt.sum(x * x)
    assert (len(tape) > 0) is enabled
    assert loss.requires_grad is enabled
    if enabled:
        np.testing.assert_array_equal(np.asarray(tape.gradient(loss, x)), 2 * X)
    else:
        assert float(loss) == 14.0
        assert "off" in repr(tape)
        for ask in (tape.gradient, tape.jacobian, lambda loss, _: tape.records(loss)):
            with pytest.raises(TapeError, match="enabled=False"):
                ask(loss, x)
        assert not list(tape.records())


def test_set_grad_enabled() -> None:
    x = leaf()
    for flag in (True, False):
        with gt.set_grad_enabled(flag):
            assert (x * 2.0).requires_grad is flag
        assert (x * 2.0).requires_grad
    with gt.no_grad(), gt.set_grad_enabled(True):
        assert (x * 2.0).requires_grad
    decorated = gt.set_grad_enabled(np.bool_(False))(lambda: (x * 2.0).requires_grad)
    assert [decorated(), decorated()] == [False, False]
    with ExitStack() as stack:
        stack.enter_context(gt.set_grad_enabled(False))
        assert not (x * 2.0).requires_grad


def test_set_grad_enabled_as_a_statement_warns_at_its_line() -> None:
    x = leaf()
    with pytest.warns(UnusedScopeWarning, match="without `with`, which changes nothing") as caught:
        gt.set_grad_enabled(False)
    line = inspect.currentframe().f_lineno - 1
    assert (caught[0].filename, caught[0].lineno) == (__file__, line)
    assert (x * 2.0).requires_grad
    kept = [gt.set_grad_enabled(True)]
    assert repr(kept[0]) == "<set_grad_enabled(True): in force only in a `with` block>"
    with pytest.warns(UnusedScopeWarning) as caught:
        kept.clear()
    assert caught[0].lineno == line + 4


@pytest.mark.parametrize("options", [[], ["-Werror"]])
def test_set_grad_enabled_as_a_statement_is_never_silent(options: list[str]) -> None:
    code = "import gradtape as gt\ngt.set_grad_enabled(False)\nkept = gt.set_grad_enabled(True)"
    found = subprocess.run(
        [sys.executable, *options, "-c", code], capture_output=True, text=True, check=True
    )
    for mode in ("False", "True"):  # the second one goes when the interpreter ends
        assert f"UnusedScopeWarning: gt.set_grad_enabled({mode}): got a call" in found.stderr


def test_flags_are_true_or_false() -> None:
    with pytest.raises(ArgumentError, match="set_grad_enabled: got 'x' for mode, expected True or"):
        gt.set_grad_enabled("x")
    for value in ("no", 1, None, np.array([1, 2]), np.array(True), gt.tensor(1.0)):
        with pytest.raises(ArgumentError, match=r"GradientTape: got .* for enabled, expected True"):
            gt.GradientTape(enabled=value)
    with pytest.raises(ArgumentError, match="GradientTape: got a list for lines, expected True"):
        gt.GradientTape(lines=[])
    assert gt.GradientTape(enabled=np.bool_(False)).enabled is False
