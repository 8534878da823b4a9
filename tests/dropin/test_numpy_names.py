"""`gradtape.numpy`: every name of NumPy; its own results for arrays, derivatives for tensors."""

from __future__ import annotations

import pickle
import subprocess
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradtape as gt
import gradtape.numpy as gnp
from gradtape.errors import ConversionError, GradtapeError, MissingNameError
from numpy_calls import CALLS, POINT, by_floats, call, flat, floats, slopes

# What a function that has no form for tensors may raise, besides errors of gradtape.
REFUSED = (TypeError, ValueError, IndexError, AttributeError)
# Functions that have no derivative by anything, though their values are numbers.
EXEMPT = {
    "np.can_cast": "it is about dtypes",
    "np.empty_like": "its elements are not set",
    **dict.fromkeys(
        ("np.isfortran", "np.may_share_memory", "np.shares_memory"), "it is about memory"
    ),
}
# The samples are where they jump, as at the edges of bins, or differences are too coarse.
JUMPS = {"np.frexp", "np.histogram", "np.histogram2d", "np.histogramdd", "np.astype"}


def names() -> Iterator[tuple[Any, Any, str]]:
    """Every public name of NumPy and its modules: the two modules that have it, and the name."""
    seen, pairs = set(), [(np, gnp)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while pairs:
            theirs, ours = pairs.pop()
            for name in dir(theirs):
                if name.startswith("_"):
                    continue
                yield theirs, ours, name
                value = getattr(theirs, name)
                below = isinstance(value, types.ModuleType) and value.__name__.startswith("numpy.")
                if below and value.__name__ not in seen and "tests" not in value.__name__:
                    seen.add(value.__name__)
                    pairs.append((value, getattr(ours, name)))


def test_every_name_is_there() -> None:
    count = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for theirs, ours, name in names():
            value, found = getattr(theirs, name), getattr(ours, name)
            assert callable(found) == callable(value), name
            if isinstance(value, type) and name != "vectorize":
                assert found is value, name
            elif not callable(value) and not isinstance(value, types.ModuleType):
                assert found is value or type(found).__name__ in ("_Joining", "_Grid"), name
            assert name in dir(ours)
            count += 1
    assert count > 1000


def function_of(name: str) -> Callable[..., Any]:
    """The function of ours: `np.linalg.det` is `gnp.linalg.det`."""
    found: Any = gnp
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


def assert_identical(got: Any, expected: Any) -> None:
    assert type(got) is type(expected)
    if isinstance(expected, np.ndarray | np.generic):
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        assert got.tobytes() == expected.tobytes()
    elif isinstance(expected, tuple | list):
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            assert_identical(one, other)
    elif isinstance(expected, int | float | complex | str | bool | None):
        assert got == expected or got != got


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_arrays_give_what_numpy_gives(name: str) -> None:
    if name == "np.empty_like":
        pytest.skip(EXEMPT[name])
    with np.errstate(all="ignore"):
        expected = call(name, POINT, floats)
        assert_identical(call(name, POINT, floats, function_of(name)), expected)
        if name in ("np.stack", "np.einsum", "np.sum", "np.linalg.norm", "np.fft.fft"):
            assert_identical(call(name, POINT, list, function_of(name)), call(name, POINT, list))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_tensors_and_lists_of_them(name: str, rng: np.random.Generator) -> None:
    if name in EXEMPT:
        pytest.skip(EXEMPT[name])
    direction = rng.normal(size=POINT.size)
    value, expected = by_floats(name, POINT), slopes(name, direction)
    bound = 1e-12 if name != "np.astype" else 1e-7  # to float32
    for make in (list, gt.asarray, gnp.array, np.array):
        try:
            got, slope = gt.jvp(
                lambda p, make=make: flat(call(name, p, make, function_of(name))),
                (POINT,),
                (direction,),
            )
        except (*REFUSED, GradtapeError):
            continue
        np.testing.assert_allclose(got, value, rtol=bound, atol=bound, err_msg=str(make))
        if name not in JUMPS:
            np.testing.assert_allclose(
                slope, expected, rtol=1e-5, atol=1e-6, err_msg=f"slope, {make}"
            )


def test_nearly_all_functions_take_lists_of_tensors() -> None:
    right = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in CALLS:
            try:
                function = function_of(name)
                gt.jvp(
                    lambda p, name=name, f=function: flat(call(name, p, list, f)),
                    (POINT,),
                    (POINT,),
                )
                right += 1
            except (*REFUSED, GradtapeError):
                pass
    assert right > 0.9 * len(CALLS), f"{right} of {len(CALLS)}"


# ---- arrays that are made -----------------------------------------------------------------------


def in_all_ways(f: Callable[[Any], Any], x: Any, expected: Any) -> None:
    """Check the Jacobian of a function in both modes, compiled and mapped."""
    for jacobian in (gt.jacrev(f), gt.jacfwd(f), gt.jit(gt.jacfwd(f)), gt.jit(gt.jacrev(f))):
        np.testing.assert_allclose(jacobian(x), expected, rtol=1e-12, atol=1e-14)
    mapped = gt.vmap(gt.jacrev(f))(np.stack([x, x]))
    np.testing.assert_allclose(mapped[1], expected, rtol=1e-12, atol=1e-14)


X = np.array([2.0, 3.0])


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda x: gnp.array([x[0], 1.0, x[1]]), [[1, 0], [0, 0], [0, 1]]),
        (lambda x: gnp.array([[x[0], 0.0], [1, x[1]]]).ravel(), [[1, 0], [0, 0], [0, 0], [0, 1]]),
        (lambda x: gnp.array([x, np.ones(2)])[0], [[1, 0], [0, 1]]),
        (lambda x: gnp.array((x[0] * x[1],), dtype=float), [[3, 2]]),
        (lambda x: gnp.array(x[0], ndmin=1), [[1, 0]]),
        (lambda x: gnp.asarray([x[0]] * 2), [[1, 0], [1, 0]]),
        (lambda x: gnp.asanyarray(x), [[1, 0], [0, 1]]),
        (lambda x: gnp.ascontiguousarray([x[1]]), [[0, 1]]),
        (lambda x: gnp.full(2, x[0] * x[1]), [[3, 2], [3, 2]]),
        (lambda x: gnp.full_like(np.ones(2), x[1]), [[0, 1], [0, 1]]),
        (lambda x: gnp.full((2,), [x[1], x[0]]), [[0, 1], [1, 0]]),
        (lambda x: gnp.copy([x[0], 2.0]), [[1, 0], [0, 0]]),
        (lambda x: gnp.r_[x[0], 0.0, x, 5:7], [[1, 0], [0, 0], [1, 0], [0, 1], [0, 0], [0, 0]]),
        (lambda x: gnp.r_["-1", x, x][2:], [[1, 0], [0, 1]]),
        (lambda x: gnp.c_[x, [1.0, x[0]]][1], [[0, 1], [1, 0]]),
        (lambda x: gnp.mgrid[0 : x[0] : 3j], [[0, 0], [0.5, 0], [1, 0]]),
        (lambda x: gnp.mgrid[0 : x[0] : 2j, 0 : x[1] : 2j][0].ravel(), [[0, 0]] * 2 + [[1, 0]] * 2),
        (lambda x: gnp.ogrid[0 : x[0] : 2j, 0:2][0].ravel(), [[0, 0], [1, 0]]),
        (lambda x: gnp.sum([x[0], x[1] * x[1]]), [1, 6]),
        (lambda x: gnp.append([1.0], x[1] ** 2), [[0, 0], [0, 6]]),
        (lambda x: gnp.append(x, [x[0]]), [[1, 0], [0, 1], [1, 0]]),
        (lambda x: gnp.fromfunction(lambda i: i * x[1], (2,)), [[0, 0], [0, 1]]),
        (lambda x: gnp.vectorize(lambda v: v * v)(x), [[4, 0], [0, 6]]),
        (lambda x: gnp.linspace(x[0], x[1], 3), [[1, 0], [0.5, 0.5], [0, 1]]),
        (lambda x: gnp.block([[x[0], x[1]], [1.0, 2.0]])[0], [[1, 0], [0, 1]]),
        (lambda x: gnp.where([True, False], [x[0], x[1]], 0.0), [[1, 0], [0, 0]]),
        (lambda x: gnp.dot([[x[0], 0.0], [0.0, x[1]]], [1.0, 2.0]), [[1, 0], [0, 2]]),
        (lambda x: gnp.maximum.reduce([x, [5.0, x[0]]]), [[0, 0], [0, 1]]),
        (lambda x: gnp.add.outer([x[0]], [1.0, x[1]]).ravel(), [[1, 0], [1, 1]]),
        (lambda x: gnp.linalg.solve([[x[0], 0.0], [0.0, 1.0]], [2.0, x[1]]), [[-0.5, 0], [0, 1]]),
        (lambda x: gnp.fft.fft([x[0], x[1]]).real, [[1, 1], [1, -1]]),
        (lambda x: gnp.concatenate([[x[0]], x, [1.0]]), [[1, 0], [1, 0], [0, 1], [0, 0]]),
        (lambda x: gnp.einsum("i,i->", [x[0], 1.0], x), [4, 1]),
    ],
)
def test_arrays_are_made_of_tensors(make: Callable[[Any], Any], expected: Any) -> None:
    in_all_ways(make, X, np.array(expected, float))


