"""Arrays saved to files come back bit for bit; files that are not whole are refused."""

import itertools
import json
import os
import signal
import stat
import time
from collections import OrderedDict, namedtuple

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

import gradtape as gt
from gradtape.errors import ArgumentError, DTypeError, FileFormatError
from gradtape.io import tensor_files

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
    *(ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2),
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "arrays.safetensors"


def header(path):
    content = path.read_bytes()
    return json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])


def file_of(head, data=b""):
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return len(text).to_bytes(8, "little") + text + data


def one(dtype, shape, *offsets):
    return {"dtype": dtype, "shape": shape, "data_offsets": list(offsets)}


# ---- round trips ----


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0, 3)])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_dtypes_and_shapes(path, rng, dtype, shape):
    dtype = np.dtype(dtype)
    array = rng.integers(0, 2, (*shape, dtype.itemsize), np.uint8).view(dtype)[..., 0]
    gt.save(path, {"x": array})
    found = gt.load(path)["x"]
    assert found.dtype == dtype
    assert found.shape == shape
    assert found.tobytes() == array.tobytes()
    assert found.flags.writeable


@pytest.mark.parametrize("dtype", ["float64", "complex128", "int16"])
def test_layouts(path, rng, dtype):
    base = rng.normal(size=(4, 6)).astype(dtype)
    arrays = {"t": base.T, "s": base[::-1, ::2], "f": np.asfortranarray(base), "o": base[1:, 1:]}
    arrays["b"] = np.broadcast_to(base[:1], (3, 6))
    arrays["e"] = base.astype(np.dtype(dtype).newbyteorder(">"))
    gt.save(path, arrays)
    for name, found in gt.load(path).items():
        np.testing.assert_array_equal(found, arrays[name])
        assert found.dtype == dtype


def test_complex_numbers_are_pairs_in_the_file(path):
    gt.save(path, {"z": np.array([1 + 2j]), "x": np.ones((1, 2))})
    assert header(path)["z"] == one("F64", [1, 2], 16, 32)
    assert gt.load(path)["z"].tolist() == [1 + 2j]
    assert gt.load(path)["x"].tolist() == [[1, 1]]
    assert gt.load_metadata(path) == {}


def test_names_are_the_way_to_the_leaf(path):
    Pair = namedtuple("Pair", "left right")
    tensors = {
        "layers": [{"w": np.ones(1)}, (2.0, 3)],
        "pair": Pair(np.array(4), OrderedDict(z=np.array(5), a=np.array(6))),
        "nothing": None,
        "empty": [],
    }
    gt.save(path, tensors)
    names = ["layers.0.w", "layers.1.0", "layers.1.1", "pair.left", "pair.right.a", "pair.right.z"]
    assert list(gt.load(path)) == names
    back = gt.load(path, like=tensors)
    assert back["layers"][1] == (2.0, 3)
    assert type(back["layers"][1][1]) is int
    assert type(back["pair"]) is Pair
    assert list(back["pair"].right) == ["z", "a"]
    assert back["nothing"] is None
    assert back["empty"] == []


def test_integer_keys(path):
    gt.save(path, {1: np.ones(1), 0: np.zeros(1)})
    assert gt.load(path, like={0: np.ones(1), 1: np.ones(1)})[1].tolist() == [1]


def test_a_single_array(path):
    gt.save(path, np.arange(3))
    assert gt.load(path)["array"].tolist() == [0, 1, 2]
    assert gt.load(path, like=np.zeros(3, int)).tolist() == [0, 1, 2]


def test_nothing_at_all(path):
    gt.save(path, {})
    assert gt.load(path) == {}
    assert gt.load(path, like=[]) == []


def test_values_of_recorded_tensors(path):
    w = gt.tensor([1.0, 2.0], requires_grad=True)
    gt.save(path, {"w": w, "y": w * 2})
    assert gt.load(path)["y"].tolist() == [2, 4]
    assert gt.load(path, like={"w": w, "y": w})["w"].tolist() == [1, 2]


