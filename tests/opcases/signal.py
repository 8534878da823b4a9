"""Samples of filters and convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal

import our_scipy
from gradtape.errors import ArgumentError, AxisError, DTypeError, ShapeError
from opcases.case import At, OpCase, Raises, draw

DIRECT = ("convolve_nd",)
FFT = ("rfft", "irfft")
MANY = (np.float64, np.float32, np.int32, np.complex128)
COMPLEX = draw(5) + 1j * draw(5, seed=1)
MODES = ("full", "same", "valid")


def case(name: str, label: str, *args: Any, ops: Any = DIRECT, **more: Any) -> OpCase:
    """A case of a function by SciPy's of the same name."""
    function, reference = getattr(our_scipy.signal, name), getattr(scipy.signal, name)
    params = more.pop("params", {})
    label = f"signal-{label}" if label else "signal"
    return OpCase(function, args, reference, params, ops=ops, label=label, **more)


def torch_convolve(torch: Any, x: Any, h: Any, **_params: Any) -> Any:
    """The full convolution of vectors: PyTorch correlates, and pads on both sides."""
    kernel = torch.flip(h, (0,))[None, None]
    return torch.nn.functional.conv1d(x[None, None], kernel, padding=len(h) - 1)[0, 0]


# ---- convolution --------------------------------------------------------------------------------

CONVOLVE = [
    case(
        "convolve",
        "",
        draw(4),
        draw(3, seed=1),
        dtypes=(*MANY, np.float16),
        torch=torch_convolve,
        rtol=64,
        raises=[
            Raises((draw(3), draw(2, 2)), ShapeError, r"convolve: got shapes \(3,\) and \(2, 2\)"),
            Raises((draw(3), draw(0)), ShapeError, "convolve.*at least one element"),
            Raises((draw(3), draw(2), "all"), ArgumentError, "convolve: got mode='all'"),
            Raises((draw(3), draw(2)), ArgumentError, "method='slow'", {"method": "slow"}),
            Raises((draw(2, 3), draw(3, 2), "valid"), ShapeError, 'convolve.*mode="valid"'),
            Raises((np.array([True]), draw(1)), DTypeError, "convolve: got bool"),
        ],
        at=[At(([1.0, 2.0], [3.0]), ([3.0, 3.0], [3.0]))],
    ),
    *(case("convolve", f"{mode}-even", draw(5), draw(4, seed=1), mode) for mode in MODES),
    *(case("convolve", f"{mode}-shorter", draw(2), draw(4, seed=1), mode) for mode in MODES),
    *(
        case("convolve", f"{mode}-images", draw(3, 4), draw(2, 3, seed=1), mode, dtypes=MANY)
        for mode in MODES
    ),
    case("convolve", "row", draw(3, 4), draw(1, 3, seed=1), second_order=False),
    case("convolve", "volumes", draw(2, 2, 3), draw(1, 2, 2), second_order=False),
    case("convolve", "complex", COMPLEX, draw(3), dtypes=(np.float64,)),
    case("convolve", "numbers", draw(), draw(seed=1), ops=("multiply",)),
    case("convolve", "fft", draw(4), draw(3, seed=1), ops=FFT, params={"method": "fft"}, rtol=64),
    *(case("correlate", f"{mode}", draw(4), draw(3, seed=1), mode) for mode in MODES),
    case("correlate", "shorter", draw(2), draw(4, seed=1), "valid"),
    case("correlate", "complex", draw(3), COMPLEX, dtypes=(np.float64,)),
    case("correlate", "images", draw(3, 4), draw(2, 2, seed=1), "same"),
    case(
        "correlate",
        "fft",
        draw(5),
        COMPLEX,
        dtypes=(np.float64,),
        ops=("fft",),
        rtol=64,
        params={"method": "fft"},
    ),
    case("correlate", "numbers", draw(), draw(seed=1), ops=("multiply",)),
]

