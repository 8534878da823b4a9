"""Batches loaded by threads, some ahead of the loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any

from gradtape.data.datasets import Indices
from gradtape.data.fetch import Fetch


def batches_by_threads(
    fetch: Fetch, tasks: Sequence[tuple[int, Indices]], workers: int, prefetch: int
) -> Iterator[Any]:
    """Load batches in threads, which end with the iterator.

    Args:
        fetch: Loads a batch.
        tasks: The number of each batch, and those of its items.
        workers: How many threads.
        prefetch: How many batches each is ahead.
    """
    stopped: list[bool] = []
    waiting: deque[Future[Any]] = deque()
    rest = iter(tasks)
    pool = ThreadPoolExecutor(workers, "gradtape-data")
    try:
        for number, indices in islice(rest, workers * prefetch):
            waiting.append(pool.submit(fetch, number, indices, stopped.__len__))
        while waiting:
            batch = waiting.popleft().result()
            for number, indices in islice(rest, 1):
                waiting.append(pool.submit(fetch, number, indices, stopped.__len__))
            yield batch
    finally:
        stopped.append(True)
        pool.shutdown(cancel_futures=True)
