"""Samples for `gradtape.ops.random`: drawn numbers times an argument, so that there is one.

The references write out which words of the stream make which element.
"""

from typing import Any

import numpy as np
from scipy.special import gammaincinv
from scipy.stats import poisson

from gradtape.errors import ArgumentError
from gradtape.ops.random import random_normal, random_uniform
from gradtape.ops.random_discrete import (
    random_bernoulli,
    random_integers,
    random_permutation,
    random_poisson,
)
from gradtape.ops.random_positive import random_gamma
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


def ref_gamma(a: Any, shape: Any, log: bool, key: tuple[int, int], offset: int) -> Any:
    """Marsaglia and Tsang's draws, one element after the other."""
    drawn = words(key, offset, 8 * a.size)
    fractions = np.array([word >> 11 for word in drawn]).reshape(-1, 8) / 2**53
    found = []
    for shape_of_one, f in zip(a.ravel().astype(np.float64), fractions, strict=True):
        b = shape_of_one + (shape_of_one < 1)
        d, x = b - 1 / 3, None
        for wave, chance in ((np.cos, f[2]), (np.sin, f[3])):
            z = np.sqrt(-2 * np.log(1 - f[0])) * wave(2 * np.pi * f[1])
            v = (1 + z / np.sqrt(9 * d)) ** 3
            if x is None and v > 0 and np.log(1 - chance) < z * z / 2 + d * (1 - v + np.log(v)):
                x = d * v
        if x is None:
            x = gammaincinv(b, f[4])
        power = np.log(1 - f[5]) / shape_of_one if shape_of_one < 1 else 0.0
        found.append(np.log(x) + power if log else x * np.exp(power))
    return np.array(found).reshape(a.shape).astype(a.dtype)


def scaled_poisson(x: Any, mean: Any, **params: Any) -> Any:
    return x * random_poisson(mean, **params)


def ref_poisson(x: Any, mean: Any, shape: Any, dtype: Any, **stream: Any) -> Any:
    """The inverse of the distribution function at the seventh word of each element."""
    fractions = [word >> 11 for word in words(**stream, count=8 * x.size)[6::8]]
    return x * poisson.ppf(np.array(fractions) / 2**53, mean).astype(dtype)


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
    *(
        OpCase(
            random_gamma,
            (draw(5, 3, low=0.01, high=4.0),),
            ref_gamma,
            {"shape": (5, 3), "log": log, **STREAM},
            ops=("random_gamma",),
            # By implicit differentiation, not along the draw by rejection: see `tests.ops`.
            differences=False,
            rtol=256,
            label="log" if log else "",
            raises=[
                Raises((-np.ones(3),), ArgumentError, "> 0", {"shape": 3, "log": log, **STREAM})
            ],
        )
        for log in (False, True)
    ),
    OpCase(
        scaled_poisson,
        (draw(7),),
        ref_poisson,
        {"mean": np.linspace(0.0, 9.0, 7), "shape": (7,), "dtype": F32, **STREAM},
        ops=("random_poisson",),
        raises=[
            Raises(
                (1.0,),
                ArgumentError,
                "a mean",
                {"mean": np.array(-1.0), "shape": (), "dtype": F32, **STREAM},
            )
        ],
    ),
]
