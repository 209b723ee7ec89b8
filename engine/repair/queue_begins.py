"""Remove the first file of a queue whose entry for a deleted message a broker would follow
(:mod:`engine.inspection.deleted_first_message`, docs/formats/repair.md#queues).
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from engine.inspection.deleted_first_message import find_stale_first_file
from engine.inspection.snapshot import StoreSnapshot
from engine.patching.patches import Patch, RemoveFile
from engine.repair.queue_entries import NAME, plain_queues, queues_of
from engine.repair.repair import Repair, sample_of
from engine.rules import mendable
from engine.rules.findings import Finding
from engine.sentences import sentence


def repair_queue_begins(
    store: StoreSnapshot, findings: Collection[Finding], patched_files: Collection[str]
) -> Repair | None:
    """Return the repair of queues whose first entry leads to offset 0 of a log that begins later; None without any.

    Files in ``patched_files`` are left for later. Raises :class:`engine.errors.CannotRead` if a queue cannot be read.
    """
    names = {name for finding in findings if finding.id == "CQ04" for name in queues_of(store, finding)}
    if store.kind != "store" or store.queues.rocksdb is not None or not names:
        return None
    patches: list[Patch] = []
    for queue in plain_queues(store):
        name = f"{queue.topic}/{queue.queue_id}"
        file = find_stale_first_file(queue.reader, store.log.min_offset) if queue.reader is not None else None
        if file is None or name not in names or not queue.folder.is_relative_to(store.path):
            continue
        path = f"{queue.folder.relative_to(store.path).as_posix()}/{file.name}"
        if path not in patched_files:
            size, sample = sample_of(store, Path(file.path))
            why = sentence("all messages of this file of queue {queue} are deleted", queue=name)
            patches.append(RemoveFile(file=path, size=size, sample=sample, why=why, name=NAME))
    if not patches:
        return None
    gains = sentence("consumers that begin at offset 0 get no bytes of other messages")
    title = sentence("Mend the entries of the queues from the commit log")
    return Repair(NAME, mendable.QUEUES, title, tuple(patches), gains)
