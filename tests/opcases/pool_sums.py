"""Samples of pooling by sums, and to given sizes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ArgumentError, DTypeError, ShapeError
from opcases.case import At, OpCase, Raises, draw
from opcases.pool import EXTREME, SQUARE, flat_places, numbers, over_windows, pooled, seen

F = gt.nn.functional


# ---- sums ---------------------------------------------------------------------------------------


def average(rank: int) -> Callable[..., Any]:
    """Average pooling, with PyTorch's rules of what counts."""

    def reference(
        x: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:
        floating = x if x.dtype.kind in "fc" else x.astype(np.float64)
        pads = numbers(padding, rank)

        def combine(x: Any, window: Any) -> Any:
            values = seen(x, window)
            count = values.shape[-1]
            if count_include_pad:
                sizes = zip(window, x.shape[-rank:], pads, strict=True)
                count = math.prod(sum(i < n + p for i in one) for one, n, p in sizes)
            total = values.sum(axis=-1, dtype=np.float32 if x.dtype == np.float16 else None)
            return (total / (divisor_override or count)).astype(x.dtype)

        return pooled(floating, rank, combine, kernel_size, stride, padding, 1, ceil_mode)

    return reference


AVERAGE = ("pool_average",)


def averaged(label: str, rank: int, *args: Any, **more: Any) -> OpCase:
    """A case of average pooling."""
    return OpCase(
        getattr(F, f"avg_pool{rank}d"),
        args,
        average(rank),
        more.pop("params", {}),
        AVERAGE,
        label=label,
        torch=f"nn.functional.avg_pool{rank}d",
        **more,
    )


def summed(rank: int, *args: Any, **more: Any) -> OpCase:
    """A case of sums over windows, which in PyTorch are averages with another divisor."""

    def reference(x: Any, *args: Any, **params: Any) -> Any:
        return pooled(x, rank, lambda x, w: seen(x, w).sum(axis=-1), *args, **params)

    def by_average(torch: Any, x: Any, *args: Any, **params: Any) -> Any:
        function = getattr(torch.nn.functional, f"avg_pool{rank}d")
        return function(x, *args, **params, divisor_override=1)

    return OpCase(
        getattr(F, f"sum_pool{rank}d"),
        args,
        reference,
        more.pop("params", {}),
        AVERAGE,
        torch=None if rank == 1 else by_average,
        **more,
    )


def powers(rank: int, label: str, *args: Any, **more: Any) -> OpCase:
    """A case of power pooling."""

    def reference(x: Any, p: float, *args: Any, **params: Any) -> Any:
        def combine(x: Any, window: Any) -> Any:
            return (seen(x, window) ** p).sum(axis=-1) ** (1 / p)

        stride = params.pop("stride", args[1] if len(args) > 1 else None)
        return pooled(x, rank, combine, args[0], stride, **params)

    return OpCase(
        getattr(F, f"lp_pool{rank}d"),
        args,
        reference,
        more.pop("params", {}),
        ("lp_pool", *AVERAGE),
        label=label,
        **{"torch": f"nn.functional.lp_pool{rank}d", **more},
    )


def lp_slope(x: Any) -> Any:
    """The gradient of power pooling, to see its own at special points."""
    return gt.grad(lambda x: gt.sum(F.lp_pool1d(x, 1.5, 2)))(x)


POSITIVE = draw(1, 2, 3, 4, low=0.5)
SUMS = [
    averaged(
        "",
        2,
        SQUARE,
        2,
        dtypes=(np.float64, np.float32, np.float16, np.int32),
        at=[At((np.zeros((1, 2, 2)), 2, 1), ([[[0.25, 0.25], [0.25, 0.25]]],))],
        raises=[
            Raises((SQUARE, 5), ShapeError, "avg_pool2d: got 4 elements along an axis"),
            Raises((SQUARE, 2), ArgumentError, "divisor_over.*=0", {"divisor_override": 0}),
            Raises((SQUARE, (2, 2, 2)), ArgumentError, r"kernel_size=\(2, 2, 2\)"),
        ],
    ),
    averaged("overlapping", 2, SQUARE, (3, 2), 1, 1),
    averaged("inside", 2, SQUARE, 3, (2, 1), 1, params={"count_include_pad": False}),
    averaged("divided", 2, SQUARE, 2, 1, params={"divisor_override": 3}),
    averaged("ceil", 2, draw(1, 1, 5, 4), 2, 2, params={"ceil_mode": True}),
    averaged("ceil-padded", 2, draw(1, 1, 5, 4), 3, 2, 1, params={"ceil_mode": True}),
    averaged("gaps", 2, draw(1, 5, 4), 1, (3, 2)),
    averaged("no-samples", 2, draw(0, 1, 3, 3), 2),
    OpCase(
        F.avg_pool2d,
        (draw(1, 4, 4, 2).transpose(0, 3, 1, 2), 2),
        average(2),
        ops=AVERAGE,
        label="channels-last",
    ),
    OpCase(
        F.avg_pool2d,
        (draw(1, 3, 3) + 1j * draw(1, 3, 3, seed=1), 2, 1),
        average(2),
        ops=AVERAGE,
        label="complex",
        dtypes=(np.complex128,),
    ),
    averaged("", 1, draw(2, 1, 5), 2, 1, 1),
    averaged("", 3, draw(1, 1, 3, 2, 4), 2, 1),
    summed(2, SQUARE, 3, 1, 1, dtypes=(np.float64, np.float32, np.int32)),
    summed(1, draw(1, 6), 2),
    summed(3, draw(1, 2, 3, 4), 2, 1),
    OpCase(
        F.sum_pool1d,
        (np.array([[True, True, False]]), 2, 1),
        lambda x, k, s: np.array([[2, 1]]),
        ops=AVERAGE,
        label="truth-values",
        differentiable=False,
    ),
    powers(
        2,
        "",
        POSITIVE,
        2.5,
        2,
        1,
        raises=[
            Raises((POSITIVE, np.inf, 2), ArgumentError, "use max_pool2d"),
            Raises((POSITIVE, 0, 2), ArgumentError, "norm_type=0"),
            Raises((POSITIVE * 1j, 2, 2), DTypeError, "got complex128"),
        ],
    ),
    powers(2, "squares", draw(1, 4, 4), 2, 2, rtol=32),
    powers(
        1,
        "",
        draw(1, 2, 4, low=0.5),
        3,
        2,
        torch="nn.functional.lp_pool1d",
    ),
    powers(
        1,
        "kink",
        draw(1, 4),
        2,
        2,
        at=[At((np.array([[0.0, 0.0, 3.0, 4.0]]), 2, 2), ([[0.0, 0.0, 0.6, 0.8]],))],
        torch=None,
    ),
    # The second derivative of such a window is 0, too, also where that of a power is infinite.
    OpCase(
        lp_slope,
        (draw(1, 4, low=0.5),),
        lambda x: x**0.5 * np.repeat((x**1.5).reshape(1, 2, 2).sum(-1) ** (-1 / 3), 2, 1),
        ops=("lp_pool", *AVERAGE),
        label="lp",
        at=[At((np.array([[0.0, 0.0, 1.0, 1.0]]),), ([[0.0, 0.0, 0.0, 0.0]],))],
    ),
    powers(3, "", draw(1, 1, 2, 2, 4, low=0.5), 1, 2),
]

# ---- adaptive, global ---------------------------------------------------------------------------


def shares(x: Any, output_size: Any, rank: int) -> Any:
    wanted = output_size if isinstance(output_size, tuple) else (output_size,) * rank
    places = []
    for n, count in zip(x.shape[-rank:], wanted, strict=True):
        count = n if count is None else count
        bounds = [(i * n // count, -(-(i + 1) * n // count)) for i in range(count)]
        places.append([list(range(*bound)) for bound in bounds])
    return places


def adaptive(rank: int, kind: str) -> Callable[..., Any]:
    """Adaptive pooling."""

    def reference(x: Any, output_size: Any, return_indices: bool = False) -> Any:
        places = shares(x, output_size, rank)
        if kind == "avg":
            return over_windows(x, places, lambda x, w: seen(x, w).mean(axis=-1))
        values = over_windows(x, places, lambda x, w: seen(x, w).max(axis=-1))

        def place(x: Any, window: Any) -> Any:
            return flat_places(x, window)[seen(x, window).argmax(axis=-1)]

        return (values, over_windows(x, places, place)) if return_indices else values

    return reference


def adapted(kind: str, rank: int, label: str, *args: Any, **more: Any) -> OpCase:
    """A case of adaptive pooling."""
    return OpCase(
        getattr(F, f"adaptive_{kind}_pool{rank}d"),
        args,
        adaptive(rank, kind),
        more.pop("params", {}),
        more.pop("ops", ("resample",) if kind == "avg" else EXTREME),
        label=label,
        torch=f"nn.functional.adaptive_{kind}_pool{rank}d",
        **more,
    )


ADAPTIVE = [
    adapted(
        "avg",
        2,
        "",
        draw(1, 2, 5, 4),
        (3, 2),
        raises=[
            Raises((SQUARE, 0), ArgumentError, "output_size="),
            Raises((SQUARE[..., :0], 1), ShapeError, "expected at least one element"),
            Raises((SQUARE, (1, 2, 3)), ArgumentError, r"output_size=\(1, 2, 3\)"),
        ],
    ),
    adapted("avg", 2, "larger", draw(1, 2, 3), (4, 5)),
    adapted("avg", 2, "whole", draw(2, 1, 3, 2), 1, ops=("mean",)),
    adapted("avg", 2, "whole-axis", draw(2, 1, 3, 2), (1, 2)),
    adapted("avg", 2, "axis", draw(1, 5, 3), (2, None)),
    adapted("avg", 1, "", draw(1, 2, 7), 3),
    adapted("avg", 3, "", draw(1, 1, 3, 2, 4), 2),
    adapted("max", 2, "", draw(1, 2, 5, 4), (3, 2)),
    adapted("max", 2, "larger", draw(1, 2, 3), (4, 5)),
    adapted("max", 2, "indices", draw(1, 1, 5, 4), (2, None), params={"return_indices": True}),
    adapted("max", 1, "", draw(1, 2, 7), 3),
    adapted("max", 3, "", draw(1, 1, 3, 2, 4), 2),
    OpCase(
        F.global_avg_pool,
        (draw(2, 2, 3, 2),),
        lambda x: x.mean(axis=(2, 3), keepdims=True),
        ops=("mean",),
        torch=lambda torch, x: torch.nn.functional.adaptive_avg_pool2d(x, 1),
        raises=[Raises((draw(2, 3),), ShapeError, "one to three spatial axes")],
    ),
    OpCase(
        F.global_max_pool,
        (draw(2, 2, 3, 2),),
        lambda x: x.max(axis=(2, 3), keepdims=True),
        ops=EXTREME,
        torch=lambda torch, x: torch.nn.functional.adaptive_max_pool2d(x, 1),
    ),
]

CASES = [*SUMS, *ADAPTIVE]
