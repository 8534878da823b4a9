"""Samples of interpolation and filters of images."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.ndimage

import our_scipy
from gradtape.errors import ArgumentError, AxisError, DTypeError, ShapeError, UnsupportedError
from opcases.case import At, OpCase, Raises, draw

SPLINE = ("spline_filter1d", "spline_sample", "spline_spread")
LINEAR = ("spline_sample", "spline_spread")
FILTER = ("convolve_nd",)
MODES = (
    *("constant", "grid-constant", "nearest", "mirror", "reflect", "grid-mirror"),
    *("wrap", "grid-wrap"),
)
VECTOR, IMAGE = draw(5), draw(3, 4)
# Inside and outside of arrays, never at an element or halfway between two.
PLACES = np.array([[-7.3, -1.2, -0.3, 0.2, 1.3, 2.7, 3.9, 4.4, 6.2, 11.6]])
POINTS = np.array([[0.2, 1.7, 1.3, -0.4], [0.3, 2.6, 1.8, 0.7]])


def case(name: str, label: str, *args: Any, ops: Any = FILTER, **params: Any) -> OpCase:
    """A case of a function by SciPy's of the same name."""
    more = {key: params.pop(key) for key in ("raises", "at", "dtypes", "rtol") if key in params}
    more |= {key: params.pop(key) for key in ("second_order", "torch") if key in params}
    more.setdefault("rtol", 64)
    function, reference = getattr(our_scipy.ndimage, name), getattr(scipy.ndimage, name)
    label = f"image-{label}" if label else "image"
    return OpCase(function, args, reference, params, ops=ops, label=label, **more)


# ---- splines ------------------------------------------------------------------------------------

COEFFICIENTS = [
    case(
        "spline_filter1d",
        "",
        VECTOR,
        ops=("spline_filter1d",),
        raises=[
            Raises((VECTOR, 6), ArgumentError, "spline_filter1d: got order=6"),
            Raises((VECTOR, 3, 1), AxisError, "spline_filter1d: got axis 1"),
            Raises((VECTOR,), ArgumentError, "mode='no', expected 'mirror'", {"mode": "no"}),
            Raises((VECTOR,), UnsupportedError, "got output=", {"output": np.float64}),
        ],
    ),
    *(
        case("spline_filter1d", f"{order}-{mode}", VECTOR, order, ops=SPLINE[:1], mode=mode)
        for order in (2, 5)
        for mode in ("mirror", "reflect", "grid-wrap")
    ),
    case("spline_filter1d", "axis", IMAGE, 4, 0, ops=SPLINE[:1]),
    case("spline_filter1d", "one", draw(1), ops=SPLINE[:1]),
    case("spline_filter1d", "two", draw(2), ops=SPLINE[:1]),
    case("spline_filter1d", "linear", draw(3), 1, ops=SPLINE[:1]),
    case("spline_filter", "", IMAGE, ops=SPLINE[:1]),
    case("spline_filter", "wrapped", IMAGE, 2, ops=SPLINE[:1], mode="grid-wrap"),
]


def torch_bilinear(torch: Any, x: Any, places: Any, **_params: Any) -> Any:
    """Linear interpolation of a matrix, zeros around it: PyTorch counts from -1 to 1."""
    rows, columns = (2 * c / (n - 1) - 1 for c, n in zip(places, x.shape, strict=True))
    grid = torch.stack([columns, rows], -1)[None, None]
    return torch.nn.functional.grid_sample(
        x[None, None], grid, padding_mode="zeros", align_corners=True
    )[0, 0, 0]


