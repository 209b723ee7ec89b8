"""A store appended again, unit by unit, into another directory: the work of ``copy``.

The units go through the engine: it rolls files, dispatches into queues and index, and flushes as for any put. Only what
the log does not hold is copied: BLANKs of batches (if files have the same size), filter bit maps of ext queues, the
list of deleted topics, and the tables under ``config``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.callbacks import OffsetProgress
from engine.codec.columns import BAD, BLANK, UnitColumns
from engine.codec.config_tables import BACKUP
from engine.codec.message import MAX_UNIT_BYTES, MIN_UNIT_SIZE, PREPARED, ROLLBACK, TRANSACTION_MASK
from engine.codec.salvage import salvage_overflow, shorten
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage
from engine.config import MessageStoreConfig
from engine.errors import CannotRead, StoreError, Undecoded
from engine.files.temporary_folders import staged
from engine.inspection.block_scan import scan_log
from engine.inspection.deleted_topics import deleted_topics
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.written_release import require_release
from engine.message_store import MessageStore
from engine.query import Filter
from engine.releases import Release
from engine.rules.undecoded import TABLE_SUBJECTS
from engine.rules.unit_check import Request
from engine.sentences import join, sentence
from engine.store.put_raw_units import append_units, with_property_crc

NOTHING_COPIED = sentence("nothing is copied without it")
_WAIT_MS = 1000.0
_SIZE_BYTES = 4
_TAKEN, _PASSED_OVER, _LEFT = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Copied:
    """Result of a copy; ``size`` and ``left_size`` are bytes of units. ``left_behind`` counts spans of damage and
    units with a wrong CRC, ``deleted_topics`` have units and no queue. ``shortened`` gives the names of the
    properties that a unit at an offset of the source could not keep: its 16-bit length had overflowed.
    """

    units: int
    size: int
    max_offset: int
    left_behind: int
    left_size: int
    deleted_topics: tuple[str, ...]
    shortened: dict[int, tuple[str, ...]] = field(default_factory=dict)


def copy_store(
    source: StoreSnapshot,
    target: Path,
    config: MessageStoreConfig,
    unit_filter: Filter | None = None,
    progress: OffsetProgress | None = None,
    release: Release | None = None,
) -> Copied:
    """Append every unit of ``source`` (that matches ``unit_filter``) to a new store at ``target``, absent or empty. The
    copy is written as ``release`` does; by default the one that seems to have written the source.

    The store grows in a folder beside ``target`` and gets its name when it is whole. Raises as the engine does; nothing
    is left then.
    """
    with staged(target, ".copy") as staging:
        done = _Copy(source, staging, config, unit_filter, progress, release or require_release(source)).run()
        _copy_tables(source, staging)
        source.refuse_unread(NOTHING_COPIED)
    return done


class _Copy:
    def __init__(
        self,
        source: StoreSnapshot,
        staging: Path,
        config: MessageStoreConfig,
        unit_filter: Filter | None,
        progress: OffsetProgress | None,
        release: Release,
    ) -> None:
        self._source, self._staging, self._config = source, staging, config
        self._wanted, self._progress, self._release = unit_filter, progress, release
        same_size = config.mapped_file_size_commit_log == source.log.sequence.file_size
        self._in_place = unit_filter is None and same_size and source.commit_log.dledger is None
        self._units = self._size = self._left = self._left_size = 0
        self._shortened: dict[int, tuple[str, ...]] = {}
        self._end = 0
        self._first_of: dict[str, int] = {}

    def run(self) -> Copied:
        _copy_tables(self._source, self._staging)
        bit_map = self._bit_map if self._has_ext() else None
        store = MessageStore(
            self._staging,
            self._config,
            release=self._release,
            bit_map=bit_map,
            empty_log=True,  # the tables came first
        )
        try:
            for name, queues in self._source.topics().items():
                if any(queue.kind == "batch" for queue in queues.values()) and not store.tables.is_batch_topic(name):
                    store.tables.create_topic(name, len(queues), attributes={"queue.type": "BatchCQ"})
            self._append_all(store)
            self._dispatch(store)
            deleted = self._deleted_topics()
            store.delete_topics(deleted)
            end = store.positions().wrote
            store.close()
        except BaseException:
            store.abandon()
            raise
        if store.paths.abort.exists():
            raise StoreError(
                sentence("the copy could not be closed: {why}", why=store.flags.why), file=str(self._staging)
            )
        return Copied(self._units, self._size, end, self._left, self._left_size, tuple(deleted), self._shortened)

    def _deleted_topics(self) -> list[str]:
        """Topics that were deleted from the source; none where its queues or topics are not decoded, which the ledger
        says then: units of every topic get queues.
        """
        with contextlib.suppress(Undecoded):
            return deleted_topics(self._source, self._first_of)
        return []

    # -- the log

    def _append_all(self, store: MessageStore) -> None:
        log = self._source.log
        first_offset = max(log.min_offset, 0)
        if log.files:
            store.parts.commit_log.begin_at(first_offset)
        size = self._config.mapped_file_size_commit_log
        self._end = first_offset - first_offset % size
        stop = None if self._source.abort else log.max_offset
        self._append_blocks(store, first_offset, stop)

    def _append_blocks(self, store: MessageStore, first_offset: int, stop: int | None) -> None:
        """Append whole runs of units at once, without decoding them."""
        topics, log = TopicTable(), self._source.log
        block_filter = None
        if self._wanted is not None:
            block_filter = self._wanted.on_blocks(topics, log.file_name)
        for block in scan_log(log, first_offset, stop, topics=topics):
            if isinstance(block, Damage):
                self._take_damage(store, block)
            elif isinstance(block, UnitColumns):
                chosen = np.ones(block.count, np.bool_)
                if block_filter is not None:
                    rows = block_filter.rows(block)
                    chosen[:] = False
                    chosen[rows[_is_good(block)[rows]]] = True
                self._take_block(store, block, chosen)
                self._note_topics(block, topics, chosen)
                self._seen(int(block.offset[block.count - 1]) - first_offset)

    def _take_block(self, store: MessageStore, block: UnitColumns, chosen: npt.NDArray[np.bool_]) -> None:
        count = block.count
        blank = count > 0 and block.kind[count - 1] == BLANK
        units = count - 1 if blank else count
        fate = np.where(_is_good(block)[:units], np.where(chosen[:units], _TAKEN, _PASSED_OVER), _LEFT)
        edges = [0, *(np.flatnonzero(np.diff(fate)) + 1).tolist(), units]
        for begin, end in pairwise(edges):
            if begin == end or fate[begin] == _PASSED_OVER:
                continue
            if fate[begin] == _TAKEN:
                self._take_run(store, block, begin, end)
            else:
                for row in range(begin, end):
                    self._leave(int(block.size[row]))
        if blank and self._in_place:
            size, offset = self._config.mapped_file_size_commit_log, int(block.offset[count - 1])
            self._reach(store, offset)
            self._reach(store, offset - offset % size + size)

    def _take_run(self, store: MessageStore, block: UnitColumns, begin: int, end: int) -> None:
        """Append the good units [begin, end) of a block, which stand back to back."""
        sizes = block.size[begin:end].astype(np.int64)
        position = int(block.offset[begin]) - block.base
        total = int(sizes.sum())
        data = block.buffer[position : position + total]
        if (
            int(block.offset[end - 1]) + int(sizes[-1]) - int(block.offset[begin]) != total
        ):  # headers of DLedger entries
            starts = (block.offset[begin:end] - block.base).tolist()
            pieces = [block.buffer[start : start + size] for start, size in zip(starts, sizes.tolist(), strict=True)]
            data = np.concatenate(pieces)
        if self._in_place:
            self._reach(store, int(block.offset[begin]))
        elif with_property_crc(data, sizes).any():
            places = np.cumsum(sizes) - sizes
            for start, size in zip(places.tolist(), sizes.tolist(), strict=True):
                self._end = store.parts.commit_log.append_raw(data[start : start + size].tobytes()) + size
            self._count(end - begin, total)
            return
        self._end = append_units(store.parts.commit_log, data, sizes, block.store_timestamp[begin:end])
        self._count(end - begin, total)

    def _note_topics(self, block: UnitColumns, topics: TopicTable, chosen: npt.NDArray[np.bool_]) -> None:
        """Note the offset of each topic's first unit that belongs into a queue."""
        units = block.count - int(block.kind[block.count - 1] == BLANK)
        kinds = block.sys_flag[:units] & TRANSACTION_MASK
        queued = (kinds != PREPARED) & (kinds != ROLLBACK) & chosen[:units]
        rows = np.flatnonzero(queued & (block.topic_id[:units] >= 0))
        numbers, first_rows = np.unique(block.topic_id[:units][rows], return_index=True)
        for number, row in zip(numbers.tolist(), rows[first_rows].tolist(), strict=True):
            self._first_of.setdefault(topics.names[number], int(block.offset[row]))

    def _seen(self, done: int) -> None:
        if self._progress is not None:
            self._progress(done)

    def _count(self, units: int, size: int) -> None:
        self._units += units
        self._size += size

    def _take_damage(self, store: MessageStore, item: Damage) -> None:
        """Append a unit with too many properties without the longest of them; the rest of the span is left behind."""
        if item.unread:
            raise CannotRead(join(": ", [item.reason, NOTHING_COPIED]))
        offset, end = item.offset, item.offset + item.size
        while offset < end:
            size = int.from_bytes(self._source.log.read(offset, _SIZE_BYTES), "big")
            raw = (
                self._source.log.read(offset, size)
                if MIN_UNIT_SIZE <= size <= min(end - offset, MAX_UNIT_BYTES)
                else b""
            )
            salvaged = salvage_overflow(raw, offset) if raw else None
            if salvaged is None:
                break
            self._in_place = False  # what comes behind it moves up
            if self._wanted is None or self._wanted.matches(salvaged.unit):
                data, self._shortened[offset] = shorten(raw, salvaged)
                self._end = store.parts.commit_log.append_raw(data) + len(data)
                self._count(1, len(data))
                if salvaged.unit.transaction_type not in (PREPARED, ROLLBACK):
                    self._first_of.setdefault(salvaged.unit.topic, offset)
            offset += salvaged.unit.size
        if offset < end:
            self._leave(end - offset)

    def _leave(self, size: int) -> None:
        """Leave damage out: the units behind it move up."""
        self._left += 1
        self._left_size += size
        self._in_place = False

    def _reach(self, store: MessageStore, offset: int) -> None:
        """End files until the log stands at ``offset``, as the batches and giants did that did not fit."""
        size = self._config.mapped_file_size_commit_log
        while self._end < offset:
            store.parts.commit_log.begin_at(self._end)
            store.parts.commit_log.append_blank()
            self._end += size - self._end % size

    def _dispatch(self, store: MessageStore) -> None:
        while not store.wait_dispatched(_WAIT_MS):
            if not store.flags.writeable:
                raise StoreError(
                    sentence("the copy could not be dispatched: {why}", why=store.flags.why), file=str(self._staging)
                )

    # -- what the log does not tell

    def _has_ext(self) -> bool:
        return self._config.enable_consume_queue_ext

    def _bit_map(self, request: Request) -> bytes:
        """The filter bit map that the source's ext queue has for a unit."""
        queue = self._source.queue(request.topic, request.queue_id)
        entry = queue.entry(request.queue_offset) if queue is not None else None
        return entry.ext.bit_map if entry is not None and entry.ext is not None else b""


