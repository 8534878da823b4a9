"""Every error gradtape raises, and every warning, one class per kind.

Each class is also the built-in (or NumPy) exception people already catch, so `except ValueError`
around a shape mistake keeps working. Messages read `op: got …, expected …; what to do`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def a_type(value: object) -> str:
    """The name of the type of a value with its article, for messages: "a float", "an int"."""
    # Tensors are of several classes inside, whose names tell users nothing.
    name = getattr(type(value), "_name_in_messages", type(value).__name__)
    # Two capitals that cannot be spoken are spelt: "an LSTM", "an SGD", but "a LAMB".
    is_spelt = name == "ndarray" or (name[:2].isupper() and name[1:2] not in "AEIOU")
    vowels = "AEFHILMNORSX" if is_spelt else "AEIO"
    return f"{'an' if name[0].upper() in vowels else 'a'} {name}"


class GradtapeError(Exception):
    """Base class of all errors of gradtape."""


class ShapeError(GradtapeError, ValueError):
    """Shapes that do not fit: `gt.ones(3) + gt.ones(4)`. Reshape or broadcast one of them."""


class AxisError(GradtapeError, ValueError, IndexError):
    """An axis the array does not have: `gt.sum(gt.ones(3), axis=1)`."""


class IndexingError(GradtapeError, IndexError):
    """An index out of bounds or of a kind arrays do not take: `gt.ones(3)[5]`."""


class LinAlgError(GradtapeError, np.linalg.LinAlgError):
    """A matrix the algorithm cannot handle: `gt.solve` with a singular matrix."""


class ConvergenceError(GradtapeError, ArithmeticError, RuntimeError):
    """A solver that did not find a solution: `gt.implicit.root` of a function that has no root.

    Begin elsewhere, allow more steps, or raise the tolerance. SciPy raises RuntimeError for that.
    """


class DTypeError(GradtapeError, TypeError):
    """A dtype the operation cannot use: `gt.grad(f)(np.arange(3))`; integers have no gradient."""


class ArgumentError(GradtapeError, ValueError):
    """An argument with a value that has no meaning here: `gt.linspace(0, 1, -3)`."""


class IntegerOverflowError(GradtapeError, OverflowError):
    """A Python integer that does not fit into 64 bits in a compiled function: `n * n`."""


class DivisionByZeroError(GradtapeError, ZeroDivisionError):
    """A Python integer divided by 0 in a compiled function: `n // 0`."""


class NonFiniteError(GradtapeError, FloatingPointError):
    """A loss or gradient that is NaN or infinite where it must be finite: clipping by its norm."""


class MissingNameError(GradtapeError, AttributeError):
    """A name that gradtape does not have, or calls something else: `gt.cat`; the text says what."""

    def __init__(
        self, name: str, advice: Callable[[str], str | None], owner: str = "module 'gradtape'"
    ) -> None:
        super().__init__(f"{owner} has no attribute {name!r}")
        self.name: str = name
        self._advice = advice

    def __str__(self) -> str:
        # Looked up when the text is read, so that `hasattr` does not wait for it.
        advice = self._advice(self.name)
        return f"{self.args[0]}; {advice}" if advice else str(self.args[0])


class VariableError(GradtapeError, KeyError):
    """A variable that an environment does not have: `env.id_of("w")`; the text lists the names."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would put the text in quotes


class DataError(GradtapeError, RuntimeError):
    """An item that a loader cannot load; the text has its number, the cause what went wrong."""


class WorkerError(DataError):
    """A worker process of a loader that died: killed by the system when memory is short, say."""


class SaveError(GradtapeError, OSError):
    """A checkpoint that cannot be written, to a full disk, say; the one before it is whole."""


class FileFormatError(GradtapeError, ValueError):
    """A file that is truncated, damaged or of another format: `gt.load("text.txt")`."""


class OffloadError(GradtapeError, OSError):
    """A kept result that cannot go to disk: `offload=True` on a full disk. Use another folder."""


class WriteError(GradtapeError, ValueError):
    """A write that would lose history or go astray: `w[0] = 1.0` on a leaf outside `no_grad`."""


