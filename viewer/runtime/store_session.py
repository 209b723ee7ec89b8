"""An open store as the window knows it: the snapshot, the selection, the findings, and its growth.

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
from engine.ssh.address import is_ssh_address, parse_address
from viewer.look.assets import tr
from viewer.look.broken import UnreadableRange, broken_in
from viewer.look.engine_words import engine_words
from viewer.look.formats import store_name
from viewer.look.topic_colours import TopicColours
from viewer.runtime.command_line import command_line, with_config
from viewer.runtime.edit import Edit
from viewer.runtime.jobs import Jobs
from viewer.runtime.patch_bench import PatchBench
from viewer.runtime.places import Place, Search
from viewer.runtime.position_source import TailWatch
from viewer.runtime.survey import Survey
from viewer.runtime.unread import UnreadFiles, still_unread

if TYPE_CHECKING:
    from engine.config import MessageStoreConfig
    from engine.decoding.rules import DecodingRule
    from engine.inspection.snapshot import StoreSnapshot
    from engine.inspection.timeline.events import TimelineEvent
    from engine.inspection.timeline.timeline import Timeline
    from engine.mapped.reading import Unread
    from engine.patching.patches import Patch
    from viewer.runtime.place_search import ResolvedPlace

POLL_MS = 1000
FOUND_BELOW = "The store was found below"
SEVERITIES = ("error", "warn", "note", "chat")


@dataclass(frozen=True, slots=True)
class RefreshResult:
    """Result of listing the directory again."""

    changed: bool
    """True if files appeared, vanished, or changed their length, or if unread files can be read now."""
    replaced: bool
    """True if files of the log were replaced under the same names."""
    log_end: tuple[int, int] | None
    """End of the log, and its number of files; None if it is unknown."""
    still_unread: tuple[Unread, ...]
    seconds: float
    """How long it took."""


class StoreSession(QObject):
    """The store that is open. Made by :meth:`open`; ended by :meth:`close`."""

    surveyed = Signal()
    """``survey`` is there, or new."""
    logGrown = Signal()
    """Files or offsets changed since the last look; the snapshot is refreshed already."""
    selectionChanged = Signal(object)
    """Offset of the chosen unit, or None."""
    findingsChanged = Signal()
    """``findings`` or ``findings_complete`` changed."""
    incidentLookChanged = Signal()
    """``incident_look`` is another."""
    followingChanged = Signal(bool)
    replaced = Signal()
    """Files of the log are others by the same names: what was read of them is gone."""
    forgotten = Signal()
    """What was worked out before is of no use any more. Emitted before ``replaced``."""
    closing = Signal()
    """The store is being closed."""
    patchesEdited = Signal(object)
    """An :class:`~viewer.runtime.edit.Edit` of the staged patches that the window's undo takes back."""
    benchChanged = Signal()
    """Other patches are staged."""
    eventsChanged = Signal()
    """``timeline`` or ``chosen_event`` is another."""
    tailGrown = Signal()
    """The log, a queue or the index grew since the last short look; nothing was listed anew."""

    decodingChanged = Signal()
    """``decoding_rules`` are others."""
    decodingSaveRequested = Signal(object)
    """The user's new rules."""

    def __init__(
        self, snapshot: StoreSnapshot, jobs: Jobs, config: MessageStoreConfig | None = None, archive: Path | None = None
    ) -> None:
        super().__init__()
        self.archive = archive
        """What the store was unpacked from."""
        self.snapshot = snapshot
        self.patches: tuple[Patch, ...] = ()
        """Patches with which the store is shown; none: it is shown as it is."""
        self.bench = PatchBench(self.benchChanged.emit)
        """The patches that are staged for the store."""
        self.config = config
        self.jobs = jobs
        self.unread = UnreadFiles(snapshot.path, self)
        """What could not be read of the store, by whatever look or job."""
        self.survey: Survey | None = None
        self.colours = TopicColours()
        """The colours of its topics, as long as it is open."""
        self.selection: int | None = None
        self.findings: tuple[Any, ...] = ()
        self.incident: Mapping[str, Any] | None = None
        """The ``incident`` of the last check's summary."""
        self.timeline: Timeline | None = None
        self._timeline_end: tuple[int, int] | None = None
        """The events of the store's past; None while nobody has read them."""
        self.chosen_event: TimelineEvent | None = None
        self.decoding_rules: tuple[DecodingRule, ...] = ()
        """The rules by which bodies are decoded, as the settings keep them for this store."""
        self.body_fields: dict[str, None] = {}
        """Fields of decoded bodies that were shown, in order."""
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
        self._previous_snapshot: StoreSnapshot | None = None
        """The snapshot before the last :meth:`read_anew`: reads of it may still be under way."""
        self.tail = TailWatch(self, self)
        self.tail.moved.connect(self.tailGrown)
        self._timer = QTimer(self)
        self._timer.setInterval(POLL_MS)
        self._timer.timeout.connect(self.look)
        jobs.storeRead.connect(self.note_unread)
        jobs.unreadReported.connect(self.unread.note)
        jobs.workerFinished.connect(self.look)
        self.unread.changed.connect(self.findingsChanged)

    @classmethod
    async def open(
        cls, path: Path, jobs: Jobs, config: MessageStoreConfig | None = None, archive: Path | None = None
    ) -> StoreSession:
        """Open the store at ``path`` off the loop; raises StoreError with what was found instead."""

        def work() -> StoreSnapshot:
            from engine.inspection import open_store

            return open_store(straight_path(path), config)

        return cls(await jobs.quick(work), jobs, config, archive)

    @property
    def closed(self) -> bool:
        """True after :meth:`close`."""
        return self._closed

    @property
    def config_file(self) -> str:
        """Path of the broker's configuration used for this store; empty without one."""
        return (self.config.file or "broker.conf") if self.config is not None else ""

    def command_line(self, words: Sequence[str]) -> str:
        """Return the command line of these words; ``STORE`` among them is this store."""
        return command_line(words, self.path, self.config)

    def with_config(self, command: str) -> str:
        """Return a whole command of the engine's with the options of this store's configuration."""
        return with_config(command, self.path, self.config)

    @property
    def path(self) -> Path:
        """The directory or file that is open."""
        return self.snapshot.path

    @property
    def shown_path(self) -> str:
        """Path to show to the user: the archive that it was unpacked from, or its own path."""
        return str(self.archive or self.path)

    @property
    def title(self) -> str:
        """:attr:`shown_path`, and that it is a capsule if it is one."""
        if self.snapshot.capsule is not None:
            return tr("{path} (capsule, without bodies)", path=self.shown_path)
        return self.shown_path

    @property
    def name(self) -> str:
        """The store's short name, the same before and after the survey."""
        return self.archive.name if self.archive is not None else store_name(str(self.path))

    def hold(self) -> None:
        """Postpone the work given to :meth:`later` until :meth:`begin`."""
        self._held = []

    def later(self, work: Callable[[], object]) -> None:
        """Run ``work`` when the first rows are on the screen; at once if nothing is postponed."""
        if self._held is None:
            work()
        else:
            self._held.append(work)

    def begin(self) -> None:
        """Survey the store, run the postponed work, and watch the store from now on."""
        self._survey()
        postponed, self._held = self._held or [], None
        for work in postponed:
            work()
        self._timer.start()
        self.tail.start()

    def close(self) -> None:
        """Stop watching and close every file."""
        self.closing.emit()
        self._closed = True
        self.jobs.patched = self.jobs.decoding_rules = None
        self._timer.stop()
        self.jobs.storeRead.disconnect(self.note_unread)
        self.jobs.unreadReported.disconnect(self.unread.note)
        self.jobs.workerFinished.disconnect(self.look)
        self.tail.close()
        self.snapshot.close()
        if self._previous_snapshot is not None:
            self._previous_snapshot.close()

    # ---- what is chosen ----------------------------------------------------------------------------------------------

    def select(self, offset: int | None) -> None:
        """Choose the unit at ``offset``, for every pane."""
        if offset != self.selection:
            self.selection = offset
            self.selectionChanged.emit(offset)

    async def resolve(self, meant: Search | Place) -> ResolvedPlace:
        """The place that a time, id or key means, or a place that the store has; raises NothingFound."""
        from viewer.runtime.place_search import checked, resolve

        if isinstance(meant, Search):
            return await self.jobs.quick(lambda: resolve(self.snapshot, meant))
        return await self.jobs.quick(lambda: checked(self.snapshot, meant))

    # ---- what was found ----------------------------------------------------------------------------------------------

    def set_findings(
        self, findings: Sequence[Any], *, complete: bool, incident: Mapping[str, Any] | None = None
    ) -> None:
        """Take the findings so far; ``complete`` if everything was checked; ``incident`` has the four answers."""
        self.incident = incident
        self.findings, self._checked_all = tuple(findings), complete and not self.unread
        self.findingsChanged.emit()

    @property
    def log_end(self) -> tuple[int, int] | None:
        """End of the log (bytes) and number of its files when they were last looked at; None before."""
        return self._seen

    @property
    def timeline_is_current(self) -> bool:
        """True if the events are known, and the log has not grown since they were read."""
        return self.timeline is not None and self._timeline_end == self._seen

    def set_timeline(self, timeline: Timeline | None, log_end: tuple[int, int] | None = None) -> None:
        """Take the events of the store's past that a view has read, and :attr:`log_end` before that; None if they are
        known no more.
        """
        events = timeline.events if timeline is not None else []
        self.timeline, self._timeline_end = timeline, log_end
        self.chosen_event = next((event for event in events if event == self.chosen_event), None)
        self.eventsChanged.emit()

    def choose_event(self, event: TimelineEvent) -> None:
        """Choose an event, for every view that shows it."""
        if event is not self.chosen_event:
            self.chosen_event = event
            self.eventsChanged.emit()

    def look_at_incident(self, look: str) -> None:
        """Show a line of it, the card, or also its table, in every view."""
        if look != self.incident_look:
            self.incident_look = look
            self.incidentLookChanged.emit()

    def use_decoding_rules(self, rules: Sequence[DecodingRule]) -> None:
        """Decode bodies by ``rules`` from now on; does not save them."""
        is_first = self.jobs.decoding_rules is None
        if is_first or tuple(rules) != self.decoding_rules:
            self.decoding_rules = self.jobs.decoding_rules = tuple(rules)
            self.body_fields.clear()
            if rules or not is_first:
                self.decodingChanged.emit()

    def set_decoding_rules(self, rules: Sequence[DecodingRule]) -> None:
        """Decode bodies by the user's ``rules``, and save them outside of the store."""
        self.use_decoding_rules(rules)
        self.decodingSaveRequested.emit(self.decoding_rules)

    @property
    def findings_complete(self) -> bool:
        """True if the check looked at everything, and everything can be read."""
        return self._checked_all and not self.unread

    def note_damage(self, spans: Sequence[tuple[int, int]]) -> None:
        """Take the damaged ranges (start, end) that a count of the rows met."""
        if tuple(spans) != self._counted:
            self._counted = tuple(spans)
            self.findingsChanged.emit()

    def note_topics(self, topics: Mapping[str, int], units: int) -> None:
        """Take the bytes of each topic and the number of units from a count of the rows."""
        if (dict(topics), units) != (self.counted_topics, self.counted_units):
            self.counted_topics, self.counted_units = dict(topics), units
            if self.survey is not None and self.survey.unqueued:
                self.surveyed.emit()

    @property
    def broken(self) -> tuple[UnreadableRange, ...]:
        """Parts of the log that are missing, damaged or unreadable, as far as is known."""
        files = [(file.start_offset, file.end_offset, file.path) for file in self.snapshot.log.files]
        return broken_in(files, self.findings, self._counted, {file.file for file in self.unread.list})

    @property
    def harmed(self) -> bool:
        """True if something is lost or wrong already, so the store is damaged even where a start changes nothing."""
        return bool(self.broken) or any(finding.severity == "error" for finding in self.findings)

    @property
    def writing_refusal(self) -> str:
        """Why nothing is written into this store or a copy of it now, in words; "" if it may be."""
        if self.patches:
            return tr("The store is shown as patched: go back to the store as it is first.")
        return engine_words(self.snapshot.writing_refusal)

    @property
    def undecoded_log(self) -> str:
        """Why the messages of the store, or some of them, cannot be shown; "" if the log is decoded."""
        part = self.snapshot.undecoded_part("log")
        return "" if part is None else engine_words(part.reason("log"))

    def counts(self) -> dict[str, int]:
        """Findings by severity; what cannot be read counts as an error, what is not decoded as a note."""
        counts = dict.fromkeys(SEVERITIES, 0)
        counts["error"], counts["note"] = len(self.unread.unreadable), len(self.unread.undecoded)
        for finding in self.findings:
            if finding.severity in counts:
                counts[finding.severity] += 1
        return counts

    # ---- growth ------------------------------------------------------------------------------------------------------

    def follow(self, on: bool) -> None:
        """Keep the end of the log in view, or not."""
        if on != self.following:
            self.following = on
            self.followingChanged.emit(on)

    def look(self, *, anyway: bool = False) -> None:
        """List the directory again, off the loop. Emits ``logGrown`` if something changed, with ``anyway`` always."""
        if self._looking or self._closed:
            self._again = self._again or anyway
            return
        self._looking = True
        noted = self.unread.list

        def work() -> RefreshResult:
            return _refreshed(self.snapshot, noted, anew=anyway)

        def done(refreshed: RefreshResult) -> None:
            self._looking = False
            if self._closed:
                return
            self.unread.keep((*refreshed.still_unread, *self.unread.list[len(noted) :]))
            log_end = refreshed.log_end
            self._timer.setInterval(max(POLL_MS, round(20_000 * refreshed.seconds)))
            if refreshed.replaced:
                self.set_findings((), complete=False)
                self.set_timeline(None)
                self.forgotten.emit()
                self.replaced.emit()
            if self._again:
                self._again = False
                self.look(anyway=True)
            old_end = self._seen
            if old_end is None and self.survey is not None and log_end is not None:
                old_end = self.survey.max_offset, log_end[1]
            moved = old_end is not None and log_end is not None and log_end != old_end
            self._seen = log_end
            if refreshed.changed or moved or anyway:
                self._survey()
                self.logGrown.emit()

        def failed(_error: Exception) -> None:
            self._looking = False

        self.jobs.read(work, done, failed)

    def stage(self, patches: Sequence[Patch], title: str) -> None:
        """Add patches of the user's to the staged ones. The window's undo takes them back."""
        bench = self.bench
        old_state = bench.state
        bench.add(patches, title)
        self.patchesEdited.emit(Edit(title, old_state, bench.state, lambda state: bench.put(state, title)))

    async def read_anew(self, patches: Sequence[Patch] = ()) -> None:
        """Open every file again, because bytes were changed under the same names, and let every view read them.

        With ``patches`` everything is shown as they would leave it; the files stay as they are. Raises StoreError,
        OSError; then everything stays as it was.
        """
        path, config, shown_patches = self.path, self.config, tuple(patches)

        def work() -> StoreSnapshot:
            from engine.inspection import open_store

            return open_store(path, config, shown_patches)

        snapshot = await self.jobs.quick(work)
        if self._closed:
            snapshot.close()
            return
        if self._previous_snapshot is not None:
            self._previous_snapshot.close()
        self._previous_snapshot, self.snapshot = self.snapshot, snapshot
        self.patches = shown_patches
        self.jobs.patched = (path, shown_patches) if shown_patches else None
        self._counted, self._seen = (), None
        self.tail.read_anew()
        self.set_findings((), complete=False)
        self.set_timeline(None)
        self.forgotten.emit()
        self.replaced.emit()
        self.look(anyway=True)

    def note_unread(self) -> None:
        """Take what a finished short look could not read."""
        if not self._closed:
            self.unread.note((*self.snapshot.unread, *self.snapshot.reading.undecoded))

    def _from_archive(self, survey: Survey) -> Survey:
        """Replace the name and path of the unpacked copy, which mean nothing to the user, by the archive's."""
        notes = tuple(note for note in survey.notes if not note.startswith(FOUND_BELOW))
        return replace(
            survey, name=self.name, path=self.shown_path, notes=(tr("unpacked from {name}", name=self.name), *notes)
        )

    def _survey(self) -> None:
        from viewer.runtime.survey import survey

        def done(survey: Survey) -> None:
            if not self._closed:
                self.survey = self._from_archive(survey) if self.archive is not None else survey
                self.surveyed.emit()

        self.jobs.read(lambda: survey(self.snapshot), done)


