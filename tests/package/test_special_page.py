"""The page of special functions names all that SciPy has there."""

from __future__ import annotations

import re
import types
import warnings

import numpy as np
import pytest
import scipy
import scipy.special

import gradtape as gt
import our_scipy
from gradtape.errors import UnsupportedError
from paths import DOCS

PAGE = DOCS / "special-functions.md"
STATUSES = ("differentiable", "constant", "refused")
SAME_SCIPY = scipy.__version__.startswith(("1.17.", "1.18."))


def of_scipy() -> set[str]:
    """The public names of `scipy.special`, but modules below it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = [name for name in dir(scipy.special) if not name.startswith("_")]
        return {
            name for name in names if not isinstance(getattr(scipy.special, name), types.ModuleType)
        }


def listed() -> list[tuple[str, str, str]]:
    """Each name on the page with its status and what stands beside it."""
    text = PAGE.read_text(encoding="utf-8")
    section = text.split("## All of `scipy.special`\n")[1]
    rows = re.findall(r"^\| (`.*`) \| (\w+) \| (.*) \|$", section, re.MULTILINE)
    return [
        (name, status, why) for names, status, why in rows for name in names[1:-1].split("`, `")
    ]


def test_every_name_is_listed_once() -> None:
    names = [name for name, _, _ in listed()]
    assert sorted(names) == sorted(set(names))
    known = of_scipy()
    # Another SciPy may have other names; those that both have are there.
    if SAME_SCIPY:
        assert set(names) ^ known == set()
    assert len(known & set(names)) > 0.8 * len(known)


def test_what_is_said_is_so() -> None:
    ours = set(our_scipy.special.__all__)
    for name, status, why in listed():
        assert status in STATUSES
        assert (status == "differentiable") == (name in ours), name
        assert why.strip(), name


def test_what_stands_beside_a_name_exists() -> None:
    for _, _, why in listed():
        for path in re.findall(r"`gt\.([\w.]+)", why):
            found = gt
            for part in path.split("."):
                found = getattr(found, part)


REFUSED = [name for name, status, _ in listed() if status == "refused"]


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_ufunc_raises_on_a_tensor(name: str) -> None:
    ufunc = getattr(scipy.special, name, None)
    # SciPy 1.15 has two ufuncs by the same name.
    if not isinstance(ufunc, np.ufunc) or ufunc.__name__ != name:
        pytest.skip("a function of Python, or not in this SciPy")
    with pytest.raises(UnsupportedError, match=rf"scipy\.special\.{name} is not differentiable"):
        ufunc(*[gt.tensor([1.0])] * ufunc.nin)
