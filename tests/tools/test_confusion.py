"""Confusion matrices: counts, parts and refusals."""

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError, DTypeError, NonFiniteError, ShapeError


def test_counts_have_actual_classes_as_rows():
    matrix = gt.ConfusionMatrix([0, 0, 1, 2, 2, 2], [0, 1, 1, 2, 0, 0])
    np.testing.assert_array_equal(matrix.counts, [[1, 1, 0], [0, 1, 0], [2, 0, 1]])
    assert matrix.accuracy == 0.5
    np.testing.assert_allclose(matrix.recall, [0.5, 1.0, 1 / 3])
    np.testing.assert_allclose(matrix.precision, [1 / 3, 0.5, 1.0])
    assert matrix.most_confused(1) == [("2", "0", 2)]


def test_scores_are_taken_as_classes():
    scores = gt.tensor(np.array([[0.1, 0.9, 0.0], [0.8, 0.1, 0.1]]), requires_grad=True)
    matrix = gt.ConfusionMatrix(gt.tensor([1, 1]), scores * 2.0)
    np.testing.assert_array_equal(matrix.counts, [[0, 0, 0], [1, 1, 0], [0, 0, 0]])


def test_classes_without_items_have_no_accuracy():
    matrix = gt.ConfusionMatrix([0, 2], [0, 2], classes=["a", "b", "c"])
    assert np.isnan(matrix.recall[1])
    assert np.isnan(matrix.precision[1])
    assert str(matrix).splitlines()[2].split() == ["b", "0", "0", "0"]
    assert str(matrix).endswith("2 of 2 items are right, 100.0%")


@pytest.mark.parametrize(
    ("labels", "predictions", "options", "error", "match"),
    [
        ([], [], {}, ArgumentError, "no items"),
        ([0, 1], [0], {}, ShapeError, r"\(2,\) and predictions of shape \(1,\)"),
        ([[0], [1]], [0, 1], {}, ShapeError, "labels of shape"),
        ([0.5], [0], {}, DTypeError, "labels of float64"),
        ([0], [0.5], {}, DTypeError, "predictions of float64"),
        ([-1], [0], {}, ArgumentError, "from -1 to 0"),
        ([0, 1], [[-0.5], [0.5]], {}, ShapeError, "with one for both"),
        ([0, 1], [[0.5, 0.1], [0.5, np.nan]], {}, NonFiniteError, "scores of item 1"),
        ([0], [3], {"classes": ["a", "b"]}, ArgumentError, "from 0 to 3, expected 0 to 1"),
    ],
)
def test_bad_input(labels, predictions, options, error, match):
    with pytest.raises(error, match=match):
        gt.ConfusionMatrix(np.array(labels), np.array(predictions), **options)