def in_store(store: Path, target: Path) -> bool:
    """Return whether ``target`` would lie in the directory of ``store``, or beside it if that is one file. Resolves
    links. Checked before anything is written for a user.
    """
    if is_ssh_address(store):
        return False
    folder = store.resolve()
    return target.resolve().is_relative_to(folder if folder.is_dir() else folder.parent)


def straight_path(path: Path) -> Path:
    """Return ``path`` absolute and without ``..``, if that is the same place; reads the disk. Raises
    :class:`UsageError` for an address of another machine that is none.
    """
    if is_ssh_address(path):
        return parse_address(path).root
    absolute = path.absolute()
    straight = Path(os.path.normpath(absolute))
    return (
        straight if straight == absolute or (straight.exists() and straight.samefile(absolute)) else absolute.resolve()
    )


def _refreshed(store: StoreSnapshot, noted: tuple[Unread, ...], *, anew: bool) -> RefreshResult:
    begun = time.monotonic()
    old_identities = {file.start_offset: file.identity for file in store.log.files}
    changed = store.refresh()
    new_identities = {file.start_offset: file.identity for file in store.log.files}
    replaced = any(
        new_identities[start] not in (None, identity)
        for start, identity in old_identities.items()
        if identity and start in new_identities
    )
    try:
        log_end = store.log.max_offset, len(new_identities)
    except CannotRead:
        log_end = None
    unread = still_unread(noted, anew=anew, store_reading=store.reading)
    changed = changed or any(Path(item.file).exists() for item in noted if item not in unread)
    return RefreshResult(changed, replaced, log_end, unread, time.monotonic() - begun)
