"""Making tensors, and the names of dtypes."""

import subprocess
import sys

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError, ConversionError, DTypeError, ShapeError

DTYPES = [
    *("float16", "float32", "float64", "bfloat16", "complex64", "complex128", "bool_"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
]


@pytest.mark.parametrize("name", DTYPES)
def test_dtype_names(name):
    dtype = getattr(gt, name)
    x = gt.zeros(2, dtype=dtype)
    assert x.dtype == dtype
    assert dtype == x.dtype
    assert x.dtype.name == name.rstrip("_")
    assert gt.tensor([1, 0], dtype=dtype).dtype == gt.ones(2, dtype).dtype == dtype


def test_import_loads_neither_ml_dtypes_nor_generators():
    code = (
        "import sys, gradtape as gt;"
        "assert not {'ml_dtypes', 'numpy.random'} & sys.modules.keys();"
        "assert gt.zeros(2, gt.bfloat16).dtype == gt.bfloat16"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_name_of_the_package():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = gt.no_such_name
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = gt.dtypes.no_such_name


# ---- from data ----


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1.0, np.float64),
        (1, np.int64),
        (True, np.bool_),
        (1j, np.complex128),
        ([[1.0, 2], [3, 4]], np.float64),
        ((), np.float64),
        (range(3), np.int64),
        (np.float32(2), np.float32),
        (np.ones((2, 3), np.float32), np.float32),
    ],
)
def test_tensor_as_numpy(data, dtype):
    x = gt.tensor(data)
    assert type(x) is gt.Tensor
    assert not x.requires_grad
    assert x.dtype == dtype
    np.testing.assert_array_equal(x, np.array(data))


def test_tensor_copies_and_asarray_does_not():
    array = np.zeros(3)
    copied, shared = gt.tensor(array), gt.asarray(array)
    array[0] = 1
    assert copied.tolist() == [0, 0, 0]
    assert shared.tolist() == [1, 0, 0]
    assert gt.asarray(array, copy=True).value is not array
    assert gt.asarray(shared) is shared
    assert gt.asarray(shared, copy=True).value is not shared.value


def test_tensor_of_a_tensor_without_history():
    x = gt.ones(2)
    y = gt.tensor(x, dtype=gt.float32)
    assert y.dtype == gt.float32
    x[0] = 5.0
    np.testing.assert_array_equal(y, [1, 1])


def test_tensor_refuses_to_lose_history():
    x = gt.ones(2, requires_grad=True)
    for tracked in (x, x * 2):
        with pytest.raises(ConversionError, match=r"gt\.copy"):
            gt.tensor(tracked)
    with pytest.raises(ConversionError, match=r"gt\.copy"):
        gt.grad(lambda x: gt.sum(gt.tensor(x)))(np.ones(2))
    with gt.no_grad():
        assert not gt.tensor(x).requires_grad
    assert gt.tensor((x * 2).detach(), requires_grad=True).is_leaf


def test_asarray_keeps_history():
    gradient = gt.grad(lambda x: gt.sum(gt.asarray(x, gt.float32) ** 2))(np.array([1.0, 2.0]))
    np.testing.assert_array_equal(gradient, [2, 4])
    with pytest.raises(ArgumentError, match="needs a copy"):
        gt.asarray(gt.ones(2), gt.float32, copy=False)


@pytest.mark.parametrize("make", [gt.tensor, gt.array, gt.asarray])
def test_lists_of_tensors(make):
    for data in ([gt.ones(2), 1.0], [[1.0], [gt.ones(1)]]):
        with pytest.raises(ShapeError, match="in a list, expected one shape for all"):
            make(data)
    with pytest.raises(ShapeError, match="lists of different lengths"):
        make([[gt.ones(())], [1.0, 2.0]])
    assert make((gt.ones(()),)).shape == (1,)
    assert make([[gt.ones(()), 2], [3.0, 4.0]], dtype=gt.float32).dtype == gt.float32
    assert gt.grad(lambda x: gt.sum(make([x, [x * x, 1.0][0]])))(3.0) == 7.0


