"""`gt.jit`: calls that native code takes though they are not plain arrays by position."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from jitcheck import Counted

# ---- numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [3.0, -0.0, np.inf, 7, -(2**62), 2**63 - 1])
def test_numbers_in_numbers_out(direct: Any, x: Any) -> None:
    compiled = gt.jit(Counted(lambda x: (x + 0, [x * 0.5, {"z": x * 1.0}], x - 1)))
    for _ in range(3):
        got = compiled(x)
        assert type(compiled.__call__) is direct
        assert repr(got) == repr((x + 0, [x * 0.5, {"z": x * 1.0}], x - 1))
    assert compiled.__wrapped__.count == 1


def test_complex_numbers_out(direct: Any) -> None:
    compiled = gt.jit(lambda x: (x + 1j) * x)
    assert [repr(compiled(x)) for x in (2.0, -3.0)] == [repr((x + 1j) * x) for x in (2.0, -3.0)]


def test_numbers_beside_arrays_stay_weak(direct: Any) -> None:
    x = np.ones(3, np.float32)
    compiled = gt.jit(lambda x, n: (x * n, n + 1))
    for n in (2.0, 3.0, 4.0):
        got, number = compiled(x, n)
        assert type(compiled.__call__) is direct
        assert got.dtype == np.float32
        assert (got.tolist(), repr(number)) == ([n] * 3, repr(n + 1))
