"""Layers of neural networks beyond the table of ops: state, draws, blocks, large arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import IndexingError, NotDifferentiableError, WriteError
from gradtape.ops.nn import attention, attention_blocks, distances
from gradtape.testing import check_grads

nn = gt.nn


# ---- running statistics -------------------------------------------------------------------------


def seen(x: Any) -> tuple[Any, Any]:
    axes = (0, *range(2, x.ndim))
    return x.mean(axes), x.var(axes, ddof=1)


@pytest.mark.parametrize("make", [np.array, gt.tensor], ids=["array", "tensor"])
def test_batch_norm_updates_running_statistics(make: Any, rng: Any) -> None:
    x = rng.normal(size=(4, 2, 3))
    mean, var = make([0.5, 1.0]), make([1.0, 2.0])
    nn.batch_norm(x, mean, var, training=True, momentum=0.25)
    m, v = seen(x)
    np.testing.assert_allclose(np.asarray(mean), 0.75 * np.array([0.5, 1.0]) + 0.25 * m)
    np.testing.assert_allclose(np.asarray(var), 0.75 * np.array([1.0, 2.0]) + 0.25 * v)


def test_running_statistics_are_not_on_the_tape(rng: Any) -> None:
    x = gt.tensor(rng.normal(size=(4, 2)), requires_grad=True)
    mean, var = gt.zeros(2), gt.ones(2)
    gt.sum(nn.batch_norm(x, mean, var, training=True) ** 3).backward()
    assert not mean.requires_grad
    assert not var.requires_grad
    assert float(gt.sum(gt.abs(mean))) > 0
    assert x.grad is not None


def test_running_statistics_are_not_touched_outside_of_training(rng: Any) -> None:
    mean, var = np.array([0.5, 1.0]), np.array([1.0, 2.0])
    nn.batch_norm(rng.normal(size=(4, 2)), mean, var)
    np.testing.assert_array_equal(mean, [0.5, 1.0])
    np.testing.assert_array_equal(var, [1.0, 2.0])


def test_running_statistics_inside_of_transforms(rng: Any) -> None:
    x = rng.normal(size=(4, 2))
    mean, var = gt.zeros(2), gt.ones(2)
    gt.grad(lambda x: gt.sum(nn.batch_norm(x, mean, var, training=True) ** 3))(x)
    np.testing.assert_allclose(mean.numpy(), 0.1 * x.mean(0))
    np.testing.assert_allclose(var.numpy(), 0.9 + 0.1 * x.var(0, ddof=1))


def test_a_leaf_cannot_be_a_running_statistic(rng: Any) -> None:
    mean = gt.zeros(2, requires_grad=True)
    with pytest.raises(WriteError):
        nn.batch_norm(rng.normal(size=(4, 2)), mean, gt.ones(2), training=True)


def test_instance_norm_averages_over_samples(rng: Any) -> None:
    x = rng.normal(size=(3, 2, 5))
    mean, var = np.zeros(2), np.ones(2)
    nn.instance_norm(x, mean, var, momentum=0.5)
    np.testing.assert_allclose(mean, 0.5 * x.mean((0, 2)))
    np.testing.assert_allclose(var, 0.5 + 0.5 * x.var(2, ddof=1).mean(0))


# ---- parameters that a batch shares --------------------------------------------------------------


@pytest.mark.parametrize(
    "layer",
    [
        lambda x, w: nn.layer_norm(x, 4, w, w),
        lambda x, w: nn.rms_norm(x, 4, w),
        lambda x, w: nn.group_norm(x, 2, w, w),
        lambda x, w: nn.linear(x, gt.outer(w, w), w),
    ],
    ids=["layer_norm", "rms_norm", "group_norm", "linear"],
)
def test_gradient_by_weights_that_a_batch_shares(layer: Any, rng: Any) -> None:
    x, w = rng.normal(size=(5, 3, 4)), rng.normal(size=4)
    batched = gt.grad(lambda w: gt.sum(gt.vmap(lambda x: layer(x, w))(x) ** 2))(w)
    one_by_one = [gt.grad(lambda w, x=x: gt.sum(layer(x, w) ** 2))(w) for x in x]
    np.testing.assert_allclose(batched, sum(one_by_one), rtol=1e-12)


# ---- draws --------------------------------------------------------------------------------------


def test_dropout_is_replayed_from_its_key() -> None:
    draws = [nn.dropout(np.ones(50), generator=gt.random.Generator(3)) for _ in range(2)]
    np.testing.assert_array_equal(*draws)
    generator = gt.random.Generator(3)
    first, second = (nn.dropout(np.ones(50), generator=generator) for _ in range(2))
    np.testing.assert_array_equal(first, draws[0])
    assert (first != second).any()


def test_the_gradient_sees_the_mask_of_the_value(rng: Any) -> None:
    x = gt.tensor(rng.normal(size=1000), requires_grad=True)
    out = nn.dropout(x, 0.3)
    gt.sum(out).backward()
    np.testing.assert_allclose(x.grad.numpy() * x.detach().numpy(), out.detach().numpy())
    assert set(np.unique(x.grad.numpy())) == {0.0, 1 / 0.7}


def test_second_derivatives_see_the_mask_of_the_value(rng: Any) -> None:
    x = rng.normal(size=20)
    masks: list[Any] = []

    def cubes(x: Any) -> Any:
        out = nn.dropout(x, 0.5, generator=gt.random.Generator(9))
        masks.append(out.detach().numpy() != 0 if isinstance(out, gt.Tensor) else out != 0)
        return gt.sum(out**3)

    second = gt.grad(lambda x: gt.sum(gt.grad(cubes)(x)))(x)
    kept = nn.dropout(np.ones(20), 0.5, generator=gt.random.Generator(9)) != 0
    np.testing.assert_allclose(second, np.where(kept, 6 * 8 * x, 0))


def test_dropout_drops_what_it_says() -> None:
    x = np.ones(100_000)
    for p in (0.1, 0.5, 0.9):
        out = nn.dropout(x, p, generator=gt.random.Generator(1))
        assert abs((out == 0).mean() - p) < 0.01
        assert abs(out.mean() - 1) < 0.03


def test_dropout_that_is_off_gives_its_argument(rng: Any) -> None:
    x = rng.normal(size=5)
    for function in (nn.dropout, nn.alpha_dropout, nn.feature_alpha_dropout):
        given = x if function is not nn.feature_alpha_dropout else x[None]
        np.testing.assert_array_equal(function(given, 0.5, training=False), given)
    np.testing.assert_array_equal(nn.dropout(x, 0.0), x)


def test_a_compiled_dropout_draws_anew() -> None:
    generator = gt.random.Generator(4)
    compiled = gt.jit(lambda x: nn.dropout(x, 0.5, generator=generator))
    first, second = compiled(np.ones(64)), compiled(np.ones(64))
    assert (np.asarray(first) != np.asarray(second)).any()


def test_channels_are_dropped_as_a_whole() -> None:
    out = nn.dropout2d(np.ones((8, 16, 3, 3)), 0.5, generator=gt.random.Generator(0))
    per_channel = out.reshape(8, 16, 9)
    assert (per_channel.min(-1) == per_channel.max(-1)).all()
    assert 0 < (per_channel[..., 0] == 0).mean() < 1


def test_hard_gumbel_softmax_is_a_class_with_the_gradient_of_shares(rng: Any) -> None:
    x, weights = rng.normal(size=(6, 4)), rng.normal(size=(6, 4))

    def loss(x: Any, hard: bool) -> Any:
        shares = nn.gumbel_softmax(x, 0.7, hard, generator=gt.random.Generator(2))
        return gt.sum(shares * weights)

    out = nn.gumbel_softmax(x, 0.7, hard=True, generator=gt.random.Generator(2))
    np.testing.assert_allclose(np.sort(out, 1)[:, :3], 0, atol=1e-15)
    np.testing.assert_allclose(out.sum(1), 1)
    hard, soft = (gt.grad(lambda x, h=h: loss(x, h))(x) for h in (True, False))
    np.testing.assert_allclose(hard, soft)


# ---- attention ----------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1, 40, 10**6])
@pytest.mark.parametrize("mask", ["none", "causal", "open", "added"])
def test_attention_does_not_depend_on_its_blocks(
    block: int, mask: str, rng: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    q, k, v = (rng.normal(size=(2, 3, n, 4)) for n in (5, 7, 7))
    options: dict[str, Any] = {"is_causal": mask == "causal"}
    if mask == "open":
        options["attn_mask"] = rng.uniform(size=(2, 1, 5, 7)) > 0.5
    if mask == "added":
        options["attn_mask"] = rng.normal(size=(3, 1, 7))

    def loss(q: Any, k: Any, v: Any) -> Any:
        return gt.sum(nn.scaled_dot_product_attention(q, k, v, **options) ** 2)

    expected = gt.value_and_grad(loss, (0, 1, 2))(q, k, v)
    monkeypatch.setattr(attention_blocks, "BLOCK", block)
    got = gt.value_and_grad(loss, (0, 1, 2))(q, k, v)
    np.testing.assert_allclose(got[0], expected[0])
    for one, other in zip(got[1], expected[1], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-13)


def test_compiled_attention_of_many_weights_goes_block_by_block(
    rng: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "BLOCK", 10)
    q, k, v = rng.normal(size=(3, 2, 6, 4))
    compiled = gt.jit(nn.scaled_dot_product_attention)
    np.testing.assert_allclose(compiled(q, k, v), nn.scaled_dot_product_attention(q, k, v))
    assert [step.op for step in compiled.explain(q, k, v).eager] == ["attention"]


def test_a_query_that_sees_nothing_has_no_gradient(rng: Any) -> None:
    q, k, v = rng.normal(size=(3, 4, 2))
    opened = np.ones((4, 4), bool)
    opened[1] = False
    out, (dq, dk, dv) = gt.value_and_grad(
        lambda q, k, v: gt.sum(nn.scaled_dot_product_attention(q, k, v, opened)[1]), (0, 1, 2)
    )(q, k, v)
    assert out == 0
    for gradient in (dq, dk, dv):
        np.testing.assert_array_equal(gradient, np.zeros((4, 2)))


# ---- distances, classes, sequences --------------------------------------------------------------


def test_distances_of_points_far_from_the_origin(rng: Any) -> None:
    x = 1e3 + rng.normal(size=(60, 3))
    y = np.concatenate([x[:20], x[20:40] + 1e-7, 5 * x[:20]])
    exact = np.linalg.norm(x[:, None] - y, axis=-1)
    got = nn.cdist(x, y)
    assert got.size > distances._MANY
    np.testing.assert_allclose(got, exact, rtol=1e-13, atol=0)
    assert (np.diag(got)[:20] == 0).all()


@pytest.mark.parametrize("label", [4, -1])
def test_compiled_losses_refuse_classes_there_are_not(label: int, rng: Any) -> None:
    x, labels = rng.normal(size=(3, 4)), np.array([0, label, 1])
    for loss in (nn.cross_entropy, nn.nll_loss, nn.sparse_softmax_cross_entropy):
        with pytest.raises(IndexingError, match=f"got class {label}"):
            gt.jit(loss)(x, labels)


def test_losses_of_large_arrays_refuse_classes_there_are_not(rng: Any) -> None:
    x, labels = gt.tensor(rng.normal(size=(300, 300))), rng.integers(0, 300, 300)
    labels[7] = 300
    for loss in (nn.cross_entropy, nn.nll_loss):
        with pytest.raises(IndexingError, match="got class 300"):
            loss(x, labels)


def test_second_derivatives_of_ctc_loss(rng: Any) -> None:
    x = rng.normal(size=(4, 2, 3))
    targets, times, lengths = np.array([[1, 2], [2, 2]]), [4, 3], [2, 1]
    check_grads(lambda x: nn.ctc_loss(x, targets, times, lengths), (x,), order=2)
    third = gt.grad(gt.grad(gt.grad(lambda s: nn.ctc_loss(s * x, targets, times, lengths))))
    with pytest.raises(NotDifferentiableError, match="ctc_loss: got a third derivative"):
        third(1.0)


def test_many_rows_are_added_as_by_numpy(rng: Any) -> None:
    table = gt.tensor(rng.normal(size=(50, 40)), requires_grad=True)
    numbers = rng.integers(0, 50, (30, 10))
    weights = rng.normal(size=(30, 10, 40))
    gt.sum(nn.embedding(numbers, table, padding_idx=3) * weights).backward()
    expected = np.zeros((50, 40))
    np.add.at(expected, numbers, weights)
    expected[3] = 0
    np.testing.assert_allclose(table.grad.numpy(), expected)


# ---- large arrays -------------------------------------------------------------------------------


def small(x: Any, function: Any, parts: int) -> list[Any]:
    """What a function of samples gives, a few at a time, with the gradient of all of it."""
    results = [function(part) for part in np.split(x, parts)]
    return [np.concatenate(arrays) for arrays in zip(*results, strict=True)]


@pytest.mark.parametrize(
    "layer",
    [
        lambda x: nn.group_norm(x, 2, np.arange(1.0, 5), np.arange(4.0)),
        lambda x: nn.group_norm(x, 2),
        lambda x: nn.instance_norm(x, None, None, np.arange(1.0, 5), np.arange(4.0)),
        lambda x: nn.batch_norm(x, np.arange(4.0), np.arange(1.0, 5)),
        lambda x: nn.layer_norm(x, (30, 30), np.linspace(0, 1, 900).reshape(30, 30)),
        lambda x: nn.local_response_norm(x, 3),
        nn.glu,
    ],
    ids=["group", "group-plain", "instance", "batch-running", "layer", "response", "glu"],
)
def test_layers_of_large_arrays_are_those_of_small_ones(layer: Any, rng: Any) -> None:
    x = rng.normal(size=(12, 4, 30, 30))

    def value_and_gradient(x: Any) -> Any:
        out, pull = gt.vjp(lambda x: layer(gt.asarray(x)), x)
        return np.asarray(out), pull(np.cos(np.asarray(out)))[0]

    for one, other in zip(value_and_gradient(x), small(x, value_and_gradient, 12), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_batch_norm_of_large_arrays(rng: Any) -> None:
    x, weight, bias = rng.normal(size=(12, 4, 30, 30)), np.arange(1.0, 5), np.arange(4.0)

    def loss(norm: Any, *args: Any) -> Any:
        return gt.sum(gt.sin(norm(*args)))

    def by_hand(x: Any, weight: Any, bias: Any) -> Any:
        m, v = gt.mean(x, (0, 2, 3), keepdims=True), gt.var(x, (0, 2, 3), keepdims=True)
        w, b = weight.reshape(4, 1, 1), bias.reshape(4, 1, 1)
        return (x - m) / gt.sqrt(v + 1e-5) * w + b

    def trained(x: Any, weight: Any, bias: Any) -> Any:
        return nn.batch_norm(x, None, None, weight, bias, training=True)

    results = [
        gt.grad(lambda *args, f=f: loss(f, *args), (0, 1, 2))(x, weight, bias)
        for f in (trained, by_hand)
    ]
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    assert trained(x, weight, bias).flags.c_contiguous


def test_a_loss_of_nothing_reads_nothing_when_compiled() -> None:
    def loss(logits: Any, targets: Any) -> Any:
        return gt.nn.cross_entropy(logits, targets, reduction="sum")

    empty = np.zeros((0, 1)), np.zeros(0, np.int64)
    assert gt.jit(loss)(*empty) == loss(*empty) == 0.0


def test_batch_norm_gives_new_statistics_and_writes_to_nothing():
    x = np.random.default_rng(0).normal(size=(8, 3, 4))
    mean, var = np.zeros(3), np.ones(3)
    options = {"training": True, "momentum": 0.3}
    out, new_mean, new_var = gt.nn.batch_norm(x, mean, var, return_statistics=True, **options)
    assert (mean == 0).all()
    assert (var == 1).all()
    expected = gt.nn.batch_norm(x, mean, var, **options)  # writes to them
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(new_mean, mean)
    np.testing.assert_array_equal(new_var, var)


def test_batch_norm_in_a_compiled_step():
    x = np.random.default_rng(0).normal(size=(8, 3))

    @gt.jit
    def step(x, mean, var):
        def loss(x):
            out, *new = gt.nn.batch_norm(x, mean, var, training=True, return_statistics=True)
            return gt.sum(out**3), new

        (_, new), grad = gt.value_and_grad(loss, has_aux=True)(x)
        return grad, *new

    grad, mean, var = step(x, np.zeros(3), np.ones(3))
    np.testing.assert_allclose(mean, 0.1 * x.mean(0))
    np.testing.assert_allclose(var, 0.9 + 0.1 * x.var(0, ddof=1))
    np.testing.assert_allclose(
        grad, gt.grad(lambda x: gt.sum(gt.nn.batch_norm(x, training=True) ** 3))(x), rtol=1e-10
    )


def test_batch_norm_that_would_write_in_a_compiled_step_says_what_to_do():
    with pytest.raises(gt.errors.ConversionError, match="return_statistics"):
        gt.jit(lambda x: gt.nn.batch_norm(x, np.zeros(3), np.ones(3), training=True))(
            np.ones((4, 3))
        )
