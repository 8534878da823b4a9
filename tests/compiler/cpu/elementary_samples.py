"""Where elementary functions are compared, what they are there, and how far off a result is."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import mpmath as mp
import numpy as np

DTYPES = {"float": np.dtype(np.float32), "double": np.dtype(np.float64)}
BINARY = ("arctan2", "hypot", "power")

EXACT: dict[str, Callable[..., Any]] = {
    **{name: getattr(mp, name) for name in ("exp", "expm1", "log", "log10", "log1p", "sin", "cos")},
    **{name: getattr(mp, name) for name in ("tan", "sinh", "cosh", "tanh", "sqrt", "hypot")},
    **{name: getattr(mp, name) for name in ("erf", "erfc")},
    "exp2": lambda x: mp.power(2, x),
    "log2": lambda x: mp.log(x, 2),
    "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "arcsin": mp.asin,
    "arccos": mp.acos,
    "arctan": mp.atan,
    "arctan2": mp.atan2,
    "arcsinh": mp.asinh,
    "arccosh": mp.acosh,
    "arctanh": mp.atanh,
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    "power": mp.power,
    "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
    "ndtr": lambda x: mp.erfc(-x * mp.sqrt(0.5)) / 2,
    "log_ndtr": lambda x: (
        mp.log(mp.erfc(-x * mp.sqrt(0.5)) / 2)
        if x < 0
        else mp.log1p(-mp.erfc(x * mp.sqrt(0.5)) / 2)
    ),
    "erfinv": lambda x: mp.erfinv(x) if abs(x) < 0.5 else mp.sign(x) * exact_erfcinv(1 - abs(x)),
    "erfcinv": lambda x: exact_erfcinv(x),
    "ndtri": lambda p: -mp.sqrt(2) * exact_erfcinv(2 * p),
    "lgamma": lambda x: mp.log(abs(mp.gamma(x))) if x < 50 else mp.loggamma(x),
    "digamma": mp.digamma,
    "trigamma": lambda x: mp.psi(1, x),
    "tetragamma": lambda x: mp.psi(2, x),
    **{f"bessel_i{n}": functools.partial(mp.besseli, n) for n in range(3)},
    "bessel_i0e": lambda x: mp.besseli(0, x) * mp.exp(-abs(x)),
    "bessel_i1e": lambda x: mp.besseli(1, x) * mp.exp(-abs(x)),
    "bessel_i2e": lambda x: mp.besseli(2, x) * mp.exp(-abs(x)),
}


def exact_erfcinv(q: Any) -> Any:
    """The y with erfc(y) = q, by Newton's method for the logarithms."""
    if q > 1:
        return -exact_erfcinv(2 - q)
    y = mp.sqrt(-mp.log(q)) if q < 0.3 else (1 - q) * mp.sqrt(mp.pi) / 2
    for _ in range(60):
        ratio = mp.erfc(y) * mp.exp(y * y) * mp.sqrt(mp.pi) / 2
        step = mp.log(mp.erfc(y) / q) * ratio
        y += step
        if abs(step) <= abs(y) * mp.eps * 2**60:
            break
    return y


def any_size(rng: np.random.Generator, dtype: np.dtype, low: int, high: int) -> np.ndarray:
    """Numbers of both signs with exponents from `low` up to `high`."""
    size = 300
    digits = rng.uniform(1, 2, size) * rng.choice([-1, 1], size)
    return np.ldexp(digits, rng.integers(low, high, size)).astype(dtype)


def near_multiples(dtype: np.dtype, numbers: np.ndarray) -> np.ndarray:
    """The floats closest to multiples of π/2, where sines, cosines or tangents are small."""
    with mp.workprec(200):
        return np.array([float(int(n) * mp.pi / 2) for n in numbers]).astype(dtype)


def arguments(name: str, dtype: np.dtype) -> tuple[np.ndarray, ...]:
    """Where to compare a function: all exponents, the range it is used in, awkward points."""
    rng = np.random.default_rng([len(name), *name.encode(), dtype.itemsize])
    single = dtype == np.float32
    lowest, highest = (-149, 128) if single else (-1074, 1024)
    digits = 23 if single else 52
    everywhere = any_size(rng, dtype, lowest, highest)
    usual = rng.normal(size=500)
    close_to_zero = any_size(rng, dtype, lowest, 1)
    if name in BINARY:
        return binary_arguments(name, rng, everywhere, usual, dtype)
    if name in ("sin", "cos", "tan"):
        multiples = [rng.integers(-(2**n), 2**n, 200) for n in (3, 11, 17, 30)]
        near = [near_multiples(dtype, numbers) for numbers in multiples]
        chosen = [everywhere, usual, rng.uniform(-4000, 4000, 300), *near]
    elif name in ("exp", "expm1", "sinh", "cosh", "sigmoid", "exp2", "tanh"):
        end = highest if name == "exp2" else highest * math.log(2)
        bottom = (lowest if name == "exp2" else lowest * math.log(2)) * (name != "expm1") - 2
        ends = rng.uniform(0.995, 1.0, 100)
        chosen = [usual, close_to_zero, rng.uniform(bottom, end, 500), end * ends, bottom * ends]
        chosen.append(rng.uniform(-1, 1, 300))
    elif name in ("arcsin", "arccos", "arctanh"):
        close_to_one = 1 - abs(any_size(rng, np.dtype(float), -digits - 1, -1))
        chosen = [rng.uniform(-1, 1, 500), close_to_zero / 2, close_to_one, -close_to_one]
        chosen.append(rng.uniform(0.49, 0.51, 100))
    elif name == "arccosh":
        chosen = [1 + abs(any_size(rng, np.dtype(float), -digits, 3)), abs(everywhere)]
        chosen = [values[values >= 1] for values in chosen]
    elif name in ("log", "log2", "log10"):
        close_to_one = 1 + any_size(rng, np.dtype(float), -digits, -1)
        chosen = [abs(everywhere), abs(usual), close_to_one, rng.uniform(0.4, 3, 500)]
    elif name == "log1p":
        close_to_minus_one = abs(any_size(rng, np.dtype(float), -digits, 0)) - 1
        chosen = [abs(everywhere), close_to_zero / 2, close_to_minus_one, rng.uniform(-0.9, 3, 500)]
    elif name in ("erf", "erfc"):
        end = 10.0 if single else 26.5
        chosen = [close_to_zero, usual, rng.uniform(-3, 3, 300), rng.uniform(0, end, 500)]
    elif name in SPECIAL:
        chosen = special_arguments(name, rng, close_to_zero, single)
    else:
        chosen = [everywhere, usual, any_size(rng, dtype, -4, 5)]
        chosen = [abs(values) for values in chosen] if name == "sqrt" else chosen
    return (np.concatenate([np.asarray(values).astype(dtype) for values in chosen]),)


