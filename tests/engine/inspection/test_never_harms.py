"""Reading never harms the files, a running broker, or the reader itself when files change."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import agree
import golden_stores
import handmade_stores
import pytest
from commands import reading_commands
from file_access_audit import watching
from unprivileged_user import as_nobody, open_folder

from engine.codec.message import Unit
from engine.codec.unit_scan import Blank, Damage, Stop
from engine.config import read_properties
from engine.errors import NotAStore, StoreError
from engine.inspection import log_reader, open_store
from engine.inspection.key_trace import trace
from engine.inspection.where.evidence import where
from engine.store.queue_entry import CqEntry

MOMENT = {"at", "tookMs", "diskUsage"}
STORES = ("broker-orders", "broker-transactions-4.9.7", "crash-power-5.3.3", "multi-queue-ext-5.3.3")


# -- nothing is changed, created, locked


@pytest.mark.full_form(keep=1)
@pytest.mark.golden
@pytest.mark.parametrize("name", STORES)
def test_no_command_changes_creates_or_locks_anything(golden, tmp_path, name):
    store = shutil.copytree(golden(name), tmp_path / "store", symlinks=True)
    files_before, siblings_before = golden_stores.fingerprint(store), sorted(tmp_path.iterdir())
    for arguments in reading_commands(store):
        for form in ((), ("--json",)):
            with watching(store) as observed:
                status, _, err = agree.command(*arguments, *form)
            assert status in {0, 1}, (arguments, err)
            assert observed == [], arguments
    assert golden_stores.changes(files_before, golden_stores.fingerprint(store)) == []
    assert sorted(tmp_path.iterdir()) == siblings_before


@pytest.mark.golden
@pytest.mark.parametrize("name", ["rocks-5.5.1", "combine-5.5.1", "rocksdb-rows-5.5.1"])
def test_no_command_changes_a_store_with_a_rocksdb(golden, tmp_path, name):
    """RocksDB writes into the folder that it opens, even read-only."""
    store = shutil.copytree(golden(name), tmp_path / "store", symlinks=True)
    files_before, siblings_before = golden_stores.fingerprint(store), sorted(tmp_path.iterdir())
    for arguments in reading_commands(store):
        with watching(store) as observed:
            status, _, err = agree.command(*arguments)
        refused = {2} if "--like" in arguments else set()  # plans of 4.9 know no queues in a RocksDB
        assert status in {0, 1, 3} | refused, (arguments, err)
        assert observed == [], arguments
    assert golden_stores.changes(files_before, golden_stores.fingerprint(store)) == []
    assert sorted(tmp_path.iterdir()) == siblings_before


def test_the_watch_detects_changes(tmp_path):
    folder = tmp_path / "store"
    with watching(folder) as observed:
        folder.mkdir()
        (folder / "x").write_bytes(b"1")
        with (folder / "x").open("rb+") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
        (folder / "x").unlink()
    assert [line.split()[0] for line in observed] == ["os.mkdir", "open", "open", "fcntl.lockf", "os.remove"]


@pytest.mark.golden
def test_a_read_only_store_is_readable(golden):
    with open_folder() as folder:
        store = shutil.copytree(golden("broker-transactions"), folder / "store", symlinks=True)
        commands = reading_commands(store)
        expected = [agree.command(*arguments, "--json")[:2] for arguments in commands]
        for path in sorted(store.rglob("*"), reverse=True):
            path.chmod(0o555 if path.is_dir() else 0o444)
        store.chmod(0o555)
        try:
            answers = as_nobody(lambda: [agree.command(*arguments, "--json")[:2] for arguments in commands])
        finally:
            for path in [store, *store.rglob("*")]:
                path.chmod(0o755)
    for arguments, answer, expected_answer in zip(commands, answers, expected, strict=True):
        assert (answer[0], steady(answer[1])) == (expected_answer[0], steady(expected_answer[1])), arguments


def steady(out):
    """Return records without the values that change: the clock, the duration, and the free disk space."""
    records = [json.loads(line) for line in out.splitlines()]
    return [{key: value for key, value in record.items() if key not in MOMENT} for record in records]


def test_another_process_takes_the_lock_while_we_read(tmp_path):
    path = handmade_stores.healthy().write(tmp_path / "store")
    (path / "lock").write_text("lock")
    take = "import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)"
    with open_store(path) as store:
        walk = store.units()
        next(walk)
        assert store.lock_state == "free"
        subprocess.run([sys.executable, "-c", take, path / "lock"], check=True)
        list(walk)


def test_a_held_lock_is_reported_and_left_alone(tmp_path):
    path = handmade_stores.healthy().write(tmp_path / "store")
    (path / "lock").write_text("lock")
    hold = (
        "import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    with (
        subprocess.Popen(
            [sys.executable, "-c", hold, path / "lock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as holder,
        open_store(path) as store,
    ):
        assert holder.stdout.readline() == "held\n"
        assert store.lock_state == "held"
        assert store.lock_state == "held"
        holder.stdin.close()
    with open_store(path) as store:
        assert store.lock_state == "free"


# -- files that change under the reader


@pytest.fixture
def small_blocks(monkeypatch):
    """Read the log in small pieces, so that a file of 4 KiB has a middle."""
    monkeypatch.setattr(log_reader, "BLOCK_BYTES", 512)


def shrink_to_nothing(file, _path):
    os.truncate(file, 0)


def shrink_by_half(file, _path):
    os.truncate(file, 2048)


def cut_within_a_unit(file, _path):
    os.truncate(file, 1000)


def remove(file, _path):
    file.unlink()


def replace_by_another(file, path):
    (path / "other").write_bytes(b"\xee" * 4096)
    (path / "other").replace(file)


def replace_by_a_folder(file, _path):
    file.unlink()
    file.mkdir()


def remove_the_store(_file, path):
    shutil.rmtree(path)


def grow(file, _path):
    with file.open("ab") as open_file:
        open_file.write(b"\xee" * 5000)


def scribble(file, _path):
    with file.open("r+b") as open_file:
        open_file.seek(1200)
        open_file.write(b"\xee" * 700)


CHANGES = [
    shrink_to_nothing,
    shrink_by_half,
    cut_within_a_unit,
    remove,
    replace_by_another,
    replace_by_a_folder,
    remove_the_store,
    grow,
    scribble,
]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("number", [0, 1, -1])
@pytest.mark.parametrize("resync", [True, False])
def test_a_walk_over_a_file_that_changes_ends_with_a_value(tmp_path, change, number, resync):
    path = handmade_stores.healthy().write(tmp_path / "store")
    with open_store(path) as store:
        walk = store.log.walk(resync=resync)
        walks = [next(walk), next(walk)]
        change(sorted((path / "commitlog").iterdir())[number], path)
        walks += list(walk)
    assert isinstance(walks[-1], Stop)
    assert all(isinstance(item, Unit | Blank | Damage) for item in walks[:-1])
    assert len(walks) < 200


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("folder", ["consumequeue/Orders/0", "index", "commitlog"])
def test_all_other_reads_of_changing_files_give_values(tmp_path, change, folder):
    path = handmade_stores.healthy().write(tmp_path / "store")
    with open_store(path) as store:
        queue, reader = store.queue("Orders", 0), store.index_files()[0]
        entries, indexed, traced = queue.entries(), reader.entries(), trace(store, "Orders", "all")
        next(entries), next(indexed), next(traced)
        change(sorted((path / folder).iterdir())[0], path)
        for read in (
            lambda: list(entries),
            lambda: list(indexed),
            lambda: list(traced),
            lambda: store.log.max_offset,
            lambda: store.log.items_before(store.log.end_offset, 5),
            lambda: (queue.refresh(), queue.min_offset, queue.max_offset),
            lambda: list(where(store, "U00005")),
            store.refresh,
            lambda: [list(queue.entries()) for queue in store.topics().get("Orders", {}).values()],
            lambda: [unit.offset for unit in store.units()],
            lambda: list(where(store, "K3")),
        ):
            store_error = None
            try:
                value = read()
            except StoreError as error:
                store_error = error
            if store_error is None:
                assert_valid_offsets(value)
            else:
                assert store_error.file is None or store_error.file.startswith(str(path))
                assert store_error.what


def assert_valid_offsets(value):
    """Check that offsets do not fall and are not negative, whatever happened to the files."""
    if isinstance(value, tuple):
        _, min_offset, max_offset = value
        assert 0 <= min_offset <= max_offset
    elif isinstance(value, int):
        assert value >= -1  # there are no files
    elif value and isinstance(value[0], int):
        assert value == sorted(value)
        assert value[0] >= -1  # the end of a log without files
    elif value and isinstance(value[0], CqEntry):
        numbers = [entry.queue_offset for entry in value]
        assert numbers == sorted(set(numbers))


def test_a_refresh_shows_what_a_broker_wrote(tmp_path):
    new_store = handmade_stores.healthy(20)
    path = new_store.write(tmp_path / "store")
    with open_store(path) as store:
        count_before = sum(isinstance(item, Unit) for item in store.units())
        first_end = store.log.max_offset
        offset = store.queue("Orders", 0).max_offset
        for _ in range(40):
            new_store.put("Orders", 0)
        new_store.put("New topic", 3)
        new_store.write(tmp_path / "later")
        for file in sorted((tmp_path / "later").rglob("*")):
            if file.is_file():
                target = path / file.relative_to(tmp_path / "later")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(file.read_bytes())
        assert store.refresh()
        assert sum(isinstance(item, Unit) for item in store.units()) == count_before + 41
        assert store.log.max_offset > first_end
        assert store.queue("Orders", 0).max_offset == offset + 40
        assert store.queue("New topic", 3).max_offset == 1
        assert not store.refresh()


def test_queues_and_files_that_vanish_are_gone_after_a_refresh(tmp_path):
    path = handmade_stores.healthy().write(tmp_path / "store")
    with open_store(path) as store:
        least = store.log.min_offset
        assert store.queue("Payments", 0) is not None
        shutil.rmtree(path / "consumequeue" / "Payments")
        sorted((path / "commitlog").iterdir())[0].unlink()
        shutil.rmtree(path / "index")
        assert store.refresh()
        assert store.queue("Payments", 0) is None
        assert store.log.min_offset == least + handmade_stores.LOG_SIZE
        assert store.index_files() == []
        assert store.queue("Orders", 0).min_offset > 0


# -- parts of a store


@pytest.mark.golden
def test_a_directory_above(golden, tmp_path):
    shutil.copytree(golden("propcrc-5.3.3"), tmp_path / "broker" / "data" / "store")
    with open_store(tmp_path) as store:
        assert store.kind == "store"
        assert store.path == tmp_path / "broker" / "data" / "store"
        assert any("found below" in note for note in store.notes)


def test_several_stores_below_are_named(tmp_path):
    for name in ("a", "b"):
        handmade_stores.healthy(3).write(tmp_path / name)
    with pytest.raises(NotAStore, match="found 2 below it: a, b"):
        open_store(tmp_path)


@pytest.mark.golden
def test_a_bare_commitlog_folder(golden):
    with open_store(golden("clean-5.3.3")) as store, open_store(golden("clean-5.3.3") / "commitlog") as part:
        assert part.kind == "commitlog"
        assert part.notes
        assert [item.offset for item in part.units()] == [item.offset for item in store.units()]
        assert part.log.max_offset == store.log.max_offset


@pytest.mark.golden
def test_one_file_of_a_log(golden):
    file = sorted((golden("clean-5.3.3") / "commitlog").iterdir())[1]
    with open_store(golden("clean-5.3.3")) as store, open_store(file) as part:
        assert part.kind == "file"
        start = part.log.min_offset
        assert start == int(file.name)
        expected = [
            item.offset for item in store.units(start) if isinstance(item, Unit) and item.offset < part.log.end_offset
        ]
        assert [item.offset for item in part.units() if isinstance(item, Unit)] == expected


@pytest.mark.golden
@pytest.mark.parametrize("name", ["tail.bin", "00000000000000000000"])
def test_a_copied_tail_is_placed_by_its_units(golden, tmp_path, name):
    """``tail -c 100000`` of a file begins within a unit, and its name contains no offset or a wrong one."""
    file = sorted((golden("clean-5.3.3") / "commitlog").iterdir())[0]
    (tmp_path / name).write_bytes(file.read_bytes()[-100_000:])
    with open_store(golden("clean-5.3.3")) as store, open_store(tmp_path / name) as part:
        base = int(file.name) + file.stat().st_size - 100_000
        assert part.log.min_offset == base
        units = [item.offset for item in part.units() if isinstance(item, Unit)]
        expected = [item.offset for item in store.units(units[0]) if isinstance(item, Unit)]
        assert units == [offset for offset in expected if offset < part.log.end_offset]
        assert any(str(f"{base:,}") in note for note in part.notes)


@pytest.mark.golden
def test_a_missing_file_in_the_middle_is_one_span_of_damage(golden, tmp_path):
    path = shutil.copytree(golden("crash-late-5.3.3"), tmp_path / "store")
    files = sorted((path / "commitlog").iterdir())
    files[1].unlink()
    with open_store(golden("crash-late-5.3.3")) as full_store, open_store(path) as store:
        gaps = [item for item in store.units() if isinstance(item, Damage)]
        assert [(gap.offset, gap.size) for gap in gaps] == [(int(files[1].name), 1 << 20)]
        assert store.log.max_offset == full_store.log.max_offset
        lost = range(gaps[0].offset, gaps[0].offset + gaps[0].size)
        assert [item.offset for item in store.units() if isinstance(item, Unit)] == [
            item.offset for item in full_store.units() if isinstance(item, Unit) and item.offset not in lost
        ]


def test_a_log_over_several_paths_is_one_log(tmp_path):
    new_store = handmade_stores.healthy()
    path = new_store.write(tmp_path / "store")
    second_folder = tmp_path / "second disk"
    second_folder.mkdir()
    for file in sorted((path / "commitlog").iterdir())[1::2]:
        file.rename(second_folder / file.name)
    conf = tmp_path / "broker.conf"
    conf.write_text(f"storePathCommitLog={path / 'commitlog'},{second_folder}\n")
    config, _ = read_properties(conf)
    with open_store(path, config) as store:
        assert sum(isinstance(item, Unit) for item in store.units()) == len(new_store.units)
        assert not any(isinstance(item, Damage) for item in store.units())
    with open_store(path) as store:
        assert any(isinstance(item, Damage) for item in store.units())


def test_links_out_of_the_store_are_read_and_loops_survived(tmp_path):
    new_store = handmade_stores.healthy()
    path = new_store.write(tmp_path / "store")
    first_file = sorted((path / "commitlog").iterdir())[0]
    first_file.rename(tmp_path / "elsewhere")
    first_file.symlink_to(tmp_path / "elsewhere")
    (path / "commitlog" / f"{1 << 40:020d}").symlink_to(f"{1 << 40:020d}")
    (path / "commitlog" / f"{1 << 41:020d}").symlink_to("/nowhere")
    (path / "consumequeue" / "Orders" / "7").symlink_to(path)
    (path / "consumequeue" / "loop").symlink_to(path / "consumequeue")
    (path / "index" / "20240101000000999").symlink_to("/dev/zero")
    with open_store(path) as store:
        assert sum(isinstance(item, Unit) for item in store.units()) == len(new_store.units)
        assert {oddity.kind for oddity in store.log.sequence.oddities} == {"link"}
        list(store.topics())
        store.index_files()
    for command in ("info", "check", "positions"):
        status, _, err = agree.command(command, path, "--json")
        assert status == 3, err  # the targets of the links could not be read: they may be on a disk that is not mounted


def test_pipes_and_sockets_are_never_opened_for_reading(tmp_path):
    path = handmade_stores.healthy(5).write(tmp_path / "store")
    os.mkfifo(path / "commitlog" / f"{1 << 30:020d}")
    os.mkfifo(path / "index" / "20240101000000999")
    (path / "config").mkdir()
    os.mkfifo(path / "config" / "topics.json")
    (path / "checkpoint").unlink()
    os.mkfifo(path / "checkpoint")
    for command in ("info", "units", "positions", "config", "check", "index"):
        status, _, err = agree.command(command, path, "--json")
        assert status in {0, 1, 3}
        assert err.count("\n") <= 1


def open_files():
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_thousands_of_queues_and_topics(tmp_path):
    new_store = handmade_stores.healthy(10)
    path = new_store.write(tmp_path / "store")
    for number in range(1500):
        handmade_stores.write_queue(
            path / "consumequeue" / f"topic-{number}" / "0", new_store.queue_bytes("Orders", 0), 400
        )
    open_before = open_files()
    with open_store(path) as store:
        assert len(store.topics()) == 1502
        assert all(queue.max_offset >= 0 for queues in store.topics().values() for queue in queues.values())
        assert open_files() - open_before < 200
    assert open_files() <= open_before + 1


def test_the_source_of_a_snapshot_is_left_alone(tmp_path, unchanged):
    path = unchanged(handmade_stores.healthy().write(tmp_path / "store"))
    with watching(path / "x") as observed:
        status, _, _ = agree.command("snapshot", path, tmp_path / "copy", "--json")
    assert status == 0
    assert observed == []
    source_files = {k: v[1:] for k, v in golden_stores.fingerprint(path).items() if v[3] is not None}
    copied = {k: v[1:] for k, v in golden_stores.fingerprint(tmp_path / "copy").items() if v[3] is not None}
    copied.pop("storescope-manifest.json")
    assert copied == source_files
    assert Path(tmp_path / "copy" / "storescope-manifest.json").is_file()
