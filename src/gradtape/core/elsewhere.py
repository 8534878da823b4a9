"""Names that other libraries have, each with what to write here: tables, and nothing else.

What follows "use" is Python, up to a comma or semicolon: a name that takes the same arguments, or a
call with what its arguments are. Each gives what the name gives elsewhere; a test runs them all.
"""

from __future__ import annotations

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
    "absolute acos acosh amax amin angle asin asinh atan atanh ceil count_nonzero cov "
    "cosh digamma erf erfc erfinv exp2 expm1 floor isfinite isinf isnan lgamma log10 log1p log2 "
    "nanmean nansum negative reciprocal sign sinc sinh square tan trunc"
)
_OF_TWO = "allclose cross fmod inner kron logaddexp maximum minimum outer remainder vdot xlogy"
_OF_LINALG = "cholesky det eig qr slogdet"

_LOOPS = "use Python's loops and gt.where for control flow"

# Names of PyTorch, JAX, HIPS autograd and TensorFlow at the top of the module.
MODULE = {
    **{name: f"use x {symbol} y" for name, symbol in _OPERATORS.items()},
    "Variable": "use gt.tensor(x, requires_grad=True)",
    "aminmax": "use gt.min(x), gt.max(x)",
    "addmm": "use c + a @ b",
    "array": "use gt.tensor, or gt.asarray for an array that is not copied",
    "as_tensor": "use gt.asarray",
    "autograd": "use gt.grad(f)(x), or t.backward()",
    "bucketize": "use gt.searchsorted(boundaries, x)",
    "broadcast_tensors": "use gt.broadcast_arrays",
    "cast": "use gt.astype",
    "cat": "use gt.concat",
    "chain_matmul": "use gt.linalg.multi_dot([a, b, c])",
    "checkpoint": "all values of the forward pass are kept; gt.jit keeps fewer",
    "cholesky_solve": "use gt.linalg.cho_solve((factor, True), b)",
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
    "hamming_window": "use gt.hamming(n + 1)[:-1]",
    "hann_window": "use gt.hanning(n + 1)[:-1]",
    "hessian_vector_product": "use gt.hvp(f, (x,), (v,))",
    "igamma": "use gt.special.gammainc",
    "igammac": "use gt.special.gammaincc",
    "index_select": "use gt.take(x, index, axis=dim)",
    "inference_mode": "use gt.no_grad",
    "inverse": "use gt.linalg.inv",
    "is_complex": 'use gt.isdtype(x.dtype, "complex floating")',
    "is_floating_point": 'use gt.isdtype(x.dtype, "real floating")',
    "is_grad_enabled": "use t.requires_grad, which says whether a result was recorded",
    "is_tensor": "use isinstance(x, gt.Tensor)",
    "lax": "use NumPy's functions, and Python's loops and gt.where for control flow",
    "lerp": "use x + weight * (y - x)",
    "linearize": "use gt.jvp(f, (x,), (v,))",
    "logdet": "use gt.linalg.slogdet(x)[1], where the determinant is above 0",
    "make_jaxpr": "use gt.jit(f).graph(x)",
    "make_jvp": "use gt.jvp(f, (x,), (v,))",
    "make_vjp": "use gt.vjp(f, x)[::-1], as its value comes first here",
    "masked_fill": "use gt.where(mask, value, x)",
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
    "range": "use gt.arange, which stops before its end, as Python's range",
    "reduce_max": "use gt.max",
    "reduce_mean": "use gt.mean",
    "reduce_sum": "use gt.sum",
    "remat": "all values of the forward pass are kept; gt.jit keeps fewer",
    "repeat_interleave": "use gt.repeat",
    "ravel_pytree": "use optree, and gt.concat of the leaves",
    "row_stack": "use gt.vstack",
    "rsqrt": "use 1 / gt.sqrt(x)",
    "scan": _LOOPS,
    "scatter": "write into a copy with gt.put_along_axis(copy, index, source, dim); gt.scatter_add "
    "adds",
    "set_default_dtype": "give dtype=; the default is float64, as NumPy's",
    "set_grad_enabled": "use gt.no_grad or gt.enable_grad",
    "sgn": "use gt.sign",
    "std_mean": "use gt.std(x, ddof=1), gt.mean(x)",
    "swapdims": "use gt.swapaxes",
    "t": "use x.T",
    "take_along_dim": "use gt.take_along_axis",
    "tensor_split": "use gt.array_split",
    "trapz": "use gt.trapezoid",
    "tree_map": "use optree.tree_map",
    "tree_util": "use optree",
    "unbind": "use gt.unstack",
    "var_mean": "use gt.var(x, ddof=1), gt.mean(x)",
    "while_loop": _LOOPS,
}

# Names that tensors have elsewhere, and arrays of NumPy do not.
TENSOR = {
    **{name: f"use gt.{name}(t)" for name in _FUNCTIONS.split()},
    **{name: f"use gt.{name}(t, other)" for name in _OF_TWO.split()},
    **{name: f"use gt.linalg.{name}(t)" for name in _OF_LINALG.split()},
    **{name: f"use t {symbol} other" for name, symbol in {**_OPERATORS, **_OF_NUMPY}.items()},
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
    "contiguous": "leave it out: a tensor does not tell how it lies in memory",
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
    "split": "use gt.split(t, range(size, len(t), size)), which takes places or how many parts",
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
