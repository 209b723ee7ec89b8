"""Take from a queue a last file of zeros whose first bytes a start takes for an entry
(docs/formats/repair.md#queues).

A pull of such an entry is never answered: consumers of the queue stand still there.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from engine.inspection.snapshot import StoreSnapshot
from engine.patching.patches import Patch, RemoveFile
from engine.repair.queue_entries import NAME, PlainQueue, plain_queues
from engine.repair.repair import Repair, sample_of
from engine.rules import mendable
from engine.rules.findings import Finding, at_least
from engine.sentences import plural, sentence


def repair_empty_queues(
    store: StoreSnapshot, findings: Collection[Finding], patched_files: Collection[str]
) -> Repair | None:
    """Return the repair of queues that end in such a file; None without any.

    Files in ``patched_files`` are left for later. Raises :class:`engine.errors.CannotRead` if a queue cannot be read.
    """
    reported = {finding.file for finding in findings if finding.id == "CQ06" and at_least(finding.severity, "warn")}
    if store.kind != "store" or store.queues.rocksdb is not None or not reported:
        return None
    patches = [
        patch
        for queue in plain_queues(store)
        if queue.files and queue.files[-1].path in reported and queue.folder.is_relative_to(store.path)
        for patch in _patches(store, queue)
        if patch.file not in patched_files
    ]
    if not patches:
        return None
    gains = plural(
        "consumers of {n:,} queue do not wait at an entry that no broker answers",
        "consumers of {n:,} queues do not wait at an entry that no broker answers",
        n=len(patches),
    )
    title = sentence("Mend the entries of the queues from the commit log")
    return Repair(NAME, mendable.QUEUES, title, tuple(patches), gains)


def _patches(store: StoreSnapshot, queue: PlainQueue) -> list[Patch]:
    """Return the patch of the last file of a queue, if there is one."""
    last_file, name = queue.files[-1], f"{queue.topic}/{queue.queue_id}"
    path = f"{queue.folder.relative_to(store.path).as_posix()}/{last_file.name}"
    if last_file.start_offset > 0 and len(queue.files) == 1:
        return []  # a broker numbers the queue by the name of this file
    size, sample = sample_of(store, Path(last_file.path))
    why = sentence("this file of queue {queue} holds no entry", queue=name)
    return [RemoveFile(file=path, size=size, sample=sample, why=why, name=NAME)]
