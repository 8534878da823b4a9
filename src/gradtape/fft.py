"""Fourier transforms, under the names of `numpy.fft` and `scipy.fft`.

The module is also a backend for SciPy: inside of `with scipy.fft.set_backend(gt.fft)`, the
functions of `scipy.fft` work on tensors.

>>> import scipy.fft
>>> with scipy.fft.set_backend(gt.fft):
...     gt.grad(lambda x: scipy.fft.dct(x)[0])(np.ones(3))
array([2., 2., 2.])
"""

from gradtape.advice.public import make_public as _make_public
from gradtape.ops.fft.cosine import (
    dct as dct,
    dctn as dctn,
    dst as dst,
    dstn as dstn,
    idct as idct,
    idctn as idctn,
    idst as idst,
    idstn as idstn,
)
from gradtape.ops.fft.frequencies import (
    fftfreq as fftfreq,
    fftshift as fftshift,
    ifftshift as ifftshift,
    next_fast_len as next_fast_len,
    prev_fast_len as prev_fast_len,
    rfftfreq as rfftfreq,
)
from gradtape.ops.fft.hankel import fht as fht, ifht as ifht
from gradtape.ops.fft.scipy_backend import DOMAIN as _DOMAIN, backend as _backend
from gradtape.ops.fft.transforms import (
    fft as fft,
    fft2 as fft2,
    fftn as fftn,
    hfft as hfft,
    hfft2 as hfft2,
    hfftn as hfftn,
    ifft as ifft,
    ifft2 as ifft2,
    ifftn as ifftn,
    ihfft as ihfft,
    ihfft2 as ihfft2,
    ihfftn as ihfftn,
    irfft as irfft,
    irfft2 as irfft2,
    irfftn as irfftn,
    rfft as rfft,
    rfft2 as rfft2,
    rfftn as rfftn,
)

__ua_domain__ = _DOMAIN
__ua_function__ = _backend(globals())

_make_public(globals())