BY_FFT = [
    *(
        case("fftconvolve", mode, draw(3, 4), draw(2, 3, seed=1), mode, ops=FFT, rtol=64)
        for mode in MODES
    ),
    case(
        "fftconvolve",
        "axes",
        draw(2, 4),
        draw(1, 3, seed=1),
        ops=FFT,
        rtol=64,
        params={"axes": 1},
        raises=[
            Raises((draw(2, 4), draw(3, 4)), ShapeError, "fftconvolve.*broadcast", {"axes": 1}),
            Raises((draw(2), draw(2)), AxisError, "fftconvolve", {"axes": 1}),
        ],
    ),
    case("fftconvolve", "shorter", draw(2), draw(5, seed=1), "same", ops=FFT, rtol=64),
    case("fftconvolve", "complex", COMPLEX, draw(3), ops=("fft",), rtol=64, dtypes=(np.float64,)),
    case("oaconvolve", "short", draw(4), draw(3, seed=1), ops=FFT, rtol=64),
    *(
        case(
            "oaconvolve",
            mode,
            draw(40),
            draw(2, seed=1),
            mode,
            ops=FFT,
            rtol=64,
            second_order=False,
        )
        for mode in MODES
    ),
    case(
        "oaconvolve",
        "swapped",
        draw(2),
        draw(40, seed=1),
        "same",
        ops=FFT,
        rtol=64,
        second_order=False,
    ),
    case(
        "oaconvolve",
        "axis",
        draw(33, 2),
        draw(2, 1, seed=1),
        ops=FFT,
        rtol=64,
        second_order=False,
        params={"axes": 0},
    ),
]

IMAGES = [
    *(
        case(name, f"{mode}-{boundary}", draw(3, 4), draw(2, 3, seed=1), mode, boundary)
        for name in ("convolve2d", "correlate2d")
        for mode, boundary in (
            *(("full", "fill"), ("same", "wrap"), ("full", "symm"), ("valid", "wrap")),
        )
    ),
    case("convolve2d", "even", draw(3, 4), draw(2, 2, seed=1), "same"),
    case("correlate2d", "even", draw(3, 4), draw(2, 2, seed=1), "same"),
    case("correlate2d", "even-wrap", draw(3, 4), draw(2, 4, seed=1), "same", "wrap"),
    case("correlate2d", "smaller", draw(1, 2), draw(2, 3, seed=1), "valid"),
    case("convolve2d", "smaller", draw(1, 2), draw(2, 3, seed=1), "valid"),
    case(
        "convolve2d",
        "filled",
        draw(2, 3),
        draw(2, 2, seed=1),
        params={"fillvalue": 2.0},
        raises=[
            Raises((draw(2), draw(2)), ShapeError, "convolve2d.*two axes"),
            Raises((draw(2, 2), draw(2, 2), "full", "no"), ArgumentError, "boundary='no'"),
        ],
    ),
]

# ---- filters ------------------------------------------------------------------------------------

B, A = np.array([0.5, 0.3, -0.2]), np.array([1.5, -0.6, 0.25])
SOS = np.array([[0.5, 0.3, -0.2, 1.0, -0.4, 0.2], [1.0, 0.4, 0.1, 1.0, 0.3, -0.1]])
FILTER = ("lfilter", "convolve_nd")
GUST = {"method": "gust"}
FIRST = {"second_order": False}


def unit(sos: Any) -> Any:
    """Sections divided by their a₀, as SciPy wants them."""
    return sos / sos[:, 3:4]


def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    return scipy.signal.sosfilt(unit(sos), x, axis, zi)


def sosfilt_zi(sos: Any) -> Any:
    return scipy.signal.sosfilt_zi(unit(sos))


def sosfiltfilt(sos: Any, x: Any, *args: Any, **params: Any) -> Any:
    return scipy.signal.sosfiltfilt(unit(sos), x, *args, **params)


