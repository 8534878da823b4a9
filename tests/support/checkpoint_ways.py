"""Ways to differentiate random programs with checkpointing, and without to compare with."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import gradtape as gt
from gradtape import containers
from gradtape.errors import BudgetError
from random_checkpoints import CheckpointProgram, Wrap, checkpoint_program, smaller

S = gt.CheckpointStrategy
CONFIGS = {
    "block 1": gt.CheckpointConfig(strategy=S.Block, checkpoint_every_n=1),
    "block 3": gt.CheckpointConfig(strategy=S.Block, checkpoint_every_n=3),
    "growing": gt.CheckpointConfig(strategy=S.Block),
    "full": gt.CheckpointConfig(strategy=S.Full),
    "selective": gt.CheckpointConfig(strategy=S.Selective, checkpoint_every_n=3),
    "nothing": gt.CheckpointConfig(strategy=S.Selective, min_compute_cost=1e12),
    "auto": gt.CheckpointConfig(strategy=S.Auto, memory_budget_mb=0.001),
    "small auto": gt.CheckpointConfig(strategy=S.Auto, memory_budget_mb=0.0005),
    "large auto": gt.CheckpointConfig(strategy=S.Auto, memory_budget_mb=3.0),
}
_POLICIES: tuple[Any, ...] = (
    None, gt.keep_ops("sin", "multiply", "tanh"), gt.keep_up_to(40), gt.drop_ops("sin", "getitem"),
    *CONFIGS.values(), gt.CheckpointConfig(),
)  # fmt: skip


def no_policy(function: Callable[..., Any], _number: int) -> Callable[..., Any]:
    """Checkpoints a function, keeping nothing."""
    return gt.checkpoint(function)


def any_policy(first: int) -> Wrap:
    """Checkpoints functions, each with another policy."""

    def wrap(function: Callable[..., Any], number: int) -> Callable[..., Any]:
        return gt.checkpoint(function, policy=_POLICIES[(first + 5 * number) % len(_POLICIES)])

    return wrap


def all_of_it(wrap: Wrap) -> Callable[[CheckpointProgram], Callable[..., Any]]:
    """Wraps the whole program, too."""
    return lambda program: wrap(program.function(wrap), 3)


# ---- ways: from a program to a function of it and its arguments ---------------------------------

Loss = Callable[..., Any]
Way = Callable[[Loss, Sequence[Any]], Any]


def on_tape(config: Any = None, *, persistent: bool = False) -> Way:
    def way(loss: Loss, given: Sequence[Any]) -> Any:
        with gt.GradientTape(checkpoint=config, persistent=persistent) as tape:
            xs = [tape.watch(x) for x in given]
            out = loss(*xs)
        found = [out.detach(), tape.gradient(out, xs)]
        if persistent:
            found += [tape.gradient(out, xs)]
        return found

    return way


def with_output_gradients(config: Any = None) -> Way:
    """Two targets, and gradients by something in between."""

    def way(loss: Loss, given: Sequence[Any]) -> Any:
        with gt.GradientTape(checkpoint=config) as tape:
            xs = [tape.watch(x) for x in given]
            between = [np.sin(x) for x in xs]
            outs = [loss(*between), loss(*xs)]
        return tape.gradient(outs, [*between, *xs])

    return way


def in_context(config: Any = None, *, release: bool = False) -> Way:
    def way(loss: Loss, given: Sequence[Any]) -> Any:
        with gt.GradientContext(checkpoint=config):
            xs = [gt.tensor(x, requires_grad=True) for x in given]
            out = loss(*xs)
            out.backward(release=release)
            if not release:
                out.backward()
            return [x.grad for x in xs]

    return way


def forward_along(config: Any = None) -> Way:
    def way(loss: Loss, given: Sequence[Any]) -> Any:
        tape = gt.GradientTape(checkpoint=config, persistent=True)
        xs = [tape.watch(x) for x in given]
        out = loss(*xs)
        return [tape.forward_gradient(x, out, np.cos(x.detach().numpy())) for x in xs]

    return way


def second_on_tapes(config: Any = None, outer: Any = None) -> Way:
    def way(loss: Loss, given: Sequence[Any]) -> Any:
        with gt.GradientTape(checkpoint=outer) as above:
            xs = [above.watch(x) for x in given]
            with gt.GradientTape(checkpoint=config) as tape:
                ys = [tape.watch(x) for x in xs]
                out = loss(*ys)
            slope = _square(tape.gradient(out, ys))
        return above.gradient(slope, xs)

    return way


def second_in_context(config: Any = None) -> Way:
    def way(loss: Loss, given: Sequence[Any]) -> Any:
        with gt.GradientContext(checkpoint=config):
            xs = [gt.tensor(x, requires_grad=True) for x in given]
            gt.compute_gradients(loss(*xs), create_graph=True)
            slope = _square([x.grad for x in xs])
            for x in xs:
                x.grad = None
            slope.backward()
            return [x.grad for x in xs]

    return way


def _square(parts: Sequence[Any]) -> Any:
    return sum(np.sum(part.real * part.real) for part in parts if part is not None)


def _grad(loss: Loss, given: Sequence[Any]) -> Callable[..., Any]:
    return gt.grad(loss, tuple(range(len(given))))


def by_grad(loss: Loss, given: Sequence[Any]) -> Any:
    return _grad(loss, given)(*given)


def by_vjp(loss: Loss, given: Sequence[Any]) -> Any:
    _, pull = gt.vjp(loss, *given)
    return pull(1.0), pull(2.0)


def by_jvp(loss: Loss, given: Sequence[Any]) -> Any:
    return gt.jvp(loss, tuple(given), tuple(np.cos(x) for x in given))


def second(loss: Loss, given: Sequence[Any]) -> Any:
    places = tuple(range(len(given)))
    return gt.grad(lambda *xs: _square(gt.grad(loss, places)(*xs)), places)(*given)


def forward_over_reverse(loss: Loss, given: Sequence[Any]) -> Any:
    return gt.jvp(_grad(loss, given), tuple(given), tuple(np.cos(x) for x in given))


def batched(loss: Loss, given: Sequence[Any]) -> Any:
    return gt.vmap(_grad(loss, given))(*[np.stack([x, x * 0.5]) for x in given])


def compiled_gradient(loss: Loss, given: Sequence[Any]) -> Any:
    return gt.jit(_grad(loss, given))(*given)


def gradient_of_compiled(loss: Loss, given: Sequence[Any]) -> Any:
    return _grad(gt.jit(loss), given)(*given)


def second_of_compiled(loss: Loss, given: Sequence[Any]) -> Any:
    return second(gt.jit(loss), given)


def compiled_second(loss: Loss, given: Sequence[Any]) -> Any:
    return gt.jit(lambda *xs: second(loss, xs))(*given)


# ---- comparing ----------------------------------------------------------------------------------


def outcome(way: Way, loss: Loss, given: Sequence[Any]) -> Any:
    """What a way gives, or the error that it raises."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        gt.manual_seed(0)
        try:
            return way(loss, [np.array(x) for x in given])
        except Exception as error:
            return error


