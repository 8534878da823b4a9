"""Matrices with values that are repeated or 0, for tests of what decompositions make of them."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt

RNG = np.random.default_rng(0)
Q = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
P = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
WEIGHTS = RNG.normal(size=(3, 3))
DIRECTION = RNG.normal(size=(3, 3))
# Repeated eigenvalues, along the axes and not; all of them equal; all of them 0.
REPEATED = {
    "diagonal": np.diag([1.0, 1.0, 3.0]),
    "turned": Q @ np.diag([1.0, 1.0, 3.0]) @ Q.T,
    "identity": np.eye(3),
    "zero": np.zeros((3, 3)),
}
# Repeated singular values; of lower rank.
SINGULAR = {
    "identity": np.eye(3),
    "orthogonal": Q,
    "pair": Q @ np.diag([2.0, 2.0, 1.0]) @ P.T,
    "rank 2": Q @ np.diag([2.0, 1.0, 0.0]) @ P.T,
    "rank 1": Q @ np.diag([2.0, 0.0, 0.0]) @ P.T,
    "zero": np.zeros((3, 3)),
}


def symmetric(x: Any) -> Any:
    return (x + gt.conj(x).mT) / 2


def weighted(x: Any) -> Any:
    return gt.sum(x * WEIGHTS)
