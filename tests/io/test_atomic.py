"""Files are replaced as a whole, and nothing is left beside them."""

import os
import stat

import pytest

from gradtape.io import atomic
from gradtape.io.atomic import replacing


def write(path, content):
    with replacing(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        file.write(content)


def test_a_file_is_made_and_replaced(tmp_path):
    path = tmp_path / "file"
    write(path, "old")
    write(str(path), "new")
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["file"]


def test_the_old_file_is_there_until_the_end(tmp_path):
    path = tmp_path / "file"
    write(path, "old")
    with replacing(path) as temporary:
        assert os.path.dirname(temporary) == str(tmp_path)
        with open(temporary, "w", encoding="utf-8") as file:
            file.write("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt, ValueError])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "file"
    write(path, "old")

    def fail():
        with replacing(path) as temporary:
            with open(temporary, "w", encoding="utf-8") as file:
                file.write("ne")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failing_disk_leaves_the_old_file(tmp_path, monkeypatch, step):
    path = tmp_path / "file"
    write(path, "old")

    def fail(*_args):
        raise OSError("no space")

    monkeypatch.setattr(atomic.os, step, fail)
    with pytest.raises(OSError, match="no space"):
        write(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_content_is_on_the_disk_before_the_name_and_the_name_at_the_end(tmp_path, monkeypatch):
    steps = []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor):
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def replaced(*args):
        steps.append("replace")
        replace(*args)

    monkeypatch.setattr(atomic.os, "fsync", synced)
    monkeypatch.setattr(atomic.os, "replace", replaced)
    write(tmp_path / "file", "new")
    assert steps == ["file", "replace", "folder"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "file", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_permissions_stay_and_new_files_follow_the_mask(tmp_path):
    path = tmp_path / "file"
    mask = os.umask(0o027)
    try:
        write(path, "old")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o604)
        write(path, "new")
        assert stat.S_IMODE(path.stat().st_mode) == 0o604
    finally:
        os.umask(mask)


def test_no_folder_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        write(tmp_path / "missing" / "file", "new")
    with pytest.raises(IsADirectoryError):
        write(tmp_path, "new")
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_not_there_is_an_error_of_the_file(tmp_path):
    path = tmp_path / "nowhere" / "file"
    with pytest.raises(FileNotFoundError) as caught:
        write(path, "new")
    assert caught.value.filename == str(path)


def test_what_killed_processes_left_is_swept_up(tmp_path):
    left, held, recent = (tmp_path / f".gradtape-{name}.tmp" for name in ("left", "held", "recent"))
    other = tmp_path / "other.tmp"
    for file in (left, held, recent, other):
        file.write_text("part")
    for file in (left, held, other):
        os.utime(file, (0, 0))
    fcntl = pytest.importorskip("fcntl", reason="there are no such locks")
    with held.open("w") as writer:
        os.utime(held, (0, 0))
        fcntl.flock(writer, fcntl.LOCK_EX)
        write(tmp_path / "file", "new")
    assert set(os.listdir(tmp_path)) == {"file", held.name, recent.name, "other.tmp"}


def test_what_is_no_file_is_not_replaced(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(OSError, match="not a regular file"):
        write(path, "new")
    assert stat.S_ISFIFO(os.stat(path).st_mode)
    assert os.listdir(tmp_path) == ["pipe"]
