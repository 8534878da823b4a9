"""Attributes that tensors, tapes and compiled functions do not have, and what to write instead.

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
_BY_NAME = {"equal": "==", "not_equal": "!=", "greater": ">", "greater_equal": ">="}
_BY_NAME |= {"less": "<", "less_equal": "<="}
_OF_NUMPY = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "pow": "**"}
_IN_PLACE = {"add": "+", **_ARITHMETIC, **_OF_NUMPY}
_DTYPES = {"half": "float16", "float": "float32", "double": "float64"}
_DTYPES |= {"int": "int32", "long": "int64", "bool": "bool", "byte": "uint8", "char": "int8"}
_DTYPES |= {"short": "int16", "bfloat16": "bfloat16", "cfloat": "complex64"}
_DTYPES |= {"cdouble": "complex128"}

# Methods of tensors elsewhere that are functions here, by their arguments.
_FUNCTIONS = {
    "t": "absolute acos acosh amax amin angle arccos arccosh arcsin arcsinh arctan arctanh "
    "argwhere asin asinh atan atanh bitwise_not ceil corrcoef count_nonzero cov cosh deg2rad "
    "digamma erf erfc erfinv exp2 expm1 fix fliplr flipud floor frexp i0 isfinite isinf isnan "
    "isneginf isposinf lgamma log10 log1p log2 logical_not nanmean nansum negative positive "
    "rad2deg reciprocal sign signbit sinc sinh square tan trunc",
    "t, other": "allclose arctan2 atan2 bitwise_and bitwise_left_shift bitwise_or "
    "bitwise_right_shift bitwise_xor copysign cross float_power floor_divide fmax fmin fmod gcd "
    "heaviside hypot inner isclose kron lcm ldexp logaddexp logaddexp2 logical_and logical_or "
    "logical_xor maximum minimum nextafter outer remainder true_divide vdot xlogy",
    "t, bins": "histogram",
    "t, indices_or_sections": "dsplit hsplit vsplit",
    "t, k, axes": "rot90",
    "t, q, axis": "nanquantile",
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
# Functions of one argument that PyTorch's tensors also write in place, with an underscore.
_WRITTEN = (
    "abs absolute acos acosh arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh "
    "bitwise_not ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 fix floor i0 lgamma "
    "log log10 log1p log2 logical_not nan_to_num negative rad2deg reciprocal relu round sigmoid "
    "sign sin sinc sinh sqrt square tan tanh tril triu trunc"
)
_WRITTEN_BY_TWO = (
    "arctan2 atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor "
    "copysign float_power floor_divide fmod gcd heaviside hypot lcm ldexp logical_and logical_or "
    "logical_xor nextafter remainder true_divide xlogy"
)
_OF_LINALG = "cholesky det eig qr slogdet"

# Names that tensors of other libraries have, and NumPy's arrays do not.
TENSOR = {
    **{n: f"use gt.{n}({args})" for args, names in _FUNCTIONS.items() for n in names.split()},
    **{name: f"use gt.linalg.{name}(t)" for name in _OF_LINALG.split()},
    **{
        name: f"use t {symbol} other"
        for name, symbol in {**OPERATORS, **_OF_NUMPY, **_BY_NAME}.items()
    },
    **{f"{name}_": f"use t[...] = gt.{name}(t)" for name in _WRITTEN.split()},
    **{f"{name}_": f"use t[...] = gt.{name}(t, other)" for name in _WRITTEN_BY_TWO.split()},
    **{f"{name}_": f"use t {symbol}= other" for name, symbol in _IN_PLACE.items()},
    **{name: f"use t.astype(gt.{dtype})" for name, dtype in _DTYPES.items()},
    "H": "use gt.matrix_transpose(t).conj()",
    "addbmm": "use t + gt.sum(a @ b, axis=0)",
    "addcdiv": "use t + value * a / b",
    "addcmul": "use t + value * a * b",
    "addmm": "use t + a @ b",
    "addmv": "use t + a @ b",
    "addr": "use t + gt.outer(a, b)",
    "adjoint": "use gt.matrix_transpose(t).conj()",
    "aminmax": "use gt.min(t), gt.max(t)",
    "baddbmm": "use t + a @ b",
    "bernoulli": "use gt.bernoulli(t)",
    "block_until_ready": "leave it out: results are computed when a call returns",
    "clamp": "use t.clip",
    "cholesky_inverse": "use gt.linalg.inv(t @ gt.matrix_transpose(t))",
    "cholesky_solve": "use gt.linalg.cho_solve((factor, True), t)",
    "clamp_": "use t[...] = t.clip(low, high)",
    "clip_": "use t[...] = t.clip(low, high)",
    "clamp_max": "use gt.minimum(t, high)",
    "clamp_min": "use gt.maximum(t, low)",
    "contiguous": "leave it out: a tensor does not show its memory layout",
    "copy_": "use t[...] = other",
    "cpu": "use t.to_device('cpu')",
    "cuda": "tensors of CuPy's arrays are computed where these are: gt.asarray(cupy_array)",
    "detach_": "use t = t.detach()",
    "data_ptr": "use t.detach().numpy()",
    "diag_embed": "use t[..., None] * gt.eye(t.shape[-1])",
    "diagflat": "use gt.diag(t.ravel(), k)",
    "dim": "use t.ndim",
    "dist": "use gt.norm(t - other)",
    "element_size": "use t.itemsize",
    "equal": "use gt.array_equal(t, other)",
    "expand": "use gt.broadcast_to(t, shape)",
    "expand_as": "use gt.broadcast_to(t, other.shape)",
    "fill_": "use t.fill(value)",
    "fill_diagonal_": "use gt.fill_diagonal(t, value)",
    "frac": "use t - gt.trunc(t)",
    "ger": "use gt.outer(t, other)",
    "get_shape": "use t.shape",
    "grad_fn": "use t.record, which tells op and parents",
    "histc": "use gt.histogram(t, bins, (low, high))[0]",
    "igamma": "use gradtape.scipy.special.gammainc(t, other)",
    "igammac": "use gradtape.scipy.special.gammaincc(t, other)",
    "index_add_": "use t = gt.index_add(t, index, source, axis)",
    **dict.fromkeys(("index_copy_", "index_fill_"), "use t[index] = value"),
    "index_put_": "use t[indices] = values",
    "index_copy": "use t.at[index].set(value)",
    "index_fill": "use t.at[index].set(value)",
    "index_put": "use gt.index_put(t, indices, values)",
    "index_select": "use t.take(indices, axis=axis)",
    "inverse": "use gt.linalg.inv(t)",
    "is_complex": 'use gt.isdtype(t.dtype, "complex floating")',
    "is_contiguous": "leave it out: a tensor does not show its memory layout",
    "is_cuda": "use t.device",
    "is_floating_point": 'use gt.isdtype(t.dtype, "real floating")',
    "lerp": "use t + weight * (other - t)",
    "logdet": "use gt.linalg.slogdet(t)[1], if the determinant is positive",
    "logit": "use gradtape.scipy.special.logit(t)",
    "lstsq": "use gt.linalg.lstsq(t, other)",
    "lu": "use gt.linalg.lu_factor(t), whose pivots count from 0",
    "masked_fill": "use gt.where(mask, value, t)",
    "mH": "use gt.matrix_transpose(t).conj()",
    "masked_fill_": "use t[mask] = value",
    "masked_select": "use t[mask]",
    "matrix_exp": "use gt.linalg.expm(t)",
    "matrix_power": "use gt.linalg.matrix_power(t, n)",
    "movedim": "use gt.moveaxis(t, source, destination)",
    "narrow": "use t[start : start + length], or gt.take(t, range(start, start + length), axis)",
    "msort": "use gt.sort(t, axis=0)",
    "multinomial": "use gt.random.categorical(gt.log(t), shape)",
    "nanmedian": "use gt.nanmedian(t), the mean of the two in the middle",
    "ndimension": "use t.ndim",
    "neg": "use -t",
    "neg_": "use t[...] = -t",
    "nelement": "use t.size",
    "new_empty": "use gt.empty(shape, dtype=t.dtype)",
    "new_full": "use gt.full(shape, value, dtype=t.dtype)",
    "new_ones": "use gt.ones(shape, dtype=t.dtype), or gt.ones_like(t)",
    "new_tensor": "use gt.tensor(values, dtype=t.dtype)",
    "new_zeros": "use gt.zeros(shape, dtype=t.dtype), or gt.zeros_like(t)",
    "normal_": "use t[...] = gt.normal(loc, scale, t.shape)",
    "numel": "use t.size",
    "pin_memory": "leave it out: arrays are in main memory",
    "pinverse": "use gt.linalg.pinv(t)",
    "prelu": "use gt.nn.prelu(t, weight)",
    "repeat_interleave": "use t.repeat(repeats, axis=axis)",
    "requires_grad_": "use t.set_requires_grad()",
    "reshape_as": "use t.reshape(other.shape)",
    "retain_grad": "use gt.grad or gt.GradientTape, which differentiate by any value",
    "rsqrt": "use 1 / gt.sqrt(t)",
    "scatter": "use gt.scatter(t, index, source, axis)",
    "scatter_": "use t = gt.scatter(t, index, source, axis)",
    "scatter_add_": "use t = gt.scatter_add(t, index, source, axis)",
    "scatter_reduce": "use gt.scatter_add, gt.scatter_max, or gt.scatter_min",
    "select": "use t.take(number, axis=axis)",
    "sgn": "use gt.sign(t)",
    "share_memory_": "leave it out: processes of gt.data share arrays as they are",
    "solve": "use gt.linalg.solve(t, other)",
    "split": "use gt.split(t, range(size, len(t), size)), which takes indices or a number",
    "split_with_sizes": "use gt.split(t, np.cumsum(sizes)[:-1])",
    "squeeze_": "use t = t.squeeze()",
    "svd": "use gt.linalg.svd(t, full_matrices=False), whose last result is V.mT.conj()",
    "swapdims": "use t.swapaxes(source, destination)",
    "t": "use t.T",
    "t_": "use t = t.T",
    "take_along_dim": "use gt.take_along_axis(t, index, axis)",
    "tensor_split": "use gt.array_split(t, chunks, axis)",
    "transpose_": "use t = t.swapaxes(source, destination)",
    "to": "use t.astype(dtype), or t.to_device(device)",
    "type": "use t.astype(dtype), or t.dtype",
    "type_as": "use t.astype(other.dtype)",
    "unbind": "use gt.unstack(t)",
    "uniform_": "use t[...] = gt.uniform(low, high, t.shape)",
    "unflatten": "use t.reshape",
    "unfold": "use np.lib.stride_tricks.sliding_window_view(t, size, axis)",
    "unsqueeze_": "use t = t.unsqueeze(axis)",
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

# Attributes that compiled functions of other libraries have.
COMPILED = {
    **dict.fromkeys(
        ("as_text", "code", "inlined_graph", "jaxpr", "trace"), "use gt.jit(f).graph(*args)"
    ),
    **dict.fromkeys(
        ("compile", "experimental_get_compiler_ir", "lower"),
        "use gt.jit(f).explain(*args), a report with graph, loops, LLVM IR and assembly",
    ),
    **dict.fromkeys(
        ("get_concrete_function", "warmup"), "call it: it is compiled at the first call"
    ),
    "clear_cache": "leave it out: the code for forms that are not used goes by itself",
    "eval_shape": "use gt.jit(f).graph(*args).outputs, which have shapes and dtypes",
    "python_function": "use gt.jit(f).__wrapped__",
}

# Attributes of TensorFlow's tapes.
TAPE = {
    "batch_jacobian": "use gt.vmap(gt.jacobian(f))(x)",
    "reset": "make a new tape, or enter this one again",
    "stop_recording": "use gt.no_grad() in a with statement",
    "watched_variables": "use tape.records(), whose leaves are what is watched",
}


class MissingAttribute:
    """Stands in for a missing attribute, and raises the error of one."""

    def __init__(self, name: str, instead: str, owner: str) -> None:
        self.name = name
        self.instead = instead
        self.owner = owner
        self.__doc__ = f"Not there: {instead}."

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None:
            return self
        text = f"{self.owner} has no attribute {self.name!r}; {self.instead}"
        raise AttributeError(text, name=self.name, obj=instance)


def _dir(self: object) -> list[str]:
    """The names that an object has."""
    return [
        name
        for name in object.__dir__(self)
        if not isinstance(getattr(type(self), name, None), MissingAttribute)
    ]


def refuse(kind: type, owner: str, names: dict[str, str]) -> None:
    """Give a class attributes that raise, unless it has them.

    Args:
        kind: The class.
        owner: What its instances are called, with an article.
        names: What to write instead of each.
    """
    for name, instead in names.items():
        if name not in vars(kind):
            setattr(kind, name, MissingAttribute(name, instead, owner))
    setattr(kind, "__dir__", _dir)  # noqa: B010 - for type checkers


def install() -> None:
    """Give tensors the attributes that raise."""
    refuse(Tensor, "a tensor", {**TENSOR, **_OF_ARRAYS})
