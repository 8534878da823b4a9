"""Gradients made small before they are sent to other workers, and what is lost added next time.

What a compressor does not send of a gradient it keeps, and adds to the next one: error feedback.
So nothing is lost in the long run, only late: the sum of all that is sent, and of what is kept, is
the sum of all gradients.

Sums of gradients and of what was kept are formed as quarters, and both factors of a matrix get the
same size, so that neither overflows. A number that is too large for the dtype of its gradient is
sent as the largest one of that dtype, and the rest is kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.errors import ArgumentError, DTypeError, a_type
from gradtape.gradients.leaves import Gradients, quiet, wide
from gradtape.gradients.step import State, Step, check_entries
from gradtape.graph.known_values import is_unknown
from gradtape.ops.arguments import as_integer, as_number
from gradtape.ops.arithmetic import abs as abs_of
from gradtape.ops.arrays.select_k import topk
from gradtape.ops.cast import astype
from gradtape.ops.comparison import isfinite
from gradtape.ops.exponential import sqrt
from gradtape.ops.gather import index_add, take
from gradtape.ops.generator import Generator
from gradtape.ops.inspection import finfo
from gradtape.ops.like import zeros_like
from gradtape.ops.linalg.qr import qr
from gradtape.ops.matmul import matmul
from gradtape.ops.random import randn
from gradtape.ops.reduce import max as max_of
from gradtape.ops.select import clip, where
from gradtape.ops.shape import reshape, swapaxes
from gradtape.ops.which import all as all_of, any as any_of

# What is sent of one leaf: arrays.
Parts = tuple[Any, ...]


@dataclass(frozen=True)
class Compressed:
    """What would be sent of gradients: a container of arrays, made by `compress`.

    Attributes:
        parts: For each leaf the arrays that are sent.
        shapes: The shapes of the leaves.
        dtypes: Their dtypes.
        structure: Their containers.
        kind: The name of the compressor.
    """

    parts: tuple[Parts, ...]
    shapes: tuple[tuple[int, ...], ...] = field(metadata={"static": True}, repr=False)
    dtypes: tuple[np.dtype[Any], ...] = field(metadata={"static": True}, repr=False)
    structure: containers.Structure = field(metadata={"static": True}, repr=False)
    kind: str = field(metadata={"static": True}, default="")

    @property
    def nbytes(self) -> int:
        """The bytes that would be sent."""
        return sum([math.prod(x.shape) * x.dtype.itemsize for part in self.parts for x in part])


class Compressor(Step):
    """Base class of compressors; a subclass says what is sent of one array.

    In a `Pipeline`, and called as a function, a compressor gives what the receiver would get.
    """

    def compress(self, grads: Any) -> Compressed:
        """Return what is to be sent of gradients, and remember the rest.

        Args:
            grads: Nested containers of gradients, the same each time. None for one sends nothing of
                it, and what is kept of it waits.

        Raises:
            ArgumentError: The containers differ from those before.
            ShapeError: A gradient has another shape than before.
            DTypeError: A leaf is neither an array nor a number, or not of real floats.
        """
        if self.state is None:
            self.state = self.init(grads)
        message, self.state = self.send(grads, self.state)
        return message

    @quiet
    def decompress(self, compressed: Compressed | Sequence[Compressed]) -> Any:
        """Return the gradients of a message, or the mean of those of several workers.

        Args:
            compressed: What `compress` returned, or a list of what it returned to each worker.

        Raises:
            ArgumentError: It is not a message of this compressor, or messages do not fit together.
        """
        messages = [compressed] if isinstance(compressed, Compressed) else list(compressed)
        first = self._checked(messages)
        leaves = []
        for n, (shape, dtype) in enumerate(zip(first.shapes, first.dtypes, strict=True)):
            made = [self.unpacked(message.parts[n], shape) for message in messages]
            total = sum(made[1:], start=made[0])
            mean = total / len(made) if len(made) > 1 else total
            leaves.append(reshape(_enlarged(mean, 1, dtype), shape))
        return containers.unflatten(first.structure, leaves)

    def residual(self) -> Any:
        """Return what has not been sent so far, in the containers of the gradients.

        Raises:
            ArgumentError: Nothing was compressed yet.
        """
        if self.state is None:
            raise ArgumentError(f"{self._name}: nothing was compressed yet")
        return self.state["residual"]

    # ---- pure functions -------------------------------------------------------------------------

    def init(self, grads: Any) -> State:
        """Return the state before the first gradients: nothing is kept.

        Args:
            grads: Gradients, or anything of the same containers, shapes and dtypes.
        """
        gradients = self._gradients(grads)
        zeros = [zeros_like(wide(x)) for x in gradients.values]
        memory = [self.start(x.shape, wide(x).dtype) for x in gradients.values]
        return {"residual": containers.unflatten(gradients.structure, zeros), "memory": memory}

    @quiet
    def send(self, grads: Any, state: State) -> tuple[Compressed, State]:
        """Return what is to be sent, and the new state; a pure function.

        Args:
            grads: Nested containers of gradients, or None for some of them.
            state: What `init` or the last `send` returned.
        """
        self.check_state(state)
        gradients = self._gradients(grads)
        pairs, structure = gradients.paired(
            state["residual"], "gradient before", "the gradients before"
        )
        before = iter(state["memory"])
        parts, rests, memory = [], [], []
        for x, rest in pairs:
            remembered = self.start(x.shape, wide(x).dtype) if rest is None else next(before)
            if x is None:  # what is kept of it waits
                rests.append(rest)
                memory.append(remembered)
                continue
            quarter = wide(x) / 4 if rest is None else wide(x) / 4 + rest / 4
            part, new = self.packed(quarter, remembered, x.dtype)
            parts.append(part)
            memory.append(new)
            received = wide(_enlarged(self.unpacked(part, x.shape), 1, x.dtype))
            received = reshape(received, x.shape)
            rest = _enlarged(quarter - received / 4, 4, quarter.dtype)
            # NaN and infinities that were sent are not kept, as nothing could be added to them.
            rests.append(where(isfinite(received), rest, zeros_like(rest)))
        message = Compressed(
            tuple(parts),
            tuple([tuple(x.shape) for x in gradients.values]),
            tuple([x.dtype for x in gradients.values]),
            gradients.structure,
            self._name,
        )
        return message, {
            "residual": containers.unflatten(structure, rests),
            "memory": memory,
        }

    def apply(self, grads: Any, state: State, params: Any = None) -> tuple[Any, State]:
        """Return the gradients as they are received, and the new state.

        Args:
            grads: Nested containers of gradients.
            state: What `init` or the last `apply` returned.
            params: Not needed.
        """
        message, state = self.send(grads, state)
        return self.decompress(message), state

    def check_state(self, state: State) -> None:
        """Raise an error for a state that is not one of a compressor.

        Args:
            state: What may be one.

        Raises:
            ArgumentError: It is not.
        """
        check_entries(self._name, state, {"residual", "memory"})
        arrays, memories = len(containers.flatten(state["residual"])[0]), len(state["memory"])
        if arrays != memories:
            raise ArgumentError(
                f"{self._name}: got a state of {memories} memories for {arrays} arrays, expected "
                "one for each; make it by init(grads)"
            )

    # ---- one array ------------------------------------------------------------------------------

    def start(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Parts:
        """Return what is remembered of one leaf besides the residual, at first."""
        return ()

    def packed(self, quarter: Any, memory: Parts, dtype: np.dtype[Any]) -> tuple[Parts, Parts]:
        """Return what is sent of four times an array, in this dtype, and what is remembered."""
        raise NotImplementedError

    def unpacked(self, parts: Parts, shape: tuple[int, ...]) -> Any:
        """Return the array of which these parts were sent, in float32 if it is of small floats."""
        raise NotImplementedError

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _gradients(self, grads: Any) -> Gradients:
        gradients = Gradients(self._name, grads)
        for n, x in enumerate(gradients.values):
            if x.dtype.kind != "f" and x.dtype.name != "bfloat16":
                raise DTypeError(
                    f"{self._name}: {gradients.place(n)} is {x.dtype}, expected real numbers; give "
                    "it real and imaginary parts as two arrays"
                )
        return gradients

    def _checked(self, messages: Sequence[Any]) -> Compressed:
        for message in messages:
            kind = message.kind if isinstance(message, Compressed) else a_type(message)
            if kind != self._name:
                raise ArgumentError(
                    f"{self._name}: got a message of {kind}, expected what compress() returned"
                )
        if not messages:
            raise ArgumentError(f"{self._name}: got no messages, expected at least one")
        first: Compressed = messages[0]
        if any((m.structure, m.shapes) != (first.structure, first.shapes) for m in messages):
            raise ArgumentError(
                f"{self._name}: got messages of different gradients, expected the same containers "
                "and shapes of all workers"
            )
        return first


class TopK(Compressor):
    """Sends the elements of each gradient that are largest in magnitude, and where they are.

    NaN and infinities are sent first; those that are not among the k are kept until they are.

    Args:
        k: How many elements of each array.
        fraction: Which part of the elements of each array, instead of `k`; at least one is sent.

    Raises:
        ArgumentError: Not exactly one of them is given, or it is out of range.
        DTypeError: k is not an integer.

    >>> top = gt.gradients.TopK(1)
    >>> message = top.compress({"w": np.array([1.0, -3.0, 2.0])})
    >>> top.decompress(message), message.nbytes
    ({'w': array([ 0., -3.,  0.])}, 12)
    >>> top(({"w": np.array([1.0, 1.0, 1.0])}))  # with what was not sent before
    {'w': array([0., 0., 3.])}
    """

    def __init__(self, k: int | None = None, *, fraction: float | None = None) -> None:
        if (k is None) == (fraction is None):
            raise ArgumentError(f"TopK: got k={k} and fraction={fraction}, expected one of them")
        if isinstance(k, float):
            raise DTypeError(
                f"TopK: got k={k}, expected an integer; a part of the elements is fraction={k}"
            )
        self.k = None if k is None else as_integer(k, "TopK", "k")
        self.fraction = None if fraction is None else as_number(fraction, "TopK", "fraction")
        few = self.k is not None and self.k < 1
        if few or (self.fraction is not None and not 0 < self.fraction <= 1):
            raise ArgumentError(
                f"TopK: got k={k} and fraction={fraction}, expected k >= 1, or a fraction "
                "above 0 and up to 1"
            )

    def _count(self, size: int) -> int:
        wanted = self.k if self.k is not None else math.ceil((self.fraction or 1) * size)
        return max(min(wanted, size), min(1, size))

    def packed(self, quarter: Any, memory: Parts, dtype: np.dtype[Any]) -> tuple[Parts, Parts]:
        """Return the places and values of the largest elements."""
        size = math.prod(quarter.shape)
        flat = reshape(quarter, (size,))
        indices = topk(abs_of(flat), self._count(size)).indices
        places = astype(indices, np.int32 if size < 2**31 else np.int64)
        return (places, _enlarged(take(flat, indices), 4, dtype)), memory

    def unpacked(self, parts: Parts, shape: tuple[int, ...]) -> Any:
        """Return an array of zeros with these values at these places."""
        places, values = parts
        values = wide(values)
        return index_add(np.zeros(math.prod(shape), values.dtype), places, values, axis=0)

    def __repr__(self) -> str:
        return f"TopK({self.k})" if self.fraction is None else f"TopK(fraction={self.fraction})"


class LowRank(Compressor):
    """Sends each matrix of gradients as a product of two thin ones: PowerSGD.

    One power iteration, begun with the result of the last one, finds the range of the matrix; it is
    made orthonormal by QR ([Vogels et al. 2019](https://arxiv.org/abs/1905.13727)). Arrays of more
    than two axes are matrices of their first axis and all others. Vectors, and matrices that are
    not larger than the two, are sent as they are. A matrix with NaN or an infinity is sent as NaN.

    Args:
        rank: The number of columns of the thin matrices.
        seed: Where the first iteration begins; all workers need the same.

    Raises:
        ArgumentError: The rank is not positive.

    >>> low = gt.gradients.LowRank(1)
    >>> x, y = np.arange(1.0, 5.0), np.array([1.0, -1.0, 2.0])
    >>> message = low.compress([np.outer(x, y)])
    >>> np.allclose(low.decompress(message)[0], np.outer(x, y)), message.nbytes
    (True, 56)
    """

    def __init__(self, rank: int, *, seed: int = 0) -> None:
        self.rank = as_integer(rank, "LowRank", "rank")
        if self.rank < 1:
            raise ArgumentError(f"LowRank: got rank={rank}, expected a positive number")
        self.seed = as_integer(seed, "LowRank", "seed")

    def start(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Parts:
        """Return the right factor to begin with; nothing for what is sent as it is."""
        if len(shape) < 2:
            return ()
        rows, columns = shape[0], math.prod(shape[1:])
        if self.rank * (rows + columns) >= rows * columns:
            return ()
        generator = Generator([self.seed, *shape])
        numbers = randn((columns, self.rank), dtype=dtype, generator=generator)
        # In a compiled function, a generator made there draws the same at each call.
        return (numbers if is_unknown(numbers) else numbers.numpy(),)

    def packed(self, quarter: Any, memory: Parts, dtype: np.dtype[Any]) -> tuple[Parts, Parts]:
        """Return the two factors, or the array."""
        if not memory:
            return (_enlarged(quarter, 4, dtype),), memory
        unit = _or_one(max_of(abs_of(quarter)))
        matrix = reshape(quarter / unit, (quarter.shape[0], math.prod(quarter.shape[1:])))
        left: Any = qr(matmul(matrix, memory[0])).Q  # type: ignore[union-attr]
        right = matmul(swapaxes(matrix, 0, 1), left)
        # A column of zeros, as of a gradient of zeros, would find nothing next time; nor would NaN.
        useful = any_of(right != 0, 0) & all_of(isfinite(right), 0)
        start = where(useful, right, memory[0])
        # The columns of both factors get the same size: the root of what the right one would have.
        size = sqrt(_or_one(max_of(abs_of(right), 0)))
        root = 2 * sqrt(unit)
        factors = (left * size * root, right / size * root)
        return tuple([_enlarged(factor, 1, dtype) for factor in factors]), (start,)

    def unpacked(self, parts: Parts, shape: tuple[int, ...]) -> Any:
        """Return the product of the factors, or the array."""
        if len(parts) == 1:
            return wide(parts[0])
        left, right = map(wide, parts)
        # Elements of a product are not larger than this times those of the matrix.
        times = 2.0 ** math.ceil(math.log2(max(self.rank * math.sqrt(shape[0]), 1)) + 1)
        product = matmul(left, swapaxes(right / times, 0, 1))
        return reshape(_enlarged(product, times, product.dtype), shape)

    def __repr__(self) -> str:
        return f"LowRank({self.rank})"


def _enlarged(x: Any, times: float, dtype: np.dtype[Any]) -> Any:
    """An array times a power of two, in a dtype; what is too large becomes the largest number.

    Infinities stay infinite.
    """
    made = astype(x * times, dtype)
    if isinstance(made, np.ndarray) and np.isfinite(made).all():
        return made
    largest = finfo(dtype).max / times
    return astype(where(isfinite(x), clip(x, -largest, largest), x) * times, dtype)


def _or_one(x: Any) -> Any:
    """Numbers to divide by: 1 in place of zero, and of what is not finite."""
    return where(isfinite(x) & (x > 0), x, 1)
