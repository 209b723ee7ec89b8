"""The journal of a backup folder, ``kept.jsonl``: how the store was, and each change."""

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

from engine.cli.main import main
from engine.codec.encode import Message
from engine.config import from_mapping
from engine.errors import StoreError
from engine.mapped import undo
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
        store = store_to_recover(tmp_path / f"store{number}")
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
        err = capsys.readouterr().err
        assert "cannot be kept here" in err
        assert "--no-backup" in err
        assert str(tmp_path) in err
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


# One change after the other, on a folder of small files.


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A log file, a queue file, a table, an empty file and an empty folder; the lock was never taken."""
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
    write_through_a_view, append_to_the_log, touch_then_delete, delete_then_write, delete_an_open_file,
    replace_by_a_new_file, move_a_folder, remove_folders,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_every_change_through_the_disk_comes_back(small, change: Callable[[BackupDisk, Path], None]):
    before = golden_stores.fingerprint(small)
    keeper = BackupWriter(small, "test", [small / "commitlog"])
    disk = BackupDisk(keeper)
    change(disk, small)
    disk.close()
    keeper.finish()
    assert same(small, before) != []
    journal = read(keeper.folder)
    undo.check(journal, small)
    undo.undo(journal, small)
    undo.finish(journal, small)
    assert same(small, before) == []


def test_a_disk_that_rests_saves_nothing(small):
    """A lab that keeps its store saves how it was before the lab, not what the lab does with it."""
    keeper = BackupWriter(small, "test", [small / "commitlog"])
    disk = BackupDisk(keeper)
    disk.rest()
    for change in CHANGES:
        if change not in (touch_then_delete, move_a_folder):
            change(disk, small)
            (small / QUEUE).write_bytes(b"entry678" * 512)
    disk.set_modified(small / LOG, 1_700_000_000_000)
    disk.move_folder(small / "consumequeue", small / "aside")
    disk.close()
    keeper.finish()
    assert read(keeper.folder).files == {}


def test_the_journal_counts_what_is_saved_and_what_is_new(small):
    """``amount`` and ``made`` are the numbers that a command prints; the lock is in none of them."""
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


def test_a_last_line_that_is_torn_is_no_change(small):
    """The line is written before the change: if it is not complete, the change was not made."""
    keeper = BackupWriter(small, "test")
    keeper.before_make(small / "new")
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


def test_two_backups_of_one_second_have_folders_of_their_own(small, monkeypatch):
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
    """Copying in its place is right where links do not exist, not where the disk reports an error."""

    def fails(*_arguments: object, **_more: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    keeper = BackupWriter(small, "test")
    monkeypatch.setattr(os, "link", fails)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        BackupDisk(keeper).delete(small / TABLE)
    keeper.close()
    assert (small / TABLE).exists()
    assert all("link" not in json.loads(line) for line in (keeper.folder / JOURNAL).read_text().splitlines())
