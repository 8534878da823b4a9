"""Dataclasses and attrs classes as containers: taken apart by fields in every transform."""

import enum
import gc
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import pytest

import gradtape as gt
from gradtape import containers
from gradtape.errors import ArgumentError, DTypeError, ShapeError

try:
    import attrs
except ImportError:  # a test dependency, but not of everybody
    attrs = None

T = TypeVar("T")
STATIC = {"static": True}


@dataclass
class Plain:
    w: Any
    b: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    w: Any
    b: Any


@dataclass
class Strict:
    """Takes nothing but NumPy's arrays, and computes a field from the others."""

    w: np.ndarray
    b: np.ndarray
    scale: float = field(default=1.0, init=False)

    def __post_init__(self):
        assert type(self.w) is np.ndarray
        assert type(self.b) is np.ndarray

    def __setattr__(self, name, value):
        assert type(value) in (np.ndarray, float)
        object.__setattr__(self, name, value)


@dataclass
class Base:
    w: Any


@dataclass(slots=True)
class Derived(Base):
    b: Any


class Undecorated(Plain):
    """A subclass with methods only."""


@dataclass
class Typed(Generic[T]):
    w: T
    b: T


class Named(NamedTuple):
    w: Any
    b: Any


@dataclass
class Configured:
    w: Any
    b: Any
    power: int = field(default=2, metadata=STATIC)


KINDS = {
    "plain": Plain,
    "frozen": lambda w, b: Frozen(w=w, b=b),
    "strict": Strict,
    "derived": Derived,
    "undecorated": Undecorated,
    "generic": Typed[np.ndarray],
    "named": Named,
    "static": Configured,
}
if attrs is not None:

    def _reject(instance, attribute, value):
        assert type(value) is np.ndarray, value

    @attrs.define
    class Validated:
        w: Any = attrs.field(validator=_reject, converter=np.asarray)
        b: Any = attrs.field(validator=_reject)

    @attrs.frozen
    class FrozenAttrs:
        w: Any
        b: Any
        name: str = attrs.field(default="layer", metadata=STATIC)

    KINDS |= {"attrs": Validated, "frozen attrs": FrozenAttrs}

W = np.array([[0.5, -1.0, 2.0], [1.0, 0.25, -0.5]])
B = np.array([0.1, -0.2])
X = np.array([[1.0, 2.0, 3.0], [-1.0, 0.5, 0.0], [0.3, 0.2, 0.1], [2.0, -2.0, 1.0]])
kinds = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


def loss(p, x):
    return np.sum(np.tanh(p.w @ x + p.b) ** 2)


def dict_loss(p, x):
    return np.sum(np.tanh(p["w"] @ x + p["b"]) ** 2)


def check(found, expected, like):
    """Fields of an instance of the same class, against a dict of arrays."""
    assert type(found) is type(like)
    np.testing.assert_array_equal(found.w, expected["w"])
    np.testing.assert_array_equal(found.b, expected["b"])


# ---- transforms ---------------------------------------------------------------------------------


