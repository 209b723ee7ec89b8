"""What groups read next, as a real broker answers it."""

from __future__ import annotations

import json
from pathlib import Path

from brokers import Asking, asking, run

from engine.broker.server import ListeningBroker
from engine.message_store import MessageStore
from engine.remoting.connection import bind

QUEUE = {"consumerGroup": "readers", "topic": "Orders", "queueId": 0}


def test_a_group_that_never_committed_begins_at_0_where_the_first_message_is_there(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            assert (await client.ask(14, **QUEUE)).code == 22
            await client.send("Orders", b"one")
            client.server.broker.store.wait_dispatched()
            first = await client.ask(14, **QUEUE)
            assert (first.code, first.fields["offset"]) == (0, "0")
            assert (await client.ask(14, **QUEUE, setZeroIfNotFound=False)).code == 22

    run(told)


def test_what_was_committed_is_answered_and_outlives_the_broker(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            await client.send("Orders", b"one")
            refused = await client.ask(15, **QUEUE, commitOffset=1)
            assert (refused.code, refused.remark) == (26, "Group readers not exist!")
            client.server.broker.store.tables.create_group("readers")
            assert (await client.ask(15, **QUEUE, commitOffset=1)).fields == {}
            assert (await client.ask(14, **QUEUE)).fields["offset"] == "1"
            table = json.loads(bytes((await client.ask(43)).body).replace(b"{0:", b'{"0":'))
            assert table["offsetTable"]["Orders@readers"] == {"0": 1}

    run(told)
    with MessageStore(tmp_path) as store:
        assert store.tables.consumer_offset("readers", "Orders", 0) == 1


def test_a_commit_of_minus_one_is_none(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            await client.send("Orders", b"one")
            client.server.broker.store.wait_dispatched()
            await client.ask(15, **QUEUE, commitOffset=-1)
            assert (await client.ask(14, **QUEUE)).fields["offset"] == "0"

    run(told)


def test_an_unknown_topic_takes_no_offset(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            client.server.broker.store.tables.create_group("readers")
            answer = await client.ask(15, consumerGroup="readers", topic="Nowhere", queueId=0, commitOffset=1)
            assert (answer.code, answer.remark) == (17, "Topic Nowhere not exist!")

    run(told)


def test_where_delay_levels_stand_is_told_as_the_file_has_it(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            client.server.broker.store.tables.set_delay_offset(3, 17)
            text = bytes((await client.ask(45)).body).decode()
            assert "".join(text.split()).endswith('"offsetTable":{3:17}}')

    run(told)


def test_before_5_an_empty_queue_is_read_from_its_beginning_and_anybody_commits(tmp_path: Path) -> None:
    """There a queue that nobody has written to begins at 0, also where its topic is not declared."""

    async def told() -> None:
        with MessageStore(tmp_path, like="4.9") as store, bind("127.0.0.1", 0) as at:
            async with ListeningBroker(store, listening_socket=at) as server:
                client = Asking(server)
                await client.open()
                assert (await client.ask(14, **QUEUE)).fields["offset"] == "0"
                for topic in ("Orders", "Nowhere"):
                    assert (await client.ask(15, **{**QUEUE, "topic": topic}, commitOffset=3)).code == 0
                assert (await client.ask(14, **QUEUE)).fields["offset"] == "3"
                client.close()

    run(told)
