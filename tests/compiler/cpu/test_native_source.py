"""The language of the native runtime: what its statements and expressions do."""

import ctypes
import re

import pytest

from gradtape.compiler.cpu.llvm.link import Library, compile_module, host, host_as_it_is
from gradtape.compiler.cpu.llvm.native_source import NativeSource

FUNCTIONS = """
def sched_yield() -> i32: ...
def helper(
    x: ptr, y: i64
) -> ptr: ...

def gt_first_large(numbers: ptr, count: i64, least: i64) -> i64:
    for i in range(count):
        if i64[numbers, i] >= least:
            return i
    return -1

def gt_odd_sum(start: i64, stop: i64) -> i64:
    total = 0
    for i in range(start, stop):
        if i % 2 == 0:
            continue
        if total > LIMIT.most:
            break
        total += i
    return total

def gt_collatz(n: i64) -> i64:
    steps = 0
    while n != 1:
        n = n // 2 if n & 1 == 0 else 3 * n + 1
        steps += 1
    return steps

@inline
def noted(room: ptr, answer: i1) -> i1:
    i64[room] += 1
    return answer

def gt_questions(a: i64, b: i64) -> i64:
    room = stack(8)
    i64[room] = 0
    if noted(room, a != 0) and (noted(room, b != 0) or not noted(room, a > 5)):
        return i64[room]
    return 0 - i64[room]

def gt_named(kind: i64) -> i64:
    match kind:
        case 1:
            return 10
        case LIMIT.most:
            name = 20
        case 3:
            name = 30
    return name + 1

def gt_converted(x: i64) -> i64:
    byte = i8(x)
    low = i32(x)
    return i64(byte) + (i64(low) << 16) + i64(ult(x, 0)) + i64(smin(x, 7)) + i64(umin(x, 9))

def gt_atomic(place: ptr) -> i64:
    before = seq_cst.xchg(place, 5)
    monotonic.add(place, 10)
    acq_rel.sub(place, 1)
    if not acquire.swap(place, 14, 20) or acquire.swap(place, 14, 30):
        return -1
    release.i64[place] = monotonic.i64[place] + before
    return acquire.i64[place]

def gt_called(function: ptr, x: i64) -> i64:
    sched_yield()
    return call(i64, function, x)

def gt_again(x: i64) -> i64:
    return tail(gt_collatz(x + 1))

def within(x: i64) -> i1:
    require(x > 0 and x < 10)
    return True

def gt_within(x: i64) -> i64:
    return i64(within(x))

def gt_leading(x: i64) -> i64:
    return ctlz(x, True)
"""
SOURCE = NativeSource(FUNCTIONS, {"LIMIT.most": 2})
EXPORTS = re.findall(r"def (gt_\w+)", FUNCTIONS)


@pytest.fixture(scope="module", params=["optimized", "as it is"])
def run(request):
    """Calls an exported function by name, with integers."""
    cpu = host() if request.param == "optimized" else host_as_it_is()
    library = Library(compile_module(str(SOURCE), cpu), {}, EXPORTS)

    def call(name, *args):
        prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(args))
        return library.function(name, prototype)(*args)

    return call


def collatz(n):
    return 0 if n == 1 else 1 + collatz(3 * n + 1 if n % 2 else n // 2)


def test_elements_of_an_array(run):
    numbers = (ctypes.c_int64 * 4)(3, -8, 5, 9)
    address = ctypes.addressof(numbers)
    assert [run("gt_first_large", address, 4, least) for least in (4, 3, 10)] == [2, 0, -1]
    assert run("gt_first_large", address, 0, 3) == -1


def test_loops_and_how_they_are_left(run):
    assert run("gt_odd_sum", 0, 9) == 1 + 3  # larger than the limit
    assert run("gt_odd_sum", 5, 5) == 0
    assert [run("gt_collatz", n) for n in range(1, 30)] == [collatz(n) for n in range(1, 30)]


@pytest.mark.parametrize(("a", "b", "expected"), [(0, 1, -1), (1, 1, 2), (1, 0, 3), (9, 0, -3)])
def test_conditions_stop_early(run, a, b, expected):
    assert run("gt_questions", a, b) == expected


def test_what_is_required(run):
    assert [run("gt_within", x) for x in (0, 1, 9, 10)] == [0, 1, 1, 0]


def test_cases(run):
    assert [run("gt_named", kind) for kind in (1, 2, 3)] == [10, 21, 31]


def test_conversions_and_unsigned_numbers(run):
    assert run("gt_converted", 300) == 44 + (300 << 16) + 0 + 7 + 9
    assert run("gt_converted", -1) == 255 + (-1 << 16) + 0 - 1 + 9


def test_atomic_operations(run):
    place = ctypes.c_int64(100)
    assert run("gt_atomic", ctypes.addressof(place)) == place.value == 120


def test_calls(run):
    doubled = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda x: 2 * x)
    address = ctypes.cast(doubled, ctypes.c_void_p).value
    assert run("gt_called", address, 21) == 42
    assert run("gt_again", 26) == collatz(27)
    assert run("gt_leading", 1) == 63


def test_declarations():
    assert SOURCE.declared == ["sched_yield", "helper"]
    assert "declare ptr @helper(ptr, i64)" in str(SOURCE)
    given = NativeSource("def one() -> i64: ...", ir="define i64 @one() { ret i64 1 }")
    assert "declare" not in str(given)


@pytest.mark.parametrize("statement", ["del x", "x = [1]", "x.y.z(1)", "1[2] = 3"])
def test_other_syntax_is_refused(statement):
    with pytest.raises(AssertionError, match="not in the language"):
        str(NativeSource(f"def gt_other(x: i64):\n    {statement}"))
