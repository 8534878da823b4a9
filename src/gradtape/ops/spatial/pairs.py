"""Distances of all pairs of points: `cdist` and `pdist` of `scipy.spatial.distance`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradtape.errors import (
    ArgumentError,
    DTypeError,
    NotDifferentiableError,
    ShapeError,
    UnsupportedError,
)
from gradtape.ops.arguments import as_array, as_number, real_only
from gradtape.ops.arrays.covariance import cov
from gradtape.ops.cast import astype
from gradtape.ops.checks import check_axes, check_positive, check_shape
from gradtape.ops.comparison import equal
from gradtape.ops.exponential import sqrt
from gradtape.ops.gather import gather_leading
from gradtape.ops.join import concatenate, stack
from gradtape.ops.linalg.solve import inv
from gradtape.ops.matmul import matmul
from gradtape.ops.moments import var
from gradtape.ops.nn.distances import squared_distances
from gradtape.ops.nn.reduction import floating
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.select import where
from gradtape.ops.shape import reshape
from gradtape.ops.spatial import formulas, vectors
from gradtape.typing import Array, ArrayLike

# Distances of the rows of two matrices, of shapes (n, size) and (m, size): (n, m).
OfPairs = Callable[..., Any]


@dataclass(frozen=True)
class Metric:
    """A distance between points.

    Attributes:
        name: Its name, that of the function of two vectors.
        formula: The distances along the last axis of arrays that broadcast.
        options: The keywords it takes.
        pairs: All pairs of rows of two matrices without an array of all differences, if there is a
            way.
    """

    name: str
    formula: Callable[..., Any]
    options: tuple[str, ...] = ("w",)
    pairs: OfPairs | None = None


# ---- by products of matrices --------------------------------------------------------------------


def _squares(x: Any, y: Any, w: Any = None) -> Any:
    if w is not None:
        return formulas.sqeuclidean(*beside(x, y), w)
    return squared_distances(x, y)


def _euclidean(x: Any, y: Any, w: Any = None) -> Any:
    return formulas.root(_squares(x, y, w))


def _minkowski(x: Any, y: Any, w: Any = None, p: float = 2.0) -> Any:
    return _euclidean(x, y, w) if p == 2 else formulas.minkowski(*beside(x, y), w, p)


def _cosine(x: Any, y: Any, w: Any = None) -> Any:
    lengths = [sqrt(formulas.total(z * z, w)) for z in (x, y)]
    products = matmul(x if w is None else w * x, y.mT)
    return formulas.within_bounds(1.0 - products / lengths[0][:, None] / lengths[1])


def _correlation(x: Any, y: Any, w: Any = None) -> Any:
    return _cosine(formulas.centered(x, w), formulas.centered(y, w), w)


def _jensenshannon(x: Any, y: Any) -> Any:
    # As in SciPy, what cannot be scaled to the sum 1 is infinitely far; for two vectors it is NaN.
    empty = [equal(sum_of(z, -1, keepdims=True), 0) for z in (x, y)]
    x, y = (where(none, 1.0, z) for none, z in zip(empty, (x, y), strict=True))
    distances = formulas.jensenshannon(x, y, None, -1)
    return where((empty[0] | empty[1])[..., 0], math.inf, distances)


def beside(x: Any, y: Any) -> tuple[Any, Any]:
    """The rows of two matrices, so that all pairs of them broadcast."""
    return reshape(x, (x.shape[0], 1, x.shape[1])), y


# ---- the metrics --------------------------------------------------------------------------------

_METRICS = (
    (Metric("braycurtis", formulas.braycurtis), ()),
    (Metric("canberra", formulas.canberra), ()),
    (Metric("chebyshev", formulas.chebyshev), ("chebychev", "cheby", "cheb", "ch")),
    (Metric("cityblock", formulas.cityblock), ("cblock", "cb", "c")),
    (Metric("correlation", formulas.correlation, pairs=_correlation), ("co",)),
    (Metric("cosine", formulas.cosine, pairs=_cosine), ("cos",)),
    (Metric("euclidean", formulas.minkowski, pairs=_euclidean), ("euclid", "eu", "e")),
    (Metric("jensenshannon", _jensenshannon, ()), ("js",)),
    (Metric("mahalanobis", formulas.mahalanobis, ("VI",)), ("mahal", "mah")),
    (Metric("minkowski", formulas.minkowski, ("w", "p"), _minkowski), ("mi", "m", "pnorm")),
    (Metric("seuclidean", formulas.minkowski, ("V",)), ("se", "s")),
    (Metric("sqeuclidean", formulas.sqeuclidean, pairs=_squares), ("sqe", "sqeuclid")),
)
# By all of their names.
_NAMED = {name: metric for metric, others in _METRICS for name in (metric.name, *others)}
# Metrics of equal coordinates or of truth values, which are piecewise constant; SciPy 1.17 has two
# of them less.
_WITHOUT_DERIVATIVE = {
    *("dice", "hamming", "hamm", "ha", "h", "matching", "jaccard", "jacc", "ja", "j"),
    *("rogerstanimoto", "russellrao", "sokalsneath", "yule", "kulczynski1", "sokalmichener"),
}


def _metric(name: str, given: Any) -> Metric | Callable[..., Any]:
    """The metric by its name, or by SciPy's function; functions of users as they are."""
    if callable(given):
        known = _NAMED.get(getattr(given, "__name__", ""))
        home = getattr(given, "__module__", None) or ""
        is_scipys = home.endswith("scipy.spatial.distance") or home == vectors.__name__
        return known if known and is_scipys else given
    if not isinstance(given, str):
        raise DTypeError(f"{name}: got metric={given!r}, expected a name or a function")
    found = given.lower().removeprefix("test_")
    if found in _WITHOUT_DERIVATIVE:
        raise NotDifferentiableError(
            f"{name}: got metric={given!r} for a tensor, which has no derivative; give it arrays: "
            "x.detach().numpy()"
        )
    if found not in _NAMED:
        names = ", ".join(metric.name for metric, _ in _METRICS)
        raise ArgumentError(
            f"{name}: got metric={given!r}, expected one of {names}, or a function of two vectors"
        )
    return _NAMED[found]


