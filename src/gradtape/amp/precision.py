"""Which ops are computed in 16 bits, and which in float32.

Ops are told by what they are: products of matrices and convolutions are 16 bits, sums and what
grows fast or is defined by cancellation is float32. All others take what they get, and widen it if
two operands differ, as NumPy does.
"""

from __future__ import annotations

import difflib
import enum
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.op import Op, op_of, registry
from gradtape.dtypes import __getattr__ as _extended
from gradtape.errors import ArgumentError, a_type
from gradtape.ops.activation import log_sigmoid, softplus_op
from gradtape.ops.arithmetic import hypot, power, reciprocal, square
from gradtape.ops.nn.activations import rsqrt
from gradtape.ops.nn.classes import mean_cross_entropy, pick_class
from gradtape.ops.nn.pool_sums import lp_pool
from gradtape.ops.reduce import max_over, min_over
from gradtape.ops.trigonometric import arccos, arccosh, arcsin, arctanh, cosh, sinh, tan

FLOAT32, FLOAT16 = np.dtype(np.float32), np.dtype(np.float16)

# Sums of many terms, functions that overflow or cancel, and what LAPACK or SciPy compute: modules,
# and packages, of `gradtape.ops`.
_WIDE_MODULES = frozenset(
    {"exponential", "erf", "logaddexp", "softmax", "norm", "moments", "product", "cumulative"}
    | {"recurrence", "special", "linalg", "fft", "signal", "ndimage", "sparse"}
    | {f"nn.{name}" for name in ("ctc", "distances", "likelihoods", "losses", "normalize")}
    | {"nn.standardize", "arrays.logcumsumexp", "arrays.quantile"}
)
# Of other modules.
_WIDE = frozenset(
    {
        *map(op_of, (power, square, reciprocal, hypot, rsqrt, log_sigmoid, lp_pool)),
        *map(op_of, (arccos, arcsin, arccosh, arctanh, cosh, sinh, tan)),
        softplus_op,
        *map(op_of, (mean_cross_entropy, pick_class)),
    }
)
# Reductions that choose one of the elements.
_CHOOSING = frozenset(map(op_of, (max_over, min_over)))
_CHOOSING_MODULES = frozenset({"arrays.nan_extremes"})
_OF_USERS = ("custom", "host", "graph", "control")

# What functions are called that have no op of their name.
_FUNCTIONS = {
    **{f"conv{rank}d": ("conv", "conv_bias") for rank in (1, 2, 3)},
    **{f"conv_transpose{rank}d": ("conv_input", "conv_input_bias") for rank in (1, 2, 3)},
    **dict.fromkeys(
        ("layer_norm", "batch_norm", "group_norm", "instance_norm", "rms_norm"),
        ("standardize", "standardize_affine", "standardize_scaled"),
    ),
    "cross_entropy": ("dense_cross_entropy", "sparse_cross_entropy", "mean_cross_entropy"),
    "nll_loss": ("pick_class",),
    "binary_cross_entropy": ("binary_entropy",),
    "mse_loss": ("squared_error",),
    "l1_loss": ("absolute_error",),
    "scaled_dot_product_attention": ("attention",),
    "bmm": ("matmul",),
    "pow": ("power",),
}


class PrecisionMode(enum.Enum):
    """The dtype that products are computed in under mixed precision.

    Attributes:
        Float16: 11 bits of precision, and numbers up to 65504: needs a loss scaler.
        BFloat16: 8 bits of precision, and the range of float32.
        Float32: Nothing is computed in 16 bits.

    >>> gt.PrecisionMode.BFloat16.dtype
    dtype(bfloat16)
    """

    Float16 = "float16"
    BFloat16 = "bfloat16"
    Float32 = "float32"

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""
        extended = self is PrecisionMode.BFloat16
        dtype: np.dtype[Any] = np.dtype(_extended(self.value) if extended else self.value)
        return dtype


