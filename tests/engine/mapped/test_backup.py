"""The journal of a backup folder, ``kept.jsonl``: the state of the store, and each change."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import golden_stores
import pytest
from undo_cases import kept_in, same, store_to_recover, undone

from engine import system
from engine.cli.main import main
from engine.codec.encode import Message
from engine.config import from_mapping
from engine.errors import StoreError
from engine.mapped import backup, undo
from engine.mapped.backup import JOURNAL, TREES, BackupDisk, BackupFile, BackupWriter, CannotBackUp, read
from engine.mapped.disk import Disk, DiskFile, RealDisk
from engine.message_store import MessageStore


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return store_to_recover(tmp_path / "store")


@pytest.fixture
def store_of_kept_folder(tmp_path: Path) -> Path:
    return store_to_recover(tmp_path / "store")


@pytest.fixture
def applied(store_of_kept_folder, tmp_path, capsys) -> tuple[Path, Path]:
    assert main(["recover", str(store_of_kept_folder), "--apply", "--yes"]) == 0
    capsys.readouterr()
    return store_of_kept_folder, kept_in(tmp_path)[0]


def undo_refusal(store: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    files_before = golden_stores.fingerprint(store)
    assert main(["recover", str(store), "--undo", str(folder), "--yes"]) == 3
    assert same(store, files_before) == []
    return capsys.readouterr().err


@pytest.mark.parametrize("how", ["missing", "damaged", "journal"])
def test_missing_or_damaged_parts_of_the_folder_are_named(applied, capsys, how):
    store, folder = applied
    file = folder / JOURNAL if how == "journal" else max((folder / "files").iterdir(), key=lambda f: f.stat().st_size)
    if how == "missing":
        file.unlink()
    else:
        data = bytearray(file.read_bytes())
        data[len(data) // 2 if how == "journal" else next(n for n, byte in enumerate(data) if byte)] ^= 0xFF
        file.write_bytes(data)
    assert str(file) in undo_refusal(store, folder, capsys)


PUT = ["--topic", "Orders", "--body", "one more"]


def test_a_full_disk_during_the_backup_changes_nothing(tmp_path, capsys):
    write = BackupWriter._write
    for number in range(1, 60):
        store = store_to_recover(tmp_path / f"store{number}")
        files_before, count = golden_stores.fingerprint(store), 0

        def full(writer, entry, number=number):
            nonlocal count
            count += 1
            if count >= number and "file" in entry:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(writer.folder))
            write(writer, entry)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(BackupWriter, "_write", full)
            code = main(["recover", str(store), "--apply", "--yes"])
        if code == 0:
            assert number > 5
            return
        assert code == 3
        assert "No space left" in capsys.readouterr().err
        assert same(store, files_before) == [], number
        assert kept_in(tmp_path) == []
        shutil.rmtree(store)
    raise AssertionError("the backup has more steps than were tried")


def test_a_backup_that_cannot_begin_leaves_no_folder(tmp_path, capsys, monkeypatch):
    """On a full disk each try left an empty folder beside the store."""
    store = store_to_recover(tmp_path / "store")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(BackupWriter, "_write", full)
    assert main(["recover", str(store), "--apply", "--yes"]) == 3
    assert f"{tmp_path}: the backup cannot be written: No space left" in capsys.readouterr().err
    assert kept_in(tmp_path) == []


def test_nothing_is_changed_without_a_possible_backup(store, tmp_path, capsys, monkeypatch):
    files_before = golden_stores.fingerprint(store)

    def forbidden(real: Path) -> Path:
        raise PermissionError(errno.EACCES, "Permission denied", str(real.parent))

    monkeypatch.setattr("engine.mapped.backup._new_folder", forbidden)
    for command in (["recover", "--apply"], ["dispatch"], ["put", *PUT]):
        assert main([command[0], str(store), *command[1:], "--yes"]) == 3
        err = capsys.readouterr().err
        assert "the backup cannot be written" in err
        assert "--no-backup" in err
        assert str(tmp_path) in err
        assert same(store, files_before) == []


def test_files_are_copied_where_links_are_impossible(store, tmp_path, monkeypatch):
    """The log is on another disk, or the folder was moved to one."""
    files_before = golden_stores.fingerprint(store)

    def other_disk(*_arguments: object, **_keywords: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "link", other_disk)
        assert main(["recover", str(store), "--apply", "--yes"]) == 0
        undone(store, files_before)
    shutil.rmtree(kept_in(tmp_path)[0])
    assert main(["recover", str(store), "--apply", "--yes"]) == 0
    monkeypatch.setattr(os, "link", other_disk)
    undone(store, files_before)


def test_other_folders_are_refused(store_of_kept_folder, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    assert "no journal" in undo_refusal(store_of_kept_folder, tmp_path / "empty", capsys)
    assert "no journal" in undo_refusal(store_of_kept_folder, tmp_path / "absent", capsys)


# The disk that backs up each change, call by call.

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


def test_every_changing_call_of_the_disk_makes_a_backup():
    """A new call of the protocol must be listed here as one that changes nothing, or make a backup."""
    calls = {name for name in vars(Disk) if not name.startswith("_")}
    assert {name for name in calls - READS if name not in vars(BackupDisk)} == set()
    calls = {name for name in vars(DiskFile) if not name.startswith("_")}
    assert {name for name in calls - FILE_READS if name not in vars(BackupFile)} == set()
    assert "_map" in vars(BackupFile)  # the call returns the view
    assert set(vars(RealDisk)) >= READS


def test_an_append_can_be_undone(tmp_path):
    """Views of the log are not copied. Bytes after its end are backed up when room is made for them."""
    config = from_mapping({"mappedFileSizeCommitLog": 1 << 16, "mappedFileSizeConsumeQueue": 400})[0]
    root = tmp_path / "store"
    with MessageStore(root, config, services=False) as store:
        assert store.put_message(Message("Orders", b"x" * 300, keys="k")).ok
    log = root / "commitlog" / f"{0:020d}"
    data = bytearray(log.read_bytes())
    data[60_000:60_100] = b"y" * 100
    log.write_bytes(data)
    files_before = golden_stores.fingerprint(root)
    writer = BackupWriter(root, "test", [root / "commitlog"])
    disk = BackupDisk(writer)
    with MessageStore(root, config, services=False, disk=disk) as store:
        for _ in range(300):
            assert store.put_message(Message("Orders", b"x" * 300, keys="k")).ok
    disk.close()
    writer.finish()
    undone(root, files_before)


# One change after the other, on a folder of small files.


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Make a folder with a log file, a queue file, a table, an empty file and an empty folder, without a lock file."""
    root = tmp_path / "store"
    for name in ("commitlog", "consumequeue/Orders/0", "config", "empty"):
        (root / name).mkdir(parents=True)
    (root / LOG).write_bytes(b"unit" * 1000 + bytes(4192))
    (root / QUEUE).write_bytes(b"entry678" * 512)
    (root / TABLE).write_text('{"topics":{}}')
    (root / "abort").touch()
    return root


