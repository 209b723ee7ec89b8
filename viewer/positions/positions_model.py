"""The state of the positions view: the shown look, its rows, who follows the log, and what is awaited. No Qt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.replication.master import SlavePosition
from viewer.look.assets import tr, tr_plural
from viewer.look.formats import clock, full_moment, size
from viewer.pane.position_facts import PositionRow, rows
from viewer.runtime import places
from viewer.runtime.position_look import Look, gaps_of
from viewer.widgets.facts import Fact
from viewer.widgets.table_state import TableState

if TYPE_CHECKING:
    from viewer.look.broken import Broken
    from viewer.runtime.live_history import LiveHistory

SLAVES_EVERY = 1.0
"""Seconds from one question to a broker who follows it to the next."""
MOST_BROKEN = 6
"""Ranges of the log that are not whole, listed beside the ruler."""


@dataclass
class PositionsModel:
    """Positions of one store, at rest or live."""

    look: Look | None = None
    """The look that is shown: the newest one, or that of an earlier time."""
    rows: list[PositionRow] = field(default_factory=list)
    live: bool = False
    """True if somebody writes the store, or did since it was opened, or a recording is shown."""
    is_stale: bool = False
    """True if the store has grown while the view was hidden."""
    looking: bool = False
    """True while a look at a store at rest is awaited."""
    slaves: tuple[SlavePosition, ...] = ()
    _slaves_asked_s: float = 0.0
    _asks_slaves: bool = False

    def forget_store(self) -> None:
        """Forget everything, for another store. It is at rest until it grows."""
        self.look, self.rows, self.live, self.looking = None, [], False, False
        self.slaves, self._slaves_asked_s, self._asks_slaves = (), 0.0, False

    # ---- looks -------------------------------------------------------------------------------------------------------

    def grow(self, *, visible: bool) -> bool:
        """Note that the store has grown. Return True if it is to be looked at now; a live store is looked at anyway."""
        self.is_stale = not visible
        return visible and not self.live

    def begin_look(self) -> bool:
        """Begin a look. Return False if one is awaited already."""
        if self.looking:
            return False
        self.looking = True
        return True

    def end_look(self) -> None:
        """Note that the look has come, or has failed."""
        self.looking = False

    def take(self, look: Look, history: LiveHistory) -> bool:
        """Show a look; ``history`` is what moved before it. Return True if it is the first one."""
        is_first, self.look = self.look is None, look
        self.rows = rows(look, history if self.live else None)
        return is_first

    def index_of(self, key: str) -> int | None:
        """Return the row of a position. None if it is not listed."""
        return next((number for number, row in enumerate(self.rows) if row.key == key), None)

    # ---- slaves ------------------------------------------------------------------------------------------------------

    def begin_slaves(self, look: Look, now_s: float) -> int | None:
        """Return the end of the log for a question who follows it. None if it is too early to ask again, or useless."""
        wrote = look.positions.wrote.offset
        if self._asks_slaves or look.lab or not wrote or now_s - self._slaves_asked_s < SLAVES_EVERY:
            return None
        self._asks_slaves, self._slaves_asked_s = True, now_s
        return wrote

    def take_slaves(self, slaves: tuple[SlavePosition, ...]) -> None:
        """Note who follows the log."""
        self.slaves, self._asks_slaves = slaves, False

    # ---- what the view says ------------------------------------------------------------------------------------------

    def table_state(self) -> TableState | None:
        """Return what the list of positions says. None if its rows say all."""
        if self.look is None or self.look.files:
            return None
        return TableState("empty", tr("The store has no commit log."))

    def head(self, *, at_end: bool) -> tuple[str, str]:
        """Return title and note of the list; ``at_end`` is False while a live store is shown at an earlier time."""
        title = tr("Now") if at_end or not self.live else tr("At that time")
        return title, full_moment(self.look.time_ms) if self.look is not None else ""

    def status(self) -> str:
        """Return the end of the log and how far dispatch is behind, for the status bar."""
        positions = self.look.positions if self.look is not None else None
        if self.look is None or positions is None or positions.wrote.offset is None:
            return ""
        parts = [tr_plural("{n:,} byte written", "{n:,} bytes written", n=positions.wrote.offset)]
        if positions.dispatched.offset is not None:
            lag = gaps_of(self.look).dispatch or 0
            parts.append(tr("dispatched to the end") if lag <= 0 else tr("dispatch is {size} behind", size=size(lag)))
        parts.append(tr("as of {time}", time=clock(self.look.time_ms)[:8]))
        return " · ".join(parts)

    def missing_facts(self, broken: Sequence[Broken]) -> list[Fact]:
        """Return the positions that the files do not tell, and the first of the log's broken ranges."""
        facts = unknown_facts(self.rows)
        facts += [
            Fact(tr("commit log"), broken_range.words, code=False, place=places.log(broken_range.start), role="error")
            for broken_range in broken[:MOST_BROKEN]
        ]
        if len(broken) > MOST_BROKEN:
            facts.append(Fact("", tr("and {n:,} more", n=len(broken) - MOST_BROKEN), code=False))
        if not facts and self.rows:
            return [Fact("", tr("The files show every position."), code=False)]
        return facts


def row_words(row: PositionRow | None) -> str:
    """Return how a position is known, and of what time it is."""
    if row is None:
        return ""
    when = f" · {full_moment(row.timestamp)}" if row.timestamp else ""
    return f"{row.name}: {row.sentence}{when}"


def unknown_facts(rows: Sequence[PositionRow]) -> list[Fact]:
    """The positions that files do not tell, with the reason; those with the same reason are one line."""
    by_reason: dict[str, list[str]] = {}
    for row in rows:
        if row.offset is None:
            by_reason.setdefault(row.why, []).append(row.name)
    return [
        Fact(names[0], why, code=False) if len(names) == 1 else Fact("", f"{', '.join(names)}: {why}", code=False)
        for why, names in by_reason.items()
    ]