def precision_mode(given: Any, name: str) -> PrecisionMode:
    """The mode that a dtype, its name or a mode stands for.

    Raises:
        ArgumentError: It is none of them.
    """
    if isinstance(given, PrecisionMode):
        return given
    try:
        return PrecisionMode(given if isinstance(given, str) else np.dtype(given).name)
    except (TypeError, ValueError):
        got = repr(given) if isinstance(given, str | np.dtype | type) else a_type(given)
        device = given in ("cpu", "cuda", "mps") if isinstance(given, str) else False
        advice = "; leave out the device: ops run where their arrays are" if device else ""
        raise ArgumentError(
            f"{name}: got {got} as dtype, expected gt.float16, gt.bfloat16 or a "
            f"gt.PrecisionMode{advice}"
        ) from None


class Lists(NamedTuple):
    """Ops whose precision a user has decided."""

    allow: frozenset[Op] = frozenset()
    deny: frozenset[Op] = frozenset()


def lists(allow: Iterable[str], deny: Iterable[str], name: str, options: tuple[str, str]) -> Lists:
    """The names of ops in two lists of names of ops and functions.

    Raises:
        ArgumentError: There is no op of a name, or it is in both lists.
    """
    made = Lists(*(_named(*pair, name) for pair in zip((allow, deny), options, strict=True)))
    if both := sorted(op.name for op in made.allow & made.deny):
        raise ArgumentError(
            f"{name}: got {both[0]!r} in {options[0]} and in {options[1]}, expected it in one"
        )
    return made


def _named(given: Iterable[str], option: str, name: str) -> frozenset[Op]:
    """The ops of some names.

    Raises:
        ArgumentError: There is none of a name.
    """
    if isinstance(given, str):
        raise ArgumentError(
            f"{name}: got the string {given!r} for {option}, expected a list of names, [{given!r}]"
        )
    if not isinstance(given, Iterable):
        raise ArgumentError(f"{name}: got {a_type(given)} for {option}, expected a list of names")
    found: set[Op] = set()
    for each in given:
        if not isinstance(each, str):
            raise ArgumentError(f"{name}: got {a_type(each)} in {option}, expected names of ops")
        ops = [registry.named(part) for part in _FUNCTIONS.get(each, (each,))]
        if None in ops:
            known = [*(op.name for op in registry), *_FUNCTIONS]
            near = difflib.get_close_matches(each, known, n=3)
            advice = f"; near names are {', '.join(near)}" if near else ""
            raise ArgumentError(
                f"{name}: got {each!r} in {option}, which is no op{advice}; "
                "print(gt.jit(f).graph(x)) shows the names of the ops that a function uses"
            )
        found.update([op for op in ops if op is not None])
    return frozenset(found)


def is_narrow_op(op: Op, chosen: Lists) -> bool | None:
    """Whether an op is computed in 16 bits; False for float32, None for what it is given."""
    if op.kind in _OF_USERS or not op.tracked:
        return None
    if op in chosen.allow:
        return True
    if op in chosen.deny:
        return False
    if op.kind == "contraction":
        return True
    home = registry.home(op).removeprefix("gradtape.ops.")
    chooses = op in _CHOOSING or home in _CHOOSING_MODULES
    family = home.partition(".")[0]
    wide = op in _WIDE or home in _WIDE_MODULES or family in _WIDE_MODULES
    return False if wide or (op.kind == "reduction" and not chooses) else None


def precision_of(name: str) -> str:
    """How `gt.autocast` computes an op: in "16 bits", in "float32", or "as given".

    Args:
        name: The name of an op, or of a function that consists of one.

    Raises:
        ArgumentError: There is no op of that name.

    >>> [gt.amp.precision_of(name) for name in ("matmul", "conv2d", "softmax", "tanh")]
    ['16 bits', '16 bits', 'float32', 'as given']
    """
    ops = _named((name,), "the name", "precision_of")
    (narrow,) = {is_narrow_op(op, Lists()) for op in ops}
    return {True: "16 bits", False: "float32", None: "as given"}[narrow]
