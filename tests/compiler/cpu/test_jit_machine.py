"""Compiled code on other CPUs, and with caches that are broken, foreign or full."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.compiler.classify import obstacle
from gradtape.compiler.cpu.llvm.link import Cpu, llvm
from gradtape.compiler.cpu.target import CpuTarget
from gradtape.compiler.partition import NativePart, partition
from gradtape.compiler.pipeline import optimized
from gradtape.compiler.program import NativeFunction
from gradtape.core.aval import aval_of
from gradtape.graph.trace import trace
from jitcheck import assert_close, network_arguments, network_loss

X = np.random.default_rng(5).normal(size=(19, 37))

# ---- other CPUs ---------------------------------------------------------------------------------

TARGETS = {
    "x86-64": Cpu("x86-64", ""),
    "x86-64-v2": Cpu("x86-64-v2", "+sse4.2,+ssse3,+popcnt"),
    "haswell": Cpu("haswell", "+avx2,+fma,+bmi2,-avx512f"),
    "skylake-avx512": Cpu("skylake-avx512", "+avx512f,+avx512vl,+avx512dq,+avx512bw,+avx2,+fma"),
}


def cross_entropy(x: Any) -> Any:
    return np.mean(gt.logsumexp(x, axis=1) - x[:, 3])


def network_gradient(x: Any) -> Any:
    rng = np.random.default_rng(0)
    w, b = rng.normal(size=(37, 5)).astype(x.dtype), rng.normal(size=5).astype(x.dtype)
    return gt.value_and_grad(lambda x: np.sum(np.tanh(x @ w + b) ** 2))(x)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "chain": lambda x: np.tanh(2 * x + 1) * np.exp(-x * x) + np.log1p(np.abs(x)),
    "functions": lambda x: (np.sin(x * 50), np.cos(x), np.arctan(x), np.sqrt(abs(x)), gt.erf(x)),
    "powers": lambda x: (np.abs(x) ** 1.7, x**3, np.cbrt(x), np.exp2(x), np.hypot(x, 2.0)),
    "huge arguments": lambda x: (np.sin(x * 1e7), np.exp(x * 1e3), np.log(np.abs(x) * 1e-30)),
    "softmax": lambda x: gt.softmax(x, axis=1),
    "columns": lambda x: (x.sum(axis=0), x.max(axis=0), x.var(axis=0)),
    "rows": lambda x: (x.sum(axis=1), x.min(axis=1), x.prod(axis=1), x.any(axis=1)),
    "whole": lambda x: (x.sum(), x.max(), x.mean(), (x > 0).all(), (x > 0).sum()),
    "views": lambda x: (x.T * 2, x[::-2, 3:] + 1, np.flip(x), np.roll(x, 3, axis=1)),
    "joined": lambda x: np.concatenate([x, x[:3] * 2, np.pad(x, ((0, 1), (0, 0)))[-4:]]),
    "rounding": lambda x: (np.floor(x * 9), np.rint(x * 9), np.trunc(x * 9), np.ceil(x * 9)),
    "integers": lambda x: ((x * 99).astype(np.int32) // 7, (x * 99).astype(np.int64) % 5),
    "small integers": lambda x: (x * 9).astype(np.int8) * (x * 5).astype(np.int8),
    "products": lambda x: (x @ x.T, x.T @ x, x @ x[0]),
    "choice": lambda x: np.where(x > 0, x, np.expm1(x)).astype(np.float32),
    "cross entropy": lambda x: gt.value_and_grad(cross_entropy)(x),
    "network": network_gradient,
}


def compiled_for(function: Callable[..., Any], x: Any, target: Cpu) -> Callable[[Any], list[Any]]:
    """A function of arrays like x in code for a CPU; all of it has to be native."""
    traced = trace(function, [aval_of(x)])
    graph = optimized(traced.graph, debug=True)
    (part,) = partition(graph, obstacle)
    assert isinstance(part, NativePart)
    compiled = NativeFunction(part, CpuTarget(target))
    hidden = [np.ascontiguousarray(capture.current()) for capture in traced.captures]

    def run(x: Any) -> list[Any]:
        out = compiled([x, *hidden])
        return [array if array.ndim else array[()] for array in out]

    return run


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> Cpu:
    """A CPU whose code can be run here."""
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("targets are of x86-64")
    found = TARGETS[request.param]
    features = {f[1:] for f in found.features.split(",") if f.startswith("+")}
    has = llvm().get_host_cpu_features()
    if not all(has.get(feature, False) for feature in features):
        pytest.skip("this CPU does not have its instructions")
    return found


# Vectors are as long for the first two, so of the second there are only programs that use what it
# has more of: instructions that round, and those that choose between two numbers.
OF_THE_SECOND = ("rounding", "choice", "integers", "network")


@pytest.mark.parametrize("name", PROGRAMS)
def test_code_for_older_cpus(name: str, target: Cpu, thorough: bool) -> None:
    if target is TARGETS["x86-64-v2"] and name not in OF_THE_SECOND and not thorough:
        pytest.skip("as of x86-64")
    for dtype in (np.float64, np.float32):
        x = X.astype(dtype)
        with np.errstate(all="ignore"):
            expected = gt.tree.flatten(PROGRAMS[name](x))[0]
        assert_close(compiled_for(PROGRAMS[name], x, target)(x), expected, 256)


# What is summed of an array of equal numbers, for which all roundings go the same way.
LONG_SUMS: dict[str, tuple[tuple[int, ...], Callable[[Any], Any]]] = {
    "all": ((300_000,), np.sum),
    "all, no multiple of the lanes": ((10_007,), np.sum),
    "rows": ((3, 30_000), lambda x: np.sum(x, axis=1)),
    "many rows": ((70, 9_000), lambda x: np.sum(x, axis=1)),
    "columns": ((20_000, 5), lambda x: np.sum(x, axis=0)),
    "columns in order": ((5_000, 70), lambda x: np.sum(x, axis=0)),
    "short columns of rows": ((900, 3, 50), lambda x: np.sum(x, axis=(0, 2))),
    "rows of columns": ((40, 30, 200), lambda x: np.sum(x, axis=(0, 1))),
    "before another stage": (
        (2, 50_000),
        lambda x: np.sum(x - np.mean(x, axis=1, keepdims=True) + x, axis=1),
    ),
}


@pytest.mark.parametrize("name", LONG_SUMS)
def test_rounding_does_not_add_up_along_long_sums(name: str, target: Cpu) -> None:
    """Whatever lanes the CPU has."""
    shape, function = LONG_SUMS[name]
    compiled = compiled_for(function, np.zeros(shape, np.float32), target)
    for number in (0.1, 0.3, 0.7):
        x = np.full(shape, number, np.float32)
        (total,) = compiled(x)
        count = x.size // np.size(total)
        np.testing.assert_allclose(total, float(x.flat[0]) * count, rtol=1e-6)


def test_targets_have_different_vectors() -> None:
    assert [target.vector_bytes for target in TARGETS.values()] == [16, 16, 32, 64]


# ---- the cache on disk --------------------------------------------------------------------------


def run_script(text: str, cache: Path, **environment: str) -> str:
    """What a script prints in a process of its own that has this cache."""
    variables = {**os.environ, "GRADTAPE_CACHE_DIR": str(cache), "OPENBLAS_NUM_THREADS": "1"}
    variables.pop("GRADTAPE_CACHE", None)
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(PREAMBLE) + textwrap.dedent(text)],
        env={**variables, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout


PREAMBLE = """
    import os, pathlib, sys
    import numpy as np
    import gradtape as gt
    from gradtape.compiler.cpu.runtime import cache

    here = pathlib.Path(os.environ["GRADTAPE_CACHE_DIR"])
    x = np.linspace(-2.0, 3.0, 37)
    functions = [lambda x: np.floor(x) * 2, lambda x: x**3, gt.grad(lambda x: np.sum(x @ x))]
    expected = [np.floor(x) * 2, x**3, 2 * x]

    def check():
        for function, value in zip(functions, expected):
            np.testing.assert_allclose(gt.jit(function)(x), value, rtol=1e-12)

    def entries():
        return sorted(here.glob("*.o"))
