"""Code for older CPU levels than the one at hand."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gradtape.compiler.cpu.llvm.link import LEVELS, Cpu, levels

PROGRAM = """
import numpy as np, gradtape as gt
from gradtape.compiler.cpu.llvm.link import host
from random_ways import check_together, gradient_of, programs, values_of
x = np.linspace(0.1, 1.0, 1000, dtype=np.float32).reshape(20, 50)
function = gt.jit(gt.value_and_grad(lambda x: np.sum(np.tanh(x @ x.T) ** 2) + np.sum(np.log(x))))
value, slope = function(x)
expected = gt.value_and_grad(lambda x: np.sum(np.tanh(x @ x.T) ** 2) + np.sum(np.log(x)))(x)
np.testing.assert_allclose(value, expected[0], rtol=1e-5)
np.testing.assert_allclose(slope, expected[1], rtol=2e-4, atol=1e-5)
check_together([values_of, gradient_of], programs(70_000, 8, floating=True))
assembly = gt.jit(lambda x: np.exp(x) * x).explain(np.ones(1000)).assembly
print(host().name, *(name for name in ("zmm", "ymm") if name in assembly))
"""


def run(level: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        env={**os.environ, "GRADTAPE_CPU": level, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


@pytest.mark.parametrize("level", levels())
def test_code_is_for_the_level_and_right(level: str) -> None:
    result = run(level)
    assert result.returncode == 0, result.stderr
    cpu, *registers = result.stdout.split()
    assert cpu == level
    allowed = {"x86-64-v2": set(), "x86-64-v3": {"ymm"}, "x86-64-v4": {"ymm", "zmm"}}
    assert set(registers) <= allowed[level]


def test_levels_that_the_cpu_does_not_have_are_refused() -> None:
    result = run("x86-64-v9")
    assert result.returncode != 0
    assert "GRADTAPE_CPU: got 'x86-64-v9', expected a level this CPU has" in result.stderr


def test_widths_of_levels() -> None:
    assert [Cpu(level, "").vector_bytes for level in LEVELS] == [16, 32, 64]
