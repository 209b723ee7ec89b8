"""A store that grows under the eyes of a tail: each look says what a fresh opening of the store says."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from handmade_stores import HandmadeStore

from engine.codec.encode import Message
from engine.config import from_mapping
from engine.inspection import open_store
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
    """Compared between two equal openings: the engine's own services may write the checkpoint in between."""
    for _ in range(20):
        with open_store(path) as fresh:
            expected = fresh.positions()
        observed = tail.look()
        with open_store(path) as fresh:
            if fresh.positions() == expected:
                break
    assert observed == expected


def test_each_look_says_what_a_fresh_opening_says(tmp_path: Path) -> None:
    """Rolls of log, queues and index, one unit at a time and thousands at once, bodies that are all zero."""
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
            assert tail.look().wrote.offset == store.positions().wrote
            put(store, random.Random(2), 900)
            assert tail.look().wrote.offset == store.positions().wrote
            assert watched.log.known_end == store.positions().wrote


def test_a_store_that_was_cut_and_written_again_is_looked_at_anew(tmp_path: Path) -> None:
    path, before = tmp_path / "store", tmp_path / "before"
    pick = random.Random(3)
    with MessageStore(path, config()) as store:
        put(store, pick, 50)
    shutil.copytree(path, before)
    with MessageStore(path, config()) as store:
        put(store, pick, 500)
        assert store.wait_dispatched(30_000)
    with open_store(path) as watched:
        tail = StoreTail(watched)
        far = tail.look().wrote.offset
        for file in sorted(path.rglob("*")):
            if file.is_file():
                old = before / file.relative_to(path)
                shutil.copyfile(old, file) if old.exists() else file.unlink()
        watched.refresh()
        assert tail.look().wrote.offset < far
        assert_as_opened(tail, path)


def test_files_that_retention_took_move_the_minimum(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with MessageStore(path, config(mappedFileSizeCommitLog=1 << 16)) as store:
        put(store, random.Random(1), 900)
        assert store.wait_dispatched(30_000)
    with open_store(path) as watched:
        tail = StoreTail(watched)
        assert tail.look().min.offset == 0
        first = watched.log.files[0]
        Path(first.path).unlink()
        watched.refresh()
        assert tail.look().min.offset == first.end_offset
        assert_as_opened(tail, path)


def test_a_unit_that_is_still_being_written_waits(tmp_path: Path) -> None:
    """A reader beside a writer may see a unit's head before its body: it is told once it is whole."""
    store = HandmadeStore(log_size=1 << 16, queue_size=2000)
    for n in range(6):
        store.put("T", 0, body=b"x" * 100 + bytes([n]))
    store.write(tmp_path / "store")
    path = tmp_path / "store"
    last = store.units[-1]
    log = next((path / "commitlog").iterdir())
    content = log.read_bytes()
    log.write_bytes(content[: last.offset] + bytes(len(content) - last.offset))
    with open_store(path) as watched:
        tail = StoreTail(watched)
        assert tail.look().wrote.offset == last.offset
        half = last.offset + 120
        log.write_bytes(content[:half] + bytes(len(content) - half))
        assert tail.look().wrote.offset == last.offset
        log.write_bytes(content)
        assert tail.look().wrote.offset == last.offset + last.size


@pytest.mark.golden
@pytest.mark.parametrize("name", ["clean-5.3.3", "batchcq-5.3.3", "crash-flip-5.3.3", "lmq-5.3.3", "queues-gone-5.3.3"])
def test_real_stores_at_rest_stay_as_they_are(golden, name: str) -> None:
    with open_store(golden(name)) as store:
        expected = store.positions()
        tail = StoreTail(store)
        assert [tail.look() for _ in range(3)] == [expected] * 3
