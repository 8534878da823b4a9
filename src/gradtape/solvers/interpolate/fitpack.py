"""`splrep`, `splev` and their relatives: splines as tuples of knots, coefficients and a degree."""

from __future__ import annotations

from typing import Any

from gradtape.errors import ArgumentError, UnsupportedError
from gradtape.ops.arguments import as_integer
from gradtape.ops.cast import stop_gradient
from gradtape.ops.checks import check_between, check_choice
from gradtape.ops.join import concatenate
from gradtape.ops.select import clip, where
from gradtape.ops.shape import reshape
from gradtape.ops.which import all as all_of
from gradtape.solvers.interpolate.arguments import (
    array_of,
    holds_tensor,
    numbers,
    real_numbers,
)
from gradtape.solvers.interpolate.basis import (
    differentiated_spline,
    evaluate_spline,
    integrated_spline,
    padded,
    repeated,
    spline_area,
)
from gradtape.solvers.interpolate.bsplines import BSpline
from gradtape.solvers.interpolate.interpolator import scipys
from gradtape.solvers.interpolate.through_points import make_interp_spline
from gradtape.solvers.require import required

# Knots, coefficients, degree; or an object that has them.
Spline = Any


def splrep(
    x: Any,
    y: Any,
    w: Any = None,
    xb: Any = None,
    xe: Any = None,
    k: int = 3,
    task: int = 0,
    s: Any = None,
    t: Any = None,
    full_output: int = 0,
    per: int = 0,
    quiet: int = 1,
) -> Any:
    """The spline through points, as `scipy.interpolate.splrep` gives it.

    With tensors it goes through all points, which is the default of SciPy's without weights. A
    smoothing spline chooses knots one by one, so its result jumps, and has no derivative.

    Args:
        x: The places of the points, in rising order.
        y: The values there.
        w: Without tensors: weights.
        xb: Without tensors: where the base interval begins,
        xe: and ends.
        k: The degree, from 1 to 5.
        task: Without tensors: what to do with earlier results.
        s: How far the spline may be from the points; 0 with tensors.
        t: Without tensors: inner knots.
        full_output: Without tensors: whether to return SciPy's information, too.
        per: Without tensors: whether the spline is periodic.
        quiet: Whether SciPy prints nothing.

    Returns:
        Knots, coefficients (with zeros after them, as many as there are knots), and the degree.

    Raises:
        UnsupportedError: With tensors: there is one of the other options.

    >>> def at(y):
    ...     return gt.scipy.interpolate.splev(1.5, gt.scipy.interpolate.splrep(np.arange(4.0), y))
    >>> gt.grad(at)(np.array([0.0, 1.0, 8.0, 27.0]))
    array([-0.0625,  0.5625,  0.5625, -0.0625])
    """
    if not holds_tensor(x, y, w, xb, xe, s, t):
        return scipys("splrep")(x, y, w, xb, xe, k, task, s, t, full_output, per, quiet)
    instead = {
        "s": (s, "a smoothing spline has no derivative, as its knots are chosen one by one"),
        "w": (w, "a spline through all points has no weights"),
        "t": (t, "use make_interp_spline with its own t"),
        "xb": (xb, "use make_interp_spline"),
        "xe": (xe, "use make_interp_spline"),
        "per": (per, "use make_interp_spline with bc_type='periodic'"),
        "task": (task, "there are no earlier results"),
        "full_output": (full_output, "the spline is exact"),
    }
    _refuse("splrep", instead)
    check_between("splrep", 1, 5, k=k)
    t, c, k = make_interp_spline(x, y, k).tck
    return t, padded(c, t.shape[0]), k


def _refuse(name: str, instead: dict[str, tuple[Any, str]]) -> None:
    """Raise for options that are not left out."""
    for option, (value, what) in instead.items():
        is_default = value is None or (isinstance(value, int | float) and value == 0)
        if not is_default:
            raise UnsupportedError(
                f"{name}: got {option}= where there are tensors, expected it to be left out or 0; "
                f"{what}"
            )


def _parts(name: str, tck: Spline) -> tuple[Any, Any, int]:
    if isinstance(tck, BSpline):
        return tck.tck
    t, c, k = tck
    return real_numbers(name, "t", t), numbers(name, "c", c), as_integer(k, name, "k")


def _is_parametric(tck: Spline) -> bool:
    """Whether there are several splines, with a list of coefficients of each."""
    return not isinstance(tck, BSpline) and len(array_of(tck[1]).shape) > 1