@kinds
@pytest.mark.parametrize("compiled", [False, True])
def test_grad_has_the_class_of_its_argument(make, compiled):
    function = gt.grad(loss)
    expected = gt.grad(dict_loss)({"w": W, "b": B}, X[0])
    found = (gt.jit(function) if compiled else function)(make(W, B), X[0])
    assert type(found) is type(make(W, B))
    np.testing.assert_allclose(found.w, expected["w"], rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(found.b, expected["b"], rtol=1e-14, atol=1e-14)


@kinds
def test_nested_in_lists_and_dicts(make):
    params = {"layers": [make(W, B), make(2 * W, B)], "scale": 2.0}

    def total(p):
        return sum(loss(layer, X[0]) for layer in p["layers"]) * p["scale"]

    found = gt.grad(total)(params)
    expected = gt.grad(dict_loss)({"w": W, "b": B}, X[0])
    assert list(found) == ["layers", "scale"]
    check(found["layers"][0], {k: 2 * v for k, v in expected.items()}, make(W, B))


@kinds
def test_tangents_and_second_order(make):
    primal, tangent = make(W, B), make(np.cos(W), np.cos(B))
    _, pushed = gt.jvp(lambda p: loss(p, X[0]), (primal,), (tangent,))
    slope = gt.grad(loss)(primal, X[0])
    assert pushed == pytest.approx(np.sum(slope.w * np.cos(W)) + np.sum(slope.b * np.cos(B)))
    hessian = gt.hessian(loss)(primal, X[0])
    by_dict = gt.hessian(dict_loss)({"w": W, "b": B}, X[0])
    check(hessian.w, by_dict["w"], primal)
    product = gt.hvp(lambda p: loss(p, X[0]), (primal,), (tangent,))
    directions = {"w": np.cos(W), "b": np.cos(B)}
    by_dict = gt.hvp(lambda p: dict_loss(p, X[0]), ({"w": W, "b": B},), (directions,))
    check(product, by_dict, primal)


@kinds
def test_vmap_over_a_batch_of_instances(make):
    many = make(np.stack([W, 2 * W]), np.stack([B, B]))
    axes = containers.map_leaves(lambda leaf: 0 if np.ndim(leaf) else None, many)
    found = gt.vmap(gt.grad(loss), in_axes=(axes, None))(many, X[0])
    expected = [gt.grad(dict_loss)({"w": w, "b": B}, X[0])["w"] for w in (W, 2 * W)]
    np.testing.assert_allclose(found.w, expected, rtol=1e-14)
    per_sample = gt.vmap(gt.grad(loss), in_axes=(None, 0))(make(W, B), X)
    assert per_sample.w.shape == (4, 2, 3)


def test_vmap_takes_axes_by_field():
    axes = (Plain(w=0, b=None), None)
    found = gt.vmap(loss, in_axes=axes)(Plain(np.stack([W, W]), B), X[0])
    np.testing.assert_allclose(found, [loss(Plain(W, B), X[0])] * 2)
    with pytest.raises(ArgumentError, match="in_axes does not match"):
        gt.vmap(loss, in_axes=(Frozen(w=0, b=None), None))(Plain(W, B), X[0])


@kinds
def test_jacobians_loops_and_checkpoints(make):
    jacobian = gt.jacobian(lambda p: p.w @ X[0] + p.b)(make(W, B))
    np.testing.assert_array_equal(jacobian.b, np.eye(2))

    def step(p, x):
        return containers.map_leaves(lambda leaf: leaf * 0.5, p), loss(p, x)

    for scan in (gt.scan, gt.jit(gt.scan, static_argnums=0)):
        last, losses = scan(step, make(W, B), X)
        np.testing.assert_array_equal(last.w, W / 16)
        assert losses.shape == (4,)
    same = gt.grad(gt.checkpoint(loss))(make(W, B), X[0])
    check(same, gt.grad(dict_loss)({"w": W, "b": B}, X[0]), make(W, B))


@kinds
def test_tape_sources(make):
    tape = gt.GradientTape()
    watched = containers.map_leaves(tape.watch, make(W, B))
    value = loss(watched, X[0])
    found = tape.gradient(value, watched)
    np.testing.assert_allclose(found.w.numpy(), gt.grad(loss)(make(W, B), X[0]).w)


@kinds
def test_results_and_aux_are_containers(make):
    def layer(p, x):
        return np.sum(p.w @ x), make(np.ones(2), np.zeros(1))

    grads, aux = gt.grad(layer, has_aux=True)(make(W, B), X[0])
    assert type(aux) is type(grads) is type(make(W, B))
    doubled = gt.jit(lambda p: containers.map_leaves(lambda leaf: 2 * leaf, p))(make(W, B))
    check(doubled, {"w": 2 * W, "b": 2 * B}, make(W, B))


@kinds
def test_files_have_the_names_of_fields(make, tmp_path):
    path = tmp_path / "model.safetensors"
    gt.save(path, {"layers": [make(W, B)]})
    assert {"layers.0.w", "layers.0.b"} <= set(gt.load(path))
    restored = gt.load(path, like={"layers": [make(0 * W, B)]})
    check(restored["layers"][0], {"w": W, "b": B}, make(W, B))


def test_custom_rules_take_and_give_instances():
    @gt.custom_vjp
    def energy(p, x):
        return loss(p, x)

    @energy.defvjp
    def rule(ct, out, p, x):
        return Plain(ct * np.ones_like(p.w), None), None

    found = gt.grad(energy)(Plain(W, B), X[0])
    check(found, {"w": np.ones_like(W), "b": np.zeros(2)}, Plain(W, B))


def test_optimizers_take_instances():
    w = gt.tensor(W, requires_grad=True)
    b = gt.tensor(B, requires_grad=True)
    optimizer = gt.optim.SGD(Plain(w, b), lr=1.0)
    gt.sum(w).backward()
    optimizer.step()
    np.testing.assert_array_equal(w.detach().numpy(), W - 1)
    rule = gt.optim.Adam(lr=0.1)
    stepped, state = rule.apply(Plain(W, B), Plain(W, B), rule.init(Plain(W, B)))
    assert type(stepped) is type(state["square"]) is Plain


# ---- static fields ------------------------------------------------------------------------------


def powers(p):
    return np.sum(p.w**p.power)


def test_static_fields_are_part_of_the_structure():
    leaves, structure = containers.flatten(Configured(W, B, 3))
    assert len(leaves) == 2
    assert structure == containers.flatten(Configured(B, W, 3))[1]
    assert hash(structure) == hash(containers.flatten(Configured(B, W, 3))[1])
    assert structure != containers.flatten(Configured(W, B, 2))[1]
    assert "power=3" in str(structure)
    np.testing.assert_array_equal(gt.grad(powers)(Configured(W, B, 3)).w, 3 * W**2)


def test_compiled_code_depends_on_static_fields():
    seen = []

    @gt.jit
    def traced(p):
        seen.append(p.power)
        return powers(p)

    for power in (2, 3, 2, 2.0, True):
        assert traced(Configured(W, B, power)) == pytest.approx(np.sum(W**power))
    assert [(type(p), p) for p in seen] == [(int, 2), (int, 3), (float, 2.0), (bool, True)]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([1, 2], "Configured.power: got a list in a static field, .* a tuple in place"),
        (W, "Configured.power: got an ndarray in a static field, .* not static"),
        (gt.tensor(W), "Configured.power: got a Tensor in a static field, .* not static"),
        ((1, [2]), "Configured.power: got a tuple in a static field"),
    ],
)
def test_static_fields_have_to_be_hashable(value, text):
    with pytest.raises(ArgumentError, match=text):
        gt.grad(powers)(Configured(W, B, value))


