"""The messages of a store that are chosen to be sent again, and each of them as it is read when it is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from engine.codec.message import Unit
from engine.inspection.matching import matching_units
from engine.inspection.snapshot import StoreSnapshot
from engine.query import Filter
from engine.resend.originals import StoredMessage, messages_of
from engine.resend.resend_plan import PlannedMessage
from engine.sentences import sentence


def default_journal(store: Path) -> Path:
    """Return the journal of a store: a file beside it."""
    return store.with_name(f"{store.name}.resent.jsonl")


def matching(store: StoreSnapshot, unit_filter: Filter, on_progress: Callable[[int], None]) -> Iterator[Unit]:
    """Yield the units of the log that match a filter, with their CRC checked; ``on_progress`` gets log offsets."""
    for item in matching_units(store.log, unit_filter, on_progress=on_progress):
        if isinstance(item, Unit):
            yield item


def at_offsets(store: StoreSnapshot, offsets: Sequence[int], on_progress: Callable[[int], None]) -> Iterator[Unit]:
    """Yield the units at these offsets, in the order of the log; ``on_progress`` gets how many were read."""
    for number, offset in enumerate(sorted(offsets)):
        on_progress(number)
        item = store.log.seen_at(offset)
        if isinstance(item, Unit):
            yield item


def read_planned(store: StoreSnapshot, planned: PlannedMessage) -> StoredMessage | str:
    """Return a planned message, or why it cannot be read any more."""
    identity = planned.identity
    unit = store.log.seen_at(identity.physical_offset)
    if isinstance(unit, Unit) and unit.store_timestamp == identity.store_timestamp and unit.crc != "bad":
        for message in messages_of(unit):
            if message.member == identity.member and message.unique_key == identity.unique_key:
                return message
    return sentence("the message is no longer in the log")
