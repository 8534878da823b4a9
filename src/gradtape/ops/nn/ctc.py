"""Connectionist temporal classification: sequences whose labels are not aligned with them.

The loss is the negative logarithm of the probability of all paths that stand for the target; how
these are summed is in `ctc_paths`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.batching import in_front
from gradtape.core.call import call
from gradtape.core.define import general
from gradtape.core.op import NotDifferentiable, Op, Zero
from gradtape.errors import ArgumentError, IndexingError, ShapeError, UnsupportedError
from gradtape.ops.cast import astype
from gradtape.ops.checks import check_between
from gradtape.ops.gather import as_indices, take
from gradtape.ops.nn.ctc_paths import (
    States,
    ahead,
    ahead_change,
    back,
    back_change,
    by_class,
    likelihood,
    likelihood_change,
)
from gradtape.ops.nn.known import known_values
from gradtape.ops.nn.reduction import check_reduction, floating, reduced
from gradtape.ops.reduce import sum_over
from gradtape.ops.select import clip
from gradtape.ops.shape import moveaxis, reshape
from gradtape.typing import Array, ArrayLike

# ---- on arrays -----------------------------------------------------------------------------------


def _checked(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any) -> None:
    times, _, classes = log_probs.shape
    for lengths in (input_lengths.min(initial=0), input_lengths.max(initial=0)):
        check_between("ctc_loss", 0, times, input_lengths=lengths)
    for lengths in (target_lengths.min(initial=0), target_lengths.max(initial=0)):
        check_between("ctc_loss", 0, targets.shape[1], target_lengths=lengths)
    inside = targets[np.arange(targets.shape[1]) < target_lengths[:, None]]
    if inside.size and (inside.min() < 0 or inside.max() >= classes):
        bad = inside[(inside < 0) | (inside >= classes)][0]
        raise IndexingError(f"ctc_loss: got label {bad}, expected one from 0 to {classes - 1}")


def _loss_forward(xp: Any, log_probs: Any, *given: Any, blank: int, zero_infinity: bool) -> Any:
    _checked(log_probs, *given)
    states = States.of(log_probs, *given, blank=blank)
    found = likelihood(states, ahead(states))
    found = np.where(found == -np.inf, 0.0, found) if zero_infinity else found
    return -found.astype(log_probs.dtype, copy=False)


def _state_shares(states: States, zero_infinity: bool) -> Any:
    """At each time, the share of all paths that go through each state: from α and β."""
    sums = ahead(states)
    found = likelihood(states, sums)[:, None]
    with np.errstate(invalid="ignore"):
        shares = np.exp(sums + back(states) - found)
    shares = np.where(found == -np.inf, 0.0 if zero_infinity else np.nan, shares)
    shares[np.arange(len(sums))[:, None] >= states.times] = 0
    return shares


def _shares_forward(xp: Any, log_probs: Any, *given: Any, blank: int, zero_infinity: bool) -> Any:
    """At each time, the share of all paths that name each class."""
    states = States.of(log_probs, *given, blank=blank)
    shares = _state_shares(states, zero_infinity)
    return by_class(states, shares.astype(log_probs.dtype, copy=False), log_probs.shape[2])


def _change_forward(
    xp: Any, change: Any, log_probs: Any, *given: Any, blank: int, zero_infinity: bool
) -> Any:
    """The change of these shares for a change of the logarithms of probabilities."""
    states = States.of(log_probs, *given, blank=blank)
    moved = np.take_along_axis(change, states.classes[None], 2)
    sums = ahead(states)
    d_sums = ahead_change(states, sums, moved)
    d_back = back_change(states, back(states), moved)
    shares = _state_shares(states, zero_infinity)
    total = likelihood_change(states, sums, d_sums)[:, None] if len(sums) else 0.0
    out = shares * (d_sums + d_back - total)
    return by_class(states, out.astype(change.dtype, copy=False), log_probs.shape[2])


# ---- the ops ------------------------------------------------------------------------------------

_TWICE = NotDifferentiable(
    "ctc_loss: got a third derivative; the sums over paths have rules for the first two only"
)
_FIXED = Zero("labels and lengths do not change by a little")


def _batch(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> tuple[Any, int]:
    """The batch goes among the samples: the second of three axes, or the first one."""
    lined_up = in_front(args, axes)
    size = lined_up[0].shape[0]
    folded = []
    for x in lined_up:
        lead = 1 if len(x.shape) == 4 else 0
        x = moveaxis(x, 0, lead)
        folded.append(reshape(x, (*x.shape[:lead], size * x.shape[lead + 1], *x.shape[lead + 2 :])))
    out = call(op, folded, params)
    lead = 1 if len(out.shape) == 3 else 0
    samples = out.shape[lead] // size
    return reshape(out, (*out.shape[:lead], size, samples, *out.shape[lead + 1 :])), lead


# The second derivative, a symmetric map of a change
_change: Any = general(
    "ctc_change",
    _change_forward,
    vjps=(
        lambda ct, _out, _changed, *given, **params: _change(ct, *given, **params),
        _TWICE,
        *(_FIXED,) * 3,
    ),
    jvp=lambda tangents, _out, _changed, *given, **params: (
        _change(tangents[0], *given, **params) if tangents[1] is None else _TWICE(tangents[1], _out)
    ),
    batch=_batch,
)
_shares = general(
    "ctc_shares",
    _shares_forward,
    vjps=(lambda ct, _out, *given, **params: _change(ct, *given, **params), *(_FIXED,) * 3),
    self_adjoint=True,
    batch=_batch,
)


def _loss_vjp(ct: Any, _out: Any, *given: Any, **params: Any) -> Any:
    return -reshape(ct, (ct.shape[0], 1)) * _shares(*given, **params)


def _loss_jvp(tangents: Any, _out: Any, *given: Any, **params: Any) -> Any:
    return -sum_over(_shares(*given, **params) * tangents[0], axis=(0, 2), keepdims=False)


# d loss = −Σ share·d log p
_losses = general(
    "ctc_loss",
    _loss_forward,
    infer=lambda log_probs, *_others, **_params: Aval(log_probs.shape[1:2], log_probs.dtype),
    vjps=(_loss_vjp, *(_FIXED,) * 3),
    jvp=_loss_jvp,
    batch=_batch,
)


# ---- the public function ------------------------------------------------------------------------


def _in_rows(targets: Any, lengths: Any) -> Any:
    """Concatenated targets, each in a row of its own."""
    known = known_values(lengths)
    if known is None or known.shape != lengths.shape:
        raise UnsupportedError(
            "ctc_loss: got targets along one axis while a function is traced or batched; give "
            "them in rows, of shape (samples, length)"
        )
    if known.sum() != targets.shape[0]:
        raise ShapeError(
            f"ctc_loss: got {targets.shape[0]} labels along one axis and target_lengths that add "
            f"up to {known.sum()}, expected as many"
        )
    starts = np.cumsum(known) - known
    places = starts[:, None] + np.arange(int(known.max(initial=0)))
    if not targets.shape[0]:
        return np.zeros(places.shape, np.int64)
    return take(targets, np.minimum(places, targets.shape[0] - 1), 0)


def ctc_loss(
    log_probs: ArrayLike,
    targets: ArrayLike,
    /,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Array:
    """Negative logarithms of the probabilities of label sequences that are not aligned.

    The gradient is that of this function of `log_probs`, whatever these are. PyTorch's differs, but
    gives the same after a `log_softmax`.

    Args:
        log_probs: Logarithms of probabilities, of shape (times, samples, classes), or (times,
            classes) for a single sample.
        targets: The labels, of shape (samples, length), or of all samples one after the other.
        input_lengths: How many time steps each sample has.
        target_lengths: How many labels each sample has.
        blank: The class that stands for no label.
        reduction: "mean" of the losses, each divided by its number of labels; "sum", or "none".
        zero_infinity: Whether a target that is too long for its sample counts as 0, not as inf.

    Raises:
        ShapeError: The shapes do not fit.
        IndexingError: There is no such label.
        ArgumentError: A length is too large, or there is no such reduction.
        NotDifferentiableError: A third derivative is asked for.

    >>> log_probs = np.log(np.full((2, 1, 3), 1 / 3))
    >>> gt.nn.ctc_loss(log_probs, np.array([[1]]), [2], [1])  # 3 of 9 paths: 11, 01 and 10
    np.float64(1.09861228866...)
    """
    check_reduction("ctc_loss", reduction)
    (log_probs,), targets = floating(log_probs), as_indices(targets, "ctc_loss")
    lengths = [as_indices(x, "ctc_loss") for x in (input_lengths, target_lengths)]
    single = len(log_probs.shape) == 2
    if single:
        log_probs = reshape(log_probs, (log_probs.shape[0], 1, log_probs.shape[1]))
        lengths = [reshape(x, (1,)) for x in lengths]
        targets = reshape(targets, (1, math.prod(targets.shape)))
    samples = log_probs.shape[1] if len(log_probs.shape) == 3 else -1
    if any(x.shape != (samples,) for x in lengths):
        raise ShapeError(
            f"ctc_loss: got log_probs of shape {log_probs.shape} and lengths of shapes "
            f"{lengths[0].shape} and {lengths[1].shape}, expected (times, samples, classes), and a "
            "length for each sample"
        )
    if not 0 <= blank < log_probs.shape[2]:
        raise ArgumentError(f"ctc_loss: got blank={blank}; there are {log_probs.shape[2]} classes")
    rows = _in_rows(targets, lengths[1]) if len(targets.shape) == 1 else targets
    if len(rows.shape) != 2 or rows.shape[0] != samples:
        raise ShapeError(
            f"ctc_loss: got targets of shape {targets.shape}, expected ({samples}, length), or one "
            "axis"
        )
    losses = _losses(log_probs, rows, *lengths, blank=blank, zero_infinity=bool(zero_infinity))
    if reduction == "mean":
        losses = losses / clip(astype(lengths[1], losses.dtype), 1.0)
    return reduced(reshape(losses, ()) if single else losses, reduction)
