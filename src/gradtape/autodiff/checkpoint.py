"""Checkpointed functions: what they compute on the way is not kept, but computed again.

The function itself is called once. Its ops are recorded in a stretch of their own, whose results
are dropped as its policy says; the backward pass replays the ops. So it may close over tracked
tensors, have side effects and take branches as it likes: the replay does what it did.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import types
from collections.abc import Callable, Sequence
from typing import Any, overload

from gradtape.autodiff.batch import BatchLevel
from gradtape.autodiff.checkpoint_config import CheckpointConfig
from gradtape.autodiff.checkpoint_policies import Keeps, check_bytes
from gradtape.autodiff.checkpoint_strategies import KeepNothing
from gradtape.core.batching import batch_in_place
from gradtape.core.call import call
from gradtape.core.lowering import Relabel
from gradtape.core.nested import unshell
from gradtape.core.op import EVERY, Facts, Op, infer_like
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

    is_one_checkpoint = True

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

    def retained(
        self, stretch: Sequence[Recomputable], restored: Restored
    ) -> frozenset[Recomputable] | None:
        """What the innermost call needs, and what goes in and out of the other calls in it."""
        own = stretch[-1].policy
        if all(record.policy is own for record in stretch):
            return None
        found = {record for record in stretch if record.policy is own and record.read}
        for record in stretch:
            for source in record.sources:
                if source is not None and source[0].policy is not record.policy:
                    found.add(source[0])
        return frozenset(found)


@overload
def checkpoint(function: Tensor, /) -> Tensor: ...


@overload
def checkpoint(
    function: Callable[..., Any], /, *, policy: CheckpointConfig | Keeps | None = None
) -> Checkpointed: ...


@overload
def checkpoint(
    *, policy: CheckpointConfig | Keeps | None = None
) -> Callable[[Callable[..., Any]], Checkpointed]: ...


def checkpoint(function: Any = None, /, *, policy: CheckpointConfig | Keeps | None = None) -> Any:
    """Make a function keep less for the backward pass, which computes the rest again.

    Its arguments and results are kept where the backward pass needs them. Random numbers that it
    draws are kept, and the function is not called again, so side effects happen once. NumPy arrays
    that it reads must not be written to before the backward pass (`gt.detect_writes` finds that).

    Args:
        function: The function. If it is left out, as in `@gt.checkpoint(policy=...)`, a decorator
            is returned. In a program of `gt.run` it may be a lazy tensor instead: gradients of what
            is made of the tensor that is returned compute it again, rather than keep it.
        policy: Which results to keep all the same: what `gt.keep_ops`, `gt.drop_ops` or
            `gt.keep_up_to` returns, or a function of the name of an op and the abstract value of
            its result; or a `gt.CheckpointConfig` to apply inside of the function.

    Returns:
        A function of the same arguments. Its attribute `plan` says, as text, what the last call
        kept and computed again, or what was planned for a compiled function with a budget. For a
        lazy tensor, one to use in its place.

    Raises:
        ArgumentError: It is no function and no lazy tensor, or the policy is none.

    >>> block = gt.checkpoint(lambda x, w: gt.tanh(x @ w) @ w)
    >>> gt.grad(lambda w: gt.sum(block(np.ones((2, 2)), w)))(np.zeros((2, 2)))
    array([[0., 0.],
           [0., 0.]])
    >>> def program(ctx):
    ...     x = ctx.placeholder("x", (3,))
    ...     h = gt.checkpoint(np.exp(x))
    ...     return gt.graph.grad([np.sum(h * h)], [x])[0].eval(ctx, {x: np.zeros(3)})
    >>> gt.run(program)
    array([2., 2., 2.])
    """
    if function is None:
        return functools.partial(checkpoint, policy=policy)
    if isinstance(function, Tensor) and policy is None:
        return _marked("checkpoint", function, 0)
    if isinstance(function, Tensor):
        raise ArgumentError(
            "checkpoint: got a policy for a tensor, expected one for a function; leave it out, as "
            "a tensor is either computed again or not"
        )
    if not callable(function):
        raise ArgumentError(
            f"checkpoint: got {a_type(function)}, expected a function, as in gt.checkpoint(f)(x)"
        )
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise ArgumentError(
            f"checkpoint: got {function.__name__}, whose body runs after the call has returned, "
            "expected a function that returns its results; wrap the functions that it calls"
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

    def __repr__(self) -> str:
        return f"<checkpointed {getattr(self._function, '__name__', self._function)}>"

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


# ---- lazy tensors -------------------------------------------------------------------------------

# The first operand, which derivatives of the graph compute again if it has so many bytes.
MARK = Op(
    "checkpoint",
    lambda xp, x, least: x,
    infer_like,
    vjps=(lambda ct, _out, _x, least: ct,),
    jvp=lambda tangents, _out, _x, least: tangents[0],
    batch=batch_in_place,
    aliases=True,
    facts=Facts(layout="same", carries=EVERY),
    lower=Relabel(),
)


def adaptive_checkpoint(tensor: Tensor, nbytes: int) -> Tensor:
    """Let gradients compute a large lazy tensor again, and keep a small one.

    Args:
        tensor: A lazy tensor of a program of `gt.run`. If its size depends on what is fed, that
            decides.
        nbytes: The size in bytes from which on it is computed again.

    Returns:
        A lazy tensor to use in its place.

    Raises:
        ArgumentError: It is not a lazy tensor, or the size is no number.

    >>> def program(ctx):
    ...     x = ctx.placeholder("x", (-1,))
    ...     h = gt.adaptive_checkpoint(np.exp(x), 1_000_000)
    ...     return gt.graph.grad([np.sum(h * h)], [x])[0].eval(ctx, {x: np.zeros(3)})
    >>> gt.run(program)
    array([2., 2., 2.])
    """
    check_bytes("adaptive_checkpoint", nbytes)
    return _marked("adaptive_checkpoint", tensor, nbytes)


def _marked(name: str, tensor: Any, least: float) -> Tensor:
    """A lazy tensor that derivatives compute again.

    Raises:
        ArgumentError: It has a value, or belongs to a transform that keeps it already.
    """
    if not is_lazy(tensor):
        raise ArgumentError(
            f"{name}: got {a_type(tensor)}, expected a function, or a lazy tensor of a gt.run; use "
            "gt.checkpoint(f)(x) with the function that computes it, or "
            "gt.GradientTape(checkpoint=gt.CheckpointConfig(...)) to drop what eager code computes"
        )
    return call(MARK, (tensor,), {"least": least})  # type: ignore[no-any-return]


def is_lazy(value: Any) -> bool:
    """Whether a value is a tensor of a lazy graph, perhaps inside of `vmap`."""
    value = unshell(value)
    while isinstance(value, Tensor) and value.record is not None:
        if value.record.segment.lazy:
            return True
        if not isinstance(value.record.segment, BatchLevel):
            return False
        value = unshell(value.value)
    return False
