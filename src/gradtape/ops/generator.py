"""Generators: a key and a position in the stream of words that the key selects.

The stream is that of the Philox counter in NumPy. Any stretch of it can be computed directly, so
draws depend only on key and offset.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.state import STATE
from gradtape.errors import ArgumentError, WriteError, a_type
from gradtape.locks import guard, loading

Key = tuple[int, int]
_WORD = 2**64
# One step of the Philox counter gives four words; a draw begins at a step.
_WORDS_PER_STEP = 4


class Draw(int):
    """The offset of a draw that remembers its generator, so that compiled functions draw anew.

    Attributes:
        generator: The generator it was taken from.
        count: How many words were taken.
    """

    generator: Generator
    count: int

    def __new__(cls, offset: int, generator: Generator, count: int) -> Draw:
        self = super().__new__(cls, offset)
        self.generator, self.count = generator, count
        return self


class Generator:
    """A key and a position in its stream of random numbers; may be shared by threads.

    A compiled function that makes a generator from a seed draws the same numbers at each call; from
    a generator that it finds outside it draws others, as eager code does.

    Args:
        seed: A non-negative integer or a sequence of them; drawn from the operating system if not
            given.

    Raises:
        ArgumentError: The seed is something else.

    >>> first, second = gt.random.Generator(7), gt.random.Generator(7)
    >>> bool(gt.all(gt.rand(3, generator=first) == gt.rand(3, generator=second)))
    True
    """

    def __init__(self, seed: int | Sequence[int] | None = None) -> None:
        # Without a seed the key is made at the first draw: NumPy's generators take time to load.
        self._key: Key | None = None if seed is None else _key_of(seed)
        self._offset = 0
        self._made_in = _trace_in_progress()
        self._fixed = seed is not None

    def manual_seed(self, seed: int | Sequence[int]) -> Generator:
        """Start anew from a seed.

        Args:
            seed: A non-negative integer or a sequence of them.

        Returns:
            The generator itself.

        Raises:
            ArgumentError: The seed is something else.
            WriteError: A compiled function seeds a generator from outside of it.

        >>> x = gt.rand(generator=gt.random.Generator().manual_seed(7))
        >>> bool(x == gt.rand(generator=gt.random.Generator(7)))
        True
        """
        self.state = (_key_of(seed), 0)
        return self

    @property
    def state(self) -> tuple[Key, int]:
        """Key and offset, the whole state. Setting it goes back there."""
        self._refuse_in_trace("reads the state of")
        self._make_key()
        with guard:
            key, offset = self._key, self._offset
        assert key is not None  # it is never taken away
        return key, offset

    @state.setter
    def state(self, state: tuple[Key, int]) -> None:
        key, offset = _checked_state(state)
        self._refuse_in_trace("seeds")
        with guard:
            self._key, self._offset, self._fixed = key, offset, True

    def __reduce__(self) -> Any:
        return _at_state, (self.state,)

    def _make_key(self) -> None:
        if self._key is None:
            with loading():  # NumPy's generators
                key = _words_of(np.random.SeedSequence())
            with guard:
                self._key = key if self._key is None else self._key

    def _refuse_in_trace(self, does: str) -> None:
        if not self._is_of_trace() and _trace_in_progress() is not None:
            raise WriteError(
                f"jit: the function {does} a random generator from outside of it; that would only "
                "happen while it is traced. Do it outside, or make a gt.random.Generator(seed) "
                "inside and draw from that"
            )

    def _is_of_trace(self) -> bool:
        """Whether it was made by the function that is being traced."""
        return self._made_in is not None and self._made_in == _trace_in_progress()

    def take(self, count: int) -> dict[str, Any]:
        """Reserve words of the stream, so that no other draw can have them.

        Args:
            count: How many words.

        Returns:
            Key and offset, as parameters of a random op.
        """
        # A generator made from a seed inside a traced function starts anew at each call.
        again = self._fixed and self._is_of_trace()
        steps = -(-count // _WORDS_PER_STEP)
        self._make_key()
        with guard:
            key, offset = self._key, self._offset
            self._offset = offset + steps
        return {"key": key, "offset": offset if again else Draw(offset, self, count)}

    def give_back(self, draw: Draw) -> None:
        """Undo the last draw, unless another one has been made since."""
        before = int(draw)
        after = before - (-draw.count // _WORDS_PER_STEP)
        with guard:
            if self._offset == after:
                self._offset = before

    def __repr__(self) -> str:
        return f"<random.Generator at offset {self._offset}>"


def _trace_in_progress() -> weakref.ref[Any] | None:
    """The trace of the function that is running, which is the mode that adopts tensors."""
    tracing = (mode for mode in STATE.get().modes if hasattr(mode, "adopt"))
    return next(map(weakref.ref, tracing), None)


def _at_state(state: tuple[Key, int]) -> Generator:
    """A generator that continues from a state; copies are made by it."""
    generator = Generator(0)
    generator.state = state
    return generator


def _checked_state(state: Any) -> tuple[Key, int]:
    try:
        (low, high), offset = state
        words = tuple(map(operator.index, (low, high, offset)))
    except (TypeError, ValueError):
        words = (-1,)
    if min(words) < 0 or max(words[:2]) >= _WORD:
        raise ArgumentError(
            f"random state: got {state!r}, expected the state of a generator: a key of two words "
            "of 64 bits, and an offset from 0"
        )
    return words[:2], words[2]  # type: ignore[return-value]


def _key_of(seed: int | Sequence[int]) -> Key:
    try:
        if seed is None:
            raise TypeError
        sequence = np.random.SeedSequence(seed)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"random seed: got {seed!r}, expected a non-negative integer or a sequence of them"
        ) from error
    return _words_of(sequence)


def _words_of(sequence: Any) -> Key:
    low, high = sequence.generate_state(2, np.uint64)
    return int(low), int(high)


_default = Generator()


def source_of(generator: Generator | None) -> Generator:
    """The generator to draw from: the default one if none is given."""
    if generator is None:
        return _default
    if not isinstance(generator, Generator):
        raise ArgumentError(
            f"generator: got {a_type(generator)}, expected a gt.random.Generator, such as "
            "gt.random.Generator(0)"
        )
    return generator


def default_generator() -> Generator:
    """Return the generator that draws use if none is given.

    >>> gt.random.default_generator() is gt.random.default_generator()
    True
    """
    return _default


def manual_seed(seed: int | Sequence[int]) -> None:
    """Start the default generator anew from a seed.

    Args:
        seed: A non-negative integer or a sequence of them.

    Raises:
        ArgumentError: The seed is something else.
        WriteError: A compiled function seeds it: that would only happen while it is traced.

    >>> gt.manual_seed(0)
    >>> x = gt.randn(3)
    >>> gt.manual_seed(0)
    >>> bool(gt.all(x == gt.randn(3)))
    True
    """
    _default.manual_seed(seed)


class _Engine:
    """A bit generator: setting its state costs less than making another."""

    def __init__(self) -> None:
        with loading():  # NumPy's generators take time to load
            self.philox: Any = np.random.Philox(key=0)
        self._counter = np.zeros(_WORDS_PER_STEP, np.uint64)
        self._key = np.zeros(2, np.uint64)
        self._state = {
            "bit_generator": "Philox",
            "state": {"counter": self._counter, "key": self._key},
            "buffer": np.zeros(_WORDS_PER_STEP, np.uint64),
            "buffer_pos": _WORDS_PER_STEP,
            "has_uint32": 0,
            "uinteger": 0,
        }

    def seek(self, key: Key, offset: int) -> None:
        """Go to a place in a stream."""
        self._counter[1], self._counter[0] = divmod(offset, _WORD)
        self._key[0], self._key[1] = key
        self.philox.state = self._state


# Engines not in use: a signal handler may draw in the middle of a draw, as threads do.
_idle: list[_Engine] = []


class Words:
    """The words of a stream from an offset on; called with the number of words to return next."""

    __slots__ = ("_engine",)

    def __init__(self, key: Key, offset: int) -> None:
        try:
            engine = _idle.pop()
        except IndexError:
            engine = _Engine()
        self._engine = engine
        engine.seek(key, offset)

    def __call__(self, count: int) -> Any:
        return self._engine.philox.random_raw(count)

    def __del__(self, idle: list[_Engine] = _idle) -> None:
        if hasattr(self, "_engine"):  # or it could not be made
            idle.append(self._engine)
