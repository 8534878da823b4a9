"""Files of named arrays in the format safetensors: a header of names, dtypes and places, and data.

The format holds numbers only, so loading a file executes nothing. The package safetensors checks
that the header describes the data exactly, before anything of a size it states is allocated.
"""

from __future__ import annotations

import json
import os
import stat
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.core.aval import is_numeric
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, DTypeError, FileFormatError, a_type
from gradtape.io.atomic import Path, replacing
from gradtape.io.leaf_names import named_leaves
from gradtape.locks import load as load_module

# Dtypes by their names in the format; those that NumPy lacks are attributes of ml_dtypes.
_DTYPES = {
    "BOOL": "bool",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "U8": "uint8",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
}
_SMALL_DTYPES = {
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
}
# The format has no complex128, and older releases no complex64: they are stored as real numbers
# with a last axis of two, and their names listed under this key of the metadata.
_COMPLEX = "gradtape.complex"
# Which version of these conventions a file follows, and a checksum of each array by its name; that
# of the metadata has the name that no array can have.
_VERSION = "gradtape.version"
_CHECKSUMS = "gradtape.checksums"
_NEWEST = 1
_OWN = "gradtape."
# A name that the format keeps for itself.
_RESERVED = "__metadata__"
# Bytes before the header: its length.
_PREFIX = 8
# How files of other formats begin, which are loaded elsewhere.
_ZIP = "it is a zip archive, as torch.save and np.savez write: load it there, and give arrays to "
_OTHERS = {
    b"PK\x03\x04": _ZIP + "load_state_dict or gt.save",
    b"\x80": "it is pickled, as by old versions of torch.save: load it there",
    b"\x93NUMPY": "it is of NumPy: use np.load",
    b"\x89HDF": "it is of HDF5, as Keras writes: load it there",
}
# Problems that are listed in an error, at most.
_LISTED = 20


def save(path: Path, tensors: Any, *, metadata: Mapping[str, str] | None = None) -> None:
    """Save arrays to a file in the format safetensors.

    The file is written under another name, and takes the place of an old one when it is complete
    and on the disk; if anything goes wrong, the old file is whole. It has checksums of the arrays
    and the metadata, by which `load` notices what was damaged later.

    Names in the file are the keys and positions on the way to an array, with dots between them:
    `{"layers": [{"w": x}]}` is saved as `layers.0.w`. A single array is called `array`. Complex
    numbers are stored as real ones with a last axis of two; `load` turns them back.

    Args:
        path: The file.
        tensors: An array or tensor, or nested containers of them. Python numbers count as arrays;
            of tensors that are recorded, the values are saved.
        metadata: Strings to keep beside them, by names that do not begin with `gradtape.`.

    Raises:
        ArgumentError: Two arrays would have the same name, a key is neither a string nor an
            integer, or the metadata are not strings.
        DTypeError: A value is not an array of numbers, or of a dtype that the format lacks.
        OSError: The file cannot be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/model.safetensors"
    ...     gt.save(path, {"layers": [{"w": np.ones(2)}, {"w": np.zeros(2)}]})
    ...     gt.load(path)
    {'layers.0.w': array([1., 1.]), 'layers.1.w': array([0., 0.])}
    """
    leaves, _ = named_leaves(tensors, "save")
    given = _checked_metadata(metadata)
    write(path, leaves, given)


def load(path: Path, *, like: Any = None) -> Any:
    """Load the arrays of a file that `save` wrote, or of any other file of the format safetensors.

    Args:
        path: The file.
        like: Containers of arrays or tensors, of the same structure, shapes and dtypes as those
            that were saved; their values are not used.

    Returns:
        New arrays: in the containers of `like` if that is given, with Python numbers where it has
        some, otherwise in a dict by name, in the order of the names.

    Raises:
        FileFormatError: The file is truncated or damaged, or of another format.
        ArgumentError: Arrays are missing, unexpected, or of another shape or dtype than in `like`;
            all of them are listed.
        OSError: The file cannot be read.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = f"{folder.name}/model.safetensors"
    >>> gt.save(path, {"w": np.ones(2), "b": 0.5})
    >>> gt.load(path, like={"w": np.zeros(2), "b": 0.0})
    {'w': array([1., 1.]), 'b': 0.5}
    >>> gt.load(path, like={"w": np.zeros(3), "c": 0.0})
    Traceback (most recent call last):
        ...
    gradtape.errors.ArgumentError: load: the file does not fit: missing 'c'; unexpected 'b';
    'w' is float64[2], expected float64[3]
    >>> folder.cleanup()
    """
    arrays, _ = read(path)
    if like is None:
        return arrays
    wanted, structure = named_leaves(like, "load")
    check_fit(arrays, wanted, "load")
    leaves = [
        arrays[name].item() if type(leaf) in (bool, int, float, complex) else arrays[name]
        for name, leaf in wanted.items()
    ]
    return containers.unflatten(structure, leaves)


