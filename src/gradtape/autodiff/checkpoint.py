"""Checkpointed functions: what they compute on the way is not kept, but computed again.

The function itself is called once. Its ops are recorded in a stretch of their own, whose results
are dropped as its policy says; the backward pass replays the ops. So it may close over tracked
tensors, have side effects and take branches as it likes: the replay does what it did.
"""

from __future__ import annotations

import functools
import itertools
import types
from collections.abc import Callable, Sequence
from typing import Any

from gradtape.autodiff.checkpoint_config import CheckpointConfig
from gradtape.autodiff.checkpoint_policies import Keeps
from gradtape.autodiff.checkpoint_strategies import KeepNothing
from gradtape.core.portable import Portable, bound
from gradtape.core.recomputable import Recomputable, Restored
from gradtape.core.state import current, keeping, run_inside
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, a_type


class Region(KeepNothing):
    """The policy of one call of a checkpointed function.

    A call inside of another one belongs to the same block: the outer one can be replayed without
    keeping anything for the inner one.

    Args:
        keeps: Which results are kept all the same; None for none of them.
        outer: The policy in force around the call.
    """

    def __init__(self, keeps: Keeps | None = None, outer: Any = None) -> None:
        super().__init__()
        self._keeps = keeps
        self._outer = outer if isinstance(outer, Region) else None
        if self._outer is not None:
            self.block = self._outer.block

    def _fresh(self, known: dict[Any, Any]) -> Region:
        return Region(self._keeps, self._outer and self._outer.again(known))

    def chooses(self, name: str, result: Any) -> bool:
        return self._keeps is not None and self._keeps(name, result)

    def _decides(self, record: Recomputable, out: Any) -> bool:
        return self.chooses(record.op.name, record.avals)

    def _retained(
        self, stretch: Sequence[Recomputable], restored: Restored
    ) -> frozenset[Recomputable] | None:
        """What the innermost call needs, and what goes in and out of the other calls in it."""
        own = stretch[-1].policy
        if all(record.policy is own for record in stretch):
            return None
        found = {record for record in stretch if record.policy is own and record.read}
        for record in stretch:
            for source in record.sources():
                if source is not None and source[0].policy is not record.policy:
                    found.add(source[0])
        return frozenset(found)


def checkpoint(
    function: Callable[..., Any], /, *, policy: CheckpointConfig | Keeps | None = None
) -> Checkpointed:
    """Make a function keep less for the backward pass, which computes the rest again.

    Its arguments and results are kept where the backward pass needs them. Random numbers that it
    draws are kept, and the function is not called again, so side effects happen once. NumPy arrays
    that it reads must not be written to before the backward pass (`gt.detect_writes` finds that).

    Args:
        function: The function. In a program of `gt.run` it may be a lazy tensor instead, which is
            then computed again by the gradients that read it.
        policy: Which results to keep all the same: what `gt.keep_ops`, `gt.drop_ops` or
            `gt.keep_up_to` returns, or a function of the name of an op and the abstract value of
            its result; or a `gt.CheckpointConfig` to apply inside of the function.

    Returns:
        A function of the same arguments. Its attribute `plan` says, as text, what the last call
        kept and computed again, or what was planned for a compiled function with a budget.

    Raises:
        ArgumentError: It is no function, or the policy is none.

    >>> block = gt.checkpoint(lambda x, w: gt.tanh(x @ w) @ w)
    >>> gt.grad(lambda w: gt.sum(block(np.ones((2, 2)), w)))(np.zeros((2, 2)))
    array([[0., 0.],
           [0., 0.]])
    """
    if isinstance(function, Tensor) or not callable(function):
        raise ArgumentError(
            f"checkpoint: got {a_type(function)}, expected a function, as in "
            "gt.checkpoint(f)(x); to drop what eager code computes, use "
            "gt.GradientTape(checkpoint=gt.CheckpointConfig(...))"
        )
    if not (policy is None or isinstance(policy, CheckpointConfig) or callable(policy)):
        raise ArgumentError(
            f"checkpoint: got {a_type(policy)} for policy, expected gt.keep_ops(...), a "
            "function of the name of an op and its result, or a gt.CheckpointConfig"
        )

    return Checkpointed(function, policy)


class Checkpointed(Portable):
    """A function that keeps less for the backward pass; made by `gt.checkpoint`.

    >>> sine = gt.checkpoint(gt.sin)
    >>> gt.grad(lambda x: sine(gt.exp(sine(x))))(0.0)
    np.float64(0.5403023058681398)
    >>> print(sine.plan)
    kept 0 of 1 results, 0.0 of 0.0 MB; computed 0 again, about 0% of the forward pass
    """

    def __init__(
        self, function: Callable[..., Any], policy: CheckpointConfig | Keeps | None
    ) -> None:
        # Attributes set on a function are the user's; those of an object belong to the object.
        updated = ("__dict__",) if isinstance(function, types.FunctionType) else ()
        functools.update_wrapper(self, function, updated=updated)
        self._function, self._policy = function, policy
        self._last: KeepNothing | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, and drop what its policy does not keep."""
        if isinstance(self._policy, CheckpointConfig):
            policy = self._policy.policy()
        else:
            policy = Region(self._policy, current().policy)
        self._last = policy
        return run_inside(keeping(policy), functools.partial(self._function, *args, **kwargs))

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return bound(self, self._function, instance)

    def made_by(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return functools.partial(checkpoint, policy=self._policy), (self._function,)

    @property
    def plan(self) -> str:
        """What the last call kept and computed again; in a compiled function, what was planned."""
        return "not called yet" if self._last is None else self._last.plan


def checkpoint_sequential(
    functions: Sequence[Callable[[Any], Any]],
    segments: int,
    x: Any,
    *,
    policy: CheckpointConfig | Keeps | None = None,
) -> Any:
    """Apply functions one after the other, and keep only what goes from segment to segment.

    Args:
        functions: Functions of one argument each.
        segments: In how many parts to divide them. The last one keeps what it computes, as the
            backward pass begins with it.
        x: The argument of the first function.
        policy: As for `checkpoint`.

    Returns:
        The result of the last function.

    Raises:
        ArgumentError: There are fewer functions than segments, or no segment.

    >>> layers = [gt.tanh] * 6
    >>> gt.grad(lambda x: gt.checkpoint_sequential(layers, 3, x))(0.0)
    np.float64(1.0)
    """
    functions = list(functions)
    if type(segments) is not int or not 1 <= segments <= max(1, len(functions)):
        raise ArgumentError(
            f"checkpoint_sequential: got {segments!r} segments for {len(functions)} functions, "
            "expected a number from 1 to that of the functions"
        )
    bounds = [n * len(functions) // segments for n in range(segments + 1)]
    for start, end in itertools.pairwise(bounds):
        part = functools.partial(_in_turn, functions[start:end])
        x = part(x) if end == len(functions) else checkpoint(part, policy=policy)(x)
    return x


def _in_turn(functions: Sequence[Callable[[Any], Any]], x: Any) -> Any:
    for function in functions:
        x = function(x)
    return x
