"""Reading a topic at its broker: by offset and time, whole units, and nothing of it stays at the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.broker.serving import Addresses, serving_beside
from engine.client.blocking import BlockingTopicReader
from engine.client.errors import NoRoute
from engine.client.instance import ClientInstance
from engine.client.topic_reader import TopicReader
from engine.codec.encode import Message
from engine.inspection import open_store
from engine.message_store import MessageStore


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with 100 messages in queue 0 of Orders, none in queue 1, and a topic that may only be written to."""
    path = tmp_path_factory.mktemp("reader") / "store"
    with MessageStore(path) as store:
        store.tables.create_topic("Orders", 2)
        store.tables.create_topic("Inbox", 1, perm=2)
        for number in range(100):
            store.put_message(Message("Orders", b"order %d" % number, queue_id=0, properties={"TAGS": "hot"}))
    return path


@pytest.fixture(scope="module")
def cluster(store: Path) -> Iterator[Addresses]:
    with serving_beside(store) as addresses:
        yield addresses


@pytest.fixture
def reader(cluster: Addresses) -> Iterator[BlockingTopicReader]:
    with BlockingTopicReader(ClientInstance(cluster.namesrv)) as topic_reader:
        yield topic_reader


def test_a_page_has_the_units_of_the_log_with_more_than_one_pull(reader: BlockingTopicReader, store: Path) -> None:
    full, empty = reader.queues("Orders")
    queue = full.queue
    assert (full.min_offset, full.max_offset, empty.max_offset) == (0, 100, 0)
    page = reader.read(queue, 10, 80)
    assert [item.queue_offset for item in page.units] == list(range(10, 90))
    assert (page.next_offset, page.max_offset) == (90, 100)
    with open_store(store) as snapshot:
        for item in page.units[::20]:
            assert snapshot.log.read(item.unit.offset, item.unit.size) == item.data, "bytes and place are the log's"
    assert page.units[0].unit.crc == "ok"


def test_an_offset_out_of_range_gives_no_units_and_the_ends(reader: BlockingTopicReader) -> None:
    queue = reader.queues("Orders")[0].queue
    page = reader.read(queue, 5000, 10)
    assert (page.units, page.min_offset, page.max_offset) == ((), 0, 100)
    stored = reader.read(queue, 40, 1).units[0].unit.store_timestamp
    assert reader.offset_at(queue, stored) <= 40
    assert reader.offset_at(queue, stored + 3_600_000) == 100


def test_a_topic_that_does_not_exist_or_may_not_be_read_is_a_sentence(reader: BlockingTopicReader) -> None:
    with pytest.raises(NoRoute, match="no broker serves the topic Nowhere"):
        reader.queues("Nowhere")
    with pytest.raises(NoRoute, match=r"may not be read on .*: its permission is 2"):
        reader.queues("Inbox")


def test_reading_leaves_no_offset_no_group_and_no_client_at_the_broker(
    reader: BlockingTopicReader, cluster: Addresses
) -> None:
    from engine.cluster.reader import ClusterReader

    reader.read(reader.queues("Orders")[0].queue, 0, 100)

    async def state() -> tuple[object, object]:
        async with ClusterReader((cluster.namesrv,)) as cluster_reader:
            (part,) = (await cluster_reader.read()).brokers
            return dict(part.offsets), dict(part.groups)

    assert asyncio.run(state()) == ({}, {})


def test_without_a_broker_reading_fails_with_an_error_of_the_connection() -> None:
    async def read() -> None:
        async with TopicReader(ClientInstance("127.0.0.1:1")) as reader:
            await reader.queues("Orders")

    with pytest.raises(NoRoute, match="no name server answers"):
        asyncio.run(read())
