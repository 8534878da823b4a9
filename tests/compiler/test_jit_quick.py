"""`gt.jit`: calls that native code takes though they are not plain arrays by position."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.compiler import jit as jit_module
from jitcheck import Counted

# ---- numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [3.0, -0.0, np.inf, 7, -(2**62), 2**63 - 1])
def test_numbers_in_numbers_out(direct: Any, x: Any) -> None:
    compiled = gt.jit(Counted(lambda x: (x + 0, [x * 0.5, {"z": x * 1.0}], x - 1)))
    for _ in range(3):
        got = compiled(x)
        assert direct(compiled.__call__)
        assert repr(got) == repr((x + 0, [x * 0.5, {"z": x * 1.0}], x - 1))
    assert compiled.__wrapped__.count == 1


def test_complex_numbers_out(direct: Any) -> None:
    compiled = gt.jit(lambda x: (x + 1j) * x)
    assert [repr(compiled(x)) for x in (2.0, -3.0)] == [repr((x + 1j) * x) for x in (2.0, -3.0)]


def test_numbers_beside_arrays_stay_weak(direct: Any) -> None:
    x = np.ones(3, np.float32)
    compiled = gt.jit(lambda x, n: (x * n, n + 1))
    for n in (2.0, 3.0, 4.0):
        got, number = compiled(x, n)
        assert direct(compiled.__call__)
        assert got.dtype == np.float32
        assert (got.tolist(), repr(number)) == ([n] * 3, repr(n + 1))


# ---- keywords, arrays out of order, forms in turn -----------------------------------------------


class Watched:
    """Counts how often the arguments of a compiled function are taken apart in Python."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        original = jit_module.arguments

        def arguments(*args: Any) -> Any:
            self.count += 1
            return original(*args)

        monkeypatch.setattr(jit_module, "arguments", arguments)