class ConversionError(GradtapeError, TypeError):
    """Turning a recorded tensor into a number or array would lose its history: `float(x * 2)`.

    Read the value with `t.item()` or `t.detach()`; keep the history with `np.zeros_like(x)` buffers
    and `np.stack`.
    """


class UnsupportedError(GradtapeError, NotImplementedError, TypeError):
    """A NumPy function gradtape does not have yet, called on a tensor."""


class NotDifferentiableError(GradtapeError, TypeError):
    """A derivative was asked for that does not exist; `detach()` the argument if that is meant."""


class MissingRuleError(NotDifferentiableError, NotImplementedError):
    """A primitive of `gradtape.compat.autograd` without a rule: add one by `defvjp`, `defjvp`."""


class AnomalyError(GradtapeError, FloatingPointError):
    """A value or derivative that is not finite, found by `gt.detect_anomaly`."""


class TapeError(GradtapeError, RuntimeError):
    """A tape that cannot answer: used twice, cleared, or asked about a tensor it never saw."""


class BudgetError(TapeError, MemoryError):
    """A memory budget that cannot be met; the error says what the least is."""


class ContextError(TapeError):
    """A tensor recorded in one gradient context was used in another; `detach()` it to carry it."""


class LeakedTensorError(GradtapeError, RuntimeError):
    """A tensor of a transform was used after the transform returned; return it instead."""


class UnknownSizeError(GradtapeError, RuntimeError):
    """A size that is known only when a placeholder is fed: `x.shape` if x was made with -1."""

    def __init__(self, message: str, defer: Callable[..., Any] | None = None) -> None:
        super().__init__(message)
        self._defer = defer

    def deferred(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        count: int | None = None,
    ) -> Any:
        """The call that asked for the size, put off until the size is known.

        Args:
            function: The function that was called.
            args: Its arguments.
            kwargs: Its keyword arguments.
            count: The number of results if it returns a list of them; None for any result.

        Returns:
            A lazy tensor for the result, or a list of them.

        Raises:
            UnknownSizeError: It cannot be put off.
        """
        if self._defer is None:
            raise self
        return self._defer(self, function, args, kwargs, count)


class FailedAssertionError(GradtapeError, AssertionError):
    """A condition of `gt.graph.assert_that` that does not hold for the values of an evaluation."""


class PatternError(GradtapeError, ValueError):
    """A sparsity pattern that is too small, or no longer sparse; the text names a row or column.

    `gt.sparse_jacobian(f, pattern=p)` needs a place in `p` wherever the Jacobian is not zero;
    `gt.jacobian_sparsity(f)(x)` finds such a pattern.
    """


class NondeterministicError(GradtapeError, RuntimeError):
    """Something that may give another result in the next run, where that is not allowed.

    `gt.randn(3)` without a seed in a block of `gt.deterministic()`; the text says what to do.
    """


class GradientCheckError(GradtapeError, AssertionError):
    """A derivative disagrees with differences of the function: a rule is wrong."""


class GradtapeWarning(UserWarning):
    """Base class of all warnings of gradtape."""


class FrozenRandomWarning(GradtapeWarning):
    """Random numbers of NumPy or Python that a compiled function draws: the same at each call.

    Draw with `gt.random`, or pass the numbers as an argument.
    """


class NondeterministicWarning(GradtapeWarning):
    """Something that may give another result in the next run, found by `DeterministicMode.Warn`."""


class UnusedScopeWarning(GradtapeWarning):
    """A call of `gt.set_grad_enabled` without `with`, as PyTorch has it: it changed nothing."""


class DifferencesWarning(GradtapeWarning):
    """SciPy takes differences of a function that gradtape cannot differentiate: `math.sin(x)`.

    Use NumPy's functions, and `np.stack` instead of `np.array`; or say so with `jac="2-point"`.
    """


class GrowingHistoryWarning(GradtapeWarning):
    """A compiled training step without `no_grad`: each call adds to the history of the module.

    Call it in a block of `gt.no_grad()`; `gt.grad` inside of the function works all the same.
    """


class UnrolledLoopWarning(GradtapeWarning):
    """A Python loop in a compiled function became thousands of operations, one after the other."""
