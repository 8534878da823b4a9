"""Names from other libraries, each with what to write here: tables only.

The text after "use", up to a comma or semicolon, is Python: a name that takes the same arguments,
or a call that shows its arguments. Each gives what the name gives elsewhere; a test runs them all.
"""

from __future__ import annotations

from gradtape.advice.tensor_attributes import OPERATORS


def _renamed(namespace: str, pairs: str) -> dict[str, str]:
    """Advice on names that have another name in a namespace of ours, given as "theirs=ours"."""
    names = (pair.split("=") for pair in pairs.split())
    return {theirs: f"use {namespace}.{ours}" for theirs, ours in names}


# Names of other libraries, and our names for functions with the same arguments.
_RENAMED = (
    "as_tensor=asarray broadcast_tensors=broadcast_arrays cast=astype cat=concat clamp=clip "
    "clamp_max=minimum clamp_min=maximum clone=copy compile=jit constant=asarray "
    "convert_to_tensor=asarray custom_gradient=custom_vjp detach=stop_gradient "
    "from_numpy=asarray ger=outer igamma=scipy.special.gammainc igammac=scipy.special.gammaincc "
    "inference_mode=no_grad inverse=linalg.inv ln=log map_fn=map matrix_exp=linalg.expm "
    "movedim=moveaxis mvlgamma=scipy.special.multigammaln neg=negative numel=size "
    "permute=permute_dims pinverse=linalg.pinv primitive=custom_vjp promote_types=result_type "
    "randperm=permutation recip=reciprocal remat=checkpoint reduce_max=max reduce_mean=mean "
    "reduce_sum=sum repeat_interleave=repeat row_stack=vstack sgn=sign swapdims=swapaxes "
    "switch_case=switch take_along_dim=take_along_axis tensor_split=array_split "
    "trapz=trapezoid unbind=unstack"
)

# Modules of SciPy.
_SCIPY = ("integrate", "ndimage", "optimize", "signal", "sparse", "spatial", "special", "stats")

_HOST = "use gt.host_call(f, result_like, x)"

# Names of PyTorch, JAX, HIPS autograd and TensorFlow at the top of the module.
MODULE = {
    **_renamed("gt", _RENAMED),
    **{name: f"use gt.scipy.{name}" for name in _SCIPY},
    **{name: f"use x {symbol} y" for name, symbol in OPERATORS.items()},
    **_renamed("gt", "div=divide mul=multiply rem=remainder sub=subtract"),
    "GradScaler": "use gt.LossScaler.Dynamic(), which has its methods",
    "Variable": "use gt.tensor(x, requires_grad=True)",
    "aminmax": "use gt.min(x), gt.max(x)",
    "addmm": "use c + a @ b",
    "autograd": "use gt.grad(f)(x), or t.backward()",
    "bucketize": "use gt.searchsorted(boundaries, x)",
    "chain_matmul": "use gt.linalg.multi_dot([a, b, c])",
    "cholesky_solve": "use gt.linalg.cho_solve((factor, True), b)",
    "clip_grad_norm_": "use gt.nn.utils.clip_grad_norm_",
    "clip_grad_value_": "use gt.nn.utils.clip_grad_value_",
    "complex": "use x + 1j * y",
    "cuda": "tensors of CuPy's arrays are computed where these are: gt.asarray(cupy_array)",
    "device": "leave it out: ops run where their arrays are",
    "device_put": "use t.to_device",
    "elementwise_grad": "use gt.grad(lambda x: np.sum(f(x)))",
    "hamming_window": "use gt.hamming(n + 1)[:-1]",
    "hann_window": "use gt.hanning(n + 1)[:-1]",
    "hessian_vector_product": "use gt.hvp(f, (x,), (v,))",
    "keras": "use gt.nn for layers, gt.optim for optimizers, and gt.fit to train",
    "is_complex": 'use gt.isdtype(x.dtype, "complex floating")',
    "is_floating_point": 'use gt.isdtype(x.dtype, "real floating")',
    "is_grad_enabled": "use t.requires_grad, which says whether a result was recorded",
    "is_tensor": "use isinstance(x, gt.Tensor)",
    "lax": "use NumPy's functions, and for loops and branches gt.scan, gt.while_loop, gt.cond",
    "lerp": "use x + weight * (y - x)",
    "logdet": "use gt.linalg.slogdet(x)[1], if the determinant is positive",
    "make_jaxpr": "use gt.graph.make_graph(f)(x)",
    "make_jvp": "use gt.jvp(f, (x,), (v,))",
    "make_vjp": "use gt.vjp(f, x)[::-1], as its value comes first here",
    "masked_select": "use x[mask]",
    "multinomial": "use gt.random.categorical(gt.log(p), shape)",
    **dict.fromkeys(("io_callback", "numpy_function", "py_function", "pure_callback"), _HOST),
    "placeholder": "use ctx.placeholder(name, shape) in a function for gt.run",
    "pmap": "use gt.vmap, or gt.jit, which computes on all threads",
    "rand_like": "use gt.rand(x.shape, dtype=x.dtype)",
    "randn_like": "use gt.randn(x.shape, dtype=x.dtype)",
    "range": "use gt.arange, which stops before its end, as Python's range",
    "ravel_pytree": "use optree, and gt.concat of the leaves",
    "register_dataclass": "dataclasses are containers as they are",
    "register_pytree_node": "use gt.register_container(cls, flatten, unflatten); dataclasses are "
    "containers as they are",
    "rsqrt": "use 1 / gt.sqrt(x)",
    "set_default_dtype": "give dtype=; the default is float64, as NumPy's",
    "std_mean": "use gt.std(x, ddof=1), gt.mean(x)",
    "t": "use x.T",
    "tree_map": "use optree.tree_map",
    "tree_util": "use optree",
    "utils": "use gt.data for torch.utils.data, gt.checkpoint for torch.utils.checkpoint",
    "use_deterministic_algorithms": "put the code into a block: with gt.deterministic():",
    "var_mean": "use gt.var(x, ddof=1), gt.mean(x)",
}

