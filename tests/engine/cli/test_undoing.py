"""What a command of ours changes is kept beside the store, and comes back with every byte, length, name and time.

``recover --apply`` and ``dispatch`` cut and deleted for good: who had taken no snapshot before had nothing left.
"""

from __future__ import annotations

import errno
import io
import json
import os
import random
import shutil
from pathlib import Path

import golden_stores
import pytest
import store_damage
from hypothesis import given, settings
from hypothesis import strategies as st
from made_stores import healthy

from engine import rebuilding
from engine.cli import consent
from engine.cli.main import COMMANDS, build_parser, main
from engine.codec.encode import Message
from engine.config import from_mapping
from engine.mapped import keeping, kept_undo
from engine.mapped.disk import Disk, DiskFile, RealDisk
from engine.mapped.keeping import Keeper
from engine.mapped.keeping_disk import KeepingDisk, KeepingFile
from engine.mapped.kept_folder import JOURNAL
from engine.mapped.store_lock import StoreLock
from engine.message_store import MessageStore

CRASHED = [name for name in golden_stores.names() if "crash" in name or "gone" in name]
PUT = ["--topic", "Orders", "--body", "one more"]


def like(name: str) -> str:
    return "4.9" if "-4.9" in name else "5.3"


def kept_in(place: Path) -> list[Path]:
    return sorted(place.glob("*.kept-*"))


def same(store: Path, before: golden_stores.Fingerprint) -> list[str]:
    return golden_stores.changes(before, golden_stores.fingerprint(store))


def undone(store: Path, before: golden_stores.Fingerprint) -> None:
    (folder,) = kept_in(store.parent)
    assert main(["recover", str(store), "--undo", str(folder), "--yes"]) == 0
    assert same(store, before) == []


def made(root: Path) -> Path:
    """A store that recovery cuts, deletes files of and dispatches again, small enough to try every step."""
    root = healthy().write(root)
    log = max((root / "commitlog").iterdir())
    data = log.read_bytes()
    used = len(data.rstrip(b"\0"))
    log.write_bytes(data[: used - 200] + b"torn" * 50 + data[used:])
    queue = root / "consumequeue" / "Orders" / "0"
    (queue / f"{int(max(file.name for file in queue.iterdir())) + 400:020d}").write_bytes(bytes(400))
    shutil.rmtree(root / "consumequeue" / "Payments" / "1")
    (root / "abort").write_text("4711")
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "topics.json").write_text('{"topicConfigTable":{}}')
    return root


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return made(tmp_path / "store")


# -- there and back


@pytest.mark.golden
@pytest.mark.crash
@pytest.mark.parametrize("name", CRASHED)
def test_a_recovery_comes_back_whole(golden, tmp_path, capsys, name):
    store = tmp_path / "store"
    shutil.copytree(golden(name), store)
    before = golden_stores.fingerprint(store)
    assert main(["recover", str(store), "--apply", "--yes", "--like", like(name)]) == 0
    said = capsys.readouterr().out
    assert f"recover {store} --undo {kept_in(tmp_path)[0]} brings it back" in said
    assert same(store, before) != []
    undone(store, before)
    undone(store, before)  # a second time does nothing


@pytest.mark.golden
@pytest.mark.parametrize("name", ["multi-queue-ext-5.3.3", "batchcq-5.3.3", "clean-4.9.8", "crash-5.3.3"])
def test_a_dispatch_comes_back_whole(golden, tmp_path, capsys, name):
    store = tmp_path / "store"
    shutil.copytree(golden(name), store)
    (store / ".dispatch").mkdir()
    (store / ".dispatch" / "half").write_text("left by a killed one")
    before = golden_stores.fingerprint(store)
    assert main(["dispatch", str(store), "--yes", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["kept"]["folder"] == str(kept_in(tmp_path)[0])
    assert record["kept"]["files"] > 0
    assert not (store / ".dispatch").exists()
    undone(store, before)


@pytest.mark.golden
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1 << 32), name=st.sampled_from(["crash-5.3.3", "batchcq-5.3.3", "clean-4.9.8"]))
def test_whatever_is_damaged_a_recovery_comes_back(golden, tmp_path_factory, seed, name):
    place = tmp_path_factory.mktemp("damaged")
    store = place / "store"
    shutil.copytree(golden(name), store)
    rng = random.Random(seed)
    store_damage.damage(rng, store)
    before = golden_stores.fingerprint(store)
    code = main(["recover", str(store), "--apply", "--yes", "--empty-log", "--like", like(name)])
    if code == 0:
        undone(store, before)
    else:
        assert same(store, before) == []
        assert kept_in(place) == []
    shutil.rmtree(place)


