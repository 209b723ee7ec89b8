"""Whether the index leads from each key of a unit to it, asked as a broker asks: along the key's own chain (spec 4.4).

A chain that goes round, leaves its file or ends in bytes that are gone hides what stands behind: the message is in the
log, and no query by that key finds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.codec import index as codec
from engine.codec.java import index_key_hash
from engine.codec.message import ROLLBACK, Unit
from engine.errors import CorruptUnit
from engine.inspection.key_trace import indexed_keys
from engine.inspection.where.fact import Evidence
from engine.rules.where import KeyReach

if TYPE_CHECKING:
    from engine.inspection.index_reader import IndexReader
    from engine.inspection.snapshot import StoreSnapshot


def key_reaches(store: StoreSnapshot, unit: Unit, evidence: list[Evidence]) -> Iterator[KeyReach]:
    """One for each key of ``unit`` that dispatch puts into the index; the evidence for it is appended."""
    if unit.transaction_type == ROLLBACK:
        return
    for key in dict.fromkeys(indexed_keys(unit)):
        reached, found = _reach(store, unit, key)
        evidence.append(found)
        yield KeyReach(key, reached, found.holds)


def _reach(store: StoreSnapshot, unit: Unit, key: str) -> tuple[bool | None, Evidence]:
    name = f"{unit.topic}#{key}"
    unasked = _not_to_be_asked(store)
    if unasked:
        return None, Evidence("index", None, None, unasked)
    readers = store.index_files()
    if not readers:
        return False, Evidence("index", None, None, f"no entry for {name} leads to it: there is no index")
    key_hash = index_key_hash(unit.topic, key)
    broken: tuple[str, str] | None = None
    for reader in sorted(readers, key=lambda one: not _covers(one, unit.offset)):
        ended = _led(reader, key_hash, unit.offset)
        if ended is None:
            return True, Evidence("index", reader.path, None, f"{name} leads to it")
        if ended and broken is None and _covers(reader, unit.offset):
            broken = (reader.path, ended)
    if broken is None:
        return False, Evidence("index", None, None, f"no entry for {name} leads to it")
    return False, Evidence("index", broken[0], None, f"no entry for {name} leads to it: {broken[1]}")


def _not_to_be_asked(store: StoreSnapshot) -> str:
    if store.paths is None:
        return "the index is no part of what was opened"
    config = store.config
    if config is not None and "messageIndexEnable" in config.given and not config.message_index_enable:
        return "the broker builds no index: messageIndexEnable is false"
    return ""


def _covers(reader: IndexReader, offset: int) -> bool:
    """Whether the file's header says that units around ``offset`` are in it; so it may, where nobody can tell."""
    try:
        header = reader.header
    except CorruptUnit:
        return True
    return header.begin_phy_offset <= offset <= header.end_phy_offset


def _led(reader: IndexReader, key_hash: int, offset: int) -> str | None:
    """None where the key's chain in one file leads to the unit at ``offset``; else "", or where the chain is broken."""
    try:
        header, slots = reader.header, reader.slots
        number = reader.slot(key_hash % slots)
        count = max(header.index_count, 1)
        if number == 0 or count <= 1:
            return ""
        seen: set[int] = set()
        while True:
            if number in seen:
                return f"its chain goes round at entry {number:,} of {reader.name}"
            seen.add(number)
            entry = reader.entry(number) if number <= count else None
            if entry is None:
                return f"its chain leads to entry {number:,}, which {reader.name} does not hold"
            if entry.key_hash == key_hash and entry.phy_offset == offset:
                return None
            if entry.time_diff < 0 or entry.prev == 0:
                return ""
            if not codec.step_on(entry.prev, number, count):
                kind = "goes round at" if entry.prev == number else "leaves the file behind"
                return f"its chain {kind} entry {number:,} of {reader.name}"
            number = entry.prev
    except CorruptUnit:
        return f"{reader.name} cannot be taken apart"
