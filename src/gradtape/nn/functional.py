"""Operations of neural networks as functions, under the names of `torch.nn.functional`."""

from gradtape.help.public import make_public as _make_public
from gradtape.ops.activation import (
    elu,
    gelu,
    leaky_relu,
    log_sigmoid,
    log_sigmoid as logsigmoid,
    relu,
    relu6,
    sigmoid,
    silu,
    silu as swish,
    softsign,
)
from gradtape.ops.locate import (
    one_hot,
)
from gradtape.ops.nn.activations import (
    celu,
    hardshrink,
    hardsigmoid,
    hardsigmoid as hard_sigmoid,
    hardswish,
    hardswish as hard_silu,
    hardtanh,
    hardtanh as hard_tanh,
    mish,
    prelu,
    rsqrt,
    rsqrt as inv_sqrt,
    selu,
    softplus,
    softshrink,
    tanhshrink,
    threshold,
)
from gradtape.ops.nn.attention import (
    scaled_dot_product_attention,
)
from gradtape.ops.nn.bags import (
    embedding_bag,
)
from gradtape.ops.nn.batch_norm import batch_norm, instance_norm
from gradtape.ops.nn.conv import (
    conv1d,
    conv2d,
    conv3d,
)
from gradtape.ops.nn.conv_transpose import (
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from gradtape.ops.nn.cross_entropy import (
    cross_entropy,
    nll_loss,
    softmax_cross_entropy,
    sparse_softmax_cross_entropy,
)
from gradtape.ops.nn.ctc import (
    ctc_loss,
)
from gradtape.ops.nn.distances import (
    cdist,
    cosine_similarity,
    pairwise_distance,
)
from gradtape.ops.nn.dropout import (
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
    rrelu,
)
from gradtape.ops.nn.embedding import (
    embedding,
)
from gradtape.ops.nn.grid import (
    affine_grid,
    grid_sample,
)
from gradtape.ops.nn.likelihoods import (
    gaussian_nll_loss,
    kl_div,
    poisson_nll_loss,
)
from gradtape.ops.nn.linear import (
    bilinear,
    linear,
)
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
from gradtape.ops.nn.normalization import (
    group_norm,
    layer_norm,
    rms_norm,
)
from gradtape.ops.nn.normalize import (
    local_response_norm,
    normalize,
)
from gradtape.ops.nn.overlaps import (
    dice_loss,
    distillation_loss,
    focal_loss,
    iou_loss,
    quantile_loss,
    sigmoid_focal_loss,
)
from gradtape.ops.nn.padding import (
    pad,
)
from gradtape.ops.nn.pool_adaptive import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    global_avg_pool,
    global_max_pool,
)
from gradtape.ops.nn.pool_average import (
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    sum_pool1d,
    sum_pool2d,
    sum_pool3d,
)
from gradtape.ops.nn.pool_fractional import (
    fractional_max_pool2d,
    fractional_max_pool3d,
)
from gradtape.ops.nn.pool_max import (
    max_pool1d,
    max_pool2d,
    max_pool3d,
    min_pool1d,
    min_pool2d,
    min_pool3d,
)
from gradtape.ops.nn.pool_unpool import (
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from gradtape.ops.nn.resize import (
    interpolate,
)
from gradtape.ops.nn.shuffle import (
    pixel_shuffle,
    pixel_unshuffle,
)
from gradtape.ops.nn.softmaxes import (
    glu,
    gumbel_softmax,
    log_softmax,
    softmax,
    softmin,
)
from gradtape.ops.nn.unfold import (
    fold,
    unfold,
)
from gradtape.ops.trigonometric import (
    tanh,
)

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "global_avg_pool",
    "global_max_pool",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "sum_pool1d",
    "sum_pool2d",
    "sum_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "min_pool1d",
    "min_pool2d",
    "min_pool3d",
    "fractional_max_pool2d",
    "fractional_max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "affine_grid",
    "grid_sample",
    "interpolate",
    "pad",
    "pixel_shuffle",
    "pixel_unshuffle",
    "fold",
    "unfold",
    "elu",
    "gelu",
    "leaky_relu",
    "log_sigmoid",
    "logsigmoid",
    "relu",
    "relu6",
    "sigmoid",
    "silu",
    "swish",
    "softsign",
    "tanh",
    "one_hot",
    "celu",
    "hardshrink",
    "hardsigmoid",
    "hard_sigmoid",
    "hardswish",
    "hard_silu",
    "hardtanh",
    "hard_tanh",
    "mish",
    "prelu",
    "rsqrt",
    "inv_sqrt",
    "selu",
    "softplus",
    "softshrink",
    "tanhshrink",
    "threshold",
    "alpha_dropout",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "feature_alpha_dropout",
    "rrelu",
    "glu",
    "gumbel_softmax",
    "log_softmax",
    "softmax",
    "softmin",
    "batch_norm",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "rms_norm",
    "local_response_norm",
    "normalize",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "huber_loss",
    "l1_loss",
    "mse_loss",
    "sigmoid_cross_entropy",
    "smooth_l1_loss",
    "gaussian_nll_loss",
    "kl_div",
    "poisson_nll_loss",
    "cdist",
    "cosine_similarity",
    "pairwise_distance",
    "cross_entropy",
    "nll_loss",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
    "contrastive_loss",
    "cosine_embedding_loss",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "dice_loss",
    "distillation_loss",
    "focal_loss",
    "iou_loss",
    "quantile_loss",
    "sigmoid_focal_loss",
    "embedding",
    "embedding_bag",
    "bilinear",
    "linear",
    "scaled_dot_product_attention",
    "ctc_loss",
    "hinge_loss",
]

_make_public(globals())