def test_a_put_that_recovers_comes_back_and_one_that_does_not_keeps_nothing(store, tmp_path, capsys):
    before = golden_stores.fingerprint(store)
    assert main(["put", str(store), *PUT, "--yes", "--json"]) == 0
    (record,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert record["kept"] == str(kept_in(tmp_path)[0])
    undone(store, before)
    shutil.rmtree(kept_in(tmp_path)[0])
    assert main(["recover", str(store), "--apply", "--yes", "--no-backup"]) == 0
    assert main(["put", str(store), *PUT, "--yes"]) == 0
    assert kept_in(tmp_path) == []


@pytest.mark.parametrize("command", [["recover", "--apply"], ["dispatch"], ["put", *PUT]])
def test_no_backup_does_without(store, tmp_path, command):
    assert main([command[0], str(store), *command[1:], "--yes", "--no-backup"]) == 0
    assert kept_in(tmp_path) == []


def test_a_log_elsewhere_and_a_store_behind_a_link(tmp_path):
    """The log's folder may be a link, and the store's own name: what is kept lies beside the store itself."""
    (tmp_path / "disk").mkdir()
    store = made(tmp_path / "disk" / "store")
    (tmp_path / "elsewhere").mkdir()
    (store / "commitlog").rename(tmp_path / "elsewhere" / "commitlog")
    (store / "commitlog").symlink_to(tmp_path / "elsewhere" / "commitlog")
    link = tmp_path / "link"
    link.symlink_to(store)
    before = golden_stores.fingerprint(tmp_path)
    assert main(["recover", str(link), "--apply", "--yes"]) == 0
    (folder,) = kept_in(tmp_path / "disk")
    assert main(["recover", str(link), "--undo", str(folder), "--yes"]) == 0
    shutil.rmtree(folder)
    assert [line for line in same(tmp_path, before) if not line.startswith("disk:")] == []


# -- stopped on the way


class Stopped(BaseException):
    """As ``kill -9``: nobody cleans up behind it."""


def stop_at(monkeypatch: pytest.MonkeyPatch, number: int) -> list[str]:
    """Stop at the ``number``-th call that changes the disk; gives the calls so far."""
    calls: list[str] = []

    def guard(name: str, real):
        def call(*arguments, **more):
            calls.append(name)
            if len(calls) == number:
                raise Stopped
            return real(*arguments, **more)

        return call

    for name in ("write_file", "replace", "delete", "remove_folder", "open"):
        monkeypatch.setattr(KeepingDisk, name, guard(name, getattr(KeepingDisk, name)))
    for name in ("write", "delete", "flush", "_map", "reserve"):
        monkeypatch.setattr(KeepingFile, name, guard(name, getattr(KeepingFile, name)))
    monkeypatch.setattr(Keeper, "_write", guard("journal", Keeper._write))
    monkeypatch.setattr("engine.cli.keeping.take_back", lambda *_: None)  # a killed process does nothing more
    return calls


def steps_of(tmp_path: Path) -> int:
    with pytest.MonkeyPatch.context() as patched:
        calls = stop_at(patched, -1)
        assert main(["recover", str(made(tmp_path / "counted")), "--apply", "--yes"]) == 0
    shutil.rmtree(tmp_path / "counted")
    shutil.rmtree(kept_in(tmp_path)[0])
    return len(calls)


def test_killed_at_any_step_a_recovery_comes_back(tmp_path):
    steps = steps_of(tmp_path)
    assert steps > 60
    for number in range(2, steps + 1):
        store = made(tmp_path / f"store{number}")
        before = golden_stores.fingerprint(store)
        with pytest.MonkeyPatch.context() as patched:
            stop_at(patched, number)
            with pytest.raises(Stopped):
                main(["recover", str(store), "--apply", "--yes"])
        folders = kept_in(tmp_path)
        if (folders[0] / JOURNAL).read_bytes():
            assert main(["recover", str(store), "--undo", str(folders[0]), "--yes"]) == 0, number
        assert same(store, before) == [], number
        shutil.rmtree(store)
        shutil.rmtree(folders[0])


def test_an_undo_that_was_stopped_is_begun_again(tmp_path):
    for number in range(1, 40):
        store = made(tmp_path / f"store{number}")
        before = golden_stores.fingerprint(store)
        assert main(["recover", str(store), "--apply", "--yes"]) == 0
        (folder,) = kept_in(tmp_path)
        count = 0

        def stop(real, number=number):
            def call(*arguments, **more):
                nonlocal count
                count += 1
                if count == number:
                    raise Stopped
                return real(*arguments, **more)

            return call

        with pytest.MonkeyPatch.context() as patched:
            for name in ("_put_back", "_write", "_replace", "_note", "_link"):
                patched.setattr(kept_undo, name, stop(getattr(kept_undo, name)))
            try:
                main(["recover", str(store), "--undo", str(folder), "--yes"])
                ended = True
            except Stopped:
                ended = False
        if not ended:
            assert main(["recover", str(store), "--undo", str(folder), "--yes"]) == 0
        assert same(store, before) == [], number
        shutil.rmtree(store)
        shutil.rmtree(folder)
        if ended:
            assert number > 5
            return
    raise AssertionError("the undo has more steps than were tried")


def test_a_full_disk_while_it_keeps_changes_nothing(tmp_path, capsys):
    real = Keeper._write
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
            patched.setattr(Keeper, "_write", full)
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

    monkeypatch.setattr("engine.mapped.keeping._new_folder", forbidden)
    for command in (["recover", "--apply"], ["dispatch"], ["put", *PUT]):
        assert main([command[0], str(store), *command[1:], "--yes"]) == 3
        said = capsys.readouterr().err
        assert "cannot be kept here" in said
        assert "--no-backup" in said
        assert str(tmp_path) in said
        assert same(store, before) == []


def test_a_store_that_others_took_meanwhile_is_refused_and_no_folder_is_left(store, tmp_path, monkeypatch):
    (store / "lock").write_bytes(b"lo")
    before = golden_stores.fingerprint(store)
    real = RealDisk.lock

    def taken(disk, path):
        with StoreLock(path):
            (store / "lock").write_bytes(b"lo")
            os.utime(store / "lock", ns=(0, before["lock"][2]))
            return real(disk, path)

    monkeypatch.setattr(RealDisk, "lock", taken)
    assert main(["recover", str(store), "--apply", "--yes"]) == 3
    assert same(store, before) == []
    assert kept_in(tmp_path) == []


def test_killed_at_any_step_a_dispatch_comes_back(tmp_path):
    """Also where folders cannot be exchanged in one step."""
    for swap in (True, False):
        for number in range(1, 30):
            store = made(tmp_path / "store")
            before, count, ended = golden_stores.fingerprint(store), 0, False

            def stop(real, number=number):
                def call(*arguments):
                    nonlocal count
                    count += 1
                    if count == number:
                        raise Stopped
                    return real(*arguments)

                return call

            with pytest.MonkeyPatch.context() as patched:
                patched.setattr("engine.cli.keeping.take_back", lambda *_: None)
                patched.setattr(Keeper, "_write", stop(Keeper._write))
                if not swap:
                    patched.setattr(kept_undo, "_system_call", lambda: None)
                    patched.setattr(Path, "rename", stop(Path.rename))
                patched.setattr(rebuilding, "exchange", stop(kept_undo.exchange))
                try:
                    ended = main(["dispatch", str(store), "--yes"]) == 0
                except Stopped:
                    assert not ended
            (folder,) = kept_in(tmp_path)
            if number > 1:
                assert main(["recover", str(store), "--undo", str(folder), "--yes"]) == 0, number
            assert same(store, before) == [], number
            shutil.rmtree(store)
            shutil.rmtree(folder)
            if ended:
                assert number > 8
                break
        else:
            raise AssertionError("more steps than were tried")


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


def test_where_blocks_can_be_shared_nothing_is_copied(store, monkeypatch):
    before = golden_stores.fingerprint(store)
    shared = []

    def clone(reading: int, writing: int) -> bool:
        shared.append(os.copy_file_range(reading, writing, os.fstat(reading).st_size, 0, 0))
        return True

    monkeypatch.setattr(keeping, "_CLONED_FROM", 1)
    monkeypatch.setattr(keeping, "_clone", clone)
    assert main(["recover", str(store), "--apply", "--yes"]) == 0
    assert len(shared) > 3
    undone(store, before)


# -- refused


@pytest.fixture
def applied(store, tmp_path, capsys) -> tuple[Path, Path]:
    assert main(["recover", str(store), "--apply", "--yes"]) == 0
    capsys.readouterr()
    return store, kept_in(tmp_path)[0]


def refuses(store: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    before = golden_stores.fingerprint(store)
    assert main(["recover", str(store), "--undo", str(folder), "--yes"]) == 3
    assert same(store, before) == []
    return capsys.readouterr().err


def test_a_store_that_was_opened_and_written_since_is_left_alone(applied, capsys):
    store, folder = applied
    assert main(["put", str(store), *PUT, "--yes"]) == 0
    assert "has changed since" in refuses(store, folder, capsys)


@pytest.mark.parametrize("what", ["grown", "new", "gone"])
def test_one_file_that_changed_since_is_named(applied, capsys, what):
    store, folder = applied
    file = min((store / "commitlog").iterdir())
    if what == "grown":
        with file.open("r+b") as data:
            data.write(b"x")
    elif what == "new":
        file = file.with_name(f"{1 << 40:020d}")
        file.write_bytes(b"x")
    else:
        file.unlink()
    assert str(file) in refuses(store, folder, capsys)


def test_a_store_that_somebody_holds_is_left_alone(applied, capsys):
    store, folder = applied
    with StoreLock(store / "lock"):
        assert "open for writing" in refuses(store, folder, capsys)


def test_a_folder_of_another_store_is_refused(applied, tmp_path, capsys):
    other = made(tmp_path / "other")
    assert "belongs to" in refuses(other, applied[1], capsys)


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


def test_what_is_no_folder_of_ours_is_refused(store, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    assert "no journal" in refuses(store, tmp_path / "empty", capsys)
    assert "no journal" in refuses(store, tmp_path / "absent", capsys)


def test_it_says_in_numbers_what_comes_back_and_asks(applied, capsys, monkeypatch):
    store, folder = applied
    before = golden_stores.fingerprint(store)
    assert main(["recover", str(store), "--undo", str(folder)]) == 2
    said = capsys.readouterr().err
    assert "are as they were" in said
    assert "--yes" in said
    terminal = io.StringIO("n\n")
    terminal.isatty = lambda: True
    monkeypatch.setattr(consent.sys, "stdin", terminal)
    monkeypatch.setattr(consent.sys.stderr, "isatty", lambda: True, raising=False)
    assert main(["recover", str(store), "--undo", str(folder)]) == 2
    assert same(store, before) == []


# -- nobody forgets


READS = {"names", "entries", "folders", "read_file", "exists", "modified", "usage", "total", "sync_folder", "close"}
READS |= {"lock"}  # how its file was is kept before anything else
FILE_READS = {"view", "is_mapped", "read", "read_into", "lend", "extents", "flush", "close"}


def test_every_call_of_the_disk_that_changes_something_keeps():
    """A call that is added to the protocol is either named here as one that changes nothing, or it keeps."""
    calls = {name for name in vars(Disk) if not name.startswith("_")}
    assert {name for name in calls - READS if name not in vars(KeepingDisk)} == set()
    calls = {name for name in vars(DiskFile) if not name.startswith("_")}
    assert {name for name in calls - FILE_READS if name not in vars(KeepingFile)} == set()
    assert "_map" in vars(KeepingFile)  # the view
    assert set(vars(RealDisk)) >= READS


WRITES_ANEW = {"copy", "snapshot", "pipeline", "bench"}


def test_every_command_that_writes_into_a_store_can_do_it_with_and_without_keeping():
    """A command that asks before it writes has the three words; one that says that it writes asks, or makes its own."""
    for name in set(COMMANDS) - {"mqadmin"}:  # that one is many names for reading commands
        parser = build_parser(name)
        known = parser._subparsers._group_actions[0].choices
        words = {option for action in known[name]._actions for option in action.option_strings}
        asks = "--yes" in words
        assert asks == ("--no-backup" in words) == ("--empty-log" in words), name
        source = Path("engine/cli/commands").joinpath(f"{name}.py").read_text("utf-8")
        if asks:
            assert "with keeping(" in source, name
        elif name not in WRITES_ANEW:
            assert "MessageStore" not in source, name


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
    keeper = Keeper(root, "test", [root / "commitlog"])
    disk = KeepingDisk(keeper)
    with MessageStore(root, config, services=False, disk=disk) as store:
        for _ in range(300):
            assert store.put_message(Message("Orders", b"x" * 300, keys="k")).ok
    disk.close()
    keeper.finish()
    undone(root, before)
