"""A broker over a store, and a client that sends requests to it, in one process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

from served_stores import a_send

from engine.broker.config import BrokerConfig
from engine.broker.server import ListeningBroker
from engine.broker.serving import serving_store
from engine.codec.message import Unit
from engine.config import MessageStoreConfig
from engine.releases import Release
from engine.remoting.connection import Connection, connect
from engine.remoting.frame import ONE_WAY, Command, answer_to


class BrokerClient:
    """A connection to a broker. ``requests`` are those that the broker sent over it."""

    def __init__(self, server: ListeningBroker) -> None:
        self.server = server
        self.requests: list[Command] = []
        self.response_code: int | None = None
        """Code of its responses to these requests; None: it does not respond."""
        self._connection: Connection | None = None

    async def open(self) -> None:
        host, _, port = self.server.address.rpartition(":")
        self._connection = await connect(host, int(port), self._hear)

    def _hear(self, request: Command, _connection: Connection) -> Command | None:
        self.requests.append(request)
        return None if self.response_code is None else answer_to(request, self.response_code)

    async def ask(self, code: int, body: bytes = b"", **fields: object) -> Command:
        """Return the answer to one request; fields are spelled like in Java."""
        assert self._connection is not None
        spelled = {
            name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in fields.items()
        }
        return await self._connection.ask(Command(code, spelled, body=body, version=477), 60)

    async def send(
        self, topic: str, body: bytes, queue_id: int = 0, properties: str = "", **options: object
    ) -> Command:
        """Send SEND_MESSAGE."""
        fields: dict[str, object] = {
            "producerGroup": "senders",
            "topic": topic,
            "defaultTopic": "TBW102",
            "defaultTopicQueueNums": 4,
            "queueId": queue_id,
            "sysFlag": 0,
            "bornTimestamp": 1_700_000_000_000,
            "flag": 0,
            "properties": properties,
            "reconsumeTimes": 0,
            "unitMode": False,
            "batch": False,
        }
        return await self.ask(10, body, **{**fields, **options})

    def send_oneway(self, topic: str, body: bytes) -> None:
        """Send SEND_MESSAGE_V2 to queue 0, one-way."""
        assert self._connection is not None
        self._connection.send(a_send(body, topic, flag=ONE_WAY))

    async def batch(self, topic: str, members: bytes, properties: str = "") -> Command:
        """Send SEND_BATCH_MESSAGE to queue 0."""
        return await self.ask(
            320,
            members,
            a="senders",
            b=topic,
            c="TBW102",
            d=4,
            e=0,
            f=0,
            g=1_700_000_000_000,
            h=0,
            i=properties,
            j=0,
            k=False,
            m=True,
        )

    async def pull(
        self, topic: str, offset: int, queue_id: int = 0, group: str = "readers", **options: object
    ) -> Command:
        """Send PULL_MESSAGE with its subscription, without waiting for messages."""
        fields: dict[str, object] = {
            "consumerGroup": group,
            "topic": topic,
            "queueId": queue_id,
            "queueOffset": offset,
            "maxMsgNums": 32,
            "sysFlag": 4,
            "commitOffset": 0,
            "suspendTimeoutMillis": 0,
            "subscription": "*",
            "subVersion": 0,
        }
        return await self.ask(11, **{**fields, **options})

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


@contextlib.asynccontextmanager
async def asking_broker(
    path: Path,
    config: BrokerConfig | None = None,
    store_config: MessageStoreConfig | None = None,
    release: Release | None = None,
) -> AsyncIterator[BrokerClient]:
    """Run a broker over the store in ``path``, with one client of it."""
    async with serving_store(path, config, store_config, port=0, release=release) as server:
        client = BrokerClient(server)
        await client.open()
        try:
            yield client
        finally:
            client.close()


def run_scenario(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test that is a coroutine, for at most four minutes."""

    async def timed() -> None:
        async with asyncio.timeout(240):
            await scenario()

    asyncio.run(timed())


def units(client: BrokerClient, topic: str, queue_id: int = 0) -> list[Unit]:
    """Return the first units of a queue after everything is dispatched."""
    store = client.server.broker.store
    store.wait_dispatched()
    message = store.get_message("g", topic, queue_id, 0)
    assert message is not None
    with message:
        return list(message.units())


async def half(client: BrokerClient, number: int = 0, more_properties: str = "") -> dict[str, object]:
    """Send a half message and return the fields that END_TRANSACTION needs for it."""
    properties = f"TRAN_MSG\x01true\x02PGROUP\x01payers\x02UNIQ_KEY\x01U{number}\x02TAGS\x01paid\x02{more_properties}"
    answer = await client.send(
        "Orders", b"%d" % number, 2, properties, sysFlag=4, bornTimestamp=client.server.broker.now()
    )
    assert answer.code == 0
    return {
        "producerGroup": "payers",
        "tranStateTableOffset": answer.fields["queueOffset"],
        "commitLogOffset": int(str(answer.fields["msgId"])[-16:], 16),
        "msgId": f"U{number}",
    }
