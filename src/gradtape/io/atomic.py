"""Files that are replaced as a whole: a reader finds the old content or the new, never a part."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

try:
    import fcntl
except ImportError:  # Windows has no such locks: nothing is swept up there
    fcntl = None  # type: ignore[assignment]

Path = str | os.PathLike[str]

_START, _END = ".gradtape-", ".tmp"
# Seconds after which a file that nobody holds is taken for one that a killed process left.
_OLD = 60.0


@contextmanager
def replacing(path: Path) -> Iterator[str]:
    """Write a file in a block, under another name; it takes the place of the file at the end.

    The new file is on the disk before the old one is gone, also if the machine fails. If the block
    raises, the old file is as it was, and nothing else is left.

    Args:
        path: The file to replace or to make. A symbolic link stays, and what it leads to is
            replaced. A file that exists keeps its permissions.

    Yields:
        The path of an empty file in the same folder, to write to.
    """
    target = os.path.realpath(path)
    if os.path.exists(target) and not (os.path.isfile(target) or os.path.isdir(target)):
        # As the administrator, one could replace a device by a file.
        raise OSError(errno.EINVAL, "It is not a regular file", os.fspath(path))
    folder = os.path.dirname(target)
    temporary = os.path.join(folder, f"{_START}{secrets.token_hex(8)}{_END}")
    try:
        held = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except OSError as error:
        # Of the file that was asked for, not of one that nobody has heard of.
        error.filename = os.fspath(path)
        raise
    try:
        _lock(held)
        _sweep(folder)
        permissions = _permissions(target, held)
        os.chmod(temporary, permissions)  # what is written is no more public than what was
        yield temporary
        # Some libraries write a file of their own, for the owner alone, and move it here.
        os.chmod(temporary, permissions)
        _to_disk(temporary, os.O_RDWR)
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        os.close(held)
    # The name is in the folder, which is written by itself.
    _to_disk(folder, os.O_RDONLY)


def _permissions(target: str, held: int) -> int:
    """The permissions of the file that is replaced, or of a new one as the umask has it."""
    try:
        found = os.stat(target)
    except FileNotFoundError:
        found = os.fstat(held)
    return stat.S_IMODE(found.st_mode)


def _lock(descriptor: int) -> bool:
    """Hold a file until it is closed or this process ends; whether that could be done."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (OSError, AttributeError):
        return False
    return True


def _sweep(folder: str) -> None:
    """Remove what processes left behind that were killed while they wrote."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(_START) and entry.name.endswith(_END):
                with suppress(OSError):
                    _remove_if_left(entry.path)


def _remove_if_left(path: str) -> None:
    if time.time() - os.stat(path).st_mtime < _OLD:
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        if _lock(descriptor):
            os.unlink(path)
    finally:
        os.close(descriptor)


def _to_disk(path: str, flags: int) -> None:
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
