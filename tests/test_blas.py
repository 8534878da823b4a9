"""Matrix products of compiled code: values, edges of memory, threads, and BLAS kept in check."""

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from gradtape.compiler.llvm.builder import Module
from gradtape.compiler.runtime import blas
from gradtape.compiler.runtime.pool import get_num_threads, set_num_threads
from gradtape.errors import ArgumentError
from product_cases import CPUS, DTYPES, Case, Products, random_cases, runs_here


@pytest.fixture(autouse=True)
def _same_number_of_threads() -> Iterator[None]:
    before = get_num_threads()
    yield
    set_num_threads(before)


# ---- values ----


@pytest.mark.parametrize("cpu", CPUS)
def test_random_sizes(cpu, rng):
    if not runs_here(cpu):
        pytest.skip("another CPU")
    cases = list(dict.fromkeys(random_cases(len(cpu), 70)))
    products = Products(cases, CPUS[cpu])
    for case in cases:
        products.check(case, rng)


# Each way to cut a product, in a size that takes it.
LARGE = {
    "rows and columns": Case("float", 130, 210, 130),
    "overlapping blocks": Case("double", 101, 187, 90, transpose_a=True),
    "columns of a wide B, copied": Case("float", 300, 700, 300),
    "transposed blocks": Case("float", 200, 300, 310, transpose_b=True),
    "both transposed": Case("double", 150, 150, 150, transpose_a=True, transpose_b=True),
    "parts of long sums": Case("float", 10, 7, 100_003, transpose_a=True),
    "parts of a dot product": Case("double", 1, 1, 300_000),
    "long sums on one thread": Case("float", 5, 9, 9000),
    "matrix times vector": Case("float", 1000, 1, 900),
    "transposed matrix times vector": Case("double", 900, 1, 1000, transpose_a=True),
    "vector times matrix": Case("float", 1, 1100, 900),
    "BLAS": Case("float", 200, 200, 4200),
    "BLAS, transposed": Case("double", 130, 200, 4200, transpose_a=True, transpose_b=True),
    "BLAS in a batch": Case("float", 80, 600, 4200, transpose_b=True, batch=2),
    "many small ones": Case("float", 8, 8, 8, batch=3000),
    "some large ones": Case("double", 100, 100, 100, batch=3, gaps=(1, -1, 2)),
    "one B for all": Case("float", 3, 40, 50, batch=900, gaps=(0, -1, 0)),
}


@pytest.fixture(scope="module")
def large() -> Products:
    return Products(list(LARGE.values()))


@pytest.mark.parametrize("what", LARGE)
def test_bits_do_not_depend_on_threads(large, what):
    case = LARGE[what]
    results = []
    for threads in (1, 2, 4):
        set_num_threads(threads)
        results.append(large.check(case, np.random.default_rng(7)))
    assert (results[0] == results[1]).all()
    assert (results[0] == results[2]).all()


def test_large_products_are_cut_as_they_say():
    splits = {what: case.split() for what, case in LARGE.items()}
    for what, split in splits.items():
        assert split.blas == what.startswith("BLAS"), what
        if what != "long sums on one thread":
            assert split.chunks(LARGE[what].batch if split.together > 1 else 1) > 1 or (
                LARGE[what].batch > 1
            ), what
    for what in ("parts of long sums", "parts of a dot product"):
        assert splits[what].parts > 1
    overlapping = splits["overlapping blocks"]
    assert 101 % overlapping.rows or 187 % overlapping.columns


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
    cases = [case._replace(batch=1, gaps=(0, 0, 0)) for case in random_cases(5, 60)]
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


def test_nothing_beyond_the_arrays_is_touched():
    program = GUARDED.format(tests=os.path.dirname(__file__))
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


@pytest.mark.parametrize("sizes", [(2**31, 1, 1), (1, 2**31, 1), (1, 1, 2**31), (-1, 2, 2)])
def test_sizes_beyond_32_bits(sizes):
    m, n, k = sizes
    with pytest.raises(ArgumentError, match=r"matmul: sizes .*; needs each .*; split the arrays"):
        Case("float", m, n, k).define(Module())


def test_results_that_would_overlap():
    with pytest.raises(ArgumentError, match="not to overlap"):
        Case("float", 3, 3, 3, batch=2, gaps=(0, 0, -1)).define(Module())


def test_small_products_need_neither_threads_nor_scipy():
    code = (
        "import sys; from product_cases import *; Products([Case('float', 8, 16, 2)]);"
        "print('scipy' in sys.modules); print(blas.imports('no symbols'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=os.path.dirname(__file__),
    )
    assert done.stdout.split() == ["False", "{}"]


# ---- BLAS is held to one thread ----


class Hold:
    """SciPy's number of BLAS threads, and the native functions that hold it."""

    def __init__(self) -> None:
        found = blas._thread_functions()
        if not found:
            pytest.skip("SciPy has another BLAS than OpenBLAS")
        addresses = blas.imports("@gt_blas_enter(")
        self.get = ctypes.CFUNCTYPE(ctypes.c_int)(found["blas_get_threads"])
        self.set = ctypes.CFUNCTYPE(None, ctypes.c_int)(found["blas_set_threads"])
        self.enter = ctypes.CFUNCTYPE(None)(addresses["gt_blas_enter"])
        self.leave = ctypes.CFUNCTYPE(None)(addresses["gt_blas_leave"])


@pytest.fixture
def hold() -> Iterator[Hold]:
    hold = Hold()
    before = hold.get()
    hold.set(2)
    yield hold
    hold.set(before)


def test_one_thread_inside_and_the_old_number_after(hold):
    assert hold.get() == 2
    hold.enter()
    assert hold.get() == 1
    hold.enter()
    hold.leave()
    assert hold.get() == 1
    hold.leave()
    assert hold.get() == 2


def test_what_the_user_sets_meanwhile_stays(hold):
    hold.enter()
    hold.set(3)
    hold.leave()
    assert hold.get() == 3


def test_one_thread_stays_one(hold):
    hold.set(1)
    hold.enter()
    hold.leave()
    assert hold.get() == 1


def test_callers_in_many_threads(hold):
    wrong = []

    def call() -> None:
        for _ in range(2000):
            hold.enter()
            if hold.get() != 1:
                wrong.append(hold.get())
            hold.leave()

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert hold.get() == 2


def test_product_by_blas_restores_the_number(hold, large, rng):
    large.check(LARGE["BLAS"], rng)
    assert hold.get() == 2


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_child_forked_inside_gets_the_old_number(hold):
    hold.enter()
    try:
        child = os.fork()
        if child == 0:
            os._exit(hold.get())
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
        assert hold.get() == 1
    finally:
        hold.leave()


def test_another_blas_keeps_its_threads(hold, monkeypatch):
    monkeypatch.setattr(blas, "_THREAD_FUNCTIONS", (("no_such_get", "no_such_set"),))
    other = blas._Blas()
    addresses = other.ready()
    ctypes.CFUNCTYPE(None)(addresses["gt_blas_enter"])()
    assert hold.get() == 2
    ctypes.CFUNCTYPE(None)(addresses["gt_blas_leave"])()
    assert addresses["gt_sgemm"] == blas.imports("@gt_sgemm(")["gt_sgemm"]
