"""Recovery asked of a store that is only looked at: its files handed to :mod:`engine.store.recovery.planning`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from engine.codec.checkpoint import Checkpoint
from engine.codec.config_tables import BACKUP
from engine.codec.index import HEADER_SIZE, decode_header
from engine.config import MessageStoreConfig
from engine.errors import CannotRead, CorruptUnit, Undecoded, UsageError
from engine.inspection import foreign, left_behind
from engine.inspection.snapshot import StoreSnapshot
from engine.layout import COMMIT_LOG_FILE_SIZE
from engine.releases import NEWEST, Release
from engine.rules.log_rules import LogFile, likely_length
from engine.rules.undecoded import TABLE_SUBJECTS
from engine.store.recovery import planning as recovery
from engine.store.recovery.load_source import CHECKPOINT_NOTE
from engine.store.recovery.plan import Blocker, EmptyLog, RecoveryPlan
from engine.store.recovery.source import IndexHead, QueueFiles, RecoverySource, Tables, list_folder

NO_PLAN = "no plan is made over it"


def plan(
    store: StoreSnapshot,
    like: Release = NEWEST,
    *,
    heal: bool = False,
    losses: bool = True,
    look: left_behind.Look | None = None,
) -> RecoveryPlan:
    """What starting a broker of release ``like`` would do; raises :class:`UsageError` for a part of a store, and
    :class:`CannotRead` where a byte of it could not be read: no plan is made over what was not seen.

    With ``heal``, what the engine does: it deletes an empty last file of a queue, on which a 5.3 broker dies. Without
    ``losses`` it is not told which messages the start loses: for that the whole log is looked through (``look``).
    """
    source = replace(source_of(store), heal=heal)
    if look is not None and (told := look.progress) is not None:
        source = replace(source, watch=lambda start, place, end: told(place - start, end - start))
    open_each(store)
    store.refuse_unread(NO_PLAN)
    found = _told(recovery.plan(source, like))
    if losses:
        found = left_behind.of_plan(store, found, look)
    store.refuse_unread(NO_PLAN)
    return found


def _told(found: RecoveryPlan) -> RecoveryPlan:
    """What of the plan can be told: nothing of what a start does with a DLedger log; of queues and tables that are not
    decoded nothing comes so far.
    """
    if found.empty_log is not None and found.empty_log.dledger:
        why = "the messages are in a DLedger log, which is not read here: what a start does cannot be told"
        return replace(found, why=why, files_deleted=(), queues=(), groups_beyond=(), ext_cuts=(), queues_known=False)
    return found


def open_each(store: StoreSnapshot) -> None:
    """Try each file of the log, the queues and the index before anything is written: recovery reads a few of them, a
    start maps them all. What cannot be opened is in the store's ledger afterwards.
    """
    readers = [queue for queues in store.topics().values() for queue in queues.values()]
    sequences = (files for queue in readers for files in (queue.sequence, queue.ext) if files is not None)
    files = [file for sequence in (store.log.sequence, *sequences) for file in sequence.files]
    for file in (*files, *(reader.file for reader in store.index_files())):
        with contextlib.suppress(CannotRead):  # the door has noted it
            os.close(file.descriptor())


def loading(store: StoreSnapshot, like: Release) -> tuple[Blocker, ...]:
    """What keeps a broker of release ``like`` from starting before it looks at a single unit."""
    return recovery.loading(source_of(store), like)


def without_log(store: StoreSnapshot) -> EmptyLog | None:
    """Who knows of messages that the store's log does not hold; None where nothing is missed, or for a part of a store.

    One short read where the log is there.
    """
    return recovery.without_log(source_of(store)) if store.paths is not None else None


def source_of(store: StoreSnapshot) -> RecoverySource:
    """The store's files as recovery reads them. Raises :class:`CannotRead` where not all of them could be looked at,
    :class:`Undecoded` where the log or the queues are not decoded.
    """
    if store.paths is None:
        raise UsageError("recovery needs a whole store; this is a commit log by itself", file=str(store.path))
    store.require("log")
    paths = store.paths
    checkpoint, note = mapped_checkpoint(store)
    tables = Tables(partial(_table_bytes, store), str(paths.config))
    store.log.sequence.whole()
    store.whole_topics()
    with contextlib.suppress(Undecoded):  # an index in a RocksDB is no file of a plan
        store.whole_index()
    readers = [queue for queues in store.topics().values() for queue in queues.values()]
    config = store.config or MessageStoreConfig()
    simple_sizes = [q.sequence.file_size for q in readers if q.kind == "simple" and q.files]
    batch_sizes = [q.sequence.file_size for q in readers if q.kind == "batch" and q.files]
    return RecoverySource(
        root=store.path,
        log=store.log.sequence,
        log_file_size=_log_file_size(store),
        queues=tuple(QueueFiles(q.topic, q.queue_id, q.kind, q.sequence, q.ext) for q in readers),
        queue_file_size=_size(store, "mappedFileSizeConsumeQueue", simple_sizes, config.consume_queue_file_size),
        batch_queue_file_size=_size(
            store, "mapperFileSizeBatchConsumeQueue", batch_sizes, config.mapper_file_size_batch_consume_queue
        ),
        index=tuple(_index_heads(store)),
        checkpoint=checkpoint,
        checkpoint_note=note,
        abort=store.abort,
        lock_held=store.lock_state == "held",
        config=config,
        batch_topics=tables.batch_topics(),
        both_kinds=store.topics_of_both_kinds,
        group_offsets=tuple(tables.group_offsets()),
        tables=tables.states(),
        missing=_missing(store),
        notes=tuple(f"{note} This plan leaves it out." for note in foreign.notes(store)),
        listing=partial(list_folder, reading=store.reading),
        said=store.small_file(paths.empty_log_said),
    )


def _table_bytes(store: StoreSnapshot, name: str) -> bytes | None:
    """A table as it is read by a start; None where the broker keeps it in a RocksDB, beside which the file is old."""
    assert store.paths is not None
    subject = TABLE_SUBJECTS.get(name.removesuffix(BACKUP))
    if subject is not None and store.note_undecoded(subject) is not None:
        return None
    return store.small_file(store.paths.config / name)


def _missing(store: StoreSnapshot) -> tuple[Path, ...]:
    """Folders of the log that are not there beside others that are: a copy of a store has none of them."""
    folders = store.folders.log if store.folders is not None else ()
    gone = tuple(folder for folder in folders if not store.reading.exists(folder))
    return gone if len(gone) < len(folders) else ()


def _size(store: StoreSnapshot, key: str, seen: list[int], configured: int) -> int:
    """Length of a queue's files: as configured, else the commonest length, else RocketMQ's own."""
    given = store.config is not None and key in store.config.given
    return configured if given or not seen else max(set(seen), key=lambda size: (seen.count(size), size))


def _log_file_size(store: StoreSnapshot) -> int:
    if store.config is not None and "mappedFileSizeCommitLog" in store.config.given:
        return store.config.mapped_file_size_commit_log
    files = [LogFile(f.path, f.start_offset, f.size) for f in store.log.files]
    return likely_length(files) or COMMIT_LOG_FILE_SIZE


def start_offset(store: StoreSnapshot, known: int, least: int) -> int:
    """Return where the next start begins to read the log, as the store's release chooses it (:mod:`engine.releases`)
    among the files that begin at or behind ``least``; the queues know the log up to ``known``.

    Raises :class:`CannotRead`.
    """
    files = [file for file in store.log.files if file.start_offset >= least]
    if not files:
        return store.log.files[-1].start_offset
    checkpoint, note = mapped_checkpoint(store)
    source = RecoverySource(
        root=store.path,
        log=store.log.sequence,
        log_file_size=0,
        queues=(),
        queue_file_size=0,
        batch_queue_file_size=0,
        checkpoint=checkpoint,
        checkpoint_note=note,
        abort=store.abort and store.lock_state != "held",
        config=store.config or MessageStoreConfig(),
    )
    return recovery.start_offset(source, files, known, foreign.release_of(store))


def mapped_checkpoint(store: StoreSnapshot) -> tuple[Checkpoint, str]:
    """The checkpoint as a broker maps it, and what is said of it: what is missing reads as zero, in a file that is too
    short too. Raises :class:`CannotRead`.
    """
    try:
        found = store.checkpoint()
    except CorruptUnit as error:
        return Checkpoint(0, 0, 0), f"the checkpoint is no checkpoint: {error.what}"
    if found is None:
        return Checkpoint(0, 0, 0), "there is no checkpoint"
    return found, CHECKPOINT_NOTE


def _index_heads(store: StoreSnapshot) -> Iterator[IndexHead]:
    for reader in store.index_files():
        head = reader.file.read(0, HEADER_SIZE).ljust(HEADER_SIZE, b"\0")
        yield IndexHead(reader.name, reader.path, decode_header(head))
