"""Functions of matrices: exponential, logarithm, roots and powers, sign. Xᴴ is the adjoint.

The derivative of a function f at A along E is the corner of a function of twice the size,

    f([[A, E], [0, A]]) = [[f(A), L(A, E)], [0, f(A)]],

whatever the eigenvalues of A are. It is an op of its own, `matrix_function_change`, and its own
derivative along G is in the same way the corner of L([[A, E], [0, A]], [[G, 0], [0, G]]).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.define import added, broadcast_sizes
from gradtape.core.tensor import Tensor
from gradtape.ops.checks import check_choice
from gradtape.ops.comparison import isfinite
from gradtape.ops.join import concatenate
from gradtape.ops.linalg.checks import require
from gradtape.ops.linalg.common import MATRIX, adjoint, failed
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.lapack import scipy_linalg
from gradtape.ops.linalg.powers import matrix_power
from gradtape.ops.linalg.roots import logarithm_of, null_space_of, power_of, root_of, sign_of
from gradtape.ops.linalg.stacks import matrices, matrixwise, summed
from gradtape.ops.norm import matrix_norm
from gradtape.ops.shape import broadcast_to, reshape
from gradtape.ops.which import all as all_of
from gradtape.typing import Array, ArrayLike

# ---- values on one matrix -----------------------------------------------------------------------

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "expm": lambda a, power: scipy_linalg().expm(a),
    "logm": lambda a, power: logarithm_of(a),
    "sqrtm": lambda a, power: root_of(a),
    "fractional_matrix_power": power_of,
    "signm": lambda a, power: sign_of(a),
}


def _one(a: Any, name: str, power: float) -> Any:
    """The function of one matrix, real for a real one; NaN if it has NaN or infinity."""
    if not np.isfinite(a).all():
        return np.full(a.shape, np.nan, a.dtype)
    with np.errstate(all="ignore"):
        out = _FUNCTIONS[name](a, power)
    # An exponential may overflow, like that of a number.
    if name != "expm" and not np.isfinite(out).all():
        raise failed(name, (a,), "there is no such matrix", "expected one without eigenvalues of 0")
    if a.dtype.kind != "c" and out.dtype.kind == "c":
        noise = 64 * len(a) * np.finfo(a.dtype).eps * np.abs(out).max()
        if np.abs(out.imag).max() > noise:
            problem = "the result is complex, as there are negative eigenvalues"
            raise failed(name, (a,), problem, "expected a complex matrix: x.astype(np.complex128)")
        out = out.real
    return out


def _change_of_one(a: Any, e: Any, name: str, power: float) -> Any:
    """L(A, E) of one matrix; NaN where there is no derivative."""
    size = np.abs(e).max(initial=0)
    if not size or not np.isfinite(size) or not np.isfinite(a).all():
        return np.full(a.shape, 0 if size == 0 and np.isfinite(a).all() else np.nan, a.dtype)
    if name == "expm":
        return scipy_linalg().expm_frechet(a, e, compute_expm=False)
    if name in ("sqrtm", "fractional_matrix_power") and null_space_of(a) is not None:
        return np.full(a.shape, np.nan, a.dtype)
    if name == "sqrtm":
        root = _one(a, name, power)  # root·L + L·root = E
        return scipy_linalg().solve_sylvester(root, root, e)
    # E is scaled to the size of A, so that it does not blur the eigenvalues.
    scale = np.abs(a).max() / size
    pair = np.block([[a, e * scale], [np.zeros_like(a), a]])
    return _one(pair, name, power)[: len(a), len(a) :] / scale


# ---- the ops ------------------------------------------------------------------------------------


def _along(x: Any, e: Any, name: str, power: float) -> Any:
    """L(A, E), checked to exist."""
    out = _change(x, e, name=name, power=power)
    if name in ("expm", "logm", "signm"):
        return out
    message = (
        f"{name}: got a singular matrix, where it has no derivative, expected eigenvalues other "
        "than 0; add a small multiple of the identity"
    )
    return require(out, all_of(isfinite(out), axis=MATRIX, keepdims=True), message)


def _second(x: Any, e: Any, g: Any, name: str, power: float) -> Any:
    """The derivative of L(A, E) along G, which is symmetric in E and G."""
    size, shape = x.shape[-1], broadcast_sizes(x.shape, e.shape, g.shape)
    x, e, g = (y if y.shape == shape else broadcast_to(y, shape) for y in (x, e, g))
    pair, change = _blocks(x, e), _blocks(g, None)
    return _along(pair, change, name, power)[..., :size, size:]


def _blocks(x: Any, corner: Any) -> Any:
    """[[X, corner], [0, X]]."""
    zero = 0 * x
    upper = concatenate([x, zero if corner is None else corner], axis=-1)
    return concatenate([upper, concatenate([zero, x], axis=-1)], axis=-2)


def _change_vjp(
    wanted: tuple[bool, bool], ct: Any, _out: Any, x: Any, e: Any, name: str, power: float
) -> Any:
    back = adjoint(ct)
    by_x = adjoint(_second(x, e, back, name, power)) if wanted[0] else None
    return by_x, adjoint(_along(x, back, name, power)) if wanted[1] else None


def _change_jvp(tangents: Sequence[Any], _out: Any, x: Any, e: Any, name: str, power: float) -> Any:
    dx, de = tangents
    along = None if de is None else _along(x, de, name, power)
    return added(along, None if dx is None else _second(x, e, dx, name, power))


# L(A, E), linear in E; ⟨C, L(A, E)⟩ = ⟨L(A, Cᴴ)ᴴ, E⟩
_change = matrixwise(
    "matrix_function_change", _change_of_one, vjp_all=summed(_change_vjp), jvp=_change_jvp
)

# d f(A) = L(A, dA)
_function = matrixwise(
    "matrix_function",
    _one,
    vjps=(lambda ct, _out, x, **which: adjoint(_along(x, adjoint(ct), **which)),),
    jvp=lambda tangents, _out, x, **which: _along(x, tangents[0], **which),
)


def _apply(name: str, x: ArrayLike, power: float = 0.0) -> Any:
    return _function(matrices(name, x)[0], name=name, power=power)


# ---- public functions ---------------------------------------------------------------------------


@in_float32
def expm(x: ArrayLike, /) -> Array:
    """The exponential of a square matrix, or of each in a stack.

    Raises:
        LinAlgError: A matrix is not square.

    >>> gt.linalg.expm(np.array([[0.0, 1.0], [0.0, 0.0]]))
    array([[1., 1.],
           [0., 1.]])
    """
    return _apply("expm", x)


@in_float32
def expm_frechet(
    A: ArrayLike,
    E: ArrayLike,
    method: str | None = None,
    compute_expm: bool = True,
) -> tuple[Array, Array] | Array:
    """The exponential of a square matrix, or of each in a stack, and its derivative along another.

    Args:
        A: The matrix.
        E: The direction, a matrix of the same size.
        method: Accepted as in SciPy, "SPS" or "blockEnlarge"; the first one is used.
        compute_expm: Whether to return the exponential, and not the derivative alone.

    Raises:
        LinAlgError: A matrix is not square.
        ShapeError: The sizes differ.
        ArgumentError: There is no such method.

    >>> gt.linalg.expm_frechet(np.zeros((2, 2)), np.eye(2), compute_expm=False)
    array([[1., 0.],
           [0., 1.]])
    """
    check_choice("expm_frechet", (None, "SPS", "blockEnlarge"), method=method)
    a, e = matrices("expm_frechet", A, E)
    change = _along(a, e, "expm", 0.0)
    return (expm(a), change) if compute_expm else change


@in_float32
def expm_cond(A: ArrayLike) -> Array:
    """How much `expm` amplifies relative changes of a matrix, or of each in a stack.

    Args:
        A: The matrix.

    Raises:
        LinAlgError: A matrix is not square.

    >>> float(gt.linalg.expm_cond(np.array([[2.0]])))
    2.0
    """
    (a,) = matrices("expm_cond", A)
    size = a.shape[-1]
    # One direction for each element: the derivative as a matrix of size² rows and columns.
    directions = np.eye(size * size, dtype=a.dtype).reshape(-1, size, size)
    changes = _along(a[..., None, :, :], directions, "expm", 0.0)
    slopes = reshape(changes, (*a.shape[:-2], size * size, size * size))
    return matrix_norm(slopes, ord=2) * matrix_norm(a) / matrix_norm(expm(a))


@in_float32
def logm(x: ArrayLike, /) -> Array:
    """The principal logarithm of a square matrix, or of each in a stack: the inverse of `expm`.

    Raises:
        LinAlgError: A matrix is not square, or singular; or it is real and its logarithm complex,
            as for negative eigenvalues: give a complex matrix.

    >>> gt.linalg.logm(np.array([[1.0, 1.0], [0.0, 1.0]]))
    array([[0., 1.],
           [0., 0.]])
    """
    return _apply("logm", x)


@in_float32
def sqrtm(x: ArrayLike, /) -> Array:
    """The principal square root of a square matrix, or of each in a stack.

    Raises:
        LinAlgError: A matrix is not square, or has no square root; or it is real and its root
            complex, as for negative eigenvalues: give a complex matrix.
        NotDifferentiableError: A derivative was asked for at a singular matrix.

    >>> gt.linalg.sqrtm(np.array([[4.0, 1.0], [0.0, 4.0]]))
    array([[2.  , 0.25],
           [0.  , 2.  ]])
    """
    return _apply("sqrtm", x)


@in_float32
def fractional_matrix_power(x: ArrayLike, t: Any, /) -> Array:
    """A square matrix, or each in a stack, to a power that need not be an integer.

    Args:
        x: The matrix.
        t: The power, a number. A tensor counts as a variable: the result is then computed as
            `expm(t * logm(x))`, and `x` must not be singular.

    Raises:
        LinAlgError: A matrix is not square; or it is singular and has no such power; or it is real
            and its power complex, as for negative eigenvalues: give a complex matrix.
        NotDifferentiableError: A derivative was asked for at a singular matrix.

    >>> gt.linalg.fractional_matrix_power(np.array([[4.0, 0.0], [0.0, 9.0]]), 0.5)
    array([[2., 0.],
           [0., 3.]])
    """
    if isinstance(t, Tensor):
        return expm(t * logm(x))
    power = float(t)
    if power.is_integer():
        return matrix_power(matrices("fractional_matrix_power", x)[0], int(power))
    return _apply("fractional_matrix_power", x, power)


@in_float32
def signm(x: ArrayLike, /) -> Array:
    """The sign of a square matrix, or of each in a stack.

    It has the eigenvectors of the matrix, with 1 for eigenvalues whose real part is positive and
    -1 for those where it is negative.

    Raises:
        LinAlgError: A matrix is not square, or has an eigenvalue without a real part.

    >>> gt.linalg.signm(np.array([[2.0, 3.0], [0.0, -1.0]]))
    array([[ 1.,  2.],
           [ 0., -1.]])
    """
    return _apply("signm", x)
