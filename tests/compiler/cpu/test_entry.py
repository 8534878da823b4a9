"""The entry point of compiled functions: native and in Python, the same answers to everything."""

import ctypes
import pickle
from collections import OrderedDict, namedtuple
from dataclasses import replace

import numpy as np
import pytest

from gradtape.compiler.argument_specs import (
    ArrayLeaf,
    DictSpec,
    ListSpec,
    NumberLeaf,
    Result,
    ResultLeaf,
    ScalarLeaf,
    StaticLeaf,
    TupleSpec,
    leaves,
)
from gradtape.compiler.cpu.llvm.link import Library, compile_module
from gradtape.compiler.cpu.runtime.entry_point import make_callable
from gradtape.errors import ArgumentError, DTypeError

F8, F4, I8, I4, B1 = map(np.dtype, (np.float64, np.float32, np.int64, np.int32, np.bool_))
FIVE = (F8, F4, I8, I4, B1)
NONE = StaticLeaf(None)
BUILTIN = type(len)


def library(text):
    return Library(compile_module(text), {}, ["run"])


def on_error(code):
    raise OSError(code, "failed")


def element(name, index):
    return f"""
  %{name}_at = getelementptr ptr, ptr %{name.rstrip("0123456789")}, i64 {index}
  %{name} = load ptr, ptr %{name}_at"""


def copying(sizes):
    """A function that copies so many bytes of each input to the output of the same number."""
    body = "".join(
        f"{element(f'in{i}', i)}{element(f'out{i}', i)}\n"
        f"  call void @llvm.memcpy.p0.p0.i64(ptr %out{i}, ptr %in{i}, i64 {size}, i1 false)"
        for i, size in enumerate(sizes)
    )
    return library(
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
        f"define i32 @run(ptr %in, ptr %out) {{{body}\n  ret i32 0\n}}"
    )


def echo(*args, native=True, result=None, **options):
    """A callable that returns copies of the leaves of its arguments."""
    found = [leaf for arg in args for leaf in leaves(arg) if not isinstance(leaf, StaticLeaf)]
    results = [(leaf.dtype, getattr(leaf, "shape", ())) for leaf in found]
    sizes = [dtype.itemsize * int(np.prod(shape)) for dtype, shape in results]
    result = result or TupleSpec(tuple(ResultLeaf(i) for i in range(len(found))))
    f = make_callable(
        copying(sizes), "run", args, result, results, on_error=on_error, native=native, **options
    )
    assert isinstance(f, BUILTIN) is native
    return f


def same(got, wanted):
    """Equal in structure, types, dtypes, bits."""
    assert type(got) is type(wanted)
    if isinstance(wanted, tuple | list):
        assert len(got) == len(wanted)
        for pair in zip(got, wanted, strict=True):
            same(*pair)
    elif isinstance(wanted, dict):
        assert list(got) == list(wanted)
        for key in wanted:
            same(got[key], wanted[key])
    elif isinstance(wanted, np.ndarray | np.generic):
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        assert got.tobytes() == wanted.tobytes()
    else:
        assert got is wanted


# ---- leaves ----


@pytest.mark.parametrize("dtype", FIVE, ids=str)
@pytest.mark.parametrize("shape", [(7,), (2, 3, 4), (1, 1), (3, 0), ()], ids=str)
def test_arrays(native, dtype, shape, rng):
    x = np.asarray(rng.standard_normal(shape) * 5).astype(dtype)
    f = echo(ArrayLeaf(dtype, shape), native=native)
    (y,) = f(x)
    same(y, x if shape else x[()])
    if shape:
        assert y.flags.c_contiguous
        assert y.flags.owndata
        assert y.flags.writeable
        assert not np.shares_memory(x, y)
    x.flags.writeable = False
    same(f(x), (y,))


@pytest.mark.parametrize("dtype", [*FIVE, *map(np.dtype, "bBhHILqQeFD")], ids=lambda d: d.char)
def test_scalars(native, dtype):
    f = echo(ScalarLeaf(dtype), native=native)
    x = dtype.type(1 if dtype.kind == "b" else 77)
    same(f(x), (x,))
    for other in (np.array(x), np.ones(1, dtype), 77, 77.0, None, True):
        assert f(other) is NotImplemented
    for another in FIVE:
        if another.type is not dtype.type:
            assert f(another.type(1)) is NotImplemented


