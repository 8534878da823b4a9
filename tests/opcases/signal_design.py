"""Samples of the design of filters, and of their responses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.signal

import gradtape as gt
import our_scipy
from gradtape.errors import ArgumentError, ShapeError, UnsupportedError
from opcases.case import OpCase, Raises, draw
from opcases.signal import SOS, A, B

DOUBLE = (np.float64,)
LOW, BAND = np.array(0.3), np.array([0.25, 0.6])
ZEROS, POLES = np.array([-0.7, 0.2]), np.array([-0.9 + 0.4j, -0.9 - 0.4j, -0.5])


def case(function: Callable[..., Any], reference: Any, *args: Any, **more: Any) -> OpCase:
    more = {"dtypes": DOUBLE, "rtol": 1e5, **more}
    label = "design-" + more.pop("label", "") if more.get("label") else "design"
    return OpCase(function, args, reference, label=label, **more)


# ---- recursive ones -----------------------------------------------------------------------------


def design(name: str, order: int, **params: Any) -> tuple[Any, Any]:
    """A function of the frequencies, ours and SciPy's; of zeros and poles without the zeros."""

    def ours(wn: Any, *ripples: Any) -> Any:
        found = getattr(our_scipy.signal, name)(order, *ripples, wn, **params)
        return found[1:] if params.get("output") == "zpk" else found

    def theirs(wn: Any, *ripples: Any) -> Any:
        numbers = map(float, ripples)
        found = getattr(scipy.signal, name)(order, *numbers, wn.tolist(), **params)
        return found[1:] if params.get("output") == "zpk" else found

    ours.__name__ = theirs.__name__ = name
    return ours, theirs


def designs() -> Any:
    sos, ba, zpk = ({"output": output} for output in ("sos", "ba", "zpk"))
    many = (
        ("butter", (3,), LOW, sos),
        ("butter", (2,), LOW, {**ba, "btype": "high"}),
        ("butter", (2,), BAND, {**sos, "btype": "bandpass"}),
        ("butter", (1,), BAND, {**ba, "btype": "bandstop"}),
        ("butter", (2,), LOW, {**ba, "analog": True}),
        ("butter", (1,), np.array(3.0), {**zpk, "fs": 20.0}),
        ("cheby1", (2, np.array(1.5)), LOW, sos),
        ("cheby1", (3, np.array(0.5)), LOW, {**ba, "btype": "high"}),
        ("cheby2", (2, np.array(20.0)), LOW, ba),
        ("cheby2", (3, np.array(30.0)), BAND, {**sos, "btype": "band"}),
        ("ellip", (2, 1.0, 20.0), LOW, sos),
        ("bessel", (2,), LOW, ba),
    )
    for name, (order, *ripples), wn, params in many:
        numbers = () if name == "ellip" else ripples
        before = (order, *ripples) if name == "ellip" else (order,)
        ours, theirs = (
            elliptic(before, params) if name == "ellip" else design(name, order, **params)
        )
        label = f"{name}-{order}-{params['output']}-{params.get('btype', 'low')}"
        ops = ("sos_pairs",) if params["output"] == "sos" else ("tan",)
        ops = ("multiply",) if params.get("analog") else ops
        once = "band" in params.get("btype", "")
        yield case(
            ours, theirs, wn, *numbers, ops=ops, label=label, second_order=not once, batched=True
        )


def elliptic(before: Any, params: Any) -> tuple[Any, Any]:
    """An elliptic filter, whose ripples are constants."""

    def ellip(wn: Any) -> Any:
        return our_scipy.signal.ellip(*before, wn, **params)

    return ellip, lambda wn: scipy.signal.ellip(*before, float(wn), **params)


def butter_of(wn: Any, **params: Any) -> Any:
    return our_scipy.signal.butter(2, wn, **params)


def butter_reference(wn: Any, **params: Any) -> Any:
    return scipy.signal.butter(2, float(wn), **params)


BAD = [
    Raises((BAND,), ShapeError, r"butter: got Wn of shape \(2,\), expected 1 of them"),
    Raises((LOW,), ArgumentError, "btype='no'", {"btype": "no"}),
    Raises((LOW,), ArgumentError, "output='no'", {"output": "no"}),
    Raises((LOW,), ArgumentError, "fs= for an analog", {"analog": True, "fs": 2.0}),
    Raises((LOW,), UnsupportedError, "analog=True", {"analog": True, "output": "sos"}),
]


def notch(w0: Any, q: Any) -> Any:
    return (*our_scipy.signal.iirnotch(w0, q), *our_scipy.signal.iirpeak(w0, q, 3.0))


def notch_reference(w0: Any, q: Any) -> Any:
    w0, q = float(w0), float(q)
    return (*scipy.signal.iirnotch(w0, q), *scipy.signal.iirpeak(w0, q, 3.0))


# ---- zeros and poles ----------------------------------------------------------------------------


def moved(name: str) -> tuple[Any, Any]:
    def ours(*args: Any) -> Any:
        return getattr(our_scipy.signal, name)(*args)

    def theirs(z: Any, p: Any, k: Any, *rest: Any) -> Any:
        return getattr(scipy.signal, name)(z, p, float(k), *map(float, rest))

    ours.__name__ = name
    return ours, theirs


