"""Losses with a margin: the right answer has to be ahead by that much."""

from __future__ import annotations

from typing import Any

from gradtape.ops.activation import log_sigmoid, relu, softplus
from gradtape.ops.arguments import as_array
from gradtape.ops.checks import check_axes, check_choice, check_positive, check_shape
from gradtape.ops.cumulative import cumprod
from gradtape.ops.exponential import sqrt
from gradtape.ops.gather import as_indices, take, take_along_axis
from gradtape.ops.nn.classes import NOTHING, check_classes, class_hits, pick_class
from gradtape.ops.nn.cross_entropy import class_weights
from gradtape.ops.nn.distances import pairwise_distance
from gradtape.ops.nn.reduction import (
    LOSS_ERRORS,
    LOSSES,
    check_same,
    check_vectors,
    prepared,
    reduced,
    weighted,
)
from gradtape.ops.reduce import max as max_of, sum as sum_of
from gradtape.ops.select import clip, mask, minimum, where
from gradtape.ops.shape import reshape
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike

# ---- pairs --------------------------------------------------------------------------------------


@options(LOSSES, raises=LOSS_ERRORS)
def soft_margin_loss(x: ArrayLike, target: ArrayLike, /, reduction: str = "mean") -> Array:
    """Log(1 + exp(-target·x)), without overflow.

    Args:
        x: The logits of the first class.
        target: 1 for the first class, -1 for the second.

    >>> gt.nn.soft_margin_loss(np.array([0.0, 1000.0]), np.array([1.0, -1.0]), reduction="none")
    array([6.93147181e-01, 1.00000000e+03])
    """
    x, target = prepared("soft_margin_loss", reduction, x, target)
    return reduced(softplus(-target * x), reduction)


@options(LOSSES, raises=LOSS_ERRORS)
def hinge_loss(
    x: ArrayLike, target: ArrayLike, /, margin: float = 1.0, reduction: str = "mean"
) -> Array:
    """Hinge loss: by how much scores fall short of a margin on the right side of 0.

    Args:
        x: The scores.
        target: 1 for those that are to be positive, -1 for others.
        margin: By how much they have to be on the right side.

    >>> gt.nn.hinge_loss(np.array([0.5, -3.0]), np.array([1, -1]), reduction="none")
    array([0.5, 0. ])
    """
    x, target = prepared("hinge_loss", reduction, x, target)
    return reduced(relu(margin - target * x), reduction)


@options(LOSSES, raises=LOSS_ERRORS)
def hinge_embedding_loss(
    x: ArrayLike, target: ArrayLike, /, margin: float = 1.0, reduction: str = "mean"
) -> Array:
    """Distances of pairs that belong together; for others, by how much they miss the margin.

    Args:
        x: The distances.
        target: 1 for pairs that belong together, -1 for others.
        margin: How far apart the others have to be.

    >>> x, target = np.array([0.5, 0.25, 2.0]), np.array([1, -1, -1])
    >>> gt.nn.hinge_embedding_loss(x, target, reduction="none")
    array([0.5 , 0.75, 0.  ])
    """
    x, target = prepared("hinge_embedding_loss", reduction, x, target)
    return reduced(mask(x, target != -1) + mask(clip(margin - x, 0), target != 1), reduction)


@options(LOSSES, raises=LOSS_ERRORS)
def margin_ranking_loss(
    x1: ArrayLike,
    x2: ArrayLike,
    target: ArrayLike,
    /,
    margin: float = 0.0,
    reduction: str = "mean",
) -> Array:
    """Ranking loss: by how much one score falls short of being ahead of another by a margin.

    Args:
        x1: The scores of one side.
        x2: Those of the other side.
        target: 1 where the first one is to be ahead, -1 where the second one is.
        margin: By how much the right one has to be ahead.

    >>> gt.nn.margin_ranking_loss(np.array([1.0]), np.array([3.0]), np.array([1.0]))
    np.float64(2.0)
    """
    x, y, target = prepared("margin_ranking_loss", reduction, x1, x2, target)
    return reduced(clip(margin - target * (x - y), 0), reduction)


