"""`gt.jit`: which arguments are traced, which are compiled for, and when code is used again."""

from __future__ import annotations

import types
from typing import Any, NamedTuple

import numpy as np
import pytest

import gradtape as gt
from gradtape.compiler import jit as jit_module
from gradtape.errors import ArgumentError, DTypeError
from jitcheck import Counted, assert_close

X = np.random.default_rng(5).normal(size=(5, 7))
V = np.random.default_rng(6).normal(size=7)


# ---- keywords, defaults, static arguments -------------------------------------------------------


def scaled(x: Any, factor: Any = 2.0, *more: Any, shift: Any = 0.0, **named: Any) -> Any:
    return x * factor + sum(more) + shift + sum(named.values())


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((X,), {}),
        ((X, 3.0), {}),
        ((X, V, V, 1.0), {}),
        ((X,), {"factor": 4.0}),
        ((X, 3.0), {"shift": V}),
        ((), {"x": X, "shift": 1}),
        ((X, 2, X), {"shift": V, "b": X, "a": 1.0}),
    ],
)
def test_keywords_defaults_and_more(args: Any, kwargs: Any) -> None:
    compiled = gt.jit(scaled)
    for _ in range(2):
        assert_close(compiled(*args, **kwargs), scaled(*args, **kwargs))


def test_wrong_calls_raise_what_the_function_raises() -> None:
    compiled = gt.jit(lambda x, y: x + y)
    for call in (lambda: compiled(X), lambda: compiled(X, X, X), lambda: compiled(X, z=X)):
        with pytest.raises(TypeError, match="argument"):
            call()


def power(x: Any, n: int, kind: str = "sum") -> Any:
    for _ in range(n):  # n has to be a number
        x = x * x
    return getattr(np, kind)(x, axis=0)


@pytest.mark.parametrize(
    "options",
    [
        {"static_argnums": (1, 2)},
        {"static_argnums": [1, -1]},
        {"static_argnums": (-2, -1)},
        {"static_argnames": ("n", "kind")},
        {"static_argnums": 1, "static_argnames": "kind"},
    ],
)
def test_static_arguments_however_they_are_passed(options: Any) -> None:
    compiled = gt.jit(Counted(power), **options)
    calls = [((X, 2), {}), ((X,), {"n": 2}), ((X, 1, "max"), {}), ((X, 1), {"kind": "max"})]
    for args, kwargs in calls * 2:
        assert_close(compiled(*args, **kwargs), power(*args, **kwargs))
    assert compiled.__wrapped__.count == len(calls)


def test_static_arguments_among_any_number() -> None:
    compiled = gt.jit(lambda *args: args[0] * len(args[-1]), static_argnums=-1)
    assert_close(compiled(X, "ab"), X * 2)
    assert_close(compiled(X, V, "abc"), X * 3)


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, 1.0), (1, True), (0.0, -0.0), ((1, 2), (1.0, 2)), ("1", 1), (None, 0), (0j, -0j)],
)
def test_static_arguments_that_are_equal_are_told_apart(one: Any, other: Any) -> None:
    seen = []
    compiled = gt.jit(lambda x, static: (seen.append(static), x)[1], static_argnums=1)
    for value in (one, other, one, other):
        compiled(X, value)
    assert repr(seen) == repr([one, other])


def test_static_nan_is_one_value() -> None:
    compiled = gt.jit(Counted(lambda x, n: x * n), static_argnums=1)
    for _ in range(3):
        assert np.isnan(compiled(X, float("nan"))).all()
    assert compiled.__wrapped__.count == 1


