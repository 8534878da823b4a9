"""Entry points of compiled functions: errors, references, threads, lifetimes, layouts."""

import gc
import sys
import threading
import tracemalloc
import weakref
from dataclasses import fields, replace

import numpy as np
import pytest

from builds import needs_entry, needs_lock
from gradtape.compiler.argument_specs import (
    ArrayLeaf,
    DictSpec,
    ListSpec,
    NumberLeaf,
    ResultLeaf,
    ScalarLeaf,
    StaticLeaf,
    TupleSpec,
)
from gradtape.compiler.cpu.llvm.link import Library, compile_module
from gradtape.compiler.cpu.runtime import entry_point, object_layout
from gradtape.compiler.cpu.runtime.entry_point import make_callable
from gradtape.errors import GradtapeError

F8 = np.dtype(np.float64)
INT = NumberLeaf(int)

# Doubles the three numbers of the array that is the last but one input, and returns the last input.
DOUBLE = """
define i32 @run(ptr %in, ptr %out) {{
  %x_at = getelementptr ptr, ptr %in, i64 {array}
  %code_at = getelementptr ptr, ptr %in, i64 {code}
  %x = load ptr, ptr %x_at
  %code = load ptr, ptr %code_at
  %y = load ptr, ptr %out
  %v = load <3 x double>, ptr %x, align 8
  %w = fadd <3 x double> %v, %v
  store <3 x double> %w, ptr %y, align 8
  %status = load i32, ptr %code
  ret i32 %status
}}"""

# Says that it has begun, waits until it may go on, at most so many times, then copies a number.
WAITING = """
define i32 @run(ptr %in, ptr %out) {
entry:
  %flags = load ptr, ptr %in
  %x_at = getelementptr ptr, ptr %in, i64 1
  %x = load ptr, ptr %x_at
  %most_at = getelementptr ptr, ptr %in, i64 2
  %most_p = load ptr, ptr %most_at
  %most = load i64, ptr %most_p
  %y = load ptr, ptr %out
  %go = getelementptr i64, ptr %flags, i64 1
  store volatile i64 1, ptr %flags
  br label %wait
wait:
  %i = phi i64 [ 0, %entry ], [ %next, %again ]
  %flag = load volatile i64, ptr %go
  %may = icmp ne i64 %flag, 0
  br i1 %may, label %copy, label %again
again:
  %next = add i64 %i, 1
  %late = icmp ugt i64 %next, %most
  br i1 %late, label %give_up, label %wait
copy:
  %v = load double, ptr %x
  store double %v, ptr %y
  ret i32 0
give_up:
  ret i32 7
}"""


def library(text):
    return Library(compile_module(text), {}, ["run"])


def on_error(code):
    raise OSError(code, "failed")


def doubling(native, on_error=on_error, **options):
    args = [ArrayLeaf(F8, (3,)), INT]
    code, results = library(DOUBLE.format(array=0, code=1)), [(F8, (3,))]
    return make_callable(
        code, "run", args, ResultLeaf(0), results, on_error=on_error, native=native, **options
    )


# ---- errors ----


@pytest.mark.parametrize("release_gil", [True, False])
@pytest.mark.parametrize("code", [1, 250, -1, 2**31 - 1])
def test_code_goes_to_on_error(native, code, release_gil):
    f = doubling(native, release_gil=release_gil)
    with pytest.raises(OSError, match="failed") as caught:
        f(np.ones(3), code)
    assert caught.value.errno == code
    assert f(np.ones(3), 0).tolist() == [2, 2, 2]


def test_on_error_has_to_raise(native):
    codes = []
    f = doubling(native, codes.append, name="step")
    with pytest.raises(GradtapeError, match="step: the compiled function failed with code 5"):
        f(np.ones(3), 5)
    assert codes == [5]


def test_name(native):
    assert doubling(native, name="schrittweise").__name__ == "schrittweise"
    assert doubling(native).__name__ == "run"


# ---- references ----


