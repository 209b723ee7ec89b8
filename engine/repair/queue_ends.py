"""Remove the queue entries of messages that the log has lost at its end (docs/formats/repair.md#queues).

A start moves the end of such a queue only: the bytes of the entries stay. Once the log has grown over the places to
which they lead, the next start takes them for messages, and consumers get bytes of other topics.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np

from engine.codec.consume_queue import CQ_UNIT_SIZE
from engine.codec.dtypes import CQ_UNIT
from engine.inspection.snapshot import StoreSnapshot
from engine.patching.patches import Patch, RemoveFile
from engine.repair.queue_entries import NAME, PlainQueue, differences, plain_queues
from engine.repair.repair import Repair, sample_of
from engine.rules import mendable
from engine.rules.findings import Finding, at_least
from engine.sentences import plural, sentence


def repair_queue_ends(
    store: StoreSnapshot, findings: Collection[Finding], kept_to: int, patched_files: Collection[str]
) -> Repair | None:
    """Return the repair that removes the entries behind the end of the log; None if there are none.

    A start has to keep the log to its end at least (``kept_to``). Queues with a file in ``patched_files`` come later.
    Raises :class:`engine.errors.CannotRead` if the log or a queue cannot be read.
    """
    reported = any(finding.id in mendable.LOST_END and at_least(finding.severity, "warn") for finding in findings)
    log_end = store.log.max_offset
    if store.kind != "store" or store.queues.rocksdb is not None or not reported or kept_to < log_end:
        return None
    patches: list[Patch] = []
    entry_count = queue_count = 0
    for queue in plain_queues(store):
        if not queue.folder.is_relative_to(store.path):
            continue
        folder = queue.folder.relative_to(store.path).as_posix()
        if any(f"{folder}/{file.name}" in patched_files for file in queue.files):
            continue
        count, of_queue = _removed_end(store, queue, folder, log_end)
        patches += of_queue
        entry_count += count
        queue_count += count > 0
    if not patches:
        return None
    gains = plural(
        "{n:,} queue ends with its last message: {entries:,} entries of lost messages never lead to others",
        "{n:,} queues end with their last message: {entries:,} entries of lost messages never lead to others",
        n=queue_count,
        entries=entry_count,
    )
    costs = sentence("where the lost messages were is known from the backup only")
    title = sentence("Mend the entries of the queues from the commit log")
    return Repair(NAME, mendable.QUEUES, title, tuple(patches), gains, costs)


def _removed_end(store: StoreSnapshot, queue: PlainQueue, folder: str, log_end: int) -> tuple[int, list[Patch]]:
    """Return the number of entries behind the end of the log at the end of the queue, and the patches without them."""
    why = sentence(
        "entries of queue {queue} that lead behind the end of the log", queue=f"{queue.topic}/{queue.queue_id}"
    )
    patches: list[Patch] = []
    count = 0
    files = sorted(queue.files, key=lambda file: file.start_offset)
    for number, file in reversed(list(enumerate(files))):
        raw = file.read(0, file.size)
        entries = np.frombuffer(raw[: len(raw) // CQ_UNIT_SIZE * CQ_UNIT_SIZE], CQ_UNIT)
        is_used = (entries["size"] > 0) & (entries["physical_offset"] >= 0)
        is_behind = is_used & (entries["physical_offset"] >= log_end)
        kept_count = int(np.flatnonzero(is_used & ~is_behind).max(initial=-1)) + 1
        if not kept_count and not number and file.start_offset > 0:
            return 0, []  # a broker numbers the queue by its first file, and this one would be empty
        behind_count = int(is_behind[kept_count:].sum())
        count += behind_count
        path = f"{folder}/{file.name}"
        if behind_count and not kept_count:
            # a first file of zeros would stay: a start that truncates queues counts its first 20 bytes as an entry
            size, sample = sample_of(store, Path(file.path))
            patches.append(RemoveFile(file=path, size=size, sample=sample, why=why, name=NAME))
        elif behind_count:
            kept = raw[: kept_count * CQ_UNIT_SIZE]
            patches += differences(path, raw, kept.ljust(len(raw), b"\0"), why, NAME)
        if kept_count:
            break
    return count, patches
