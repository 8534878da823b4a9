"""Matrix products of compiled code: values, edges of memory, threads, and how they are cut."""

import ctypes
import itertools
import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from gradtape.compiler.cpu.gemm import form, split
from gradtape.compiler.cpu.llvm.builder import Module
from gradtape.compiler.cpu.llvm.link import LEVELS
from gradtape.compiler.cpu.llvm.scratch import NO_MEMORY
from gradtape.compiler.cpu.runtime.pool import get_num_threads, set_num_threads
from gradtape.errors import ArgumentError
from product_cases import CPUS, DTYPES, Case, Products, random_cases, runs_here


@pytest.fixture(autouse=True)
def _same_number_of_threads() -> Iterator[None]:
    before = get_num_threads()
    yield
    set_num_threads(before)


# ---- values ----


@pytest.mark.parametrize("cpu", CPUS)
def test_random_sizes(cpu, rng, thorough):
    if not runs_here(cpu):
        pytest.skip("another CPU")
    cases = list(dict.fromkeys(random_cases(len(cpu), 40 if thorough else 20)))
    products = Products(cases, CPUS[cpu])
    for case in cases:
        products.check(case, rng)


# Each way to cut a product, in a size that takes it on every CPU.
LARGE = {
    "rows and columns": Case("float", 130, 210, 130),
    "uneven blocks": Case("double", 101, 187, 90, transpose_a=True),
    "columns of a wide B, copied": Case("float", 300, 700, 300),
    "transposed blocks": Case("float", 200, 300, 310, transpose_b=True),
    "both transposed": Case("double", 150, 150, 150, transpose_a=True, transpose_b=True),
    "parts of long sums": Case("float", 10, 7, 100_003, transpose_a=True),
    "parts of long sums, transposed": Case("float", 40, 30, 30_011, transpose_b=True),
    "parts of a dot product": Case("double", 1, 1, 300_000),
    "long sums on one thread": Case("float", 5, 9, 4000),
    "long sums, copied in slices": Case("float", 120, 100, 4000),
    "matrix times vector": Case("float", 1000, 1, 900),
    "transposed matrix times vector": Case("double", 900, 1, 1000, transpose_a=True),
    "vector times matrix": Case("float", 1, 1100, 900),
    "deep and wide": Case("float", 80, 600, 1100, transpose_b=True, batch=2),
    "many small ones": Case("float", 8, 8, 8, batch=3000),
    "some large ones": Case("double", 100, 100, 100, batch=3, gaps=(1, -1, 2)),
    "one B for all": Case("float", 3, 40, 50, batch=900, gaps=(0, -1, 0)),
}


@pytest.mark.parametrize("cpu", LEVELS)
def test_large_products_are_cut_as_they_say(cpu):
    target = CPUS[cpu]
    splits = {what: case.split(target) for what, case in LARGE.items()}
    forms = {what: case.form(target) for what, case in LARGE.items()}
    for what, found in splits.items():
        several = found.chunks(LARGE[what].batch) > 1
        assert several == (what != "long sums on one thread"), what
        assert (found.parts > 1) == what.startswith("parts"), what
    for what in ("columns of a wide B, copied", "transposed blocks", "long sums, copied in slices"):
        assert forms[what].copies, what
    assert forms["matrix times vector"].dots
    assert splits["many small ones"].together > 1
    uneven = splits["uneven blocks"]
    down = split.sizes(101, uneven.rows, uneven.down)
    across = split.sizes(187, uneven.columns, uneven.across)
    assert len(set(down)) > 1 or len(set(across)) > 1


