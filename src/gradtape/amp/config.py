"""`AmpConfig`: mixed precision of a tape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from gradtape.amp.autocast import Casting
from gradtape.amp.loss_scaler import LossScaler
from gradtape.amp.precision import PrecisionMode, lists
from gradtape.core.state import checked_flag
from gradtape.errors import ArgumentError, a_type


@dataclass(frozen=True, kw_only=True)
class AmpConfig:
    """What a tape computes in 16 bits: `gt.autocast` for its block and for ops on its tensors.

    With a loss scaler, `tape.gradient` walks from a scaled cotangent, divides the gradients by the
    scale, and tells the scaler whether they are finite. If they are not, it returns them as they
    are, and `config.loss_scaler.finite` is False: leave out the step.

    Args:
        enabled: Whether anything is cast.
        precision_mode: The dtype of products.
        loss_scaler: A `gt.LossScaler`; if not given, a dynamic one for `Float16`, and none
            otherwise.
        autocast_ops: Names of ops that are computed in 16 bits besides those that are anyway.
        keep_fp32_ops: Names of ops that are computed in float32 besides those that are anyway.

    Raises:
        ArgumentError: An option is not what it has to be, or there is no op of a name.

    >>> config = gt.AmpConfig(precision_mode=gt.PrecisionMode.Float16, keep_fp32_ops=["tanh"])
    >>> tape = gt.GradientTape(amp=config)
    >>> w = tape.watch(np.ones((3, 2), np.float32))
    >>> h = np.ones((1, 3), np.float32) @ w
    >>> h.dtype, gt.tanh(h).dtype
    (dtype('float16'), dtype('float32'))
    >>> tape.gradient(gt.sum(h) * 1e-6, w)[0], config.loss_scaler.finite
    (tensor([1.0002404e-06, 1.0002404e-06], dtype=float32), True)
    """

    enabled: bool = True
    precision_mode: PrecisionMode = PrecisionMode.BFloat16
    loss_scaler: LossScaler | None = None
    autocast_ops: Sequence[str] = ()
    keep_fp32_ops: Sequence[str] = ()
    configures: ClassVar[str] = "amp"

    def __post_init__(self) -> None:
        name = "AmpConfig"
        checked_flag(name, "enabled", self.enabled)
        if not isinstance(self.precision_mode, PrecisionMode):
            names = ", ".join(f"gt.PrecisionMode.{each.name}" for each in PrecisionMode)
            raise ArgumentError(
                f"{name}: got {a_type(self.precision_mode)} for precision_mode, expected one of "
                f"{names}"
            )
        if self.loss_scaler is None and self.precision_mode is PrecisionMode.Float16:
            object.__setattr__(self, "loss_scaler", LossScaler.Dynamic())
        if not (self.loss_scaler is None or isinstance(self.loss_scaler, LossScaler)):
            raise ArgumentError(
                f"{name}: got {a_type(self.loss_scaler)} for loss_scaler, expected a "
                "gt.LossScaler.Dynamic() or gt.LossScaler.Static(scale), or None"
            )
        self.tape_mode()  # checks the names

    def tape_mode(self) -> Casting | None:
        """The mode for one tape; None if nothing is cast."""
        options = ("autocast_ops", "keep_fp32_ops")
        chosen = lists(self.autocast_ops, self.keep_fp32_ops, "AmpConfig", options)
        if not self.enabled or self.precision_mode is PrecisionMode.Float32:
            return None
        return Casting(self.precision_mode.dtype, chosen)

    @property
    def scaler(self) -> LossScaler | None:
        """What scales the losses of a tape; None if nothing is cast."""
        return self.loss_scaler if self.enabled else None
