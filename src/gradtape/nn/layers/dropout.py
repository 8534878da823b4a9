"""Dropout as modules: random zeros in training, nothing in evaluation."""

from __future__ import annotations

from typing import ClassVar

from gradtape.nn.layers.applied import Applied
from gradtape.ops.checks import check_between
from gradtape.ops.nn.dropout import (
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
)


class _Dropout(Applied, training=True):
    p: float = 0.5
    _checks: ClassVar = {"p": (check_between, 0, 1)}


class Dropout(_Dropout, function=dropout):
    """Sets elements to 0 at random in training, and divides the others by 1 - p: `gt.nn.dropout`.

    Args:
        p: The probability of an element to be dropped.

    Raises:
        ArgumentError: `p` is no probability.

    >>> layer = gt.nn.Dropout(0.25)
    >>> np.unique(layer(np.ones(1000))), layer.eval()(np.ones(2))
    (array([0.        , 1.33333333]), array([1., 1.]))
    """


class Dropout1d(_Dropout, function=dropout1d):
    """Sets whole channels of sequences to 0 at random in training: `gt.nn.dropout1d`.

    >>> float(np.ptp(gt.nn.Dropout1d()(np.ones((2, 3, 4))), axis=2).max())
    0.0
    """


class Dropout2d(_Dropout, function=dropout2d):
    """Sets whole channels of images to 0 at random in training: `gt.nn.dropout2d`.

    >>> float(np.ptp(gt.nn.Dropout2d()(np.ones((2, 3, 4, 4))), axis=(2, 3)).max())
    0.0
    """


class Dropout3d(_Dropout, function=dropout3d):
    """Sets whole channels of volumes to 0 at random in training: `gt.nn.dropout3d`.

    >>> float(np.ptp(gt.nn.Dropout3d()(np.ones((2, 3, 2, 2, 2))), axis=(2, 3, 4)).max())
    0.0
    """


class AlphaDropout(_Dropout, function=alpha_dropout):
    """Dropout for SELU, which keeps mean and variance: `gt.nn.alpha_dropout`.

    Args:
        p: The probability of an element to be dropped.

    >>> bool(abs(np.std(gt.nn.AlphaDropout(0.3)(gt.randn(10000))) - 1) < 0.1)
    True
    """


class FeatureAlphaDropout(_Dropout, function=feature_alpha_dropout):
    """Dropout of whole channels for SELU: `gt.nn.feature_alpha_dropout`.

    Args:
        p: The probability of a channel to be dropped.

    >>> float(np.ptp(gt.nn.FeatureAlphaDropout()(np.ones((2, 3, 4))), axis=2).max())
    0.0
    """
