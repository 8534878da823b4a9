"""The Python Array API standard: what other libraries ask before they compute with tensors.

The consortium's own suite runs with `make test-array-api`; this is what has to hold everywhere.
"""

import inspect

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError, ConversionError, DTypeError, UnsupportedError

# Signatures of the standard that are not NumPy's, or that people write with keywords.
SIGNATURES = {
    "arange": "start, /, stop, step, *, dtype, device",
    "asarray": "obj, /, *, dtype, device, copy",
    "astype": "x, dtype, /, *, copy, device",
    "clip": "x, /, min, max",
    "empty_like": "x, /, *, dtype, device",
    "eye": "n_rows, n_cols, /, *, k, dtype, device",
    "from_dlpack": "x, /, *, device, copy",
    "full": "shape, fill_value, *, dtype, device",
    "full_like": "x, /, fill_value, *, dtype, device",
    "linspace": "start, stop, /, num, *, dtype, device, endpoint",
    "ones": "shape, *, dtype, device",
    "std": "x, /, *, axis, correction, keepdims",
    "sum": "x, /, *, axis, dtype, keepdims",
    "take": "x, indices, /, *, axis",
    "var": "x, /, *, axis, correction, keepdims",
    "zeros": "shape, *, dtype, device",
    "can_cast": "from_, to, /",
    "finfo": "type, /",
    "iinfo": "type, /",
    "isdtype": "dtype, kind",
    "result_type": "",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name):
    own = inspect.signature(getattr(gt, name)).parameters
    by_position, _, by_name = SIGNATURES[name].partition("*, ")
    only, slash, both = by_position.partition("/")
    only, both = (only, both) if slash else ("", only)
    names = list(own)
    count = len([part for part in only.split(",") if part.strip()])
    for place, part in enumerate(p.strip() for p in both.split(",") if p.strip()):
        assert names[count + place] == part
        assert own[part].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    for part in filter(None, by_name.split(", ")):
        assert own[part].kind is not inspect.Parameter.POSITIONAL_ONLY


# ---- the namespace ------------------------------------------------------------------------------


def test_namespace():
    for x in (gt.ones(2), gt.ones(2, requires_grad=True)[0:1]):
        assert x.__array_namespace__() is gt
        assert x.__array_namespace__(api_version="2022.12") is gt
        assert gt.grad(lambda x: x.__array_namespace__().sum(x))(np.ones(2)).tolist() == [1, 1]
    with pytest.raises(ArgumentError, match=r"api_version='1999\.12'"):
        gt.ones(2).__array_namespace__(api_version="1999.12")
    assert gt.__array_api_version__ == "2024.12"


def test_info():
    info = gt.__array_namespace_info__()
    assert info.capabilities() == {
        "boolean indexing": True,
        "data-dependent shapes": True,
        "max dimensions": 64,
    }
    assert info.default_device() in info.devices()
    assert info.default_dtypes()["real floating"] == np.float64
    assert set(info.dtypes(kind="real floating")) == {"float32", "float64"}
    assert len(info.dtypes()) == 13
    assert set(info.dtypes(kind=("bool", "complex floating"))) == {
        "bool",
        "complex64",
        "complex128",
    }
    with pytest.raises(ArgumentError, match="device 'tpu'"):
        info.dtypes(device="tpu")


def test_constants():
    assert (gt.e, gt.pi, gt.inf, gt.newaxis) == (np.e, np.pi, np.inf, None)
    assert np.isnan(gt.nan)
    assert gt.bool is np.bool_


# ---- dtypes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_finfo(dtype):
    for given in (dtype, getattr(gt, dtype), np.dtype(dtype), gt.ones(2, dtype=dtype)):
        info, expected = gt.finfo(given), np.finfo(dtype)
        assert type(info.eps) is type(info.max) is type(info.smallest_normal) is float
        assert (info.bits, info.dtype, info.eps) == (expected.bits, expected.dtype, expected.eps)
        assert info.resolution == expected.resolution  # as NumPy has it
        assert f"dtype={expected.dtype}" in repr(info)
    x = gt.ones(2, dtype=np.float32)
    assert (x + gt.finfo(x).eps).dtype == np.float32