def difference(got: Any, expected: Any, tolerance: float = 0.0) -> str | None:
    """What differs; None if nothing does."""
    if isinstance(got, BudgetError):  # what a budget is too small for is refused
        return None
    if isinstance(expected, Exception):
        return None if isinstance(got, type(expected)) else f"{got!r:.200} instead of {expected!r}"
    if isinstance(got, Exception):
        return f"{type(got).__name__}: {got}"
    one, other = containers.flatten(got)[0], containers.flatten(expected)[0]
    if len(one) != len(other):
        return f"{len(one)} results instead of {len(other)}"
    for k, (x, y) in enumerate(zip(one, other, strict=True)):
        if (x is None) != (y is None):
            return f"result {k} is {x} instead of {y}"
        x, y = (
            np.asarray(value.detach() if isinstance(value, gt.Tensor) else value)
            for value in (x, y)
        )
        if x.shape != y.shape or (x.dtype != y.dtype):
            return f"result {k} is {x.dtype}{x.shape} instead of {y.dtype}{y.shape}"
        scale = max(1.0, np.abs(y[np.isfinite(y)]).max(initial=0)) * tolerance
        if not np.allclose(x, y, tolerance, scale, equal_nan=True):
            return f"result {k} is\n{x!r:.400}\ninstead of\n{y!r:.400}"
    return None