FILTERS = [
    case(
        "lfilter",
        "",
        B,
        A,
        draw(6),
        ops=FILTER,
        dtypes=(np.float64, np.float32, np.complex128),
        rtol=64,
        raises=[
            Raises((draw(2, 2), A, draw(3)), ShapeError, r"lfilter: got b of shape \(2, 2\)"),
            Raises((B, draw(0), draw(3)), ShapeError, "lfilter.*at least one element"),
            Raises((B, A, draw(3), 1), AxisError, "lfilter: got axis 1"),
            Raises((B, A, draw(0)), ShapeError, "lfilter.*expected elements along axis 0"),
            Raises((B, A, draw(3), -1, draw(3)), ShapeError, r"lfilter: got zi.*expected \(2,\)"),
        ],
    ),
    case("lfilter", "longer-b", B, A[:2], draw(4), ops=FILTER),
    case("lfilter", "longer-a", B[:1], A, draw(4), ops=FILTER),
    case("lfilter", "short-signal", B, A, draw(1), ops=FILTER),
    case("lfilter", "axis", B[:2], A[:2], draw(3, 2), 0, ops=FILTER),
    case("lfilter", "state", B, A, draw(4), -1, draw(2, seed=1), ops=FILTER),
    case("lfilter", "states", B[:2], A[:2], draw(3, 2), 0, draw(1, 2, seed=1), ops=FILTER),
    case("lfilter", "average", B, A[:1], draw(4)),
    case("lfilter", "average-state", B, A[:1], draw(2, 3), -1, draw(2, 2, seed=1)),
    case("lfilter", "factor", B[:1], A[:1], draw(4)),
    case("lfilter", "complex", B + 1j * B[::-1], A, COMPLEX, ops=FILTER, dtypes=(np.float64,)),
    case("lfilter_zi", "", B, A, ops=("cumsum",), rtol=64),
    case("lfilter_zi", "shorter", B[:1], A[:2], ops=("cumsum",), rtol=64),
    OpCase(
        our_scipy.signal.sosfilt,
        (SOS, draw(4)),
        sosfilt,
        ops=FILTER,
        rtol=64,
        raises=[
            Raises((draw(2, 5), draw(3)), ShapeError, "sosfilt: got sos.*6 coefficients"),
            Raises((SOS, draw(3), 1), AxisError, "sosfilt"),
            Raises((SOS, draw(3), 0, draw(2)), ShapeError, r"sosfilt: got zi.*expected \(2, 2\)"),
            Raises((SOS, draw(0)), ShapeError, "sosfilt.*expected elements"),
        ],
    ),
    OpCase(our_scipy.signal.sosfilt, (SOS[:1], draw(3, 2), 0), sosfilt, ops=FILTER, label="axis"),
    OpCase(
        our_scipy.signal.sosfilt,
        (SOS, draw(2, 3), -1, draw(2, 2, 2, seed=1)),
        sosfilt,
        ops=FILTER,
        label="states",
        rtol=64,
        second_order=False,
    ),
    OpCase(our_scipy.signal.sosfilt_zi, (SOS,), sosfilt_zi, ops=("cumsum",), rtol=64),
    *(
        case("filtfilt", str(padtype), B[:2], A[:2], draw(8), -1, padtype, ops=FILTER, rtol=256)
        for padtype in ("odd", "even", "constant", None)
    ),
    case(
        "filtfilt",
        "axis",
        B[:2],
        A[:2],
        draw(4, 2),
        0,
        ops=FILTER,
        rtol=256,
        params={"padlen": 2},
        second_order=False,
        raises=[
            Raises((B, A, draw(9)), ShapeError, "filtfilt: got 9 elements.*padlen, which is 9"),
            Raises((B, A, draw(9), -1, "no"), ArgumentError, "filtfilt: got padtype='no'"),
            Raises((B, A, draw(9), -1, "zeros"), ArgumentError, "filtfilt: got padtype='zeros'"),
            Raises((B, A, draw(20)), ArgumentError, "method='no'", {"method": "no"}),
        ],
    ),
    *(
        case("filtfilt", f"gust-{label}", *args, ops=(*FILTER, "lstsq"), rtol=1e4, **more)
        for label, args, more in (
            ("", (B[:2], A[:2], draw(6)), {"params": GUST}),
            ("longer-b", (B, A[:2], draw(7)), {"params": GUST, "second_order": False}),
            ("ends", (B[:2], A[:2], draw(7)), {"params": {**GUST, "irlen": 3}}),
            ("axis", (B[:2], A[:2], draw(5, 2), 0), {"params": GUST, "second_order": False}),
            ("ends-axis", (B, A, draw(9, 2), 0), {"params": {**GUST, "irlen": 4}, **FIRST}),
        )
    ),
    case("filtfilt", "gust-factor", B[:1], A[:1], draw(4), ops=("multiply",), params=GUST),
    OpCase(
        our_scipy.signal.sosfiltfilt,
        (SOS[:1], draw(4)),
        sosfiltfilt,
        {"padlen": 2},
        ops=FILTER,
        rtol=256,
        second_order=False,
    ),
    OpCase(
        our_scipy.signal.sosfiltfilt,
        (SOS[:1], draw(12)),
        sosfiltfilt,
        ops=FILTER,
        rtol=256,
        second_order=False,
        label="default-padding",
        raises=[Raises((SOS[:1], draw(9)), ShapeError, "sosfiltfilt: got 9 elements.*which is 9")],
    ),
]

