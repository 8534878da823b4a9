"""Results of kernels have NumPy's own dtype objects, which fast paths compare by identity."""

from __future__ import annotations

import pickle

import numpy as np

import gradtape as gt


def test_an_array_with_a_dtype_of_its_own_leaves_no_trace() -> None:
    x = np.linspace(0.0, 1.0, 1 << 16)
    other = pickle.loads(pickle.dumps(x, protocol=4))
    gt.arctanh(other * 0.5)  # an op that nothing else here compiles
    assert gt.arctanh(gt.tensor(x * 0.5)).value.dtype is np.dtype(np.float64)