@pytest.mark.parametrize("cpu", LEVELS)
@pytest.mark.parametrize("shape", [(64, 64, 50_000), (256, 256, 4096), (8, 3000, 200_000)])
def test_scratch_memory_is_bounded(cpu, shape):
    """Whatever the sizes are: parts of 64×50,000 · 50,000×64 asked for 6 MB of the stack."""
    for dtype, a, b in itertools.product(DTYPES, (False, True), (False, True)):
        case = Case(dtype, *shape, a, b)
        product, target = case.gemm.simplified, CPUS[cpu]
        for k in (product.block.k, case.split(target).depth):
            block = product.block._replace(k=k)
            assert form.TileForm.of(block, target).scratch(block) <= 2**19
        assert case.gemm.work_bytes(target) <= 2**20


def test_blocks_are_even_and_begin_at_units():
    for size, unit, count in [(100, 6, 16), (97, 6, 5), (16, 16, 1), (5, 8, 1), (192, 24, 8)]:
        sizes = split.sizes(size, unit, count)
        assert sum(sizes) == size
        assert all(some % unit == 0 for some in sizes[:-1])
        assert max(sizes) - min(sizes) <= 2 * unit


# ---- threads ----


def bits(products: Products, case: Case, threads: int, runs: int) -> set[bytes]:
    """The results of so many runs on the same numbers."""
    set_num_threads(threads)
    rng = np.random.default_rng(7)
    sizes = (case.m * case.k, case.k * case.n)
    a, b = (rng.standard_normal(case.batch * size).astype(DTYPES[case.dtype]) for size in sizes)
    results = set()
    for _ in range(runs):
        c = np.full(case.batch * case.m * case.n, np.nan, a.dtype)
        products.call(case, a, b, c)
        results.add(c.tobytes())
    return results


@pytest.fixture(scope="module")
def large() -> Products:
    return Products(list(LARGE.values()))


@pytest.mark.parametrize("what", LARGE)
def test_bits_do_not_depend_on_threads(large, what):
    case, known = LARGE[what], set()
    for threads in (1, 2, 3, 16):
        set_num_threads(threads)
        known.add(large.check(case, np.random.default_rng(7)).tobytes())
    assert len(known) == 1


@pytest.mark.slow
@pytest.mark.parametrize("cpu", ["host", "x86-64-v2"])
def test_bits_are_the_same_in_a_hundred_runs(cpu):
    if not runs_here(cpu):
        pytest.skip("another CPU")
    cases = [
        Case("float", 700, 600, 500),
        Case("double", 301, 203, 257, transpose_b=True),
        Case("float", 64, 64, 50_000, transpose_b=True),
        Case("float", 97, 1023, 129, transpose_a=True),
    ]
    products = Products(cases, CPUS[cpu])
    for case in cases:
        known = set()
        for threads in (1, 2, 3, 16):
            known |= bits(products, case, threads, 100)
        assert len(known) == 1, case


def edges(dtype: str, a: bool, b: bool) -> list[Case]:
    """Sizes at multiples of what is computed at once, and one beside them."""
    found = Case(dtype, 40, 200, 300, a, b).form()
    depth = form.chains(2000).depth
    sizes = [[size - 1, size, size + 1] for size in (3 * found.tile.rows, 3 * found.columns, depth)]
    return [Case(dtype, m, n, k, a, b) for m, n, k in itertools.product(*sizes)]


ALL_EDGES = [
    pytest.param(dtype, a, b, id=f"{dtype}{'-a' * a}{'-b' * b}")
    for dtype, a, b in itertools.product(DTYPES, (False, True), (False, True))
]


class Chunks:
    """In place of the thread pool: runs chunks one by one, and says what each of them wrote."""

    def __init__(self) -> None:
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
        self._run = function(self.run)
        address = ctypes.cast(self._run, ctypes.c_void_p).value or 0
        self.symbols = {"gt_parallel": address, "gt_parallel_long": address}
        self.results = np.zeros(0)
        self.written: list[np.ndarray] = []

    def run(self, body: int, context: int, chunks: int) -> None:
        chunk = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(body)
        for number in range(chunks):
            self.results[:] = np.nan
            chunk(context, number)
            self.written.append(~np.isnan(self.results))


