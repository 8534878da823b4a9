"""Sums over paths of `ctc_loss` on arrays, in log space, and how they change to first order.

A path names a class or the blank at each time; it stands for the labels that are left without
repetitions and blanks. All paths that stand for a target go through its *states*: its labels with
blanks around them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class States(NamedTuple):
    """The states of each sample.

    Attributes:
        classes: Which class each state is, of shape (samples, states).
        jumps: Whether a state can follow the one before the last: other label, no blank.
        last: The number of the last state of each sample, a blank.
        times: How many time steps each sample has.
        emitted: The logarithms of probabilities of states, of shape (times, samples, states).
    """

    classes: Any
    jumps: Any
    last: Any
    times: Any
    emitted: Any

    @classmethod
    def of(
        cls, log_probs: Any, targets: Any, times: Any, target_lengths: Any, *, blank: int
    ) -> States:
        """The states of targets that are (samples, length), and their probabilities."""
        samples, longest = targets.shape
        classes = np.full((samples, 2 * longest + 1), blank, np.int64)
        # Targets may hold any numbers beyond their ends.
        inside = np.arange(longest) < target_lengths[:, None]
        classes[:, 1::2] = np.where(inside, targets, blank)
        jumps = np.zeros(classes.shape, np.bool_)
        jumps[:, 3::2] = classes[:, 3::2] != classes[:, 1:-2:2]
        emitted = np.take_along_axis(log_probs, classes[None], 2)
        return cls(classes, jumps, 2 * target_lengths, times, emitted)


def _added(*terms: Any) -> Any:
    """Logarithm of the sum of exponentials of arrays, which may be −inf."""
    top = terms[0]
    for term in terms[1:]:
        top = np.maximum(top, term)
    base = np.where(top == -np.inf, 0, top)
    with np.errstate(divide="ignore"):
        return np.log(sum(np.exp(term - base) for term in terms)) + base


def _shares(terms: Any) -> list[Any]:
    """The share of each term in a sum of exponentials; 0 if the sum is 0."""
    total = _added(*terms)
    total = np.where(total == -np.inf, 0, total)
    return [np.exp(term - total) for term in terms]


def _moved(x: Any, by: int, fill: float = -np.inf) -> Any:
    """The array shifted by `by` places along the last axis, with `fill` in the gap."""
    out = np.full_like(x, fill)
    if by > 0:
        out[..., by:] = x[..., :-by]
    else:
        out[..., :by] = x[..., -by:]
    return out


def _steps(x: Any, jumps: Any, back: int) -> tuple[Any, Any, Any]:
    """Logarithms of the sums that reach each state: from itself, from its neighbour, by a jump."""
    return x, _moved(x, back), np.where(jumps, _moved(x, 2 * back), -np.inf)


def _change(x: Any, d: Any, jumps: Any, back: int) -> Any:
    """The change of the sum of all steps if the sums they come from change by `d`."""
    stay, step, jump = _shares(_steps(x, jumps, back))
    return stay * d + step * _moved(d, back, 0.0) + jump * _moved(d, 2 * back, 0.0)


def _jumps_back(states: States) -> Any:
    """Whether a state can go to the one after the next."""
    jumps = np.zeros_like(states.jumps)
    jumps[:, :-2] = states.jumps[:, 2:]
    return jumps


def ahead(states: States) -> Any:
    """Sums over paths up to each time and state; beyond the end of a sample, as at its end."""
    emitted = states.emitted
    out = np.full(emitted.shape, -np.inf, emitted.dtype)
    out[:1, :, :2] = emitted[:1, :, :2]
    for t in range(1, len(emitted)):
        now = _added(*_steps(out[t - 1], states.jumps, 1)) + emitted[t]
        out[t] = np.where((t < states.times)[:, None], now, out[t - 1])
    return out


def ahead_change(states: States, sums: Any, d_emitted: Any) -> Any:
    """How these sums change with what is emitted."""
    out = np.zeros_like(sums)
    out[:1, :, :2] = d_emitted[:1, :, :2]
    for t in range(1, len(sums)):
        now = _change(sums[t - 1], out[t - 1], states.jumps, 1) + d_emitted[t]
        out[t] = np.where((t < states.times)[:, None], now, out[t - 1])
    return out


def back(states: States) -> Any:
    """Sums over paths from each time and state to the end, without the time itself."""
    emitted, jumps = states.emitted, _jumps_back(states)
    places, last = np.arange(emitted.shape[2]), states.last[:, None]
    ends = np.where((places == last) | (places == last - 1), 0.0, -np.inf)
    out = np.empty_like(emitted)
    out[-1:] = ends
    for t in range(len(emitted) - 2, -1, -1):
        now = _added(*_steps(out[t + 1] + emitted[t + 1], jumps, -1))
        out[t] = np.where((t + 1 < states.times)[:, None], now, ends)
    return out


def back_change(states: States, sums: Any, d_emitted: Any) -> Any:
    """How these sums change with what is emitted."""
    emitted, jumps = states.emitted, _jumps_back(states)
    out = np.zeros_like(sums)
    for t in range(len(emitted) - 2, -1, -1):
        d = out[t + 1] + d_emitted[t + 1]
        now = _change(sums[t + 1] + emitted[t + 1], d, jumps, -1)
        out[t] = np.where((t + 1 < states.times)[:, None], now, 0.0)
    return out


def _ends(states: States, sums: Any, fill: float) -> tuple[Any, Any]:
    """The sums at the last two states of each sample; `fill` where there is only one state."""
    every = np.arange(len(states.last))
    label = sums[-1][every, np.maximum(states.last - 1, 0)]
    return sums[-1][every, states.last], np.where(states.last > 0, label, fill)


def likelihood(states: States, sums: Any) -> Any:
    """Logarithm of the probability of each sample's target, from the sums up to its end."""
    nothing = np.where(states.last == 0, 0.0, -np.inf).astype(sums.dtype)
    if not len(sums):
        return nothing
    return np.where(states.times > 0, _added(*_ends(states, sums, -np.inf)), nothing)


def likelihood_change(states: States, sums: Any, d_sums: Any) -> Any:
    """How that changes with the sums."""
    parts = zip(_shares(_ends(states, sums, -np.inf)), _ends(states, d_sums, 0.0), strict=True)
    return sum(share * d for share, d in parts)


def by_class(states: States, values: Any, classes: int) -> Any:
    """Values of states added up for each class."""
    out = np.zeros((*values.shape[:2], classes), values.dtype)
    for sample, own in enumerate(states.classes):
        np.add.at(out[:, sample].T, own, values[:, sample].T)
    return out
