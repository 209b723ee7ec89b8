"""Positions of a store as the ruler, the list and the plots show them:

one look off the loop, and words for it; no Qt.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.codec.message import Unit
from engine.inspection.positions import Position, Positions, positions
from engine.inspection.snapshot import StoreSnapshot
from engine.store.recovery_plan import RecoveryPlan
from viewer.assets import tr, words
from viewer.models.formats import clock, size
from viewer.sayings import engine_words
from viewer.widgets.ruler import RulerBand, RulerFlag, RulerGap, RulerView

MOST_HEADS = 400
"""Files whose first unit is asked for its time; of more files every n-th is."""

ROLES = {
    "wrote": "posLog2", "committed": "posLog", "flushed": "posLog3", "confirm": "posMin", "dispatched": "posBuild",
    "queue_max": "posBuild2", "index_end": "posBuild3", "min": "posMin",
}  # fmt: skip
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
}
FIELDS = {"queue_max": "queueMax", "index_end": "indexEnd"}
LOG_FLAGS = ("wrote", "committed", "confirm", "flushed")
BUILT_FLAGS = ("dispatched", "queue_max", "index_end")
TIME_FLAGS = ("physicMsgTimestamp", "logicsMsgTimestamp", "indexMsgTimestamp")


@dataclass(frozen=True, slots=True)
class Look:
    """One look:

    positions, the files as (start, end, name), and (store time ms, offset) of file heads and of the end.
    """

    positions: Positions
    files: tuple[tuple[int, int, str], ...]
    heads: tuple[tuple[int, int], ...]
    at: int


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

    @property
    def sentence(self) -> str:
        """How it is known, or why it is not."""
        return self.how or self.why


def look(store: StoreSnapshot, now: int) -> Look:
    """All positions at once; reads the disk."""
    found = positions(store)
    files = tuple((f.start_offset, f.end_offset, f.name) for f in store.log.files)
    return Look(found, files, tuple(_heads(store, found.wrote.offset or 0)), now)


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


def rows(seen: Look) -> list[PositionRow]:
    """Every position in the order of the list, what the checkpoint knows by time behind what the files know."""
    found = seen.positions
    wrote = found.wrote.offset
    made = [_row(key, getattr(found, key), ROLES[key], wrote) for key in (*LOG_FLAGS, *BUILT_FLAGS)]
    made += [_row(name, position, "posTime", wrote) for name, position in found.checkpoint.items()]
    return [*made, _row("min", found.min, "posMin", wrote)]


def _row(key: str, position: Position, role: str, wrote: int | None) -> PositionRow:
    behind = wrote - position.offset if wrote is not None and position.offset is not None and key != "min" else None
    return PositionRow(
        FIELDS.get(key, key), tr(NAMES.get(key, key)), role, position.offset, position.timestamp or None,
        engine_words(position.how or ""), engine_words(position.why or ""), behind,
    )  # fmt: skip


def ruler_view(seen: Look, plan: RecoveryPlan | None) -> RulerView:
    """The ruler of one look; with a plan also where recovery would begin and end."""
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
    return RulerView(seen.files, minimum, wrote, tuple(flags), _bands(found, minimum, wrote), _gaps(found, wrote))


def _time_flags(found: Positions) -> list[RulerFlag]:
    made = []
    for name in TIME_FLAGS:
        position = found.checkpoint.get(name)
        if position is not None and position.offset is not None:
            time = clock(position.timestamp)[:8] if position.timestamp else ""
            made.append(RulerFlag(tr(NAMES[name]), position.offset, "posTime", False, time))
    return made


def known_flushed(found: Positions) -> int | None:
    """Up to where the log is known to be on disk: as said by a clean close, else by the checkpoint's time."""
    if found.flushed.offset is not None:
        return found.flushed.offset
    checkpoint = found.checkpoint.get("physicMsgTimestamp")
    return checkpoint.offset if checkpoint is not None else None


def _bands(found: Positions, minimum: int, wrote: int) -> tuple[RulerBand, ...]:
    flushed = known_flushed(found)
    if flushed is None:
        return (RulerBand(minimum, wrote, "files", tr("in the files, flushed or not")),)
    edge = min(max(flushed, minimum), wrote)
    said = tr("on disk") if found.flushed.offset is not None else tr("on disk, says the checkpoint")
    return (
        RulerBand(minimum, edge, "disk", said),
        RulerBand(edge, wrote, "files", tr("in the files, flushed or not")),
    )


def _gaps(found: Positions, wrote: int) -> tuple[RulerGap, ...]:
    gaps = []
    flushed = known_flushed(found)
    if flushed is not None and flushed < wrote:
        gaps.append(RulerGap(flushed, wrote, tr("not known to be flushed {size}", size=size(wrote - flushed)), True))
    confirm = found.confirm.offset if found.confirm.offset is not None else wrote
    dispatched = found.dispatched.offset
    if dispatched is not None and dispatched < confirm:
        gaps.append(RulerGap(dispatched, confirm, tr("to dispatch {size}", size=size(confirm - dispatched)), False))
    return tuple(gaps)


def gap_list(seen: Look) -> list[tuple[str, str, int]]:
    """(name, role, bytes behind what was written) of everything that follows the log and is known."""
    found, wrote = seen.positions, seen.positions.wrote.offset
    if wrote is None:
        return []
    made = [(tr(NAMES[key]), ROLES[key], getattr(found, key).offset) for key in ("flushed", *BUILT_FLAGS)]
    made += [(tr(NAMES[key]), "posTime", found.checkpoint[key].offset) for key in TIME_FLAGS if key in found.checkpoint]
    return [(name, role, max(0, wrote - offset)) for name, role, offset in made if offset is not None]
