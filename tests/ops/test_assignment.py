"""Item assignment, augmented assignment and views: as in NumPy, and differentiable."""

import operator

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import DTypeError, GradtapeError, IndexingError, ShapeError

X = np.array([1.0, 2.0, 3.0, 4.0])


def check(program, x=X):
    """Compare a program that changes its argument with NumPy, and its gradient with differences."""
    expected = program(x.copy())
    out = program(gt.tensor(x))
    np.testing.assert_allclose(np.asarray(out), expected, rtol=1e-14)
    gt.testing.check_grads(lambda v: program(v * 1.0), (x,))


# ---- programs -----------------------------------------------------------------------------------


def element(x):
    x[1] = x[0] * x[2]
    return x * x


def from_the_end(x):
    x[-1] = 5.0
    return x * x


def part(x):
    x[1:3] = x[1:3] * 2.0
    return x * x


def broadcast(x):
    x[::2] = x[3]
    return x * x


def everything(x):
    x[...] = x[::-1] * x
    return x


def overlap(x):
    x[1:] = x[:-1]
    return x * np.arange(4.0)


def reversed_in_place(x):
    x[:] = x[::-1]
    return x * np.arange(4.0)


def swap(x):
    x[[0, 2]] = x[[2, 0]]
    return x * np.arange(4.0)


def repeated_index(x):
    x[np.array([1, 1, 2])] = x[np.array([0, 3, 3])] * 2.0
    return x * x


def mask(x):
    x[x > 2.5] = x[0]
    return x * x


def mask_of_values(x):
    x[np.array([True, False, True, False])] = x[2:] * x[:2]
    return x * x


def matrix(x):
    m = np.stack([x, x * x])
    m[:, 1] = x[:2]
    m[0, [0, 3]] = m[1, 2]
    m[1] += m[0]
    return m


def buffer(x):
    out = np.zeros_like(x, shape=(3, 4))
    for i in range(3):
        out[i] = x**i
        out[i, i] = 7.0
    return out


def recurrence(x):
    z = np.zeros_like(x)
    z[0] = x[0]
    for i in range(1, 4):
        z[i] = z[i - 1] * x[i]
    return z


def augmented(x):
    x += x[0]
    x *= 2.0
    x -= x * x
    x /= 3
    x **= 2
    return x


def augmented_parts(x):
    x[0] += 1.0
    x[1:] *= x[:-1]
    x[[0, 3]] -= 2.0
    return x * x


def view(x):
    v = x[1:]
    v[0] = x[3] * x[0]
    v *= 2.0
    return x * x


def view_of_a_view(x):
    v = x[1:][::2][:1]
    v += x[0]
    return x * x


def rows(x):
    m = np.stack([x, x * 2.0])
    for row in m:
        row[1] = row[0] * row[2]
        row *= 2.0
    return m


def two_views(x):
    left, right = x[:3], x[1:]
    left[1] = 10.0
    right[1] *= right[0]
    return left * right


PROGRAMS = [
    element, from_the_end, part, broadcast, everything, overlap, reversed_in_place, swap,
    repeated_index, mask, mask_of_values, matrix, buffer, recurrence, augmented, augmented_parts,
    view, view_of_a_view, rows, two_views,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs_that_assign(program):
    check(program)


# ---- handles ------------------------------------------------------------------------------------


def test_a_tensor_is_a_handle():
    t = gt.tensor(X)
    same, before = t, t * 1.0
    t[0] = 9.0
    same += 1.0
    assert t is same
    assert t.tolist() == [10, 3, 4, 5]
    assert before.tolist() == X.tolist()


def test_what_was_recorded_before_an_assignment_keeps_its_values():
    x = gt.tensor(X, requires_grad=True)
    y = x * 1.0
    early = gt.sum(y * y)
    y[:] = 100.0
    y += x
    gt.compute_gradients(early)
    np.testing.assert_array_equal(np.asarray(x.grad), 2 * X)


def test_an_untracked_tensor_becomes_tracked_by_what_is_written():
    x = gt.tensor(2.0, requires_grad=True)
    t, u = gt.zeros(3), gt.zeros(3)
    t[1] = x * 3.0
    u += x
    assert t.requires_grad
    assert u.requires_grad
    gt.compute_gradients(gt.sum(t) + gt.sum(u))
    assert x.grad.item() == 6.0


def test_detach_gives_a_handle_of_its_own():
    x = gt.tensor(X)
    apart = x.detach()
    apart[0] = 9.0
    assert x.tolist() == X.tolist()


def test_the_array_given_to_a_tape_is_not_written():
    array = X.copy()
    tape = gt.GradientTape()
    x = tape.watch(array)
    start = x * 1.0
    x[0] = 5.0
    x += 1.0
    assert array.tolist() == X.tolist()
    assert np.asarray(tape.gradient(gt.sum(x * start), start)).tolist() == [6, 3, 4, 5]


def test_augmented_assignment_keeps_shape_and_dtype():
    t = gt.tensor(X.astype(np.float32))
    t += np.ones(4)
    assert t.dtype == np.float32
    with pytest.raises(ShapeError, match=r"got a result of shape \(2, 4\) .* to shape \(4,\)"):
        t += np.ones((2, 4))
    with pytest.raises(DTypeError, match="complex"):
        t *= 1j
    n = gt.tensor([1, 2])
    with pytest.raises(DTypeError, match=r"float64.*int64"):
        n += 0.5
    assert n.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("index", "value", "error", "match"),
    [
        (slice(0, 2), np.ones(3), ShapeError, r"\(3,\).*\(2,\)"),
        (0, np.ones(2), ShapeError, r"\(2,\).*\(\)"),
        (7, 1.0, IndexingError, "7"),
        ((0, 0), 1.0, IndexingError, "2"),
        (0, 1j, DTypeError, "complex"),
        ("a", 1.0, IndexingError, "integers"),
    ],
)
def test_assignments_that_do_not_fit(index, value, error, match):
    t = gt.tensor(X)
    with pytest.raises(error, match=match):
        t[index] = value
    assert t.tolist() == X.tolist()


