"""Random programs with loops and branches, as text: one op per line, functions inside functions.

Bodies use their arguments and whatever stands around them: arrays, the state of outer loops, their
counters. What a loop carries is kept small by its last line, so that long chains stay tame, and
what is compared is compared with numbers that random values do not hit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

import gradtape as gt

# Arrays of at most 256 elements are numbers in registers, larger ones are arrays in memory.
SIZES = (1, 2, 3, 3, 4, 5, 300)
MATRIX_SIZES = (2, 3, 3, 4, 17)
LARGEST = 1e3


@dataclass(frozen=True)
class ControlProgram:
    """A program and what it is called with.

    Attributes:
        seed: The number it was made from.
        source: The text of a function `program`.
        inputs: The shapes of its arguments; None for an integer from 0 to 4.
        dtype: The dtype of its floating-point numbers.
    """

    seed: int
    source: str
    inputs: tuple[tuple[int, ...] | None, ...]
    dtype: str

    def arguments(self, number: int = 0) -> tuple[Any, ...]:
        """Arguments; another number gives others."""
        rng = np.random.default_rng((self.seed, number))
        return tuple(
            np.int64(rng.integers(0, 5))
            if shape is None
            else np.asarray(rng.uniform(-1.5, 1.5, shape), self.dtype)[()]
            for shape in self.inputs
        )

    @property
    def floating(self) -> tuple[int, ...]:
        """The numbers of the arguments to differentiate by."""
        return tuple(n for n, shape in enumerate(self.inputs) if shape is not None)

    def function(self) -> Callable[..., Any]:
        """The program: a function that returns a tuple of arrays."""
        scalar = np.dtype(self.dtype).type
        namespace: dict[str, Any] = {"np": np, "gt": gt, "F": scalar}
        exec(compile(self.source, f"<program {self.seed}>", "exec"), namespace)
        return namespace["program"]  # type: ignore[no-any-return]

    def loss(self) -> Callable[..., Any]:
        """A number that depends on all floating results, on each element in another way."""
        function, scalar = self.function(), np.dtype(self.dtype).type

        def loss(*arrays: Any) -> Any:
            total = scalar(0.0)
            for out in function(*arrays):
                if np.dtype(getattr(out, "dtype", type(out))).kind == "f":
                    weights = np.cos(np.arange(np.prod(np.shape(out), dtype=int)))
                    total = total + np.sum(out * weights.reshape(np.shape(out)).astype(scalar))
            return total

        return loss


def control_programs(first: int, count: int) -> list[ControlProgram]:
    """Programs with numbers from `first`."""
    return [control_program(seed) for seed in range(first, first + count)]


def control_program(seed: int) -> ControlProgram:
    """The program with a number; those with wild values are passed over."""
    for attempt in range(100):
        program = _Writer(seed, attempt).program()
        with np.errstate(all="ignore"):
            results = [program.function()(*program.arguments(n)) for n in range(3)]
        arrays = [np.asarray(x) for out in results for x in out]
        if all(np.all(np.abs(x.astype(float)) < LARGEST) for x in arrays):
            return program
    raise AssertionError(f"no tame program has the number {seed}")


# ---- smaller programs ---------------------------------------------------------------------------


def reduced(program: ControlProgram, fails: Callable[[ControlProgram], bool]) -> ControlProgram:
    """A smaller program that still fails: without lines, with operands in place of results."""
    progress = True
    while progress:
        progress = False
        lines = program.source.splitlines()
        for number in reversed(range(1, len(lines))):
            for source in _smaller(lines, number):
                candidate = ControlProgram(program.seed, source, program.inputs, program.dtype)
                if _runs(candidate) and fails(candidate):
                    program, progress = candidate, True
                    break
            lines = program.source.splitlines()
    return program


def _smaller(lines: Sequence[str], number: int) -> list[str]:
    if number >= len(lines):
        return []
    line = lines[number]
    indent = len(line) - len(line.lstrip())
    end = number + 1
    while end < len(lines) and len(lines[end]) - len(lines[end].lstrip()) > indent:
        end += 1
    found = ["\n".join([*lines[:number], *lines[end:]])]
    name, equals, value = line.partition(" = ")
    if equals:
        found += [
            "\n".join([*lines[:number], f"{name} = {other}", *lines[number + 1 :]])
            for other in dict.fromkeys(re.findall(r"\b[a-z]\d+\b", value))
            if value != other
        ]
    if line.strip().startswith("return (") and indent == 4 and number == len(lines) - 1:
        parts = [part for part in line.strip()[8:-1].split(", ") if part.strip(",")]
        found += [
            "\n".join([*lines[:number], f"    return ({part.strip(',')},)"])
            for part in parts
            if len(parts) > 1
        ]
    return found


def _runs(program: ControlProgram) -> bool:
    try:
        with np.errstate(all="ignore"):
            results = program.function()(*program.arguments())
        return any(np.asarray(x).dtype.kind == "f" for x in results)
    except Exception:
        return False


# ---- writing ------------------------------------------------------------------------------------


class Variable(NamedTuple):
    """A name with what it stands for.

    Attributes:
        name: The name.
        shape: The shape.
        kind: "f" floating, "i" an int64, "b" a truth value, "w" a Python integer, "z" a number that
            begins as a Python float, "n" an integer that is only returned.
    """

    name: str
    shape: tuple[int, ...]
    kind: str = "f"


Scope = list[Variable]

UNARY = (
    "np.sin({0})",
    "np.tanh({0})",
    "{0} / (1.0 + {0} * {0})",
    "np.exp(-{0} * {0})",
    "np.sqrt(1.0 + {0} * {0})",
    "np.where({0} > 0.3217, {0}, 0.5 * np.sin({0}))",
    "np.clip({0}, -0.513, 0.812)",
    "np.abs({0} - 0.1234)",
    "0.7 * {0} + 0.21",
    "{0}.astype(np.float64).astype(F)",
)
BINARY = (
    "{0} * {1}",
    "{0} + {1}",
    "{0} - 0.5 * {1}",
    "np.maximum({0}, {1} + 0.0123)",
    "np.where({0} > {1} + 0.0123, {0}, 0.3 * {1})",
    "{0} / (1.5 + np.cos({1}))",
)
# The last line of what is carried: results stay between -2 and 2.
TAMED = ("np.tanh({0})", "np.sin({0})", "0.5 * np.tanh({0} + {1})", "{0} / (1.0 + {0} * {0})")
CONTAINERS = {
    1: [("{0}", [""]), ("({0},)", ["[0]"]), ('{{"p": {0}}}', ['["p"]'])],
    2: [
        ("({0}, {1})", ["[0]", "[1]"]),
        ('{{"p": {0}, "q": {1}}}', ['["p"]', '["q"]']),
        ('({0}, {{"q": {1}}})', ["[0]", '[1]["q"]']),
    ],
    3: [
        ("({0}, {1}, {2})", ["[0]", "[1]", "[2]"]),
        ('({0}, {{"p": {1}, "q": [{2}]}})', ["[0]", '[1]["p"]', '[1]["q"][0]']),
    ],
}


@dataclass
class _Writer:
    """Writes a program, line by line."""

    seed: int
    attempt: int
    lines: list[str] = field(default_factory=list)
    indent: int = 1
    names: int = 0

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng((self.seed, self.attempt))

    def program(self) -> ControlProgram:
        """The whole of it."""
        dtype = self.pick(["float64", "float64", "float32"])
        square = self.rng.random() < 0.5
        self.n = n = int(self.pick(MATRIX_SIZES if square else SIZES))
        scope = [Variable("x0", (n,)), Variable("x1", ()), Variable("x2", (n,))]
        inputs: list[Any] = [(n,), (), (n,)]
        if square:
            scope.append(Variable("x3", (n, n)))
            inputs.append((n, n))
        scope.append(Variable("k0", (), "i"))
        inputs.append(None)
        given = ", ".join(variable.name for variable in scope)
        made: Scope = []
        for _ in range(int(self.rng.integers(1, 3))):
            found = self.statement([*scope, *made], depth=int(self.rng.integers(0, 3)))
            made += found
            if self.rng.random() < 0.5:
                made.append(self.op([*scope, *made], self.shape([*scope, *made])))
        results = "".join(f"{variable.name}, " for variable in made)
        source = "\n".join([f"def program({given}):", *self.lines, f"    return ({results})"])
        return ControlProgram(self.seed, source, tuple(inputs), dtype)

    # ---- choices ---------------------------------------------------------------------------

    def pick(self, choices: Sequence[Any]) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def shape(self, scope: Scope) -> tuple[int, ...]:
        """A shape of which there is a variable."""
        return self.pick([v.shape for v in scope if v.kind == "f"])  # type: ignore[no-any-return]

    def of(self, scope: Scope, shape: tuple[int, ...], kind: str = "f") -> str | None:
        """A variable of a shape; later ones are likelier."""
        found = [v.name for v in scope if v.shape == shape and v.kind == kind]
        if not found:
            return None
        return self.pick(found[-3:] if self.rng.random() < 0.7 else found)  # type: ignore[no-any-return]

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def new(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def let(self, value: str, shape: tuple[int, ...], kind: str = "f") -> Variable:
        """A variable for an expression."""
        name = self.new("v" if kind == "f" else kind)
        self.emit(f"{name} = {value}")
        return Variable(name, shape, kind)

    # ---- ops -------------------------------------------------------------------------------

    def op(self, scope: Scope, shape: tuple[int, ...]) -> Variable:
        """An op with a floating result of a shape."""
        chances = self.rng.random()
        text = None
        if chances < 0.35:
            text = self.special(scope, shape)
        if text is None and chances < 0.5:
            text = self.with_integer(scope, shape)
        own = self.of(scope, shape)
        if text is None and own is not None:
            other = self.of(scope, self.pick([shape, ()]))
            if other is None or self.rng.random() < 0.4:
                text = self.pick(UNARY).format(own)
            else:
                text = self.pick(BINARY).format(own, other)
        if text is None:
            text = self.built(scope, shape)
        return self.let(text, shape)

    def built(self, scope: Scope, shape: tuple[int, ...]) -> str:
        """An array of any shape from a number."""
        number = self.of(scope, ()) or "F(0.37)"
        return f"{number} * np.linspace(0.1, 0.9, {int(np.prod(shape))}).astype(F).reshape({shape})"

    def with_integer(self, scope: Scope, shape: tuple[int, ...]) -> str | None:
        own = self.of(scope, shape)
        integer, weak, truth = (self.of(scope, (), kind) for kind in "iwb")
        texts = []
        if own and integer:
            texts.append(f"{own} * (0.1 * {integer}.astype(F))")
        if own and weak:
            texts.append(f"{own} * np.cos({own} * {weak})")
            texts.append(f"{own} + 0.1 * {weak}")
        if own and truth:
            texts.append(f"np.where({truth}, {own}, 0.4 * {own} * {own})")
        return self.pick(texts) if texts else None

    def special(self, scope: Scope, shape: tuple[int, ...]) -> str | None:
        """An op that is about shapes: products, solutions, sums, elements."""
        n = self.n
        vector, matrix = self.of(scope, (n,)), self.of(scope, (n, n))
        texts: list[str] = []
        if shape == () and vector:
            other, integer = self.of(scope, (n,)), self.of(scope, (), "i")
            texts += [f"np.mean({vector})", f"{vector}[{n // 2}]", f"{vector} @ {other} / {n}"]
            texts += [f"np.max({vector})", f"np.sum({vector}[::2]) / {n}"]
            if integer:
                texts += [f"gt.take({vector}, {integer} % {n})"] * 2
        if shape == () and matrix and n < 9:
            texts += [
                f"np.trace({matrix})",
                f"np.linalg.det(0.2 * {matrix} + np.eye({n}, dtype=F))",
            ]
        if shape == (n,) and vector:
            other = self.of(scope, (n,))
            texts += [f"np.flip({vector})", f"0.2 * np.cumsum({vector})", f"np.roll({vector}, 1)"]
            texts += [f"np.concatenate([{vector}[1:], {other}[:1]])"]
            if matrix:
                texts += [f"0.4 * ({matrix} @ {vector})", f"0.4 * ({vector} @ {matrix})"]
                texts += [f"np.sum({matrix}, axis=0) / {n}", f"{matrix}[0]", f"{matrix}[:, -1]"]
                regular = f"0.2 * {matrix} + {2 + n} * np.eye({n}, dtype=F)"
                texts += [f"np.linalg.solve({regular}, {vector})"]
        if shape == (n, n) and matrix:
            other = self.of(scope, (n, n))
            texts += [
                f"0.4 * ({matrix} @ {other})",
                f"{matrix}.T",
                f"np.tanh({matrix} @ {matrix}.T)",
            ]
            texts += [f"np.linalg.inv(0.2 * {matrix} + {2 + n} * np.eye({n}, dtype=F))"]
            if vector:
                texts += [f"{vector}[:, None] * {matrix}", f"np.outer({vector}, {vector})"]
        return self.pick(texts) if texts else None

    # ---- statements ------------------------------------------------------------------------

    def statement(self, scope: Scope, depth: int) -> Scope:
        """A loop or branch; returns the variables that it makes."""
        kinds: list[Callable[[Scope, int], Scope]] = [
            self.scan, self.scan, self.while_loop, self.while_loop, self.fori_loop, self.branch,
            self.branch, self.mapping, self.associative,
        ]  # fmt: skip
        return self.pick(kinds)(scope, depth)  # type: ignore[no-any-return]

    def inside(self, scope: Scope, depth: int) -> Scope:
        """Lines in a function; returns all variables that are visible at its end."""
        scope = list(scope)
        for _ in range(int(self.rng.integers(1, 4))):
            if depth > 0 and self.rng.random() < 0.4:
                scope += self.statement(scope, depth - 1)
            else:
                scope.append(self.op(scope, self.shape(scope)))
        return scope

    def save(self) -> str:
        return self.pick(["", "", ', save="sqrt"', ", save=2"])  # type: ignore[no-any-return]

    def carried(
        self, scope: Scope, kinds: str = "ffffibw", most: int = 3
    ) -> tuple[list[Variable], list[str]]:
        """What a loop carries, with the values it begins with."""
        state, first = [], []
        for number in range(int(self.rng.integers(1, most + 1))):
            kind = self.pick(kinds) if number else "f"
            shape = self.shape(scope) if kind == "f" else ()
            own = self.of(scope, shape, kind)
            begin = {"i": "np.int64(1)", "b": "np.True_", "w": "0", "z": "0.0"}
            state.append(Variable(self.new("c"), shape, kind))
            first.append(begin[kind] if own is None or kind == "w" else own)
        return state, first

    def unpacked(self, state: Sequence[Variable], paths: Sequence[str], whole: str) -> None:
        for variable, path in zip(state, paths, strict=True):
            self.emit(f"{variable.name} = {whole}{path}")

    def following(self, scope: Scope, state: Sequence[Variable]) -> list[str]:
        """The next values of what is carried."""
        names = []
        for variable in state:
            if variable.kind == "f":
                made = self.op(scope, variable.shape).name
                text = self.pick(TAMED).format(made, variable.name)
            elif variable.kind == "b":
                number = self.of(scope, ()) or "x1"
                text = self.pick([f"np.logical_not({variable.name})", f"{number} > 0.1717"])
            elif variable.kind == "z":
                text = f"0.5 * {variable.name} + np.tanh({self.op(scope, ()).name})"
            elif variable.kind == "w":
                text = f"{variable.name} + 1"
            else:
                text = f"({variable.name} * 3 + 1) % 7"
            names.append(self.let(text, variable.shape, variable.kind).name)
        return names

    def define(self, arguments: str) -> str:
        name = self.new("f")
        self.emit(f"def {name}({arguments}):")
        self.indent += 1
        return name

    def end(self, result: str) -> None:
        self.emit(f"return {result}")
        self.indent -= 1

    def results_of(self, state: Sequence[Variable], paths: Sequence[str], whole: str) -> Scope:
        """Variables for the parts of a result.

        A Python integer that differs within a batch is an array there, and would make float64 of
        float32: it is not computed with.
        """
        return [
            self.let(f"{whole}{path}", v.shape, {"z": "f", "w": "n"}.get(v.kind, v.kind))
            for v, path in zip(state, paths, strict=True)
        ]

    def elements(self, scope: Scope, length: int) -> Variable:
        """An array to go through."""
        shape = self.shape(scope)
        if np.prod(shape) > 400:
            shape = ()
        own = self.of(scope, shape)
        if own is None:
            return self.let(self.built(scope, (length, *shape)), (length, *shape))
        ones = "[:, " + ", ".join(["None"] * len(shape)) + "]" if shape else ""
        ramp = f"np.linspace(0.2, 1.0, {length}).astype(F)"
        if length and self.rng.random() < 0.4:
            parts = ", ".join(str(self.of(scope, shape)) for _ in range(length))
            return self.let(f"np.stack([{parts}])", (length, *shape))
        return self.let(f"{ramp}{ones} * {own}", (length, *shape))

    def scan(self, scope: Scope, depth: int) -> Scope:
        length = int(self.pick([1, 2, 3, 5, 6]))
        xs = [self.elements(scope, length) for _ in range(int(self.rng.integers(0, 3)))]
        state, first = self.carried(scope, "ffffibwz")
        pack, paths = self.pick(CONTAINERS[len(state)])
        x_pack, x_paths = self.pick(CONTAINERS[len(xs)]) if xs else ("None", [])
        function = self.define("s, e")
        self.unpacked(state, paths, "s")
        rows = [Variable(self.new("e"), x.shape[1:]) for x in xs]
        self.unpacked(rows, x_paths, "e")
        visible = self.inside([*scope, *state, *rows], depth)
        names = self.following(visible, state)
        ys = [self.op(visible, self.shape(visible)) for _ in range(int(self.rng.integers(0, 3)))]
        y_pack, y_paths = self.pick(CONTAINERS[len(ys)]) if ys else ("None", [])
        self.end(f"({pack.format(*names)}, {y_pack.format(*(y.name for y in ys))})")
        arrays = x_pack.format(*(x.name for x in xs))
        options = self.pick(["", ", reverse=True"]) + self.save()
        options += "" if xs else f", length={length}"
        carry, results = self.new("r"), self.new("r")
        call = f"gt.scan({function}, {pack.format(*first)}, {arrays}{options})"
        self.emit(f"{carry}, {results} = {call}")
        stacked = [Variable(y.name, (length, *y.shape)) for y in ys]
        found = self.results_of(state, paths, carry)
        return [*found, *self.results_of(stacked, y_paths, results)]

    def while_loop(self, scope: Scope, depth: int) -> Scope:
        state, first = self.carried(scope, most=2)
        counter = Variable(self.new("c"), (), self.pick("iw"))
        state.append(counter)
        first.append("0" if counter.kind == "w" else "np.int64(0)")
        pack, paths = self.pick(CONTAINERS[len(state)])
        test = self.define("s")
        self.unpacked(state, paths, "s")
        integer = self.of(scope, (), "i")
        bound = f"abs({integer}) % 6" if integer and self.rng.random() < 0.5 else "4"
        go_on = f"{counter.name} < {bound}"
        if self.rng.random() < 0.4:
            value = next(v for v in state if v.kind == "f").name
            go_on = f"np.logical_and({go_on}, np.sum({value} * {value}) < 1.3171)"
        self.end(go_on)
        function = self.define("s")
        self.unpacked(state, paths, "s")
        visible = self.inside([*scope, *state], depth)
        names = self.following(visible, state[:-1])
        self.end(pack.format(*names, f"{counter.name} + 1"))
        whole = self.new("r")
        self.emit(
            f"{whole} = gt.while_loop({test}, {function}, {pack.format(*first)}{self.save()})"
        )
        return self.results_of(state, paths, whole)

    def fori_loop(self, scope: Scope, depth: int) -> Scope:
        state, first = self.carried(scope)
        pack, paths = self.pick(CONTAINERS[len(state)])
        counter = Variable(self.new("w"), (), "w")
        function = self.define(f"{counter.name}, s")
        self.unpacked(state, paths, "s")
        visible = self.inside([*scope, *state, counter], depth)
        self.end(pack.format(*self.following(visible, state)))
        integer = self.of(scope, (), "i")
        end = f"{integer}" if integer and self.rng.random() < 0.4 else self.pick(["1", "3", "6"])
        whole, first_number = self.new("r"), self.pick(["0", "0", "1", "-2"])
        start = pack.format(*first)
        self.emit(
            f"{whole} = gt.fori_loop({first_number}, {end}, {function}, {start}{self.save()})"
        )
        return self.results_of(state, paths, whole)

    def branch(self, scope: Scope, depth: int) -> Scope:
        integer, truth = self.of(scope, (), "i"), self.of(scope, (), "b")
        switch = integer is not None and self.rng.random() < 0.5
        shapes = [self.shape(scope) for _ in range(int(self.rng.integers(1, 3)))]
        pack, paths = self.pick(CONTAINERS[len(shapes)])
        operand = Variable(self.new("o"), self.shape(scope))
        given = self.of(scope, operand.shape)
        functions = []
        for _ in range(3 if switch else 2):
            functions.append(self.define(operand.name))
            visible = self.inside([*scope, operand], depth)
            self.end(pack.format(*(self.op(visible, shape).name for shape in shapes)))
        whole = self.new("r")
        if switch:
            listed = ", ".join(functions)
            self.emit(f"{whole} = gt.switch({integer} % 3, [{listed}], {given})")
        else:
            number = self.of(scope, ()) or "x1"
            condition = truth or f"{number} > 0.1313"
            self.emit(f"{whole} = gt.cond({condition}, {', '.join(functions)}, {given})")
        return self.results_of([Variable("", shape) for shape in shapes], paths, whole)

    def mapping(self, scope: Scope, depth: int) -> Scope:
        length = int(self.pick([1, 2, 4]))
        xs = self.elements(scope, length)
        element = Variable(self.new("e"), xs.shape[1:])
        function = self.define(element.name)
        visible = self.inside([*scope, element], depth)
        made = self.op(visible, self.shape(visible))
        self.end(made.name)
        return [self.let(f"gt.map({function}, {xs.name})", (length, *made.shape))]

    def associative(self, scope: Scope, depth: int) -> Scope:
        length = int(self.pick([1, 2, 5, 6]))
        xs = self.elements(scope, length)
        reverse = self.pick(["", ", reverse=True"])
        if self.rng.random() < 0.5:
            combine = self.pick(["np.add", "np.maximum", "np.multiply"])
            return [self.let(f"gt.associative_scan({combine}, {xs.name}{reverse})", xs.shape)]
        # Affine maps, one after the other.
        function = self.define("p, q")
        self.end("(q[0] * p[0], q[0] * p[1] + q[1])")
        whole = self.new("r")
        self.emit(
            f"{whole} = gt.associative_scan({function}, (0.5 * {xs.name}, {xs.name}){reverse})"
        )
        return [self.let(f"{whole}[1]", xs.shape)]
