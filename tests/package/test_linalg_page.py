"""The table of SciPy's functions in docs/linear-algebra.md is complete, and says what happens."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy
import scipy.linalg

import gradtape as gt
from gradtape.errors import ConversionError
from paths import DOCS

PAGE = DOCS / "linear-algebra.md"
TEXT = PAGE.read_text(encoding="utf-8")
SECTION = TEXT[TEXT.index("## Function by function") :]
VERSIONS = re.search(r"as of SciPy (\S+) and (\S+)\.", SECTION).groups()
VERSION = ".".join(scipy.__version__.split(".")[:2])
ROWS = re.findall(r"^\| (`.*?`) \| ([\w ]+) \|(.*)\|$", SECTION, re.MULTILINE)
LISTED = {name: status for names, status, _ in ROWS for name in re.findall(r"`(\w+)`", names)}

T = gt.tensor(np.eye(3) + 0.1, requires_grad=True)
V = gt.tensor(np.arange(1.0, 4.0), requires_grad=True)
REFUSED: dict[str, Callable[[Any], Any]] = {
    "qz": lambda function: function(T, T),
    "ordqz": lambda function: function(T, T),
    "rsf2csf": lambda function: function(T, T),
    "cdf2rdf": lambda function: function(V, T),
    "cossin": lambda function: function(T, p=1, q=1),
    "qr_update": lambda function: function(T, T, V, V),
    "qr_insert": lambda function: function(T, T, V, 0),
    "qr_delete": lambda function: function(T, T, 0),
    "clarkson_woodruff_transform": lambda function: function(T, 2),
}


def public_names() -> set[str]:
    """What SciPy has in the namespace, without modules."""
    return {
        name
        for name in dir(scipy.linalg)
        if not name.startswith("_") and not isinstance(getattr(scipy.linalg, name), ModuleType)
    }


def test_no_name_is_listed_twice() -> None:
    assert len(LISTED) == sum(len(re.findall(r"`\w+`", names)) for names, _, _ in ROWS)


@pytest.mark.skipif(VERSION not in VERSIONS, reason="the page is of another SciPy")
def test_the_table_is_complete() -> None:
    assert LISTED.keys() == public_names()


def test_every_status_is_one_of_four() -> None:
    assert set(LISTED.values()) == {"differentiable", "no gradient", "refused", "not for arrays"}


def test_what_is_there_is_there() -> None:
    ours = {name for name, status in LISTED.items() if status in ("differentiable", "no gradient")}
    assert ours - set(gt.linalg.__all__) == set()
    others = LISTED.keys() - ours
    assert others & set(gt.linalg.__all__) == {"LinAlgError"}


def test_what_is_refused_has_a_reason() -> None:
    assert [names for names, status, note in ROWS if status == "refused" and not note.strip()] == []


def test_what_is_refused_raises() -> None:
    assert {name for name, status in LISTED.items() if status == "refused"} == REFUSED.keys()
    for name, call in REFUSED.items():
        if name == "clarkson_woodruff_transform":  # a product with a sparse matrix
            assert call(scipy.linalg.clarkson_woodruff_transform).requires_grad
        elif function := getattr(scipy.linalg, name, None):
            # What is called from compiled code is not seen: all of qr_update, before SciPy 1.17.
            named = "" if VERSION < "1.17" else rf"scipy\.linalg\.{name} asks for an array"
            with pytest.raises(ConversionError, match=named):
                call(function)