# ---- leaves -------------------------------------------------------------------------------------

WRITES = {
    "element": lambda w: operator.setitem(w, 0, 9.0),
    "part": lambda w: operator.setitem(w, slice(1), 9.0),
    "augmented": lambda w: operator.iadd(w, [8.0, 0.0, 0.0, 0.0]),
    "through a view": lambda w: operator.setitem(w[:2], 0, 9.0),
    "augmented view": lambda w: operator.iadd(w[:1], 8.0),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_a_leaf_is_written_only_under_no_grad(write):
    w = gt.tensor(X, requires_grad=True)
    gt.compute_gradients(w * 2.0)
    with pytest.raises(GradtapeError, match=r"leaf.*no_grad"):
        write(w)
    assert w.detach().tolist() == X.tolist()
    with gt.no_grad():
        write(w)
    assert w.detach().tolist() == [9, 2, 3, 4]
    assert w.is_leaf
    assert w.requires_grad
    assert np.asarray(w.grad).tolist() == [2, 2, 2, 2]
    gt.compute_gradients(w * w)
    assert np.asarray(w.grad).tolist() == [20, 6, 8, 10]


def test_writing_a_leaf_leaves_earlier_records_alone():
    w = gt.tensor(X, requires_grad=True)
    loss = gt.sum(w * w * w)
    with gt.no_grad():
        w[:] = 100.0
    loss.backward()
    np.testing.assert_array_equal(np.asarray(w.grad), 3 * X**2)


# ---- views --------------------------------------------------------------------------------------


def test_a_view_reads_what_its_base_holds_now():
    t = gt.tensor(X)
    v, deeper = t[1:], t[1:][1:]
    t[2] = 9.0
    assert v.tolist() == [2, 9, 4]
    assert deeper.tolist() == [9, 4]
    t += 1.0
    assert deeper.tolist() == [10, 5]
    assert (v * 2).tolist() == [6, 20, 10]


def test_a_view_becomes_tracked_with_its_base():
    x = gt.tensor(2.0, requires_grad=True)
    t = gt.zeros(3)
    v = t[1:]
    assert not v.requires_grad
    t[2] = x * 3.0
    assert v.requires_grad
    gt.compute_gradients(v)
    assert x.grad.item() == 3.0


def test_an_element_is_a_copy():
    t = gt.tensor(X)
    one = t[1]
    t[1] = 9.0
    assert one.item() == 2.0
    one += 5.0
    assert t.tolist() == [1, 9, 3, 4]


@pytest.mark.parametrize("index", [[0, 1], np.array([True, True, False, False])])
def test_an_array_index_is_a_copy(index):
    t = gt.tensor(X)
    part = t[index]
    part[0] = 9.0
    assert t.tolist() == X.tolist()


def test_a_view_of_a_leaf_is_no_leaf():
    w = gt.tensor(X, requires_grad=True)
    v = w[1:]
    assert v.requires_grad
    assert not v.is_leaf
    gt.compute_gradients(v * v)
    np.testing.assert_array_equal(np.asarray(w.grad), [0, 4, 6, 8])


def changed_after(x):
    """A view of what changes after the view was made."""
    y = x * 1.0
    v = y[1:]
    y[2] = x[0] ** 2
    return v


def test_transforms_may_return_a_view_whose_base_has_changed():
    expected, tangent = [2.0, 1.0, 4.0], [1.0, 2.0, 1.0]
    assert gt.vjp(changed_after, X)[0].tolist() == expected
    assert gt.vjp(changed_after, X)[1](np.ones(3))[0].tolist() == [2, 1, 0, 1]
    out, pushed = gt.jvp(changed_after, (X,), (np.ones(4),))
    assert (out.tolist(), pushed.tolist()) == (expected, tangent)
    assert gt.vmap(changed_after)(np.stack([X, X])).tolist() == [expected] * 2


@pytest.mark.parametrize("end", [gt.clear_tape, lambda: None], ids=["clear", "exit"])
def test_a_view_whose_base_has_changed_can_be_read_after_recording(end):
    with gt.GradientContext():
        v = changed_after(gt.tensor(X, requires_grad=True))
        end()
    assert np.asarray(v).tolist() == v.tolist() == [2, 1, 4]


# ---- numbers ------------------------------------------------------------------------------------

TRANSFORMS = {
    "grad": lambda f, x: gt.value_and_grad(f)(x)[0],
    "jvp": lambda f, x: gt.jvp(f, (x,), (x * 0,))[0],
    "jit": lambda f, x: gt.jit(f)(x),
    "grad of jit": lambda f, x: gt.value_and_grad(gt.jit(f))(x)[0],
    "vmap": lambda f, x: gt.vmap(f)(np.array([x, x]))[1],
}


def steps(x):
    """A list of the values that a variable has had."""
    kept, speed = [], x * 2.0
    for _ in range(3):
        kept.append(x)
        x += speed
        speed -= 0.5
    return kept[0] + 10.0 * kept[1] + 100.0 * kept[2]


def results_in_an_array(x):
    state = np.array([x, x], object)
    total = x * 2.0
    state[1] = total
    total *= 5.0
    return state[0] * state[1]


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@pytest.mark.parametrize("program", [steps, results_in_an_array])
@pytest.mark.parametrize("x", [1.5, np.float64(1.5)], ids=["float", "NumPy number"])
def test_numbers_that_are_kept_do_not_change_with_the_name(program, transform, x):
    assert transform(program, x) == program(np.float64(x))


def test_derivatives_of_numbers_that_are_kept():
    gt.testing.check_grads(steps, (1.5,))
    gt.testing.check_grads(results_in_an_array, (1.5,))


def test_a_tape_keeps_numbers():
    with gt.GradientTape() as tape:
        x = tape.watch(1.5)
        y = steps(x)
    assert y.item() == steps(np.float64(1.5))
    assert tape.gradient(y, x).item() == 531.0


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_places_without_axes_are_written_to(transform):
    """Arrays and tensors without axes that a function makes, or is given, are no numbers."""

    def made(x):
        place = gt.zeros(())
        for each in (x, x, 1.0):
            alias = place
            alias += each
        alias[...] *= x
        alias -= x
        return place

    assert transform(made, 1.5) == 4.5

    def given(x):
        places = [np.array(1.0), gt.tensor(2.0), np.float64(3.0)]

        def change(places):
            for place in places:
                place += x
            return places[0] + 10.0 * places[1] + 100.0 * places[2]

        return gt.jvp(change, (places,), (places,))[0] * 1.0

    assert transform(given, 1.5) == 2.5 + 35.0 + 300.0


def test_parameters_without_axes_are_places():
    def step(params):
        for p in params:
            p -= 0.5 * p
        return params

    for kind in (np.array, gt.tensor):
        assert [float(p) for p in gt.jit(step)([kind(1.0), kind(4.0)])] == [0.5, 2.0]
    assert list(gt.jit(step)([1.0, np.float64(4.0)])) == [1.0, 4.0]


def test_compiled_forms_of_numbers_and_places():
    def steps_of(x):
        before = [x]
        x += 1.0
        return before[0] * x

    compiled = gt.jit(steps_of)
    for x, expected in [(np.array(1.5), 6.25), (1.5, 3.75), (np.float64(1.5), 3.75)]:
        assert compiled(x) == expected
        assert gt.value_and_grad(compiled)(x)[0] == expected
        assert gt.jit(lambda x: compiled(x) * 1.0)(x) == expected


def test_integers_that_are_kept_in_compiled_functions():
    def count(n):
        kept = []
        for _ in range(3):
            kept.append(n)
            n += 1
        return kept[0] + 10 * kept[1] + 100 * kept[2]

    for n in (2, np.int64(2), np.float64(2.0)):
        assert gt.jit(count)(n) == 432
    assert gt.vmap(count)(np.array([2, 3])).tolist() == [432, 543]


def test_numbers_in_transforms_and_loops_inside_of_others():
    def kept(x):
        before = [x]
        x += 1.0
        return before[0] * x

    def f(x):
        inner = [gt.vmap(kept)(x), gt.map(kept, x), gt.checkpoint(kept)(x[0])]
        carried, each = gt.scan(lambda c, i: (kept(c), c), x[1], None, length=2)
        return sum(map(np.sum, inner)) + gt.cond(True, kept, kept, carried) + np.sum(each)

    x = np.array([1.0, 2.0])
    assert gt.value_and_grad(f)(x)[0] == gt.jit(f)(x) == 2 * 8 + 2 + 42 * 43 + 8
    gt.testing.check_grads(f, (x,))


@pytest.mark.parametrize("around", [lambda f: f, gt.jit], ids=["eager", "compiled"])
def test_buffers_of_mapped_modules_are_places(around):
    class Counter(gt.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", gt.tensor([0.0, 0.0]))

        def forward(self, x):
            count = self.count
            count += x
            count += 1.0
            return x * 2.0

    mapped = around(gt.vmap(lambda module, x: (module(x), module)))
    _, counter = mapped(Counter(), np.array([3.0, 4.0]))
    assert counter.count.tolist() == [4.0, 5.0]
