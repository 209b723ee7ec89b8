"""Every position that files reveal, and for each unknown one the reason (docs/formats/checkpoint.md,
docs/formats/files.md#mapped-files, docs/formats/writing.md#flush, #dispatch). Offsets in bytes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from engine.codec.message import Unit
from engine.errors import CannotRead, CorruptUnit, StoreError
from engine.inspection.dledger import end_headers, term_starts
from engine.inspection.epochs import read_epochs
from engine.inspection.written_release import release_of
from engine.releases import name_next_start
from engine.sentences import sentence
from engine.store.offset_by_time import store_time

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot


_NO_QUEUE_ENTRY = sentence("no consume queue holds an entry")
_NO_ENTRY = sentence("no consume queue holds an entry, so no file shows how far dispatch came")


@dataclass(frozen=True, slots=True)
class Position:
    """An offset and how it is known, or None and why not. ``timestamp`` (ms) if the source is a time."""

    offset: int | None
    source: str | None = None
    why: str | None = None
    timestamp: int | None = None


@dataclass(frozen=True, slots=True)
class Positions:
    """The nine positions of a store; ``checkpoint`` has one for each field of the checkpoint page."""

    min: Position
    wrote: Position
    committed: Position
    flushed: Position
    confirm: Position
    dispatched: Position
    queue_max: Position
    index_end: Position
    checkpoint: dict[str, Position]
    epochs: dict[str, Position] = field(default_factory=dict)
    """Controller mode: the offset at which each master's term began. DLedger: the first unit of each leader's term."""
    tiered: Position | None = None
    """The first message that is not in tiered storage yet; None if the store has none."""


def positions(store: StoreSnapshot) -> Positions:
    """All positions at one moment; a position that depends on unreadable bytes is unknown and says so."""
    queue_end, index_end = if_read(lambda: queue_end_position(store)), if_read(lambda: index_position(store))
    try:
        store.require("log")
        end, is_locked, abort = store.log.max_offset, store.lock_state == "held", store.abort
    except CannotRead as error:
        return _end_unread(store, Position(None, why=str(error)), queue_end, index_end)
    all_positions = positions_of(
        store,
        end,
        is_locked=is_locked,
        abort=abort,
        queue_end=queue_end,
        index_end=index_end,
        checkpoint=checkpoint_positions(store),
    )
    all_positions = replace(all_positions, epochs=epoch_positions(store), tiered=_tiered(store))
    if not store.unread:
        return all_positions
    unread = Position(None, why=store.unread[0].words)
    return replace(all_positions, committed=unread, flushed=unread, confirm=unread)


def epoch_positions(store: StoreSnapshot) -> dict[str, Position]:
    """The offset at which each term of a master or a leader began; empty if the store is neither of controller mode
    nor of DLedger.
    """
    with contextlib.suppress(CannotRead):
        if store.commit_log.dledger is not None:
            how = sentence("a leader began this term here (DLedger)")
            starts = term_starts(store.commit_log.dledger, *end_headers(store))
            return {str(row.term): Position(row.start_offset, how) for row in starts}
        table = read_epochs(store)
        if table is not None:
            source = sentence("a master began this term here (epochFileCheckpoint)")
            return {str(row.epoch): Position(row.start_offset, source) for row in table.epochs}
    return {}


def _tiered(store: StoreSnapshot) -> Position | None:
    try:
        return tiered_position(store)
    except CannotRead as error:
        return Position(None, why=str(error))


def tiered_position(store: StoreSnapshot) -> Position | None:
    """The first message of a copied queue that is not in tiered storage yet; if there is none, the end of the newest
    one that is. None if the store has no tiered storage. Raises :class:`CannotRead`.
    """
    if store.tiered is None:
        return None
    copied_end, waiting = -1, None
    for tiered in store.tiered.queues:
        queue = store.queues.find(tiered.topic, tiered.queue_id)
        if queue is None or queue.kind != "simple":
            continue
        newest = queue.entry(tiered.max_offset - 1) if tiered.max_offset <= queue.max_offset else None
        if newest is not None and newest.state == "entry":
            copied_end = max(copied_end, newest.physical_offset + newest.size)
        following = queue.entry(tiered.max_offset) if tiered.max_offset < queue.max_offset else None
        if following is not None and following.state == "entry":
            place = following.physical_offset, tiered.name
            waiting = place if waiting is None else min(waiting, place)
    if waiting is not None:
        return Position(
            waiting[0], sentence("first message that is not in tiered storage yet, in {queue}", queue=waiting[1])
        )
    if copied_end < 0:
        return Position(None, why=sentence("no queue of the store has a message that is in tiered storage"))
    return Position(copied_end, sentence("end of the newest message in tiered storage: its queues have no newer one"))


def if_read(ask: Callable[[], Position]) -> Position:
    """The position, or why it could not be read."""
    try:
        return ask()
    except CannotRead as error:
        return Position(None, why=str(error))


def _end_unread(store: StoreSnapshot, unread: Position, queue_end: Position, index_end: Position) -> Positions:
    """Positions if the end of the log is unknown."""
    min_position = (
        Position(max(store.log.min_offset, 0), sentence("start of the first commit log file"))
        if store.log.files
        else unread
    )
    return Positions(
        min=min_position,
        wrote=unread,
        committed=unread,
        flushed=unread,
        confirm=unread,
        dispatched=unread,
        queue_max=queue_end,
        index_end=index_end,
        checkpoint=checkpoint_positions(store),
    )


def positions_of(
    store: StoreSnapshot,
    end: int,
    *,
    is_locked: bool,
    abort: bool,
    queue_end: Position,
    index_end: Position,
    checkpoint: dict[str, Position],
) -> Positions:
    """The positions of a log that ends at ``end`` (bytes); its queues, index and checkpoint are already read."""
    return Positions(
        min=Position(max(store.log.min_offset, 0), sentence("start of the first commit log file"))
        if store.log.files
        else Position(None, why=sentence("the commit log has no files")),
        wrote=_wrote(end, is_locked),
        committed=_committed(end, is_locked),
        flushed=_flushed(end, is_locked, abort, is_full_store=store.paths is not None),
        confirm=_confirm(store, end, is_locked),
        dispatched=_dispatched(store, queue_end, end),
        queue_max=queue_end,
        index_end=index_end,
        checkpoint=checkpoint,
    )


def _wrote(end: int, is_locked: bool) -> Position:
    if is_locked:
        return Position(
            end,
            sentence("end of the last whole unit in the files; a transient pool may hold more, which no file shows"),
        )
    return Position(end, sentence("end of the last whole unit in the files"))


def _committed(end: int, is_locked: bool) -> Position:
    if is_locked:
        return Position(
            end, sentence("what is in the files was committed; bytes in a transient pool cannot be seen from outside")
        )
    return Position(end, sentence("nothing is in a pool while no broker runs: what is in the files is all there is"))


def _flushed(end: int, is_locked: bool, abort: bool, *, is_full_store: bool) -> Position:
    if not is_full_store:
        return Position(None, why=sentence("this is only a commit log: it does not show whether its store was closed"))
    if is_locked:
        return Position(
            None, why=sentence("a running broker keeps it in memory: files do not show what has reached the disk")
        )
    if abort:
        return Position(None, why=sentence("the store was not closed: no file shows what had reached the disk"))
    return Position(end, sentence("the store was closed cleanly, which flushes everything"))


def _confirm(store: StoreSnapshot, end: int, is_locked: bool) -> Position:
    if is_locked:
        return Position(
            None, why=sentence("it depends on the flush mode and pool of the running broker, which files do not show")
        )
    start = sentence("no broker runs: the next start sets it to the end of the log it recovers")
    return Position(end, name_next_start(start, release_of(store)))


def queue_end_position(store: StoreSnapshot) -> Position:
    """The end of the newest unit that a queue entry points to. Raises :class:`CannotRead`."""
    best: tuple[int, str] | None = None
    store.queues.require()
    for topic, queues in store.queues.by_topic().items():
        for number, queue in queues.items():
            newest = queue.newest()
            if newest is not None and (best is None or sum(newest) > best[0]):
                best = (sum(newest), f"{topic}/{number}")
    return queue_position(best)


def queue_position(best: tuple[int, str] | None) -> Position:
    """The end of the newest unit that an entry points to, and its queue; None if no queue has an entry."""
    if best is None:
        return Position(None, why=_NO_QUEUE_ENTRY)
    return Position(best[0], sentence("end of the newest unit that a queue entry points at, in {queue}", queue=best[1]))


def _dispatched(store: StoreSnapshot, queue_end: Position, end: int) -> Position:
    """Every unit before it is in its queue: followed from the newest queue entry over units that get no entry; in a
    RocksDB the broker has written it.
    """
    if queue_end.offset is not None and store.queues.rocksdb is not None:
        written = store.queues.rocksdb.written_offset()
        source = sentence("end of dispatch, written in the RocksDB of the queues: a start dispatches from here on")
        if store.queues.rocksdb.unflushed_bytes:
            source = sentence(
                "end of dispatch in the RocksDB of the queues; a running broker has come further, in memory"
            )
        return Position(min(written, end), source)
    if queue_end.offset is None:
        return Position(None, why=_NO_ENTRY) if queue_end.why == _NO_QUEUE_ENTRY else queue_end
    offset = min(queue_end.offset, end)
    for item in store.log.walk(offset, end, crc=False, resync=False):
        if isinstance(item, Unit) and item.transaction_type in (0x4, 0xC):
            offset = item.end
        else:
            break
    source = sentence(
        "end of the newest unit that has a queue entry, and of prepared or rolled back units behind it, which get none"
    )
    return Position(offset, source)


def index_position(store: StoreSnapshot) -> Position:
    """The end of the unit that the newest index entry points at. Raises :class:`CannotRead`."""
    store.index.require_files()
    for reader in reversed(store.index_files()):
        try:
            header = reader.header
        except CorruptUnit:
            continue
        if header.entries:
            unit = store.log.seen_at(header.end_phy_offset, crc=False)
            source = sentence("end of the unit that the last entry of {file} points at", file=reader.name)
            if isinstance(unit, Unit):
                return Position(unit.end, source, timestamp=header.end_timestamp)
            undecoded = store.undecoded_part("log") is not None
            return Position(
                header.end_phy_offset,
                sentence("endPhyOffset of {file}; the log is not decoded there", file=reader.name)
                if undecoded
                else sentence("endPhyOffset of {file}; no unit is there", file=reader.name),
                timestamp=header.end_timestamp,
            )
    return Position(None, why=sentence("no index file holds an entry"))


def checkpoint_positions(store: StoreSnapshot) -> dict[str, Position]:
    """A position for each field of the checkpoint page: times are searched for in the log."""
    try:
        page = store.checkpoint()
    except StoreError as error:
        return {"physicMsgTimestamp": Position(None, why=str(error))}
    if page is None:
        return {"physicMsgTimestamp": Position(None, why=sentence("there is no checkpoint file"))}
    positions_by_field = {}
    for name, time in (
        ("physicMsgTimestamp", page.physic_msg_timestamp),
        ("logicsMsgTimestamp", page.logics_msg_timestamp),
        ("indexMsgTimestamp", page.index_msg_timestamp),
    ):
        positions_by_field[name] = if_read(partial(_at_time, store, time))
    if page.master_flushed_offset:
        positions_by_field["masterFlushedOffset"] = Position(
            page.master_flushed_offset, sentence("written in the checkpoint")
        )
    if page.confirm_phy_offset:
        positions_by_field["confirmPhyOffset"] = Position(
            page.confirm_phy_offset, sentence("written in the checkpoint")
        )
    if page.logics_physical_offset:
        positions_by_field["logicsPhysicalOffset"] = Position(
            page.logics_physical_offset, sentence("written in the checkpoint")
        )
    return positions_by_field


def _at_time(store: StoreSnapshot, time: int) -> Position:
    if time <= 0:
        return Position(None, why=sentence("the field is zero: it was never written"), timestamp=time)
    undecoded = store.note_undecoded("log")
    if undecoded is not None:
        return Position(None, why=str(undecoded), timestamp=time)
    offset = offset_at_time(store, time)
    if offset is None:
        return Position(None, why=sentence("no unit of the log is as old as this"), timestamp=time)
    return Position(offset, sentence("end of the last unit that was stored at or before this time"), timestamp=time)


def offset_at_time(store: StoreSnapshot, time: int) -> int | None:
    """End (bytes) of the last unit stored at or before ``time`` ms, found in the queues if they help, else from the
    file heads.
    """
    best: int | None = None
    for queues in store.queues.by_topic().values():
        for queue in queues.values():
            if queue.kind != "simple":
                continue
            lower, upper = queue.min_offset, queue.max_offset
            while lower < upper:
                middle = (lower + upper) // 2
                entry = queue.entry(middle)
                if entry is not None and 0 <= store_time(store.log, entry.physical_offset, entry.size) <= time:
                    lower = middle + 1
                else:
                    upper = middle
            entry = queue.entry(lower - 1) if lower > queue.min_offset else None
            if entry is not None and (best is None or entry.physical_offset + entry.size > best):
                best = entry.physical_offset + entry.size
    if best is not None:
        return best
    for file in store.log.files:
        unit = store.log.seen_at(file.start_offset, crc=False)
        if not isinstance(unit, Unit) or unit.store_timestamp > time:
            break
        best = unit.end
    return best
