"""Plans the recovery of a store opened for reading: passes its files to :mod:`engine.store.recovery.planning`."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from engine.codec.checkpoint import Checkpoint
from engine.codec.config_tables import BACKUP
from engine.codec.dledger import FOLDER_PREFIX
from engine.codec.index import HEADER_SIZE, decode_header
from engine.config import MessageStoreConfig
from engine.errors import CannotRead, CorruptUnit, Undecoded, UsageError
from engine.files.layout import COMMIT_LOG_FILE_SIZE
from engine.inspection import start_losses, undecoded
from engine.inspection.dledger import DLedgerLog
from engine.inspection.queue_reader import Kind, QueueReader
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.written_release import require_release
from engine.releases import NEWEST, Release, rules_of
from engine.rules.log_rules import LogFile, likely_length, likely_queue_length
from engine.rules.queue_sides import writes_both
from engine.rules.undecoded import TABLE_SUBJECTS
from engine.sentences import sentence
from engine.store.recovery import both_sides, start_file
from engine.store.recovery import planning as recovery
from engine.store.recovery.dledger import DLedgerSource
from engine.store.recovery.load_source import CHECKPOINT_NOTE
from engine.store.recovery.plan import Blocker, EmptyLog, RecoveryPlan
from engine.store.recovery.source import IndexHead, QueueFiles, RecoverySource, RocksdbQueues, Tables, list_folder

NO_PLAN = sentence("no plan is made without it")


def plan(
    store: StoreSnapshot,
    release: Release = NEWEST,
    *,
    heal: bool = False,
    losses: bool = True,
    look: start_losses.WalkOptions | None = None,
) -> RecoveryPlan:
    """Return the effects of starting a broker of ``release``.

    Raises :class:`UsageError` for a part of a store, and :class:`CannotRead` if any byte could not be read: no plan is
    made on incomplete data.

    Args:
        store: the opened store.
        release: the release whose start is planned.
        heal: plan what the engine does. It deletes an empty last file of a queue, on which a 5.3 broker dies.
        losses: also find the messages that the start loses. This reads the whole log.
        look: progress and cancellation of that.
    """
    source = replace(source_of(store), heal=heal)
    if source.rocksdb is not None and not source.writes_both and not rules_of(release).recovers_rocksdb_queues:
        raise UsageError(
            sentence(
                "what a start of RocketMQ {release} does with queues in a RocksDB is not known here: plans follow 5.3 "
                "and later",
                release=release,
            ),
            file=str(store.path),
        )
    if look is not None and (on_progress := look.progress) is not None:
        source = replace(source, watch=lambda start, place, end: on_progress(place - start, end - start))
    open_each(store)
    store.refuse_unread(NO_PLAN)
    start_plan = _without_unknowable(both_sides.plan(source, release))
    if losses:
        start_plan = start_losses.of_plan(store, start_plan, look)
    store.refuse_unread(NO_PLAN)
    return start_plan


def _without_unknowable(start_plan: RecoveryPlan) -> RecoveryPlan:
    """Remove from the plan what cannot be known: everything that a start does with a DLedger log. Undecoded queues and
    tables do not reach this point.
    """
    if start_plan.empty_log is not None and start_plan.empty_log.dledger:
        why = "the messages are in a DLedger log, which is not read here: what a start does is unknown"
        return replace(
            start_plan, why=why, files_deleted=(), queues=(), groups_beyond=(), ext_cuts=(), queues_known=False
        )
    return start_plan


def open_each(store: StoreSnapshot) -> None:
    """Try to open each file of the log, the queues and the index before anything is written: recovery reads a few of
    them, but a start maps them all.

    Files that cannot be opened are in the store's ledger afterwards.
    """
    topics = _loaded_file_topics(store)
    readers = [queue for queues in topics.values() for queue in queues.values()]
    sequences = (files for queue in readers for files in (queue.sequence, queue.ext) if files is not None)
    files = [file for sequence in (store.log.sequence, *sequences) for file in sequence.files]
    is_masked = store.capsule is not None and store.capsule.masks_units  # of index files it has the headers only
    index_readers = [] if is_masked else store.index_files()
    for file in (*files, *(reader.file for reader in index_readers)):
        with contextlib.suppress(CannotRead):  # ``reading`` has noted it
            os.close(file.descriptor())


def loading(store: StoreSnapshot, release: Release) -> tuple[Blocker, ...]:
    """Reasons that keep a broker of ``release`` from starting before it reads a single unit."""
    return recovery.loading(source_of(store), release)


def without_log(store: StoreSnapshot) -> EmptyLog | None:
    """Evidence of messages that the store's log does not hold; None if nothing is missing, or for a part of a store.

    One short read where the log is there.
    """
    return recovery.without_log(source_of(store)) if store.paths is not None else None


def source_of(store: StoreSnapshot) -> RecoverySource:
    """The store's files in the form that recovery reads.

    Raises :class:`CannotRead` if not all of them could be examined, :class:`Undecoded` if the log or the queues are not
    decoded.
    """
    if store.paths is None:
        raise UsageError(sentence("recovery needs a complete store; this is only a commit log"), file=str(store.path))
    store.require("log")
    paths = store.paths
    checkpoint, note = mapped_checkpoint(store)
    tables = Tables(partial(_table_bytes, store), str(paths.config))
    store.log.sequence.require_complete()
    rocksdb = _rocksdb_queues(store)
    has_both = rocksdb is not None and _loads_both(store)
    if has_both:
        store.queue_folders.require()
    elif rocksdb is None:
        store.queues.require_files()
    with contextlib.suppress(Undecoded):  # an index in a RocksDB is no file of a plan
        store.index.require_files()
    topics = _loaded_file_topics(store)
    readers = [queue for queues in topics.values() for queue in queues.values()]
    config = store.config or MessageStoreConfig()
    return RecoverySource(
        root=store.path,
        log=store.log.sequence,
        log_file_size=_log_file_size(store),
        queues=tuple(QueueFiles(q.topic, q.queue_id, q.kind, q.sequence, q.ext) for q in readers),
        queue_file_size=_size(store, "mappedFileSizeConsumeQueue", "simple", config.consume_queue_file_size),
        batch_queue_file_size=_size(
            store, "mapperFileSizeBatchConsumeQueue", "batch", config.mapper_file_size_batch_consume_queue
        ),
        rocksdb=rocksdb,
        writes_both=has_both,
        index=tuple(_index_heads(store)),
        checkpoint=checkpoint,
        checkpoint_note=note,
        abort=store.abort,
        lock_held=store.lock_state == "held",
        config=config,
        batch_topics=tables.batch_topics(),
        both_kinds=store.queue_folders.topics_of_both_kinds,
        group_offsets=tuple(tables.group_offsets()),
        tables=tables.states(),
        missing=_missing(store),
        notes=tuple(
            sentence("{note} This plan leaves it out.", note=note.text) for note in undecoded.judged_notes(store)
        ),
        listing=partial(list_folder, reading=store.reading),
        light=store.config is None or (config.enable_multi_dispatch if rocksdb is None else config.enable_lmq),
        confirmed_note=store.small_file(paths.confirmed_empty_log),
        dledger=dledger_source(store),
    )


def dledger_source(store: StoreSnapshot) -> DLedgerSource | None:
    """The store's DLedger log in the form that recovery reads; None without one. Raises :class:`CannotRead`."""
    log = store.commit_log.dledger
    if log is None:
        return None
    files = tuple(file for file in store.log.files if Path(file.path).parent == log.folders.data)
    checkpoint = log.checkpoint()
    log.index.require_complete()
    committed = checkpoint.committed_index if checkpoint is not None else None
    several = _has_other_members(store, log)
    return DLedgerSource(files, log.index, log.folders.data, committed, several, store.log.remains_from)


