"""Losses: which shapes may meet, and other calls that would go wrong silently."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError, ShapeError

nn = gt.nn
SHARES = np.array([0.25, 0.5, 0.75])
SIGNS = np.array([1.0, -1.0, 1.0])

# Of prediction and target, element by element
ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "mse_loss": nn.mse_loss,
    "l1_loss": nn.l1_loss,
    "smooth_l1_loss": nn.smooth_l1_loss,
    "huber_loss": nn.huber_loss,
    "binary_cross_entropy": nn.binary_cross_entropy,
    "binary_cross_entropy_with_logits": nn.binary_cross_entropy_with_logits,
    "sigmoid_cross_entropy": nn.sigmoid_cross_entropy,
    "kl_div": nn.kl_div,
    "poisson_nll_loss": nn.poisson_nll_loss,
    "gaussian_nll_loss": lambda x, target: nn.gaussian_nll_loss(x, target, 2.0),
    "soft_margin_loss": nn.soft_margin_loss,
    "hinge_loss": nn.hinge_loss,
    "hinge_embedding_loss": nn.hinge_embedding_loss,
    "margin_ranking_loss": lambda x, target: nn.margin_ranking_loss(x, 0.5 * x, target),
    "multilabel_soft_margin_loss": nn.multilabel_soft_margin_loss,
    "sigmoid_focal_loss": nn.sigmoid_focal_loss,
    "focal_loss": nn.focal_loss,
    "quantile_loss": nn.quantile_loss,
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_a_column_against_a_row_raises(name: str) -> None:
    column = SHARES.reshape(3, 1)
    for x, target in ((column, SHARES), (SHARES, column), (SHARES, SHARES[:1])):
        with pytest.raises(ShapeError, match=rf"{name}: got shapes .*, expected .*broadcast_to"):
            ELEMENTWISE[name](x, target)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_one_target_may_stand_for_all(name: str) -> None:
    expected = ELEMENTWISE[name](SHARES, np.ones(3))
    for target in (1, 1.0, np.ones(())):
        np.testing.assert_array_equal(ELEMENTWISE[name](SHARES, target), expected)


def test_pairs_of_vectors_have_as_many_axes() -> None:
    x = np.arange(6.0).reshape(2, 3)
    for loss in (
        lambda x, y: nn.triplet_margin_loss(x, y, y),
        lambda x, y: nn.cosine_embedding_loss(x, y, SIGNS[:2]),
        lambda x, y: nn.contrastive_loss(x, y, SIGNS[:2]),
    ):
        with pytest.raises(ShapeError, match="got shapes"):
            loss(x, x[0])
        assert loss(x, x[:1]).shape == ()


def test_a_label_for_each_pair() -> None:
    x = np.arange(6.0).reshape(2, 3)
    for loss in (nn.cosine_embedding_loss, nn.contrastive_loss):
        with pytest.raises(ShapeError, match="got shapes"):
            loss(x, x + 1, SIGNS[:2, None])


def test_weights_do_not_widen_losses() -> None:
    x, column = np.ones((3, 1)), np.zeros((3, 1))
    for loss in (
        nn.mse_loss,
        nn.l1_loss,
        nn.huber_loss,
        nn.binary_cross_entropy,
        nn.binary_cross_entropy_with_logits,
        nn.multilabel_soft_margin_loss,
    ):
        with pytest.raises(ShapeError, match="weight"):
            loss(x, column, weight=SHARES)
    with pytest.raises(ShapeError, match="weight"):
        nn.binary_cross_entropy_with_logits(x, column, pos_weight=SHARES)
    with pytest.raises(ShapeError, match="got var of shape"):
        nn.gaussian_nll_loss(np.ones((2, 1)), np.ones((2, 1)), np.ones((2, 4)))


def test_a_weighted_mean_counts_a_weight_as_often_as_it_is_used() -> None:
    x, y, weight = np.arange(6.0).reshape(2, 3), np.ones((2, 3)), np.array([1.0, 2.0, 5.0])
    wide = np.broadcast_to(weight, (2, 3))
    for loss in (nn.mse_loss, nn.l1_loss):
        np.testing.assert_allclose(loss(x, y, weight=weight), loss(x, y, weight=wide), rtol=1e-15)


def test_a_negative_variance_raises() -> None:
    with pytest.raises(ArgumentError, match="gaussian_nll_loss: got a variance of -1"):
        nn.gaussian_nll_loss(SHARES, SHARES, np.array([1.0, -1.0, 0.0]))


def test_probabilities_have_no_class_to_ignore() -> None:
    x = np.zeros((2, 3))
    with pytest.raises(ArgumentError, match="cross_entropy: got ignore_index=1"):
        nn.cross_entropy(x, np.full((2, 3), 1 / 3), ignore_index=1)


def test_a_weight_for_each_class() -> None:
    with pytest.raises(ShapeError, match="multi_margin_loss: got weight of shape"):
        nn.multi_margin_loss(np.zeros((2, 3)), np.array([0, 1]), weight=np.ones(5))


def test_a_wrong_class_is_told_by_the_loss_it_came_to() -> None:
    x, bad = np.zeros((2, 3)), np.array([0, 3])
    for loss in (nn.nll_loss, nn.cross_entropy, nn.multi_margin_loss):
        with pytest.raises(IndexError, match=f"{loss.__name__}: got class 3, expected .* 0 to 2"):
            loss(x, bad)
