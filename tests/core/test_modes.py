"""Modes see everything: both passes, tangents, traces and compiled functions."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.state import WATCHING
from gradtape.errors import ArgumentError

X = np.linspace(0.1, 1.0, 5)


class Names:
    """Lists the ops it sees; of a compiled function, those of its graph."""

    kind = "observing"

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.calls = 0

    def run(self, op: Any, args: Any, params: Any, proceed: Any) -> Any:
        self.calls += 1
        self.seen += [op.name] if op.graph is None else [node.op.name for node in op.graph.nodes]
        return proceed(op, args, params)


class Scaled:
    """Multiplies what `tanh` gives."""

    kind = "rewriting"

    def __init__(self, factor: float) -> None:
        self.factor = factor
        self.key = ("scaled", factor)

    def run(self, op: Any, args: Any, params: Any, proceed: Any) -> Any:
        out = proceed(op, args, params)
        return out * self.factor if op.name == "tanh" else out


def energy(x: Any) -> Any:
    return gt.sum(np.tanh(x) * x)


def backward(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def gradient(x: Any) -> Any:
        leaf = gt.tensor(x, requires_grad=True)
        function(leaf).backward()
        return leaf.grad.numpy()

    return gradient


FORWARD = ["tanh", "multiply", "sum"]
# By the rules, in the order of the walk: d(t·x) = t·dx + x·dt, dt = (1 − t²)·dx; the sum of both.
BACKWARD = ["spread", "multiply", "multiply", "multiply", "multiply", "subtract", "add"]
SEEN: dict[str, tuple[Callable[[Any], Any], list[str]]] = {
    "forward": (lambda x: energy(gt.Tensor(x)).numpy(), FORWARD),
    "backward": (backward(energy), FORWARD + BACKWARD),
    "grad": (gt.grad(energy), FORWARD + BACKWARD),
    "vmap": (gt.vmap(energy, in_axes=0), FORWARD),
    "jvp of vmap": (
        lambda x: gt.jvp(gt.vmap(np.tanh), (x,), (x,))[1],
        ["tanh", "multiply", "multiply", "subtract"],
    ),
    "vmap of jvp": (
        gt.vmap(lambda x: gt.jvp(np.tanh, (x,), (x,))[1]),
        ["tanh", "multiply", "multiply", "subtract"],
    ),
    "jit": (gt.jit(energy), FORWARD),
}


@pytest.mark.parametrize(("function", "names"), SEEN.values(), ids=SEEN)
def test_what_is_seen(function: Callable[[Any], Any], names: list[str]) -> None:
    x = X[:, None] if function is SEEN["vmap"][0] else X
    expected = function(x)
    with gt.using_mode(mode := Names()):
        result = function(x)
    assert mode.seen == names
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("size", [5, 1 << 16])
def test_rules_run_op_by_op_whatever_the_size(size: int) -> None:
    x = np.linspace(0.1, 1.0, size)
    with gt.using_mode(mode := Names()):
        gradient = gt.grad(energy)(x)
    assert mode.seen == FORWARD + BACKWARD
    np.testing.assert_allclose(gradient, gt.grad(energy)(x), rtol=1e-14)


def test_tapes_push_in_sight() -> None:
    with gt.GradientTape(persistent=True) as tape:
        x = tape.watch(X)
        y = np.tanh(x) * 2.0
    expected = tape.forward_gradient(x, y, tangent=np.ones(5))
    with gt.using_mode(mode := Names()):
        tangent = tape.forward_gradient(x, y, tangent=np.ones(5))
    assert "subtract" in mode.seen
    np.testing.assert_array_equal(np.asarray(tangent), np.asarray(expected))


# ---- compiled functions -------------------------------------------------------------------------


def test_each_compiled_call_is_one_op_with_its_graph() -> None:
    compiled = gt.jit(energy)
    for _ in range(3):
        compiled(X)
    native = compiled.__call__
    with gt.using_mode(mode := Names()):
        compiled(X)
        compiled(gt.Tensor(X))
        gt.grad(compiled)(X)
    assert mode.calls == 4
    assert mode.seen[:9] == FORWARD * 3
    assert len(mode.seen) > 12
    # Afterwards calls go to native code again without any detour.
    assert not WATCHING
    compiled(X)
    assert compiled.__call__ is native


def test_other_threads_are_not_seen_and_not_disturbed() -> None:
    compiled, results = gt.jit(energy), []
    compiled(X)

    def work() -> None:
        results.extend(compiled(X) for _ in range(10))
        results.append(energy(gt.Tensor(X)).item())

    with gt.using_mode(mode := Names()):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert not mode.seen
    np.testing.assert_allclose(results, energy(X))


def test_states_that_are_gone_are_not_counted() -> None:
    def generator() -> Any:
        with gt.using_mode(Names()):
            yield

    abandoned = generator()
    next(abandoned)
    with pytest.raises(ZeroDivisionError), gt.using_mode(Names()):
        _ = 1 / 0
    assert WATCHING
    del abandoned
    gc.collect()
    gt.ones(1) + 1.0
    assert not WATCHING


# ---- rewriting ----------------------------------------------------------------------------------

REWRITTEN: dict[str, Callable[[Callable[[Any], Any]], Callable[[Any], Any]]] = {
    "itself": lambda f: lambda x: np.asarray(f(gt.Tensor(x))),
    "jit": gt.jit,
    "jit of jit": lambda f: gt.jit(lambda x: gt.jit(f)(x) * 1.0),
    "grad": gt.grad,
    "jit of grad": lambda f: gt.jit(gt.grad(f)),
    "grad of jit": lambda f: gt.grad(gt.jit(f)),
    "jvp": lambda f: lambda x: gt.jvp(f, (x,), (np.cos(x),))[1],
    "jvp of jit": lambda f: lambda x: gt.jvp(gt.jit(f), (x,), (np.cos(x),))[1],
    "vmap": lambda f: lambda x: gt.vmap(f)(x[:, None]),
    "jit of vmap": lambda f: lambda x: gt.jit(gt.vmap(f))(x[:, None]),
    "vmap of jit": lambda f: lambda x: gt.vmap(gt.jit(f))(x[:, None]),
    "hessian": gt.hessian,
    "grad of grad of jit": lambda f: gt.grad(lambda x: gt.sum(gt.grad(gt.jit(f))(x) ** 2)),
}


@pytest.mark.parametrize("transform", REWRITTEN.values(), ids=REWRITTEN)
def test_a_mode_rewrites_once_wherever_it_is_in_force(transform: Any) -> None:
    def scaled(x: Any) -> Any:
        return gt.sum(3.0 * np.tanh(x) * x)

    with gt.using_mode(Scaled(3.0)):
        result = transform(energy)(X)
    np.testing.assert_allclose(result, transform(scaled)(X), rtol=1e-12)


def test_functions_are_compiled_for_each_mode_and_without() -> None:
    traces = []

    def counted(x: Any) -> Any:
        traces.append(1)
        return energy(x)

    compiled = gt.jit(counted)
    plain = compiled(X)
    for factor in (2.0, 3.0, 2.0, 3.0):
        with gt.using_mode(Scaled(factor)):
            assert compiled(X) == pytest.approx(factor * plain)
    assert compiled(X) == plain
    assert len(traces) == 3


def test_a_mode_does_not_see_what_it_calls() -> None:
    class Rounded(Names):
        kind = "rewriting"

        def run(self, op: Any, args: Any, params: Any, proceed: Any) -> Any:
            super().run(op, args, params, lambda *_call: None)
            return gt.round(proceed(op, args, params), 3)

    with gt.using_mode(outer := Names()), gt.using_mode(inner := Rounded()):
        out = np.tanh(gt.Tensor(X))
    assert inner.seen == ["tanh"]
    assert outer.seen == ["tanh", "round"]
    np.testing.assert_array_equal(out.numpy(), np.round(np.tanh(X), 3))


@pytest.mark.parametrize("kind", [None, "tracing", "other"])
def test_a_mode_says_which_kind_it_is(kind: str | None) -> None:
    mode = Names()
    mode.kind = kind  # type: ignore[assignment]
    with pytest.raises(
        ArgumentError, match=r"using_mode: got a mode of kind .*observing.*rewriting"
    ):
        gt.using_mode(mode)


def test_a_mode_has_a_method() -> None:
    class Blind:
        kind = "observing"

    for mode, got in ((Blind(), "a Blind"), (Names, "the class Names")):
        with pytest.raises(
            ArgumentError, match=rf"using_mode: got {got}, expected .*run\(op, args"
        ):
            gt.using_mode(mode)  # type: ignore[arg-type]