COORDINATES = [
    case(
        "map_coordinates",
        "",
        IMAGE,
        POINTS,
        ops=SPLINE,
        raises=[
            Raises((IMAGE, draw(3, 2)), ShapeError, r"map_coordinates.*\(3, 4\).*axis of 2"),
            Raises((IMAGE, draw(2)), ShapeError, "map_coordinates.*at least one more"),
            Raises((np.eye(2, dtype=int), draw(2, 1)), DTypeError, "got int64.*astype"),
            Raises((IMAGE, POINTS), ArgumentError, "order=7", {"order": 7}),
            Raises((IMAGE, POINTS), ArgumentError, "mode='no'", {"mode": "no"}),
            Raises((IMAGE, POINTS), UnsupportedError, "output=", {"output": np.zeros(4)}),
            Raises((IMAGE, POINTS + 1j), DTypeError, "expected.*real coordinates"),
            Raises((draw(0), draw(1, 2)), ShapeError, "expected elements"),
        ],
    ),
    *(
        case(
            "map_coordinates",
            f"{order}-{mode}",
            VECTOR,
            PLACES,
            ops=SPLINE[order < 2 :],
            order=order,
            mode=mode,
            cval=0.7,
            second_order=order == 3,
        )
        for order, mode in [(3, mode) for mode in MODES] + [(1, mode) for mode in MODES]
    ),
    *(
        case("map_coordinates", f"{order}", IMAGE, POINTS, ops=SPLINE, order=order, mode="reflect")
        for order in (2, 4, 5)
    ),
    case(
        "map_coordinates",
        "nearest-element",
        VECTOR,
        PLACES,
        ops=LINEAR,
        order=0,
        mode="nearest",
        at=[At(([1.0, 2.0], [[0.3, 0.8]]), ([1.0, 1.0], [[0.0, 0.0]]), {"order": 0})],
    ),
    case(
        "map_coordinates",
        "linear",
        IMAGE,
        POINTS[:, :3],
        ops=LINEAR,
        order=1,
        torch=torch_bilinear,
    ),
    case("map_coordinates", "as-coefficients", IMAGE, POINTS, ops=LINEAR, prefilter=False),
    case(
        "map_coordinates",
        "complex",
        IMAGE + 1j * IMAGE[::-1],
        POINTS,
        ops=SPLINE,
        dtypes=(np.float64,),
    ),
    case("map_coordinates", "grid", IMAGE, POINTS.reshape(2, 2, 2), ops=SPLINE, second_order=False),
    case("map_coordinates", "one", draw(1), PLACES[:, 2:5], ops=SPLINE, mode="mirror"),
]

GEOMETRY = [
    case("shift", "", VECTOR, 1.3, ops=SPLINE[:2]),
    case(
        "shift",
        "each",
        IMAGE,
        np.array([0.4, -1.3]),
        ops=SPLINE,
        mode="nearest",
        second_order=False,
        raises=[Raises((IMAGE, draw(3)), ShapeError, r"shift: got shift of shape \(3,\)")],
    ),
    case("shift", "linear", VECTOR, np.array(0.6), ops=LINEAR, order=1, mode="grid-wrap"),
    case("zoom", "", VECTOR, 1.7, ops=SPLINE[:2]),
    case("zoom", "each", IMAGE, (1.5, 0.6), ops=LINEAR[:1], order=1, mode="nearest"),
    case(
        "zoom",
        "areas",
        IMAGE,
        2,
        ops=SPLINE[:2],
        mode="grid-constant",
        grid_mode=True,
        second_order=False,
    ),
    case("zoom", "same", VECTOR, 1, ops=("copy",)),
    case("zoom", "to-one", VECTOR, 0.2, ops=SPLINE[:2]),
    case("rotate", "", IMAGE, 30, ops=SPLINE[:2], second_order=False),
    case("rotate", "right", IMAGE, 90, ops=LINEAR[:1], order=1, second_order=False),
    case(
        "rotate",
        "angle",
        IMAGE,
        np.array(20.0),
        ops=SPLINE,
        reshape=False,
        mode="reflect",
        second_order=False,
        raises=[
            Raises((IMAGE, 1.0, (0, 0)), ArgumentError, "rotate.*different"),
            Raises((IMAGE, 1.0, (0,)), ArgumentError, r"rotate: got axes=\(0,\), expected two"),
            Raises((IMAGE, 1.0, (0, 2)), AxisError, "rotate"),
        ],
    ),
    case("rotate", "axes", draw(2, 2, 3), 20, (0, 2), ops=LINEAR[:1], order=1, second_order=False),
    case(
        "rotate",
        "planes",
        draw(2, 3, 2),
        20,
        (2, 0),
        ops=("spline_sample", "spline_spread"),
        order=2,
        mode="nearest",
        prefilter=False,
        second_order=False,
    ),
    case(
        "affine_transform",
        "",
        IMAGE,
        np.array([[0.9, 0.2], [-0.1, 1.1]]),
        np.array([0.15, -0.27]),
        ops=SPLINE,
        mode="mirror",
        second_order=False,
        raises=[
            Raises((IMAGE, draw(3, 2)), ShapeError, "affine_transform.*expected 2 rows"),
            Raises((IMAGE, np.eye(2), draw(3)), ShapeError, "affine_transform: got offset"),
        ],
    ),
    case(
        "affine_transform",
        "diagonal",
        IMAGE,
        np.array([0.8, 1.3]),
        0.11,
        (2, 3),
        ops=LINEAR,
        order=1,
        mode="nearest",
    ),
    case(
        "affine_transform",
        "homogeneous",
        VECTOR,
        np.array([[0.7, 0.33], [0.0, 1.0]]),
        ops=SPLINE,
        mode="grid-wrap",
    ),
    case("affine_transform", "row", VECTOR, np.array([[0.7, 0.33]]), ops=SPLINE, mode="reflect"),
]

# ---- filters ------------------------------------------------------------------------------------

WEIGHTS = draw(3, seed=1)