def test_a_tensor_of_tensors_as_a_leaf():
    x = gt.tensor([gt.ones(()), 2.0], requires_grad=True)
    gt.sum(x * x).backward()
    np.testing.assert_array_equal(x.grad, [2.0, 4.0])


def test_array_copies_and_keeps_history():
    x = gt.ones(2, requires_grad=True)
    made = gt.array(x)
    assert made is not x
    gt.sum(made * 3.0).backward()
    np.testing.assert_array_equal(x.grad, [3.0, 3.0])


def test_asarray_stacks_tensors_with_their_history():
    def f(x):
        return gt.sum(gt.asarray([[x[0], 2.0], (x[1], x[0])]) * np.array([[1.0, 5.0], [7.0, 9.0]]))

    np.testing.assert_array_equal(gt.grad(f)(np.array([1.0, 2.0])), [10, 7])
    assert gt.asarray([gt.tensor(1), gt.tensor(2.0)], gt.float32).dtype == gt.float32


@pytest.mark.parametrize(
    ("data", "error"),
    [("text", DTypeError), ([[1], [1, 2]], ShapeError), (None, DTypeError), ({1}, DTypeError)],
)
def test_data_that_is_not_numbers(data, error):
    with pytest.raises(error, match="tensor: "):
        gt.tensor(data)


def test_requires_grad():
    makers = [gt.zeros, gt.ones, gt.empty, gt.rand, gt.randn, gt.eye, gt.identity]
    for make in makers:
        assert make(3, requires_grad=True).is_leaf
        assert make(3, requires_grad=True).requires_grad
    assert gt.tensor([1.0], requires_grad=True).requires_grad
    assert gt.full(2, 1.0, requires_grad=True).requires_grad
    assert gt.linspace(0, 1, requires_grad=True).requires_grad
    assert gt.arange(3.0, requires_grad=True).requires_grad
    with pytest.raises(DTypeError, match="floating"):
        gt.tensor([1, 2], requires_grad=True)
    with pytest.raises(DTypeError, match="floating"):
        gt.arange(3, requires_grad=True)


# ---- filled and counted ----


@pytest.mark.parametrize(
    ("make", "reference", "args", "options"),
    [
        (gt.zeros, np.zeros, ((2, 3),), {}),
        (gt.zeros, np.zeros, (3, np.int32), {}),
        (gt.zeros, np.zeros, ((),), {}),
        (gt.zeros, np.zeros, ([0, 2],), {}),
        (gt.ones, np.ones, (np.int64(3),), {"dtype": np.float32}),
        (gt.full, np.full, ((2, 2), 3), {}),
        (gt.full, np.full, (2, 3.5), {"dtype": np.int64}),
        (gt.full, np.full, ((2, 2), np.array([1.0, 2.0])), {}),
        (gt.eye, np.eye, (3,), {}),
        (gt.eye, np.eye, (2, 3, 1), {"dtype": np.float32}),
        (gt.identity, np.identity, (3, np.int8), {}),
        (gt.arange, np.arange, (5,), {}),
        (gt.arange, np.arange, (5.5,), {}),
        (gt.arange, np.arange, (5, 1, -2), {}),
        (gt.arange, np.arange, (5,), {"step": 2}),
        (gt.arange, np.arange, (1, 4), {"dtype": np.float32}),
        (gt.linspace, np.linspace, (0, 1), {}),
        (gt.linspace, np.linspace, (1, 2, 0), {}),
        (gt.linspace, np.linspace, (1, 2, 3), {"endpoint": False, "dtype": np.float32}),
        (gt.linspace, np.linspace, (np.zeros(2), np.ones(2), 3), {"axis": 1}),
    ],
)
def test_made_as_numpy_makes_it(make, reference, args, options):
    made, expected = make(*args, **options), reference(*args, **options)
    assert type(made) is gt.Tensor
    assert made.dtype == expected.dtype
    np.testing.assert_array_equal(made, expected)


def test_empty():
    assert gt.empty((2, 0, 3), gt.float32).shape == (2, 0, 3)