"""


def test_code_is_found_again_by_another_process_unless_it_is_broken(tmp_path: Path) -> None:
    script = """
        check()
        print(len(entries()) >= len(functions), cache.unusable())
    """
    assert run_script(script, tmp_path / "cache") == "True None\n"
    compile_nothing_and_spoil = """
        def refuse(*args):
            raise AssertionError("compiled again")
        compile_module, cache.compile_module = cache.compile_module, refuse
        check()
        cache.compile_module = compile_module

        sound = [entry.read_bytes() for entry in entries()]
        broken = {
            "empty": lambda code, k: b"",
            "garbage": lambda code, k: os.urandom(len(code)),
            "cut off": lambda code, k: code[: len(code) // 2],
            "one bit": lambda code, k: code[:200] + bytes([code[200] ^ 1]) + code[201:],
            "header only": lambda code, k: code[:88],
            "another header": lambda code, k: b"GRADTAPE" + code[8:],
            "of another function": lambda code, k: sound[k - 1],
            "longer": lambda code, k: code + b"more",
        }
        for name, spoil in broken.items():
            for k, entry in enumerate(entries()):
                entry.write_bytes(spoil(sound[k], k))
            check()
            # What the process has loaded already is not asked for again.
            made = [entry.read_bytes()[:88] for entry in entries()]
            assert sum(map(made.count, (code[:88] for code in sound))) >= len(functions), name
        for entry in entries():
            entry.unlink()
            entry.mkdir()
        check()
        print("done")
    """
    assert run_script(compile_nothing_and_spoil, tmp_path / "cache") == "done\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="limits of processes are POSIX's")
def test_places_that_cannot_be_used_and_what_may_run_out(tmp_path: Path) -> None:
    """One process for all, which is looking for its cache in one place after the other."""
    (tmp_path / "file").write_text("not a directory")
    script = """
        import gc, resource, signal

        count = 0
        compile_module = cache.compile_module

        def counting(*args):
            global count
            count += 1
            return compile_module(*args)

        cache.compile_module = counting
        start = here

        def check_in(place):
            global here
            os.environ["GRADTAPE_CACHE_DIR"] = str(place)
            here = place
            gc.collect()  # code of functions that are gone is unloaded, and asked for again
            before = count
            check()
            assert count >= before + len(functions), place

        # A file in place of the directory.
        for place in (start / "file", start / "file" / "below", pathlib.Path("/dev/null/cache")):
            check_in(place)
            assert cache.unusable() is not None, place

        # A directory that others can write.
        open_to_all = start / "open to all"
        open_to_all.mkdir(mode=0o777)
        open_to_all.chmod(0o777)
        check_in(open_to_all)
        assert entries() == []
        assert "can be written by other users" in cache.unusable()

        # A full disk: writing more raises, as ENOSPC does.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        size, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, most))
        check_in(start / "full")
        assert list(here.iterdir()) == []
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
        check_in(start / "full")
        assert len(entries()) >= len(functions)

        # No file descriptors left.
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
        check_in(start / "not to be opened")
        functions.append(lambda x: np.tanh(x) * 5)
        expected.append(np.tanh(x) * 5)
        check()
        print("done")
    """
    assert run_script(script, tmp_path) == "done\n"


def test_training_goes_on_without_any_cache(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("GRADTAPE_CACHE", "0")
    monkeypatch.setenv("GRADTAPE_CACHE_DIR", str(tmp_path / "cache"))
    args = network_arguments(np.random.default_rng(0))
    gradient = gt.grad(network_loss)
    assert_close(gt.jit(gradient)(*args), gradient(*args), 512)
    assert not (tmp_path / "cache").exists()
