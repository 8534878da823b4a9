"""Operations of neural networks as functions, under the names of `torch.nn.functional`."""

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
from gradtape.ops.nn.dropout import (
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
    rrelu,
)
from gradtape.ops.nn.grid import (
    affine_grid,
    grid_sample,
)
from gradtape.ops.nn.normalization import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    rms_norm,
)
from gradtape.ops.nn.normalize import (
    local_response_norm,
    normalize,
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
]