def _checked(
    name: str, metric: Metric, points: Sequence[Any], given: dict[str, Any]
) -> dict[str, Any]:
    """The options of a metric, with SciPy's defaults for those left out."""
    for option in given:
        if option not in metric.options:
            taken = ", ".join(f"{known}=" for known in metric.options) or "no options"
            raise UnsupportedError(
                f"{name}: got {option}= with the metric {metric.name!r}, which takes {taken}"
            )
    size = points[0].shape[1]
    found = {option: value for option, value in given.items() if value is not None}
    if "p" in found:
        check_positive(name, p=found["p"])
        found["p"] = as_number(found["p"], name, "p")
    for option in ("w", "V"):
        if option in found:
            found[option] = real_only(name, floating(found[option])[0])
            check_shape(name, (size,), **{option: found[option]})
            vectors.check_weights(name, option, found[option])
    if metric.name == "seuclidean":
        every = points[0] if len(points) == 1 else concatenate(points)
        variance = found.pop("V") if "V" in found else var(every, axis=0, ddof=1)
        found["w"] = 1 / variance
    if metric.name == "mahalanobis":
        return {"inverse": _inverse(name, points, size, found.get("VI"))}
    return found


def _inverse(name: str, points: Sequence[Any], size: int, given: Any) -> Any:
    if given is not None:
        return vectors.inverse_covariance(name, given, size)
    count = sum(x.shape[0] for x in points)
    if count <= size:
        raise ArgumentError(
            f"{name}: got {count} points of {size} coordinates, expected at least {size + 1}: "
            "the covariance matrix is singular; give VI="
        )
    every = points[0] if len(points) == 1 else concatenate(points)
    # Covariances are estimated in float64, whatever the dtype of the points.
    return astype(inv(reshape(cov(every.mT), (size, size))), every.dtype, copy=False)


def _points(name: str, **given: ArrayLike) -> list[Any]:
    points = [real_only(name, x) for x in floating(*given.values())]
    for what, x in zip(given, points, strict=True):
        check_axes(name, x, 2, what=what)
    return points


