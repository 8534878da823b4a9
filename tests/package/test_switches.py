"""Native pieces that the environment switches off: they are not used, and results are the same."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from gradtape import config
from gradtape.errors import ArgumentError

# Each piece has its turn, and is then asked whether it was used; in a child for each setting, so
# that modules are loaded once.
PROGRAM = """
import json, os, sys, time
import numpy as np
import scipy.linalg
import gradtape as gt
from gradtape import kernels
from gradtape.compiler.jit import jit
from gradtape.compiler.cpu.runtime import contiguous_copies, strided_copies
from gradtape.core.copies import copied
from gradtape.core.kernels import INSTALLED
from gradtape.ops.linalg import lapack

def threads():
    # Those that did something for the main thread may be about to end, and do not count.
    return min(len(os.listdir("/proc/self/task")) for _ in range(10) if not time.sleep(0.002))

def run():
    x = np.linspace(-2.0, 3.0, 100 * 700).reshape(100, 700)
    M = np.sin(np.arange(100.0 * 100)).reshape(100, 100) + 20 * np.eye(100)
    before = threads()
    gt.set_num_threads(2)
    f = jit(lambda x, y: np.exp(x - y) + 1.0)
    loop = jit(lambda v, a: gt.fori_loop(0, 5, lambda i, s: np.sin(s) * a + i, v))
    product = jit(lambda a, b: np.tanh(a @ b) + 1.0)
    solve = jit(lambda a, b: np.linalg.solve(a, b))
    half = jit(lambda v: v * v + 0.1)
    results = {
        "kernels": gt.grad(lambda x: np.sum(np.tanh(x) * x))(x),
        "copies": copied(x.T),
        "pool": f(np.tile(x, (40, 1)), 0.5)[::40],
        "entry": [f(x[0], y) for y in (0.25, 0.5)][1],
        "products": product(M / 50, M / 70),
        "lapack": gt.grad(lambda A: np.sum(np.linalg.inv(A) ** 2))(M),
        "loops": loop(x[0], 0.5),
        "registers": loop(x[0, :3], 0.5),
        "halves": half(x[0].astype(np.float16)).astype(np.float64),
        "linalg": solve(M[:20, :20], M[:20, 0]) + np.sum(solve(M[:2, :2], M[:2, 0])),
    }
    used = {
        "kernels": INSTALLED.kernels is not None,
        "copies": any(module._driver.made for module in (contiguous_copies, strided_copies)),
        "pool": threads() > before,
        "entry": type(f.__call__).__name__ == "builtin_function_or_method",
        "products": not product.explain(M / 50, M / 70).eager,
        "lapack": lapack.numpy_routine("getrf", np.float64) is not None,
        "loops": not loop.explain(x[0], 0.5).eager,
        "halves": not half.explain(x[0].astype(np.float16)).eager,
        "registers": "carrying" in str(loop.explain(x[0, :3], 0.5)),
        "linalg": all(not solve.explain(M[:n, :n], M[:n, 0]).eager for n in (2, 20)),
    }
    some = {name: np.ravel(result)[::97].tolist() for name, result in results.items()}
    return {"used": used, "results": some}

for setting in sys.argv[1:]:
    child = os.fork()
    if not child:
        os.environ["GRADTAPE_WITHOUT"] = setting
        print(json.dumps(run()), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""

# What does the same in another way rounds in another way.
ROUNDED = {"kernels": 1e-13, "products": 1e-12, "lapack": 1e-11, "linalg": 1e-11, "loops": 1e-13}
# Copies are part of what computes on large arrays, and numbers in registers of native loops.
INSIDE = {"kernels": {"copies"}, "loops": {"registers"}}

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")


@functools.cache
def runs() -> dict[str, dict[str, Any]]:
    """What was used and what came out, with nothing switched off and with each piece."""
    settings = ["", *config.PIECES, "all"]
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    for name in ("GRADTAPE_EAGER_KERNELS", "GRADTAPE_WITHOUT"):
        env.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *settings], env=env, capture_output=True, text=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(settings), done.stderr
    return {name: json.loads(line) for name, line in zip(settings, lines, strict=True)}


@pytest.mark.parametrize("without", [*config.PIECES, "all"])
def test_what_is_switched_off_is_not_used(without: str) -> None:
    usual, found = runs()[""], runs()[without]
    off = set(config.PIECES) if without == "all" else {without} | INSIDE.get(without, set())
    assert found["used"] == {k: used and k not in off for k, used in usual["used"].items()}
    for name, result in found["results"].items():
        tolerance = ROUNDED.get(name, 0.0) if off.intersection(ROUNDED) else 0.0
        np.testing.assert_allclose(result, usual["results"][name], rtol=tolerance)


def test_all_of_them_are_used_otherwise() -> None:
    used = runs()[""]["used"]
    assert used.keys() == set(config.PIECES)
    # The others need a system, an interpreter or a build of NumPy that they know.
    assert used["kernels"]
    assert used["products"]


@pytest.mark.parametrize(
    ("text", "off"),
    [
        ("", set()),
        (" , ", set()),
        ("pool", {"pool"}),
        ("Pool, ENTRY,", {"pool", "entry"}),
        ("all", set(config.PIECES)),
        ("all,pool", set(config.PIECES)),
    ],
)
def test_names_of_pieces(monkeypatch: pytest.MonkeyPatch, text: str, off: set[str]) -> None:
    monkeypatch.delenv("GRADTAPE_EAGER_KERNELS", raising=False)
    monkeypatch.setenv("GRADTAPE_WITHOUT", text)
    assert {piece for piece in config.PIECES if not config.uses(piece)} == off


def test_another_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADTAPE_WITHOUT", "pool,pols")
    with pytest.raises(
        ArgumentError, match=r"GRADTAPE_WITHOUT: got 'pols', expected one or more of"
    ):
        config.uses("pool")


def test_kernels_have_a_switch_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRADTAPE_WITHOUT", raising=False)
    monkeypatch.setenv("GRADTAPE_EAGER_KERNELS", "off")
    assert [piece for piece in config.PIECES if not config.uses(piece)] == ["kernels"]
