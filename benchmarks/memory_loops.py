"""Loops as users write them, none of which may need more memory the longer it runs.

A loop asks before each iteration whether it is to go on, so that memory can be measured at that
point. `LOOPS` has all of them, by name.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

import gradtape as gt

SIZE = 1_000
"""Numbers in an array: a history that is not freed is seen at once."""
LARGE = 20_000
"""Numbers in an array that is so large that gradtape keeps its memory for the next one."""
DATA = np.linspace(-1.0, 1.0, SIZE)

GoOn = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop, and the bytes that its iterations leave behind on purpose."""

    run: Callable[[GoOn], None]
    kept: int = 0


class StopError(Exception):
    """What some loops raise, and catch again."""


def loss(x: Any) -> Any:
    """Compute something of a few ops."""
    return gt.sum(gt.exp(x * 0.5) + gt.sin(x)[::-1] * x)


def _leaf(size: int = SIZE) -> Any:
    return gt.tensor(np.linspace(-1.0, 1.0, size), requires_grad=True)


# ---- contexts -----------------------------------------------------------------------------------


def default_context(go_on: GoOn) -> None:
    """Step after step, nothing cleared; some of it is never differentiated."""
    x = _leaf()
    while go_on():
        loss(x).backward()
        loss(x)
        x.grad = None


def cleared_context(go_on: GoOn) -> None:
    """The tape cleared after every step."""
    with gt.GradientContext():
        x = _leaf()
        while go_on():
            loss(x).backward()
            x.zero_grad()
            gt.clear_tape()


def released(go_on: GoOn) -> None:
    """A backward pass that frees as it goes."""
    x = _leaf()
    while go_on():
        loss(x).backward(release=True)
        x.grad = None


def new_contexts(go_on: GoOn) -> None:
    """A context for every step."""
    x = _leaf()
    while go_on():
        with gt.GradientContext():
            gt.compute_gradients(loss(x))
        x.grad = None


def large_arrays(go_on: GoOn) -> None:
    """Arrays whose memory waits for the next ones."""
    x = _leaf(LARGE)
    while go_on():
        loss(x).backward()
        x.grad = None


def created_graph(go_on: GoOn) -> None:
    """Gradients that are differentiated again."""
    x = _leaf()
    while go_on():
        loss(x).backward(create_graph=True)
        slope, x.grad = x.grad, None
        gt.sum(slope * slope).backward()
        x.grad = None


# ---- results that are kept ----------------------------------------------------------------------


def kept_numbers(go_on: GoOn) -> None:
    """Losses kept as numbers."""
    x, losses = _leaf(), []
    while go_on():
        value = loss(x)
        value.backward()
        losses.append(value.item())
        x.grad = None


def kept_tensors(go_on: GoOn) -> None:
    """Losses kept as tensors of contexts that ended."""
    x, losses = _leaf(), []
    while go_on():
        with gt.GradientContext():
            losses.append(loss(x))
            losses[-1].backward()
        x.grad = None


def kept_after_clearing(go_on: GoOn) -> None:
    """Losses kept as tensors of a tape that is cleared."""
    x, losses = _leaf(), []
    while go_on():
        losses.append(loss(x))
        losses[-1].backward()
        gt.clear_tape()
        x.grad = None


# ---- tapes and transforms -----------------------------------------------------------------------


def _taped(make: Callable[[], Any], go_on: GoOn) -> None:
    while go_on():
        with make() as tape:
            x = tape.watch(DATA)
            y = loss(x)
        tape.gradient(y, x)


def tapes(go_on: GoOn) -> None:
    """Tapes that answer once."""
    _taped(gt.GradientTape, go_on)


def persistent_tapes(go_on: GoOn) -> None:
    """Tapes that may answer again."""
    _taped(lambda: gt.GradientTape(persistent=True), go_on)


def checkpointed_tapes(go_on: GoOn) -> None:
    """Tapes that keep every second record."""
    config = gt.CheckpointConfig(strategy=gt.CheckpointStrategy.Block, checkpoint_every_n=2)
    _taped(lambda: gt.GradientTape(checkpoint=config), go_on)


def one_tape(go_on: GoOn) -> None:
    """The same tape, entered again and again."""
    tape = gt.GradientTape()
    _taped(lambda: tape, go_on)


def nested_tapes(go_on: GoOn) -> None:
    """A tape that differentiates what another one computed."""
    while go_on():
        with gt.GradientTape() as outer:
            x = outer.watch(DATA)
            with gt.GradientTape() as inner:
                y = inner.watch(x)
                z = loss(y)
            slope = gt.sum(inner.gradient(z, y))
        outer.gradient(slope, x)


def unused_tapes(go_on: GoOn) -> None:
    """Tapes that are never asked, their results kept for one iteration."""
    while go_on():
        tape = gt.GradientTape()
        y = loss(tape.watch(DATA))
    del y


def gradients(go_on: GoOn) -> None:
    """`gt.grad`, of a new function each time."""
    while go_on():
        gt.grad(lambda x: loss(x))(DATA)