def _called(
    name: str, metric: Callable[..., Any], pairs: Sequence[tuple[Any, Any]], options: dict[str, Any]
) -> Any:
    """What a function of users gives for pairs of vectors, one after the other."""
    found = [as_array(metric(u, v, **options)) for u, v in pairs]
    for distance in found:
        if math.prod(distance.shape) != 1:
            raise ShapeError(
                f"{name}: got shape {distance.shape} from the metric, expected a number"
            )
    return stack([reshape(distance, ()) for distance in found]) if found else np.zeros(0)


def _refuse_out(name: str, out: Any) -> None:
    if out is not None:
        raise UnsupportedError(f"{name}: got out= for tensors, which are not written to")


def cdist(
    XA: ArrayLike,
    XB: ArrayLike,
    metric: str | Callable[..., Any] = "euclidean",
    *,
    out: None = None,
    **kwargs: Any,
) -> Array:
    """Distances between all points of one set and all of another.

    Where points coincide, the derivatives of every order are 0. Euclidean distances and angles
    without weights are found by products of matrices.

    Args:
        XA: The points of one set, one in each row.
        XB: Those of the other set.
        metric: A name that SciPy knows, such as "cosine", except those for truth values; or a
            function of two vectors, which is called for each pair.
        out: Has to be None.
        **kwargs: The options of the metric: weights `w`, the exponent `p` of "minkowski", variances
            `V` of "seuclidean", the inverse covariance matrix `VI` of "mahalanobis". Derivatives
            with respect to arrays among them are computed, too; without `V` or `VI` they are
            estimated from the points, which is differentiated.

    Returns:
        The distance of point i of the first set and point j of the second at [i, j], in the dtype
        of the points.

    Raises:
        ShapeError: The arguments are not matrices of as many columns.
        ArgumentError: There is no such metric, or an option is out of range.
        NotDifferentiableError: The metric compares truth values.
        UnsupportedError: The metric has no such option.

    >>> from gradtape.scipy.spatial import distance
    >>> distance.cdist(gt.tensor([[3.0, 4.0]]), np.zeros((1, 2)), "cityblock")
    tensor([[7.]])
    """
    _refuse_out("cdist", out)
    x, y = _points("cdist", XA=XA, XB=XB)
    if x.shape[1] != y.shape[1]:
        raise ShapeError(
            f"cdist: got shapes {x.shape} and {y.shape}, expected points of as many coordinates"
        )
    chosen = _metric("cdist", metric)
    if not isinstance(chosen, Metric):
        rows = [(u, v) for u in x for v in y]
        return reshape(_called("cdist", chosen, rows, kwargs), (x.shape[0], y.shape[0]))
    options = _checked("cdist", chosen, (x, y), kwargs)
    if chosen.pairs is not None:
        return chosen.pairs(x, y, **options)
    return chosen.formula(*beside(x, y), **options)


def pdist(
    X: ArrayLike,
    metric: str | Callable[..., Any] = "euclidean",
    *,
    out: None = None,
    **kwargs: Any,
) -> Array:
    """Distances between all pairs of points of one set.

    Args:
        X: The points, one in each row.
        metric: A name or a function, as for `cdist`.
        out: Has to be None.
        **kwargs: The options of the metric, as for `cdist`.

    Returns:
        The distances of points i and j with i < j, in the order (0, 1), (0, 2), …; `squareform`
        makes a matrix of them.

    Raises:
        ShapeError: The argument is not a matrix.
        ArgumentError: There is no such metric, or an option is out of range.
        NotDifferentiableError: The metric compares truth values.
        UnsupportedError: The metric has no such option.

    >>> from gradtape.scipy.spatial import distance
    >>> distance.pdist(gt.tensor([[0.0, 0.0], [3.0, 4.0], [3.0, 0.0]]))
    tensor([5., 3., 4.])
    """
    _refuse_out("pdist", out)
    (x,) = _points("pdist", X=X)
    chosen = _metric("pdist", metric)
    first, second = np.triu_indices(x.shape[0], 1)
    if not isinstance(chosen, Metric):
        rows = [(x[i], x[j]) for i, j in zip(first, second, strict=True)]
        return _called("pdist", chosen, rows, kwargs)
    options = _checked("pdist", chosen, (x,), kwargs)
    if chosen.pairs is not None:
        return gather_leading(chosen.pairs(x, x, **options), first, second)
    return chosen.formula(gather_leading(x, first), gather_leading(x, second), **options)
