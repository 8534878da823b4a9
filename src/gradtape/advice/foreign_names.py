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
    "clip_by_value=clip convert_element_type=astype cumlogsumexp=logcumsumexp erf_inv=erfinv "
    "frobenius_norm=linalg.norm function=jit gradcheck=testing.check_grads "
    "gradgradcheck=testing.check_grads hard_swish=nn.hardswish integer_pow=power "
    "is_finite=isfinite is_inf=isinf is_nan=isnan nest=tree population_count=bitwise_count "
    "recompute_grad=checkpoint "
    "reduce_all=all reduce_and=all reduce_any=any reduce_logsumexp=logsumexp reduce_min=min "
    "reduce_or=any reduce_prod=prod reduce_std=std reduce_variance=var rev=flip reverse=flip "
    "shift_left=left_shift "
    "shift_right_arithmetic=right_shift soft_sign=softsign top_k=topk vectorized_map=vmap "
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
_TENSOR_CLASSES = {"Float": "float32", "Double": "float64", "Half": "float16"}
_TENSOR_CLASSES |= {"Long": "int64", "Int": "int32", "Bool": "bool"}
_DEVICES = (
    "default_backend default_device device_count devices host_count host_id "
    "local_device_count local_devices make_mesh NamedSharding P Mesh process_count "
    "process_index set_default_device set_mesh shard_map with_sharding_constraint"
)
_SETTINGS = (
    "default_matmul_precision enable_x64 get_default_dtype set_default_tensor_type "
    "set_float32_matmul_precision"
)
_ONE_MACHINE = "leave it out: ops run where their arrays are"
_NO_SETTING = "leave it out: each array has its dtype, float64 unless something else is given"
_FOR_BATCHES = "use NumPy's functions over the axis of the batch, outside of gt.vmap"
_CHECKS = "run the code in a block: with gt.detect_anomaly():"
_AT_PLACES = "x[tuple(np.moveaxis(indices, -1, 0))]"
_AT = "gt.at(x)[tuple(np.moveaxis(indices, -1, 0))]"
_WINDOWS = "use gt.nn.max_pool2d(x, 2), gt.nn.avg_pool2d, or gt.nn.sum_pool2d"
_WRITES = "tensors can be written to: t[i] = value is recorded, also in gt.jit"

_HOST = "use gt.host_call(f, result_like, x)"

_CONTAINER = "use gt.tree.register(cls, flatten, unflatten); dataclasses are containers as they are"
_TREES = (
    "flatten_with_path=leaves_with_path tree_flatten_with_path=leaves_with_path "
    "tree_leaves_with_path=leaves_with_path tree_map_with_path=map_with_path "
    "map_structure=map ravel_pytree=ravel register_pytree_with_keys=register "
    "treedef_leaf=structure"
)
_OF_TREES = "all flatten leaves map reduce structure transpose unflatten"

