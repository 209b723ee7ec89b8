"""Reports half messages that a broker gave up (CF16; docs/formats/transactions.md)."""

from __future__ import annotations

from collections.abc import Iterator

from engine.codec import properties as props
from engine.codec.message import Unit
from engine.inspection.snapshot import StoreSnapshot
from engine.rules import catalogue_tables as rules
from engine.rules.findings import Finding
from engine.sentences import plural
from engine.system_names import CHECK_MAX_TOPIC


def findings(store: StoreSnapshot) -> Iterator[Finding]:
    """CF16. Raises :class:`CannotRead`."""
    if store.paths is None:
        return
    for queue_id, queue in sorted(store.queues.by_topic().get(CHECK_MAX_TOPIC, {}).items()):
        count = queue.max_offset - max(queue.min_offset, 0)
        entry = queue.entry(max(queue.min_offset, 0)) if count > 0 else None
        first_unit = (
            store.log.seen_at(entry.physical_offset, crc=False)
            if entry is not None and entry.state == "entry"
            else None
        )
        if not isinstance(first_unit, Unit):
            continue
        text = plural(
            "The broker gave up {n:,} half message: {key} for {topic}, at {offset:,} of the log",
            "The broker gave up {n:,} half messages: the first is {key} for {topic}, at {offset:,} of the log",
            n=count,
            key=first_unit.unique_key,
            topic=first_unit.properties.get(props.REAL_TOPIC, ""),
            offset=first_unit.offset,
        )
        evidence = {"queue": f"{CHECK_MAX_TOPIC}/{queue_id}", "messages": count}
        file = store.log.sequence.find(first_unit.offset)
        path, position = (file.path, first_unit.offset - file.start_offset) if file is not None else (None, None)
        yield rules.CF16.finding(text, path, position, evidence)
