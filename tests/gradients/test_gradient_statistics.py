"""Statistics of gradients: figures, problems, tables."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import gradtape as gt
from gradtape.errors import ArgumentError, ConversionError, ShapeError

statistics = gt.gradients.statistics


@dataclass
class Layer:
    w: Any
    b: Any


def test_figures(rng: np.random.Generator) -> None:
    w = rng.normal(size=(4, 3))
    w[1] = 0
    stats = statistics({"layers": [Layer(w, np.float32(2.0))], "none": None})
    leaf = stats.leaves["layers.0.w"]
    assert list(stats.leaves) == ["layers.0.w", "layers.0.b"]
    assert (leaf.shape, leaf.dtype, leaf.units, leaf.dead_units) == ((4, 3), "float64", 4, 1)
    np.testing.assert_allclose(
        [leaf.norm, leaf.mean, leaf.std, leaf.min, leaf.max, leaf.zeros],
        [np.linalg.norm(w), w.mean(), w.std(), w.min(), w.max(), 0.25],
    )
    assert (leaf.param_norm, leaf.relative, leaf.problems) == (None, None, ("dead units",))
    assert stats.leaves["layers.0.b"].dtype == "float32"
    assert stats.norm == pytest.approx(np.hypot(np.linalg.norm(w), 2.0))


def test_elements_that_are_not_finite() -> None:
    stats = statistics([np.array([1.0, np.nan, np.inf, 3.0])])
    leaf = stats.leaves["0"]
    assert (leaf.nans, leaf.infs, leaf.problems) == (1, 1, ("nan", "inf"))
    assert (leaf.mean, leaf.min, leaf.max) == (2.0, 1.0, 3.0)
    assert not np.isfinite(leaf.norm)
    assert stats.problems == ["0: 1 of 4 elements are NaN", "0: 1 of 4 elements are infinite"]
    assert not np.isfinite(stats.norm)


def test_vanishing_and_exploding() -> None:
    grads = {"a": np.full(4, 1e-9), "b": np.full(4, 1e5), "c": np.zeros(4)}
    stats = statistics(grads)
    found = {name: leaf.problems for name, leaf in stats.leaves.items()}
    assert found == {"a": ("vanishing",), "b": ("exploding",), "c": ()}
    relative = statistics(grads, {"a": np.full(4, 1e-9), "b": np.full(4, 1e5), "c": np.ones(4)})
    assert relative.problems == []
    assert relative.leaves["a"].relative == pytest.approx(1.0)
    small = statistics({"w": np.ones(2)}, {"w": np.full(2, 1e9)})
    assert small.problems == ["w: vanishing, the norm is 1e-09 times that of the parameter"]
    assert statistics({"w": np.ones(2)}, vanishing=10.0).problems == [
        "w: vanishing, the norm is 1.41"
    ]


def test_large_numbers() -> None:
    stats = statistics({"b": np.full(4, 3e38, np.float32)})
    assert stats.leaves["b"].norm == stats.norm == pytest.approx(6e38)
    assert stats.problems == ["b: exploding, the norm is 6e+38"]
    large = statistics(np.array([1e300, -1e300])).leaves["array"]
    assert (large.mean, large.std, large.norm) == (0.0, 1e300, pytest.approx(2**0.5 * 1e300))
    most = np.finfo(np.float64).max
    largest = statistics(np.full(7, most)).leaves["array"]
    assert (largest.norm, largest.mean, largest.std, largest.infs) == (np.inf, most, 0.0, 0)
    assert largest.problems == ("exploding",)
    assert statistics(np.full(7, -most)).leaves["array"].mean == -most
    tiny = statistics(np.array([5e-324, -5e-324])).leaves["array"]
    assert (tiny.mean, tiny.std) == (0.0, 5e-324)
    # The magnitude is too large for complex64, and then for complex128.
    single = statistics(np.full(2, 3e38 * (1 + 1j), np.complex64)).leaves["array"]
    assert (single.max, single.infs) == (pytest.approx(2**0.5 * 3e38), 0)
    double = statistics(np.full(2, most * (1 + 1j))).leaves["array"]
    assert (double.max, double.infs, double.problems) == (np.inf, 0, ("exploding",))


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_parameters_that_are_not_finite(wrong: float) -> None:
    params = {"w": np.array([1.0, wrong])}
    stats = statistics({"w": np.array([1e9, 0.0])}, params)
    assert stats.problems == ["w: exploding, the norm is 1e+09"]
    assert stats.leaves["w"].relative is None
    assert not np.isfinite(stats.leaves["w"].param_norm)
    assert statistics({"w": np.full(2, 1e-9)}, params).leaves["w"].problems == ("vanishing",)
    assert statistics({"w": np.ones(2)}, params).problems == []


def test_parameters_of_another_size() -> None:
    large, small = {"w": np.full(1, 1e300)}, {"w": np.full(1, 1e-300)}
    assert statistics(large, small).leaves["w"].problems == ("exploding",)
    assert statistics(small, large).leaves["w"].problems == ("vanishing",)
    wrong = statistics({"w": np.array([1e300, np.inf])}, {"w": np.ones(2)})
    assert wrong.leaves["w"].problems == ("inf",)


@pytest.mark.parametrize("dtype", [np.float16, gt.bfloat16, np.float32, np.complex64])
def test_dtypes(dtype: Any) -> None:
    x = np.full((2, 3), 3.0).astype(dtype)
    leaf = statistics(x).leaves["array"]
    assert (leaf.max, leaf.zeros, leaf.dtype) == (3.0, 0.0, np.dtype(dtype).name)
    assert leaf.norm == pytest.approx(np.sqrt(54), rel=1e-6)


def test_empty_and_tensors() -> None:
    leaf = statistics(np.zeros((0, 3))).leaves["array"]
    assert (leaf.norm, leaf.mean, leaf.units) == (0.0, 0.0, 0)
    x = gt.tensor([1.0, 2.0], requires_grad=True)
    assert statistics({"x": x * 2}).leaves["x"].max == 4.0


def test_as_data() -> None:
    stats = statistics({"w": np.ones((2, 2))}, {"w": np.ones((2, 2))})
    data = stats.to_dict()
    assert json.loads(json.dumps(data))["leaves"]["w"]["norm"] == 2.0
    assert data["problems"] == []
    text = str(stats)
    assert text.splitlines()[0].split() == [
        "gradient", "norm", "relative", "mean", "std", "min", "max", "zeros", "dead", "problems",
    ]  # fmt: skip
    assert "norm of all: 2" in text


def test_table_of_rich() -> None:
    stats = statistics({"w": np.array([[1.0], [0.0]]), "b": np.ones(1)})
    console = Console(file=io.StringIO(), width=120)
    console.print(stats.table())
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "dead units" in shown
    assert "1/2" in shown


def test_names_that_look_like_markup() -> None:
    names = ("a[b]", "[/]", "c\\", ":bug:")
    stats = statistics({name: np.full(2, np.nan if name == "a[b]" else 1.0) for name in names})
    console = Console(file=io.StringIO(), width=120)
    console.print(stats.table())
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    for name in names:
        assert f" {name} " in shown


def test_errors() -> None:
    with pytest.raises(ConversionError, match="return the gradients, and call it outside"):
        gt.jit(lambda x: statistics(x).norm)(np.ones(2))
    with pytest.raises(ShapeError, match=r"grads\['w'\] has shape"):
        statistics({"w": np.ones(2)}, {"w": np.ones(3)})
    with pytest.raises(ArgumentError, match="different containers"):
        statistics([np.ones(2)], {"w": np.ones(3)})
    with pytest.raises(
        ArgumentError, match=r"statistics: grads\['w'\]\[0\] has no parameter: None"
    ):
        statistics({"w": [np.ones(2)], "b": np.ones(1)}, {"w": [None], "b": np.ones(1)})
    assert statistics({"w": None}, {"w": np.ones(3)}).leaves == {}
    with pytest.raises(ArgumentError, match="vanishing=-1"):
        statistics([np.ones(2)], vanishing=-1.0)
