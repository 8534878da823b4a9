"""Advice for a name that gradtape does not have: what to write instead.

There is one name for each thing. The error that Python raises anyway for another library's name
tells ours.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from operator import attrgetter

import numpy as np

from gradtape.advice.foreign_names import MODULE, NAMES, WITH_ARRAY_API
from gradtape.advice.scipy_counterparts import counterpart
from gradtape.locks import load

# Namespaces in which a name is looked for as well.
_NAMESPACES = ("linalg", "nn", "fft", "random", "optim", "data", "training", "tree")
_OF_SCIPY = ("special", "signal", "stats", "ndimage", "sparse")


def instead(name: str) -> str | None:
    """Advice on what to write instead of `gt.name`."""
    if name in MODULE:
        return MODULE[name]
    # From sys.modules: this package does not import modules built on top of it.
    gradtape = sys.modules["gradtape"]
    for namespace in _NAMESPACES:
        if hasattr(getattr(gradtape, namespace, None), name):
            return f"use gt.{namespace}.{name}"
    for namespace in _OF_SCIPY:
        # Not a name that is SciPy's own.
        if name in vars(getattr(gradtape.scipy, namespace)):
            return f"use gt.scipy.{namespace}.{name}"
    if name in gradtape.gradients.__all__:  # it has modules besides
        return f"use gt.gradients.{name}"
    if hasattr(np, name):
        return f"use np.{name}"
    if name.endswith("_") and hasattr(gradtape, name[:-1]):  # PyTorch's `exp_` writes in place
        return f"use t[...] = gt.{name[:-1]}(t)"
    return _near(name, "gt", dir(gradtape))


def instead_in(namespace: str, name: str) -> str | None:
    """Advice on what to write instead of `gt.namespace.name`."""
    known = NAMES.get(namespace, {}).get(name)
    if known is not None or name.startswith("_"):
        return known
    if namespace == "gradients" and name in MODULE:  # `clip_grad_norm_`
        return MODULE[name]
    gradtape = sys.modules["gradtape"]
    if hasattr(gradtape, name):
        return f"use gt.{name}"
    theirs = f"scipy.{namespace}.{name}"
    if namespace not in ("fft", "linalg") or not hasattr(load(f"scipy.{namespace}"), name):
        return _near(name, f"gt.{namespace}", dir(attrgetter(namespace)(gradtape)))
    if ours := counterpart(theirs):
        return f"use {ours}"
    if theirs in WITH_ARRAY_API:
        return f"use {theirs} with SCIPY_ARRAY_API=1 in the environment"
    return f"use {theirs} on arrays, without gradient, or write it with NumPy's functions"


def _near(name: str, owner: str, names: Iterable[str]) -> str | None:
    public = [one for one in names if not one.startswith("_")]
    near = importlib.import_module("difflib").get_close_matches(name, public, n=1)
    return f"did you mean {owner}.{near[0]}?" if near else None