# ---- spectra and trends -------------------------------------------------------------------------

SPECTRAL = [
    case(
        "hilbert",
        "even",
        draw(2, 4),
        ops=("fft",),
        rtol=64,
        raises=[
            Raises((COMPLEX,), DTypeError, "hilbert: got complex128, expected a real"),
            Raises((draw(3),), AxisError, "hilbert", {"axis": 1}),
        ],
    ),
    case("hilbert", "odd", draw(3, 2), ops=("fft",), params={"axis": 0}, rtol=64),
    case("hilbert", "longer", draw(3), 5, ops=("fft",), rtol=64),
    case("hilbert", "one", draw(1), ops=("fft",)),
    case("hilbert", "two", draw(2), ops=("fft",)),
    case(
        "detrend",
        "",
        draw(2, 4),
        ops=("matmul",),
        rtol=256,
        raises=[
            Raises((draw(3),), ArgumentError, "detrend: got type='no'", {"type": "no"}),
            Raises((draw(3),), ArgumentError, "detrend: got bp=4", {"bp": 4}),
            Raises((draw(3),), AxisError, "detrend", {"axis": 1}),
        ],
    ),
    case("detrend", "constant", draw(3, 2), 0, "constant", ops=("mean",), rtol=64),
    case("detrend", "broken", draw(7), ops=("matmul",), params={"bp": [4, 3]}, rtol=256),
    case(
        "detrend",
        "integers",
        np.arange(4) ** 2,
        ops=("matmul",),
        rtol=256,
        differentiable=False,
        differences=False,
    ),
    *(
        case("resample", f"{n}-{num}", draw(n), num, ops=FFT, rtol=64)
        for n, num in ((4, 6), (4, 3), (5, 4), (5, 6), (4, 4), (6, 4), (3, 5), (2, 4), (4, 1))
    ),
    *(
        case(
            "resample",
            f"complex-{n}-{num}",
            COMPLEX[:n],
            num,
            ops=("fft",),
            rtol=64,
            dtypes=(np.float64,),
        )
        for n, num in ((4, 5), (5, 4), (4, 3), (4, 4), (5, 2), (2, 5), (1, 3))
    ),
    case("resample", "axis", draw(2, 4), 3, ops=FFT, rtol=64, params={"axis": 1}),
    case("resample", "window", draw(5), 4, ops=FFT, rtol=64, params={"window": "hann"}),
    case(
        "resample",
        "spectrum",
        COMPLEX,
        4,
        ops=("fft",),
        rtol=64,
        dtypes=(np.float64,),
        params={"domain": "freq", "window": np.cos},
    ),
    case(
        "resample",
        "times",
        draw(4),
        6,
        np.arange(4) * 0.5,
        ops=FFT,
        rtol=64,
        raises=[
            Raises((draw(4), 0), ShapeError, "resample: got 4 samples and num=0"),
            Raises((draw(4), 2), ArgumentError, "domain='no'", {"domain": "no"}),
            Raises((draw(4), 2), ShapeError, "window of shape", {"window": np.ones(3)}),
        ],
    ),
]

CASES = [*CONVOLVE, *BY_FFT, *IMAGES, *FILTERS, *SPECTRAL]

NOT_NATIVE = {
    "convolve_nd": "SciPy does it",
    "lfilter": "each element depends on those before it: SciPy does it",
}