def test_static_fields_that_differ_are_told():
    with pytest.raises(ShapeError, match=r"power=2.*power=3"):
        gt.jvp(powers, (Configured(W, B, 3),), (Configured(W, B, 2),))


def test_fields_without_arrays_are_named():
    with pytest.raises(DTypeError, match=r"grad: argument 0\['m'\]\.b is a str, .*mark the field"):
        gt.grad(lambda p: np.sum(p["m"].w))({"m": Plain(W, "bias")})
    with pytest.raises(DTypeError, match=r"jit: argument 0\.b is of type str, .*metadata="):
        gt.jit(lambda p: p.w)(Plain(W, "bias"))
    with pytest.raises(DTypeError, match=r"vmap: argument 0\.b is a str, .*mark the field static"):
        gt.vmap(lambda p: p.w)(Plain(W, "bias"))
    with pytest.raises(DTypeError, match=r"argument 0\.w\[2\] is the int 3"):
        gt.grad(lambda p: np.sum(p.w[0]))(Plain([W, W, 3], B))


def test_none_is_no_leaf_as_in_dicts():
    found = gt.grad(lambda p: np.sum(p.w))(Plain(W, None))
    assert found.b is None
    np.testing.assert_array_equal(found.w, np.ones_like(W))


# ---- what is and what is not carried over --------------------------------------------------------


def test_fields_that_are_not_set_stay_so():
    @dataclass
    class Lazy:
        w: Any
        cache: Any = field(init=False)

    found = gt.grad(lambda p: np.sum(p.w))(Lazy(W))
    assert not hasattr(found, "cache")
    full = Lazy(W)
    full.cache = B
    assert containers.flatten(full)[1] != containers.flatten(Lazy(W))[1]
    np.testing.assert_array_equal(gt.grad(lambda p: np.sum(p.cache))(full).cache, np.ones(2))


