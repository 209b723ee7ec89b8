"""The ext files of queues: tags and filters that stand apart from the entries, and lead nowhere once they are lost
(CQ15; docs/formats/consume-queue.md#ext).
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

CHUNK = 1 << 16
_HEAD = 1 << 15


class _Used(NamedTuple):
    """The ext addresses of a queue's entries, as offsets into its ext files."""

    entries: int
    lost: int  # entries that lead outside of what the files hold
    first_lost: int  # queue offset of the first
    furthest: int


def findings(store: StoreSnapshot) -> Iterator[Finding]:
    """CQ15. Raises :class:`CannotRead`."""
    if store.paths is None or store.lock_state == "held":
        return
    gone: dict[str, _Used] = {}
    for queues in store.topics().values():
        for queue in queues.values():
            if queue.kind != "simple" or not _has_addresses(queue):
                continue
            held = _held(queue)
            used = _addresses(queue, held)
            end = held[-1][1] if held else 0
            if used.lost and not held:
                gone[f"{queue.topic}/{queue.queue_id}"] = used
            elif used.lost:
                yield _short(queue, used, end)
            elif not store.abort:
                yield from _orphans(queue, used, end)
    if gone:
        yield _gone(store, gone)


def follow(found: Iterable[Finding], lost: Iterable[Finding]) -> Iterator[Finding]:
    """``found``, in which wrong tag codes of queues that lost their ext files follow from that."""
    queues = {name for one in lost if one.severity != "note" for name in one.evidence["queues"]}
    for one in found:
        yield one.follows("CQ15") if one.id == "CQ09" and one.evidence.get("queue") in queues else one


def _has_addresses(queue: QueueReader) -> bool:
    """Whether one of the first, the middle and the last entry holds an address."""
    low, high = max(queue.sequence.min_offset, 0) // queue.unit_size, queue.raw_end // queue.unit_size
    places = {low, (low + high) // 2, high - 1} if high > low else set()
    units = (queue.array(place, place + 1) for place in places)
    return any(len(rows) and cq.is_ext_address(int(rows["tags_code"][0])) for rows in units)


def _held(queue: QueueReader) -> list[tuple[int, int]]:
    """The stretches [first byte, byte behind the last unit) that the ext files hold; of all but the last file only the
    head is looked at.
    """
    if queue.ext is None:
        return []
    queue.ext.whole()
    held: list[tuple[int, int]] = []
    for file in reversed(queue.ext.files):
        start = file.start_offset
        if not isinstance(cq_ext.decode(file.read(0, _HEAD), 0, start), cq_ext.CqExtUnit):
            continue
        end = file.end_offset
        if not held:
            units = cq_ext.walk(file.read(0, file.size), start)
            end = max(seen.end for seen in units if isinstance(seen, cq_ext.CqExtUnit))
        held.insert(0, (start, end))
    return held


def _addresses(queue: QueueReader, held: list[tuple[int, int]]) -> _Used:
    entries = lost = 0
    first_lost = furthest = -1
    at, stop = max(queue.sequence.min_offset, 0) // queue.unit_size, queue.raw_end // queue.unit_size
    while at < stop:
        rows = queue.array(at, min(at + CHUNK, stop))
        if not len(rows):
            break
        tags = rows["tags_code"].astype(np.int64)
        address = tags <= cq.MAX_EXT_ADDRESS
        offsets = tags[address] - cq.EXT_BASE
        entries += len(offsets)
        if len(offsets):
            furthest = max(furthest, int(offsets.max()))
        inside = np.zeros(len(offsets), bool)
        for first, end in held:
            inside |= (offsets >= first) & (offsets < end)
        outside = ~inside
        if outside.any():
            lost += int(outside.sum())
            first_lost = at + int(np.flatnonzero(address)[outside][0]) if first_lost < 0 else first_lost
        at += len(rows)
    return _Used(entries, lost, first_lost, furthest)


def _gone(store: StoreSnapshot, gone: dict[str, _Used]) -> Finding:
    assert store.paths is not None
    lost = sum(used.lost for used in gone.values())
    text = (
        f"The ext files of queues are gone or empty ({', '.join(list(gone)[:3])}; queues: {len(gone):,}): entries lead "
        f"there for their tags ({lost:,})"
    )
    evidence: dict[str, Any] = {"expected": lost, "found": 0, "queues": list(gone)}
    return rules.CQ15.found(text, str(store.paths.consumequeue_ext), None, evidence)


def _short(queue: QueueReader, used: _Used, end: int) -> Finding:
    assert queue.ext is not None
    name = f"{queue.topic}/{queue.queue_id}"
    text = (
        f"The ext files of queue {name} end at {end:,} and lack what entries lead to ({used.lost:,} of "
        f"{used.entries:,}); the first is entry {used.first_lost:,}"
    )
    file = queue.ext.files[-1]
    evidence = {"expected": used.furthest, "found": end, "queues": [name], "queueOffset": used.first_lost}
    return rules.CQ15.found(text, file.path, max(end - file.start_offset, 0), {**evidence, "entries": used.lost})


def _orphans(queue: QueueReader, used: _Used, end: int) -> Iterator[Finding]:
    """Units behind the last that an entry leads to: dispatch was cut off between the two."""
    last = queue.ext_unit(used.furthest + cq.EXT_BASE) if used.furthest >= 0 else None
    if queue.ext is None or last is None or used.furthest + last.size >= end:
        return
    name, behind = f"{queue.topic}/{queue.queue_id}", used.furthest + last.size
    text = f"The ext files of queue {name} hold {end - behind:,} bytes behind {behind:,} that no entry leads to"
    file = queue.ext.find(behind)
    evidence = {"expected": behind, "found": end, "queues": [name]}
    place = behind - file.start_offset if file is not None else None
    yield rules.CQ15.found(text, file.path if file is not None else None, place, evidence, kind="orphans")
