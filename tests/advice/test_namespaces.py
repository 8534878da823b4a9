"""Names that other libraries have in their namespaces, and what is said about them in ours."""

from __future__ import annotations

import importlib
import operator
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import gradtape as gt
import our_scipy
from builds import SCIPY
from gradtape.advice.foreign_names import DISTRIBUTIONS, NAMES
from gradtape.errors import MissingNameError, UnsupportedError

OF_SCIPY = ("integrate", "ndimage", "optimize", "signal", "sparse", "spatial", "special", "stats")
EVERY = (
    *("fft", "linalg", "nn", "optim", "random"),
    *("gradients", "gradient_clipping", "graph", "implicit", "nn.functional"),
    *("scipy", *(f"scipy.{name}" for name in OF_SCIPY)),
)
LISTED = [(namespace, name) for namespace, names in NAMES.items() for name in names]


@pytest.mark.parametrize(("namespace", "name"), LISTED)
def test_listed_names(namespace: str, name: str) -> None:
    module, text = getattr(gt, namespace), NAMES[namespace][name]
    assert not hasattr(module, name)
    where = rf"module 'gradtape\.{namespace}' has no attribute '{name}'; {re.escape(text)}"
    with pytest.raises(MissingNameError, match=where) as caught:
        getattr(module, name)
    assert caught.value.name == name
    for path in re.findall(r"\bgt((?:\.[A-Za-z]\w*)+)", text):
        found: Any = gt
        for part in path[1:].split("."):
            found = getattr(found, part)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("nn.CrossEntropyLos", "did you mean gt.nn.CrossEntropyLoss?"),
        ("nn.BatchNorm4d", "did you mean gt.nn.BatchNorm3d?"),
        ("random.PRNGKey", "use gt.manual_seed(seed)"),
        ("jax", "use gt in its place"),
        ("func", "transforms are in gt itself"),
        ("scipy.stats.nrm", "did you mean gt.scipy.stats.norm?"),
        ("linalg.exp", "use gt.exp"),
        ("linalg.clarkson_woodruff_transform", "use scipy.linalg.clarkson_woodruff_transform on"),
        ("fft.set_workers", "use scipy.fft.set_workers on arrays, without gradient"),
        ("optim.Adm", "did you mean gt.optim.Adam?"),
        ("scipy.special.gamaln", "did you mean gt.scipy.special.gammaln?"),
        ("gradients.clip_grad_norm_", "use gt.nn.utils.clip_grad_norm_"),
        ("gradients.clip_by_global_nrm", "did you mean gt.gradients.clip_by_global_norm?"),
        ("implicit.rot", "did you mean gt.implicit.root?"),
        ("scipy.optimize.mnimize", "did you mean gt.scipy.optimize.minimize?"),
        ("scipy.sparse.csr_arrray", "did you mean gt.scipy.sparse.csr_array?"),
    ],
)
def test_what_is_said(path: str, text: str) -> None:
    namespace, _, name = path.rpartition(".")
    with pytest.raises(AttributeError, match=re.escape(text)):
        getattr(operator.attrgetter(namespace)(gt) if namespace else gt, name)


@pytest.mark.parametrize("name", OF_SCIPY)
def test_modules_of_scipy_are_below_scipy(name: str) -> None:
    assert name not in dir(gt)
    with pytest.raises(MissingNameError, match=rf"has no attribute '{name}'; use gt.scipy.{name}$"):
        getattr(gt, name)
    assert getattr(gt.scipy, name).__path__ == [] or name in ("sparse", "spatial")


@pytest.mark.parametrize("namespace", EVERY)
def test_names_that_nobody_has(namespace: str) -> None:
    module = importlib.import_module(f"gradtape.{namespace}")
    with pytest.raises(AttributeError, match=r"has no attribute 'zzzzzzzzzzz'$"):
        module.zzzzzzzzzzz  # noqa: B018
    assert not hasattr(module, "__wrapped__")


def test_asking_for_a_name_loads_nothing() -> None:
    program = (
        "import sys, gradtape.random as random\nassert not hasattr(random, 'PRNGKey')\n"
        "assert not hasattr(random, 'zzz')\nassert 'difflib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_methods_of_distributions(name: str) -> None:
    asked = 0
    for known in ("norm", "poisson", "multivariate_normal", "dirichlet", "multinomial"):
        ours = getattr(gt.scipy.stats, known)
        if not hasattr(ours, name) or hasattr(ours.on_tensors, name):
            continue
        asked += 1
        with pytest.raises(UnsupportedError, match=re.escape(DISTRIBUTIONS[name])) as caught:
            getattr(ours, name)(gt.ones(2))
        assert str(caught.value).startswith(f"scipy.stats.{known}.{name}: got a tensor")
    # SciPy has no marginals before 1.16.
    assert asked or (name == "marginal" and SCIPY < (1, 16))


def test_sums_of_sparse_matrices_by_numpy() -> None:
    dense = np.array([[0.0, 2.0], [3.0, 5.0]])
    s: Any = our_scipy.sparse.csr_array(dense)
    for axis in (None, 0, 1):
        np.testing.assert_array_equal(np.sum(s, axis=axis), dense.sum(axis))
        np.testing.assert_array_equal(np.mean(s, axis=axis), dense.mean(axis))
    assert np.sum(s, dtype=np.float32).dtype == np.float32
    slope = gt.grad(lambda data: np.sum(s.with_data(data * data)))(s.data)
    np.testing.assert_array_equal(slope, 2 * s.data)
    with pytest.raises(UnsupportedError, match="got out="):
        np.sum(s, axis=0, out=np.zeros(2))
