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
    # Of others than PyTorch
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
        ("compile", "custom_gradient", "make_jaxpr", "pmap", "primitive", "tree_map"), _A_TRANSFORM
    ),
    **dict.fromkeys(("hessian_vector_product", "make_jvp", "make_vjp"), _A_TRANSFORM),
    **dict.fromkeys(("map_fn", "remat", "switch_case"), _A_TRANSFORM),
    **dict.fromkeys(
        ("io_callback", "numpy_function", "py_function", "pure_callback"), _A_TRANSFORM
    ),
    **dict.fromkeys(("clip_grad_norm_", "clip_grad_value_", "placeholder"), _A_TEXT),
    **dict.fromkeys(
        ("integrate", "ndimage", "optimize", "signal", "sparse", "special", "stats"), _A_TOOL
    ),
    **dict.fromkeys(("GradScaler", "device", "keras", "utils"), _A_TEXT),
    **dict.fromkeys(("ravel_pytree", "register_dataclass", "register_pytree_node"), _A_TEXT),
    **dict.fromkeys(("multinomial", "rand_like", "randn_like", "randperm"), _RANDOM),
}

# ---- methods of tensors -------------------------------------------------------------------------

_OF_NUMPY = (
    "angle ceil cosh exp2 expm1 floor isfinite isinf isnan log10 log1p log2 negative reciprocal "
    "sign sinc sinh square tan trunc"
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
    **{n: f"scipy.special.{n}(x)" for n in ("erf", "erfc", "erfinv")},
    "lgamma": "scipy.special.gammaln(x)",
    "nanmean": "x.mean()",
    "nansum": "x.sum()",
    **{n: f"np.{n}(x)" for n in _OF_NUMPY.split()},
}
_ONE["acosh"], _POINTS = "np.arccosh(x + 1)", {"acosh": "x + 1"}
_TWO = {
    **{n: f"np.{n}(x, y)" for n in ("fmod", "logaddexp", "maximum", "minimum", "remainder")},
    "allclose": "False",
    "xlogy": "scipy.special.xlogy(x, y)",
}
_METHOD_OPERATORS = {**_OPERATORS, "gt": ">", "ge": ">=", "add": "+", "subtract": "-"}
_METHOD_OPERATORS |= {"multiply": "*", "divide": "/", "pow": "**"}


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
    "new_ones": method("np.ones((2, 3))", "x.new_ones((2, 3))", shape="(2, 3)"),
    "new_zeros": method("np.zeros((2, 3))", "x.new_zeros((2, 3))", shape="(2, 3)"),
    "new_tensor": method("np.array([1.0, 2.0])", "x.new_tensor([1.0, 2.0])", values="[1.0, 2.0]"),
}

_IN_PLACE = "it is a statement that changes the tensor"
TENSOR_EXEMPT: dict[str, str] = {
    **dict.fromkeys(("add_", "sub_", "mul_", "div_", "clamp_", "copy_", "detach_"), _IN_PLACE),
    **dict.fromkeys(("fill_", "scatter_add_", "squeeze_", "zero_", "at"), _IN_PLACE),
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

NAMES_EXEMPT: dict[str, dict[str, str]] = {
    "data": dict.fromkeys(("IterableDataset", "default_collate"), _A_TEXT),
    "nn": {
        **{
            f"{kind}Pad{rank}d": "it is a class"
            for kind in ("Zero", "Constant", "Circular", "Reflection", "Replication")
            for rank in (1, 2, 3)
        },
        **dict.fromkeys(("DataParallel", "Dense", "Input", "InputLayer"), _A_TEXT),
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
    },
    "training": dict.fromkeys(
        ("LearningRateScheduler", "ModelCheckpoint", "ReduceLROnPlateau", "TensorBoard"), _A_TEXT
    ),
}
