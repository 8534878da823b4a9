"""First values of parameters, written in place: `torch.nn.init`.

Weights are laid out as layers have them: outputs first, then inputs, then the sizes of a kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from gradtape.core.aval import is_extended_float
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, DTypeError, ShapeError, a_type
from gradtape.nn.fans import fans
from gradtape.nn.layers.first_values import known_numbers
from gradtape.nn.shaped_draws import orthogonal_from, truncated_from
from gradtape.ops.checks import check_axes, check_between, check_choice, check_least
from gradtape.ops.generator import Generator
from gradtape.ops.random import normal, rand, randn, uniform
from gradtape.ops.random_discrete import permutation
from gradtape.ops.shared_options import options

T = TypeVar("T")  # a tensor or an array

_OPTIONS = {
    "tensor": "The parameter, or a buffer, or an array.",
    "generator": "Where to draw from; the default generator if not given.",
    "gain": "A factor for the activation that follows; see `calculate_gain`.",
    "a": "The slope below 0 of the leaky ReLU that follows; 0 for ReLU.",
    "mode": '"fan_in" keeps the variance from layer to layer, "fan_out" that of gradients.',
    "nonlinearity": "The activation that follows, as in `calculate_gain`.",
}
_ERRORS = {
    "ArgumentError": "It cannot be written to, or an option has a value that has no meaning.",
    "DTypeError": "It does not hold floating-point numbers.",
}
_WITH_FANS = {**_ERRORS, "ShapeError": "It has less than two axes."}


def _target(name: str, tensor: Any) -> Any:
    """What is to be written to, checked."""
    target = tensor
    if not isinstance(target, Tensor | np.ndarray):
        raise ArgumentError(f"{name}: got {a_type(tensor)}, expected a parameter")
    if isinstance(target, Tensor) and not target.is_leaf:
        raise ArgumentError(
            f"{name}: got the result of an operation, expected a parameter; nothing would be "
            "trained from what is written to it"
        )
    if target.dtype.kind != "f" and not is_extended_float(target.dtype):
        raise DTypeError(f"{name}: got {target.dtype}, expected floating-point numbers")
    return target


def _write(name: str, tensor: T, make: Callable[[tuple[int, ...], Any], Any]) -> T:
    """Write `make(shape, dtype)` to a leaf or an array; returns it."""
    target = _target(name, tensor)
    made = known_numbers(name, make(target.shape, target.dtype))
    if isinstance(target, Tensor):
        # An array of its own: others may read the old one, such as a state_dict.
        target.value = np.array(np.broadcast_to(made, target.shape), target.dtype)
    else:
        target[...] = made
    return tensor


# ---- numbers that are given ---------------------------------------------------------------------


@options(_OPTIONS, raises=_ERRORS)
def constant_(tensor: T, val: float) -> T:
    """Set all elements to a number; returns the tensor.

    Args:
        val: The number.

    >>> gt.nn.init.constant_(gt.nn.Parameter(np.zeros(2)), 3.0)
    tensor([3., 3.], requires_grad=True)
    """
    return _write("constant_", tensor, lambda shape, dtype: np.full(shape, val, dtype))


@options(_OPTIONS, raises=_ERRORS)
def zeros_(tensor: T) -> T:
    """Set all elements to 0; returns the tensor.

    >>> gt.nn.init.zeros_(gt.nn.Linear(2, 1).bias)
    tensor([0.], dtype=float32, requires_grad=True)
    """
    return _write("zeros_", tensor, np.zeros)


@options(_OPTIONS, raises=_ERRORS)
def ones_(tensor: T) -> T:
    """Set all elements to 1; returns the tensor.

    >>> gt.nn.init.ones_(gt.nn.Linear(2, 1).bias)
    tensor([1.], dtype=float32, requires_grad=True)
    """
    return _write("ones_", tensor, np.ones)


@options(_OPTIONS, raises={**_ERRORS, "ShapeError": "It is no matrix."})
def eye_(tensor: T) -> T:
    """Make a matrix the identity, with zeros beside it if it is not square; returns it.

    >>> gt.nn.init.eye_(gt.nn.Parameter(np.ones((2, 3)))).detach()
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    check_axes("eye_", _target("eye_", tensor), 2)
    return _write("eye_", tensor, lambda shape, dtype: np.eye(*shape, dtype=dtype))


