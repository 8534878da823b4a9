"""`gt.jit` with derivatives and batches: inside a compiled function, and of a compiled function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from jitcheck import Counted, assert_close, network, network_arguments, network_loss

X = np.random.default_rng(1).normal(size=(4, 3))
V = np.random.default_rng(2).normal(size=3)


def energy(x: Any, v: Any) -> Any:
    return np.sum(np.tanh(x * v) ** 2) + np.sum(x @ v)


def field(x: Any) -> Any:
    return np.sin(x) * np.sum(x, axis=-1, keepdims=True)


def with_aux(x: Any, v: Any) -> Any:
    y = x * v
    return np.sum(y**3), {"y": y, "positive": y > 0}


def hvp(x: Any, v: Any) -> Any:
    return gt.jvp(lambda x: gt.grad(energy)(x, V), (x,), (v,))


# Each is a transform of a function: what it gives is compared with the function as it is, with the
# function compiled, compiled as a whole, and both.
TRANSFORMS: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = {
    "grad": (gt.grad, energy, (X, V)),
    "grad by both": (lambda f: gt.grad(f, (0, 1)), energy, (X, V)),
    "value and grad": (lambda f: gt.value_and_grad(f, 1), energy, (X, V)),
    "has_aux": (lambda f: gt.value_and_grad(f, has_aux=True), with_aux, (X, V)),
    "jvp": (lambda f: lambda x, v: gt.jvp(f, (x, v), (x, v)), energy, (X, V)),
    "jvp by one": (lambda f: lambda x, v: gt.jvp(lambda x: f(x, v), (x,), (x,)), energy, (X, V)),
    "vjp": (lambda f: lambda x: gt.vjp(f, x)[1](np.cos(x)), field, (X,)),
    "jacobian": (gt.jacobian, field, (V,)),
    "jacfwd": (gt.jacfwd, field, (V,)),
    "hessian": (lambda f: gt.hessian(lambda x: f(x, V)), energy, (X,)),
    "hessian by reverse": (
        lambda f: gt.jacrev(gt.grad(lambda v: f(X, v))),
        energy,
        (V,),
    ),
    "third order": (
        lambda f: gt.grad(lambda x: np.sum(gt.grad(lambda x: np.sum(gt.grad(f)(x, V)))(x))),
        energy,
        (X,),
    ),
    "forward over reverse": (
        lambda f: lambda x: gt.jvp(lambda x: gt.grad(f)(x, V), (x,), (X * 2,)),
        energy,
        (X,),
    ),
    "vmap": (gt.vmap, field, (X,)),
    "vmap by one": (lambda f: gt.vmap(f, in_axes=(0, None)), energy, (X[:, None, :], V)),
    "vmap of the last axis": (lambda f: gt.vmap(f, in_axes=-1, out_axes=1), field, (X.T,)),
    "vmap twice": (lambda f: gt.vmap(gt.vmap(f)), field, (X[..., None] * V,)),
    "vmap of grad": (
        lambda f: gt.vmap(gt.grad(f), in_axes=(0, None)),
        energy,
        (X[:, None, :], V),
    ),
    "grad of vmap": (lambda f: gt.grad(lambda x: np.sum(gt.vmap(f)(x) ** 2)), field, (X,)),
    "jvp of vmap": (lambda f: lambda x: gt.jvp(gt.vmap(f), (x,), (x,)), field, (X,)),
}


# Single precision goes the same way: one transform of each kind shows that the dtype is kept.
IN_SINGLE_PRECISION = ("has_aux", "jvp", "vjp", "vmap of grad")


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, np.float64) for name in TRANSFORMS),
        *(
            pytest.param(
                name, np.float32, marks=[] if name in IN_SINGLE_PRECISION else pytest.mark.slow
            )
            for name in TRANSFORMS
        ),
    ],
)
def test_transforms_inside_and_outside(name: str, dtype: Any) -> None:
    transform, function, args = TRANSFORMS[name]
    args = tuple(arg.astype(dtype) for arg in args)
    expected = transform(function)(*args)
    ways = {
        "transform of compiled": transform(gt.jit(function)),
        "compiled transform": gt.jit(transform(function)),
        "compiled transform of compiled": gt.jit(transform(gt.jit(function))),
    }
    for way, transformed in ways.items():
        for _ in range(2):
            try:
                assert_close(transformed(*args), expected, 512)
            except AssertionError as error:
                raise AssertionError(f"{way}: {error}") from error


def test_training_with_a_compiled_step(rng: np.random.Generator) -> None:
    weights, x, y = network_arguments(rng)

    def step(weights: Any, x: Any, y: Any, rate: float) -> Any:
        loss, gradient = gt.value_and_grad(network_loss)(weights, x, y)
        return loss, {name: weights[name] - rate * gradient[name] for name in weights}

    compiled = gt.jit(Counted(step))
    eager, native = weights, weights
    for k in range(5):
        expected, eager = step(eager, x, y, 0.1 / (k + 1))
        loss, native = compiled(native, x, y, 0.1 / (k + 1))
        assert_close((loss, native), (expected, eager), 512)
    assert compiled.__wrapped__.count == 1


# ---- recorded tensors ---------------------------------------------------------------------------


def test_backward_through_a_compiled_loss(rng: np.random.Generator) -> None:
    weights, x, y = network_arguments(rng)
    expected = gt.grad(network_loss)(weights, x, y)
    compiled = gt.jit(Counted(network_loss))
    for _ in range(3):
        leaves = {name: gt.tensor(w, requires_grad=True) for name, w in weights.items()}
        loss = compiled(leaves, x, y)
        assert loss.requires_grad
        loss.backward()
        assert_close({n: np.asarray(leaf.grad) for n, leaf in leaves.items()}, expected, 512)
    assert compiled.__wrapped__.count == 1


def test_records_are_one_per_call() -> None:
    w = gt.tensor(V, requires_grad=True)
    compiled = gt.jit(energy)
    with gt.GradientContext() as context:
        loss = compiled(X, w) * 2.0
        assert len(context.tape) == 6  # the function, its result, what it keeps, the product
        gt.compute_gradients(loss)
    assert_close(np.asarray(w.grad), 2.0 * gt.grad(energy, 1)(X, V), 512)


def test_gradient_tapes() -> None:
    compiled = gt.jit(energy)
    with gt.GradientTape(persistent=True) as outer:
        x = outer.watch(X)
        with gt.GradientTape() as inner:
            v = inner.watch(V)
            value = compiled(x, v)
        gradient = inner.gradient(value, v)
        slope = np.sum(gradient)
    expected = gt.grad(energy, 1)(X, V)
    assert_close(np.asarray(gradient.detach()), expected, 512)
    mixed = gt.grad(lambda x: np.sum(gt.grad(energy, 1)(x, V)))(X)
    assert_close(np.asarray(outer.gradient(slope, x)), mixed, 512)


def test_second_derivatives_by_create_graph() -> None:
    w = gt.tensor(V, requires_grad=True)
    compiled = gt.jit(energy)
    with gt.GradientContext():
        gt.compute_gradients(compiled(X, w), create_graph=True)
        first = w.grad
        w.grad = None
        gt.compute_gradients(np.sum(first**2))
    expected = gt.grad(lambda v: np.sum(gt.grad(energy, 1)(X, v) ** 2))(V)
    assert_close(np.asarray(w.grad), expected, 512)


def test_no_grad_outside() -> None:
    w = gt.tensor(V, requires_grad=True)
    compiled = gt.jit(energy)
    with gt.no_grad():
        assert not compiled(X, w).requires_grad
        # A transform that is started inside works, though the function is of recorded tensors.
        assert_close(np.asarray(gt.grad(compiled, 1)(X, w)), gt.grad(energy, 1)(X, V), 512)
    assert compiled(X, w).requires_grad
    assert not compiled(X, w.detach()).requires_grad


def no_grad_inside(x: Any) -> Any:
    with gt.no_grad():
        scale = np.sum(x * x)
    return np.sum(x) * scale


def detached_inside(x: Any) -> Any:
    return np.sum(x) * gt.stop_gradient(np.sum(x * x))


@pytest.mark.parametrize("function", [no_grad_inside, detached_inside])
def test_what_is_cut_inside_stays_cut(function: Callable[..., Any]) -> None:
    compiled = gt.jit(function)
    expected = gt.grad(function)(V)
    assert_close(expected, np.full(3, np.sum(V * V)))
    for gradient in (gt.grad(compiled), gt.jit(gt.grad(function)), gt.jit(gt.grad(compiled))):
        assert_close(gradient(V), expected)
    tangents = (V * 2,)
    assert_close(gt.jvp(compiled, (V,), tangents), gt.jvp(function, (V,), tangents))
    leaf = gt.tensor(V, requires_grad=True)
    compiled(leaf).backward()
    assert_close(np.asarray(leaf.grad), expected)


def test_modes_see_a_compiled_function_as_one_op() -> None:
    class Names:
        kind = "observing"

        def __init__(self) -> None:
            self.seen: list[str] = []

        def run(self, op: Any, args: Any, params: Any, proceed: Any) -> Any:
            self.seen.append(op.name)
            return proceed(op, args, params)

    names, compiled = Names(), gt.jit(energy)
    with gt.using_mode(names):
        first = compiled(X, gt.tensor(V, requires_grad=True))
        again = compiled(X, gt.tensor(V, requires_grad=True))
    assert names.seen == ["energy", "energy"]
    assert first.item() == again.item()
    assert_close(np.asarray(first.detach())[()], energy(X, V))


def test_results_without_derivatives() -> None:
    fixed = gt.tensor(V, requires_grad=True)

    def function(x: Any, y: Any) -> Any:
        accuracy = np.mean((x > 0).astype(np.float64))
        cut = gt.stop_gradient(x) * 2 + fixed.detach()
        return np.sum(x), x > 0, np.argmax(x), x.astype(np.int32), accuracy, cut, y * 2, y

    x = gt.tensor(X, requires_grad=True)
    total, *others = gt.jit(function)(x, V)
    assert total.requires_grad
    assert not any(other.requires_grad for other in others)
    _, *expected = function(x, V)
    assert_close([np.asarray(other) for other in others], [np.asarray(o) for o in expected])
    total.backward()
    assert fixed.grad is None
    # The same with another argument recorded: other results are.
    recorded = [out.requires_grad for out in gt.jit(function)(X, gt.tensor(V, requires_grad=True))]
    assert recorded == [False] * 6 + [True] * 2


def test_functions_with_rules_of_their_own() -> None:
    @gt.custom_vjp
    def doubled(x: Any) -> Any:
        return np.sin(x)

    doubled.defvjp(lambda ct, out, x: (2 * ct,))  # not its derivative, so that it can be told

    def function(x: Any) -> Any:
        return np.sum(doubled(x) * x)

    expected = gt.value_and_grad(function)(V)
    compiled = gt.jit(function)
    for way in (
        gt.value_and_grad(compiled),
        gt.jit(gt.value_and_grad(function)),
        gt.jit(gt.value_and_grad(compiled)),
    ):
        assert_close(way(V), expected)
    assert_close(gt.jit(function)(V), function(V))


def test_arguments_that_are_not_used_get_zeros() -> None:
    gradient = gt.grad(gt.jit(lambda x, v: np.sum(x)), (0, 1))(X, V)
    assert_close(gradient, (np.ones_like(X), np.zeros_like(V)))


def test_batches_of_other_sizes() -> None:
    compiled = gt.jit(network)
    weights, x, _ = network_arguments(np.random.default_rng(0))
    for n in (1, 2, 5, 2):
        batches = np.stack([x + k for k in range(n)])
        expected = np.stack([network(weights, batch) for batch in batches])
        assert_close(gt.vmap(compiled, in_axes=(None, 0))(weights, batches), expected, 256)


def test_integer_arguments_are_not_differentiated() -> None:
    def function(x: Any, n: Any) -> Any:
        return np.sum(x[n]), n * 2

    n = np.array([0, 2, 2])
    leaf = gt.tensor(V, requires_grad=True)
    total, doubled = gt.jit(function)(leaf, n)
    total.backward()
    assert_close(np.asarray(leaf.grad), np.array([1.0, 0.0, 2.0]))
    assert not doubled.requires_grad
    assert_close(gt.jvp(lambda x: gt.jit(function)(x, n)[0], (V,), (V,)), (np.sum(V[n]),) * 2)


@pytest.mark.parametrize("dtype", ["float16", "complex64", "complex128", "bfloat16"])
def test_dtypes_without_native_code_are_differentiated(dtype: str) -> None:
    kind = gt.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    x = np.array([0.5, -1.25, 2.0]).astype(kind)
    x = x * (1 + 0.5j) if np.dtype(kind).kind == "c" else x
    x = x.astype(kind)

    def function(x: Any) -> Any:
        return np.sum(np.abs(x * x + x))

    expected = gt.grad(function)(x)
    for gradient in (gt.grad(gt.jit(function)), gt.jit(gt.grad(function))):
        assert_close(gradient(x), expected)