def second_gradients(go_on: GoOn) -> None:
    """`gt.grad` of `gt.grad`."""
    slope = gt.grad(lambda x: gt.sum(gt.grad(loss)(x) ** 2))
    while go_on():
        slope(DATA)


def compiled(go_on: GoOn) -> None:
    """A compiled function, differentiated eagerly."""
    function, x = gt.jit(loss), _leaf()
    while go_on():
        function(x).backward()
        x.grad = None


def compiled_gradients(go_on: GoOn) -> None:
    """A compiled gradient."""
    gradient = gt.jit(gt.grad(loss))
    while go_on():
        gradient(DATA)


def checkpointed_functions(go_on: GoOn) -> None:
    """A function that is computed again in the backward pass."""
    function, x = gt.checkpoint(loss), _leaf()
    while go_on():
        function(x).backward()
        x.grad = None


# ---- what does not come to its end --------------------------------------------------------------


def failing_forward(go_on: GoOn) -> None:
    """Errors in the middle of what is recorded."""
    x = _leaf()

    def function(x: Any) -> Any:
        y = gt.exp(x)
        raise StopError(y)

    while go_on():
        for run in (lambda: function(x), lambda: gt.grad(function)(DATA)):
            with suppress(StopError):
                run()


def failing_backward(go_on: GoOn) -> None:
    """Errors in the middle of a backward pass, of every kind of walk."""
    x = _leaf()

    @gt.custom_vjp
    def wrong(x: Any) -> Any:
        return gt.sin(x)

    @wrong.defvjp
    def _rule(ct: Any, _out: Any, _x: Any) -> Any:
        raise StopError(ct)

    def run(**options: Any) -> None:
        gt.sum(gt.exp(wrong(gt.exp(x)))).backward(**options)

    while go_on():
        for options in ({}, {"release": True}, {"create_graph": True}):
            with suppress(StopError):
                run(**options)


def abandoned_generators(go_on: GoOn) -> None:
    """Generators that are left in the middle of a context, or of a tape."""
    x = _leaf()

    def steps() -> Iterator[Any]:
        with gt.GradientTape() as tape:
            y = loss(tape.watch(DATA))
            yield y
            tape.gradient(y, y)

    def in_context() -> Iterator[Any]:
        with gt.no_grad():
            yield loss(x)
        yield loss(x)

    while go_on():
        next(steps())
        generator = in_context()
        next(generator)
        next(generator)


def threads(go_on: GoOn) -> None:
    """A thread for every step."""

    def step() -> None:
        x = _leaf()
        loss(x).backward()
        gt.grad(loss)(DATA)

    while go_on():
        thread = threading.Thread(target=step)
        thread.start()
        thread.join()


def lazy_graph(go_on: GoOn) -> None:
    """A lazy graph, evaluated again and again."""

    def program(ctx: Any) -> None:
        x = ctx.placeholder("x", (SIZE,))
        y = loss(x)
        (slope,) = gt.graph.grad([y], [x])
        while go_on():
            ctx.evaluator().push(y).push(slope).feed(x, DATA).run()

    gt.run(program)


def growing_lazy_programs(go_on: GoOn) -> None:
    """A lazy program for every step."""

    def program(ctx: Any) -> Any:
        x = ctx.placeholder("x", (SIZE,))
        return gt.sum(x * x).eval(ctx, {x: DATA})

    while go_on():
        gt.run(program)


# The tensor of a loss: handle, array of one number, and its record, freed of all it held. The
# history of one is ten times as much.
_LOSS = 1_000

LOOPS: dict[str, Loop] = {
    "default context, never cleared": Loop(default_context),
    "context, cleared each time": Loop(cleared_context),
    "`backward(release=True)`": Loop(released),
    "new contexts": Loop(new_contexts),
    "large arrays": Loop(large_arrays),
    "`create_graph=True`": Loop(created_graph),
    "losses kept as numbers": Loop(kept_numbers, kept=40),
    "losses kept as tensors of contexts": Loop(kept_tensors, kept=_LOSS),
    "losses kept, tape cleared": Loop(kept_after_clearing, kept=_LOSS),
    "tapes": Loop(tapes),
    "persistent tapes": Loop(persistent_tapes),
    "checkpointed tapes": Loop(checkpointed_tapes),
    "one tape again and again": Loop(one_tape),
    "nested tapes": Loop(nested_tapes),
    "tapes never asked": Loop(unused_tapes),
    "`gt.grad`": Loop(gradients),
    "`gt.grad` of `gt.grad`": Loop(second_gradients),
    "`gt.jit`": Loop(compiled),
    "`gt.jit` of `gt.grad`": Loop(compiled_gradients),
    "`gt.checkpoint`": Loop(checkpointed_functions),
    "errors in the forward pass": Loop(failing_forward),
    "errors in the backward pass": Loop(failing_backward),
    "abandoned generators": Loop(abandoned_generators),
    "threads": Loop(threads),
    "a lazy graph": Loop(lazy_graph),
    "lazy programs": Loop(growing_lazy_programs),
}