def load_metadata(path: Path) -> dict[str, str]:
    """Load the strings that were saved beside the arrays of a file.

    Args:
        path: The file.

    Returns:
        The strings by name.

    Raises:
        FileFormatError: The file is truncated or damaged, or of another format.
        OSError: The file cannot be read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gt.save(f"{folder}/model.safetensors", np.ones(2), metadata={"epoch": "7"})
    ...     gt.load_metadata(f"{folder}/model.safetensors")
    {'epoch': '7'}
    """
    _, metadata = read(path)
    return {name: text for name, text in metadata.items() if not name.startswith(_OWN)}


def check_fit(arrays: Mapping[str, Any], wanted: Mapping[str, Any], function: str) -> None:
    """Raise an ArgumentError that lists all arrays of a file that differ from those expected."""
    problems = [f"missing {name!r}" for name in wanted if name not in arrays]
    problems += [f"unexpected {name!r}" for name in arrays if name not in wanted]
    for name, leaf in wanted.items():
        if name in arrays:
            got, expected = _form(arrays[name]), _form(leaf)
            if got != expected:
                problems.append(f"{name!r} is {got}, expected {expected}")
    if problems:
        more = f"; and {len(problems) - _LISTED} more" if len(problems) > _LISTED else ""
        raise ArgumentError(
            f"{function}: the file does not fit: {'; '.join(problems[:_LISTED])}{more}"
        )


def _form(leaf: Any) -> str:
    """The dtype and shape of an array, or of something that has both."""
    like = leaf if hasattr(leaf, "dtype") and hasattr(leaf, "shape") else np.asarray(leaf)
    return f"{np.dtype(like.dtype)}{list(like.shape)}"


# ---- writing ------------------------------------------------------------------------------------


