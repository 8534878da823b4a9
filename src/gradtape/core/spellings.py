"""What other libraries call things, and what they are called here.

There is one name for each thing. Whoever writes another library's name is told ours, by the error
that Python raises anyway: for names of the module and of tensors, and for keywords of functions.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable

import numpy as np

from gradtape.errors import MissingNameError

# Where else a name is looked for.
_NAMESPACES = ("linalg", "nn", "special", "fft", "signal", "stats", "ndimage", "random", "optim")

# What is an operator here, and a function as well if it goes by NumPy's name.
_OPERATORS = {
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
    "absolute acos acosh allclose amax amin angle asin asinh atan atanh bincount broadcast_to ceil "
    "chunk cosh count_nonzero cov cross diag diff digamma erf erfc erfinv exp2 expm1 flip floor "
    "fmod gather index_add inner isfinite isinf isnan kron lgamma log10 log1p log2 log_softmax "
    "logaddexp logsumexp maximum minimum moveaxis nan_to_num nanmean nansum negative outer "
    "reciprocal remainder roll scatter_add sign sinc sinh softmax split square tan tile tril triu "
    "trunc vdot where xlogy"
)
_OF_LINALG = "cholesky det eig lstsq lu matrix_power qr slogdet svd"

# Names of PyTorch, JAX, HIPS autograd and TensorFlow at the top of the module.
MODULE = {
    **{name: f"use x {symbol} y" for name, symbol in _OPERATORS.items()},
    "Variable": "use gt.tensor(x, requires_grad=True)",
    "aminmax": "use gt.min and gt.max",
    "addmm": "use c + a @ b",
    "array": "use gt.tensor, or gt.asarray for an array that is not copied",
    "as_tensor": "use gt.asarray",
    "autograd": "use gt.grad(f)(x), or t.backward()",
    "bucketize": "use gt.searchsorted",
    "broadcast_tensors": "use gt.broadcast_arrays",
    "cast": "use gt.astype",
    "cat": "use gt.concat",
    "chain_matmul": "use gt.linalg.multi_dot",
    "checkpoint": "all values of the forward pass are kept; gt.jit keeps fewer",
    "cholesky_solve": "use gt.linalg.cho_solve",
    "clamp": "use gt.clip",
    "clamp_max": "use gt.minimum",
    "clamp_min": "use gt.maximum",
    "clone": "use gt.copy",
    "compile": "use gt.jit",
    "complex": "use x + 1j * y",
    "constant": "use gt.asarray",
    "convert_to_tensor": "use gt.asarray",
    "cuda": "tensors of CuPy's arrays are computed where these are: gt.asarray(cupy_array)",
    "custom_gradient": "use gt.custom_vjp",
    "detach": "use gt.stop_gradient",
    "device_put": "use t.to_device",
    "elementwise_grad": "use gt.grad(lambda x: np.sum(f(x)))",
    "from_numpy": "use gt.asarray",
    "ger": "use gt.outer",
    "hamming_window": "use gt.hamming",
    "hann_window": "use gt.hanning",
    "hessian_vector_product": "use gt.hvp",
    "igamma": "use gt.special.gammainc",
    "igammac": "use gt.special.gammaincc",
    "index_select": "use gt.take",
    "inference_mode": "use gt.no_grad",
    "inverse": "use gt.linalg.inv",
    "is_complex": 'use gt.isdtype(x.dtype, "complex floating")',
    "is_floating_point": 'use gt.isdtype(x.dtype, "real floating")',
    "is_grad_enabled": "use t.requires_grad, which says whether a result was recorded",
    "is_tensor": "use isinstance(x, gt.Tensor)",
    "lax": "use NumPy's functions, and Python's loops and gt.where for control flow",
    "lerp": "use x + weight * (y - x)",
    "linearize": "use gt.jvp",
    "logdet": "use gt.linalg.slogdet",
    "make_jaxpr": "use gt.jit(f).graph(x)",
    "make_jvp": "use gt.jvp",
    "make_vjp": "use gt.vjp",
    "masked_fill": "use gt.where",
    "masked_select": "use x[mask]",
    "matrix_exp": "use gt.linalg.expm",
    "movedim": "use gt.moveaxis",
    "multinomial": "use NumPy's generators",
    "mvlgamma": "use gt.special.multigammaln",
    "neg": "use gt.negative",
    "numel": "use gt.size",
    "numpy": "use gt itself, or NumPy's functions: np.sin(t)",
    "permute": "use gt.permute_dims",
    "pinverse": "use gt.linalg.pinv",
    "pmap": "use gt.vmap, or gt.jit, which computes on all threads",
    "primitive": "use gt.custom_vjp",
    "promote_types": "use gt.result_type",
    "rand_like": "use gt.rand(x.shape)",
    "randn_like": "use gt.randn(x.shape)",
    "randperm": "use gt.permutation",
    "range": "use gt.arange",
    "reduce_max": "use gt.max",
    "reduce_mean": "use gt.mean",
    "reduce_sum": "use gt.sum",
    "remat": "all values of the forward pass are kept; gt.jit keeps fewer",
    "repeat_interleave": "use gt.repeat",
    "row_stack": "use gt.vstack",
    "rsqrt": "use 1 / gt.sqrt(x)",
    "scatter": "use gt.put_along_axis, or gt.scatter_add",
    "set_default_dtype": "give dtype=; the default is float64, as NumPy's",
    "set_grad_enabled": "use gt.no_grad or gt.enable_grad",
    "sgn": "use gt.sign",
    "std_mean": "use gt.std and gt.mean",
    "swapdims": "use gt.swapaxes",
    "t": "use x.T",
    "take_along_dim": "use gt.take_along_axis",
    "tensor_split": "use gt.array_split",
    "trapz": "use gt.trapezoid",
    "tree_map": "use optree.tree_map",
    "tree_util": "use optree",
    "unbind": "use gt.unstack",
    "var_mean": "use gt.var and gt.mean",
}

# Names that tensors have elsewhere, and arrays of NumPy do not.
TENSOR = {
    **{name: f"use gt.{name}(t)" for name in _FUNCTIONS.split()},
    **{name: f"use gt.linalg.{name}(t)" for name in _OF_LINALG.split()},
    **{name: f"use t {symbol} other" for name, symbol in {**_OPERATORS, **_OF_NUMPY}.items()},
    "add_": "use t += other",
    "sub_": "use t -= other",
    "mul_": "use t *= other",
    "div_": "use t /= other",
    "clamp": "use t.clip",
    "clamp_": "use t[...] = t.clip(low, high)",
    "contiguous": "leave it out: a tensor does not tell how it lies in memory",
    "copy_": "use t[...] = other",
    "cpu": "use t.to_device('cpu')",
    "cuda": "tensors of CuPy's arrays are computed where these are: gt.asarray(cupy_array)",
    "detach_": "use t = t.detach()",
    "dim": "use t.ndim",
    "double": "use t.astype(gt.float64)",
    "expand": "use gt.broadcast_to(t, shape)",
    "expand_as": "use gt.broadcast_to(t, other.shape)",
    "fill_": "use t.fill(value)",
    "float": "use t.astype(gt.float32)",
    "half": "use t.astype(gt.float16)",
    "index_select": "use t.take(indices, axis=axis)",
    "int": "use t.astype(gt.int32)",
    "inverse": "use gt.linalg.inv(t)",
    "long": "use t.astype(gt.int64)",
    "masked_fill": "use gt.where(mask, value, t)",
    "masked_select": "use t[mask]",
    "movedim": "use gt.moveaxis(t, source, destination)",
    "narrow": "use t[start : start + length]",
    "neg": "use -t",
    "numel": "use t.size",
    "register_hook": "give the function a rule with gt.custom_vjp",
    "repeat_interleave": "use t.repeat(repeats, axis=axis)",
    "requires_grad_": "use t.set_requires_grad()",
    "reshape_as": "use t.reshape(other.shape)",
    "retain_grad": "use gt.grad or gt.GradientTape, which differentiate by any value",
    "rsqrt": "use 1 / gt.sqrt(t)",
    "scatter_add_": "use t = gt.scatter_add(t, …)",
    "sgn": "use gt.sign(t)",
    "squeeze_": "use t = t.squeeze()",
    "t": "use t.T",
    "to": "use t.astype(dtype), or t.to_device(device)",
    "type": "use t.astype(dtype), or t.dtype",
    "type_as": "use t.astype(other.dtype)",
    "unbind": "use gt.unstack(t)",
    "unflatten": "use t.reshape",
    "view_as": "use t.reshape(other.shape)",
    "zero_": "use t.fill(0.0)",
}

# What keywords are called here, where they are NumPy's.
KEYWORDS = {
    "dim": "axis",
    "dims": "axis",
    "keepdim": "keepdims",
    "keep_dims": "keepdims",
    "unbiased": "ddof",
}


def missing_name(name: str) -> MissingNameError:
    """The error for a name that the module does not have."""
    return MissingNameError(name, _instead)


def _instead(name: str) -> str | None:
    """What to write in place of `gt.name`."""
    if name in MODULE:
        return MODULE[name]
    # By name: the core does not know what is built upon it.
    gradtape = sys.modules["gradtape"]
    for namespace in _NAMESPACES:
        if hasattr(getattr(gradtape, namespace, None), name):
            return f"use gt.{namespace}.{name}"
    if hasattr(np, name):
        return f"use np.{name}"
    near = importlib.import_module("difflib").get_close_matches(name, dir(gradtape), n=1)
    return f"did you mean gt.{near[0]}?" if near else None


def keyword_advice(options: Iterable[str]) -> str | None:
    """What the first of some keywords that has another name in other libraries is called here."""
    names = (f"{KEYWORDS[option]}=" for option in options if option in KEYWORDS)
    found = next(names, None)
    return found and f"it is called {found} here, as in NumPy"
