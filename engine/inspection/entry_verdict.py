"""Compares a queue entry with the unit that it points to: one verdict per entry, with the expected and the actual
values.

The entry's side of the check in both directions (docs/formats/commit-log.md#unit-check,
docs/formats/consume-queue.md#entry, #bounds, #light-queues). Nothing is written, damage is a value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.codec import properties as props
from engine.codec.consume_queue import same_tag
from engine.codec.message import Unit, tags_code_of
from engine.codec.unit_scan import Stop
from engine.inspection.log_reader import LogReader
from engine.sentences import sentence
from engine.store.queue_entry import CqEntry
from engine.system_names import SCHEDULE_TOPIC

Verdict = Literal["ok", "missing", "wrongTopic", "wrongQueueOffset", "wrongSize", "wrongTag", "belowMinOffset"]


@dataclass(frozen=True, slots=True)
class Resolved:
    """An entry with its verdict; None for slots without an entry, and if its unit could not be read.

    ``unit`` is the unit at its offset, ``what`` the difference ("" if there is none).
    """

    entry: CqEntry
    verdict: Verdict | None
    unit: Unit | None = None
    what: str = ""


def resolve(
    log: LogReader, topic: str, queue_id: int, entry: CqEntry, levels: tuple[int, ...] | None = None, crc: bool = False
) -> Resolved:
    """Follow ``entry`` of ``topic``/``queue_id`` to its unit and compare them.

    ``levels``: delay levels in ms of the broker that wrote a delay topic; without them any delivery time is right.
    """
    if entry.state != "entry":
        return Resolved(entry, None)
    if entry.physical_offset < log.min_offset:
        return Resolved(entry, "belowMinOffset", None, sentence("the log begins at {n:,}", n=log.min_offset))
    item = log.unit_at(entry.physical_offset, crc)
    if isinstance(item, Stop) and item.kind == "unread":
        return Resolved(entry, None, None, item.reason)
    if not isinstance(item, Unit):
        difference = getattr(item, "reason", "") or sentence("an end-of-file unit lies there")
        return Resolved(entry, "missing", None, difference)
    verdict, difference = compare(topic, queue_id, entry, item, levels)
    return Resolved(entry, verdict, item, difference)


def compare(
    topic: str, queue_id: int, entry: CqEntry, unit: Unit, levels: tuple[int, ...] | None = None
) -> tuple[Verdict, str]:
    """Return the verdict on an entry and the unit at its offset, and the difference in words."""
    is_own_queue = unit.topic == topic and unit.queue_id == queue_id
    if not is_own_queue and topic not in unit.properties.get(props.INNER_MULTI_DISPATCH, "").split(","):
        return "wrongTopic", sentence("the unit is of {queue}", queue=f"{unit.topic}/{unit.queue_id}")
    # Multi dispatch appends where the queue ends, whatever number the unit lists for it
    # (docs/formats/consume-queue.md#append, #light-queues).
    if is_own_queue and unit.queue_offset != entry.queue_offset:
        return "wrongQueueOffset", sentence("the unit has queue offset {n:,}", n=unit.queue_offset)
    if unit.size != entry.size:
        return "wrongSize", sentence(
            "the entry says {size:,} B, the unit has {found:,}", size=entry.size, found=unit.size
        )
    code = entry.real_tags_code
    if code is not None and not _same_code(topic, code, unit, levels):
        tag = f"“{unit.tags}”" if unit.tags else sentence("no tag")
        return "wrongTag", sentence("the unit has {tag}: its subscribers miss it", tag=tag)
    return "ok", ""


def _same_code(topic: str, code: int, unit: Unit, levels: tuple[int, ...] | None) -> bool:
    if topic == SCHEDULE_TOPIC and props.DELAY in unit.properties:
        return levels is None or code == tags_code_of(topic, unit.properties, unit.store_timestamp, levels)
    return same_tag(code, unit.tags_code)
