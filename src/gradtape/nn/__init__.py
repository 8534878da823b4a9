"""Neural networks: layers, functions (`functional`), first values (`init`), clipping (`utils`)."""

from gradtape.advice.public import make_public as _make_public
from gradtape.nn import functional as functional, init as init, utils as utils
from gradtape.nn.containers import (
    ModuleDict as ModuleDict,
    ModuleList as ModuleList,
    ParameterList as ParameterList,
    Sequential as Sequential,
)
from gradtape.nn.functional import *  # noqa: F403
from gradtape.nn.layers.activations import (
    CELU as CELU,
    ELU as ELU,
    GELU as GELU,
    GLU as GLU,
    SELU as SELU,
    GumbelSoftmax as GumbelSoftmax,
    Hardshrink as Hardshrink,
    Hardsigmoid as Hardsigmoid,
    Hardswish as Hardswish,
    Hardtanh as Hardtanh,
    LeakyReLU as LeakyReLU,
    LogSigmoid as LogSigmoid,
    LogSoftmax as LogSoftmax,
    Mish as Mish,
    PReLU as PReLU,
    ReLU as ReLU,
    ReLU6 as ReLU6,
    RReLU as RReLU,
    Sigmoid as Sigmoid,
    SiLU as SiLU,
    Softmax as Softmax,
    Softmax2d as Softmax2d,
    Softmin as Softmin,
    Softplus as Softplus,
    Softshrink as Softshrink,
    Softsign as Softsign,
    Tanh as Tanh,
    Tanhshrink as Tanhshrink,
    Threshold as Threshold,
)
from gradtape.nn.layers.attention import MultiheadAttention as MultiheadAttention
from gradtape.nn.layers.convolution import (
    Conv1d as Conv1d,
    Conv2d as Conv2d,
    Conv3d as Conv3d,
    ConvTranspose1d as ConvTranspose1d,
    ConvTranspose2d as ConvTranspose2d,
    ConvTranspose3d as ConvTranspose3d,
)
from gradtape.nn.layers.dropout import (
    AlphaDropout as AlphaDropout,
    Dropout as Dropout,
    Dropout1d as Dropout1d,
    Dropout2d as Dropout2d,
    Dropout3d as Dropout3d,
    FeatureAlphaDropout as FeatureAlphaDropout,
)
from gradtape.nn.layers.embedding import (
    Embedding as Embedding,
    EmbeddingBag as EmbeddingBag,
)
from gradtape.nn.layers.linear import (
    Bilinear as Bilinear,
    Linear as Linear,
)
from gradtape.nn.layers.lora import (
    LoRALinear as LoRALinear,
    lora as lora,
    mark_only_lora_as_trainable as mark_only_lora_as_trainable,
)
from gradtape.nn.layers.losses import (
    BCELoss as BCELoss,
    BCEWithLogitsLoss as BCEWithLogitsLoss,
    ContrastiveLoss as ContrastiveLoss,
    CosineEmbeddingLoss as CosineEmbeddingLoss,
    CosineSimilarity as CosineSimilarity,
    CrossEntropyLoss as CrossEntropyLoss,
    CTCLoss as CTCLoss,
    DiceLoss as DiceLoss,
    DistillationLoss as DistillationLoss,
    FocalLoss as FocalLoss,
    GaussianNLLLoss as GaussianNLLLoss,
    HingeEmbeddingLoss as HingeEmbeddingLoss,
    HingeLoss as HingeLoss,
    HuberLoss as HuberLoss,
    IoULoss as IoULoss,
    KLDivLoss as KLDivLoss,
    L1Loss as L1Loss,
    MarginRankingLoss as MarginRankingLoss,
    MSELoss as MSELoss,
    MultiLabelMarginLoss as MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss,
    MultiMarginLoss as MultiMarginLoss,
    NLLLoss as NLLLoss,
    PairwiseDistance as PairwiseDistance,
    PoissonNLLLoss as PoissonNLLLoss,
    QuantileLoss as QuantileLoss,
    SigmoidCrossEntropyLoss as SigmoidCrossEntropyLoss,
    SigmoidFocalLoss as SigmoidFocalLoss,
    SmoothL1Loss as SmoothL1Loss,
    SoftMarginLoss as SoftMarginLoss,
    SoftmaxCrossEntropyLoss as SoftmaxCrossEntropyLoss,
    SparseSoftmaxCrossEntropyLoss as SparseSoftmaxCrossEntropyLoss,
    TripletMarginLoss as TripletMarginLoss,
)
from gradtape.nn.layers.normalization import (
    BatchNorm1d as BatchNorm1d,
    BatchNorm2d as BatchNorm2d,
    BatchNorm3d as BatchNorm3d,
    GroupNorm as GroupNorm,
    InstanceNorm1d as InstanceNorm1d,
    InstanceNorm2d as InstanceNorm2d,
    InstanceNorm3d as InstanceNorm3d,
    LayerNorm as LayerNorm,
    LocalResponseNorm as LocalResponseNorm,
    RMSNorm as RMSNorm,
)
from gradtape.nn.layers.pooling import (
    AdaptiveAvgPool1d as AdaptiveAvgPool1d,
    AdaptiveAvgPool2d as AdaptiveAvgPool2d,
    AdaptiveAvgPool3d as AdaptiveAvgPool3d,
    AdaptiveMaxPool1d as AdaptiveMaxPool1d,
    AdaptiveMaxPool2d as AdaptiveMaxPool2d,
    AdaptiveMaxPool3d as AdaptiveMaxPool3d,
    AvgPool1d as AvgPool1d,
    AvgPool2d as AvgPool2d,
    AvgPool3d as AvgPool3d,
    FractionalMaxPool2d as FractionalMaxPool2d,
    FractionalMaxPool3d as FractionalMaxPool3d,
    GlobalAvgPool as GlobalAvgPool,
    GlobalMaxPool as GlobalMaxPool,
    LPPool1d as LPPool1d,
    LPPool2d as LPPool2d,
    LPPool3d as LPPool3d,
    MaxPool1d as MaxPool1d,
    MaxPool2d as MaxPool2d,
    MaxPool3d as MaxPool3d,
    MaxUnpool1d as MaxUnpool1d,
    MaxUnpool2d as MaxUnpool2d,
    MaxUnpool3d as MaxUnpool3d,
    MinPool1d as MinPool1d,
    MinPool2d as MinPool2d,
    MinPool3d as MinPool3d,
    SumPool1d as SumPool1d,
    SumPool2d as SumPool2d,
    SumPool3d as SumPool3d,
)
from gradtape.nn.layers.positions import (
    LearnedPositionalEncoding as LearnedPositionalEncoding,
    RoPE as RoPE,
    RotaryEmbedding as RotaryEmbedding,
    SinusoidalPositionalEncoding as SinusoidalPositionalEncoding,
)
from gradtape.nn.layers.recurrent import (
    GRU as GRU,
    LSTM as LSTM,
    RNN as RNN,
    GRUCell as GRUCell,
    LSTMCell as LSTMCell,
    RNNCell as RNNCell,
)
from gradtape.nn.layers.shapes import (
    Flatten as Flatten,
    Fold as Fold,
    Identity as Identity,
    PixelShuffle as PixelShuffle,
    PixelUnshuffle as PixelUnshuffle,
    Unflatten as Unflatten,
    Unfold as Unfold,
    Upsample as Upsample,
)
from gradtape.nn.layers.transformer import (
    Transformer as Transformer,
    TransformerDecoder as TransformerDecoder,
    TransformerDecoderLayer as TransformerDecoderLayer,
    TransformerEncoder as TransformerEncoder,
    TransformerEncoderLayer as TransformerEncoderLayer,
)
from gradtape.nn.module import Module as Module, Parameter as Parameter

_make_public(globals(), "functional", "init", "utils")
