"""Compiled code takes little of the stack: it runs in threads of any kind, on data of any size."""

import ctypes
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import gradtape as gt
from gradtape.compiler.cpu.llvm import scratch as llvm_scratch
from gradtape.compiler.cpu.llvm.builder import I64, PTR, Builder, Module, Type
from gradtape.compiler.cpu.llvm.link import LEVELS, Cpu
from gradtape.compiler.cpu.runtime import (
    contiguous_copies,
    pool_native,
    scratch,
    strided_copies,
    tile_loop,
)
from gradtape.compiler.cpu.runtime.entry_point_native import entry_source
from gradtape.compiler.cpu.runtime.object_layout import native_layout
from product_cases import Case

# The memory of a call, or what a kernel keeps, and some vectors besides.
MOST = 20 * 1024

BYTES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "float": 4, "double": 8, "ptr": 8}
ALLOCA = re.compile(r"= alloca (\{.*?\}|[^,]+)(?:, i64 (\S+?))?(?:, align \d+)?$")


def type_bytes(text: str) -> int:
    """The size of a type; vectors of bits are counted as bytes."""
    if text in BYTES:
        return BYTES[text]
    if text.startswith("{"):
        return sum(type_bytes(part.strip()) for part in text.strip("{} ").split(","))
    found = re.fullmatch(r"[<\[](\d+) x (\w+)[>\]]", text)
    assert found, text
    return int(found[1]) * BYTES[found[2]]


def stack_bytes(text: str) -> dict[str, int]:
    """What each function of a module takes of the stack by itself."""
    used: dict[str, int] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("define"):
            name = line.partition("@")[2].partition("(")[0]
            used[name] = 0
        elif "alloca" in line:
            found = ALLOCA.search(line)
            assert found, line
            assert found[2] is None or found[2].isdigit(), f"of a size that is not known: {line}"
            used[name] += type_bytes(found[1]) * int(found[2] or 1)
    return used


def frame_bytes(assembly: str) -> int:
    """The largest step by which machine code of x86-64 moves the stack pointer."""
    steps = re.findall(r"(?:subq\s+\$(\d+), %rsp|addq\s+\$-(\d+), %rsp)", assembly)
    return max((int(a or b) for a, b in steps), default=0)


