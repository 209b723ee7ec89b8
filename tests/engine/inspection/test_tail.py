"""A tail of a growing store: each poll gives the same as a newly opened store."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import made_rocksdb
import pytest
from handmade_stores import HandmadeStore, healthy

from engine.codec.encode import Message
from engine.config import from_mapping
from engine.inspection import open_store
from engine.inspection.dledger import find_remains
from engine.inspection.tail import STEP_BYTES, StoreTail
from engine.message_store import MessageStore

SMALL = {
    "mappedFileSizeCommitLog": 1 << 20,
    "mappedFileSizeConsumeQueue": 20 * 100,
    "maxHashSlotNum": 100,
    "maxIndexNum": 400,
    "timerWheelEnable": False,
}


def config(**options):
    return from_mapping({**SMALL, **options})[0]


def put(store: MessageStore, pick: random.Random, count: int, size: int = 300) -> None:
    for n in range(count):
        body = bytes(pick.randrange(size))
        result = store.put_message(Message(f"Topic{pick.randrange(3)}", body, queue_id=pick.randrange(2), keys=f"k{n}"))
        assert result.status.value == "PUT_OK"


def assert_as_opened(tail: StoreTail, path: Path) -> None:
    """The tail is compared between two equal openings, because the engine's services may write the checkpoint in
    between.
    """
    for _ in range(20):
        with open_store(path) as fresh:
            expected = fresh.positions()
        observed = tail.read_positions()
        with open_store(path) as fresh:
            if fresh.positions() == expected:
                break
    assert observed == expected


def test_each_poll_equals_a_new_opening(tmp_path: Path) -> None:
    """Rolls of log, queues and index, one unit or thousands at a time, and bodies that are all zero."""
    pick = random.Random(5)
    path = tmp_path / "store"
    with MessageStore(path, config()) as store:
        put(store, pick, 1)
        watched = open_store(path)
        tail = StoreTail(watched)
        for turn in range(12):
            put(store, pick, pick.choice([0, 1, 7, 400]), pick.choice([10, 300, 3000]))
            if turn == 5:
                put(store, pick, 1, 1)
                assert store.put_message(Message("Topic0", bytes(5 * STEP_BYTES), queue_id=0)).status.value == "PUT_OK"
            assert store.wait_dispatched(30_000)
            watched.refresh()
            assert_as_opened(tail, path)
        assert len(watched.log.files) > 1
        watched.close()


def test_a_roll_is_found_without_a_refresh(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with MessageStore(path, config(mappedFileSizeCommitLog=1 << 16)) as store:
        put(store, random.Random(1), 3)
        with open_store(path) as watched:
            tail = StoreTail(watched)
            assert tail.read_positions().wrote.offset == store.positions().wrote
            put(store, random.Random(2), 900)
            assert tail.read_positions().wrote.offset == store.positions().wrote
            assert watched.log.known_end == store.positions().wrote


def test_a_store_that_was_cut_and_written_again_is_read_again(tmp_path: Path) -> None:
    path, saved_copy = tmp_path / "store", tmp_path / "before"
    pick = random.Random(3)
    with MessageStore(path, config()) as store:
        put(store, pick, 50)
    shutil.copytree(path, saved_copy)
    with MessageStore(path, config()) as store:
        put(store, pick, 500)
        assert store.wait_dispatched(30_000)
    with open_store(path) as watched:
        tail = StoreTail(watched)
        end_before = tail.read_positions().wrote.offset
        for file in sorted(path.rglob("*")):
            if file.is_file():
                saved_file = saved_copy / file.relative_to(path)
                shutil.copyfile(saved_file, file) if saved_file.exists() else file.unlink()
        watched.refresh()
        assert tail.read_positions().wrote.offset < end_before
        assert_as_opened(tail, path)


def test_deleted_files_move_the_minimum(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with MessageStore(path, config(mappedFileSizeCommitLog=1 << 16)) as store:
        put(store, random.Random(1), 900)
        assert store.wait_dispatched(30_000)
    with open_store(path) as watched:
        tail = StoreTail(watched)
        assert tail.read_positions().min.offset == 0
        first_file = watched.log.files[0]
        Path(first_file.path).unlink()
        watched.refresh()
        assert tail.read_positions().min.offset == first_file.end_offset
        assert_as_opened(tail, path)


def test_an_incomplete_unit_is_not_reported_yet(tmp_path: Path) -> None:
    """A reader beside a writer may see a unit's head before its body. The tail reports it once it is complete."""
    store = HandmadeStore(log_size=1 << 16, queue_size=2000)
    for n in range(6):
        store.put("T", 0, body=b"x" * 100 + bytes([n]))
    store.write(tmp_path / "store")
    path = tmp_path / "store"
    last_unit = store.units[-1]
    log = next((path / "commitlog").iterdir())
    content = log.read_bytes()
    log.write_bytes(content[: last_unit.offset] + bytes(len(content) - last_unit.offset))
    with open_store(path) as watched:
        tail = StoreTail(watched)
        assert tail.read_positions().wrote.offset == last_unit.offset
        half = last_unit.offset + 120
        log.write_bytes(content[:half] + bytes(len(content) - half))
        assert tail.read_positions().wrote.offset == last_unit.offset
        log.write_bytes(content)
        assert tail.read_positions().wrote.offset == last_unit.offset + last_unit.size


