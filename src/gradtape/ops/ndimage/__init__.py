"""Interpolation and filters of images."""

from gradtape.core.op import registry

with registry.opened():
    from gradtape.ops.ndimage import (
        edges as edges,
        extremes as extremes,
        filters as filters,
        interpolation as interpolation,
        measurements as measurements,
        medians as medians,
        morphology as morphology,
        prefilter as prefilter,
        ranks as ranks,
        smoothing as smoothing,
        spectra as spectra,
    )
