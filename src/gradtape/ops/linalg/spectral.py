"""Functions of Hermitian matrices by their eigenvalues, with derivatives of every order.

f(A) = V·f(w)·Vᴴ does not depend on the choice of eigenvectors, and is as smooth as f, even where
eigenvalues are repeated, and (w, V) by themselves have no derivative. Its derivatives have divided
differences in place of those of f (Daleckii and Krein): with Mₖ = Vᴴ·Eₖ·V

    D f(A)[E]ᵢⱼ = f[wᵢ, wⱼ]·Mᵢⱼ,   D²f(A)[E₁, E₂]ᵢₗ = Σⱼ f[wᵢ, wⱼ, wₗ]·(M₁ᵢⱼ·M₂ⱼₗ + M₂ᵢⱼ·M₁ⱼₗ), …
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import added, general
from gradtape.ops.comparison import isfinite
from gradtape.ops.linalg.checks import require
from gradtape.ops.linalg.gauge import groups, resolution, settle
from gradtape.ops.linalg.hermitian import symmetric_part

# Given eigenvalues and a number n, a function at these and its first n derivatives.
Jets = Callable[[Any, int], Sequence[Any]]
# How many terms of a Taylor series replace a quotient of differences that cancel.
TERMS = 5

UNDEFINED = (
    "hermitian_function: got repeated eigenvalues, or such at which the function has a jump or a "
    "kink, expected a function that is smooth there, as the result has no derivative otherwise"
)

# ---- divided differences, on raw arrays ---------------------------------------------------------


def divided_differences(w: Any, jets: Sequence[Any], order: int) -> Any:
    """f[wᵢ, wⱼ, …] for all choices of `order` + 1 of the sorted points `w`, which may coincide.

    Each is a quotient of those of one order less, or a Taylor series around one of the points:
    whichever has the smaller bound of its error. NaN where f has a jump between equal points.

    Args:
        w: The points, ascending.
        jets: f at the points and its derivatives, up to `order` + TERMS − 1.
        order: The number of points less one.
    """
    size = len(w)
    same = groups(w, size)
    table, error = np.asarray(jets[0], w.dtype), _uncertainty(jets, w.dtype)
    for n in range(1, order + 1):
        indices = np.array(
            list(itertools.combinations_with_replacement(range(size), n + 1)), int
        ).reshape(-1, n + 1)
        first, last = tuple(indices[:, :-1].T), tuple(indices[:, 1:].T)
        spread = w[indices[:, -1]] - w[indices[:, 0]]
        with np.errstate(all="ignore"):
            quotient = (table[last] - table[first]) / spread
            quotient_error = (error[last] + error[first]) / spread
            series, series_error = _taylor(w, jets, indices)
            # Across a jump or a kink of f the series would not even come near the quotient.
            agree = np.abs(series - quotient) <= 16 * quotient_error + 4 * series_error
            better = same[indices[:, 0], indices[:, -1]] | ((series_error < quotient_error) & agree)
        value = np.where(better, series, quotient)
        bound = np.where(better, series_error, quotient_error)
        torn = np.isnan(table[first]) | np.isnan(table[last])
        for values in jets[n - 1 : n + 1]:
            torn |= _torn(values, same)[indices[:, 0], indices[:, -1]]
        value[torn] = np.nan
        table, error = _spread_out(value, indices, size), _spread_out(bound, indices, size)
    return table


def _uncertainty(jets: Sequence[Any], dtype: Any) -> Any:
    """How far off values of f may be: they, and the numbers f is computed from, are rounded.

    Such numbers may be larger than f and its argument, like 1 + w in log(1 + w) near 0. They are
    about as large as the distance in which f changes, which its derivatives tell: the least of
    (k!·|f′/f⁽ᵏ⁾|)^(1/(k−1)). It is 0 for a function of straight lines.
    """
    slope, distance = np.abs(jets[1]), np.full(np.shape(jets[1]), np.inf)
    with np.errstate(all="ignore"):
        for k, higher in enumerate(jets[2:], 2):
            reach = (math.factorial(k) * slope / np.abs(higher)) ** (1 / (k - 1))
            distance = np.fmin(distance, reach)
    distance[~np.isfinite(distance)] = 0.0
    return resolution(dtype) * (np.abs(jets[0]) + slope * distance)


def _torn(values: Any, same: Any) -> Any:
    """For each pair of points, whether they are equal and a function has different values there."""
    values = np.asarray(values)
    jump = np.abs(values[:, None] - values[None, :])
    return same & (jump > resolution(values.dtype) ** 0.5 * np.abs(values).max(initial=0.0))


def _taylor(w: Any, jets: Sequence[Any], indices: Any) -> tuple[Any, Any]:
    """f[points] = Σₘ f⁽ⁿ⁺ᵐ⁾(c)/(n+m)!·hₘ(points − c), and how large the last two terms are.

    hₘ is the sum of all products of m of them, repetition allowed; m·hₘ = Σⱼ (sums of jth powers)·
    hₘ₋ⱼ.
    """
    n = indices.shape[1] - 1
    center = indices[:, (n + 1) // 2]
    steps = w[indices] - w[center][:, None]
    powers = [(steps**j).sum(axis=1) for j in range(1, TERMS)]
    symmetric = [np.ones(len(indices), w.dtype)]
    for m in range(1, TERMS):
        symmetric.append(sum(powers[j] * symmetric[m - 1 - j] for j in range(m)) / m)
    terms = []
    for m, h in enumerate(symmetric):
        slope = np.asarray(jets[n + m], w.dtype)[center] / math.factorial(n + m)
        terms.append(slope if m == 0 else np.where(h == 0, 0.0, slope * h))
    size = np.abs(terms[-1]) + np.abs(terms[-2]) + resolution(w.dtype) * np.abs(terms[0])
    return sum(terms), np.where(np.isnan(size), np.inf, size)


def _spread_out(values: Any, indices: Any, size: int) -> Any:
    """The symmetric table with a value for each ascending choice of indices."""
    table = np.empty((size,) * indices.shape[1], values.dtype)
    for order in itertools.permutations(range(indices.shape[1])):
        table[tuple(indices[:, list(order)].T)] = values
    return table


# ---- the op -------------------------------------------------------------------------------------


def _one(a: Any, directions: Sequence[Any], jets: Jets) -> Any:
    """The derivative of f at one matrix along all given directions."""
    w, v = np.linalg.eigh(a)
    settle(np, w, [v], len(w))
    order = len(directions)
    found = jets(w, order + TERMS - 1 if order else 0)
    if not order:
        return (v * np.asarray(found[0], w.dtype)) @ v.conj().T
    table = divided_differences(w, found, order)
    moved = [v.conj().T @ e @ v for e in directions]
    letters = "abcdefghijklmnop"[: order + 1]
    factors = ",".join(letters[i : i + 2] for i in range(order))
    subscripts = f"{letters},{factors}->{letters[0]}{letters[-1]}"
    inner = sum(
        np.einsum(subscripts, table, *chosen, optimize=True)
        for chosen in itertools.permutations(moved)
    )
    return v @ inner @ v.conj().T


def _forward(xp: Any, a: Any, *directions: Any, jets: Jets) -> Any:
    arrays = [np.asarray(x) if xp is np else x.get() for x in (a, *directions)]
    out = np.empty(a.shape, np.result_type(*arrays))
    for index in np.ndindex(a.shape[:-2]):
        out[index] = _one(arrays[0][index], [e[index] for e in arrays[1:]], jets)
    return xp.asarray(out)


def _infer(a: Aval, *directions: Aval, jets: Jets) -> Aval:
    return Aval(a.shape, np.result_type(a.dtype, *(e.dtype for e in directions)))


def _along(i: int, change: Any, inputs: Sequence[Any], jets: Jets) -> Any:
    """By the matrix it has one more direction; in each of those it has, it is linear."""
    before, after = (inputs[:i], inputs[i + 1 :]) if i else (inputs, ())
    return derivative(*before, symmetric_part(change), *after, jets=jets)


def _vjp(i: int, ct: Any, _out: Any, *inputs: Any, jets: Jets) -> Any:
    # tr(Y·Dⁿf(A)[E₁ … Eₙ]) is the same in whichever order its matrices stand.
    return _along(i, ct, inputs, jets)


def _jvp(tangents: Sequence[Any], _out: Any, *inputs: Any, jets: Jets) -> Any:
    return added(*(t if t is None else _along(i, t, inputs, jets) for i, t in enumerate(tangents)))


# D^(n+1)f(A)[E₁ … Eₙ, dA] + Σᵢ Dⁿf(A)[E₁ … dEᵢ … Eₙ]
_function = general(
    "hermitian_function",
    _forward,
    infer=_infer,
    vjp_each=_vjp,
    jvp=_jvp,
)


def derivative(a: Any, *directions: Any, jets: Jets) -> Any:
    """f(A) of Hermitian matrices, or its derivative along Hermitian directions, all of one shape.

    Args:
        a: The matrices.
        *directions: One for each order of the derivative.
        jets: Gives f and its derivatives at eigenvalues.
    """
    out = _function(a, *directions, jets=jets)
    return require(out, isfinite(out), UNDEFINED) if directions else out
