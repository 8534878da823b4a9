"""Fourier transforms, under the names of `numpy.fft` and `scipy.fft`.

The module is also a backend for SciPy: inside of `with scipy.fft.set_backend(gt.fft)`, the
functions of `scipy.fft` work on tensors.

>>> import scipy.fft
>>> with scipy.fft.set_backend(gt.fft):
...     gt.grad(lambda x: scipy.fft.dct(x)[0])(np.ones(3))
array([2., 2., 2.])
"""

import inspect
from collections.abc import Callable
from typing import Any

from gradtape.core.tensor import Tensor
from gradtape.help.public import make_public as _make_public
from gradtape.ops.fft.cosine import dct, dctn, dst, dstn, idct, idctn, idst, idstn
from gradtape.ops.fft.fourier import fft, fft2, fftn, ifft, ifft2, ifftn
from gradtape.ops.fft.frequencies import (
    fftfreq,
    fftshift,
    ifftshift,
    next_fast_len,
    prev_fast_len,
    rfftfreq,
)
from gradtape.ops.fft.hankel import fht, ifht
from gradtape.ops.fft.hermitian import hfft, hfft2, hfftn, ihfft, ihfft2, ihfftn
from gradtape.ops.fft.real import irfft, irfft2, irfftn, rfft, rfft2, rfftn

__all__ = [
    "fft",
    "ifft",
    "fft2",
    "ifft2",
    "fftn",
    "ifftn",
    "rfft",
    "irfft",
    "rfft2",
    "irfft2",
    "rfftn",
    "irfftn",
    "hfft",
    "ihfft",
    "hfft2",
    "ihfft2",
    "hfftn",
    "ihfftn",
    "dct",
    "idct",
    "dst",
    "idst",
    "dctn",
    "idctn",
    "dstn",
    "idstn",
    "fht",
    "ifht",
    "fftfreq",
    "rfftfreq",
    "fftshift",
    "ifftshift",
    "next_fast_len",
    "prev_fast_len",
]

# ---- SciPy's protocol for backends --------------------------------------------------------------

__ua_domain__ = "numpy.scipy.fft"
# How to compute, not what: SciPy may overwrite its argument, use threads, reuse a plan.
_HINTS = ("overwrite_x", "workers", "plan")


def __ua_function__(  # noqa: N807 (the name that SciPy looks for)
    method: Callable[..., Any], args: Any, kwargs: Any
) -> Any:
    """Answer a function of `scipy.fft` on a tensor; on arrays SciPy's own does, which ours use."""
    given = inspect.signature(method).bind(*args, **kwargs).arguments
    array, *options = (name for name in given if name not in _HINTS)
    if method.__name__ not in __all__ or not isinstance(given[array], Tensor):
        return NotImplemented
    function = globals()[method.__name__]
    return function(given[array], **{name: given[name] for name in options})


_make_public(globals())
