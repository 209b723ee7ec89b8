"""Restoring a backup."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path

import golden_stores
import pytest
from undo_cases import KillAtCall, KilledByTest, kept_in, same, store_to_recover

from engine.cli.main import main
from engine.errors import StoreError, StoreLocked
from engine.mapped import undo
from engine.mapped.backup import JOURNAL, TREES, BackupDisk, BackupWriter, read
from engine.mapped.undo import CannotUndo


def test_a_stopped_undo_can_be_repeated(tmp_path):
    for number in range(1, 40):
        store = store_to_recover(tmp_path / f"store{number}")
        files_before = golden_stores.fingerprint(store)
        assert main(["recover", str(store), "--apply", "--yes"]) == 0
        (folder,) = kept_in(tmp_path)
        kill = KillAtCall(number)
        with pytest.MonkeyPatch.context() as patched:
            for name in ("_restore", "_write", "_replace", "_note", "_link"):
                patched.setattr(undo, name, kill.wrap(getattr(undo, name)))
            try:
                main(["recover", str(store), "--undo", str(folder), "--yes"])
                ended = True
            except KilledByTest:
                ended = False
        if not ended:
            assert main(["recover", str(store), "--undo", str(folder), "--yes"]) == 0
        assert same(store, files_before) == [], number
        shutil.rmtree(store)
        shutil.rmtree(folder)
        if ended:
            assert number > 5
            return
    raise AssertionError("the undo has more steps than were tried")


def test_a_small_file_changed_through_a_mapping_is_detected_without_its_time(tmp_path, capsys):
    """A file system in memory does not update a file's time when a broker writes through its mapping."""
    store = store_to_recover(tmp_path / "store")
    assert main(["recover", str(store), "--apply", "--yes"]) == 0
    (folder,) = kept_in(tmp_path)
    checkpoint = store / "checkpoint"
    times, bytes_before = checkpoint.stat(), checkpoint.read_bytes()
    for new, expected in ((bytes(8) + bytes_before[8:], 3), (bytes_before, 0)):
        checkpoint.write_bytes(new)
        os.utime(checkpoint, ns=(times.st_atime_ns, times.st_mtime_ns))
        capsys.readouterr()
        assert main(["recover", str(store), "--undo", str(folder), "--yes"]) == expected
        assert ("this file was written" in capsys.readouterr().err) == (expected == 3)


def test_a_backup_of_an_earlier_version_has_no_digests_and_is_restored(tmp_path):
    store = store_to_recover(tmp_path / "store")
    files_before = golden_stores.fingerprint(store)
    assert main(["recover", str(store), "--apply", "--yes"]) == 0
    (folder,) = kept_in(tmp_path)
    entries = [json.loads(line) for line in (folder / JOURNAL).read_text().splitlines()]
    for entry in entries:
        for stamps in (entry.get("before"), entry.get("after")):
            for stamp in (stamps or {}).values():
                del stamp[3:]
    (folder / JOURNAL).write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    assert main(["recover", str(store), "--undo", str(folder), "--yes"]) == 0
    assert same(store, files_before) == []


# One fault after the other, on a folder of small files.

