"""The list of benchmarks, in the order of the table."""

from collections.abc import Callable, Iterator

from benchmarks import (
    chain,
    cheap_gradient,
    digits,
    imports,
    indexed_loop,
    small_ops,
    transform,
    untracked,
)
from benchmarks.harness import Settings
from benchmarks.result import Row

Benchmark = Callable[[Settings], Iterator[Row]]

BENCHMARKS: dict[str, Benchmark] = {
    "chain": chain.run,
    "untracked": untracked.run,
    "small-ops": small_ops.run,
    "transform": transform.run,
    "indexed-loop": indexed_loop.run,
    "cheap-gradient": cheap_gradient.run,
    "digits": digits.run,
    "import": imports.run,
}
