"""Backward passes that are the last of their records free what these keep on the way.

Small records are freed at the end at the earliest; from the first large one on, each is freed after
its turn. Nobody can tell but by memory: gradients are those of a walk that keeps everything.
"""

from __future__ import annotations

import threading
import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core import walk
from gradtape.core.kernels import LARGE
from gradtape.core.record import LargeBinary
from gradtape.errors import TapeError
from random_ways import floating_inputs, loss_of, programs, watched

inf, nan = np.inf, np.nan
SHAPE = (200, 200)
BIG = np.linspace(0.1, 1.0, 40_000).reshape(SHAPE)
assert BIG.size >= LARGE


# ---- ways to differentiate: with and without freeing --------------------------------------------


def by_grad(f: Any, *xs: Any) -> Any:
    return gt.grad(f)(*xs) if len(xs) == 1 else gt.grad(f, tuple(range(len(xs))))(*xs)


def by_value_and_grad(f: Any, *xs: Any) -> Any:
    (_, aux), grads = gt.value_and_grad(
        lambda *some: (f(*some), 3), tuple(range(len(xs))), has_aux=True
    )(*xs)
    assert aux == 3
    return grads if len(xs) > 1 else grads[0]


def by_tape(f: Any, *xs: Any, persistent: bool = False) -> Any:
    with gt.GradientTape(persistent=persistent) as tape:
        sources = [tape.watch(x) for x in xs]
        target = f(*sources)
    grads = tuple(grad.numpy() for grad in tape.gradient(target, sources))
    return grads if len(xs) > 1 else grads[0]


def by_context(f: Any, *xs: Any, **options: Any) -> Any:
    leaves = [gt.tensor(x, requires_grad=True) for x in xs]
    gt.compute_gradients(f(*leaves), **options)
    grads = tuple(
        np.zeros_like(x) if leaf.grad is None else leaf.grad.detach().numpy()
        for x, leaf in zip(xs, leaves, strict=True)
    )
    return grads if len(xs) > 1 else grads[0]


def by_vjp(f: Any, *xs: Any) -> Any:
    out, pullback = gt.vjp(f, *xs)
    grads = pullback(np.ones_like(out))
    return grads if len(xs) > 1 else grads[0]


FREEING: dict[str, Callable[..., Any]] = {
    "grad": by_grad,
    "value_and_grad": by_value_and_grad,
    "tape": by_tape,
    "release": lambda f, *xs: by_context(f, *xs, release=True),
    "release, recorded": lambda f, *xs: by_context(f, *xs, release=True, create_graph=True),
    "release, watched": watched(lambda f, *xs: by_context(f, *xs, release=True)),
    "grad, watched": watched(by_grad),
}
# Those that walk in the records.
FAST = {name: FREEING[name] for name in ("grad", "value_and_grad", "tape", "release")}
KEEPING: dict[str, Callable[..., Any]] = {
    "vjp": by_vjp,
    "persistent tape": lambda f, *xs: by_tape(f, *xs, persistent=True),
    "backward": by_context,
}
freeing = pytest.mark.parametrize("way", FREEING.values(), ids=FREEING.keys())
fast = pytest.mark.parametrize("way", FAST.values(), ids=FAST.keys())
keeping = pytest.mark.parametrize("way", KEEPING.values(), ids=KEEPING.keys())


class Seen:
    """Counts, when the backward pass comes by, which arrays that were noted are alive."""

    def __init__(self) -> None:
        self.references: list[Any] = []
        self.alive: list[list[bool]] = []
        self._look = gt.custom_vjp(lambda x: x * 1.0)
        self._look.defvjp(self._pass)

    def note(self, tensor: Any) -> Any:
        """Note the array of a tensor."""
        array = tensor.value
        self.references.append(weakref.ref(array if array.base is None else array.base))
        return tensor

    def look(self, x: Any) -> Any:
        """The identity; looks in the backward pass."""
        return self._look(x)

    def _pass(self, ct: Any, _out: Any, _x: Any) -> Any:
        self.alive.append([reference() is not None for reference in self.references])
        return (ct * 1.0,)


# ---- what is alive ------------------------------------------------------------------------------


@freeing
def test_each_record_is_freed_after_its_turn(way: Any) -> None:
    if way is FREEING["release, recorded"]:
        pytest.skip("records of the backward pass keep the same arrays")
    seen = Seen()

    def f(x: Any) -> Any:
        for _ in range(4):
            x = seen.note(gt.exp(seen.look(x) * 0.1))
        return gt.sum(x)

    way(f, BIG)
    assert seen.alive == [
        [True, True, True, False],
        [True, True, False, False],
        [True, False, False, False],
        [False] * 4,
    ]


