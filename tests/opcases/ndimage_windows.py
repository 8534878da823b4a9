"""Samples of ranks, morphology and regions of images, and of filters through their transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.ndimage
import scipy.signal

import our_scipy
from gradtape.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from opcases.case import At, OpCase, Raises, draw
from opcases.ndimage import IMAGE, VECTOR, case

FOOTPRINT = np.array([[True, False], [True, True]])
STRUCTURE = draw(2, 3, seed=3)
LABELS = np.array([[1, 2, 0, 1], [2, 2, 0, 1], [0, 3, 3, 1]])
SPECTRUM = draw(3, 4) + 1j * draw(3, 4, seed=1)
ONCE: dict[str, Any] = {"second_order": False}


def of_signal(name: str, label: str, *args: Any, ops: Any, **more: Any) -> OpCase:
    function, reference = getattr(our_scipy.signal, name), getattr(scipy.signal, name)
    params = more.pop("params", {})
    label = f"windows-{label}" if label else "windows"
    return OpCase(function, args, reference, params, ops=ops, label=label, rtol=256, **more)


# ---- ranks --------------------------------------------------------------------------------------

RANKS = [
    case(
        "rank_filter",
        "",
        IMAGE,
        1,
        ops=("argpartition",),
        size=2,
        raises=[
            Raises((VECTOR, 3, 3), ArgumentError, "rank_filter: got a rank of 3"),
            Raises((VECTOR, 1), ArgumentError, "rank_filter: got neither size"),
            Raises((VECTOR, 1, 3), UnsupportedError, "got output=", {"output": np.float64}),
            Raises((VECTOR.astype(int), 1, 3), DTypeError, "rank_filter: got int64"),
        ],
    ),
    case("rank_filter", "last", VECTOR, -1, ops=("max",), size=3, mode="wrap"),
    case("median_filter", "", VECTOR, 3, ops=("argpartition",), mode="constant", cval=0.5),
    case("median_filter", "footprint", IMAGE, ops=("argpartition",), footprint=FOOTPRINT),
    case("median_filter", "axes", IMAGE, 3, ops=("argpartition",), axes=(0,), origin=1),
    case(
        "percentile_filter",
        "",
        VECTOR,
        60,
        3,
        ops=("argpartition",),
        raises=[Raises((VECTOR, 101, 3), ArgumentError, "percentile_filter: got 101")],
    ),
    case("percentile_filter", "negative", VECTOR, -100, 3, ops=("min",)),
    case("percentile_filter", "last", VECTOR, 100, 3, ops=("max",)),
    of_signal(
        "medfilt",
        "",
        IMAGE,
        ops=("argpartition",),
        raises=[
            Raises((VECTOR, 2), ArgumentError, "medfilt: got a window of 2, expected odd"),
            Raises((VECTOR + 1j,), DTypeError, "expected real numbers"),
        ],
    ),
    of_signal("medfilt", "sizes", IMAGE, (1, 3), ops=("argpartition",)),
    of_signal(
        "medfilt2d",
        "",
        IMAGE,
        ops=("argpartition",),
        raises=[Raises((VECTOR,), ShapeError, "medfilt2d: got shape.*use medfilt")],
    ),
    of_signal(
        "order_filter",
        "",
        IMAGE,
        ops=("max",),
        params={"domain": np.array([[1, 0, 1]]), "rank": 1},
        raises=[
            Raises((IMAGE,), ShapeError, "got a domain", {"domain": np.ones(3), "rank": 1}),
            Raises((VECTOR,), ArgumentError, "expected odd", {"domain": np.ones(2), "rank": 1}),
        ],
    ),
    of_signal("wiener", "", draw(6), ops=("convolve_nd",), dtypes=(np.float64,)),
    of_signal("wiener", "images", IMAGE, (3, 1), ops=("convolve_nd",), dtypes=(np.float64,)),
    of_signal("wiener", "noise", VECTOR, 3, np.array(0.4), ops=("convolve_nd",), dtypes=()),
    *(
        OpCase(
            our_scipy.ndimage.vectorized_filter,
            (IMAGE,),
            scipy.ndimage.generic_filter,
            {"function": function, **window},
            ops=(function.__name__,),
            dtypes=(np.float64,),
            label=label,
            rtol=64,
        )
        for label, function, window in (
            ("size", np.mean, {"size": (2, 3), "mode": "mirror"}),
            ("footprint", np.sum, {"footprint": FOOTPRINT}),
        )
    ),
]

# ---- morphology ---------------------------------------------------------------------------------

MORPHOLOGY = [
    case(
        "grey_erosion",
        "",
        VECTOR,
        3,
        ops=("min",),
        at=[At(([1.0, 1.0, 5.0], 2), ([1.5, 1.5, 0.0],))],
        raises=[
            Raises((VECTOR,), ArgumentError, "grey_erosion: got neither size"),
            Raises(
                (VECTOR, None, [True], [1.0, 2.0]), ShapeError, r"structure of shape \(2,\).*\(1,\)"
            ),
        ],
    ),
    case("grey_dilation", "even", IMAGE, (2, 3), ops=("max",), mode="constant"),
    case("grey_dilation", "footprint", IMAGE, footprint=FOOTPRINT, ops=("max",), mode="wrap"),
    *(
        case(name, "structure", IMAGE, None, None, STRUCTURE, ops=ops, **ONCE)
        for name, ops in (
            *(("grey_erosion", ("min",)), ("grey_dilation", ("max",))),
            *(("grey_opening", ("min", "max")), ("grey_closing", ("min", "max"))),
            *(("white_tophat", ("min", "max")), ("black_tophat", ("min", "max"))),
            ("morphological_gradient", ("min", "max")),
            ("morphological_laplace", ("min", "max")),
        )
    ),
    case("grey_opening", "axes", IMAGE, 2, ops=("max",), axes=(1,), **ONCE),
]

# ---- regions ------------------------------------------------------------------------------------

TIES: dict[str, Any] = {"labels": np.array([1, 1, 2]), "index": [1, 2]}
# SciPy's sums are in double precision; here single stays single.
IN: dict[str, Any] = {"labels": LABELS, "index": [2, 1], "dtypes": (np.float64,)}
REGIONS = [
    case(
        "sum_labels",
        "",
        IMAGE,
        **IN,
        ops=("gather", "scatter"),
        raises=[
            Raises((IMAGE,), ShapeError, r"got labels of shape \(2, 4\)", {"labels": LABELS[:2]}),
            Raises((IMAGE,), DTypeError, "labels of float64", {"labels": 0.5 * LABELS}),
            Raises((LABELS,), DTypeError, "sum_labels: got int64"),
        ],
    ),
    case("sum_labels", "whole", IMAGE, ops=("scatter",)),
    case("sum_labels", "one", IMAGE, labels=LABELS, ops=("scatter",)),
    case(
        "sum_labels",
        "shape",
        IMAGE,
        **{**IN, "index": np.array([[3, 7], [1, 3]])},
        ops=("scatter",),
    ),
    case("mean", "", IMAGE, **IN, ops=("scatter",)),
    case("variance", "", IMAGE, **IN, ops=("scatter",)),
    case("standard_deviation", "", IMAGE, **{**IN, "index": 1}, ops=("scatter",)),
    case(
        "maximum",
        "",
        IMAGE,
        **IN,
        ops=("max",),
        at=[
            At(
                ([3.0, 3.0, 1.0],),
                ([0.5, 0.5, 1.0],),
                {"labels": np.array([1, 1, 2]), "index": [1, 2]},
            )
        ],
        raises=[
            Raises((IMAGE,), ShapeError, "got regions without", {"labels": LABELS, "index": 9}),
            Raises((IMAGE + 1j,), DTypeError, "maximum: got complex"),
        ],
    ),
    case("maximum", "empty", IMAGE, labels=LABELS, index=[9, 1], ops=("max",)),
    case("minimum", "", IMAGE, labels=LABELS, ops=("min",)),
    case("median", "", IMAGE, **IN, ops=("gather",)),
    case(
        "center_of_mass",
        "",
        IMAGE,
        **IN,
        ops=("scatter",),
        raises=[Raises((IMAGE,), ShapeError, "index of shape", {"labels": LABELS, "index": [[1]]})],
    ),
    case("center_of_mass", "whole", np.abs(IMAGE), ops=("scatter",), dtypes=(np.float64,)),
]

# ---- numbers that may be tensors ----------------------------------------------------------------


def smoothed(x: Any, sigma: Any, **params: Any) -> Any:
    return our_scipy.ndimage.gaussian_filter(x, sigma, **params)


def smoothed_reference(x: Any, sigma: Any, **params: Any) -> Any:
    return scipy.ndimage.gaussian_filter(x, sigma, **params)


def around(x: Any, coordinates: Any, cval: Any, mode: str) -> Any:
    return our_scipy.ndimage.map_coordinates(x, coordinates, mode=mode, cval=cval)


def around_reference(x: Any, coordinates: Any, cval: Any, mode: str) -> Any:
    return scipy.ndimage.map_coordinates(x, coordinates, mode=mode, cval=float(cval))


def framed(x: Any, cval: Any) -> Any:
    return our_scipy.ndimage.sobel(x, mode="constant", cval=cval)


def framed_reference(x: Any, cval: Any) -> Any:
    return scipy.ndimage.sobel(x, mode="constant", cval=float(cval))


DOUBLE = (np.float64,)
NUMBERS = [
    *(
        OpCase(
            smoothed,
            (IMAGE, sigma),
            smoothed_reference,
            {"radius": 2, "order": order},
            ops=("convolve_nd", "exp"),
            label=label,
            dtypes=DOUBLE,
            rtol=256,
        )
        for label, sigma, order in (
            ("one", np.array(0.8), (0, 1)),
            ("each", np.array([0.8, 1.1]), (2, 3)),
        )
    ),
    *(
        OpCase(
            around,
            (VECTOR, np.array([[-2.3, -0.4, 1.3, 4.4, 7.2]]), np.array(0.7)),
            around_reference,
            {"mode": mode},
            ops=("spline_sample",),
            label=mode,
            dtypes=DOUBLE,
            rtol=256,
        )
        for mode in ("constant", "grid-constant")
    ),
    OpCase(framed, (IMAGE, np.array(0.7)), framed_reference, ops=("concatenate",), dtypes=DOUBLE),
]

# ---- transforms ---------------------------------------------------------------------------------

TRANSFORMS = [
    case("fourier_gaussian", "", SPECTRUM, np.array([0.3, 0.4]), ops=("exp",), dtypes=DOUBLE),
    case("fourier_gaussian", "half", SPECTRUM, 0.3, 6, ops=("multiply",), dtypes=DOUBLE),
    case("fourier_uniform", "", SPECTRUM, np.array([1.5, 2.5]), ops=("sinc",), dtypes=DOUBLE),
    case("fourier_shift", "", SPECTRUM, np.array([0.5, 1.5]), ops=("exp",), dtypes=DOUBLE),
    case("fourier_shift", "half", draw(3, 4), 0.5, 5, 0, ops=("multiply",), dtypes=DOUBLE),
]

CASES = [*RANKS, *MORPHOLOGY, *REGIONS, *NUMBERS, *TRANSFORMS]
