"""Distances of vectors and of pairs of points, under the names of `scipy.spatial.distance`."""

from gradtape.dropin.modules import make_scipy as _make_scipy
from gradtape.ops.spatial.condensed import (
    directed_hausdorff as directed_hausdorff,
    squareform as squareform,
)
from gradtape.ops.spatial.pairs import cdist as cdist, pdist as pdist
from gradtape.ops.spatial.vectors import (
    braycurtis as braycurtis,
    canberra as canberra,
    chebyshev as chebyshev,
    cityblock as cityblock,
    correlation as correlation,
    cosine as cosine,
    euclidean as euclidean,
    jensenshannon as jensenshannon,
    mahalanobis as mahalanobis,
    minkowski as minkowski,
    seuclidean as seuclidean,
    sqeuclidean as sqeuclidean,
)

_make_scipy(globals())