def _has_other_members(store: StoreSnapshot, log: DLedgerLog) -> bool:
    """Return True if the member is known to be in a group of several: by the configuration, else by its vote for
    another.
    """
    peers = store.config.d_leger_peers if store.config is not None else ""
    if peers:
        return len([peer for peer in peers.split(";") if peer.strip()]) > 1
    vote = log.vote()
    return vote is not None and vote.voted_for not in ("", log.folders.member.name.removeprefix(FOLDER_PREFIX))


def _rocksdb_queues(store: StoreSnapshot) -> RocksdbQueues | None:
    """The queues of a RocksDB, as its files have them; None if a broker reads queues in files.

    Raises :class:`CannotRead`.
    """
    if store.queues.begins_rocksdb:
        return RocksdbQueues(0, ())
    queues = store.queues.rocksdb
    if queues is None:
        return None
    store.queues.require()
    readers = (reader for by_id in queues.by_topic().values() for reader in by_id.values())
    return RocksdbQueues(queues.written_offset(), tuple(readers))


def _loads_both(store: StoreSnapshot) -> bool:
    """Return True if the broker loads and writes both kinds of queues."""
    return store.queue_source is None and writes_both(store.config)


def _loaded_file_topics(store: StoreSnapshot) -> dict[str, dict[int, QueueReader]]:
    """The file queues that the broker loads."""
    return store.queue_folders.by_topic() if _loads_both(store) else store.queues.used_files()


