"""A pytest plugin: run a package's tests on autograd or on gradtape, and note what its fits found.

`ECOSYSTEM_ON=gradtape` puts gradtape in autograd's place, before any test is imported;
`ECOSYSTEM_STUBS=torch,jax` names packages that tests import for cases that are not run.
"""

import importlib
import json
import os
import random
import sys
import types
import zlib
from pathlib import Path

import numpy as np
import pytest

ON_GRADTAPE = os.environ.get("ECOSYSTEM_ON") == "gradtape"
if ON_GRADTAPE:
    from gradtape.compat import autograd

    autograd.install()

_FOUND: dict[str, list[float]] = {}


def _add_stubs() -> None:
    """Put empty modules in the place of packages that the tested one has found missing."""
    for name in filter(None, os.environ.get("ECOSYSTEM_IMPORT_FIRST", "").split(",")):
        importlib.import_module(name)
    for name in filter(None, os.environ.get("ECOSYSTEM_STUBS", "").split(",")):
        stub = types.ModuleType(name)
        # SciPy asks a module of this name for its class of arrays.
        stub.Tensor = stub.Array = type("Absent", (), {})
        sys.modules[name] = stub
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, stub)


_add_stubs()


@pytest.fixture(autouse=True)
def _same_random_numbers(request: pytest.FixtureRequest) -> None:
    """Both runs get the same data: many tests draw theirs without a seed."""
    seed = zlib.crc32(request.node.nodeid.encode())
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002


@pytest.fixture
def found(request: pytest.FixtureRequest):
    """A function that notes numbers under a name, to be compared between the two runs."""

    def note(name: str, values: object) -> None:
        numbers = np.asarray(values)
        if np.iscomplexobj(numbers):
            numbers = np.stack([numbers.real, numbers.imag])
        key = f"{request.node.name}: {name}"
        _FOUND[key] = numbers.astype(float).ravel().tolist()

    return note


@pytest.fixture(scope="session")
def on_gradtape() -> bool:
    """Whether autograd is gradtape in this process."""
    return ON_GRADTAPE


def pytest_sessionfinish() -> None:
    path = os.environ.get("ECOSYSTEM_FOUND")
    if path:
        Path(path).write_text(json.dumps(_FOUND), encoding="utf-8")
