"""Replace files of the commit log that are missing between others (docs/formats/repair.md#missing-files).

A broker waits forever in front of such a gap (4.9), or leads consumers past it and gives later messages wrong queue
offsets when it dispatches them. The new file holds one short placeholder for each message that was there, then a blank
to its end. Which messages were there follows from the queue entries that point into the gap, and from the queue offsets
of the messages around it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from pathlib import Path

from engine.codec import filler
from engine.codec import properties as props
from engine.codec.columns import BLANK, UnitColumns
from engine.codec.message import Unit
from engine.codec.unit_scan import Damage
from engine.files.layout import queue_file_name
from engine.inspection.block_scan import scan_log
from engine.inspection.lost_units import entries_into
from engine.inspection.snapshot import StoreSnapshot
from engine.patching.patches import WriteFile
from engine.repair.log_damage import passed_over
from engine.repair.queue_numbers import (
    MAX_MESSAGES,
    NumbersAround,
    QueuePlace,
    has_message,
    has_plain_queues,
    numbers_around,
)
from engine.repair.repair import Repair
from engine.rules import mendable
from engine.sentences import join, plural, sentence

NAME = "missing-files"
_MAX_NAMED = 20


@dataclass(slots=True)
class _Gap:
    """Bytes [start, end) of the log that no file holds, and the store time (ms) of the message in front."""

    start: int
    end: int
    time_before: int


def repair_missing_files(store: StoreSnapshot) -> Repair | None:
    """Return the repair that makes files for every gap between files of the log; None if there is none.

    Raises :class:`engine.errors.CannotRead` if the log or a queue cannot be read.
    """
    files = store.log.sequence.files
    if store.kind != "store" or store.commit_log.dledger is not None or not files:
        return None
    file_size = max(file.size for file in files)
    folder = Path(files[0].path).parent
    if not folder.is_relative_to(store.path) or any(Path(file.path).parent != folder for file in files):
        return None
    property_crc = _has_property_crc(store)
    patches: list[WriteFile] = []
    lost: dict[QueuePlace, None] = {}
    """In their order, each once: of two gaps with no message of a queue between them both lack the same ones."""
    gaps = _gaps(store)
    for gap, around in zip(gaps, numbers_around(store, [(gap.start, gap.end) for gap in gaps]), strict=True):
        if gap.start % file_size or gap.end % file_size:
            continue
        lost_here = [message for message in _lost_messages(store, around) if message not in lost]
        contents = _contents(gap, lost_here, file_size, property_crc=property_crc, is_named=True)
        if contents is None:
            contents = _contents(gap, lost_here, file_size, property_crc=property_crc, is_named=False)
        if contents is None:
            continue
        for start, content in contents.items():
            name = f"{folder.relative_to(store.path).as_posix()}/{queue_file_name(start)}"
            why = sentence("the file is missing: placeholders for its messages, then a blank")
            zeros = file_size - len(content)
            patches.append(WriteFile(file=name, old=None, new=content, zeros=zeros, why=why, name=NAME))
        lost |= dict.fromkeys(lost_here)
    if not patches:
        return None
    gains = sentence("a start reads on behind the gap; messages there keep their physical and queue offsets")
    costs = plural(
        "{n:,} message of the missing files stays lost ({names}); an empty message takes its place",
        "{n:,} messages of the missing files stay lost ({names}); empty messages take their places",
        n=len(lost),
        names=join(", ", ["/".join(map(str, message)) for message in [*lost][:_MAX_NAMED]]),
    )
    title = sentence("Replace missing files of the commit log")
    return Repair(
        NAME, mendable.MISSING_FILES, title, tuple(patches), gains, costs if lost else "", "likely", len(lost), True
    )


def _has_property_crc(store: StoreSnapshot) -> bool:
    unit = next((item for item in store.log.walk(store.log.min_offset) if isinstance(item, Unit)), None)
    return unit is not None and props.CRC32 in unit.properties


def _gaps(store: StoreSnapshot) -> list[_Gap]:
    """Return the gaps between the files."""
    gaps: list[_Gap] = []
    time = 0
    for block in scan_log(store.log, crc=False):
        if isinstance(block, Damage) and store.log.sequence.find(block.offset) is None and not block.unread:
            gaps.append(_Gap(block.offset, block.offset + block.size, time))
        if not isinstance(block, UnitColumns):
            continue
        units = block.count - int(block.count > 0 and block.kind[block.count - 1] == BLANK)
        time = int(block.store_timestamp[units - 1]) if units else time
    return gaps


def _lost_messages(store: StoreSnapshot, around: NumbersAround) -> list[QueuePlace]:
    """Return the messages of the gap, ordered by queue."""
    lost = {
        QueuePlace(entry.topic, entry.queue_id, entry.number)
        for entry in entries_into(store, around.start, around.end, MAX_MESSAGES)
    }
    lost |= {place for place in around.missing() if not has_message(store, place)}
    return sorted(place for place in lost if has_plain_queues(store, place.topic))


def _contents(
    gap: _Gap, lost: list[QueuePlace], file_size: int, *, property_crc: bool, is_named: bool
) -> dict[int, bytes] | None:
    """Return the bytes of each missing file by its start, without the zeros of its blank; None if they do not fit.

    Placeholders are shorter than most messages, and still shorter if they do not say what they are (``is_named``).
    """
    contents: dict[int, bytes] = {}
    messages = deque(lost)
    for start in range(gap.start, gap.end, file_size):
        content = bytearray()
        while messages:
            unit = _placeholder(
                messages[0], start + len(content), gap.time_before, property_crc=property_crc, is_named=is_named
            )
            if len(content) + len(unit) + filler.BLANK_BYTES > file_size:
                break
            content += unit
            messages.popleft()
        if not content:  # a file of the log begins with a message
            size = filler.shortest_placeholder(filler.FILLER_TOPIC, {}, property_crc=property_crc)
            content += (
                filler.filler(size, physical_offset=start, store_timestamp=gap.time_before, property_crc=property_crc)
                or b""
            )
        content += filler.blank(file_size - len(content))[: filler.BLANK_BYTES]
        contents[start] = bytes(content)
    return None if messages else contents


def _placeholder(message: QueuePlace, place: int, time: int, *, property_crc: bool, is_named: bool) -> bytes:
    properties = passed_over(message.topic, message.queue_id)
    unit = filler.placeholder(
        filler.shortest_placeholder(message.topic, properties, property_crc=property_crc, is_named=is_named),
        physical_offset=place,
        topic=message.topic,
        queue_id=message.queue_id,
        queue_offset=message.queue_offset,
        store_timestamp=time,
        properties=properties,
        property_crc=property_crc,
    )
    assert unit is not None
    return unit