@options(LOSSES, raises=LOSS_ERRORS)
def cosine_embedding_loss(
    x1: ArrayLike,
    x2: ArrayLike,
    target: ArrayLike,
    /,
    margin: float = 0.0,
    reduction: str = "mean",
) -> Array:
    """1 − cosine for vectors that belong together, the cosine above a margin for others.

    Args:
        x1: Vectors along the last axis.
        x2: Those of the other side.
        target: 1 for pairs that belong together, -1 for others.
        margin: The cosine that others may have.

    Raises:
        ShapeError: The shapes do not fit, or there is not a label for each pair.

    >>> x, y = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> gt.nn.cosine_embedding_loss(x, y, np.array([1, -1]), reduction="none")
    array([1., 1.])
    """
    name = "cosine_embedding_loss"
    x, y = prepared(name, reduction, x1, x2, check=check_vectors)
    target = as_array(target)
    squares = [sum_of(z * z, -1) + 1e-12 for z in (x, y)]
    cosine = sum_of(x * y, -1) / sqrt(squares[0] * squares[1])
    check_same(name, cosine, target)
    losses = mask(1 - cosine, target == 1) + mask(clip(cosine - margin, 0), target == -1)
    return reduced(losses, reduction)


@options(LOSSES, raises=LOSS_ERRORS)
def contrastive_loss(
    x1: ArrayLike,
    x2: ArrayLike,
    target: ArrayLike,
    /,
    margin: float = 1.0,
    reduction: str = "mean",
) -> Array:
    """Squared distances of pairs that belong together; for others, squared gaps to the margin.

    Args:
        x1: Vectors along the last axis.
        x2: Those of the other side.
        target: 1 for pairs that belong together, 0 for others.
        margin: How far apart the others have to be.

    Raises:
        ShapeError: The shapes do not fit, or there is not a label for each pair.

    >>> x, y = np.array([[0.0], [0.0]]), np.array([[0.5], [0.5]])
    >>> gt.nn.contrastive_loss(x, y, np.array([1.0, 0.0]), margin=2.0, reduction="none")
    array([0.25, 2.25])
    """
    x, y, target = prepared("contrastive_loss", reduction, x1, x2, target, check=None)
    check_vectors("contrastive_loss", x, y)
    distance = pairwise_distance(x, y, eps=0.0)
    check_same("contrastive_loss", distance, target)
    lacking = relu(margin - distance)
    return reduced(target * distance**2 + (1 - target) * lacking**2, reduction)