def test_iinfo():
    assert gt.iinfo(gt.int8).max == 127
    assert gt.iinfo(gt.zeros(2, dtype=gt.uint16)).dtype == np.uint16
    with pytest.raises(DTypeError, match=r"iinfo: got float64.*finfo"):
        gt.iinfo(gt.float64)
    with pytest.raises(DTypeError, match=r"finfo: got int64.*iinfo"):
        gt.finfo(gt.int64)
    with pytest.raises(DTypeError, match="finfo: got 'nonsense'"):
        gt.finfo("nonsense")


def test_isdtype():
    assert gt.isdtype(gt.int8, ("bool", "signed integer"))
    assert gt.isdtype(np.dtype(np.uint8), gt.uint8)
    assert not gt.isdtype(gt.complex64, "real floating")
    with pytest.raises(ArgumentError, match="kind 'float'"):
        gt.isdtype(gt.float32, "float")


def test_result_type():
    assert gt.result_type(gt.ones(2, dtype=np.float32), 2.0) == np.float32
    assert gt.result_type(gt.int8, 1j) == np.complex128
    assert np.result_type(gt.ones(2), np.float32) == np.float64
    assert np.can_cast(gt.ones(2, dtype=np.float32), np.float64)
    assert gt.can_cast(gt.float64, gt.float32, casting="same_kind")
    with pytest.raises(ArgumentError, match="got nothing"):
        gt.result_type()


# ---- devices ------------------------------------------------------------------------------------

MAKERS = {
    "arange": lambda **options: gt.arange(3, **options),
    "asarray": lambda **options: gt.asarray([1.0], **options),
    "astype": lambda **options: gt.astype(gt.ones(2), gt.float32, **options),
    "empty": lambda **options: gt.empty(2, **options),
    "empty_like": lambda **options: gt.empty_like(gt.ones(2), **options),
    "eye": lambda **options: gt.eye(2, **options),
    "from_dlpack": lambda **options: gt.from_dlpack(np.ones(2), **options),
    "full": lambda **options: gt.full(2, 1.0, **options),
    "full_like": lambda **options: gt.full_like(gt.ones(2), 1.0, **options),
    "identity": lambda **options: gt.identity(2, **options),
    "linspace": lambda **options: gt.linspace(0, 1, 3, **options),
    "ones": lambda **options: gt.ones(2, **options),
    "ones_like": lambda **options: gt.ones_like(gt.ones(2), **options),
    "zeros": lambda **options: gt.zeros(2, **options),
    "zeros_like": lambda **options: gt.zeros_like(gt.ones(2), **options),
}


@pytest.mark.parametrize("name", MAKERS)
def test_devices(name):
    made = MAKERS[name](device="cpu")
    assert made.device == "cpu"
    assert made.to_device("cpu") is made
    assert MAKERS[name](device=made.device).shape == made.shape
    with pytest.raises(ArgumentError, match="device 'tpu'"):
        MAKERS[name](device="tpu")


def test_moving_is_refused():
    with pytest.raises(UnsupportedError, match="to_device: got 'cuda:0'"):
        gt.ones(2).to_device("cuda:0")


# ---- DLPack -------------------------------------------------------------------------------------


def test_dlpack_out():
    x = gt.tensor([1.0, 2.0])
    assert x.__dlpack_device__() == (1, 0)
    array = np.from_dlpack(x)
    np.testing.assert_array_equal(array, [1, 2])
    x[0] = 9.0  # gives the tensor another array
    np.testing.assert_array_equal(array, [1, 2])
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 3.0
    with pytest.raises(ConversionError, match="dl_device"):
        x.__dlpack__(dl_device=(2, 0))


def test_dlpack_of_what_is_recorded_is_refused():
    x = gt.ones(2, requires_grad=True)
    for tensor in (x, x * 2):
        with pytest.raises(ConversionError, match=r"detach\(\) first"):
            np.from_dlpack(tensor)
        with pytest.raises(ConversionError, match=r"gt\.asarray keeps"):
            gt.from_dlpack(tensor)
        np.testing.assert_array_equal(np.from_dlpack(tensor.detach()), tensor.detach().numpy())