@keeping
def test_walks_that_may_be_repeated_keep_everything(way: Any) -> None:
    seen = Seen()

    def f(x: Any) -> Any:
        for _ in range(3):
            x = seen.note(gt.exp(seen.look(x) * 0.1))
        return gt.sum(x)

    way(f, BIG)
    assert seen.alive == [[True] * 3] * 3


def assigned(seen: Seen, x: Any) -> Any:
    y = seen.note(gt.exp(x))
    z = y * 2.0
    z[0] = y[1]
    return gt.sum(z * z)


def compiled(seen: Seen, x: Any) -> Any:
    y = seen.note(gt.exp(x))
    return gt.sum(gt.jit(lambda y: np.sin(y) * y)(y))


def split(seen: Seen, x: Any) -> Any:
    one, other = gt.split(seen.note(gt.exp(x)), 2)
    return gt.sum(one * other)


KINDS: dict[str, Callable[[Seen, Any], Any]] = {
    "two operands": lambda seen, x: gt.sum(seen.note(gt.exp(x)) * seen.note(gt.sin(x))),
    "one operand": lambda seen, x: gt.sum(gt.sqrt(seen.note(x * 2.0))),
    "broadcast": lambda seen, x: gt.sum(seen.note(gt.exp(x)) * x[0]),
    "product": lambda seen, x: gt.sum(seen.note(x * 2.0) @ seen.note(x * 3.0)),
    "reduction": lambda seen, x: gt.max(seen.note(gt.exp(x))) * 2.0,
    "index": lambda seen, x: gt.sum(gt.exp(seen.note(x * 2.0)[3:5]) ** 2),
    "small ops on a view": lambda seen, x: gt.sum(gt.sin(seen.note(gt.exp(x))[3])),
    "assignment": assigned,
    "compiled": compiled,
    "several results": split,
    "linear algebra": lambda seen, x: gt.sum(gt.linalg.inv(seen.note(x @ x + np.eye(200)))),
}


@fast
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_every_kind_of_record_is_freed(kind: Any, way: Any) -> None:
    seen, before = Seen(), Seen()

    def f(x: Any) -> Any:
        return kind(seen, seen.look(before.note(x * 1.5)))

    before.references = seen.references
    got = way(f, BIG)
    # The array that the look was given is needed by its rule, and all later ones are gone.
    assert seen.alive == [[True] + [False] * (len(seen.references) - 1)]
    np.testing.assert_array_equal(got, by_vjp(f, BIG))


def test_matmul_says_which_products_keep_a_large_intermediate() -> None:
    x = gt.tensor(BIG, requires_grad=True)
    small = gt.ones((1, 200), requires_grad=True)
    assert type((x @ (x * 2.0)).record) is LargeBinary
    assert type((BIG @ x).record) is LargeBinary  # an array that may live for it alone
    assert type((x @ x).record) is not LargeBinary  # users hold leaves
    assert type((small @ (x * 2.0)).record) is LargeBinary
    assert type((small @ small.T).record) is not LargeBinary


@fast
def test_the_peak_is_what_was_saved_and_little_more(way: Any) -> None:
    """Products take their memory from NumPy, which tracemalloc sees."""
    count = 12
    weights = [np.eye(200) + n / 1000 for n in range(count)]

    def f(*weights: Any) -> Any:
        x = BIG
        for weight in weights:
            x = x @ weight
        return x[3, 4] * 1.0

    def peak(way: Any) -> float:
        tracemalloc.start()
        try:
            way(f, *weights)
            return tracemalloc.get_traced_memory()[1] / BIG.nbytes
        finally:
            tracemalloc.stop()

    copies = count if way is FREEING["release"] else 0  # `gt.tensor` copies the weights
    way(f, *weights)  # fills caches
    assert peak(way) < copies + count + 4
    assert peak(by_vjp) > 2 * count


@pytest.mark.parametrize("way", [FREEING["tape"], FREEING["release"]], ids=["tape", "release"])
def test_ones_that_a_pass_starts_from_are_not_held(way: Any, monkeypatch: Any) -> None:
    seen = Seen()

    def remembering(segment: Any, roots: Any, **options: Any) -> Any:
        seen.references.extend(weakref.ref(root[1]) for root in roots)
        return walk.walk(segment, roots, **options)

    monkeypatch.setattr("gradtape.autodiff.context.walk", remembering)
    monkeypatch.setattr("gradtape.autodiff.tape.walk", remembering)
    way(lambda x: gt.exp(gt.exp(seen.look(x))), BIG)
    assert seen.alive == [[False]]


