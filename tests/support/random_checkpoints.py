"""Random programs for checkpointing: what is computed again must not change a bit of a gradient.

A program is text, made by running it, as in `random_code`. Its statements write through views, draw
random numbers, call compiled functions and loops, and keep things for later; some of them are in
functions, which a way to run the program may checkpoint.
"""

from __future__ import annotations

import ast
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import GradtapeError

SMALL, LARGE = (3, 5), (9, 4001)  # shapes of matrices; the second one has kernels of its own
MOST = 40_000
LARGEST = 1e3

Wrap = Callable[[Callable[..., Any], int], Callable[..., Any]]


def as_it_is(function: Callable[..., Any], _number: int) -> Callable[..., Any]:
    """Checkpoints nothing."""
    return function


# ---- what programs call -------------------------------------------------------------------------


@gt.custom_vjp
def clipped(x: Any) -> Any:
    return np.clip(x, -0.8, 0.9)


@clipped.defvjp
def _clipped_vjp(ct: Any, out: Any, x: Any) -> Any:
    return (ct * (0.5 + out * out),)


@gt.custom_vjp
def rotated(x: Any, y: Any) -> Any:
    return x * 0.6 - y * 0.8, x * 0.8 + y * 0.6


@rotated.defvjp
def _rotated_vjp(cts: Any, outs: Any, x: Any, y: Any) -> Any:
    return cts[0] * 0.6 + cts[1] * 0.8, cts[1] * 0.6 - cts[0] * 0.8


@gt.jit
def compiled(x: Any, y: Any) -> Any:
    z = np.tanh(x * y)
    return z + np.sin(x), np.mean(z) * y


