"""Samples of further functions of signals: fewer samples, states, spectra in parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal

import our_scipy
from gradtape.errors import ArgumentError, AxisError, DTypeError, ShapeError
from opcases.case import OpCase, Raises, draw
from opcases.signal import A, B

DOUBLE = (np.float64,)
TIMES = np.array([0.1, 0.5, 1.2, 1.9, 2.2])


def case(name: str, label: str, *args: Any, ops: Any, **more: Any) -> OpCase:
    params = more.pop("params", {})
    label = f"more-{label}" if label else "more"
    function, reference = getattr(our_scipy.signal, name), getattr(scipy.signal, name)
    return OpCase(function, args, reference, params, ops=ops, label=label, rtol=1e4, **more)


CASES = [
    case(
        "decimate",
        "",
        draw(15),
        2,
        2,
        ops=("lfilter",),
        second_order=False,
        raises=[
            Raises((draw(9), 0), ArgumentError, "decimate: got q=0"),
            Raises((draw(9), 2), ArgumentError, "ftype='no'", {"ftype": "no"}),
            Raises((draw(9), 2), AxisError, "decimate: got axis 1", {"axis": 1}),
            Raises((draw(9), 2), ShapeError, "got 9 elements"),
        ],
    ),
    case(
        "decimate",
        "forwards",
        draw(6, 2),
        2,
        2,
        ops=("lfilter",),
        params={"axis": 0, "zero_phase": False},
        second_order=False,
    ),
    *(
        case("decimate", f"fir-{zero}", draw(7), 3, 4, "fir", -1, zero, ops=("convolve_nd",))
        for zero in (True, False)
    ),
    case("lfiltic", "", B, A, draw(1), draw(4, seed=1), ops=("convolve_nd",), dtypes=DOUBLE),
    case("lfiltic", "outputs", B[:1], A, draw(3), ops=("convolve_nd",), dtypes=DOUBLE),
    case(
        "hilbert2",
        "",
        draw(3, 5),
        ops=("fft",),
        raises=[
            Raises((draw(2, 2) + 1j,), DTypeError, "hilbert2: got complex128"),
            Raises((draw(2, 2),), ArgumentError, "expected two", {"axes": (0,)}),
        ],
    ),
    case("hilbert2", "size", draw(3, 2), (1, 3), ops=("fft",), second_order=False),
    *(
        case(
            "lombscargle",
            f"{kind}-{mean}",
            TIMES,
            draw(5),
            np.array([0.7, 1.3]),
            ops=("cos",),
            dtypes=DOUBLE,
            params={"normalize": kind, "floating_mean": mean, "weights": weights},
            second_order=kind is False,
        )
        for kind, mean, weights in (
            (False, False, None),
            (True, True, np.array([0.5, 1.0, 0.7, 1.2, 0.3])),
            ("amplitude", False, None),
        )
    ),
    case(
        "czt",
        "",
        draw(2, 3),
        4,
        ops=("fft",),
        dtypes=DOUBLE,
        raises=[Raises((draw(3), 0), ArgumentError, "czt: got m=0")],
        second_order=False,
    ),
    case("czt", "spiral", draw(3), ops=("fft",), dtypes=DOUBLE, params={"w": 0.9 + 0.1j, "a": 1.1}),
    case(
        "zoom_fft",
        "",
        draw(3),
        ops=("fft",),
        params={"fn": [0.2, 0.7], "m": 4, "endpoint": True},
        dtypes=DOUBLE,
        second_order=False,
    ),
]
