"""Matrices with repeated values in random positions, what may be asked of them and what may not.

Each is made as Q·diag(d)·Pᴴ with bases that are known, so that its exact derivatives are, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import gradtape as gt

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
Function = Callable[[Any], Any]


class Turned(NamedTuple):
    """A matrix, functions of it that have no derivative there, and those that have, with it."""

    matrix: Any
    refused: dict[str, Function]
    known: dict[str, tuple[Function, Any]]


def adjoint(x: Any) -> Any:
    return gt.conj(x).mT


def part(x: Any) -> Any:
    return gt.real(x) if x.dtype.kind == "c" else x


def projector(v: Any) -> Any:
    return part(v @ adjoint(v))


def unitary(rng: np.random.Generator, size: int, dtype: Any) -> Any:
    """A random orthogonal or unitary matrix, as exact as float64 has it."""
    x = rng.normal(size=(size, size))
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=(size, size))
    return np.linalg.qr(x)[0]


def with_repeated(rng: np.random.Generator, size: int) -> tuple[Any, slice]:
    """Ascending values of which one is repeated, and where it stands."""
    times = int(rng.integers(2, min(4, size) + 1))
    values = np.cumsum(rng.uniform(0.5, 1.5, size=size - times + 1))
    first = int(rng.integers(len(values)))
    return np.insert(values, [first] * (times - 1), values[first]), slice(first, first + times)


def scale_of(rng: np.random.Generator) -> float:
    return float(10.0 ** rng.uniform(-8, 8))


def weights_for(rng: np.random.Generator, matrix: Any, *shape: int) -> Any:
    return rng.normal(size=shape or matrix.shape).astype(matrix.real.dtype)


def by_projection(q: Any, d: Any, group: slice, weights: Any) -> Any:
    """The gradient of the sum of weights times the projector on some eigenvectors."""
    inside = np.zeros(len(d))
    inside[group] = 1.0
    step = inside[None, :] - inside[:, None]
    gaps = np.where(step == 0, 1.0, d[None, :] - d[:, None])
    inner = q.conj().T @ ((weights + weights.T) / 2) @ q
    return q @ (inner * step / gaps) @ q.conj().T


# ---- kinds of matrices --------------------------------------------------------------------------


def hermitian(rng: np.random.Generator, dtype: Any) -> Turned:
    size, scale = int(rng.integers(2, 7)), scale_of(rng)
    d, group = with_repeated(rng, size)
    q = unitary(rng, size, dtype)
    matrix = ((q * (d * scale)) @ q.conj().T).astype(dtype)
    weights = weights_for(rng, matrix)
    first, last = group.start, group.stop - 1

    def vectors(a: Any) -> Any:
        return gt.linalg.eigh(a).eigenvectors[:, group]

    def logarithm(a: Any) -> Any:
        w, v = gt.linalg.eigh(a)
        return part((v * gt.log(w / scale + 1.0)) @ adjoint(v))

    refused: dict[str, Function] = {
        "element": lambda a: part(vectors(a)[0, 0]),
        "square": lambda a: abs(vectors(a)[0, 0]) ** 2,
        "absolute": lambda a: gt.sum(abs(vectors(a)[:, 0])),
        "sum": lambda a: part(gt.sum(gt.linalg.eigh(a).eigenvectors)),
        "column": lambda a: gt.sum(weights * projector(vectors(a)[:, :1])),
        "value": lambda a: gt.linalg.eigvalsh(a)[first] / scale,
        "value of eigh": lambda a: gt.linalg.eigh(a).eigenvalues[last] / scale,
        "logarithm[0, 0]": lambda a: logarithm(a)[0, 0],
        "logarithm[0, 1]": lambda a: logarithm(a)[0, 1],
        "logarithm": lambda a: gt.sum(weights * logarithm(a)),
    }
    top = q[:, d == d[-1]]
    known: dict[str, tuple[Function, Any]] = {
        "projection": (
            lambda a: gt.sum(weights * projector(vectors(a))),
            by_projection(q, d * scale, group, weights),
        ),
        "exponentials": (
            lambda a: gt.sum(gt.exp(gt.linalg.eigvalsh(a) / (size * scale))),
            (q * np.exp(d / size)) @ q.conj().T / (size * scale),
        ),
        "squares": (lambda a: gt.sum(gt.linalg.eigh(a).eigenvalues ** 2), 2 * matrix),
        "largest": (
            lambda a: gt.max(gt.linalg.eigvalsh(a)),
            top @ top.conj().T / top.shape[-1],
        ),
    }
    return Turned(matrix, refused, known)


def singular(rng: np.random.Generator, dtype: Any) -> Turned:
    """Repeated singular values; some of rank less than full, which then is what is repeated."""
    shape = tuple(int(n) for n in rng.integers(2, 7, size=2))
    count, scale = min(shape), scale_of(rng)
    d, group = with_repeated(rng, count)
    d, group = d[::-1].copy(), slice(count - group.stop, count - group.start)
    lacking = bool(rng.random() < 0.4)
    if lacking:
        d[group.start :] = 0.0
    u, v = unitary(rng, shape[0], dtype)[:, :count], unitary(rng, shape[1], dtype)[:, :count]
    matrix = ((u * (d * scale)) @ v.conj().T).astype(dtype)
    weights, first = weights_for(rng, matrix), group.start

    def approximation(a: Any, function: Any, kept: slice = slice(None)) -> Any:
        u, s, vh = gt.linalg.svd(a, full_matrices=False)
        return part((u[:, kept] * function(s[kept])) @ vh[kept])

    refused: dict[str, Function] = {
        "square": lambda a: abs(gt.linalg.svd(a).U[0, first]) ** 2,
        "absolute": lambda a: gt.sum(abs(gt.linalg.svd(a).Vh[first])),
        "sum": lambda a: part(gt.sum(gt.linalg.svd(a, full_matrices=False).U)),
        "logarithm": lambda a: gt.sum(
            weights * approximation(a, lambda s: gt.log(s / scale + 1.0))
        ),
    }
    known: dict[str, tuple[Function, Any]] = {
        "hyperbolic cosines": (
            lambda a: gt.sum(gt.cosh(gt.linalg.svdvals(a) / (count * scale))),
            (u * np.sinh(d / count)) @ v.conj().T / (count * scale),
        ),
        "nuclear norm": (
            lambda a: gt.sum(gt.linalg.svdvals(a)),
            (u * (d > 0)) @ v.conj().T,
        ),
    }
    if lacking:
        kept = slice(0, first)
        known["rank"] = (
            # Along changes out of its space, too, the nearest matrix of that rank follows.
            lambda a: gt.sum(weights * approximation(a, lambda s: s, kept)),
            _by_rank(u[:, kept], v[:, kept], weights),
        )
        return Turned(matrix, refused, known)
    refused["value"] = lambda a: gt.linalg.svdvals(a)[first] / scale
    return Turned(matrix, refused, known)


def _by_rank(u: Any, v: Any, weights: Any) -> Any:
    """The gradient of the sum of weights times the nearest matrix of a rank: W − (1−P)·W·(1−R)."""
    outside = weights - u @ (u.conj().T @ weights)
    return weights - (outside - (outside @ v) @ v.conj().T)


def diagonalizable(rng: np.random.Generator, dtype: Any) -> Turned:
    """No normal matrices: eigenvectors at angles to each other."""
    size, scale = int(rng.integers(3, 7)), scale_of(rng)
    d, group = with_repeated(rng, size)
    stretch = np.geomspace(1.0, rng.choice([1.0, 3.0, 10.0]), size)
    x = (unitary(rng, size, dtype) * stretch) @ unitary(rng, size, dtype)
    matrix = ((x * (d * scale)) @ np.linalg.inv(x)).astype(dtype)
    weights, level = weights_for(rng, matrix), d[group.start] * scale

    def place(w: Any) -> int:
        return int(np.argmin(abs(np.asarray(gt.stop_gradient(w)) - level)))

    def vector(a: Any) -> Any:
        w, v = gt.linalg.eig(a)
        return v[:, place(w)]

    def logarithm(a: Any) -> Any:
        w, v = gt.linalg.eig(a)
        return gt.real((v * gt.log(w / scale + 1.0)) @ gt.linalg.inv(v))

    def value(a: Any) -> Any:
        w = gt.linalg.eigvals(a)
        return gt.real(w[place(w)]) / scale

    refused: dict[str, Function] = {
        "value": value,
        "vector": lambda a: gt.sum(weights[0] * abs(vector(a))),
        "logarithm": lambda a: gt.sum(weights * logarithm(a)),
        "triangle": lambda a: gt.sum(weights * part(gt.linalg.schur(a).T)),
        "basis": lambda a: gt.sum(weights * abs(gt.linalg.schur(a, output="complex").Z)),
    }
    exponential = (x * np.exp(d / size)) @ np.linalg.inv(x) / (size * scale)
    known: dict[str, tuple[Function, Any]] = {
        "trace": (lambda a: gt.real(gt.sum(gt.linalg.eigvals(a))), np.eye(size)),
        "exponentials": (
            lambda a: gt.real(gt.sum(gt.exp(gt.linalg.eigvals(a) / (size * scale)))),
            exponential.conj().T,
        ),
        "squares": (
            lambda a: gt.real(gt.sum(gt.linalg.eig(a).eigenvalues ** 2)),
            2 * matrix.conj().T,
        ),
    }
    return Turned(matrix, refused, known)


def defective(rng: np.random.Generator, dtype: Any) -> Turned:
    """Blocks of Jordan: no basis of eigenvectors, and eigenvalues with infinite slopes."""
    size, scale = int(rng.integers(2, 7)), scale_of(rng)
    form = np.diag(np.arange(1.0, size + 1))
    form[1, 1], form[0, 1] = 1.0, rng.choice([0.1, 1.0])
    q = unitary(rng, size, dtype)
    matrix = (scale * (q @ form @ q.conj().T)).astype(dtype)

    def place(w: Any) -> int:
        return int(np.argmin(abs(np.asarray(gt.stop_gradient(w)) - scale)))

    def value(a: Any) -> Any:
        w = gt.linalg.eigvals(a)
        return gt.real(w[place(w)]) / scale

    def vector(a: Any) -> Any:
        w, v = gt.linalg.eig(a)
        return gt.sum(np.arange(size) * abs(v[:, place(w)]))

    return Turned(matrix, {"value": value, "vector": vector}, {})


def dependent(rng: np.random.Generator, dtype: Any) -> Turned:
    """Columns that depend on each other, and no two of them alone."""
    columns, scale = int(rng.integers(2, 7)), scale_of(rng)
    rows = columns + int(rng.integers(1, 3))
    d = np.append(rng.uniform(0.5, 5.0, size=columns - 1), 0.0) * scale
    u, v = unitary(rng, rows, dtype)[:, :columns], unitary(rng, columns, dtype)
    matrix = ((u * d) @ v.conj().T).astype(dtype)
    weights = weights_for(rng, matrix)
    square_weights = weights_for(rng, matrix, columns, columns)
    refused: dict[str, Function] = {
        "qr": lambda a: gt.sum(weights * part(gt.linalg.qr(a).Q)),
        "r": lambda a: gt.sum(square_weights * part(gt.linalg.qr(a).R)),
        "rq": lambda a: gt.sum(weights.T * part(gt.linalg.rq(adjoint(a), mode="economic")[1])),
        "lu": lambda a: gt.sum(weights * part(gt.linalg.lu(a)[1])),
        "polar": lambda a: gt.sum(weights * part(gt.linalg.polar(a)[0])),
    }
    return Turned(matrix, refused, {})


def semidefinite(rng: np.random.Generator, dtype: Any) -> Turned:
    """Hermitian matrices with a null space of two dimensions or more; so are their powers."""
    size, scale = int(rng.integers(3, 7)), scale_of(rng)
    d = np.append(rng.uniform(0.5, 5.0, size=size - 2), [0.0, 0.0]) * scale
    signs = rng.choice([-1.0, 1.0], size=size)
    q = unitary(rng, size, dtype)
    matrix = ((q * (d * signs)) @ q.conj().T).astype(dtype)
    weights = weights_for(rng, matrix)
    real_numbers = matrix.dtype.kind != "c"
    refused: dict[str, Function] = {
        "ldl": lambda a: gt.sum(weights * part(gt.linalg.ldl(a)[0])),
        "root": lambda a: gt.sum(
            weights * part(gt.linalg.sqrtm(a @ a if real_numbers else adjoint(a) @ a))
        ),
    }
    if size > 3:
        d[:3] = d[3]
        threefold = ((q * d) @ q.conj().T).astype(dtype)
        refused["hessenberg"] = lambda a: gt.sum(
            weights * part(gt.linalg.hessenberg(0.0 * a + threefold))
        )
    return Turned(matrix, refused, {})


KINDS: dict[str, Callable[[np.random.Generator, Any], Turned]] = {
    f.__name__: f for f in (hermitian, singular, diagonalizable, defective, dependent, semidefinite)
}
