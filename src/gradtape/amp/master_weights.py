"""Float32 copies of parameters that are stored in 16 bits, which an optimizer changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.amp.precision import FLOAT32
from gradtape.core.tensor import Tensor, innermost
from gradtape.errors import ArgumentError, GradtapeError, ShapeError, a_type
from gradtape.ops.cast import astype


class MasterWeights:
    """An optimizer for parameters of 16 bits: it adds steps up in float32, and rounds the sum.

    A step of 0.001 is lost on a bfloat16 weight of 1, whose neighbours are 0.004 away. Here the
    optimizer changes copies in float32, and the parameters are these copies rounded. Parameters of
    other dtypes are changed directly.

    An optimizer that was made with parameters is used by `step()` and `zero_grad()`, and one that
    was made without as pure functions, by `init` and `apply`. Schedules are given the optimizer
    itself, which is `optimizer`.

    Args:
        optimizer: An optimizer that has not made a step yet. Its groups are replaced by ones that
            have the copies as parameters.

    Attributes:
        optimizer: The optimizer.
        params: The parameters.
        masters: For each of them the tensor that the optimizer changes.

    Raises:
        ArgumentError: The optimizer has made a step.

    >>> w = gt.tensor([1.0], dtype=gt.bfloat16, requires_grad=True)
    >>> optimizer = gt.amp.MasterWeights(gt.optim.SGD([w], lr=0.001))
    >>> for _ in range(10):
    ...     optimizer.zero_grad()
    ...     gt.sum(w).backward()
    ...     optimizer.step()
    >>> w, optimizer.masters[0].detach()
    (tensor([0.988281], dtype=bfloat16, requires_grad=True), tensor([0.9900001], dtype=float32))
    """

    def __init__(self, optimizer: Any) -> None:
        if isinstance(optimizer, type) or not hasattr(optimizer, "param_groups"):
            raise ArgumentError(
                f"MasterWeights: got {a_type(optimizer)}, expected an optimizer: "
                "gt.amp.MasterWeights(gt.optim.Adam(net.parameters(), lr=0.001))"
            )
        self.optimizer = optimizer
        self.params: list[Tensor] = list(optimizer.params)
        state = optimizer.state_dict() if self.params else {}
        if any(not name.startswith("groups.") for name in state):
            raise ArgumentError(
                "MasterWeights: got an optimizer that has made a step, whose state is that of the "
                "parameters in 16 bits; give it a new one"
            )
        groups = list(optimizer.param_groups)
        optimizer.param_groups.clear()
        for group in groups:
            copies = [_copied(param) for param in group["params"]]
            optimizer.add_param_group(group.plain() | {"params": copies})
        self.masters: list[Tensor] = list(optimizer.params)
        self._gathered = False

    # ---- the pure rule ---------------------------------------------------------------------

    def init(self, params: Any) -> dict[str, Any]:
        """Return the state: the copies in float32, and the state of the optimizer for them.

        Args:
            params: Nested containers of arrays or tensors.
        """
        masters = containers.map_leaves(_wide, params)
        return {"master": masters, "optimizer": self.optimizer.init(masters)}

    def apply(self, params: Any, grads: Any, state: Mapping[str, Any]) -> tuple[Any, Any]:
        """Return the parameters and the state after one step.

        Args:
            params: The parameters; only their dtypes are read.
            grads: Their gradients, in any floating dtype.
            state: The state that `init` or the last `apply` returned.

        Returns:
            New parameters and the new state.

        >>> rule = gt.amp.MasterWeights(gt.optim.SGD(lr=0.001))
        >>> w = np.ones(1, gt.bfloat16)
        >>> w, state = rule.apply(w, w, rule.init(w))
        >>> w, state["master"]
        (array([1], dtype=bfloat16), array([0.999], dtype=float32))
        """
        wide = containers.map_leaves(_wide, grads)
        masters, inner = self.optimizer.apply(state["master"], wide, state["optimizer"])
        leaves, structure = containers.flatten(masters)
        dtypes = [leaf.dtype for leaf in containers.flatten(params)[0]]
        rounded = [_cast(leaf, dtype) for leaf, dtype in zip(leaves, dtypes, strict=True)]
        return containers.unflatten(structure, rounded), {"master": masters, "optimizer": inner}

    # ---- with parameters -------------------------------------------------------------------

    def gathered(self) -> list[Tensor]:
        """Move the gradients of the parameters to the copies in float32; returns all tensors.

        Raises:
            GradtapeError: It was done, and there are new gradients before a step.
        """
        if self._gathered and any(param.grad is not None for param, _ in self._pairs()):
            raise GradtapeError(
                "MasterWeights: got gradients of a second backward pass after unscale_, expected "
                "step and update first; accumulate gradients before unscale_"
            )
        if not self._gathered:
            for param, master in self._pairs():
                grad = param.grad
                master.grad = None if grad is None else Tensor(_cast(innermost(grad), FLOAT32))
                param.grad = None
            self._gathered = True
        return self.masters

    def step(self) -> None:
        """Let the optimizer change the copies, and round them to the parameters.

        Raises:
            ArgumentError: The optimizer was made without parameters.
            NonFiniteError: A gradient is not finite; nothing was changed.
        """
        self.gathered()
        self.optimizer.step()
        for param, master in self._pairs():
            param.value = _cast(master.value, param.dtype)
        self.discard()

    def discard(self) -> None:
        """Forget the gradients of the copies: the step is left out."""
        for _, master in self._pairs():
            master.grad = None
        self._gathered = False

    def zero_grad(self) -> None:
        """Forget all gradients."""
        self.discard()
        for param in self.params:
            param.grad = None

    def state_dict(self) -> dict[str, Any]:
        """Copies of all state as arrays, which `gt.save` can write.

        Returns:
            What the optimizer returns, and the copies by position of their parameter, as in
            `"0.master"`.
        """
        masters = {f"{place}.master": np.array(each.value) for place, each in self._numbered()}
        return dict(self.optimizer.state_dict()) | masters

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned, and round the copies to the parameters.

        Raises:
            ArgumentError: It is not the state of such an optimizer.
            ShapeError: An array does not have the shape of its parameter.
        """
        rest, found = dict(state), []
        for place, master in self._numbered():
            if (name := f"{place}.master") not in rest:
                raise ArgumentError(
                    f"MasterWeights: got a state without {name!r}, expected the state of these "
                    "parameters, as state_dict() returned it"
                )
            value = rest.pop(name)
            array = np.array(value.detach() if isinstance(value, Tensor) else value, FLOAT32)
            if array.shape != master.shape:
                raise ShapeError(
                    f"MasterWeights: got {name!r} of shape {array.shape}, expected {master.shape}"
                )
            found.append(array)
        self.optimizer.load_state_dict(rest)
        for array, (param, master) in zip(found, self._pairs(), strict=True):
            master.value, param.value = array, _cast(array, param.dtype)

    def _pairs(self) -> list[tuple[Tensor, Tensor]]:
        """The parameters of 16 bits with their copies."""
        pairs = zip(self.params, self.masters, strict=True)
        return [(param, master) for param, master in pairs if master is not param]

    def _numbered(self) -> list[tuple[int, Tensor]]:
        """The copies with their positions."""
        pairs = zip(self.params, self.masters, strict=True)
        return [(n, master) for n, (param, master) in enumerate(pairs) if master is not param]

    def __repr__(self) -> str:
        return f"<MasterWeights of {len(self.params)} parameters, {self.optimizer!r}>"


def _copied(param: Tensor) -> Tensor:
    """A leaf in float32 that stands for a parameter of 16 bits; another parameter itself."""
    return _wide(param.detach()).set_requires_grad() if _is_short(param) else param


def _is_short(value: Any) -> bool:
    return bool(value.dtype.itemsize <= 2)


def _wide(value: Any) -> Any:
    """A value of 16 bits in float32; any other one as it is."""
    return _cast(value, FLOAT32) if _is_short(value) else value


def _cast(value: Any, dtype: np.dtype[Any]) -> Any:
    return value if value.dtype == dtype else astype(value, dtype)