@pytest.mark.parametrize(
    ("kind", "values", "others"),
    [
        (float, [0.0, -0.0, 1e-310, float("inf"), -2.5], [1, True, np.float64(1), np.ones(()), ""]),
        (int, [0, -1, 2**63 - 1, -(2**63)], [2**63, -(2**63) - 1, 2**200, True, 1.0, np.int64(1)]),
        (bool, [True, False], [0, 1, np.True_, None, 1.0]),
    ],
)
def test_numbers(native, kind, values, others):
    f = echo(NumberLeaf(kind), native=native)
    for value in values:
        same(f(value), (NumberLeaf(kind).dtype.type(value),))
    subclass = type("Sub", (kind,), {})(1) if kind is not bool else object()
    for other in [*others, subclass]:
        assert f(other) is NotImplemented
    # An int that does not fit leaves no error behind.
    same(f(values[0]), (NumberLeaf(kind).dtype.type(values[0]),))


def test_static_objects(native):
    flag, text = object(), "".join(["axis", " name"])
    statics = [None, flag, True, text, b"xyz"[:2], 10**30, -0.0, np.float32, Ellipsis]
    f = echo(*map(StaticLeaf, statics), native=native, result=StaticLeaf(flag))
    assert f(*statics) is flag
    # Equal immutable objects are as good as the same.
    again = [None, flag, True, "axis" + " name"[:], bytes([120, 121]), 10**29 * 10, -1 * 0.0]
    assert again[3] == text
    assert f(*again, np.float32, ...) is flag
    others = [False, object(), 1, "axis  name", b"xx", 10**30 + 1, 0.0, np.float64, None]
    for place, other in enumerate(others):
        assert f(*statics[:place], other, *statics[place + 1 :]) is NotImplemented
    assert f(*statics[:3], type("S", (str,), {})(text), *statics[4:]) is NotImplemented


def test_static_leaves_compare_as_they_match():
    assert StaticLeaf("ab") == StaticLeaf("".join("ab"))
    assert hash(StaticLeaf(10**30)) == hash(StaticLeaf(10**29 * 10))
    different = [1, True, 1.0, "1", b"1", 0.0, -0.0, None, [], [], int]
    assert len({StaticLeaf(value) for value in different}) == len(different)
    assert StaticLeaf(1) != 1


# ---- what does not fit ----


class Sub(np.ndarray):
    pass


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x[:1],
        lambda x: x[0],
        lambda x: x[:, 0].copy(),
        lambda x: np.array(1.0),
        lambda x: x[None],
        lambda x: x.astype(np.float32),
        lambda x: x.astype(np.int64),
        lambda x: x.astype(complex),
        lambda x: x.astype(x.dtype.newbyteorder()),
        lambda x: np.asfortranarray(x),
        lambda x: np.zeros((4, 6))[::2, ::2],
        lambda x: np.zeros((3, 2)).T,
        lambda x: x[::-1],
        lambda x: np.broadcast_to(x[:1], x.shape),
        lambda x: np.zeros(49, np.uint8)[1:].view(np.float64).reshape(2, 3),
        lambda x: x.view(Sub),
        lambda x: np.ma.masked_array(x),
        lambda x: np.zeros(x.shape, object),
        lambda x: np.zeros(x.shape, "M8[s]"),
        lambda x: np.zeros(x.shape, [("f", "f8")]),
        lambda x: x.tolist(),
        lambda x: tuple(x),
        lambda x: x[0, 0],
        lambda x: None,
        lambda x: np.ndarray,
    ],
)
def test_arrays_that_do_not_fit(native, make):
    x = np.arange(6.0).reshape(2, 3)
    f = echo(ArrayLeaf(F8, (2, 3)), native=native)
    same(f(x), (x,))
    assert f(make(x)) is NotImplemented


def test_equal_dtypes_fit(native):
    # Pickles make a dtype object of their own; `long long` is int64 by another name.
    x, f = np.arange(3.0), echo(ArrayLeaf(F8, (3,)), native=native)
    loaded = pickle.loads(pickle.dumps(x))
    assert loaded.dtype is not x.dtype
    same(f(loaded), (x,))
    swapped = pickle.loads(pickle.dumps(x.astype(x.dtype.newbyteorder()), protocol=5))
    assert not swapped.dtype.isnative
    assert f(swapped) is NotImplemented
    for char in "lq":
        for other in "lq":
            g = echo(ArrayLeaf(np.dtype(char), (3,)), native=native)
            assert g(np.arange(3, dtype=other))[0].tolist() == [0, 1, 2]


@pytest.mark.parametrize("given", [0, 1, 3])
def test_number_of_arguments(native, given):
    f = echo(NumberLeaf(int), NumberLeaf(int), native=native)
    same(f(5, 6), (np.int64(5), np.int64(6)))
    assert f(*[1] * given) is NotImplemented


# ---- containers ----

Pair = namedtuple("Pair", "a b")