LOG, QUEUE, TABLE = "commitlog/00000000000000000000", "consumequeue/Orders/0/00000000000000000000", "config/topics.json"


def write_table_twice(disk: BackupDisk, root: Path) -> None:
    disk.write_file(root / TABLE, b"{}")
    disk.write_file(root / TABLE, b"{} ")


def write_a_new_file_in_new_folders(disk: BackupDisk, root: Path) -> None:
    for path in (root / "timer" / "wheel" / "0", root / "timer" / "wheel" / "1"):
        disk.write_file(path, b"new", sync=True)
        disk.write_file(path, b"newer")
        disk.delete(path)
        disk.write_file(path, b"again")


def write_the_empty_file(disk: BackupDisk, root: Path) -> None:
    disk.write_file(root / "abort", b"4711")


def lengthen_and_make(disk: BackupDisk, root: Path) -> None:
    disk.open(root / QUEUE, 8192)
    disk.open(root / "consumequeue/Orders/1/00000000000000000000", 4096).write(0, b"entry")


def write_backwards(disk: BackupDisk, root: Path) -> None:
    file = disk.open(root / QUEUE, 4096)
    for position in (3000, 3500, 100):
        file.write(position, b"changed")


def overwrite_spans(disk: BackupDisk, root: Path) -> None:
    file = disk.open(root / QUEUE, 4096)
    for position in (2000, 2004, 100, 1996):
        file.overwrite(position, b"changed")