def test_optimizer_state_round_trips(path):
    rule = gt.optim.Adam(lr=0.1)
    params = {"w": np.ones(3)}
    params, state = rule.apply(params, params, rule.init(params))
    gt.save(path, (params, state))
    again = gt.load(path, like=(params, rule.init(params)))
    for got, expected in zip(
        rule.apply(again[0], params, again[1]), rule.apply(params, params, state), strict=True
    ):
        assert str(got) == str(expected)


def test_metadata(path):
    gt.save(path, {"z": np.ones(1, complex)}, metadata={"epoch": "7", "größe": "ü"})
    assert gt.load_metadata(path) == {"epoch": "7", "größe": "ü"}


def test_results_share_no_memory(path):
    gt.save(path, {"a": np.ones(4), "b": np.ones(4)})
    found = gt.load(path)
    found["a"][:] = 5
    assert found["b"].tolist() == [1] * 4
    assert gt.load(path)["a"].tolist() == [1] * 4


def test_permissions_are_those_of_other_files(path):
    mask = os.umask(0o027)
    try:
        gt.save(path, {"x": np.ones(3)})
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o604)
        gt.save(path, {"x": np.ones(3)})
        assert stat.S_IMODE(path.stat().st_mode) == 0o604
    finally:
        os.umask(mask)


# ---- what is refused when saving ----


@pytest.mark.parametrize(
    ("tensors", "error", "message"),
    [
        ({"a.b": np.ones(1), "a": {"b": np.ones(1)}}, ArgumentError, "the same name, 'a.b'"),
        ({"x": {(1, 2): np.ones(1)}}, ArgumentError, "a tuple as a key"),
        ({"": np.ones(1)}, ArgumentError, "got '' as a name"),
        ({"__metadata__": np.ones(1)}, ArgumentError, "'__metadata__' as a name"),
        ({"x": "text"}, DTypeError, "a str for 'x'"),
        ({"x": object()}, DTypeError, "an object for 'x'"),
        ({"x": np.array(["a"])}, DTypeError, "<U1 for 'x'"),
        ({"x": np.array([None])}, DTypeError, "object for 'x'"),
        ({"x": np.ones(1, np.longdouble)}, DTypeError, "float128 for 'x', which the format"),
        ({"x": np.ones(1, ml_dtypes.float8_e4m3fnuz)}, DTypeError, "float8_e4m3fnuz for 'x'"),
        ({"x": np.ones(1, "datetime64[s]")}, DTypeError, "datetime64"),
    ],
)
def test_refused_values_leave_the_old_file(path, tensors, error, message):
    gt.save(path, np.ones(1))
    before = path.read_bytes()
    with pytest.raises(error, match=message):
        gt.save(path, tensors)
    assert path.read_bytes() == before
    assert len(os.listdir(path.parent)) == 1


@pytest.mark.parametrize("metadata", [{"a": 1}, {1: "a"}, "text", {"gradtape.x": "y"}])
def test_refused_metadata(path, metadata):
    with pytest.raises(ArgumentError, match="metadata"):
        gt.save(path, np.ones(1), metadata=metadata)
    assert not path.exists()


def test_a_failing_write_leaves_the_old_file(path, monkeypatch):
    gt.save(path, np.ones(1))
    before = path.read_bytes()

    class Failing:
        SafetensorError = ValueError

        @staticmethod
        def save_file(_arrays, temporary, metadata):
            with open(temporary, "wb") as file:
                file.write(b"half")
            raise OSError("disk full")

    monkeypatch.setattr(tensor_files, "load_module", lambda _name: Failing)
    with pytest.raises(OSError, match="disk full"):
        gt.save(path, np.zeros(1))
    assert path.read_bytes() == before
    assert len(os.listdir(path.parent)) == 1


