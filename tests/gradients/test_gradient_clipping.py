"""Clipping gradients: values, dtypes, containers, compiled code, what is not finite, and errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import containers
from gradtape.errors import ArgumentError, DTypeError, NonFiniteError, ShapeError

g = gt.gradients


@dataclass
class Layer:
    w: Any
    b: Any = None


def kinds_of(dtype: Any = np.float64) -> dict[str, Any]:
    """The same numbers, of norm 13, in several containers."""
    a, b, c = (np.array(x, dtype) for x in ([3.0, 4.0], [[12.0], [0.0]], 0.0))
    return {
        "dict": {"a": a, "more": {"b": b, "none": None}, "c": c},
        "list": [a, (b, c), None],
        "class": [Layer(a, b), Layer(c)],
    }


CLIPS = {
    "global norm": lambda x: g.clip_by_global_norm(x, 1.0),
    "norm": lambda x: g.clip_by_norm(x, 2.0),
    "value": lambda x: g.clip_by_value(x, 3.5),
    "adaptive": lambda x: g.adaptive_clip(x, containers.map_leaves(lambda v: v * 0 + 0.5, x), 0.1),
    "auto": lambda x: g.AutoClip(50.0).apply(x, g.AutoClip(50.0).init(x))[0],
}
clips = pytest.mark.parametrize("clip", CLIPS.values(), ids=CLIPS)
places = pytest.mark.parametrize("kind", kinds_of())


def test_names_are_those_of_the_guide() -> None:
    assert gt.gradient_clipping.clip_by_global_norm is g.clip_by_global_norm
    grads = [np.array([3.0, 4.0])]
    made = gt.gradient_clipping.clip_by_global_norm(grads, 1.0)
    np.testing.assert_allclose(made[0], [0.6, 0.8], rtol=1e-15)


@clips
@places
def test_containers_and_dtypes_are_kept(clip: Any, kind: str) -> None:
    for dtype in (np.float64, np.float32, np.float16, gt.bfloat16):
        grads = kinds_of(dtype)[kind]
        made = clip(grads)
        assert containers.flatten(made)[1] == containers.flatten(grads)[1]
        for new, old in zip(containers.flatten(made)[0], containers.flatten(grads)[0], strict=True):
            assert (type(new), new.dtype, new.shape) == (np.ndarray, old.dtype, old.shape)
            assert not np.shares_memory(new, old)


@clips
@places
def test_tensors_and_compiled(clip: Any, kind: str) -> None:
    grads = kinds_of()[kind]
    expected = containers.flatten(clip(grads))[0]
    tensors = containers.flatten(clip(containers.map_leaves(gt.tensor, grads)))[0]
    assert all(isinstance(x, gt.Tensor) for x in tensors)
    compiled = containers.flatten(gt.jit(clip)(grads))[0]
    for x, y, z in zip(expected, tensors, compiled, strict=True):
        np.testing.assert_allclose(y.numpy(), x, rtol=1e-14)
        np.testing.assert_allclose(z, x, rtol=1e-14)


# ---- values -------------------------------------------------------------------------------------


@places
def test_global_norm(kind: str) -> None:
    grads = kinds_of()[kind]
    assert g.global_norm(grads) == 13.0
    clipped, norm = g.clip_by_global_norm(grads, 6.5, return_norm=True)
    assert norm == 13.0
    for new, old in zip(containers.flatten(clipped)[0], containers.flatten(grads)[0], strict=True):
        np.testing.assert_array_equal(new, old / 2)
    same = g.clip_by_global_norm(grads, 13.0)
    for new, old in zip(containers.flatten(same)[0], containers.flatten(grads)[0], strict=True):
        np.testing.assert_array_equal(new, old)


def test_each_by_itself() -> None:
    made = g.clip_by_norm([np.array([3.0, 4.0]), np.array([1.0, 0.0])], 2.5)
    np.testing.assert_array_equal(made[0], [1.5, 2.0])
    np.testing.assert_array_equal(made[1], [1.0, 0.0])


def test_by_value() -> None:
    x = np.array([-5.0, -0.5, 0.5, 5.0, np.inf, np.nan])
    np.testing.assert_array_equal(g.clip_by_value(x, 1.0), [-1, -0.5, 0.5, 1, 1, np.nan])
    np.testing.assert_array_equal(g.clip_by_value(x, (0.0, 2.0)), [0, 0, 0.5, 2, 2, np.nan])
    assert g.clip_by_value(3.0, 1.0) == 1.0


def test_zeros_and_nothing() -> None:
    assert g.global_norm([]) == 0.0
    assert g.global_norm([np.zeros(0), None]) == 0.0
    np.testing.assert_array_equal(g.clip_by_global_norm(np.zeros(3), 1.0), np.zeros(3))
    np.testing.assert_array_equal(g.clip_by_norm(np.zeros((0, 3)), 1.0), np.zeros((0, 3)))
    np.testing.assert_array_equal(
        g.adaptive_clip(np.zeros((2, 3)), np.ones((2, 3))), np.zeros((2, 3))
    )
    slope = gt.grad(lambda x: g.global_norm([x]))(np.zeros(3))
    np.testing.assert_array_equal(slope, np.zeros(3))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("size", [1.0, 1e200, 1e-200, 1e-310])
def test_squares_that_overflow_in_float64(size: float, compiled: bool) -> None:
    run = gt.jit if compiled else lambda f: f
    x = np.array([3.0, 4.0]) * size
    norm = run(g.global_norm)([x])
    np.testing.assert_allclose(norm, 5.0 * size, rtol=1e-12 if size > 1e-300 else 1e-6)
    clipped = run(lambda x: g.clip_by_norm(x, 1e-3 * size))(x)
    np.testing.assert_allclose(clipped, x * (1e-3 / 5), rtol=1e-12 if size > 1e-300 else 1e-3)


def test_squares_that_overflow_in_small_floats() -> None:
    half = np.full((100, 100), 6e4, np.float16)
    np.testing.assert_allclose(g.global_norm(half), 100 * float(half[0, 0]), rtol=1e-6)
    clipped = g.clip_by_global_norm(half, 100.0)
    np.testing.assert_allclose(clipped.astype(float), 1.0, rtol=1e-3)
    single = np.full(10, 1e30, np.float32)
    np.testing.assert_allclose(g.global_norm(single), np.sqrt(10) * 1e30, rtol=1e-6)
    wide = np.full(10, 1e38, gt.bfloat16)
    np.testing.assert_allclose(g.clip_by_norm(wide, 1.0).astype(float), np.sqrt(0.1), rtol=1e-2)
    # The norm itself does not fit, the gradients do.
    huge = np.full(100, 3e38, np.float32)
    np.testing.assert_allclose(g.clip_by_global_norm(huge, 10.0), np.ones(100), rtol=1e-6)
    np.testing.assert_allclose(
        g.adaptive_clip(huge, huge * 0 + 1, 0.1), np.full(100, 0.1), rtol=1e-6
    )


def test_mixed_dtypes() -> None:
    grads = [np.array([3e30], np.float32), np.array([4e30]), np.array([0.0], np.float16)]
    assert g.global_norm(grads) == pytest.approx(5e30, rel=1e-6)
    clipped = g.clip_by_global_norm(grads, 5.0)
    assert [x.dtype for x in clipped] == [x.dtype for x in grads]
    np.testing.assert_allclose([float(x[0]) for x in clipped], [3, 4, 0], rtol=1e-6)
    complexes = np.array([3.0 + 4.0j, 0.0])
    np.testing.assert_allclose(g.clip_by_norm(complexes, 1.0), [0.6 + 0.8j, 0])


def test_adaptive_clipping_against_its_definition(rng: np.random.Generator) -> None:
    params = {"w": rng.normal(size=(4, 3, 2)), "b": rng.normal(size=4) * 1e-5}
    grads = {
        "w": rng.normal(size=(4, 3, 2)) * np.array([1e-4, 1, 10, 0])[:, None, None],
        "b": rng.normal(size=4),
    }
    made = g.adaptive_clip(grads, params, 0.02, 1e-3)
    for n in range(4):
        size = np.linalg.norm(grads["w"][n])
        limit = 0.02 * max(np.linalg.norm(params["w"][n]), 1e-3)
        factor = min(1.0, limit / size) if size else 1.0
        np.testing.assert_allclose(made["w"][n], grads["w"][n] * factor, rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(made["b"]), 0.02 * 1e-3, rtol=1e-12)
    last = g.adaptive_clip(grads["w"], params["w"], 0.02, unit_axis=-1)
    first = g.adaptive_clip(np.moveaxis(grads["w"], -1, 0), np.moveaxis(params["w"], -1, 0), 0.02)
    np.testing.assert_allclose(last, np.moveaxis(first, 0, -1), rtol=1e-12)


def test_adaptive_clipping_passes_none() -> None:
    made = g.adaptive_clip({"w": np.ones(2), "b": None}, {"w": np.ones(2), "b": np.ones(3)})
    assert made["b"] is None


def test_limits_and_gradients_may_be_differentiated(rng: np.random.Generator) -> None:
    x = rng.normal(size=5) * 3
    gt.testing.check_grads(lambda x: g.clip_by_global_norm(x, 1.0), (x,), order=1)
    gt.testing.check_grads(lambda x, c: g.clip_by_norm(x, c), (x, np.array(0.5)), order=1)
    gt.testing.check_grads(lambda x: g.global_norm([x, x[:2]]), (x,), order=2)


# ---- percentiles --------------------------------------------------------------------------------


def test_percentiles_of_past_norms(rng: np.random.Generator) -> None:
    clip, norms = g.AutoClip(30.0, history=4), []
    for _ in range(9):
        x = rng.normal(size=3)
        norms.append(np.linalg.norm(x))
        limit = np.percentile(norms[-4:], 30.0)
        np.testing.assert_allclose(
            np.linalg.norm(clip({"x": x})["x"]), min(limit, norms[-1]), rtol=1e-12
        )
        np.testing.assert_allclose(clip.threshold, limit, rtol=1e-12)
    assert np.isnan(clip.reset().threshold)


def test_percentiles_in_compiled_code(rng: np.random.Generator) -> None:
    clip = g.AutoClip(30.0, history=4)
    pure = gt.jit(clip.apply)
    state = clip.init(np.zeros(3))
    for _ in range(7):
        x = rng.normal(size=3)
        made, state = pure(x, state)
        np.testing.assert_allclose(made, clip(x), rtol=1e-12)


def test_norms_that_are_not_finite_are_not_remembered() -> None:
    clip = g.AutoClip(100.0, nonfinite="zero")
    np.testing.assert_array_equal(clip(np.array([np.nan, 1.0])), [0, 0])
    np.testing.assert_array_equal(clip(np.array([2.0, 0.0])), [2, 0])
    np.testing.assert_array_equal(clip(np.array([np.inf, 1.0])), [0, 0])
    assert clip.threshold == 2.0
    with pytest.raises(NonFiniteError, match="grads has 1 NaN"):
        g.AutoClip(10.0)(np.array([np.nan, 1.0]))


# ---- what is not finite -------------------------------------------------------------------------

WRONG = {"a": np.ones(2), "layers": [Layer(np.array([1.0, np.nan, np.inf, -np.inf]))]}
BY_NORM = {
    "clip_by_global_norm": lambda x, **options: g.clip_by_global_norm(x, 1.0, **options),
    "clip_by_norm": lambda x, **options: g.clip_by_norm(x, 1.0, **options),
    "adaptive_clip": lambda x, **options: g.adaptive_clip(x, x, 0.5, **options),
}
by_norm = pytest.mark.parametrize("name", BY_NORM)


@by_norm
def test_the_leaf_is_named(name: str) -> None:
    params = containers.map_leaves(np.ones_like, WRONG)
    run = BY_NORM[name] if name != "adaptive_clip" else lambda x: g.adaptive_clip(x, params)
    with pytest.raises(
        NonFiniteError,
        match=rf"{name}: grads\['layers'\]\[0\]\.w has 1 NaN and 2 infinite of 4 elements",
    ):
        run(WRONG)
    with pytest.raises(FloatingPointError):
        run(containers.map_leaves(gt.tensor, WRONG))


@pytest.mark.parametrize("compiled", [False, True])
def test_what_is_done_instead(compiled: bool) -> None:
    run = gt.jit if compiled else lambda f: f
    for name, clip in BY_NORM.items():
        if name == "adaptive_clip":
            continue
        zero = run(lambda x, clip=clip: clip(x, nonfinite="zero"))(WRONG)
        np.testing.assert_array_equal(zero["layers"][0].w, np.zeros(4))
        whole = name == "clip_by_global_norm"
        np.testing.assert_allclose(zero["a"], np.zeros(2) if whole else np.ones(2) / np.sqrt(2))
        passed = run(lambda x, clip=clip: clip(x, nonfinite="pass"))(WRONG)
        np.testing.assert_array_equal(passed["layers"][0].w, WRONG["layers"][0].w)
        np.testing.assert_allclose(passed["a"], np.ones(2) if whole else np.ones(2) / np.sqrt(2))
    units = np.array([[np.nan, 1.0], [30.0, 40.0]])
    made = run(lambda x: g.adaptive_clip(x, np.ones((2, 2)), 1.0, nonfinite="zero"))(units)
    np.testing.assert_allclose(made, [[0, 0], [0.6 * np.sqrt(2), 0.8 * np.sqrt(2)]])


def test_compiled_code_gives_nan_in_place_of_an_error() -> None:
    made = gt.jit(lambda x: g.clip_by_global_norm(x, 1.0))(WRONG)
    assert np.isnan(made["a"]).all()
    batch = gt.vmap(lambda x: g.clip_by_global_norm(x, 1.0))(np.array([[3.0, 4.0], [np.nan, 1.0]]))
    np.testing.assert_allclose(batch, [[0.6, 0.8], [np.nan, np.nan]])


# ---- errors -------------------------------------------------------------------------------------


def test_errors() -> None:
    x = np.ones((2, 2))
    for call, error, text in (
        (lambda: g.clip_by_global_norm(x, 0.0), ArgumentError, "max_norm=0.0, expected a positive"),
        (lambda: g.clip_by_norm(x, np.nan), ArgumentError, "max_norm=nan"),
        (lambda: g.clip_by_norm(x, 1.0, nonfinite="skip"), ArgumentError, "nonfinite='skip'"),
        (lambda: g.clip_by_value(x, -1.0), ArgumentError, "clip_value=-1.0"),
        (lambda: g.clip_by_value(x, (2.0, 1.0)), ArgumentError, "low <= high"),
        (lambda: g.clip_by_value(x, (1.0,)), ArgumentError, "a number or"),
        (lambda: g.clip_by_value(x * 1j, 1.0), DTypeError, "complex ones have no order"),
        (lambda: g.global_norm({"w": ["text"]}), DTypeError, r"grads\['w'\]\[0\] is a str"),
        (lambda: g.global_norm(np.arange(3)), DTypeError, "grads is int64"),
        (lambda: g.adaptive_clip([x], {"w": x}), ArgumentError, "different containers"),
        (
            lambda: g.adaptive_clip([x], [None]),
            ArgumentError,
            r"grads\[0\] has no parameter: None, expected an array of shape \(2, 2\)",
        ),
        (
            lambda: g.adaptive_clip({"w": [x]}, {"w": [x, x]}),
            ArgumentError,
            r"grads\['w'\] is a list of 1, expected a list of 2, as in the parameters",
        ),
        (lambda: g.adaptive_clip([x], [x[0]]), ShapeError, r"grads\[0\] has shape \(2, 2\)"),
        (lambda: g.adaptive_clip(x, x, -1.0), ArgumentError, "clipping=-1.0"),
        (lambda: g.adaptive_clip(x, x, unit_axis=2), ArgumentError, "unit_axis=2"),
        (lambda: g.AutoClip(120.0), ArgumentError, "percentile=120.0"),
        (lambda: g.AutoClip(10.0, 1.5), DTypeError, "history=1.5, expected an integer"),
        (lambda: g.AutoClip(10.0, 0), ArgumentError, "history=0"),
        (lambda: g.AutoClip(10.0).apply(x, {}), ArgumentError, r"make it by init\(grads\)"),
    ):
        with pytest.raises(error, match=text):
            call()