def sections(z: Any, p: Any, k: Any) -> Any:
    """Poles in conjugate pairs, whatever is differentiated."""
    pairs = gt.concatenate([p, gt.conj(p)])
    return our_scipy.signal.zpk2sos(z, pairs, k)


def sections_reference(z: Any, p: Any, k: Any) -> Any:
    return scipy.signal.zpk2sos(z, np.concatenate([p, p.conj()]), float(k))


def coefficients(z: Any, p: Any, k: Any) -> Any:
    return our_scipy.signal.zpk2tf(z, p, k)


def coefficients_reference(z: Any, p: Any, k: Any) -> Any:
    return scipy.signal.zpk2tf(z, p, float(k))


K = np.array(1.5)
MOVED = [
    *(
        case(*moved(name), ZEROS[:1], POLES[:2], K, *rest, ops=("multiply",), second_order=False)
        for name, *rest in (
            ("lp2lp_zpk", np.array(2.0)),
            ("lp2hp_zpk", np.array(2.0)),
            ("lp2bp_zpk", np.array(2.0), np.array(0.7)),
            ("lp2bs_zpk", np.array(2.0), np.array(0.7)),
            ("bilinear_zpk", np.array(2.0)),
        )
    ),
    case(
        sections,
        sections_reference,
        np.array([0.3, -0.6, 0.8]),
        np.array([0.5 + 0.4j, -0.2 + 0.8j]),
        K,
        ops=("sos_pairs",),
        second_order=False,
    ),
    case(
        coefficients,
        coefficients_reference,
        ZEROS,
        np.array([0.5, -0.3, 0.1]),
        K,
        ops=("multiply",),
        raises=[Raises((draw(2, 2), draw(2), K), ShapeError, "zpk2tf: got zeros")],
    ),
    case(our_scipy.signal.sos2tf, scipy.signal.sos2tf, SOS, ops=("getitem",)),
]

# ---- without recursion --------------------------------------------------------------------------


def taps(cutoff: Any, numtaps: int = 5, **params: Any) -> Any:
    return our_scipy.signal.firwin(numtaps, cutoff, **params)


def taps_reference(cutoff: Any, numtaps: int = 5, **params: Any) -> Any:
    return scipy.signal.firwin(numtaps, cutoff, **params)


FIR = [
    case(
        taps,
        taps_reference,
        LOW,
        ops=("sinc",),
        raises=[
            Raises((LOW,), ArgumentError, "an odd number", {"numtaps": 4, "pass_zero": False}),
            Raises((LOW,), ArgumentError, "pass_zero='no'", {"pass_zero": "no"}),
            Raises((LOW,), ArgumentError, "1 edges for 'bandpass'", {"pass_zero": "bandpass"}),
            Raises((draw(2, 2),), ShapeError, "firwin: got 5 coefficients and cutoff"),
            Raises((LOW,), ShapeError, "firwin: got a window", {"window": np.ones(3)}),
        ],
    ),
    *(
        case(taps, taps_reference, cutoff, params=params, ops=("sinc",), label=label)
        for label, cutoff, params in (
            ("high", LOW, {"pass_zero": False}),
            ("band", BAND, {"pass_zero": "bandpass", "numtaps": 6}),
            ("stop", np.array([2.5, 6.0]), {"fs": 20.0, "width": 4.0}),
            ("raw", LOW, {"scale": False, "window": ("kaiser", 4.0), "numtaps": 4}),
        )
    ),
]

# ---- responses ----------------------------------------------------------------------------------


def last(name: str, **params: Any) -> tuple[Any, Any]:
    """The response only, where frequencies are constants."""

    def ours(*args: Any) -> Any:
        return getattr(our_scipy.signal, name)(*args, **params)[1]

    def theirs(*args: Any) -> Any:
        return getattr(scipy.signal, name)(*args, **params)[1]

    ours.__name__ = name
    return ours, theirs


def delay(b: Any, a: Any) -> Any:
    return our_scipy.signal.group_delay((b, a), 4)[1]


def delay_reference(b: Any, a: Any) -> Any:
    return scipy.signal.group_delay((b, a), 4)[1]


FREQUENCIES = np.array([0.3, 1.1])
RESPONSES = [
    case(*last("freqz", worN=4, include_nyquist=True), B, A, ops=("matmul",)),
    case(*last("freqz"), B, A, FREQUENCIES, ops=("exp",), label="at"),
    case(*last("freqz", worN=3, whole=True, fs=10.0), B, ops=("matmul",), label="average"),
    case(*last("freqz_zpk", worN=3), ZEROS, 0.5 * POLES, K, ops=("prod",)),
    case(*last("sosfreqz", worN=3), SOS / SOS[:, 3:4], ops=("prod",), second_order=False),
    case(*last("freqs"), B, A, FREQUENCIES, ops=("divide",)),
    case(*last("freqs_zpk"), ZEROS, POLES, K, FREQUENCIES, ops=("prod",), second_order=False),
    case(delay, delay_reference, B, A, ops=("convolve_nd",)),
]

CASES = [
    *designs(),
    case(butter_of, butter_reference, LOW, ops=("tan",), raises=BAD),
    case(notch, notch_reference, LOW, np.array(4.0), ops=("tan",)),
    *MOVED,
    *FIR,
    *RESPONSES,
]

NOT_NATIVE = {"sos_pairs": "which zeros and poles go together is looked for step by step"}
