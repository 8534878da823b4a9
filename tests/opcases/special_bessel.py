"""Samples of Bessel functions and of their kin."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

import our_scipy
from gradtape.errors import ArgumentError
from gradtape.ops.special.bessel_fixed import i2, i2e
from opcases.case import At, OpCase, Raises, draw, with_torch
from opcases.special import POSITIVE, X, reference, special

ORDERS = np.array([[0, 1, 2], [3, 1, 0]])
COMPLEX = X + 1j * POSITIVE


def spherical(kind: str, op: str, derivative: bool) -> OpCase:
    """A spherical Bessel function of integer orders."""
    name = f"spherical_{kind}"
    return OpCase(
        getattr(our_scipy.special, name),
        (ORDERS, POSITIVE),
        reference(getattr(scipy.special, name)),
        params={"derivative": True} if derivative else {},
        ops=(op,),
        label="derivative" if derivative else "",
        rtol=128,
    )


def airy_ai(x: Any) -> Any:
    return our_scipy.special.airy(x)[0]


SAMPLES: list[OpCase] = [
    *(special(name, ORDERS, POSITIVE, rtol=128) for name in ("jv", "yv", "iv", "kv")),
    *(special(name, ORDERS, POSITIVE, rtol=128) for name in ("jve", "yve", "ive", "kve")),
    *(special(name, 0.5, POSITIVE, label="half", rtol=128) for name in ("jv", "yv", "iv", "kv")),
    special("jv", 1.5, COMPLEX, label="complex"),
    special("kve", 1.5, COMPLEX, label="complex", rtol=128),
    special("jv", ORDERS, np.zeros((2, 3)), label="zero", differences=False),
    special("ive", ORDERS, X, label="negative", rtol=128),
    *(special(name, ORDERS, POSITIVE, rtol=128) for name in ("hankel1", "hankel2")),
    *(
        special(name, ORDERS, POSITIVE, ops=("scaled_bessel",), rtol=128)
        for name in ("hankel1e", "hankel2e")
    ),
    *(special(name, ORDERS, 40 * POSITIVE + 20, label="far", rtol=128) for name in ("ive", "kve")),
    special("hankel1", 1.5, COMPLEX, label="complex", rtol=128),
    special("yn", ORDERS, POSITIVE, ops=("yv",), rtol=128),
    special("kn", ORDERS, POSITIVE, ops=("kv",), rtol=128),
    special("j0", X, rtol=128, at=[At((0.0,), (0.0,))]),
    special("j1", X, rtol=128, at=[At((0.0,), (0.5,))]),
    special("y0", POSITIVE, rtol=128),
    special("y1", POSITIVE, rtol=128),
    special("i0", X, rtol=64, torch="special.i0", at=[At((0.0,), (0.0,))]),
    special("i1", X, rtol=64, torch="special.i1", at=[At((0.0,), (0.5,))]),
    special("i0e", X, rtol=64, torch="special.i0e"),
    special("i1e", X, rtol=64, torch="special.i1e", at=[At((0.0,), (0.5,))]),
    OpCase(i2, (X,), reference(lambda x: scipy.special.iv(2, x)), elementwise=True, rtol=64),
    OpCase(i2e, (X,), reference(lambda x: scipy.special.ive(2, x)), elementwise=True, rtol=64),
    special("i1", np.array([-9.0, 9.5]), label="far", rtol=64, at=[At((1e-310,), (0.5,))]),
    special("i1e", np.array([-9.0, 9.5]), label="far", rtol=64, at=[At((1e10,), (-2e-16,))]),
    special("k0", POSITIVE, rtol=64),
    special("k1", POSITIVE, rtol=64),
    special("k0e", POSITIVE, rtol=64),
    special("k1e", POSITIVE, rtol=64),
    *(spherical("jn", "spherical_j", derivative) for derivative in (False, True)),
    *(spherical("yn", "spherical_y", derivative) for derivative in (False, True)),
    *(spherical("in", "spherical_i", derivative) for derivative in (False, True)),
    *(spherical("kn", "spherical_k", derivative) for derivative in (False, True)),
    OpCase(
        our_scipy.special.spherical_jn,
        (1, np.zeros(2)),
        reference(scipy.special.spherical_jn),
        ops=("spherical_j",),
        label="zero",
        at=[At((1, 0.0), (1 / 3,)), At((0, 0.0), (0.0,)), At((2, 0.0), (0.0,))],
    ),
    special("airy", X, elementwise=False, rtol=128),
    OpCase(airy_ai, (X,), reference(lambda x: scipy.special.airy(x)[0]), ops=("airy",), rtol=128),
    special("spherical_jn", 0, POSITIVE, ops=("spherical_j",), label="order-0", rtol=128),
    special("airy", COMPLEX, label="complex", rtol=128),
    special("airye", POSITIVE, elementwise=False, rtol=128),
    special("airye", 5 * POSITIVE, label="far", elementwise=False, rtol=128),
    *(
        special(name, ORDERS, POSITIVE, ops=(op,), rtol=256)
        for name, op in (
            *(("jvp", "jv"), ("yvp", "yv"), ("ivp", "iv"), ("kvp", "kv")),
            *(("h1vp", "hankel1"), ("h2vp", "hankel2")),
        )
    ),
    OpCase(
        our_scipy.special.jvp,
        (1.5, POSITIVE),
        reference(scipy.special.jvp),
        params={"n": 2},
        ops=("jv",),
        label="second",
        rtol=512,
        raises=[Raises((1, X), ArgumentError, "jvp: got n=-1", {"n": -1})],
    ),
    *(special(name, X, rtol=256, at=[At((0.0,), (0.0,))]) for name in ("ber", "bei", "berp")),
    special("beip", X, rtol=256, at=[At((0.0,), (0.5,))]),
    *(special(name, POSITIVE, rtol=256) for name in ("ker", "kei", "kerp", "keip")),
    special("kelvin", POSITIVE, ops=("ber", "bei", "ker", "kei"), rtol=256, elementwise=False),
    special("struve", ORDERS, POSITIVE, rtol=256),
    special("modstruve", ORDERS, POSITIVE, rtol=256),
    special("struve", 0.5, draw(3, low=0.5, high=3.0), label="half", rtol=256),
]

# Values only: PyTorch has no gradients of these.
TORCH = {
    **{name: f"special.bessel_{name}" for name in ("j0", "j1", "y0", "y1")},
    **{name: f"special.modified_bessel_{name}" for name in ("k0", "k1")},
    "airy_ai": "special.airy_ai",
    "spherical_jn-order-0": lambda torch, _n, x: torch.special.spherical_bessel_j0(x),
    **{f"{name}e": f"special.scaled_modified_bessel_{name}" for name in ("k0", "k1")},
}

CASES = with_torch(TORCH, SAMPLES)

NOT_NATIVE = dict.fromkeys(
    (
        *("jv", "yv", "iv", "kv", "jve", "yve", "ive", "kve", "hankel1", "hankel2"),
        *("scaled_bessel", "j0", "j1", "y0", "y1", "k0", "k1", "k0e", "k1e"),
        *("spherical_j", "spherical_y", "spherical_i", "spherical_k", "airy", "airye"),
        *("struve", "modstruve", "ber", "bei", "berp", "beip", "ker", "kei", "kerp", "keip"),
    ),
    "no such elementary function",
)
ULPS = {"i0": 8, "i1": 12, "i2": 8, "i0e": 8, "i1e": 8, "i2e": 8}
