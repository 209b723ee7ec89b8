"""Positions of a store for the ruler, the list and the plots: read at one time off the loop, and their words. No Qt."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass, replace

from engine.codec.message import Unit
from engine.inspection.positions import Position, Positions, positions
from engine.inspection.snapshot import StoreSnapshot
from engine.remoting.answers import UnexpectedAnswer
from engine.replication.master import SlavePosition, ask_slaves
from engine.store.recovery.plan import RecoveryPlan
from viewer.look.assets import tr, words
from viewer.look.broken import UnreadableRange, missing_in
from viewer.look.engine_words import engine_words
from viewer.look.formats import clock, size
from viewer.runtime.live_history import LiveHistory
from viewer.runtime.position_reading import KEYS, PositionReading, gaps_of, known_flushed
from viewer.widgets.ruler import RulerBand, RulerFlag, RulerGap, RulerView

MAX_EPOCHS = 8
"""Largest number of masters' terms in the list and on the ruler, the newest of them."""
MAX_SLAVES = 3
"""Largest number of slaves on the ruler."""
MAX_FILE_TIMES = 400
"""Largest number of files whose first unit's time is read. Of more files every n-th is read."""

ROLES = {
    "wrote": "posLog2",
    "committed": "posLog",
    "flushed": "posLog3",
    "confirm": "posMin",
    "dispatched": "posBuild",
    "queue_max": "posBuild2",
    "index_end": "posBuild3",
    "tiered": "note",
    "min": "posMin",
}
NAMES = {
    "wrote": words("wrote"),
    "committed": words("committed"),
    "confirm": words("confirm"),
    "flushed": words("flushed"),
    "dispatched": words("dispatched"),
    "queue_max": words("queue max"),
    "index_end": words("index end"),
    "tiered": words("tiered"),
    "min": words("min"),
    "physicMsgTimestamp": words("checkpoint, log"),
    "logicsMsgTimestamp": words("checkpoint, queues"),
    "indexMsgTimestamp": words("checkpoint, index"),
    "masterFlushedOffset": words("checkpoint, master flushed"),
    "confirmPhyOffset": words("checkpoint, confirm"),
    "logicsPhysicalOffset": words("checkpoint, queues (offset)"),
}
FIELDS = {"queue_max": "queueMax", "index_end": "indexEnd"}
LOG_FLAGS = ("wrote", "committed", "confirm", "flushed")
BUILT_FLAGS = ("dispatched", "queue_max", "index_end")
TIME_FLAGS = ("physicMsgTimestamp", "logicsMsgTimestamp", "indexMsgTimestamp")


@dataclass(frozen=True, slots=True)
class PositionRow:
    """A position in the list.

    ``source`` is how it is known, ``why`` the reason why it is unknown. ``behind``: bytes behind the end of the log.
    """

    key: str
    name: str
    role: str
    offset: int | None
    timestamp: int | None
    source: str
    why: str
    behind: int | None
    moves: str = ""
    stands: bool = False

    @property
    def sentence(self) -> str:
        """The sentence about how the position is known, or why it is not."""
        return self.source or self.why


def read_positions(store: StoreSnapshot, now: int) -> PositionReading:
    """Read all positions at once. Reads the disk."""
    store_positions = positions(store)
    files = tuple((f.start_offset, f.end_offset, f.name) for f in store.log.files)
    heads = tuple(_heads(store, store_positions.wrote.offset or 0))
    return PositionReading(store_positions, files, heads, now, store.lock_state == "held", abort=store.abort)


