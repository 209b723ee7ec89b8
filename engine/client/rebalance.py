"""The plan of a rebalance: what a consumer gives up and takes when a topic is shared out anew, from the lists that
it sees.

Pure (docs/protocol/clients.md#rebalance). Java: ``RebalanceImpl.rebalanceByTopic``,
``updateProcessQueueTableInRebalance``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from engine.client.allocation import AllocationStrategy
from engine.client.routes import MessageQueue, java_order, queue_order


@dataclass(frozen=True, slots=True)
class RebalancePlan:
    """The lists that were used, the client's own queues by them, and its changes."""

    queues: tuple[MessageQueue, ...]
    client_ids: tuple[str, ...]
    owned: tuple[MessageQueue, ...]
    given_up: tuple[MessageQueue, ...]
    taken: tuple[MessageQueue, ...]


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
