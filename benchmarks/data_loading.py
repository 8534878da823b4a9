"""What a loader adds to each batch of arrays that are in memory: one epoch, nothing computed."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

import gradtape as gt
from benchmarks.agreement import assert_agree
from benchmarks.harness import Contender, Settings
from benchmarks.result import OURS, Row, compare

ITEMS, SIZE = 4096, 64
BATCHES = (32, 256)
BAR = 0.2


def run(settings: Settings) -> Iterator[Row]:
    """Time an epoch of a loader, in order and shuffled; both make their order anew each time."""
    x = np.random.default_rng(0).normal(size=(ITEMS, SIZE)).astype(np.float32)
    labels = np.arange(ITEMS)
    ours = gt.data.TensorDataset(x, labels)
    torchs = TensorDataset(torch.tensor(x), torch.tensor(labels))
    for batch_size in BATCHES:
        for shuffle in (True, False):
            loader = gt.data.DataLoader(ours, batch_size, shuffle)
            peer = DataLoader(torchs, batch_size, shuffle)
            for batches in (loader, peer):
                seen = np.sort(np.concatenate([np.asarray(one[1]) for one in batches]))
                assert_agree("items of an epoch", seen, labels, rtol=0)
            order = "shuffled" if shuffle else "in order"
            yield from compare(
                f"loader, batches of {batch_size}, {order}",
                f"a batch of {batch_size} rows of {SIZE} float32 and their labels, {order}",
                Contender(OURS, _epoch(loader)),
                [(Contender("PyTorch", _epoch(peer)), BAR)],
                settings,
                per=len(loader),
            )


def _epoch(loader: Any) -> Callable[[], object]:
    return lambda: deque(loader, maxlen=0)
