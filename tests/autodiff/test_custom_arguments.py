"""Functions with rules of their own: as methods, with keywords, and with what has no derivative."""

import functools
from typing import NamedTuple

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import DTypeError, ShapeError

X = np.array([0.5, 1.0, 2.0])


class Scaled:
    """Methods whose rules are ten times too large, which shows that they were used."""

    def __init__(self, factor):
        self.factor = factor

    @gt.custom_vjp
    def reverse(self, x):
        return self.factor * x**2

    @reverse.defvjp
    def _(ct, out, self, x):  # noqa: N805 - as in other rules
        return None, 10 * ct * self.factor * 2 * x

    @gt.custom_vjp
    def short(self, x):
        return self.factor * x**2

    @short.defvjp
    def slope(self, ct, out, x):
        return (10 * ct * self.factor * 2 * x,)  # without self, which has no cotangent

    @gt.custom_jvp
    def forward(self, x):
        return self.factor * x**2

    @forward.defjvp
    def _(tangents, out, self, x):  # noqa: N805
        assert tangents[0] is None
        return 10 * self.factor * 2 * x * tangents[1]


class Unhashable(Scaled):
    """Its objects cannot be hashed, and not be compared with others."""

    __hash__ = None

    def __eq__(self, other):
        raise AssertionError


NAMES = ["reverse", "short", "forward"]
methods = pytest.mark.parametrize("name", NAMES)
kinds = pytest.mark.parametrize("kind", [Scaled, Unhashable])


# ---- methods ------------------------------------------------------------------------------------


@methods
@kinds
def test_a_method_knows_its_object(name, kind):
    two, three = kind(2.0), kind(3.0)
    assert getattr(two, name)(3.0) == 18.0
    assert getattr(kind, name)(three, 3.0) == 27.0
    for model in (two, three):
        method = getattr(model, name)
        assert method.__self__ is model
        assert method.__name__ == name
        assert gt.grad(method)(3.0) == 60.0 * model.factor
        assert gt.grad(getattr(kind, name), 1)(model, 3.0) == 60.0 * model.factor
        assert gt.grad(gt.grad(method))(3.0) == 20.0 * model.factor
        if name == "forward":
            assert gt.jvp(method, (3.0,), (1.0,))[1] == 60.0 * model.factor


@methods
@kinds
def test_a_method_is_batched_and_compiled(name, kind):
    model = kind(2.0)
    method = getattr(model, name)
    np.testing.assert_array_equal(gt.vmap(method)(X), 2 * X**2)
    np.testing.assert_array_equal(gt.vmap(gt.grad(method))(X), 40 * X)
    np.testing.assert_array_equal(gt.grad(lambda x: np.sum(gt.vmap(method)(x)))(X), 40 * X)
    unbound = getattr(kind, name)
    np.testing.assert_array_equal(gt.vmap(unbound, (None, 0))(model, X), 2 * X**2)
    np.testing.assert_array_equal(gt.jit(method)(X), 2 * X**2)
    np.testing.assert_allclose(gt.jit(gt.grad(lambda x: np.sum(method(x))))(X), 40 * X)
    np.testing.assert_allclose(gt.grad(lambda x: np.sum(gt.jit(method)(x)))(X), 40 * X)
    np.testing.assert_allclose(gt.jit(gt.vmap(gt.grad(method)))(X), 40 * X)


def test_a_rule_is_also_a_method():
    assert Scaled(2.0).slope(1.0, None, 3.0) == (120.0,)

    class Model:
        factor = 2.0

        @gt.custom_jvp
        def run(self, x, *, shift):
            return self.factor * x + shift

        @run.defjvp
        def push(self, tangents, out, x, shift):
            return shift * self.factor * tangents[1]

    assert gt.grad(Model().run)(1.0, shift=5.0) == 10.0
    assert gt.jvp(lambda x: Model().run(x, shift=5.0), (1.0,), (1.0,)) == (7.0, 10.0)
    np.testing.assert_array_equal(gt.vmap(lambda x: Model().run(x, shift=5.0))(X), 2 * X + 5)


def test_methods_of_other_kinds():
    class Model:
        @staticmethod
        @gt.custom_vjp
        def inner(x):
            return x**2

        @gt.custom_vjp
        @staticmethod
        def outer(x):
            return x**2

        @classmethod
        @gt.custom_vjp
        def of_class(cls, x):
            assert cls is Model
            return x**2

    Model.inner.defvjp(lambda ct, out, x: (20 * ct * x,))
    Model.outer.defvjp(lambda ct, out, x: (20 * ct * x,))
    Model.of_class.defvjp(lambda ct, out, cls, x: (20 * ct * x,))
    for owner in (Model, Model()):
        for name in ("inner", "outer", "of_class"):
            assert gt.grad(getattr(owner, name))(3.0) == 60.0