def test_static_arguments_must_be_hashable() -> None:
    compiled = gt.jit(power, static_argnums=1)
    for value in ([1], X, {"a": 1}):
        with pytest.raises(ArgumentError, match="static argument cannot be hashed"):
            compiled(X, value)
    with pytest.raises(ArgumentError, match="tensor as a static argument"):
        compiled(X, gt.tensor(2.0))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"static_argnums": 3}, "has 3 positional"),
        ({"static_argnums": -4}, "has 3 positional"),
        ({"static_argnums": "n"}, "expected integers"),
        ({"static_argnums": 1.0}, "expected integers"),
        ({"static_argnames": "m"}, "no argument 'm', only x, n, kind"),
        ({"static_argnames": [1]}, "expected integers and strings"),
    ],
)
def test_static_arguments_that_are_none_of_the_function(options: Any, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        gt.jit(power, **options)


# ---- decorators and methods ---------------------------------------------------------------------


def test_decorator_with_and_without_options() -> None:
    @gt.jit
    def plain(x: Any) -> Any:
        """Its text."""
        return x + 1

    @gt.jit(static_argnums=1)
    def optional(x: Any, n: int) -> Any:
        return x[:n]

    assert (plain.__name__, plain.__doc__) == ("plain", "Its text.")
    assert repr(plain) == "<compiled plain, for 0 form(s) of arguments>"
    assert_close(plain(X), X + 1)
    assert_close(optional(X, 2), X[:2])
    assert "1 form(s)" in repr(plain)


@pytest.mark.parametrize("what", [3, None, X, "f"])
def test_what_is_not_a_function(what: Any) -> None:
    if what is None:
        assert callable(gt.jit(what))
        return
    with pytest.raises(ArgumentError, match="expected a function"):
        gt.jit(what)


class Model:
    def __init__(self, scale: float) -> None:
        self.scale, self.traces = scale, 0

    @gt.jit
    def __call__(self, x: Any) -> Any:
        self.traces += 1
        return x * self.scale

    @gt.jit(static_argnums=2)
    def power(self, x: Any, n: int) -> Any:
        return power(x * self.scale, n)

    @staticmethod
    @gt.jit
    def half(x: Any) -> Any:
        return x / 2

    @gt.jit
    @staticmethod
    def third(x: Any) -> Any:
        return x / 3

    def __eq__(self, other: object) -> bool:
        return True  # and so it is not hashable


def test_methods_belong_to_their_object() -> None:
    one, other = Model(2.0), Model(3.0)
    for _ in range(2):
        assert_close((one(X), other(X)), (X * 2.0, X * 3.0))
        assert_close(one.power(X, 2), power(X * 2.0, 2))
        assert_close(
            (one.half(X), Model.half(X), one.third(X), Model.third(X)), (X / 2, X / 2, X / 3, X / 3)
        )
    assert (one.traces, other.traces) == (1, 1)
    kept = Model(5.0).power
    assert_close(kept(X, n=1), power(X * 5.0, 1))
    assert kept.graph(X, 1).nodes


@pytest.mark.parametrize("bind", [classmethod, lambda compiled: compiled])
def test_class_methods(bind: Any) -> None:
    @gt.jit
    def scaled(cls: Any, x: Any, n: int = 1) -> Any:
        return x * cls.scale * n

    class Base:
        scale = 2.0
        method = bind(scaled)

    class Other(Base):
        scale = 3.0

    for _ in range(2):
        for kind in (Base, Other):
            # As Python binds class methods up to 3.12, and from 3.13 on.
            found = kind.method if bind is classmethod else types.MethodType(scaled, kind)
            assert_close((found(X), found(X, 2)), (X * kind.scale, X * kind.scale * 2))
    with pytest.raises(DTypeError, match="argument 1 is of type type"):
        scaled(Base, Other)


def test_methods_of_named_tuples_take_them_as_arguments() -> None:
    class Line(NamedTuple):
        slope: Any
        offset: Any

        @gt.jit
        def at(self, x: Any) -> Any:
            return self.slope * x + self.offset

    for slope in (2.0, 3.0):
        assert_close(Line(slope, V).at(X), slope * X + V)


def test_objects_that_are_functions() -> None:
    class Scale:
        graph = "an attribute of the object"

        def __call__(self, x: Any) -> Any:
            return x * 3

    assert_close(gt.jit(Scale())(X), X * 3)
    assert gt.jit(Scale()).graph(X).nodes[0].op.name == "multiply"
    assert_close(gt.jit(np.sin)(X), np.sin(X))
    assert_close(gt.jit(gt.jit(np.cos))(X), np.cos(X))


# ---- forms --------------------------------------------------------------------------------------


def test_another_shape_or_dtype_is_another_form() -> None:
    compiled = gt.jit(Counted(lambda x: x * 2))
    arguments = [X, X.T, X[0], X[:0], X.astype(np.float32), X.astype(int), X > 0, X.astype(complex)]
    for x in arguments * 2:
        assert_close(compiled(x), x * 2)
    assert compiled.__wrapped__.count == len(arguments)


def test_a_function_that_fails_for_one_form_works_for_others() -> None:
    compiled = gt.jit(lambda x: x + V)
    for _ in range(2):
        with pytest.raises(gt.errors.ShapeError, match="do not broadcast"):
            compiled(X[:, :3])
        assert_close(compiled(X), X + V)


def test_what_the_function_raises_comes_out_unchanged() -> None:
    class OwnError(Exception):
        pass

    error, calls = OwnError("mine"), []

    @gt.jit
    def function(x: Any) -> Any:
        calls.append(x)
        if len(calls) < 3:
            raise error
        return x * 2

    for _ in range(2):
        with pytest.raises(OwnError) as caught:
            function(X)
        assert caught.value is error
        assert not gt.core.state.current().modes
    assert "0 form(s)" in repr(function)
    assert_close(function(X), X * 2)


def test_the_number_of_forms_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit_module, "_MOST_FORMS", 3)
    compiled = gt.jit(Counted(lambda x: x * 2))
    for n in (1, 2, 3, 1, 4, 1, 2):
        assert_close(compiled(X[0, :n].copy()), X[0, :n] * 2)
    # 2 was used longest ago when 4 came, and 3 when 2 came again.
    assert compiled.__wrapped__.count == 5
    assert "3 form(s)" in repr(compiled)


