"""Files that are replaced as a whole: a reader finds the old content or the new, never a part."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

Path = str | os.PathLike[str]


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
    folder = os.path.dirname(target)
    temporary = os.path.join(folder, f".gradtape-{secrets.token_hex(8)}.tmp")
    try:
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
    except OSError as error:
        # Of the file that was asked for, not of one that nobody has heard of.
        error.filename = os.fspath(path)
        raise
    try:
        with suppress(FileNotFoundError):
            os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
        yield temporary
        _to_disk(temporary, os.O_RDWR)
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    # The name is in the folder, which is written by itself.
    _to_disk(folder, os.O_RDONLY)


def _to_disk(path: str, flags: int) -> None:
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