def filled(make: Callable[[], Any]) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        out = make()
        out[0] = x[0] * x[1]
        out[1:] += x[1]
        return out

    return f


@pytest.mark.parametrize(
    "make",
    [
        lambda: gnp.zeros(3),
        lambda: gnp.ones((3,)),
        lambda: gnp.full(3, 2.0),
        lambda: gnp.eye(3)[0],
        lambda: gnp.identity(3)[1],
        lambda: gnp.zeros_like(np.arange(3.0)),
        lambda: gnp.ones_like([1.0, 2.0, 3.0]),
        lambda: gnp.full_like(np.ones(3), 7.0),
    ],
)
def test_buffers_record_what_is_written(make: Callable[[], Any]) -> None:
    in_all_ways(filled(make), X, np.array([[3.0, 2.0], [0.0, 1.0], [0.0, 1.0]]))
    assert type(make()) is np.ndarray
    value = gt.jvp(filled(make), (X,), (X,))[0]
    assert type(value) is np.ndarray
    np.testing.assert_array_equal(value, filled(make)(X))


def test_buffers_of_loops_and_nested_transforms() -> None:
    def path(x: Any) -> Any:
        out = gnp.empty((4, 2))
        out[0] = x
        for i in range(3):
            out[i + 1] = gnp.array([out[i, 1], -out[i, 0] * x[0]])
        return out[3]

    expected = gt.jacfwd(lambda x: np.stack([-x[1] * x[0], x[0] * x[0] * x[0]]))(X)
    in_all_ways(path, X, expected)
    table = gt.jacfwd(gt.grad(lambda x: gnp.sum(filled(lambda: gnp.zeros(3))(x) ** 2)))(X)
    np.testing.assert_allclose(table, gt.hessian(lambda x: (x[0] * x[1]) ** 2 + 2 * x[1] ** 2)(X))
    total = gt.jit(
        lambda x: gt.fori_loop(0, 3, lambda i, s: s + filled(lambda: gnp.zeros(3))(x), np.zeros(3))
    )
    np.testing.assert_allclose(total(X), [18.0, 9.0, 9.0])


