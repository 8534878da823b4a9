"""Filters and convolutions."""

from gradtape.core.op import registry

with registry.opened():
    from gradtape.ops.signal import (
        convolution as convolution,
        filters as filters,
        resampling as resampling,
        spectral as spectral,
        stft as stft,
    )
