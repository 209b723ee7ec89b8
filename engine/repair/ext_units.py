"""Mend the ext files of queues: units that entries lead to, as their messages say them
(docs/formats/repair.md#queues).

An entry has the address of its unit, so the entries say where units begin and end. Tag code and store time follow from
the message. The bit map follows from nothing in the store: all of its bits are set, and a broker then evaluates the
filter for each message.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np

from engine.codec import consume_queue as cq
from engine.codec import cq_ext
from engine.codec.cq_ext import MIN_UNIT_BYTES, CqExtUnit
from engine.codec.message import DEFAULT_DELAY_LEVELS
from engine.files.layout import queue_file_name
from engine.inspection.queue_reader import QueueReader
from engine.inspection.snapshot import StoreSnapshot
from engine.patching.patches import Patch, WriteFile
from engine.repair.ext_addresses import stored_entries
from engine.repair.queue_entries import (
    MAX_FILE_BYTES,
    NAME,
    PlainQueue,
    differences,
    entries_of_log,
    entry_patches,
    plain_queues,
    queues_of,
)
from engine.repair.repair import Repair
from engine.rules import mendable
from engine.rules.findings import Finding, at_least
from engine.sentences import plural, sentence

_END = cq_ext.END_MARK.to_bytes(2, "big", signed=True)
_ALL_BITS = b"\xff"


class _Unit(NamedTuple):
    """A unit as entry and message say it: its offset in the ext files, tag code and store time (ms)."""

    offset: int
    tags_code: int
    store_timestamp: int


def repair_ext_units(store: StoreSnapshot, findings: Collection[Finding]) -> Repair | None:
    """Return the repair of the ext files of queues that ``findings`` name; None if nothing of them can be mended.

    Raises :class:`engine.errors.CannotRead` if the log, a queue or its ext files cannot be read.
    """
    rules = ("CQ09", "CQ15")
    reported = [finding for finding in findings if finding.id in rules and at_least(finding.severity, "warn")]
    if store.kind != "store" or store.queues.rocksdb is not None or not reported:
        return None
    names = {name for finding in reported for name in queues_of(store, finding)}
    queues = {queue.key: queue for queue in plain_queues(store) if f"{queue.topic}/{queue.queue_id}" in names}
    levels = store.config.delay_levels() if store.config is not None else DEFAULT_DELAY_LEVELS
    expected, is_whole = entries_of_log(store, queues, levels)
    file_size = _file_size(store)
    patches: list[Patch] = []
    units = 0
    for key, entries in sorted(expected.items()):
        numbers, rows, times = entries.joined()
        reader = queues[key].reader
        if reader is None or (len(numbers) > 1 and int(np.diff(numbers).min()) < 1):
            continue
        stored = stored_entries(reader, numbers)
        is_same = (stored["physical_offset"] == rows["physical_offset"]) & (stored["size"] == rows["size"])
        has_address = is_same & (stored["tags_code"] <= cq.MAX_EXT_ADDRESS)
        if not has_address.any():
            continue
        if not file_size:  # entries get the tag code itself, as a broker writes it where it cannot store a unit
            of_queue = list(entry_patches(store, queues[key], numbers, rows, keeps_tags=False, is_whole=is_whole))
            patches += of_queue
            units += bool(of_queue)
            continue
        wanted = [
            _Unit(address - cq.EXT_BASE, code, time)
            for address, code, time in zip(
                stored["tags_code"][has_address].tolist(),
                rows["tags_code"][has_address].tolist(),
                times[has_address].tolist(),
                strict=True,
            )
        ]
        of_queue = list(_patches(store, queues[key], reader, wanted, file_size))
        patches += of_queue
        units += bool(of_queue)
    if not patches:
        return None
    gains = plural(
        "the entries of {n:,} queue lead to the tags of its messages again",
        "the entries of {n:,} queues lead to the tags of their messages again",
        n=units,
    )
    costs = sentence("the bits of SQL filters are lost: a broker evaluates these filters for each message")
    title = sentence("Mend the entries of the queues from the commit log")
    return Repair(NAME, mendable.QUEUES, title, tuple(patches), gains, costs)


def _file_size(store: StoreSnapshot) -> int:
    """Return the bytes of an ext file; 0 if neither a file nor the configuration says it."""
    sizes = [
        file.size
        for by_id in store.queues.used_files().values()
        for queue in by_id.values()
        for file in (queue.ext.files if queue.ext is not None else ())
        if file.size
    ]
    if sizes:
        size = max(set(sizes), key=sizes.count)
    else:
        size = store.config.mapped_file_size_consume_queue_ext if store.config is not None else 0
    return size if size <= MAX_FILE_BYTES else 0


def _patches(
    store: StoreSnapshot, queue: PlainQueue, reader: QueueReader, wanted: list[_Unit], file_size: int
) -> Iterator[Patch]:
    """Yield the patches of the ext files of one queue."""
    assert store.paths is not None
    folder = store.paths.ext_folder(*queue.key)
    offsets = [unit.offset for unit in wanted]
    if not offsets or not folder.is_relative_to(store.path) or sorted(set(offsets)) != offsets:
        return
    files = {file.start_offset: file for file in (reader.ext.files if reader.ext is not None else ())}
    if any(file.size != file_size for file in files.values()):
        return
    last_start = max([offsets[-1] // file_size * file_size, *files])
    why = sentence("ext units as the messages of the log say them")
    for start in sorted({*files, *(offset // file_size * file_size for offset in offsets)}):
        units = [unit for unit in wanted if start <= unit.offset < start + file_size]
        file = files.get(start)
        old = file.read(0, file_size) if file is not None else bytes(file_size)
        new = _content(bytearray(old), start, units, is_last=start == last_start)
        if new is None:
            return
        name = f"{folder.relative_to(store.path).as_posix()}/{queue_file_name(start)}"
        if file is not None:
            yield from differences(name, old, new, why, NAME)
        elif used := new.rstrip(b"\0"):
            yield WriteFile(file=name, old=None, new=used, zeros=file_size - len(used), why=why, name=NAME)


def _content(data: bytearray, start: int, units: list[_Unit], *, is_last: bool) -> bytes | None:
    """Return the bytes of a file with every unit as it has to be; None if two of them are too close to each other."""
    if not units:
        return _ended(data, 0, is_last=is_last)
    if units[0].offset > start and not _leads_to(data, start, 0, units[0].offset - start):
        units = [_Unit(start, 0, units[0].store_timestamp), *units]
    for unit, following in zip(units, [*units[1:], None], strict=True):
        position = unit.offset - start
        item = cq_ext.decode(data, position, start)
        is_right = isinstance(item, CqExtUnit) and (item.tags_code, item.store_timestamp) == unit[1:]
        if following is not None:
            size = following.offset - unit.offset
            if is_right and _leads_to(data, start, position, position + size):
                continue
        else:
            if is_right and _ends(data, start, position):
                continue
            size = item.size if is_right and isinstance(item, CqExtUnit) else MIN_UNIT_BYTES
        if size < MIN_UNIT_BYTES or position + size > len(data):
            return None
        kept = bytes(data[position : position + size]) if is_right and isinstance(item, CqExtUnit) else b""
        if len(kept) != size or not isinstance(item, CqExtUnit) or item.size != size:
            bits = _ALL_BITS * (size - MIN_UNIT_BYTES)
            kept = cq_ext.encode(CqExtUnit(unit.offset, size, unit.tags_code, unit.store_timestamp, bits))
        data[position : position + size] = kept
        if following is None:
            end = position + size
            data[end : end + 2] = b"\0\0" if is_last else _END
    return _ended(data, units[-1].offset - start + 1, is_last=is_last)


def _ended(data: bytearray, behind: int, *, is_last: bool) -> bytes | None:
    """Return the bytes with an end in the place of a unit that goes beyond the file; None if an entry leads to it or
    to one behind it.
    """
    position = cq_ext.overrun(data)
    if position is not None:
        if position < behind:
            return None
        data[position : position + 2] = b"\0\0" if is_last else _END
    return bytes(data)


def _leads_to(data: bytearray, start: int, position: int, end: int) -> bool:
    """Return True if the units from ``position`` on end at ``end``."""
    while position < end:
        item = cq_ext.decode(data, position, start)
        if not isinstance(item, CqExtUnit):
            return False
        position += item.size
    return position == end


def _ends(data: bytearray, start: int, position: int) -> bool:
    """Return True if the units from ``position`` on end as a broker ends them."""
    stop = next(item for item in cq_ext.walk(data, start, position) if not isinstance(item, CqExtUnit))
    return stop.kind != "damage"