class Case(NamedTuple):
    """A way to compare with the same way without checkpointing.

    Attributes:
        name: What it is called.
        way: The way.
        reference: What to compare it with.
        loss: The function that is differentiated, of a program.
        exact: Whether no bit may differ.
    """

    name: str
    way: Way
    reference: Way
    loss: Callable[[CheckpointProgram], Loss]
    exact: bool = True

    def wrong(self, program: CheckpointProgram) -> str | None:
        """What is wrong; None if nothing is."""
        given = program.arguments()
        expected = outcome(self.reference, program.function(), given)
        single = "c" in program.inputs or "float32" in program.source
        tolerance = 0.0 if self.exact else 2e-3 if single else 1e-7
        return difference(outcome(self.way, self.loss(program), given), expected, tolerance)


def eager_cases(seed: int) -> Iterator[Case]:
    """Ways of eager code for the program of a seed: each seed has other strategies.

    Second derivatives go through replays too, which adds the same terms in another order.
    """
    names = list(CONFIGS)
    one, two = names[seed % len(names)], names[(seed // 3 + 4) % len(names)]
    config, other = CONFIGS[one], CONFIGS[two]

    def plain(program: CheckpointProgram) -> Loss:
        return program.function()

    yield Case(f"tape, {one}", on_tape(config), on_tape(), plain)
    again = on_tape(persistent=True)
    yield Case(f"persistent tape, {two}", on_tape(other, persistent=True), again, plain)
    targets = with_output_gradients()
    yield Case(f"several targets, {two}", with_output_gradients(other), targets, plain)
    yield Case(f"context, {one}", in_context(config), in_context(), plain)
    released = in_context(release=True)
    yield Case(f"released, {two}", in_context(other, release=True), released, plain)
    yield Case(f"forward, {one}", forward_along(config), forward_along(), plain)
    twice = second_on_tapes()
    yield Case(f"tapes, {one} in {two}", second_on_tapes(config, other), twice, plain, exact=False)
    twice = second_in_context()
    yield Case(f"second, {one}", second_in_context(config), twice, plain, exact=False)
    for loss in (_losses(seed))[:: 1 if seed % 2 else -1]:
        for way in (by_grad, by_vjp, released, by_jvp, batched):
            yield Case(f"checkpointed functions, {way.__name__}", way, way, loss)
        yield Case(f"checkpointed functions, {one}", on_tape(config), on_tape(), loss)
        for way in (second, forward_over_reverse, second_on_tapes()):
            yield Case(f"checkpointed functions, {way.__name__}", way, way, loss, exact=False)


def compiled_cases(seed: int) -> Iterator[Case]:
    """Ways of compiled code for the program of a seed."""
    for loss in _losses(seed)[seed % 2 :: 2]:
        for way in (compiled_gradient, gradient_of_compiled, second_of_compiled, compiled_second):
            yield Case(way.__name__, way, way, loss, exact=False)


def _losses(seed: int) -> list[Callable[[CheckpointProgram], Loss]]:
    wraps = [no_policy, any_policy(seed)]
    in_parts = [lambda program, wrap=wrap: program.function(wrap) for wrap in wraps]
    return [*in_parts, *map(all_of_it, wraps)]


def check(seed: int, *, compiled: bool = False, large: bool = False) -> None:
    """Raise if a way is wrong for the program of a seed, with the smallest program found."""
    program = checkpoint_program(seed, large=large, draws=not compiled)
    for case in compiled_cases(seed) if compiled else eager_cases(seed):
        if case.wrong(program) is not None:
            small = smaller(program, lambda p, case=case: case.wrong(p) is not None)
            raise AssertionError(f"seed {seed}, {case.name}: {case.wrong(small)}\n{small.source}")