def _heads(store: StoreSnapshot, end: int) -> list[tuple[int, int]]:
    files = [f for f in store.log.files if f.start_offset < end]
    step = max(1, len(files) // MAX_FILE_TIMES)
    heads = []
    for file in files[::step]:
        unit = store.log.unit_at(file.start_offset, crc=False)
        if isinstance(unit, Unit):
            heads.append((unit.store_timestamp, unit.offset))
    units = [item for item in store.log.items_before(end, 2, crc=False) if isinstance(item, Unit)] if end > 0 else []
    if units:
        heads.append((units[-1].store_timestamp, units[-1].end))
    return heads


def rows(reading: PositionReading, history: LiveHistory | None = None) -> list[PositionRow]:
    """Return every position in the order of the list, those of the checkpoint after those of the files.

    With a history each row also says how fast the position moves.
    """
    positions = reading.positions
    wrote = positions.wrote.offset
    if history is not None:
        return _live_rows(reading, history)
    position_rows = [_row(key, getattr(positions, key), ROLES[key], wrote) for key in (*LOG_FLAGS, *BUILT_FLAGS)]
    if positions.tiered is not None:
        position_rows.append(_row("tiered", positions.tiered, ROLES["tiered"], wrote))
    position_rows += [_row(name, position, "posTime", wrote) for name, position in positions.checkpoint.items()]
    for epoch, position in list(positions.epochs.items())[-MAX_EPOCHS:]:
        row = _row(f"epoch.{epoch}", position, "posTime", wrote)
        position_rows.append(replace(row, name=tr("term {n}", n=epoch)))
    return [*position_rows, _row("min", positions.min, "posMin", wrote)]


def _live_rows(reading: PositionReading, history: LiveHistory) -> list[PositionRow]:
    """Return the rows with their rates.

    Equal positions say so. A position that stalls while "wrote" moves is marked.
    """
    moving = history.rate("wrote", reading) or 0
    live_rows = []
    for row in rows(reading):
        key = {"queueMax": "queue_max", "indexEnd": "index_end"}.get(row.key, row.key)
        moves, stalled = "", False
        if key in KEYS and key != "min":
            speed = history.rate(key, reading)
            if key == "confirm" and row.offset is not None and row.offset == reading.offset("committed"):
                moves = tr("= committed")
            elif speed:
                moves = f"{'+' if speed > 0 else '−'}{size(abs(speed))}/s"
            elif speed is not None and moving and row.behind:
                moves, stalled = tr("stopped"), key != "index_end"
        elif row.timestamp and row.key == "physicMsgTimestamp":
            moves = clock(row.timestamp)[:8]
        live_rows.append(replace(row, moves=moves, stands=stalled))
    return live_rows


def _row(key: str, position: Position, role: str, wrote: int | None) -> PositionRow:
    bytes_behind = (
        wrote - position.offset if wrote is not None and position.offset is not None and key != "min" else None
    )
    return PositionRow(
        FIELDS.get(key, key),
        tr(NAMES.get(key, key)),
        role,
        position.offset,
        position.timestamp or None,
        engine_words(position.source or ""),
        engine_words(position.why or ""),
        bytes_behind,
    )


def slaves_of(store: StoreSnapshot, wrote: int) -> tuple[SlavePosition, ...]:
    """Return the slaves that follow the log, as the store's broker reports them, or nothing.

    The broker is the one that stored the newest message before ``wrote``. It is asked only at an address of this
    machine, because a store that was copied here names another machine's broker.
    """
    units = [item for item in store.log.items_before(wrote, 2, crc=False) if isinstance(item, Unit)] if wrote else []
    host, _, port = units[-1].store_host.rpartition(":") if units else ("", "", "")
    if store.lock_state != "held" or not _is_here(host):
        return ()
    try:
        return asyncio.run(ask_slaves(host, int(port))) or ()
    except UnexpectedAnswer:  # another service listens at that port
        return ()


def _is_here(host: str) -> bool:
    """Return True if an address belongs to this machine."""
    try:
        with socket.socket(socket.AF_INET) as probe:
            probe.bind((host, 0))
    except OSError:
        return False
    return host not in {"", "0.0.0.0"}  # noqa: S104  what stands for all of them is nobody's


def ruler_view(
    reading: PositionReading,
    plan: RecoveryPlan | None,
    broken: tuple[UnreadableRange, ...] = (),
    slaves: tuple[SlavePosition, ...] = (),
) -> RulerView:
    """Return the ruler for a reading.

    A plan adds the start and end of recovery. ``broken`` stretches are hatched. ``slaves`` add the positions that
    were sent and acknowledged, and how far these are behind.
    """
    positions = reading.positions
    wrote = positions.wrote.offset or 0
    minimum = positions.min.offset or 0
    flags = [
        RulerFlag(tr(NAMES[key]), position.offset, ROLES[key], key in LOG_FLAGS)
        for key in (*LOG_FLAGS, *BUILT_FLAGS)
        if (position := getattr(positions, key)).offset is not None
    ]
    if positions.tiered is not None and positions.tiered.offset is not None:
        flags.append(RulerFlag(tr(NAMES["tiered"]), positions.tiered.offset, ROLES["tiered"], False))
    flags += _time_flags(positions)
    if plan is not None and plan.start_file is not None:
        flags.append(RulerFlag(tr("recovery starts"), max(plan.start_offset, minimum), "posTime", False))
        if plan.end_offset < wrote:
            flags.append(RulerFlag(tr("recovery ends"), plan.end_offset, "error", True))
    gaps = list(_gaps(reading, wrote))
    for slave in slaves[:MAX_SLAVES]:
        flags.append(RulerFlag(tr("slave has"), slave.acknowledged, "live", False, slave.peer))
        if slave.sent != slave.acknowledged:
            flags.append(RulerFlag(tr("sent to slave"), slave.sent, "live", False, slave.peer))
        if slave.behind:
            gap_text = tr("slave behind {size}", size=size(slave.behind))
            gaps.append(RulerGap(slave.acknowledged, slave.wrote, gap_text, False, size(slave.behind)))
    files = missing_in((start, end) for start, end, _ in reading.files)
    hatched = tuple(dict.fromkeys((*files, *broken)))
    return RulerView(
        reading.files, minimum, wrote, tuple(flags), _bands(reading, minimum, wrote), tuple(gaps), broken=hatched
    )


def _time_flags(positions: Positions) -> list[RulerFlag]:
    flags = []
    for name in TIME_FLAGS:
        position = positions.checkpoint.get(name)
        if position is not None and position.offset is not None:
            time = clock(position.timestamp)[:8] if position.timestamp else ""
            flags.append(RulerFlag(tr(NAMES[name]), position.offset, "posTime", False, time))
    for epoch, position in list(positions.epochs.items())[-MAX_EPOCHS:]:
        if position.offset is not None:
            flags.append(RulerFlag(tr("term {n}", n=epoch), position.offset, "posTime", False))
    return flags


def _bands(reading: PositionReading, minimum: int, wrote: int) -> tuple[RulerBand, ...]:
    positions = reading.positions
    flushed = known_flushed(positions)
    if reading.lab and flushed is not None:
        committed = positions.committed.offset if positions.committed.offset is not None else wrote
        return (
            RulerBand(minimum, flushed, "disk", tr("on disk")),
            RulerBand(max(flushed, minimum), committed, "cache", tr("in the page cache")),
            RulerBand(max(committed, minimum), wrote, "pool", tr("in the transient pool")),
        )
    if flushed is None:
        return (RulerBand(minimum, wrote, "files", tr("in the files, flushed or not")),)
    edge = min(max(flushed, minimum), wrote)
    band_text = tr("on disk") if positions.flushed.offset is not None else tr("on disk, says the checkpoint")
    return (
        RulerBand(minimum, edge, "disk", band_text),
        RulerBand(edge, wrote, "files", tr("in the files, flushed or not")),
    )


def _gaps(reading: PositionReading, wrote: int) -> tuple[RulerGap, ...]:
    positions, gap_sizes = reading.positions, gaps_of(reading)
    gaps = []
    committed = positions.committed.offset if positions.committed.offset is not None else wrote
    flushed = known_flushed(positions)
    if reading.lab and gap_sizes.commit:
        gap_text = tr("to commit {size}", size=size(gap_sizes.commit))
        gaps.append(RulerGap(committed, wrote, gap_text, True, size(gap_sizes.commit)))
    if flushed is not None and gap_sizes.flush:
        gap_text = (
            tr("to flush {size}", size=size(gap_sizes.flush))
            if reading.lab
            else tr("not known to be flushed {size}", size=size(gap_sizes.flush))
        )
        gaps.append(RulerGap(flushed, committed, gap_text, True, size(gap_sizes.flush)))
    confirm = positions.confirm.offset if positions.confirm.offset is not None else wrote
    dispatched = positions.dispatched.offset
    if dispatched is not None and gap_sizes.dispatch:
        gap_text = tr("to dispatch {size}", size=size(gap_sizes.dispatch))
        gaps.append(RulerGap(dispatched, confirm, gap_text, False, size(gap_sizes.dispatch)))
    return tuple(gaps)


def gap_list(reading: PositionReading) -> list[tuple[str, str, int]]:
    """Return (name, role, bytes behind the end of the written log) of every known position that follows the log; less
    than zero for a position beyond it.
    """
    positions, wrote = reading.positions, reading.positions.wrote.offset
    if wrote is None:
        return []
    offsets = [(tr(NAMES[key]), ROLES[key], getattr(positions, key).offset) for key in ("flushed", *BUILT_FLAGS)]
    offsets += [
        (tr(NAMES[key]), "posTime", positions.checkpoint[key].offset)
        for key in TIME_FLAGS
        if key in positions.checkpoint
    ]
    return [(name, role, wrote - offset) for name, role, offset in offsets if offset is not None]
