"""CF14: tables below ``config/`` that do not fit the store (docs/formats/config-tables.md#tables).

One restores the wrong backup, or copies ``config/`` of one broker to another. Then topics.json lacks topics whose
messages the store holds, and groups have offsets in topics of which the store has nothing. Each of these alone may be
a deleted topic or a lost row; together, or of most topics, they have one cause.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice
from typing import Any

from engine.codec.message import Unit
from engine.inspection import tables
from engine.inspection.snapshot import StoreSnapshot
from engine.rules import catalogue_tables
from engine.rules.findings import HAPPENED, Finding
from engine.system_names import CLUSTER_PROPERTY, DLQ_PREFIX, LMQ_PREFIX, is_system_group, is_system_topic

LEAST_TOPICS = 2
"""Fewer topics that are missing in a table may be deleted ones."""
MOST_NAMED = 20
MOST_UNITS = 64
"""Number of the log's first units whose cluster is read."""
FOLLOWERS = frozenset({"CQ14", "CF02", "CF06", "CF07", "CF08", "CF09", "CF12", "CF13"})
"""Rules whose findings follow from tables of another store."""
_ROWS = frozenset({"CF03"})
"""Rules of which only findings on rows follow, not those on whole tables."""


def explained(store: StoreSnapshot, findings: list[Finding], undispatched: Collection[str]) -> list[Finding]:
    """Return ``findings``; if the tables do not fit the store, CF14 comes first and what it explains follows from it.

    ``undispatched``: topics without a queue of which the log has units. Raises :class:`CannotRead`.
    """
    witnesses = [finding for finding in findings if finding.id in ("CQ14", "CF08") and finding.caused_by is None]
    if store.paths is None or store.lock_state == "held" or len(witnesses) < LEAST_TOPICS:
        return findings
    declared = tables.topics(store) or {}
    with_messages = _topics_with_messages(store)
    lacking = sorted(with_messages - declared.keys()) if declared else []
    there = {*store.topics(), *undispatched}
    read = {
        row.topic
        for row in tables.offsets(store)
        if row.mode != "broadcast" and max(row.offsets.values(), default=0) > 0 and not is_system_group(row.group)
    }
    unknown = sorted(read - there)
    dead = sorted(name for name in declared if name.startswith(DLQ_PREFIX) and name not in there)
    lacks_most = len(lacking) >= LEAST_TOPICS and 2 * len(lacking) >= len(with_messages)
    reads_others = len(unknown) >= LEAST_TOPICS and 2 * len(unknown) > len(read)
    if not lacks_most and not (reads_others and (lacking or dead)):
        return findings
    if declared.keys() <= there and not unknown:
        return findings  # incomplete, but nothing in it is of another broker: as an import writes it
    cause = _finding(store, lacking, len(with_messages), unknown, dead)
    return [cause, *(finding.follows("CF14") if _follows(finding) else finding for finding in findings)]


def _topics_with_messages(store: StoreSnapshot) -> set[str]:
    """Topics of clients whose queues hold messages."""
    return {
        topic
        for topic, queues in store.topics().items()
        if not (is_system_topic(topic) or topic.startswith(LMQ_PREFIX))
        and any(queue.max_offset > max(queue.min_offset, 0) for queue in queues.values())
    }


def _follows(finding: Finding) -> bool:
    if finding.caused_by is not None:
        return False
    return finding.id in FOLLOWERS or (
        finding.id in _ROWS and "groups" in finding.evidence and finding.severity != "error"
    )


def _finding(
    store: StoreSnapshot, lacking: list[str], topic_count: int, unknown: list[str], dead: list[str]
) -> Finding:
    assert store.paths is not None
    parts = []
    if lacking:
        parts.append(f"topics.json lacks {len(lacking):,} of {topic_count:,} topics with messages ({_named(lacking)})")
    if unknown:
        parts.append(
            f"groups have offsets in {len(unknown):,} topics of which the store has nothing ({_named(unknown)})"
        )
    if dead:
        parts.append(f"topics.json has {len(dead):,} dead letter topics of which it has nothing ({_named(dead)})")
    clusters = _foreign_clusters(store)
    if clusters:
        parts.append(f"messages are of the cluster {_named(clusters)}, which topics.json does not name")
    evidence: dict[str, Any] = {
        "expected": "the topics of the store",
        "found": f"{topic_count - len(lacking)} of {topic_count}",
        "lacking": lacking[:MOST_NAMED],
        "withoutQueues": unknown[:MOST_NAMED],
        "clusters": clusters,
        HAPPENED: "the tables in config/ do not fit this store: they are of another broker, or of another time",
    }
    text = "The tables in config/ do not fit this store: " + "; ".join(parts)
    return catalogue_tables.CF14.found(text, str(store.paths.config), None, evidence)


def _foreign_clusters(store: StoreSnapshot) -> list[str]:
    """Clusters that the first units bear and topics.json does not declare; a broker declares its own cluster."""
    declared = tables.topics(store) or {}
    units = (item for item in islice(store.units(crc=False), MOST_UNITS) if isinstance(item, Unit))
    clusters = {cluster for unit in units if (cluster := unit.properties.get(CLUSTER_PROPERTY))}
    return sorted(clusters - declared.keys())


def _named(names: Iterable[str]) -> str:
    shown = list(names)
    return ", ".join(shown[:3]) + (" …" if len(shown) > 3 else "")
