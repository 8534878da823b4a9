"""Cases whose reference does something else in older releases of NumPy and SciPy.

There the value is not compared with it; derivatives are tested as always.
"""

from __future__ import annotations

import numpy as np
import scipy

# By the first release that does what the case is about: stacks of matrices, complex signals that do
# not warn, dtypes that are kept, mistakes that were mended, the order of a pair of roots.
SINCE = {
    "scipy 1.16": """
        solve_sylvester-batched solve_discrete_lyapunov-batched solve_triangular-batched
        structured-pos-batched lu_solve-batched sqrtm affine_transform-image-diagonal
        resample-signal-complex-5-2 resample-signal-spectrum resample-signal-times
        welch-density-complex csd-density-complex lfiltic-more lfiltic-more-outputs
        lp2bs_zpk-design
    """,
    "scipy 1.17": "lombscargle-more-True-True median_abs_deviation-scaled boxcox_llf-rows",
    "numpy 2.2": "quantile-closest_observation-ends",
    "numpy 2.3": "filtfilt-signal-gust-ends-axis",
    "numpy 2.4": """
        pad-dict cond-1 cond--1 cond-inf cond--inf cond-fro cond-complex cond-nuc cond-batched
        cond-singular
    """,
}


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")[:2]))


_HERE = {"numpy": _numbers(np.__version__), "scipy": _numbers(scipy.__version__)}

# The names of the cases that are not compared here, and the release that would be needed.
OLDER: dict[str, str] = {
    name: release
    for release, names in SINCE.items()
    for name in names.split()
    if _HERE[release.split()[0]] < _numbers(release.split()[1])
}
