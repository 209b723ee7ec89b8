"""The state of the Positions view: the shown reading, its rows, the slaves, and pending requests. No Qt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.replication.master import SlavePosition
from viewer.look.assets import tr, tr_plural
from viewer.look.formats import clock, full_moment, size
from viewer.pane.position_facts import PositionRow, rows
from viewer.runtime import places
from viewer.runtime.position_reading import PositionReading, gaps_of
from viewer.widgets.facts import Fact
from viewer.widgets.table_state import TableState

if TYPE_CHECKING:
    from viewer.look.broken import UnreadableRange
    from viewer.runtime.live_history import LiveHistory

SLAVES_INTERVAL_S = 1.0
"""Seconds between two requests for a broker's slaves."""
MAX_BROKEN = 6
"""Maximum number of broken ranges of the log that are listed beside the ruler."""


@dataclass
class PositionsModel:
    """Positions of one store, at rest or live."""

    reading: PositionReading | None = None
    """The shown reading: the newest, or that of an earlier time."""
    rows: list[PositionRow] = field(default_factory=list)
    live: bool = False
    """True if the store is written, or was since it was opened, or if a recording is shown."""
    is_stale: bool = False
    """True if the store has grown while the view was hidden."""
    is_reading: bool = False
    """True while a reading of a store at rest is awaited."""
    slaves: tuple[SlavePosition, ...] = ()
    _slaves_asked_s: float = 0.0
    _asks_slaves: bool = False

    def forget_store(self) -> None:
        """Forget everything, for another store. It is at rest until it grows."""
        self.reading, self.rows, self.live, self.is_reading = None, [], False, False
        self.slaves, self._slaves_asked_s, self._asks_slaves = (), 0.0, False

    # ---- readings ----------------------------------------------------------------------------------------------------

    def grow(self, *, visible: bool) -> bool:
        """Note that the store has grown. Return True if it must be read now; a live store is read anyway."""
        self.is_stale = not visible
        return visible and not self.live

    def begin_reading(self) -> bool:
        """Begin a reading. Return False if one is awaited already."""
        if self.is_reading:
            return False
        self.is_reading = True
        return True

    def end_reading(self) -> None:
        """Note that the reading was taken or has failed."""
        self.is_reading = False

    def take(self, reading: PositionReading, history: LiveHistory) -> bool:
        """Show a reading; ``history`` is what moved before it. Return True if it is the first one."""
        is_first, self.reading = self.reading is None, reading
        self.rows = rows(reading, history if self.live else None)
        return is_first

    def index_of(self, key: str) -> int | None:
        """Return the row of a position. None if it is not listed."""
        return next((number for number, row in enumerate(self.rows) if row.key == key), None)

    # ---- slaves ------------------------------------------------------------------------------------------------------

    def begin_slaves(self, reading: PositionReading, now_s: float) -> int | None:
        """Return the end of the log if the broker is to be asked for its slaves now, else None."""
        wrote = reading.positions.wrote.offset
        if self._asks_slaves or reading.lab or not wrote or now_s - self._slaves_asked_s < SLAVES_INTERVAL_S:
            return None
        self._asks_slaves, self._slaves_asked_s = True, now_s
        return wrote

    def take_slaves(self, slaves: tuple[SlavePosition, ...]) -> None:
        """Store the slaves that the broker reported."""
        self.slaves, self._asks_slaves = slaves, False

    # ---- what the view says ------------------------------------------------------------------------------------------

    def table_state(self) -> TableState | None:
        """Return the message of the list of positions: loading, error, empty. None if its rows need no message."""
        if self.reading is None or self.reading.files:
            return None
        return TableState("empty", tr("The store has no commit log."))

    def head(self, *, at_end: bool) -> tuple[str, str]:
        """Return title and note of the list; ``at_end`` is False while a live store is shown at an earlier time."""
        title = tr("Now") if at_end or not self.live else tr("At that time")
        return title, full_moment(self.reading.time_ms) if self.reading is not None else ""

    def status(self) -> str:
        """Return the end of the log and how far dispatch is behind, for the status bar."""
        positions = self.reading.positions if self.reading is not None else None
        if self.reading is None or positions is None or positions.wrote.offset is None:
            return ""
        parts = [tr_plural("{n:,} byte written", "{n:,} bytes written", n=positions.wrote.offset)]
        if positions.dispatched.offset is not None:
            lag = gaps_of(self.reading).dispatch or 0
            parts.append(tr("dispatched to the end") if lag <= 0 else tr("dispatch is {size} behind", size=size(lag)))
        parts.append(tr("as of {time}", time=clock(self.reading.time_ms)[:8]))
        return " · ".join(parts)

    def missing_facts(self, broken: Sequence[UnreadableRange]) -> list[Fact]:
        """Return the positions that the files do not contain, and the first broken ranges of the log."""
        facts = unknown_facts(self.rows)
        facts += [
            Fact(tr("commit log"), broken_range.words, code=False, place=places.log(broken_range.start), role="error")
            for broken_range in broken[:MAX_BROKEN]
        ]
        if len(broken) > MAX_BROKEN:
            facts.append(Fact("", tr("and {n:,} more", n=len(broken) - MAX_BROKEN), code=False))
        if not facts and self.rows:
            return [Fact("", tr("The files show every position."), code=False)]
        return facts


def row_words(row: PositionRow | None) -> str:
    """Return the source of a position and the time that it belongs to."""
    if row is None:
        return ""
    when = f" · {full_moment(row.timestamp)}" if row.timestamp else ""
    return f"{row.name}: {row.sentence}{when}"


def unknown_facts(rows: Sequence[PositionRow]) -> list[Fact]:
    """Return the positions that files do not contain, with the reason; those with the same reason share one line."""
    by_reason: dict[str, list[str]] = {}
    for row in rows:
        if row.offset is None:
            by_reason.setdefault(row.why, []).append(row.name)
    return [
        Fact(names[0], why, code=False) if len(names) == 1 else Fact("", f"{', '.join(names)}: {why}", code=False)
        for why, names in by_reason.items()
    ]
