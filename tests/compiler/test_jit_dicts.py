"""`gt.jit`: the order of the keys in dicts is part of the form of the arguments."""

from __future__ import annotations

import gc
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import optree
import pytest

import gradtape as gt
from jitcheck import Counted, assert_close

A, B, C = (np.full(2, n) for n in (1.0, 2.0, 3.0))
BUILTIN = type(len)


def weighted(values: Any) -> Any:
    """What depends on the order of the values."""
    return sum(10.0**place * value for place, value in enumerate(values))


class Pair(NamedTuple):
    first: Any
    second: Any


class Box:
    """A container that optree learns of."""

    def __init__(self, content: Any) -> None:
        self.content = content


def nodes(make: Callable[[Any], Any]) -> Callable[..., tuple[Any, Any]]:
    """A container with a dict in it, in both orders of its keys."""
    return lambda: (make({"b": A, "a": B}), make({"a": B, "b": A}))


@pytest.mark.parametrize(
    ("both", "read"),
    [
        (nodes(dict), lambda d: d),
        (nodes(OrderedDict), lambda d: d),
        (nodes(lambda d: defaultdict(float, d)), lambda d: d),
        (nodes(lambda d: {"z": C, "y": d}), lambda d: d["y"]),
        (nodes(lambda d: {"y": d, "z": C}), lambda d: d["y"]),
        (nodes(lambda d: [C, (d, C)]), lambda d: d[1][0]),
        (nodes(lambda d: Pair(C, [d])), lambda d: d.second[0]),
        (nodes(lambda d: (d, {"k": {1: d}})), lambda d: d[1]["k"][1]),
    ],
    ids=["dict", "ordered", "default", "last", "first", "list", "named tuple", "twice"],
)
def test_functions_see_the_order_of_this_call(direct: Any, both: Any, read: Any) -> None:
    function = Counted(lambda d, x: (weighted(read(d).values()), list(read(d)).index("a") * x))
    compiled = gt.jit(function)
    one, other = both()
    for given in (one, other, one, one, other, other):
        wanted = weighted(read(given).values()), list(read(given)).index("a") * C
        assert_close(compiled(given, C), wanted)
    assert function.count == 2


def test_dicts_go_to_the_entry_point(direct: Any) -> None:
    compiled = gt.jit(Counted(lambda d: weighted(d.values())))
    for given in ({"b": A, "a": B}, {"a": B, "b": A}):
        compiled(given)
        entered = compiled.__call__
        assert direct(entered)
        # Keys that are equal without being the same object fit too.
        copied = {"".join([key, "_"])[:-1]: value for key, value in given.items()}
        for each in (given, copied, dict(given)):
            assert_close(compiled(each), weighted(given.values()))
            assert compiled.__call__ is entered
    assert compiled.__wrapped__.count == 2


def test_dicts_in_nodes_of_the_user() -> None:
    everywhere = optree.registry.__GLOBAL_NAMESPACE
    optree.register_pytree_node(
        Box, lambda box: ((box.content,), None), lambda _, items: Box(*items), namespace=everywhere
    )
    try:
        compiled = gt.jit(lambda box: weighted(box.content.values()))
        for content in ({"b": A, "a": B}, {"a": B, "b": A}):
            assert_close(compiled(Box(content)), weighted(content.values()))
    finally:
        optree.unregister_pytree_node(Box, namespace=everywhere)


@pytest.mark.parametrize("names", [("b", "a", "mode"), ("mode", "a", "b"), ("a", "mode", "b")])
def test_keyword_arguments_keep_their_order(names: Any) -> None:
    seen: list[Any] = []

    def function(**named: Any) -> Any:
        seen.append(list(named))
        return weighted(value for name, value in named.items() if name != "mode")

    values = {"a": A, "b": B, "mode": "fast"}
    compiled = gt.jit(function, static_argnames="mode")
    for order in (names, tuple(reversed(names)), names):
        given = {name: values[name] for name in order}
        assert_close(compiled(**given), function(**given))
        assert seen.pop() == list(order)
    # Twice traced, the function saw the keywords of that call.
    assert seen == [list(names), list(reversed(names))]


