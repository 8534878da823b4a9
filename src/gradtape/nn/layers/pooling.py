"""Pooling as modules, with the names and arguments that PyTorch has."""

from __future__ import annotations

from typing import Any, ClassVar

from gradtape.errors import ArgumentError
from gradtape.nn.layers.applied import Applied
from gradtape.ops.checks import check_positive
from gradtape.ops.nn.pool_adaptive import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    global_avg_pool,
    global_max_pool,
)
from gradtape.ops.nn.pool_average import (
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    sum_pool1d,
    sum_pool2d,
    sum_pool3d,
)
from gradtape.ops.nn.pool_fractional import fractional_max_pool2d, fractional_max_pool3d
from gradtape.ops.nn.pool_max import (
    max_pool1d,
    max_pool2d,
    max_pool3d,
    min_pool1d,
    min_pool2d,
    min_pool3d,
)
from gradtape.ops.nn.pool_unpool import max_unpool1d, max_unpool2d, max_unpool3d
from gradtape.ops.nn.windows import Sizes, per_axis


class _Pool(Applied):
    """Pooling over windows whose sizes are settings; `rank` is the number of spatial axes."""

    _rank: ClassVar[int]

    def __init_subclass__(cls, rank: int | None = None, **others: Any) -> None:
        super().__init_subclass__(**others)
        if rank is not None:
            cls._rank = rank

    def _check(self) -> None:
        """Raise for sizes that are not positive integers, one for all axes or one for each."""
        for option, least in (("kernel_size", 1), ("stride", 1), ("padding", 0), ("dilation", 1)):
            value = vars(self).get(option)
            if value is not None:
                per_axis(type(self).__name__, option, value, self._rank, least)
        super()._check()


class _Windows(_Pool):
    kernel_size: int | Sizes
    stride: int | Sizes | None = None
    padding: int | Sizes = 0


class _ExtremePool(_Windows):
    dilation: int | Sizes = 1
    return_indices: bool = False
    ceil_mode: bool = False


class _AveragePool(_Windows):
    ceil_mode: bool = False
    count_include_pad: bool = True
    divisor_override: int | None = None


class _SumPool(_Windows):
    ceil_mode: bool = False


class _LPPool(_Pool):
    norm_type: float
    kernel_size: int | Sizes
    stride: int | Sizes | None = None
    ceil_mode: bool = False
    _checks: ClassVar = {"norm_type": (check_positive,)}


class _AdaptiveAveragePool(_Pool):
    output_size: int | tuple[int | None, ...] | None


class _AdaptiveExtremePool(_AdaptiveAveragePool):
    return_indices: bool = False


class _FractionalPool(_Pool):
    kernel_size: int | Sizes
    output_size: int | Sizes | None = None
    output_ratio: float | tuple[float, ...] | None = None
    return_indices: bool = False

    def _check(self) -> None:
        """Raise unless there is either a size or a ratio."""
        super()._check()
        if (self.output_size is None) == (self.output_ratio is None):
            raise ArgumentError(
                f"{type(self).__name__}: got output_size={self.output_size} and "
                f"output_ratio={self.output_ratio}, expected one of them"
            )


class _Unpool(_Windows):
    def forward(self, x: Any, indices: Any, output_size: Any = None) -> Any:
        """Put elements back, to the sizes of the array that was pooled if these are given."""
        sizes = None if output_size is None else tuple(output_size)[-self._rank :]
        options = (self.kernel_size, self.stride, self.padding)
        return self._function(x, indices, *options, output_size=sizes)


# ---- over windows -------------------------------------------------------------------------------


class MaxPool1d(_ExtremePool, function=max_pool1d, rank=1):
    """The largest elements in windows that move over sequences: `gt.nn.max_pool1d`.

    >>> gt.nn.MaxPool1d(2)(np.array([[1.0, 3.0, 7.0, 5.0]]))
    array([[3., 7.]])
    """


class MaxPool2d(_ExtremePool, function=max_pool2d, rank=2):
    """The largest elements in windows that move over images: `gt.nn.max_pool2d`.

    >>> gt.nn.MaxPool2d(2)(np.ones((1, 2, 4, 4))).shape
    (1, 2, 2, 2)
    """


class MaxPool3d(_ExtremePool, function=max_pool3d, rank=3):
    """The largest elements in windows that move over volumes: `gt.nn.max_pool3d`.

    >>> gt.nn.MaxPool3d(2)(np.ones((1, 2, 4, 4, 4))).shape
    (1, 2, 2, 2, 2)
    """


