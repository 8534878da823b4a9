"""Generators: a key and a position in the stream of words that the key selects.

The stream is that of the Philox counter in NumPy. Any stretch of it can be computed directly, so
draws depend only on key and offset.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradtape.core.state import STATE, current
from gradtape.core.tape_modes import modes_for
from gradtape.core.tensor import Tensor
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
        source: Where the next draw is taken from.
    """

    generator: Generator
    count: int
    source: Generator | Source

    def __new__(
        cls, offset: int, generator: Generator, count: int, source: Source | None = None
    ) -> Draw:
        self = super().__new__(cls, offset)
        self.generator, self.count, self.source = generator, count, source or generator
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

    def state_dict(self) -> dict[str, Any]:
        """The whole state as an array, to be saved with other states by `gt.save`.

        >>> generator = gt.random.Generator(7)
        >>> saved = generator.state_dict()
        >>> x = gt.rand(3, generator=generator)
        >>> generator.load_state_dict(saved)
        >>> bool(gt.all(x == gt.rand(3, generator=generator)))
        True
        """
        key, offset = self.state
        return {"state": np.array([*key, offset % _WORD, offset // _WORD], np.uint64)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to a state that `state_dict` gave.

        Raises:
            ArgumentError: It is no such state; the generator stays as it is.
            WriteError: A compiled function loads it into a generator from outside of it.
        """
        if not isinstance(state, Mapping) or set(state) != {"state"}:
            got = f"the keys {sorted(map(str, state))}" if isinstance(state, Mapping) else None
            raise ArgumentError(
                f"load_state_dict: got {got or a_type(state)}, expected what "
                'Generator.state_dict() returns, a dict with one array, "state"'
            )
        self.state = _state_of_words("load_state_dict", state["state"])

    def split(self, count: int = 2) -> tuple[Generator, ...]:
        """Make generators whose numbers are independent of each other and of this one's.

        They depend on nothing but the state of this generator, which moves on, so that splitting it
        again gives others. Their keys are words of its stream that no draw gets.

        Args:
            count: How many.

        Raises:
            ArgumentError: The count is no integer from 0.
            WriteError: A compiled function splits a generator from outside of it: the parts would
                be the same at each call.

        >>> first, second = gt.random.Generator(7).split()
        >>> bool(gt.rand(generator=first) == gt.rand(generator=second))
        False
        """
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0:
            got = repr(count) if isinstance(count, int | float) else a_type(count)
            raise ArgumentError(f"split: got {got} generators, expected an integer from 0")
        self._refuse_in_trace("splits")
        taken = self.take(2 * int(count))
        words = map(int, Words(taken["key"], int(taken["offset"]))(2 * int(count)))
        return tuple([self._child(key) for key in zip(words, words, strict=True)])

    def fold_in(self, data: int | str) -> Generator:
        """Make a generator for a number or a name: of a step, of a worker, of a layer.

        It depends on the seed of this generator and on `data`, not on what was drawn so far, and
        this generator does not move on.

        Args:
            data: A non-negative integer, or a string.

        Raises:
            ArgumentError: The data are something else.
            WriteError: A compiled function does it with a generator from outside of it.

        >>> generator = gt.random.Generator(7)
        >>> x = gt.rand(generator=generator.fold_in(3))
        >>> _ = gt.rand(100, generator=generator)
        >>> bool(x == gt.rand(generator=generator.fold_in(3)))
        True
        """
        self._refuse_in_trace("derives another from")
        self._make_key()
        assert self._key is not None  # it was made just now
        # A name and a number are never the same: a spawn key of two words, or of one.
        if isinstance(data, str):
            path: tuple[int, ...] = (int.from_bytes(data.encode()), len(data.encode()))
        elif isinstance(data, int | np.integer) and not isinstance(data, bool) and data >= 0:
            path = (int(data),)
        else:
            got = repr(data) if isinstance(data, int | float) else a_type(data)
            raise ArgumentError(f"fold_in: got {got}, expected an integer from 0, or a string")
        return self._child(_words_of(np.random.SeedSequence(self._key, spawn_key=path)))

    def _child(self, key: Key) -> Generator:
        """A generator at the beginning of another stream."""
        child = Generator(0)
        child._key, child._fixed = key, self._fixed
        return child

    @property
    def seeded(self) -> bool:
        """Whether it was given a seed or a state, and draws the same numbers in every run."""
        return self._fixed

    def __reduce__(self) -> Any:
        return _at_state, (self.state, self._fixed)

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

    def take(self, count: int, source: Source | None = None) -> dict[str, Any]:
        """Reserve words of the stream, so that no other draw can have them.

        Args:
            count: How many words.
            source: Who takes them, and decides in a compiled function where the next are from.

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
        return {"key": key, "offset": offset if again else Draw(offset, self, count, source)}

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


def _at_state(state: tuple[Key, int], fixed: bool) -> Generator:
    """A generator that continues from a state; copies are made by it."""
    generator = Generator(0)
    generator.state = state
    generator._fixed = fixed
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


def _state_of_words(name: str, words: Any) -> tuple[Key, int]:
    """The state that an array of four words stands for."""
    array = np.asarray(words.detach() if isinstance(words, Tensor) else words)
    if array.shape != (4,) or array.dtype != np.uint64:
        raise ArgumentError(
            f"{name}: got {a_type(words)} of shape {array.shape} and dtype {array.dtype}, expected "
            "the state of a generator, an array of shape (4,) and dtype uint64"
        )
    low, high, offset, more = map(int, array)
    return (low, high), offset + more * _WORD


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


# The functions that draw, by the names that seeds of single operations are given for.
DRAWING = frozenset({
    "alpha_dropout", "bernoulli", "beta", "categorical", "dirichlet", "dropout", "dropout1d",
    "dropout2d", "dropout3d", "exponential", "feature_alpha_dropout", "fractional_max_pool2d",
    "fractional_max_pool3d", "gamma", "gumbel_softmax", "normal", "permutation", "poisson", "rand",
    "randint", "randn", "rrelu", "scaled_dot_product_attention", "uniform",
})  # fmt: skip


class Source:
    """Where a call of a function draws from; a compiled function decides it anew at each call.

    Args:
        generator: The generator that the user named; None to let modes decide, or else to draw from
            the default one.
        name: The name of the function, one of `DRAWING`.
    """

    __slots__ = ("_generator", "_name")

    def __init__(self, generator: Generator | None, name: str) -> None:
        if not (generator is None or isinstance(generator, Generator)):
            raise ArgumentError(
                f"generator: got {a_type(generator)}, expected a gt.random.Generator, such as "
                "gt.random.Generator(0)"
            )
        self._generator, self._name = generator, name

    def take(self, count: int, near: Sequence[Any] = ()) -> dict[str, Any]:
        """Reserve words of the stream, so that no other draw can have them.

        Args:
            count: How many words.
            near: The arguments of the function, whose tapes may have a seed.

        Returns:
            Key and offset, as parameters of a random op.
        """
        generator = self._generator or _default
        for mode in modes_for(near):
            if (source := getattr(mode, "source", None)) is not None:
                generator = source(self._name, self._generator, _default)
                break
        return generator.take(count, self)


def source_of(generator: Generator | None, name: str) -> Source:
    """Where to draw from: the default generator if none is given, or that of a tape or block."""
    return Source(generator, name)


def seed_in_force(name: str) -> Key | None:
    """A seed from the block that governs draws, for a generator of NumPy's; None without one.

    Args:
        name: Who wants it; a strict block without a seed refuses by this name.
    """
    for mode in current().modes:
        if (source := getattr(mode, "source", None)) is not None:
            unseeded = Generator()
            governing = source(name, None, unseeded)
            if governing is not unseeded:
                return governing.split(1)[0].state[0]  # type: ignore[no-any-return]
            return None
    return None


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


def get_rng_state() -> Any:
    """Return the state of the default generator, to go back to it by `gt.set_rng_state`.

    Returns:
        An array of four words of 64 bits.

    >>> state = gt.get_rng_state()
    >>> x = gt.rand(3)
    >>> gt.set_rng_state(state)
    >>> bool(gt.all(x == gt.rand(3)))
    True
    """
    return _default.state_dict()["state"]


def set_rng_state(state: Any) -> None:
    """Set the state of the default generator.

    Args:
        state: What `gt.get_rng_state` returned, in this process or in another one.

    Raises:
        ArgumentError: It is something else; the generator stays as it is.
        WriteError: A compiled function sets it: that would only happen while it is traced.

    >>> gt.set_rng_state(gt.get_rng_state())
    """
    _default.state = _state_of_words("set_rng_state", state)


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
