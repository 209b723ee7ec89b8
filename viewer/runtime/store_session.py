"""One open store as the window knows it: the snapshot, what is chosen, what was found, and whether it has grown.

The session asks on a timer and tells by signals; nothing in the engine calls up. Offsets in signals are objects: they
have 64 bits.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QTimer, Signal

from engine.errors import CannotRead
from viewer.look.assets import tr
from viewer.look.broken import Broken, broken_in
from viewer.look.formats import store_name
from viewer.look.topic_colours import TopicColours
from viewer.runtime.jobs import Jobs
from viewer.runtime.places import Place, Search
from viewer.runtime.position_source import TailWatch
from viewer.runtime.survey import Survey
from viewer.runtime.unread import UnreadLedger, still_unread

if TYPE_CHECKING:
    from engine.config import MessageStoreConfig
    from engine.inspection.snapshot import StoreSnapshot
    from engine.mapped.reading import Unread
    from viewer.runtime.place_search import Resolved

POLL_MS = 1000
FOUND_BELOW = "The store was found below"
SEVERITIES = ("error", "warn", "note", "chat")


@dataclass(frozen=True, slots=True)
class Refreshed:
    """A look at the directory: whether something changed, and whether files of the log are others by the same names;
    the log's end and number of files (None where that cannot be told), what still cannot be read, seconds it took.
    """

    changed: bool
    replaced: bool
    seen: tuple[int, int] | None
    still: tuple[Unread, ...]
    took: float


class StoreSession(QObject):
    """The store that is open. Made by :meth:`open`; ended by :meth:`close`."""

    surveyed = Signal()
    """``survey`` is there, or new."""
    grown = Signal()
    """Files or offsets changed since the last look; the snapshot is refreshed already."""
    selectionChanged = Signal(object)
    """Offset of the chosen unit, or None."""
    findingsChanged = Signal()
    """``findings`` or ``findings_complete`` changed."""
    incidentLooked = Signal()
    """``incident_look`` is another."""
    followingChanged = Signal(bool)
    replaced = Signal()
    """Files of the log are others by the same names: what was read of them is gone."""
    tailed = Signal()
    """The log, a queue or the index grew since the last short look; nothing was listed anew."""

    def __init__(
        self, snapshot: StoreSnapshot, jobs: Jobs, config: MessageStoreConfig | None = None, archive: Path | None = None
    ) -> None:
        super().__init__()
        self.archive = archive
        """What the store was unpacked from."""
        self.snapshot = snapshot
        self.config = config
        self.jobs = jobs
        self.unread = UnreadLedger(snapshot.path, self)
        """What could not be read of the store, by whatever look or job."""
        self.survey: Survey | None = None
        self.colours = TopicColours()
        """The colours of its topics, as long as it is open."""
        self.selection: int | None = None
        self.findings: tuple[Any, ...] = ()
        self.incident: Mapping[str, Any] | None = None
        """The ``incident`` of the last check's summary."""
        self.incident_look = ""
        """How much of it the views show: ``line``, ``card``, ``table``, or as they have room."""
        self._checked_all = False
        self._counted: tuple[tuple[int, int], ...] = ()
        self.counted_topics: dict[str, int] = {}
        """Bytes of each topic in the log, where somebody has counted its rows: all that tells of topics where a log
        has no queues beside it, by itself or in a store that lost them.
        """
        self.counted_units = 0
        self.following = False
        self.wished: tuple[int, str] | None = None
        """A unit's offset and the log's command that another view wants to be done with it there."""
        self._looking = self._again = False
        self._held: list[Callable[[], object]] | None = None
        self._closed = False
        self._seen: tuple[int, int] | None = None
        self.tail = TailWatch(self, self)
        self.tail.moved.connect(self.tailed)
        self._timer = QTimer(self)
        self._timer.setInterval(POLL_MS)
        self._timer.timeout.connect(self.look)
        jobs.looked.connect(self.note_unread)
        jobs.unread.connect(self.unread.note)
        jobs.worked.connect(self.look)
        self.unread.changed.connect(self.findingsChanged)

    @classmethod
    async def open(
        cls, path: Path, jobs: Jobs, config: MessageStoreConfig | None = None, archive: Path | None = None
    ) -> StoreSession:
        """Open the store at ``path`` off the loop; raises StoreError with what was found instead."""

        def work() -> StoreSnapshot:
            from engine.inspection import open_store

            return open_store(_straight(path), config)

        return cls(await jobs.quick(work), jobs, config, archive)

    @property
    def config_file(self) -> str:
        """Where the broker's configuration was read with which the store is looked at; empty without one."""
        return (self.config.file or "broker.conf") if self.config is not None else ""

    @property
    def path(self) -> Path:
        """The directory or file that is open."""
        return self.snapshot.path

    @property
    def shown_path(self) -> str:
        """Where the store is for a person: the archive that it was unpacked from, or its own path."""
        return str(self.archive or self.path)

    @property
    def name(self) -> str:
        """The store's short name, the same before and after the survey."""
        return self.archive.name if self.archive is not None else store_name(str(self.path))

    def hold(self) -> None:
        """Keep back what :meth:`later` is given, until :meth:`begin`."""
        self._held = []

    def later(self, work: Callable[[], object]) -> None:
        """Have ``work`` done when the first rows stand on the screen; at once where nothing is kept back."""
        if self._held is None:
            work()
        else:
            self._held.append(work)

    def begin(self) -> None:
        """Survey the store, do what was kept back, and watch the store from now on."""
        self._survey()
        held, self._held = self._held or [], None
        for work in held:
            work()
        self._timer.start()
        self.tail.start()

    def close(self) -> None:
        """Stop watching and close every file."""
        self._closed = True
        self._timer.stop()
        self.jobs.looked.disconnect(self.note_unread)
        self.jobs.unread.disconnect(self.unread.note)
        self.jobs.worked.disconnect(self.look)
        self.tail.close()
        self.snapshot.close()

    # ---- what is chosen ----------------------------------------------------------------------------------------------

    def select(self, offset: int | None) -> None:
        """Choose the unit at ``offset``, for every pane."""
        if offset != self.selection:
            self.selection = offset
            self.selectionChanged.emit(offset)

    async def resolve(self, meant: Search | Place) -> Resolved:
        """The place that a time, id or key means, or a place that the store has; raises NothingFound."""
        from viewer.runtime.place_search import checked, resolve

        if isinstance(meant, Search):
            return await self.jobs.quick(lambda: resolve(self.snapshot, meant))
        return await self.jobs.quick(lambda: checked(self.snapshot, meant))

    # ---- what was found ----------------------------------------------------------------------------------------------

    def set_findings(
        self, findings: Sequence[Any], *, complete: bool, incident: Mapping[str, Any] | None = None
    ) -> None:
        """What the check has found so far; ``complete`` where it looked at everything; its four answers."""
        self.incident = incident
        self.findings, self._checked_all = tuple(findings), complete and not self.unread
        self.findingsChanged.emit()

    def look_at_incident(self, look: str) -> None:
        """Show a line of it, the card, or also its table, in every view."""
        if look != self.incident_look:
            self.incident_look = look
            self.incidentLooked.emit()

    @property
    def findings_complete(self) -> bool:
        """Whether the check has looked at everything, and everything can be read."""
        return self._checked_all and not self.unread

    def note_damage(self, spans: Sequence[tuple[int, int]]) -> None:
        """Whoever counted the rows met these stretches (start, end) that are no units."""
        if tuple(spans) != self._counted:
            self._counted = tuple(spans)
            self.findingsChanged.emit()

    def note_topics(self, topics: Mapping[str, int], units: int) -> None:
        """Whoever counted the rows tells the bytes of each topic, and how many units there are."""
        if (dict(topics), units) != (self.counted_topics, self.counted_units):
            self.counted_topics, self.counted_units = dict(topics), units
            if self.survey is not None and self.survey.unqueued:
                self.surveyed.emit()

    @property
    def broken(self) -> tuple[Broken, ...]:
        """What of the log is missing, damaged or cannot be read, as far as anybody has seen."""
        files = [(one.start_offset, one.end_offset, one.path) for one in self.snapshot.log.files]
        return broken_in(files, self.findings, self._counted, {one.file for one in self.unread.list})

    @property
    def harmed(self) -> bool:
        """Whether something is lost or wrong already: what a start leaves alone is not whole then."""
        return bool(self.broken) or any(one.severity == "error" for one in self.findings)

    def counts(self) -> dict[str, int]:
        """Findings by severity; what cannot be read counts as an error, what is not decoded as a note."""
        found = dict.fromkeys(SEVERITIES, 0)
        found["error"], found["note"] = len(self.unread.unreadable), len(self.unread.undecoded)
        for finding in self.findings:
            if finding.severity in found:
                found[finding.severity] += 1
        return found

    # ---- growth ------------------------------------------------------------------------------------------------------

    def follow(self, on: bool) -> None:
        """Keep the end of the log in view, or not."""
        if on != self.following:
            self.following = on
            self.followingChanged.emit(on)

    def look(self, *, anyway: bool = False) -> None:
        """Look at the directory again, off the loop; ``grown`` follows where something changed or ``anyway``."""
        if self._looking or self._closed:
            self._again = self._again or anyway
            return
        self._looking = True
        noted = self.unread.list

        def work() -> Refreshed:
            return _refreshed(self.snapshot, noted, anew=anyway)

        def done(found: Refreshed) -> None:
            self._looking = False
            if self._closed:
                return
            readable = self.unread.keep((*found.still, *self.unread.list[len(noted) :]))
            changed, seen = found.changed or readable, found.seen
            self._timer.setInterval(max(POLL_MS, round(20_000 * found.took)))
            if found.replaced:
                self.set_findings((), complete=False)
                self.replaced.emit()
            if self._again:
                self._again = False
                self.look(anyway=True)
            before = self._seen
            if before is None and self.survey is not None and seen is not None:
                before = self.survey.max_offset, seen[1]
            moved = before is not None and seen is not None and seen != before
            self._seen = seen
            if changed or moved or anyway:
                self._survey()
                self.grown.emit()

        def failed(_error: Exception) -> None:
            self._looking = False

        self.jobs.read(work, done, failed)

    def note_unread(self) -> None:
        """A short look has ended: what it could not read stands in the door's ledger."""
        if not self._closed:
            self.unread.note((*self.snapshot.unread, *self.snapshot.reading.undecoded))

    def _from_archive(self, found: Survey) -> Survey:
        """What the copy in the cache is called and where it lies says nothing to anybody."""
        notes = tuple(note for note in found.notes if not note.startswith(FOUND_BELOW))
        return replace(
            found, name=self.name, path=self.shown_path, notes=(tr("unpacked from {name}", name=self.name), *notes)
        )

    def _survey(self) -> None:
        from viewer.runtime.survey import survey

        def done(found: Survey) -> None:
            if not self._closed:
                self.survey = self._from_archive(found) if self.archive is not None else found
                self.surveyed.emit()

        self.jobs.read(lambda: survey(self.snapshot), done)


def in_store(store: Path, target: Path) -> bool:
    """Whether ``target`` would lie in the directory of ``store``, or beside it where that is one file; asks the disk,
    since a link may lead there under another name. Whatever is written for a person is held to it first.
    """
    folder = store.resolve()
    return target.resolve().is_relative_to(folder if folder.is_dir() else folder.parent)


def _straight(path: Path) -> Path:
    """``path`` in full and without steps back, where that is the same place; reads the disk."""
    whole = path.absolute()
    straight = Path(os.path.normpath(whole))
    return straight if straight == whole or (straight.exists() and straight.samefile(whole)) else whole.resolve()


def _refreshed(store: StoreSnapshot, noted: tuple[Unread, ...], *, anew: bool) -> Refreshed:
    begun = time.monotonic()
    before = {file.start_offset: file.identity for file in store.log.files}
    changed = store.refresh()
    after = {file.start_offset: file.identity for file in store.log.files}
    replaced = any(after[start] not in (None, one) for start, one in before.items() if one and start in after)
    try:
        seen = store.log.max_offset, len(after)
    except CannotRead:
        seen = None
    return Refreshed(changed, replaced, seen, still_unread(noted, anew=anew), time.monotonic() - begun)
