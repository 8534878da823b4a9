"""What `import gradtape` costs, against `import numpy`, each in a fresh interpreter."""

import os
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.harness import Samples, Settings
from benchmarks.result import OURS, Row, row_of

PROGRAM = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"


def run(settings: Settings) -> Iterator[Row]:
    """Time both imports in turns; the start of the interpreter is not counted."""
    modules = {OURS: "gradtape", "NumPy": "numpy"}
    for module in modules.values():
        _import_seconds(module)  # writes the bytecode and fills the file cache
    samples: Samples = {name: [] for name in modules}
    order = list(modules)
    for _ in range(3 * settings.rounds):
        for name in order:
            samples[name].append(_import_seconds(modules[name]))
        order.reverse()
    what = "`import gradtape` against `import numpy`, fresh interpreters"
    yield row_of("import", what, samples, OURS, "NumPy", 1.5)


def _import_seconds(module: str) -> float:
    command = [sys.executable, "-c", PROGRAM.format(module)]
    # Without bytecode on disk the import would be timed with the compilation of the sources.
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return float(done.stdout)
