"""Noise, and pipelines of steps: reproducible, pure, compiled, with parameters."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError

g = gt.gradients


# ---- noise --------------------------------------------------------------------------------------


def test_noise_has_its_deviation() -> None:
    x = np.zeros((200, 500))
    noisy = g.add_noise({"x": x, "none": None}, 0.3, generator=gt.random.Generator(1))
    assert noisy["none"] is None
    assert noisy["x"].std() == pytest.approx(0.3, rel=0.01)
    assert abs(noisy["x"].mean()) < 0.005
    later = g.add_noise(x, 0.3, step=99, decay=0.5, generator=gt.random.Generator(1))
    np.testing.assert_allclose(later, noisy["x"] / 100**0.25, rtol=1e-12)
    complexes = g.add_noise(x + 0j, 0.3, generator=gt.random.Generator(1))
    assert np.mean(np.abs(complexes) ** 2) == pytest.approx(0.09, rel=0.01)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, gt.bfloat16])
def test_noise_is_reproducible(dtype: Any) -> None:
    grads = {"a": np.ones(5, dtype), "b": np.ones((2, 2), dtype), "c": dtype(1.0)}
    gt.manual_seed(3)
    one = g.add_noise(grads, 0.1)
    gt.manual_seed(3)
    two = g.add_noise(grads, 0.1)
    other = g.add_noise(grads, 0.1)
    for name, value in grads.items():
        assert one[name].dtype == value.dtype
        np.testing.assert_array_equal(one[name], two[name])
        assert np.any(one[name] != other[name])
    assert not np.array_equal(one["a"][:4], one["b"].ravel())


def test_noise_is_drawn_at_each_call_of_compiled_code() -> None:
    noisy = gt.jit(lambda x: g.add_noise(x, 0.1))
    x = np.zeros(1000)
    gt.manual_seed(0)
    one, two = noisy(x), noisy(x)
    assert not np.array_equal(one, two)
    assert one.std() == pytest.approx(0.1, rel=0.1)
    gt.manual_seed(0)
    np.testing.assert_array_equal(noisy(x), one)
    np.testing.assert_array_equal(g.add_noise(x, 0.0), x)


def test_noise_counts_its_steps() -> None:
    noise = g.Noise(1.0, decay=1.0, generator=gt.random.Generator(0))
    same = gt.random.Generator(0)
    for step in range(3):
        expected = g.add_noise(np.zeros(4), 1.0, step=step, decay=1.0, generator=same)
        np.testing.assert_array_equal(noise(np.zeros(4)), expected)
    with pytest.raises(ArgumentError, match="scale=-1"):
        g.Noise(-1.0)
    with pytest.raises(ArgumentError, match="step=-1"):
        g.add_noise(np.ones(2), 1.0, step=-1)


# ---- pipelines ----------------------------------------------------------------------------------


def make() -> Any:
    return g.Pipeline(
        [
            partial(g.clip_by_value, clip_value=2.0),
            partial(g.adaptive_clip, clipping=0.5),
            g.AutoClip(50.0, history=5),
            lambda grads: {name: x * 2 for name, x in grads.items()},
        ]
    )


def test_steps_run_in_order(rng: np.random.Generator) -> None:
    pipeline, clip = make(), g.AutoClip(50.0, history=5)
    params = {"w": rng.normal(size=3)}
    for _ in range(4):
        grads = {"w": 3 * rng.normal(size=3)}
        expected = g.clip_by_value(grads, 2.0)
        expected = clip(g.adaptive_clip(expected, params, 0.5))
        np.testing.assert_allclose(
            pipeline(grads, params=params)["w"], 2 * expected["w"], rtol=1e-12
        )
    names = [step.name for step in pipeline.report]
    assert names == [
        "clip_by_value(clip_value=2.0)", "adaptive_clip(clipping=0.5)", "AutoClip(50.0, 5)",
        "<lambda>",
    ]  # fmt: skip
    assert pipeline.report[0].before == pytest.approx(np.linalg.norm(grads["w"]))
    assert pipeline.report[-1].after == pytest.approx(np.linalg.norm(2 * expected["w"]))
    assert " -> " in str(pipeline)
    assert " -> " not in str(pipeline.reset())
    assert clip.state is not None
    assert pipeline.steps[2].state is None


def test_pure_form_in_compiled_code(rng: np.random.Generator) -> None:
    pipeline, eager = make(), make()
    params = {"w": rng.normal(size=3)}
    state = pipeline.init(params)
    assert list(state) == ["2"]
    step = gt.jit(lambda grads, state, params: pipeline.apply(grads, state, params))
    for _ in range(4):
        grads = {"w": 3 * rng.normal(size=3)}
        made, state = step(grads, state, params)
        np.testing.assert_allclose(made["w"], eager(grads, params)["w"], rtol=1e-12)


def test_pipelines_nest() -> None:
    inner = g.Pipeline([g.Noise(0.0), partial(g.clip_by_norm, max_norm=1.0)])
    outer = g.Pipeline([inner, partial(g.clip_by_value, clip_value=0.7)])
    np.testing.assert_allclose(outer(np.array([3.0, 4.0])), [0.6, 0.7])
    made, state = outer.apply(np.array([3.0, 4.0]), outer.init(np.zeros(2)))
    np.testing.assert_allclose(made, [0.6, 0.7])
    assert state == {"0": {"0": {"step": 1}}}


# ---- the state of a pipeline --------------------------------------------------------------------


def make_with_states() -> Any:
    inner = g.Pipeline([g.TopK(12), g.Noise(0.0)])
    return g.Pipeline([g.AutoClip(50.0, 4), partial(g.clip_by_value, clip_value=1.5), inner,
                       g.LowRank(1)])  # fmt: skip


def test_states_go_through_a_file(rng: np.random.Generator, tmp_path: Path) -> None:
    drawn = [{"w": rng.normal(size=(4, 6)), "b": rng.normal(size=3)} for _ in range(6)]
    pipeline, again = make_with_states(), make_with_states()
    assert pipeline.state is None
    for grads in drawn[:3]:
        pipeline(grads)
    assert list(pipeline.state) == ["0", "2", "3"]
    assert list(pipeline.state["2"]) == ["0", "1"]
    gt.save(tmp_path / "state", pipeline.state)
    again.state = gt.load(tmp_path / "state", like=again.init(drawn[0]))
    assert again.steps[0].threshold == pipeline.steps[0].threshold
    for grads in drawn[3:]:
        expected, found = pipeline(grads), again(grads)
        np.testing.assert_array_equal(found["w"], expected["w"])
        np.testing.assert_array_equal(found["b"], expected["b"])
    pure, _ = again.apply(drawn[0], again.state)
    np.testing.assert_array_equal(pure["w"], again(drawn[0])["w"])
    again.state = None
    assert again.state is None
    assert again.steps[0].state is None
    assert pipeline.reset().state is None


def test_state_of_a_pipeline_without_states() -> None:
    pipeline = g.Pipeline([g.Pipeline([partial(g.clip_by_norm, max_norm=1.0)])])
    assert pipeline.state is None
    pipeline(np.ones(2))
    assert pipeline.state == pipeline.init(np.ones(2)) == {"0": {}}
    pipeline.state = {"0": {}}
    pipeline.apply(np.ones(2), pipeline.state)


def test_states_of_steps_that_were_used_before() -> None:
    clip = g.AutoClip()
    clip(np.ones(2))
    pipeline = g.Pipeline([clip, g.Noise(0.0)])
    assert pipeline.state == {"0": clip.state, "1": None}
    pipeline.state = pipeline.state
    pipeline(np.ones(2))
    assert pipeline.state["1"] == {"step": 1}


def test_states_that_do_not_fit() -> None:
    pipeline = g.Pipeline([g.Noise(0.0), g.AutoClip(history=3), g.TopK(1)])
    pipeline(np.ones(2))
    before = pipeline.state
    for wrong, text in (
        ({"0": before["0"]}, r"Pipeline: got a state of \['0'\], expected \['0', '1', '2'\]"),
        ([before["0"]], "Pipeline: got a state of list"),
        ({**before, "2": before["1"]}, r"TopK: got a state of .*expected \['memory', 'residual'\]"),
        ({**before, "1": g.AutoClip(history=5).init(None)}, r"AutoClip: .* of 5 norms, expected 3"),
    ):
        with pytest.raises(ArgumentError, match=text):
            pipeline.state = {**wrong, "0": {"step": 9}} if isinstance(wrong, dict) else wrong
        assert pipeline.steps[0].state == before["0"]


def test_errors() -> None:
    with pytest.raises(ArgumentError, match="got a float as a step"):
        g.Pipeline([1.0])
    with pytest.raises(ArgumentError, match=r"adaptive_clip needs the parameters.*params="):
        g.Pipeline([g.adaptive_clip])(np.ones(2))
    with pytest.raises(ArgumentError, match=r"expected \['2'\]"):
        make().apply(np.ones(2), {})


@pytest.mark.parametrize("steps", [g.AutoClip(50.0), "clip", None])
def test_steps_that_are_no_list(steps: Any) -> None:
    with pytest.raises(ArgumentError, match=r"Pipeline: got an? .*, expected a list of steps"):
        g.Pipeline(steps)
