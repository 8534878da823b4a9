"""Samples of spectral densities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.signal

import our_scipy
from gradtape.errors import ArgumentError, AxisError, ShapeError
from opcases.case import OpCase, Raises, draw

COMPLEX = draw(9) + 1j * draw(9, seed=1)
X, Y = draw(9, low=0.2), draw(9, seed=2)


def last_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """The spectrum only: frequencies and times are constants, and not tensors."""

    def last(*args: Any, **params: Any) -> Any:
        return function(*args, **params)[-1]

    last.__name__ = function.__name__
    return last


def case(name: str, label: str, *args: Any, **params: Any) -> OpCase:
    more = {key: params.pop(key) for key in ("raises", "second_order", "dtypes") if key in params}
    function, reference = (
        last_of(getattr(module, name)) for module in (our_scipy.signal, scipy.signal)
    )
    params.setdefault("nperseg", 4)
    if name == "periodogram":
        del params["nperseg"]
    two_sided = any(map(np.iscomplexobj, args)) or not params.get("return_onesided", True)
    ops = ("gather", "fft" if two_sided else "rfft")
    return OpCase(
        function, args, reference, params, ops=ops, label=f"density-{label}", rtol=1e3, **more
    )


def by_window(window: Any, x: Any) -> Any:
    """Also the window may be a tensor."""
    return our_scipy.signal.welch(x, window=window)[1] + our_scipy.signal.stft(x, window=window)[
        2
    ].real.sum(-1)


def by_window_reference(window: Any, x: Any) -> Any:
    spectrum = scipy.signal.stft(x, window=window, nperseg=len(window))[2]
    return scipy.signal.welch(x, window=window)[1] + spectrum.real.sum(-1)


CASES = [
    case(
        "welch",
        "",
        X,
        raises=[
            Raises((X,), AxisError, "welch: got axis 1", {"axis": 1}),
            Raises((X,), ArgumentError, "welch: got scaling='no'", {"scaling": "no"}),
            Raises((X,), ArgumentError, "welch: got average='no'", {"average": "no"}),
            Raises((X,), ArgumentError, "at most those of the signal", {"window": np.ones(10)}),
            Raises((draw(0),), ShapeError, "welch.*expected elements along axis 0"),
        ],
    ),
    case("welch", "options", X, fs=2.0, noverlap=1, nfft=5, detrend="linear", scaling="spectrum"),
    case("welch", "median", X, nperseg=2, average="median", second_order=False),
    case("welch", "two-sided", X, return_onesided=False, detrend=False),
    case("welch", "complex", COMPLEX, dtypes=(np.float64,)),
    case("welch", "axis", draw(6, 2), axis=0, nperseg=3, window="boxcar"),
    case("welch", "function", X, detrend=lambda x: x - 1.0, second_order=False),
    OpCase(
        by_window,
        (np.array([0.5, 1.0, 0.7]), X),
        by_window_reference,
        ops=("gather", "rfft"),
        dtypes=(np.float64,),
        rtol=1e3,
        second_order=False,
    ),
    case("csd", "", X, Y),
    case("csd", "shorter", X, Y[:7], average="median", second_order=False),
    case("csd", "complex", COMPLEX, Y, dtypes=(np.float64,), second_order=False),
    case("csd", "broadcast", draw(2, 6), draw(6), nperseg=3, second_order=False),
    case(
        "periodogram",
        "",
        X,
        raises=[Raises((X,), ShapeError, r"periodogram: got.*\(3,\)", {"window": np.ones(3)})],
    ),
    case("periodogram", "longer", X, nfft=10, window="hann", scaling="spectrum"),
    case("periodogram", "shorter", X, nfft=6, fs=3.0),
    case("periodogram", "axis", draw(4, 2), axis=0, window=None),
    case("coherence", "", X, Y, nperseg=3),
    case("spectrogram", "", X),
    *(
        case("spectrogram", mode, X, mode=mode, detrend=False, second_order=False)
        for mode in ("complex", "magnitude", "angle", "phase")
    ),
    case(
        "spectrogram",
        "axis",
        draw(8, 2),
        axis=0,
        nperseg=3,
        noverlap=1,
        second_order=False,
        raises=[Raises((X,), ArgumentError, "spectrogram: got mode='no'", {"mode": "no"})],
    ),
]
