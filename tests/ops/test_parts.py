"""What arrays have as views, copies and methods: split, flatten, real, imag, divmod and others."""

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.state import Mode
from gradtape.errors import GradtapeError

X = np.arange(6.0)


class Count(Mode):
    """Counts the ops that run."""

    kind = "observing"

    def __init__(self) -> None:
        self.names: list[str] = []

    def run(self, op: Any, args: Any, params: Any, below: Any) -> Any:
        self.names.append(op.name)
        return below(op, args, params)


SPLITS = {
    "two": lambda t: gt.split(t, 2),
    "one": lambda t: gt.split(t, 1),
    "places": lambda t: gt.split(t, [1, 4]),
    "back": lambda t: gt.split(t, [4, 2]),
    "unequal": lambda t: gt.array_split(t, 4),
    "chunk": lambda t: gt.chunk(t, 4),
}


def written(t: Any, parts: Any) -> Any:
    """Write to an array after it was split, then to a part of it."""
    first = parts[0]
    t[0] = 10.0
    t[-1] = t[1] * 3.0
    first += 1.0
    return np.concatenate([*parts, t])


@pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS.keys())
def test_parts_of_a_split_are_views(split):
    t, array = gt.tensor(X), X.copy()
    places = [int(part[0].item()) if part.size else 0 for part in split(gt.tensor(X))]
    sizes = [part.size for part in split(gt.tensor(X))]
    theirs = [array[i : i + n] for i, n in zip(places, sizes, strict=True)]
    np.testing.assert_array_equal(np.asarray(written(t, split(t))), written(array, theirs))

    def function(x):
        y = x * 1.0
        return written(y, split(y))

    gt.testing.check_grads(function, (X,))


def test_reading_parts_again_reads_one_slice_each():
    t = gt.tensor(np.arange(20.0), requires_grad=True) * 1.0
    parts = gt.split(t, 20)
    t[0] = 5.0
    with gt.using_mode(count := Count()):
        total = sum(part[0] for part in parts)
    assert total.item() == sum(range(20)) + 5
    assert "split" not in count.names


@pytest.mark.parametrize("order", ["C", "F"])
def test_flatten_is_a_copy(order):
    t = gt.tensor(X.reshape(2, 3))
    array = X.reshape(2, 3)
    flat = t.flatten(order)
    flat[0] = 9.0
    t[0, 1] = 7.0
    assert flat.tolist() == [9.0, *array.flatten(order).tolist()[1:]]
    assert t.tolist() == [[0, 7, 2], [3, 4, 5]]
    own = gt.flatten(array)
    assert not np.shares_memory(own, array)


@pytest.mark.parametrize("name", ["real", "imag"])
@pytest.mark.parametrize("dtype", [np.complex128, np.float64])
def test_complex_parts_follow_the_array_and_refuse_writes(name, dtype):
    t = gt.tensor(X.astype(dtype)) * 1
    part = getattr(t, name)
    t[0] = 5.0
    np.testing.assert_array_equal(np.asarray(part), getattr(np.asarray(t), name))
    with pytest.raises(GradtapeError, match=r"copy\(\)"):
        part[0] = 1.0
    with pytest.raises(GradtapeError, match=r"copy\(\)"):
        getattr(t, name)[0] = 1.0


def test_gradient_of_complex_parts():
    z = X + 1j * X[::-1]
    gt.testing.check_grads(lambda z: z.real * z.imag, (z,))
    gt.testing.check_grads(lambda x: x.real * x, (X,))


# ---- methods ------------------------------------------------------------------------------------

M = np.array([[1.25, -2.5, 3.0], [0.0, 5.75, -6.0]])


@pytest.mark.parametrize(
    "method",
    [
        lambda m: m.trace(),
        lambda m: m.diagonal(),
        lambda m: m.diagonal(1),
        lambda m: m.repeat(2, axis=1),
        lambda m: m.cumprod(axis=0),
        lambda m: m.nonzero()[0],
        lambda m: m.nonzero()[1],
        lambda m: divmod(m, 0.7)[0],
        lambda m: divmod(m, 0.7)[1],
        lambda m: divmod(7.0, m[:1])[0],
        lambda m: divmod(7.0, m[:1])[1],
    ],
)
def test_methods_arrays_have(method):
    out = method(gt.tensor(M))
    assert isinstance(out, gt.Tensor)
    np.testing.assert_array_equal(np.asarray(out), method(M))


def test_methods_arrays_do_not_have():
    t = gt.tensor(M)
    assert t.matmul(M.T).tolist() == (M @ M.T).tolist()
    assert t.norm().item() == np.linalg.norm(M)
    assert round(t).tolist() == np.round(M).tolist()
    assert round(t, 1).tolist() == np.round(M, 1).tolist()
