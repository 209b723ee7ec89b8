"""Values that a log really holds, for completion: a few units from many places of it. Reads the disk; no Qt."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from engine.codec.message import Unit
from engine.errors import StoreError

if TYPE_CHECKING:
    from engine.inspection.log_reader import LogReader

PLACES, AT_EACH = 24, 40
"""Places of the log that are looked at, and units read at each: some hundred milliseconds on a cold disk."""
MOST = 200
"""Values a field keeps: the most frequent ones."""
LONGEST = 80
Values = dict[str, tuple[str, ...]]


def sample(log: LogReader) -> Values:
    """Field → texts seen in it, most frequent first; ``properties`` has the names of properties."""
    found: dict[str, Counter[str]] = {}
    start, end = max(log.min_offset, 0), max(log.max_offset, 0)
    step = max(1, (end - start) // PLACES)
    seen: set[int] = set()
    for place in range(start, max(end, start + 1), step):
        try:
            for item in log.items(log.align(place), AT_EACH, crc=False):
                if isinstance(item, Unit) and item.offset not in seen:
                    seen.add(item.offset)
                    _add(found, item)
        except StoreError:
            continue
    return {name: tuple(text for text, _ in counts.most_common(MOST)) for name, counts in found.items()}


def _add(found: dict[str, Counter[str]], unit: Unit) -> None:
    def add(field: str, text: str | None) -> None:
        if text and len(text) <= LONGEST:
            found.setdefault(field, Counter())[text] += 1

    add("topic", unit.topic)
    add("tags", unit.tags)
    for key in unit.keys:
        add("keys", key)
    add("bornHost", unit.born_host)
    add("storeHost", unit.store_host)
    for name, value in unit.properties.items():
        add("properties", name)
        add(f"properties.{name}", value)
