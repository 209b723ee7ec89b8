"""Which queues of a topic a consumer takes: RocketMQ's six strategies (docs/protocol/clients.md#rebalance). Pure.

Every client of a group computes its own share from the same two lists, so the results must be Java's to the queue.
Java: ``org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueue…``. Each ``allocate`` is given the client's
own id, all queues of the topic and the ids of all clients, both sorted; who is not among the clients gets nothing.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from engine.client.routes import MessageQueue, java_order
from engine.codec.java import split


class AllocationStrategy(Protocol):
    """Gives each client of a group its queues. ``name`` is what Java's ``getName`` says."""

    @property
    def name(self) -> str: ...

    def allocate(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str], /
    ) -> list[MessageQueue]: ...


def _index(client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> int | None:
    """The client's place among all; None where it is not among them. Raises ``ValueError`` as Java's ``check``."""
    if not client_id:
        raise ValueError("currentCID is empty")
    if not queues:
        raise ValueError("mqAll is null or mqAll empty")
    if not client_ids:
        raise ValueError("cidAll is null or cidAll empty")
    return client_ids.index(client_id) if client_id in client_ids else None


@dataclass(frozen=True, slots=True)
class Averagely:
    """Neighbouring queues for each client, the first ones one more; RocketMQ's usual strategy."""

    name: str = field(default="AVG", init=False)

    def allocate(self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> list[MessageQueue]:
        """The client's stretch of the queues."""
        index = _index(client_id, queues, client_ids)
        if index is None:
            return []
        many, over = divmod(len(queues), len(client_ids))
        has_more = over > 0 and index < over
        size = 1 if len(queues) <= len(client_ids) else many + has_more
        start = index * size if has_more else index * size + over
        return list(queues[start : start + size])


@dataclass(frozen=True, slots=True)
class AveragelyByCircle:
    """One queue for each client in turn, round after round."""

    name: str = field(default="AVG_BY_CIRCLE", init=False)

    def allocate(self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> list[MessageQueue]:
        """Every n-th queue, from the client's own place on."""
        index = _index(client_id, queues, client_ids)
        return [] if index is None else list(queues[index :: len(client_ids)])


@dataclass(frozen=True, slots=True)
class ByConfig:
    """The queues that were configured, whoever else is there."""

    queues: tuple[MessageQueue, ...]
    name: str = field(default="CONFIG", init=False)

    def allocate(
        self, _client_id: str, _queues: Sequence[MessageQueue], _client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """The configured queues."""
        return list(self.queues)


@dataclass(frozen=True, slots=True)
class ByMachineRoom:
    """Queues of brokers named ``ROOM@NAME`` in the given rooms alone, shared out evenly; what is left over goes to the
    first clients.
    """

    rooms: Collection[str]
    name: str = field(default="MACHINE_ROOM", init=False)

    def allocate(self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> list[MessageQueue]:
        """The client's stretch of the queues in these rooms, and one of those left over."""
        index = _index(client_id, queues, client_ids)
        if index is None:
            return []
        near = []
        for queue in queues:
            words = split(queue.broker, "@")
            if len(words) == 2 and words[0] in self.rooms:
                near.append(queue)
        many, over = divmod(len(near), len(client_ids))
        found = near[many * index : many * (index + 1)]
        if over > index:
            found.append(near[index + many * len(client_ids)])
        return found


@dataclass(frozen=True, slots=True)
class MachineRoomNearby:
    """Queues go to clients in their own machine room; those of rooms without a client are shared by all.

    ``inner`` shares out within a room. The two functions tell the room of a queue and of a client id; an empty answer
    raises ``ValueError``, as in Java.
    """

    inner: AllocationStrategy
    room_of_queue: Callable[[MessageQueue], str]
    room_of_client: Callable[[str], str]

    @property
    def name(self) -> str:
        return f"MACHINE_ROOM_NEARBY-{self.inner.name}"

    def allocate(self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> list[MessageQueue]:
        """The client's share of its own room, then of each room that has no client, by the rooms' names."""
        if _index(client_id, queues, client_ids) is None:
            return []
        rooms: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            room = self.room_of_queue(queue)
            if not room:
                raise ValueError(f"Machine room is null for mq {java_text(queue)}")
            rooms.setdefault(room, []).append(queue)
        clients: dict[str, list[str]] = {}
        for one in client_ids:
            room = self.room_of_client(one)
            if not room:
                raise ValueError(f"Machine room is null for consumer id {one}")
            clients.setdefault(room, []).append(one)
        own = self.room_of_client(client_id)
        found = []
        if here := rooms.pop(own, None):
            found += self.inner.allocate(client_id, here, clients[own])
        for room in sorted(rooms, key=java_order):
            if room not in clients:
                found += self.inner.allocate(client_id, rooms[room], client_ids)
        return found


@dataclass(frozen=True, slots=True)
class ConsistentHash:
    """A ring of hashes on which each client stands at several places; a queue goes to the next client on the ring, so
    that a client that comes or goes moves few queues.
    """

    virtual_nodes: int = 10
    hash_of: Callable[[str], int] | None = None
    name: str = field(default="CONSISTENT_HASH", init=False)

    def __post_init__(self) -> None:
        if self.virtual_nodes < 0:
            raise ValueError(f"illegal virtualNodeCnt :{self.virtual_nodes}")

    def allocate(self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> list[MessageQueue]:
        """The queues whose next place on the ring is the client's."""
        if _index(client_id, queues, client_ids) is None:
            return []
        hashed = self.hash_of or _md5
        ring: dict[int, str] = {}
        seen: set[str] = set()
        for one in client_ids:
            already = sum(node == one for node in ring.values()) if one in seen else 0  # who is listed twice has more
            seen.add(one)
            for number in range(already, already + self.virtual_nodes):
                ring[hashed(f"{one}-{number}")] = one
        places = sorted(ring)
        if not places:
            return []
        return [
            queue
            for queue in queues
            if ring[places[bisect_left(places, hashed(java_text(queue))) % len(places)]] == client_id
        ]


def _md5(text: str) -> int:
    """The first four bytes of the digest (Java: ``ConsistentHashRouter.MD5Hash``)."""
    digest = hashlib.md5(text.encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4], "big")


def java_text(queue: MessageQueue) -> str:
    """``MessageQueue.toString``, which is what is hashed."""
    return f"MessageQueue [topic={queue.topic}, brokerName={queue.broker}, queueId={queue.queue_id}]"
