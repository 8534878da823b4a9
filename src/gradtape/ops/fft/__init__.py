"""Fourier transforms."""

from gradtape.core.op import registry

with registry.opened():
    from gradtape.ops.fft import (
        cosine as cosine,
        frequencies as frequencies,
        hankel as hankel,
        transforms as transforms,
    )
