"""What an older release makes of a store (DK03): version 2 units (spec 2.2)."""

from __future__ import annotations

from collections.abc import Iterator

from engine.codec.message import Unit
from engine.inspection.snapshot import StoreSnapshot
from engine.rules import catalogue_tables as rules
from engine.rules.findings import Finding

LONGEST_V1 = 127
"""Bytes of a topic's name that version 1 has room for."""
MOST_NAMED = 20


def findings(store: StoreSnapshot) -> Iterator[Finding]:
    """DK03: topics whose units 4.9 cannot read. Raises :class:`CannotRead`."""
    if store.paths is None:
        return
    firsts: dict[str, int] = {}
    units = 0
    for topic, queues in store.topics().items():
        if len(topic.encode()) <= LONGEST_V1:
            continue
        for queue in queues.values():
            first = queue.first_in_log
            entry = queue.entry(first) if first < queue.max_offset else None
            seen = store.log.seen_at(entry.physical_offset, crc=False) if entry is not None else None
            if entry is not None and isinstance(seen, Unit) and seen.version == 2:
                firsts[topic] = min(firsts.get(topic, entry.physical_offset), entry.physical_offset)
                units += queue.max_offset - first
    if not firsts:
        return
    at = min(firsts.values())
    file = store.log.sequence.find(at)
    text = (
        f"Topics with names over {LONGEST_V1} bytes ({len(firsts):,}) have version 2 units ({units:,}): a 4.9 broker "
        f"takes the first that it meets for the end of the log and cuts everything behind it; the first is at {at:,}"
    )
    evidence = {"topics": list(firsts)[:MOST_NAMED], "units": units, "firstUnit": at}
    yield rules.DK03.found(text, file.path if file is not None else None, at, evidence)