def test_an_object_that_is_a_container_has_a_cotangent():
    class Line(NamedTuple):
        slope: float
        offset: float

        @gt.custom_vjp
        def at(self, x):
            return self.slope * x + self.offset

    Line.at.defvjp(lambda ct, out, line, x: (Line(10 * ct * x, 10 * ct), 10 * ct * line.slope))
    by_line, by_x = gt.grad(Line.at, (0, 1))(Line(2.0, 3.0), 4.0)
    assert (by_line, by_x) == (Line(40.0, 10.0), 20.0)


# ---- static arguments ---------------------------------------------------------------------------


def make_apply(kind):
    """f(g, x, mode): g(x), which is differentiated ten times too steep, up or down."""
    if kind == "vjp":
        apply = gt.custom_vjp(lambda g, x, mode: g(x))

        @apply.defvjp
        def _(ct, out, g, x, mode):
            slope = gt.grad(lambda v: np.sum(g(v)))(x)
            return None, {"up": 10, "down": -10}[mode] * ct * slope, None

    else:
        apply = gt.custom_jvp(lambda g, x, mode: g(x))

        @apply.defjvp
        def _(tangents, out, g, x, mode):
            assert tangents[0] is tangents[2] is None
            factor = {"up": 10, "down": -10}[mode]
            return factor * gt.jvp(g, (x,), (tangents[1],))[1]

    return apply


@pytest.mark.parametrize("kind", ["vjp", "jvp"])
def test_functions_and_texts_are_arguments(kind):
    apply = make_apply(kind)

    def square(v):
        return v * v

    assert apply(square, 3.0, "up") == 9.0
    assert gt.grad(apply, 1)(square, 3.0, "down") == -60.0
    assert gt.grad(gt.grad(apply, 1), 1)(square, 3.0, "up") == 20.0
    np.testing.assert_array_equal(gt.vmap(apply, (None, 0, None))(square, X, "up"), X**2)
    slopes = gt.vmap(gt.grad(apply, 1), (None, 0, None))(square, X, "down")
    np.testing.assert_array_equal(slopes, -20 * X)
    for mode in ("up", "down"):
        compiled = gt.jit(gt.grad(lambda x, mode=mode: np.sum(apply(square, x, mode))))
        np.testing.assert_allclose(compiled(X), (20 if mode == "up" else -20) * X)
    chosen = gt.jit(apply, static_argnums=(0, 2))
    np.testing.assert_array_equal(chosen(square, X, "up"), X**2)


def test_static_arguments_inside_of_containers():
    f = gt.custom_vjp(lambda options: options["x"] * len(options["name"]))
    f.defvjp(lambda ct, out, o: ({"x": 10 * ct * len(o["name"]), "name": None},))

    def loss(x):
        return np.sum(f({"name": "four", "x": x}))

    np.testing.assert_array_equal(gt.grad(loss)(X), np.full(3, 40.0))
    np.testing.assert_array_equal(gt.vmap(gt.grad(loss))(X), np.full(3, 40.0))
    np.testing.assert_array_equal(gt.jit(gt.grad(loss))(X), np.full(3, 40.0))


def test_sizes_are_known_in_a_trace():
    repeated = gt.custom_vjp(lambda x, n: np.tile(x, n))
    repeated.defvjp(lambda ct, out, x, n: (10 * ct.reshape(n, -1).sum(0), None))
    np.testing.assert_array_equal(gt.jit(lambda x: repeated(x, 3))(X), np.tile(X, 3))
    loss = gt.jit(gt.grad(lambda x: np.sum(repeated(x, 2))))
    np.testing.assert_array_equal(loss(X), np.full(3, 20.0))


def test_a_cotangent_of_something_static_is_refused():
    f = gt.custom_vjp(lambda x, mode: x)
    f.defvjp(lambda ct, out, x, mode: (ct, ct))
    with pytest.raises(DTypeError, match=r"cotangent for a str.*expected None"):
        gt.grad(f)(1.0, "mode")
    f.defvjp(lambda ct, out, x, mode: (ct, ct, ct))
    with pytest.raises(ShapeError, match=r"3 values, expected a tuple of 2, .* or of 1, without"):
        gt.grad(f)(1.0, "mode")