def test_results_keep_the_order_they_were_built_in(direct: Any) -> None:
    def function(d: Any, x: Any) -> Any:
        return {"z": {key: value + x for key, value in d.items()}, "m": x, "a": {**d, "0": x}}

    compiled = gt.jit(function)
    for given in ({"b": A, "c": C, "a": B}, {"a": B, "b": A, "c": C}):
        wanted = function(given, A)
        for _ in range(3):
            got = compiled(given, A)
            assert_close(got, wanted)
            for one, other in ((got, wanted), (got["z"], wanted["z"]), (got["a"], wanted["a"])):
                assert list(one) == list(other)
        assert direct(compiled.__call__)


def test_keys_that_are_equal_are_told_apart() -> None:
    compiled = gt.jit(Counted(lambda d: isinstance(next(iter(d)), bool) * A))
    for key in (1, True, 1, True, 1.0):
        assert_close(compiled({key: A}), isinstance(key, bool) * A)
    assert compiled.__wrapped__.count == 3


def test_transforms_see_the_order_too() -> None:
    compiled = gt.jit(lambda d: np.sum(weighted(d.values())))
    for given in ({"b": A, "a": B}, {"a": B, "b": A}):
        gradient = gt.grad(compiled)(given)
        assert list(gradient) == list(given)
        assert_close(tuple(gradient.values()), (np.full(2, 1.0), np.full(2, 10.0)))
        assert_close(gt.vmap(compiled)(given), weighted(given.values()))
        assert_close(gt.jit(gt.grad(lambda d: compiled(d)))(given), gradient)


def test_calls_without_dicts_in_any_order_share_code() -> None:
    compiled = gt.jit(Counted(lambda x, y: x - y))

    class Sub(np.ndarray):
        pass

    for x in (A, A.view(Sub), gt.tensor(A), np.repeat(A, 2)[::2]):
        assert_close(np.asarray(compiled(x, B)), A - B)
    assert compiled.__wrapped__.count == 1


def test_references(direct: Any) -> None:
    key = "k" * 30
    given = {key: A, "b": [B], "c": 2.0}
    same, other = {"".join(list(key)): A, "b": [B], "c": 2.0}, {"b": [B], "c": 2.0, key: A}
    compiled = gt.jit(lambda d: {name: d[name] for name in d if name != "b"})
    watched = [A, B, key, given, same, other, given["b"], next(iter(same))]

    def act() -> None:
        assert list(compiled(given)) == list(compiled(same)) == [key, "c"]
        assert list(compiled(other)) == ["c", key]

    act()
    gc.collect()
    before = list(map(sys.getrefcount, watched))
    for _ in range(100):
        act()
    gc.collect()
    assert list(map(sys.getrefcount, watched)) == before


# ---- static arguments ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [float, np.float64, np.float32, np.float16, np.longdouble])
def test_zeros_of_either_sign(kind: Any) -> None:
    compiled = gt.jit(Counted(lambda x, c: np.copysign(x, c)), static_argnums=1)
    for value in (kind(0.0), kind(-0.0), kind(0.0), kind("nan"), kind("nan")):
        np.testing.assert_array_equal(compiled(A, value), np.copysign(A, value))
    assert compiled.__wrapped__.count == 3


@pytest.mark.parametrize("kind", [complex, np.complex128, np.complex64, np.clongdouble])
def test_complex_zeros_of_either_sign(kind: Any) -> None:
    compiled = gt.jit(Counted(lambda x, c: x * np.copysign(1.0, float(c.imag))), static_argnums=1)
    for value in (kind(0), kind(complex(0.0, -0.0)), kind(0), kind(complex(0.0, -0.0))):
        assert_close(compiled(A, value), A * np.copysign(1.0, float(value.imag)))
    assert compiled.__wrapped__.count == 2


def test_scalars_inside_tuples_and_of_other_kinds() -> None:
    seen: list[Any] = []
    compiled = gt.jit(lambda x, c: (seen.append(c), x)[1], static_argnums=1)
    zeros = [(np.float64(0.0), 1), (np.float64(-0.0), 1), (0.0, 1)]
    others = [np.str_("a"), "a", np.bytes_(b"a"), np.int32(1), np.int64(1), np.True_]
    times = [np.datetime64("2020-01-01"), np.datetime64("NaT", "D"), np.timedelta64(1, "s")]
    values = [*zeros, *others, *times, np.timedelta64(1000, "ms")]
    for value in values * 2:
        compiled(A, value)
    assert repr(seen) == repr(values)
    with pytest.raises(gt.errors.ArgumentError, match="cannot be hashed"):
        compiled(A, np.zeros(1, [("a", "f8")])[0])