@options(_OPTIONS, raises={**_ERRORS, "ShapeError": "It has other than three to five axes."})
def dirac_(tensor: T, groups: int = 1) -> T:
    """Make a convolution return its channels as they are; returns the tensor.

    Args:
        groups: Into how many groups the channels are split.

    >>> layer = gt.nn.Conv1d(2, 2, 3, padding=1, bias=False)
    >>> _ = gt.nn.init.dirac_(layer.weight)
    >>> layer(np.array([[1, 2, 3], [4, 5, 6]], np.float32)).detach()
    tensor([[1., 2., 3.],
            [4., 5., 6.]], dtype=float32)
    """
    target = _target("dirac_", tensor)
    check_axes("dirac_", target, least=3, most=5)
    outputs = target.shape[0]
    if groups < 1 or outputs % groups:
        raise ArgumentError(f"dirac_: got groups={groups}, expected groups that divide {outputs}")

    def make(shape: tuple[int, ...], dtype: Any) -> Any:
        made: Any = np.zeros(shape, dtype)
        size = shape[0] // groups
        channels = np.arange(min(size, shape[1]))
        middle = tuple(n // 2 for n in shape[2:])
        for start in range(0, shape[0], size):
            made[(start + channels, channels, *middle)] = 1
        return made

    return _write("dirac_", tensor, make)


# ---- numbers of a distribution ------------------------------------------------------------------


@options(_OPTIONS, raises=_ERRORS)
def uniform_(tensor: T, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> T:
    """Draw all elements uniformly from an interval; returns the tensor.

    Args:
        a: The lower end.
        b: The upper end.

    >>> bool(gt.all(gt.nn.init.uniform_(gt.nn.Linear(9, 9).weight, 2.0, 3.0) >= 2))
    True
    """
    check_least("uniform_", a, b=b)
    return _write(
        *("uniform_", tensor),
        lambda shape, dtype: uniform(a, b, shape, dtype=dtype, generator=generator),
    )


@options(_OPTIONS, raises=_ERRORS)
def normal_(
    tensor: T, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> T:
    """Draw all elements from a normal distribution; returns the tensor.

    Args:
        mean: Its mean.
        std: Its standard deviation.

    >>> gt.nn.init.normal_(gt.nn.Parameter(np.zeros(2)), mean=1.0, std=0.0).detach()
    tensor([1., 1.])
    """
    check_least("normal_", 0, std=std)
    return _write(
        *("normal_", tensor),
        lambda shape, dtype: normal(mean, std, shape, dtype=dtype, generator=generator),
    )


@options(_OPTIONS, raises=_ERRORS)
def trunc_normal_(
    tensor: T,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> T:
    """Draw all elements from a normal distribution, but none outside of an interval.

    Args:
        mean: The mean of the normal distribution.
        std: Its standard deviation.
        a: The lower end of the interval.
        b: The upper end.

    Returns:
        The tensor.

    >>> w = gt.nn.init.trunc_normal_(gt.nn.Linear(9, 9).weight, std=0.02, a=-0.04, b=0.04)
    >>> bool(gt.max(gt.abs(w)) <= 0.04)
    True
    """

    def make(shape: tuple[int, ...], _dtype: Any) -> Any:
        def draw() -> Any:
            return known_numbers("trunc_normal_", rand(shape, generator=generator))

        return truncated_from("trunc_normal_", draw, mean, std, a, b)

    return _write("trunc_normal_", tensor, make)


# ---- scaled by the sizes of a layer -------------------------------------------------------------

_GAINS = {
    **dict.fromkeys(("linear", "identity", "sigmoid"), 1.0),
    **{f"conv{rank}d": 1.0 for rank in (1, 2, 3)},
    **{f"conv_transpose{rank}d": 1.0 for rank in (1, 2, 3)},
    "tanh": 5 / 3,
    "relu": math.sqrt(2),
    "selu": 3 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor by which weights before an activation are larger than before none.

    Args:
        nonlinearity: The name of its function: "linear", "sigmoid", "tanh", "relu", "leaky_relu"
            or "selu".
        param: The slope of "leaky_relu" below 0; None for 0.01.

    Raises:
        ArgumentError: There is no such activation.

    >>> gt.nn.init.calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    check_choice("calculate_gain", (*_GAINS, "leaky_relu"), nonlinearity=nonlinearity)
    return _GAINS[nonlinearity]


def _fans(name: str, tensor: Any) -> tuple[int, int]:
    shape = _target(name, tensor).shape
    if len(shape) < 2:
        raise ShapeError(
            f"{name}: got shape {shape}, expected weights (outputs, inputs, …); for a bias use "
            "zeros_ or uniform_"
        )
    return fans(shape, outputs_first=True)


def _kaiming_std(name: str, tensor: Any, a: float, mode: str, nonlinearity: str) -> float:
    """The standard deviation gain/√fan."""
    check_choice(name, ("fan_in", "fan_out"), mode=mode)
    fan = _fans(name, tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(max(fan, 1))


@options(_OPTIONS, raises=_WITH_FANS)
def xavier_uniform_(tensor: T, gain: float = 1.0, generator: Generator | None = None) -> T:
    """Draw from the uniform distribution of Glorot and Bengio (2010): ±gain·√(6/(in + out)).

    >>> w = gt.nn.init.xavier_uniform_(gt.nn.Linear(20, 16).weight)
    >>> bool(gt.max(gt.abs(w)) <= (6 / 36) ** 0.5)
    True
    """
    bound = gain * math.sqrt(6 / max(sum(_fans("xavier_uniform_", tensor)), 1))
    return uniform_(tensor, -bound, bound, generator)


@options(_OPTIONS, raises=_WITH_FANS)
def xavier_normal_(tensor: T, gain: float = 1.0, generator: Generator | None = None) -> T:
    """Draw from the normal distribution of Glorot and Bengio (2010): σ = gain·√(2/(in + out)).

    >>> gt.nn.init.xavier_normal_(gt.nn.Linear(20, 16).weight).shape
    (16, 20)
    """
    std = gain * math.sqrt(2 / max(sum(_fans("xavier_normal_", tensor)), 1))
    return normal_(tensor, 0.0, std, generator)


@options(_OPTIONS, raises=_WITH_FANS)
def kaiming_uniform_(
    tensor: T,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> T:
    """Draw from the uniform distribution of He et al. (2015): ±gain·√(3/fan).

    >>> w = gt.nn.init.kaiming_uniform_(gt.nn.Conv2d(3, 8, 3).weight)
    >>> bool(gt.max(gt.abs(w)) <= (6 / 27) ** 0.5)
    True
    """
    bound = math.sqrt(3) * _kaiming_std("kaiming_uniform_", tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


@options(_OPTIONS, raises=_WITH_FANS)
def kaiming_normal_(
    tensor: T,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> T:
    """Draw from the normal distribution of He et al. (2015): σ = gain/√fan.

    >>> gt.nn.init.kaiming_normal_(gt.nn.Conv2d(3, 8, 3).weight, mode="fan_out").shape
    (8, 3, 3, 3)
    """
    std = _kaiming_std("kaiming_normal_", tensor, a, mode, nonlinearity)
    return normal_(tensor, 0.0, std, generator)


@options(_OPTIONS, raises=_WITH_FANS)
def orthogonal_(tensor: T, gain: float = 1.0, generator: Generator | None = None) -> T:
    """Draw a matrix with orthonormal rows or columns, whichever are fewer (Saxe et al., 2013).

    Of a kernel, its sizes count as inputs.

    >>> w = gt.nn.init.orthogonal_(gt.nn.Linear(2, 4).weight).detach()
    >>> np.allclose(w.T @ w, np.eye(2), atol=1e-6)
    True
    """
    _fans("orthogonal_", tensor)

    def draw(shape: tuple[int, int]) -> Any:
        return known_numbers("orthogonal_", randn(shape, generator=generator))

    return _write(
        *("orthogonal_", tensor),
        lambda shape, _dtype: gain * orthogonal_from("orthogonal_", draw, shape, True),
    )


@options(_OPTIONS, raises={**_ERRORS, "ShapeError": "It is no matrix."})
def sparse_(tensor: T, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> T:
    """Draw a normal matrix, and set as many elements of each column to 0 (Martens, 2010).

    Args:
        sparsity: The share of zeros in each column.
        std: The standard deviation of the others.

    >>> w = gt.nn.init.sparse_(gt.nn.Linear(3, 10).weight, 0.25)
    >>> gt.sum(w == 0, axis=0)
    tensor([3, 3, 3])
    """
    check_axes("sparse_", _target("sparse_", tensor), 2)
    check_between("sparse_", 0, 1, sparsity=sparsity)

    def make(shape: tuple[int, ...], _dtype: Any) -> Any:
        drawn = known_numbers("sparse_", normal(0.0, std, shape, generator=generator)).copy()
        zeros = math.ceil(sparsity * shape[0])
        for column in range(shape[1]):
            rows = known_numbers("sparse_", permutation(shape[0], generator=generator))
            drawn[rows[:zeros], column] = 0
        return drawn

    return _write("sparse_", tensor, make)


glorot_uniform_, glorot_normal_ = xavier_uniform_, xavier_normal_
he_uniform_, he_normal_ = kaiming_uniform_, kaiming_normal_
