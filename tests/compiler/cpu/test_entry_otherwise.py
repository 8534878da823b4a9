"""Entry points of compiled functions: arguments handed on to others, and objects bound to them."""

import functools
import gc
import itertools
import sys
import threading
import warnings
import weakref

import numpy as np
import pytest

from builds import needs_entry
from gradtape.compiler.argument_specs import (
    ArrayLeaf,
    DictSpec,
    ListSpec,
    NumberLeaf,
    ResultLeaf,
    StaticLeaf,
    TupleSpec,
)
from gradtape.compiler.cpu.llvm.link import Library, compile_module
from gradtape.compiler.cpu.runtime.entry_point import make_callable
from gradtape.compiler.cpu.runtime.entry_tables import UNSETTLED_STATUS
from gradtape.errors import ArgumentError

F8 = np.dtype(np.float64)
THREE = ArrayLeaf(F8, (3,))
BUILTIN = type(len)

# Multiplies the three numbers of the array that is the last input by those of the first.
PRODUCT = """
define i32 @run(ptr %in, ptr %out) {{
  %x = load ptr, ptr %in
  %y_at = getelementptr ptr, ptr %in, i64 {last}
  %y = load ptr, ptr %y_at
  %z = load ptr, ptr %out
  %a = load <3 x double>, ptr %x, align 8
  %b = load <3 x double>, ptr %y, align 8
  %c = fmul <3 x double> %a, %b
  store <3 x double> %c, ptr %z, align 8
  ret i32 0
}}"""


@functools.cache
def product_code(inputs):
    return compile_module(PRODUCT.format(last=inputs - 1))


def product(native, *args, inputs=2, **options):
    """The product of the first and the last array."""
    code = product_code(inputs)
    library, results = Library(code, {}, ["run"]), [(F8, (3,))]
    options = {"on_error": print, "native": native} | options
    f = make_callable(library, "run", args or (THREE, THREE), ResultLeaf(0), results, **options)
    assert isinstance(f, BUILTIN) is native
    return f


class Noted:
    """A function that keeps what it is called with, and answers with an object of its own."""

    def __init__(self):
        self.answer = object()
        self.calls = []

    def __call__(self, /, *args, **kwargs):
        self.calls.append((args, kwargs))
        return self.answer


# ---- arguments handed on ----


def test_a_call_that_something_came_of_is_handed_on_if_the_code_says_so(native):
    code = compile_module(f"define i32 @run(ptr %in, ptr %out) {{ ret i32 {UNSETTLED_STATUS} }}")
    library, results, args = Library(code, {}, ["run"]), [(F8, (3,))], [ListSpec((THREE,))]
    make = functools.partial(make_callable, library, "run", args, ResultLeaf(0), results)
    other, x = Noted(), np.arange(3.0)
    f = make(on_error=print, native=native, otherwise=other)
    refused = make(on_error=print, native=native)
    held = [x]
    before = sys.getrefcount(x)
    for _ in range(100):
        assert f(held) is other.answer
        assert refused(held) is NotImplemented
    assert [args for args, _ in other.calls] == [(held,)] * 100
    other.calls.clear()
    assert sys.getrefcount(x) == before


def test_arguments_that_do_not_fit_are_handed_on_as_they_came(native):
    other, x = Noted(), np.arange(3.0)
    f = product(native, otherwise=other)
    assert f(x, x).tolist() == [0, 1, 4]
    assert not other.calls
    for args in [(), (x,), (x, x, x), (x, x[:2]), (x[::-1], x), (None, "text"), tuple(range(40))]:
        assert f(*args) is other.answer
        got, kwargs = other.calls.pop()
        assert list(map(id, got)) == list(map(id, args))
        assert kwargs == {}
    assert f(x, x).tolist() == [0, 1, 4]


@pytest.mark.parametrize(
    "kwargs", [{"y": 1}, {"self": 1, "args": 2, "otherwise": 3}, {f"k{i}": i for i in range(30)}]
)
def test_keyword_arguments_are_handed_on(native, kwargs):
    other, x = Noted(), np.arange(3.0)
    f = product(native, otherwise=other)
    for args in [(), (x,), (x, x), (x, None, 3)]:
        assert f(*args, **kwargs) is other.answer
        got, named = other.calls.pop()
        assert list(map(id, got)) == list(map(id, args))
        assert list(named.items()) == list(kwargs.items())
    nothing = {}
    assert f(x, x, **nothing).tolist() == [0, 1, 4]
    assert not other.calls


