"""Samples of other sampling rates, smoothing, and spectra over time."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal

import our_scipy
from gradtape.errors import ArgumentError, AxisError, DTypeError, ShapeError
from opcases.case import OpCase, Raises, draw

COMPLEX = draw(8) + 1j * draw(8, seed=1)
TAPS = draw(5, seed=1)


def case(name: str, label: str, *args: Any, **params: Any) -> OpCase:
    """A case of a function by SciPy's of the same name."""
    keys = ("raises", "dtypes", "second_order", "ops", "torch")
    more = {key: params.pop(key) for key in keys if key in params}
    more.setdefault("ops", ("convolve_nd",))
    function, reference = getattr(our_scipy.signal, name), getattr(scipy.signal, name)
    return OpCase(function, args, reference, params, label=label, rtol=256, **more)


RATES = [
    case(
        "upfirdn",
        "",
        TAPS,
        draw(4),
        up=3,
        down=2,
        dtypes=(np.float64, np.float32, np.complex128),
        raises=[
            Raises((TAPS, draw(3), 0), ArgumentError, "upfirdn: got up=0"),
            Raises((TAPS, draw(3), 1, -1), ArgumentError, "upfirdn: got down=-1"),
            Raises((draw(2, 2), draw(3)), ShapeError, r"upfirdn: got a filter of shape \(2, 2\)"),
            Raises((TAPS, draw(0)), ShapeError, "upfirdn.*expected elements"),
            Raises((TAPS, draw(3)), ArgumentError, "mode='no'", {"mode": "no"}),
            Raises((TAPS, draw(3)), AxisError, "upfirdn", {"axis": 1}),
        ],
    ),
    case("upfirdn", "down", TAPS, draw(6), down=3),
    case("upfirdn", "up", TAPS[:2], draw(3), up=4),
    case("upfirdn", "axis", TAPS[:3], draw(3, 2), up=2, axis=0, second_order=False),
    *(
        case("upfirdn", mode, TAPS, draw(4), up=2, down=3, mode=mode)
        for mode in ("symmetric", "reflect", "edge", "wrap")
    ),
    case("upfirdn", "filled", TAPS, draw(4), up=2, mode="constant", cval=0.7),
    case("resample_poly", "", draw(5), 3, 2, second_order=False),
    case("resample_poly", "down", draw(7), 2, 4, padtype="edge", second_order=False),
    *(
        case("resample_poly", kind, draw(4), 2, 1, padtype=kind, second_order=False)
        for kind in ("mean", "minimum", "maximum", "symmetric")
    ),
    case("resample_poly", "same", draw(4), 2, 2, ops=("copy",)),
    case(
        "resample_poly",
        "taps",
        draw(2, 5),
        3,
        4,
        axis=1,
        window=np.array([0.2, 0.5, 0.2]),
        second_order=False,
        raises=[
            Raises((draw(4), 0, 1), ArgumentError, "resample_poly: got up=0"),
            Raises((draw(4), 2, 1), ArgumentError, "mode='no'", {"padtype": "no"}),
            Raises((draw(4), 2, 1), ArgumentError, "cval", {"padtype": "edge", "cval": 1.0}),
            Raises((draw(4), 2, 1), ShapeError, "a window of shape", {"window": np.eye(2)}),
        ],
    ),
    case(
        "savgol_filter",
        "",
        draw(7),
        5,
        2,
        raises=[
            Raises((draw(7), 3, 3), ArgumentError, "savgol_filter: got window_length=3"),
            Raises((draw(3), 5, 2), ShapeError, "savgol_filter: got 3 elements"),
            Raises((draw(7), 5, 2), ArgumentError, "mode='no'", {"mode": "no"}),
        ],
    ),
    case("savgol_filter", "even", draw(7), 4, 2),
    case("savgol_filter", "derivative", draw(2, 6), 5, 3, deriv=1, delta=0.5),
    case("savgol_filter", "axis", draw(3, 2), 3, 1, axis=0),
    *(
        case("savgol_filter", f"{mode}-{length}", draw(6), length, 2, mode=mode, cval=0.7)
        for mode, length in (("mirror", 5), ("nearest", 4), ("wrap", 3), ("constant", 4))
    ),
]