def test_under_tapes_and_contexts_buffers_are_numpys() -> None:
    with gt.GradientTape() as tape:
        x = tape.watch(2.0)
        assert type(gnp.zeros(2)) is np.ndarray
        with pytest.raises(ValueError, match="sequence") as caught:
            gnp.zeros(2)[0] = x
    assert isinstance(caught.value.__cause__, ConversionError)
    leaf = gt.tensor(2.0, requires_grad=True)
    with pytest.raises(ValueError, match="sequence") as caught:
        gnp.zeros(2)[0] = leaf * 2.0
    assert "import gradtape.numpy as np" in str(caught.value.__cause__)
    assert gnp.array([leaf, 1.0]).requires_grad
    gnp.sum(gnp.array([leaf * leaf, 1.0])).backward()
    assert leaf.grad is not None
    assert leaf.grad.item() == 4.0


def test_plain_results_keep_their_types() -> None:
    assert type(gnp.float64(1.0)) is np.float64
    assert type(gnp.sum(np.ones(3))) is np.float64
    assert gnp.array([1, 2]).dtype == np.int64
    assert gnp.array([None, "a"]).dtype == object
    assert gnp.zeros(2, dtype="U3").dtype == "U3"
    assert type(gnp.r_[1:3]) is np.ndarray
    assert gnp.array([gt.ones(())], dtype=object).dtype == object
    made = gt.grad(lambda x: (gnp.zeros(2, dtype=object).__setitem__(0, x), x)[1])(1.0)
    assert made == 1.0