_OWN_RULE = "write it as a subclass of gt.optim.Optimizer, which says how one array changes"
_SEEDS = "use gt.manual_seed(seed), or generator=gt.random.Generator(seed)"
_SAME_NAMES = tuple((name, name) for name in ("laplace", "logistic", "pareto"))

# Layers of PyTorch that only pad, and the mode.
_PADS = {"Zero": "constant", "Constant": "constant", "Circular": "circular"}
_PADS |= {"Reflection": "reflect", "Replication": "replicate"}

_LENGTHS = "give recurrent layers a padded batch and lengths=: gt.nn.LSTM(3, 8)(x, lengths=[5, 2])"

# Names that others have in the namespaces.
NAMES = {
    "data": {
        "IterableDataset": "gt.fit takes anything that can be iterated once for each epoch; a data "
        "set of gt.data.DataLoader has len() and []",
        "default_collate": "use gt.data.collate",
    },
    "nn": {
        **{
            f"{kind}Pad{rank}d": f"use gt.nn.pad(x, …, mode={mode!r}), or padding_mode of layers"
            for kind, mode in _PADS.items()
            for rank in (1, 2, 3)
        },
        "Dense": "use gt.nn.Linear(in_features, out_features), and an activation after it",
        "DataParallel": "compiled code and large arrays use all cores as they are",
        **dict.fromkeys(("Input", "InputLayer"), "layers are called with arrays: net(x)"),
        **dict.fromkeys(
            ("rnn", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence"), _LENGTHS
        ),
        "pad_sequence": "write it with NumPy in a collate= of the loader; " + _LENGTHS,
    },
    "optim": {
        **dict.fromkeys(("Adafactor", "Adamax", "ASGD", "Muon", "Rprop"), _OWN_RULE),
        **dict.fromkeys(("EMA", "SWA"), "use gt.optim.AveragedModel, or gt.optim.WeightAverage"),
        "Momentum": "use gt.optim.SGD(lr=..., momentum=...)",
        "CyclicLR": "use gt.optim.LRScheduler(optimizer, lambda step: ...)",
        "MultiplicativeLR": "use gt.optim.LambdaLR, whose function returns the product so far",
        "SWALR": "use gt.optim.SequentialLR, or gt.optim.sequence of two schedules",
        "lr_scheduler": "schedulers are in gt.optim itself: gt.optim.StepLR",
        "swa_utils": "use gt.optim.AveragedModel and gt.optim.update_bn",
    },
    "random": {
        **dict.fromkeys(("PRNGKey", "RandomState", "default_rng", "key", "seed"), _SEEDS),
        **{
            name: f"use gt.random.Generator(seed).{call}"
            for name, call in (("fold_in", "fold_in(data)"), ("split", "split(count)"))
        },
        **{
            name: f"use gt.scipy.stats.{theirs}.ppf(gt.rand(shape), …), differentiable in its "
            "parameters"
            for name, theirs in (("gumbel", "gumbel_r"), *_SAME_NAMES)
        },
        "binomial": "use NumPy's generators",
        "choice": "use gt.random.categorical, or gt.randint where all have the same probability",
        "multivariate_normal": "use mean + gt.linalg.cholesky(cov) @ gt.randn(n)",
        **_renamed("gt", "integers=randint random=rand shuffle=permutation standard_normal=randn"),
    },
    "training": {
        "ModelCheckpoint": "use gt.training.KeepBest, or folder= of gt.fit",
        "ReduceLROnPlateau": "use gt.training.ScheduleRate(gt.optim.ReduceLROnPlateau(optimizer), "
        "monitor='loss')",
        "TensorBoard": "use gt.training.TensorBoardLog",
        "LearningRateScheduler": "use gt.training.ScheduleRate with a scheduler of gt.optim",
    },
}

_FIT = "minimize -gt.sum of the logarithm of the density with gt.value_and_grad"
_JUMPS = "quantiles of counts jump from one to the next: use SciPy's for a number"

# Methods of SciPy's distributions that ours, or those of counts or vectors, do not have.
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

# Functions of SciPy that take tensors once SCIPY_ARRAY_API is set; without it they raise.
# docs/scipy.md lists the same, and both are tested.
WITH_ARRAY_API = frozenset(
    f"scipy.{namespace}.{name}"
    for namespace, names in {
        "cluster.vq": "whiten",
        "constants": "convert_temperature lambda2nu nu2lambda",
        "differentiate": "derivative jacobian",
        "fft": "fft ifft fft2 ifft2 fftn ifftn rfft irfft rfft2 irfft2 rfftn irfftn hfft ihfft "
        "hfft2 ihfft2 hfftn ihfftn fht ifht",
        "integrate": "trapezoid cumulative_trapezoid cumulative_simpson romb tanhsinh cubature",
        "linalg": "block_diag fiedler orthogonal_procrustes",
        "optimize": "rosen rosen_der rosen_hess rosen_hess_prod",
        "optimize.elementwise": "find_root find_minimum",
        "signal": "fftconvolve oaconvolve hilbert hilbert2 envelope resample freqz freqs freqz_zpk "
        "freqs_zpk freqz_sos group_delay zpk2tf tf2zpk sos2tf normalize lp2lp lp2hp lp2bp lp2bs "
        "lp2lp_zpk lp2hp_zpk lp2bp_zpk lp2bs_zpk bilinear_zpk vectorstrength gauss_spline",
        "spatial.transform": "Rotation RigidTransform",
        "special": "logsumexp softmax log_softmax multigammaln polygamma",
        "stats": "zscore zmap gzscore skew kurtosis moment kstat kstatvar lmoment describe sem "
        "variation gmean hmean pmean gstd tmean tvar tstd tsem tmin tmax trim_mean sigmaclip mode "
        "quantile iqr median_abs_deviation circmean circvar circstd directional_stats entropy "
        "differential_entropy pearsonr boxcox_llf yeojohnson_llf ttest_1samp ttest_ind ttest_rel "
        "f_oneway alexandergovern bartlett levene chisquare power_divergence skewtest kurtosistest "
        "normaltest jarque_bera combine_pvalues",
    }.items()
    for name in names.split()
)

# Functions of SciPy that take derivatives instead of tensors, or others to use instead that do.
SCIPY = {
    **{
        f"scipy.optimize.{name}": "use gt.scipy.optimize.root_scalar(f, args, "
        f"method={name!r}, bracket=(a, b)), whose root is differentiable"
        for name in ("brenth", "ridder", "bisect", "toms748")
    },
    "scipy.integrate.odeint": "use gt.scipy.integrate.solve_ivp, whose result is differentiable",
    "scipy.optimize.minimize_scalar": "give it arrays, and differentiate at the minimum",
    "scipy.optimize.fsolve": "use gt.scipy.optimize.root, whose result is differentiable",
    "scipy.optimize.leastsq": "use gt.scipy.optimize.least_squares, whose result is differentiable",
}

# NumPy functions that convert without asking.
POLYNOMIAL = (
    "a tensor can be the x of polyval, chebval, …; with coefficients that have a gradient use "
    "np.polyval(c[::-1], x), or write the sum"
)
NUMPY = {
    "np.c_": "use np.column_stack, or np.concatenate along the last of three axes or more",
    "np.r_": "use np.concatenate",
    "np.pad": "use gt.pad, which has a gradient by constant_values and end_values",
    "np.full": "use np.full_like(t, t, shape=shape), or gt.full",
    "np.vectorize": "use gt.vmap or gt.map, or NumPy's functions on whole arrays",
}
