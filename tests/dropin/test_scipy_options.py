"""Options of SciPy's functions with other values than their defaults, on tensors and on arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from builds import SCIPY
from drop_in_calls import (
    NoTensorError,
    Watched,
    assert_alike,
    functions,
    pair,
    run_on_tensors,
    sample_of,
    signature_of,
)
from gradtape.errors import GradtapeError
from scipy_samples import parts

# SciPy warns of what it computes.
pytestmark = pytest.mark.filterwarnings("ignore")

_BLOCK = np.ones((3, 3), bool)
# Values to try, by the name of the option; those that SciPy does not take are passed over.
VALUES: dict[str, tuple[Any, ...]] = {
    "a": (1.1 + 0j,),
    "analog": (True,),
    "assume_a": ("gen", "sym"),
    "atol": (0.1,),
    "average": ("median",),
    "axes": ((0, 1), (0,), (-1,), 0),
    "axis": (0, -1, 1),
    "baxis": (-1,),
    "bias": (0.3,),
    "boundary": ("even", "odd", "constant", "zeros", "wrap", "symm", "fill"),
    "bp": (3,),
    "btype": ("high", "low"),
    "calc_q": (True,),
    "caxis": (0,),
    "compute_expm": (False,),
    "compute_uv": (False,),
    "cond": (0.5,),
    "conjugate": (True,),
    "cval": (1.5,),
    "derivative": (True,),
    "detrend": ("linear", "constant", False),
    "domain": ("freq",),
    "down": (2,),
    "eigvals_only": (True,),
    "endpoint": (True,),
    "fillvalue": (2.0,),
    "flatten": (1,),
    "footprint": (_BLOCK,),
    "freq_axis": (0,),
    "fs": (2.0, 3),
    "ftype": ("fir",),
    "full_matrices": (False, True),
    "grid_mode": (True,),
    "hermitian": (False,),
    "include_nyquist": (True,),
    "input_onesided": (False,),
    "irlen": (4,),
    "k": (-1, 1),
    "keepdims": (True,),
    "left": (True,),
    "lower": (True, False),
    "m": (5,),
    "method": ("direct", "fft", "gust", "pad", "bilinear", "SPS"),
    "mode": (
        *("reflect", "nearest", "mirror", "constant", "wrap", "grid-wrap", "grid-constant"),
        *("grid-mirror", "full", "same", "valid", "r", "economic", "interp", "left", "right"),
        *("line", "minimum", "psd", "complex", "magnitude", "angle", "edge", "symmetric"),
        *(("wrap", "nearest"), ["constant", "mirror"]),
    ),
    "mysize": (3, 5),
    "n": (5, 3),
    "nfft": (32,),
    "noise": (0.1,),
    "noverlap": (3,),
    "norm": ("ortho", "forward", "backward", "phase", "mag", "delay"),
    "normalize": (True,),
    "normalized": (True,),
    "nperseg": (8,),
    "offset": (0.5,),
    "ord": (1, 2, np.inf, 3, "fro", "nuc"),
    "order": (0, 1, 2, 4, 5),
    "origin": (1, -1),
    "orthogonalize": (True, False),
    "outaxis": (-1,),
    "output": ("ba", "zpk", "sos", "complex"),
    "output_shape": ((4, 4),),
    "p_indices": (True,),
    "padded": (False,),
    "padlen": (3,),
    "padtype": ("even", "constant", None),
    "pairing": ("nearest",),
    "pass_zero": (False, "highpass"),
    "permute": (False,),
    "permute_l": (True,),
    "pivoting": (True,),
    "polyorder": (3,),
    "prefilter": (False,),
    "radius": (2,),
    "repetition": (True,),
    "reshape": (False,),
    "return_onesided": (False,),
    "return_rank": (True,),
    "return_sign": (True,),
    "right": (False,),
    "rtol": (0.1,),
    "s": ((3, 3), (7, 8), (5,)),
    "scale": (False,),
    "scaling": ("spectrum", "density", "psd"),
    "select": ("a",),
    "separate": (True,),
    "side": ("left",),
    "singular": ("lstsq",),
    "size": (2, (3, 2)),
    "structure": (np.ones((3, 3)),),
    "time_axis": (0,),
    "trans": (0, 1, 2),
    "transposed": (True,),
    "truncate": (2.0,),
    "type": (1, 2, 3, 4, "constant", "linear"),
    "unit_diagonal": (True,),
    "up": (3,),
    "whole": (True,),
    "width": (0.2,),
    "window": (
        *("hamming", "boxcar", ("kaiser", 5.0), "hann", "blackman", "flattop"),
        *("hann_periodic", "hann_symmetric", ("tukey", 0.3)),
    ),
    "worN": (6,),
    "zero_phase": (False,),
}
# What SciPy takes and ours do not: the function and the option, and why.
REFUSED = {
    ("ndimage.vectorized_filter", "mode"): "'valid' is not there, 'grid-mirror' is ambiguous",
    ("signal.resample", "axis"): "SciPy takes an axis that there is not",
    ("signal.stft", "axis"): "the same",
    ("signal.upfirdn", "mode"): "'line' and some others have no form for tensors",
    ("signal.welch", "axis"): "the same, before SciPy 1.17",
    ("signal.zpk2sos", "analog"): "only digital filters",
}
# Before SciPy 1.16 it drops imaginary parts.
WRONG = {("signal.resample", "domain")} if SCIPY < (1, 16) else set()


def options() -> list[tuple[str, str]]:
    """Each option of SciPy's that ours takes, and that there are values for."""
    found = []
    for name in functions():
        ours, theirs = pair(name)
        signature = signature_of(theirs)
        if signature is None or isinstance(theirs, np.ufunc) or name.startswith("sparse."):
            continue
        own = inspect.signature(ours.on_tensors).parameters.keys()
        optional = {p.name for p in signature.parameters.values() if p.default is not p.empty}
        found += [(name, option) for option in optional & own & VALUES.keys()]
    return sorted(set(found) - WRONG)


def with_option(function: Callable[..., Any], option: str, value: Any) -> Callable[..., Any]:
    """The function with an option, which may be a positional argument of the call."""
    signature = inspect.signature(function)

    def call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.arguments[option] = value
        return function(*bound.args, **bound.kwargs)

    return call


@pytest.mark.parametrize(("name", "option"), options())
def test_options_do_what_they_do_in_scipy(name: str, option: str) -> None:
    ours, theirs = pair(name)
    for value in VALUES[option]:
        expected = Watched(with_option(theirs, option, value))
        try:
            processed = sample_of(name)(expected)
        except Exception:
            # SciPy does not take this value, or the sample makes nothing of the result.
            continue
        try:
            result, got = run_on_tensors(name, with_option(ours, option, value))
        except NoTensorError:
            continue
        except GradtapeError:
            assert (name, option) in REFUSED, f"{option}={value!r}"
            continue
        assert_alike(result, expected.result)
        for one, other in zip(parts(got), parts(processed), strict=True):
            np.testing.assert_allclose(
                np.asarray(one), np.asarray(other), 1e-7, 1e-9, err_msg=f"{option}={value!r}"
            )
