"""Fourier transforms."""

from gradtape.core.op import registry

with registry.opened():
    from gradtape.ops.fft import (
        cosine as cosine,
        fourier as fourier,
        frequencies as frequencies,
        hankel as hankel,
        hermitian as hermitian,
        real as real,
    )
