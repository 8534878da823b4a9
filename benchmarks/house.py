"""How large the house is: lines of code, modules that a call loads, frames of the call paths.

`python -m benchmarks.house [path/to/src]` prints it for this checkout, or for another one.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent / "src"
_WITH_DOCSTRING = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

# Prints how many modules of ours are loaded by the import, and by one lookup after it.
MODULES = """
import sys
import numpy as np, gradtape as gt
def ours():
    return sum(name.partition(".")[0] == "gradtape" for name in sys.modules)
t = gt.tensor([1.0, 2.0])
before = ours()
np.fft.fft(t)
print(before, ours() - before)
"""

# Prints the calls of Python functions of ours in one call of each path, when it is warm.
FRAMES = """
import os, sys
import numpy as np, gradtape as gt
HOME = os.path.dirname(gt.__file__)
x, large = np.linspace(0.1, 1.0, 8), gt.tensor(np.linspace(0.1, 1.0, 100_000))
compiled = gt.jit(lambda x: np.tanh(x) * 2.0)
def tape():
    leaf = gt.tensor(x, requires_grad=True)
    gt.sum(np.tanh(leaf)).backward()
paths = {
    "grad": lambda: gt.grad(lambda x: gt.sum(np.tanh(x)))(x),
    "tape": tape,
    "jit": lambda: compiled(x),
    "large eager op": lambda: gt.tanh(large),
}
for name, path in paths.items():
    for _ in range(3):
        path()
    calls = 0
    def count(frame, event, _arg):
        global calls
        calls += event == "call" and frame.f_code.co_filename.startswith(HOME)
    sys.setprofile(count)
    path()
    sys.setprofile(None)
    print(f"{name}: {calls}")
"""


def lines_of_code(text: str) -> int:
    """Lines that are neither docstring, comment, blank nor part of an import."""
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
            node = node.body[0]
        elif not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate((line.strip() for line in text.splitlines()), 1)
    return sum(bool(line) and line[0] != "#" and n not in left_out for n, line in lines)


def main(sources: Path) -> None:
    """Print all of it."""
    files, lines = Counter[str](), Counter[str]()
    for path in (sources / "gradtape").rglob("*.py"):
        parts = path.relative_to(sources / "gradtape").parts
        package = parts[0] if len(parts) > 1 else "gradtape"
        files[package] += 1
        lines[package] += lines_of_code(path.read_text(encoding="utf-8"))
    print("lines of code, without comments, docstrings, blank lines and imports")
    for package in sorted(files):
        print(f"  {package:10} {files[package]:4} files {lines[package]:7,} lines")
    print(f"  {'all':10} {files.total():4} files {lines.total():7,} lines")
    loaded, more = _output(sources, MODULES).split()
    print(f"modules loaded by the import: {loaded}, and by np.fft.fft(t) after it: {more}")
    print("calls of our Python functions in")
    for line in _output(sources, FRAMES).splitlines():
        print(f"  {line}")


def _output(sources: Path, program: str) -> str:
    path = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(sources)!r})\n{program}"]
    return subprocess.run(path, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCES)