def scanned(x: Any, start: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        carry = np.tanh(carry * 0.5 + row)
        return carry, carry * row

    return gt.scan(step, start, x)


def looped(x: Any) -> Any:
    return gt.while_loop(
        lambda state: state[0] < 3, lambda state: (state[0] + 1, np.sin(state[1]) + 0.3), (0, x)
    )[1]


def dropped(x: Any) -> Any:
    return np.where(gt.rand(*x.shape) < 0.5, x, 0.0)


NAMES = {
    "np": np, "gt": gt, "clipped": clipped, "rotated": rotated, "compiled": compiled,
    "scanned": scanned, "looped": looped, "dropped": dropped,
}  # fmt: skip

# ---- statements ---------------------------------------------------------------------------------

# `{x}`, `{y}`, `{z}` are values, `{n}` is a new name, `{i}` and `{j}` are small numbers.
PURE = (
    "{n} = np.sin({x})", "{n} = np.tanh({x})", "{n} = np.exp(-{x} * {x})", "{n} = {x} * 0.7",
    "{n} = np.sqrt(1.0 + np.square({x}))", "{n} = {x} ** 3 * 0.1", "{n} = gt.sigmoid({x})",
    "{n} = gt.softmax({x}, axis=-1)", "{n} = gt.relu({x})", "{n} = np.abs({x})",
    "{n} = {x} + {y}", "{n} = {x} * {y}", "{n} = {x} - {y}", "{n} = {x} / (1.5 + {y} * {y})",
    "{n} = np.maximum({x}, {y})", "{n} = np.where({x} > {y}, {x}, {z})", "{n} = {x} * {x}",
    "{n} = np.arctan2({x}, 2.0 + {y} * {y})", "{n} = np.hypot({x}, 1.0 + {y} * {y})",
    "{n} = np.tanh({x} @ {y})", "{n} = np.tanh({x} @ {y}.T)", "{n} = np.tanh({x}.T @ {y})",
    "{n} = np.einsum('...i,...i->...', {x}, {y}) * 0.1", "{n} = np.cumsum({x}, axis=-1) * 0.2",
    "{n} = np.sum({x}, axis=0) * 0.2", "{n} = np.mean({x}, axis=-1, keepdims=True)",
    "{n} = np.max({x}, axis=0)", "{n} = np.mean({x})", "{n} = np.var({x}, axis=-1)",
    "{n} = np.prod({x}[..., :3], axis=-1)", "{n} = np.sort({x}, axis=-1)",
    "{n} = {x}.astype('float32')", "{n} = {x}.astype('float64')", "{n} = {x}.astype('complex128')",
    "{n} = ({x} * (0.6 + 0.8j)).imag", "{n} = np.exp(1j * {x}).real", "{n} = np.conj({x}) * {y}",
    "{n} = {x}.real + 0.5", "{n} = np.fft.fft({x}).imag * 0.1", "{n} = np.pad({x}, 1)[..., 1:-1]",
    "{n} = np.concatenate([{x}, {y}])", "{n} = np.stack([{x}, {y}, {x}])", "{n} = np.copy({x})",
    "{n} = np.roll({x}, {i}, axis=-1)", "{n} = np.interp({x}, [-1.0, 0.0, 1.0], [0.0, 1.0, 0.5])",
    "{n} = np.broadcast_to({x}, (2, *{x}.shape))", "{n} = np.repeat({x}, 2, axis=0)",
    "{n} = {x}[{x} > 0.1]", "{n} = {x}[np.argsort({x})[:3]]", "{n} = np.take({x}, [0, {i}, 0])",
    "{n} = np.where(np.signbit({x}), {y}, 0.3)", "{n} = {x} * ({y} > {z})", "{n} = {x}[{i}:{i}]",
    "{n} = np.linalg.norm({x})", "{n} = {x} * np.linspace(0.1, 1.0, {x}.shape[-1])",
    "{n} = 1.0 / {x}", "{n} = np.log(np.abs({x}))", "{n} = np.sqrt(np.maximum({x}, 0.0))",
    "{n} = np.prod({x}, axis=-1)", "{n} = np.outer({x}, {y})[:2]", "{n} = gt.gelu({x})",
)  # fmt: skip
SEVERAL = (
    "{n}, {m} = np.split({x}, [2])", "{n}, {m} = rotated({x}, {y})",
    "{n}, {m} = compiled({x}, {y})", "{n}, {m} = scanned({x}, {y})", "{n} = looped({x})",
    "{n}, {m} = np.modf({x} * 3.0)", "{n}, {m} = np.linalg.qr({x}.T)", "{n} = clipped({x})",
    "{n}, {m} = gt.topk({x}, 2)[0], {x}[0]", "{n}, *{m}_ = gt.unstack({x})\n{m} = {m}_[-1]",
    "{n}, {m} = np.linalg.eigh({x} @ {x}.T + np.diag([1.0, 2.0, 4.0]))",
    "{n}, {m} = np.frexp({x})[0], {x} * 2.0",
)  # fmt: skip
VIEWS = (
    "{n} = {x}[1:]", "{n} = {x}[..., ::-1]", "{n} = {x}.T", "{n} = {x}[{i}]", "{n} = {x}[..., {j}]",
    "{n} = np.reshape({x}, -1)", "{n} = np.ravel({x})[::2]", "{n} = {x}[None]", "{n} = {x}[:, :2]",
    "{n} = np.swapaxes({x}, 0, -1)", "{n} = np.flip({x})", "{n} = {x}[...]",
)  # fmt: skip
WRITES = (
    "{x}[{i}] = {y}[{j}]", "{x}[{i}] += {y}[{i}] * 0.3", "{x}[1:] = {y}[:-1] * 0.9", "{x} *= 0.8",
    "{x} -= {y} * 0.1", "{x}[...] = {y}", "{x}[[0, 2]] = {y}[[1, 0]]", "{x}[..., 0] = 0.3",
    "{x}[{x} > 0.5] = 0.25", "{x}[{i}] = {y}", "{x}.T[{i}] = {y}", "{x} += {y}",
    "for k in range(1, 3):\n    {x}[k] = {x}[k - 1] * {y}[k] + 0.1",
    "for k in range(3):\n    {x}[k] = np.sin({y}[k]) * {z}[k]",
    "for k in range(3):\n    {x} += np.tanh({y}) * 0.2\n    {y} = {y} * 0.9",
    "{n} = {y} * 0.0\nfor k in range(3):\n    {n}[k] = {y}[k] * {x}[2 - k]",
    "{n} = gt.zeros({x}.shape)\nfor k in range(3):\n    {n}[k] = {x}[k]\n    {n}[k] *= {x}[k]",
    "{n} = {x}[1:]\n{n}[0] = {y}[0]\n{x}[..., -1] = {n}[..., 0].sum()",
    "{n} = {x} * 1.5\nkept.append({n}[:2])\n{n}[0] = {y}[1]", "np.put({x}, 0, 0.7)",
)  # fmt: skip
OTHERS = (
    "with gt.no_grad():\n    {n} = np.cos({x})", "{n} = {x}.detach() * {y}",
    "with gt.no_grad():\n    {x} = {x} * 1.1", "{n} = gt.stop_gradient({x}) + {y}",
    "with gt.no_grad():\n    with gt.enable_grad():\n        {n} = np.sin({x}) * {y}",
    "kept.append({x})", "kept.append({x} * {y})", "{n} = kept[-1]", "{n} = kept[0] * {x}",
    "kept.append({x}.detach())", "del {x}", "{n} = {x}\n{x} = {x} * 1.2",
)  # fmt: skip
DRAWS = (
    "{n} = dropped({x})", "{n} = {x} + gt.randn(*{x}.shape) * 0.1",
    "{n} = gt.normal(0.0, 1.0, {x}.shape) * {x}",
)  # fmt: skip
KINDS = ((PURE, 0.5), (SEVERAL, 0.09), (VIEWS, 0.12), (WRITES, 0.17), (OTHERS, 0.08), (DRAWS, 0.04))


# ---- programs -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class CheckpointProgram:
    """A function of some arrays that returns a number.

    Attributes:
        seed: What it was made from.
        inputs: The names of its floating inputs.
        statements: What it does.
        outputs: The names whose values count.
        shape: The shape of matrices in it.
    """

    seed: int
    inputs: tuple[str, ...]
    statements: tuple[str, ...]
    outputs: tuple[str, ...]
    shape: tuple[int, int]

    @property
    def source(self) -> str:
        """The program as a function of its inputs."""
        end = f"return [{', '.join(self.outputs)}], kept"
        body = textwrap.indent("\n".join(["kept = []", *self.statements, end]), "    ")
        return f"def program({', '.join(self.inputs)}):\n{body}"

    def function(self, wrap: Wrap = as_it_is) -> Callable[..., Any]:
        """The loss, with some functions wrapped."""
        names: dict[str, Any] = {**NAMES, **constants(self.seed, self.shape), "wrap": wrap}
        exec(self.source, names)

        def loss(*given: Any) -> Any:
            # Leaves cannot be written to.
            outs, kept = names["program"](*[x * 1.0 for x in given])
            return total([*outs, *kept])

        return loss

    def arguments(self, which: int = 0) -> list[Any]:
        """Arrays to run it on; others for another number."""
        made = arrays(self.seed, self.shape, which)
        return [made[name] for name in self.inputs]


def total(values: Sequence[Any]) -> Any:
    """A number that depends on every element of every value, on each in another way."""
    found = 0.0
    for k, value in enumerate(values):
        if value.dtype.kind in "fc":
            part = value if value.dtype.kind == "f" else value.real - 0.5 * value.imag
            weights = np.cos(np.arange(part.size) + k).reshape(part.shape).astype(part.dtype)
            found = found + np.sum(part * weights)
    return found


def arrays(seed: int, shape: tuple[int, int], which: int = 0) -> dict[str, Any]:
    """The floating inputs there may be."""
    rng = np.random.default_rng((seed, which))
    made = {
        "a": rng.uniform(-1.5, 1.5, shape[1]),
        "b": rng.uniform(-1.5, 1.5, shape),
        "c": rng.uniform(-1.5, 1.5, shape).astype("float32"),
        "d": rng.uniform(-1, 1, shape[1]) + 1j * rng.uniform(-1, 1, shape[1]),
        "e": np.asarray(rng.uniform(-1.5, 1.5)),
        "g": rng.uniform(-1.5, 1.5, (0, shape[1])),
    }
    if rng.random() < 0.3:
        made["b"][0, :2] = 0.0  # rules may divide by it
    return made


def constants(seed: int, shape: tuple[int, int]) -> dict[str, Any]:
    """Arrays that nothing is differentiated by."""
    rng = np.random.default_rng((seed, 77))
    return {"r": rng.uniform(-1.5, 1.5, shape), "t": gt.tensor(rng.uniform(-1.5, 1.5, shape[1]))}


# ---- making them --------------------------------------------------------------------------------


def checkpoint_program(seed: int, *, large: bool = False, draws: bool = True) -> CheckpointProgram:
    """The program of a seed.

    Args:
        seed: Any number.
        large: Whether matrices are large.
        draws: Whether it may draw random numbers.
    """
    rng = np.random.default_rng(seed)
    inputs = tuple(name for name in "abcdeg" if name == "b" or rng.random() < 0.4)
    program = CheckpointProgram(seed, inputs, (), (), LARGE if large else SMALL)
    kinds = [kind for kind, _ in KINDS if draws or kind is not DRAWS]
    weights = np.array([weight for kind, weight in KINDS if draws or kind is not DRAWS])
    names, count = list(inputs), int(rng.integers(3, 14))
    for n in range(5 * count):
        if len(program.statements) == count:
            break
        kind = kinds[rng.choice(len(kinds), p=weights / weights.sum())]
        text = _filled(str(kind[rng.integers(len(kind))]), names, n, rng)
        candidate = replace(program, statements=(*program.statements, text))
        found = names_after(candidate)
        if found is not None:
            program, names = candidate, found
    outputs = [name for name in names[-4:] if rng.random() < 0.8] or names[-1:]
    program = replace(program, outputs=tuple(outputs))
    for number in range(int(rng.integers(0, 5))):
        program = _with_function(program, number, rng)
    return program


def _filled(text: str, names: Sequence[str], n: int, rng: Any) -> str:
    """A statement on some values; later ones are likelier."""

    def pick(*, own: bool) -> str:
        if not own and rng.random() < 0.1:
            return str(rng.choice(["r", "t"]))
        if rng.random() < 0.25:
            return str(rng.choice(names))
        return str(names[-1 - int(min(rng.exponential(1.5), len(names) - 1))])

    x, y, z = pick(own=True), pick(own=" {y} =" in text), pick(own=False)
    i, j = rng.integers(0, 3, 2)
    return text.format(n=f"v{n}", m=f"w{n}", x=x, y=y, z=z, i=i, j=j)


def names_after(program: CheckpointProgram) -> list[str] | None:
    """The names of its tensors at its end, oldest first; None if it does not run well."""
    source = program.source[: program.source.rindex("return [")] + "return locals()"
    names: dict[str, Any] = {**NAMES, **constants(program.seed, program.shape), "wrap": as_it_is}
    tape = gt.GradientTape()
    given = [tape.watch(x) * 1.0 for x in program.arguments()]
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            exec(source, names)
            gt.manual_seed(program.seed)
            found = names["program"](*given)
    except (GradtapeError, ValueError, IndexError, TypeError, NameError, AttributeError):
        return None
    made = {name: value for name, value in found.items() if isinstance(value, gt.Tensor)}
    for value in (*made.values(), *found["kept"]):
        if value.size > MOST or (value.size and abs(value.detach().numpy()).max() > LARGEST):
            return None
    return list(made)


def _with_function(program: CheckpointProgram, number: int, rng: Any) -> CheckpointProgram:
    """The same with some of its statements in a function of their own, if that runs."""
    statements = program.statements
    first, last = sorted(int(n) for n in rng.integers(0, len(statements) + 1, 2))
    if first == last:
        return program
    body = "\n".join(statements[first:last])
    stored, deleted, read = _stored(body)
    before = names_after(replace(program, statements=statements[:first]))
    assert before is not None  # it ran
    # Names that are set inside are local to the function, and have to be given to it.
    given = [name for name in before if name in stored + deleted]
    given += [name for name in before if name in read and rng.random() < 0.5]
    given = list(dict.fromkeys(given))
    after = names_after(replace(program, statements=statements[:last])) or []
    returned = [name for name in after if name in stored]
    end = "return " + "".join(f"{name}, " for name in returned) if returned else "return None"
    text = f"def f{number}({', '.join(given)}):\n" + textwrap.indent(f"{body}\n{end}", "    ")
    called = f"wrap(f{number}, {number})({', '.join(given)})"
    text += "\n" + ("".join(f"{name}, " for name in returned) + "= " if returned else "") + called
    candidate = replace(program, statements=(*statements[:first], text, *statements[last:]))
    return program if names_after(candidate) is None else candidate


def _stored(body: str) -> tuple[list[str], list[str], list[str]]:
    """The names that statements set, delete and read, without those of functions inside."""
    found: dict[type, list[str]] = {ast.Store: [], ast.Del: [], ast.Load: []}
    pending: list[ast.AST] = [ast.parse(body)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef):
            found[ast.Store].append(node.name)
            continue
        if isinstance(node, ast.Name):
            found[type(node.ctx)].append(node.id)
        pending += ast.iter_child_nodes(node)
    return found[ast.Store], found[ast.Del], found[ast.Load]


# ---- making them smaller ------------------------------------------------------------------------


def smaller(
    program: CheckpointProgram, fails: Callable[[CheckpointProgram], bool]
) -> CheckpointProgram:
    """The smallest program found that still fails."""

    def still(candidate: CheckpointProgram) -> bool:
        return names_after(candidate) is not None and fails(candidate)

    changed = True
    while changed:
        changed = False
        for candidate in _smaller_ones(program):
            if still(candidate):
                program, changed = candidate, True
                break
    return program


def _smaller_ones(program: CheckpointProgram) -> Iterator[CheckpointProgram]:
    for name in program.outputs:
        yield replace(program, outputs=tuple(each for each in program.outputs if each != name))
    for name in program.inputs:
        yield replace(program, inputs=tuple(each for each in program.inputs if each != name))
    lines = "\n".join(program.statements).split("\n")
    for n in reversed(range(len(lines))):
        text = "\n".join([*lines[:n], *lines[n + 1 :]])
        try:
            compile(text, "program", "exec")
        except SyntaxError:
            continue
        yield replace(program, statements=(text,))
