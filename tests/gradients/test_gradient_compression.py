"""Compression of gradients: nothing is lost, sizes, several workers, and training converges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import containers
from gradtape.errors import ArgumentError, DTypeError, ShapeError
from gradtape.io.leaf_names import named_leaves

g = gt.gradients
MAKERS = {
    "top 2": lambda: g.TopK(2),
    "top tenth": lambda: g.TopK(fraction=0.1),
    "rank 1": lambda: g.LowRank(1),
    "rank 2": lambda: g.LowRank(2, seed=5),
}
makers = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def draw(rng: np.random.Generator, dtype: Any = np.float64) -> Any:
    shapes = {"w": (6, 5), "b": (5,), "conv": (4, 3, 2), "scale": ()}
    grads = {name: np.asarray(rng.normal(size=shape), dtype) for name, shape in shapes.items()}
    return {**grads, "none": None}


@makers
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, gt.bfloat16])
def test_what_is_sent_and_what_is_kept_is_everything(
    make: Any, dtype: Any, rng: np.random.Generator
) -> None:
    compressor = make()
    total: Any = None
    sent: Any = None
    for _ in range(20):
        grads = draw(rng, dtype)
        message = compressor.compress(grads)
        received = compressor.decompress(message)
        assert containers.flatten(received)[1] == containers.flatten(grads)[1]
        assert received["w"].dtype == dtype
        exact = {name: x.astype(float) for name, x in grads.items() if x is not None}
        part = {name: received[name].astype(float) for name in exact}
        total = exact if total is None else {name: total[name] + x for name, x in exact.items()}
        sent = part if sent is None else {name: sent[name] + x for name, x in part.items()}
    residual = compressor.residual()
    for name, x in total.items():
        tolerance = 1e-12 if dtype == np.float64 else 1e-5
        np.testing.assert_allclose(sent[name] + residual[name], x, atol=tolerance)


def test_top_elements(rng: np.random.Generator) -> None:
    x = rng.normal(size=(6, 5))
    top = g.TopK(3)
    message = top.compress(x)
    received = top.decompress(message)
    chosen = np.argsort(-np.abs(x).ravel())[:3]
    np.testing.assert_array_equal(np.flatnonzero(received), np.sort(chosen))
    np.testing.assert_array_equal(received.ravel()[chosen], x.ravel()[chosen])
    assert message.nbytes == 3 * (8 + 4)
    np.testing.assert_array_equal(top.residual(), np.where(received == 0, x, 0))
    assert g.TopK(fraction=0.1).compress(x).nbytes == 3 * 12
    assert g.TopK(100).compress(x).nbytes == 30 * 12
    assert g.TopK(1).compress(np.zeros((0, 3))).nbytes == 0


def test_low_rank(rng: np.random.Generator) -> None:
    exact = rng.normal(size=(8, 2)) @ rng.normal(size=(2, 6))
    low = g.LowRank(2)
    message = low.compress({"w": exact, "b": np.ones(7)})
    received = low.decompress(message)
    np.testing.assert_allclose(received["w"], exact, atol=1e-12)
    np.testing.assert_array_equal(received["b"], np.ones(7))
    assert message.nbytes == 8 * (2 * (8 + 6) + 7)
    # A warm start comes to the best approximation of a matrix that stays.
    matrix = rng.normal(size=(20, 10)) * 0.5 ** np.arange(10)
    low, kept = g.LowRank(2), None
    state = low.init(matrix)
    for _ in range(30):
        state["residual"] = np.zeros_like(matrix)
        kept, state = low.apply(matrix, state)
    u, s, vt = np.linalg.svd(matrix, full_matrices=False)
    np.testing.assert_allclose(kept, u[:, :2] * s[:2] @ vt[:2], atol=1e-3)


def test_zeros_do_not_stop_the_iteration(rng: np.random.Generator) -> None:
    low = g.LowRank(1)
    np.testing.assert_array_equal(low(np.zeros((5, 4))), np.zeros((5, 4)))
    exact = np.outer(rng.normal(size=5), rng.normal(size=4))
    np.testing.assert_allclose(low(exact), exact, atol=1e-12)


@makers
@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_that_are_missing(make: Any, compiled: bool, rng: np.random.Generator) -> None:
    """A parameter that a step does not use: its rest is kept for the next time."""
    compressor = make()
    step = gt.jit(compressor.apply) if compiled else compressor.apply
    layers = [{"w": rng.normal(size=(6, 5)), "b": rng.normal(size=5)} for _ in range(8)]
    given = [{"one": x, "two": [x["w"], None]} for x in layers]
    given[0] = {"one": {**layers[0], "b": None}, "two": [None, layers[0]["b"]]}
    given[2] = {"one": {**layers[2], "w": None}, "two": [layers[2]["w"], layers[2]["b"]]}
    given[3] = {"one": None, "two": [layers[3]["w"], None]}
    state = compressor.init(given[0])
    total: dict[str, Any] = {}
    sent: dict[str, Any] = {}
    for grads in given:
        received, state = step(grads, state)
        assert containers.flatten(received)[1] == containers.flatten(grads)[1]
        for into, tree_of_arrays in ((total, grads), (sent, received)):
            for name, x in named_leaves(tree_of_arrays, "")[0].items():
                into[name] = into.get(name, 0) + x
    rest = named_leaves(state["residual"], "")[0]
    assert set(rest) == set(total) == {"one.w", "one.b", "two.0", "two.1"}
    for name, x in total.items():
        np.testing.assert_allclose(sent[name] + rest[name], x, atol=1e-12)
    compressor.state = state
    assert compressor(None) is None
    assert compressor.residual()["one"]["w"] is state["residual"]["one"]["w"]


@makers
def test_mean_of_workers(make: Any, rng: np.random.Generator) -> None:
    workers = [make() for _ in range(3)]
    messages = [worker.compress(draw(rng)) for worker in workers]
    each = [worker.decompress(m) for worker, m in zip(workers, messages, strict=True)]
    together = workers[0].decompress(messages)
    np.testing.assert_allclose(together["w"], np.mean([x["w"] for x in each], axis=0))


@makers
def test_compiled_and_tensors(make: Any, rng: np.random.Generator) -> None:
    pure, eager = make(), make()
    state = pure.init(draw(rng))

    @gt.jit
    def step(grads: Any, state: Any) -> Any:
        message, state = pure.send(grads, state)
        return message, pure.decompress(message), state

    for _ in range(3):
        grads = draw(rng)
        message, received, state = step(grads, state)
        expected = eager(grads)
        for name in ("w", "b", "conv", "scale"):
            np.testing.assert_allclose(received[name], expected[name], atol=1e-12)
        assert message.nbytes == make().compress(grads).nbytes
    tensors = make()(containers.map_leaves(gt.tensor, draw(rng)))
    assert isinstance(tensors["w"], gt.Tensor)


@makers
def test_training_with_compression_converges(make: Any, rng: np.random.Generator) -> None:
    x, exact = rng.normal(size=(40, 6)), rng.normal(size=(6, 5))
    y = x @ exact
    loss = gt.jit(gt.value_and_grad(lambda w: np.mean((x @ w - y) ** 2)))
    compressor, w = make(), np.zeros((6, 5))
    for _ in range(1500):
        _, slope = loss(w)
        w -= 0.2 * compressor(slope)
    np.testing.assert_allclose(w, exact, atol=1e-6)


def test_in_a_pipeline(rng: np.random.Generator) -> None:
    pipeline = g.Pipeline([g.TopK(1)])
    x = np.array([1.0, 3.0, 2.0])
    np.testing.assert_array_equal(pipeline(x), [0, 3, 0])
    np.testing.assert_array_equal(pipeline(x), [0, 0, 4])


def test_errors() -> None:
    x = np.ones((3, 3))
    for call, error, text in (
        (lambda: g.TopK(), ArgumentError, "expected one of them"),
        (lambda: g.TopK(1, fraction=0.5), ArgumentError, "expected one of them"),
        (lambda: g.TopK(0.5), DTypeError, r"k=0.5, expected an integer; .* fraction=0.5"),
        (lambda: g.TopK("3"), DTypeError, "k='3', expected an integer"),
        (lambda: g.LowRank(1.5), DTypeError, "rank=1.5, expected an integer"),
        (lambda: g.TopK(0), ArgumentError, "k=0"),
        (lambda: g.TopK(fraction=1.5), ArgumentError, "fraction=1.5"),
        (lambda: g.TopK(fraction=0.0), ArgumentError, r"fraction=0\.0, .* above 0"),
        (lambda: g.TopK(fraction=float("nan")), ArgumentError, "fraction=nan"),
        (lambda: g.LowRank(0), ArgumentError, "rank=0"),
        (lambda: g.TopK(1).residual(), ArgumentError, "nothing was compressed"),
        (lambda: g.TopK(1).compress(x * 1j), DTypeError, "expected real numbers"),
        (lambda: g.TopK(1).decompress(g.LowRank(1).compress(x)), ArgumentError, "of LowRank"),
        (lambda: g.TopK(1).decompress([]), ArgumentError, "no messages"),
        (
            lambda: g.TopK(1).decompress([g.TopK(1).compress(x), g.TopK(1).compress([x])]),
            ArgumentError,
            "messages of different gradients",
        ),
    ):
        with pytest.raises(error, match=text):
            call()
    top = g.TopK(1)
    top.compress({"w": x})
    for wrong, text in (
        ([x], r"grads is a list of 1, expected a dict, as in the gradients before"),
        ({"v": x}, r"grads has no 'w' and has 'v' besides, expected the keys 'w'"),
        ({"w": [x]}, r"grads\['w'\] is a list of 1, expected an array"),
        (x, r"grads is an array, expected a dict"),
    ):
        with pytest.raises(ArgumentError, match=f"TopK: got different containers: {text}"):
            top.compress(wrong)
    with pytest.raises(ArgumentError, match="TopK: got a state of 0 memories for 1 arrays"):
        top.send({"w": x}, {"residual": {"w": x}, "memory": []})
    with pytest.raises(ShapeError, match=r"grads\['w'\] has shape \(2, 3\)"):
        top.compress({"w": x[:2]})


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
@makers
def test_what_is_not_finite_is_sent_once(make: Any, wrong: float, rng: Any) -> None:
    compressor = make()
    x = rng.normal(size=(6, 5))
    bad = x.copy()
    bad[3, 2] = wrong
    assert not np.isfinite(compressor(bad)).all()
    kept = compressor.residual()
    sent = sum(compressor(x) for _ in range(20))
    assert np.isfinite(kept).all()
    np.testing.assert_allclose(sent + compressor.residual(), kept + 20 * x, rtol=1e-9, atol=1e-9)


def largest(dtype: Any) -> float:
    return float(gt.finfo(dtype).max)


@makers
@pytest.mark.parametrize("size", [1.0, 0.5, 1e-3])
@pytest.mark.parametrize("dtype", [np.float16, gt.bfloat16, np.float32, np.float64])
def test_large_numbers_stay_finite(make: Any, dtype: Any, size: float, rng: Any) -> None:
    compressor = make()
    unit = largest(dtype)
    signs = rng.choice([-1.0, 1.0], (2, 40, 30))
    total, sent, held = np.zeros((40, 30)), np.zeros((40, 30)), np.ones((40, 30), bool)
    for sign in signs:
        grads = {"w": (sign * size * unit).astype(dtype), "b": np.array([1.0, 2.0]).astype(dtype)}
        received = compressor(grads)
        # Sums of float64 would overflow.
        total += grads["w"].astype(float) / unit
        sent += received["w"].astype(float) / unit
        kept = compressor.residual()["w"]
        assert np.isfinite(received["w"].astype(float)).all()
        assert np.isfinite(kept).all()
        tolerance = 1e-12 if dtype == np.float64 else 1e-6
        # A rest can be too large for the dtype it is kept in, which for float16 is float32.
        held &= np.abs(kept) < largest(kept.dtype)
        assert held.all() or (dtype != np.float16 and size > 0.1)
        np.testing.assert_allclose((sent + kept / unit)[held], total[held], atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float16, gt.bfloat16, np.float32, np.float64])
def test_sums_that_are_too_large_to_be_sent(dtype: Any) -> None:
    most, top = largest(dtype), g.TopK(1)
    x = np.array([0.9 * most, 0.9 * most, 1.0]).astype(dtype)
    np.testing.assert_array_equal(top(x), [x[0], 0, 0])
    np.testing.assert_array_equal(top(x).astype(float), [0, most, 0])
    rest = 2 * (x[1].astype(float) / most) - 1
    np.testing.assert_allclose(top.residual()[:2] / most, [x[0].astype(float) / most, rest], 1e-6)


def test_factors_of_half_precision() -> None:
    for size in (5e3, 6.5e4, 1e-5):
        x = np.full((200, 300), size, np.float16)
        low = g.LowRank(1)
        np.testing.assert_allclose(low(x).astype(float), x.astype(float), rtol=3e-3)
        received = x.astype(float) - low.residual()
        np.testing.assert_allclose(received, x.astype(float), rtol=3e-3)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_waits_until_it_is_sent(wrong: float) -> None:
    top = g.TopK(1)
    np.testing.assert_array_equal(top(np.array([wrong, wrong, 1.0])), [wrong, 0, 0])
    np.testing.assert_array_equal(top.residual(), [0, wrong, 1])
    np.testing.assert_array_equal(top(np.array([5.0, 5.0, 5.0])), [0, wrong, 0])
    np.testing.assert_array_equal(top.residual(), [5, 0, 6])
    np.testing.assert_array_equal(top(np.array([5.0, 5.0, 5.0])), [0, 0, 11])
    np.testing.assert_array_equal(top.residual(), [10, 5, 0])
