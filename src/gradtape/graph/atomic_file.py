"""Writing a file so that a reader finds the old one or the new one, whole, at any moment."""

from __future__ import annotations

import contextlib
import os
import secrets


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file by way of a temporary one in the same folder.

    The data is on the disk before the name leads to it. If anything fails, the old file stays as it
    was, and the temporary one is removed.

    Args:
        path: The file. A link is followed.
        data: Its contents.

    Raises:
        OSError: It cannot be written.
    """
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(8)}.part")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            if os.path.exists(target):
                os.chmod(temporary, os.stat(target).st_mode & 0o777)
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    """Put the new name on the disk, where folders can be opened (not on Windows)."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
