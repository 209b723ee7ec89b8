"""Groups that may not consume and topics that may not be read, as the tables below ``config/`` say
(docs/formats/config-tables.md#tables).

A broker answers their pulls and pops with NO_PERMISSION, and what the group has not read waits.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.codec.config_tables import PERM_READ, subscription_groups
from engine.inspection import tables
from engine.inspection.snapshot import StoreSnapshot


@dataclass(frozen=True, slots=True)
class Permissions:
    """Groups with ``consumeEnable=false``, and the permission of each topic that may not be read."""

    barred_groups: frozenset[str] = frozenset()
    unreadable_topics: dict[str, int] = field(default_factory=dict)

    def of_group(self, group: str) -> str:
        """Words for why a group may not consume, "" if it may."""
        if group not in self.barred_groups:
            return ""
        return f"{group} may not consume: subscriptionGroup.json says consumeEnable=false"

    def of_topic(self, topic: str) -> str:
        """Words for why a topic may not be read, "" if it may."""
        perm = self.unreadable_topics.get(topic)
        return "" if perm is None else f"{topic} may not be read: topics.json says perm {perm}"

    def why_barred(self, group: str, topic: str) -> str:
        """Words for why a group gets nothing of a topic, "" if it gets what is there."""
        return self.of_group(group) or self.of_topic(topic)


def read_permissions(store: StoreSnapshot) -> Permissions:
    """The permissions in the tables that a broker would load. Raises :class:`CannotRead`."""
    groups = tables.loaded(store, "subscriptionGroup.json")
    rows = subscription_groups(groups).rows if groups is not None else ()
    topics = tables.topics(store) or {}
    return Permissions(
        frozenset(row.name for row in rows if not row.consume_enable),
        {name: topic.perm for name, topic in topics.items() if not topic.perm & PERM_READ},
    )
