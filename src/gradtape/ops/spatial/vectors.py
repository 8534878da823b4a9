"""Distances between two vectors, under the names of `scipy.spatial.distance`."""

from __future__ import annotations

from typing import Any

from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_number, normalize_axis, real_only
from gradtape.ops.checks import check_axes, check_positive, common_shape
from gradtape.ops.nn.known import known_values
from gradtape.ops.nn.reduction import floating
from gradtape.ops.shape import atleast_2d
from gradtape.ops.shared_options import options
from gradtape.ops.spatial import formulas
from gradtape.typing import Array, ArrayLike

VECTORS = {
    "u": "One vector.",
    "v": "The other one.",
    "w": "A weight for each coordinate, not below 0; None counts all of them once.",
}
NO_VECTORS = {
    "ShapeError": "An argument is not a vector, or the sizes differ.",
    "ArgumentError": "A weight is negative.",
}


def _vectors(name: str, **given: ArrayLike) -> list[Any]:
    """Arguments as real vectors of floats whose sizes fit; None stays."""
    found = [what for what, x in given.items() if x is not None]
    arrays = [real_only(name, x) for x in floating(*(given[what] for what in found))]
    for what, x in zip(found, arrays, strict=True):
        check_axes(name, x, 1, what=what)
    common_shape(name, *arrays)
    known = dict(zip(found, arrays, strict=True))
    for what in ("w", "V"):
        if what in known:
            check_weights(name, what, known[what])
    return [known.get(what) for what in given]


def check_weights(name: str, what: str, w: Any) -> None:
    """Raise an ArgumentError for negative weights, as far as values are known."""
    values = known_values(w)
    if values is not None and (values < 0).any():
        raise ArgumentError(f"{name}: got {what} with {values.min()}, expected none below 0")


@options(VECTORS, raises=NO_VECTORS)
def euclidean(u: ArrayLike, v: ArrayLike, w: ArrayLike = None) -> Array:
    """The Euclidean distance of two vectors; its derivatives are 0 where they are equal.

    >>> from gradtape.scipy.spatial import distance
    >>> gt.grad(distance.euclidean)(np.array([3.0, 4.0]), np.zeros(2))
    array([0.6, 0.8])
    """
    return formulas.minkowski(*_vectors("euclidean", u=u, v=v, w=w))


@options(VECTORS, raises=NO_VECTORS)
def sqeuclidean(u: ArrayLike, v: ArrayLike, w: ArrayLike = None) -> Array:
    """The squared Euclidean distance of two vectors.

    >>> from gradtape.scipy.spatial import distance
    >>> distance.sqeuclidean(gt.tensor([3.0, 4.0]), np.zeros(2))
    tensor(25.)
    """
    return formulas.sqeuclidean(*_vectors("sqeuclidean", u=u, v=v, w=w))


@options(VECTORS, raises=NO_VECTORS)
def minkowski(u: ArrayLike, v: ArrayLike, p: float = 2, w: ArrayLike = None) -> Array:
    """The p-norm of the difference of two vectors; its derivatives are 0 where they are equal.

    Args:
        p: Which norm: a number above 0, or inf.

    Raises:
        ArgumentError: `p` is not above 0, or a weight is negative.

    >>> from gradtape.scipy.spatial import distance
    >>> distance.minkowski(gt.tensor([3.0, 4.0]), np.zeros(2), p=1)
    tensor(7.)
    """
    check_positive("minkowski", p=p)
    p = as_number(p, "minkowski", "p")
    u, v, w = _vectors("minkowski", u=u, v=v, w=w)
    return formulas.minkowski(u, v, w, p)


@options(VECTORS, raises=NO_VECTORS)
def cityblock(u: ArrayLike, v: ArrayLike, w: ArrayLike = None) -> Array:
    """The sum of the sizes of differences; one that is 0 has the derivative 0.

    >>> from gradtape.scipy.spatial import distance
    >>> distance.cityblock(gt.tensor([3.0, 4.0]), np.zeros(2))
    tensor(7.)
    """
    return formulas.cityblock(*_vectors("cityblock", u=u, v=v, w=w))


@options(VECTORS, raises=NO_VECTORS)
def chebyshev(u: ArrayLike, v: ArrayLike, w: ArrayLike = None) -> Array:
    """The largest size of a difference; several largest share the gradient.

    Args:
        w: Coordinates whose weight is 0 are left out; otherwise weights do not matter.

    >>> from gradtape.scipy.spatial import distance
    >>> distance.chebyshev(gt.tensor([3.0, 4.0]), np.zeros(2))
    tensor(4.)
    """
    return formulas.chebyshev(*_vectors("chebyshev", u=u, v=v, w=w))


@options(VECTORS, raises=NO_VECTORS)
def braycurtis(u: ArrayLike, v: ArrayLike, w: ArrayLike = None) -> Array:
    """The sum of the sizes of differences, divided by that of the sums.

    >>> from gradtape.scipy.spatial import distance
    >>> distance.braycurtis(gt.tensor([1.0, 2.0]), np.array([3.0, 2.0]))
    tensor(0.25)
    """
    return formulas.braycurtis(*_vectors("braycurtis", u=u, v=v, w=w))


