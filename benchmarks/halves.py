"""Training steps with activations in bfloat16 against the same in float32: memory and time.

The weights stay in float32 and are cast in the step. Memory is the peak of a step in a fresh
process, time is that of the steps in turns in one process.
"""

from collections.abc import Iterator, Sequence

import numpy as np

import gradtape as gt
from benchmarks.agreement import assert_agree
from benchmarks.halves_worker import DTYPES, NETS, case
from benchmarks.harness import Contender, Settings
from benchmarks.result import NotRun, Row, compare
from benchmarks.training import ConvNet
from benchmarks.worker import answer_of
from gradtape.data import load_digits
from gradtape.tools.peak_memory import PEAK_RESET
from gradtape.tools.statistics import Spread

NAME = "16-bit activations"
MEMORY, TIME = 0.6, 1.05
PROCESSES = 3
# How much accuracy may be lost, in points.
POINTS = 1.0
SEEDS, EPOCHS = 5, 8


def run(settings: Settings) -> Iterator[Row | NotRun]:
    """Measure every network."""
    yield _accuracy(range(SEEDS if settings.rounds > 2 else 1))
    for net in NETS:
        yield from _times(net, settings)
        if PEAK_RESET.exists():
            yield _peaks(net, min(settings.rounds, PROCESSES))
        else:
            yield NotRun(NAME, gt.__name__, f"{PEAK_RESET} is needed, which is Linux's")


def _accuracy(seeds: Sequence[int]) -> Row:
    """Compare what a convolution network learns in both, in points of test accuracy."""
    shares = np.array([[_learned(seed, dtype) for dtype in DTYPES] for seed in seeds])
    wide, half = 100 * shares.mean(axis=0)
    return Row(
        name=NAME,
        what=f"test accuracy of a conv net on digits after {EPOCHS} epochs in per cent, mean of "
        f"{len(seeds)} seeds; as ratio the points that are lost",
        ours=half,
        peer_name="float32",
        peer=wide,
        ratio=Spread.of([wide - half]),
        bar=POINTS,
        unit="%",
    )


def _learned(seed: int, dtype: str) -> float:
    """The share of test images that a network trained in a dtype knows."""
    images, labels, test_images, test_labels, *_ = load_digits()
    images, test_images = (
        np.asarray(x, np.float32).reshape(-1, 1, 8, 8) / np.max(x) for x in (images, test_images)
    )
    gt.manual_seed(seed)
    net = ConvNet()
    data = gt.data.TensorDataset(images, np.asarray(labels, np.int64))
    amp = gt.AmpConfig(enabled=True, precision_mode=gt.PrecisionMode.BFloat16)
    gt.fit(
        net,
        lambda net, batch: gt.nn.cross_entropy(net(batch[0]), batch[1]),
        gt.optim.Adam(lr=2e-3),
        gt.data.DataLoader(data, batch_size=32, shuffle=True, seed=seed),
        epochs=EPOCHS,
        amp=amp if dtype == "bfloat16" else None,
        compile=True,
        progress=False,
    )
    with gt.no_grad(), gt.autocast(enabled=dtype == "bfloat16", dtype=gt.bfloat16):
        guesses = np.argmax(np.asarray(net.eval()(test_images), np.float32), axis=1)
    return float((guesses == np.asarray(test_labels)).mean())


def _times(net: str, settings: Settings) -> list[Row]:
    sides, losses = [], []
    for dtype in DTYPES:
        step, arguments = case(net, getattr(gt, dtype))
        losses.append(np.asarray(step(*arguments)[0]))
        sides.append(Contender(dtype, lambda step=step, arguments=arguments: step(*arguments)))
    assert_agree(f"loss of {net}", losses[1], losses[0], rtol=0.02)
    what = f"compiled training step of {NETS[net].what}, bfloat16 / float32"
    return compare(NAME, what, sides[1], [(sides[0], TIME)], settings)


def _peaks(net: str, rounds: int) -> Row:
    answers = [
        [answer_of("benchmarks.halves_worker", net, dtype) for dtype in DTYPES]
        for _ in range(rounds)
    ]
    wide, half = ([int(pair[k]["bytes"]) for pair in answers] for k in range(2))
    return Row(
        name=NAME,
        what=f"the same: memory at the peak of a step of {NETS[net].what}",
        ours=Spread.of(half).median,
        peer_name="float32",
        peer=Spread.of(wide).median,
        ratio=Spread.of([h / w for h, w in zip(half, wide, strict=True)]),
        bar=MEMORY,
        unit="bytes",
    )