def write(path: Path, leaves: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Write arrays under their names, and strings beside them."""
    arrays = {name: _as_array(leaf, name) for name, leaf in leaves.items()}
    pairs = [name for name, array in arrays.items() if array.dtype.kind == "c"]
    stored = {name: _stored(array) for name, array in arrays.items()}
    sums = {name: checksum(_name_of(x.dtype), x.shape, x) for name, x in stored.items()}
    notes = {**metadata, _VERSION: str(_NEWEST)}
    if pairs:
        notes[_COMPLEX] = json.dumps(pairs)
    notes[_CHECKSUMS] = json.dumps({**sums, _RESERVED: _checksum_of_strings(notes)})
    save_file = load_module("safetensors.numpy").save_file
    failure = load_module("safetensors").SafetensorError
    with replacing(path) as temporary:
        try:
            save_file(stored, temporary, metadata=notes)
        except failure as error:
            # The package hides that the disk is full in an error of its own.
            raise OSError(f"{os.fspath(path)!r} cannot be written: {error}") from None


def _name_of(dtype: Any) -> str:
    """The name of a dtype in the format."""
    return next(n for n, own in {**_DTYPES, **_SMALL_DTYPES}.items() if own == dtype.name)


def checksum(dtype: str, shape: Sequence[int], data: Any) -> str:
    """A checksum of an array, of its dtype as the format calls it, and of its shape."""
    head = f"{dtype}{list(shape)}".encode()
    content: Any = data.reshape(-1).view(np.uint8) if isinstance(data, np.ndarray) else data
    return f"{zlib.crc32(content, zlib.crc32(head)):08x}"


def _checksum_of_strings(metadata: Mapping[str, str]) -> str:
    """A checksum of all metadata but the checksums."""
    others = {name: text for name, text in metadata.items() if name != _CHECKSUMS}
    return f"{zlib.crc32(json.dumps(others, sort_keys=True).encode()):08x}"


def _as_array(leaf: Any, name: str) -> Any:
    """A leaf as an array that the format can hold."""
    array = leaf.detach().numpy() if isinstance(leaf, Tensor) else leaf
    if not hasattr(array, "dtype") and not isinstance(array, bool | int | float | complex):
        swapped = isinstance(leaf, str | os.PathLike) and name == "array"
        order = "; the path comes first: gt.save(path, tensors)" if swapped else ""
        raise DTypeError(
            f"save: got {a_type(leaf)} for {name!r}, expected an array or a tensor{order}"
        )
    array = np.asarray(array)
    known = array.dtype.name in (*_DTYPES.values(), *_SMALL_DTYPES.values(), "complex128")
    if not (known and is_numeric(array.dtype)):
        raise DTypeError(
            f"save: got {array.dtype} for {name!r}, which the format safetensors does not have; "
            "convert it with astype"
        )
    if name in ("", _RESERVED):
        raise ArgumentError(f"save: got {name!r} as a name, expected another one; rename the key")
    return array


def _stored(array: Any) -> Any:
    """An array as it is in the file: contiguous, in native byte order, complex numbers as pairs."""
    array = np.asarray(array, array.dtype.newbyteorder("="), order="C")
    if array.dtype.kind != "c":
        return array
    return array[..., None].view(np.finfo(array.dtype).dtype)


def _checked_metadata(metadata: Mapping[str, str] | None) -> dict[str, str]:
    given = {} if metadata is None else metadata
    if not isinstance(given, Mapping):
        raise ArgumentError(f"save: got {a_type(given)} as metadata, expected a dict of strings")
    for name, text in given.items():
        if not (isinstance(name, str) and isinstance(text, str)):
            raise ArgumentError(
                f"save: got metadata {name!r}: {text!r}, expected strings; use str() or json.dumps"
            )
        if name.startswith(_OWN):
            raise ArgumentError(
                f"save: got metadata {name!r}, but names that begin with {_OWN!r} are not free"
            )
    return dict(given)


# ---- reading ------------------------------------------------------------------------------------


def read(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """The arrays of a file by name, in the order of their names, and the strings beside them."""
    content = _content(path)
    safetensors = load_module("safetensors")
    try:
        entries = dict(safetensors.deserialize(content))
        header = json.loads(
            content[_PREFIX : _PREFIX + int.from_bytes(content[:_PREFIX], "little")]
        )
        metadata = header.get(_RESERVED) or {}
        pairs = set(json.loads(metadata.get(_COMPLEX, "[]")))
        version = int(metadata.get(_VERSION, _NEWEST))
        sums = dict(json.loads(metadata.get(_CHECKSUMS, "{}")))
    except (safetensors.SafetensorError, ValueError, TypeError, RecursionError) as error:
        other = (what for start, what in _OTHERS.items() if content.startswith(start))
        raise _damaged(path, next(other, str(error))) from None
    if version > _NEWEST:
        raise FileFormatError(
            f"load: got {os.fspath(path)!r} in version {version} of the format, expected at most "
            f"{_NEWEST}; it was written by a newer gradtape: update this one"
        )
    if unknown := pairs.difference(entries):
        raise _damaged(path, f"complex numbers {sorted(map(str, unknown))} are not there")
    # Files of others have neither.
    if (sums or _VERSION in metadata) and sums.keys() != {*entries, _RESERVED}:
        raise _damaged(path, "it has other names than checksums: it was damaged or changed")
    if sums and sums[_RESERVED] != _checksum_of_strings(metadata):
        raise _damaged(path, "the checksum of the metadata differs: it was damaged or changed")
    arrays = {}
    for name in sorted(entries):
        entry = entries[name]
        if sums and sums[name] != checksum(entry["dtype"], entry["shape"], entry["data"]):
            raise _damaged(path, f"the checksum of {name!r} differs: it was damaged or changed")
        try:
            array = _array(entries.pop(name), name in pairs)
        except (ValueError, TypeError, OverflowError) as error:
            raise _damaged(path, f"{name!r}: {error}") from None
        arrays[name] = array
    return arrays, metadata


def _content(path: Path) -> bytes:
    # Opening a pipe would wait for its other end, and devices have no end.
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise _damaged(path, "it is not a regular file")
    with open(path, "rb") as file:
        return file.read()


def _array(entry: Mapping[str, Any], is_pairs: bool) -> Any:
    """The array of an entry, in the memory that holds its data already."""
    dtype = _dtype(entry["dtype"])
    flat = np.frombuffer(entry["data"], dtype) if entry["data"] else np.empty(0, dtype)
    if dtype == np.bool_ and flat.size and flat.view(np.uint8).max() > 1:
        raise ValueError("truth values other than 0 and 1")
    array = flat.reshape(entry["shape"])
    if not is_pairs:
        return array
    if dtype not in (np.float32, np.float64) or array.shape[-1:] != (2,):
        raise ValueError(f"{dtype}{list(array.shape)} cannot be pairs of real and imaginary parts")
    return array.view(np.result_type(dtype, np.complex64))[..., 0]


def _dtype(name: str) -> Any:
    if name in _SMALL_DTYPES:
        return np.dtype(getattr(load_module("ml_dtypes"), _SMALL_DTYPES[name]))
    if name not in _DTYPES:
        raise ValueError(f"dtype {name} is not known here")
    return np.dtype(_DTYPES[name])


def _damaged(path: Path, why: str) -> FileFormatError:
    return FileFormatError(
        f"load: got {os.fspath(path)!r}, expected a whole file of the format safetensors; {why}"
    )