class MinPool1d(_ExtremePool, function=min_pool1d, rank=1):
    """The smallest elements in windows that move over sequences: `gt.nn.min_pool1d`.

    >>> gt.nn.MinPool1d(2)(np.array([[1.0, 3.0, 7.0, 5.0]]))
    array([[1., 5.]])
    """


class MinPool2d(_ExtremePool, function=min_pool2d, rank=2):
    """The smallest elements in windows that move over images: `gt.nn.min_pool2d`.

    >>> gt.nn.MinPool2d(2)(np.ones((1, 2, 4, 4))).shape
    (1, 2, 2, 2)
    """


class MinPool3d(_ExtremePool, function=min_pool3d, rank=3):
    """The smallest elements in windows that move over volumes: `gt.nn.min_pool3d`.

    >>> gt.nn.MinPool3d(2)(np.ones((1, 2, 4, 4, 4))).shape
    (1, 2, 2, 2, 2)
    """


class AvgPool1d(_AveragePool, function=avg_pool1d, rank=1):
    """Averages over windows that move over sequences: `gt.nn.avg_pool1d`.

    >>> gt.nn.AvgPool1d(2)(np.array([[1.0, 3.0, 7.0, 5.0]]))
    array([[2., 6.]])
    """


class AvgPool2d(_AveragePool, function=avg_pool2d, rank=2):
    """Averages over windows that move over images: `gt.nn.avg_pool2d`.

    >>> gt.nn.AvgPool2d(2)(np.ones((1, 2, 4, 4))).shape
    (1, 2, 2, 2)
    """


class AvgPool3d(_AveragePool, function=avg_pool3d, rank=3):
    """Averages over windows that move over volumes: `gt.nn.avg_pool3d`.

    >>> gt.nn.AvgPool3d(2)(np.ones((1, 2, 4, 4, 4))).shape
    (1, 2, 2, 2, 2)
    """


class SumPool1d(_SumPool, function=sum_pool1d, rank=1):
    """Sums over windows that move over sequences: `gt.nn.sum_pool1d`.

    >>> gt.nn.SumPool1d(2)(np.array([[1.0, 3.0, 7.0, 5.0]]))
    array([[ 4., 12.]])
    """


class SumPool2d(_SumPool, function=sum_pool2d, rank=2):
    """Sums over windows that move over images: `gt.nn.sum_pool2d`.

    >>> gt.nn.SumPool2d(2)(np.ones((1, 2, 4, 4))).shape
    (1, 2, 2, 2)
    """


class SumPool3d(_SumPool, function=sum_pool3d, rank=3):
    """Sums over windows that move over volumes: `gt.nn.sum_pool3d`.

    >>> gt.nn.SumPool3d(2)(np.ones((1, 2, 4, 4, 4))).shape
    (1, 2, 2, 2, 2)
    """


class LPPool1d(_LPPool, function=lp_pool1d, rank=1):
    """Norms of windows that move over sequences: `gt.nn.lp_pool1d`.

    >>> gt.nn.LPPool1d(1, 2)(np.array([[1.0, 3.0, 7.0, 5.0]]))
    array([[ 4., 12.]])
    """


class LPPool2d(_LPPool, function=lp_pool2d, rank=2):
    """Norms of windows that move over images: `gt.nn.lp_pool2d`.

    >>> gt.nn.LPPool2d(2, 2)(np.ones((1, 2, 4, 4))).shape
    (1, 2, 2, 2)
    """


class LPPool3d(_LPPool, function=lp_pool3d, rank=3):
    """Norms of windows that move over volumes: `gt.nn.lp_pool3d`.

    >>> gt.nn.LPPool3d(2, 2)(np.ones((1, 2, 4, 4, 4))).shape
    (1, 2, 2, 2, 2)
    """


# ---- to a given size ----------------------------------------------------------------------------


class AdaptiveAvgPool1d(_AdaptiveAveragePool, function=adaptive_avg_pool1d, rank=1):
    """Averages over as many windows of sequences as wanted: `gt.nn.adaptive_avg_pool1d`.

    >>> gt.nn.AdaptiveAvgPool1d(2)(np.array([[1.0, 3.0, 7.0, 5.0]]))
    array([[2., 6.]])
    """


class AdaptiveAvgPool2d(_AdaptiveAveragePool, function=adaptive_avg_pool2d, rank=2):
    """Averages over as many windows of images as wanted: `gt.nn.adaptive_avg_pool2d`.

    >>> gt.nn.AdaptiveAvgPool2d(2)(np.ones((1, 2, 4, 4))).shape
    (1, 2, 2, 2)
    """


