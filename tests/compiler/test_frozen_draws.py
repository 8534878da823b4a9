"""Random numbers that are not ours, drawn in a compiled function: it says that they are frozen."""

# ruff: noqa: NPY002, B008 - it is about such generators

import functools
import random
import threading
import types
import warnings

import numpy as np
import pytest
from numpy.random import randn

import gradtape as gt
from gradtape.errors import FrozenRandomWarning, GradtapeWarning

X = np.ones(3)
RNG = np.random.default_rng(0)
CONFIG = types.ModuleType("config")
CONFIG.rng = np.random.default_rng(1)


def helper():
    return RNG.normal()


def defaults(x, generator=np.random.RandomState(3)):
    return x + generator.rand()


def keyword_default(x, *, generator=np.random.default_rng(3)):
    return x + generator.random()


def closure():
    rng = np.random.default_rng(2)
    return lambda x: x + rng.normal()


def nested(x):
    def inner():
        return RNG.normal()

    return x + inner()


@gt.no_grad()
def decorated(x):
    return x + RNG.normal()


class Model:
    shared = np.random.default_rng(4)

    def __init__(self):
        self.rng = np.random.default_rng(5)
        self.parts = {"noise": [random.Random(6)]}

    @gt.jit
    def own(self, x):
        return x + self.rng.normal()

    @gt.jit
    def deep(self, x):
        return x + self.parts["noise"][0].random()

    @gt.jit
    def of_class(self, x):
        return x + self.shared.normal()

    @gt.jit
    def by_method(self, x):
        return x + self._noise()

    def _noise(self):
        return RNG.normal()

    def __call__(self, x):
        return x + self.rng.normal()


DRAWS = {
    "np.random": (lambda x: x + np.random.rand(), "np.random while"),
    "a function of np.random": (lambda x: x + randn(), "np.random while"),
    "Python's": (lambda x: x + random.random(), "Python's random while"),
    "both": (lambda x: x + random.random() * np.random.rand(), "np.random and Python's random"),
    "a global": (lambda x: x + RNG.normal(), r"a np\.random\.Generator while"),
    "a module's": (lambda x: x + CONFIG.rng.normal(), r"a np\.random\.Generator"),
    "in a helper": (lambda x: x + helper(), r"a np\.random\.Generator"),
    "in an inner function": (nested, r"a np\.random\.Generator"),
    "in a closure": (closure(), r"a np\.random\.Generator"),
    "a default": (defaults, r"a np\.random\.RandomState"),
    "a default of a keyword": (keyword_default, r"a np\.random\.Generator"),
    "a partial function": (functools.partial(np.add, RNG.random()), None),
    "an argument of one": (functools.partial(lambda r, x: x + r.normal(), RNG), "Generator"),
    "a bound method": ((lambda draw: lambda x: x + draw())(RNG.normal), "Generator"),
    "a bit generator": (lambda x: x + RNG.bit_generator.random_raw() * 0.0, "Generator"),
    "decorated": (decorated, "Generator"),
    "an object": (Model(), "Generator"),
    "under grad": (gt.grad(lambda x: np.sum(x) * RNG.normal()), "Generator"),
    "under vmap": (gt.vmap(lambda x: x * RNG.normal()), "Generator"),
    "a compiled one inside": (lambda x: gt.jit(decorated)(x), "Generator"),
    "ours": (lambda x: x + gt.random.normal(0.0, 1.0, (3,)), None),
    "none": (lambda x: x * RNG.bit_generator.state["has_uint32"], None),
    "made of a seed inside": (lambda x: x + np.random.default_rng(0).normal(), None),
    "the system's": ((lambda r: lambda x: x + r.random())(random.SystemRandom()), None),
}


@pytest.mark.parametrize(("function", "match"), DRAWS.values(), ids=DRAWS.keys())
def test_what_is_drawn_from_is_named(function, match):
    compiled = gt.jit(function)
    if match is None:
        compiled(X)
        return
    with pytest.warns(FrozenRandomWarning, match=rf"^jit: .* draws from .*{match}.*gt\.random"):
        first = compiled(X)
    # A call is a call: nothing is looked for, and nothing drawn.
    np.testing.assert_array_equal(compiled(X), first)


@pytest.mark.parametrize("name", ["own", "deep", "of_class", "by_method"])
def test_methods(name):
    with pytest.warns(FrozenRandomWarning, match=f"^jit: {name} draws from a"):
        getattr(Model(), name)(X)


def test_static_arguments():
    def function(x, rng, *, other):
        return x + (0.0 if other is None else other.normal())

    compiled = gt.jit(function, static_argnums=1, static_argnames="other")
    compiled(X, RNG, other=None)
    with pytest.warns(FrozenRandomWarning, match="Generator"):
        compiled(X, "rng", other=RNG)


def test_numbers_kept_for_the_next_draw_count():
    np.random.seed(0)
    np.random.randn()  # draws two, and keeps one
    with pytest.warns(FrozenRandomWarning):
        gt.jit(lambda x: x + np.random.randn())(X)


def test_the_warning_is_at_the_line_of_the_call():
    with pytest.warns(GradtapeWarning) as caught:
        gt.jit(lambda x: x + RNG.normal())(X)
    (warning,) = caught
    assert warning.filename == __file__
    assert isinstance(warning.message, UserWarning)


def test_every_form_is_traced_and_warned_of_and_calls_are_not():
    compiled = gt.jit(lambda x: x + RNG.normal())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for x in (X, X, np.ones(2), X, np.ones(2)):
            compiled(x)
        compiled.explain(X)
    assert len(caught) == 2


def test_nothing_is_said_of_a_function_that_fails():
    def fails(x):
        RNG.normal()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        gt.jit(fails)(X)


def test_what_another_thread_draws_is_not_taken_for_ours():
    drawn, done = threading.Event(), threading.Event()

    def elsewhere():
        while not done.is_set():
            np.random.rand()
            drawn.set()

    def function(x):
        drawn.clear()
        drawn.wait(10)
        return x * 2.0

    thread = threading.Thread(target=elsewhere)
    thread.start()
    try:
        gt.jit(function)(X)
    finally:
        done.set()
        thread.join()


def test_large_and_circular_surroundings_are_searched_only_so_far():
    circle = {"many": list(range(10_000)), "objects": [Model() for _ in range(2000)]}
    circle["self"] = circle
    unset = None

    def function(x):
        return x * len(circle) if unset is None else later(x)

    np.testing.assert_array_equal(gt.jit(function)(X), 3 * X)
    later = function  # its cell is empty when the function is traced
