"""Commands save what they change beside the store, and undo restores every byte, length, name and time.

``recover --apply`` and ``dispatch`` cut and deleted data permanently: a user without a snapshot could not go back.
"""

from __future__ import annotations

import io
import json
import os
import random
import shlex
import shutil
from pathlib import Path

import golden_stores
import pytest
import store_damage
from hypothesis import given, settings
from hypothesis import strategies as st
from undo_cases import kept_in, release_of_store, same, store_to_recover, undone

from engine import rebuilding
from engine.cli import backup
from engine.cli.main import main
from engine.codec.encode import Message
from engine.config import read_config
from engine.mapped import undo
from engine.mapped.backup import JOURNAL, BackupDisk, BackupFile, BackupWriter
from engine.mapped.disk import RealDisk
from engine.mapped.store_lock import StoreLock
from engine.message_store import MessageStore

CRASHED = [name for name in golden_stores.names() if "crash" in name or "gone" in name]
PUT = ["--topic", "Orders", "--body", "one more"]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return store_to_recover(tmp_path / "store")


# -- there and back


@pytest.mark.full_form(keep=6)
@pytest.mark.golden
@pytest.mark.crash
@pytest.mark.parametrize("name", CRASHED)
def test_a_recovery_can_be_undone(golden, tmp_path, capsys, name):
    store = tmp_path / "store"
    shutil.copytree(golden(name), store)
    files_before = golden_stores.fingerprint(store)
    assert main(["recover", str(store), "--apply", "--yes", "--like", release_of_store(name)]) == 0
    out = capsys.readouterr().out
    undo = shlex.join(["recover", str(store), "--undo", str(kept_in(tmp_path)[0])])
    assert f"To restore it:\n  storescope {undo}\n" in out
    assert same(store, files_before) != []
    undone(store, files_before)
    undone(store, files_before)  # a second time does nothing


@pytest.mark.golden
@pytest.mark.parametrize("name", ["multi-queue-ext-5.3.3", "batchcq-5.3.3", "clean-4.9.8", "crash-5.3.3"])
def test_a_dispatch_can_be_undone(golden, tmp_path, capsys, name):
    store = tmp_path / "store"
    shutil.copytree(golden(name), store)
    (store / ".dispatch").mkdir()
    (store / ".dispatch" / "half").write_text("left by a killed one")
    files_before = golden_stores.fingerprint(store)
    assert main(["dispatch", str(store), "--yes", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["kept"]["folder"] == str(kept_in(tmp_path)[0])
    assert record["kept"]["files"] > 0
    assert not (store / ".dispatch").exists()
    undone(store, files_before)


@pytest.mark.golden
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1 << 32), name=st.sampled_from(["crash-5.3.3", "batchcq-5.3.3", "clean-4.9.8"]))
def test_a_recovery_of_any_damage_can_be_undone(golden, tmp_path_factory, seed, name):
    place = tmp_path_factory.mktemp("damaged")
    store = place / "store"
    shutil.copytree(golden(name), store)
    rng = random.Random(seed)
    store_damage.damage(rng, store)
    files_before = golden_stores.fingerprint(store)
    code = main(["recover", str(store), "--apply", "--yes", "--empty-log", "--like", release_of_store(name)])
    if code == 0:
        undone(store, files_before)
    else:
        assert same(store, files_before) == []
        assert kept_in(place) == []
    shutil.rmtree(place)


