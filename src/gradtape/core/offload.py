"""Arrays that are kept on disk while nobody reads them.

A `Store` writes the memory of an array to a file without a name, and what it returns maps it back:
the same bytes with the same strides, without copying. Layouts matter as much as values: NumPy adds
up elements in the order of memory, and a product of a matrix with its own transpose is computed
differently from one with a copy. So arrays that shared their memory share it again when they are
read, and recomputed values have the same bits.
"""

from __future__ import annotations

import functools
import tempfile
import weakref
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.scratch_file import LOCK, Range, ScratchFile, range_of
from gradtape.errors import OffloadError

# Arrays with fewer bytes stay in memory.
LEAST_BYTES = 1_000_000
# Bytes that are compared at a time.
_PART = 1 << 18


class Store:
    """Keeps arrays in a file, which is made for the first one and closed after the last one.

    Args:
        folder: Where the file takes its space; None for the system's folder for temporary files.
    """

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        # Only arrays hold it: a tape may outlive all it recorded, and wait for its release.
        self._file: weakref.ref[ScratchFile] | None = None
        # Memory that was written, by its first and last address: its owner, and where it is now.
        self._written: dict[tuple[int, int], _Written] = {}

    @property
    def size(self) -> int:
        """The bytes that its file takes on the disk."""
        file = None if self._file is None else self._file()
        return 0 if file is None else file.size

    def another(self) -> Store:
        """A store in the same folder with a file of its own."""
        return Store(self._folder)

    def put(self, array: Any) -> Any:
        """Write an array to the file.

        Args:
            array: A value to keep. Small arrays, and what is not an array of NumPy's own type, are
                returned as they are.

        Returns:
            An `Offloaded` to read it from.

        Raises:
            OffloadError: It could not be written.
        """
        if type(array) is not np.ndarray or array.nbytes < LEAST_BYTES or array.dtype.hasobject:
            return array
        first, end = _extent(array)
        if end - first < LEAST_BYTES:  # a number for many elements
            return array
        owner = owner_of(array)
        memory = _memory(owner)
        begin = 0 if memory is None else _address(memory)
        if memory is None or first < begin or end > begin + memory.size:
            return self.put(array.copy(order="K"))
        try:
            place = range_of(owner)
            if place is None:
                place = self._place(owner, first, memory[first - begin : end - begin])
                begin = first
        except OSError as error:
            raise self._explained(end - first, error) from error
        return Offloaded(place, array.shape, array.dtype, _address(array) - begin, array.strides)

    def _place(self, owner: Any, first: int, part: Any) -> Range:
        """Where a part of an array's memory is in the file; it is written if it is not there."""
        key = first, first + part.size
        written = self._written.get(key)
        if written is not None and written.owner() is owner:
            known = written.place()
            # Somebody may have written to the array since then.
            if known is not None and _is_same(part, known.mapped()):
                return known
        place = self._taken(part.size)
        place.write(part.data)
        forget = functools.partial(_forget, self._written, key)
        self._written[key] = _Written(weakref.ref(owner, forget), weakref.ref(place))
        return place

    def _taken(self, length: int) -> Range:
        """A range of the file."""
        with LOCK:  # no fork meanwhile
            file = None if self._file is None else self._file()
            taken = None if file is None or file.is_shared else file.take(length)
            if taken is None:  # no file yet, or a signal handler came while a range was taken
                file = ScratchFile(self._folder)
                self._file = weakref.ref(file)
                taken = file.take(length)
            assert taken is not None  # nobody else knows the file
            return taken

    def _explained(self, needed: int, error: OSError) -> OffloadError:
        folder = self._folder or tempfile.tempdir or "the system's folder for temporary files"
        explained = OffloadError(
            f"offload: {error.strerror or error}; {needed} bytes of a result were to be written to "
            f"a file in {folder}. Give a folder on a disk with more room as "
            "gt.CheckpointConfig(offload=...), or keep results in memory with offload=False; what "
            "was recorded until now can be differentiated"
        )
        explained.errno = error.errno
        return explained


class _Written(NamedTuple):
    """Memory that was written to a file: the array that owns it, and where it is."""

    owner: weakref.ref[Any]
    place: weakref.ref[Range]


def _forget(written: dict[Any, _Written], key: Any, owner: weakref.ref[Any]) -> None:
    """Forget memory whose owner is gone."""
    found = written.get(key)
    if found is not None and found.owner is owner:
        written.pop(key, None)


class Offloaded:
    """An array in a file.

    Args:
        place: The part of the file where its memory is.
        shape: Its shape.
        dtype: Its dtype.
        start: Where in this part its first element is.
        strides: Its strides.
    """

    __slots__ = ("_array", "_layout", "_place")

    def __init__(
        self,
        place: Range,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        start: int,
        strides: tuple[int, ...],
    ) -> None:
        self._place = place
        self._layout = shape, dtype, start, strides
        self._array: weakref.ref[Any] | None = None

    def array(self) -> Any:
        """The array, which cannot be written to; its memory is mapped from the file.

        Raises:
            OffloadError: It cannot be mapped.
        """
        with LOCK:
            array = None if self._array is None else self._array()
            if array is None:
                shape, dtype, start, strides = self._layout
                try:
                    memory = self._place.mapped()
                except OSError as error:
                    raise OffloadError(
                        f"offload: {error.strerror or error}; a result that was written to a file "
                        "could not be mapped into memory. Raise the limits on open files and "
                        "memory maps (ulimit -n, vm.max_map_count), or use offload=False"
                    ) from error
                array = np.ndarray(shape, dtype, memory, start, strides)
                self._array = weakref.ref(array)
            return array


# ---- the memory of arrays -----------------------------------------------------------------------


def owner_of(array: Any) -> Any:
    """The array whose memory an array sees a part of; itself if that is no other one's."""
    base = array.base
    while base is not None:
        if isinstance(base, np.ndarray):
            array = base
        base = getattr(base, "base", None)  # `as_strided` puts an object of its own in between
    return array


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def _extent(array: Any) -> tuple[int, int]:
    """The address of the first byte that an array sees, and of the one after the last."""
    first = end = _address(array)
    for size, stride in zip(array.shape, array.strides, strict=True):
        step = (size - 1) * stride
        first, end = first + min(step, 0), end + max(step, 0)
    return first, end + array.itemsize


def _memory(owner: Any) -> Any:
    """The memory of an array as bytes, without copying; None if there are gaps in it."""
    axes = sorted(range(owner.ndim), key=lambda axis: -owner.strides[axis])
    ordered = owner.view(np.ndarray).transpose(axes)
    return ordered.reshape(-1).view(np.uint8) if ordered.flags.c_contiguous else None


def _is_same(one: Any, other: Any) -> bool:
    """Whether bytes are equal; they are compared in parts, as that takes memory."""
    places = range(0, one.size, _PART)
    return all(np.array_equal(one[at : at + _PART], other[at : at + _PART]) for at in places)
