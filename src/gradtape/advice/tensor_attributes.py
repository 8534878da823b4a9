"""Attributes that tensors do not have, and what to write instead.

People who know other libraries look for them. Each is a descriptor that raises: a `__getattr__`
would slow down every attribute lookup.
"""

from __future__ import annotations

from typing import Any

from gradtape.core.tensor import Tensor

# Methods that are operators here, and functions as well if they have NumPy's name.
OPERATORS = {
    "sub": "-",
    "mul": "*",
    "div": "/",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "mm": "@",
    "bmm": "@",
    "mv": "@",
}
_OF_NUMPY = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "pow": "**"}

# Methods of tensors elsewhere that are functions here.
_FUNCTIONS = (
    "absolute acos acosh amax amin angle asin asinh atan atanh ceil count_nonzero cov "
    "cosh digamma erf erfc erfinv exp2 expm1 floor isfinite isinf isnan lgamma log10 log1p log2 "
    "nanmean nansum negative reciprocal sign sinc sinh square tan trunc"
)
_OF_TWO = "allclose cross fmod inner kron logaddexp maximum minimum outer remainder vdot xlogy"
_OF_LINALG = "cholesky det eig qr slogdet"

# Names that tensors of other libraries have, and NumPy's arrays do not.
TENSOR = {
    **{name: f"use gt.{name}(t)" for name in _FUNCTIONS.split()},
    **{name: f"use gt.{name}(t, other)" for name in _OF_TWO.split()},
    **{name: f"use gt.linalg.{name}(t)" for name in _OF_LINALG.split()},
    **{name: f"use t {symbol} other" for name, symbol in {**OPERATORS, **_OF_NUMPY}.items()},
    "add_": "use t += other",
    "sub_": "use t -= other",
    "mul_": "use t *= other",
    "div_": "use t /= other",
    "at": "use t[index] = value or t[index] += value, which are recorded",
    "bincount": "use gt.bincount(t, weights, minlength)",
    "broadcast_to": "use gt.broadcast_to(t, shape)",
    "block_until_ready": "leave it out: results are computed when a call returns",
    "chunk": "use gt.chunk(t, chunks, axis)",
    "clamp": "use t.clip",
    "clamp_": "use t[...] = t.clip(low, high)",
    "contiguous": "leave it out: a tensor does not show its memory layout",
    "copy_": "use t[...] = other",
    "cpu": "use t.to_device('cpu')",
    "cuda": "tensors of CuPy's arrays are computed where these are: gt.asarray(cupy_array)",
    "detach_": "use t = t.detach()",
    "diag": "use gt.diag(t, k)",
    "diff": "use gt.diff(t, n, axis)",
    "dim": "use t.ndim",
    "double": "use t.astype(gt.float64)",
    "expand": "use gt.broadcast_to(t, shape)",
    "expand_as": "use gt.broadcast_to(t, other.shape)",
    "fill_": "use t.fill(value)",
    "flip": "use gt.flip(t, axis)",
    "float": "use t.astype(gt.float32)",
    "gather": "use gt.gather(t, index, axis)",
    "half": "use t.astype(gt.float16)",
    "index_add": "use gt.index_add(t, index, source, axis)",
    "index_select": "use t.take(indices, axis=axis)",
    "int": "use t.astype(gt.int32)",
    "inverse": "use gt.linalg.inv(t)",
    "log_softmax": "use gt.log_softmax(t, axis)",
    "logsumexp": "use gt.logsumexp(t, axis)",
    "long": "use t.astype(gt.int64)",
    "lstsq": "use gt.linalg.lstsq(t, other)",
    "lu": "use gt.linalg.lu_factor(t), whose pivots count from 0",
    "masked_fill": "use gt.where(mask, value, t)",
    "masked_select": "use t[mask]",
    "matrix_power": "use gt.linalg.matrix_power(t, n)",
    "moveaxis": "use gt.moveaxis(t, source, destination)",
    "movedim": "use gt.moveaxis(t, source, destination)",
    "nan_to_num": "use gt.nan_to_num(t, nan=nan, posinf=posinf, neginf=neginf)",
    "narrow": "use t[start : start + length], or gt.take(t, range(start, start + length), axis)",
    "neg": "use -t",
    "new_ones": "use gt.ones(shape, dtype=t.dtype), or gt.ones_like(t)",
    "new_tensor": "use gt.tensor(values, dtype=t.dtype)",
    "new_zeros": "use gt.zeros(shape, dtype=t.dtype), or gt.zeros_like(t)",
    "numel": "use t.size",
    "register_hook": "give the function a rule with gt.custom_vjp",
    "repeat_interleave": "use t.repeat(repeats, axis=axis)",
    "requires_grad_": "use t.set_requires_grad()",
    "reshape_as": "use t.reshape(other.shape)",
    "retain_grad": "use gt.grad or gt.GradientTape, which differentiate by any value",
    "roll": "use gt.roll(t, shift, axis)",
    "rsqrt": "use 1 / gt.sqrt(t)",
    "scatter_add": "use gt.scatter_add(t, index, source, axis)",
    "scatter_add_": "use t = gt.scatter_add(t, index, source, axis)",
    "sgn": "use gt.sign(t)",
    "softmax": "use gt.softmax(t, axis)",
    "split": "use gt.split(t, range(size, len(t), size)), which takes indices or a number",
    "squeeze_": "use t = t.squeeze()",
    "svd": "use gt.linalg.svd(t, full_matrices=False), whose last result is V.mT.conj()",
    "t": "use t.T",
    "tile": "use gt.tile(t, reps)",
    "tril": "use gt.tril(t, k=k)",
    "triu": "use gt.triu(t, k=k)",
    "to": "use t.astype(dtype), or t.to_device(device)",
    "type": "use t.astype(dtype), or t.dtype",
    "type_as": "use t.astype(other.dtype)",
    "unbind": "use gt.unstack(t)",
    "unflatten": "use t.reshape",
    "view_as": "use t.reshape(other.shape)",
    "where": "use gt.where(condition, t, other)",
    "zero_": "use t.fill(0.0)",
}

# Attributes that arrays have and tensors do not, and what to use instead.
_OF_ARRAYS = {
    "flat": "use t.reshape(-1), which writes through to t as well",
    "strides": "a tensor does not show its memory layout; use t.numpy()",
    "flags": "a tensor does not show its memory layout; use t.numpy()",
    "base": "views follow their tensor by themselves",
    "data": "use t.detach().numpy()",
    "ctypes": "use t.detach().numpy()",
    "tobytes": "use t.detach().numpy()",
    "tofile": "use t.detach().numpy()",
    "dump": "use np.save with t.detach().numpy()",
    "dumps": "use np.save with t.detach().numpy()",
    "byteswap": "use t.detach().numpy()",
    "setfield": "use item assignment",
    "getfield": "use t.detach().numpy()",
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