def assert_chunks_are_apart(cases: list[Case], cpu: str = "host") -> None:
    """No element of C is written by two chunks, and each by one."""
    chunks = Chunks()
    products = Products(cases, CPUS[cpu], chunks.symbols)
    rng = np.random.default_rng(5)
    for case in cases:
        a, b = (
            rng.standard_normal(n).astype(DTYPES[case.dtype])
            for n in (case.m * case.k, case.k * case.n)
        )
        chunks.results, chunks.written = np.zeros(case.m * case.n, a.dtype), []
        products.call(case, a, b, chunks.results)
        assert len(chunks.written) == case.split(CPUS[cpu]).chunks(1) > 1, case
        assert (np.sum(chunks.written, axis=0) == 1).all(), case


@pytest.mark.parametrize(("dtype", "a", "b"), ALL_EDGES)
def test_no_two_chunks_write_the_same_element(dtype, a, b, monkeypatch):
    monkeypatch.setattr(split, "_CHUNK", 2**12)
    cases = edges(dtype, a, b)
    assert_chunks_are_apart([cases[0], cases[13], cases[-1]])


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "a", "b"), ALL_EDGES)
@pytest.mark.parametrize("cpu", CPUS)
def test_products_around_the_edges_of_blocks(dtype, a, b, cpu, monkeypatch, rng):
    if not runs_here(cpu):
        pytest.skip("another CPU")
    monkeypatch.setattr(split, "_CHUNK", 2**12)
    cases = edges(dtype, a, b)
    assert_chunks_are_apart(cases, cpu)
    products = Products(cases, CPUS[cpu])
    for case in cases:
        products.check(case, rng)
        known = bits(products, case, 1, 1)
        for threads in (2, 3, 16):
            known |= bits(products, case, threads, 3)
        assert len(known) == 1, case


# ---- accuracy ----


@pytest.mark.parametrize("cpu", CPUS)
def test_rounding_does_not_add_up_along_long_sums(cpu):
    """Whatever the lanes: of sums of equal numbers, all roundings go the same way."""
    if not runs_here(cpu):
        pytest.skip("another CPU")
    cases = [
        Case("float", 1, 1, 200_000),
        Case("float", 1, 3, 100_000, transpose_b=True, batch=2),
        Case("float", 7, 9, 100_000),
        Case("float", 7, 9, 100_000, transpose_b=True, batch=2),
        Case("float", 3, 3, 100_000, transpose_a=True, transpose_b=True),
    ]
    products = Products(cases, CPUS[cpu])
    for case in cases:
        a = np.full(case.batch * case.m * case.k, 0.1, np.float32)
        b = np.full(case.batch * case.k * case.n, 0.3, np.float32)
        c = np.zeros(case.batch * case.m * case.n, np.float32)
        products.call(case, a, b, c)
        np.testing.assert_allclose(c, float(a[0]) * float(b[0]) * case.k, rtol=1e-5)


