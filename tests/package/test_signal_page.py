"""The page of spectra, filters, images and sparse matrices names all that SciPy has there."""

from __future__ import annotations

import importlib
import re
import types
import warnings

import pytest
import scipy

import gradtape as gt
import our_scipy
from paths import DOCS

PAGE = DOCS / "signal.md"
NAMESPACES = {
    "signal": our_scipy.signal.__all__,
    "ndimage": our_scipy.ndimage.__all__,
    "fft": gt.fft.__all__,
    "sparse": our_scipy.sparse.__all__,
    "sparse.linalg": our_scipy.sparse.linalg.__all__,
}
STATUSES = ("differentiable", "constant", "refused")
SAME_SCIPY = scipy.__version__.startswith(("1.17.", "1.18."))
NEW_IN_1_18 = {"whittaker_henderson", "matrix_transpose"}


def of_scipy(namespace: str) -> set[str]:
    """The public names of one of its modules, but modules below it."""
    module = importlib.import_module(f"scipy.{namespace}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    return {name for name, value in values.items() if not isinstance(value, types.ModuleType)}


def listed(namespace: str) -> list[tuple[str, str, str]]:
    """Each name on the page with its status and what stands beside it."""
    text = PAGE.read_text(encoding="utf-8")
    heading = re.escape(f"### `scipy.{namespace}`")
    section = re.search(rf"^{heading}\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    assert section, f"docs/signal.md has no heading for scipy.{namespace}"
    rows = re.findall(r"^\| (`.*`) \| (\w+) \| (.*) \|$", section[1], re.MULTILINE)
    return [
        (name, status, why) for names, status, why in rows for name in names[1:-1].split("`, `")
    ]


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_every_name_is_listed_once(namespace: str) -> None:
    names = [name for name, _, _ in listed(namespace)]
    assert sorted(names) == sorted(set(names))
    known = of_scipy(namespace)
    # Another SciPy may have other names; those that both have are there.
    if SAME_SCIPY:
        later = NEW_IN_1_18 if scipy.__version__.startswith("1.17.") else set()
        assert set(names) - later == known
    assert len(known & set(names)) > 0.8 * len(known)


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_what_is_said_is_so(namespace: str) -> None:
    ours = set(NAMESPACES[namespace])
    for name, status, why in listed(namespace):
        assert status in STATUSES
        assert (status == "differentiable") == (name in ours), name
        assert why.strip(), name


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_what_stands_beside_a_name_exists(namespace: str) -> None:
    for _, _, why in listed(namespace):
        for path in re.findall(r"`gt\.([\w.]+)", why):
            found = gt
            for part in path.split("."):
                found = getattr(found, part)