# ---- the same gradients -------------------------------------------------------------------------


def same_bits(got: Any, expected: Any) -> None:
    for one, other in zip(got, expected, strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
def test_random_programs_have_the_same_gradients_to_the_bit(large: bool) -> None:
    for program in programs(20, 30, floating=True, large=large):
        if not (chosen := floating_inputs(program)):
            continue
        loss, arrays = loss_of(program), program.arguments()

        def f(*some: Any, loss: Any = loss, arrays: Any = arrays, chosen: Any = chosen) -> Any:
            full = list(arrays)
            for n, x in zip(chosen, some, strict=True):
                full[n] = x
            return loss(*full) + sum(gt.sum(x) for x in some) * 0.0  # depends on something

        xs = [np.asarray(arrays[n]) for n in chosen]
        with np.errstate(all="ignore"):
            out, pullback = gt.vjp(f, *xs)
            expected = pullback(np.ones_like(out))
            same_bits(gt.grad(f, tuple(range(len(xs))))(*xs), expected)
            for way in (FREEING["tape"], FREEING["release"]):
                got = way(f, *xs)
                same_bits(got if len(xs) > 1 else (got,), expected)


def entropy(x: Any) -> Any:
    return np.where(x > 0, x * np.log(x), 0.0)


POINTS = BIG - 0.1  # its first element is 0
NOT_FINITE: dict[str, Callable[..., Any]] = {
    "large": lambda x: gt.sum(entropy(gt.sin(x))),
    "small, then large": lambda x: gt.sum(entropy(gt.sin(x)[0])),
    "large, then small": lambda x: gt.sum(gt.exp(entropy(x[0]).reshape(200, 1) * gt.cos(x))),
    "small on both sides": lambda x: gt.sum(entropy(gt.sum(entropy(x[0]) * gt.cos(x), axis=0) * 0)),
    "infinite": lambda x: gt.sum(gt.log(gt.sin(x))),
    "infinite, small": lambda x: gt.sum(gt.log(gt.sin(x)[0])),
    "not a number": lambda x: gt.sum(np.where(x > 0, np.sqrt(gt.sin(x)), 0.0)),
}


@freeing
@pytest.mark.parametrize("f", NOT_FINITE.values(), ids=NOT_FINITE.keys())
def test_zero_times_infinity_is_settled_as_ever(f: Any, way: Any) -> None:
    with np.errstate(all="ignore"):
        expected = by_vjp(f, POINTS)
        np.testing.assert_array_equal(way(f, POINTS), expected)
    assert np.isnan(expected).any() == (f is NOT_FINITE["not a number"])


def test_rules_of_users_get_what_is_settled() -> None:
    given: list[Any] = []
    hiding = gt.custom_vjp(lambda x: x * 1.0)

    @hiding.defvjp
    def _rule(ct: Any, _out: Any, _x: Any) -> Any:
        given.append(np.isfinite(ct).all())
        return (np.nan_to_num(ct),)

    def f(x: Any) -> Any:
        y = hiding(gt.sin(x))
        return gt.sum(y[0]) * 5.0 + gt.sum(entropy(y[0]))

    with np.errstate(all="ignore"):
        for way in FREEING.values():
            np.testing.assert_array_equal(way(f, POINTS), by_vjp(f, POINTS))
    assert all(given)


def indexed(x: Any) -> Any:
    y = gt.exp(x)
    total = gt.sum(gt.sin(y))
    for n in range(200):
        total = total + y[n, 3] * y[199 - n, 4]
    return total


def written(x: Any) -> Any:
    y = gt.exp(x)
    for n in range(1, 100):
        y[n] = y[n - 1] * 0.5 + y[n]
    y.T[2] += 1.0
    view = y.reshape(-1)[5:]
    view[3] = 4.0
    return gt.sum(gt.sin(y) * y[::-1])


def forked(x: Any) -> Any:
    y = gt.exp(x * 0.1)
    for _ in range(3):
        y = gt.sin(y) + y + y.T + gt.sum(y, axis=0)
    return gt.sum(y * x)


SHAPES_OF_GRAPHS = {"indexed": indexed, "written": written, "forked": forked}


@freeing
@pytest.mark.parametrize("f", SHAPES_OF_GRAPHS.values(), ids=SHAPES_OF_GRAPHS.keys())
def test_views_assignments_and_sums_of_cotangents(f: Any, way: Any) -> None:
    np.testing.assert_allclose(way(f, BIG), by_vjp(f, BIG), rtol=1e-15, atol=1e-15)


@fast
def test_parts_are_added_in_place_after_large_records(way: Any, monkeypatch: Any) -> None:
    """A sum of whole arrays for every element that is read would be O(n²)."""
    sums = 0

    def counted(x: Any, y: Any, add: Any = walk.add) -> Any:
        nonlocal sums
        sums += np.size(y) >= LARGE
        return add(x, y)

    def f(x: Any) -> Any:
        y = x * 1.0
        total = 0.0
        for n in range(100):
            total = total + y[n, 3] * y[199 - n, 4]
        return total * gt.sum(gt.exp(gt.exp(x)))  # large records come first

    monkeypatch.setattr(walk, "add", counted)
    way(f, BIG)
    assert sums <= 2


@freeing
def test_a_leaf_that_is_not_reached_has_no_gradient(way: Any) -> None:
    np.testing.assert_array_equal(way(lambda x: gt.sum(gt.floor(gt.exp(x)) * 2.0), BIG), 0 * BIG)
    np.testing.assert_array_equal(way(lambda x: gt.exp(gt.sum(gt.floor(gt.exp(x)) * 0)), BIG), 0)


@fast
def test_numbers(way: Any) -> None:
    assert way(lambda x: gt.sum(gt.exp(x * BIG)), np.array(0.5)).shape == ()
    x = 0.5
    got = way(lambda x: gt.sum(gt.exp(x * BIG)), np.array(x))
    np.testing.assert_allclose(got, np.sum(np.exp(x * BIG) * BIG), rtol=1e-12)


def test_sources_inside_of_the_graph_and_several_targets() -> None:
    def gradients(persistent: bool) -> Any:
        with gt.GradientTape(persistent=persistent) as tape:
            x = tape.watch(BIG)
            y = gt.exp(x)
            y[0] = y[1] * 2.0
            z = gt.sin(y)
            one, other = gt.split(z * y, 2)
        given = [np.ones(SHAPE), np.full(one.shape, 2.0), np.full(one.shape, 3.0)]
        return tape.gradient([z, one, other], [x, y, z, one], output_gradients=given)

    for one, other in zip(gradients(False), gradients(True), strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_results_share_no_memory_with_cotangents_that_were_given() -> None:
    for make in (lambda x, y: x.reshape(200, 200), lambda x, y: x + gt.exp(y), lambda x, y: x):
        seed = np.ones(SHAPE)
        with gt.GradientTape() as tape:
            x, y = tape.watch(BIG), tape.watch(BIG)
            z = make(x, y)
        got = tape.gradient(z, (x, y), output_gradients=seed)[0].numpy()
        assert not np.shares_memory(got, seed)
        np.testing.assert_array_equal(got, seed)


def test_holomorphic_functions_are_pulled_twice() -> None:
    z = BIG * (1 + 1j)
    got = gt.grad(lambda z: gt.sum(gt.exp(gt.sin(z))), holomorphic=True)(z)
    np.testing.assert_allclose(got, np.exp(np.sin(z)) * np.cos(z), rtol=1e-12)


def test_higher_derivatives_and_compiled_ones() -> None:
    def f(x: Any) -> Any:
        return gt.sum(gt.exp(gt.sin(x)) * x)

    def slope(x: Any) -> Any:
        return gt.sum(gt.grad(f)(x) ** 2)

    expected = gt.vjp(lambda x: gt.sum(gt.vjp(f, x)[1](1.0)[0] ** 2), BIG)[1](1.0)[0]
    np.testing.assert_array_equal(gt.grad(slope)(BIG), expected)
    np.testing.assert_allclose(gt.jit(gt.grad(f))(BIG), gt.grad(f)(BIG), rtol=1e-12)
    batch = np.stack([BIG, BIG / 2])
    np.testing.assert_allclose(gt.vmap(gt.grad(f))(batch)[1], gt.grad(f)(BIG / 2), rtol=1e-12)


# ---- what release=True promises -----------------------------------------------------------------

SMALL = np.linspace(0.1, 1.0, 10)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: gt.sum(gt.exp(x) * x),
        lambda x: gt.sum(gt.exp(x)) * 2.0,
        lambda x: gt.sum(gt.sin(gt.exp(x).reshape(2, -1)[0, :4])),
        lambda x: gt.sum(gt.split(gt.exp(x), 2, axis=0)[0]),
        lambda x: gt.sum((x * 1.0).reshape(2, -1) @ (x * 2.0).reshape(-1, 2)),
    ],
)
@pytest.mark.parametrize("x", [SMALL, BIG], ids=["small", "large"])
def test_released_records_cannot_be_walked_again(f: Any, x: Any) -> None:
    leaf = gt.tensor(x, requires_grad=True)
    loss = f(leaf)
    loss.backward(release=True)
    for again in (loss, loss * 2.0):
        for options in ({}, {"release": True}, {"create_graph": True}):
            with pytest.raises(TapeError, match="released by a backward pass with release=True"):
                again.backward(**options)
    np.testing.assert_array_equal(leaf.grad.numpy(), by_vjp(f, x))