@options(VECTORS, raises=NO_VECTORS)
def canberra(u: ArrayLike, v: ArrayLike, w: ArrayLike = None) -> Array:
    """The sum of |u − v|/(|u| + |v|); coordinates that are 0 in both, or NaN, are left out.

    >>> from gradtape.scipy.spatial import distance
    >>> distance.canberra(gt.tensor([1.0, 0.0]), np.array([3.0, 0.0]))
    tensor(0.5)
    """
    return formulas.canberra(*_vectors("canberra", u=u, v=v, w=w), skip_nan=True)


@options(VECTORS, raises=NO_VECTORS)
def cosine(u: ArrayLike, v: ArrayLike, w: ArrayLike = None) -> Array:
    """One less the cosine of the angle between two vectors; NaN if one of them is 0.

    >>> from gradtape.scipy.spatial import distance
    >>> distance.cosine(gt.tensor([1.0, 0.0]), np.array([0.0, 2.0]))
    tensor(1.)
    """
    return formulas.cosine(*_vectors("cosine", u=u, v=v, w=w))


@options(VECTORS, raises=NO_VECTORS)
def correlation(u: ArrayLike, v: ArrayLike, w: ArrayLike = None, centered: bool = True) -> Array:
    """One less the correlation of two vectors; NaN if the elements of one are all equal.

    Args:
        centered: Whether the means are subtracted; without that it is `cosine`.

    >>> from gradtape.scipy.spatial import distance
    >>> distance.correlation(gt.tensor([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0]))
    tensor(2.)
    """
    formula = formulas.correlation if centered else formulas.cosine
    return formula(*_vectors("correlation", u=u, v=v, w=w))


@options(VECTORS, raises=NO_VECTORS)
def seuclidean(u: ArrayLike, v: ArrayLike, V: ArrayLike) -> Array:
    """The Euclidean distance of vectors whose coordinates have different variances.

    Args:
        V: The variance that the square of each difference is divided by.

    >>> from gradtape.scipy.spatial import distance
    >>> distance.seuclidean(gt.tensor([3.0, 4.0]), np.zeros(2), np.array([9.0, 16.0]))
    tensor(1.41421356)
    """
    u, v, V = _vectors("seuclidean", u=u, v=v, V=V)
    if not u.shape == v.shape == V.shape:
        raise ShapeError(
            f"seuclidean: got u, v and V of shapes {u.shape}, {v.shape} and {V.shape}, expected "
            "the same"
        )
    return formulas.minkowski(u, v, 1 / V)


@options(VECTORS, raises=NO_VECTORS)
def mahalanobis(u: ArrayLike, v: ArrayLike, VI: ArrayLike) -> Array:
    """The Mahalanobis distance of two vectors; its derivatives are 0 where they are equal.

    Args:
        VI: The inverse of the covariance matrix.

    Raises:
        ShapeError: `VI` is not a square matrix of as many rows as the vectors have coordinates.

    >>> from gradtape.scipy.spatial import distance
    >>> distance.mahalanobis(gt.tensor([3.0, 4.0]), np.zeros(2), np.eye(2))
    tensor(5.)
    """
    u, v = _vectors("mahalanobis", u=u, v=v)
    return formulas.mahalanobis(u, v, inverse_covariance("mahalanobis", VI, u.shape[0]))


def inverse_covariance(name: str, inverse: ArrayLike, size: int) -> Any:
    """The inverse of a covariance matrix, checked."""
    matrix = atleast_2d(real_only(name, floating(inverse)[0]))
    if matrix.shape != (size, size):
        raise ShapeError(f"{name}: got VI of shape {matrix.shape}, expected {(size, size)}")
    return matrix


def jensenshannon(
    p: ArrayLike,
    q: ArrayLike,
    base: float | None = None,
    *,
    axis: int = 0,
    keepdims: bool = False,
) -> Array:
    """The Jensen-Shannon distance of two distributions; its derivatives are 0 where equal.

    Args:
        p: The probabilities of one, scaled to the sum 1.
        q: Those of the other.
        base: The base of the logarithm; e if None.
        axis: Along which axis a distribution lies.
        keepdims: Whether this axis stays, with size 1.

    Raises:
        ShapeError: The shapes do not broadcast.
        AxisError: There is no such axis.

    >>> from gradtape.scipy.spatial import distance
    >>> distance.jensenshannon(gt.tensor([1.0, 0.0]), np.array([0.0, 1.0]), base=2)
    tensor(1.)
    """
    name = "jensenshannon"
    p, q = (real_only(name, x) for x in floating(p, q))
    axis = normalize_axis(axis, len(common_shape(name, p, q)), name)
    if base is not None:
        check_positive(name, base=base)
        base = as_number(base, name, "base")
    return formulas.jensenshannon(p, q, base, axis, bool(keepdims))
