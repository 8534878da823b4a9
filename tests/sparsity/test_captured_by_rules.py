"""Arrays that derivative rules use from outside: patterns depend on them, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt

MASKS = [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [0.0, 0.0, 2.0], [1.0, 1.0, 1.0], [0.0, 1.0, 0.0]]


def of_vjp(scale: Any) -> Callable[[Any], Any]:
    @gt.custom_vjp
    def function(x: Any) -> Any:
        return x * scale

    @function.defvjp
    def _(ct: Any, out: Any, x: Any) -> Any:
        return (ct * scale,)

    return function


def of_jvp(scale: Any) -> Callable[[Any], Any]:
    @gt.custom_jvp
    def function(x: Any) -> Any:
        return x * scale

    @function.defjvp
    def _(tangents: Any, out: Any, x: Any) -> Any:
        return tangents[0] * scale

    return function


def of_host(scale: Any) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        def rule(ct: Any, out: Any, x: Any) -> Any:
            return (ct * scale,)

        return gt.host_call(lambda x: x * scale, x, x, vjp=rule)

    return function


class Scaled:
    """A method with a rule."""

    def __init__(self, scale: Any) -> None:
        self.m = scale

    @gt.custom_vjp
    def function(self, x: Any) -> Any:
        return x * self.m

    @function.defvjp
    def rule(self, ct: Any, out: Any, x: Any) -> Any:
        return (ct * self.m,)


def of_index(places: Any) -> Callable[[Any], Any]:
    @gt.custom_jvp
    def function(x: Any) -> Any:
        return x[places]

    @function.defjvp
    def _(tangents: Any, out: Any, x: Any) -> Any:
        return tangents[0][places]

    return function


def of_truths(truths: Any) -> Callable[[Any], Any]:
    """How many are true decides the graph of the rule."""

    @gt.custom_vjp
    def function(x: Any) -> Any:
        return np.sum(x[truths]) * x

    @function.defvjp
    def _(ct: Any, out: Any, x: Any) -> Any:
        return (x * np.sum(ct[truths]),)

    return function


KINDS = {
    "custom_vjp": of_vjp,
    "custom_jvp": of_jvp,
    "host_call": of_host,
    "method": lambda scale: Scaled(scale).function,
    "index": of_index,
    "truths": of_truths,
}
SCALES = ("custom_vjp", "custom_jvp", "host_call", "method")
VALUES: dict[str, Any] = {
    **dict.fromkeys(SCALES, np.array(MASKS)),
    "index": np.array([[0, 1, 2], [2, 1, 0], [1, 1, 0]]),
    "truths": np.array(MASKS) != 0.0,
}
WAYS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "alone": lambda f: f,
    "scan": lambda f: lambda x: gt.scan(lambda c, _: (c, f(c)), x, None, length=2)[1],
    "jit": lambda f: gt.jit(f),
    "cond": lambda f: lambda x: gt.cond(True, f, lambda x: x, x),
    "checkpoint": lambda f: gt.checkpoint(f),
    "nested": lambda f: of_rule_that_calls(f),
    "mapped": lambda f: lambda x: gt.vmap(f)(np.stack([x, 2.0 * x])),
}


def sum_of_squares(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: np.sum(f(x) ** 2)


def of_rule_that_calls(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A rule in which there is another function with a rule."""

    @gt.custom_vjp
    def function(x: Any) -> Any:
        return f(x)

    @function.defvjp
    def _(ct: Any, out: Any, x: Any) -> Any:
        return gt.vjp(f, x)[1](ct)

    return function


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_rules_that_are_written_into(kind: str, way: str, rng: Any) -> None:
    scale, x = VALUES[kind][0].copy(), rng.normal(size=3)
    function = WAYS[way](KINDS[kind](scale))
    jacobian = gt.sparse_jacobian(function)
    hessian = gt.sparse_hessian(sum_of_squares(function))
    for new in VALUES[kind]:
        scale[:] = new
        fresh = WAYS[way](KINDS[kind](scale.copy()))
        expected = gt.jacrev(fresh)(x).reshape(-1, 3)
        np.testing.assert_allclose(jacobian(x).toarray(), expected, atol=1e-14)
        expected = gt.jacrev(gt.grad(sum_of_squares(fresh)))(x)
        np.testing.assert_allclose(hessian(x).toarray(), expected, atol=1e-14)


