"""No lock is made but in `gradtape.locks`, whose locks survive a fork, and no hidden one either."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from paths import SOURCE

KINDS = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Event", "Barrier"}
KINDS |= {"allocate_lock", "Queue", "LifoQueue", "PriorityQueue", "cached_property"}


def locks_in(text: str) -> list[str]:
    """The locks, and what has some inside, that a module makes."""
    if not re.search(rf"\b({'|'.join(KINDS)})\b", text):  # parsing all files takes long
        return []
    nodes = list(ast.walk(ast.parse(text)))
    names = [node.attr for node in nodes if isinstance(node, ast.Attribute)]
    names += [node.id for node in nodes if isinstance(node, ast.Name)]
    names += [
        alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names
    ]
    return [name for name in names if name in KINDS]


def test_the_rule_finds_locks() -> None:
    assert locks_in("import threading\nclass A:\n    x = threading.Lock()") == ["Lock"]
    assert locks_in("from threading import Condition as c") == ["Condition"]
    assert locks_in("import threading\nthreading.get_ident()") == []


def test_locks_are_in_one_file() -> None:
    found = {
        str(path.relative_to(SOURCE)): kinds
        for path in SOURCE.rglob("*.py")
        if (kinds := locks_in(path.read_text(encoding="utf-8")))
    }
    assert set(found) == {"locks.py"}


# `functools.cache` gives each of several threads that come at the same time a value of its own.
# These are plain values, for which that does not matter.
CACHED_VALUES = {
    "compiler/classify.py": ["_price"],
    "compiler/cpu/llvm/instructions.py": ["_function"],
    "compiler/cpu/llvm/link.py": ["_linker"],  # only asked for with the lock of LLVM held
    "compiler/cpu/runtime/cache.py": ["_versions"],
    "compiler/argument_specs.py": ["type_numbers"],
    # Functions of the process itself.
    "compiler/cpu/runtime/object_layout.py": ["native_layout", "c_functions", "new_function"],
}


def cached_functions(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)) if "functools" in text else ():
        if isinstance(node, ast.FunctionDef):
            decorators = map(ast.unparse, node.decorator_list)
            if any(each.startswith("functools.") for each in decorators):
                yield node.name


def test_what_owns_memory_is_made_once() -> None:
    found = {
        str(path.relative_to(SOURCE)): names
        for path in (SOURCE / "compiler").rglob("*.py")
        if (names := list(cached_functions(path.read_text(encoding="utf-8"))))
    }
    assert found == CACHED_VALUES
