"""Finds a message by its identifier: offset message id, unique key or physical offset (``message``, queryMsgById …)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from engine.codec.index_keys import has_key
from engine.codec.java import index_key_hash
from engine.codec.message import Unit, parse_offset_message_id
from engine.errors import CorruptUnit
from engine.inspection.key_trace import Match, trace
from engine.inspection.tables import table_topics

if TYPE_CHECKING:
    from engine.inspection.index_reader import IndexReader
    from engine.inspection.snapshot import StoreSnapshot


def parse_number(text: str) -> int | None:
    """Parse an offset: decimal, ``0x…``, ``1_000`` or ``1,000``; None if it is no number."""
    plain = text.strip().replace(",", "")
    try:
        value = int(plain, 0)
    except ValueError:
        try:
            value = int(plain)
        except ValueError:
            return None
    return value if -(1 << 63) <= value < 1 << 63 else None


def find_message(store: StoreSnapshot, text: str, topic: str | None = None) -> Unit | None:
    """The unit that ``text`` names, the newest if a unique key names several; None if there is none.

    An offset id and an IPv4 unique key both have 32 hex digits: it is the id if the unit at its offset has that id.
    """
    unit = by_offset_id(store, text)
    if unit is not None:
        return unit
    if topic is None and len(text) not in (32, 56):
        offset = parse_number(text)
        if offset is not None:
            item = store.log.seen_at(offset)
            return item if isinstance(item, Unit) else None
    return next(by_key(store, text, topic), None)


def by_offset_id(store: StoreSnapshot, text: str) -> Unit | None:
    """The unit whose offset message id is ``text``."""
    parsed = parse_offset_message_id(text)
    if parsed is None:
        return None
    item = store.log.seen_at(parsed[1])
    return item if isinstance(item, Unit) and item.offset_msg_id == text.upper() else None


def by_key(store: StoreSnapshot, key: str, topic: str | None = None) -> Iterator[Unit]:
    """Yield units that carry ``key`` as unique key, among KEYS, or as ``T#`` and their tags; found by the index, newest
    first.

    Without ``topic``, units of every topic.
    """
    topics = [topic] if topic is not None else list(known_topics(store))
    if len(topics) == 1 or store.index.rocksdb is not None:
        for step in chain.from_iterable(trace(store, name, key, max_count=1 << 30) for name in topics):
            if isinstance(step, Match):
                yield step.unit
        return
    units: dict[int, Unit] = {}
    topic_of_hash = {index_key_hash(name, key): name for name in topics}
    for reader in store.index_files():
        for offset in chained_offsets(reader, topic_of_hash):
            unit = store.log.seen_at(offset)
            if isinstance(unit, Unit) and has_key(unit.properties, key):
                units[unit.offset] = unit
    for offset in sorted(units, reverse=True):
        yield units[offset]


def known_topics(store: StoreSnapshot) -> Iterator[str]:
    """Every topic that a unit may belong to: those with a queue folder and those of the topics table, as far as either
    is decoded.

    To conclude that a key does not exist, search the log as well.
    """
    folder_topics = set(store.queues.topic_names())
    yield from folder_topics
    if store.why_unknown("topics") is None:
        yield from (name for name in table_topics(store) if name not in folder_topics)


def chained_offsets(reader: IndexReader, hashes: dict[int, str]) -> Iterator[int]:
    """Offsets of the entries of one file whose hash is in ``hashes``, chain by chain; each chain is walked at most
    once.
    """
    try:
        slots = reader.slots
        reader = reader.in_memory()
        for key_hash in hashes:
            number = reader.slot(key_hash % slots)
            visited: set[int] = set()
            while number > 0 and number not in visited:
                visited.add(number)
                entry = reader.entry(number)
                if entry is None:
                    break
                if entry.key_hash == key_hash:
                    yield entry.phy_offset
                number = entry.prev
    except CorruptUnit:
        return
