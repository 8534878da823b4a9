"""What names of other libraries give, for each that we say another name for.

A sample is text: `expected` is what the library gives, computed by NumPy from the variables below;
`arguments` are those that a name takes there, where ours takes the same; `torch` is PyTorch's own
call, by default the name with the arguments. Where PyTorch is installed, it is asked, too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.special

_RNG = np.random.default_rng(5)
_SQUARE = _RNG.normal(size=(3, 3))

VARIABLES: dict[str, Any] = {
    "x": _RNG.uniform(0.2, 0.9, size=(3, 4)),
    "y": _RNG.uniform(0.2, 0.9, size=(3, 4)),
    "a": _RNG.normal(size=(3, 3)),
    "b": _RNG.normal(size=(3, 3)),
    "c": _RNG.normal(size=(3, 3)),
    "vector": _RNG.normal(size=3),
    "weight": 0.25,
    "positive": _SQUARE @ _SQUARE.T + np.eye(3),
    "factor": np.linalg.cholesky(_SQUARE @ _SQUARE.T + np.eye(3)),
    "boundaries": np.array([0.3, 0.5, 0.7]),
    "mask": _RNG.normal(size=(3, 4)) > 0,
    "value": 7.0,
    "index": np.array([2, 0, 1]),
    "places": np.array([[2, 0, 1, 1], [0, 0, 2, 1], [1, 2, 0, 0]]),
    "dim": 0,
    "axis": 0,
    "n": 5,
    "k": 1,
    "counts": np.array([0, 2, 2, 1]),
    "spoiled": np.array([1.0, np.nan, np.inf, -np.inf]),
    "nan": 1.0,
    "posinf": 2.0,
    "neginf": -2.0,
    "reps": (2, 1),
    "shift": 1,
    "size": 2,
    "chunks": 2,
    "start": 1,
    "length": 2,
    "repeats": 2,
    "source": 0,
    "destination": 1,
    "low": 0.3,
    "high": 0.6,
    "z": _RNG.uniform(0.2, 0.9, size=(3, 4)),
    "batch_a": _RNG.normal(size=(2, 3, 3)),
    "batch_b": _RNG.normal(size=(2, 3, 3)),
    "bins": 4,
    "sizes": [1, 2],
    "pairs": np.array([[0, 1], [2, 3]]),
    "shape": (3, 4),
    "dtype": np.int32,
    "lengths": np.array([1, 3]),
}
FUNCTIONS: dict[str, Any] = {"np": np, "scipy": scipy}


class Sample(NamedTuple):
    """What a name gives elsewhere."""

    expected: str
    arguments: str = ""
    torch: str | None = ""
    # Variables that go by other names in our advice: `t` of a method, …
    renamed: dict[str, str] = {}  # noqa: RUF012 - it is never changed


def same(arguments: str, expected: str, torch: str | None = "") -> Sample:
    return Sample(expected, arguments, torch)


# ---- names of the module ------------------------------------------------------------------------

_OPERATORS = {"sub": "-", "mul": "*", "div": "/", "eq": "==", "ne": "!=", "lt": "<", "le": "<="}
_PRODUCTS = {"mm": "(a, b)", "mv": "(a, vector)"}

_REDUCED = {"reduce_min": "min", "reduce_prod": "prod", "reduce_std": "std"}
_REDUCED |= {"reduce_variance": "var"}
_SCATTERED = {"add": "add", "sub": "subtract", "max": "maximum", "min": "minimum"}

MODULE_SAMPLES: dict[str, Sample] = {
    **{n: Sample(f"x {s} y", "(x, y)") for n, s in {**_OPERATORS, "gt": ">", "ge": ">="}.items()},
    "mm": Sample("a @ b", "(a, b)", renamed={"x": "a", "y": "b"}),
    "bmm": Sample(
        "a[None] @ b[None]", "(a[None], b[None])", renamed={"x": "a[None]", "y": "b[None]"}
    ),
    "mv": Sample("a @ vector", "(a, vector)", renamed={"x": "a", "y": "vector"}),
    "addmm": Sample("c + a @ b", torch="torch.addmm(c, a, b)"),
    "aminmax": Sample("(x.min(), x.max())", torch="torch.aminmax(x)"),
    "as_tensor": same("(x,)", "x"),
    "bucketize": Sample("np.searchsorted(boundaries, x)", torch="torch.bucketize(x, boundaries)"),
    "broadcast_tensors": same("(vector[:, None], x)", "np.broadcast_arrays(vector[:, None], x)"),
    "cat": same("([x, y], 1)", "np.concatenate([x, y], 1)"),
    "chain_matmul": Sample("a @ b @ c", torch="torch.linalg.multi_dot([a, b, c])"),
    "cholesky_solve": Sample(
        "np.linalg.solve(factor @ factor.T, b)", torch="torch.cholesky_solve(b, factor)"
    ),
    "clamp": same("(x, 0.3, 0.6)", "np.clip(x, 0.3, 0.6)"),
    "clamp_max": same("(x, 0.5)", "np.minimum(x, 0.5)"),
    "clamp_min": same("(x, 0.5)", "np.maximum(x, 0.5)"),
    "clone": same("(x,)", "x"),
    "complex": Sample("x + 1j * y", torch="torch.complex(x, y)"),
    "detach": same("(x,)", "x"),
    "from_numpy": same("(x,)", "x", None),
    "ger": same("(vector, x[0])", "np.outer(vector, x[0])"),
    "hamming_window": Sample(
        "np.hamming(n + 1)[:-1]", torch="torch.hamming_window(n, dtype=torch.float64)"
    ),
    "hann_window": Sample(
        "np.hanning(n + 1)[:-1]", torch="torch.hann_window(n, dtype=torch.float64)"
    ),
    "igamma": same("(x, y)", "scipy.special.gammainc(x, y)"),
    "igammac": same("(x, y)", "scipy.special.gammaincc(x, y)"),
    "inverse": same("(a,)", "np.linalg.inv(a)"),
    "is_complex": Sample("False", torch="torch.is_complex(x)"),
    "is_floating_point": Sample("True", torch="torch.is_floating_point(x)"),
    "lerp": Sample("x + weight * (y - x)", torch="torch.lerp(x, y, weight)"),
    "ln": same("(abs(x),)", "np.log(abs(x))", None),
    "logdet": Sample(
        "np.log(np.linalg.det(positive))", torch="torch.logdet(positive)", renamed={"x": "positive"}
    ),
    "masked_select": Sample("x[mask]", torch="torch.masked_select(x, mask)"),
    "matrix_exp": same("(a,)", "scipy.linalg.expm(a)"),
    "movedim": same("(x, 0, 1)", "x.T"),
    "mvlgamma": same("(x + 2, 2)", "scipy.special.multigammaln(x + 2, 2)"),
    "neg": same("(x,)", "-x"),
    "numel": same("(x,)", "12"),
    "permute": same("(x, (1, 0))", "x.T"),
    "pinverse": same("(x,)", "np.linalg.pinv(x)"),
    "recip": same("(x,)", "1 / x", None),
    "rem": same("(x, y)", "x % y", None),
    "repeat_interleave": same("(x, 2, 1)", "np.repeat(x, 2, 1)"),
    "row_stack": same("([x, y],)", "np.concatenate([x, y])"),
    "rsqrt": Sample("x ** -0.5", torch="torch.rsqrt(x)"),
    "sgn": same("(a + 1j * b,)", "(a + 1j * b) / abs(a + 1j * b)"),
    "std_mean": Sample("(x.std(ddof=1), x.mean())", torch="torch.std_mean(x)"),
    "swapdims": same("(x, 0, 1)", "x.T"),
    "t": Sample("x.T", torch="torch.t(x)"),
    "take_along_dim": same(
        "(x, places, 0)", "np.take_along_axis(x, places, 0)", "torch.take_along_dim(x, places, 0)"
    ),
    "tensor_split": same("(x, 2)", "np.array_split(x, 2)"),
    "trapz": same("(x,)", "np.trapezoid(x)"),
    "unbind": same("(x,)", "tuple(x)"),
    "var_mean": Sample("(x.var(ddof=1), x.mean())", torch="torch.var_mean(x)"),
    "addbmm": Sample(
        "c + (batch_a @ batch_b).sum(0)",
        torch="torch.addbmm(c, batch_a, batch_b)",
        renamed={"a": "batch_a", "b": "batch_b"},
    ),
    "baddbmm": Sample(
        "batch_b + batch_a @ batch_b",
        torch="torch.baddbmm(batch_b, batch_a, batch_b)",
        renamed={"a": "batch_a", "b": "batch_b", "c": "batch_b"},
    ),
    "addcdiv": Sample("x + value * y / z", torch="torch.addcdiv(x, y, z, value=value)"),
    "addcmul": Sample("x + value * y * z", torch="torch.addcmul(x, y, z, value=value)"),
    "addmv": Sample(
        "vector + a @ vector",
        torch="torch.addmv(vector, a, vector)",
        renamed={"c": "vector", "b": "vector"},
    ),
    "addr": Sample(
        "c + np.outer(vector, vector)",
        torch="torch.addr(c, vector, vector)",
        renamed={"a": "vector", "b": "vector"},
    ),
    "adjoint": Sample("x.T", torch="torch.adjoint(x)"),
    "bartlett_window": Sample(
        "np.bartlett(n + 1)[:-1]", torch="torch.bartlett_window(n, dtype=torch.float64)"
    ),
    "blackman_window": Sample(
        "np.blackman(n + 1)[:-1]", torch="torch.blackman_window(n, dtype=torch.float64)"
    ),
    "kaiser_window": Sample(
        "np.kaiser(n + 1, 12.0)[:-1]", torch="torch.kaiser_window(n, dtype=torch.float64)"
    ),
    "cholesky_inverse": Sample("np.linalg.inv(positive)", torch="torch.cholesky_inverse(factor)"),
    "diag_embed": Sample("x[..., None] * np.eye(4)", torch="torch.diag_embed(x)"),
    "dist": Sample("np.linalg.norm(x - y)", torch="torch.dist(x, y)"),
    "frac": Sample("x % 1.0", torch="torch.frac(x)"),
    "frobenius_norm": same("(x,)", "np.linalg.norm(x)", "torch.linalg.norm(x)"),
    "histc": Sample(
        "np.histogram(x, bins, (low, high))[0]", torch="torch.histc(x, bins, low, high).long()"
    ),
    "index_copy": Sample("y[np.argsort(index)]", torch="torch.index_copy(x, 0, index, y)"),
    "index_fill": Sample("np.full((3, 4), value)", torch="torch.index_fill(x, 0, index, value)"),
    "is_nonzero": Sample("True", torch="torch.is_nonzero(torch.tensor(3))", renamed={"x": "n"}),
    "msort": Sample("np.sort(x, 0)", torch="torch.msort(x)"),
    "narrow": Sample("x[1:3]", torch="torch.narrow(x, 0, start, length)"),
    "nuclear_norm": Sample("np.linalg.norm(x, 'nuc')", torch="torch.nuclear_norm(x)"),
    "pdist": Sample(
        "np.array([np.linalg.norm(x[i] - x[j]) for i, j in ((0, 1), (0, 2), (1, 2))])",
        torch="torch.pdist(x)",
    ),
    "rsub": Sample("y - x", torch="torch.rsub(x, y)"),
    "scalar_tensor": Sample(
        "np.array(7.0)", torch="torch.scalar_tensor(value, dtype=torch.float64)"
    ),
    "split_with_sizes": Sample("(x[:1], x[1:])", torch="torch.split_with_sizes(x, sizes)"),
    "triangular_solve": Sample(
        "np.linalg.solve(np.triu(a), b)",
        torch="torch.triangular_solve(b, a)[0]",
    ),
    "unique_consecutive": Sample(
        "np.array([0, 2, 1])",
        torch="torch.unique_consecutive(counts)",
        renamed={"x": "counts"},
    ),
    "unsafe_chunk": same("(x, 2)", "np.array_split(x, 2)"),
    "unsafe_split": Sample("(x[:2], x[2:])", torch="torch.unsafe_split(x, size)"),
    "view_as_complex": Sample(
        "x[:, 0] + 1j * x[:, 1]",
        torch="torch.view_as_complex(x[:, :2].contiguous())",
        renamed={"x": "x[:, :2]"},
    ),
    "view_as_real": Sample(
        "np.stack([x, y], -1)", torch="torch.view_as_real(x + 1j * y)", renamed={"x": "x + 1j * y"}
    ),
    # Of others than PyTorch
    **{n: Sample(f"x.{ours}(1)", "(x, 1)", None) for n, ours in _REDUCED.items()},
    **{n: same("(mask, 1)", "mask.all(1)", None) for n in ("reduce_all", "reduce_and")},
    **{n: same("(mask, 1)", "mask.any(1)", None) for n in ("reduce_any", "reduce_or")},
    **{n: same("(x, 0)", "x[::-1]", None) for n in ("rev", "reverse")},
    **{
        n: same("(spoiled,)", f"np.{ours}(spoiled)", None)
        for n, ours in (("is_finite", "isfinite"), ("is_inf", "isinf"), ("is_nan", "isnan"))
    },
    **{
        n: Sample("x[index]", torch=None, renamed={"index": "index"})
        for n in ("dynamic_index_in_dim", "index_in_dim", "index_take")
    },
    "batch_matmul": Sample("a @ b", torch=None, renamed={"x": "a", "y": "b"}),
    "bitcast_convert_type": Sample(
        "x.view(np.int64)", torch=None, renamed={"x": "gt.tensor(x)", "dtype": "np.int64"}
    ),
    "broadcast_in_dim": Sample(
        "np.broadcast_to(vector[:, None], (3, 4))",
        torch=None,
        renamed={"x": "vector", "own_shape": "(3, 1)"},
    ),
    "broadcasted_iota": Sample("np.indices((3, 4))[0]", torch=None),
    "clip_by_value": same("(x, 0.3, 0.6)", "np.clip(x, 0.3, 0.6)", None),
    "collapse": Sample("x.ravel()", torch=None, renamed={"shape": "12"}),
    "convert_element_type": same("(x, 'float32')", "x.astype('float32')", None),
    "cumlogsumexp": same("(x, 0)", "np.logaddexp.accumulate(x, 0)", None),
    "device_get": Sample("x", torch=None, renamed={"x": "gt.tensor(x)"}),
    "divide_no_nan": Sample(
        "np.array([0.5, 0.0])",
        torch=None,
        renamed={"x": "np.array([1.0, 3.0])", "y": "np.array([2.0, 0.0])"},
    ),
    "dynamic_slice_in_dim": Sample("x[1:3]", torch=None),
    "dynamic_slice": Sample("x[1:3]", torch=None),
    **{
        n: Sample("np.where(np.arange(3)[:, None] > 0, 7.0, x)", torch=None)
        for n in ("dynamic_update_slice", "dynamic_update_slice_in_dim")
    },
    "erf_inv": same("(x,)", "scipy.special.erfinv(x)", None),
    "gather_nd": Sample("x[[0, 2], [1, 3]]", torch=None, renamed={"indices": "pairs"}),
    "hard_swish": same("(a,)", "a * np.clip(a + 3, 0, 6) / 6", None),
    "integer_pow": same("(x, 3)", "x**3", None),
    "iota": Sample("np.arange(5)", torch=None),
    "l2_normalize": Sample("x / np.linalg.norm(x, axis=0)", torch=None),
    "logmeanexp": Sample("np.log(np.mean(np.exp(x)))", torch=None),
    "multiply_no_nan": Sample(
        "np.array([2.0, 0.0])",
        torch=None,
        renamed={"x": "np.array([1.0, np.nan])", "y": "np.array([2.0, 0.0])"},
    ),
    "population_count": same("(counts,)", "np.bitwise_count(counts)", None),
    "rank": Sample("2", torch=None),
    "reduce_logsumexp": same("(x, 1)", "scipy.special.logsumexp(x, 1)", None),
    "scatter_apply": Sample("x**2", torch=None, renamed={"f": "np.square"}),
    "scatter_mul": Sample("x * y[np.argsort(index)]", torch=None, renamed={"values": "y"}),
    "scatter_sub": Sample("x - y[np.argsort(index)]", torch=None, renamed={"values": "y"}),
    "scatter_nd": Sample(
        "(lambda z: (z.__setitem__(((0, 2), (1, 3)), 7.0), z)[1])(np.zeros((3, 4)))",
        torch=None,
        renamed={"indices": "pairs", "values": "np.full(2, 7.0)"},
    ),
    "segment_sum": Sample(
        "np.bincount(counts, vector[[0, 1, 2, 0]])",
        torch=None,
        renamed={"index": "counts", "weights": "vector[[0, 1, 2, 0]]"},
    ),
    "unsorted_segment_sum": Sample(
        "np.bincount(counts, vector[[0, 1, 2, 0]])",
        torch=None,
        renamed={"index": "counts", "weights": "vector[[0, 1, 2, 0]]"},
    ),
    "select_n": Sample(
        "np.where(mask, x, y)", torch=None, renamed={"on_true": "x", "on_false": "y"}
    ),
    "sequence_mask": Sample("np.arange(5) < lengths[:, None]", torch=None),
    "shift_left": same("(counts, 2)", "counts << 2", None),
    "shift_right_arithmetic": same("(counts, 1)", "counts >> 1", None),
    "slice": Sample("x[1:3]", torch=None),
    "slice_in_dim": Sample("x[1:3]", torch=None),
    "bessel_i0e": same("(x,)", "scipy.special.i0e(x)", None),
    "bessel_i1e": same("(x,)", "scipy.special.i1e(x)", None),
    "dynamic_update_index_in_dim": Sample("np.full((3, 4), 7.0)", torch=None),
    "soft_sign": same("(a,)", "a / (1 + abs(a))", None),
    "sort_key_val": Sample(
        "(np.sort(vector), index[np.argsort(vector)])",
        torch=None,
        renamed={"x": "vector", "y": "index"},
    ),
    "squared_difference": Sample("(x - y) ** 2", torch=None),
    "squareplus": Sample("(x + np.sqrt(x * x + 4)) / 2", torch=None),
    "standardize": Sample(
        "(x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)", torch=None
    ),
    **{
        f"tensor_scatter_nd_{name}": Sample(
            f"(lambda z: (np.{ufunc}.at(z, ((0, 2), (1, 3)), 7.0), z)[1])(x.copy())",
            torch=None,
            renamed={"indices": "pairs", "values": "np.full(2, 7.0)"},
        )
        for name, ufunc in _SCATTERED.items()
    },
    "tensor_scatter_nd_update": Sample(
        "(lambda z: (z.__setitem__(((0, 2), (1, 3)), 7.0), z)[1])(x.copy())",
        torch=None,
        renamed={"indices": "pairs", "values": "np.full(2, 7.0)"},
    ),
    "top_k": same("(vector, 2)", "(np.sort(vector)[:0:-1], np.argsort(-vector)[:2])", None),
    "cast": same("(x, 'float32')", "x.astype('float32')", None),
    "constant": same("([1.0, 2.0],)", "np.array([1.0, 2.0])", None),
    "convert_to_tensor": same("([1.0, 2.0],)", "np.array([1.0, 2.0])", None),
    "elementwise_grad": Sample("np.cos(x)", "(x,)", torch=None, renamed={"f": "np.sin"}),
    "promote_types": same("('float32', 'int64')", "np.dtype('float64')", None),
    "range": same("(5,)", "np.arange(5)", None),
    "reduce_max": same("(x, 1)", "x.max(1)", None),
    "reduce_mean": same("(x, 1)", "x.mean(1)", None),
    "reduce_sum": same("(x, 1)", "x.sum(1)", None),
}

_A_TOOL = "it is no function of arrays"
_A_TRANSFORM = "it takes functions; what it gives is tested with the transforms"
_A_TEXT = "what to do is said in words"
_RANDOM = "it draws random numbers"
_OF_CONTAINERS = (
    "register_container register_dataclass register_pytree_node register_pytree_node_class "
    "ravel_pytree tree_all tree_flatten tree_leaves tree_map tree_reduce tree_structure "
    "tree_transpose tree_unflatten nest"
)
_TEXTS = (
    "approx_max_k approx_min_k conv conv_with_general_padding conv_general_dilated_patches gru "
    "conv_transpose gru_cell lstm lstm_cell max_pool1d_with_indices max_pool2d_with_indices "
    "max_pool3d_with_indices "
    "Array BoolTensor BufferDict DoubleTensor FloatTensor Function HalfTensor IntTensor "
    "LongTensor Mesh NamedSharding P ParameterDict Ref ShapeDtypeStruct Size TensorSpec "
    "all_gather axis_index backward block_until_ready case cfloat closure_convert "
    "conv_general_dilated custom_linear_solve custom_root debug debug_infs debug_nans "
    "debugging default_backend default_device default_matmul_precision device_count "
    "devices diagonal_scatter disable_jit dot_general dot_product_attention "
    "effects_barrier enable_x64 eval_shape float foldl foldr freeze function "
    "functional_call functionalize fwd_and_bwd get_default_dtype grad_and_value "
    "gradcheck gradgradcheck group hessians host_count host_id initial_seed int "
    "is_signed linear_transpose local_device_count local_devices make_mesh "
    "multi_head_attention_forward named_call named_scope new_ref no_gradient "
    "optimization_barrier pca_lowrank pmax pmean pmin print process_count process_index "
    "psum randint_like recompute_grad reduce_window resolve_conj resolve_neg "
    "scatter_reduce seed select_and_scatter_add select_scatter set_default_device "
    "set_default_tensor_type set_detect_anomaly set_float32_matmul_precision set_mesh "
    "shard_map slice_scatter stack_module_state summary synchronize to_dlpack train "
    "typeof upsample upsample_bilinear upsample_nearest vectorized_map "
    "with_sharding_constraint"
)
MODULE_EXEMPT: dict[str, str] = {
    "use_deterministic_algorithms": _A_TOOL,
    **dict.fromkeys(
        ("Variable", "autograd", "cuda", "lax", "tree_util", "set_default_dtype"), _A_TOOL
    ),
    **dict.fromkeys(
        ("inference_mode", "is_grad_enabled", "is_tensor", "device_put"),
        _A_TOOL,
    ),
    **dict.fromkeys(
        ("compile", "custom_gradient", "make_jaxpr", "pmap", "primitive"), _A_TRANSFORM
    ),
    **dict.fromkeys(("experimental", "func"), _A_TEXT),
    **dict.fromkeys(("hessian_vector_product", "make_jvp", "make_vjp"), _A_TRANSFORM),
    **dict.fromkeys(("map_fn", "remat", "switch_case"), _A_TRANSFORM),
    **dict.fromkeys(
        ("io_callback", "numpy_function", "py_function", "pure_callback"), _A_TRANSFORM
    ),
    **dict.fromkeys(("clip_grad_norm_", "clip_grad_value_", "placeholder"), _A_TEXT),
    **dict.fromkeys(
        ("integrate", "ndimage", "optimize", "signal", "sparse", "spatial", "special", "stats"),
        _A_TOOL,
    ),
    **dict.fromkeys(("GradScaler", "device", "keras", "utils", "jax", "torch"), _A_TEXT),
    **dict.fromkeys(
        _OF_CONTAINERS.split(),
        "it is about containers; what it gives is tested with gt.tree",
    ),
    **dict.fromkeys(
        _TEXTS.split(),
        _A_TEXT,
    ),
    **dict.fromkeys(("multinomial", "rand_like", "randn_like", "randperm"), _RANDOM),
}

# ---- methods of tensors -------------------------------------------------------------------------

_OF_NUMPY = (
    "angle arccos arcsin arcsinh arctan arctanh argwhere ceil corrcoef cosh deg2rad exp2 expm1 "
    "fliplr flipud floor i0 isfinite isinf isnan isneginf isposinf log10 log1p log2 logical_not "
    "negative positive rad2deg reciprocal sign signbit sinc sinh square tan trunc"
)
_ONE = {
    "absolute": "abs(x)",
    **{n: f"np.arc{n[1:]}(x)" for n in ("acos", "asin", "asinh", "atan", "atanh")},
    "acosh": "np.arccosh(x)",
    "amax": "x.max()",
    "amin": "x.min()",
    "count_nonzero": "12",
    "cov": "np.cov(x)",
    "digamma": "scipy.special.digamma(x)",
    "fix": "np.trunc(x)",  # NumPy 2.5 warns of np.fix
    **{n: f"scipy.special.{n}(x)" for n in ("erf", "erfc", "erfinv")},
    "lgamma": "scipy.special.gammaln(x)",
    "nanmean": "x.mean()",
    "nansum": "x.sum()",
    **{n: f"np.{n}(x)" for n in _OF_NUMPY.split()},
}
_ONE["acosh"] = _ONE["arccosh"] = "np.arccosh(x + 1)"
_POINTS = {"acosh": "x + 1", "arccosh": "x + 1"}
_OF_TWO = (
    "arctan2 copysign float_power floor_divide fmax fmin fmod heaviside hypot isclose logaddexp "
    "logaddexp2 logical_and logical_or logical_xor maximum minimum nextafter remainder true_divide"
)
_TWO = {
    "atan2": "np.arctan2(x, y)",
    **{n: f"np.{n}(x, y)" for n in _OF_TWO.split()},
    "allclose": "False",
    "xlogy": "scipy.special.xlogy(x, y)",
}
_METHOD_OPERATORS = {**_OPERATORS, "gt": ">", "ge": ">=", "add": "+", "subtract": "-"}
_METHOD_OPERATORS |= {"multiply": "*", "divide": "/", "pow": "**", "not_equal": "!="}
_METHOD_OPERATORS |= {"greater": ">", "greater_equal": ">=", "less": "<", "less_equal": "<="}


def method(expected: str, torch: str | None = None, t: str = "x", **renamed: str) -> Sample:
    """What a method of `t` gives; `torch` is what follows the name in PyTorch."""
    return Sample(expected, torch=torch, renamed={"t": t, **renamed})


TENSOR_SAMPLES: dict[str, Sample] = {
    **{
        name: method(
            expected, f"({_POINTS.get(name, 'x')}).{name}()", f"({_POINTS.get(name, 'x')})"
        )
        for name, expected in _ONE.items()
    },
    **{n: method(e, f"x.{n}(y)", other="y") for n, e in _TWO.items()},
    **{n: method(f"x {s} y", f"x.{n}(y)", other="y") for n, s in _METHOD_OPERATORS.items()},
    "mm": method("a @ b", "a.mm(b)", "a", other="b"),
    "bmm": method("a[None] @ b[None]", "a[None].bmm(b[None])", "a[None]", other="b[None]"),
    "mv": method("a @ vector", "a.mv(vector)", "a", other="vector"),
    "cross": method("np.cross(a, b)", "a.cross(b, dim=-1)", "a", other="b"),
    "inner": method("np.inner(a, b)", "a.inner(b)", "a", other="b"),
    "kron": method("np.kron(a, b)", "a.kron(b)", "a", other="b"),
    "outer": method("np.outer(vector, x[0])", "vector.outer(x[0])", "vector", other="x[0]"),
    "vdot": method("np.vdot(vector, a[0])", "vector.vdot(a[0])", "vector", other="a[0]"),
    "bincount": method(
        "np.bincount(counts)", "counts.bincount()", "counts", weights="None", minlength="0"
    ),
    "broadcast_to": method(
        "np.broadcast_to(x[0], (3, 4))", "x[0].broadcast_to((3, 4))", "x[0]", shape="(3, 4)"
    ),
    "chunk": method("np.array_split(x, chunks)", "x.chunk(chunks)"),
    "clamp": Sample("np.clip(x, low, high)", "(low, high)", "x.clamp(low, high)", {"t": "x"}),
    "diag": method("np.diag(a, k)", "a.diag(k)", "a"),
    "diff": method("np.diff(x, 1, axis)", "x.diff(1, axis)", n="1"),
    "dim": method("2", "x.dim()"),
    "double": method("x", "x.double()"),
    "expand": method("np.broadcast_to(x[0], (3, 4))", "x[0].expand(3, 4)", "x[0]", shape="(3, 4)"),
    "expand_as": method("np.broadcast_to(x[0], (3, 4))", "x[0].expand_as(y)", "x[0]", other="y"),
    "flip": method("x[::-1]", "x.flip(axis)"),
    "float": method("x.astype(np.float32)", "x.float()"),
    "gather": method(
        "np.take_along_axis(x, places, axis)", "x.gather(axis, places)", index="places"
    ),
    "half": method("x.astype(np.float16)", "x.half()"),
    "index_add": method("x + y[np.argsort(index)]", "x.index_add(axis, index, y)", source="y"),
    "index_select": method("x[index]", "x.index_select(axis, index)", indices="index"),
    "int": method("(9 * x).astype(np.int32)", "(9 * x).int()", "(9 * x)"),
    "inverse": method("np.linalg.inv(a)", "a.inverse()", "a"),
    "log_softmax": method("scipy.special.log_softmax(x, 0)", "x.log_softmax(axis)"),
    "logsumexp": method("scipy.special.logsumexp(x, 0)", "x.logsumexp(axis)"),
    "long": method("(9 * x).astype(np.int64)", "(9 * x).long()", "(9 * x)"),
    "lstsq": method("np.linalg.lstsq(x, vector)", None, other="vector"),
    "lu": method(
        "(lambda packed, pivots: (packed, pivots))(*scipy.linalg.lu_factor(a))",
        "(lambda packed, pivots: (packed, pivots - 1))(*torch.linalg.lu_factor(a))",
        "a",
    ),
    "masked_fill": method("np.where(mask, value, x)", "x.masked_fill(mask, value)"),
    "masked_select": method("x[mask]", "x.masked_select(mask)"),
    "matrix_power": method("np.linalg.matrix_power(a, n)", "a.matrix_power(n)", "a"),
    "moveaxis": method("x.T", "x.moveaxis(source, destination)"),
    "movedim": method("x.T", "x.movedim(source, destination)"),
    "nan_to_num": method(
        "np.nan_to_num(spoiled, nan=nan, posinf=posinf, neginf=neginf)",
        "spoiled.nan_to_num(nan, posinf, neginf)",
        "spoiled",
    ),
    "narrow": method("x[1:3]", "x.narrow(0, start, length)"),
    "neg": method("-x", "x.neg()"),
    "numel": method("12", "x.numel()"),
    "repeat_interleave": method("np.repeat(x, 2, 0)", "x.repeat_interleave(repeats, axis)"),
    "reshape_as": method("x.reshape(4, 3)", "x.reshape_as(y.T)", other="y.T"),
    "view_as": method("x.reshape(4, 3)", "x.view_as(y.T)", other="y.T"),
    "roll": method("np.roll(x, shift, axis)", "x.roll(shift, axis)"),
    "rsqrt": method("x ** -0.5", "x.rsqrt()"),
    "scatter_add": method(
        "(lambda z: (np.add.at(z, (places, np.arange(4)), y), z)[1])(x.copy())",
        "x.scatter_add(axis, places, y)",
        index="places",
        source="y",
    ),
    "sgn": method("np.sign(a)", "a.sgn()", "a"),
    "softmax": method("scipy.special.softmax(x, 0)", "x.softmax(axis)"),
    "split": method("np.split(x, [2])", "x.split(size)"),
    "svd": method(
        "(lambda u, s, vh: (abs(u), s, abs(vh)))(*np.linalg.svd(x, False))",
        "(lambda u, s, v: (abs(u), s, abs(v.mT)))(*x.svd())",
    ),
    "t": method("x.T", "x.t()"),
    "tile": method("np.tile(x, reps)", "x.tile(reps)"),
    "tril": method("np.tril(a, k)", "a.tril(k)", "a"),
    "triu": method("np.triu(a, k)", "a.triu(k)", "a"),
    "type_as": method("x.astype(np.float32)", None, other="x.astype(np.float32)"),
    "unbind": method("tuple(x)", "x.unbind()"),
    "where": method("np.where(mask, x, y)", "x.where(mask, y)", condition="mask", other="y"),
    "cholesky": method("factor", "positive.cholesky()", "positive"),
    "det": method("np.linalg.det(a)", "a.det()", "a"),
    "eig": method(
        "(lambda w, v: (w + 0j, abs(v)))(*np.linalg.eig(a))",
        "(lambda w, v: (w, abs(v)))(*torch.linalg.eig(a))",
        "a",
    ),
    "qr": method("np.linalg.qr(x.T)", "x.T.qr()", "x.T"),
    "slogdet": method("np.linalg.slogdet(a)", "a.slogdet()", "a"),
    **{
        n: method(
            f"np.{n}(counts, index[[0, 1, 2, 0]])",
            f"counts.{n}(index[[0, 1, 2, 0]])",
            "counts",
            other="index[[0, 1, 2, 0]]",
        )
        for n in (
            *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift"),
            *("bitwise_right_shift", "gcd", "lcm"),
        )
    },
    "bitwise_not": method("~counts", "counts.bitwise_not()", "counts"),
    "ldexp": method(
        "np.ldexp(x, index[:, None])", "x.ldexp(index[:, None])", other="index[:, None]"
    ),
    "frexp": method("tuple(np.frexp(x))", "x.frexp()"),
    "addbmm": method(
        "c + (batch_a @ batch_b).sum(0)",
        "c.addbmm(batch_a, batch_b)",
        "c",
        a="batch_a",
        b="batch_b",
    ),
    "baddbmm": method(
        "batch_b + batch_a @ batch_b",
        "batch_b.baddbmm(batch_a, batch_b)",
        "batch_b",
        a="batch_a",
        b="batch_b",
    ),
    "addcdiv": method("x + value * y / z", "x.addcdiv(y, z, value=value)", a="y", b="z"),
    "addcmul": method("x + value * y * z", "x.addcmul(y, z, value=value)", a="y", b="z"),
    "addmm": method("c + a @ b", "c.addmm(a, b)", "c"),
    "addmv": method("vector + a @ vector", "vector.addmv(a, vector)", "vector", b="vector"),
    "addr": method(
        "c + np.outer(vector, vector)", "c.addr(vector, vector)", "c", a="vector", b="vector"
    ),
    "adjoint": method("x.T", "x.adjoint()"),
    **{n: method("x.T", f"x.{n}") for n in ("H", "mH")},
    "aminmax": method("(x.min(), x.max())", "x.aminmax()"),
    "bool": method("mask", "mask.bool()", "mask"),
    "byte": method("counts.astype(np.uint8)", "counts.byte()", "counts"),
    "char": method("counts.astype(np.int8)", "counts.char()", "counts"),
    "short": method("counts.astype(np.int16)", "counts.short()", "counts"),
    "cfloat": method("x.astype(np.complex64)", "x.cfloat()"),
    "cdouble": method("x.astype(np.complex128)", "x.cdouble()"),
    "cholesky_inverse": method("np.linalg.inv(positive)", "factor.cholesky_inverse()", "factor"),
    "cholesky_solve": method("np.linalg.solve(positive, b)", "b.cholesky_solve(factor)", "b"),
    "clamp_max": method("np.minimum(x, high)", "x.clamp_max(high)"),
    "clamp_min": method("np.maximum(x, low)", "x.clamp_min(low)"),
    "diag_embed": method("x[..., None] * np.eye(4)", "x.diag_embed()"),
    "diagflat": method("np.diagflat(vector, 1)", "vector.diagflat(k)", "vector"),
    "dist": method("np.linalg.norm(x - y)", "x.dist(y)", other="y"),
    "element_size": method("8", "x.element_size()"),
    "equal": method("False", "x.equal(y)", other="y"),
    "frac": method("x % 1.0", "x.frac()"),
    "ger": method("np.outer(vector, vector)", "vector.ger(vector)", "vector", other="vector"),
    "histc": method("np.histogram(x, bins, (low, high))[0]", "x.histc(bins, low, high).long()"),
    "nanmedian": method("np.nanmedian(x)", None),
    "histogram": method("np.histogram(x, bins)", None),
    "hsplit": method("np.hsplit(x, 2)", "x.hsplit(2)", indices_or_sections="2"),
    "vsplit": method("np.vsplit(x, [1])", "x.vsplit([1])", indices_or_sections="[1]"),
    "dsplit": method(
        "np.dsplit(x[None], 2)", "x[None].dsplit(2)", "x[None]", indices_or_sections="2"
    ),
    "igamma": method("scipy.special.gammainc(x, y)", "x.igamma(y)", other="y", gradtape="gt"),
    "igammac": method("scipy.special.gammaincc(x, y)", "x.igammac(y)", other="y", gradtape="gt"),
    "index_copy": method("y[np.argsort(index)]", "x.index_copy(0, index, y)", value="y"),
    "index_fill": method("np.full((3, 4), value)", "x.index_fill(0, index, value)"),
    "index_put": method(
        "np.full((3, 4), 7.0)",
        "x.index_put((index,), torch.tensor(7.0).double())",
        indices="index",
        values="7.0",
    ),
    "is_complex": method("False", "x.is_complex()"),
    "is_floating_point": method("True", "x.is_floating_point()"),
    "lerp": method("x + weight * (y - x)", "x.lerp(y, weight)", other="y"),
    "logdet": method("np.log(np.linalg.det(positive))", "positive.logdet()", "positive"),
    "logit": method("np.log(x / (1 - x))", "x.logit()", gradtape="gt"),
    "matrix_exp": method("scipy.linalg.expm(a)", "a.matrix_exp()", "a"),
    "msort": method("np.sort(x, 0)", "x.msort()"),
    "nanquantile": method("np.nanquantile(x, 0.5, 0)", "x.nanquantile(0.5, 0)", q="0.5"),
    "ndimension": method("2", "x.ndimension()"),
    "nelement": method("12", "x.nelement()"),
    "get_shape": method("(3, 4)", None),
    "new_full": method("np.full((2, 3), 7.0)", "x.new_full((2, 3), 7.0)", shape="(2, 3)"),
    "pinverse": method("np.linalg.pinv(x)", "x.pinverse()"),
    "prelu": method("np.where(a > 0, a, 0.25 * a)", "a.prelu(torch.tensor([0.25]).double())", "a"),
    "rot90": method("np.rot90(x, 1)", "x.rot90(1, (0, 1))", axes="(0, 1)"),
    "scatter": method(
        "(lambda z: (np.put_along_axis(z, places[:1], y[:1], 0), z)[1])(x.copy())",
        "x.scatter(0, places[:1], y)",
        index="places[:1]",
        source="y",
    ),
    "select": method("x[1]", "x.select(0, 1)", number="1"),
    "solve": method("np.linalg.solve(a, b)", None, "a", other="b"),
    "split_with_sizes": method("(x[:1], x[1:])", "x.split_with_sizes(sizes)"),
    "swapdims": method("x.T", "x.swapdims(0, 1)"),
    "take_along_dim": method(
        "np.take_along_axis(x, places, 0)", "x.take_along_dim(places, 0)", index="places"
    ),
    "unfold": method("np.stack([x[0:2], x[1:3]]).swapaxes(1, 2)", "x.unfold(0, size, 1)"),
    "tensor_split": method("np.array_split(x, 2)", "x.tensor_split(2)"),
    "new_ones": method("np.ones((2, 3))", "x.new_ones((2, 3))", shape="(2, 3)"),
    "new_zeros": method("np.zeros((2, 3))", "x.new_zeros((2, 3))", shape="(2, 3)"),
    "new_tensor": method("np.array([1.0, 2.0])", "x.new_tensor([1.0, 2.0])", values="[1.0, 2.0]"),
}

_IN_PLACE = "it is a statement that changes the tensor"
_IN_PLACE_NAMES = (
    "abs absolute acos acosh arccos arccosh arcsin arcsinh arctan arctanh arctan2 asin asinh atan "
    "atan2 atanh bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift "
    "bitwise_xor ceil clip copysign cos cosh deg2rad digamma divide erf erfc erfinv exp exp2 expm1 "
    "fix float_power floor floor_divide fmod gcd heaviside hypot i0 index_copy index_fill "
    "index_put lcm ldexp lgamma log log10 log1p log2 logical_and logical_not logical_or "
    "logical_xor multiply nan_to_num neg negative nextafter pow rad2deg reciprocal relu remainder "
    "round sigmoid sign sin sinc sinh sqrt square subtract t tan tanh transpose tril triu "
    "true_divide trunc unsqueeze xlogy"
)
TENSOR_EXEMPT: dict[str, str] = {
    **dict.fromkeys(("add_", "sub_", "mul_", "div_", "clamp_", "copy_", "detach_"), _IN_PLACE),
    **dict.fromkeys(("fill_", "scatter_add_", "squeeze_", "zero_"), _IN_PLACE),
    **dict.fromkeys((f"{name}_" for name in _IN_PLACE_NAMES.split()), _IN_PLACE),
    **dict.fromkeys(("fill_diagonal_", "index_add_", "masked_fill_", "scatter_"), _IN_PLACE),
    **dict.fromkeys(("bernoulli", "multinomial", "normal_", "uniform_"), _RANDOM),
    **dict.fromkeys(("bfloat16", "new_empty"), "its numbers cannot be compared"),
    **dict.fromkeys(("data_ptr", "grad_fn", "is_contiguous", "is_cuda", "pin_memory"), _A_TOOL),
    **dict.fromkeys(("scatter_reduce", "share_memory_"), _A_TEXT),
    **dict.fromkeys(("block_until_ready", "contiguous"), _A_TEXT),
    **dict.fromkeys(("cpu", "cuda", "requires_grad_", "retain_grad", "to", "type"), _A_TOOL),
    "unflatten": _A_TEXT,
}

# ---- names of NumPy, and of namespaces ----------------------------------------------------------

NUMPY_SAMPLES: dict[str, Sample] = {
    "np.c_": same("((x, y),)", "np.c_[x, y]"),
    "np.r_": same("((x, y),)", "np.r_[x, y]"),
    "np.pad": same("(x, 1)", "np.pad(x, 1)"),
    "np.full": Sample("np.full((2, 3), value)", renamed={"t": "np.array(7.0)", "shape": "(2, 3)"}),
    "np.vectorize": same("(np.sin,)", "np.sin(vector)"),
}

_TREE_NAMES = (
    "all flatten flatten_with_path leaves leaves_with_path map map_with_path reduce structure "
    "transpose unflatten"
)
_OF_A_TREE = "it is about containers; what it gives is tested with gt.tree"
NAMES_EXEMPT: dict[str, dict[str, str]] = {
    "data": dict.fromkeys(("IterableDataset", "default_collate"), _A_TEXT),
    "nn": {
        **{
            f"{kind}Pad{rank}d": "it is a class"
            for kind in ("Zero", "Constant", "Circular", "Reflection", "Replication")
            for rank in (1, 2, 3)
        },
        **dict.fromkeys(("DataParallel", "Dense", "Input", "InputLayer"), _A_TEXT),
        **dict.fromkeys(
            ("bias_add", "hard_swish", "l2_loss", "l2_normalize", "lrelu", "moments", "upsample"),
            "the function that it names is tested as an op",
        ),
        **dict.fromkeys(
            (f"{kind}_cross_entropy_with_logits" for kind in ("sigmoid", "softmax")), _A_TEXT
        ),
        "sparse_softmax_cross_entropy_with_logits": _A_TEXT,
        **dict.fromkeys(("rnn", "pack_padded_sequence", "pack_sequence"), _A_TEXT),
        **dict.fromkeys(("pad_packed_sequence", "pad_sequence"), _A_TEXT),
    },
    "optim": {
        **dict.fromkeys(("Adafactor", "Adamax", "ASGD", "Muon", "Rprop"), _A_TEXT),
        **dict.fromkeys(
            ("CyclicLR", "EMA", "Momentum", "MultiplicativeLR", "SWA", "SWALR"), _A_TEXT
        ),
        **dict.fromkeys(("lr_scheduler", "swa_utils"), _A_TEXT),
    },
    "random": {
        **dict.fromkeys(("PRNGKey", "RandomState", "default_rng", "key", "seed"), _A_TOOL),
        **dict.fromkeys(("fold_in", "split"), _A_TOOL),
        **dict.fromkeys(("gumbel", "laplace", "logistic"), _RANDOM),
        **dict.fromkeys(("pareto", "binomial", "choice"), _RANDOM),
        **dict.fromkeys(("integers", "multivariate_normal", "random", "shuffle"), _RANDOM),
        "standard_normal": _RANDOM,
        **dict.fromkeys(("lognormal", "orthogonal", "rademacher", "truncated_normal"), _RANDOM),
    },
    "tree": dict.fromkeys(
        (
            *(f"tree_{name}" for name in _TREE_NAMES.split()),
            *("any", "broadcast", "flatten_with_path", "iter", "keystr", "map_structure", "paths"),
            *("ravel_pytree", "register_dataclass", "register_pytree_node", "sum", "treedef_leaf"),
            *("register_pytree_node_class", "register_pytree_with_keys"),
        ),
        _OF_A_TREE,
    ),
    "training": dict.fromkeys(
        ("LearningRateScheduler", "ModelCheckpoint", "ReduceLROnPlateau", "TensorBoard"), _A_TEXT
    ),
}
