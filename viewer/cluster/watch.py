"""Reads the cluster of one window in the worker process into a :class:`ClusterModel`.

It outlives panes, languages and stores.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from PySide6.QtCore import QObject, Signal

from engine.cluster.state import ClusterState
from engine.errors import UsageError
from engine.sentences import sentence
from viewer.cluster.access import NO_FILES, AccessFiles
from viewer.cluster.clients_process import ClientActivity
from viewer.cluster.cluster_model import ClusterModel, Reading, addresses_in
from viewer.cluster.lessons import LessonRun
from viewer.cluster.own_clients import OwnClients
from viewer.cluster.recording import Recorder, read_recording
from viewer.look.engine_words import engine_words
from viewer.runtime.lab_session import LabSession
from viewer.runtime.settings import Settings
from viewer.runtime.worker import Cancelled, Worker

WATCH_TARGET = "viewer.cluster.work:watch"


RunOffLoop = Callable[[Callable[[], object], Callable[[object], None], Callable[[Exception], None]], None]


class ClusterWatch(QObject):
    """Emits ``readingAdded()`` after each reading, ``changed()`` after other changes of state.

    ``requestKindAdded(request)`` is emitted once for each new kind of request, ``statusText(words)`` if a recording
    cannot be written or read, ``lessonEventsAdded()`` after events of a lesson's clients.
    """

    readingAdded = Signal()
    lessonEventsAdded = Signal()
    changed = Signal()
    requestKindAdded = Signal(object)
    statusText = Signal(str)

    def __init__(
        self,
        worker: Worker,
        run: RunOffLoop,
        parent: QObject | None = None,
        lab: LabSession | None = None,
        settings: Settings | None = None,
    ) -> None:
        """Run short work off the loop with ``run(work, done, failed)``."""
        super().__init__(parent)
        self.run = run
        self.model = ClusterModel()
        self._worker = worker
        self.lab = lab
        """Lab session of this window: the cluster that it serves may be changed."""
        self._settings = settings
        self._load_declarations()
        self.recorder: Recorder | None = None
        """Writes readings to a file during a recording."""
        self.own = OwnClients(self)
        self.own.activityReported.connect(self._on_activity)
        self.own.changed.connect(self._clients_changed)
        self.lessons: dict[str, LessonRun] = {}
        """Runs of lessons, by lesson."""
        self._number: int | None = None
        self._generation = 0

    @property
    def runs(self) -> bool:
        """Return True while readings are made."""
        return self._number is not None

    @property
    def access(self) -> AccessFiles:
        """Return the account and TLS files in use; the user's own clients use them, too."""
        return self.own.access

    def ask(
        self, target: str, arguments: tuple[object, ...], finished: Callable[[Any, Exception | None], None]
    ) -> None:
        """Run a function of the worker beside the readings; ``finished`` gets its value or its error."""

        def settle(value: object, error: Exception | None) -> None:
            finished(value, None if isinstance(error, Cancelled) else error)

        self._worker.request(target, arguments, lambda _items: None, lambda *_: None, settle)

    def ask_own(
        self, target: str, arguments: tuple[object, ...], finished: Callable[[Any, Exception | None], None]
    ) -> None:
        """Do the same for an act: it is refused unless the cluster is the user's own at this moment.

        A box can be open while the declaration is taken back, or while other brokers appear behind the address.
        """
        self._load_declarations()
        if self.model.is_own:
            self.ask(target, arguments, finished)
        else:
            finished(None, UsageError(sentence("this cluster is not declared to be yours any more: nothing was sent")))

    def _load_declarations(self) -> None:
        """Take over what was declared or taken back in any window."""
        if self._settings is not None:
            self.model.declared = self._settings.own_clusters

    def save_declarations(self) -> None:
        """Save what the user declared or took back."""
        if self._settings is not None:
            self._settings.own_clusters = self.model.declared
        self.changed.emit()

    def command_line(self) -> str:
        """Return the command that reads the same cluster."""
        return shlex.join(["storescope", "cluster", self.model.address, *self.access.options()])

    def begin(self, text: str, access: AccessFiles = NO_FILES) -> None:
        """Start reading from the name servers in ``text``. Raises :class:`NoAddress`."""
        addresses = addresses_in(text)
        self._stop()
        if ";".join(addresses) != self.model.address:
            self._end_lessons()
        self.own.access = access
        self.model.begin(addresses)
        self._start()

    def end(self) -> None:
        """Stop reading."""
        self._stop()
        self._end_lessons()
        self.model.end()
        self.changed.emit()

    def pause(self) -> None:
        """Pause reading, or continue."""
        if self.model.status == "paused":
            self.again()
        elif self._number is not None:
            self._stop()
            self.model.pause()
            self.changed.emit()

    def again(self) -> None:
        """Read again, now."""
        if self.model.addresses:
            self._stop()
            self.model.begin(self.model.addresses)
            self._start()

    def set_interval(self, interval_s: float) -> None:
        """Set the reading interval."""
        if interval_s != self.model.interval_s:
            self.model.interval_s = interval_s
            if self._number is not None:
                self.again()

    def _start(self) -> None:
        self._generation += 1
        generation = self._generation

        def came(reading: Reading) -> None:
            if generation == self._generation:
                self._take(reading)

        def finished(_value: object, error: Exception | None) -> None:
            if generation == self._generation:
                self._number = None
                if error is not None and not isinstance(error, Cancelled):
                    self.model.fail(engine_words(str(error)))
                    self.changed.emit()

        self._number = self._worker.request(
            WATCH_TARGET, (self.model.addresses, self.model.interval_s, self.access), came, lambda *_: None, finished
        )
        self.changed.emit()

    def _stop(self) -> None:
        self._generation += 1
        if self._number is not None:
            self._worker.cancel(self._number)
            self._number = None

    def _take(self, reading: Reading) -> None:
        ended_brokers = self.own.ended_brokers
        if ended_brokers:
            present_brokers = tuple(broker for broker in reading.state.brokers if broker.name not in ended_brokers)
            reading = replace(reading, state=replace(reading.state, brokers=present_brokers))
        self._load_declarations()
        for question in self.model.take(reading):
            self.requestKindAdded.emit(question)
        if self.recorder is not None and reading.state.brokers:
            self.recorder.add(reading.state)
            self._write(self.recorder)
        self.readingAdded.emit()

    def _on_activity(self, activity: ClientActivity) -> None:
        self.model.deliveries.add(activity.deliveries, activity.rebalances, activity.dropped)
        if activity.events:
            for lesson_run in self.lessons.values():
                lesson_run.record.take(activity.events)
            self.lessonEventsAdded.emit()

    def _clients_changed(self) -> None:
        self.model.lesson_brokers = {row.spec.group for row in self.own.rows.values() if row.spec.kind == "broker"}
        self.model.killed |= {
            client_row.client_id for client_row in self.own.rows.values() if client_row.status == "killed"
        }

    def _end_lessons(self) -> None:
        for lesson_run in self.lessons.values():
            lesson_run.cancel(self.own)

    def close(self) -> None:
        """Stop reading, end the user's own clients, and write the rest of a recording."""
        self._stop()
        if self.recorder is not None:
            with contextlib.suppress(OSError):
                self.recorder.write()
            self.recorder = None
        self.own.close()

    # ---- recordings --------------------------------------------------------------------------------------------------

    def record(self, path: Path | None) -> None:
        """Record the stored readings and all new ones to a file; None stops."""
        if self.recorder is not None:
            self._write(self.recorder)
        self.recorder = None
        if path is not None:
            recorder = self.recorder = Recorder(path, self.model.address)
            for state in self.model.readings:
                recorder.add(state)
            self._write(recorder)
        self.changed.emit()

    def _write(self, recorder: Recorder) -> None:
        def failed(error: Exception) -> None:
            self.statusText.emit(f"{recorder.path}: {engine_words(str(error))}")
            if self.recorder is recorder:
                self.recorder = None
            self.changed.emit()

        self.run(recorder.write, lambda _none: None, failed)

    def load(self, path: Path) -> None:
        """Show the recording in a file and stop reading."""

        def done(recording: object) -> None:
            address, states = cast("tuple[str, list[ClusterState]]", recording)
            self.record(None)
            self._stop()
            self.model.load(address, states, path.name)
            self.changed.emit()

        self.run(lambda: read_recording(path), done, lambda error: self.statusText.emit(engine_words(str(error))))
