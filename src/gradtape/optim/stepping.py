"""How a rule is run: in sufficient precision, and for many large parameters at once.

A rule is written with operators, so that it runs on whatever has them: arrays, tensors that are
differentiated or batched, and the tensors of a trace. Arrays of NumPy go to one native kernel,
which computes the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.config import uses
from gradtape.core.kernels import numpy_is_quiet
from gradtape.core.tensor import Tensor
from gradtape.errors import DTypeError
from gradtape.locks import load, once

# The numbers of one step, None for those that are not needed.
Factors = tuple[Any, ...]
# The arrays that are remembered for one parameter.
Slots = tuple[Any, ...]
Update = Callable[[Any, Any, Slots, Factors], tuple[Any, Slots]]

# For so many elements native code is loaded: NumPy goes through memory once for each operator.
# Only sizes decide, so that every step of a training takes the same way.
WORTH_COMPILING = 1 << 9
# The same for a rule that is not elementwise, which is compiled anew for each shape.
_WORTH_A_SHAPE = 1 << 13
_NARROW = np.dtype(np.float32)


class Item(NamedTuple):
    """What one parameter brings to a step.

    Attributes:
        value: Its array.
        gradient: Its gradient, of the same shape.
        slots: The arrays remembered for it.
    """

    value: Any
    gradient: Any
    slots: Slots


def elementwise(update: Update) -> Update:
    """Mark the `update` of an optimizer that takes each element by itself, whatever the shape.

    One native kernel then steps all parameters at once.

    >>> class SignDescent(gt.optim.Optimizer):
    ...     @staticmethod
    ...     @gt.optim.elementwise
    ...     def update(value, gradient, slots, factors):
    ...         (lr,) = factors
    ...         return value - lr * np.sign(gradient), slots
    """
    update.elementwise = True  # type: ignore[attr-defined]
    return update


class Rule(NamedTuple):
    """The rule of an optimizer at one step.

    Attributes:
        name: The name of the optimizer.
        update: How one array changes.
        factors: The numbers it needs.
        maximize: Whether to go up instead of down.
    """

    name: str
    update: Update
    factors: Factors
    maximize: bool

    def step(self, items: Sequence[Item]) -> list[tuple[Any, Slots]]:
        """The new value and slots of each parameter, in their dtypes; nothing is written to."""
        kernels = native(sum([item.value.size for item in items if _is_raw(item.value)]))
        if kernels is not None and all(map(_is_raw_item, items)):
            fresh = [
                (kernels.empty_like(x.value), tuple(map(kernels.empty_like, x.slots)))
                for x in items
            ]
            calls = self.prepared(kernels, items, fresh)
            if calls is not None:
                for call in calls:
                    call.run()
                return fresh
        return [self.one(item) for item in items]

    def prepared(
        self, kernels: Any, items: Sequence[Item], results: Sequence[tuple[Any, Slots]]
    ) -> list[Any] | None:
        """Native calls that write a step into arrays; None if there is no native form of it."""
        if not getattr(self.update, "elementwise", False):
            return None
        return kernels.prepared(self, items, results)  # type: ignore[no-any-return]

    def one(self, item: Item) -> tuple[Any, Slots]:
        """The new value and slots of one parameter."""
        value, gradient, slots = item
        dtype = value.dtype
        if gradient.dtype.kind == "c" and dtype.kind != "c":
            raise DTypeError(
                f"{self.name}: got a {gradient.dtype} gradient of a {dtype} parameter, expected a "
                "real one"
            )
        if dtype.kind == "c":
            pairs = Item(_pair(value), _pair(gradient.astype(dtype)), tuple(map(_pair, slots)))
            new, after = self.one(pairs)
            return _joined(new, value), tuple(map(_joined, after, slots))
        computed = computing_dtype(dtype)
        if dtype != computed:
            value = value.astype(computed)
        if gradient.dtype != computed:
            gradient = gradient.astype(computed)
        update = self.update
        if value.size >= _WORTH_A_SHAPE and native(value.size) and _is_raw_item(item):
            update = _compiled(update)
        new, after = update(
            value,
            -gradient if self.maximize else gradient,
            slots,
            _in_precision(self.factors, value.dtype, type(value) is np.ndarray),
        )
        return _as_before(new, item.value), tuple(map(_as_before, after, slots))


def computing_dtype(dtype: Any) -> Any:
    """The real dtype in which parameters of a dtype are computed, and their slots kept."""
    return _NARROW if dtype.itemsize <= 2 else dtype


def _is_raw(value: Any) -> bool:
    return type(value) is np.ndarray


def _is_raw_item(item: Item) -> bool:
    return all(map(_is_raw, (item.value, item.gradient, *item.slots)))


def _pair(value: Any) -> Any:
    """Real and imaginary parts, as PyTorch takes them: two numbers that are optimized."""
    return np.stack([value.real, value.imag])


def _joined(pair: Any, before: Any) -> Any:
    joined = pair[0] + 1j * pair[1]
    return _as_before(joined, before)


def as_array(new: Any) -> Any:
    """A result as an array: NumPy turns those without axes into numbers."""
    return np.asarray(new) if isinstance(new, np.generic) else new


def _as_before(new: Any, old: Any) -> Any:
    """A result in the dtype of the value it replaces."""
    return as_array(new if new.dtype == old.dtype else new.astype(old.dtype))


def _in_precision(factors: Factors, dtype: Any, is_raw: bool) -> Factors:
    """The factors in the precision of an array.

    A number that is not Python's would turn the parameters into its own dtype. Python numbers adapt
    to any array, but NumPy takes longer to find that out than to multiply a small array.
    """
    made: list[Any] = []
    for number in factors:
        if isinstance(number, float | int):
            made.append(np.asarray(number, dtype) if is_raw else number)
        else:
            made.append(None if number is None else number.astype(dtype))
    return tuple(made)


def native(size: int) -> Any:
    """The module with native kernels, if they can and should be used for so many elements."""
    if size < WORTH_COMPILING:
        return None
    # Native code does not notice floating-point errors, which a user may want to see.
    return _kernels() if numpy_is_quiet() else None


@once
def _kernels() -> Any:
    """The module with native kernels; None where there are none."""
    if not uses("kernels"):
        return None
    try:
        load("llvmlite.binding")
    except ImportError:
        return None
    return load("gradtape.kernels.updates")


@once
def _compiled(update: Update) -> Update:
    return load("gradtape.compiler.jit").jit(update)  # type: ignore[no-any-return]


def root(square: Any) -> Any:
    """√v, whose slope at 0 is taken as 0.

    A parameter that got no gradient has v = 0; its step is 0 whatever the numbers of the rule are.
    The slope of the root is infinite there, which would make the derivative NaN.
    """
    if not isinstance(square, Tensor):
        return square**0.5
    zero = np.equal(square, 0.0)
    return np.where(zero, 0.0, np.sqrt(np.where(zero, 1.0, square)))
