"""Losses and distances as modules, with the names and arguments that PyTorch has."""

from __future__ import annotations

from typing import ClassVar

from gradtape.nn.layers.applied import Applied
from gradtape.ops.checks import check_between, check_choice, check_least, check_positive
from gradtape.ops.nn.cross_entropy import (
    cross_entropy,
    nll_loss,
    softmax_cross_entropy,
    sparse_softmax_cross_entropy,
)
from gradtape.ops.nn.ctc import ctc_loss
from gradtape.ops.nn.distances import cosine_similarity, pairwise_distance
from gradtape.ops.nn.likelihoods import gaussian_nll_loss, kl_div, poisson_nll_loss
from gradtape.ops.nn.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    huber_loss,
    l1_loss,
    mse_loss,
    sigmoid_cross_entropy,
    smooth_l1_loss,
)
from gradtape.ops.nn.margins import (
    contrastive_loss,
    cosine_embedding_loss,
    hinge_embedding_loss,
    hinge_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    soft_margin_loss,
    triplet_margin_loss,
)
from gradtape.ops.nn.overlaps import (
    dice_loss,
    distillation_loss,
    focal_loss,
    iou_loss,
    quantile_loss,
    sigmoid_focal_loss,
)
from gradtape.typing import ArrayLike


class _Loss(Applied):
    """A loss with a reduction."""

    _reductions: ClassVar[tuple[str, ...]] = ("none", "mean", "sum")

    def _check(self) -> None:
        """Raise for an unknown reduction."""
        check_choice(type(self).__name__, self._reductions, reduction=vars(self)["reduction"])
        super()._check()


# ---- of numbers ---------------------------------------------------------------------------------


class L1Loss(_Loss, function=l1_loss):
    """Absolute differences of predictions and targets: `gt.nn.l1_loss`.

    >>> gt.nn.L1Loss()(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    np.float64(1.0)
    """

    reduction: str = "mean"


class MSELoss(_Loss, function=mse_loss):
    """Squared differences of predictions and targets: `gt.nn.mse_loss`.

    >>> gt.nn.MSELoss()(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    np.float64(2.0)
    """

    reduction: str = "mean"


class SmoothL1Loss(_Loss, function=smooth_l1_loss):
    """Squared differences up to `beta`, absolute ones beyond: `gt.nn.smooth_l1_loss`.

    >>> gt.nn.SmoothL1Loss("none")(np.array([0.5, 3.0]), np.zeros(2))
    array([0.125, 2.5  ])
    """

    reduction: str = "mean"
    beta: float = 1.0
    _checks: ClassVar = {"beta": (check_least, 0)}


class HuberLoss(_Loss, function=huber_loss):
    """Squared differences up to `delta`, absolute ones times `delta` beyond: `gt.nn.huber_loss`.

    >>> gt.nn.HuberLoss("none")(np.array([0.5, 3.0]), np.zeros(2))
    array([0.125, 2.5  ])
    """

    reduction: str = "mean"
    delta: float = 1.0
    _checks: ClassVar = {"delta": (check_positive,)}


class QuantileLoss(_Loss, function=quantile_loss):
    """Pinball loss, least for a quantile of the targets: `gt.nn.quantile_loss`.

    >>> gt.nn.QuantileLoss(0.75, "none")(np.array([1.0, 3.0]), np.array([2.0, 2.0]))
    array([0.75, 0.25])
    """

    quantile: float = 0.5
    reduction: str = "mean"
    _checks: ClassVar = {"quantile": (check_between, 0, 1)}


# ---- likelihoods --------------------------------------------------------------------------------


class GaussianNLLLoss(_Loss, function=gaussian_nll_loss):
    """Normal likelihoods of targets, called with means, targets and variances.

    It calls `gt.nn.gaussian_nll_loss`.

    Raises:
        ArgumentError: There is no such reduction, or `eps` is not positive.

    >>> gt.nn.GaussianNLLLoss()(np.zeros(2), np.array([0.0, 2.0]), np.ones(2))
    np.float64(1.0)
    """

    full: bool = False
    eps: float = 1e-6
    reduction: str = "mean"
    _checks: ClassVar = {"eps": (check_positive,)}