def test_without_others_nothing_fits_but_the_arguments(native):
    x = np.ones(3)
    f = product(native)
    assert [f(x, y=x), f(x, x, z=1), f(self=x), f(x)] == [NotImplemented] * 4
    assert product(native, otherwise=lambda *args: NotImplemented)(x) is NotImplemented


class Pair:
    def __init__(self, *args, **kwargs):
        self.given = args, kwargs

    def given_now(self, *args, **kwargs):
        return args, kwargs


@pytest.mark.parametrize(
    ("otherwise", "read"),
    [
        (Pair, lambda made: made.given),
        (Pair().given_now, lambda made: made),
        (functools.partial(Pair().given_now), lambda made: made),
        (dict, lambda made: ((), made)),
    ],
    ids=["class", "method", "partial", "builtin class"],
)
def test_all_that_can_be_called(native, otherwise, read):
    f = product(native, otherwise=otherwise)
    assert read(f(a=1, b=None)) == ((), {"a": 1, "b": None})
    if otherwise is not dict:
        assert read(f("x", 2)) == (("x", 2), {})


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), SystemExit(3)])
def test_what_is_raised_comes_out_unchanged(native, error):
    def fail(*args, **kwargs):
        raise error

    f, x = product(native, otherwise=fail), np.ones(3)
    for call in (lambda: f(None), lambda: f(x, y=x)):
        with pytest.raises(type(error)) as caught:
            call()
        assert caught.value is error
        assert (error.__cause__, error.__context__) == (None, None)
        assert f(x, x).tolist() == [1, 1, 1]


def test_what_cannot_be_called_raises(native):
    with pytest.raises(TypeError, match="'int' object is not callable"):
        product(native, otherwise=3)(None)
    with pytest.raises(TypeError, match="keyword"):
        product(native, otherwise=lambda x: x)(1, y=2)


@needs_entry
def test_functions_that_call_each_other_without_end():
    # The frame of each call is 64 kB, and must not be on the stack any more.
    spec = TupleSpec((StaticLeaf(None),) * 8000)
    wrong = (None,) * 7999 + (1,)
    f = product(True, THREE, spec, otherwise=lambda *args: f(*args), inputs=1)
    with pytest.raises(RecursionError):
        f(np.ones(3), wrong)
    assert f(np.full(3, 2.0), (None,) * 8000).tolist() == [4, 4, 4]


# ---- references ----


def test_references(native):
    x, y, word, answer = np.ones(3), np.ones(4), "w" * 30, object()

    def other(*args, **kwargs):
        if kwargs.get("fail"):
            raise OSError("failed")
        return args[-1] if args else answer

    f = product(native, otherwise=other, bound=[x])
    watched = [x, y, word, answer, other, f, f.__self__ if native else f, NotImplemented]

    def act():
        assert f(x)[0] == 1
        assert f(y) is y
        assert f(x, word) is word
        assert f(x, **{word: y}) is x
        assert f(key=x) is answer
        with pytest.raises(OSError, match="failed"):
            f(y, fail=True)

    act()
    gc.collect()
    before = list(map(sys.getrefcount, watched))
    for _ in range(200):
        act()
    gc.collect()
    assert max(abs(np.subtract(list(map(sys.getrefcount, watched)), before))) < 100


def test_references_of_what_is_returned(native):
    f = product(native, otherwise=lambda *args: [args])
    made, fresh = f(1, "a"), [(1, "a")]
    assert made == fresh
    assert sys.getrefcount(made) == sys.getrefcount(fresh)


def test_all_is_freed_with_the_callable(native):
    x, other = np.ones(3), Noted()
    died = [weakref.ref(x), weakref.ref(other)]
    f = product(native, otherwise=other, bound=[x])
    del x, other
    assert f(np.full(3, 2.0)).tolist() == [2, 2, 2]
    assert died[0]() is not None
    assert f() is died[1]().answer
    gc.disable()
    try:
        del f
        assert [each() for each in died] == [None, None]
    finally:
        gc.enable()


def test_cycles_are_freed(native):
    def make():
        def other(*args):
            return f, args

        x = np.ones(3)
        f = product(native, otherwise=other, bound=[x])
        assert f(None)[0] is f
        return weakref.ref(x), weakref.ref(other)

    alive = [each for _ in range(10) for each in make()]
    gc.collect()
    assert [each() for each in alive] == [None] * 20


class Slot:
    """An object that Python calls by what is in its slot."""

    __slots__ = ("__call__",)


