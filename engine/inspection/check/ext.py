"""Checks the ext files of queues: tags and filters stored apart from the entries, which are useless once these files
are lost (CQ15; docs/formats/consume-queue.md#ext).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from engine.codec import consume_queue as cq
from engine.codec import cq_ext
from engine.inspection.queue_reader import QueueReader
from engine.inspection.snapshot import StoreSnapshot
from engine.rules import catalogue_tables as rules
from engine.rules.findings import Finding
from engine.sentences import plural, sentence

CHUNK = 1 << 16
_HEAD = 1 << 15


class _AddressUse(NamedTuple):
    """The ext addresses of a queue's entries, as offsets into its ext files."""

    entries: int
    lost: int  # entries that point outside the files
    first_lost: int  # queue offset of the first
    furthest: int


def findings(store: StoreSnapshot) -> Iterator[Finding]:
    """Yield findings of CQ15. Raises :class:`CannotRead`."""
    if store.paths is None or store.lock_state == "held":
        return
    lost_queues: dict[str, _AddressUse] = {}
    for queues in store.queues.used_files().values():
        for queue in queues.values():
            if queue.kind != "simple":
                continue
            overrun = _overrun_finding(queue)
            if overrun is not None:
                yield overrun
                continue
            if not _has_addresses(queue):
                continue
            ranges = _ext_ranges(queue)
            used = _count_addresses(queue, ranges)
            end = ranges[-1][1] if ranges else 0
            if used.lost and not ranges:
                lost_queues[f"{queue.topic}/{queue.queue_id}"] = used
            elif used.lost:
                yield _lost_units_finding(queue, used, end)
            elif not store.abort:
                yield from _orphan_findings(queue, used, end)
    if lost_queues:
        yield _lost_files_finding(store, lost_queues)


def follow(findings: Iterable[Finding], lost: Iterable[Finding]) -> Iterator[Finding]:
    """Yield ``findings``; wrong tag codes of queues that lost their ext files become a consequence of that."""
    queues = {name for finding in lost if finding.severity != "note" for name in finding.evidence["queues"]}
    for finding in findings:
        yield finding.follows("CQ15") if finding.id == "CQ09" and finding.evidence.get("queue") in queues else finding


def _overrun_finding(queue: QueueReader) -> Finding | None:
    """Return the finding of a unit whose length goes beyond its file: no broker starts with it."""
    for file in queue.ext.files if queue.ext is not None else ():
        position = cq_ext.overrun(file.read(0, file.size))
        if position is not None:
            name = f"{queue.topic}/{queue.queue_id}"
            text = sentence(
                "A unit of the ext files of queue {queue} goes beyond its file: a broker does not start", queue=name
            )
            evidence = {"queues": [name], "expected": file.size, "found": position}
            return rules.CQ15.finding(text, file.path, position, evidence)
    return None


def _has_addresses(queue: QueueReader) -> bool:
    """Return True if the first, the middle or the last entry holds an address."""
    start, end = max(queue.sequence.min_offset, 0) // queue.unit_size, queue.raw_end // queue.unit_size
    places = {start, (start + end) // 2, end - 1} if end > start else set()
    units = (queue.array(place, place + 1) for place in places)
    return any(len(rows) and cq.is_ext_address(int(rows["tags_code"][0])) for rows in units)


def _ext_ranges(queue: QueueReader) -> list[tuple[int, int]]:
    """Return the range [first byte, end of the last unit) of each ext file. Only the last file is read completely."""
    if queue.ext is None:
        return []
    queue.ext.require_complete()
    ranges: list[tuple[int, int]] = []
    for file in reversed(queue.ext.files):
        start = file.start_offset
        if not isinstance(cq_ext.decode(file.read(0, _HEAD), 0, start), cq_ext.CqExtUnit):
            continue
        end = file.end_offset
        if not ranges:
            units = cq_ext.walk(file.read(0, file.size), start)
            end = max(unit.end for unit in units if isinstance(unit, cq_ext.CqExtUnit))
        ranges.insert(0, (start, end))
    return ranges


def _count_addresses(queue: QueueReader, ranges: list[tuple[int, int]]) -> _AddressUse:
    entries = lost = 0
    first_lost = furthest = -1
    number, stop = max(queue.sequence.min_offset, 0) // queue.unit_size, queue.raw_end // queue.unit_size
    while number < stop:
        rows = queue.array(number, min(number + CHUNK, stop))
        if not len(rows):
            break
        tags = rows["tags_code"].astype(np.int64)
        address = tags <= cq.MAX_EXT_ADDRESS
        offsets = tags[address] - cq.EXT_BASE
        entries += len(offsets)
        if len(offsets):
            furthest = max(furthest, int(offsets.max()))
        inside = np.zeros(len(offsets), bool)
        for start, end in ranges:
            inside |= (offsets >= start) & (offsets < end)
        outside = ~inside
        if outside.any():
            lost += int(outside.sum())
            first_lost = number + int(np.flatnonzero(address)[outside][0]) if first_lost < 0 else first_lost
        number += len(rows)
    return _AddressUse(entries, lost, first_lost, furthest)


def _lost_files_finding(store: StoreSnapshot, lost_queues: dict[str, _AddressUse]) -> Finding:
    assert store.paths is not None
    lost = sum(used.lost for used in lost_queues.values())
    text = sentence(
        "The ext files of queues are gone or empty ({queues}; queues: {n:,}): entries lead there for "
        "their tags ({lost:,})",
        queues=", ".join(list(lost_queues)[:3]),
        n=len(lost_queues),
        lost=lost,
    )
    evidence: dict[str, Any] = {"expected": lost, "found": 0, "queues": list(lost_queues)}
    return rules.CQ15.finding(text, str(store.paths.consumequeue_ext), None, evidence)


def _lost_units_finding(queue: QueueReader, used: _AddressUse, end: int) -> Finding:
    assert queue.ext is not None
    name = f"{queue.topic}/{queue.queue_id}"
    text = sentence(
        "The ext files of queue {queue} end at {end:,}, and {lost:,} of {n:,} entries "
        "point behind that; the first is entry {first:,}",
        queue=name,
        end=end,
        lost=used.lost,
        n=used.entries,
        first=used.first_lost,
    )
    file = queue.ext.files[-1]
    evidence = {"expected": used.furthest, "found": end, "queues": [name], "queueOffset": used.first_lost}
    return rules.CQ15.finding(text, file.path, max(end - file.start_offset, 0), {**evidence, "entries": used.lost})


def _orphan_findings(queue: QueueReader, used: _AddressUse, end: int) -> Iterator[Finding]:
    """Yield a finding for units after the last one that an entry points to: the broker stopped between both writes."""
    last_used = queue.ext_unit(used.furthest + cq.EXT_BASE) if used.furthest >= 0 else None
    if queue.ext is None or last_used is None or used.furthest + last_used.size >= end:
        return
    name, used_end = f"{queue.topic}/{queue.queue_id}", used.furthest + last_used.size
    text = plural(
        "The ext files of queue {queue} hold {n:,} byte after {end:,} that no entry leads to",
        "The ext files of queue {queue} hold {n:,} bytes after {end:,} that no entry leads to",
        queue=name,
        n=end - used_end,
        end=used_end,
    )
    file = queue.ext.find(used_end)
    evidence = {"expected": used_end, "found": end, "queues": [name]}
    place = used_end - file.start_offset if file is not None else None
    yield rules.CQ15.finding(text, file.path if file is not None else None, place, evidence, kind="orphans")