# Zeros of functions, and where one form of them ends and another begins.
CORNERS = {
    "lgamma": (0.75, 1.0, 2.0, 3.0),
    "digamma": (1.0, 1.4616321449683623, 3.0),
    "trigamma": (1.0, 3.0),
    "tetragamma": (1.0, 3.0),
}
SPECIAL = {"erfcx", "ndtr", "log_ndtr", "erfinv", "erfcinv", "ndtri", *CORNERS}
SPECIAL |= {name for name in EXACT if name.startswith("bessel")}


def special_arguments(
    name: str, rng: np.random.Generator, close_to_zero: np.ndarray, single: bool
) -> list[np.ndarray]:
    """The same for special functions, without negative arguments where these have zeros."""
    wide = np.dtype(float)
    tiny = close_to_zero[:150]
    if name in CORNERS:
        close = [c + any_size(rng, wide, -50, -2)[:60] for c in CORNERS[name]]
        large = abs(any_size(rng, wide, 2, 120 if single else 900)[:150])
        return [abs(tiny), rng.uniform(0, 3, 300), rng.uniform(3, 50, 150), large, *close]
    if name in ("erfinv", "erfcinv", "ndtri"):
        left = abs(any_size(rng, wide, -23 if single else -52, -1))
        whole = {"erfinv": 0.0, "erfcinv": 1.0, "ndtri": 0.5}[name]
        scale = 0.5 if name == "ndtri" else 1.0
        chosen = [whole + scale * rng.uniform(-1, 1, 300), whole + scale * (1 - left)]
        tiny = tiny[abs(tiny) < 0.5]
        return [*chosen, tiny if name == "erfinv" else abs(tiny)]
    if name in ("ndtr", "log_ndtr"):
        end = 12.0 if single else 37.0
        lowest = -60.0 if name == "log_ndtr" else -end
        return [tiny, rng.uniform(-5, 5, 300), rng.uniform(lowest, end, 200), -abs(tiny) * 1000]
    if name == "erfcx":
        end = 9.3 if single else 26.6
        return [tiny, rng.uniform(-end, end, 300), abs(any_size(rng, wide, -3, 12))]
    end = 700.0 if name in ("bessel_i0", "bessel_i1", "bessel_i2") and not single else 85.0
    return [tiny, rng.uniform(-12, 12, 250), rng.uniform(-end, end, 100)]


def binary_arguments(
    name: str, rng: np.random.Generator, everywhere: np.ndarray, usual: np.ndarray, dtype: np.dtype
) -> tuple[np.ndarray, ...]:
    """The same for functions of two arguments."""
    x = np.concatenate([everywhere, usual, usual, usual]).astype(dtype)
    if name != "power":
        y = np.concatenate([rng.permutation(everywhere), rng.permutation(usual), 0.4 * usual])
        close = np.nextafter(usual.astype(dtype), dtype.type(9)) * rng.choice([-1, 1], usual.size)
        return x, np.concatenate([y, close]).astype(dtype)
    # Exponents that spread the results over the whole range.
    lowest, highest = (-149, 128) if dtype == np.float32 else (-1074, 1024)
    close_to_one = 1 + any_size(rng, np.dtype(float), -20, -2)
    x = np.concatenate([abs(x), close_to_one, close_to_one]).astype(dtype)
    with np.errstate(divide="ignore"):
        y = rng.uniform(lowest, highest, x.size) / np.log2(x.astype(float))
    y = np.where(rng.random(x.size) < 0.2, rng.normal(size=x.size) * 3, y)
    return x, np.where(np.isfinite(y), y, 1.5).astype(dtype)


def errors(got: np.ndarray, exact: Sequence[Any]) -> list[float]:
    """Differences in units in the last place; infinity counts as the number after the largest."""
    info = np.finfo(got.dtype)
    beyond = mp.ldexp(1, int(info.maxexp))
    result = []
    for value, expected in zip(got.tolist(), exact, strict=True):
        expected = max(min(expected, beyond), -beyond)
        if math.isinf(value):
            value = math.copysign(1.0, value) * beyond
        magnitude = min(max(mp.mag(expected) - 1, info.minexp), info.maxexp - 1)
        unit = mp.ldexp(1, int(magnitude) - info.nmant)
        result.append(float(abs(mp.mpf(value) - expected) / unit) if value == value else math.inf)
    return result


@functools.cache
def exact_values(name: str, scalar: str, step: int = 1) -> list[Any]:
    """Function values to far more digits than needed, for one in `step` of the arguments."""
    operands = [values[::step].tolist() for values in arguments(name, DTYPES[scalar])]
    with mp.workprec(200):
        return [EXACT[name](*map(mp.mpf, point)) for point in zip(*operands, strict=True)]
