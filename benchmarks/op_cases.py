"""The operations of the per-op table, each as an expression of ours and of PyTorch's."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.op_exceptions import SLOWER

SIZES = (100, 10_000, 1_000_000)
DTYPES = ("float32", "float64")
BAR = 1.5
"""How many times as long as PyTorch an operation may take, at the largest size."""
CONVOLUTION_BAR = 3.0
"""The same for a convolution, until the compiler has kernels of its own for it."""

Arrays = dict[str, np.ndarray]
Make = Callable[[np.random.Generator, int], Arrays]


@dataclass(frozen=True, slots=True)
class OpCase:
    """One operation at one size."""

    ours: str
    pytorch: str
    make: Make
    size: int
    dtype: str
    bar: float | None = None
    channels_last: bool = False
    """Whether arrays of four axes lie in memory with the second one last, on both sides."""

    @property
    def name(self) -> str:
        """What the processes of both sides call it."""
        return f"{self.ours}, {self.dtype}, {self.size:,}"

    def arrays(self) -> Arrays:
        """Make the arguments, the same in every process."""
        made = self.make(np.random.default_rng(0), self.size)
        return {name: self.laid_out(np.asarray(x, self.dtype)) for name, x in made.items()}

    def laid_out(self, x: np.ndarray) -> np.ndarray:
        """Return an array as it is to lie in memory."""
        if not self.channels_last or x.ndim != 4:
            return x
        return np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


# ---- arguments of about n elements --------------------------------------------------------------


def _uniform(low: float, high: float, names: str = "x") -> Make:
    return lambda rng, n: {name: rng.uniform(low, high, n) for name in names}


def _matrix(rng: np.random.Generator, n: int) -> Arrays:
    side = round(math.sqrt(n))
    return {"x": rng.normal(size=(side, side))}


def _near_1(rng: np.random.Generator, n: int) -> Arrays:
    """A matrix with products along its rows that are neither huge nor 0."""
    side = round(math.sqrt(n))
    return {"x": rng.uniform(0.95, 1.05, (side, side))}


def _row_and_column(rng: np.random.Generator, n: int) -> Arrays:
    side = round(math.sqrt(n))
    return {"x": rng.normal(size=(side, side)), "y": rng.normal(size=side)}


def _two_matrices(rng: np.random.Generator, n: int) -> Arrays:
    """Well conditioned, so that equations can be solved."""
    side = round(math.sqrt(n))
    return {
        name: rng.normal(size=(side, side)) + 3 * math.sqrt(side) * np.eye(side) for name in "xy"
    }


def _layer(*weight: int) -> Make:
    """A batch of images of n pixels and channels together, and the weight of a convolution."""

    def make(rng: np.random.Generator, n: int) -> Arrays:
        arrays = {"x": rng.normal(size=(n // 65536, 64, 32, 32))}
        return arrays | ({"w": rng.normal(size=weight)} if weight else {})

    return make


def _rows(rng: np.random.Generator, n: int) -> Arrays:
    """Rows, and a number for each of their columns, as a normalisation has."""
    side = round(math.sqrt(n))
    return {"x": rng.normal(size=(side, side)), "w": rng.normal(size=side)}


def _one_matrix(rng: np.random.Generator, n: int) -> Arrays:
    return {"x": _two_matrices(rng, n)["x"]}


ANY, POSITIVE = _uniform(-3.0, 3.0), _uniform(0.1, 3.0)
INSIDE, ABOVE_1 = _uniform(-0.9, 0.9), _uniform(1.1, 3.0)
PAIR, POSITIVE_PAIR = _uniform(-3.0, 3.0, "xy"), _uniform(0.1, 3.0, "xy")

# ---- the operations -----------------------------------------------------------------------------

# Arguments -> functions of the same name and arguments on both sides.
_SAME_NAME: tuple[tuple[Make, str, str], ...] = (
    (ANY, "x", "exp exp2 expm1 sin cos tan sinh cosh tanh arctan arcsinh sigmoid relu abs square"),
    (ANY, "x", "negative erf erfc sinc deg2rad sum mean max"),
    (POSITIVE, "x", "log log2 log10 log1p sqrt reciprocal lgamma digamma"),
    (INSIDE, "x", "arcsin arccos arctanh erfinv"),
    (ABOVE_1, "x", "arccosh"),
    (PAIR, "x, y", "add subtract multiply divide maximum minimum arctan2 hypot logaddexp dot"),
    (POSITIVE_PAIR, "x, y", "xlogy"),
    (_two_matrices, "x, y", "matmul"),
)
# Ours, PyTorch's (None: ours with the other module), arguments.
_SPELLED: tuple[tuple[str, str | None, Make], ...] = (
    ("x * 2.0 + 1.0", None, ANY),
    ("x**2", None, ANY),
    ("x**3.5", None, POSITIVE),
    ("gt.power(x, y)", "torch.pow(x, y)", POSITIVE_PAIR),
    ("gt.clip(x, -1.0, 1.0)", None, ANY),
    ("gt.where(x > 0, x, y)", None, PAIR),
    ("gt.gelu(x)", "F.gelu(x)", ANY),
    ("gt.silu(x)", "F.silu(x)", ANY),
    ("gt.softplus(x)", "F.softplus(x)", ANY),
    ("gt.elu(x)", "F.elu(x)", ANY),
    ("gt.leaky_relu(x)", "F.leaky_relu(x)", ANY),
    ("gt.log_sigmoid(x)", "F.logsigmoid(x)", ANY),
    ("gt.sum(x, 0)", None, _matrix),
    ("gt.sum(x, 1)", None, _matrix),
    ("gt.prod(x, 1)", None, _near_1),
    ("gt.max(x, 1)", "torch.amax(x, 1)", _matrix),
    ("gt.std(x)", "torch.std(x, correction=0)", ANY),
    ("gt.var(x, 1)", "torch.var(x, 1, correction=0)", _matrix),
    ("gt.cumsum(x, 1)", None, _matrix),
    ("gt.cumprod(x, 1)", None, _near_1),
    ("gt.logsumexp(x, 1)", None, _matrix),
    ("gt.softmax(x, 1)", None, _matrix),
    ("gt.log_softmax(x, 1)", None, _matrix),
    ("gt.norm(x)", "torch.linalg.vector_norm(x)", ANY),
    ("x + y", None, _row_and_column),
    ("x * y[:, None]", None, _row_and_column),
    ("x.T.reshape(-1)", None, _matrix),
    ("x[:, ::2]", None, _matrix),
    ("x[::-1]", "x.flip(0)", ANY),
    ("gt.roll(x, 3)", None, ANY),
    ("gt.concat([x, y])", "torch.cat([x, y])", PAIR),
    ("gt.stack([x, y])", None, PAIR),
    ("gt.repeat(x, 2)", "torch.repeat_interleave(x, 2)", ANY),
    ("gt.tile(x, (2,))", None, ANY),
    ("gt.pad(x, 3)", "F.pad(x, (3, 3))", ANY),
    ("x[index]", None, ANY),
    ("gt.tril(x)", None, _matrix),
    ("gt.solve(x, y)", "torch.linalg.solve(x, y)", _two_matrices),
    ("gt.linalg.inv(x)", None, _one_matrix),
    ("gt.linalg.slogdet(x)[1]", None, _one_matrix),
    ("gt.linalg.cholesky(x @ x.T)", None, _one_matrix),
    ('gt.einsum("ij,jk->ik", x, y)', None, _two_matrices),
    ("gt.sort(x)", "torch.sort(x, stable=True).values", ANY),
    ("gt.sort(x, 1)", "torch.sort(x, dim=1, stable=True).values", _matrix),
    ("gt.topk(x, 10)[0]", None, ANY),
    ("gt.median(x)", "torch.quantile(x, 0.5)", ANY),
    ("gt.diff(x)", None, ANY),
    ("gt.cross(x.reshape(-1, 4)[:, :3], y.reshape(-1, 4)[:, :3])", None, PAIR),
    (
        "gt.convolve(x, x[:10])",
        "F.conv1d(x[None, None], x[:10].flip(0)[None, None], padding=9)",
        ANY,
    ),
    ("gt.abs(gt.fft.rfft(x))", None, ANY),
    ("gt.fft.irfft(gt.fft.rfft(x) * 2.0)", None, ANY),
    ("gt.trapezoid(x)", "torch.trapezoid(x)", ANY),
    ("gt.scipy.special.log_ndtr(x)", None, ANY),
    ("gt.scipy.special.i0(x)", None, ANY),
    ("gt.nn.layer_norm(x, w.shape, w, w)", "F.layer_norm(x, w.shape, w, w)", _rows),
    ("gt.nn.rms_norm(x, w.shape, w)", "F.rms_norm(x, w.shape, w)", _rows),
    (
        "gt.nn.batch_norm(x, None, None, w, w, training=True)",
        "F.batch_norm(x, None, None, w, w, training=True)",
        _rows,
    ),
    ("gt.nn.cross_entropy(x, label)", "F.cross_entropy(x, label)", _matrix),
    ("gt.nn.mse_loss(x, y)", "F.mse_loss(x, y)", PAIR),
    (
        "gt.nn.binary_cross_entropy_with_logits(x, gt.sigmoid(y))",
        "F.binary_cross_entropy_with_logits(x, torch.sigmoid(y))",
        PAIR,
    ),
    ("gt.nn.embedding(label, x)", "F.embedding(label, x)", _matrix),
    (
        "gt.nn.scaled_dot_product_attention(x[None], x[None], x[None])",
        "F.scaled_dot_product_attention(x[None], x[None], x[None])",
        _matrix,
    ),
    ("gt.nn.linear(x, y)", "F.linear(x, y)", _two_matrices),
    ("gt.nn.mish(x)", "F.mish(x)", ANY),
    ("gt.nn.hardswish(x)", "F.hardswish(x)", ANY),
    ("gt.nn.selu(x)", "F.selu(x)", ANY),
)


# Decompositions of large matrices take too long for a table.
_SMALLER: tuple[tuple[str, str | None, Make], ...] = (
    ("gt.linalg.qr(x)[1]", None, _one_matrix),
    ("gt.linalg.svdvals(x)", None, _one_matrix),
    ("gt.linalg.eigvalsh(x + x.T)", None, _one_matrix),
    ("gt.linalg.eigh(x + x.T)[1] ** 2", None, _one_matrix),
    ("gt.linalg.expm(x / 1e2)", "torch.linalg.matrix_exp(x / 1e2)", _one_matrix),
    ("gt.linalg.pinv(x)", None, _one_matrix),
)
_LAYER = 32 * 65536
_CONVOLUTIONS: tuple[tuple[str, Make], ...] = (
    ("conv2d(x, w, padding=1)", _layer(64, 64, 3, 3)),
    ("conv2d(x, w, padding=1, stride=2)", _layer(64, 64, 3, 3)),
    ("conv2d(x, w)", _layer(64, 64, 1, 1)),
    ("conv2d(x, w, padding=1, groups=8)", _layer(64, 8, 3, 3)),
    ("conv2d(x, w, padding=1, groups=64)", _layer(64, 1, 3, 3)),
    ("conv2d(x, w, padding=1, stride=2, groups=64)", _layer(64, 1, 3, 3)),
    ("batch_norm(x, None, None, training=True)", _layer()),
    ("group_norm(x, 8)", _layer()),
    ("max_pool2d(x, 2)", _layer()),
    ("max_pool2d(x, 3, 2, 1)", _layer()),
    ("avg_pool2d(x, 2)", _layer()),
    ("interpolate(x, scale_factor=2, mode='bilinear')", _layer()),
)


def _cases() -> list[OpCase]:
    rows: list[tuple[str, str | None, Make]] = []
    for make, args, names in _SAME_NAME:
        rows += [(f"gt.{name}({args})", None, make) for name in names.split()]
    sizes = [(row, SIZES) for row in (*rows, *_SPELLED)] + [(row, SIZES[:-1]) for row in _SMALLER]
    return [
        OpCase(ours, other or ours.replace("gt.", "torch."), make, size, dtype, _bar(ours, size))
        for (ours, other, make), wanted in sizes
        for size in wanted
        for dtype in (DTYPES if size == SIZES[-1] else DTYPES[:1])
    ]


def _bar(ours: str, size: int) -> float | None:
    return BAR if size == SIZES[-1] and ours not in SLOWER else None


OPS = _cases()
CONVOLUTIONS = [
    OpCase(
        f"gt.nn.{text}", f"F.{text}", make, _LAYER, "float32", None if n else CONVOLUTION_BAR, True
    )
    for n, (text, make) in enumerate(_CONVOLUTIONS)
]
CASES = {case.name: case for case in (*OPS, *CONVOLUTIONS)}
