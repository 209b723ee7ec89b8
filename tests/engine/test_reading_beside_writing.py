"""Readers beside a writer and a cleaner: every lent message is complete, and stays so while it is lent."""

from __future__ import annotations

import sys
import threading
import time

import pytest

from engine.config import from_mapping
from engine.message_store import Message, MessageStore

SMALL = {
    "mappedFileSizeCommitLog": 65_536,
    "mappedFileSizeConsumeQueue": 2000,
    "maxHashSlotNum": 100,
    "maxIndexNum": 400,
    "diskMaxUsedSpaceRatio": 95,
}
QUEUES = 3
MESSAGES = 600
PAUSE = 0.001


def message(number):
    return Message("T", b"%06d" % number * (number % 30), number % QUEUES, {"KEYS": f"k{number}", "n": str(number)})


def number_in_body(unit):
    number = int(unit.properties["n"])
    assert unit.crc == "ok"
    assert unit.body == message(number).body
    return number


def all_dispatched(store):
    """Wait until the queues have all messages; with a pool, a message is confirmed after its commit."""
    end = store.positions().wrote
    give_up_at = time.monotonic() + 60
    while store.positions().dispatched < end and time.monotonic() < give_up_at:
        assert store.wait_dispatched()
        time.sleep(PAUSE)
    return store.positions().dispatched >= end


def pulls(store, queue, over):
    position = max(store.min_offset_in_queue("T", queue), 0)
    while not over.wait(PAUSE):
        with store.get_message("g", "T", queue, position) as result:
            for unit in result.units():
                assert number_in_body(unit) % QUEUES == queue
            position = result.next_begin_offset
            if result.status == "OFFSET_OVERFLOW_ONE" and position * QUEUES + queue >= MESSAGES:
                return


def streams(store, queue, over):
    while not over.wait(PAUSE):
        for block in store.stream("T", queue):
            for row, lent in zip(block.entries, block.messages(), strict=True):
                assert len(lent) == row["size"]
                assert int.from_bytes(lent[:4], "big") == row["size"]


def queries(store, queue, over):
    number = queue
    while not over.wait(PAUSE):
        with store.query_message("T", f"k{number}") as query_message:
            assert [
                number_in_body(unit) for unit in query_message.units() if unit.properties["KEYS"] == f"k{number}"
            ] in (
                [],
                [number],
            )
        number = (number + 7) % MESSAGES


@pytest.fixture(autouse=True)
def _short_turns():
    """Nine threads share one interpreter. With the default interval of five milliseconds the writer would hardly
    run.
    """
    interval_before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(interval_before)


@pytest.mark.parametrize("pool", [False, True])
def test_lent_messages_are_complete(tmp_path, pool):
    config, _ = from_mapping({**SMALL, "transientStorePoolEnable": pool, "transientStorePoolSize": 4})
    failures = []
    with MessageStore(tmp_path / "store", config) as store:
        over = threading.Event()

        def guarded(work, queue):
            try:
                work(store, queue, over)
            except BaseException as error:
                failures.append(error)
                raise

        workers = [
            threading.Thread(target=guarded, args=(work, queue))
            for work in (pulls, streams, queries)
            for queue in (0, 1)
        ]
        for worker in workers:
            worker.start()
        for number in range(MESSAGES):
            store.put_message(message(number))
            if number % 200 == 150:
                assert all_dispatched(store)  # otherwise undispatched messages would never be in a queue
                store._parts.files.delete_oldest(lambda file: True, force_after_ms=0, now=number, max_count=2)
        assert all_dispatched(store)
        for worker in workers[:2]:
            worker.join(60)
        unfinished = [worker for worker in workers[:2] if worker.is_alive()]
        over.set()
        for worker in workers:
            worker.join(60)
    assert (failures, unfinished) == ([], [])
