"""Samples of `ctc_loss`; the reference goes through all paths."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import scipy.special

import gradtape as gt
from gradtape.errors import ArgumentError, IndexingError, ShapeError
from opcases.case import At, OpCase, Raises, draw

nn = gt.nn
LOGITS = draw(4, 3, 3)
LOG_PROBS = scipy.special.log_softmax(LOGITS, 2)
TARGETS = np.array([[1, 2], [2, 2], [1, 0]])
TIMES, LABELS = np.array([4, 3, 2]), np.array([2, 2, 1])


def meaning(path: Any, blank: int) -> list[int]:
    """What is left of a path without repetitions and blanks."""
    return [c for c, _ in itertools.groupby(path) if c != blank]


def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Any:
    if np.ndim(targets) == 1 and log_probs.ndim == 3:
        targets = np.split(targets, np.cumsum(target_lengths)[:-1])
    if log_probs.ndim == 2:
        log_probs, targets = log_probs[:, None], [targets]
        input_lengths, target_lengths = [input_lengths], [target_lengths]
    losses = []
    for n, (labels, times, count) in enumerate(
        zip(targets, input_lengths, target_lengths, strict=True)
    ):
        paths = itertools.product(range(log_probs.shape[2]), repeat=int(times))
        right = [p for p in paths if meaning(p, blank) == list(labels[:count])]
        total = sum(np.exp(sum(log_probs[t, n, c] for t, c in enumerate(p))) for p in right)
        with np.errstate(divide="ignore"):
            loss = -np.log(total)
        loss = 0.0 if zero_infinity and np.isinf(loss) else loss
        losses.append(loss / max(count, 1) if reduction == "mean" else loss)
    out = np.array(losses, log_probs.dtype)
    out = out if len(out) > 1 or reduction != "none" else out[0]
    return out if reduction == "none" else out.sum() / (out.size if reduction == "mean" else 1)


def of_logits(x: Any, *args: Any, **params: Any) -> Any:
    """PyTorch's gradient is the right one behind a softmax only."""
    return nn.ctc_loss(gt.log_softmax(x, -1), *args, **params)


def ref_of_logits(x: Any, *args: Any, **params: Any) -> Any:
    return ctc_loss(scipy.special.log_softmax(x, -1), *args, **params)


def torch_of_logits(torch: Any, x: Any, *args: Any, **params: Any) -> Any:
    for name in {"input_lengths", "target_lengths"} & params.keys():
        params = params | {name: torch.tensor(params[name])}
    return torch.nn.functional.ctc_loss(torch.log_softmax(x, -1), *args, **params)


def case(function: Any, args: Any, ref: Any, **kwargs: Any) -> OpCase:
    kwargs.setdefault("ops", ("ctc_loss", "ctc_shares", "ctc_change"))
    torch = torch_of_logits if function is of_logits else None
    return OpCase(function, args, ref, second_order=False, rtol=64, torch=torch, **kwargs)


GIVEN = (TARGETS, TIMES, LABELS)

CASES = [
    case(
        nn.ctc_loss,
        (LOG_PROBS, *GIVEN),
        ctc_loss,
        raises=[
            Raises((LOG_PROBS[0, 0], TARGETS, TIMES, LABELS), ShapeError, "got log_probs of shape"),
            Raises((LOG_PROBS, TARGETS[:2], TIMES, LABELS), ShapeError, "got targets of shape"),
            Raises((LOG_PROBS, TARGETS, TIMES[:2], LABELS), ShapeError, "got log_probs of shape"),
            Raises((LOG_PROBS, TARGETS + 2, TIMES, LABELS), IndexingError, "got label 3"),
            Raises((LOG_PROBS, TARGETS, TIMES + 1, LABELS), ArgumentError, "got input_lengths"),
            Raises((LOG_PROBS, *GIVEN, 3), ArgumentError, "got blank=3"),
            Raises((LOG_PROBS, *GIVEN, 0, "max"), ArgumentError, "got reduction='max'"),
        ],
    ),
    case(of_logits, (LOGITS, *GIVEN), ref_of_logits),
    case(
        of_logits,
        (LOGITS, np.array([0, 2, 2, 2, 0])),
        ref_of_logits,
        params={"input_lengths": TIMES, "target_lengths": LABELS, "blank": 1, "reduction": "sum"},
        label="joined",
        raises=[
            Raises(
                (LOGITS, np.ones(2, int)),
                ShapeError,
                "got 2 labels along one axis",
                {"input_lengths": TIMES, "target_lengths": LABELS},
            )
        ],
    ),
    case(
        of_logits,
        (LOGITS[:, 0], np.array([2, 1]), np.array(4), np.array(2)),
        ref_of_logits,
        params={"reduction": "none"},
        label="one",
    ),
    case(
        of_logits,
        (LOGITS, np.array([[1, 2], [2, 2], [1, 2]]), TIMES, np.array([0, 1, 2])),
        ref_of_logits,
        params={"reduction": "none"},
        label="no-labels",
    ),
    case(
        of_logits,
        (LOGITS[:2], TARGETS, np.array([2, 2, 1]), LABELS),
        ref_of_logits,
        params={"reduction": "sum", "zero_infinity": True},
        label="impossible",  # a repetition needs a blank in between
        at=[
            At(
                (np.zeros((1, 1, 2)), np.array([[1, 1]]), np.array([1]), np.array([2])),
                (np.zeros((1, 1, 2)),),
                {"zero_infinity": True},
            )
        ],
    ),
]

NOT_NATIVE = dict.fromkeys(
    ("ctc_loss", "ctc_shares", "ctc_change"), "a recursion over times and states"
)
