"""Random programs as text: straight-line NumPy code on arrays of all shapes and dtypes.

A program is made by running it: each line is tried on arrays and kept if NumPy takes it and its
values stay tame. What is not continuous (comparing, rounding, taking the largest) is only done to
values that any way of computing has bit for bit, so that all ways have to agree.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import gradtape as gt

# One less, as many, and one more than vectors of 2, 4, 8, 16 and 32 elements hold, among others.
SIZES = (1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 127)
DTYPES = ("float64", "float32", "float64", "float32", "int64", "int32", "int8", "uint8", "bool")
MOST_ELEMENTS = 5000
# Loops that are divided among threads, and sums in blocks.
LARGE_SIZES = (1, 2, 3, 17, 127, 1000, 4099, 20011, 70000)
MOST_OF_LARGE = 300_000
_MOST_WORK = 2e7
LARGEST = 1e4


@dataclass(frozen=True)
class Program:
    """Inputs, as shape and dtype, and lines `name = expression`, of which some are returned.

    Attributes:
        seed: What it was made from; its arguments are made from it too.
        inputs: Name, shape and dtype of each.
        lines: Names and expressions.
        outputs: The names that are returned.
        single: Whether any of its values is of single precision.
    """

    seed: int
    inputs: tuple[tuple[str, tuple[int, ...], str], ...]
    lines: tuple[tuple[str, str], ...]
    outputs: tuple[str, ...]
    single: bool

    @property
    def source(self) -> str:
        """The program as a function."""
        body = [f"    {name} = {text}" for name, text in self.lines]
        names = ", ".join(name for name, _, _ in self.inputs)
        head = f"def program({names}):"
        return "\n".join([head, *body, f"    return [{', '.join(self.outputs)}]"])

    @property
    def script(self) -> str:
        """All that is needed to run it elsewhere."""
        made = [
            f"{name} = values({self.seed}, {k}, {shape}, {dtype!r})"
            for k, (name, shape, dtype) in enumerate(self.inputs)
        ]
        return "\n".join(["from random_code import *", self.source, *made])

    def function(self) -> Callable[..., list[Any]]:
        """What it computes."""
        names: dict[str, Any] = {"np": np, "gt": gt}
        exec(self.source, names)
        return names["program"]  # type: ignore[no-any-return]

    def arguments(self, which: int = 0) -> list[Any]:
        """Arrays to run it on; others for another number."""
        return [
            values(self.seed, k, shape, dtype, which)
            for k, (_, shape, dtype) in enumerate(self.inputs)
        ]


# Ways to meet something traced; all are exact.
_MEETINGS = (
    "({0} + {1})", "({1} - {0})", "({0} * (1 + {1}))", "({0} / (2 + {1}))", "np.maximum({0}, {1})",
    "np.minimum({1}, {0})", "np.where({0} > {1}, {0}, {1} - 1)", "np.where({1} == 0, {0}, {1})",
    "np.fmax({0}, {1})", "np.copysign({0}, 1 + {1})", "np.clip({0}, {1} - 1, 1)",
)  # fmt: skip
# Lines in which every operand reaches the function or operator as it is.
_PLAIN = re.compile(r"\w+ (@|[-+*/<>]=?|==) \w+|\w+\.\w+\([^()%*/<>+]*\)")


def with_the_first_traced(program: Program) -> Program:
    """The same with another input, `zero`, so that every step works on it or on the first one.

    Of arrays that are not traced, NumPy computes everything before any other code sees it.
    """
    rng = np.random.default_rng(program.seed)
    first, *others = program.inputs
    captured = {name for name, _, dtype in others if dtype not in ("number", "integer")}
    traced, lines = {first[0]}, []
    for name, text in program.lines:
        words = set(re.findall(r"\b\w+\b", text))
        if not words & traced or not _PLAIN.fullmatch(text):
            for other in sorted(words & captured):
                met = rng.choice(_MEETINGS).format(other, f"zero.astype({other}.dtype)")
                text = re.sub(rf"\b{other}\b", met, text)
        traced.add(name)
        lines.append((name, text))
    inputs = (first, ("zero", (), "float64"), *others)
    return replace(program, inputs=inputs, lines=tuple(lines))


def values(seed: int, k: int, shape: tuple[int, ...], dtype: str, which: int = 0) -> Any:
    """The numbers of an input: small, and no two of them equal where the dtype has room."""
    rng = np.random.default_rng((seed, k, which))
    if dtype in ("number", "integer"):  # Python's own
        return float(rng.uniform(-2, 2)) if dtype == "number" else int(rng.integers(-3, 4))
    if dtype == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if np.dtype(dtype).kind in "iu":
        return np.asarray(rng.integers(0 if dtype[0] == "u" else -9, 10, shape), dtype)
    return np.asarray(rng.uniform(-2, 2, shape).astype(dtype))


# ---- making programs ----------------------------------------------------------------------------


class _Maker:
    """A program in the making."""

    def __init__(self, seed: int, *, floating: bool, large: bool) -> None:
        self.rng = np.random.default_rng(seed)
        self._dtypes = DTYPES[:4] if floating else DTYPES
        self._most = MOST_OF_LARGE if large else MOST_ELEMENTS
        weights = 1.0 / np.sqrt(np.array(SIZES))  # small ones are likelier
        self._sizes = self.rng.choice(SIZES, 3, p=weights / weights.sum())
        if large:
            self._sizes = self.rng.choice(LARGE_SIZES, 3)
        self.arrays: dict[str, Any] = {}
        self.exact: dict[str, None] = {}  # not a set: their order differs between processes
        self.lines: list[tuple[str, str]] = []
        self.inputs: list[tuple[str, tuple[int, ...], str]] = []
        for name in "abc"[: self.rng.integers(1, 4)]:
            shape, dtype = self._shape(), str(self.rng.choice(self._dtypes))
            self.inputs.append((name, shape, dtype))
            self.arrays[name] = values(seed, len(self.inputs) - 1, shape, dtype)
            self.exact[name] = None
        # Python's own numbers, which take the dtype of what they meet.
        self.numbers: dict[str, Any] = {}
        if self.rng.random() < 0.3:
            name, dtype = "n", str(self.rng.choice(["number", "integer"]))
            self.inputs.append((name, (), dtype))
            self.numbers[name] = values(seed, len(self.inputs) - 1, (), dtype)

    def _shape(self) -> tuple[int, ...]:
        while True:
            ndim = int(self.rng.choice([0, 1, 2, 2, 3, 4]))
            shape = [int(n) for n in self.rng.choice(self._sizes, ndim)]
            for axis in range(ndim):
                if self.rng.random() < 0.15:
                    shape[axis] = 1
            if ndim and self.rng.random() < 0.04:
                shape[self.rng.integers(ndim)] = 0
            if np.prod(shape) <= self._most:
                return tuple(shape)

    def pick(self) -> str:
        """A value to work on; later ones are likelier, so that programs grow deep."""
        names = list(self.arrays)
        return names[-1 - int(min(self.rng.exponential(1.2), len(names) - 1))]

    def one_of(self, *choices: Any) -> Any:
        return choices[self.rng.integers(len(choices))]

    def axis(self, x: str) -> int:
        return int(self.rng.integers(-self.arrays[x].ndim, self.arrays[x].ndim))

    def axes(self, x: str) -> Any:
        ndim = self.arrays[x].ndim
        chosen = self.rng.permutation(ndim)[: self.rng.integers(0, ndim + 1)]
        some = tuple(int(a) for a in sorted(chosen))
        return self.one_of(None, some, some if len(some) != 1 else some[0])

    def step(self) -> None:
        """Add a line, if the one that is tried is any good."""
        kind = self.one_of(*_KINDS)
        text, operands, exact = kind(self)
        sizes = [math.prod(max(n, 1) for n in self.arrays[x].shape) for x in operands]
        shapes = {self.arrays[x].shape for x in operands}
        if (kind in (_product, _indexed) or len(shapes) > 1) and max(sizes) ** len(
            sizes
        ) > _MOST_WORK:
            return  # the result might not fit into memory
        tensors = {name: gt.tensor(array) for name, array in self.arrays.items()}
        try:
            with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
                warnings.simplefilter("error")
                value = np.asarray(eval(text, {"np": np, "gt": gt, **self.arrays, **self.numbers}))
                same = eval(text, {"np": np, "gt": gt, **tensors, **self.numbers})
        except (ValueError, IndexError, TypeError, ArithmeticError, Warning, AttributeError):
            return
        assert (same.shape, same.dtype) == (value.shape, value.dtype), text
        if value.size > self._most or value.dtype.kind not in "biuf":
            return
        if value.dtype == np.float16 or (
            value.size and np.abs(value.astype(float)).max() > LARGEST
        ):
            return
        name = f"v{len(self.lines)}"
        self.lines.append((name, text))
        self.arrays[name] = value
        if (exact and all(x in self.exact for x in operands)) or value.dtype.kind in "biu":
            self.exact[name] = None


def random_program(seed: int, *, floating: bool = False, large: bool = False) -> Program:
    """The program of a seed.

    Args:
        seed: Any number.
        floating: Whether all inputs are floating.
        large: Whether arrays may be large.
    """
    maker = _Maker(seed, floating=floating, large=large)
    count = int(maker.rng.integers(2, 9))
    for _ in range(6 * count):
        if len(maker.lines) < count:
            maker.step()
    read = " ".join(text for _, text in maker.lines)
    names = [name for name, _ in maker.lines if name not in read] or [maker.inputs[0][0]]
    if maker.lines and maker.rng.random() < 0.3:  # results that are used inside as well
        names.append(maker.one_of(*[name for name, _ in maker.lines]))
    return Program(
        seed,
        tuple(maker.inputs),
        tuple(maker.lines),
        tuple(dict.fromkeys(names)),
        single=any(array.dtype == np.float32 for array in maker.arrays.values()),
    )


# ---- lines: text, operands, and whether exact operands give exact results -----------------------

_Line = tuple[str, Sequence[str], bool]
_SMOOTH = (
    "np.sin({0})", "np.tanh({0})", "np.exp(-{0} * {0})", "np.log1p({0} * {0})",
    "np.sqrt(1.0 + np.square({0}))", "1.0 / (2.0 + np.cos({0}))", "np.arctan({0})",
    "gt.sigmoid({0})", "gt.softplus({0})", "gt.erf({0})", "{0} ** 3", "np.cbrt(2.0 + {0} * {0})",
    "{0} * 0.37", "3.0 - {0}", "{0} / 3", "{0} * {0}", "np.arcsinh({0})", "gt.gelu({0})",
    "np.cumsum({0}, axis={axis})", "gt.softmax({0}, axis={axis})",
    "gt.log_softmax({0}, axis={axis})",
)  # fmt: skip
_KINKED = (
    "np.abs({0})", "np.clip({0}, -0.6, 1.3)", "np.maximum({0}, 0.25)", "np.minimum({0}, 1)",
    "gt.relu({0})", "np.where({0} > 0.5, {0}, 2.0)", "np.sign({0})", "np.floor({0})", "{0} > 0.1",
    "np.rint({0} * 2)", "{0} != 1", "np.logical_not({0})", "{0} // 2", "{0} % 3",
    "np.isfinite({0})",
)  # fmt: skip


def _smooth(m: _Maker) -> _Line:
    x = m.pick()
    text = m.one_of(*_SMOOTH)
    axis = m.axis(x) if m.arrays[x].ndim else 0
    return text.format(x, axis=axis), [x], False


def _kinked(m: _Maker) -> _Line:
    x = m.one_of(*m.exact)
    return m.one_of(*_KINKED).format(x), [x], True


def _cast(m: _Maker) -> _Line:
    x = m.pick()
    if x in m.exact:
        return f"{x}.astype({m.one_of(*m._dtypes, 'bool', 'int32')!r})", [x], True
    return f"{x}.astype({m.one_of('float32', 'float64')!r})", [x], False


def _reduced(m: _Maker) -> _Line:
    x = m.pick()
    function = m.one_of("np.sum", "np.mean", "np.sum", "np.var", "gt.logsumexp", "np.prod")
    if m.arrays[x].size > 200 and function == "np.prod":
        function = "np.sum"  # on the way to a small product there may be any large ones
    return f"{function}({x}, axis={m.axes(x)}, keepdims={m.one_of(True, False)})", [x], False


def _largest(m: _Maker) -> _Line:
    x = m.one_of(*m.exact)
    if m.rng.random() < 0.3:
        axis = m.axis(x) if m.arrays[x].ndim else None
        return f"np.{m.one_of('argmax', 'argmin')}({x}, axis={axis})", [x], True
    function = m.one_of("np.max", "np.min", "np.any", "np.all", "np.max")
    return f"{function}({x}, axis={m.axes(x)}, keepdims={m.one_of(True, False)})", [x], True


def _rearranged(m: _Maker) -> _Line:
    x = m.pick()
    shape = m.arrays[x].shape
    order = tuple(int(a) for a in m.rng.permutation(len(shape)))
    axis = m.axis(x) if shape else 0
    pairs = tuple((int(p), int(q)) for p, q in m.rng.integers(0, 3, (len(shape), 2)))
    text = m.one_of(
        f"np.transpose({x}, {order})", f"{x}.T", f"np.reshape({x}, -1)", f"{x}[..., None]",
        f"np.flip({x}, {axis})", f"np.roll({x}, {m.rng.integers(-3, 4)}, axis={axis})",
        f"np.reshape({x}, {_factors(m, m.arrays[x].size)})", f"np.expand_dims({x}, {axis})",
        f"np.squeeze({x})", f"np.pad({x}, {pairs})", f"np.moveaxis({x}, {axis}, 0)",
        f"np.broadcast_to({x}, {(int(m.rng.integers(1, 4)), *shape)})",
        f"np.tile({x}, {int(m.rng.integers(1, 4))})", f"np.triu({x})", f"np.tril({x}, 1)",
        f"np.repeat({x}, {int(m.rng.integers(0, 3))}, axis={axis})", f"np.copy({x})",
    )  # fmt: skip
    return text, [x], True


def _factors(m: _Maker, size: int) -> tuple[int, ...]:
    """A shape of as many elements."""
    shape = []
    while size > 1 and len(shape) < 3:
        divisors = [n for n in range(1, size + 1) if size % n == 0]
        shape.append(int(m.rng.choice(divisors)))
        size //= shape[-1]
    return (*shape, size)


def _indexed(m: _Maker) -> _Line:
    x = m.pick()
    indices = [name for name in m.exact if m.arrays[name].dtype.kind in "iu"]
    if indices and m.rng.random() < 0.4:
        i, axis = m.one_of(*indices), m.axis(x) if m.arrays[x].ndim else 0
        first, n, last = (m.arrays[x].shape[k] if m.arrays[x].ndim else 1 for k in (0, axis, -1))
        taken = f"np.take({x}, {i} % {n}, axis={axis})"
        return m.one_of(f"{x}[{i} % {first}]", taken, f"{x}[..., {i} % {last}]"), [x, i], True
    items = []
    for n in m.arrays[x].shape[: m.rng.integers(0, 4)]:
        first, last = sorted(int(i) for i in m.rng.integers(0, n + 1, 2))
        step = m.one_of("", ":2", ":-1", ":3", ":-2")
        bounds = f"{last}:{first}" if "-" in step else f"{first}:{last}"
        items.append(m.one_of(":", bounds + step, step or ":", str(m.rng.integers(0, n + 1) - 1)))
    if items and m.rng.random() < 0.2:
        items[0] = str([int(i) for i in m.rng.integers(-2, 3, m.rng.integers(1, 4))])
    return f"{x}[{', '.join(i if i != ':' * len(i) else ':' for i in items) or '...'}]", [x], True


def _with_number(m: _Maker) -> _Line:
    x = m.pick()
    if not m.numbers:
        return _two(m)
    text = m.one_of(
        "{0} * {1}", "{1} - {0}", "{0} + {1} / 2", "{0} * ({1} * {1} - 1)", "(1 + {1} * {1}) * {0}",
        "{0} / (0.5 ** {1} + 1)", "np.hypot({0}, 1 + abs({1}))", "-{1} * {0}", "{0} * np.cos({1})",
    )  # fmt: skip
    return text.format(x, m.one_of(*m.numbers)), [x], False


def _two(m: _Maker) -> _Line:
    x, y = m.pick(), m.pick()
    if x in m.exact and y in m.exact and m.rng.random() < 0.5:
        text = m.one_of(
            "np.maximum({0}, {1})", "np.minimum({0}, {1})", "np.where({0} > {1}, {0}, {1})",
            "{0} > {1}", "{0} == {1}", "{0} <= {1}", "np.where({0}, {1}, 2)",
        )  # fmt: skip
        return text.format(x, y), [x, y], True
    text = m.one_of(
        "{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} * {1}", "{0} / (1.0 + {1} * {1})",
        "(1.0 + {0} * {0}) ** np.tanh({1})", "np.hypot({0}, 1.0 + {1} * {1})",
        "np.logaddexp({0}, {1})", "np.arctan2({0}, 1.0 + {1} * {1})", "{0} + 2 * {1} - 0.5",
    )  # fmt: skip
    return text.format(x, y), [x, y], False


def _joined(m: _Maker) -> _Line:
    x, y = m.pick(), m.pick()
    axis = m.axis(x) if m.arrays[x].ndim else 0
    text = m.one_of(
        f"np.concatenate([{x}, {y}], axis={axis})",
        f"np.concatenate([{x}, {x}[::-1], {x}])",
        f"np.stack([{x}, {y}, {x}], axis={m.one_of(0, -1, axis)})",
        f"np.split({x}, [{m.rng.integers(0, 4)}], axis={axis})[{m.one_of(0, 1)}]",
    )
    return text, [x, y], True


def _product(m: _Maker) -> _Line:
    x, y = m.pick(), m.pick()
    flipped = f"np.swapaxes({x}, -1, -2)"
    text = m.one_of(
        f"{x} @ {y}", f"{x} @ {flipped}", f"{flipped} @ {x}", f"np.matmul({x}, {y}.T)",
        f"{x}.T @ {y}", f"np.outer({x}, {y})", f"np.dot({x}, {y})",
    )  # fmt: skip
    return text, [x, y], False


_KINDS: tuple[Callable[[_Maker], _Line], ...] = (
    _smooth, _smooth, _smooth, _kinked, _cast, _reduced, _reduced, _largest, _rearranged,
    _rearranged, _rearranged, _indexed, _indexed, _two, _two, _with_number, _joined, _product,
)  # fmt: skip


# ---- making them smaller ------------------------------------------------------------------------


def reduced(program: Program, fails: Callable[[Program], bool]) -> Program:
    """The smallest program found that still fails: one result, and the lines it is made of."""
    for name, _ in program.lines:
        candidate = replace(program, outputs=(name,))
        if fails(candidate):
            program = candidate
            break
    for line in reversed(program.lines):
        candidate = replace(program, lines=tuple(kept for kept in program.lines if kept != line))
        read = " ".join([*(text for _, text in candidate.lines), *candidate.outputs])
        if line[0] not in read and fails(candidate):
            program = candidate
    return program
