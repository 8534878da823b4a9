"""Attributes that tensors do not have, and what to write instead.

People who know other libraries look for them. Each is a descriptor that raises: a `__getattr__`
would slow down every attribute lookup.
"""

from __future__ import annotations

from typing import Any

from gradtape.core.tensor import Tensor

# Methods that are operators here, and functions as well if they have NumPy's name.
_ARITHMETIC = {"sub": "-", "mul": "*", "div": "/"}
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
OPERATORS = {**_ARITHMETIC, **_COMPARISONS, "mm": "@", "bmm": "@", "mv": "@"}
_OF_NUMPY = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "pow": "**"}
_IN_PLACE = {"add": "+", **_ARITHMETIC}
_DTYPES = {"half": "float16", "float": "float32", "double": "float64"}
_DTYPES |= {"int": "int32", "long": "int64"}

# Methods of tensors elsewhere that are functions here, by their arguments.
_FUNCTIONS = {
    "t": "absolute acos acosh amax amin angle asin asinh atan atanh ceil count_nonzero cov cosh "
    "digamma erf erfc erfinv exp2 expm1 floor isfinite isinf isnan lgamma log10 log1p log2 "
    "nanmean nansum negative reciprocal sign sinc sinh square tan trunc",
    "t, other": "allclose cross fmod inner kron logaddexp maximum minimum outer remainder vdot "
    "xlogy",
    "t, axis": "flip log_softmax logsumexp softmax",
    "t, chunks, axis": "chunk",
    "t, index, axis": "gather",
    "t, index, source, axis": "index_add scatter_add",
    "t, k": "diag",
    "t, k=k": "tril triu",
    "t, n, axis": "diff",
    "t, nan=nan, posinf=posinf, neginf=neginf": "nan_to_num",
    "t, reps": "tile",
    "t, shape": "broadcast_to",
    "t, shift, axis": "roll",
    "t, source, destination": "moveaxis",
    "t, weights, minlength": "bincount",
    "condition, t, other": "where",
}
_OF_LINALG = "cholesky det eig qr slogdet"

# Names that tensors of other libraries have, and NumPy's arrays do not.
TENSOR = {
    **{n: f"use gt.{n}({args})" for args, names in _FUNCTIONS.items() for n in names.split()},
    **{name: f"use gt.linalg.{name}(t)" for name in _OF_LINALG.split()},
    **{name: f"use t {symbol} other" for name, symbol in {**OPERATORS, **_OF_NUMPY}.items()},
    **{f"{name}_": f"use t {symbol}= other" for name, symbol in _IN_PLACE.items()},
    **{name: f"use t.astype(gt.{dtype})" for name, dtype in _DTYPES.items()},
    "at": "use t[index] = value or t[index] += value, which are recorded",
    "block_until_ready": "leave it out: results are computed when a call returns",
    "clamp": "use t.clip",
    "clamp_": "use t[...] = t.clip(low, high)",
    "contiguous": "leave it out: a tensor does not show its memory layout",
    "copy_": "use t[...] = other",
    "cpu": "use t.to_device('cpu')",
    "cuda": "tensors of CuPy's arrays are computed where these are: gt.asarray(cupy_array)",
    "detach_": "use t = t.detach()",
    "dim": "use t.ndim",
    "expand": "use gt.broadcast_to(t, shape)",
    "expand_as": "use gt.broadcast_to(t, other.shape)",
    "fill_": "use t.fill(value)",
    "index_select": "use t.take(indices, axis=axis)",
    "inverse": "use gt.linalg.inv(t)",
    "lstsq": "use gt.linalg.lstsq(t, other)",
    "lu": "use gt.linalg.lu_factor(t), whose pivots count from 0",
    "masked_fill": "use gt.where(mask, value, t)",
    "masked_select": "use t[mask]",
    "matrix_power": "use gt.linalg.matrix_power(t, n)",
    "movedim": "use gt.moveaxis(t, source, destination)",
    "narrow": "use t[start : start + length], or gt.take(t, range(start, start + length), axis)",
    "neg": "use -t",
    "new_ones": "use gt.ones(shape, dtype=t.dtype), or gt.ones_like(t)",
    "new_tensor": "use gt.tensor(values, dtype=t.dtype)",
    "new_zeros": "use gt.zeros(shape, dtype=t.dtype), or gt.zeros_like(t)",
    "numel": "use t.size",
    "repeat_interleave": "use t.repeat(repeats, axis=axis)",
    "requires_grad_": "use t.set_requires_grad()",
    "reshape_as": "use t.reshape(other.shape)",
    "retain_grad": "use gt.grad or gt.GradientTape, which differentiate by any value",
    "rsqrt": "use 1 / gt.sqrt(t)",
    "scatter_add_": "use t = gt.scatter_add(t, index, source, axis)",
    "sgn": "use gt.sign(t)",
    "split": "use gt.split(t, range(size, len(t), size)), which takes indices or a number",
    "squeeze_": "use t = t.squeeze()",
    "svd": "use gt.linalg.svd(t, full_matrices=False), whose last result is V.mT.conj()",
    "t": "use t.T",
    "to": "use t.astype(dtype), or t.to_device(device)",
    "type": "use t.astype(dtype), or t.dtype",
    "type_as": "use t.astype(other.dtype)",
    "unbind": "use gt.unstack(t)",
    "unflatten": "use t.reshape",
    "view_as": "use t.reshape(other.shape)",
    "zero_": "use t.fill(0.0)",
}

# Attributes that arrays have and tensors do not, and what to use instead.
_OF_ARRAYS = {
    "flat": "use t.reshape(-1), which writes through to t as well",
    **dict.fromkeys(
        ("strides", "flags"), "a tensor does not show its memory layout; use t.numpy()"
    ),
    **dict.fromkeys(("data", "ctypes", "tobytes", "tofile"), "use t.detach().numpy()"),
    **dict.fromkeys(("byteswap", "getfield"), "use t.detach().numpy()"),
    **dict.fromkeys(("dump", "dumps"), "use np.save with t.detach().numpy()"),
    "base": "views follow their tensor by themselves",
    "setfield": "use item assignment",
    "setflags": "a tensor can be written to, unless it is a leaf",
    "resize": "a tensor keeps its size; use gt.resize or gt.reshape and the result",
}


class MissingAttribute:
    """Stands in for a missing attribute, and raises the error of one."""

    def __init__(self, name: str, instead: str) -> None:
        self.name = name
        self.instead = instead
        self.__doc__ = f"Not there: {instead}."

    def __get__(self, tensor: Tensor | None, owner: type) -> Any:
        if tensor is None:
            return self
        text = f"a tensor has no attribute {self.name!r}; {self.instead}"
        raise AttributeError(text, name=self.name, obj=tensor)


def _dir(self: Tensor) -> list[str]:
    """The names that a tensor has."""
    return [
        name
        for name in object.__dir__(self)
        if not isinstance(getattr(Tensor, name, None), MissingAttribute)
    ]


def install() -> None:
    """Give tensors the attributes that raise."""
    for name, instead in {**TENSOR, **_OF_ARRAYS}.items():
        setattr(Tensor, name, MissingAttribute(name, instead))
    Tensor.__dir__ = _dir  # type: ignore[method-assign, assignment]