class KLDivLoss(_Loss, function=kl_div):
    """Divergence of target probabilities from predicted ones, given as logarithms: `gt.nn.kl_div`.

    >>> gt.nn.KLDivLoss("sum")(np.log([0.5, 0.5]), np.array([1.0, 0.0]))
    np.float64(0.6931471805599453)
    """

    reduction: str = "mean"
    log_target: bool = False

    _reductions = ("none", "mean", "batchmean", "sum")


class PoissonNLLLoss(_Loss, function=poisson_nll_loss):
    """Poisson likelihoods of counts: `gt.nn.poisson_nll_loss`.

    >>> gt.nn.PoissonNLLLoss()(np.array([0.0, 1.0]), np.array([1.0, 2.0]))
    np.float64(0.8591409142295225)
    """

    log_input: bool = True
    full: bool = False
    eps: float = 1e-8
    reduction: str = "mean"


# ---- of two classes -----------------------------------------------------------------------------


class BCELoss(_Loss, function=binary_cross_entropy, arrays=("weight",)):
    """Cross entropies of probabilities of the first of two classes: `gt.nn.binary_cross_entropy`.

    Raises:
        ArgumentError: There is no such reduction.

    >>> gt.nn.BCELoss()(np.array([0.5]), np.array([1.0]))
    np.float64(0.6931471805599453)
    """

    weight: ArrayLike | None = None
    reduction: str = "mean"


class BCEWithLogitsLoss(
    _Loss, function=binary_cross_entropy_with_logits, arrays=("weight", "pos_weight")
):
    """Cross entropies of logits of the first of two classes.

    It calls `gt.nn.binary_cross_entropy_with_logits`.

    >>> gt.nn.BCEWithLogitsLoss()(np.array([0.0]), np.array([1.0]))
    np.float64(0.6931471805599453)
    """

    weight: ArrayLike | None = None
    reduction: str = "mean"
    pos_weight: ArrayLike | None = None


class SigmoidCrossEntropyLoss(Applied, function=sigmoid_cross_entropy):
    """Cross entropies of logits of the first of two classes, each by itself.

    It calls `gt.nn.sigmoid_cross_entropy`.

    >>> gt.nn.SigmoidCrossEntropyLoss()(np.array([0.0, 1000.0]), np.ones(2))
    array([0.69314718, 0.        ])
    """


class FocalLoss(_Loss, function=focal_loss):
    """Cross entropies of logits that count less where they are small already: `gt.nn.focal_loss`.

    >>> gt.nn.FocalLoss()(np.array([0.0, 1000.0]), np.ones(2))
    np.float64(0.0216608...)
    """

    alpha: float = 0.25
    gamma: float = 2.0
    reduction: str = "mean"


class SigmoidFocalLoss(_Loss, function=sigmoid_focal_loss):
    """Focal losses, each by itself unless reduced: `gt.nn.sigmoid_focal_loss`.

    >>> gt.nn.SigmoidFocalLoss()(np.array([0.0, 1000.0]), np.ones(2))
    array([0.0433217, 0.       ])
    """

    alpha: float = 0.25
    gamma: float = 2.0
    reduction: str = "none"


class DiceLoss(_Loss, function=dice_loss):
    """1 less Dice's coefficient of predicted and true regions: `gt.nn.dice_loss`.

    >>> gt.nn.DiceLoss(smooth=0.0)(np.array([[1.0, 1.0, 0.0]]), np.array([[1.0, 0.0, 0.0]]))
    np.float64(0.333...)
    """

    smooth: float = 1.0
    reduction: str = "mean"


class IoULoss(_Loss, function=iou_loss):
    """1 less the intersection of regions over their union: `gt.nn.iou_loss`.

    >>> gt.nn.IoULoss(smooth=0.0)(np.array([[1.0, 1.0, 0.0]]), np.array([[1.0, 0.0, 0.0]]))
    np.float64(0.5)
    """

    smooth: float = 1.0
    reduction: str = "mean"


class SoftMarginLoss(_Loss, function=soft_margin_loss):
    """Logistic losses of logits, with targets 1 and -1: `gt.nn.soft_margin_loss`.

    >>> gt.nn.SoftMarginLoss()(np.array([0.0]), np.array([-1.0]))
    np.float64(0.6931471805599453)
    """

    reduction: str = "mean"


