"""`gt.jit`: values as eager code has them, for arguments and results of every form."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import gradtape as gt
from jitcheck import Counted, assert_close, network, network_arguments

X = np.random.default_rng(5).normal(size=(5, 7))
V = np.random.default_rng(6).normal(size=7)


# ---- plain code ---------------------------------------------------------------------------------


def softmax(x: Any) -> Any:
    exponentials = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return exponentials / np.sum(exponentials, axis=-1, keepdims=True)


def layer_norm(x: Any) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5)


def with_buffer(x: Any) -> Any:
    out = np.zeros_like(x)
    for i in range(x.shape[0]):
        out[i] = np.cumsum(x[i]) if i % 2 else x[-i]
    out[:, ::2] *= 2.0
    return out


def with_eager_part(x: Any) -> Any:
    gram = x.T @ x + np.eye(x.shape[1], dtype=x.dtype)
    return np.sum(np.linalg.pinv(gram) @ x.T * 2.0, axis=1) + 1.0


PLAIN: dict[str, Callable[..., Any]] = {
    "chain": lambda x: np.tanh(2.0 * x + 1.0) * np.exp(-x * x) + np.log1p(np.abs(x)),
    "softmax": softmax,
    "layer norm": layer_norm,
    "several results": lambda x: (x.sum(), x.max(axis=0), x > 0, x.argmax(axis=1)),
    "integers": lambda x: ((x * 10).astype(int) // 3, np.sign(x).astype(np.int8)),
    "broadcasting": lambda x: x[:, None, :] * V - x.T[..., None].sum(axis=0),
    "views": lambda x: (x[::-1, 1:], x.T.reshape(-1)[3:20:4], np.flip(x), x[:, [0, -1, 2]]),
    "joined": lambda x: np.concatenate([x, x[:2] * 2, np.zeros((1, 7))]).var(axis=0),
    "product": lambda x: (x @ x.T) @ x + x @ V[:, None].astype(x.dtype),
    "buffer": with_buffer,
    "pseudoinverse": with_eager_part,
    "solve": lambda x: np.linalg.solve(x.T @ x + np.eye(x.shape[1], dtype=x.dtype), x.T),
    "constants only": lambda x: (np.ones(3), 2.5, 7, True, np.float32(1)),
    "nothing": lambda x: (),
    "shape": lambda x: x.shape[0] * np.ones(x.shape[1]) + x.ndim + len(x),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", PLAIN)
def test_values_are_those_of_eager_code(name: str, dtype: Any) -> None:
    function, x = PLAIN[name], X.astype(dtype)
    compiled = gt.jit(function)
    assert_close(compiled(x), function(x), 256)
    # The second call goes through the native entry point, with other numbers.
    assert_close(compiled(x[::-1].copy()), function(x[::-1].copy()), 256)


def test_zero_dimensional_results_are_numpy_scalars() -> None:
    total, count, flag = gt.jit(lambda x: (x.sum(), x.astype(int).sum(), x.max() > 0))(X)
    assert (type(total), type(count), type(flag)) == (np.float64, np.int64, np.bool_)


def test_tensors_in_tensors_out() -> None:
    compiled = gt.jit(lambda x, y: (x * y, x.sum()))
    for out in compiled(gt.tensor(X), V):
        assert type(out) is gt.Tensor
        assert not out.requires_grad
    assert all(not isinstance(out, gt.Tensor) for out in compiled(X, V))
    assert_close(compiled(gt.tensor(X), V)[0].numpy(), X * V)


def test_functions_without_arguments() -> None:
    compiled = gt.jit(lambda: np.arange(3.0) * V[:3])
    assert_close(compiled(), np.arange(3.0) * V[:3])


# ---- results are their own ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (x, y, x),
        lambda x, y: (x.T, x[1:], x.reshape(-1)),
        lambda x, y: [x + 1, x + 1, y, V, V],
        lambda x, y: (x.astype(complex), x.astype(complex), y),
        lambda x, y: np.broadcast_to(y, (3, 7)),
        lambda x, y: (np.linalg.inv(x[:5, :5]), x[:5, :5]),
    ],
)
def test_results_share_memory_with_nothing(function: Callable[..., Any]) -> None:
    x, y = X.copy(), V.copy()
    compiled = gt.jit(function)
    for _ in range(2):
        results = gt.tree.flatten(compiled(x, y))[0]
        assert_close(results, [np.ascontiguousarray(r) for r in gt.tree.flatten(function(x, y))[0]])
        for k, one in enumerate(results):
            assert one.flags.writeable
            assert one.flags.c_contiguous
            assert not any(np.shares_memory(one, other) for other in (x, y, V, *results[:k]))
            one[...] = 0  # and is seen by nothing
        assert np.array_equal(x, X)
        assert np.array_equal(y, V)


def test_arguments_are_not_written() -> None:
    x = X.copy()
    x.flags.writeable = False

    def function(x: Any) -> Any:
        x = x * 1.0
        x[0] = 0.0
        return x

    assert_close(gt.jit(function)(x), function(x))


# ---- containers ---------------------------------------------------------------------------------


class Pair(NamedTuple):
    left: Any
    right: Any


CONTAINERS: dict[str, Any] = {
    "dict": {"b": X, "a": V, "c": 2.0},
    "list": [X, V, [X, 3]],
    "tuple": (X, (V, ()), 1.5),
    "named tuple": Pair(X, Pair(V, 1.0)),
    "None": [None, X, {"n": None}],
    "ordered": OrderedDict(z=X, a=V),
    "deque": deque([X, V]),
    "integer keys": {3: X, 1: V},
    "mixed": {"layers": [Pair(X, None), {"w": (V, 2)}], "empty": {}, "flag": True},
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers_in_and_out(name: str) -> None:
    def doubled(tree: Any) -> Any:
        return gt.tree.map(lambda leaf: leaf * 2, tree)

    compiled = gt.jit(Counted(doubled))
    for _ in range(3):
        assert_close(compiled(CONTAINERS[name]), doubled(CONTAINERS[name]))
    assert compiled.__wrapped__.count == 1
    out = compiled(CONTAINERS[name])
    assert type(out) is type(CONTAINERS[name])


def test_another_container_is_another_form() -> None:
    compiled = gt.jit(Counted(lambda tree: gt.tree.flatten(tree)[0][0] * 2))
    for tree in ([X], (X,), {"a": X}, {"b": X}, Pair(X, V), [X, V], [X, None], [[X]]):
        assert_close(compiled(tree), X * 2)
    assert compiled.__wrapped__.count == 8


def test_weights_in_a_dict(rng: np.random.Generator) -> None:
    weights, x, _ = network_arguments(rng)
    assert_close(gt.jit(network)(weights, x), network(weights, x))
