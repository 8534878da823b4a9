"""Settings from the environment: the only module that reads it."""

from __future__ import annotations

import os

from gradtape.errors import ArgumentError

_OFF = {"0", "off", "false", "no"}
# Twice the memory that ten ops on a million elements hold at a time, forward and backward.
_KEEP_MB = 128
_MOST_MB = 1 << 24

# Native pieces that can be left out, because NumPy, SciPy or Python can do it as well.
PIECES = (
    "copies", "entry", "halves", "kernels", "lapack", "linalg", "loops", "pool", "products",
    "registers",
)  # fmt: skip


def uses(piece: str) -> bool:
    """Whether a native piece of our own is used, that is, not switched off.

    `GRADTAPE_WITHOUT` names the pieces to switch off, separated by commas, or is `all`.
    `GRADTAPE_EAGER_KERNELS=0` switches off the kernels for large arrays, too.

    Args:
        piece: One of `PIECES`.

    Raises:
        ArgumentError: `GRADTAPE_WITHOUT` names something else.
    """
    if piece == "kernels" and os.environ.get("GRADTAPE_EAGER_KERNELS", "").strip().lower() in _OFF:
        return False
    named = os.environ.get("GRADTAPE_WITHOUT")
    if not named:
        return True
    without = {name.strip().lower() for name in named.split(",")} - {""}
    if wrong := without.difference(PIECES, ["all"]):
        raise ArgumentError(
            f"GRADTAPE_WITHOUT: got {sorted(wrong)[0]!r}, expected one or more of "
            f"{', '.join(PIECES)}, or all; try GRADTAPE_WITHOUT={PIECES[0]},{PIECES[1]}"
        )
    return without.isdisjoint((piece, "all"))


def kept_bytes() -> int:
    """How much memory of temporaries and large results to keep for the next call, in bytes.

    `GRADTAPE_KEEP_MB` says how many megabytes; 0 keeps nothing.

    Raises:
        ArgumentError: It is no such number.
    """
    text = os.environ.get("GRADTAPE_KEEP_MB", "").strip()
    if text and not text.isdecimal():
        raise ArgumentError(
            f"GRADTAPE_KEEP_MB: got {text!r}, expected a whole number of megabytes, 0 or more; "
            f"leave it out to keep {_KEEP_MB}"
        )
    return min(int(text or _KEEP_MB), _MOST_MB) << 20


def huge_pages() -> bool:
    """Whether to ask for huge pages, as NumPy does unless `NUMPY_MADVISE_HUGEPAGE=0`."""
    return os.environ.get("NUMPY_MADVISE_HUGEPAGE", "").strip() != "0"


def cache_directory() -> str | None:
    """Where compiled code is kept between runs; None if that is switched off.

    `GRADTAPE_CACHE=0` switches it off, `GRADTAPE_CACHE_DIR` names the directory; otherwise it is
    `gradtape` in the user's directory for caches (`XDG_CACHE_HOME`, or `~/.cache`).
    """
    # Without pathlib, which takes long to import.
    if os.environ.get("GRADTAPE_CACHE", "").strip().lower() in _OFF:
        return None
    if named := os.environ.get("GRADTAPE_CACHE_DIR"):
        return os.path.abspath(named)
    caches = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(caches):  # unset or, as the XDG specification says, to be ignored
        home = os.path.expanduser("~")
        if home == "~":  # a user without a home
            return None
        caches = os.path.join(home, ".cache")
    return os.path.join(caches, "gradtape")


def cpu_level() -> str | None:
    """The CPU to compile for, `x86-64-v2` to `x86-64-v4`; None for the one at hand.

    `GRADTAPE_CPU` names it: code for an older CPU than the one at hand runs on both.
    """
    return os.environ.get("GRADTAPE_CPU", "").strip().lower() or None