def test_containers(native):
    x, n = np.arange(3.0), NumberLeaf(int)
    inner = DictSpec(("w", "b"), (ArrayLeaf(F8, (3,)), ListSpec((n, TupleSpec((n, NONE))))))
    spec = TupleSpec((inner, ListSpec(()), TupleSpec(()), DictSpec((), ())))
    f = echo(spec, n, native=native)

    def call(w=x, b=None, extra=(), empty=({}, [], ()), d=None):
        made = {"w": w, "b": [1, (2, None)] if b is None else b} if d is None else d
        return f((made, empty[1], empty[2], empty[0], *extra), 3)

    wanted = (x, np.int64(1), np.int64(2), np.int64(3))
    same(call(), wanted)
    # Keys that are equal without being the same object.
    same(call(d={"".join(["w", ""]): x, "_b"[1:]: [1, (2, None)]}), wanted)
    wrong = [
        call(w=x[:2]), call(b=[1, (2, 0)]), call(b=[1, [2, None]]), call(b=(1, (2, None))),
        call(b=[1]), call(b=[1, (2, None), 3]), call(extra=(1,)), call(empty=({"a": 1}, [], ())),
        call(empty=({}, [1], ())), call(empty=({}, [], (1,))), call(d={"w": x}), call(d=None, b=[]),
        call(d={"w": x, "c": [1, (2, None)]}), call(d={"w": x, "b": [1, (2, None)], "c": 1}),
        call(d={"w": x, 1: [1, (2, None)]}), call(d=[x, [1, (2, None)]]), call(d={}),
        call(d=OrderedDict(w=x, b=[1, (2, None)])), call(b=[1, Pair(2, None)]), f(None, 3),
    ]  # fmt: skip
    assert wrong == [NotImplemented] * len(wrong)


def test_keys_that_run_code_are_not_asked(native):
    class Key:
        def __hash__(self):
            return hash("w")

        def __eq__(self, other):
            raise AssertionError("code of the user ran")

    f = echo(DictSpec(("w",), (NumberLeaf(int),)), native=native)
    assert f({Key(): 1}) is NotImplemented
    assert f({type("S", (str,), {})("w"): 1}) is NotImplemented


def test_keys_are_compared_in_order(native):
    n = NumberLeaf(int)
    inner = DictSpec(("a", "b"), (n, n), ("b", "a"))
    f = echo(DictSpec(("k", "l", "m"), (n, inner, n), ("m", "k", "l")), native=native)
    wanted = tuple(map(np.int64, range(4)))
    same(f({"m": 3, "k": 0, "l": {"b": 2, "a": 1}}), wanted)
    same(f({"".join(["m", ""]): 3, "_k"[1:]: 0, "l_"[:1]: {"_b"[1:]: 2, "a": 1}}), wanted)
    moved = {"k": 0, "m": 3}
    del moved["k"]
    same(f(moved | {"k": 0, "l": {"b": 2, "a": 1}}), wanted)
    assert f({"m": 3, "k": 0, "l": {"a": 1, "b": 2}}) is NotImplemented
    assert f({"k": 0, "m": 3, "l": {"b": 2, "a": 1}}) is NotImplemented
    assert f({"m": 3, "l": {"b": 2, "a": 1}, "k": 0}) is NotImplemented
    assert f({"m": 3, "k": 0, "n": {"b": 2, "a": 1}}) is NotImplemented
    assert inner == replace(inner, order=("b", "a"))
    assert inner != DictSpec(("a", "b"), (n, n)) == replace(inner, order=("a", "b"))


def test_many_leaves(native):
    count = 100
    keys = tuple(f"p{i}" for i in range(count))
    spec = DictSpec(keys, tuple(ArrayLeaf(F8, (i % 4,)) for i in range(count)))
    result = DictSpec(keys, tuple(ResultLeaf(i) for i in range(count)))
    f = echo(spec, native=native, result=result)
    values = {key: np.arange(float(i % 4)) for i, key in enumerate(keys)}
    expected = {k: v if v.shape else v[()] for k, v in values.items()}
    same(f(values), expected)
    back = dict(reversed(values.items()))
    assert f(back) is NotImplemented
    # The leaves stay where they are, whatever the order of the dicts they come from and go to.
    f = echo(replace(spec, order=keys[::-1]), native=native, result=replace(result, order=keys))
    same(f(back), expected)
    assert f(values) is NotImplemented
    f = echo(spec, native=native, result=replace(result, order=tuple(sorted(keys))))
    same(f(values), dict(sorted(expected.items())))