def of(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


def many_gathers(x, i):
    return sum(x[i + n] * x[i - n] for n in range(12))


KERNELS = {
    "covariance": (lambda a: np.cov(a), of(64, 50_000, dtype=np.float64)),
    "product with a transposed one": (lambda a: a @ a.T, of(256, 4096)),
    "inner": (lambda a, b: np.inner(a, b), of(70, 20_000), of(60, 20_000)),
    "long sums of products": (lambda a, b: a.T @ b, of(100_000, 10), of(100_000, 7)),
    "large product": (lambda a, b: a @ b, of(700, 500), of(500, 600)),
    "batch": (lambda a, b: np.einsum("bik,bjk->bij", a, b), of(5, 90, 700), of(5, 80, 700)),
    "long rows": (lambda x: gt.softmax(x, axis=1), of(20, 30_000)),
    "long rows of doubles": (lambda x: gt.log_softmax(x, axis=1), of(3, 30_000, dtype=np.float64)),
    "columns in rows": (lambda x: gt.softmax(x, axis=0), of(900, 70)),
    "wide columns": (
        lambda x: (x.sum(axis=0), (x * x).sum(axis=0), x.max(axis=0), x.min(axis=0)),
        of(500, 4000, dtype=np.float64),
    ),
    "many sums": (lambda x: [np.sum(x * n) for n in range(1, 40)], of(5000)),
    "cumulative sum": (lambda x: np.cumsum(x, axis=1), of(30, 5000)),
    "cumulative sums of columns": (lambda x: np.cumsum(x, axis=0), of(5000, 300)),
    "pooling": (lambda x: gt.nn.functional.max_pool2d(x, 2), of(4, 8, 30, 30)),
    "indices": (many_gathers, of(4000), of(900, dtype=np.int64)),
    "scattered": (lambda x, i: gt.grad(lambda x: np.sum(x[i] ** 2))(x), of(500), of(80, dtype=int)),
    "joined": (lambda x: np.concatenate([np.pad(x * n, 1) for n in range(30)]), of(70)),
    "far arguments": (lambda x: sum(np.sin(x * n) + np.tan(x + n) for n in range(20)), of(3000)),
    "sorted out": (
        lambda x: np.where(x > 0, np.log(x), np.expm1(x)).reshape(50, -1).T + 1,
        of(5000),
    ),
}


@pytest.mark.parametrize("name", KERNELS)
def test_what_functions_take_of_the_stack(name):
    function, *arrays = KERNELS[name]
    report = gt.jit(function).explain(*arrays)
    used = stack_bytes(report.ir)
    assert used
    assert max(used.values()) <= MOST, max(used, key=lambda name: used[name])
    # Registers that are spilled come on top of it.
    assert frame_bytes(report.assembly) <= MOST + 8192


@pytest.mark.parametrize("cpu", LEVELS)
def test_what_products_take_of_the_stack(cpu):
    module, target = Module(), Cpu(cpu, "")
    for dtype in ("float", "double"):
        for a, b in ((False, False), (False, True), (True, False), (True, True)):
            Case(dtype, 64, 64, 50_000, a, b).define(module, target)
            Case(dtype, 300, 300, 5000, a, b).define(module, target)
            Case(dtype, 3, 2000, 9000, a, b).define(module, target)
    used = stack_bytes(str(module))
    assert len(used) > 24
    assert max(used.values()) <= 1024


def test_what_the_runtime_takes_of_the_stack():
    texts = [
        str(pool_native.source()),
        str(scratch._source()),
        str(contiguous_copies._SOURCE),
        str(tile_loop._SOURCE),
    ]
    texts += [str(strided_copies._source(kind)) for kind in ("rows", "blocks4")]
    layout = native_layout()
    if layout is not None:
        texts.append(str(entry_source(layout)))
    for text in texts:
        assert max(stack_bytes(text).values()) <= MOST


def test_the_stack_is_counted():
    """What the tests above rely on."""
    module = Module()
    b = Builder(module)
    b.alloca(Type("float", 8), 3)
    b.alloca(PTR)
    b.emit("%x = alloca [3 x ptr], align 8")
    b.emit("%y = alloca { i64, i64 }")
    b.emit("ret void")
    module.define(b.function("define void @f()"))
    assert stack_bytes(str(module)) == {"f": 96 + 8 + 24 + 16}
    with pytest.raises(AssertionError, match="not known"):
        stack_bytes("define void @f()\n  %x = alloca i64, i64 %count, align 8")
    assert frame_bytes("\tsubq\t$4096, %rsp\n\taddq\t$-128, %rsp\n") == 4096


def test_large_rooms_are_not_on_the_stack():
    module = Module()
    b = Builder(module)
    wanted = {"small": (Type("float", 8), 1), "large": (Type("double"), 5000), "bit": (I64, 1)}
    rooms = llvm_scratch.take_rooms(b, wanted, lambda: b.const(I64, 0))
    assert set(rooms) == set(wanted)
    b.emit("ret void")
    module.define(b.function("define void @f()"))
    assert stack_bytes(str(module)) == {"f": 32 + 8}
    assert "call ptr @gt_scratch(i64 40000)" in str(module)


# ---- small stacks -------------------------------------------------------------------------------

IN_A_SMALL_THREAD = """
    import threading
    import numpy as np
    import gradtape as gt

    rng = np.random.default_rng(0)
    a, b = rng.random((64, 20_000)), rng.random((256, 4096)).astype(np.float32)
    x, y = rng.random((20, 30_000)).astype(np.float32), rng.random((500, 4000))
    leaves = [np.full(2, n, float) for n in range(400)]
    calls = [
        (gt.jit(lambda a: np.cov(a)), a),
        (gt.jit(lambda b: b @ b.T), b),
        (gt.jit(lambda x: gt.softmax(x, axis=1)), x),
        (gt.jit(lambda y: (y.sum(axis=0), (y * y).sum(axis=0), y.max(axis=0))), y),
        (gt.jit(lambda leaves: leaves[7] + leaves[399]), leaves),
    ]
    expected = [function(argument) for function, argument in calls]
    got = []

    def run():
        for _ in range(2):
            got.append([function(argument) for function, argument in calls])

    threading.stack_size(256 * 1024)
    for _ in range(3):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert len(got) == 6
    for one in got:
        for left, right in zip(gt.tree.flatten(one)[0], gt.tree.flatten(expected)[0], strict=True):
            assert np.array_equal(left, right)
    np.testing.assert_allclose(expected[0], np.cov(a))
    np.testing.assert_allclose(expected[1], b @ b.T, rtol=1e-4)
    print("done")
"""


def test_threads_with_small_stacks():
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(IN_A_SMALL_THREAD)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-2000:]


# ---- without memory -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["long rows", "wide columns", "product with a transposed one"])
def test_no_memory_for_what_a_thread_keeps(name, monkeypatch):
    function, *arrays = KERNELS[name]
    given = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(lambda _size: None)
    address = ctypes.cast(given, ctypes.c_void_p).value or 0
    with monkeypatch.context() as context:
        context.setattr(scratch, "imports", lambda: {"gt_scratch": address})
        with pytest.raises(MemoryError, match="jit: no memory for intermediate results"):
            gt.jit(function)(*arrays)
    gt.jit(function)(*arrays)


def test_scratch_memory_grows_and_is_kept():
    take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(scratch.imports()["gt_scratch"])
    first = take(1000)
    assert first % 64 == 0
    ctypes.memset(first, 1, 1000)
    assert take(500) == take(1000) == first
    larger = take(1 << 20)
    ctypes.memset(larger, 1, 1 << 20)
    assert take(1000) == larger
