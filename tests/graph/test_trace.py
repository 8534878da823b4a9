"""Tracing: plain NumPy code and transforms of it as graphs, and what cannot be traced."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.op import registry
from gradtape.errors import ConversionError, GradtapeError, UnsupportedError
from gradtape.graph.run import replay
from graphcall import assert_same_bits, check_traced, graph_of, run_trace, traced, traced_and_run

Function = Callable[..., Any]
X = np.random.default_rng(7).normal(size=(3, 4))
V = np.array([2, 0, 1])
W = np.random.default_rng(8).normal(size=(4, 2))


# ---- plain NumPy code ---------------------------------------------------------------------------

PLAIN: dict[str, Function] = {
    "sum": lambda x: np.sum(x, axis=0) + x.sum() * x.mean(axis=1, keepdims=True)[0],
    "where": lambda x: np.where(x > 0, np.sqrt(np.abs(x)), -x),
    "index": lambda x: (x[1], x[-1, ::2], x[:, None, 1:], x[..., 0], x[[0, 2]], x[V, V]),
    "mask": lambda x: x[np.array([True, False, True])],
    "stack": lambda x: (np.stack([x[0], 2 * x[1]], 1), np.concatenate([x, np.ones((1, 4))])),
    "matmul": lambda x: x @ W + np.einsum("ij,kj->ik", x, x)[:, :2],
    "solve": lambda x: np.linalg.solve(x @ x.T + np.eye(3), x),
    "numbers": lambda x: 2**x + x**2 + x**-1 + x % 3 + 7 // x + divmod(x, 2.0)[0],
    "dtypes": lambda x: (x.astype(np.float32) * 2, x > 0, (x * 10).astype(int) // 3),
    "complex": lambda x: np.abs(x + 1j * x) + (x * 1j).imag,
    "shapes": lambda x: x.T.reshape(2, -1)[:, np.newaxis] * np.ones(x.size // 2),
    "loop": lambda x: sum(row.sum() * i for i, row in enumerate(x)),
    "iterate": lambda x: [a * b for a, b in zip(x[0], x[1], strict=True)],
    "extremes": lambda x: (x.max(0), x.argmin(), np.clip(x, x[0, 0], 2), np.minimum(x, 0)),
    "like": lambda x: np.ones_like(x) + np.zeros_like(x[0]) + np.full_like(x, x[0, 0]),
    "moments": lambda x: (x - x.mean(0)) / x.std(0),
    "split": lambda x: np.split(x, 2, axis=1),
    "rearrange": lambda x: (np.roll(x, 1), np.flip(x), np.tile(x, 2), np.repeat(x, 2, 0)),
    "cumulate": lambda x: np.cumsum(x, axis=1) * np.cumprod(x, axis=0),
    "linspace": lambda x: np.linspace(x[0, 0], x[0, 1], 5),
    "empty": lambda x: (x[:0].sum(axis=0), np.concatenate([x[:0], x])),
    "attributes": lambda x: x * x.ndim * x.size * x.shape[0] * len(x) * x.dtype.itemsize,
    "numpy scalar": lambda x: x * np.float32(0.1) + np.int64(3),
    "buffer outside numpy": lambda x: gt.zeros(4) + x[0] * gt.tensor([1.0, 2.0, 3.0, 4.0]),
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_code(name: str) -> None:
    with np.errstate(all="ignore"):
        check_traced(PLAIN[name], X)
        check_traced(PLAIN[name], X.astype(np.float32))


def test_traced_indices_are_read_when_it_runs() -> None:
    def function(x: Any, i: Any) -> Any:
        out = np.zeros_like(x)
        out[i] = x[i] + 1
        return out, np.take(x, i, axis=0)

    result = traced(function, X, V)
    for index in (V, np.array([1, 1, 0])):
        assert_same_bits(run_trace(result, X, index), function(gt.Tensor(X), gt.Tensor(index)))


# ---- transforms ---------------------------------------------------------------------------------


def loss(x: Any) -> Any:
    return np.sum(np.tanh(x @ W) ** 3) + np.prod(x[0]) / (1 + x[1, 1] ** 2)


DIRECTION = np.random.default_rng(9).normal(size=X.shape)

TRANSFORMS: dict[str, Function] = {
    "grad": gt.grad(loss),
    "value and grad": gt.value_and_grad(loss),
    "second order": gt.grad(lambda x: np.sum(gt.grad(loss)(x) ** 2)),
    "third order": gt.grad(lambda a: gt.grad(gt.grad(lambda a: a**5 * np.exp(a)))(a)[()]),
    "jvp": lambda x: gt.jvp(loss, (x,), (DIRECTION,)),
    "jvp of grad": lambda x: gt.jvp(gt.grad(loss), (x,), (x,)),
    "grad of jvp": gt.grad(lambda x: gt.jvp(loss, (x,), (DIRECTION,))[1]),
    "vjp": lambda x: gt.vjp(np.sin, x)[1](x),
    "vmap": gt.vmap(lambda row: np.cumsum(row * row) / (1 + np.sum(row))),
    "vmap of grad": gt.vmap(gt.grad(lambda row: np.sum(np.exp(row) * row[0]))),
    "jacobian": lambda x: gt.jacobian(lambda v: np.sin(v) * v[0])(x[0]),
    "hessian": lambda x: gt.hessian(lambda v: np.sum(v**3) * v[1])(x[0]),
    "stop": gt.grad(lambda x: np.sum(x * gt.stop_gradient(np.sin(x)))),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transform(name: str) -> None:
    check_traced(TRANSFORMS[name], np.float64(0.7) if name == "third order" else X)


def test_a_replayed_graph_can_be_transformed_again() -> None:
    graph = graph_of(lambda x: np.sum(np.sin(x) * x[0]), X)

    def again(x: Any) -> Any:
        return replay(graph, [x])[0]

    def original(x: Any) -> Any:
        return np.sum(np.sin(x) * x[0])

    for transform in (
        gt.grad,
        gt.hessian,
        lambda f: gt.vmap(lambda row: f(np.stack([row, row, row]))),
        lambda f: lambda x: gt.jvp(f, (x,), (x,)),
    ):
        assert_same_bits(transform(again)(X), transform(original)(X))
    assert [n.op.name for n in graph_of(again, X).nodes] == [n.op.name for n in graph.nodes]


# ---- values that are not known ------------------------------------------------------------------


def line_of(function: Function, text: str) -> str:
    """Where a text stands in the source of a function: `file.py:12`."""
    lines, first = inspect.getsourcelines(function)
    (offset,) = [i for i, line in enumerate(lines) if text in line]
    return f"{inspect.getsourcefile(function)}:{first + offset}"


def branches(x: Any) -> Any:
    y = np.sin(x)
    if y.sum() > 0:
        return y
    return -y


def loops(x: Any) -> Any:
    while np.abs(x).max() > 1e-3:
        x = x / 2
    return x


def in_the_middle(x: Any) -> Any:
    return gt.grad(lambda v: np.sum(v) * float(v[0]))(x[0])


@pytest.mark.parametrize(
    ("function", "text"), [(branches, "if y"), (loops, "while"), (in_the_middle, "float(")]
)
def test_branching_names_the_line(function: Function, text: str) -> None:
    with pytest.raises(ConversionError) as caught:
        traced(function, X)
    if function is not in_the_middle:  # there the inner transform is the first to refuse
        assert line_of(function, text) in str(caught.value)
        assert "np.where" in str(caught.value)


def test_lines_of_nodes_are_the_users() -> None:
    def function(x: Any) -> Any:
        y = np.tanh(x)
        return np.sum(y, axis=0)

    first, second = graph_of(function, X).nodes
    assert first.line == line_of(function, "np.tanh")
    assert second.line == line_of(function, "np.sum")


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: float(x[0, 0]),
        lambda x: int(x[0, 0]),
        lambda x: complex(x[0, 0]),
        lambda x: bool(x[0, 0]),
        lambda x: np.asarray(x),
        lambda x: x.numpy(),
        lambda x: x[0, 0].item(),
        lambda x: x.tolist(),
        lambda x: f"{x[0, 0]:.3f}",
        lambda x: [1, 2, 3][x[0, 0].astype(int)],
        lambda x: range(x[0, 0].astype(int)),
        lambda x: x[x > 0],
        lambda x: np.nonzero(x),
        lambda x: x[: x[0, 0].astype(int)],
        lambda x: x if x[0, 0] in (1.0, 2.0) else 0,
        lambda x: np.zeros(3).__setitem__(0, x[0, 0]),
        lambda x: np.array([x[0, 0], x[0, 1]], float),
    ],
)
def test_asking_for_a_value_raises(ask: Function) -> None:
    with pytest.raises(ConversionError, match=r"test_trace\.py:"):
        traced(ask, X)


def test_a_traced_tensor_can_be_looked_at() -> None:
    texts = []

    def function(x: Any) -> Any:
        texts.append(repr(x * 2))
        return x

    traced(function, X)
    assert texts == ["tensor(float64[3, 4], recorded by jit)"]


def test_functions_without_graph_raise() -> None:
    with pytest.raises(UnsupportedError, match="np\\.save"):
        traced(lambda x: np.save("/nowhere", x), X)


# ---- arguments and results ----------------------------------------------------------------------


def test_python_numbers_are_weak() -> None:
    result = traced(lambda n, x: (x * n, n * 2, np.sin(n)), 3.0, X.astype(np.float32))
    assert result.graph.inputs[0].aval.weak
    assert [o.dtype for o in result.graph.outputs] == [np.float32, np.float64, np.float64]
    assert_same_bits(run_trace(result, 0.1, X.astype(np.float32))[0], X.astype(np.float32) * 0.1)
    whole = traced(lambda n, x: x * n, 3, X)
    assert whole.graph.outputs[0].dtype == np.float64
    strong = traced(lambda n, x: x * n, np.float64(3), X.astype(np.float32))
    assert strong.graph.outputs[0].dtype == np.float64


class Pair(NamedTuple):
    left: Any
    right: Any


def test_results_keep_their_containers() -> None:
    outside = gt.ones(2)

    def function(x: Any) -> Any:
        return {"a": [x, x], "b": Pair(None, (1, 2.5, True)), "c": (), "d": outside, "e": X}

    got = traced_and_run(function, X)
    assert isinstance(got["b"], Pair)
    assert got["b"] == Pair(None, (1, 2.5, True))
    assert got["c"] == ()
    assert_same_bits((got["a"], got["d"], got["e"]), ([X, X], np.ones(2), X))
    assert traced_and_run(lambda x: None, X) is None


def test_inputs_can_be_returned_as_they_are() -> None:
    graph = graph_of(lambda x, y: (y, x, y), X, V)
    assert graph.nodes == ()
    assert graph.outputs == (graph.inputs[1], graph.inputs[0], graph.inputs[1])


def test_what_is_not_an_array_cannot_be_returned() -> None:
    with pytest.raises(GradtapeError, match="returned a str, expected arrays"):
        traced(lambda x: {"a": "text"}, X)


def test_arguments_are_told_apart() -> None:
    assert_same_bits(traced_and_run(gt.grad(lambda x, y: np.sum(x * y)), X, X), X)


# ---- random draws -------------------------------------------------------------------------------


def test_draws_are_nodes_of_the_graph() -> None:
    result = traced(lambda x: x * gt.uniform(0.0, 1.0, (4,)) + gt.normal(x, 1.0), X)
    names = [node.op.name for node in result.graph.nodes if node.op.effect == "random"]
    assert names == ["random_uniform", "random_normal"]
    assert len(result.captures) == 2  # where in the stream they are, anew at each call
    gt.manual_seed(3)
    first, second = run_trace(result, X), run_trace(result, X)
    gt.manual_seed(3)
    for drawn in (first, second):
        expected = gt.Tensor(X) * gt.uniform(0.0, 1.0, (4,)) + gt.normal(gt.Tensor(X), 1.0)
        assert_same_bits(drawn, expected.numpy())
    assert registry["random_uniform"].effect == "random"
