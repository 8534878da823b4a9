"""Products with logarithms, 0 where a factor is 0: entropies and their kin."""

from __future__ import annotations

from typing import Any

from gradtape.core.define import elementwise
from gradtape.ops import lowered
from gradtape.ops.erf import F16, scipy_special
from gradtape.ops.select import mask, where
from gradtape.typing import Array, ArrayLike


def _xlogy_forward(xp: Any, x: Any, y: Any) -> Any:
    # SciPy's ufuncs take Python's numbers for float64; here they are as weak as everywhere.
    dtype = xp.result_type(x, y)
    x, y = (v if hasattr(v, "dtype") else xp.asarray(v, dtype) for v in (x, y))
    out = scipy_special(xp).xlogy(x, y)
    return out.astype(F16) if dtype == F16 else out


def _xlogy_by_x(ct: Any, _out: Any, x: Any, y: Any) -> Any:
    flat = (x == 0) & (y <= 0)
    return mask(xlogy(ct, y if isinstance(y, int | float) else where(flat, 1, y)), flat ^ True)


def _xlogy_by_y(ct: Any, _out: Any, x: Any, y: Any) -> Any:
    flat = (x == 0) & (y <= 0)
    return mask(ct * (x / where(flat, 1, y)), flat ^ True)


# d x·log y = log y·dx + x/y·dy; both 0 where log y does not exist and x = 0 makes the function 0
@elementwise(
    _xlogy_forward,
    _xlogy_by_x,
    _xlogy_by_y,
    replaces=("scipy.special.xlogy",),
    lower=lowered.xlogy,
)
def xlogy(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The first array times the logarithm of the second, 0 where the first is 0.

    >>> gt.xlogy(np.array([0.0, 2.0]), np.array([0.0, 1.0]))
    array([0., 0.])
    """