def _is_good(block: UnitColumns) -> npt.NDArray[np.bool_]:
    """Rows of this place, with the CRC that they say."""
    good: npt.NDArray[np.bool_] = (block["crc"] != BAD) & (block["physical_offset"] == block["offset"])
    return good


def target_config(source: MessageStoreConfig, given_settings: MessageStoreConfig | None) -> MessageStoreConfig:
    """Return the configuration of a copy: the source's sizes, overlaid with the given settings, folders and roles
    aside.
    """
    config = source if given_settings is None else source.overlaid(given_settings)
    return replace(
        config.without_paths(),
        flush_disk_type="ASYNC_FLUSH",
        broker_role="ASYNC_MASTER",
        transient_store_pool_enable=False,
        warm_maped_file_enable=False,
        duplication_enable=False,
        read_un_committed=False,
    )


def _undecoded_in(source: StoreSnapshot, folder: Path) -> set[str]:
    """Names in ``folder`` of tables that are not decoded: the RocksDB, and a file beside it that may be an old one."""
    parts = [source.path / part.folder for part in source.undecoded]
    left_out = {part.name for part in parts if part.parent == folder}
    for name, subject in TABLE_SUBJECTS.items():
        if folder == source.path / "config" and source.note_undecoded(subject) is not None:
            left_out |= {name, name + BACKUP}
    return left_out


def _copy_tables(source: StoreSnapshot, staging: Path) -> None:
    """Copy the source's ``config`` folder, without tables that are not decoded: beside the copy's file queues a
    broker would not read them.
    """
    assert source.paths is not None
    source_folder, target_folder = source.paths.config, staging / "config"
    shutil.rmtree(target_folder, ignore_errors=True)
    if source.reading.is_folder(source_folder):
        for entry in source.reading.entries(source_folder, listed=True):
            if entry.is_file():
                os.close(source.reading.open(entry.path))
        shutil.copytree(
            source_folder,
            target_folder,
            ignore=lambda folder, _: _undecoded_in(source, Path(folder)),
            ignore_dangling_symlinks=True,
        )
