"""Activations as modules, with the names and arguments that PyTorch has."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gradtape.nn.layers.applied import Applied
from gradtape.nn.layers.first_values import filled, layer_dtype
from gradtape.nn.module import Module
from gradtape.ops.activation import (
    elu,
    gelu,
    leaky_relu,
    log_sigmoid,
    relu,
    relu6,
    sigmoid,
    silu,
    softsign,
)
from gradtape.ops.arguments import as_number
from gradtape.ops.checks import check_choice, check_count, check_least, check_positive
from gradtape.ops.nn.activations import (
    celu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    mish,
    prelu,
    selu,
    softplus,
    softshrink,
    tanhshrink,
    threshold,
)
from gradtape.ops.nn.dropout import rrelu
from gradtape.ops.nn.softmaxes import glu, gumbel_softmax, log_softmax, softmax, softmin
from gradtape.ops.trigonometric import tanh
from gradtape.typing import Array, ArrayLike

# ---- without settings ---------------------------------------------------------------------------


class Hardsigmoid(Applied, function=hardsigmoid):
    """A sigmoid of straight lines, (x + 3)/6 between 0 and 1: `gt.nn.hardsigmoid`.

    >>> gt.nn.Hardsigmoid()(np.array([-4.0, 0.0, 1.5]))
    array([0.  , 0.5 , 0.75])
    """


class Hardswish(Applied, function=hardswish):
    """x times its hard sigmoid: `gt.nn.hardswish`.

    >>> gt.nn.Hardswish()(np.array([-4.0, 1.5, 4.0]))
    array([-0.   ,  1.125,  4.   ])
    """


class LogSigmoid(Applied, function=log_sigmoid):
    """The logarithm of the sigmoid: `gt.nn.log_sigmoid`.

    >>> gt.nn.LogSigmoid()(np.array([0.0]))
    array([-0.69314718])
    """


class Mish(Applied, function=mish):
    """x times the hyperbolic tangent of its softplus: `gt.nn.mish`.

    >>> gt.nn.Mish()(np.array([0.0, 1.0]))
    array([0.        , 0.86509839])
    """


class ReLU(Applied, function=relu):
    """The larger of x and 0: `gt.nn.relu`.

    >>> gt.nn.ReLU()(np.array([-1.0, 2.0]))
    array([0., 2.])
    """


class ReLU6(Applied, function=relu6):
    """x clipped to the interval from 0 to 6: `gt.nn.relu6`.

    >>> gt.nn.ReLU6()(np.array([-1.0, 2.0, 7.0]))
    array([0., 2., 6.])
    """


class SELU(Applied, function=selu):
    """A scaled ELU that keeps mean 0 and variance 1 from layer to layer: `gt.nn.selu`.

    >>> gt.nn.SELU()(np.array([-1.0, 1.0]))
    array([-1.11133074,  1.05070099])
    """


class SiLU(Applied, function=silu):
    """x times its sigmoid, also called swish: `gt.nn.silu`.

    >>> gt.nn.SiLU()(np.array([0.0, 1.0]))
    array([0.        , 0.73105858])
    """


class Sigmoid(Applied, function=sigmoid):
    """1/(1 + exp(-x)): `gt.nn.sigmoid`.

    >>> gt.nn.Sigmoid()(np.array([0.0]))
    array([0.5])
    """


class Softsign(Applied, function=softsign):
    """x/(1 + |x|): `gt.nn.softsign`.

    >>> gt.nn.Softsign()(np.array([-1.0, 3.0]))
    array([-0.5 ,  0.75])
    """


class Tanh(Applied, function=tanh):
    """The hyperbolic tangent: `gt.nn.tanh`.

    >>> gt.nn.Tanh()(np.array([0.0, 1.0]))
    array([0.        , 0.76159416])
    """


class Tanhshrink(Applied, function=tanhshrink):
    """x less its hyperbolic tangent: `gt.nn.tanhshrink`.

    >>> gt.nn.Tanhshrink()(np.array([0.0, 1.0]))
    array([0.        , 0.23840584])
    """


# ---- with settings ------------------------------------------------------------------------------


class CELU(Applied, function=celu):
    """x, and alpha·(exp(x/alpha) - 1) below 0: `gt.nn.celu`.

    >>> gt.nn.CELU(2.0)(np.array([-1.0, 2.0]))
    array([-0.78693868,  2.        ])
    """

    alpha: float = 1.0
    _checks: ClassVar = {"alpha": (check_positive,)}


class ELU(Applied, function=elu):
    """x, and alpha·(exp(x) - 1) below 0: `gt.nn.elu`.

    >>> gt.nn.ELU()(np.array([-1.0, 2.0]))
    array([-0.63212056,  2.        ])
    """

    alpha: float = 1.0


class GELU(Applied, function=gelu):
    """x times the probability that a standard normal number is below it: `gt.nn.gelu`.

    >>> gt.nn.GELU()(np.array([0.0, 1.0])), gt.nn.GELU("tanh")
    (array([0.        , 0.84134475]), GELU(approximate='tanh'))
    """

    approximate: str = "none"
    _checks: ClassVar = {"approximate": (check_choice, ("none", "tanh"))}


class Hardshrink(Applied, function=hardshrink):
    """x, and 0 where |x| is at most `lambd`: `gt.nn.hardshrink`.

    >>> gt.nn.Hardshrink()(np.array([-2.0, 0.3, 2.0]))
    array([-2.,  0.,  2.])
    """

    lambd: float = 0.5


class Hardtanh(Applied, function=hardtanh):
    """x clipped to an interval: `gt.nn.hardtanh`.

    >>> gt.nn.Hardtanh()(np.array([-3.0, 0.5, 3.0]))
    array([-1. ,  0.5,  1. ])
    """

    min_val: float = -1.0
    max_val: float = 1.0

    def _check(self) -> None:
        """Raise for an empty interval."""
        check_least("Hardtanh", self.min_val, max_val=self.max_val)


class LeakyReLU(Applied, function=leaky_relu):
    """x, and a small multiple of it below 0: `gt.nn.leaky_relu`.

    >>> gt.nn.LeakyReLU(0.1)(np.array([-1.0, 2.0]))
    array([-0.1,  2. ])
    """

    negative_slope: float = 0.01


class RReLU(Applied, function=rrelu, training=True):
    """x, and below 0 a multiple of it by a slope that is drawn at random: `gt.nn.rrelu`.

    In evaluation, all slopes are the mean of both ends.

    >>> gt.nn.RReLU(0.2, 0.3).eval()(np.array([-1.0, 2.0]))
    array([-0.25,  2.  ])
    """

    lower: float = 1 / 8
    upper: float = 1 / 3

    def _check(self) -> None:
        """Raise for an empty interval."""
        check_least("RReLU", self.lower, upper=self.upper)


class Softplus(Applied, function=softplus):
    """A smooth ReLU, log(1 + exp(beta·x))/beta, and x itself above a threshold: `gt.nn.softplus`.

    >>> gt.nn.Softplus()(np.array([0.0, 1000.0]))
    array([6.93147181e-01, 1.00000000e+03])
    """

    beta: float = 1.0
    threshold: float = 20.0
    _checks: ClassVar = {"beta": (check_positive,)}


class Softshrink(Applied, function=softshrink):
    """x moved towards 0 by `lambd`, but not beyond 0: `gt.nn.softshrink`.

    >>> gt.nn.Softshrink()(np.array([-2.0, 0.3, 2.0]))
    array([-1.5,  0. ,  1.5])
    """

    lambd: float = 0.5
    _checks: ClassVar = {"lambd": (check_least, 0)}


class Threshold(Applied, function=threshold):
    """x, and another value where it is not above a threshold: `gt.nn.threshold`.

    >>> gt.nn.Threshold(2.0, 0.0)(np.array([1.0, 2.0, 3.0]))
    array([0., 0., 3.])
    """

    threshold: float
    value: float


# ---- along an axis ------------------------------------------------------------------------------


class GLU(Applied, function=glu):
    """The first half along an axis times the sigmoid of the second half: `gt.nn.glu`.

    >>> gt.nn.GLU()(np.array([1.0, 2.0, 0.0, 0.0]))
    array([0.5, 1. ])
    """

    dim: int = -1


class GumbelSoftmax(Applied, function=gumbel_softmax):
    """Random classes as vectors, by softmax of logits with noise: `gt.nn.gumbel_softmax`.

    >>> gt.nn.GumbelSoftmax(hard=True)(np.zeros((2, 3))).sum(-1)
    array([1., 1.])
    """

    tau: float = 1.0
    hard: bool = False
    dim: int = -1
    _checks: ClassVar = {"tau": (check_positive,)}


class LogSoftmax(Applied, function=log_softmax):
    """The logarithm of the softmax along an axis: `gt.nn.log_softmax`.

    >>> gt.nn.LogSoftmax()(np.zeros(2))
    array([-0.69314718, -0.69314718])
    """

    dim: int = -1


class Softmax(Applied, function=softmax):
    """Positive numbers that add up to 1 along an axis: `gt.nn.softmax`.

    >>> gt.nn.Softmax(-1)(np.array([0.0, np.log(3)]))
    array([0.25, 0.75])
    """

    dim: int = -1


class Softmax2d(Applied, function=lambda x: softmax(x, -3)):
    """Softmax over the channels of images, the third axis from the end.

    >>> gt.nn.Softmax2d()(np.zeros((1, 2, 3, 3)))[0, :, 0, 0]
    array([0.5, 0.5])
    """


class Softmin(Applied, function=softmin):
    """The softmax of the opposite along an axis: `gt.nn.softmin`.

    >>> gt.nn.Softmin()(np.array([0.0, np.log(3)]))
    array([0.75, 0.25])
    """

    dim: int = -1


# ---- with parameters ----------------------------------------------------------------------------


class PReLU(Module):
    """x, and below 0 a multiple of it by a slope that is learned: `gt.nn.prelu`.

    Args:
        num_parameters: 1 for one slope, or the number of channels for a slope each.
        init: The first value of the slopes.
        dtype: The dtype of the parameter.

    Attributes:
        weight: The slopes, of shape (num_parameters,).

    Raises:
        ArgumentError: There would be no slope.

    >>> gt.nn.PReLU()
    PReLU(1): weight[1]
    >>> gt.nn.PReLU()(np.array([-2.0, 3.0], np.float32)).detach()
    tensor([-0.5,  3. ], dtype=float32)
    """

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, *, dtype: Any = np.float32
    ) -> None:
        check_count("PReLU", 1, num_parameters=num_parameters)
        self.num_parameters = num_parameters
        start = as_number(init, "PReLU", "init")
        self.weight = filled(start, (num_parameters,), layer_dtype(dtype, "PReLU"))

    def forward(self, x: ArrayLike) -> Array:
        """Apply the slopes to the channels of `x`."""
        return prelu(x, self.weight)

    def extra_repr(self) -> str:
        """Show the number of slopes."""
        return f"{self.num_parameters}"
