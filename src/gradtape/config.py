"""Settings from the environment: the only module that reads it."""

from __future__ import annotations

import os
from pathlib import Path

_OFF = {"0", "off", "false", "no"}


def eager_kernels() -> bool:
    """Whether ops on large arrays outside of `jit` use native code: not if it is switched off.

    `GRADTAPE_EAGER_KERNELS=0` leaves them all to NumPy.
    """
    return os.environ.get("GRADTAPE_EAGER_KERNELS", "").strip().lower() not in _OFF


def cache_directory() -> Path | None:
    """Where compiled code is kept between runs; None if that is switched off.

    `GRADTAPE_CACHE=0` switches it off, `GRADTAPE_CACHE_DIR` names the directory; otherwise it is
    `gradtape` in the user's directory for caches (`XDG_CACHE_HOME`, or `~/.cache`).
    """
    if os.environ.get("GRADTAPE_CACHE", "").strip().lower() in _OFF:
        return None
    if named := os.environ.get("GRADTAPE_CACHE_DIR"):
        return Path(named).absolute()
    caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not caches.is_absolute():  # unset or, as the XDG specification says, to be ignored
        try:
            caches = Path.home() / ".cache"
        except RuntimeError:  # a user without a home
            return None
    return caches / "gradtape"


def cpu_level() -> str | None:
    """The CPU that code is made for, `x86-64-v2` to `x86-64-v4`; None for the one at hand.

    `GRADTAPE_CPU` names it: code for an older CPU than the one at hand runs on both.
    """
    return os.environ.get("GRADTAPE_CPU", "").strip().lower() or None
