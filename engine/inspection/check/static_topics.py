"""Checks the mappings of static topics: their ranges against each other, and against topics and queues of the store
(CF19; docs/formats/config-tables.md#static-topics).
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.codec.config_tables import read_table_file
from engine.codec.queue_mappings import MAPPINGS_FILE, TopicMapping, WrongMapping, check_ranges, read_mappings
from engine.inspection import tables
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.static_topics import LogicalRange, logical_ranges, mappings
from engine.releases import Release
from engine.rules import catalogue_tables
from engine.rules.findings import Finding
from engine.sentences import sentence


def findings(store: StoreSnapshot) -> Iterator[Finding]:
    """CF19 of a store. Raises :class:`CannotRead`."""
    if store.paths is None:
        return
    mappings_by_topic = mappings(store)
    if not mappings_by_topic:
        return
    path = str(store.paths.config / MAPPINGS_FILE)
    for topic, mapping in mappings_by_topic.items():
        reason = contradiction(topic, mapping)
        if reason is not None:
            text = sentence(
                "The mapping of the static topic {topic} contradicts itself: {why}", topic=topic, why=reason
            )
            yield catalogue_tables.CF19.finding(text, path, None, {"topic": topic, "found": reason})
    yield from _without_queues(store, path)
    for item in logical_ranges(store):
        yield from _beyond_the_end(item, path)


def contradiction(topic: str, mapping: TopicMapping) -> str | None:
    """Return why a broker refuses the mapping or translates two offsets into one; None if it does neither."""
    if mapping.topic != topic:
        return f"topic={mapping.topic}"
    users: dict[tuple[str, int], int] = {}
    for number, ranges in mapping.queues.items():
        try:
            check_ranges(ranges)
        except WrongMapping as error:
            return f"{number}: {error}"
        for item in ranges:
            if users.setdefault((item.broker, item.queue_id), number) != number:
                user = users[item.broker, item.queue_id]
                return f"{user}, {number}: {item.broker}/{item.queue_id}"
    return None


def is_consistent(content: bytes | None, release: Release) -> bool:
    """Return True if the content of a table of mappings can be read, has mappings, and none contradicts itself."""
    table = read_table_file(MAPPINGS_FILE, lambda _: content, release)
    if table.state != "ok" or table.parsed is None or not isinstance(table.parsed.value, dict):
        return False
    mappings_by_topic = read_mappings(table.parsed.value)
    return bool(mappings_by_topic) and all(
        contradiction(topic, mapping) is None for topic, mapping in mappings_by_topic.items()
    )


def _without_queues(store: StoreSnapshot, path: str) -> Iterator[Finding]:
    """Local ranges whose queue the topic does not have: a broker refuses sends to it and pulls from it."""
    topics = tables.topics(store)
    if topics is None:
        return
    for item in logical_ranges(store):
        declared = topics.get(item.topic)
        count = 0 if declared is None else declared.read_queue_nums
        if item.is_local and item.range.queue_id >= count:
            text = sentence(
                "Logical queue {number} of {topic} is queue {queue}, and topics.json has {n:,} queues",
                number=str(item.queue_id),
                topic=item.topic,
                queue=str(item.range.queue_id),
                n=count,
            )
            evidence = {"topic": item.topic, "expected": item.range.queue_id + 1, "found": count}
            yield catalogue_tables.CF19.finding(text, path, None, evidence, kind="queues")


def _beyond_the_end(item: LogicalRange, path: str) -> Iterator[Finding]:
    """A range that has ended, and whose queue has further messages: no client reads these."""
    if not item.range.has_end or item.max_offset is None or item.max_offset <= item.range.end_offset:
        return
    text = sentence(
        "Queue {queue} of {topic} has messages behind the end of logical queue {number} ({n:,}), which no client reads",
        queue=str(item.range.queue_id),
        topic=item.topic,
        number=str(item.queue_id),
        n=item.max_offset - item.range.end_offset,
    )
    evidence = {"topic": item.topic, "expected": item.range.end_offset, "found": item.max_offset}
    yield catalogue_tables.CF19.finding(text, path, None, evidence, kind="behind")