class OldConsumer:
    """Speaks DLPack before 1.0: cannot be told that it may not write."""

    def __init__(self, tensor, **options):
        self.capsule = tensor.__dlpack__(**options)

    def __dlpack__(self, **options):
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


def test_an_old_consumer_gets_a_copy_unless_it_insists():
    x = gt.tensor([1.0, 2.0])
    assert not np.shares_memory(np.from_dlpack(OldConsumer(x)), x.numpy())
    assert np.shares_memory(np.from_dlpack(OldConsumer(x, copy=False)), x.numpy())
    assert not np.shares_memory(np.from_dlpack(OldConsumer(x, copy=True)), x.numpy())


def test_dlpack_in():
    array = np.arange(3.0)
    assert np.shares_memory(gt.from_dlpack(array).numpy(), array)
    assert not np.shares_memory(gt.from_dlpack(array, copy=True).numpy(), array)
    x = gt.tensor([1, 2])
    assert gt.from_dlpack(x).tolist() == [1, 2]
    with pytest.raises(ArgumentError, match="does not speak DLPack"):
        gt.from_dlpack([1.0])


def test_dlpack_has_no_bfloat16_here():
    with pytest.raises(ConversionError, match=r"bfloat16.*astype\(gt\.float32\)"):
        gt.ones(2, dtype=gt.bfloat16).__dlpack__()


# ---- numbers and operators ----------------------------------------------------------------------


def test_conversions():
    assert complex(gt.tensor(2.0)) == 2
    assert [10, 20, 30][gt.tensor(1)] == 20
    assert bool(gt.tensor(1.0)) is True
    assert float(gt.tensor(1)) == 1
    assert int(gt.tensor(2.7)) == 2
    with pytest.raises(ConversionError):
        float(gt.tensor(1.0, requires_grad=True))


def test_shifts():
    x = gt.tensor([1, 5])
    assert (x << 2).tolist() == [4, 20]
    assert (x >> 1).tolist() == [0, 2]
    assert (1 << x).tolist() == [2, 32]
    x <<= 1
    assert x.tolist() == [2, 10]
    x >>= gt.tensor([1, 2])
    assert x.tolist() == [1, 2]
    with pytest.raises(TypeError):
        gt.ones(2) << 1
    with pytest.raises(TypeError):
        x << None


@pytest.mark.parametrize("function", [gt.sum, gt.prod, gt.cumsum, gt.cumprod])
def test_a_sum_has_the_dtype_that_was_asked_for(function):
    numpys = getattr(np, function.__name__)
    x = np.array([100, 100, 3], np.int8)
    for dtype in (np.uint8, np.int16, np.float32):
        out = function(gt.tensor(x), dtype=dtype)
        assert out.dtype == dtype
        np.testing.assert_array_equal(out.numpy(), numpys(x, dtype=dtype))


def test_clip_by_every_name():
    x = gt.tensor([-1.0, 0.5, 3.0])
    for out in (
        gt.clip(x, 0.0, 1.0),
        gt.clip(x, min=0.0, max=1.0),
        gt.clip(x, a_min=0.0, a_max=1.0),
        np.clip(x, 0.0, 1.0),
        np.clip(x, a_min=0.0, a_max=1.0),
    ):
        assert out.tolist() == [0, 0.5, 1]
    same = gt.clip(x)
    same[0] = 7.0
    assert x.tolist() == [-1, 0.5, 3]
    with pytest.raises(ArgumentError, match="twice"):
        gt.clip(x, 0.0, a_min=0.0)


def test_pinv_with_a_cutoff_for_each_matrix():
    x = np.stack([np.diag([4.0, 1.0]), np.diag([4.0, 1.0])])
    rtol = np.array([0.5, 1e-3])
    expected = np.linalg.pinv(x, rtol)
    for given in (rtol, gt.tensor(rtol)):
        np.testing.assert_allclose(gt.linalg.pinv(x, rtol=given), expected)
    gradient = gt.grad(lambda x: gt.sum(gt.linalg.pinv(x, rtol=rtol)))(x)
    np.testing.assert_allclose(gradient[1], -np.outer([0.25, 1], [0.25, 1]))
    assert gt.linalg.pinv(np.ones((2, 0, 3)), rtol=rtol).shape == (2, 3, 0)