@pytest.mark.parametrize("kind", SCALES)
def test_only_zeros_of_a_factor_count(kind: str, rng: Any) -> None:
    scale, x = np.array(MASKS[0]), rng.normal(size=3)
    jacobian = gt.sparse_jacobian(KINDS[kind](scale))
    plan = jacobian.plan(x)
    assert plan.pattern.nnz == 2
    scale *= 3.0
    assert jacobian.plan(x) is plan
    np.testing.assert_allclose(jacobian(x).toarray(), np.diag(scale))


@pytest.mark.parametrize("kind", SCALES)
def test_tensors_of_rules_that_are_written_into(kind: str, rng: Any) -> None:
    scale, x = gt.tensor(np.array(MASKS[0])), rng.normal(size=3)
    jacobian = gt.sparse_jacobian(KINDS[kind](scale))
    for new in MASKS:
        scale[:] = np.array(new)
        np.testing.assert_allclose(jacobian(x).toarray(), np.diag(new))
        assert jacobian(x).nnz in (np.count_nonzero(new), 3)


def of_weights(weights: Any, forward: bool) -> Callable[[Any], Any]:
    """Only the rule uses the weights: the function itself may not, if these are recorded."""
    function = (gt.custom_jvp if forward else gt.custom_vjp)(lambda x: x * 1.0)
    if forward:
        function.defjvp(lambda tangents, out, x: tangents[0] * weights)
    else:
        function.defvjp(lambda ct, out, x: (ct * weights,))
    return function


@pytest.mark.parametrize("forward", [False, True])
def test_tensors_of_rules_that_are_differentiated(forward: bool) -> None:
    """What is 0 now has a derivative all the same."""

    def total(weights: Any) -> Any:
        jacobian = gt.sparse_jacobian(of_weights(weights, forward))
        return np.sum((jacobian(np.ones(3)) @ np.ones(3) + 1.0) ** 2)

    zeros = np.array(MASKS[0])
    np.testing.assert_allclose(gt.grad(total)(zeros), 2.0 * (zeros + 1.0))
    weights = gt.tensor(zeros)
    jacobian = gt.sparse_jacobian(of_weights(weights, forward))
    assert jacobian(np.ones(3)).nnz == 2
    weights.set_requires_grad()
    np.sum((jacobian(np.ones(3)) @ np.ones(3) + 1.0) ** 2).backward()
    assert weights.grad is not None
    np.testing.assert_allclose(weights.grad.numpy(), 2.0 * (zeros + 1.0))


@pytest.mark.parametrize("kind", KINDS)
def test_a_compiled_function_around_it_sees_the_change(kind: str, rng: Any) -> None:
    scale, x = VALUES[kind][0].copy(), rng.normal(size=3)
    jacobian = gt.sparse_jacobian(KINDS[kind](scale))
    jacobian(x)
    compiled = gt.jit(lambda x: jacobian(x) @ x)
    for new in VALUES[kind]:
        scale[:] = new
        expected = gt.jacrev(KINDS[kind](scale.copy()))(x) @ x
        np.testing.assert_allclose(compiled(x), expected, atol=1e-14)


def test_a_loop_with_many_steps_notes_an_array_once(rng: Any) -> None:
    scale, x = np.array(MASKS[0]), rng.normal(size=3)
    function = of_jvp(scale)

    def looped(x: Any) -> Any:
        return gt.scan(lambda c, _: (function(c), None), x, None, length=40)[0]

    jacobian = gt.sparse_jacobian(looped)
    jacobian(x)
    (form,) = jacobian._forms
    assert len(form._ready.found.relied) == 1
    scale[:] = MASKS[1]
    np.testing.assert_allclose(jacobian(x).toarray(), np.diag(MASKS[1]))


def test_numbers_that_a_rule_makes_itself_are_no_source(rng: Any) -> None:
    @gt.custom_jvp
    def function(x: Any) -> Any:
        return x * 1.0

    @function.defjvp
    def _(tangents: Any, out: Any, x: Any) -> Any:
        return tangents[0] * np.array([1.0, 0.0, 2.0])

    jacobian, x = gt.sparse_jacobian(function), rng.normal(size=3)
    plan = jacobian.plan(x)
    assert plan.pattern.nnz == 2
    assert jacobian.plan(x) is plan