def test_a_put_that_recovers_can_be_undone_and_another_leaves_no_backup(store, tmp_path, capsys):
    files_before = golden_stores.fingerprint(store)
    assert main(["put", str(store), *PUT, "--yes", "--json"]) == 0
    (record,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert record["kept"] == str(kept_in(tmp_path)[0])
    undone(store, files_before)
    shutil.rmtree(kept_in(tmp_path)[0])
    assert main(["recover", str(store), "--apply", "--yes", "--no-backup"]) == 0
    assert main(["put", str(store), *PUT, "--yes"]) == 0
    assert kept_in(tmp_path) == []


def test_a_log_elsewhere_and_a_store_behind_a_link(tmp_path):
    """The log's folder and the store's own path may be links. The backup is beside the store itself."""
    (tmp_path / "disk").mkdir()
    store = store_to_recover(tmp_path / "disk" / "store")
    (tmp_path / "elsewhere").mkdir()
    (store / "commitlog").rename(tmp_path / "elsewhere" / "commitlog")
    (store / "commitlog").symlink_to(tmp_path / "elsewhere" / "commitlog")
    link = tmp_path / "link"
    link.symlink_to(store)
    files_before = golden_stores.fingerprint(tmp_path)
    assert main(["recover", str(link), "--apply", "--yes"]) == 0
    (folder,) = kept_in(tmp_path / "disk")
    assert main(["recover", str(link), "--undo", str(folder), "--yes"]) == 0
    shutil.rmtree(folder)
    assert [line for line in same(tmp_path, files_before) if not line.startswith("disk:")] == []


# -- killed between two steps


class KilledByTest(BaseException):
    """Stops like ``kill -9``: no clean-up runs."""


def stop_at(monkeypatch: pytest.MonkeyPatch, number: int) -> list[str]:
    """Stop at the ``number``-th call that changes the disk; return the list of calls."""
    calls: list[str] = []

    def guard(name: str, real):
        def call(*arguments, **options):
            calls.append(name)
            if len(calls) == number:
                raise KilledByTest
            return real(*arguments, **options)

        return call

    for name in ("write_file", "replace", "delete", "remove_folder", "open"):
        monkeypatch.setattr(BackupDisk, name, guard(name, getattr(BackupDisk, name)))
    for name in ("write", "delete", "flush", "_map", "reserve"):
        monkeypatch.setattr(BackupFile, name, guard(name, getattr(BackupFile, name)))
    monkeypatch.setattr(BackupWriter, "_write", guard("journal", BackupWriter._write))
    monkeypatch.setattr("engine.cli.backup.take_back", lambda *_: None)  # a killed process changes nothing afterwards
    return calls


def steps_of(tmp_path: Path) -> int:
    with pytest.MonkeyPatch.context() as patched:
        calls = stop_at(patched, -1)
        assert main(["recover", str(store_to_recover(tmp_path / "counted")), "--apply", "--yes"]) == 0
    shutil.rmtree(tmp_path / "counted")
    shutil.rmtree(kept_in(tmp_path)[0])
    return len(calls)


def test_a_recovery_killed_at_any_step_can_be_undone(tmp_path):
    steps = steps_of(tmp_path)
    assert steps > 60
    for number in range(2, steps + 1):
        store = store_to_recover(tmp_path / f"store{number}")
        files_before = golden_stores.fingerprint(store)
        with pytest.MonkeyPatch.context() as patched:
            stop_at(patched, number)
            with pytest.raises(KilledByTest):
                main(["recover", str(store), "--apply", "--yes"])
        folders = kept_in(tmp_path)
        if (folders[0] / JOURNAL).read_bytes():
            assert main(["recover", str(store), "--undo", str(folders[0]), "--yes"]) == 0, number
        assert same(store, files_before) == [], number
        shutil.rmtree(store)
        shutil.rmtree(folders[0])


def test_a_store_locked_meanwhile_is_refused_and_leaves_no_folder(store, tmp_path, monkeypatch):
    (store / "lock").write_bytes(b"lo")
    files_before = golden_stores.fingerprint(store)
    real = RealDisk.lock

    def lock_after_others(disk, path):
        with StoreLock(path):
            (store / "lock").write_bytes(b"lo")
            os.utime(store / "lock", ns=(0, files_before["lock"][2]))
            return real(disk, path)

    monkeypatch.setattr(RealDisk, "lock", lock_after_others)
    assert main(["recover", str(store), "--apply", "--yes"]) == 3
    assert same(store, files_before) == []
    assert kept_in(tmp_path) == []


def test_a_dispatch_killed_at_any_step_can_be_undone(tmp_path):
    """The undo also works where folders cannot be exchanged in one step."""
    for swap in (True, False):
        for number in range(1, 30):
            store = store_to_recover(tmp_path / "store")
            files_before, count, ended = golden_stores.fingerprint(store), 0, False

            def stop(real, number=number):
                def call(*arguments):
                    nonlocal count
                    count += 1
                    if count == number:
                        raise KilledByTest
                    return real(*arguments)

                return call

            with pytest.MonkeyPatch.context() as patched:
                patched.setattr("engine.cli.backup.take_back", lambda *_: None)
                patched.setattr(BackupWriter, "_write", stop(BackupWriter._write))
                if not swap:
                    patched.setattr(undo, "_system_call", lambda: None)
                    patched.setattr(Path, "rename", stop(Path.rename))
                patched.setattr(rebuilding, "exchange", stop(undo.exchange))
                try:
                    ended = main(["dispatch", str(store), "--yes"]) == 0
                except KilledByTest:
                    assert not ended
            (folder,) = kept_in(tmp_path)
            if number > 1:
                assert main(["recover", str(store), "--undo", str(folder), "--yes"]) == 0, number
            assert same(store, files_before) == [], number
            shutil.rmtree(store)
            shutil.rmtree(folder)
            if ended:
                assert number > 8
                break
        else:
            raise AssertionError("more steps than were tried")


# -- refused


@pytest.fixture
def applied(store, tmp_path, capsys) -> tuple[Path, Path]:
    assert main(["recover", str(store), "--apply", "--yes"]) == 0
    capsys.readouterr()
    return store, kept_in(tmp_path)[0]


def undo_refusal(store: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    files_before = golden_stores.fingerprint(store)
    assert main(["recover", str(store), "--undo", str(folder), "--yes"]) == 3
    assert same(store, files_before) == []
    return capsys.readouterr().err


def test_a_store_that_was_opened_and_written_since_is_left_alone(applied, capsys):
    store, folder = applied
    assert main(["put", str(store), *PUT, "--yes"]) == 0
    assert "has changed since" in undo_refusal(store, folder, capsys)


@pytest.mark.parametrize("change", ["grown", "new", "gone"])
def test_one_file_that_changed_since_is_named(applied, capsys, change):
    store, folder = applied
    file = min((store / "commitlog").iterdir())
    if change == "grown":
        with file.open("r+b") as data:
            data.write(b"x")
    elif change == "new":
        file = file.with_name(f"{1 << 40:020d}")
        file.write_bytes(b"x")
    else:
        file.unlink()
    assert str(file) in undo_refusal(store, folder, capsys)


def test_a_locked_store_is_left_alone(applied, capsys):
    store, folder = applied
    with StoreLock(store / "lock"):
        assert "open for writing" in undo_refusal(store, folder, capsys)


def test_a_folder_of_another_store_is_refused(applied, tmp_path, capsys):
    other_store = store_to_recover(tmp_path / "other")
    assert "belongs to" in undo_refusal(other_store, applied[1], capsys)


def test_an_undo_prints_its_figures_and_asks(applied, capsys, monkeypatch):
    store, folder = applied
    files_before = golden_stores.fingerprint(store)
    assert main(["recover", str(store), "--undo", str(folder)]) == 2
    err = capsys.readouterr().err
    assert "are as they were" in err
    assert "--yes" in err
    terminal = io.StringIO("n\n")
    terminal.isatty = lambda: True
    monkeypatch.setattr(backup.sys, "stdin", terminal)
    monkeypatch.setattr(backup.sys.stderr, "isatty", lambda: True, raising=False)
    assert main(["recover", str(store), "--undo", str(folder)]) == 2
    assert same(store, files_before) == []


def test_an_undo_locks_every_folder_that_it_writes(tmp_path: Path, capsys) -> None:
    """The log is outside of the store. A lock beside the log prevents the undo from writing there."""
    log = tmp_path / "disk2" / "log"
    (tmp_path / "broker.conf").write_text(f"storePathCommitLog={log}\nmappedFileSizeCommitLog=4096\n")
    config = read_config(tmp_path / "broker.conf")
    store = MessageStore(tmp_path / "store", config, paths_from_config=True)
    for number in range(20):
        assert store.put_message(Message("Orders", b"tea" * number)).ok
    store.wait_dispatched()
    end = store.flush()
    store.abandon()
    with max(log.iterdir()).open("r+b") as file:
        file.seek(end % 4096 - 60)
        file.write(b"\x13" * 20)
    words = ["--config", str(tmp_path / "broker.conf"), "--paths-from-config"]
    files_before = golden_stores.fingerprint(log)
    assert main(["recover", str(tmp_path / "store"), "--apply", "--yes", *words]) == 0
    assert golden_stores.changes(files_before, golden_stores.fingerprint(log))
    saved_path = next(path for path in tmp_path.iterdir() if path.name.startswith("store.kept"))
    undo = ["recover", str(tmp_path / "store"), "--undo", str(saved_path), "--yes"]
    with StoreLock(tmp_path / "disk2" / "lock"):
        assert main(undo) == 3
    assert "disk2" in capsys.readouterr().err
    assert main(undo) == 0
    assert golden_stores.changes(files_before, golden_stores.fingerprint(log)) == []


@pytest.mark.golden
@pytest.mark.crash
def test_entries_after_a_broken_one_are_kept_as_planned(golden, tmp_path, capsys):
    """A broken entry ended a queue with five good entries after it. The plan kept them, but the recovery cleared them
    first and gave a message a wrong queue offset.

    The real 5.3.3 ends this queue at 6, with the message at its own queue offset.
    """
    store = tmp_path / "store"
    shutil.copytree(golden("crash-5.3.3"), store)
    store_damage.damage(random.Random(443653196), store)
    assert main(["recover", str(store), "--apply", "--yes", "--empty-log", "--like", "5.3", "--json"]) == 0
    record = json.loads(capsys.readouterr().out.splitlines()[0])
    delayed = [queue for queue in record["queues"] if queue["topic"] == "SCHEDULE_TOPIC_XXXX"]
    (queue,) = [queue for queue in delayed if queue["queueId"] == 16]
    assert (queue["minOffset"], queue["maxOffset"]) == (5, 6)