class HingeLoss(_Loss, function=hinge_loss):
    """How far scores are from the right side of a margin, with targets 1 and -1.

    It calls `gt.nn.hinge_loss`.

    >>> gt.nn.HingeLoss(reduction="none")(np.array([0.5, -3.0]), np.array([1, -1]))
    array([0.5, 0. ])
    """

    margin: float = 1.0
    reduction: str = "mean"


# ---- of classes ---------------------------------------------------------------------------------


class CrossEntropyLoss(_Loss, function=cross_entropy, arrays=("weight",)):
    """Cross entropies of logits, with numbers of classes or their probabilities as targets.

    It calls `gt.nn.cross_entropy`.

    Raises:
        ArgumentError: There is no such reduction, or `label_smoothing` is not from 0 to 1.

    >>> gt.nn.CrossEntropyLoss()(np.zeros((2, 4)), np.array([0, 3]))
    np.float64(1.3862943611198906)
    """

    weight: ArrayLike | None = None
    ignore_index: int = -100
    reduction: str = "mean"
    label_smoothing: float = 0.0
    _checks: ClassVar = {"label_smoothing": (check_between, 0, 1)}


class NLLLoss(_Loss, function=nll_loss, arrays=("weight",)):
    """The negative of the logarithms at the right classes: `gt.nn.nll_loss`.

    >>> gt.nn.NLLLoss()(np.log([[0.5, 0.5], [0.5, 0.5]]), np.array([1, 0]))
    np.float64(0.6931471805599453)
    """

    weight: ArrayLike | None = None
    ignore_index: int = -100
    reduction: str = "mean"


class SoftmaxCrossEntropyLoss(Applied, function=softmax_cross_entropy):
    """Cross entropies of logits and probabilities of classes, each by itself.

    It calls `gt.nn.softmax_cross_entropy`.

    >>> gt.nn.SoftmaxCrossEntropyLoss()(np.zeros((1, 2)), np.array([[0.5, 0.5]]))
    array([0.69314718])
    """


class SparseSoftmaxCrossEntropyLoss(Applied, function=sparse_softmax_cross_entropy):
    """Cross entropies of logits and numbers of classes, each by itself.

    It calls `gt.nn.sparse_softmax_cross_entropy`.

    >>> gt.nn.SparseSoftmaxCrossEntropyLoss()(np.zeros((2, 4)), np.array([0, 3]))
    array([1.38629436, 1.38629436])
    """


class MultiMarginLoss(_Loss, function=multi_margin_loss, arrays=("weight",)):
    """How far other classes come up to the right one: `gt.nn.multi_margin_loss`.

    >>> gt.nn.MultiMarginLoss()(np.array([[0.5, 1.0]]), np.array([0]))
    np.float64(0.75)
    """

    p: int = 1
    margin: float = 1.0
    weight: ArrayLike | None = None
    reduction: str = "mean"
    _checks: ClassVar = {"p": (check_choice, (1, 2))}


class MultiLabelMarginLoss(_Loss, function=multilabel_margin_loss):
    """How far other classes come up to the right ones: `gt.nn.multilabel_margin_loss`.

    >>> x, target = np.array([0.1, 0.2, 0.4, 0.8]), np.array([3, 0, -1, 1])
    >>> gt.nn.MultiLabelMarginLoss()(x, target)
    np.float64(0.85...)
    """

    reduction: str = "mean"


class MultiLabelSoftMarginLoss(_Loss, function=multilabel_soft_margin_loss, arrays=("weight",)):
    """Cross entropies of many classes that do not exclude each other.

    It calls `gt.nn.multilabel_soft_margin_loss`.

    >>> gt.nn.MultiLabelSoftMarginLoss()(np.zeros((1, 3)), np.array([[1.0, 0.0, 1.0]]))
    np.float64(0.6931471805599453)
    """

    weight: ArrayLike | None = None
    reduction: str = "mean"