def test_isscalar_of_tensors() -> None:
    assert gnp.isscalar(gt.ones(()))
    assert not gnp.isscalar(gt.ones(1))
    assert gnp.isscalar(1.0)


def test_ufuncs_keep_their_attributes() -> None:
    assert gnp.add.nin == 2
    assert gnp.add.identity == 0
    assert "add" in repr(gnp.add)
    assert gnp.add.reduce(np.ones(3)) == 3.0
    out = np.zeros(2)
    assert gnp.add(np.ones(2), 1.0, out=out) is out
    assert gnp.sin.__doc__


def test_functions_are_pickled_by_name() -> None:
    for function in (gnp.sum, gnp.linalg.norm, gnp.add, gnp.zeros):
        assert pickle.loads(pickle.dumps(function)) is function


def test_missing_names_and_help() -> None:
    with pytest.raises(MissingNameError, match="NumPy has no such name"):
        _ = gnp.no_such_name
    assert gnp.__doc__ is not None
    assert gnp.sum.__doc__ == np.sum.__doc__
    assert gt.numpy is gnp


def test_slices_whose_length_is_tracked_are_refused() -> None:
    with pytest.raises(GradtapeError, match="number of elements would depend"):
        gt.grad(lambda x: gnp.sum(gnp.mgrid[0:x]))(3.0)


def test_gradtape_is_imported_without_it() -> None:
    code = "import sys, gradtape; print([m for m in sys.modules if m.startswith('gradtape.numpy')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("function", "options", "args"),
    [
        (lambda a: 1.5 * a, {"otypes": [int]}, ([1.75, 2.0],)),
        (lambda a: 1.5 * a, {"otypes": "f"}, ([1.75, 2.0],)),
        (lambda a: (a, a * a), {"otypes": "di"}, ([1.75, 2.0],)),
        (lambda p, a: a * p[0] + p[1], {"excluded": [0]}, ([1.75, 2.0], [3.0, 4.0, 5.0])),
        (lambda a: 1.5 * a, {"cache": True}, ([1.75, 2.0],)),
    ],
)
def test_vectorize_heeds_its_options(function: Any, options: Any, args: Any) -> None:
    expected = np.vectorize(function, **options)(*map(np.array, args))
    got = gnp.vectorize(function, **options)(*map(gt.tensor, args))
    for one, other in zip(
        got if isinstance(got, tuple) else (got,),
        expected if isinstance(expected, tuple) else (expected,),
        strict=True,
    ):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(np.asarray(one), other)


def test_vectorize_heeds_excluded_names() -> None:
    split = gnp.vectorize(lambda p, a: a * p[0] + p[1], excluded={"p"})
    got = gt.grad(lambda x: split(p=x, a=[1.0, 2.0]).sum())(np.array([1.75, 2.0]))
    np.testing.assert_array_equal(got, [3.0, 2.0])


def test_arrays_filled_with_a_tensor_can_be_written_to() -> None:
    def f(x: Any, make: Any) -> Any:
        made = make(x)
        made[1] = 5.0 * x[1]
        return np.sum(made)

    for make in (lambda x: gnp.full_like(x, x[0]), lambda x: gnp.full(2, x[0])):
        got = gt.grad(lambda x, make=make: f(x, make))(np.array([1.75, 2.0]))
        np.testing.assert_array_equal(got, [1.0, 5.0])


def test_views_without_arguments() -> None:
    def f(x: Any) -> Any:
        buffer = gnp.zeros((2, 2))
        buffer.view()[0] = x
        return gnp.sum(buffer * 2.0)

    np.testing.assert_array_equal(gt.grad(f)(np.array([1.75, 2.0])), [2.0, 2.0])
