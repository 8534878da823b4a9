"""Long chains of views: built, read, written through, differentiated, printed and freed."""

import sys
from collections import Counter

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.places import composed
from gradtape.errors import WriteError

DEEP = 1100  # over the interpreter's limit of recursion

STEPS = {
    "part": lambda v: v[0:],
    "reversed": lambda v: v[::-1],
    "new axis": lambda v: v[None][0],
    "reshape": lambda v: v.reshape(-1),
    "transpose": lambda v: v.T,
    "mixed": lambda v: v.reshape(1, 2)[0, 0:],
}
steps = pytest.mark.parametrize("step", STEPS.values(), ids=STEPS.keys())


def chain(base, step, depth=DEEP):
    view = base
    for _ in range(depth):
        view = step(view)
    return view


@steps
def test_a_long_chain_is_read_written_differentiated_and_freed(step):
    x = gt.tensor([1.0, 2.0], requires_grad=True)
    base = x * 1.0
    view = chain(base, step)
    gt.sum(view * view).backward()
    np.testing.assert_array_equal(np.asarray(x.grad), [2.0, 4.0])
    view[0] = 7.0 * view[1]
    view += 1.0
    assert base.tolist() == view.tolist() == [15.0, 3.0]
    assert repr(view).startswith("tensor([15.,  3.], recorded by")
    gt.sum(base * view).backward()  # (7x₁ + 1)² + (x₁ + 1)², besides what there was
    np.testing.assert_array_equal(np.asarray(x.grad), [2.0, 4.0 + 2 * 7 * 15 + 6])
    del view


def test_a_chain_of_ever_smaller_parts():
    depth = 3_000
    x = gt.tensor(np.arange(depth + 2.0), requires_grad=True)
    base = x * 1.0
    view = chain(base, lambda v: v[1:], depth)
    view[1:] = 3.0 * view[:1]
    assert base.tolist()[-3:] == [depth - 1.0, depth, 3.0 * depth]
    gt.sum(view).backward()
    np.testing.assert_array_equal(np.asarray(x.grad)[-3:], [0.0, 4.0, 0.0])


@steps
def test_what_is_behind_its_base_is_read_with_and_without_history(step):
    x = gt.tensor([1.0, 2.0], requires_grad=True)
    base = x * 1.0
    view = chain(base, step)
    base += 1.0
    with gt.no_grad():
        assert [view.tolist(), view.tolist()] == [[2.0, 3.0]] * 2
    assert view.requires_grad
    base += 1.0
    gt.clear_tape()
    assert view.tolist() == [3.0, 4.0]
    assert repr(view) == "tensor([3., 4.])"


@steps
def test_transforms_take_a_chain_that_is_written_through(step):
    def function(x):
        base = x * 1.0
        view = chain(base, step)
        view[0] = view[1] * 3.0
        return gt.sum(base * base)

    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(gt.grad(function)(x), [0.0, 40.0])
    assert gt.jvp(function, (x,), (np.ones(2),)) == (40.0, 40.0)
    np.testing.assert_array_equal(gt.vmap(function)(np.stack([x, 2 * x])), [40.0, 160.0])


def test_leaves_and_what_cannot_be_written_through_are_refused_at_any_depth():
    leaf = gt.ones(2, requires_grad=True)
    view = chain(leaf, lambda v: v[0:])
    with pytest.raises(WriteError, match="leaf"):
        view[0] = 1.0
    with gt.no_grad():
        view[0] = 5.0
    assert leaf.tolist() == [5.0, 1.0]
    wide = chain(gt.broadcast_to(gt.ones(1), (2,)), lambda v: v[0:])
    with pytest.raises(WriteError, match=r"copy\(\)"):
        wide[0] = 1.0


def calls(function):
    """How many functions are called while `function` runs."""
    count = Counter()
    sys.setprofile(lambda frame, event, argument: count.update([event]))
    try:
        function()
    finally:
        sys.setprofile(None)
    return count.total()


@steps
@pytest.mark.parametrize("action", ["build", "write", "read", "read silently", "backward"])
def test_nothing_is_quadratic(step, action):
    def count(depth):
        base = gt.ones(2, requires_grad=True) * 1.0
        if action == "build":
            return calls(lambda: chain(base, step, depth))
        view = chain(base, step, depth)
        if action == "write":
            return calls(lambda: view.__setitem__(0, 5.0))
        if action == "backward":
            return calls(gt.sum(view).backward)
        base += 1.0
        with gt.no_grad() if action == "read silently" else gt.enable_grad():
            return calls(view.tolist)

    few, many = count(30), count(120)
    assert many < 4.5 * few + 100


# ---- indices ------------------------------------------------------------------------------------


def random_index(rng, shape):
    """A basic index for an array of some shape, with everything that may stand in one."""
    items = []
    for size in shape[: rng.integers(0, len(shape) + 1)]:
        if size and rng.random() < 0.3:
            items.append(int(rng.integers(-size, size)))
        else:
            ends = [None if rng.random() < 0.4 else int(rng.integers(-5, 6)) for _ in range(2)]
            items.append(slice(*ends, rng.choice([None, 1, 2, -1, -2])))
        if rng.random() < 0.2:
            items.append(None)
    if rng.random() < 0.4:
        # Before it the first axes are meant, after it the last ones.
        place = len(items) if any(type(i) is int for i in items) else 0
        used = sum(item is not None for item in items)
        if used < len(shape) and place == 0:
            items = [*items[:place], Ellipsis, *items[place:]]
        else:
            items.append(Ellipsis)
    return tuple(items)


def test_indices_one_after_the_other_are_composed(rng):
    written, empty = 0, 0
    for _ in range(600):
        shape = tuple(rng.integers(1, 5, size=rng.integers(1, 4)))
        array = np.arange(np.prod(shape)).reshape(shape)
        part, indices = array, []
        for _ in range(rng.integers(1, 5)):
            index = random_index(rng, part.shape)
            try:
                part = part[index]
            except IndexError:
                continue  # meant for another axis
            if part.ndim == 0:
                break
            indices.append(index)
        if part.ndim == 0:
            continue
        whole = composed(shape, indices)
        if whole is None:
            assert part.size == 0
            empty += 1
        else:
            np.testing.assert_array_equal(array[whole], part)
            assert array[whole].shape == part.shape
            written += 1
    assert written > 200
    assert empty > 0
