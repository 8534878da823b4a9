"""How much memory a process keeps: its own up to the bound, that of its user not at all."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import textwrap

import pytest

from gradtape.compiler.cpu.runtime import blocks

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or blocks.for_array(1 << 20) is None,
    reason="what a process holds is read from Linux",
)

HEAD = """
import gc, mmap, sys
import numpy as np
import gradtape as gt
from gradtape.compiler.cpu.runtime import blocks

MB = 1 << 20

def held():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * mmap.PAGESIZE // MB
"""


def run(program: str, **variables: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HEAD + textwrap.dedent(program)],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


# Arrays that are freed when the interpreter takes itself apart, or never.
OUTLIVING = """
        import builtins, sys

        class Holder:
            def __del__(self):
                self.array += 1.0

        holder = Holder()
        holder.array = gt.sin(np.ones(MB))
        holder.cycle = holder
        sys.kept_array = gt.cos(np.ones(MB))
        builtins.kept_array = gt.jit(lambda x: x + 1.0)(np.ones(MB))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators have other habits")
def test_what_a_user_frees_goes_back_to_the_system() -> None:
    run(
        """
        gt.exp(np.ones(1 << 20))
        before = held()
        # Small ones in between, which stay: memory in one piece could not be handed back.
        small, large = [], []
        for _ in range(40):
            large.append(np.ones(10 * MB, np.uint8))
            small.append(np.ones(3000))
        assert held() - before > 390
        del large
        assert held() - before < 40, held() - before
        """
    )


def test_what_is_kept_has_one_bound() -> None:
    run(
        """
        def chained(x):
            return gt.sum(gt.cumsum(gt.sin(gt.cumsum(x) * 0.5)))

        x = np.ones(MB)  # 8 MB
        compiled = gt.jit(chained)
        compiled(x), gt.sin(x)
        blocks.release()
        before = held()
        # Temporaries of several forms.
        for k in range(5):
            compiled(np.ones(MB + k * MB // 4))
            assert blocks.kept() <= 32 * MB
        assert held() - before < 40, held() - before
        # Results, and what a gradient needs meanwhile.
        results = [gt.sin(x) for _ in range(12)]
        assert held() - before > 90
        del results
        gt.grad(chained)(x)
        assert 16 * MB < blocks.kept() <= 32 * MB
        assert held() - before < 40, held() - before
        blocks.release()
        assert blocks.kept() == 0
        assert held() - before < 10, held() - before
        """,
        GRADTAPE_KEEP_MB="32",
    )


def test_memory_is_kept_from_the_first_huge_array_on() -> None:
    run(
        """
        from numpy._core.multiarray import get_handler_name

        from gradtape.core.kernels import INSTALLED

        gt.sort(np.ones(MB // 8))
        gt.reshape(np.ones(MB), (2, -1))
        assert INSTALLED.loaded is None
        assert get_handler_name(gt.fft.rfft(np.ones(MB))) == "gradtape"
        """
    )


def test_nothing_is_kept_if_so_asked_for() -> None:
    run(
        """
        from numpy._core.multiarray import get_handler_name

        x = np.ones(MB)
        compiled = gt.jit(lambda x: gt.cumsum(gt.sin(gt.cumsum(x) * 0.5)))
        for _ in range(2):
            assert get_handler_name(compiled(x)) == get_handler_name(np.empty(5))
            assert get_handler_name(gt.sin(x)) == get_handler_name(np.empty(5))
        assert np.array_equal(compiled(x[:5000]), compiled(x)[:5000])
        assert blocks.kept() == 0
        """,
        GRADTAPE_KEEP_MB="0",
    )


def test_what_is_kept_is_handed_back_before_memory_runs_out_and_outlives_the_rest() -> None:
    run(
        """
        import resource

        results = [gt.sin(np.ones(MB)) for _ in range(20)]
        del results
        assert blocks.kept() >= 160 * MB
        with open("/proc/self/statm") as file:
            mapped = int(file.read().split()[0]) * mmap.PAGESIZE
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (mapped + 40 * MB, most))
        x = np.broadcast_to(1.0, (12 * MB,))
        assert gt.sin(x)[-1] == np.sin(1.0)  # 96 MB
        try:
            gt.sin(np.broadcast_to(1.0, (100 * MB,)))
        except MemoryError:
            pass
        else:
            raise AssertionError("there is memory after all")
        assert gt.sin(x)[-1] == np.sin(1.0)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        """
        + OUTLIVING,
        GRADTAPE_KEEP_MB="256",
    )
