"""What the pages for users of other libraries say to write here exists."""

from __future__ import annotations

import ast
import re

import numpy as np
import pytest

import gradtape as gt
from paths import DOCS

PAGES = sorted(DOCS.glob("coming-from-*.md"))
# What the first name of a path stands for on the pages.
ROOTS = {"gt": gt, "np": np, "t": gt.Tensor, "x": gt.Tensor, "tape": gt.GradientTape}


def ours(page: str) -> list[str]:
    """The code in the second column of tables whose heading names gradtape there."""
    tables = re.findall(r"^\|[^|\n]+\| gradtape \|\n\|[-|]+\|\n((?:\|.*\n)+)", page, re.MULTILINE)
    rows = [row for table in tables for row in table.splitlines()]
    return [code for row in rows for code in re.findall(r"`([^`]+)`", row.split("|")[2])]


def paths_in(code: str) -> set[str]:
    """The dotted names in code that begin with one of the roots: "gt.nn.Linear"."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute):
            path = ast.unparse(node)
            if re.fullmatch(r"\w+(\.\w+)+", path) and path.split(".")[0] in ROOTS:
                found.add(path)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_name_on_the_right_exists(page):
    codes = ours(page.read_text(encoding="utf-8"))
    assert len(codes) > 20
    paths = set().union(*map(paths_in, codes))
    assert len(paths) > 20
    for path in paths:
        root, *names = path.split(".")
        thing = ROOTS[root]
        for name in names:
            # Not what an attribute says that only raises.
            assert name in dir(thing) or hasattr(thing, name), path
            thing = getattr(thing, name)
        if root in ("t", "x", "tape"):
            assert names[0] in dir(gt.ones(2) if ROOTS[root] is gt.Tensor else gt.GradientTape()), (
                path
            )


RUN = [
    pytest.param(code, id=f"{page.stem}: {code}")
    for page in PAGES
    for code in ours(page.read_text(encoding="utf-8"))
    if re.match(r"(gt|np|t|x|1|tape|net)\b", code)
]
SETUP = """
axis, i, n, u, v = 1, 0, 1, gt.tensor(2.0), 7.0
a, f, ids = [1.0, 2.0], np.sum, np.array([0, 2, 1])
t, x, net = gt.tensor([1.0, 2.0, 3.0]), gt.ones((2, 3)), gt.nn.Linear(3, 1)
tape = gt.GradientTape(persistent=True)
"""
_LEAF = "t = gt.tensor(1.0, requires_grad=True)"
_NUMBERS = "x, f = np.ones(3), np.sum"
_WATCHED = "x = tape.watch(np.ones(3)); y = np.sin(x) if 'jacobian' in code else np.sum(x)"
# Code that needs other variables.
OTHERS = {
    **dict.fromkeys(("gt.stack([t, u])", "gt.numpy.array([t, u])"), "t = gt.tensor(1.0)"),
    **dict.fromkeys(("t.item()", "t.backward()", "t.backward(create_graph=True)"), _LEAF),
    **dict.fromkeys(("tape.gradient(y, x)", "tape.jacobian(y, x)"), _WATCHED),
    "gt.bincount(ids, x)": _NUMBERS,
    "x[tuple(np.moveaxis(i, -1, 0))]": "i = np.array([[0, 1]])",
}


@pytest.mark.parametrize("code", RUN)
def test_the_code_on_the_right_runs(code):
    names = {"gt": gt, "np": np, "code": code}
    exec(SETUP, names)
    exec(OTHERS.get(code, ""), names)
    exec(code, names)
