"""Names that other libraries have, each with what to write here: tables, and nothing else.

What follows "use" is Python, up to a comma or semicolon: a name that takes the same arguments, or a
call with what its arguments are. Each gives what the name gives elsewhere; a test runs them all.
"""

from __future__ import annotations

from gradtape.help.tensor_attributes import OPERATORS

_LOOPS = "use Python's loops and gt.where for control flow"

# Names of PyTorch, JAX, HIPS autograd and TensorFlow at the top of the module.
MODULE = {
    **{name: f"use x {symbol} y" for name, symbol in OPERATORS.items()},
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
    "logdet": "use gt.linalg.slogdet(x)[1], if the determinant is positive",
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

_PARAMETERS = "keep parameters in a container of your choice; layers are functions of them"
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
    **dict.fromkeys(("logpmf", "pmf"), "use logpdf or pdf: its values are not counts"),
    **dict.fromkeys(("moment", "stats"), "use mean, var and std, or SciPy's for a number"),
    "dist": "use distribution",
    "freeze": "call the distribution with its parameters",
    "marginal": "use the distribution of some rows of mean and cov",
    "random_state": "draw with gt.random, from a gt.random.Generator(seed)",
    "rvs": "draw with gt.random: gt.normal(loc, scale, shape), gt.uniform, gt.bernoulli; or take "
    "ppf(gt.rand(shape)), differentiable in the parameters, where it has one; or SciPy's",
}
