"""Positions of a store as the ruler, the list and the plots show them: one look off the loop, and words; no Qt."""

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
from viewer.look.broken import Broken, missing_in
from viewer.look.engine_words import engine_words
from viewer.look.formats import clock, size
from viewer.runtime.live_history import LiveHistory
from viewer.runtime.position_look import KEYS, Look, gaps_of, known_flushed
from viewer.widgets.ruler import RulerBand, RulerFlag, RulerGap, RulerView

MOST_SLAVES = 3
"""Slaves that stand on the ruler."""
MOST_HEADS = 400
"""Files whose first unit is asked for its time; of more files every n-th is."""

ROLES = {
    "wrote": "posLog2",
    "committed": "posLog",
    "flushed": "posLog3",
    "confirm": "posMin",
    "dispatched": "posBuild",
    "queue_max": "posBuild2",
    "index_end": "posBuild3",
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
    """A position as the list shows it:

    ``how`` it is known, or ``why`` it is not; ``behind`` what was written (bytes).
    """

    key: str
    name: str
    role: str
    offset: int | None
    timestamp: int | None
    how: str
    why: str
    behind: int | None
    moves: str = ""
    stands: bool = False

    @property
    def sentence(self) -> str:
        """How it is known, or why it is not."""
        return self.how or self.why


def look(store: StoreSnapshot, now: int) -> Look:
    """All positions at once; reads the disk."""
    found = positions(store)
    files = tuple((f.start_offset, f.end_offset, f.name) for f in store.log.files)
    heads = tuple(_heads(store, found.wrote.offset or 0))
    return Look(found, files, heads, now, store.lock_state == "held", abort=store.abort)


def _heads(store: StoreSnapshot, end: int) -> list[tuple[int, int]]:
    files = [f for f in store.log.files if f.start_offset < end]
    step = max(1, len(files) // MOST_HEADS)
    found = []
    for file in files[::step]:
        unit = store.log.unit_at(file.start_offset, crc=False)
        if isinstance(unit, Unit):
            found.append((unit.store_timestamp, unit.offset))
    units = [item for item in store.log.items_before(end, 2, crc=False) if isinstance(item, Unit)] if end > 0 else []
    if units:
        found.append((units[-1].store_timestamp, units[-1].end))
    return found


def rows(seen: Look, history: LiveHistory | None = None) -> list[PositionRow]:
    """Every position in the order of the list, what the checkpoint knows by time behind what the files know; with a
    history also how fast each moves.
    """
    found = seen.positions
    wrote = found.wrote.offset
    if history is not None:
        return _live_rows(seen, history)
    made = [_row(key, getattr(found, key), ROLES[key], wrote) for key in (*LOG_FLAGS, *BUILT_FLAGS)]
    made += [_row(name, position, "posTime", wrote) for name, position in found.checkpoint.items()]
    return [*made, _row("min", found.min, "posMin", wrote)]


def _live_rows(seen: Look, history: LiveHistory) -> list[PositionRow]:
    """The same while it moves: equal ones say so, and one that stands while wrote goes on is marked."""
    moving = history.rate("wrote", seen) or 0
    made = []
    for one in rows(seen):
        key = {"queueMax": "queue_max", "indexEnd": "index_end"}.get(one.key, one.key)
        moves, stands = "", False
        if key in KEYS and key != "min":
            speed = history.rate(key, seen)
            if key == "confirm" and one.offset is not None and one.offset == seen.offset("committed"):
                moves = tr("= committed")
            elif speed:
                moves = f"{'+' if speed > 0 else '−'}{size(abs(speed))}/s"
            elif speed is not None and moving and one.behind:
                moves, stands = tr("stands"), key != "index_end"
        elif one.timestamp and one.key == "physicMsgTimestamp":
            moves = clock(one.timestamp)[:8]
        made.append(replace(one, moves=moves, stands=stands))
    return made


def _row(key: str, position: Position, role: str, wrote: int | None) -> PositionRow:
    behind = wrote - position.offset if wrote is not None and position.offset is not None and key != "min" else None
    return PositionRow(
        FIELDS.get(key, key),
        tr(NAMES.get(key, key)),
        role,
        position.offset,
        position.timestamp or None,
        engine_words(position.how or ""),
        engine_words(position.why or ""),
        behind,
    )


def slaves_of(store: StoreSnapshot, wrote: int) -> tuple[SlavePosition, ...]:
    """Who follows the log of a store that a broker has open, as that broker tells; none where nobody does, or nobody
    tells. The broker is the one that stored the newest message before ``wrote``, asked only at an address of this
    machine: a store that was copied here names somebody else's.
    """
    units = [item for item in store.log.items_before(wrote, 2, crc=False) if isinstance(item, Unit)] if wrote else []
    host, _, port = units[-1].store_host.rpartition(":") if units else ("", "", "")
    if store.lock_state != "held" or not _is_here(host):
        return ()
    try:
        return asyncio.run(ask_slaves(host, int(port))) or ()
    except UnexpectedAnswer:  # what answers at that port is no broker
        return ()


def _is_here(host: str) -> bool:
    """Whether an address is one of this machine's."""
    try:
        with socket.socket(socket.AF_INET) as one:
            one.bind((host, 0))
    except OSError:
        return False
    return host not in {"", "0.0.0.0"}  # noqa: S104  what stands for all of them is nobody's


def ruler_view(
    seen: Look,
    plan: RecoveryPlan | None,
    broken: tuple[Broken, ...] = (),
    slaves: tuple[SlavePosition, ...] = (),
) -> RulerView:
    """The ruler of one look; with a plan also where recovery would begin and end; ``broken`` is hatched. ``slaves``
    stand on it, too: what was sent to each, what it has, how far that is behind.
    """
    found = seen.positions
    wrote = found.wrote.offset or 0
    minimum = found.min.offset or 0
    flags = [
        RulerFlag(tr(NAMES[key]), position.offset, ROLES[key], key in LOG_FLAGS)
        for key in (*LOG_FLAGS, *BUILT_FLAGS)
        if (position := getattr(found, key)).offset is not None
    ]
    flags += _time_flags(found)
    if plan is not None and plan.start_file is not None:
        flags.append(RulerFlag(tr("recovery starts"), max(plan.start_offset, minimum), "posTime", False))
        if plan.end_offset < wrote:
            flags.append(RulerFlag(tr("recovery ends"), plan.end_offset, "error", True))
    gaps = list(_gaps(seen, wrote))
    for slave in slaves[:MOST_SLAVES]:
        flags.append(RulerFlag(tr("slave has"), slave.acknowledged, "live", False, slave.peer))
        if slave.sent != slave.acknowledged:
            flags.append(RulerFlag(tr("sent to slave"), slave.sent, "live", False, slave.peer))
        if slave.behind:
            said = tr("slave behind {size}", size=size(slave.behind))
            gaps.append(RulerGap(slave.acknowledged, slave.wrote, said, False, size(slave.behind)))
    files = missing_in((start, end) for start, end, _ in seen.files)
    hatched = tuple(dict.fromkeys((*files, *broken)))
    return RulerView(
        seen.files, minimum, wrote, tuple(flags), _bands(seen, minimum, wrote), tuple(gaps), broken=hatched
    )


def _time_flags(found: Positions) -> list[RulerFlag]:
    made = []
    for name in TIME_FLAGS:
        position = found.checkpoint.get(name)
        if position is not None and position.offset is not None:
            time = clock(position.timestamp)[:8] if position.timestamp else ""
            made.append(RulerFlag(tr(NAMES[name]), position.offset, "posTime", False, time))
    return made


def _bands(seen: Look, minimum: int, wrote: int) -> tuple[RulerBand, ...]:
    found = seen.positions
    flushed = known_flushed(found)
    if seen.lab and flushed is not None:
        committed = found.committed.offset if found.committed.offset is not None else wrote
        return (
            RulerBand(minimum, flushed, "disk", tr("on disk")),
            RulerBand(max(flushed, minimum), committed, "cache", tr("in the page cache")),
            RulerBand(max(committed, minimum), wrote, "pool", tr("in the transient pool")),
        )
    if flushed is None:
        return (RulerBand(minimum, wrote, "files", tr("in the files, flushed or not")),)
    edge = min(max(flushed, minimum), wrote)
    said = tr("on disk") if found.flushed.offset is not None else tr("on disk, says the checkpoint")
    return (
        RulerBand(minimum, edge, "disk", said),
        RulerBand(edge, wrote, "files", tr("in the files, flushed or not")),
    )


def _gaps(seen: Look, wrote: int) -> tuple[RulerGap, ...]:
    found, known = seen.positions, gaps_of(seen)
    gaps = []
    committed = found.committed.offset if found.committed.offset is not None else wrote
    flushed = known_flushed(found)
    if seen.lab and known.commit:
        said = tr("to commit {size}", size=size(known.commit))
        gaps.append(RulerGap(committed, wrote, said, True, size(known.commit)))
    if flushed is not None and known.flush:
        said = (
            tr("to flush {size}", size=size(known.flush))
            if seen.lab
            else tr("not known to be flushed {size}", size=size(known.flush))
        )
        gaps.append(RulerGap(flushed, committed, said, True, size(known.flush)))
    confirm = found.confirm.offset if found.confirm.offset is not None else wrote
    dispatched = found.dispatched.offset
    if dispatched is not None and known.dispatch:
        said = tr("to dispatch {size}", size=size(known.dispatch))
        gaps.append(RulerGap(dispatched, confirm, said, False, size(known.dispatch)))
    return tuple(gaps)


def gap_list(seen: Look) -> list[tuple[str, str, int]]:
    """(name, role, bytes behind what was written) of everything that follows the log and is known."""
    found, wrote = seen.positions, seen.positions.wrote.offset
    if wrote is None:
        return []
    made = [(tr(NAMES[key]), ROLES[key], getattr(found, key).offset) for key in ("flushed", *BUILT_FLAGS)]
    made += [(tr(NAMES[key]), "posTime", found.checkpoint[key].offset) for key in TIME_FLAGS if key in found.checkpoint]
    return [(name, role, max(0, wrote - offset)) for name, role, offset in made if offset is not None]