class AdaptiveAvgPool3d(_AdaptiveAveragePool, function=adaptive_avg_pool3d, rank=3):
    """Averages over as many windows of volumes as wanted: `gt.nn.adaptive_avg_pool3d`.

    >>> gt.nn.AdaptiveAvgPool3d(2)(np.ones((1, 2, 4, 4, 4))).shape
    (1, 2, 2, 2, 2)
    """


class AdaptiveMaxPool1d(_AdaptiveExtremePool, function=adaptive_max_pool1d, rank=1):
    """The largest elements of as many windows of sequences as wanted: `gt.nn.adaptive_max_pool1d`.

    >>> gt.nn.AdaptiveMaxPool1d(2)(np.array([[1.0, 3.0, 7.0, 5.0]]))
    array([[3., 7.]])
    """


class AdaptiveMaxPool2d(_AdaptiveExtremePool, function=adaptive_max_pool2d, rank=2):
    """The largest elements of as many windows of images as wanted: `gt.nn.adaptive_max_pool2d`.

    >>> gt.nn.AdaptiveMaxPool2d(2)(np.ones((1, 2, 4, 4))).shape
    (1, 2, 2, 2)
    """


class AdaptiveMaxPool3d(_AdaptiveExtremePool, function=adaptive_max_pool3d, rank=3):
    """The largest elements of as many windows of volumes as wanted: `gt.nn.adaptive_max_pool3d`.

    >>> gt.nn.AdaptiveMaxPool3d(2)(np.ones((1, 2, 4, 4, 4))).shape
    (1, 2, 2, 2, 2)
    """


class FractionalMaxPool2d(_FractionalPool, function=fractional_max_pool2d, rank=2):
    """The largest elements of windows at random places of images: `gt.nn.fractional_max_pool2d`.

    >>> gt.nn.FractionalMaxPool2d(2, output_size=2)(np.ones((1, 2, 4, 4))).shape
    (1, 2, 2, 2)
    """


class FractionalMaxPool3d(_FractionalPool, function=fractional_max_pool3d, rank=3):
    """The largest elements of windows at random places of volumes: `gt.nn.fractional_max_pool3d`.

    >>> gt.nn.FractionalMaxPool3d(2, output_size=2)(np.ones((1, 2, 4, 4, 4))).shape
    (1, 2, 2, 2, 2)
    """


class GlobalAvgPool(Applied, function=global_avg_pool):
    """The average over all spatial axes, which stay with size 1: `gt.nn.global_avg_pool`.

    >>> gt.nn.GlobalAvgPool()(np.arange(4.0).reshape(1, 1, 2, 2))
    array([[[[1.5]]]])
    """


class GlobalMaxPool(Applied, function=global_max_pool):
    """The largest element over all spatial axes, which stay with size 1: `gt.nn.global_max_pool`.

    >>> gt.nn.GlobalMaxPool()(np.arange(4.0).reshape(1, 1, 2, 2))
    array([[[[3.]]]])
    """


# ---- back ---------------------------------------------------------------------------------------


class MaxUnpool1d(_Unpool, function=max_unpool1d, rank=1):
    """Puts the largest elements of sequences back to where they were: `gt.nn.max_unpool1d`.

    >>> values, indices = gt.nn.MaxPool1d(2, return_indices=True)(np.ones((1, 2, 4)))
    >>> gt.nn.MaxUnpool1d(2)(values, indices).shape
    (1, 2, 4)
    """


class MaxUnpool2d(_Unpool, function=max_unpool2d, rank=2):
    """Puts the largest elements of images back to where they were: `gt.nn.max_unpool2d`.

    >>> values, indices = gt.nn.MaxPool2d(2, return_indices=True)(np.ones((1, 2, 4, 4)))
    >>> gt.nn.MaxUnpool2d(2)(values, indices).shape
    (1, 2, 4, 4)
    """


class MaxUnpool3d(_Unpool, function=max_unpool3d, rank=3):
    """Puts the largest elements of volumes back to where they were: `gt.nn.max_unpool3d`.

    >>> values, indices = gt.nn.MaxPool3d(2, return_indices=True)(np.ones((1, 2, 4, 4, 4)))
    >>> gt.nn.MaxUnpool3d(2)(values, indices).shape
    (1, 2, 4, 4, 4)
    """
