"""Helpers of forward-mode rules."""

from __future__ import annotations

from typing import Any

from gradtape.compat.autograd.core import def_linear as def_linear, defjvp as defjvp
from gradtape.compat.autograd.vspaces import vspace
from gradtape.ops.shape import broadcast_to


def broadcast(x: Any, target: Any) -> Any:
    """An array with the shape of another one."""
    return broadcast_to(x, vspace(target).shape)  # type: ignore[attr-defined]
