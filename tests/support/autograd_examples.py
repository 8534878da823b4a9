"""Run autograd's own examples on `gradtape.compat.autograd`, each for some seconds.

    python tests/support/autograd_examples.py /path/to/autograd [seconds]

Plots go nowhere, and the data set that some of them download is replaced by random images. An
example that is still running at the end of its time counts as running.
"""

import os
import runpy
import subprocess
import sys
import time
import types
from pathlib import Path

import numpy as np

# Which examples do not run, and why.
KNOWN = {
    "rkhs.py": "registers a Box of its own: on internals of autograd",
    "bayesian_optimization.py": "ends in a covariance that is not positive definite; so does "
    "autograd, with SciPy 1.17",
}
NO_PROGRAMS = {"__init__.py", "data.py", "data_mnist.py"}


def mnist():
    """Random images and labels in place of the data set."""
    rng = np.random.default_rng(0)
    sizes = (6000, 500)
    images = [rng.integers(0, 255, (n, 28, 28)).astype(np.uint8) for n in sizes]
    labels = [rng.integers(0, 10, n) for n in sizes]
    return images[0], labels[0], images[1], labels[1]


def run_one(path):
    """Run an example in this process."""
    from gradtape.compat import autograd

    autograd.install()
    data = types.ModuleType("data_mnist")
    data.mnist = mnist
    sys.modules["data_mnist"] = data
    sys.path[:0] = [str(path.parent), str(path.parents[1])]
    os.chdir(path.parent)
    sys.argv = [str(path)]
    runpy.run_path(str(path), run_name="__main__")


def main(checkout, seconds):
    """Run all examples; returns the names of those that fail and should not, and vice versa."""
    unexpected = []
    environment = {**os.environ, "MPLBACKEND": "Agg", "OPENBLAS_NUM_THREADS": "1"}
    for path in sorted((checkout / "examples").rglob("*.py")):
        if path.name in NO_PROGRAMS:
            continue
        command = [sys.executable, "-W", "ignore", __file__, "--one", str(path)]
        start = time.monotonic()
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, env=environment, timeout=seconds
            )
            status = "ok" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]
        except subprocess.TimeoutExpired:
            status = "still running"
        failed = status not in ("ok", "still running")
        print(f"{path.name:42}{time.monotonic() - start:6.1f} s  {status[:120]}", flush=True)
        if failed != (path.name in KNOWN):
            unexpected.append(path.name)
    return unexpected


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        run_one(Path(sys.argv[2]))
    else:
        limit = float(sys.argv[2]) if len(sys.argv) > 2 else 15.0
        wrong = main(Path(sys.argv[1]).resolve(), limit)
        sys.exit(f"not as expected: {', '.join(wrong)}" if wrong else 0)