@pytest.mark.golden
@pytest.mark.parametrize("name", ["clean-5.3.3", "batchcq-5.3.3", "crash-flip-5.3.3", "lmq-5.3.3", "queues-gone-5.3.3"])
def test_positions_of_real_stores_at_rest_do_not_change(golden, name: str) -> None:
    with open_store(golden(name)) as store:
        expected = store.positions()
        tail = StoreTail(store)
        assert [tail.read_positions() for _ in range(3)] == [expected] * 3


def test_queues_in_a_rocksdb_are_followed(tmp_path: Path) -> None:
    """The position of the queues was unknown, with the reason that a RocksDB is not decoded."""
    made_rocksdb.binding()
    made = healthy(60)
    path = made.write(tmp_path / "store")
    shutil.rmtree(path / "consumequeue")
    rows = made_rocksdb.rows_of_store(made)
    made_rocksdb.make_database(path / "consumequeue", rows)
    with open_store(path) as watched, open_store(path) as fresh:
        tail = StoreTail(watched)
        assert tail.read_positions() == fresh.positions()
        assert tail.entries == 60
        assert tail.queue_end("Orders", 0) == fresh.queues.find("Orders", 0).max_offset
        changed = made_rocksdb.QueueRows(path / "consumequeue")
        changed.forget_from(made.units[30].offset)
        changed.write()
        with open_store(path) as newer:
            assert tail.read_positions() == newer.positions()
        assert tail.entries == 30
        assert not watched.unread


@pytest.mark.golden
def test_a_refresh_never_lets_a_reader_see_replaced_entries(golden, monkeypatch) -> None:
    """While one thread listed the files anew, the limit of a member's log was gone for a moment. The thread that
    follows the log ran over the entries that a leader had replaced, and the window showed their end from then on.
    """
    limits = []
    with open_store(golden("dledger-replaced-5.5.1")) as store:
        log = store.log

        def observed(*args):
            limits.append(log.remains_from)
            return find_remains(*args)

        monkeypatch.setattr("engine.inspection.store_log.find_remains", observed)
        store.refresh()
        assert limits == [127_651]


@pytest.mark.golden
def test_a_tail_comes_back_when_a_leader_replaces_entries_before_its_end(golden) -> None:
    with open_store(golden("dledger-replaced-5.5.1")) as store:
        tail, remains_from = StoreTail(store), store.log.remains_from
        store.log.remains_from = None
        store.log.forget_end()
        end_before = tail.read_positions().wrote.offset
        assert remains_from is not None
        assert end_before is not None
        assert end_before > remains_from
        store.log.remains_from = remains_from
        assert tail.read_positions().wrote.offset == remains_from