def test_too_many_leaves_for_the_stack_are_checked_in_python():
    count = 17_000
    spec, empty = TupleSpec((NONE,) * count), library("define i32 @run(ptr %a, ptr %b) {ret i32 0}")
    f = make_callable(empty, "run", [spec], NONE, [], on_error=on_error)
    assert not isinstance(f, BUILTIN)
    assert f((None,) * count) is None
    assert f((None,) * (count - 1)) is NotImplemented


# ---- results ----


def test_results(native):
    constant = object()
    args = [ArrayLeaf(F4, (2,)), NumberLeaf(float), NumberLeaf(bool), ScalarLeaf(I8)]
    leaf = [ResultLeaf(i) for i in range(4)]
    inner = ListSpec((leaf[1], DictSpec(("z", "a"), (leaf[0], TupleSpec((leaf[3],))))))
    result = TupleSpec(
        (inner, NONE, StaticLeaf(constant), leaf[0], DictSpec((), ()), TupleSpec(()))
    )
    f = echo(*args, native=native, result=result)
    x = np.float32([1, 2])
    got = f(x, 0.5, True, np.int64(9))
    same(got, ([np.float64(0.5), {"z": x, "a": (np.int64(9),)}], None, constant, x, {}, ()))
    assert got[3] is got[0][1]["z"]
    assert f(x, 0.5, True, np.int64(9))[3] is not got[3]
    for spec, wanted in [(leaf[2], np.True_), (NONE, None), (leaf[0], x), (ListSpec(()), [])]:
        same(echo(*args, native=native, result=spec)(x, 0.5, True, np.int64(9)), wanted)


@pytest.mark.parametrize("shape", [(2**45, 2**10), (2**61, 2**61)])
def test_results_that_do_not_fit_into_memory(native, shape):
    empty = library("define i32 @run(ptr %a, ptr %b) { ret i32 1 }")
    results = [(F8, (4,)), (F8, shape)]
    result = TupleSpec((ResultLeaf(0), ResultLeaf(1)))
    f = make_callable(empty, "run", [], result, results, on_error=on_error, native=native)
    with pytest.raises(MemoryError, match=r"got results .* of .*iB, expected at most the .*iB"):
        f()


def test_an_error_that_is_set_already_comes_first(native):
    address = ctypes.cast(ctypes.pythonapi.PyErr_NoMemory, ctypes.c_void_p).value
    text = "define i32 @run(ptr %a, ptr %b) { %n = call ptr @PyErr_NoMemory() ret i32 1 }"
    code = compile_module(f"declare ptr @PyErr_NoMemory()\n{text}")
    raising = Library(code, {"PyErr_NoMemory": address}, ["run"])
    f = make_callable(raising, "run", [], NONE, [(F8, (3,))], on_error=on_error, native=native)
    with pytest.raises(MemoryError):
        f()


@pytest.mark.parametrize(
    ("args", "result", "results", "error", "message"),
    [
        (
            [ResultLeaf(0)],
            NONE,
            [(F8, ())],
            ArgumentError,
            "as an argument, expected it in a result",
        ),
        ([], ResultLeaf(1), [(F8, ())], ArgumentError, "ResultLeaf of one of 1 results"),
        ([], NumberLeaf(int), [], ArgumentError, "expected a StaticLeaf, or"),
        ([], NONE, [(np.dtype(">f8"), (2,))], DTypeError, "native byte order"),
        ([], NONE, [(np.dtype(object), (2,))], DTypeError, "type of numbers"),
        ([], NONE, [(F8, (-1,))], ArgumentError, "expected sizes from 0"),
        ([], NONE, [Result(F8, (1,), True)], ArgumentError, "without axes"),
        ([], NONE, [Result(F4, (), True)], ArgumentError, "of float64, int64"),
    ],
)
def test_specs_that_mean_nothing(args, result, results, error, message):
    empty = library("define i32 @run(ptr %a, ptr %b) { ret i32 0 }")
    with pytest.raises(error, match=message):
        make_callable(empty, "run", args, result, results, on_error=on_error)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: ArrayLeaf(np.dtype(">f8"), ()), DTypeError),
        (lambda: ScalarLeaf(np.dtype("M8[s]")), DTypeError),
        (lambda: NumberLeaf(complex), ArgumentError),
        (lambda: DictSpec((1,), (NONE,)), ArgumentError),
        (lambda: DictSpec(("a",), ()), ArgumentError),
        (lambda: DictSpec(("a", "a"), (NONE, NONE)), ArgumentError),
        (lambda: DictSpec(("a", "b"), (NONE, NONE), ("a", "c")), ArgumentError),
        (lambda: DictSpec(("a", "b"), (NONE, NONE), ("a",)), ArgumentError),
    ],
)
def test_leaves_that_mean_nothing(make, error):
    with pytest.raises(error, match="entry: "):
        make()