def _table_bytes(store: StoreSnapshot, name: str) -> bytes | None:
    """The bytes of a table that a start reads; a table in a RocksDB is given as the JSON of its rows, without a backup.

    None if there is none, or if it is unknown, which is recorded.
    """
    assert store.paths is not None
    table_name = name.removesuffix(BACKUP)
    subject = TABLE_SUBJECTS.get(table_name)
    if subject is None or store.undecoded_part(subject) is None:
        return store.small_file(store.paths.config / name)
    try:
        table = store.rocksdb_tables.table(table_name)
    except CannotRead:
        store.note_undecoded(subject)
        return None
    return json.dumps(table.value).encode() if table is not None and table.value and name == table_name else None


def _missing(store: StoreSnapshot) -> tuple[Path, ...]:
    """Missing folders of the log, if others exist: a copy of a store has none of them."""
    folders = store.folders.log if store.folders is not None else ()
    missing = tuple(folder for folder in folders if not store.reading.exists(folder))
    return missing if len(missing) < len(folders) else ()


def _size(store: StoreSnapshot, key: str, kind: Kind, configured: int) -> int:
    """Length of a queue's files: as configured, else the most common length that can be one, else RocketMQ's
    default.
    """
    if store.config is not None and key in store.config.given:
        return configured
    topics = _loaded_file_topics(store)
    readers = [queue for queues in topics.values() for queue in queues.values() if queue.kind == kind]
    files = ([LogFile(f.path, f.start_offset, f.size) for f in reader.files] for reader in readers)
    return likely_queue_length(files, readers[0].unit_size) or configured if readers else configured


def _log_file_size(store: StoreSnapshot) -> int:
    if store.config is not None and "mappedFileSizeCommitLog" in store.config.given:
        return store.config.mapped_file_size_commit_log
    files = [LogFile(f.path, f.start_offset, f.size) for f in store.log.files]
    return likely_length(files) or COMMIT_LOG_FILE_SIZE


def start_offset(store: StoreSnapshot, known_end: int, least: int) -> int:
    """Return the offset at which the next start begins to read the log.

    The store's release chooses it (:mod:`engine.releases`) among the files that begin at or behind ``least``; the
    queues know the log up to ``known_end``.
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
    return start_file.start_offset(source, files, known_end, require_release(store))


def mapped_checkpoint(store: StoreSnapshot) -> tuple[Checkpoint, str]:
    """The checkpoint as a broker maps it, and a note on it.

    Missing bytes read as zero, also in a file that is too short. Raises :class:`CannotRead`.
    """
    try:
        checkpoint = store.checkpoint()
    except CorruptUnit as error:
        return Checkpoint(0, 0, 0), sentence("the checkpoint is invalid: {why}", why=error.what)
    if checkpoint is None:
        return Checkpoint(0, 0, 0), sentence("there is no checkpoint")
    return checkpoint, CHECKPOINT_NOTE


def _index_heads(store: StoreSnapshot) -> Iterator[IndexHead]:
    for reader in store.index_files():
        head = reader.file.read(0, HEADER_SIZE).ljust(HEADER_SIZE, b"\0")
        yield IndexHead(reader.name, reader.path, decode_header(head))
