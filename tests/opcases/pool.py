"""Samples of pooling by the largest and smallest elements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ArgumentError, DTypeError, IndexingError, ShapeError
from opcases.case import At, OpCase, Raises, draw

NOT_NATIVE = {
    "max_unpool": "has to see that no index repeats",
    "fractional_indices": "windows are where random numbers say",
}
F = gt.nn.functional


def numbers(value: Any, rank: int) -> tuple[int, ...]:
    return (value,) * rank if isinstance(value, int) else tuple(value)


def pooled(
    x: Any,
    rank: int,
    combine: Callable[[Any, Any], Any],
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:
    """Pooling window by window: `combine` gets the places of a window per axis, and the array."""
    kernel = numbers(kernel_size, rank)
    strides = kernel if stride is None else numbers(stride, rank)
    pads, steps = numbers(padding, rank), numbers(dilation, rank)
    places = []
    for n, k, s, p, d in zip(x.shape[-rank:], kernel, strides, pads, steps, strict=True):
        room = n + 2 * p - d * (k - 1) - 1
        count = (math.ceil(room / s) if ceil_mode else room // s) + 1
        count -= ceil_mode and (count - 1) * s >= n + p
        places.append([[i * s - p + d * tap for tap in range(k)] for i in range(count)])
    return over_windows(x, places, combine)


def over_windows(x: Any, places: Any, combine: Callable[[Any, Any], Any]) -> Any:
    """The result of a function for each combination of windows along the axes."""
    counts, rank = [len(windows) for windows in places], len(places)
    results = [combine(x, window) for window in itertools.product(*places)]
    lead = x.shape[:-rank]
    return np.moveaxis(np.array(results), 0, -1).reshape((*lead, *counts)).astype(results[0].dtype)


def seen(x: Any, window: Any) -> Any:
    """What a window sees, its spatial axes flattened."""
    sizes = x.shape[-len(window) :]
    inside = [[i for i in one if 0 <= i < n] for one, n in zip(window, sizes, strict=True)]
    places = np.ix_(*inside)
    return x[(..., *places)].reshape(*x.shape[: -len(window)], math.prod(map(len, inside)))


def flat_places(x: Any, window: Any) -> Any:
    sizes = x.shape[-len(window) :]
    inside = [[i for i in one if 0 <= i < n] for one, n in zip(window, sizes, strict=True)]
    return np.arange(math.prod(sizes)).reshape(sizes)[np.ix_(*inside)].reshape(-1)


# ---- the largest and the smallest ---------------------------------------------------------------


def extreme(rank: int, largest: bool) -> Callable[..., Any]:
    """Max or min pooling."""
    better, where = (np.max, np.argmax) if largest else (np.min, np.argmin)

    def reference(x: Any, *args: Any, return_indices: bool = False, **params: Any) -> Any:
        values = pooled(x, rank, lambda x, w: better(seen(x, w), axis=-1), *args, **params)
        if not return_indices:
            return values

        def place(x: Any, window: Any) -> Any:
            return flat_places(x, window)[where(seen(x, window), axis=-1)]

        return values, pooled(x, rank, place, *args, **params)

    return reference


EXTREME = ("pool_extreme", "pool_give", "pool_indices", "pool_pick")


def largest(label: str, rank: int, *args: Any, **more: Any) -> OpCase:
    """A case of max pooling."""
    params = more.pop("params", {})
    return OpCase(
        getattr(F, f"max_pool{rank}d"),
        args,
        extreme(rank, True),
        params,
        EXTREME,
        label=label,
        torch=f"nn.functional.max_pool{rank}d",
        **more,
    )


def smallest(label: str, rank: int, *args: Any, **more: Any) -> OpCase:
    """A case of min pooling, which PyTorch has by its negative."""

    def by_negative(torch: Any, x: Any, *args: Any, **params: Any) -> Any:
        return -getattr(torch.nn.functional, f"max_pool{rank}d")(-x, *args, **params)

    return OpCase(
        getattr(F, f"min_pool{rank}d"),
        args,
        extreme(rank, False),
        more.pop("params", {}),
        EXTREME,
        label=label,
        torch=by_negative,
        **more,
    )


SQUARE = draw(2, 1, 4, 4)
TIES = np.array([[[1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]])
NAN = np.array([[0.0, np.nan, 2.0, 1.0, 3.0, np.nan]])
MAX = [
    largest(
        "",
        2,
        SQUARE,
        2,
        dtypes=(np.float64, np.float32, np.float16, np.int32, np.uint8),
        at=[
            At((TIES, 2, 1), ([[[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]],)),
            At((np.full((1, 2, 2), -np.inf), 2), ([[[1.0, 0.0], [0.0, 0.0]]],)),
            At((NAN[None], (1, 3)), ([[[0.0, 1.0, 0.0, 0.0, 0.0, 1.0]]],)),
        ],
        raises=[
            Raises((SQUARE[0, 0], 2), ShapeError, r"max_pool2d: got shape \(4, 4\)"),
            Raises((SQUARE, 5), ShapeError, "expected room for a window"),
            Raises((SQUARE, 0), ArgumentError, "kernel_size=0"),
            Raises((SQUARE, 2, 1, 2), ArgumentError, "padding=2 and windows over 2"),
            Raises((SQUARE[..., :1, :1], 2, 1, 2, 3), ShapeError, "that see none of them"),
            Raises((SQUARE * 1j, 2), DTypeError, "max_pool2d: got complex128"),
        ],
    ),
    largest("overlapping", 2, SQUARE, 3, 1, 1),
    largest("options", 2, draw(1, 2, 5, 4), (2, 2), (2, 1), (1, 0), (1, 2)),
    largest("indices", 2, SQUARE, 3, 2, 1, params={"return_indices": True}),
    largest("ceil", 2, draw(1, 1, 5, 4), 2, 2, params={"ceil_mode": True}),
    largest("ceil-padded", 2, draw(1, 1, 5, 3), 3, 3, 1, params={"ceil_mode": True}),
    largest("apart", 1, draw(1, 1, 2), 6, 4, 3, params={"ceil_mode": True}),
    largest("one-sample", 2, draw(1, 3, 3), 2, 1),
    largest("no-samples", 2, draw(0, 1, 3, 3), 2, 1),
    OpCase(
        F.max_pool2d,
        (draw(2, 4, 4, 3).transpose(0, 3, 1, 2), 2),
        extreme(2, True),
        ops=EXTREME,
        label="channels-last",
    ),
    OpCase(
        F.max_pool2d,
        (np.arange(9).reshape(1, 3, 3), 2),
        extreme(2, True),
        ops=("pool_extreme",),
        label="integers",
        differentiable=False,
    ),
    largest("", 1, draw(2, 1, 5), 2, 1),
    largest("indices", 1, draw(2, 5), 3, 2, 1, params={"return_indices": True}),
    largest("", 3, draw(1, 1, 3, 2, 4), 2, 1),
    largest("indices", 3, draw(1, 3, 3, 3), 2, 2, 1, params={"return_indices": True}),
    smallest(
        "",
        2,
        SQUARE,
        3,
        1,
        1,
        dtypes=(np.float64, np.float32, np.int32),
        at=[At((-TIES, 2, 1), ([[[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]],))],
    ),
    smallest("", 1, draw(2, 1, 5), 2),
    OpCase(
        F.min_pool1d,
        (draw(1, 6), 2),
        extreme(1, False),
        {"return_indices": True},
        EXTREME,
        label="indices",
    ),
    smallest("", 3, draw(1, 1, 3, 2, 4), 2, 1),
]


def unpooled(x: Any, indices: Any, rank: int, sizes: tuple[int, ...]) -> Any:
    out = np.zeros((*x.shape[:-rank], math.prod(sizes)), x.dtype)
    flat = (*x.shape[:-rank], -1)
    np.put_along_axis(out, indices.reshape(flat), x.reshape(flat), -1)
    return out.reshape((*x.shape[:-rank], *sizes))


def undone(rank: int, x: Any, sizes: tuple[int, ...], *args: Any, **more: Any) -> OpCase:
    """A case of what undoes max pooling."""
    indices = more.pop("indices")
    return OpCase(
        getattr(F, f"max_unpool{rank}d"),
        (x, indices, *args),
        lambda x, indices, *_args, **_params: unpooled(x, indices, rank, sizes),
        more.pop("params", {}),
        ("max_unpool", "pool_pick"),
        fixed=(1,),
        torch=f"nn.functional.max_unpool{rank}d",
        **more,
    )


PLACES = np.array([[[[1, 6], [13, 10]]]])
UNPOOL = [
    undone(
        2,
        draw(1, 1, 2, 2),
        (4, 4),
        2,
        indices=PLACES,
        raises=[
            Raises((np.ones((1, 2, 2)), PLACES[0] * 0, 2), IndexingError, "indices that repeat"),
            Raises((np.ones((1, 2, 2)), PLACES[0] + 3, 2), IndexingError, "from 0 to 15"),
            Raises((np.ones((1, 2, 2)), PLACES[0] - 2, 2), IndexingError, "got indices from -1"),
            Raises((np.ones((1, 2, 3)), PLACES[0], 2), ShapeError, "an index for each element"),
            Raises((np.ones((1, 2, 2)), PLACES[0] / 1, 2), IndexingError, "expected integers"),
            Raises(
                (np.ones((1, 2, 2)), PLACES[0], 2),
                ArgumentError,
                r"output_size=\(7, 4\)",
                {"output_size": (7, 4)},
            ),
        ],
    ),
    undone(
        2,
        draw(1, 2, 2),
        (5, 4),
        2,
        indices=PLACES[0],
        params={"output_size": (5, 4)},
        label="size",
    ),
    undone(1, draw(1, 1, 2), (4,), 2, indices=np.array([[[1, 2]]])),
    undone(3, draw(1, 1, 1, 1, 2), (2, 2, 4), 2, indices=np.array([[[[[1, 14]]]]])),
    OpCase(
        F.max_unpool1d,
        (draw(1, 2), np.array([[1, 2]]), 2),
        lambda x, indices, *_args: unpooled(x, indices, 1, (4,)),
        ops=("max_unpool",),
        label="batched-indices",
    ),
]

# ---- windows at random places -------------------------------------------------------------------


def fractional(x: Any, kernel_size: Any, output_size: Any, **params: Any) -> Any:
    """Pooling of one sample after the other, and one channel after the other."""
    rank = x.ndim - 2
    kernel, output = numbers(kernel_size, rank), numbers(output_size, rank)
    both = []
    for sample, chances in zip(x, params["_random_samples"], strict=True):
        for channel, chance in zip(sample, chances, strict=True):
            places = []
            for axis in range(rank):
                u = chance[axis if rank == 3 else rank - 1 - axis]
                last = channel.shape[axis] - kernel[axis]
                step = last / max(output[axis] - 1, 1)
                starts = [int((i + u) * step) - int(u * step) for i in range(output[axis])]
                starts[-1] = last
                places.append([list(range(s, s + kernel[axis])) for s in starts])
            values = over_windows(channel, places, lambda x, w: seen(x, w).max(axis=-1))
            where = over_windows(
                channel, places, lambda x, w: flat_places(x, w)[seen(x, w).argmax(axis=-1)]
            )
            both.append((values, where))
    parts = zip(*both, strict=True) if both else (x[:, :0], np.zeros(0, np.int64))
    values, where = (np.reshape(part, (*x.shape[:2], *output)) for part in parts)
    return (values, where) if params.get("return_indices") else values


def fractions(label: str, *args: Any, samples: Any, **more: Any) -> OpCase:
    """A case of fractional pooling; the random numbers are in single precision in neither."""
    rank = args[0].ndim - 2
    params = {"_random_samples": samples, **more.pop("params", {})}

    def in_torch(torch: Any, *args: Any, **params: Any) -> Any:
        params["_random_samples"] = torch.tensor(samples)
        return getattr(torch.nn.functional, f"fractional_max_pool{rank}d")(*args, **params)

    return OpCase(
        getattr(F, f"fractional_max_pool{rank}d"),
        args,
        fractional,
        params,
        ("fractional_indices", "pool_pick", "pool_put"),
        label=label,
        batched=False,
        torch=in_torch,
        **more,
    )


def by_chance(x: Any, samples: Any) -> Any:
    """Fractional pooling as a function of the random numbers too."""
    return F.fractional_max_pool2d(x, 2, (2, 3), _random_samples=samples)


def by_chance_reference(x: Any, samples: Any) -> Any:
    return fractional(x, 2, (2, 3), _random_samples=samples)


CHANCES = draw(2, 2, 2, low=0, high=1)
WIDE = draw(2, 2, 4, 6)
FRACTIONAL = [
    fractions(
        "",
        WIDE,
        (2, 3),
        (3, 3),
        samples=CHANCES,
        raises=[
            Raises((WIDE, 2), ArgumentError, "either output_size= or output_ratio="),
            Raises((WIDE, 2, None, 1.5), ArgumentError, "output_ratio=1.5"),
            Raises((WIDE, 2, 4), ShapeError, "start at different elements"),
            Raises((WIDE * 1j, 2, 2), DTypeError, "got complex128"),
            Raises((WIDE, 2, 2), ShapeError, "_random_samples of", {"_random_samples": CHANCES[0]}),
        ],
    ),
    fractions("indices", WIDE, 2, (2, 4), samples=CHANCES, params={"return_indices": True}),
    fractions("one", draw(1, 1, 3, 3), 2, 1, samples=CHANCES[:1, :1]),
    fractions("no-samples", WIDE[:0], 2, (2, 4), samples=CHANCES[:0]),
    fractions("", draw(1, 2, 4, 5, 4), 2, (2, 3, 2), samples=draw(1, 2, 3, low=0, high=1)),
    OpCase(by_chance, (WIDE, CHANCES), by_chance_reference, ops=("fractional_indices",)),
]

CASES = [*MAX, *UNPOOL, *FRACTIONAL]
