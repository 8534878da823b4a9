"""Samples of the distances of `scipy.spatial.distance`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.spatial.distance

from gradtape.errors import (
    ArgumentError,
    AxisError,
    DTypeError,
    NotDifferentiableError,
    ShapeError,
    UnsupportedError,
)
from gradtape.scipy.spatial import distance
from opcases.case import At, OpCase, Raises, draw

# Positive, as some of them want, and without ties.
U, V, W = (draw(4, low=0.1, high=1.0, seed=seed) for seed in range(3))
X, Y = draw(5, 3, low=0.1, high=1.0), draw(3, 3, low=0.1, high=1.0, seed=1)
FEW = X[:, :2].copy(), Y[:, :2].copy()
DOUBLE = (np.float64,)
INVERSE = np.array([[2.0, 0.3, 0.1, 0.0], [0.3, 1.5, 0.0, 0.2], [0.1, 0.0, 1.0, 0.1], [0.0] * 4])
INVERSE[3] = 0.0, 0.2, 0.1, 1.2


def ours(name: str) -> Callable[..., Any]:
    """Our function, which arrays do not reach under its public name."""
    return getattr(distance, name).on_tensors


def theirs(name: str) -> Callable[..., Any]:
    def reference(*args: Any, **params: Any) -> Any:
        dtype = np.result_type(*(x for x in args if isinstance(x, np.ndarray)))
        return np.asarray(getattr(scipy.spatial.distance, name)(*args, **params)).astype(dtype)

    return reference


def case(name: str, args: tuple[Any, ...], label: str = "", **more: Any) -> OpCase:
    more = {"ops": ("sum",), "rtol": 64, **more}
    label = f"spatial-{label}" if label else "spatial"
    return OpCase(ours(name), args, theirs(name), label=label, **more)


BAD = [
    Raises((U, V[:2]), ShapeError, "got shapes"),
    Raises((U, X), ShapeError, r"got v of shape \(5, 3\), expected one axis"),
    Raises((U * 1j, V), DTypeError, "complex128"),
]
NONE = np.zeros(2)

# ---- two vectors --------------------------------------------------------------------------------

# Where points coincide, coordinates are equal, or several are the largest.
KINKS: dict[str, list[At]] = {
    "euclidean": [At(([1.0, 2.0], [1.0, 2.0]), (NONE, NONE))],
    "sqeuclidean": [At(([1.0, 2.0], [1.0, 4.0]), ([0.0, -4.0], [0.0, 4.0]))],
    "cityblock": [At(([1.0, 2.0], [1.0, 4.0]), ([0.0, -1.0], [0.0, 1.0]))],
    "chebyshev": [
        At(([1.0, 2.0], [3.0, 4.0]), ([-0.5, -0.5], [0.5, 0.5])),
        At(([1.0, 2.0], [1.0, 2.0]), (NONE, NONE)),
    ],
    "braycurtis": [At(([1.0, 2.0], [1.0, 2.0]), (NONE, NONE))],
    "canberra": [At(([0.0, 1.0], [0.0, 3.0]), ([0.0, -0.375], [0.0, 0.125]))],
    "cosine": [At(([3.0, 4.0], [3.0, 4.0]), (NONE, NONE))],
    "correlation": [At(([1.0, 2.0, 4.0], [1.0, 2.0, 4.0]), (np.zeros(3), np.zeros(3)))],
}
VECTORS = [
    *(case(name, (U, V), at=at, raises=BAD) for name, at in KINKS.items()),
    *(case(name, (U, V, W), "w") for name in KINKS),
    case(
        "euclidean",
        (U, V),
        "weights-of-0",
        params={"w": np.array([0.0, 1.0, 2.0, 0.0])},
        dtypes=DOUBLE,
        at=[At(([3.0, 4.0], NONE, [0.0, 1.0]), ([0.0, 1.0], [0.0, -1.0], [1.125, 2.0]))],
    ),
    case("correlation", (U, V), "not-centered", params={"centered": False}),
    *(case("minkowski", (U, V, p, W), f"p{p}") for p in (0.5, 1, 2, 3.5, np.inf)),
    case(
        "minkowski",
        (U, V),
        params={"p": 3},
        at=[At(([1.0, 2.0], [1.0, 2.0]), (NONE, NONE), {"p": 3})],
        raises=[Raises((U, V, 0), ArgumentError, "got p=0, expected a positive number")],
    ),
    case(
        "seuclidean",
        (U, V, W),
        at=[At(([1.0, 2.0], [1.0, 2.0], [1.0, 1.0]), (NONE, NONE, NONE))],
        raises=[Raises((U, V, W[:1]), ShapeError, "seuclidean: got u, v and V of shapes")],
    ),
    case(
        "mahalanobis",
        (U, V, INVERSE),
        at=[At((U, U, INVERSE), (np.zeros(4), np.zeros(4), np.zeros((4, 4))))],
        raises=[Raises((U, V, np.eye(2)), ShapeError, r"got VI of shape \(2, 2\), expected")],
    ),
    case(
        "jensenshannon",
        (U, V),
        at=[
            At(([0.0, 1.0], [0.0, 3.0]), (NONE, NONE)),
            At(([0.5, 0.5], [1.0, 1.0]), (NONE, NONE)),
        ],
        raises=[
            Raises((U, V), ArgumentError, "got base=-1", {"base": -1}),
            Raises((U, V), AxisError, "got axis 1", {"axis": 1}),
            Raises((U, V[:2]), ShapeError, "got shapes"),
        ],
    ),
    case("jensenshannon", (X, X[:, ::-1].copy()), "axis", params={"axis": 1, "base": 2.0}),
    case("jensenshannon", (X[:3], Y), "keepdims", params={"keepdims": True}),
]

# ---- all pairs ----------------------------------------------------------------------------------


def with_metric(name: str, metric: Any, **options: Any) -> dict[str, Any]:
    """The function with a metric, and options that are arrays as its last arguments."""
    names = list(options)

    def bound(function: Callable[..., Any], count: int) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            return function(*args[:count], metric, **dict(zip(names, args[count:], strict=True)))

        return call

    points = (X, Y) if name == "cdist" else (X,)
    args = (*points, *options.values())
    return {
        "function": bound(ours(name), len(points)),
        "ref": bound(theirs(name), len(points)),
        "args": args,
        "label": f"{name}-{metric}" + "".join(f"-{option}" for option in names),
    }


WEIGHTS, VARIANCES = W[:3].copy(), np.array([0.5, 1.0, 2.0])
PLAIN = ["braycurtis", "canberra", "chebyshev", "cityblock", "cosine", "jensenshannon"]
PLAIN += ["euclidean", "sqeuclidean", "minkowski"]


def pairs(metric: str, **options: Any) -> list[OpCase]:
    more = {"ops": ("sum",), "rtol": 256}
    return [OpCase(**with_metric(name, metric, **options), **more) for name in ("cdist", "pdist")]


PAIRS = [
    *(row for metric in PLAIN for row in pairs(metric)),
    *(row for metric in PLAIN if metric != "jensenshannon" for row in pairs(metric, w=WEIGHTS)),
    *pairs("correlation", w=WEIGHTS),
    *pairs("seuclidean", V=VARIANCES),
    *pairs("mahalanobis", VI=INVERSE[:3, :3].copy()),
    *(replace(row, second_order=False, rtol=4096) for row in pairs("seuclidean")),
    *(replace(row, second_order=False, rtol=1 << 20) for row in pairs("mahalanobis")),
    case("cdist", FEW, "p", params={"metric": "minkowski", "p": 3.5}),
    case("cdist", FEW, "constant-weights", params={"w": np.array([0.5, 2.0])}, dtypes=DOUBLE),
    case("cdist", FEW, "weights-of-0", params={"w": np.array([0.0, 2.0])}, dtypes=DOUBLE),
    case(
        "cdist",
        FEW,
        ops=("squared_cdist",),
        at=[At((np.ones((2, 2)), np.ones((1, 2))), (np.zeros((2, 2)), np.zeros((1, 2))))],
        torch="cdist",
        raises=[
            Raises((X, U), ShapeError, r"cdist: got XB of shape \(4,\), expected two axes"),
            Raises((X, np.eye(2)), ShapeError, "expected points of as many coordinates"),
            Raises((X, Y, "far"), ArgumentError, "got metric='far', expected one of braycurtis"),
            Raises((X, Y, "Hamming"), NotDifferentiableError, "metric='Hamming' for a tensor"),
            Raises((X, Y, 3), DTypeError, "got metric=3, expected a name or a function"),
            Raises((X, Y), UnsupportedError, "'euclidean', which takes w=", {"p": 3}),
            Raises((X, Y), UnsupportedError, "got out= for tensors", {"out": X}),
            Raises((X, Y), ShapeError, r"got w of shape \(2,\)", {"w": np.ones(2)}),
            Raises((X, Y, "m"), ArgumentError, "got p=-1", {"p": -1}),
            Raises((X[:1], Y[:1], "mahalanobis"), ArgumentError, "got 2 points of 3 coordinates"),
            Raises((X, Y, lambda u, v: u), ShapeError, r"got shape \(3,\) from the metric"),
        ],
    ),
    case("cdist", FEW, "squares", params={"metric": "sqeuclidean"}, ops=("squared_cdist",)),
    case("pdist", (X[:1],), "one", ops=("squared_cdist",)),
]

# ---- forms and sets -----------------------------------------------------------------------------

FORMS = [
    case(
        "squareform",
        (draw(6),),
        ops=("gather",),
        raises=[
            Raises((draw(4),), ShapeError, r"got 4 distances, expected n·\(n - 1\)/2"),
            Raises((np.ones((2, 2, 2)),), ShapeError, "expected one or two axes"),
            Raises((X,), ShapeError, "expected a square matrix"),
            Raises((draw(6), "tovector"), ShapeError, "expected 2 axes for force='tovector'"),
            Raises((draw(6), "other"), ArgumentError, "got force='other'"),
        ],
    ),
    case("squareform", (draw(3, 3),), "matrix", params={"checks": False}, ops=("gather",)),
    OpCase(
        lambda u, v: ours("directed_hausdorff")(u, v)[0],
        (X, Y),
        lambda u, v: np.asarray(theirs("directed_hausdorff")(u, v)[0]).astype(u.dtype),
        ops=("squared_cdist",),
        label="directed_hausdorff",
        rtol=64,
        raises=[
            Raises((X, np.zeros((0, 3))), ShapeError, "expected at least one point"),
            Raises((X, U), ShapeError, r"got v of shape \(4,\)"),
        ],
    ),
]

CASES = [replace(row, composed=True) for row in (*VECTORS, *PAIRS, *FORMS)]
