"""The names by which users, `help` and `pickle` find a function."""

from __future__ import annotations

from typing import Any


def give_name(function: Any, name: str) -> None:
    """Say where a function is found: `scipy.special.expit`, whatever ours is called."""
    place, _, own = name.rpartition(".")
    function.__module__ = f"gradtape.{place}"
    function.__name__ = function.__qualname__ = own
