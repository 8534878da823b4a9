"""Where loop nests could go wrong: values used in two places, vectors that overlap, long rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.compiler.reachability import Reachability

RNG = np.random.default_rng(11)


def assert_as_eager(function: Callable[..., Any], *args: Any, ulps: float = 256) -> None:
    """Compiled results are those of eager code, up to rounding relative to the largest."""
    got, expected = gt.jit(function)(*args), function(*args)
    for one, other in zip(gt.tree.flatten(got)[0], gt.tree.flatten(expected)[0], strict=True):
        other = np.asarray(other)
        if other.dtype.kind != "f":
            np.testing.assert_array_equal(one, other)
            continue
        tolerance = ulps * np.finfo(other.dtype).eps
        scale = float(np.abs(other).max(initial=1.0))
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * scale)


# ---- the same value in two places ---------------------------------------------------------------


def test_a_value_that_is_computed_twice_has_the_same_bits() -> None:
    x, v, c = RNG.normal(size=(3, 1000))

    def chosen(x: Any, v: Any, c: Any) -> Any:
        product = x * v
        total = product + c
        return np.where(total == np.max(total), product, 0.0)

    assert np.count_nonzero(gt.jit(chosen)(x, v, c)) == 1


def test_the_gradient_of_a_maximum_finds_the_maximum() -> None:
    x, w, b = RNG.normal(size=(64, 32)), RNG.normal(size=32), RNG.normal(size=32)

    def loss(w: Any, b: Any) -> Any:
        scaled = x * w
        return np.sum(np.max(scaled + b, axis=1)) + 0.01 * np.sum(scaled**2)

    assert_as_eager(gt.grad(loss, argnums=1), w, b)


def test_products_and_sums_are_rounded_as_numpy_rounds_them() -> None:
    x, y = RNG.normal(size=(2, 4097)).astype(np.float32)
    got = gt.jit(lambda x, y: x * y + x - y * y)(x, y)
    assert got.tobytes() == (x * y + x - y * y).tobytes()
    assert gt.jit(lambda x: np.sqrt(x * x - x * x))(x).max() == 0.0


def test_signed_and_unsigned_are_not_confused() -> None:
    x = np.array([-1, 2])
    assert_as_eager(lambda x: (x < 5, x.astype(np.uint64) < np.uint64(5)), x)
    assert_as_eager(lambda x: (x * 1.5, x.astype(np.uint64) * 1.5), x)
    assert_as_eager(
        lambda x: (x.astype(np.int32), x.astype(np.uint8).astype(np.int32)), x.astype(np.int8)
    )


def test_zeros_of_both_signs_are_kept_apart() -> None:
    up, down = gt.jit(lambda x: (np.copysign(x, 0.0), np.copysign(x, -0.0)))(np.ones(3))
    np.testing.assert_array_equal([up, down], [np.ones(3), -np.ones(3)])


@pytest.mark.parametrize("axis", [0, 1])
def test_what_is_read_elsewhere_is_not_fused(axis: int) -> None:
    x = RNG.normal(size=(12, 9))
    assert_as_eager(lambda x: np.sum(x, axis)[::-1] * 2.0, x)
    assert_as_eager(lambda x: np.roll(x - x.mean(axis, keepdims=True), 3, axis), x)
    assert_as_eager(lambda x: np.exp(x).T @ np.exp(x) + np.sum(np.exp(x[::-1])), x)
    assert_as_eager(lambda x: np.tanh(x)[1:] * np.tanh(x)[:-1], x)


# ---- sizes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [63, 64, 65, 127, 1025, 1030, 2049, 4095, 4096, 4097])
def test_columns_of_any_number(columns: int) -> None:
    x = np.ones((13, columns))
    assert_as_eager(lambda x: (x + 1.0, np.sum(x + 1.0, axis=0), np.max(x, axis=0)), x)


def test_columns_in_parts() -> None:
    x = RNG.normal(size=(3000, 1030))
    assert_as_eager(lambda x: (np.sum(x, axis=0), np.max(x, axis=0), np.sum(x * x, axis=0)), x)


def test_long_sums_of_what_is_joined_and_padded() -> None:
    x = RNG.normal(size=300_007)
    assert_as_eager(lambda x: np.sum(np.pad(x[::-2], (3, 4))), x)
    assert_as_eager(lambda x: np.sum(np.concatenate([x[:33], x]) * 2.0), x)


def test_many_rows_wait_in_memory_and_not_on_the_stack() -> None:
    tall = RNG.normal(size=(30_000, 16))

    def entropy(x: Any) -> Any:
        shares = gt.softmax(x, axis=0)
        return -np.sum(np.log(shares + 1e-9) * np.tanh(x))

    assert_as_eager(gt.grad(entropy), tall, ulps=1e5)

    def mixture(x: Any) -> Any:
        parts = [np.exp(x * (0.01 * k)) for k in range(20)]
        total = sum(np.sum(part, axis=1, keepdims=True) for part in parts)
        return sum(part / total for part in parts)

    assert_as_eager(mixture, RNG.normal(size=(8, 30_000)), ulps=1e4)


def test_many_sums_of_columns_at_once() -> None:
    x = RNG.normal(size=(31, 4096))
    assert_as_eager(lambda x: [np.sum(x * (k + 1.5), axis=0) for k in range(120)], x)


def test_a_reshaped_value_is_an_output_and_a_factor() -> None:
    def function(x: Any, w: Any) -> Any:
        stacked = np.exp(x)[:, None, :]
        return stacked, stacked @ w

    assert_as_eager(function, np.ones((3, 4)), np.ones((4, 5)))


def test_what_grows_step_by_step_compiles_in_reasonable_time() -> None:
    def grown(x: Any) -> Any:
        for _ in range(24):
            x = np.pad(x, (1, 1)) + np.pad(x, (2, 0))
        return x

    assert_as_eager(grown, np.ones(5))


# ---- what needs what ----------------------------------------------------------------------------


def test_needs_are_those_a_search_finds() -> None:
    rng, groups, direct = np.random.default_rng(0), Reachability(), []
    for _ in range(60):
        assert groups.add() == len(direct)
        direct.append(set())
        # Also things that others need already come to need more, as groups do that grow.
        for number in {len(direct) - 1, int(rng.integers(len(direct)))}:
            more = {int(n) for n in rng.integers(0, number + 1, 2)} - {number}
            direct[number] |= more
            groups.depend(number, more)
        for start in range(len(direct)):
            found, pending = set(), [start]
            while pending:
                for other in direct[pending.pop()] - found:
                    found.add(other)
                    pending.append(other)
            assert {n for n in range(len(direct)) if groups.depends(start, n)} == found
