"""The data sets that come with the package."""

import hashlib

import numpy as np
import pytest

from gradtape.data import Digits, load_digits

N_IMAGES = 1797
# How often each digit occurs in the UCI test set.
CLASS_COUNTS = [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
# Of pixels (uint8) followed by the label, rows sorted: independent of the split.
CONTENT_SHA256 = "922f8bcf7625699058bfcdca9f67ada239072ee6998c6c7618869bf9ed8adc35"


def sorted_rows(digits: Digits) -> np.ndarray:
    """Every image with its label as one row of bytes, in an order that forgets the split."""
    images = np.concatenate([digits.train_images, digits.test_images])
    labels = np.concatenate([digits.train_labels, digits.test_labels])
    rows = np.column_stack([images * 16, labels]).astype(np.uint8)
    return rows[np.lexsort(rows.T)]


def test_shapes_and_dtypes():
    digits = load_digits()
    assert digits.train_images.shape == (1438, 64)
    assert digits.train_labels.shape == (1438,)
    assert digits.test_images.shape == (359, 64)
    assert digits.test_labels.shape == (359,)
    assert digits.train_images.dtype == digits.test_images.dtype == np.float32
    assert digits.train_labels.dtype == digits.test_labels.dtype == np.int64


def test_pixels_are_sixteenths_and_use_the_whole_range():
    images = load_digits(test_fraction=0).train_images
    assert images.min() == 0
    assert images.max() == 1
    np.testing.assert_array_equal(images * 16, np.round(images * 16))


def test_classes_are_those_of_the_source():
    labels = load_digits(test_fraction=0).train_labels
    assert np.bincount(labels).tolist() == CLASS_COUNTS


@pytest.mark.parametrize("test_fraction", [0.0, 0.2, 0.5, 0.999])
@pytest.mark.parametrize("seed", [0, 1, 2**40])
def test_split_keeps_every_image_with_its_label(test_fraction, seed):
    digits = load_digits(test_fraction=test_fraction, seed=seed)
    assert len(digits.test_labels) == int(test_fraction * N_IMAGES)
    assert hashlib.sha256(sorted_rows(digits).tobytes()).hexdigest() == CONTENT_SHA256


def test_same_seed_same_split_other_seed_other_split():
    first, again, other = load_digits(seed=3), load_digits(seed=3), load_digits(seed=4)
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first.train_labels, other.train_labels)


def test_split_of_seed_zero_never_changes():
    # Figures quoted in the documentation belong to this split.
    digits = load_digits()
    assert digits.train_labels[:10].tolist() == [9, 6, 7, 4, 4, 2, 4, 4, 9, 9]
    assert digits.test_labels[:10].tolist() == [0, 6, 3, 8, 1, 8, 4, 1, 5, 8]


def test_labels_belong_to_their_images():
    # The nearest class mean is right for nine images of ten; a wrong pairing gives one of ten.
    digits = load_digits()
    means = np.stack([digits.train_images[digits.train_labels == k].mean(0) for k in range(10)])
    distances = ((digits.test_images[:, None] - means) ** 2).sum(-1)
    assert (distances.argmin(1) == digits.test_labels).mean() > 0.85


def test_arrays_are_owned_by_the_caller():
    digits = load_digits()
    for array in digits:
        assert array.flags.owndata
        assert array.flags.writeable
        assert array.flags.c_contiguous
    digits.train_images[:] = 0
    assert load_digits().train_images.max() == 1


@pytest.mark.parametrize("test_fraction", [-0.1, 1.0, 1.5, float("nan")])
def test_fraction_out_of_range_raises(test_fraction):
    with pytest.raises(ValueError, match=r"load_digits: test_fraction is .*, expected .*; pass"):
        load_digits(test_fraction=test_fraction)


def test_negative_seed_raises():
    with pytest.raises(ValueError, match="non-negative"):
        load_digits(seed=-1)