def test_numpy_save_of_a_tensor_is_still_refused(path):
    with pytest.raises(gt.GradtapeError, match="a file holds values"):
        np.save(path, gt.ones(2))


# ---- what is refused when loading ----


def test_all_that_does_not_fit_is_listed(path):
    gt.save(path, {"a": np.ones(2), "b": np.ones(2), "c": np.ones(2), "d": np.ones(2)})
    like = {"a": np.ones(3), "b": np.ones(2, np.float32), "c": np.ones(2), "e": np.ones(1)}
    with pytest.raises(ArgumentError) as raised:
        gt.load(path, like=like)
    assert str(raised.value) == (
        "load: the file does not fit: missing 'e'; unexpected 'd'; 'a' is float64[2], expected "
        "float64[3]; 'b' is float64[2], expected float32[2]"
    )


def test_a_long_list_is_cut(path):
    gt.save(path, {})
    with pytest.raises(ArgumentError, match=r"; and 30 more$"):
        gt.load(path, like=list(np.zeros(50)))


def test_missing_files(path):
    with pytest.raises(FileNotFoundError):
        gt.load(path)


def test_what_is_no_regular_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(FileFormatError, match="not a regular file"):
            gt.load(path)


HOSTILE = {
    "empty": b"",
    "short": b"123",
    "text": b"some text that is no file of arrays",
    "huge header": (2**62).to_bytes(8, "little") + b"{}",
    "header of everything": b"\xff" * 8 + b"{}",
    "no json": file_of(b"{"),
    "deep json": file_of(b"[" * 100_000),
    "deep json below": file_of(b'{"x":' * 100_000),
    "a list": file_of([]),
    "huge array": file_of({"x": one("F32", [2**40], 0, 2**42)}, b"1234"),
    "sizes that overflow": file_of({"x": one("F64", [2**32, 2**32, 2**32], 0, 0)}),
    "an empty array of huge sizes": file_of({"x": one("F32", [2**63, 0], 0, 0)}),
    "too many axes": file_of({"x": one("F32", [0] * 100, 0, 0)}),
    "negative sizes": file_of({"x": one("F32", [-1], 0, 4)}, b"1234"),
    "overlap": file_of({"x": one("F32", [2], 0, 8), "y": one("F32", [2], 4, 12)}, b"x" * 12),
    "a hole": file_of({"x": one("F32", [1], 0, 4), "y": one("F32", [1], 8, 12)}, b"x" * 12),
    "wrong size": file_of({"x": one("F32", [3], 0, 8)}, b"x" * 8),
    "backwards": file_of({"x": one("F32", [0], 4, 0)}, b"1234"),
    "beyond the end": file_of({"x": one("F32", [1], 4, 8)}, b"1234"),
    "more data": file_of({"x": one("F32", [1], 0, 4)}, b"12345678"),
    "unknown dtype": file_of({"x": one("F99", [1], 0, 4)}, b"1234"),
    "truth of 7": file_of({"x": one("BOOL", [1], 0, 1)}, b"\7"),
    "metadata of numbers": file_of({"__metadata__": {"a": 1}}),
    "pairs that are none": file_of(
        {"__metadata__": {"gradtape.complex": '["x"]'}, "x": one("F32", [1], 0, 4)}, b"1234"
    ),
    "pairs of integers": file_of(
        {"__metadata__": {"gradtape.complex": '["x"]'}, "x": one("I32", [2], 0, 8)}, b"12345678"
    ),
    "pairs that are missing": file_of({"__metadata__": {"gradtape.complex": '["x"]'}}),
    "pairs of lists": file_of({"__metadata__": {"gradtape.complex": "[[]]"}}),
    "pairs that are no list": file_of({"__metadata__": {"gradtape.complex": "7"}}),
    "pairs that are no json": file_of({"__metadata__": {"gradtape.complex": "["}}),
    "pairs that are deep": file_of({"__metadata__": {"gradtape.complex": "[" * 100_000}}),
}


