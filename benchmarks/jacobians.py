"""Jacobians of recorded programs: what the scheduler chooses, against each fixed mode.

Every program is recorded once; what is timed is `tape.jacobian`, the choice included.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import gradtape as gt
from benchmarks.agreement import assert_agree
from benchmarks.harness import Contender, Settings, measure
from benchmarks.result import Row, row_of
from gradtape.tools.statistics import Spread

MODES = ("forward", "reverse")
# How much more than the better fixed mode the choice may take, and what cutting a bow tie gains.
BAR, BOW_TIE_BAR = 1.1, 5.0
RNG = np.random.default_rng(0)
WIDE = RNG.normal(size=(200, 200)) / 14
DOWN, UP = RNG.normal(size=(2, 200)) / 14, RNG.normal(size=(200, 2))


@dataclass(frozen=True)
class Program:
    """A function, its argument, and what it is."""

    name: str
    function: Callable[[Any], Any]
    x: Any
    bow_tie: bool = False


def _chain(h: Any, steps: int = 10) -> Any:
    for _ in range(steps):
        h = np.sin(h) * 1.01 + 0.1
    return h


def _layers(h: Any, count: int) -> Any:
    for _ in range(count):
        h = np.tanh(WIDE @ h)
    return h


def _bow_tie(x: Any) -> Any:
    return _layers(UP @ (DOWN @ _layers(x, 8)), 8)


def layered(seed: int, layers: int = 20) -> tuple[Callable[[Any], Any], Any]:
    """A random DAG: layers of random widths, each of which reads one or two earlier ones."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([10, 40, 150, 400], size=layers)
    sizes[0], sizes[-1] = rng.choice([100, 150, 250], size=2)
    reads = [
        {n - 1, int(rng.integers(max(0, n - 3), n))} if rng.random() < 0.5 else {n - 1}
        for n in range(1, layers)
    ]
    weights = [
        [(m, rng.normal(size=(sizes[n + 1], sizes[m])) / np.sqrt(sizes[m])) for m in sorted(own)]
        for n, own in enumerate(reads)
    ]

    def function(x: Any) -> Any:
        values = [x]
        for terms in weights:
            total = None
            for place, weight in terms:
                term = weight @ values[place]
                total = term if total is None else total + term
            values.append(np.tanh(total))
        return values[-1]

    return function, rng.normal(size=sizes[0])


def programs() -> list[Program]:
    """All programs."""
    grid = np.linspace(0.0, 1.0, 1000)
    return [
        Program("1 → 1000", lambda t: _chain(t * grid), np.float64(0.5)),
        Program("1000 → 1", lambda x: np.sum(_chain(x)), grid),
        Program("200 → 2 → 200", _bow_tie, np.linspace(-1.0, 1.0, 200), bow_tie=True),
        *(Program(f"random layered DAG {seed}", *layered(seed)) for seed in (1, 2, 3)),
    ]


def run(settings: Settings) -> Iterator[Row]:
    """Time the choice against the fixed modes, and a whole Jacobian against PyTorch's."""
    for program in programs():
        yield from _against_modes(program, settings)
    yield from _against_torch(settings)


def _against_modes(program: Program, settings: Settings) -> Iterator[Row]:
    contenders, found = [], {}
    for mode in ("auto", *MODES):
        config = gt.SchedulerConfig(strategy=gt.SchedulingStrategy(mode))
        tape = gt.GradientTape(persistent=True, scheduler=config)
        x = tape.watch(program.x)
        y = program.function(x)
        found[mode] = np.asarray(tape.jacobian(y, x))
        chosen = tape.schedule.mode if mode == "auto" else mode
        if mode == "auto":
            name = f"auto ({chosen})"
        contenders.append(Contender(mode, lambda tape=tape, x=x, y=y: tape.jacobian(y, x)))
    for mode in MODES:
        assert_agree(program.name, found["auto"], found[mode], rtol=1e-9)
    samples = measure(contenders, settings)
    medians = {mode: Spread.of(samples[mode]).median for mode in MODES}
    best = min(medians, key=medians.__getitem__)
    what = f"`tape.jacobian`, {program.name}, {name} / the better fixed mode"
    yield row_of(f"jacobian {program.name}", what, samples, "auto", best, BAR)
    if program.bow_tie:
        for mode in MODES:
            yield Row(
                name=f"jacobian {program.name}",
                what=f"`tape.jacobian`, {program.name}, {mode} / {name}",
                ours=Spread.of(samples["auto"]).median,
                peer_name=mode,
                peer=medians[mode],
                ratio=Spread.of_ratio(samples[mode], samples["auto"]),
                bar=BOW_TIE_BAR,
                speedup=True,
            )


def _against_torch(settings: Settings) -> Iterator[Row]:
    """The bow tie as users call it, the function included."""
    wide, down, up = (torch.tensor(array) for array in (WIDE, DOWN, UP))

    def layers(h: torch.Tensor) -> torch.Tensor:
        for _ in range(8):
            h = torch.tanh(wide @ h)
        return h

    def bow_tie(x: torch.Tensor) -> torch.Tensor:
        return layers(up @ (down @ layers(x)))

    x = np.linspace(-1.0, 1.0, 200)
    leaf = torch.tensor(x)
    ours = gt.jacobian(_bow_tie)
    peers = {"torch.func.jacrev": torch.func.jacrev, "torch.func.jacfwd": torch.func.jacfwd}
    contenders = [Contender("gradtape", lambda: ours(x))]
    for name, transform in peers.items():
        theirs = transform(bow_tie)
        assert_agree(name, ours(x), theirs(leaf), rtol=1e-9)
        contenders.append(Contender(name, lambda of=theirs: of(leaf)))
    samples = measure(contenders, settings)
    for name in peers:
        what = "`gt.jacobian(f)(x)`, 200 → 2 → 200, whole call"
        yield row_of("jacobian, whole call", what, samples, "gradtape", name, None)