class DistillationLoss(_Loss, function=distillation_loss):
    """The divergence from another network's logits, and the cross entropy of targets if given.

    It calls `gt.nn.distillation_loss`.

    >>> gt.nn.DistillationLoss()(np.array([[1.0, 2.0]]), np.array([[1.0, 2.0]]))
    np.float64(0.0)
    """

    temperature: float = 2.0
    alpha: float = 0.5
    reduction: str = "mean"
    _checks: ClassVar = {"temperature": (check_positive,)}


class CTCLoss(_Loss, function=ctc_loss):
    """Connectionist temporal classification, called with lengths as well: `gt.nn.ctc_loss`.

    Raises:
        ArgumentError: There is no such reduction.

    >>> log_probs = np.log(np.full((2, 1, 3), 1 / 3))
    >>> gt.nn.CTCLoss()(log_probs, np.array([[1]]), [2], [1])
    np.float64(1.09861228866...)
    """

    blank: int = 0
    reduction: str = "mean"
    zero_infinity: bool = False


# ---- of pairs -----------------------------------------------------------------------------------


class MarginRankingLoss(_Loss, function=margin_ranking_loss):
    """How far the wrong one of two scores is ahead, with targets 1 and -1.

    It calls `gt.nn.margin_ranking_loss`.

    >>> gt.nn.MarginRankingLoss()(np.array([1.0]), np.array([3.0]), np.array([1.0]))
    np.float64(2.0)
    """

    margin: float = 0.0
    reduction: str = "mean"


class HingeEmbeddingLoss(_Loss, function=hinge_embedding_loss):
    """Distances of pairs that belong together, with target 1; nearness of others, with -1.

    It calls `gt.nn.hinge_embedding_loss`.

    >>> gt.nn.HingeEmbeddingLoss()(np.array([0.5, 0.25]), np.array([1, -1]))
    np.float64(0.625)
    """

    margin: float = 1.0
    reduction: str = "mean"


class CosineEmbeddingLoss(_Loss, function=cosine_embedding_loss):
    """Angles of pairs that belong together, with target 1; nearness of others, with -1.

    It calls `gt.nn.cosine_embedding_loss`.

    >>> x, y = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> gt.nn.CosineEmbeddingLoss(reduction="none")(x, y, np.array([1, -1]))
    array([1., 1.])
    """

    margin: float = 0.0
    reduction: str = "mean"


class ContrastiveLoss(_Loss, function=contrastive_loss):
    """Squared distances of pairs that belong together, with target 1; nearness of others, with 0.

    It calls `gt.nn.contrastive_loss`.

    >>> x, y = np.array([[0.0], [0.0]]), np.array([[0.5], [0.5]])
    >>> gt.nn.ContrastiveLoss(2.0, "none")(x, y, np.array([1.0, 0.0]))
    array([0.25, 2.25])
    """

    margin: float = 1.0
    reduction: str = "mean"


class TripletMarginLoss(_Loss, function=triplet_margin_loss):
    """How far anchors are nearer to negatives than to positives: `gt.nn.triplet_margin_loss`.

    >>> a, b, c = np.array([[0.0]]), np.array([[1.0]]), np.array([[1.5]])
    >>> gt.nn.TripletMarginLoss(eps=0.0)(a, b, c)
    np.float64(0.5)
    """

    margin: float = 1.0
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False
    reduction: str = "mean"
    _checks: ClassVar = {"margin": (check_positive,)}


# ---- distances ----------------------------------------------------------------------------------


class CosineSimilarity(Applied, function=cosine_similarity):
    """The cosine of the angle between vectors: `gt.nn.cosine_similarity`.

    Raises:
        ArgumentError: `eps` is negative.

    >>> gt.nn.CosineSimilarity()(np.array([[1.0, 1.0]]), np.array([[3.0, 0.0]]))
    array([0.70710678])
    """

    dim: int = 1
    eps: float = 1e-8
    _checks: ClassVar = {"eps": (check_least, 0)}


class PairwiseDistance(Applied, function=pairwise_distance):
    """The length of the difference of vectors along the last axis: `gt.nn.pairwise_distance`.

    >>> gt.nn.PairwiseDistance(eps=0.0)(np.array([[3.0, 4.0]]), np.zeros((1, 2)))
    array([5.])
    """

    p: float = 2.0
    eps: float = 1e-6
    keepdim: bool = False
