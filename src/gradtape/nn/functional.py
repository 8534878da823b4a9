"""Operations of neural networks as functions, under the names of `torch.nn.functional`."""

from gradtape.advice.public import make_public as _make_public
from gradtape.ops.activation import (
    elu as elu,
    gelu as gelu,
    leaky_relu as leaky_relu,
    log_sigmoid as log_sigmoid,
    relu as relu,
    relu6 as relu6,
    sigmoid as sigmoid,
    silu as silu,
    softsign as softsign,
)
from gradtape.ops.locate import one_hot as one_hot
from gradtape.ops.nn.activations import (
    celu as celu,
    hardshrink as hardshrink,
    hardsigmoid as hardsigmoid,
    hardswish as hardswish,
    hardtanh as hardtanh,
    mish as mish,
    prelu as prelu,
    rsqrt as rsqrt,
    selu as selu,
    softplus as softplus,
    softshrink as softshrink,
    tanhshrink as tanhshrink,
    threshold as threshold,
)
from gradtape.ops.nn.attention import scaled_dot_product_attention as scaled_dot_product_attention
from gradtape.ops.nn.bags import embedding_bag as embedding_bag
from gradtape.ops.nn.batch_norm import batch_norm as batch_norm, instance_norm as instance_norm
from gradtape.ops.nn.conv import conv1d as conv1d, conv2d as conv2d, conv3d as conv3d
from gradtape.ops.nn.conv_transpose import (
    conv_transpose1d as conv_transpose1d,
    conv_transpose2d as conv_transpose2d,
    conv_transpose3d as conv_transpose3d,
)
from gradtape.ops.nn.cross_entropy import (
    cross_entropy as cross_entropy,
    nll_loss as nll_loss,
    softmax_cross_entropy as softmax_cross_entropy,
    sparse_softmax_cross_entropy as sparse_softmax_cross_entropy,
)
from gradtape.ops.nn.ctc import ctc_loss as ctc_loss
from gradtape.ops.nn.distances import (
    cdist as cdist,
    cosine_similarity as cosine_similarity,
    pairwise_distance as pairwise_distance,
)
from gradtape.ops.nn.dropout import (
    alpha_dropout as alpha_dropout,
    dropout as dropout,
    dropout1d as dropout1d,
    dropout2d as dropout2d,
    dropout3d as dropout3d,
    feature_alpha_dropout as feature_alpha_dropout,
    rrelu as rrelu,
)
from gradtape.ops.nn.embedding import embedding as embedding
from gradtape.ops.nn.grid import affine_grid as affine_grid, grid_sample as grid_sample
from gradtape.ops.nn.likelihoods import (
    gaussian_nll_loss as gaussian_nll_loss,
    kl_div as kl_div,
    poisson_nll_loss as poisson_nll_loss,
)
from gradtape.ops.nn.linear import bilinear as bilinear, linear as linear
from gradtape.ops.nn.losses import (
    binary_cross_entropy as binary_cross_entropy,
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
    huber_loss as huber_loss,
    l1_loss as l1_loss,
    mse_loss as mse_loss,
    sigmoid_cross_entropy as sigmoid_cross_entropy,
    smooth_l1_loss as smooth_l1_loss,
)
from gradtape.ops.nn.margins import (
    contrastive_loss as contrastive_loss,
    cosine_embedding_loss as cosine_embedding_loss,
    hinge_embedding_loss as hinge_embedding_loss,
    hinge_loss as hinge_loss,
    margin_ranking_loss as margin_ranking_loss,
    multi_margin_loss as multi_margin_loss,
    multilabel_margin_loss as multilabel_margin_loss,
    multilabel_soft_margin_loss as multilabel_soft_margin_loss,
    soft_margin_loss as soft_margin_loss,
    triplet_margin_loss as triplet_margin_loss,
)
from gradtape.ops.nn.normalization import (
    group_norm as group_norm,
    layer_norm as layer_norm,
    rms_norm as rms_norm,
)
from gradtape.ops.nn.normalize import (
    local_response_norm as local_response_norm,
    normalize as normalize,
)
from gradtape.ops.nn.overlaps import (
    dice_loss as dice_loss,
    distillation_loss as distillation_loss,
    focal_loss as focal_loss,
    iou_loss as iou_loss,
    quantile_loss as quantile_loss,
    sigmoid_focal_loss as sigmoid_focal_loss,
)
from gradtape.ops.nn.padding import pad as pad
from gradtape.ops.nn.pool_adaptive import (
    adaptive_avg_pool1d as adaptive_avg_pool1d,
    adaptive_avg_pool2d as adaptive_avg_pool2d,
    adaptive_avg_pool3d as adaptive_avg_pool3d,
    adaptive_max_pool1d as adaptive_max_pool1d,
    adaptive_max_pool2d as adaptive_max_pool2d,
    adaptive_max_pool3d as adaptive_max_pool3d,
    global_avg_pool as global_avg_pool,
    global_max_pool as global_max_pool,
)
from gradtape.ops.nn.pool_average import (
    avg_pool1d as avg_pool1d,
    avg_pool2d as avg_pool2d,
    avg_pool3d as avg_pool3d,
    lp_pool1d as lp_pool1d,
    lp_pool2d as lp_pool2d,
    lp_pool3d as lp_pool3d,
    sum_pool1d as sum_pool1d,
    sum_pool2d as sum_pool2d,
    sum_pool3d as sum_pool3d,
)
from gradtape.ops.nn.pool_fractional import (
    fractional_max_pool2d as fractional_max_pool2d,
    fractional_max_pool3d as fractional_max_pool3d,
)
from gradtape.ops.nn.pool_max import (
    max_pool1d as max_pool1d,
    max_pool2d as max_pool2d,
    max_pool3d as max_pool3d,
    min_pool1d as min_pool1d,
    min_pool2d as min_pool2d,
    min_pool3d as min_pool3d,
)
from gradtape.ops.nn.pool_unpool import (
    max_unpool1d as max_unpool1d,
    max_unpool2d as max_unpool2d,
    max_unpool3d as max_unpool3d,
)
from gradtape.ops.nn.resize import interpolate as interpolate
from gradtape.ops.nn.shuffle import (
    pixel_shuffle as pixel_shuffle,
    pixel_unshuffle as pixel_unshuffle,
)
from gradtape.ops.nn.softmaxes import (
    glu as glu,
    gumbel_softmax as gumbel_softmax,
    log_softmax as log_softmax,
    softmax as softmax,
    softmin as softmin,
)
from gradtape.ops.nn.unfold import fold as fold, unfold as unfold
from gradtape.ops.trigonometric import tanh as tanh

logsigmoid = log_sigmoid
swish = silu
hard_sigmoid = hardsigmoid
hard_silu = hardswish
hard_tanh = hardtanh
inv_sqrt = rsqrt

_make_public(globals())