def test_files_of_other_libraries(path):
    with open(path, "wb") as file:
        np.savez(file, x=np.ones(3))
    with pytest.raises(FileFormatError, match=r"as torch.save and np.savez write: load it there"):
        gt.load(path)
    with open(path, "wb") as file:
        np.save(file, np.ones(3))
    with pytest.raises(FileFormatError, match=r"use np\.load"):
        gt.load(path)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(path, name):
    path.write_bytes(HOSTILE[name])
    with pytest.raises(FileFormatError, match="expected a whole file of the format safetensors"):
        gt.load(path)
    with pytest.raises(FileFormatError):
        gt.load_metadata(path)
    with pytest.raises(FileFormatError):
        gt.VariableEnvironment.from_file(path)


def test_files_of_others_are_read(path):
    data = np.array([1 + 2j], np.complex64).tobytes()
    path.write_bytes(file_of({"x": one("U8", [8], 0, 8), "e": one("F16", [0], 0, 0)}, data))
    assert gt.load(path)["x"].tobytes() == data


def test_damage_to_the_data_is_noticed(path):
    gt.save(path, {"a": np.ones(3), "flags": np.array([True, False]), "z": np.array([1 + 2j])})
    content = path.read_bytes()
    data = len(content) - 8 * 3 - 2 - 16
    for place in range(data, len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(FileFormatError, match=r"checksum of '(a|flags|z)' differs"):
            gt.load(path)


def test_damage_to_the_metadata_is_noticed(path):
    gt.save(path, {"a": np.ones(3)}, metadata={"epoch": "1700", "note": "kept"})
    content = path.read_bytes()
    for old, new in ((b"1700", b"1710"), (b"note", b"nose"), (b"kept", b"left")):
        path.write_bytes(content.replace(old, new))
        with pytest.raises(FileFormatError, match="checksum of the metadata differs"):
            gt.load(path)


def test_damage_to_a_name_is_noticed(path):
    gt.save(path, {"weight": np.ones(3), "bias": np.zeros(3)})
    content = path.read_bytes()
    for place in range(8, len(content) - 48):
        damaged = bytearray(content)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(FileFormatError):
            gt.load(path)


def test_a_changed_shape_is_noticed(path):
    gt.save(path, {"a": np.ones((2, 3))})
    content = path.read_bytes()
    assert content.count(b"[2,3]") == 1
    path.write_bytes(content.replace(b"[2,3]", b"[3,2]"))
    with pytest.raises(FileFormatError, match="checksum of 'a' differs"):
        gt.load(path)


def test_files_of_newer_versions_are_refused(path):
    metadata = {"gradtape.version": "2"}
    path.write_bytes(file_of({"__metadata__": metadata, "x": one("U8", [1], 0, 1)}, b"7"))
    with pytest.raises(FileFormatError, match=r"version 2 of the format.*update"):
        gt.load(path)


def test_weights_go_to_pytorch_and_back_by_files(path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    files = pytest.importorskip("safetensors.torch")
    ours = gt.nn.Sequential(gt.nn.Linear(3, 4), gt.nn.BatchNorm1d(4), gt.nn.Linear(4, 2))
    theirs = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2)
    )
    gt.save(path, ours.state_dict())
    theirs.load_state_dict(files.load_file(path))
    files.save_file(theirs.state_dict(), path)
    other = gt.nn.Sequential(gt.nn.Linear(3, 4), gt.nn.BatchNorm1d(4), gt.nn.Linear(4, 2))
    other.load_state_dict(gt.load(path))
    for name, array in ours.state_dict().items():
        np.testing.assert_array_equal(other.state_dict()[name], array)


