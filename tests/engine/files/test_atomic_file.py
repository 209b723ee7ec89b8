"""A file is replaced completely or not at all. Its temporary file has a separate name and never remains.

Folders are synced, and deleted with their contents.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from engine import system
from engine.files import atomic_file as module
from engine.files.atomic_file import PRIVATE, atomic_file, atomic_text, write_atomically


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_bytes_and_text_are_written_into_a_new_folder(tmp_path):
    write_atomically(tmp_path / "a" / "b" / "one", b"\0\1")
    write_atomically(tmp_path / "a" / "b" / "two", "订单\n")
    with atomic_text(tmp_path / "a" / "three", newline="") as out:
        print("x", file=out)
    assert (tmp_path / "a/b/one").read_bytes() == b"\0\1"
    assert (tmp_path / "a/b/two").read_bytes() == "订单\n".encode()
    assert (tmp_path / "a/three").read_bytes() == b"x\n"
    assert names(tmp_path / "a/b") == ["one", "two"]


def test_rights_are_those_of_a_new_file_or_those_given(tmp_path):
    mask = os.umask(0o022)
    try:
        write_atomically(tmp_path / "open", "")
        write_atomically(tmp_path / "shut", "", PRIVATE)
        write_atomically(tmp_path / "run", "", 0o777)
    finally:
        os.umask(mask)
    s_imode = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("open", "shut", "run")]
    assert s_imode == [0o644, 0o600, 0o755]


@pytest.mark.parametrize("error", [ValueError("the work"), KeyboardInterrupt()])
def test_a_block_that_raises_keeps_the_old_file(tmp_path, error):
    write_atomically(tmp_path / "x", "before")

    def write() -> None:
        with atomic_text(tmp_path / "x") as out:
            out.write("half")
            raise error

    with pytest.raises(type(error)):
        write()
    assert names(tmp_path) == ["x"]
    assert (tmp_path / "x").read_text() == "before"


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failing_disk_keeps_the_old_file(tmp_path, monkeypatch, call):
    write_atomically(tmp_path / "x", "before")

    def full(*_args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(*((os, "fsync") if call == "fsync" else (Path, "replace")), full)
    with pytest.raises(OSError, match="No space") as error:
        write_atomically(tmp_path / "x", "after")
    monkeypatch.undo()
    assert error.value.filename == str(tmp_path / "x"), (
        "the message names no temporary file, but the one that is asked for"
    )
    assert names(tmp_path) == ["x"]
    assert (tmp_path / "x").read_text() == "before"


def test_content_is_synced_before_the_name(tmp_path, monkeypatch):
    """If the rename reaches the disk before the content, a power loss leaves an empty file."""
    texts: list[str] = []
    sync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (texts.append("sync"), sync(fd))[1])
    monkeypatch.setattr(Path, "replace", lambda self, target: (texts.append("replace"), replace(self, target))[1])
    monkeypatch.setattr(system, "sync_folder", lambda folder: texts.append(f"folder {folder.name}"))
    write_atomically(tmp_path / "x", "content")
    assert texts == ["sync", "replace", f"folder {tmp_path.name}"]


@pytest.mark.parametrize(("number", "raises"), [(errno.EINVAL, False), (errno.EIO, True)])
def test_only_a_file_system_without_synced_folders_is_forgiven(tmp_path, monkeypatch, number, raises):
    def refuse(_folder: Path) -> None:
        raise OSError(number, "said")

    monkeypatch.setattr(system, "sync_folder", refuse)
    if raises:
        with pytest.raises(OSError, match="said"):
            write_atomically(tmp_path / "x", "content")
    else:
        write_atomically(tmp_path / "x", "content")
    assert (tmp_path / "x").read_text() == "content"


def test_concurrent_writers_do_not_conflict(tmp_path):
    """Three threads wrote one file through the same temporary name: 28 of 900 writes failed, because another thread had
    renamed it.
    """
    target, failed = tmp_path / "x.json", []

    def write(number: int) -> None:
        for _ in range(100):
            try:
                write_atomically(target, f"{number}" * 2000)
            except OSError as error:
                failed.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert names(tmp_path) == ["x.json"]
    assert len(set(target.read_text())) == 1


def test_a_name_of_maximum_length(tmp_path):
    name = "订" * 85
    write_atomically(tmp_path / name, "content")
    assert names(tmp_path) == [name]


def test_the_temporary_file_is_hidden_and_in_the_same_folder(tmp_path):
    with atomic_file(tmp_path / "x") as out:
        (name,) = names(tmp_path)
        assert name.startswith(".x.")
        out.write(b"content")
    assert names(tmp_path) == ["x"]


def test_a_folder_is_deleted_with_its_contents(tmp_path):
    (tmp_path / "made" / "deep").mkdir(parents=True)
    (tmp_path / "made" / "deep" / "file").write_bytes(b"x")
    module.remove_folder_tree(tmp_path / "made")
    assert not (tmp_path / "made").exists()
    module.remove_folder_tree(tmp_path / "made")


def test_a_folder_is_deleted_although_files_are_still_added(tmp_path, monkeypatch):
    path, pauses = tmp_path / "made", []
    path.mkdir()
    real = module.shutil.rmtree
    monkeypatch.setattr(module.shutil, "rmtree", lambda *a, **k: real(*a, **k) if len(pauses) > 1 else None)
    monkeypatch.setattr(module.time, "sleep", pauses.append)
    module.remove_folder_tree(path)
    assert (path.exists(), len(pauses)) == (False, 2)
