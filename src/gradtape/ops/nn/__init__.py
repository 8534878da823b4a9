"""Operations of neural networks."""

from gradtape.core.op import registry

with registry.opened():
    from gradtape.ops.nn import (
        activations as activations,
        attention as attention,
        bags as bags,
        batch_norm as batch_norm,
        classes as classes,
        conv as conv,
        conv_transpose as conv_transpose,
        cross_entropy as cross_entropy,
        ctc as ctc,
        distances as distances,
        dropout as dropout,
        embedding as embedding,
        grid as grid,
        likelihoods as likelihoods,
        linear as linear,
        losses as losses,
        margins as margins,
        normalization as normalization,
        normalize as normalize,
        overlaps as overlaps,
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
