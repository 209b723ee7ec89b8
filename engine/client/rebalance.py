"""What a consumer gives up and takes when a topic is shared out anew: a plan, from the lists that it sees.

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
    """The lists that were seen, what is the client's own by them, and what changes for it."""

    queues: tuple[MessageQueue, ...]
    client_ids: tuple[str, ...]
    owned: tuple[MessageQueue, ...]
    given_up: tuple[MessageQueue, ...]
    taken: tuple[MessageQueue, ...]


def plan_rebalance(
    client_id: str,
    queues: Sequence[MessageQueue],
    client_ids: Collection[str],
    held: Collection[MessageQueue],
    strategy: AllocationStrategy | None,
) -> RebalancePlan:
    """The plan for one topic. ``held`` are the queues that the client reads now; without a ``strategy`` (broadcast) all
    queues are everybody's. Raises ``ValueError`` as strategies do.
    """
    every = tuple(sorted(queues, key=queue_order))
    ids = tuple(sorted(set(client_ids), key=java_order))
    mine = every if strategy is None else tuple(strategy.allocate(client_id, every, ids))
    wanted = set(mine)
    return RebalancePlan(
        every,
        ids,
        mine,
        tuple(sorted((one for one in held if one not in wanted), key=queue_order)),
        tuple(one for one in mine if one not in held),
    )
