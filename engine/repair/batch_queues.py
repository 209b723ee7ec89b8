"""Mend batch queues: every entry as the messages of the log say it (docs/formats/repair.md#queues).

Entries of a batch queue stand back to back, in the order of the log. Where an entry belongs is told by the intact ones
around it: the entries in between are as many as the messages of the log in between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.codec.batch_consume_queue import BATCH_CQ_UNIT_SIZE, NOT_COMPACTED
from engine.codec.columns import UnitColumns
from engine.codec.dtypes import BATCH_CQ_UNIT
from engine.codec.message import COMMIT, TRANSACTION_MASK
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage, Stop
from engine.inspection.block_scan import scan_log
from engine.inspection.queue_reader import QueueReader
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.tables import read_table
from engine.patching.patches import Patch, WriteFile
from engine.repair.queue_entries import NAME, differences, queues_of
from engine.repair.repair import Repair
from engine.rules import mendable
from engine.rules.dispatch_rules import units_of
from engine.rules.findings import Finding, at_least
from engine.rules.unit_check import STANDARD, Request, check
from engine.sentences import plural, sentence

MAX_FILE_BYTES = 64 << 20
Key = tuple[str, int]
Rows = NDArray[np.void]


class _Log(NamedTuple):
    """The entries that the log says by queue, and whether all of the log could be read."""

    entries: dict[Key, Rows]
    is_whole: bool


def repair_batch_queues(store: StoreSnapshot, findings: Collection[Finding]) -> Repair | None:
    """Return the repair of the batch queues that ``findings`` name; None if nothing of them can be mended.

    Raises :class:`engine.errors.CannotRead` if the log or a queue cannot be read.
    """
    reported = [finding for finding in findings if finding.id in mendable.QUEUES and at_least(finding.severity, "warn")]
    if store.kind != "store" or not reported:
        return None
    names = {name for finding in reported for name in queues_of(store, finding)}
    are_all = any(finding.id in ("CQ10", "RP01", "RP03") for finding in reported)
    patches, mended = _batch_queue_patches(store, None if are_all else names)
    if not patches:
        return None
    gains = plural(
        "{n:,} batch queue has the entries that the messages of the log say",
        "{n:,} batch queues have the entries that the messages of the log say",
        n=mended,
    )
    return Repair(
        NAME, mendable.QUEUES, sentence("Mend the entries of the queues from the commit log"), tuple(patches), gains
    )


def _batch_queue_patches(store: StoreSnapshot, names: Collection[str] | None) -> tuple[list[Patch], int]:
    """Return the patches of the batch queues ``names`` (topic/queue; None: of all, also of those that have lost their
    folder), and the number of queues that have any.
    """
    readers: dict[str, dict[int, QueueReader]] = {topic: {} for topic in _declared_topics(store)}
    for by_id in store.queues.used_files().values():
        for queue in by_id.values():
            if queue.kind == "batch":
                readers.setdefault(queue.topic, {})[queue.queue_id] = queue
    if not readers or store.paths is None:
        return [], 0
    log = _entries_of_log(store, readers)
    sizes = [queue.file_size for by_id in readers.values() for queue in by_id.values() if queue.file_size]
    file_size = max(set(sizes), key=sizes.count) if sizes else _configured_file_size(store)
    if not 0 < file_size <= MAX_FILE_BYTES or file_size % BATCH_CQ_UNIT_SIZE:
        return [], 0
    patches: list[Patch] = []
    mended = 0
    for (topic, queue_id), rows in sorted(log.entries.items()):
        if names is not None and f"{topic}/{queue_id}" not in names:
            continue
        reader = readers[topic].get(queue_id)
        folder = reader.folder if reader is not None else store.paths.batch_folder(topic, queue_id)
        if reader is None and names is not None:
            continue
        of_queue = list(_patches(store, folder, reader, rows, file_size, is_whole=log.is_whole))
        patches += of_queue
        mended += bool(of_queue)
    return patches, mended


def _configured_file_size(store: StoreSnapshot) -> int:
    """Return the bytes of a queue file as the configuration says; 0 without one: a broker does not start with files of
    another length.
    """
    size = store.config.mapper_file_size_batch_consume_queue if store.config is not None else 0
    return size // BATCH_CQ_UNIT_SIZE * BATCH_CQ_UNIT_SIZE


def _declared_topics(store: StoreSnapshot) -> Iterator[str]:
    """Yield the topics that the topics table declares to have batch queues."""
    table = read_table(store, "topics.json")
    declared = table.value.get("topicConfigTable") if table is not None else None
    for topic, row in declared.items() if isinstance(declared, dict) else ():
        if "BatchCQ" in str((row or {}).get("attributes")):
            yield topic


def _entries_of_log(store: StoreSnapshot, topics_wanted: Collection[str]) -> _Log:
    topics = TopicTable()
    rows: dict[Key, list[tuple[int, ...]]] = {}
    is_whole = True
    for block in scan_log(store.log, crc=False, topics=topics):
        if isinstance(block, Damage) or (isinstance(block, Stop) and block.kind not in ("zero", "end", "limit")):
            is_whole = False
        if not isinstance(block, UnitColumns):
            continue
        wanted = [number for number, topic in enumerate(topics.names) if topic in topics_wanted]
        units = units_of(block)
        kind = block.sys_flag[units] & TRANSACTION_MASK
        is_queued = ((kind == 0) | (kind == COMMIT)) & (block.physical_offset[units] == block.offset[units])
        for row in units[is_queued & np.isin(block.topic_id[units], wanted)].tolist():
            size = int(block.size[row])
            request = check(store.log.read(int(block.offset[row]), size), 0, size, STANDARD, body=False)
            if isinstance(request, Request) and request.base_offset >= 0 and request.batch_size >= 0:
                entry = (
                    request.physical_offset,
                    request.size,
                    request.tags_code,
                    request.store_timestamp,
                    request.base_offset,
                    request.batch_size,
                    NOT_COMPACTED,
                    0,
                )
                rows.setdefault((request.topic, request.queue_id), []).append(entry)
    return _Log({key: np.array(entries, BATCH_CQ_UNIT) for key, entries in rows.items()}, is_whole)


def _patches(
    store: StoreSnapshot,
    folder: Path,
    queue: QueueReader | None,
    rows: Rows,
    file_size: int,
    *,
    is_whole: bool,
) -> Iterator[Patch]:
    """Yield the patches of one queue, a file at a time; none if it cannot be told where its entries belong."""
    if not folder.is_relative_to(store.path) or (np.diff(rows["msg_base_offset"]) < 1).any():
        return
    files = {file.start_offset: file for file in queue.files} if queue is not None else {}
    if any(start % file_size or file.size != file_size for start, file in files.items()):
        return
    end = max([*(start + file_size for start in files)], default=0)
    old = np.zeros(end // BATCH_CQ_UNIT_SIZE, BATCH_CQ_UNIT)
    for start, file in files.items():
        position = start // BATCH_CQ_UNIT_SIZE
        old[position : position + file_size // BATCH_CQ_UNIT_SIZE] = np.frombuffer(
            file.read(0, file_size), BATCH_CQ_UNIT
        )
    begins = min(files, default=0) // BATCH_CQ_UNIT_SIZE
    is_first = store.log.min_offset <= 0 or not files
    places = _places(old, rows, begins=begins, is_first=is_first)
    if places is None and is_whole and is_first and begins == 0:
        places = np.arange(len(rows))  # a broker finds an entry by its queue offset, wherever it stands
    if places is None:
        return
    length = max(
        len(old), -(-(int(places[-1]) + 1) * BATCH_CQ_UNIT_SIZE // file_size) * file_size // BATCH_CQ_UNIT_SIZE
    )
    new = np.concatenate((old, np.zeros(length - len(old), BATCH_CQ_UNIT))).astype(BATCH_CQ_UNIT)
    fresh = rows.copy()
    same = (new["physical_offset"][places] == fresh["physical_offset"]) & (new["size"][places] == fresh["size"])
    for part in ("tags_code", "compacted_offset", "reserved"):
        fresh[part][same] = new[part][places][same]
    new[places] = fresh
    if is_whole:
        new[int(places[-1]) + 1 :] = np.zeros((), BATCH_CQ_UNIT)
    why = sentence(
        "entries of queue {queue} as the messages of the log say them", queue=f"{folder.parent.name}/{folder.name}"
    )
    data = new.tobytes()
    for start in range(
        min([int(places[0]) * BATCH_CQ_UNIT_SIZE // file_size * file_size, *files]), len(data), file_size
    ):
        content = data[start : start + file_size]
        path = f"{folder.relative_to(store.path).as_posix()}/{start:020d}"
        existing = files.get(start)
        if existing is not None:
            yield from differences(path, existing.read(0, file_size), content, why, NAME)
        elif used := content.rstrip(b"\0"):
            yield WriteFile(file=path, old=None, new=used, zeros=file_size - len(used), why=why, name=NAME)


def _places(old: Rows, rows: Rows, *, begins: int, is_first: bool) -> NDArray[np.int64] | None:
    """Return the number of the entry of each of ``rows``; None if the intact entries do not tell it.

    ``begins`` is the first number that a file holds; ``is_first`` says that no message in front of ``rows`` is lost.
    """
    known = {
        (int(row["physical_offset"]), int(row["msg_base_offset"])): number
        for number, row in enumerate(old)
        if int(row["size"]) > 0
    }
    keys: Sequence[tuple[int, int]] = list(
        zip(rows["physical_offset"].tolist(), rows["msg_base_offset"].tolist(), strict=True)
    )
    anchors = [(row, known[key]) for row, key in enumerate(keys) if key in known]
    if not anchors:
        return np.arange(len(rows)) if is_first and begins == 0 else None
    places = np.empty(len(rows), np.int64)
    places[: anchors[0][0] + 1] = anchors[0][1] - np.arange(anchors[0][0], -1, -1)
    for (row, number), (next_row, next_number) in pairwise(anchors):
        if next_row - row > 1 and next_number - number != next_row - row:
            return None  # entries of lost messages stand between them as well
        if next_number <= number:
            return None
        places[row : next_row + 1] = number + np.arange(next_row - row + 1)
        places[next_row] = next_number
    row, number = anchors[-1]
    places[row:] = number + np.arange(len(rows) - row)
    return places if int(places[0]) >= 0 else None
