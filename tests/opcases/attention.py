"""Samples of attention, with masks of all kinds."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ArgumentError, DTypeError, ShapeError
from gradtape.ops.nn.dropout import draw_kept
from opcases.case import At, OpCase, Raises, draw

nn = gt.nn
Q, K, V = draw(2, 3, 2), draw(2, 4, 2, seed=1), draw(2, 4, 3)
OPEN = np.array([[1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 0, 0]], bool)  # none to the second query
ADDED = np.where(OPEN, draw(3, 4), -np.inf)
NAMES = ("attention", "attention_pull")


def attention(
    q: Any,
    k: Any,
    v: Any,
    mask: Any = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    kept: Any = 1.0,
) -> Any:
    if enable_gqa:
        k, v = (np.repeat(x, q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        mask = np.tri(*scores.shape[-2:], dtype=bool)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = weights.sum(-1, keepdims=True)
    weights = weights / np.where(total == 0, 1, total) * kept
    return (weights @ v).astype(q.dtype)


def torch_attention(torch: Any, q: Any, k: Any, v: Any, *mask: Any, **params: Any) -> Any:
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, *mask, **params)


def torch_masked(torch: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    """Where nothing is open, PyTorch's own gives 0 as well."""
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, mask)


def seeded(q: Any, k: Any, v: Any, **params: Any) -> Any:
    generator = gt.random.Generator(5)
    return nn.scaled_dot_product_attention(q, k, v, **params, generator=generator)


def ref_seeded(q: Any, k: Any, v: Any, dropout_p: float) -> Any:
    kept = draw_kept((2, 3, 4), dropout_p, gt.random.Generator(5))
    return attention(q, k, v, kept=kept / (1 - dropout_p))


def case(*args: Any, **kwargs: Any) -> OpCase:
    kwargs.setdefault("torch", torch_attention)
    kwargs.setdefault("ops", NAMES)
    return OpCase(nn.scaled_dot_product_attention, *args, rtol=64, **kwargs)


CASES = [
    case(
        (Q, K, V),
        attention,
        dtypes=(np.float64, np.float32),
        at=[
            At(
                (np.array([[1e3, 0.0]]), np.eye(2), np.array([[1.0], [2.0]])),
                ([[0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]], [[1.0], [0.0]]),
            )
        ],
        raises=[
            Raises((Q, K[..., :1], V), ShapeError, "attention: got shapes"),
            Raises((Q, K, V[:, :2]), ShapeError, "attention: got shapes"),
            Raises((Q * 1j, K, V), DTypeError, "attention: got complex128.*expected real"),
            Raises((Q, K, V), ArgumentError, "got dropout_p=2", {"dropout_p": 2.0}),
            Raises((Q, K, V, OPEN), ArgumentError, "got attn_mask and", {"is_causal": True}),
            Raises((Q, K, V, OPEN.astype(int)), DTypeError, "got a mask of int64"),
            Raises((Q, K, V, OPEN[:2]), ShapeError, "got attn_mask of shape .2, 4."),
        ],
    ),
    case(
        (Q, K, V),
        attention,
        {"is_causal": True, "scale": 0.3},
        label="causal",
        ops=(*NAMES, "up_to_own"),
    ),
    case((Q, K, V, OPEN), attention, label="open", fixed=(3,), torch=torch_masked),
    case((Q, K, V, draw(2, 1, 4)), attention, label="added"),
    case((draw(2, 2, 3, 2), K, V, draw(2, 1, 3, 4)), attention, label="broadcast"),
    case(
        (Q, K, V),
        lambda q, k, v, attn_mask: attention(q, k, v, attn_mask.astype(q.dtype)),
        {"attn_mask": ADDED},
        label="minus-infinity",
        torch=lambda torch, q, k, v, attn_mask: torch_masked(
            torch, q, k, v, torch.tensor(attn_mask)
        ),
    ),
    case(
        (draw(4, 3, 2), K, V),
        attention,
        {"enable_gqa": True},
        label="groups",
        raises=[
            Raises(
                (draw(3, 3, 2), K, V),
                ShapeError,
                "expected heads along axis -3",
                {"enable_gqa": True},
            )
        ],
    ),
    case((Q[0], K[0], V[0]), attention, label="one-head"),
    case((draw(0, 3, 2), draw(0, 4, 2), draw(0, 4, 3)), attention, label="empty"),
    case(
        (Q.astype(np.float16), K.astype(np.float16), V.astype(np.float16)),
        lambda q, k, v: attention(*(x.astype(np.float32) for x in (q, k, v))).astype(np.float16),
        label="half",
        dtypes=(np.float64,),
        differences=False,
        batched=False,
        second_order=False,
        torch=None,
    ),
    OpCase(seeded, (Q, K, V), ref_seeded, {"dropout_p": 0.4}, ops=NAMES, rtol=64),
]