def test_numpy_makes_tensors_like_tensors():
    like = gt.ones(2)
    for make in (np.zeros, np.ones, np.empty, np.eye, np.identity, np.arange):
        assert isinstance(make(3, like=like), gt.Tensor)
    assert isinstance(np.full(3, 2.0, like=like), gt.Tensor)
    assert isinstance(np.asarray([1.0], like=like), gt.Tensor)


def test_full_is_differentiable_in_the_value():
    f = lambda x: gt.sum(gt.full((2, 3), x) * np.arange(3.0))  # noqa: E731
    assert gt.grad(f)(2.0) == 6
    assert gt.full(3, gt.tensor(2.0)).value.flags.writeable


def test_numpy_full_raises_rather_than_drops_history():
    for make in (
        lambda x: np.full(3, x, dtype=np.float64),
        lambda x: np.full((3, 2), gt.stack([x, x])),
        lambda x: np.copyto(np.zeros(3), x),
    ):
        with pytest.raises(ConversionError, match="history would be lost"):
            gt.grad(lambda x, make=make: gt.sum(make(x)))(2.0)
    assert gt.grad(lambda x: gt.sum(np.full(3, x)))(2.0) == 3.0  # an array of tracked numbers


def test_copyto():
    x = gt.tensor([1.0, 2.0])
    np.copyto(x, np.array([3.0, 4.0]))
    np.testing.assert_array_equal(x, [3, 4])
    array = np.zeros(2)
    np.copyto(array, x, where=np.array([True, False]))
    np.testing.assert_array_equal(array, [3, 0])


@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("axis", [0, -1])
def test_linspace_of_tensors(endpoint, axis):
    start, stop = np.array([0.0, 1.0]), np.array(3.0)
    options = {"num": 4, "endpoint": endpoint, "axis": axis}
    got = gt.linspace(gt.tensor(start), stop, **options)
    np.testing.assert_allclose(got, np.linspace(start, stop, **options), rtol=1e-15)
    f = lambda a, b: np.sum(np.linspace(a, b, **options) ** 2)  # noqa: E731
    gt.testing.check_grads(f, (start, stop), order=2)


@pytest.mark.parametrize("endpoint", [True, False])
def test_linspace_with_its_step(endpoint):
    for start in (1.0, gt.tensor(1.0)):
        numbers, step = gt.linspace(start, 3, 5, endpoint, True)
        expected = np.linspace(1, 3, 5, endpoint, True)
        np.testing.assert_allclose(numbers, expected[0])
        assert step.item() == expected[1]


def test_linspace_keeps_float32():
    start = gt.tensor(0.0, dtype=gt.float32)
    for stop in (1, 1.0, np.float32(1)):
        assert gt.linspace(start, stop, 3).dtype == gt.float32
    assert gt.linspace(start, np.float64(1), 3).dtype == gt.float64
    assert gt.linspace(start, np.float64(1), 3, dtype=gt.float32).dtype == gt.float32
    assert gt.linspace(gt.tensor(0), 2, 3).dtype == gt.float64


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: gt.zeros(-1), ShapeError, "negative"),
        (lambda: gt.zeros(2.5), ShapeError, "tuple of integers"),
        (lambda: gt.zeros("ab"), ShapeError, "tuple of integers"),
        (lambda: gt.zeros(2, 3), DTypeError, r"one tuple: \(2, 3\)"),
        (lambda: gt.ones(2, "nothing"), DTypeError, "nothing"),
        (lambda: gt.eye(-2), ShapeError, "negative"),
        (lambda: gt.full(2, np.ones(3)), ShapeError, "broadcast"),
        (lambda: gt.arange(1, 5, 0), ArgumentError, "arange"),
        (lambda: gt.linspace(0, 1, -1), ArgumentError, "num=-1"),
        (lambda: gt.arange(gt.ones((), requires_grad=True)), ConversionError, "linspace"),
    ],
)
def test_bad_arguments(make, error, match):
    with pytest.raises(error, match=match):
        make()
