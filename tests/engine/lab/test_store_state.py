"""The state of a store from the running engine and from its files, which agree."""

from __future__ import annotations

import pytest

from engine.config import from_mapping
from engine.lab import store_state
from engine.message_store import Message, MessageStore

CONFIG, _ = from_mapping({"mappedFileSizeCommitLog": 4096, "maxHashSlotNum": 5, "maxIndexNum": 30})


@pytest.fixture
def root(tmp_path):
    with MessageStore(tmp_path / "s", CONFIG) as store:
        for number in range(60):
            store.put_message(Message("T", b"%d" % number, queue_id=number % 2, properties={"KEYS": f"k{number}"}))
        assert store.wait_dispatched(10_000)
        running = store_state.of_running(store, 60)
    return tmp_path / "s", running


def test_the_files_agree_with_the_running_store(root):
    path, running = root
    state, plan = store_state.of_files(path, CONFIG, "5.3")
    assert (state.units, state.end_offset, state.torn) == (60, running.end_offset, False)
    assert state.queues == running.queues == {("T", 0): 30, ("T", 1): 30}
    assert (state.index_entries, state.log_files) == (running.index_entries, running.log_files)
    assert (plan.end_offset, state.flushed) == (state.end_offset, -1)


def test_bytes_after_the_last_complete_unit_are_torn(root):
    path, running = root
    file = max((path / "commitlog").iterdir())
    with file.open("r+b") as log:
        log.seek(running.end_offset - int(file.name))
        log.write(b"\0\0\1\0half a unit")
    state, _ = store_state.of_files(path, CONFIG, "5.3")
    assert (state.units, state.torn) == (60, True)
    assert state.end_offset > running.end_offset


def test_units_only_in_a_pool_are_counted_too(root):
    path, running = root
    log = b"".join(file.read_bytes() for file in sorted((path / "commitlog").iterdir()))
    first_unit = log[: int.from_bytes(log[:4], "big")]
    end = running.end_offset
    pool_ranges = [(end, end + 2 * len(first_unit), first_unit * 2)]
    assert store_state.units_of(path, CONFIG, "5.3", pool_ranges) == 62
    assert store_state.units_behind(path, CONFIG, "5.3", 0, end) == 60