def test_cached_properties_are_computed_anew():
    @dataclass
    class Model:
        w: Any

        @cached_property
        def total(self):
            return np.sum(self.w)

    model = Model(W)
    assert model.total == W.sum()
    np.testing.assert_array_equal(gt.grad(lambda m: m.total)(model).w, np.ones_like(W))


class Color(Base, enum.Enum):
    RED = 1.0


@dataclass
class Failure(Exception):  # noqa: N818
    w: Any


@dataclass
class Spec:
    shape: tuple[int, ...]
    dtype: Any


@pytest.mark.parametrize(
    "value", [Color.RED, Failure(W), Plain, Spec((2,), float), Typed[int]], ids=repr
)
def test_leaves_that_look_like_dataclasses(value):
    leaves, structure = containers.flatten([value])
    assert leaves == [value]
    assert structure.num_leaves == 1


def test_specs_still_stand_for_arrays():
    graph = gt.graph.make_graph(lambda x: x * 2.0)(Spec((3,), np.float32))
    assert "float32[3]" in str(graph)


def test_objects_of_custom_rules_may_be_left_out():
    @dataclass(frozen=True)
    class Settings:
        rate: float = 3.0
        mode: str = "fast"

    @gt.custom_vjp
    def scaled(x, settings):
        return x * settings.rate

    @scaled.defvjp
    def rule(ct, out, x, settings):
        return (ct * settings.rate * 10,)

    np.testing.assert_array_equal(gt.grad(lambda x: np.sum(scaled(x, Settings())))(B), [30, 30])
    # Not if they are differentiated.
    with pytest.raises(ShapeError, match="one cotangent per argument"):
        gt.grad(lambda s: np.sum(scaled(B, s)))(Settings(mode=1.0))


def test_instances_pass_through_as_static_arguments_of_jit():
    @dataclass(frozen=True)
    class Settings:
        name: str

    function = gt.jit(lambda x, s: x * len(s.name), static_argnums=1)
    np.testing.assert_array_equal(function(B, Settings("four")), 4 * B)


# ---- classes and threads ------------------------------------------------------------------------


def make_class():
    @dataclass
    class Local:
        w: Any

    return Local


def test_many_threads_meet_a_class_for_the_first_time():
    for _ in range(5):
        local = make_class()
        start = threading.Barrier(8)
        found: list[Any] = []

        def work(local=local, start=start, found=found):
            start.wait()
            found.append(gt.grad(lambda p: np.sum(p.w))(local(W)))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 8
        assert all(type(grads) is local for grads in found)


def test_instances_are_not_kept_alive():
    class Weak(np.ndarray):
        pass

    local = make_class()
    value = W.copy().view(Weak)
    reference = weakref.ref(value)
    containers.flatten([local(value)])
    del value
    gc.collect()
    assert reference() is None


# ---- containers without an end ------------------------------------------------------------------


@dataclass
class Holder:
    inside: Any


def test_containers_that_hold_themselves() -> None:
    x = np.ones(2)
    endless: list[Any] = [x, {"shared": x}]
    endless[1]["again"] = (x, endless)
    alone: dict[str, Any] = {}
    alone["a"] = alone
    holder = Holder([x])
    holder.inside.append(holder)
    tape = gt.GradientTape()
    runs: list[Callable[[Any], Any]] = [
        gt.grad(lambda _: 1.0),
        gt.jit(lambda _: 1.0),
        lambda value: tape.gradient(value, tape.watch(1.0)),
        lambda value: gt.linearize(lambda _: 1.0, value),
    ]
    for value in (endless, alone, holder):
        for run in runs:
            with pytest.raises(
                ArgumentError, match=r"got an? \w+ that holds itself, expected nested"
            ):
                run(value)
    deep: Any = 1.0
    for _ in range(3000):
        deep = [deep]
    with pytest.raises(RecursionError):
        gt.grad(lambda _: 1.0)(deep)
    shared = [x]  # the same list twice is no cycle
    assert len(gt.grad(lambda v: np.sum(v[0][0] * v[1][0]))([shared, shared])) == 2
