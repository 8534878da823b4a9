"""Functions stay short enough to be read in one go, and the package within a budget of lines."""

import ast
import functools
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from paths import ROOT

FOLDERS = ("src/gradtape", "tests")

MAX_FUNCTION = 60
# Lines of code in `src`, without docstrings, comments, blank lines and imports. Raise it in a
# commit that says what the lines are for.
BUDGET = 84_000

# "path::Class.function" -> why it is better long than split.
ALLOWED: dict[str, str] = {
    "src/gradtape/core/fast.py::fast_binary": "the straight line of an op: a call costs",
    "src/gradtape/core/fast.py::fast_binary.function": "the same",
    "src/gradtape/core/walk.py::_walk_in_records": "the loop of the backward pass, flat likewise",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


# Expressions hold no statements, and are most of a tree.
LISTS_OF_STATEMENTS = ("body", "orelse", "finalbody", "handlers", "cases")


def statements(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Every statement below `node`; functions and classes with their qualified names."""
    for field in LISTS_OF_STATEMENTS:
        for child in getattr(node, field, ()):
            if isinstance(child, Function | ast.ClassDef):
                name = f"{prefix}{child.name}"
                yield name, child
                yield from statements(child, f"{name}.")
            else:
                yield "", child
                yield from statements(child, prefix)


def length(function: Function) -> int:
    """Lines from `def` to the end without the docstring: nobody should save on explanations."""
    lines = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function, clean=False) is not None:
        docstring = function.body[0]
        lines -= docstring.end_lineno - docstring.lineno + 1
    return lines


class Measures(NamedTuple):
    """How much there is in a file."""

    functions: dict[str, int]  # qualified name -> lines
    code: int  # lines that are neither docstring, comment, blank nor part of an import


@functools.cache
def measures(text: str) -> Measures:
    """What all limits are about; a file is parsed once for all of them."""
    lengths: dict[str, int] = {}
    left_out: set[int] = set()
    for name, node in [("", tree := ast.parse(text)), *statements(tree)]:
        if isinstance(node, Function):
            lengths[name] = length(node)
        if isinstance(node, ast.Module | ast.ClassDef | Function):
            if ast.get_docstring(node, clean=False) is not None:
                left_out.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            left_out.update(range(node.lineno, node.end_lineno + 1))
    lines = enumerate((line.strip() for line in text.splitlines()), 1)
    code = sum(bool(line) and line[0] != "#" and n not in left_out for n, line in lines)
    return Measures(lengths, code)


def too_long(path: str, text: str) -> dict[str, int]:
    """What in a file is over the limit, and how long it is."""
    sizes = {f"{path}::{name}": lines for name, lines in measures(text).functions.items()}
    return {name: lines for name, lines in sizes.items() if lines > MAX_FUNCTION}


def test_package_budget():
    paths = (ROOT / "src").rglob("*.py")
    total = sum(measures(path.read_text(encoding="utf-8")).code for path in paths)
    assert BUDGET - 3000 < total <= BUDGET, "raise (or lower) BUDGET, and say why in the commit"


@functools.cache
def all_too_long() -> dict[str, int]:
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    assert paths, "no files were found, so nothing would be checked"
    found: dict[str, int] = {}
    for path in paths:
        found |= too_long(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    return found


def test_nothing_is_too_long():
    found = {name: lines for name, lines in all_too_long().items() if name not in ALLOWED}
    assert found == {}, "split it, or give the reason in ALLOWED"


def test_every_exception_is_needed():
    assert set(ALLOWED) - set(all_too_long()) == set(), "short again: take it out of ALLOWED"


def test_every_exception_has_a_reason():
    assert [name for name, reason in ALLOWED.items() if not reason.strip()] == []


# ---- the measure itself ----


def test_what_counts_as_code():
    text = '"""Doc."""\n\nimport os\nfrom a import (\n    b,\n)\n# why\nx = (\n    1\n)\n'
    assert measures(text).code == 3


@pytest.mark.parametrize("extra", [0, 1])
def test_function_limit(extra):
    body = "        x = 1\n" * (MAX_FUNCTION - 1 + extra)
    text = f"class A:\n    async def f(self):\n{body}"
    assert too_long("f.py", text) == ({"f.py::A.f": MAX_FUNCTION + 1} if extra else {})


def test_docstring_is_not_counted():
    body = "    x = 1\n" * (MAX_FUNCTION - 1)
    docstring = '    """One.\n' + "    line\n" * 30 + '    """\n'
    assert too_long("f.py", f"def f():\n{docstring}{body}") == {}


def test_inner_functions_are_found():
    body = "            x = 1\n" * MAX_FUNCTION
    text = f"if True:\n    def f():\n        def g():\n{body}"
    assert set(too_long("f.py", text)) == {"f.py::f", "f.py::f.g"}