LOG, QUEUE, TABLE, INDEX = "commitlog/0", "consumequeue/Orders/0/0", "config/topics.json", "index/20261128"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A log file, a queue file, a table, an index file, and a lock that was taken before."""
    root = tmp_path / "store"
    for name, data in ((LOG, b"unit" * 1000), (QUEUE, b"entry" * 800), (TABLE, b"{}"), (INDEX, b"old"), ("lock", b"J")):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


def changed(root: Path, *, is_finished: bool = True) -> Path:
    """Cut the log, write the table, delete the queue file, make a file, take the lock: return the backup folder."""
    writer = BackupWriter(root, "test", [root / "commitlog"])
    disk = BackupDisk(writer)
    disk.open(root / LOG, 4000).write(3000, bytes(1000))
    disk.write_file(root / TABLE, b"{}{}")
    disk.delete(root / QUEUE)
    disk.write_file(root / "config" / "new.json", b"{}")
    disk.lock(root / "lock").release()
    disk.close()
    if is_finished:
        writer.finish()
    writer.close()
    return writer.folder


def restore(folder: Path, root: Path) -> None:
    journal = read(folder)
    undo.check(journal, root)
    undo.undo(journal, root)
    undo.finish(journal, root)


def piece_of(folder: Path, name: str) -> Path:
    return folder / read(folder).files[name].pieces[0].file_name


def link_of(folder: Path, name: str) -> Path:
    return folder / str(read(folder).files[name].link)


def shorten(path: Path) -> None:
    os.truncate(path, 10)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (lambda folder, _root: link_of(folder, QUEUE).unlink(), f"what was kept of {QUEUE} is missing"),
        (lambda folder, _root: os.utime(link_of(folder, QUEUE)), f"what was kept of {QUEUE} is damaged"),
        (lambda folder, _root: piece_of(folder, LOG).unlink(), f"what was kept of {LOG} is missing"),
        (lambda folder, _root: shorten(piece_of(folder, LOG)), f"what was kept of {LOG} is damaged"),
        (lambda folder, _root: piece_of(folder, TABLE).write_bytes(b"[]"), f"what was kept of {TABLE} is damaged"),
        (lambda _folder, root: (root / "config" / "new.json").unlink(), "this file is gone"),
        (lambda _folder, root: (root / QUEUE).write_bytes(b"entry"), "this file was made"),
        (lambda _folder, root: (root / TABLE).write_bytes(b"[][]"), "this file was written or replaced"),
    ],
)
def test_missing_damaged_and_newer_files_are_refused_before_the_restore(root, fault, message):
    folder = changed(root)
    fault(folder, root)
    files_before = golden_stores.fingerprint(root)
    with pytest.raises(CannotUndo, match=message):
        undo.check(read(folder), root)
    assert same(root, files_before) == []


def test_a_backup_of_another_store_is_refused(root, tmp_path):
    """A renamed store is still the same store, because its folder has the same inode."""
    folder = changed(root)
    shutil.copytree(root, tmp_path / "copy")
    with pytest.raises(CannotUndo, match="belongs to"):
        undo.check(read(folder), tmp_path / "copy")
    undo.check(read(folder), root.rename(tmp_path / "renamed"))


def test_a_stopped_command_can_be_undone(root):
    """The state of files that the command had begun to change is unknown. All others must be unchanged."""
    files_before = golden_stores.fingerprint(root)
    folder = changed(root, is_finished=False)
    (root / QUEUE).with_name(".0.undo").write_bytes(b"of an undo that was stopped")
    restore(folder, root)
    assert same(root, files_before) == []


def test_a_log_that_got_messages_since_a_stopped_command_is_left_alone(root):
    """The command wrote only zeros there. Other bytes are newer messages, and would be lost."""
    folder = changed(root, is_finished=False)
    data = bytearray((root / LOG).read_bytes())
    data[3500] = 7
    (root / LOG).write_bytes(data)
    with pytest.raises(CannotUndo, match="got other bytes") as refused:
        undo.check(read(folder), root)
    assert refused.value.file == str(root / LOG)
    (root / LOG).unlink()  # these bytes are no newer message
    undo.check(read(folder), root)


def test_a_file_with_another_inode_is_replaced(root):
    """A table is replaced by renaming. Its bytes are written to a new file, because the present one may be open."""
    files_before = golden_stores.fingerprint(root)
    folder = changed(root, is_finished=False)
    (root / TABLE).rename(root / "config" / "aside")
    (root / "config" / "aside").write_bytes(b"another's")
    (root / "config" / "aside").rename(root / "config" / "new.json")
    restore(folder, root)
    assert same(root, files_before) == []


def test_an_undo_is_repeated_and_an_incomplete_line_of_the_first_is_cut(root):
    files_before = golden_stores.fingerprint(root)
    folder = changed(root)
    journal = read(folder)
    undo.undo(journal, root)
    with (folder / JOURNAL).open("ab") as file:
        file.write(b'{"undo":"do')
    restore(folder, root)
    assert same(root, files_before) == []
    assert read(folder).undone


# Whole folders that were exchanged.


def exchanged(root: Path, *, is_finished: bool = True) -> Path:
    """Build an index folder in the backup folder and put it in place; make a folder that was not there."""
    writer = BackupWriter(root, "test", [root / "commitlog"])
    for name in ("index", "consumequeue_ext"):
        built = writer.folder / TREES / name
        built.mkdir()
        (built / "0").write_bytes(b"new")
        writer.before_exchange(name)
        if (root / name).exists():
            undo.exchange(built, root / name)
        else:
            built.rename(root / name)
    if is_finished:
        writer.finish()
    writer.close()
    return writer.folder


def test_an_exchanged_folder_is_restored(root):
    files_before = golden_stores.fingerprint(root)
    folder = exchanged(root)
    assert [path.name for path in (root / "index").iterdir()] == ["0"]
    restore(folder, root)
    assert same(root, files_before) == []
    assert (folder / TREES / "index" / "0").read_bytes() == b"new"
    restore(folder, root)  # the contents in place stay there
    assert same(root, files_before) == []


@pytest.mark.parametrize("place", ["aside", "missing"])
def test_an_exchange_that_was_stopped_between_its_steps_is_undone(root, place):
    """Without a system call for it the old folder is set aside first: it may be there, and no folder in its place."""
    files_before = golden_stores.fingerprint(root)
    folder = exchanged(root, is_finished=False)
    (folder / TREES / "index").rename(folder / TREES / "index.old")
    if place == "missing":
        shutil.rmtree(root / "index")
    restore(folder, root)
    assert same(root, files_before) == []


def test_a_folder_that_is_gone_is_named(root):
    folder = exchanged(root)
    shutil.rmtree(folder / TREES / "index")
    with pytest.raises(CannotUndo, match="the folder index as it was is missing"):
        undo.check(read(folder), root)


def test_without_a_system_call_two_folders_are_swapped_in_steps(root, monkeypatch):
    monkeypatch.setattr(undo, "_system_call", lambda: None)
    undo.exchange(root / "index", root / "config")
    assert (root / "config" / "20261128").exists()
    assert (root / "index" / "topics.json").exists()
    with pytest.raises(FileNotFoundError):
        undo.exchange(root / "missing", root / "config")
    assert (root / "config" / "20261128").exists()
    assert not (root / "missing.old").exists()


# A command that fails undoes its own changes.


def test_a_command_that_fails_is_undone_and_keeps_no_folder(root):
    files_before = golden_stores.fingerprint(root)
    writer = BackupWriter(root, "test", [root / "commitlog"])
    disk = BackupDisk(writer)
    disk.write_file(root / TABLE, b"half")
    disk.close()
    undo.take_back(writer, OSError(errno.ENOSPC, "No space left"))
    assert same(root, files_before) == []
    assert not writer.folder.exists()


def test_a_command_on_a_locked_store_leaves_the_lock_file(root):
    """The holder may have changed its text and time meanwhile. The first command finds no lock file at all."""
    (root / "lock").unlink()
    writer = BackupWriter(root, "test")
    (root / "lock").write_bytes(b"lock")
    undo.take_back(writer, StoreLocked("another process has the store open"))
    assert (root / "lock").read_bytes() == b"lock"
    assert not writer.folder.exists()
    undo.take_back(BackupWriter(root, "test"), ValueError())
    assert (root / "lock").read_bytes() == b"lock"


def test_a_new_lock_file_is_removed(root):
    (root / "lock").unlink()
    files_before = golden_stores.fingerprint(root)
    folder = changed(root)
    restore(folder, root)
    assert same(root, files_before) == []


def test_a_failed_undo_names_the_folder_and_keeps_it(root):
    writer = BackupWriter(root, "test")
    BackupDisk(writer).write_file(root / TABLE, b"half")
    piece_of(writer.folder, TABLE).unlink()
    with pytest.raises(StoreError, match=r"disk full; what was changed until then is kept here") as failed:
        undo.take_back(writer, OSError("disk full"))
    assert failed.value.file == str(writer.folder)
    assert writer.folder.exists()
