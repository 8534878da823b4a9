"""`AutoClip`: clipping to a percentile of the norms so far."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.errors import ArgumentError
from gradtape.gradients.clipping import clip_by_global_norm, global_norm
from gradtape.gradients.step import State, Step, check_entries
from gradtape.ops.arguments import as_integer, as_number
from gradtape.ops.arrays.quantile import nanpercentile
from gradtape.ops.cast import astype, stop_gradient
from gradtape.ops.checks import check_choice
from gradtape.ops.comparison import isfinite, isnan
from gradtape.ops.select import where
from gradtape.ops.which import all as all_of


class AutoClip(Step):
    """Clips gradients to a percentile of the norms they had so far, this one included.

    There is no norm to choose: with a percentile of 10, nine of ten gradients are clipped, to the
    largest of the smallest tenth ([Seetharaman et al. 2020](https://arxiv.org/abs/2007.14469)).
    Norms that are not finite are not remembered.

    Args:
        percentile: Which percentile, from 0 to 100.
        history: How many of the last norms are remembered.
        nonfinite: As for `gt.gradients.clip_by_global_norm`.

    Raises:
        ArgumentError: A number is out of range.

    >>> clip = gt.gradients.AutoClip(50.0)
    >>> for norm in (1.0, 2.0, 9.0):
    ...     clipped = clip([np.array([norm])])
    >>> clipped, clip.threshold
    ([array([2.])], 2.0)
    """

    def __init__(
        self, percentile: float = 10.0, history: int = 1000, *, nonfinite: str = "raise"
    ) -> None:
        self.percentile = as_number(percentile, "AutoClip", "percentile")
        if not 0 <= self.percentile <= 100:
            raise ArgumentError(f"AutoClip: got percentile={percentile}, expected 0 to 100")
        self.history = as_integer(history, "AutoClip", "history")
        if self.history < 1:
            raise ArgumentError(f"AutoClip: got history={history}, expected a positive number")
        check_choice("AutoClip", ("raise", "zero", "pass"), nonfinite=nonfinite)
        self.nonfinite = nonfinite

    def init(self, grads: Any) -> State:
        """Return the state before the first step: no norms."""
        return {"norms": np.full(self.history, np.nan), "count": 0, "threshold": np.nan}

    def apply(self, grads: Any, state: State, params: Any = None) -> tuple[Any, State]:
        """Return clipped gradients and the new state.

        Args:
            grads: Nested containers of gradients.
            state: What `init` or the last `apply` returned.
            params: Not needed.

        Raises:
            NonFiniteError: A gradient is NaN or infinite, and `nonfinite` is "raise".
        """
        self.check_state(state)
        found = astype(stop_gradient(global_norm(grads)), np.float64)
        finite = isfinite(found)
        here = np.arange(self.history) == state["count"] % self.history
        norms = where(here & finite, found, state["norms"])
        # Before there are any norms, and if they are zero, nothing is clipped.
        known = where(all_of(isnan(norms)), np.inf, norms)
        limit = nanpercentile(known, self.percentile)
        limit = where(limit > 0, limit, np.inf)
        clipped = clip_by_global_norm(grads, _as_limit(limit), nonfinite=self.nonfinite)
        count = state["count"] + where(finite, 1, 0)
        return clipped, {"norms": norms, "count": count, "threshold": limit}

    def check_state(self, state: State) -> None:
        """Raise an error for a state that is not one of this step.

        Args:
            state: What may be one.

        Raises:
            ArgumentError: It is not, or its history is of another length.
        """
        check_entries("AutoClip", state, {"norms", "count", "threshold"})
        count = math.prod(np.shape(state["norms"]))
        if count != self.history:
            raise ArgumentError(
                f"AutoClip: got a state of {count} norms, expected {self.history}, the history; "
                "make it by init(grads)"
            )

    @property
    def threshold(self) -> float:
        """The norm that gradients were clipped to last; NaN before the first."""
        return float("nan") if self.state is None else float(self.state["threshold"])

    def __repr__(self) -> str:
        return f"AutoClip({self.percentile}, {self.history})"


def _as_limit(limit: Any) -> Any:
    return limit.item() if isinstance(limit, np.ndarray | np.generic) else limit