class Zoo:
    """One of everything, each in a place where a reference could be lost."""

    def __init__(self, native):
        self.x, self.held, self.scalar = np.ones(3), np.ones((2, 2)), np.float64(0.5)
        self.flag, self.key, self.text = object(), "k" * 40, "t" * 50
        key = self.key
        args = [
            DictSpec((key, "b"), (ArrayLeaf(F8, (2, 2)), ListSpec((ScalarLeaf(F8),))), ("b", key)),
            TupleSpec((NumberLeaf(float), StaticLeaf(self.flag), StaticLeaf(self.text))),
            ArrayLeaf(F8, (3,)),
            INT,
        ]
        leaf = [ResultLeaf(i) for i in range(4)]
        nested = ListSpec(
            (leaf[1], DictSpec((key, "c"), (leaf[0], leaf[0])), TupleSpec((leaf[2],)))
        )
        result = TupleSpec((StaticLeaf(self.flag), DictSpec((key,), (nested,)), leaf[0]))
        results = [(F8, (3,)), (F8, ()), (np.dtype(np.bool_), ()), (F8, (500,))]
        code = DOUBLE.format(array=3, code=4)
        self.f = make_callable(
            library(code), "run", args, result, results, on_error=on_error, native=native
        )
        self.d = {"b": [self.scalar], key: self.held}
        self.t = (2.5, self.flag, self.text)

    def own(self):
        items = [self.x, self.held, self.scalar, self.flag, self.key, self.text, self.d, self.t]
        return [*items, self.f, self.d["b"], self.t[0]]

    def watched(self):
        shared = [F8, np.dtype(np.bool_), NotImplemented, None, np.ndarray, float, dict]
        return [sys.getrefcount(each) for each in [*self.own(), *shared]]

    def call(self, **changes):
        given = {"d": self.d, "t": self.t, "x": self.x, "code": 0} | changes
        return self.f(given["d"], given["t"], given["x"], given["code"])

    def miss(self):
        answers = [self.call(d={self.key: self.held, "c": 1}), self.call(t=(1.0, None, ""))]
        answers += [self.call(x=self.held), self.call(code=2**70), self.f(), self.call(d={})]
        answers += [self.call(d={"b": [self.x], self.key: self.held})]
        answers += [self.call(d=dict(reversed(self.d.items())))]
        assert answers == [NotImplemented] * 8

    def fail(self):
        with pytest.raises(OSError, match="failed"):
            self.call(code=5000)


@pytest.mark.parametrize("how", ["call", "miss", "fail"])
def test_references(native, how):
    zoo = Zoo(native)
    act = getattr(zoo, how)
    act()
    gc.collect()
    before = zoo.watched()
    for _ in range(200):
        act()
    gc.collect()
    # None comes and goes; a reference lost or gained per call would be at least 200.
    assert max(abs(np.subtract(zoo.watched(), before))) < 100


def test_references_of_results(native):
    flag, nested, y = Zoo(native).call()
    [items] = nested.values()
    assert y.tolist() == [2, 2, 2]
    assert items[1]["c"] is y
    # As many owners as objects of Python's own have: of y a dict twice, and we.
    twin = object()
    owners = [object(), {"c": twin, "d": twin}, object()]
    counts = [sys.getrefcount(y), *map(sys.getrefcount, items)]
    assert counts == [sys.getrefcount(twin), *map(sys.getrefcount, owners)]
    assert type(flag) is object


@needs_entry
@pytest.mark.parametrize("how", ["call", "miss", "fail"])
def test_memory(how):
    # Native only: code in Python cannot lose memory without references, which are counted above.
    act = getattr(Zoo(native=True), how)
    used = []
    tracemalloc.start()
    try:
        for calls in (1000, 200):  # first until Python's lists of free objects are full
            for _ in range(calls):
                act()
            gc.collect()
            used.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    # No object is smaller than an int.
    assert used[1] - used[0] < 200 * sys.getsizeof(1)


@needs_entry
def test_no_memory():
    testcapi = pytest.importorskip("_testcapi")
    zoo = Zoo(native=True)
    zoo.call()
    gc.collect()
    before, failed, kept = zoo.watched(), 0, []
    # Python keeps some objects for use again: with all of them taken, each one needs memory.
    taken = [[[i], {}, (i,), (i, i, i)] for i in range(2500)]
    gc.disable()
    try:
        for at in range(40):
            taken.append([[at], {}, {}, (at,), (at, at, at)])
            testcapi.set_nomemory(at, at + 1)
            try:
                kept.append(zoo.f(zoo.d, zoo.t, zoo.x, 0))
            except MemoryError:
                failed += 1
            finally:
                testcapi.remove_mem_hooks()
    finally:
        gc.enable()
    assert [answer[2].tolist() for answer in kept] == [[2, 2, 2]] * (40 - failed)
    # Two arrays and their data, a scalar, two tuples, a list, two dicts and their tables.
    assert failed >= 9
    kept.clear()
    changes = np.subtract(zoo.watched(), before)
    assert changes[: len(zoo.own())].tolist() == [0] * len(zoo.own())
    assert max(abs(changes)) < failed


# ---- threads ----


def waiting(native, release_gil):
    args = [ArrayLeaf(np.dtype(np.int64), (2,)), ListSpec((ArrayLeaf(F8, (1,)),)), INT]
    options = {"on_error": on_error, "release_gil": release_gil, "native": native}
    return make_callable(library(WAITING), "run", args, ResultLeaf(0), [(F8, ())], **options)


