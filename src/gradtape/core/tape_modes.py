"""Modes of tapes: they see every op on a tensor of their tape, also outside of its `with` block.

They are found from the operands. Ops look for them only if there is a segment with modes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradtape.core.level import WITH_MODES, Level
from gradtape.core.state import Mode, current, in_force, seen_by
from gradtape.core.tensor import Tensor
from gradtape.errors import TapeError


def tapes_with_modes(values: Iterable[Any], *, ended: bool = False) -> list[Level]:
    """The tapes with modes that record some values, at any level, the innermost first.

    Args:
        values: Arrays, tensors and anything else.
        ended: Whether those count that do not record at present: for derivatives of what they did.
    """
    state = current()
    found: set[Level] = set()
    for value in values:
        while isinstance(value, Tensor):
            value = value.fresh()
            if value.record is not None and value.record.segment.modes:
                level = value.record.segment
                recording = level.active and not state.stops(level.number)
                if (ended or recording) and level.number > state.inner:
                    found.add(level)
            value = value.value
    return sorted(found, key=lambda level: -level.number)


def modes_for(values: Iterable[Any], *, ended: bool = False) -> tuple[Mode, ...]:
    """The modes in force for an op on some values: those of blocks, then those of tapes.

    Raises:
        TapeError: A function that is being traced uses a tensor from outside whose tape has modes
            that the function is not traced for.
    """
    modes = current().modes
    tapes = tapes_with_modes(values, ended=ended) if WITH_MODES else []
    if not tapes:
        return modes
    blocks = tuple([mode for mode in modes if mode.kind != "tracing"])
    tracing = modes[len(blocks) :]
    for tape in tapes:
        if tracing and tape.number < tracing[0].number:  # type: ignore[attr-defined]
            check_traced_for(tape, blocks)
    # Those that only look see the call of the traced function, and not what it is traced into.
    made_outside = tracing[0].number if tracing else -1  # type: ignore[attr-defined]
    further = [
        mode
        for tape in tapes
        for mode in tape.modes
        if mode not in blocks and (mode.kind == "rewriting" or tape.number > made_outside)
    ]
    return (*in_force((*blocks, *further)), *tracing)


def check_traced_for(tape: Level, modes: tuple[Mode, ...]) -> None:
    """Raise unless the modes of a tape are among those that a function is traced for.

    Raises:
        TapeError: They are not; the function would be compiled without them.
    """
    rewriting = [mode for mode in tape.modes if mode.kind == "rewriting"]
    further = [mode for mode in rewriting if mode not in modes]
    if len(in_force((*modes, *further))) > len(modes):
        raise TapeError(
            "a traced function uses a tensor from outside whose tape has a config of its own, and "
            "would be compiled without that; pass the tensor as an argument, or call the function "
            "inside `with tape:`"
        )


def tapes_in_force(values: Iterable[Any], *, ended: bool = False) -> seen_by | None:
    """A scope in which the modes of the tapes of some values are in force; None if they are."""
    if not WITH_MODES:
        return None
    state = current()
    modes = modes_for(values, ended=ended)
    same = len(modes) == len(state.modes)
    return None if same else seen_by(modes, state.hidden, inner=state.inner)
