"""Every request that a broker answers: the modules that know, in one table (protocol 3)."""

from __future__ import annotations

from engine.broker import (
    admin_broker,
    admin_clients,
    admin_groups,
    admin_store,
    admin_topics,
    assignments,
    consumer_calls,
    heartbeats,
    locks,
    offsets,
    pop,
    pop_acks,
    pop_looks,
    pull,
    queries,
    recall,
    replies,
    reset_offsets,
    send,
    send_back,
    transactions,
)
from engine.broker.broker import Broker, Processor
from engine.remoting.codes import BROKER, POP_FAMILY, by_code
from engine.remoting.connection import Connection, not_supported
from engine.remoting.frame import Command

MODULES = (
    admin_broker, admin_clients, admin_groups, admin_store, admin_topics, assignments, consumer_calls, heartbeats,
    locks, offsets, pop, pop_acks, pop_looks, pull, queries, recall, replies, reset_offsets, send, send_back,
    transactions,
)  # fmt: skip
ANSWERS: dict[int, Processor] = {code: answer for module in MODULES for code, answer in module.ANSWERS.items()}
_REQUESTS = by_code(BROKER)
_SINCE_5 = frozenset(one.code for one in POP_FAMILY)


def answer(broker: Broker, request: Command, connection: Connection) -> Command | None:
    """The answer to ``request``; None where it comes later, or never. Raises :class:`engine.remoting.codes.Refused`."""
    if broker.access is not None:
        broker.access.check(request, connection.peer)
    processor = ANSWERS.get(request.code)
    if processor is None or (request.code in _SINCE_5 and broker.store.like == "4.9"):
        return not_supported(request)
    return processor(broker, request, _REQUESTS[request.code].read(request), connection)
