"""The comparison of a queue entry with its unit: each difference has its own verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.codec.consume_queue import PREFILLED_SIZE
from engine.codec.message import Unit
from engine.inspection import open_store
from engine.inspection.entry_verdict import compare, resolve
from engine.inspection.queue_reader import CqEntry
from engine.inspection.snapshot import StoreSnapshot
from engine.system_names import SCHEDULE_TOPIC


@pytest.fixture
def pair(golden):
    """An entry of a real queue and its unit."""
    with open_store(golden("clean-5.3.3")) as store:
        queue = next(q for q in store.topics()["TopicA"].values() if q.max_offset > 3)
        entry = queue.entry(2)
        unit = store.log.unit_at(entry.physical_offset)
        assert isinstance(unit, Unit)
        yield queue.topic, queue.queue_id, entry, unit


@pytest.mark.golden
@pytest.mark.parametrize(
    "name", ["clean-4.9.8", "multi-queue-ext-5.3.3", "lmq-5.3.3", "batchcq-5.3.3", "ipv6-and-unicode-5.3.3"]
)
def test_every_entry_of_a_healthy_store_is_ok(golden, name) -> None:
    with open_store(golden(name)) as store:
        assert set(all_verdicts(store)) == {"ok"}


@pytest.mark.golden
def test_entries_of_deleted_files_are_below_the_minimum(golden) -> None:
    with open_store(golden("first-files-deleted-5.3.3")) as store:
        assert set(all_verdicts(store)) == {"ok", "belowMinOffset"}


def all_verdicts(store: StoreSnapshot) -> list[str | None]:
    return [
        resolve(store.log, queue.topic, queue.queue_id, entry).verdict
        for queues in store.topics().values()
        for queue in queues.values()
        for entry in queue.entries()
    ]


@pytest.mark.golden
def test_each_difference_has_its_own_verdict(pair) -> None:
    topic, queue_id, entry, unit = pair
    assert compare(topic, queue_id, entry, unit) == ("ok", "")
    assert compare("Other", queue_id, entry, unit)[0] == "wrongTopic"
    assert compare(topic, queue_id + 1, entry, unit)[0] == "wrongTopic"
    assert compare(topic, queue_id, replace(entry, queue_offset=3), unit)[0] == "wrongQueueOffset"
    assert compare(topic, queue_id, replace(entry, size=entry.size + 1), unit)[0] == "wrongSize"
    assert compare(topic, queue_id, replace(entry, tags_code=entry.tags_code + 1), unit)[0] == "wrongTag"


@pytest.mark.golden
def test_a_tag_code_is_compared_by_its_low_32_bits(pair) -> None:
    topic, queue_id, entry, unit = pair
    assert compare(topic, queue_id, replace(entry, tags_code=entry.tags_code & 0xFFFFFFFF), unit)[0] == "ok"


@pytest.mark.golden
def test_a_delivery_time_is_right_unless_the_levels_are_known(golden) -> None:
    with open_store(golden("clean-5.3.3")) as store:
        queue = next(iter(store.topics()[SCHEDULE_TOPIC].values()))
        entry = next(queue.entries())
        shifted = replace(entry, tags_code=entry.tags_code + 1)
        unit = store.log.unit_at(entry.physical_offset)
        assert isinstance(unit, Unit)
        assert compare(SCHEDULE_TOPIC, queue.queue_id, shifted, unit)[0] == "ok"
        assert compare(SCHEDULE_TOPIC, queue.queue_id, shifted, unit, tuple([1] * 18))[0] == "wrongTag"


@pytest.mark.golden
def test_bytes_that_are_no_unit_are_missing_and_slots_without_an_entry_have_no_verdict(golden) -> None:
    with open_store(golden("clean-5.3.3")) as store:
        lost = resolve(store.log, "TopicA", 0, CqEntry(0, 7, 100, 0, "entry"))
        assert lost.verdict == "missing"
        assert lost.what
        assert resolve(store.log, "TopicA", 0, CqEntry(0, 1 << 60, 100, 0, "entry")).verdict == "missing"
        assert resolve(store.log, "TopicA", 0, CqEntry(0, 0, PREFILLED_SIZE, 0, "prefilled")).verdict is None
        assert resolve(store.log, "TopicA", 0, CqEntry(0, 0, 0, 0, "empty")).verdict is None
