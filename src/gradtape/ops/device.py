"""Where arrays live, and handing them to other libraries: devices and DLPack."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from gradtape.backends import array_module
from gradtape.core.aval import Abstract
from gradtape.core.tensor import Tensor, concrete, innermost, read_only
from gradtape.errors import ArgumentError, ConversionError, DTypeError, UnsupportedError, a_type

CPU = "cpu"
# The numbers DLPack has for kinds of memory.
_CPU_MEMORY, _CUDA_MEMORY = 1, 2


def device_of(x: Any) -> str:
    """The device of an array or tensor: "cpu", or "cuda:0" of a CuPy array."""
    raw = innermost(x, show=True) if isinstance(x, Tensor) else x
    if isinstance(raw, Abstract) or array_module(raw) is np:
        return CPU
    return f"cuda:{raw.device.id}"


def check_device(device: Any, name: str, here: str = CPU) -> None:
    """Raise for a device other than the one where the result is."""
    if device is not None and (not isinstance(device, str) or device != here):
        raise ArgumentError(
            f"{name}: got device {device!r}, expected {here!r} or None; tensors of another device "
            "are made of its arrays: gt.asarray(cupy_array)"
        )


def _to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """This tensor on another device; it has to be there already.

    Raises:
        UnsupportedError: It is on another device.
    """
    if device != device_of(self):
        raise UnsupportedError(
            f"to_device: got {device!r} for a tensor on {device_of(self)!r}; gradtape does not "
            "move tensors; make one of an array of that device: gt.asarray(array)"
        )
    return self


# ---- DLPack -------------------------------------------------------------------------------------


def _dlpack(
    self: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """A DLPack capsule of the value, for `from_dlpack` of another library.

    Records may hold the array. A consumer that knows DLPack 1.0 gets it read-only, others get a
    copy, unless they insist on sharing it with `copy=False`.

    Raises:
        ConversionError: The tensor is being recorded, or its dtype has no place in DLPack.
    """
    array = concrete(self, "__dlpack__ (detach() first)")
    if array_module(array) is not np:
        return array.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device)
    if dl_device is not None and tuple(dl_device) != (_CPU_MEMORY, 0):
        raise ConversionError(f"__dlpack__: got dl_device {dl_device}, expected (1, 0), the CPU")
    array = np.asarray(array)
    versioned = max_version is not None and max_version >= (1, 0) and _numpy_flags_read_only()
    try:
        if copy or (copy is None and not versioned):
            return array.copy().__dlpack__()
        if versioned:
            return read_only(array).__dlpack__(max_version=max_version)
        return array.__dlpack__()
    except BufferError as error:
        raise ConversionError(
            f"__dlpack__: got {array.dtype}; {error}; use astype(gt.float32)"
        ) from error


def _numpy_flags_read_only() -> bool:
    """Whether NumPy exports read-only arrays: since 2.1."""
    return tuple(map(int, np.__version__.split(".")[:2])) >= (2, 1)


def _dlpack_device(self: Tensor) -> tuple[int, int]:
    """The kind and the number of the device, as DLPack counts them."""
    kind, _, number = device_of(self).partition(":")
    return (_CPU_MEMORY, 0) if kind == CPU else (_CUDA_MEMORY, int(number))


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Make a tensor of an array of another library that speaks DLPack, without copying.

    Args:
        x: The array; of a tensor that is being recorded use `gt.asarray`, which keeps its history.
        device: None or where the array is: gradtape does not move arrays.
        copy: True copies; otherwise the memory is shared.

    Raises:
        ArgumentError: The array is on another device, or on one whose arrays are unknown here.
        ConversionError: It is a tensor that is being recorded.

    >>> gt.from_dlpack(np.array([1.0, 2.0]))
    tensor([1., 2.])
    """
    if isinstance(x, Tensor):
        array = concrete(x, "from_dlpack (gt.asarray keeps the history)")
    else:
        try:
            array = _module_for(x).from_dlpack(x)
        except BufferError as error:
            raise DTypeError(f"from_dlpack: got {a_type(x)}; {error}") from None
    check_device(device, "from_dlpack", device_of(array))
    return Tensor(array.copy() if copy else array)


def _module_for(x: Any) -> Any:
    """The array module for the device where this array of another library is."""
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise ArgumentError(
            f"from_dlpack: got {type(x).__name__}, which does not speak DLPack; use gt.asarray"
        )
    kind = int(x.__dlpack_device__()[0])
    module = {_CPU_MEMORY: np, _CUDA_MEMORY: sys.modules.get("cupy")}.get(kind)
    if module is None:
        raise ArgumentError(
            f"from_dlpack: got an array on a device of kind {kind}, expected one on the CPU, or on "
            "CUDA with CuPy imported; copy it to the CPU first"
        )
    return module


Tensor.to_device = _to_device  # type: ignore[attr-defined]
Tensor.__dlpack__ = _dlpack  # type: ignore[attr-defined]
Tensor.__dlpack_device__ = _dlpack_device  # type: ignore[attr-defined]
Tensor.device = property(device_of)  # type: ignore[attr-defined]
