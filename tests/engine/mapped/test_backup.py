"""The journal of a backup folder, ``kept.jsonl``: how the store was, and each change."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import golden_stores
import pytest
from undone_stores import kept_in, made, same, undone

from engine.cli.main import main
from engine.codec.encode import Message
from engine.config import from_mapping
from engine.mapped.backup import JOURNAL, BackupDisk, BackupFile, BackupWriter
from engine.mapped.disk import Disk, DiskFile, RealDisk
from engine.message_store import MessageStore


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return made(tmp_path / "store")


@pytest.fixture
def store_of_kept_folder(tmp_path: Path) -> Path:
    return made(tmp_path / "store")


@pytest.fixture
def applied(store_of_kept_folder, tmp_path, capsys) -> tuple[Path, Path]:
    assert main(["recover", str(store_of_kept_folder), "--apply", "--yes"]) == 0
    capsys.readouterr()
    return store_of_kept_folder, kept_in(tmp_path)[0]


def refuses(store: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    before = golden_stores.fingerprint(store)
    assert main(["recover", str(store), "--undo", str(folder), "--yes"]) == 3
    assert same(store, before) == []
    return capsys.readouterr().err


@pytest.mark.parametrize("how", ["missing", "damaged", "journal"])
def test_what_is_missing_or_damaged_in_the_folder_is_named(applied, capsys, how):
    store, folder = applied
    file = folder / JOURNAL if how == "journal" else max((folder / "files").iterdir(), key=lambda f: f.stat().st_size)
    if how == "missing":
        file.unlink()
    else:
        data = bytearray(file.read_bytes())
        data[len(data) // 2 if how == "journal" else next(n for n, byte in enumerate(data) if byte)] ^= 0xFF
        file.write_bytes(data)
    assert str(file) in refuses(store, folder, capsys)


PUT = ["--topic", "Orders", "--body", "one more"]


def test_a_full_disk_while_it_keeps_changes_nothing(tmp_path, capsys):
    real = BackupWriter._write
    for number in range(1, 60):
        store = made(tmp_path / f"store{number}")
        before, count = golden_stores.fingerprint(store), 0

        def full(keeper, entry, number=number):
            nonlocal count
            count += 1
            if count >= number and "file" in entry:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(keeper.folder))
            real(keeper, entry)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(BackupWriter, "_write", full)
            code = main(["recover", str(store), "--apply", "--yes"])
        if code == 0:
            assert number > 5
            return
        assert code == 3
        assert "No space left" in capsys.readouterr().err
        assert same(store, before) == [], number
        assert kept_in(tmp_path) == []
        shutil.rmtree(store)
    raise AssertionError("more is kept than was tried")


def test_where_nothing_can_be_kept_nothing_is_changed(store, tmp_path, capsys, monkeypatch):
    before = golden_stores.fingerprint(store)

    def forbidden(real: Path) -> Path:
        raise PermissionError(errno.EACCES, "Permission denied", str(real.parent))

    monkeypatch.setattr("engine.mapped.backup._new_folder", forbidden)
    for command in (["recover", "--apply"], ["dispatch"], ["put", *PUT]):
        assert main([command[0], str(store), *command[1:], "--yes"]) == 3
        said = capsys.readouterr().err
        assert "cannot be kept here" in said
        assert "--no-backup" in said
        assert str(tmp_path) in said
        assert same(store, before) == []


def test_where_there_are_no_links_files_are_copied(store, tmp_path, monkeypatch):
    """A log on another disk, or a folder that was brought to one."""
    before = golden_stores.fingerprint(store)

    def other_disk(*_arguments: object, **_more: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "link", other_disk)
        assert main(["recover", str(store), "--apply", "--yes"]) == 0
        undone(store, before)
    shutil.rmtree(kept_in(tmp_path)[0])
    assert main(["recover", str(store), "--apply", "--yes"]) == 0
    monkeypatch.setattr(os, "link", other_disk)
    undone(store, before)


def test_what_is_no_folder_of_ours_is_refused(store_of_kept_folder, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    assert "no journal" in refuses(store_of_kept_folder, tmp_path / "empty", capsys)
    assert "no journal" in refuses(store_of_kept_folder, tmp_path / "absent", capsys)


# The disk that keeps what is changed, call by call.

READS = {
    "lock",
    "linked_file",
    "names",
    "entries",
    "folders",
    "read_file",
    "exists",
    "modified",
    "usage",
    "total",
    "sync_folder",
    "close",
}
"""What changes nothing; how the lock's file was is kept before anything else."""
FILE_READS = {"view", "is_mapped", "read", "read_into", "lend", "extents", "flush", "close"}


def test_every_call_of_the_disk_that_changes_something_keeps():
    """A call that is added to the protocol is either named here as one that changes nothing, or it keeps."""
    calls = {name for name in vars(Disk) if not name.startswith("_")}
    assert {name for name in calls - READS if name not in vars(BackupDisk)} == set()
    calls = {name for name in vars(DiskFile) if not name.startswith("_")}
    assert {name for name in calls - FILE_READS if name not in vars(BackupFile)} == set()
    assert "_map" in vars(BackupFile)  # the view
    assert set(vars(RealDisk)) >= READS


def test_an_append_of_a_store_that_keeps_comes_back(tmp_path):
    """Views of the log are not copied: what is written behind its end is kept where room is made for it."""
    config = from_mapping({"mappedFileSizeCommitLog": 1 << 16, "mappedFileSizeConsumeQueue": 400})[0]
    root = tmp_path / "store"
    with MessageStore(root, config, services=False) as store:
        assert store.put_message(Message("Orders", b"x" * 300, keys="k")).ok
    log = root / "commitlog" / f"{0:020d}"
    data = bytearray(log.read_bytes())
    data[60_000:60_100] = b"y" * 100
    log.write_bytes(data)
    before = golden_stores.fingerprint(root)
    keeper = BackupWriter(root, "test", [root / "commitlog"])
    disk = BackupDisk(keeper)
    with MessageStore(root, config, services=False, disk=disk) as store:
        for _ in range(300):
            assert store.put_message(Message("Orders", b"x" * 300, keys="k")).ok
    disk.close()
    keeper.finish()
    undone(root, before)