def test_others_run_meanwhile_and_cannot_take_arguments_away(native):
    f, flags, items = waiting(native, True), np.zeros(2, np.int64), [np.full(1, 4.5)]
    alive, seen = weakref.ref(items[0]), []

    def intrude():
        while not flags[0]:
            pass
        items.clear()
        seen.append(alive() is not None)
        flags[1] = 1

    thread = threading.Thread(target=intrude)
    thread.start()
    try:
        assert f(flags, items, 2**40) == 4.5
    finally:
        flags[0] = 1
        thread.join()
    assert seen == [True]
    assert alive() is None


@needs_lock
def test_others_wait_if_not_told_otherwise(native):
    f, flags = waiting(native, False), np.zeros(2, np.int64)

    def intrude():
        while not flags[0]:
            pass
        flags[1] = 1

    thread = threading.Thread(target=intrude)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    thread.start()
    try:
        with pytest.raises(OSError, match="failed") as caught:
            f(flags, [np.ones(1)], 20_000_000)
    finally:
        sys.setswitchinterval(interval)
        flags[0] = 1
        thread.join()
    assert caught.value.errno == 7


@pytest.mark.parametrize("release_gil", [True, False])
def test_many_threads(native, release_gil):
    f = doubling(native, release_gil=release_gil)
    calls, wrong = 2000 if native else 100, []

    def work(seed):
        for i in range(calls):
            x = np.full(3, float(seed * calls + i))
            y = f(x, 0)
            if not np.array_equal(y, 2 * x):
                wrong.append((x, y))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# ---- lifetimes ----


def test_library_lives_as_long_as_the_callable(native):
    code = library(DOUBLE.format(array=0, code=1))
    alive = weakref.ref(code)
    args, results = [ArrayLeaf(F8, (3,)), INT], [(F8, (3,))]
    f, g = (
        make_callable(code, "run", args, spec, results, on_error=on_error, native=native)
        for spec in (ResultLeaf(0), ListSpec((ResultLeaf(0),)))
    )
    del code
    y = f(np.ones(3), 0)
    del f
    gc.collect()
    assert alive() is not None
    assert g(np.ones(3), 0)[0].tolist() == [2, 2, 2]
    del g
    gc.collect()
    assert alive() is None
    assert y.tolist() == [2, 2, 2]


def test_callables_in_cycles_are_freed(native):
    def make():
        holder = []
        code = library(DOUBLE.format(array=0, code=1))
        f = make_callable(
            code,
            "run",
            [ArrayLeaf(F8, (3,)), INT],
            TupleSpec((ResultLeaf(0), StaticLeaf(holder))),
            [(F8, (3,))],
            on_error=lambda code: holder[code],
            native=native,
        )
        holder += [f, holder]
        assert f(np.ones(3), 0)[1] is holder
        return weakref.ref(code)

    alive = [make() for _ in range(20)]
    gc.collect()
    assert [each() for each in alive] == [None] * 20


# ---- layouts ----


@needs_entry
def test_native_entries_are_used_here():
    assert sys.implementation.name == "cpython"
    assert object_layout.native_layout() == object_layout.expected_layout()


@pytest.mark.parametrize("field", [field.name for field in fields(object_layout.ObjectLayout)])
def test_other_layouts_are_noticed(field):
    right = object_layout.expected_layout()
    assert object_layout.first_mismatch(right) is None
    other = replace(right, **{field: getattr(right, field) + 8})
    assert object_layout.first_mismatch(other) is not None


@pytest.mark.parametrize(
    "why", ["no lock", "NumPy", "no table", "no function", "interpreter", "layout", "switched off"]
)
def test_python_takes_over(why, monkeypatch):
    if why == "no lock":
        monkeypatch.setattr(object_layout.sysconfig, "get_config_var", lambda name: 1)
    elif why == "NumPy":
        monkeypatch.setattr(object_layout, "_NUMPY_ABI", 0x03000000)
    elif why == "no table":
        monkeypatch.setattr(object_layout, "_multiarray", object())
    elif why == "no function":
        monkeypatch.setattr(object_layout, "_PYTHON_FUNCTIONS", ("Py_IncRef", "Py_NoSuchFunction"))
        monkeypatch.setattr(object_layout, "c_functions", object_layout.c_functions.__wrapped__)
    elif why == "switched off":
        monkeypatch.setenv("GRADTAPE_WITHOUT", "entry")
    elif why == "interpreter":
        monkeypatch.setattr(object_layout.sys.implementation, "name", "other")
    else:
        monkeypatch.setattr(object_layout, "first_mismatch", lambda layout: "ndim")
    assert object_layout.native_layout.__wrapped__() is None
    monkeypatch.setattr(entry_point, "native_layout", object_layout.native_layout.__wrapped__)
    f = doubling(native=True)
    assert not isinstance(f, type(len))
    assert f(np.ones(3), 0).tolist() == [2, 2, 2]
    assert f(np.ones(4), 0) is NotImplemented
