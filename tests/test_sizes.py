"""Files and functions stay short enough to be read in one go."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src/gradtape", "tests")

MAX_FILE = 400
MAX_FUNCTION = 60

# "path" or "path::Class.function" -> why it is better long than split.
ALLOWED: dict[str, str] = {
    "src/gradtape/core/fast.py::fast_binary": "the straight line of an op: a call costs",
    "src/gradtape/core/fast.py::fast_binary.function": "the same",
    "src/gradtape/core/scalar.py": "one vocabulary: a function per instruction, each of two lines",
    "src/gradtape/core/walk.py::_walk_in_records": "the loop of the backward pass, flat likewise",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Every function below `node` with its qualified name."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function | ast.ClassDef):
            name = f"{prefix}{child.name}"
            if isinstance(child, Function):
                yield name, child
            yield from functions(child, f"{name}.")
        else:
            yield from functions(child, prefix)


def length(function: Function) -> int:
    """Lines from `def` to the end without the docstring: nobody should save on explanations."""
    lines = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function, clean=False) is not None:
        docstring = function.body[0]
        lines -= docstring.end_lineno - docstring.lineno + 1
    return lines


def too_long(path: str, text: str) -> dict[str, int]:
    """What in a file is over the limit, and how long it is."""
    sizes = {f"{path}::{name}": length(node) for name, node in functions(ast.parse(text))}
    found = {name: lines for name, lines in sizes.items() if lines > MAX_FUNCTION}
    if (lines := len(text.splitlines())) > MAX_FILE:
        found[path] = lines
    return found


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


@pytest.mark.parametrize(("lines", "found"), [(MAX_FILE, {}), (MAX_FILE + 1, {"f.py": 401})])
def test_file_limit(lines, found):
    assert too_long("f.py", "x = 1\n" * lines) == found


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
