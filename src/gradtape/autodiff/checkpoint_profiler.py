"""`CheckpointProfiler`: how much memory checkpoints save."""

from __future__ import annotations

from gradtape.core.checkpoint_statistics import STATISTICS, CheckpointStatistics


class CheckpointProfiler:
    """Measures what checkpoints save, from `start_tracking` on, in this thread or task.

    - Of tapes, contexts and transforms, by `gt.CheckpointConfig` or `gt.checkpoint(f)`: when a
      backward pass begins, it counts the arrays that rules will read and that are gone. One that
      somebody still holds, such as a variable of the program, does not count.
    - Of lazy graphs: when a tensor is evaluated, it compares the memory for results on the way with
      that of the same graph with nothing computed twice: the planned memory of compiled graphs, and
      the most that is there at once in the first run, op by op.

    Functions compiled by `gt.jit` are not measured; `explain(...).temporary_bytes` says what they
    take.

    >>> config = gt.CheckpointConfig(strategy=gt.CheckpointStrategy.Full)
    >>> gt.CheckpointProfiler.start_tracking()
    >>> tape = gt.GradientTape(checkpoint=config)
    >>> x = h = tape.watch(np.ones(1000))
    >>> for _ in range(10):
    ...     h = gt.sin(h)
    >>> gradient = tape.gradient(h, x)
    >>> gt.CheckpointProfiler.memory_saved(), gt.CheckpointProfiler.checkpoint_count()
    (72000, 9)
    >>> gt.CheckpointProfiler.reset_statistics()
    """

    @staticmethod
    def start_tracking() -> None:
        """Begin to measure, with all numbers at 0."""
        STATISTICS.set(CheckpointStatistics())

    @staticmethod
    def memory_saved() -> int:
        """The bytes that were saved in one backward pass, or one evaluation: the most so far."""
        found = STATISTICS.get()
        return 0 if found is None else found.saved

    @staticmethod
    def checkpoint_count() -> int:
        """The number of checkpoints that dropped something, of all backward passes together.

        These are records of tapes with a `gt.CheckpointConfig`, calls of functions wrapped by
        `gt.checkpoint`, and, each time a gradient of a lazy graph is built, its tensors, groups and
        functions.
        """
        found = STATISTICS.get()
        return 0 if found is None else found.checkpoints

    @staticmethod
    def reset_statistics() -> None:
        """Stop measuring, and forget the numbers."""
        STATISTICS.set(None)
