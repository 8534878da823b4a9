"""Sparse matrices from every form that SciPy's functions of the same names take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import gradtape as gt
import our_scipy

RNG = np.random.default_rng(0)
S = scipy.sparse.random_array((5, 4), density=0.4, rng=RNG)

FORMS: dict[str, Any] = {
    "places": lambda m, cls: cls(([1.0, 2.0, 4.0], ([1, 0, 1], [0, 1, 0])), shape=(2, 3)),
    "places without shape": lambda m, cls: cls((np.array([1.0, 2.0]), np.array([[1, 0], [0, 1]]))),
    "dense": lambda m, cls: cls(S.toarray()),
    "lists": lambda m, cls: cls([[0.0, 1.0], [2.0, 0.0]]),
    "integers": lambda m, cls: cls([[0, 1], [2, 0]]),
    "another dtype": lambda m, cls: cls([[0, 1], [2, 0]], dtype=np.float32),
    "zeros": lambda m, cls: cls(np.zeros((2, 3))),
    "no rows": lambda m, cls: cls(np.zeros((0, 3))),
    "empty": lambda m, cls: cls((2, 3)),
    "empty of a dtype": lambda m, cls: cls((2, 3), dtype=complex),
    "with the same shape": lambda m, cls: cls(S, shape=S.shape),
}


@pytest.mark.parametrize("kind", ["csr_array", "csc_array", "coo_array"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_that_scipy_takes(form: str, kind: str) -> None:
    ours, theirs = (FORMS[form](m, getattr(m, kind)) for m in (our_scipy.sparse, scipy.sparse))
    assert (ours.shape, ours.dtype, ours.nnz) == (theirs.shape, theirs.dtype, theirs.nnz)
    np.testing.assert_array_equal(ours.toarray(), theirs.toarray())
    if kind != "coo_array" and form != "with the same shape":
        np.testing.assert_array_equal(ours.indices, theirs.indices)
        np.testing.assert_array_equal(ours.indptr, theirs.indptr)


@pytest.mark.parametrize("kind", ["csr_array", "csc_array"])
def test_the_shape_is_found_if_it_is_not_given(kind: str) -> None:
    arrays = (np.ones(2), [2, 0], [0, 1, 2])
    ours, theirs = (getattr(m, kind)(arrays) for m in (our_scipy.sparse, scipy.sparse))
    assert ours.shape == theirs.shape
    np.testing.assert_array_equal(ours.toarray(), theirs.toarray())


@pytest.mark.parametrize("kind", ["csr_array", "csc_array", "coo_array"])
def test_gradients_of_every_form(kind: str) -> None:
    make, x = getattr(our_scipy.sparse, kind), RNG.normal(size=3)

    def of_numbers(w: Any) -> Any:
        return gt.sum((make((w, ([1, 0, 1], [0, 1, 0])), shape=(2, 3)) @ x) ** 2)

    def of_dense(a: Any) -> Any:
        return gt.sum((make(a) @ x) ** 2 + make(a) @ x)

    dense = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 3.0]])
    for function, at in ((of_numbers, np.ones(3)), (of_dense, dense)):
        gt.testing.check_grads(function, (at,))
        compiled = gt.jit(gt.grad(function))(at)
        np.testing.assert_allclose(compiled, gt.grad(function)(at), rtol=1e-12)
        both = gt.vmap(gt.grad(function))(np.stack([at, 2 * at]))
        np.testing.assert_allclose(both[0], compiled, rtol=1e-12)
    # Elements that are zero have a gradient, too.
    assert (gt.grad(of_dense)(dense) != 0).all()
    assert make(gt.tensor(dense)).nnz == 2
