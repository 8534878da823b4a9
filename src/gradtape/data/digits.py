"""Handwritten digits, a small data set that comes with the package."""

from importlib import resources
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Each pixel counts the dark points of a 4 by 4 block, so 16 is black.
_PIXEL_MAX = np.float32(16)


class Digits(NamedTuple):
    """Handwritten digits, split into a training and a test set.

    An image is a row of 64 pixels (8 by 8, row by row) in [0, 1]; a label is the digit it shows.

    >>> from gradtape.data import load_digits
    >>> load_digits(test_fraction=0.0).train_images.shape
    (1797, 64)
    """

    train_images: NDArray[np.float32]
    train_labels: NDArray[np.int64]
    test_images: NDArray[np.float32]
    test_labels: NDArray[np.int64]


def load_digits(*, test_fraction: float = 0.2, seed: int = 0) -> Digits:
    """Load the 1797 handwritten digits of the UCI repository, shuffled and split.

    Args:
        test_fraction: the part held back as test set, in [0, 1).
        seed: chooses the shuffle; the same seed gives the same split everywhere.

    Returns:
        New arrays, free to be written to.

    Raises:
        ValueError: if `test_fraction` is not in [0, 1), or `seed` is negative.

    Example:
        >>> from gradtape.data import load_digits
        >>> digits = load_digits()
        >>> digits.train_images.shape, digits.test_images.shape
        ((1438, 64), (359, 64))
        >>> digits.train_labels[:5]
        array([9, 6, 7, 4, 4])
    """
    if not 0 <= test_fraction < 1:
        raise ValueError(
            f"load_digits: test_fraction is {test_fraction}, expected a number in [0, 1); "
            "pass 0.2 to hold back a fifth"
        )
    with (
        resources.files(__package__).joinpath("digits.npz").open("rb") as file,
        np.load(file, allow_pickle=False) as archive,
    ):
        images = archive["images"].astype(np.float32) / _PIXEL_MAX
        labels = archive["labels"].astype(np.int64)
    # NumPy keeps the raw stream of a bit generator fixed for ever, but not `permutation`.
    order = np.argsort(np.random.PCG64(seed).random_raw(len(labels)), kind="stable")
    n_test = int(test_fraction * len(labels))
    train, test = order[n_test:], order[:n_test]
    return Digits(images[train], labels[train], images[test], labels[test])
