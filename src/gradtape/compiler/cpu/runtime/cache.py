"""Object files on disk, so that nothing is compiled twice.

A file holds one object file after a header: magic, format, digest of the key, length and SHA-256
of the contents. All of it is checked before use; anything wrong makes the entry a miss, to be
written again. The checksum finds accidents; it is not a signature: that no one else put code there
is ensured by the directory, which must belong to the user and be writable by no one else, or it is
not used. It is opened once per call and everything is done relative to that handle, so that it
cannot be swapped for another one after the check.

Nothing here raises because of the disk: a cache that cannot be used is a slower start, not an
error. `unusable()` gives the reason.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import inspect
import os
import secrets
import stat
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from gradtape import config
from gradtape.compiler.cpu.llvm import builder, link, native_source
from gradtape.compiler.cpu.llvm.link import Cpu, compile_module, host
from gradtape.compiler.cpu.llvm.native_source import NativeSource

# Magic, format, length of the contents, digest of the key, digest of the contents.
_HEADER = struct.Struct("<8sQQ32s32s")
_MAGIC = b"gradtape"
_FORMAT = 1

_MOST_BYTES = 256 * 2**20
_LONGEST = 64 * 2**20  # one entry
_KEYS_PER_EVICTION = 64  # eviction looks at every file
_SUFFIX = ".o"
_TEMPORARY = ".new"
_HOUR = 3600.0


class _UnusableError(Exception):
    """The directory cannot be used; the message says why."""


def compiled(module: str | NativeSource, cpu: Cpu | None = None) -> bytes:
    """The object file of a module: from the cache, or compiled and put there."""
    cpu = cpu or host()
    # Not the IR of a source, which takes longer to print than all else here.
    key = "\n".join((cpu.key, *_versions(), module if isinstance(module, str) else repr(module)))
    code = get(key)
    if code is None:
        code = compile_module(str(module), cpu)
        put(key, code)
    return code


@functools.cache
def _versions() -> tuple[str, ...]:
    """Versions that code depends on besides its text and the CPU: ours, the printer, NumPy's."""
    try:
        version = importlib.metadata.version("gradtape")
    except importlib.metadata.PackageNotFoundError:  # a source tree that is not installed
        version = "unknown"
    try:
        sources = "".join(map(inspect.getsource, (link, native_source, builder)))
        passes = hashlib.sha256(sources.encode()).hexdigest()
    except OSError:  # installed without sources: the version is enough
        passes = "of that version"
    return f"gradtape {version}", f"passes {passes}", f"numpy {np.__version__}"


def get(key_text: str) -> bytes | None:
    """The object file that was put under this key, if there is an intact one."""
    digest = hashlib.sha256(key_text.encode()).digest()
    try:
        with _directory() as directory:
            content = _read(directory, digest)
    except (_UnusableError, OSError):
        return None
    return content


def put(key_text: str, code: bytes) -> None:
    """Keep an object file under a key; does nothing if that is not possible."""
    digest = hashlib.sha256(key_text.encode()).digest()
    header = _HEADER.pack(_MAGIC, _FORMAT, len(code), digest, hashlib.sha256(code).digest())
    if len(code) > _LONGEST:
        return
    with suppress(_UnusableError, OSError), _directory() as directory:
        _write(directory, _name(digest), header + code)
        # Now and then, without needing a counter.
        if digest[0] % _KEYS_PER_EVICTION == 0:
            _evict(directory)


def unusable() -> str | None:
    """The reason why nothing is cached; None if the cache is in use."""
    try:
        with _directory():
            return None
    except _UnusableError as error:
        return str(error)
    except OSError as error:
        return f"the cache directory cannot be opened: {error}"


def _name(digest: bytes) -> str:
    return digest.hex() + _SUFFIX


@contextmanager
def _directory() -> Iterator[int]:
    """A handle of the directory, made if necessary, after a check of who can write there."""
    if os.open not in os.supports_dir_fd or not hasattr(os, "geteuid"):
        raise _UnusableError("this system does not tell who can write to a directory")
    place = config.cache_directory()
    if place is None:
        raise _UnusableError("the cache is switched off, or the user has no home directory")
    path = Path(place)
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        status = os.fstat(handle)
        if status.st_uid != os.geteuid():
            raise _UnusableError(f"{path} belongs to user {status.st_uid}, not to this one")
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise _UnusableError(f"{path} can be written by other users; chmod go-w {path}")
        yield handle
    finally:
        os.close(handle)


def _read(directory: int, digest: bytes) -> bytes | None:
    name = _name(digest)
    # No links to other places, and no waiting for a pipe that never answers.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    handle = os.open(name, flags, dir_fd=directory)
    with open(handle, "rb") as file:
        status = os.fstat(handle)
        sound = (
            stat.S_ISREG(status.st_mode)
            and status.st_uid == os.geteuid()
            and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            and _HEADER.size <= status.st_size <= _HEADER.size + _LONGEST
        )
        content = file.read() if sound else b""
    if not sound or len(content) < _HEADER.size:
        return None
    magic, form, length, key, checksum = _HEADER.unpack_from(content)
    code = content[_HEADER.size :]
    if (magic, form, length, key) != (_MAGIC, _FORMAT, len(code), digest):
        return None
    if hashlib.sha256(code).digest() != checksum:
        return None
    # The modification time says when an entry was last used; to the hour is accurate enough.
    if time.time() - status.st_mtime > _HOUR:
        with suppress(OSError):
            os.utime(name, dir_fd=directory)
    return code


def _write(directory: int, name: str, content: bytes) -> None:
    """Write a file under another name first, so that no one ever sees half of it."""
    temporary = f"{secrets.token_hex(16)}{_TEMPORARY}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(temporary, flags, 0o600, dir_fd=directory)
    try:
        with open(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=directory)
        raise


def _evict(directory: int) -> None:
    """Remove files left by killed processes, and the least recently used beyond the limit."""
    entries: list[tuple[float, int, str]] = []
    for name in os.listdir(directory):
        # Other processes clean up as well: a file may be gone.
        with suppress(FileNotFoundError):
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if name.endswith(_SUFFIX):
                entries.append((status.st_mtime, status.st_size, name))
            elif name.endswith(_TEMPORARY) and time.time() - status.st_mtime > _HOUR:
                os.unlink(name, dir_fd=directory)
    total = sum(size for _, size, _ in entries)
    for _, size, name in sorted(entries):
        if total <= _MOST_BYTES:
            break
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=directory)
        total -= size