def overwrite_before_and_after_a_write(disk: BackupDisk, root: Path) -> None:
    file = disk.open(root / QUEUE, 4096)
    file.overwrite(3000, b"changed")
    file.overwrite(1000, b"changed")
    file.write(2000, b"written")
    file.overwrite(1998, b"changed")
    file.overwrite(3500, b"changed")
    file.write(500, b"written")
    disk.delete(root / QUEUE)


def write_through_a_view(disk: BackupDisk, root: Path) -> None:
    file = disk.open(root / QUEUE, 4096)
    file.view[10:20] = b"x" * 10
    file.close()


def append_to_the_log(disk: BackupDisk, root: Path) -> None:
    file = disk.open(root / LOG, 8192)
    file.reserve(4000, 8192)
    file.view[4000:4008] = b"unitunit"
    file.close()


def touch_then_delete(disk: BackupDisk, root: Path) -> None:
    disk.set_modified(root / TABLE, 1_700_000_000_000)
    disk.delete(root / TABLE)


def delete_then_write(disk: BackupDisk, root: Path) -> None:
    disk.delete(root / TABLE)
    disk.delete(root / TABLE)
    disk.delete(root / "never.there")
    disk.write_file(root / TABLE, b"anew")


def delete_an_open_file(disk: BackupDisk, root: Path) -> None:
    disk.open(root / QUEUE, 4096).delete()


def replace_by_a_new_file(disk: BackupDisk, root: Path) -> None:
    disk.write_file(root / "config/topics.json.tmp", b"{}")
    disk.replace(root / "config/topics.json.tmp", root / TABLE)
    disk.replace(root / TABLE, root / "config/other.json")


def move_a_folder(disk: BackupDisk, root: Path) -> None:
    disk.move_folder(root / "consumequeue/Orders", root / "aside/Orders")


def remove_folders(disk: BackupDisk, root: Path) -> None:
    assert disk.remove_folder(root / "empty")
    assert disk.remove_folder(root / "empty")
    assert not disk.remove_folder(root / "config")


