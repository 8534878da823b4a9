"""Compiling and linking: what happens around a library, and in a process that forks."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import textwrap
import weakref

import pytest

from gradtape.compiler.cpu.llvm.link import Cpu, Library, compile_module, host, llvm
from gradtape.core.lazy import lazy

COUNTER = """
@count = internal global i64 0
define i64 @add() {
  %old = load i64, ptr @count
  %new = add i64 %old, 1
  store i64 %new, ptr @count
  ret i64 %new
}
"""


def test_a_library_goes_with_its_last_reference() -> None:
    library = Library(compile_module(COUNTER), {}, ["add"])
    add = ctypes.CFUNCTYPE(ctypes.c_int64)(library.address("add"))
    assert [add(), add()] == [1, 2]
    gone = weakref.ref(library)
    del library
    gc.collect()
    assert gone() is None


def test_pass_builders_are_exchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each run of one makes the next take longer, several times as long after a thousand modules.
    made, create = [], llvm().create_pass_builder

    def creating(*args: object) -> object:
        made.append(create(*args))
        return made[-1]

    monkeypatch.setattr(llvm(), "create_pass_builder", creating)
    target = Cpu(host().name, host().features)
    for n in range(100):
        compile_module(f"define i64 @f() {{ ret i64 {n} }}", target)
    assert 2 <= len(made) <= 10


def test_lazy_attributes_are_computed_once_each() -> None:
    class Thing:
        computed = 0

        @lazy
        def value(self) -> int:
            Thing.computed += 1
            return 7

    first, second = Thing(), Thing()
    assert (first.value, first.value, second.value) == (7, 7, 7)
    assert Thing.computed == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_forked_while_another_thread_compiles_can_compile() -> None:
    program = """
    import os, threading, time
    import numpy as np
    import gradtape as gt

    compile_one = lambda k: gt.jit(lambda x: np.sin(x) * k)(np.ones(3))
    compile_one(0.5)
    stop = threading.Event()
    def work():
        k = 1.0
        while not stop.is_set():
            compile_one(k)
            k += 1.0
    thread = threading.Thread(target=work)
    thread.start()
    failed = []
    for n in range(12):
        time.sleep(0.003 * n)
        child = os.fork()
        if child == 0:
            right = np.allclose(compile_one(-1.0 - n), np.sin(1.0) * (-1.0 - n))
            os._exit(0 if right else 1)
        deadline = time.monotonic() + 20
        while (done := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
            time.sleep(0.002)
        if done != (child, 0):
            os.kill(child, 9) if done[0] == 0 else None
            failed.append((n, done))
            break
    stop.set()
    thread.join()
    assert not failed, failed
    """
    environment = {**os.environ, "GRADTAPE_CACHE": "0"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(program)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
