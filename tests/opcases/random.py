"""Samples for `gradtape.ops.random`: drawn numbers times an argument, so that there is one.

The references write out which words of the stream make which element.
"""

from typing import Any

import numpy as np

from gradtape.errors import ArgumentError
from gradtape.ops.random import random_normal, random_uniform
from gradtape.ops.random_discrete import (
    random_bernoulli,
    random_integers,
    random_permutation,
)
from opcases.case import OpCase, Raises, draw

F64, F32, I32 = np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.int32)
STREAM = {"key": (3, 2**64 - 1), "offset": 2**64 + 5}


def words(key: tuple[int, int], offset: int, count: int) -> list[int]:
    stream = np.random.Philox(counter=offset, key=key[0] + 2**64 * key[1])
    return [int(word) for word in stream.random_raw(count)]


def halves(key: tuple[int, int], offset: int, count: int) -> list[int]:
    both = [half for word in words(key, offset, count) for half in (word % 2**32, word // 2**32)]
    return both[:count]


def scaled_uniform(x: Any, **params: Any) -> Any:
    return x * random_uniform(**params)


def ref_uniform(x: Any, shape: Any, dtype: Any, **stream: Any) -> Any:
    count = int(np.prod(shape))
    if dtype == F64:
        numbers = [(word >> 11) / 2**53 for word in words(**stream, count=count)]
    else:
        numbers = [(half >> 8) / 2**24 for half in halves(**stream, count=count)]
    return x * np.array(numbers, dtype).reshape(shape)


def scaled_normal(x: Any, **params: Any) -> Any:
    return x * random_normal(**params)


def ref_normal(x: Any, shape: Any, dtype: Any, **stream: Any) -> Any:
    count = int(np.prod(shape))
    even = count + count % 2
    if dtype == F64:
        fractions = [(word >> 11) / 2**53 for word in words(**stream, count=even)]
        radii = [1 - fraction for fraction in fractions[0::2]]
    else:
        fractions = [half / 2**32 for half in halves(**stream, count=even)]
        radii = [fraction + 0.5**33 for fraction in fractions[0::2]]
    numbers = []
    for radius, turn in zip(radii, fractions[1::2], strict=True):
        r, angle = np.sqrt(-2 * np.log(radius)), 2 * np.pi * turn
        numbers += [r * np.cos(angle), r * np.sin(angle)]
    return x * np.array(numbers[:count]).astype(dtype).reshape(shape)


def shifted_integers(x: Any, **params: Any) -> Any:
    return x + random_integers(**params)


def ref_integers(x: Any, low: int, high: int, shape: Any, dtype: Any, **stream: Any) -> Any:
    count = int(np.prod(shape))
    numbers = [low + word % (high - low) for word in words(**stream, count=count)]
    return x + np.array(numbers, dtype).reshape(shape)


def shifted_permutation(x: Any, **params: Any) -> Any:
    return x + random_permutation(**params)


def ref_permutation(x: Any, count: int, **stream: Any) -> Any:
    drawn = words(**stream, count=count)
    return x + np.array(sorted(range(count), key=drawn.__getitem__))


def scaled_bernoulli(x: Any, p: float, **params: Any) -> Any:
    return x * random_bernoulli(p, **params)


def ref_bernoulli(x: Any, p: float, shape: Any, dtype: Any, **stream: Any) -> Any:
    drawn = words(**stream, count=int(np.prod(shape)))
    coins = [float((word >> 11) / 2**53 < p) for word in drawn]
    return x * np.array(coins, dtype).reshape(shape)


CASES = [
    OpCase(
        scaled_uniform,
        (draw(5, 3),),
        ref_uniform,
        {"shape": (5, 3), "dtype": F64, **STREAM},
        ops=("random_uniform",),
    ),
    OpCase(
        scaled_uniform,
        (draw(5),),
        ref_uniform,
        {"shape": (5,), "dtype": F32, **STREAM},
        ops=("random_uniform",),
        label="float32",
    ),
    OpCase(
        scaled_uniform,
        (draw(2),),
        ref_uniform,
        {"shape": (), "dtype": F64, **STREAM},
        ops=("random_uniform",),
        label="0-d",
    ),
    OpCase(
        scaled_normal,
        (draw(3, 3),),
        ref_normal,
        {"shape": (3, 3), "dtype": F64, **STREAM},
        ops=("random_normal",),
    ),
    OpCase(
        scaled_normal,
        (draw(3, 3),),
        ref_normal,
        {"shape": (3, 3), "dtype": F32, **STREAM},
        ops=("random_normal",),
        dtypes=(np.float32,),
        label="float32",
    ),
    OpCase(
        shifted_integers,
        (draw(5),),
        ref_integers,
        {"low": -7, "high": 11, "shape": (5,), "dtype": I32, **STREAM},
        ops=("random_integers",),
    ),
    OpCase(
        shifted_permutation,
        (draw(5),),
        ref_permutation,
        {"count": 5, **STREAM},
        ops=("random_permutation",),
    ),
    OpCase(
        scaled_bernoulli,
        (draw(7), 0.3),
        ref_bernoulli,
        {"shape": (7,), "dtype": F32, **STREAM},
        ops=("random_bernoulli",),
        raises=[
            Raises(
                (draw(7), 1.5), ArgumentError, r"\[0, 1\]", {"shape": (7,), "dtype": F32, **STREAM}
            )
        ],
    ),
]