def _save_for_ever(path, seeds, first_saved):
    try:
        for seed in seeds:
            rng = np.random.default_rng(seed)
            arrays = {f"layer.{n}": rng.normal(size=(37, 11)) for n in range(5)}
            gt.save(path, {**arrays, "seed": np.array(seed)}, metadata={"seed": str(seed)})
            if seed % 1000 == 0:
                os.write(first_saved, b".")
    finally:
        os._exit(1)  # not on with the tests


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="a child is forked and killed")
def test_a_thousand_kills_leave_whole_files(path):
    delays = np.random.default_rng(0).uniform(0, 0.02, 1000)
    for number, delay in enumerate(delays):
        saved, first_saved = os.pipe()
        child = os.fork()
        if not child:
            _save_for_ever(path, itertools.count(1000 * number), first_saved)
        os.close(first_saved)
        assert os.read(saved, 1)  # however slow the machine is
        os.close(saved)
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found = gt.load(path)
        seed = int(found["seed"])
        assert seed // 1000 == number
        assert gt.load_metadata(path) == {"seed": str(seed)}
        rng = np.random.default_rng(seed)
        for n in range(5):
            np.testing.assert_array_equal(found[f"layer.{n}"], rng.normal(size=(37, 11)))
    assert any(path.parent.glob(".gradtape-*.tmp"))  # kills came in the middle of saves


WHOLE = file_of(
    {
        "__metadata__": {"gradtape.complex": '["z"]', "gradtape.variables": '["z", "a/b", "#0"]'},
        "#0": one("BOOL", [3], 0, 3),
        "a/b": one("I8", [1, 5], 3, 8),
        "z": one("F64", [2, 2], 8, 40),
    },
    bytes([0, 1, 1]) + bytes(37),
)


@given(st.integers(0, len(WHOLE) - 1))
def test_truncated_files(tmp_path_factory, length):
    path = tmp_path_factory.getbasetemp() / "truncated.safetensors"
    path.write_bytes(WHOLE[:length])
    with pytest.raises(FileFormatError):
        gt.load(path)


def loads_or_is_refused(path, content):
    path.write_bytes(content)
    for load in (gt.load, gt.VariableEnvironment.from_file):
        try:
            found = load(path)
        except FileFormatError:
            continue
        # What is accepted is in the file: nothing was made up.
        assert sum(array.nbytes for _, array in dict(found).items()) <= len(content)


@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), max_size=4))
def test_damaged_files(tmp_path_factory, changes):
    content = bytearray(WHOLE)
    for place, byte in changes:
        content[place] = byte
    path = tmp_path_factory.getbasetemp() / "damaged.safetensors"
    loads_or_is_refused(path, bytes(content))


sizes = st.one_of(st.integers(0, 9), st.integers(-(2**65), 2**65))
entries = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "F64", "BF16", "BOOL", "U8", "C64", "F8_E5M2", "F4", "?"]),
        "shape": st.lists(sizes, max_size=3),
        "data_offsets": st.lists(sizes, min_size=2, max_size=2),
    }
)
texts = st.one_of(st.text(max_size=3), st.sampled_from(['["x"]', "[]", "{}", "null", '"x"']))
keys = st.sampled_from(["gradtape.complex", "gradtape.variables", "a"])
heads = st.dictionaries(st.text(max_size=3), entries, max_size=3)


@given(heads, st.none() | st.dictionaries(keys, texts, max_size=2), st.binary(max_size=24))
def test_headers_of_all_kinds(tmp_path_factory, head, metadata, data):
    path = tmp_path_factory.getbasetemp() / "header.safetensors"
    whole = head if metadata is None else {**head, "__metadata__": metadata}
    loads_or_is_refused(path, file_of(whole, data))


def test_arrays_given_before_the_path_are_told_the_order(tmp_path):
    with pytest.raises(DTypeError, match=r"the path comes first: gt\.save\(path, tensors\)"):
        gt.save({"w": np.ones(2)}, tmp_path / "model.safetensors")
    with pytest.raises(DTypeError, match=r"got a str for 'w', expected an array or a tensor$"):
        gt.save(tmp_path / "model.safetensors", {"w": "text"})