CHANGES = [
    write_table_twice, write_a_new_file_in_new_folders, write_the_empty_file, lengthen_and_make, write_backwards,
    overwrite_spans, overwrite_before_and_after_a_write,
    write_through_a_view, append_to_the_log, touch_then_delete, delete_then_write, delete_an_open_file,
    replace_by_a_new_file, move_a_folder, remove_folders,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_every_change_through_the_disk_can_be_undone(small, change: Callable[[BackupDisk, Path], None]):
    files_before = golden_stores.fingerprint(small)
    writer = BackupWriter(small, "test", [small / "commitlog"])
    disk = BackupDisk(writer)
    change(disk, small)
    disk.close()
    writer.finish()
    assert same(small, files_before) != []
    journal = read(writer.folder)
    undo.check(journal, small)
    undo.undo(journal, small)
    undo.finish(journal, small)
    assert same(small, files_before) == []


def test_a_paused_disk_makes_no_backup(small):
    """A lab that opens a user's store backs up its state before the lab, not the lab's own changes."""
    keeper = BackupWriter(small, "test", [small / "commitlog"])
    disk = BackupDisk(keeper)
    disk.stop_backup()
    for change in CHANGES:
        if change not in (touch_then_delete, move_a_folder):
            change(disk, small)
            (small / QUEUE).write_bytes(b"entry678" * 512)
    disk.set_modified(small / LOG, 1_700_000_000_000)
    disk.move_folder(small / "consumequeue", small / "aside")
    disk.close()
    keeper.finish()
    assert read(keeper.folder).files == {}


def test_the_journal_counts_saved_and_new_files(small):
    """A command prints ``amount`` and ``made``. The lock file is in neither number."""
    keeper = BackupWriter(small, "test", [small / "commitlog"])
    assert read(keeper.folder).is_empty is False
    disk = BackupDisk(keeper)
    disk.delete(small / QUEUE)  # a second name
    disk.write_file(small / TABLE, b"{}")  # a copy
    disk.write_file(small / "config" / "new.json", b"{}")
    disk.close()
    built = keeper.folder / TREES / "index"
    built.mkdir()
    (built / "20261128000000000").write_bytes(b"x" * 5000)
    (small / "index").mkdir()
    keeper.before_exchange("index")
    keeper.before_exchange("missing")
    keeper.finish()
    journal = read(keeper.folder)
    assert journal.made == ["config/new.json"]
    assert journal.amount == (3, 4096 + len('{"topics":{}}') + 5000)
    assert journal.trees["missing"] is None


def test_the_lock_s_file_is_saved_with_its_text(small):
    (small / "lock").write_bytes(b"Java")
    keeper = BackupWriter(small, "test")
    keeper.finish()
    journal = read(keeper.folder)
    assert (journal.files["lock"].text, journal.absent, journal.amount) == ("Java", [], (0, 0))


def test_a_torn_last_line_is_no_change(small):
    """The line is written before the change. If it is incomplete, the change was not made."""
    keeper = BackupWriter(small, "test")
    keeper.before_create(small / "new")
    keeper.close()
    path = keeper.folder / JOURNAL
    path.write_bytes(path.read_bytes()[:-3])
    assert read(keeper.folder).absent == ["lock"]
    head = path.read_bytes().split(b"\n")[0] + b"\n"
    path.write_bytes(head)
    assert read(keeper.folder).is_empty


@pytest.mark.parametrize(
    "content", [b"", b"[]\n", b"no json\n", b'{"storescopeKept":2}\n', b"HEAD\n{]\n", b"HEAD\n7\n"]
)
def test_a_journal_that_cannot_be_read_is_refused(small, content):
    keeper = BackupWriter(small, "test")
    keeper.close()
    path = keeper.folder / JOURNAL
    path.write_bytes(content.replace(b"HEAD", path.read_bytes().split(b"\n")[0]))
    with pytest.raises(StoreError, match="found something else"):
        read(keeper.folder)


def test_two_backups_of_one_second_have_separate_folders(small, monkeypatch):
    monkeypatch.setattr("engine.mapped.backup.time.strftime", lambda _format: "20261129-060000")
    names = []
    for _ in range(2):
        keeper = BackupWriter(small, "test")
        keeper.close()
        names.append(keeper.folder.name)
    assert names == ["store.kept-20261129-060000", "store.kept-20261129-060000-2"]


def test_a_folder_that_cannot_be_made_beside_the_store_is_named(tmp_path):
    root = tmp_path / ("s" * 250)
    root.mkdir()
    with pytest.raises(CannotBackUp, match="File name too long") as refused:
        BackupWriter(root, "test")
    assert refused.value.file == str(tmp_path)


def test_a_second_name_that_fails_for_another_reason_ends_the_command(small, monkeypatch):
    """Copying replaces a link only where links do not exist, not where the disk reports an error."""

    def link_fails(*_arguments: object, **_keywords: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    writer = BackupWriter(small, "test")
    monkeypatch.setattr(os, "link", link_fails)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        BackupDisk(writer).delete(small / TABLE)
    writer.close()
    assert (small / TABLE).exists()
    assert all("link" not in json.loads(line) for line in (writer.folder / JOURNAL).read_text().splitlines())


@pytest.mark.parametrize("limit", [0, 1000])
def test_what_was_changed_is_synced_before_the_journal_says_that_it_is_done(tmp_path, monkeypatch, limit):
    """After a power loss the journal said that the command had ended, and names and times were not on the disk yet."""
    root = tmp_path / "store"
    (root / "config").mkdir(parents=True)
    (root / "config" / "table").write_bytes(b"old")
    writer = BackupWriter(root, "repair")
    disk = BackupDisk(writer)
    disk.write_file(root / "config" / "table", b"new")
    disk.write_file(root / "config" / "new" / "table", b"new")
    synced, fsync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino) or fsync(descriptor))
    monkeypatch.setattr(system, "sync_file_system", lambda _folder: synced.append(0))
    monkeypatch.setattr(backup, "MAX_SYNCED_FILES", limit)
    writer.finish()
    inodes = {path.stat().st_ino for path in (root / "config").rglob("*")} | {(root / "config").stat().st_ino}
    assert inodes <= set(synced[:-1]) if limit else synced[0] == 0
    assert synced[-1] == (writer.folder / JOURNAL).stat().st_ino
