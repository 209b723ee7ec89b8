"""Clients of a running broker, in a thread of their own: each sends heartbeats, and reports its queues when asked."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any, TypeVar

from engine.cluster.state import Queue
from engine.remoting.connection import Connection, connect
from engine.remoting.frame import Command, answer_to

T = TypeVar("T")
SECONDS = 60


class ConnectedClients:
    """All connected clients; every call waits until the broker has answered."""

    def __init__(self, broker: str, loop: asyncio.AbstractEventLoop) -> None:
        self._broker, self._loop = broker, loop
        self._connections: dict[str, Connection] = {}
        self.owns: dict[str, Sequence[Queue]] = {}
        """What each client says that it owns."""

    def consumer(self, client_id: str, group: str, topic: str, owns: Sequence[Queue] = ()) -> None:
        """Connect a client of a group that reports these queues as its own."""
        self.owns[client_id] = owns
        consumes = {
            "groupName": group,
            "consumeType": "CONSUME_PASSIVELY",
            "messageModel": "CLUSTERING",
            "subscriptionDataSet": [{"topic": topic, "subString": "*"}],
        }
        self._beat(client_id, {"clientID": client_id, "producerDataSet": [], "consumerDataSet": [consumes]})

    def producer(self, client_id: str, group: str) -> None:
        """Connect a client that sends."""
        beat = {"clientID": client_id, "producerDataSet": [{"groupName": group}], "consumerDataSet": []}
        self._beat(client_id, beat)

    def send(self, client_id: str, topic: str, count: int, queue_id: int = 0) -> None:
        """Send messages to a queue."""
        fields = {
            "producerGroup": "senders",
            "topic": topic,
            "defaultTopic": "TBW102",
            "defaultTopicQueueNums": "4",
            "queueId": str(queue_id),
            "sysFlag": "0",
            "bornTimestamp": "1700000000000",
            "flag": "0",
            "properties": "",
            "reconsumeTimes": "0",
            "unitMode": "false",
            "batch": "false",
        }
        for number in range(count):
            self._ask(client_id, Command(10, dict(fields), body=b"%d" % number, version=479))

    def commit(self, client_id: str, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Commit the offset of a group."""
        self._ask(
            client_id,
            Command(
                15,
                {"consumerGroup": group, "topic": topic, "queueId": str(queue_id), "commitOffset": str(offset)},
                version=479,
            ),
        )

    def leave(self, client_id: str) -> None:
        """Cut the connection of a client."""
        self._loop.call_soon_threadsafe(self._connections.pop(client_id).close)

    def close(self) -> None:
        """Disconnect all clients."""
        for client_id in list(self._connections):
            self.leave(client_id)

    def _beat(self, client_id: str, beat: dict[str, object]) -> None:
        host, _, port = self._broker.rpartition(":")

        def hear(request: Command, _connection: Connection) -> Command | None:
            if request.code != 307:
                return answer_to(request, 3)
            rows = ",".join(
                f'{{"brokerName":"{queue.broker}","queueId":{queue.queue_id},"topic":"{queue.topic}"}}:{{"droped":false}}'
                for queue in self.owns[client_id]
            )
            return answer_to(request, body=b'{"mqTable":{%s}}' % rows.encode())

        self._connections[client_id] = self._do(connect(host, int(port), hear))
        self._ask(client_id, Command(34, {}, body=json.dumps(beat).encode(), version=479))

    def _ask(self, client_id: str, command: Command) -> Command:
        answer = self._do(self._connections[client_id].ask(command, SECONDS))
        assert answer.code == 0, answer
        return answer

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(SECONDS)


@contextlib.contextmanager
def joined(broker: str) -> Iterator[ConnectedClients]:
    """Yield clients of the broker at ``HOST:PORT``; all disconnect at the end."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="clients", daemon=True)
    thread.start()
    clients = ConnectedClients(broker, loop)
    try:
        yield clients
    finally:
        clients.close()
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0.05), loop).result(SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
