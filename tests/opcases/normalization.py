"""Samples of the normalizations of `gradtape.nn`."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ArgumentError, AxisError, DTypeError, ShapeError
from opcases.case import At, OpCase, Raises, draw

nn = gt.nn
# Half precision is computed in single precision, and rounded once.
HALF = (np.float64, np.float32, np.float16)


def wide(x: Any) -> Any:
    return x.astype(np.float32) if x.dtype == np.float16 else x


def standardized(x: Any, axes: Any, eps: float) -> Any:
    x, dtype = wide(x), x.dtype
    around = x - x.mean(axes, keepdims=True)
    out = around / np.sqrt((around * around).mean(axes, keepdims=True) + x.dtype.type(eps))
    return out.astype(dtype)


def per_channel(given: Any, x: Any) -> Any:
    return given.reshape(-1, *(1,) * (x.ndim - 2))


def scaled(out: Any, weight: Any, bias: Any) -> Any:
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


def layer_norm(x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    count = 1 if isinstance(shape, int) else len(shape)
    return scaled(standardized(x, tuple(range(-count, 0)), eps), weight, bias)


def rms_norm(x: Any, shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    eps = np.finfo(x.dtype).eps if eps is None else x.dtype.type(eps)
    axes = tuple(range(-1 if isinstance(shape, int) else -len(shape), 0))
    return scaled(x / np.sqrt((x * x).mean(axes, keepdims=True) + eps), weight, None)


def group_norm(x: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    parts = x.reshape(x.shape[0], groups, -1 if x.size else 1)
    out = standardized(parts, 2, eps).reshape(x.shape)
    return scaled(out, *(None if p is None else per_channel(p, x) for p in (weight, bias)))


def batch_norm(x: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    out = standardized(x, (0, *range(2, x.ndim)), eps)
    return scaled(out, *(None if p is None else per_channel(p, x) for p in (weight, bias)))


def by_statistics(x: Any, m: Any, v: Any, weight: Any = None, bias: Any = None) -> Any:
    m, v = per_channel(m, x), per_channel(v, x)
    out = (x - m) / np.sqrt(v + x.dtype.type(1e-5))
    return scaled(out, *(None if p is None else per_channel(p, x) for p in (weight, bias)))


def trained(x: Any, *weight_and_bias: Any) -> Any:
    return nn.batch_norm(x, None, None, *weight_and_bias, training=True)


def torch_trained(torch: Any, x: Any, *weight_and_bias: Any) -> Any:
    return torch.nn.functional.batch_norm(x, None, None, *weight_and_bias, training=True)


STATISTICS = (draw(2, seed=3), np.array([0.5, 1e-6]))


def inferred(x: Any, weight: Any, bias: Any) -> Any:
    return nn.batch_norm(x, *(p.astype(x.dtype) for p in STATISTICS), weight, bias)


def of_instances(x: Any, *weight_and_bias: Any) -> Any:
    return nn.instance_norm(x, None, None, *weight_and_bias)


def torch_of_instances(torch: Any, x: Any, *weight_and_bias: Any) -> Any:
    return torch.nn.functional.instance_norm(x, None, None, *weight_and_bias)


def ref_of_instances(x: Any, *weight_and_bias: Any) -> Any:
    return group_norm(x, x.shape[1], *weight_and_bias)


def fixed_instances(x: Any, m: Any, v: Any) -> Any:
    return nn.instance_norm(x, m, v, use_input_stats=False)


SAME = np.full((2, 3), 4.0)  # rows without variance

LAST = [
    OpCase(
        nn.layer_norm,
        (draw(2, 3), 3),
        layer_norm,
        ops=("standardize",),
        dtypes=HALF,
        at=[At((SAME, 3), (np.zeros((2, 3)),))],
        raises=[
            Raises((draw(2, 3), 2), ShapeError, "layer_norm: got shape .2, 3. and normalized"),
            Raises((draw(2, 3) * 1j, 3), DTypeError, "layer_norm: got complex128.*expected real"),
            Raises((draw(2, 3), 3, draw(2)), ShapeError, "layer_norm: got weight of shape"),
        ],
        torch=lambda torch, x, n: torch.nn.functional.layer_norm(x, (n,)),
    ),
    OpCase(
        nn.layer_norm,
        (draw(3, 4, seed=1), (4,), draw(4), draw(4, seed=2)),
        layer_norm,
        {"eps": 1e-3},
        ops=("standardize_affine",),
        label="affine",
        at=[
            At(
                (SAME, (3,), np.full(3, 2.0), draw(3)),
                (np.zeros((2, 3)), np.zeros(3), np.full(3, 2.0)),
            )
        ],
        torch="nn.functional.layer_norm",
    ),
    OpCase(
        nn.layer_norm,
        (draw(2, 2, 3), (2, 3), draw(2, 3)),
        layer_norm,
        ops=("standardize_scaled",),
        label="weight",
        torch="nn.functional.layer_norm",
    ),
    OpCase(
        nn.layer_norm,
        (draw(2, 3), (3,)),
        lambda x, shape, bias: layer_norm(x, shape, None, bias),
        {"bias": draw(3).astype(np.float16)},
        ops=("standardize",),
        label="bias",
        torch=lambda torch, x, shape, bias: torch.nn.functional.layer_norm(
            x, shape, None, torch.tensor(bias, dtype=torch.float64)
        ),
    ),
    OpCase(
        nn.layer_norm,
        (draw(0, 3), (3,), draw(3), draw(3)),
        layer_norm,
        ops=("standardize_affine",),
        label="empty",
        torch="nn.functional.layer_norm",
    ),
    OpCase(
        nn.layer_norm,
        (draw(2, 1), (1,)),
        lambda x, shape: 0 * np.abs(x),
        ops=("standardize",),
        label="one",
        torch="nn.functional.layer_norm",
    ),
    OpCase(
        nn.rms_norm,
        (draw(2, 3), 3),
        rms_norm,
        ops=("standardize",),
        at=[At((np.zeros((1, 2)), 2), (np.full((1, 2), 2.0),), {"eps": 0.25})],
        raises=[Raises((draw(2, 3), 2), ShapeError, "rms_norm: got shape .2, 3. and")],
        torch=lambda torch, x, n, **params: torch.nn.functional.rms_norm(x, (n,), **params),
    ),
    OpCase(
        nn.rms_norm,
        (draw(2, 2, 3), (2, 3), draw(2, 3), 1e-3),
        rms_norm,
        ops=("standardize_scaled",),
        label="weight",
        torch="nn.functional.rms_norm",
    ),
]

CHANNELS = [
    OpCase(
        trained,
        (draw(3, 2, 2),),
        batch_norm,
        ops=("standardize",),
        dtypes=HALF,
        raises=[
            Raises((draw(1, 2),), ShapeError, "batch_norm: got shape .1, 2.; in training"),
            Raises((draw(3),), ShapeError, "batch_norm: got shape .3,., expected at least two"),
            Raises((draw(3, 2), draw(3)), ShapeError, "batch_norm: got weight of shape .3,."),
        ],
        torch=torch_trained,
    ),
    OpCase(
        trained,
        (draw(3, 2), draw(2), draw(2, seed=1)),
        batch_norm,
        ops=("standardize_affine",),
        label="affine",
        at=[
            At(
                (np.full((3, 2), 4.0), draw(2), draw(2)),
                (np.zeros((3, 2)), np.zeros(2), np.full(2, 3.0)),
            )
        ],
        torch=torch_trained,
    ),
    OpCase(
        nn.batch_norm,
        (draw(3, 2, 2), draw(2), np.array([0.5, 0.7])),
        by_statistics,
        ops=("scale_rows",),
        dtypes=(np.float64, np.float32),
        batched=False,
        rtol=64,
        raises=[Raises((draw(3, 2), draw(2)), ArgumentError, "batch_norm: got no running")],
        label="running",
    ),
    OpCase(
        nn.batch_norm,
        (draw(3, 2), np.zeros(2), np.ones(2), draw(2), draw(2, seed=1)),
        by_statistics,
        ops=("scale_rows",),
        label="running-affine",
    ),
    OpCase(
        inferred,
        (draw(3, 2, 2), draw(2), draw(2, seed=1)),
        lambda x, w, b: by_statistics(x, *(p.astype(x.dtype) for p in STATISTICS), w, b),
        ops=("scale_rows",),
        rtol=64,
        torch=lambda torch, x, w, b: torch.nn.functional.batch_norm(
            x, *map(torch.tensor, STATISTICS), w, b
        ),
    ),
    OpCase(
        of_instances,
        (draw(2, 2, 3),),
        ref_of_instances,
        ops=("standardize",),
        at=[At((np.full((1, 2, 2), 4.0),), (np.zeros((1, 2, 2)),))],
        raises=[
            Raises((draw(2, 3),), ShapeError, "instance_norm: got shape .2, 3."),
            Raises((draw(2, 3, 1),), ShapeError, "instance_norm: got .*more than one place"),
        ],
        torch=torch_of_instances,
    ),
    OpCase(
        of_instances,
        (draw(2, 2, 1, 3), draw(2), draw(2, seed=1)),
        ref_of_instances,
        ops=("standardize_affine",),
        label="affine",
        torch=torch_of_instances,
    ),
    OpCase(
        fixed_instances,
        (draw(2, 2, 3), draw(2), draw(2, low=0.5)),
        by_statistics,
        ops=("scale_rows",),
        rtol=64,
        raises=[Raises((draw(2, 2, 3), None, None), ArgumentError, "instance_norm: got no run")],
    ),
    OpCase(
        nn.group_norm,
        (draw(2, 4, 2), 2),
        group_norm,
        ops=("standardize",),
        dtypes=HALF,
        at=[At((draw(2, 4), 4), (np.zeros((2, 4)),))],  # groups of one element
        raises=[
            Raises((draw(2, 4), 3), ShapeError, "group_norm: got 4 channels and num_groups=3"),
            Raises((draw(4), 2), ShapeError, "group_norm: got shape .4,."),
        ],
        torch="nn.functional.group_norm",
    ),
    OpCase(
        nn.group_norm,
        (draw(2, 4, 2), 2, draw(4), draw(4, seed=1), 1e-3),
        group_norm,
        ops=("standardize_affine",),
        label="affine",
        torch="nn.functional.group_norm",
    ),
    OpCase(
        nn.group_norm,
        (draw(0, 4, 2), 2, draw(4), draw(4, seed=1)),
        group_norm,
        ops=("standardize_affine",),
        label="empty",
        torch="nn.functional.group_norm",
    ),
]


def normalize(x: Any, p: float = 2.0, dim: int = 1) -> Any:
    return x / np.maximum(np.linalg.norm(x, p, dim, keepdims=True), 1e-12)


def local_response_norm(x: Any, size: int, alpha: float, beta: float, k: float) -> Any:
    channels = x.shape[1]
    squares = np.zeros_like(x)
    for c in range(channels):
        low, high = max(0, c - size // 2), min(channels, c + (size - 1) // 2 + 1)
        squares[:, c] = (x[:, low:high] ** 2).sum(1)
    return x / (k + alpha / size * squares) ** beta


VECTORS = [
    OpCase(
        nn.normalize,
        (draw(2, 3),),
        normalize,
        ops=("unit_vectors",),
        at=[At((np.zeros((1, 2)),), (np.full((1, 2), 1e12),))],
        raises=[Raises((draw(3),), AxisError, "normalize: got axis 1")],
        torch="nn.functional.normalize",
    ),
    OpCase(
        nn.normalize,
        (draw(2, 3),),
        normalize,
        {"p": 3.0, "dim": 0},
        ops=("vector_norm",),
        label="p",
        torch="nn.functional.normalize",
    ),
    OpCase(
        nn.normalize,
        (draw(2, 3),),
        normalize,
        {"p": 1.0, "dim": -1},
        ops=("abs",),
        label="one",
        torch="nn.functional.normalize",
    ),
    OpCase(
        nn.local_response_norm,
        (draw(2, 5, 2),),
        local_response_norm,
        {"size": 4, "alpha": 0.5, "beta": 0.75, "k": 1.5},
        ops=("local_response_norm", "channel_sums"),
        raises=[
            Raises((draw(2, 3), 2), ShapeError, "local_response_norm: got shape .2, 3."),
            Raises((draw(2, 3, 1), 0), ArgumentError, "local_response_norm: got size=0"),
        ],
        torch="nn.functional.local_response_norm",
    ),
    OpCase(
        nn.local_response_norm,
        (draw(1, 2, 1, 2),),
        local_response_norm,
        {"size": 7, "alpha": 0.5, "beta": 1.0, "k": 2.0},
        label="wide",
        torch="nn.functional.local_response_norm",
    ),
]

CASES = [*LAST, *CHANNELS, *VECTORS]
