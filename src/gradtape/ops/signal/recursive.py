"""The recursive filter as an op: differentiable in its coefficients, the signal and the state.

With coefficients b₀ … b_K and 1, a₁ … a_K, and the state z before each step:

    y[t] = b₀·x[t] + z₀        z_k ← b_{k+1}·x[t] − a_{k+1}·y[t] + z_{k+1}

Its arrays are stacks: the last axis is that of the coefficients or of time, the axes before
broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import added, broadcast_sizes, general, unbroadcast
from gradtape.core.op import Facts
from gradtape.ops.cast import conj_if_complex
from gradtape.ops.join import concatenate
from gradtape.ops.linalg.stacks import batch_stacks
from gradtape.ops.rearrange import flip
from gradtape.ops.shape import broadcast_to
from gradtape.ops.signal.direct import convolve_over, turned
from gradtape.ops.signal.parts import part


def _forward(xp: Any, b: Any, a: Any, x: Any, state: Any) -> tuple[Any, Any]:
    """`a` are the coefficients from a₁ on."""
    import scipy.signal

    dtype = np.result_type(b, a, x, state)
    b, a, x, state = (array.astype(dtype, copy=False) for array in (b, a, x, state))
    a = np.concatenate([np.ones((*a.shape[:-1], 1), dtype), a], axis=-1)
    lead = np.broadcast_shapes(*(array.shape[:-1] for array in (b, a, x, state)))
    x, state = (np.broadcast_to(array, (*lead, array.shape[-1])) for array in (x, state))
    if b.ndim == a.ndim == 1:
        y, end = scipy.signal.lfilter(b, a, x, zi=state)
        return y, end
    b, a = (np.broadcast_to(array, (*lead, array.shape[-1])) for array in (b, a))
    y, end = np.empty_like(x), np.empty_like(state)
    for i in np.ndindex(*lead):
        y[i], end[i] = scipy.signal.lfilter(b[i], a[i], x[i], zi=state[i])
    return y, end


def _infer(b: Aval, a: Aval, x: Aval, state: Aval) -> tuple[Aval, Aval]:
    avals = (b, a, x, state)
    lead = broadcast_sizes(*(aval.shape[:-1] for aval in avals))
    dtype = np.result_type(*(aval.dtype for aval in avals))
    return Aval((*lead, x.shape[-1]), dtype), Aval((*lead, state.shape[-1]), dtype)


def _backwards(a: Any, ct: Any, ct_end: Any) -> Any:
    """w[t] = ct[t] − Σ aₖ·w[t + k], from the end, where w[T + k] is given and included.

    It is the cotangent of the state: of z_k before step t it is w[t + k].
    """
    order = a.shape[-1]
    one = np.zeros(order + 1, ct.dtype)
    one[0] = 1
    # The state that results from the given outputs: z_k = −Σ a_{k+1+i}·w[T + i]
    met = convolve_over(a, flip(ct_end, -1), ndim=1, full=True)
    state = -part(met, order - 1, None)
    w, _ = filter_over(one, a, flip(ct, -1), state)
    lead = w.shape[:-1]
    return concatenate([flip(w, -1), broadcast_to(ct_end, (*lead, order))], -1)


def _vjp(
    wanted: Sequence[bool], cts: Any, outs: Any, b: Any, a: Any, x: Any, _state: Any
) -> tuple[Any, ...]:
    ct, ct_end = cts
    w = _backwards(conj_if_complex(a), ct, ct_end)
    y, order = outs[0], a.shape[-1]

    def met(signal: Any, other: Any) -> Any:
        return convolve_over(signal, turned(other, 1), ndim=1, full=False)

    return (
        unbroadcast(met(w, x), b.shape) if wanted[0] else None,
        unbroadcast(-met(part(w, 1, None), y), a.shape) if wanted[1] else None,
        unbroadcast(met(w, b), x.shape) if wanted[2] else None,
        unbroadcast(part(w, 0, order), _state.shape) if wanted[3] else None,
    )


def _jvp(tangents: Sequence[Any], outs: Any, b: Any, a: Any, x: Any, state: Any) -> Any:
    db, da, dx, dstate = tangents
    order, dtype = a.shape[-1], outs[0].dtype
    dstate = np.zeros(order, dtype) if dstate is None else dstate
    if db is None and da is None:
        dx = np.zeros(x.shape, dtype) if dx is None else dx
        changes, rest = filter_over(b, a, dx, dstate), None
    else:
        # All that is fed in, by a filter without taps of its own: it calls itself only once.
        fed = added(
            None if db is None else convolve_over(x, db, ndim=1, full=True),
            None if dx is None else convolve_over(dx, b, ndim=1, full=True),
            None if da is None else -convolve_over(outs[0], _delayed(da), ndim=1, full=True),
        )
        one = np.zeros(order + 1, dtype)
        one[0] = 1
        changes = filter_over(one, a, part(fed, None, x.shape[-1]), dstate)
        rest = part(fed, x.shape[-1], None)  # what comes after the end is in the state
    dy, dend = changes
    pairs = zip((dy, added(dend, rest)), outs, strict=True)
    return tuple(broadcast_to(change, out.shape) for change, out in pairs)


def _delayed(a: Any) -> Any:
    """Coefficients from that of one step before on, with a 0 for those of no step."""
    return concatenate([np.zeros((*a.shape[:-1], 1), a.dtype), a], -1)


# d(y, z) = the filter of dx from dz, plus that of x by db, plus that of y by −da. Transpose: with
# w from `_backwards`, x̄[t] = Σ bₖ·w[t + k], b̄ₖ = Σ w[t + k]·x[t], āₖ = −Σ w[t + k]·y[t], z̄ₖ = w[k]
filter_over: Callable[..., Any] = general(
    "lfilter",
    _forward,
    infer=_infer,
    vjp_all=_vjp,
    jvp=_jvp,
    batch=batch_stacks,
    outputs=2,
    facts=Facts(reads=1),
)
