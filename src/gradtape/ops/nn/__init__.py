"""Operations of neural networks."""

from gradtape.core.op import registry

with registry.opened():
    from gradtape.ops.nn import (
        activations as activations,
        conv as conv,
        conv_transpose as conv_transpose,
        dropout as dropout,
        grid as grid,
        normalization as normalization,
        normalize as normalize,
        padding as padding,
        pool_adaptive as pool_adaptive,
        pool_average as pool_average,
        pool_fractional as pool_fractional,
        pool_max as pool_max,
        pool_unpool as pool_unpool,
        resize as resize,
        shuffle as shuffle,
        softmaxes as softmaxes,
        standardize as standardize,
        unfold as unfold,
    )
