"""Settings from the environment: the only module that reads it."""

from __future__ import annotations

import os
from pathlib import Path

from gradtape.errors import ArgumentError

_OFF = {"0", "off", "false", "no"}
# Twice what ten ops on a million elements, forward and backward, have at a time.
_KEEP_MB = 128
_MOST_MB = 1 << 24


def eager_kernels() -> bool:
    """Whether ops on large arrays outside of `jit` use native code: not if it is switched off.

    `GRADTAPE_EAGER_KERNELS=0` leaves them all to NumPy.
    """
    return os.environ.get("GRADTAPE_EAGER_KERNELS", "").strip().lower() not in _OFF


def kept_bytes() -> int:
    """How much memory of temporaries and large results to keep for the next call, in bytes.

    `GRADTAPE_KEEP_MB` says how many megabytes; 0 keeps nothing.

    Raises:
        ArgumentError: It is no such number.
    """
    text = os.environ.get("GRADTAPE_KEEP_MB", "").strip()
    if text and not text.isdecimal():
        raise ArgumentError(
            f"GRADTAPE_KEEP_MB: got {text!r}; expected a whole number of megabytes, 0 or more; "
            f"try {_KEEP_MB}, which is what is kept without it"
        )
    return min(int(text or _KEEP_MB), _MOST_MB) << 20


def huge_pages() -> bool:
    """Whether to ask for huge pages, as NumPy does unless `NUMPY_MADVISE_HUGEPAGE=0`."""
    return os.environ.get("NUMPY_MADVISE_HUGEPAGE", "").strip() != "0"


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