def test_the_callable_may_go_while_others_are_called(native):
    slot, x, log = Slot(), np.ones(3), []

    def other(*args):
        slot.__call__ = log.append
        gc.collect()
        return args

    slot.__call__ = product(native, otherwise=other, bound=[np.ones(3)])
    died = weakref.ref(other)
    del other
    assert slot(x)[0] == 1
    assert slot(x, "more") == (x, "more")
    assert slot("now") is None
    assert log == ["now"]
    assert died() is None


# ---- bound objects ----


def test_bound_arrays_follow_the_arguments(native):
    other, x, fixed = Noted(), np.arange(3.0), np.full(3, 5.0)
    f = product(native, otherwise=other, bound=[fixed])
    assert f(x).tolist() == [0, 5, 10]
    fixed[1] = 7.0
    assert f(x).tolist() == [0, 7, 10]
    for args in [(), (x, fixed), (x[:2],)]:
        assert f(*args) is other.answer
        assert len(other.calls.pop()[0]) == len(args)
    assert f(fixed).tolist() == [25, 49, 25]
    assert product(native, bound=[fixed, fixed])().tolist() == [25, 49, 25]
    assert product(native, bound=[fixed])(x, fixed) is NotImplemented


def test_bound_arrays_that_were_resized_do_not_fit(native):
    other, x, fixed = Noted(), np.arange(3.0), np.full(3, 5.0)
    f = product(native, otherwise=other, bound=[fixed])
    for shape in [(2,), (3, 1), (5000,), (0,)]:
        fixed.resize(shape, refcheck=False)
        assert f(x) is other.answer
        assert [list(map(id, args)) for args, _ in other.calls] == [[id(x)]]
        other.calls.clear()
    fixed.resize((3,), refcheck=False)
    assert f(x).tolist() == [0, 0, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of NumPy 2.5, which still does it
        fixed.dtype = np.int64
    assert f(x) is other.answer


def test_bound_containers_and_numbers(native):
    x, number = np.arange(3.0), NumberLeaf(float)
    spec = DictSpec(("a", "b"), (number, ListSpec((THREE,))), ("b", "a"))
    held = {"b": [np.full(3, 2.0)], "a": 1.5}
    args = [THREE, StaticLeaf("axis"), StaticLeaf(F8), number, spec]
    bound = ["".join(["ax", "is"]), F8, 0.5, held]
    f = product(native, *args, inputs=4, bound=bound)
    assert f(x).tolist() == [0, 2, 4]
    held["b"][0] = np.full(3, 3.0)
    assert f(x).tolist() == [0, 3, 6]
    held["b"].append(1)
    assert f(x) is NotImplemented


def test_more_bound_objects_than_specs(native):
    with pytest.raises(ArgumentError, match="3 bound objects and 2 specs"):
        product(native, bound=[1, 2, 3])


def test_too_many_leaves_for_the_stack():
    count, other = 17_000, Noted()
    code = Library(compile_module("define i32 @run(ptr %a, ptr %b) { ret i32 0 }"), {}, ["run"])
    specs = [TupleSpec((StaticLeaf(None),) * count)] * 2
    bound, options = [(None,) * count], {"on_error": print, "otherwise": other}
    f = make_callable(code, "run", specs, StaticLeaf("done"), [], bound=bound, **options)
    assert not isinstance(f, BUILTIN)
    assert f((None,) * count) == "done"
    assert [f((None,)), f(x=1)] == [other.answer] * 2


# ---- threads ----


@pytest.mark.parametrize("release_gil", [True, False])
def test_threads_call_while_the_callable_is_exchanged(native, release_gil):
    slot, wrong, stop = Slot(), [], threading.Event()
    factors = [np.full(3, 2.0), np.full(3, 3.0)]

    def other(*args, **kwargs):
        return "other"

    def make():
        options = {"otherwise": other, "release_gil": release_gil}
        return [product(native, bound=[factor], **options) for factor in factors]

    def work(seed):
        for i in itertools.count():
            x = np.full(3, float(seed + i))
            y = slot(x)
            if not any(np.array_equal(y, x * factor) for factor in factors):
                wrong.append((x, y))
            if slot(x, key=1) != "other" or slot(x[:2]) != "other":
                wrong.append(x)
            if stop.is_set():
                return

    slot.__call__ = make()[0]
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)  # the more often threads take turns, the more is tried
    try:
        for thread in threads:
            thread.start()
        for _ in range(10):
            # The last reference to the one before is often that of a call in another thread.
            for f in make():
                slot.__call__ = f
            del f
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(usual)
    assert wrong == []