FILTERS = [
    case(
        "correlate1d",
        "",
        VECTOR,
        WEIGHTS,
        dtypes=(np.float64, np.float32, np.complex128),
        raises=[
            Raises((VECTOR, draw(2, 2)), ShapeError, "correlate1d: got weights"),
            Raises((VECTOR, draw(0)), ShapeError, "correlate1d: got weights"),
            Raises((VECTOR, WEIGHTS, 1), AxisError, "correlate1d"),
            Raises((np.arange(3), WEIGHTS), DTypeError, "correlate1d: got int64"),
            Raises((VECTOR, WEIGHTS), ArgumentError, "mode='no'", {"mode": "no"}),
            Raises((VECTOR, WEIGHTS), ArgumentError, "origin=2", {"origin": 2}),
        ],
    ),
    *(case("correlate1d", mode, draw(3), draw(4, seed=1), mode=mode, cval=0.7) for mode in MODES),
    *(
        case(name, f"{size}-{origin}", VECTOR, draw(size, seed=1), origin=origin)
        for name in ("correlate1d", "convolve1d")
        for size, origin in ((3, 1), (4, -1), (2, 0))
    ),
    case("correlate1d", "long-weights", draw(2), draw(7, seed=1), mode="wrap"),
    case("correlate1d", "axis", IMAGE, WEIGHTS, 0),
    case("convolve1d", "complex", VECTOR, WEIGHTS + 1j * WEIGHTS[::-1], dtypes=(np.float64,)),
    case("correlate1d", "complex", VECTOR, WEIGHTS + 1j * WEIGHTS[::-1], dtypes=(np.float64,)),
    case("correlate", "", IMAGE, draw(2, 3, seed=1)),
    case(
        "correlate",
        "modes",
        IMAGE,
        draw(3, 2, seed=1),
        mode="wrap",
        origin=(1, 0),
        raises=[Raises((IMAGE, WEIGHTS), ShapeError, "correlate: got weights")],
    ),
    case("correlate", "axes", IMAGE, WEIGHTS, axes=(0,)),
    case("convolve", "", IMAGE, draw(2, 3, seed=1), mode="constant", cval=0.7),
    case("convolve", "origin", IMAGE, draw(3, 2, seed=1), origin=-1),
    case("gaussian_filter1d", "", VECTOR, 0.8),
    case("gaussian_filter1d", "derivative", VECTOR, 0.8, order=3, mode="mirror", radius=2),
    case("gaussian_filter", "", IMAGE, 0.6),
    case("gaussian_filter", "each", IMAGE, (0.0, 0.7), order=(0, 1), mode=("wrap", "nearest")),
    case("gaussian_filter", "axes", IMAGE, 0.7, axes=1, truncate=2.0),
    case("uniform_filter1d", "", VECTOR, 3, origin=-1),
    case("uniform_filter", "", IMAGE, (2, 3), mode="nearest"),
    case("sobel", "", IMAGE),
    case("sobel", "axis", IMAGE, 0, mode="constant", cval=1.0),
    case("prewitt", "", IMAGE, mode="wrap"),
    case("laplace", "", IMAGE),
    case(
        "laplace",
        "axes",
        IMAGE,
        axes=(1,),
        raises=[
            Raises((np.array(1.0),), ShapeError, "laplace.*at least one axis"),
        ],
    ),
    case("gaussian_laplace", "", IMAGE, 0.6),
    case("gaussian_gradient_magnitude", "", IMAGE, 0.7, second_order=False),
]

EXTREMES = [
    case(
        "maximum_filter1d",
        "",
        VECTOR,
        3,
        ops=("max",),
        at=[At(([1.0, 1.0, 0.0], 2), ([1.5, 1.5, 0.0],))],
        raises=[
            Raises((VECTOR, 0), ArgumentError, "maximum_filter1d: got size=0"),
            Raises((VECTOR + 1j, 2), DTypeError, "expected real numbers"),
        ],
    ),
    case("minimum_filter1d", "", IMAGE, 2, 0, ops=("min",), mode="constant", origin=-1),
    case("maximum_filter", "", IMAGE, 2, ops=("max",), mode="nearest"),
    case(
        "minimum_filter",
        "footprint",
        IMAGE,
        ops=("min",),
        footprint=np.array([[True, False], [True, True]]),
        raises=[
            Raises((IMAGE,), ArgumentError, "minimum_filter: got neither size"),
            Raises((IMAGE,), ArgumentError, "footprint of shape", {"footprint": [True]}),
            Raises((IMAGE,), ArgumentError, "with 0 elements", {"footprint": [[False]]}),
        ],
    ),
]

CASES = [*COEFFICIENTS, *COORDINATES, *GEOMETRY, *FILTERS, *EXTREMES]

NOT_NATIVE = {
    "spline_filter1d": "each coefficient depends on those before it: SciPy does it",
    "spline_sample": "SciPy does it",
    "spline_spread": "NumPy adds up what falls into each place",
}
