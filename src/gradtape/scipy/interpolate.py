"""Interpolation under the names of `scipy.interpolate`, with derivatives in values and points."""

from gradtape.dropin.modules import make_scipy as _make_scipy
from gradtape.solvers.interpolate.bsplines import BSpline as BSpline
from gradtape.solvers.interpolate.cubic import (
    Akima1DInterpolator as Akima1DInterpolator,
    CubicHermiteSpline as CubicHermiteSpline,
    CubicSpline as CubicSpline,
    PchipInterpolator as PchipInterpolator,
    pchip_interpolate as pchip_interpolate,
)
from gradtape.solvers.interpolate.fitpack import (
    splantider as splantider,
    splder as splder,
    splev as splev,
    splint as splint,
    splrep as splrep,
)
from gradtape.solvers.interpolate.grids import (
    RegularGridInterpolator as RegularGridInterpolator,
    interpn as interpn,
)
from gradtape.solvers.interpolate.lines import interp1d as interp1d
from gradtape.solvers.interpolate.nodes import (
    BarycentricInterpolator as BarycentricInterpolator,
    KroghInterpolator as KroghInterpolator,
    barycentric_interpolate as barycentric_interpolate,
    krogh_interpolate as krogh_interpolate,
)
from gradtape.solvers.interpolate.piecewise import BPoly as BPoly, PPoly as PPoly
from gradtape.solvers.interpolate.through_points import make_interp_spline as make_interp_spline
from gradtape.solvers.interpolate.univariate import (
    InterpolatedUnivariateSpline as InterpolatedUnivariateSpline,
    UnivariateSpline as UnivariateSpline,
)

# They look for tensors themselves, as interpolators may be made of some.
_make_scipy(
    globals(),
    ours="barycentric_interpolate interpn krogh_interpolate make_interp_spline pchip_interpolate "
    "splantider splder splev splint splrep",
)