def test_recursion_over_a_static_argument() -> None:
    @gt.jit(static_argnums=1)
    def nested(x: Any, n: int) -> Any:
        return x if n == 0 else np.sin(nested(x, n - 1))

    assert_close(nested(X, 3), np.sin(np.sin(np.sin(X))))
    assert_close(nested(X, 2), np.sin(np.sin(X)))


def test_endless_recursion_raises() -> None:
    @gt.jit
    def endless(x: Any) -> Any:
        return endless(x)

    with pytest.raises(RecursionError):
        endless(X)
    assert_close(gt.jit(np.sin)(X), np.sin(X))


# ---- Python's numbers ---------------------------------------------------------------------------


@pytest.mark.parametrize("number", [2.0, 2, True, 2j, np.float64(2), np.float32(2), np.int8(2)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int16, np.uint8, bool])
def test_numbers_take_the_dtype_that_numpy_gives(number: Any, dtype: Any) -> None:
    def function(x: Any, c: Any) -> Any:
        return x * c, c + x, np.where(x, c, x), x == c

    x = np.array([0, 1, 3]).astype(dtype)
    assert_close(gt.jit(function)(x, number), function(x, number))


@pytest.mark.parametrize("number", [2.0, 3, 0.5])
def test_what_is_computed_from_numbers_alone_is_as_weak(number: Any) -> None:
    def function(x: Any, c: Any) -> Any:
        rate = 0.9**c / (1 - 0.3 * c) + abs(-c) // 2 % 3
        return x * (c / 2), x - c**2, (1 - c) * x, rate * x, c * 2, rate

    for dtype in (np.float32, np.float64):
        x = np.arange(5.0).astype(dtype)
        assert_close(gt.jit(function)(x, number), function(x, number))
        # Inside another compiled function, and in a gradient.
        twice = gt.jit(lambda x, c: gt.jit(function)(x, c + 1))
        assert_close(twice(x, number), function(x, number + 1))
        gradient = gt.grad(lambda x, c: np.sum(function(x, c)[0] ** 2), (0, 1))
        expected = gradient(x, float(number))
        assert_close(gt.jit(gradient)(x, float(number)), expected)


def test_a_step_of_an_optimizer_stays_in_single_precision() -> None:
    def adam(w: Any, m: Any, v: Any, g: Any, t: int, rate: float) -> Any:
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        step = rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        return w - step, m, v

    arrays = [np.linspace(k, k + 1, 7, dtype=np.float32) for k in range(4)]
    compiled = gt.jit(Counted(adam))
    for t in (1, 2, 3):
        assert_close(compiled(*arrays, t, 0.1 / t), adam(*arrays, t, 0.1 / t))
    assert compiled.__wrapped__.count == 1


def test_other_numbers_use_the_same_code() -> None:
    compiled = gt.jit(Counted(lambda x, c: x * c))
    for kind in (float, int, bool):
        for number in (0, 1, 2, -3):
            assert_close(compiled(X, kind(number)), X * kind(number))
    assert compiled.__wrapped__.count == 3


def test_integers_out_of_bounds_raise_as_in_numpy() -> None:
    compiled = gt.jit(lambda x, n: x + n)
    x = np.array([1, 2], np.uint8)
    assert_close(compiled(x, 200), x + 200)
    for number in (300, -1):
        with pytest.raises(OverflowError, match="out of bounds for uint8"):
            compiled(x, number)
    for number in (2**63, -(2**63) - 1, 2**100):
        with pytest.raises(ArgumentError, match="fits into 64 bits"):
            compiled(X, number)
    for number in (2**63 - 1, -(2**63)):
        assert_close(compiled(X, number), X + number)


def test_numbers_and_scalars_keep_their_sign_and_nan() -> None:
    compiled = gt.jit(np.copysign)
    for number in (-0.0, 0.0, float("-inf"), np.float64(-0.0)):
        assert_close(compiled(X, number), np.copysign(X, number), 0)
    assert np.isnan(gt.jit(lambda x, c: x * c)(X, float("nan"))).all()
