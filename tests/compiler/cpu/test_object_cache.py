"""The cache of object files: what is not sound is not used, and nothing of it raises."""

import errno
import io
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gradtape import config
from gradtape.compiler.cpu.llvm.link import Library, host
from gradtape.compiler.cpu.runtime import cache

CODE = bytes(range(256)) * 10


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for the cache that does not exist yet."""
    place = tmp_path / "some" / "cache"
    monkeypatch.setenv("GRADTAPE_CACHE_DIR", str(place))
    monkeypatch.delenv("GRADTAPE_CACHE", raising=False)
    return place


def entry(directory: Path) -> Path:
    (path,) = directory.glob("*.o")
    return path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# ---- what it does ----


def test_get_gives_what_was_put(directory):
    assert cache.get("key") is None
    cache.put("key", CODE)
    cache.put("other key", b"")
    assert cache.get("key") == CODE
    assert cache.get("other key") == b""
    assert cache.get("third key") is None
    assert cache.unusable() is None


def test_put_again_replaces(directory):
    cache.put("key", CODE)
    cache.put("key", b"newer")
    assert cache.get("key") == b"newer"
    assert len(list(directory.iterdir())) == 1


def test_directory_and_files_are_the_users_alone(directory):
    old = os.umask(0)
    try:
        cache.put("key", CODE)
    finally:
        os.umask(old)
    assert mode(directory) == 0o700
    assert mode(entry(directory)) == 0o600


def test_compiled_code_is_compiled_once(directory, monkeypatch):
    text = "define i64 @seven() {\n  ret i64 7\n}\n"
    code = cache.compiled(text)
    monkeypatch.setattr(cache, "compile_module", lambda *_: pytest.fail("compiled again"))
    assert cache.compiled(text) == code
    assert Library(code, {}, ["seven"]).address("seven")
    with pytest.raises(pytest.fail.Exception):
        cache.compiled(text + "; another module")


def test_key_of_compiled_code_names_the_cpu_and_the_versions(directory, monkeypatch):
    keys = []
    monkeypatch.setattr(cache, "get", lambda key: keys.append(key) or CODE)
    assert cache.compiled("text") == CODE
    for part in (host().key, "gradtape ", "passes ", "numpy ", "text"):
        assert part in keys[0]


# ---- where it is ----


def test_place_from_the_environment(monkeypatch, tmp_path):
    for name in ("GRADTAPE_CACHE", "GRADTAPE_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert config.cache_directory() == str(tmp_path / ".cache" / "gradtape")
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert config.cache_directory() == str(tmp_path / ".cache" / "gradtape")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert config.cache_directory() == str(tmp_path / "xdg" / "gradtape")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRADTAPE_CACHE_DIR", "mine")
    assert config.cache_directory() == str(tmp_path / "mine")


@pytest.mark.parametrize("value", ["0", "off", "False", " no "])
def test_switched_off(directory, monkeypatch, value):
    monkeypatch.setenv("GRADTAPE_CACHE", value)
    cache.put("key", CODE)
    assert cache.get("key") is None
    assert not directory.exists()
    assert "switched off" in cache.unusable()


def test_user_without_a_home(monkeypatch):
    for name in ("GRADTAPE_CACHE", "GRADTAPE_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert config.cache_directory() is None
    assert cache.get("key") is None
    assert "no home" in cache.unusable()


# ---- entries that are not sound ----


def damage(content: bytes, position: int) -> bytes:
    return content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]


HEADER = 8 + 8 + 8 + 32 + 32

BROKEN = {
    "empty": lambda content: b"",
    "half a header": lambda content: content[: HEADER // 2],
    "header only": lambda content: content[:HEADER],
    "cut off": lambda content: content[:-1],
    "longer": lambda content: content + b"\0",
    "magic": lambda content: damage(content, 0),
    "format": lambda content: damage(content, 8),
    "length": lambda content: damage(content, 16),
    "key": lambda content: damage(content, 24),
    "checksum": lambda content: damage(content, 56),
    "first byte": lambda content: damage(content, HEADER),
    "last byte": lambda content: damage(content, len(content) - 1),
    "no cache entry at all": lambda content: b"#!/bin/sh\n" * 50,
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_entry_is_a_miss_and_replaced(directory, what):
    cache.put("key", CODE)
    path = entry(directory)
    path.write_bytes(BROKEN[what](path.read_bytes()))
    assert cache.get("key") is None
    cache.put("key", CODE)
    assert cache.get("key") == CODE


def test_entry_of_another_key_is_a_miss(directory):
    cache.put("key", CODE)
    path = entry(directory)
    cache.put("other", b"other code")
    (other,) = set(directory.glob("*.o")) - {path}
    path.write_bytes(other.read_bytes())
    assert cache.get("key") is None
    assert cache.get("other") == b"other code"


@pytest.mark.parametrize("bits", [stat.S_IWGRP, stat.S_IWOTH])
def test_entry_that_others_can_write_is_a_miss(directory, bits):
    cache.put("key", CODE)
    entry(directory).chmod(0o600 | bits)
    assert cache.get("key") is None
    cache.put("key", CODE)
    assert cache.get("key") == CODE


def test_entry_that_is_a_link_is_a_miss(directory, tmp_path):
    cache.put("key", CODE)
    path = entry(directory)
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    assert cache.get("key") is None
    cache.put("key", b"newer")
    assert cache.get("key") == b"newer"
    assert b"newer" not in elsewhere.read_bytes()


def test_entry_that_is_a_pipe_or_directory_is_a_miss(directory):
    cache.put("key", CODE)
    path = entry(directory)
    path.unlink()
    os.mkfifo(path, 0o600)
    assert cache.get("key") is None  # and does not wait for a writer
    path.unlink()
    path.mkdir()
    assert cache.get("key") is None
    cache.put("key", CODE)
    assert [each.name for each in directory.iterdir()] == [path.name]


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@as_root
def test_entry_of_another_user_is_a_miss(directory):
    cache.put("key", CODE)
    os.chown(entry(directory), 12345, -1)
    assert cache.get("key") is None


# ---- directories that are not safe ----


@pytest.mark.parametrize("bits", [stat.S_IWGRP, stat.S_IWOTH])
@pytest.mark.parametrize("linked", [False, True])
def test_directory_that_others_can_write_is_not_used(directory, tmp_path, bits, linked):
    cache.put("key", CODE)
    assert cache.get("key") == CODE
    if linked:
        directory.rename(tmp_path / "target")
        directory.symlink_to(tmp_path / "target")
        assert cache.get("key") == CODE  # a link to a safe directory is fine
    directory.chmod(0o700 | bits)
    assert cache.get("key") is None
    cache.put("new", CODE)
    assert len(list(directory.iterdir())) == 1
    assert "can be written by other users" in cache.unusable()


@as_root
def test_directory_of_another_user_is_not_used(directory):
    cache.put("key", CODE)
    os.chown(directory, 12345, -1)
    assert cache.get("key") is None
    cache.put("new", CODE)
    assert len(list(directory.iterdir())) == 1
    assert "belongs to user 12345" in cache.unusable()


def test_file_where_the_directory_should_be(directory):
    directory.parent.mkdir()
    directory.write_text("in the way")
    cache.put("key", CODE)
    assert cache.get("key") is None
    assert "cannot be opened" in cache.unusable()
    assert directory.read_text() == "in the way"


# ---- disks ----


def fails_with(number: int):
    def fail(*args: object, **kwargs: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


class FullFile(io.FileIO):
    """A file on a full disk."""

    def write(self, content):
        super().write(content[:100])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_full_disk_leaves_no_trace(directory, monkeypatch):
    cache.put("key", CODE)
    before = sorted(directory.iterdir())
    with monkeypatch.context() as full:
        full.setattr(cache, "open", FullFile, raising=False)
        cache.put("key", b"newer")
        cache.put("new", CODE)
    assert sorted(directory.iterdir()) == before
    assert cache.get("key") == CODE
    assert cache.get("new") is None


@pytest.mark.parametrize("call", ["replace", "open", "fstat"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_failing_system_calls_do_not_raise(directory, monkeypatch, call, number):
    cache.put("key", CODE)
    with monkeypatch.context() as failing:
        failing.setattr(os, call, fails_with(number))
        cache.put("new", CODE)
        assert cache.get("new") is None
    assert [path.suffix for path in directory.iterdir()] == [".o"]
    assert cache.get("key") == CODE


def test_directory_cannot_be_made(directory, monkeypatch):
    monkeypatch.setattr(Path, "mkdir", fails_with(errno.EROFS))
    cache.put("key", CODE)
    assert cache.get("key") is None
    assert os.strerror(errno.EROFS) in cache.unusable()


# ---- size ----


def keys_that_clean_up() -> list[str]:
    """Keys whose digest makes `put` look at the size of the cache."""
    numbers = (f"key {number}" for number in range(10_000))
    first = {key: cache.hashlib.sha256(key.encode()).digest()[0] for key in numbers}
    return [key for key in first if first[key] % cache._KEYS_PER_EVICTION == 0]


def test_oldest_entries_go_first(directory, monkeypatch):
    monkeypatch.setattr(cache, "_MOST_BYTES", 5 * (HEADER + 1000))
    keys = keys_that_clean_up()[:8]
    for age, key in enumerate(keys[:5]):
        cache.put(key, bytes(1000))
        path = directory / (cache.hashlib.sha256(key.encode()).hexdigest() + ".o")
        os.utime(path, (time.time() - 10**5 + age,) * 2)
    assert cache.get(keys[0]) is not None  # used again: no longer the oldest
    for key in keys[5:]:
        cache.put(key, bytes(1000))
    assert [cache.get(key) is not None for key in keys] == [True] + [False] * 3 + [True] * 4


def test_what_killed_processes_left_is_removed(directory):
    cache.put("key", CODE)
    old, new, foreign = (directory / name for name in ("a.new", "b.new", "notes.txt"))
    for path in (old, new, foreign):
        path.write_bytes(b"half")
        os.utime(path, (time.time() - 10**5,) * 2)
    os.utime(new)
    cache.put(keys_that_clean_up()[0], CODE)
    assert (old.exists(), new.exists(), foreign.exists()) == (False, True, True)
    assert cache.get("key") == CODE


def test_huge_entries_are_not_kept(directory, monkeypatch):
    monkeypatch.setattr(cache, "_LONGEST", 100)
    cache.put("key", CODE)
    assert cache.get("key") is None
    cache.put("key", CODE[:100])
    assert cache.get("key") == CODE[:100]


# ---- several processes ----

PROCESS = """
import sys
from gradtape.compiler.cpu.runtime import cache
cache._MOST_BYTES = 40_000
bad = 0
for turn in range(150):
    for key in ("a", "b", "c", f"{sys.argv[1]} {turn}"):
        code = (key * 5000)[:5000].encode()
        found = cache.get(key)
        bad += found is not None and found != code
        cache.put(key, code)
print(bad)
"""


def test_several_processes_at_once(directory):
    processes = [
        subprocess.Popen([sys.executable, "-c", PROCESS, str(n)], stdout=subprocess.PIPE, text=True)
        for n in range(3)
    ]
    outputs = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert outputs == ["0\n"] * 3
    assert not list(directory.glob("*.new"))
    assert cache.get("a") in (None, b"a" * 5000)
