"""Rebalance: a topic's queues shared out among consumers by RocketMQ's six strategies, and the plan of what one
consumer releases and acquires (docs/protocol/clients.md#rebalance). Pure.

Every client of a group computes its own share from the same two lists, so the results must equal Java's for each
queue. Each ``allocate`` gets the client's own id, all queues of the topic and the ids of all clients, both sorted; a
client that is not in the list gets nothing. Java:
``org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueue…``, ``RebalanceImpl.rebalanceByTopic``,
``updateProcessQueueTableInRebalance``.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from engine.client.routes import MessageQueue, java_order, queue_order
from engine.codec.java import split


class AllocationStrategy(Protocol):
    """Gives each client of a group its queues. ``name`` is the result of Java's ``getName``."""

    @property
    def name(self) -> str: ...

    def allocate(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str], /
    ) -> list[MessageQueue]: ...


def _index(client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> int | None:
    """Return the client's place among all; None if it is not among them. Raises ``ValueError`` as Java's
    ``check``.
    """
    if not client_id:
        raise ValueError("currentCID is empty")
    if not queues:
        raise ValueError("mqAll is null or mqAll empty")
    if not client_ids:
        raise ValueError("cidAll is null or cidAll empty")
    return client_ids.index(client_id) if client_id in client_ids else None


@dataclass(frozen=True, slots=True)
class Averagely:
    """A run of neighbouring queues for each client; the first clients get one more. RocketMQ's default strategy."""

    name: str = field(default="AVG", init=False)

    def allocate(self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> list[MessageQueue]:
        """Return the client's run of the queues."""
        index = _index(client_id, queues, client_ids)
        if index is None:
            return []
        per_client, remainder = divmod(len(queues), len(client_ids))
        has_more = remainder > 0 and index < remainder
        size = 1 if len(queues) <= len(client_ids) else per_client + has_more
        start = index * size if has_more else index * size + remainder
        return list(queues[start : start + size])


@dataclass(frozen=True, slots=True)
class AveragelyByCircle:
    """Allocation of one queue to each client in turn, round after round."""

    name: str = field(default="AVG_BY_CIRCLE", init=False)

    def allocate(self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> list[MessageQueue]:
        """Return every n-th queue, from the client's own place on."""
        index = _index(client_id, queues, client_ids)
        return [] if index is None else list(queues[index :: len(client_ids)])


@dataclass(frozen=True, slots=True)
class ByConfig:
    """The configured queues, whatever the other clients have."""

    queues: tuple[MessageQueue, ...]
    name: str = field(default="CONFIG", init=False)

    def allocate(
        self, _client_id: str, _queues: Sequence[MessageQueue], _client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """Return the configured queues."""
        return list(self.queues)


@dataclass(frozen=True, slots=True)
class ByMachineRoom:
    """Only the queues of brokers named ``ROOM@NAME`` in the given rooms, shared out evenly; the remaining ones go to
    the first clients.
    """

    rooms: Collection[str]
    name: str = field(default="MACHINE_ROOM", init=False)

    def allocate(self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> list[MessageQueue]:
        """Return the client's run of the queues in these rooms, and one of the remaining queues."""
        index = _index(client_id, queues, client_ids)
        if index is None:
            return []
        queues_in_rooms = []
        for queue in queues:
            words = split(queue.broker, "@")
            if len(words) == 2 and words[0] in self.rooms:
                queues_in_rooms.append(queue)
        per_client, remainder = divmod(len(queues_in_rooms), len(client_ids))
        share = queues_in_rooms[per_client * index : per_client * (index + 1)]
        if remainder > index:
            share.append(queues_in_rooms[index + per_client * len(client_ids)])
        return share


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
        """Return the client's share of its own room, then of each room that has no client, in the order of the
        rooms' names.
        """
        if _index(client_id, queues, client_ids) is None:
            return []
        rooms: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            room = self.room_of_queue(queue)
            if not room:
                raise ValueError(f"Machine room is null for mq {java_text(queue)}")
            rooms.setdefault(room, []).append(queue)
        clients: dict[str, list[str]] = {}
        for member_id in client_ids:
            room = self.room_of_client(member_id)
            if not room:
                raise ValueError(f"Machine room is null for consumer id {member_id}")
            clients.setdefault(room, []).append(member_id)
        own_room = self.room_of_client(client_id)
        share = []
        if own_queues := rooms.pop(own_room, None):
            share += self.inner.allocate(client_id, own_queues, clients[own_room])
        for room in sorted(rooms, key=java_order):
            if room not in clients:
                share += self.inner.allocate(client_id, rooms[room], client_ids)
        return share


@dataclass(frozen=True, slots=True)
class ConsistentHash:
    """A ring of hashes with several places for each client; a queue goes to the next client on the ring, so that a
    client that comes or goes moves few queues.
    """

    virtual_nodes: int = 10
    hash_of: Callable[[str], int] | None = None
    name: str = field(default="CONSISTENT_HASH", init=False)

    def __post_init__(self) -> None:
        if self.virtual_nodes < 0:
            raise ValueError(f"illegal virtualNodeCnt :{self.virtual_nodes}")

    def allocate(self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> list[MessageQueue]:
        """Return the queues whose next place on the ring is the client's."""
        if _index(client_id, queues, client_ids) is None:
            return []
        hashed = self.hash_of or _md5
        ring: dict[int, str] = {}
        listed: set[str] = set()
        for member_id in client_ids:
            # an id that is listed twice gets more places
            already = sum(node == member_id for node in ring.values()) if member_id in listed else 0
            listed.add(member_id)
            for number in range(already, already + self.virtual_nodes):
                ring[hashed(f"{member_id}-{number}")] = member_id
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
    """Return ``MessageQueue.toString``, the text that is hashed."""
    return f"MessageQueue [topic={queue.topic}, brokerName={queue.broker}, queueId={queue.queue_id}]"


@dataclass(frozen=True, slots=True)
class RebalancePlan:
    """The changes of a rebalance: the lists it used, the queues the client owns by them, those released and added."""

    queues: tuple[MessageQueue, ...]
    client_ids: tuple[str, ...]
    owned: tuple[MessageQueue, ...]
    released: tuple[MessageQueue, ...]
    added: tuple[MessageQueue, ...]


def plan_rebalance(
    client_id: str,
    queues: Sequence[MessageQueue],
    client_ids: Collection[str],
    held_queues: Collection[MessageQueue],
    strategy: AllocationStrategy | None,
) -> RebalancePlan:
    """Return the plan for one topic. ``held_queues`` are the queues that the client reads now; without a
    ``strategy`` (broadcast) every client has all queues. Raises ``ValueError`` as strategies do.
    """
    sorted_queues = tuple(sorted(queues, key=queue_order))
    sorted_ids = tuple(sorted(set(client_ids), key=java_order))
    own_queues = sorted_queues if strategy is None else tuple(strategy.allocate(client_id, sorted_queues, sorted_ids))
    own_set = set(own_queues)
    return RebalancePlan(
        sorted_queues,
        sorted_ids,
        own_queues,
        tuple(sorted((queue for queue in held_queues if queue not in own_set), key=queue_order)),
        tuple(queue for queue in own_queues if queue not in held_queues),
    )