@pytest.fixture
def taken_apart(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


def test_keywords_in_any_order(direct: Any, taken_apart: Watched) -> None:
    compiled = gt.jit(lambda x, *, b, a, **more: (x - b * a, [y + 1 for y in more.values()]))
    x, a, b = np.arange(3.0), np.ones(3), np.full(3, 2.0)
    for n in range(3):
        for more in ({"z": a, "c": b + n}, {"c": a, "z": b + n}):
            for got, others in (
                compiled(x, b=b, a=a * 3, **more),
                compiled(a=a * 3, x=x, **more, b=b),
            ):
                np.testing.assert_array_equal(got, x - 6)
                np.testing.assert_array_equal(others, [a + 1, b + n + 1])
    assert taken_apart.count == 4


def test_static_keywords(direct: Any, taken_apart: Watched) -> None:
    compiled = gt.jit(Counted(lambda x, n=1: x * n), static_argnames="n")
    for _ in range(3):
        for n in (2, 2.0, 3):
            got = compiled(np.ones(2, np.int64), n=n)
            assert (got.tolist(), got.dtype) == ([n, n], np.asarray(n).dtype)
    assert compiled.__wrapped__.count == taken_apart.count == 3


@pytest.mark.parametrize(
    "x",
    [
        np.arange(12.0).reshape(3, 4).T,
        np.arange(24.0).reshape(4, 6)[:, ::2],
        np.arange(12.0)[::-1].reshape(4, 3)[::-1],
        np.broadcast_to(np.arange(3.0), (4, 3)),
        np.frombuffer(b"x" + np.arange(12.0).tobytes(), np.float64, offset=1).reshape(4, 3),
    ],
)
def test_arrays_whose_elements_lie_otherwise(direct: Any, taken_apart: Watched, x: Any) -> None:
    compiled, y = gt.jit(lambda x, n: x * n), x.copy()
    for n in (1.0, 2.0, 3.0):
        np.testing.assert_array_equal(compiled(x, n), x * n)
        np.testing.assert_array_equal(compiled(y, n), x * n)
    assert taken_apart.count == 1
    assert not np.shares_memory(compiled(x, 1.0), x)


def test_forms_in_turn(direct: Any, taken_apart: Watched) -> None:
    compiled = gt.jit(lambda x: x * 2)
    given = [np.ones(n) for n in range(1, 7)] + [1, 2.5]
    for _ in range(3):
        for x in given:
            np.testing.assert_array_equal(compiled(x), x * 2)
            assert type(compiled(x)) is type(x * 2)
    assert taken_apart.count == len(given)


def test_more_forms_than_are_asked_in_turn(direct: Any) -> None:
    compiled = gt.jit(Counted(lambda x, **more: x * 2))
    for _ in range(2):
        for n in range(12):
            np.testing.assert_array_equal(compiled(np.ones(n)), np.full(n, 2.0))
        for n in range(20):
            assert compiled(1.0, **{f"name{n}": 3.0}) == 2.0
    assert compiled.__wrapped__.count == 32


def test_captured_arrays_are_read_at_each_call(direct: Any, taken_apart: Watched) -> None:
    outside = np.ones(3)
    compiled = gt.jit(lambda *, x: x + outside)
    for n in range(3):
        outside[:] = n
        assert compiled(x=np.zeros(6)[::2]).tolist() == [n] * 3
    assert taken_apart.count == 1
    outside.resize(1, refcheck=False)
    outside[:] = 7
    assert compiled(x=np.zeros(6)[::2]).tolist() == [7] * 3


def test_errors_are_those_of_the_first_call(direct: Any) -> None:
    compiled = gt.jit(lambda x: x * 2)
    compiled(np.ones(3))
    for bad in ("text", np.array(["a"]), 2**70):
        with pytest.raises(gt.errors.GradtapeError, match="jit: argument 0 is"):
            compiled(bad)


# ---- tensors ------------------------------------------------------------------------------------


def loss(x: Any, y: Any) -> Any:
    return np.sum(np.sin(x) * y)


def test_tracked_calls(direct: Any, taken_apart: Watched) -> None:
    compiled = gt.jit(loss)
    for n in range(4):
        values = np.arange(3.0) + n
        x, y = gt.tensor(values, requires_grad=True), gt.tensor(values, requires_grad=True)
        for args in ((x, y), (x, values), (values, y), (x * 2.0, y), (x, x.detach())):
            grads = []
            for function in (compiled, loss):
                for leaf in (x, y):
                    leaf.grad = None
                out = function(*args)
                assert type(out) is gt.Tensor
                out.backward()
                grads.append([None if t.grad is None else np.asarray(t.grad) for t in (x, y)])
            for got, wanted in zip(*grads, strict=True):
                assert (got is None) == (wanted is None)
                if wanted is not None:
                    np.testing.assert_allclose(got, wanted, rtol=1e-13)
    assert taken_apart.count <= 2  # with a tracked argument, and once for the derivative


def test_untracked_tensors(direct: Any, taken_apart: Watched) -> None:
    compiled = gt.jit(lambda x, n: {"a": x * n, "b": n + 1, "c": x > 1})
    for n in (2.0, 3.0, 4.0):
        got = compiled(gt.tensor([1.0, 2.0]), n)
        assert [type(each) for each in got.values()] == [gt.Tensor, float, gt.Tensor]
        assert (got["a"].tolist(), got["b"]) == ([n, 2 * n], n + 1)
        assert not got["a"].requires_grad
    assert taken_apart.count == 1


def test_only_what_depends_on_tracked_arguments_is_recorded(direct: Any) -> None:
    compiled = gt.jit(lambda x, y, n: (x * n, y * 2.0, x > 0.0, n + 1.0))
    x, y = gt.ones(3, requires_grad=True), gt.ones(3)
    first, *others = [compiled(x, y, n) for n in (2.0, 2.0, 2.0)]
    for other in others:
        for one, two in zip(first, other, strict=True):
            assert type(one) is type(two) is gt.Tensor
            assert type(one.value) is type(two.value)
            assert one.requires_grad is two.requires_grad
            np.testing.assert_array_equal(one.value, two.value)
    assert [out.requires_grad for out in first] == [True, False, False, False]


def test_recording_is_off_where_it_is_off(direct: Any) -> None:
    compiled = gt.jit(lambda x: x * x)
    x = gt.ones(3, requires_grad=True)
    compiled(x)
    assert compiled(x).requires_grad
    with gt.no_grad():
        assert not compiled(x).requires_grad
        assert type(compiled(x)) is gt.Tensor
    gradient = gt.grad(lambda x: np.sum(compiled(x)))
    for n in (1.0, 2.0):
        np.testing.assert_array_equal(gradient(np.full(3, n)), np.full(3, 2 * n))
        np.testing.assert_array_equal(
            gt.grad(lambda x: np.sum(gradient(x) ** 2))(np.full(3, n)), np.full(3, 8 * n)
        )
    with gt.GradientContext():
        y = compiled(x)
    with pytest.raises(gt.errors.ContextError):
        compiled(y)


def test_views_and_scalars_of_tensors(direct: Any, taken_apart: Watched) -> None:
    compiled = gt.jit(lambda x: x * x)
    x = gt.tensor(np.arange(12.0).reshape(3, 4), requires_grad=True)
    for part in (x[1], x.T, x[1, 2], np.sum(x)):
        for _ in range(3):
            x.grad = None
            np.sum(compiled(part)).backward()
            once = np.asarray(x.grad)
            x.grad = None
            np.sum(part * part).backward()
            np.testing.assert_allclose(once, np.asarray(x.grad))
    assert taken_apart.count == 3  # scalars and sums are of one form


def test_modes_see_tracked_calls(direct: Any) -> None:
    class Names:
        kind = "observing"

        def __init__(self) -> None:
            self.seen: list[str] = []

        def run(self, op: Any, args: Any, params: Any, proceed: Any) -> Any:
            self.seen.append(op.name)
            return proceed(op, args, params)

    def square(x: Any) -> Any:
        return x * x

    compiled, names = gt.jit(square), Names()
    x = gt.ones(3, requires_grad=True)
    for _ in range(3):
        compiled(x)
    with gt.using_mode(names):
        compiled(x)
    assert names.seen == ["square"]


def test_threads_call_in_many_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit_module, "_MOST_FORMS", 3)
    compiled, errors = gt.jit(lambda x, y=1.0: x * y), []

    def work(first: int) -> None:
        try:
            for n in range(12):
                x = np.full((first + n) % 5 + 1, float(n))
                np.testing.assert_array_equal(compiled(x, y=2.0), x * 2.0)
                np.testing.assert_array_equal(compiled(x), x)
                tracked = gt.tensor(x, requires_grad=True)
                np.sum(compiled(tracked, y=3.0)).backward()
                np.testing.assert_array_equal(np.asarray(tracked.grad), np.full(x.shape, 3.0))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
