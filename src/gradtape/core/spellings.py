"""What other libraries call things, and what they are called here.

There is one name for each thing. Whoever writes another library's name is told ours, by the error
that Python raises anyway: for names of the module and of tensors, and for keywords of functions.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from gradtape.core.advice import WITH_ARRAY_API
from gradtape.errors import MissingNameError, UnsupportedError

P = ParamSpec("P")
R = TypeVar("R")

# Where else a name is looked for.
_NAMESPACES = (
    *("linalg", "nn", "special", "fft", "signal", "stats"),
    *("ndimage", "sparse", "random", "optim"),
)

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

_LOOPS = "use Python's loops and gt.where for control flow"

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
    "fori_loop": _LOOPS,
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
    "ravel_pytree": "use optree, and gt.concat of the leaves",
    "row_stack": "use gt.vstack",
    "rsqrt": "use 1 / gt.sqrt(x)",
    "scan": _LOOPS,
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
    "while_loop": _LOOPS,
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
    "at": "use t[index] = value or t[index] += value, which are recorded",
    "block_until_ready": "leave it out: results are computed when a call returns",
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
    "new_ones": "use gt.ones(shape, dtype=t.dtype), or gt.ones_like(t)",
    "new_tensor": "use gt.tensor(values, dtype=t.dtype)",
    "new_zeros": "use gt.zeros(shape, dtype=t.dtype), or gt.zeros_like(t)",
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

_PARAMETERS = "parameters are arrays in a container of your choice, and layers functions of them"
_SEEDS = "use gt.manual_seed(seed), or generator=gt.random.Generator(seed)"
_SAME_NAMES = tuple((name, name) for name in ("beta", "gamma", "laplace", "logistic", "pareto"))

# Names that others have in the namespaces.
NAMES = {
    "nn": {
        **dict.fromkeys(("Module", "ModuleList", "Parameter", "ParameterList"), _PARAMETERS),
        **dict.fromkeys(("ModuleDict", "Sequential"), _PARAMETERS),
        "MultiheadAttention": "use gt.nn.scaled_dot_product_attention",
        "init": "draw parameters with gt.random, or with NumPy's generators",
    },
    "random": {
        **dict.fromkeys(("PRNGKey", "RandomState", "default_rng", "key", "seed", "split"), _SEEDS),
        **{
            name: f"use gt.stats.{theirs}.ppf(gt.rand(shape), …), differentiable in its parameters"
            for name, theirs in (("exponential", "expon"), ("gumbel", "gumbel_r"), *_SAME_NAMES)
        },
        **dict.fromkeys(("binomial", "categorical", "poisson"), "use NumPy's generators"),
        "choice": "use gt.randint, or NumPy's generators",
        "integers": "use gt.randint",
        "multivariate_normal": "use mean + gt.linalg.cholesky(cov) @ gt.randn(n)",
        "random": "use gt.rand",
        "shuffle": "use gt.permutation",
        "standard_normal": "use gt.randn",
    },
    "sparse": {
        **{f"{kind}_matrix": f"use gt.sparse.{kind}_array" for kind in ("csr", "csc", "coo")},
        **{
            f"{kind}_array": f"use gt.sparse.from_scipy(scipy.sparse.{kind}_array(…)), or "
            "gt.sparse.coo_array"
            for kind in ("bsr", "dia", "dok", "lil")
        },
        "BCOO": "use gt.sparse.coo_array",
        "bmat": "use gt.sparse.block_array",
        "diags": "use gt.sparse.diags_array",
        "eye": "use gt.sparse.eye_array",
        "identity": "use gt.sparse.eye_array",
        "issparse": "use isinstance(x, gt.sparse.SparseArray)",
        "linalg": "use gt.sparse.spsolve, gt.sparse.norm, gt.linalg.cg, gt.linalg.gmres",
        "sparse_coo_tensor": "use gt.sparse.coo_array",
    },
}

_FIT = "minimize -gt.sum of the logarithm of the density with gt.value_and_grad"
_JUMPS = "quantiles of counts jump from one to the next: use SciPy's for a number"

# Methods that distributions of SciPy have, and ours, or those of counts or vectors, have not.
DISTRIBUTIONS = {
    **dict.fromkeys(("args", "kwds"), "use parameters"),
    **dict.fromkeys(("cdf", "logcdf", "entropy", "expect", "support"), "use SciPy's for a number"),
    **dict.fromkeys(("cov", "mean"), "use its formula, or SciPy's for a number"),
    **dict.fromkeys(("fit", "fit_loc_scale", "nnlf"), _FIT),
    **dict.fromkeys(("interval", "isf", "median", "ppf"), _JUMPS),
    **dict.fromkeys(("logpdf", "pdf"), "use logpmf or pmf: its values are counts"),
    **dict.fromkeys(("logpmf", "pmf"), "use logpdf or pdf: its values are no counts"),
    **dict.fromkeys(("moment", "stats"), "use mean, var and std, or SciPy's for a number"),
    "dist": "use distribution",
    "freeze": "call the distribution with its parameters",
    "marginal": "use the distribution of some rows of mean and cov",
    "random_state": "draw with gt.random, from a generator of a seed",
    "rvs": "draw with gt.random: gt.normal(loc, scale, shape), gt.uniform, gt.bernoulli; or take "
    "ppf(gt.rand(shape)), differentiable in the parameters, where it has one; or SciPy's",
}

# What keywords are called here, where they are NumPy's.
KEYWORDS = {
    "dim": "axis",
    "dims": "axis",
    "keepdim": "keepdims",
    "keep_dims": "keepdims",
    "unbiased": "ddof",
}
_OF_TRANSFORMS = {"in_dims": "in_axes", "out_dims": "out_axes"}

# Methods whose first argument is the axis, or a tuple of axes.
_ALONG_AXES = ("sum", "mean", "prod", "max", "min", "var", "std", "any", "all", "squeeze")


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
    return _near(name, "gt", dir(gradtape))


def missing_from(namespace: str) -> Callable[[str], object]:
    """The `__getattr__` of one of the namespaces, which says what to write instead.

    >>> gt.nn.Conv2d
    Traceback (most recent call last):
        ...
    gradtape.errors.MissingNameError: module 'gradtape.nn' has no attribute 'Conv2d'; use
    gt.nn.conv2d, a function of the parameters
    """

    def missing(name: str) -> object:
        raise MissingNameError(
            name, functools.partial(_instead_in, namespace), f"module 'gradtape.{namespace}'"
        )

    return missing


def _instead_in(namespace: str, name: str) -> str | None:
    """What to write in place of `gt.namespace.name`."""
    known = NAMES.get(namespace, {}).get(name)
    if known is not None or name.startswith("_"):
        return known
    gradtape = sys.modules["gradtape"]
    if namespace == "nn" and (layer := _layer(name, gradtape.nn.functional.__all__)):
        return f"use gt.nn.{layer}, a function of the parameters"
    if hasattr(gradtape, name):
        return f"use gt.{name}"
    if namespace in ("nn", "random", "optim"):
        return _near(name, f"gt.{namespace}", dir(getattr(gradtape, namespace)))
    if not hasattr(importlib.import_module(f"scipy.{namespace}"), name):
        return _near(name, f"gt.{namespace}", dir(getattr(gradtape, namespace)))
    theirs = f"scipy.{namespace}.{name}"
    if theirs in WITH_ARRAY_API:
        return f"use {theirs} with SCIPY_ARRAY_API=1 in the environment"
    return f"use {theirs} on arrays, without gradient, or write it with NumPy's functions"


def _layer(name: str, functions: Iterable[str]) -> str | None:
    """The function of a layer: `conv2d` of `Conv2d`, `cross_entropy` of `CrossEntropyLoss`."""
    found = {function.replace("_", ""): function for function in functions}
    whole = name.lower()
    plain = whole.removesuffix("loss")
    shorter = next((plain.removesuffix(n) for n in ("1d", "2d", "3d") if plain.endswith(n)), plain)
    return next((found[one] for one in (whole, plain, shorter) if one in found), None)


def _near(name: str, owner: str, names: Iterable[str]) -> str | None:
    near = importlib.import_module("difflib").get_close_matches(name, list(names), n=1)
    return f"did you mean {owner}.{near[0]}?" if near else None


def keyword_advice(options: Iterable[str]) -> str | None:
    """What the first of some keywords that has another name in other libraries is called here."""
    names = (f"{KEYWORDS[option]}=" for option in options if option in KEYWORDS)
    found = next(names, None)
    return found and f"it is called {found} here, as in NumPy"


def spelled_here(function: Callable[P, R]) -> Callable[P, R]:
    """A transform that names the keyword to use in place of another library's."""

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for option in kwargs.keys() & _OF_TRANSFORMS.keys():
            raise UnsupportedError(
                f"{function.__name__}: came {option}=; it is called {_OF_TRANSFORMS[option]}= here"
            )
        return function(*args, **kwargs)

    return checked


def position_advice(name: str, args: tuple[Any, ...]) -> str | None:
    """What to write in place of arguments that a method takes in other libraries."""
    numbers = [type(arg) is int for arg in args]
    if name == "flatten" and args and all(numbers):
        return "needed no axes; use t.reshape(len(t), -1), or all sizes: t.reshape(2, -1, 3)"
    if name == "repeat" and len(args) > 1 and all(numbers):
        return f"needed repeats and one axis; use gt.tile(t, {args}) to repeat the whole"
    if name in _ALONG_AXES and len(args) > 1 and numbers[0]:
        if all(numbers):
            return f"axes go into one tuple: t.{name}({args})"
        if isinstance(args[1], bool):
            return f"flags go by name: t.{name}({args[0]}, keepdims={args[1]})"
    return None
