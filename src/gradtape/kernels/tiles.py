"""By tiles: an op, or its derivative rules, compiled for a part of the arrays and run on each.

A rule that takes several passes over memory then takes one. A tile is some elements of the arrays
of an elementwise op, whatever their size, or some rows of arrays along whose last axis an op works,
such as softmax: then it is compiled for that length.

Only sizes, dtypes and parameters decide whether tiles are used, so that the same call gives the
same bits each time.
"""

from __future__ import annotations

from typing import Any

from gradtape.core.aval import aval_of
from gradtape.core.call import call
from gradtape.core.kernels import Task
from gradtape.kernels.tile_kernels import (
    Bounded,
    TileCall,
    TileKernels,
    constant_of,
    signature,
)
from gradtape.kernels.tile_rules import TiledRules
from gradtape.kernels.tiling import TileOperands, tiling_of


class Tiles:
    """The prepared calls by tiles.

    Attributes:
        rules: The calls for derivative rules.
    """

    name = "tiles"
    for_elements = True

    def __init__(self, kernels: TileKernels) -> None:
        self.rules = TiledRules(kernels)
        self._kernels = kernels
        self._calls = Bounded()

    def run(self, task: Task) -> Any:
        if task.wanted is not None:
            return self.rules.run(task)
        op, operands, params, _ = task
        constant = constant_of(op, operands)
        key = (op, constant, *map(signature, operands), *params.items())
        tiled = self._calls.find(key, self._tiled, task, constant)
        return NotImplemented if tiled is None else tiled(operands)[0]

    def _tiled(self, task: Task, constant: float | None) -> TileCall | None:
        op, operands, params, _ = task
        tiling = tiling_of(op, operands, params)
        if tiling is None:
            return None
        if op.kind == "elementwise":
            operands = [tiling.lined_up(x) for x in operands]
        dtype = op.infer(*map(aval_of, operands), **tiling.params).dtype
        found = TileOperands.of(operands, tiling, dtype)

        def function(*tiles: Any) -> Any:
            given = list(tiles) if constant is None else [*tiles[:-1], constant]
            return call(op, given, tiling.params)

        key = (constant, *tiling.params.items())
        return self._kernels.call(op, key, function, found, tiling)