# ---- keywords -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["vjp", "jvp"])
@pytest.mark.parametrize("spelling", ["named", "all", "default", "positional"])
def test_keyword_constants_reach_the_rule(kind, spelling):
    def rule(ct, x, factor):
        ct = ct if kind == "vjp" else ct[0]
        slope = 10 * factor * ct
        return (slope,) if kind == "vjp" else slope

    rules = {
        "named": lambda ct, out, x, *, factor: rule(ct, x, factor),
        "all": lambda ct, out, x, **kwargs: rule(ct, x, kwargs["factor"]),
        "default": lambda ct, out, x, *, other=None, factor=1.0: rule(ct, x, factor),
        "positional": lambda ct, out, x, factor: rule(ct, x, factor),
    }
    define = gt.custom_vjp if kind == "vjp" else gt.custom_jvp
    f = define(lambda x, *, factor, unused="text": x * factor)
    (f.defvjp if kind == "vjp" else f.defjvp)(rules[spelling])
    assert gt.grad(f)(2.0, factor=3.0) == 30.0
    assert gt.grad(functools.partial(f, factor=5.0, unused="other"))(2.0) == 50.0
    np.testing.assert_array_equal(gt.vmap(lambda x: gt.grad(f)(x, factor=3.0))(X), np.full(3, 30.0))
    compiled = gt.jit(lambda x: gt.grad(f)(x, factor=3.0))
    assert compiled(2.0) == 30.0


def test_a_keyword_named_like_what_a_rule_gets_first():
    f = gt.custom_vjp(lambda x, *, out: x * out)
    f.defvjp(lambda ct, out, x: (10 * ct * out,))
    assert gt.grad(f)(2.0, out=3.0) == 60.0  # the result, not the keyword


def test_a_parameter_with_a_default_however_it_is_passed():
    f = gt.custom_vjp(lambda x, n=2: x**n)

    @f.defvjp
    def _(ct, out, x, n=2):
        return 10 * ct * n * x ** (n - 1), None

    assert [gt.grad(f)(3.0), gt.grad(f)(3.0, 3), gt.grad(f)(3.0, n=3)] == [60.0, 270.0, 270.0]


# ---- integers -----------------------------------------------------------------------------------


@pytest.fixture(params=["vjp", "jvp"])
def largest(request):
    """The largest element and where it is, with a slope ten times too steep."""
    f = gt.custom_vjp(lambda x: {"at": np.argmax(x), "value": np.max(x)})

    if request.param == "vjp":

        @f.defvjp
        def _(ct, out, x):
            return (10 * ct["value"] * (np.arange(3) == out["at"]),)

    else:

        @f.defjvp
        def _(tangents, out, x):
            return {"at": None, "value": 10 * np.sum(tangents[0] * (np.arange(3) == out["at"]))}

    return f


def test_the_tangent_of_an_integer_output_may_be_none(largest):
    loss = gt.grad(lambda x: largest(x)["value"])
    np.testing.assert_array_equal(loss(X), [0.0, 0.0, 10.0])
    rows = np.stack([X, X[::-1]])
    slopes = [[0.0, 0.0, 10.0], [10.0, 0.0, 0.0]]
    np.testing.assert_array_equal(gt.vmap(loss)(rows), slopes)
    np.testing.assert_array_equal(gt.vmap(largest)(rows)["at"], [2, 0])
    np.testing.assert_array_equal(gt.jit(loss)(X), slopes[0])
    if largest._jvp is not None:
        out, tangent = gt.jvp(largest, (X,), (np.ones(3),))
        assert (out["at"], tangent["value"]) == (2, 10.0)
        assert not np.any(tangent["at"])


def test_none_for_all_of_a_result_and_for_a_part_of_it():
    f = gt.custom_jvp(lambda x: ((x * 1.0, np.argmax(x)), [x * 2.0, x * 3.0]))
    f.defjvp(lambda tangents, out, x: (None, [10 * tangents[0], None]))
    (first, _), (second, third) = gt.jvp(f, (X,), (np.ones(3),))[1]
    np.testing.assert_array_equal([first, second, third], [[0.0] * 3, [10.0] * 3, [0.0] * 3])
    slope = gt.grad(lambda x: np.sum(f(x)[0][0]) + np.sum(f(x)[1][0]))(X)
    np.testing.assert_array_equal(slope, [10.0] * 3)


@pytest.mark.parametrize("returned", [None, {"n": None, "x": 1.0}], ids=["all", "part"])
def test_the_cotangent_of_an_integer_argument_may_be_none(returned):
    f = gt.custom_vjp(lambda p: p["x"] * p["n"])
    f.defvjp(lambda ct, out, p: (returned,))
    counts = np.arange(3)

    def loss(x):
        return np.sum(f({"n": counts, "x": x}))

    if returned is not None:
        returned["x"] = np.full(3, 7.0)
    expected = np.zeros(3) if returned is None else returned["x"]
    np.testing.assert_array_equal(gt.grad(loss)(X), expected)


def test_tangents_in_the_wrong_containers():
    f = gt.custom_jvp(lambda x: (x, {"y": x}))
    f.defjvp(lambda tangents, out, x: (tangents[0], tangents[0]))
    with pytest.raises(ShapeError, match=r"jvp rule returned a tangent of structure .*expected"):
        gt.jvp(f, (1.0,), (1.0,))
