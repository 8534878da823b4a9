"""Repeated values in thousands of random positions: what has no derivative is always refused.

And what has one is right. Neither may hang on rounding, and so on the machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import gradtape as gt
from gradtape.errors import NotDifferentiableError
from gradtape.ops.linalg.gauge import place
from turned import DTYPES, KINDS, Function, unitary

# How far gradients may be off: conditions are up to some hundred.
ACCURACY = {np.dtype(np.float32): 1e-3, np.dtype(np.float64): 1e-10}


def refuses(function: Function, matrix: Any) -> bool:
    try:
        gt.grad(function)(matrix)
    except NotDifferentiableError:
        return True
    return False


def complaints(kind: str, dtype: Any, turns: int, seed: int) -> Counter[str]:
    """What was not as it should be, and how often."""
    found: Counter[str] = Counter()
    rng = np.random.default_rng(seed)
    for _ in range(turns):
        matrix, refused, known = KINDS[kind](rng, dtype)
        accuracy = ACCURACY[matrix.real.dtype]
        for name, function in refused.items():
            if not refuses(function, matrix):
                found[f"{name}: not refused"] += 1
        for name, (function, gradient) in known.items():
            expected = gradient if matrix.dtype.kind == "c" else np.real(gradient)
            try:
                error = abs(gt.grad(function)(matrix) - expected).max()
            except NotDifferentiableError:
                found[f"{name}: refused"] += 1
                continue
            if not error <= accuracy * abs(expected).max():
                found[f"{name}: wrong"] += 1
    return found


@pytest.mark.parametrize("dtype", DTYPES, ids=[np.dtype(t).name for t in DTYPES])
@pytest.mark.parametrize("kind", KINDS)
def test_hundreds_of_turns(kind: str, dtype: Any) -> None:
    assert not complaints(kind, dtype, turns=10, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES, ids=[np.dtype(t).name for t in DTYPES])
@pytest.mark.parametrize("kind", KINDS)
def test_thousands_of_turns(kind: str, dtype: Any) -> None:
    assert not complaints(kind, dtype, turns=300, seed=2)


@pytest.mark.slow
@pytest.mark.parametrize("core", ["Nehalem", "Sandybridge", "Haswell"])
def test_turns_with_other_kernels_of_openblas(core: str) -> None:
    # Other libraries do not read these, and compute as above.
    features = "AVX512F AVX2 FMA3" if core != "Haswell" else "AVX512F"
    env = {**os.environ, "OPENBLAS_CORETYPE": core, "NPY_DISABLE_CPU_FEATURES": features}
    args = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", "-k", "hundreds"]
    subprocess.run([sys.executable, *args, __file__], env=env, check=True)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_bases_of_repeated_values_depend_on_their_space_alone(dtype: Any, rng: Any) -> None:
    q = unitary(rng, 5, dtype)
    x = (q * [1.0, 2.0, 2.0, 2.0, 3.0]) @ q.conj().T
    found = [gt.linalg.eigh(x).eigenvectors[:, 1:4]]
    for driver in ("ev", "evd", "evr"):
        basis = scipy.linalg.eigh(x, driver=driver)[1][:, 1:4]
        place(np, [basis])
        found.append(basis)
    for basis in found[1:]:
        np.testing.assert_allclose(basis, found[0], atol=1e-12)
    np.testing.assert_allclose(found[0].conj().T @ found[0], np.eye(3), atol=1e-14)


def test_complete_bases_along_the_axes_are_turned() -> None:
    x = np.eye(4)[:, :1]
    for function in (
        lambda x: gt.trace(gt.linalg.qr(x, "complete").Q),
        lambda x: gt.trace(gt.linalg.svd(x).U),
        lambda x: gt.trace(gt.linalg.svd(np.ones((4, 1)) + 0.0 * x).U),
    ):
        with pytest.raises(NotDifferentiableError):
            gt.grad(function)(x)
    q, r = gt.linalg.qr(x, "complete")
    np.testing.assert_allclose(q @ r, x, atol=1e-15)
    np.testing.assert_allclose(q.T @ q, np.eye(4), atol=1e-15)


def test_small_cotangents_of_phases_are_checked_like_others(rng: Any) -> None:
    x = rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3))
    with pytest.raises(NotDifferentiableError, match="phases"):
        gt.grad(lambda a: 1e-17 * gt.sum(gt.real(gt.linalg.eig(a).eigenvectors)))(x)


def test_roots_of_singular_matrices_of_any_size(rng: Any) -> None:
    q = unitary(rng, 4, np.float64)
    for scale in (1e-12, 1.0, 1e12):
        x = (q * (np.array([0.0, 0.0, 1.0, 4.0]) * scale)) @ q.T
        root = (q * (np.array([0.0, 0.0, 1.0, 2.0]) * scale**0.5)) @ q.T
        bound = 1e-13 * scale**0.5
        np.testing.assert_allclose(gt.linalg.sqrtm(x), root, atol=bound)
        got = gt.linalg.fractional_matrix_power(x, 0.5)
        np.testing.assert_allclose(got, root, atol=bound)