# ---- spectra over time --------------------------------------------------------------------------


def stft(x: Any, **params: Any) -> Any:
    """The spectrum only: frequencies and times are constants."""
    return our_scipy.signal.stft(x, **params)[2]


def stft_reference(x: Any, **params: Any) -> Any:
    return scipy.signal.stft(x, **params)[2]


def istft(z: Any, **params: Any) -> Any:
    return our_scipy.signal.istft(z, **params)[1]


def istft_reference(z: Any, **params: Any) -> Any:
    return scipy.signal.istft(z, **params)[1]


def torch_stft(torch: Any, x: Any, nperseg: int, noverlap: int, **_params: Any) -> Any:
    window = torch.hann_window(nperseg, dtype=x.dtype)
    z = torch.stft(x, nperseg, nperseg - noverlap, window=window, center=False, return_complex=True)
    return z / window.sum()


def spectrum(label: str, x: Any, **params: Any) -> OpCase:
    raises, torch = params.pop("raises", ()), params.pop("torch", None)
    ops = ("gather", "fft" if np.iscomplexobj(x) or "return_onesided" in params else "rfft")
    return OpCase(
        stft,
        (x,),
        stft_reference,
        params,
        ops=ops,
        label=label,
        rtol=64,
        raises=raises,
        torch=torch,
    )


def signal(label: str, z: Any, **params: Any) -> OpCase:
    raises = params.pop("raises", ())
    ops = ("scatter", "fft" if "input_onesided" in params else "irfft")
    return OpCase(
        istft,
        (z,),
        istft_reference,
        params,
        ops=ops,
        label=label,
        rtol=64,
        raises=raises,
        dtypes=(np.float64,),
        second_order=False,
    )


Z = scipy.signal.stft(draw(9), nperseg=4)[2] + draw(3, 6)

SPECTRA = [
    spectrum(
        "",
        draw(9),
        nperseg=4,
        raises=[
            Raises((draw(9),), ArgumentError, "stft: got a window", {"nperseg": 4, "nfft": 2}),
            Raises((draw(9),), ArgumentError, "noverlap=4", {"nperseg": 4, "noverlap": 4}),
            Raises((draw(9),), ArgumentError, "boundary='no'", {"boundary": "no"}),
            Raises((draw(9),), ArgumentError, "scaling='no'", {"scaling": "no", "nperseg": 4}),
            Raises((draw(9),), AxisError, "stft", {"axis": 1}),
        ],
    ),
    *(spectrum(kind, draw(7), nperseg=4, boundary=kind) for kind in ("even", "odd", "constant")),
    spectrum("open", draw(8), nperseg=4, noverlap=1, boundary=None, padded=False, torch=torch_stft),
    spectrum("axis", draw(6, 2), nperseg=3, noverlap=2, axis=0, window=("kaiser", 4.0), nfft=5),
    spectrum("two-sided", draw(6), nperseg=4, return_onesided=False, scaling="psd", fs=2.0),
    spectrum("detrended", draw(6), nperseg=4, detrend="constant"),
    spectrum("window", draw(6), nperseg=3, window=np.array([0.5, 1.0, 0.7])),
    signal(
        "",
        Z,
        raises=[
            Raises((Z,), ShapeError, "istft: got the same axis", {"freq_axis": -1}),
            Raises((np.eye(3, dtype=int),), DTypeError, "istft: got int64"),
            Raises((Z,), ArgumentError, "noverlap=9", {"noverlap": 9}),
        ],
    ),
    signal("open", np.stack([Z, -Z]), boundary=False, noverlap=3, window="boxcar"),
    signal("turned", Z.T, time_axis=0, freq_axis=1, nperseg=5, noverlap=3, window="boxcar"),
    signal(
        "two-sided",
        Z[:, :4],
        input_onesided=False,
        noverlap=2,
        window="hamming",
        scaling="psd",
        fs=2.0,
    ),
    signal("axes", np.stack([Z, -Z], axis=1), freq_axis=0),
]

CASES = [*RATES, *SPECTRA]