# Names of PyTorch, JAX, HIPS autograd and TensorFlow at the top of the module.
MODULE = {
    **_renamed("gt", _RENAMED),
    **{name: f"use gt.scipy.{name}" for name in _SCIPY},
    **{f"tree_{name}": f"use gt.tree.{name}" for name in _OF_TREES.split()},
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
    **dict.fromkeys(("experimental", "func"), "transforms are in gt itself: gt.grad, gt.vmap"),
    "elementwise_grad": "use gt.grad(lambda x: np.sum(f(x)))",
    "hamming_window": "use gt.hamming(n + 1)[:-1]",
    "hann_window": "use gt.hanning(n + 1)[:-1]",
    "hessian_vector_product": "use gt.hvp(f, (x,), (v,))",
    "jax": "use gt in its place: gt.grad, gt.vmap, gt.jit, and gt.numpy for jax.numpy",
    "keras": "use gt.nn for layers, gt.optim for optimizers, and gt.fit to train",
    "is_complex": 'use gt.isdtype(x.dtype, "complex floating")',
    "is_floating_point": 'use gt.isdtype(x.dtype, "real floating")',
    "is_grad_enabled": "use t.requires_grad, which says whether a result was recorded",
    "is_tensor": "use isinstance(x, gt.Tensor)",
    "lax": "use NumPy's functions, and for loops and branches gt.scan, gt.while_loop, gt.cond",
    "lerp": "use x + weight * (y - x)",
    "logdet": "use gt.linalg.slogdet(x)[1], if the determinant is positive",
    "make_jaxpr": "use gt.jit(f).graph(x), or gt.graph.make_graph(f)(x), which holds arrays from "
    "outside as well",
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
    "ravel_pytree": "use gt.tree.ravel",
    "register_dataclass": "dataclasses are containers as they are",
    "register_container": "use gt.tree.register",
    **dict.fromkeys(("register_pytree_node", "register_pytree_node_class"), _CONTAINER),
    "rsqrt": "use 1 / gt.sqrt(x)",
    "set_default_dtype": "give dtype=; the default is float64, as NumPy's",
    "std_mean": "use gt.std(x, ddof=1), gt.mean(x)",
    "t": "use x.T",
    "torch": "use gt in its place: gt.nn, gt.optim, gt.tensor",
    "tree_util": "use gt.tree",
    "utils": "use gt.data for torch.utils.data, gt.checkpoint for torch.utils.checkpoint",
    "use_deterministic_algorithms": "put the code into a block: with gt.deterministic():",
    "var_mean": "use gt.var(x, ddof=1), gt.mean(x)",
    # JAX
    **dict.fromkeys(
        _DEVICES.split(),
        _ONE_MACHINE,
    ),
    **dict.fromkeys(
        _SETTINGS.split(),
        _NO_SETTING,
    ),
    **dict.fromkeys(("all_gather", "axis_index", "pmax", "pmean", "pmin", "psum"), _FOR_BATCHES),
    **dict.fromkeys(("debug_infs", "debug_nans", "set_detect_anomaly"), _CHECKS),
    **dict.fromkeys(("Ref", "freeze", "new_ref"), _WRITES),
    **dict.fromkeys(
        ("named_call", "named_scope"), "leave it out: graphs and errors name the lines of your code"
    ),
    **dict.fromkeys(
        ("block_until_ready", "effects_barrier", "optimization_barrier", "synchronize"),
        "leave it out: results are computed when a call returns",
    ),
    **dict.fromkeys(("reduce_window", "select_and_scatter_add"), _WINDOWS),
    "Array": "use gt.Tensor, or np.ndarray",
    "ShapeDtypeStruct": "use np.broadcast_to(np.float32(0), shape), an array that takes no memory",
    **dict.fromkeys(("approx_max_k", "approx_min_k"), "use gt.topk"),
    **dict.fromkeys(("conv", "conv_with_general_padding"), "use gt.nn.conv2d"),
    "batch_matmul": "use x @ y",
    "bessel_i0e": "use gt.scipy.special.i0e",
    "bessel_i1e": "use gt.scipy.special.i1e",
    "bitcast_convert_type": "use x.detach().numpy().view(dtype)",
    "broadcast_in_dim": "use gt.broadcast_to(x.reshape(own_shape), shape)",
    "broadcasted_iota": "use gt.indices(shape)[axis]",
    "closure_convert": "leave it out: functions may use tensors from outside",
    "collapse": "use x.reshape(shape)",
    "conv_general_dilated": "use gt.nn.conv2d, or gt.nn.conv_transpose2d",
    "conv_general_dilated_patches": "use gt.nn.unfold",
    "conv_transpose": "use gt.nn.conv_transpose2d",
    "custom_linear_solve": "use gt.implicit.linear_solve",
    "custom_root": "use gt.implicit.root",
    "debug": "use gt.host_call(f, result_like, x), whose f may print",
    "device_get": "use x.detach().numpy()",
    "disable_jit": "call the function itself, or look into it: gt.jit(f, debug=True)",
    "dot_general": "use gt.einsum, or gt.tensordot",
    "dot_product_attention": "use gt.nn.scaled_dot_product_attention, with the axis of heads "
    "before that of positions",
    "dynamic_index_in_dim": "use gt.take(x, index, axis)",
    "dynamic_slice": "use gt.take(x, start + np.arange(length), axis), once for each axis",
    "dynamic_slice_in_dim": "use gt.take(x, start + np.arange(length), axis)",
    "dynamic_update_index_in_dim": "use gt.at(x)[index].set(value)",
    "dynamic_update_slice": "use gt.at(x)[start + np.arange(length)].set(value)",
    "dynamic_update_slice_in_dim": "use gt.at(x)[start + np.arange(length)].set(value)",
    "eval_shape": "use gt.graph.make_graph(f)(x).outputs, which have shapes and dtypes",
    "fwd_and_bwd": "use gt.vjp(f, x)",
    "index_in_dim": "use gt.take(x, index, axis)",
    "index_take": "use gt.take(x, index, axis)",
    "iota": "use gt.arange(n, dtype=dtype)",
    "linear_transpose": "use gt.vjp(f, x)[1]",
    "logmeanexp": "use gt.logsumexp(x) - gt.log(x.size)",
    "scatter_apply": "use gt.at(x)[index].apply(f)",
    "scatter_mul": "use gt.at(x)[index].multiply(values)",
    "scatter_sub": "use gt.at(x)[index].subtract(values)",
    "select_n": "use gt.where(mask, on_true, on_false), in this order",
    "slice": "use x[start : start + length]",
    "slice_in_dim": "use x[start : start + length]",
    "sort_key_val": "use x[gt.argsort(x)], y[gt.argsort(x)]",
    "squareplus": "use (x + gt.sqrt(x * x + 4)) / 2",
    "standardize": "use gt.nn.layer_norm(x, x.shape[-1:])",
    "typeof": "use x.shape and x.dtype",
    # PyTorch
    **dict.fromkeys(
        ("resolve_conj", "resolve_neg"),
        "leave it out: arrays hold the numbers that they show",
    ),
    **{
        f"{kind}Tensor": f"use gt.tensor(values, dtype=gt.{dtype})"
        for kind, dtype in _TENSOR_CLASSES.items()
    },
    **{f"{kind}_window": f"use gt.{kind}(n + 1)[:-1]" for kind in ("bartlett", "blackman")},
    **dict.fromkeys(("upsample", "upsample_bilinear", "upsample_nearest"), "use gt.nn.interpolate"),
    **dict.fromkeys(
        ("ParameterDict", "BufferDict"), "a module may have dicts of parameters as attributes"
    ),
    "Function": "use gt.custom_vjp, with the rule as a function",
    "Size": "use tuple",
    "addbmm": "use c + gt.sum(a @ b, axis=0)",
    "addcdiv": "use x + value * y / z",
    "addcmul": "use x + value * y * z",
    "addmv": "use c + a @ b",
    "addr": "use c + gt.outer(a, b)",
    "adjoint": "use x.mT.conj()",
    "baddbmm": "use c + a @ b",
    "backward": "use gt.compute_gradients(t), or t.backward()",
    **{f"{kind.lower()}_cell": f"use gt.nn.{kind}Cell" for kind in ("GRU", "LSTM")},
    **{kind.lower(): f"use gt.nn.{kind}" for kind in ("GRU", "LSTM")},
    **{
        f"max_pool{rank}d_with_indices": f"use gt.nn.max_pool{rank}d(x, 2, return_indices=True)"
        for rank in (1, 2, 3)
    },
    "cfloat": "use gt.complex64",
    "kaiser_window": "use gt.kaiser(n + 1, 12.0)[:-1]",
    "cholesky_inverse": "use gt.linalg.inv(factor @ factor.T)",
    "diag_embed": "use x[..., None] * gt.eye(x.shape[-1])",
    "dist": "use gt.norm(x - y)",
    "float": "use gt.float32, or float for one number",
    "frac": "use x - gt.trunc(x)",
    "functional_call": "give the module as an argument: gt.grad(lambda net: loss(net(x)))(net)",
    "functionalize": "leave it out: writes to tensors are recorded as they are",
    "grad_and_value": "use gt.value_and_grad(f), whose value comes first",
    "histc": "use gt.histogram(x, bins, (low, high))[0]",
    "index_copy": "use gt.at(x)[index].set(y)",
    "index_fill": "use gt.at(x)[index].set(value)",
    "int": "use gt.int32, or int for one number",
    "is_nonzero": "use bool(x)",
    "is_signed": "use x.dtype.kind, which is 'u' for unsigned integers",
    "msort": "use gt.sort(x, axis=0)",
    "multi_head_attention_forward": "use gt.nn.MultiheadAttention",
    "narrow": "use x[start : start + length]",
    "nuclear_norm": "use gt.linalg.norm(x, 'nuc')",
    "pca_lowrank": "use gt.linalg.svd_lowrank(x - gt.mean(x, axis=0))",
    "pdist": "use gt.nn.cdist(x, x)[np.triu_indices(len(x), 1)]",
    "randint_like": "use gt.randint(low, high, x.shape)",
    "rsub": "use y - x",
    "scalar_tensor": "use gt.tensor(value)",
    "scatter_reduce": "use gt.scatter_add, gt.scatter_max, or gt.scatter_min",
    "seed": "use gt.manual_seed(seed)",
    "initial_seed": "use gt.get_rng_state()",
    **dict.fromkeys(
        ("select_scatter", "slice_scatter", "diagonal_scatter"), "use gt.at(x)[index].set(value)"
    ),
    "split_with_sizes": "use gt.split(x, np.cumsum(sizes)[:-1])",
    "stack_module_state": "use gt.tree.map(lambda *parts: np.stack(parts), *nets)",
    "to_dlpack": "use x.__dlpack__()",
    "triangular_solve": "use gt.linalg.solve_triangular(a, b)",
    "unique_consecutive": "use x[gt.concatenate([[True], x[1:] != x[:-1]])]",
    "unsafe_chunk": "use gt.chunk",
    "unsafe_split": "use gt.split(x, range(size, len(x), size))",
    "view_as_complex": "use x[..., 0] + 1j * x[..., 1]",
    "view_as_real": "use gt.stack([x.real, x.imag], axis=-1)",
    # TensorFlow
    **dict.fromkeys(("case", "foldl", "foldr"), "use gt.cond, gt.switch, or gt.scan"),
    **dict.fromkeys(("print", "summary"), "use gt.host_call(f, result_like, x), whose f may print"),
    "TensorSpec": "leave it out: functions are compiled for what they are called with",
    "debugging": "use gt.graph.assert_that in lazy graphs, and gt.detect_anomaly",
    "divide_no_nan": "use gt.where(y != 0, x / gt.where(y != 0, y, 1), 0)",
    "gather_nd": f"use {_AT_PLACES}",
    "group": "leave it out: ops run in the order in which they are called",
    "hessians": "use gt.hessian(f)(x)",
    "l2_normalize": "use gt.nn.normalize(x, dim=axis)",
    "multiply_no_nan": "use gt.where(y != 0, x * y, 0)",
    "no_gradient": "use gt.stop_gradient",
    "rank": "use x.ndim",
    "scatter_nd": "use gt.at(gt.zeros(shape))[tuple(np.moveaxis(indices, -1, 0))].add(values)",
    "segment_sum": "use gt.bincount(index, weights), or gt.at(zeros)[index].add(x)",
    "sequence_mask": "use np.arange(n) < lengths[:, None]",
    "squared_difference": "use (x - y) ** 2",
    "tensor_scatter_nd_add": f"use {_AT}.add(values)",
    "tensor_scatter_nd_max": f"use {_AT}.max(values)",
    "tensor_scatter_nd_min": f"use {_AT}.min(values)",
    "tensor_scatter_nd_sub": f"use {_AT}.subtract(values)",
    "tensor_scatter_nd_update": f"use {_AT}.set(values)",
    "train": "use gt.optim",
    "unsorted_segment_sum": "use gt.bincount(index, weights), or gt.at(zeros)[index].add(x)",
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
        **_renamed(
            "gt.nn",
            "hard_swish=hardswish l2_normalize=normalize lrelu=leaky_relu upsample=interpolate",
        ),
        "bias_add": "use x + bias",
        "l2_loss": "use gt.sum(x * x) / 2",
        "moments": "use gt.mean(x, axis), gt.var(x, axis)",
        "sigmoid_cross_entropy_with_logits": "use gt.nn.sigmoid_cross_entropy(logits, labels)",
        "softmax_cross_entropy_with_logits": "use gt.nn.softmax_cross_entropy(logits, labels)",
        "sparse_softmax_cross_entropy_with_logits": "use "
        "gt.nn.sparse_softmax_cross_entropy(logits, labels)",
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
        "lognormal": "use gt.random.log_normal",
        "orthogonal": "use gt.linalg.qr(gt.randn(n, n))[0]",
        "rademacher": "use 2 * gt.bernoulli(0.5, shape) - 1",
        "truncated_normal": "use gt.scipy.stats.truncnorm.ppf(gt.rand(shape), low, high), "
        "or gt.nn.init.trunc_normal_",
        "binomial": "use NumPy's generators",
        "choice": "use gt.random.categorical, or gt.randint where all have the same probability",
        "multivariate_normal": "use mean + gt.linalg.cholesky(cov) @ gt.randn(n)",
        **_renamed("gt", "integers=randint random=rand shuffle=permutation standard_normal=randn"),
    },
    "tree": {
        **{f"tree_{name}": f"use gt.tree.{name}" for name in _OF_TREES.split()},
        **_renamed("gt.tree", _TREES),
        **dict.fromkeys(("register_pytree_node", "register_pytree_node_class"), _CONTAINER),
        "any": "use any(gt.tree.leaves(tree))",
        "broadcast": "write gt.tree.map(lambda leaf, part: …, prefix, tree)",
        "iter": "use iter(gt.tree.leaves(tree))",
        "keystr": "use str(path)",
        "paths": "use [path for path, _ in gt.tree.leaves_with_path(tree)]",
        "register_dataclass": "dataclasses are containers as they are",
        "sum": "use gt.tree.reduce(operator.add, tree)",
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
_JUMPS = "quantiles of counts jump from one to the next"

# What to do instead of calling a method of SciPy's distributions with a tensor.
DISTRIBUTIONS = {
    "cov": "use its formula",
    "expect": "sum func(x) * pdf(x) over the points of a quadrature",
    **dict.fromkeys(("fit", "fit_loc_scale"), _FIT),
    **dict.fromkeys(("interval", "isf", "median", "ppf"), _JUMPS),
    "marginal": "use the distribution of some rows of mean and cov",
    "mean": "use its formula",
    "rvs": "compute loc + scale * draw of a draw without loc and scale, or take "
    "ppf(gt.rand(shape)) where there is one, differentiable in all parameters",
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
