"""Distances between points under the names of `scipy.spatial`, with derivatives."""

from gradtape.dropin.modules import make_scipy as _make_scipy
from gradtape.scipy.spatial import distance as distance

_make_scipy(globals())