def test_nan_and_infinity_pass(rng):
    case = Case("float", 5, 6, 7)
    a, b, c = np.zeros((5, 7), "f"), rng.standard_normal((7, 6)).astype("f"), np.zeros((5, 6), "f")
    a[1, 2], a[3, 4] = np.nan, np.inf
    Products([case]).call(case, a, b, c)
    assert np.isnan(c[1]).all()
    assert (c[3] == np.copysign(np.inf, b[4])).all()
    assert (c[[0, 2, 4]] == 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_empty_sums_are_zero(dtype):
    cases = [Case(dtype, 3, 5, 0), Case(dtype, 4, 1, 0, True, True), Case(dtype, 2, 2, 0, batch=3)]
    products = Products(cases)
    for case in cases:
        c = np.full(case.batch * case.m * case.n + 1, 7, DTYPES[dtype])
        products.call(case, np.zeros(1), np.zeros(1), c)
        assert (c[:-1] == 0).all()
        assert c[-1] == 7


def test_empty_results_are_left_alone():
    cases = [Case("float", 0, 5, 3), Case("float", 5, 0, 3), Case("double", 2, 2, 2, batch=0)]
    products = Products(cases)
    for case in cases:
        c = np.full(9, 7.0)
        products.call(case, np.zeros(16), np.zeros(16), c)
        assert (c == 7).all()


# ---- memory ----

GUARDED = """
import ctypes, mmap, sys
import numpy as np
sys.path.insert(0, {tests!r})
from product_cases import CPUS, DTYPES, Products, random_cases, runs_here

libc = ctypes.CDLL(None)

def at_the_end_of_memory(count, dtype):
    pages = -(-count * dtype.itemsize // mmap.PAGESIZE)
    memory = mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert libc.mprotect(ctypes.c_void_p(start + pages * mmap.PAGESIZE), mmap.PAGESIZE, 0) == 0
    first = pages * mmap.PAGESIZE - count * dtype.itemsize
    return np.frombuffer(memory, dtype, count, first)

for cpu in filter(runs_here, CPUS):
    cases = [case._replace(batch=1, gaps=(0, 0, 0)) for case in random_cases(5, {count})]
    products = Products(cases, CPUS[cpu])
    for case in cases:
        a, b, c = (
            at_the_end_of_memory(count, DTYPES[case.dtype])
            for count in (case.m * case.k, case.k * case.n, case.m * case.n)
        )
        products.call(case, a, b, c)
        assert (c == 0).all()
print("done")
"""


def test_nothing_beyond_the_arrays_is_touched(thorough):
    count = 30 if thorough else 12
    program = GUARDED.format(tests=os.path.dirname(__file__), count=count)
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


# ---- functions in a module ----


def test_defined_once_and_named_by_what_they_do():
    module = Module()
    cases = [
        Case("float", 4, 5, 6),
        Case("double", 4, 5, 6),
        Case("float", 5, 4, 6),
        Case("float", 4, 5, 6, transpose_a=True),
        Case("float", 4, 5, 6, transpose_b=True),
        Case("float", 4, 5, 6, batch=2),
        Case("float", 4, 5, 6, batch=2, gaps=(-1, 0, 0)),
        Case("float", 200, 200, 4200),
    ]
    names = [case.define(module) for case in cases]
    assert len(set(names)) == len(names)
    text = str(module)
    assert [case.define(module) for case in cases] == names
    assert str(module) == text


@pytest.mark.parametrize("sizes", [(2**31, 1, 2), (2, 2**31, 1), (1, 1, 2**31)])
def test_sizes_beyond_32_bits(sizes):
    module = Module()
    name = Case("float", *sizes).define(module)
    assert f"@{name}(" in str(module)


def test_results_that_would_overlap():
    with pytest.raises(ArgumentError, match="not overlap"):
        Case("float", 3, 3, 3, batch=2, gaps=(0, 0, -1)).define(Module())


def test_small_products_need_neither_threads_nor_scipy():
    code = (
        "import sys; from product_cases import *; Products([Case('float', 8, 16, 2)]);"
        "print('scipy' in sys.modules); print(imports('no symbols'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=os.path.dirname(__file__),
    )
    assert done.stdout.split() == ["False", "{}"]


def test_without_memory_the_status_says_so(rng):
    """The memory that blocks compute in is asked for by each thread."""
    given = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(lambda _size: None)
    address = ctypes.cast(given, ctypes.c_void_p).value or 0
    case = Case("float", 60, 50, 40, transpose_b=True)
    assert case.form().copies
    products = Products([case], symbols={"gt_scratch": address})
    a, b, c = (rng.standard_normal(n).astype("f") for n in (60 * 40, 40 * 50, 60 * 50))
    assert products.status(case, a, b, c) == NO_MEMORY