def splev(x: Any, tck: Spline, der: int = 0, ext: int = 0) -> Any:
    """Values of a spline, or of one of its derivatives, as `scipy.interpolate.splev`.

    Args:
        x: The points.
        tck: Knots, coefficients and degree, or a `BSpline`. There may be several splines, with a
            list of coefficients of each.
        der: Which derivative, at most the degree.
        ext: Beyond the ends: 0 extrapolates, 1 gives 0, 2 raises, 3 gives the value at the end.

    Returns:
        An array like `x`; a list of them for several splines.

    Raises:
        ArgumentError: With `ext=2`: a point lies beyond the ends.

    >>> t = np.array([0.0, 0.0, 1.0, 2.0, 2.0])
    >>> gt.grad(lambda c: gt.scipy.interpolate.splev(0.25, (t, c, 1)))(np.ones(3))
    array([0.75, 0.25, 0.  ])
    """
    if not holds_tensor(x, tck):
        return scipys("splev")(x, tck, der, ext)
    if _is_parametric(tck):
        return [splev(x, (tck[0], c, tck[2]), der, ext) for c in tck[1]]
    t, c, k = _parts("splev", tck)
    check_between("splev", 0, k, der=der)
    x = real_numbers("splev", "x", x)
    return beyond(t, c, k, x, der, ext)


def beyond(t: Any, c: Any, k: int, x: Any, der: int, ext: int) -> Any:
    """Values of a derivative at points, by FITPACK's rules for those outside."""
    check_choice("splev", range(4), ext=ext)
    start, end = t[k], t[t.shape[0] - k - 1]
    fixed = stop_gradient(x)
    outside = (fixed < stop_gradient(start)) | (fixed > stop_gradient(end))
    if ext == 2:
        text = "splev: got points beyond the ends of the spline, expected none with ext=2"
        x = required(x, all_of(~outside), text)
    elif ext == 3 and not der:  # FITPACK extrapolates derivatives then
        x = clip(x, start, end)
    elif ext == 1:
        x = where(outside, start, x)
    tck = differentiated_spline(t, c, k, der) if der else (t, c[: t.shape[0] - k - 1], k)
    out = evaluate_spline(*tck, x, True)
    if ext != 1:
        return out
    shape = outside.shape + (1,) * (len(out.shape) - len(outside.shape))
    return where(reshape(outside, shape), 0.0, out)


def splint(a: Any, b: Any, tck: Spline, full_output: int = 0) -> Any:
    """The integral of a spline, which counts as 0 beyond its ends, as `scipy.interpolate.splint`.

    Args:
        a: Where to begin.
        b: Where to end.
        tck: Knots, coefficients and degree, or a `BSpline`.
        full_output: Without tensors: whether to return the integrals of B-splines, too.

    Raises:
        UnsupportedError: `full_output` is set where there are tensors.

    >>> t = np.array([0.0, 0.0, 1.0, 2.0, 2.0])
    >>> gt.grad(lambda c: gt.scipy.interpolate.splint(0.0, 2.0, (t, c, 1)))(np.ones(3))
    array([0.5, 1. , 0.5])
    """
    if not holds_tensor(a, b, tck):
        return scipys("splint")(a, b, tck, full_output)
    _refuse("splint", {"full_output": (full_output, "integrate B-splines by themselves")})
    if _is_parametric(tck):
        return [splint(a, b, (tck[0], c, tck[2])) for c in tck[1]]
    a, b = real_numbers("splint", "a", a), real_numbers("splint", "b", b)
    return spline_area(*_parts("splint", tck), a, b, False)


def splder(tck: Spline, n: int = 1) -> Any:
    """The derivative of a spline, as `scipy.interpolate.splder`.

    Args:
        tck: Knots, coefficients and degree, or a `BSpline`.
        n: Of which order; a negative one is that of an antiderivative.

    Returns:
        The same three, or a `BSpline`.

    Raises:
        ArgumentError: The order is higher than the degree.

    >>> t = np.array([0.0, 0.0, 1.0, 2.0, 2.0])
    >>> gt.jacobian(lambda c: gt.scipy.interpolate.splder((t, c, 1))[1][:2])(np.ones(3))
    array([[-1.,  1.,  0.],
           [ 0., -1.,  1.]])
    """
    if isinstance(tck, BSpline):
        return tck.derivative(n)
    if not holds_tensor(tck):
        return scipys("splder")(tck, n)
    if n < 0:
        return splantider(tck, -n)
    t, c, k = _parts("splder", tck)
    if n > k:
        raise ArgumentError(
            f"splder: got n={n} for a spline of degree {k}, expected no more than the degree"
        )
    t, c, k = differentiated_spline(t, c, k, n)
    return t, padded(c, t.shape[0]), k


def splantider(tck: Spline, n: int = 1) -> Any:
    """The antiderivative of a spline, as `scipy.interpolate.splantider`.

    Args:
        tck: Knots, coefficients and degree, or a `BSpline`.
        n: Of which order; a negative one is that of a derivative.

    Returns:
        The same three, or a `BSpline`.

    >>> t = np.array([0.0, 0.0, 1.0, 1.0])
    >>> gt.jacobian(lambda c: gt.scipy.interpolate.splantider((t, c, 1))[1][:3])(np.ones(2))
    array([[0. , 0. ],
           [0.5, 0. ],
           [0.5, 0.5]])
    """
    if isinstance(tck, BSpline):
        return tck.antiderivative(n)
    if not holds_tensor(tck):
        return scipys("splantider")(tck, n)
    if n < 0:
        return splder(tck, -n)
    t, c, k = integrated_spline(*_parts("splantider", tck), n)
    return t, concatenate([c, repeated(c[-1], t.shape[0] - c.shape[0])]), k
