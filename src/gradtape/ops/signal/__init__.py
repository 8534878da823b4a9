"""Filters and convolutions."""

from gradtape.core.op import registry

with registry.opened():
    from gradtape.ops.signal import (
        chirp_z as chirp_z,
        convolution as convolution,
        density as density,
        design as design,
        filters as filters,
        fir as fir,
        resampling as resampling,
        response as response,
        spectral as spectral,
        stft as stft,
        uneven as uneven,
        zero_phase as zero_phase,
        zpk as zpk,
    )
