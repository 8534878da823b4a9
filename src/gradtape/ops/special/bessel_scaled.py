"""Derivatives of Bessel functions that are scaled by exponentials, exact where terms cancel.

Without their exponentials these functions are nearly √z⁻¹ far out, and so is each term of their
derivatives, which are much smaller. There the asymptotic series of Hankel is exact:
Σ cᵏ·aₖ/zᵏ⁺¹ᐟ² with aₖ = Π (4v² − (2j − 1)²)/(8j) over j up to k, up to a factor.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.define import elementwise_op
from gradtape.ops.erf import scipy_special
from gradtape.ops.special.common import in_parameter, of_scipy

# From here on, and from the square of the order on, so many terms are exact.
_FAR, _TERMS = 30.0, 20

# Of each kind f = g·exp(r·z): r, the sign s in g′ = t·½·(g_{v−1} + s·g_{v+1}), t, and c above.
_KINDS: dict[str, tuple[complex, float, float, complex]] = {
    "ive": (-1.0, 1.0, 1.0, -1.0),
    "kve": (1.0, 1.0, -1.0, 1.0),
    "hankel1e": (-1j, -1.0, 1.0, 1j),
    "hankel2e": (1j, -1.0, 1.0, -1j),
}


def _near(xp: Any, v: Any, z: Any, kind: str, order: int) -> Any:
    """By neighbouring orders: Σ C(n, j)·rⁿ⁻ʲ·g⁽ʲ⁾·exp(r·z)."""
    rate, change, turn, _ = _KINDS[kind]
    function = of_scipy(kind)
    rate = rate * xp.sign(z) if kind == "ive" else rate  # its scale is exp(−|z|)
    total: Any = 0.0
    for j in range(order + 1):
        steps = (math.comb(j, k) * change**k * function(xp, v - j + 2 * k, z) for k in range(j + 1))
        power = rate ** (order - j) if order > j else 1.0
        total = total + math.comb(order, j) * power * (0.5 * turn) ** j * sum(steps)
    return total


def _far(xp: Any, v: Any, z: Any, kind: str, order: int) -> Any:
    """By the series, for z on the right; of the derivatives of its powers."""
    unit = _KINDS[kind][3]
    term, total = 1.0 + 0.0 * z, 0.0 * z
    for k in range(_TERMS):
        total = total + math.prod(k + 0.5 + i for i in range(order)) * term
        term = term * (4.0 * v * v - (2 * k + 1) ** 2) / (8.0 * (k + 1)) * (unit / z)
    total = (-1.0) ** order * total / (xp.sqrt(z) * z**order)
    if kind == "ive":
        return total / math.sqrt(2.0 * math.pi)
    if kind == "kve":
        return total * math.sqrt(0.5 * math.pi)
    phase = xp.exp(-unit * (0.5 * math.pi) * (v + 0.5))
    return total * phase * math.sqrt(2.0 / math.pi)


def _forward(xp: Any, v: Any, z: Any, kind: str, order: int) -> Any:
    value = of_scipy(kind)(xp, v, z)
    if order == 0:
        return value
    wide = np.complex128 if value.dtype.kind == "c" else np.float64
    v, z = xp.asarray(v).astype(np.float64), xp.asarray(z).astype(wide)
    with np.errstate(all="ignore"):
        # A negative argument of ive is mirrored, if its order is whole.
        mirrored = (z.real < 0) & (v == xp.rint(v)) & (kind == "ive")
        right = xp.where(mirrored, -z, z)
        far = (right.real > 0) & (abs(z) > _FAR) & (abs(z) > v * v) & (abs(z) < math.inf)
        outer = _far(xp, v, xp.where(far, right, _FAR), kind, order)
        odd = (v + order) % 2.0 == 1.0
        outer = xp.where(mirrored & odd, -outer, outer)
        out = xp.where(far, outer, _near(xp, v, xp.where(far, 1.0, z), kind, order))
        out = xp.where(abs(z) == math.inf, 0.0 * scipy_special(xp).jv(v, 1.0), out)
    return out.astype(value.dtype)[()]


# f⁽ⁿ⁾ of a kind and an order n: d f⁽ⁿ⁾ = f⁽ⁿ⁺¹⁾·dz
scaled_derivative: Callable[..., Any] = elementwise_op(
    "scaled_bessel",
    _forward,
    in_parameter("scaled Bessel functions", "the order"),
    lambda ct, _out, v, z, kind, order: ct * scaled_derivative(v, z, kind=kind, order=order + 1),
)
