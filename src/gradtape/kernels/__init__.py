"""Kernels for eager ops on large arrays: a tuple of strategies, asked in turn.

A strategy has one method, `run(task)`, which does a task (the forward of an op, or its derivative
rules) or returns `NotImplemented` (see `core.kernels`). `gt.explain_call` shows which one ran.

- `composed`: ops that state a composition of other ops with kernels;
- `tiles`: elementwise ops and ops along the last axis, cut into tiles that threads claim;
- `parts`: reductions over other axes, done in parts first;
- `whole`: ops on planes, or on shapes without rows in common, compiled for the given sizes.
"""

from __future__ import annotations

from gradtape.compiler.cpu.runtime import blocks, pool
from gradtape.kernels.composed import Composed
from gradtape.kernels.copies import Copies
from gradtape.kernels.parts import Parts
from gradtape.kernels.tile_kernels import TileKernels
from gradtape.kernels.tiles import Tiles
from gradtape.kernels.whole import WholeArrays


class Kernels:
    """All kernels of this process, compiled when they are first needed.

    Attributes:
        strategies: The ways to do a task, in the order in which they are tried.
        pooled: Calls a NumPy function whose arrays get pooled memory: `(function, *args)`.
        tiled: The kernels compiled for tiles.
        copied: Makes a C-contiguous copy of a large array that is not contiguous.
        converted: Converts a large array of 16-bit floats to float32, or back.
        copy_into: Copies an array into one of the same shape and dtype; False to leave it to NumPy.
        threads: Returns the number of threads to use.
    """

    def __init__(self) -> None:
        self.tiled = TileKernels()
        tiles = Tiles(self.tiled)
        self.strategies = (Composed(), tiles, Parts(self.tiled, tiles), WholeArrays())
        self.pooled = blocks.pooled()
        copies = Copies(self.tiled)
        self.copied, self.copy_into = copies.in_order, copies.into
        self.converted = copies.converted
        self.threads = pool.get_num_threads