@options(LOSSES, raises=LOSS_ERRORS)
def triplet_margin_loss(
    anchor: ArrayLike,
    positive: ArrayLike,
    negative: ArrayLike,
    /,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Array:
    """By how much a negative example fails to be further away than a positive one by a margin.

    Args:
        anchor: Vectors along the last axis.
        positive: Vectors that are to be near.
        negative: Vectors that are to be far.
        margin: By how much the negatives are to be further.
        p: Which norm of a difference its length is.
        eps: Added to every difference of elements.
        swap: Whether the negative one is to be far from the positive one as well.

    Raises:
        ShapeError: The shapes do not broadcast, or have different numbers of axes.
        ArgumentError: There is no such reduction, or the margin is not positive.

    >>> a, b, c = np.array([[0.0]]), np.array([[1.0]]), np.array([[1.5]])
    >>> gt.nn.triplet_margin_loss(a, b, c, eps=0.0)
    np.float64(0.5)
    """
    name = "triplet_margin_loss"
    check_positive(name, margin=margin)
    vectors = prepared(name, reduction, anchor, positive, negative, check=check_vectors)
    anchor, positive, negative = vectors
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = minimum(far, pairwise_distance(positive, negative, p, eps))
    return reduced(clip(margin + near - far, 0), reduction)


# ---- classes ------------------------------------------------------------------------------------


def _checked_rows(name: str, x: Any, target: Any, shape: tuple[int, ...], ignore_index: int) -> int:
    """The number of classes, along the last axis of the scores; raises for a target without them.

    Args:
        name: The name of the loss.
        x: The scores.
        target: The numbers of classes.
        shape: The shape that the target needs.
        ignore_index: A number that stands for no class.
    """
    check_axes(name, x, least=1, most=2, instead="give (samples, classes), or (classes,)")
    check_shape(name, shape, target=target)
    check_classes(name, target, x.shape[-1], ignore_index)
    return x.shape[-1]  # type: ignore[no-any-return]


@options(LOSSES, raises=LOSS_ERRORS)
def multi_margin_loss(
    x: ArrayLike,
    target: ArrayLike,
    /,
    p: int = 1,
    margin: float = 1.0,
    weight: ArrayLike | None = None,
    reduction: str = "mean",
) -> Array:
    """By how much the score of the right class falls short of leading the others by a margin.

    Args:
        x: Scores, of shape (samples, classes) or (classes,).
        target: The numbers of the right classes.
        p: The power that is taken of it, 1 or 2.
        margin: By how much the right class has to be ahead.
        weight: How much each class counts.

    Raises:
        IndexingError: There is no such class.
        ArgumentError: There is no such reduction or power.

    >>> gt.nn.multi_margin_loss(np.array([[0.5, 1.0]]), np.array([0]))
    np.float64(0.75)
    """
    name = "multi_margin_loss"
    check_choice(name, (1, 2), p=p)
    (x,), target = prepared(name, reduction, x), as_indices(target, name)
    classes = _checked_rows(name, x, target, x.shape[:-1], NOTHING)
    own = pick_class(x, reshape(target, (*target.shape, 1)), ignore_index=NOTHING)
    others = class_hits(target, classes=classes, ignore_index=NOTHING) ^ True
    lacking = mask(relu(margin - own + x), others)
    losses = sum_of(lacking if p == 1 else lacking * lacking, -1) / classes
    weight = class_weights(name, weight, x)
    return reduced(losses if weight is None else losses * take(weight, target, 0), reduction)


@options(LOSSES, raises=LOSS_ERRORS)
def multilabel_margin_loss(x: ArrayLike, target: ArrayLike, /, reduction: str = "mean") -> Array:
    """By how much the scores of several right classes fall short of leading all others by 1.

    Args:
        x: Scores, of shape (samples, classes) or (classes,).
        target: The numbers of the right classes, of the same shape; those after a -1 do not
            count.

    Raises:
        IndexingError: There is no such class.

    >>> x, target = np.array([0.1, 0.2, 0.4, 0.8]), np.array([3, 0, -1, 1])
    >>> gt.nn.multilabel_margin_loss(x, target)
    np.float64(0.85...)
    """
    name = "multilabel_margin_loss"
    (x,), target = prepared(name, reduction, x), as_indices(target, name)
    classes = _checked_rows(name, x, target, x.shape, -1)
    counts = cumprod(where(target < 0, 0, 1), -1) != 0
    hits = class_hits(target, classes=classes, ignore_index=-1)
    wide = reshape(counts, (*counts.shape, 1))
    right = max_of(where(hits & wide, 1, 0), -2, keepdims=True) != 0
    own = take_along_axis(x, where(counts, target, 0), -1)
    lacking = relu(1 - reshape(own, (*own.shape, 1)) + reshape(x, (*x.shape[:-1], 1, classes)))
    losses = sum_of(mask(lacking, wide & (right ^ True)), (-2, -1)) / classes
    return reduced(losses, reduction)


@options(LOSSES, raises=LOSS_ERRORS)
def multilabel_soft_margin_loss(
    x: ArrayLike,
    target: ArrayLike,
    /,
    weight: ArrayLike | None = None,
    reduction: str = "mean",
) -> Array:
    """Mean over classes of the cross entropy of belonging to each of them.

    Args:
        x: Logits, with classes along the last axis.
        target: 1 for a class it belongs to, 0 for others.
        weight: How much each class counts.

    >>> gt.nn.multilabel_soft_margin_loss(np.zeros((1, 3)), np.array([[1.0, 0.0, 1.0]]))
    np.float64(0.6931471805599453)
    """
    name = "multilabel_soft_margin_loss"
    x, target = prepared(name, reduction, x, target)
    losses = -(target * log_sigmoid(x) + (1 - target) * log_sigmoid(-x))
    losses = weighted(name, losses, weight)
    return reduced(sum_of(losses, -1) / losses.shape[-1], reduction)