@pytest.mark.parametrize("x", [SMALL, BIG], ids=["small", "large"])
def test_records_that_no_cotangent_reaches_stay(x: Any) -> None:
    leaf = gt.tensor(x, requires_grad=True)
    hidden = gt.exp(leaf)
    gt.sum(gt.sin(leaf) * gt.floor(hidden)).backward(release=True)
    leaf.grad = None
    gt.sum(hidden).backward()
    np.testing.assert_allclose(leaf.grad.numpy(), np.exp(x), rtol=1e-14)


class FailingOnceError(Exception):
    pass


def failing_once() -> Any:
    """The identity, whose rule fails the first time."""
    calls: list[int] = []
    function = gt.custom_vjp(lambda x: x * 1.0)

    @function.defvjp
    def _rule(ct: Any, _out: Any, _x: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise FailingOnceError
        return (ct * 1.0,)

    return function


def test_after_an_error_small_records_are_as_they_were() -> None:
    leaf = gt.tensor(SMALL, requires_grad=True)
    loss = gt.sum(gt.exp(failing_once()(gt.sin(leaf)) * 2.0) + leaf)
    with pytest.raises(FailingOnceError):
        loss.backward(release=True)
    loss.backward(release=True)
    x = SMALL
    np.testing.assert_allclose(
        leaf.grad.numpy(), 2 * np.exp(2 * np.sin(x)) * np.cos(x) + 1, rtol=1e-14
    )


def test_after_an_error_large_records_that_were_visited_are_gone() -> None:
    leaf = gt.tensor(BIG, requires_grad=True)
    kept, pending = gt.sin(leaf), gt.cos(leaf)
    loss = gt.sum(gt.exp(failing_once()(kept) + pending))
    with pytest.raises(FailingOnceError):
        loss.backward(release=True)
    with pytest.raises(TapeError, match="released"):
        loss.backward()
    leaf.grad = None
    (gt.sum(kept) + gt.sum(pending)).backward()  # were not visited
    expected = np.cos(BIG) - np.sin(BIG)
    np.testing.assert_allclose(leaf.grad.numpy(), expected, rtol=1e-14, atol=1e-15)


def test_a_rule_may_walk_the_same_tape() -> None:
    other = gt.tensor(BIG, requires_grad=True)
    inner = gt.sum(gt.exp(other))
    nesting = gt.custom_vjp(lambda x: x * 1.0)

    @nesting.defvjp
    def _rule(ct: Any, _out: Any, _x: Any) -> Any:
        inner.backward(release=True)
        return (ct * 1.0,)

    leaf = gt.tensor(BIG, requires_grad=True)
    gt.sum(gt.sin(nesting(gt.exp(leaf)))).backward(release=True)
    np.testing.assert_allclose(other.grad.numpy(), np.exp(BIG), rtol=1e-14)
    expected = np.cos(np.exp(BIG)) * np.exp(BIG)
    np.testing.assert_allclose(leaf.grad.numpy(), expected, rtol=1e-13, atol=1e-14)


def test_threads_release_parts_of_one_tape() -> None:
    leaves = [gt.tensor(x, requires_grad=True) for x in (BIG, SMALL, BIG * 2, SMALL * 2)]
    losses = [gt.sum(gt.exp(gt.sin(leaf)) * leaf) for leaf in leaves]
    context = gt.current_context()

    def work(loss: Any) -> None:
        with context:
            loss.backward(release=True)

    threads = [threading.Thread(target=work, args=(loss,)) for loss in losses]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for leaf in leaves:
        x = leaf.detach().numpy()
        expected = np.exp(np.sin(x)) * (np.cos(x) * x + 1)
        np.testing.assert_allclose(leaf.grad.numpy(), expected, rtol=1e-13)
