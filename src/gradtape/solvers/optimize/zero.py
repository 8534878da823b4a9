"""Is what SciPy returned a root?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.autodiff.transforms import jvp
from gradtape.errors import GradtapeError
from gradtape.solvers.optimize.solution import FLOAT
from gradtape.solvers.residual import default_tolerance
from gradtape.solvers.solver_run import CapturedError


def wrong_root(
    f: Callable[[Any], Any],
    x: Any,
    starts: Sequence[Any],
    *,
    terms: Any = None,
    bracket: bool = False,
) -> str | None:
    """What is wrong with a root; None if nothing is.

    The residual is compared with the size of the terms of f, as `gt.implicit.root` does it.

    Args:
        f: The function, on arrays.
        x: The root.
        starts: Where SciPy began.
        terms: The size of the terms; by default ∂f/∂x·x.
        bracket: Whether SciPy began with two ends of an interval. There, a sign changes at a pole
            or a jump, too.
    """
    with np.errstate(all="ignore"):
        if terms is None:
            value, terms = _value_and_terms(f, np.asarray(x))
        else:
            value = f(x)
        left, first = _length(value), [_length(f(start)) for start in starts]
        sizes = [size for size in (_length(terms), *first) if np.isfinite(size)]
        small = left <= default_tolerance(FLOAT) * max(sizes, default=0.0)
    if not small:
        return f"the residual is {left:.3g}"
    if bracket and left > max(first):
        return f"the residual is {left:.3g}, more than at the ends of the bracket: it is a pole"
    return None


def _value_and_terms(f: Callable[[Any], Any], x: Any) -> tuple[Any, Any]:
    try:
        return jvp(f, (x,), (x,))
    except CapturedError:
        raise
    except GradtapeError:  # it has rules for reverse mode only, or none, which the derivative tells
        return f(x), 0.0


def _length(x: Any) -> float:
    return float(np.linalg.norm(np.ravel(x)))
