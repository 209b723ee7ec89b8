"""The cluster that one window looks at: asked in the worker process, kept in a :class:`ClusterModel`.

It outlives panes, languages and stores.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol, cast

from PySide6.QtCore import QObject, Signal

from engine.cluster.state import ClusterState
from viewer.cluster.clients_work import Seen
from viewer.cluster.cluster_model import ClusterModel, Look, addresses_in
from viewer.cluster.lessons import LessonRun
from viewer.cluster.own_clients import OwnClients
from viewer.cluster.recording import Recorder, read_recording
from viewer.look.engine_words import engine_words
from viewer.runtime.lab_session import LabSession
from viewer.runtime.worker import Cancelled

READS = "viewer.cluster.work:watch"


Run = Callable[[Callable[[], object], Callable[[object], None], Callable[[Exception], None]], None]


class Works(Protocol):
    """Whoever does the reading: :class:`viewer.runtime.worker.Worker`."""

    def request(
        self,
        target: str,
        args: tuple[object, ...],
        items: Callable[[Look], None],
        told: Callable[[float, float | None, str], None],
        finished: Callable[[object, Exception | None], None],
    ) -> int:
        """Begin; gives the number to cancel it by."""
        ...

    def cancel(self, number: int) -> None:
        """Stop it."""
        ...


class ClusterWatch(QObject):
    """``looked()`` with each reading, ``changed()`` as it stands otherwise, ``asked(Question)`` once for each request
    that was not made before, ``said(words)`` where a recording cannot be written or read, ``told()`` as clients of
    lessons have done something.
    """

    looked = Signal()
    told = Signal()
    changed = Signal()
    asked = Signal(object)
    said = Signal(str)

    def __init__(self, worker: Works, run: Run, parent: QObject | None = None, lab: LabSession | None = None) -> None:
        """``run(work, done, failed)`` does something short off the loop."""
        super().__init__(parent)
        self.run = run
        self.model = ClusterModel()
        self._worker = worker
        self.lab = lab
        """The desk of this window: what it serves may be changed."""
        self.recorder: Recorder | None = None
        """Writes readings to a file while one is recorded."""
        self.own = OwnClients(self)
        self.own.saw.connect(self._saw)
        self.own.changed.connect(self._clients_changed)
        self.lessons: dict[str, LessonRun] = {}
        """Runs of lessons, by lesson."""
        self._number: int | None = None
        self._turn = 0

    @property
    def runs(self) -> bool:
        """Whether somebody is asked now and then."""
        return self._number is not None

    def begin(self, text: str) -> None:
        """Ask the name servers of ``text`` from now on. Raises :class:`NoAddress`."""
        addresses = addresses_in(text)
        self._stop()
        if ";".join(addresses) != self.model.address:
            self._end_lessons()
        self.model.begin(addresses)
        self._start()

    def end(self) -> None:
        """Ask nobody any more."""
        self._stop()
        self._end_lessons()
        self.model.end()
        self.changed.emit()

    def pause(self) -> None:
        """Ask nobody for a while, or go on."""
        if self.model.standing == "paused":
            self.again()
        elif self._number is not None:
            self._stop()
            self.model.pause()
            self.changed.emit()

    def again(self) -> None:
        """Ask anew, now."""
        if self.model.addresses:
            self._stop()
            self.model.begin(self.model.addresses)
            self._start()

    def set_every(self, seconds: float) -> None:
        """Ask each ``seconds`` from now on."""
        if seconds != self.model.every:
            self.model.every = seconds
            if self._number is not None:
                self.again()

    def _start(self) -> None:
        self._turn += 1
        turn = self._turn

        def came(look: Look) -> None:
            if turn == self._turn:
                self._take(look)

        def finished(_value: object, error: Exception | None) -> None:
            if turn == self._turn:
                self._number = None
                if error is not None and not isinstance(error, Cancelled):
                    self.model.fail(str(error))
                    self.changed.emit()

        self._number = self._worker.request(
            READS, (self.model.addresses, self.model.every), came, lambda *_: None, finished
        )
        self.changed.emit()

    def _stop(self) -> None:
        self._turn += 1
        if self._number is not None:
            self._worker.cancel(self._number)
            self._number = None

    def _take(self, look: Look) -> None:
        over = self.own.ended_brokers
        if over:
            left = tuple(one for one in look.state.brokers if one.name not in over)
            look = replace(look, state=replace(look.state, brokers=left))
        for question in self.model.take(look):
            self.asked.emit(question)
        if self.recorder is not None and look.state.brokers:
            self.recorder.add(look.state)
            self._write(self.recorder)
        self.looked.emit()

    def _saw(self, seen: Seen) -> None:
        self.model.deliveries.add(seen.handed, seen.shared, seen.dropped)
        if seen.whole:
            for one in self.lessons.values():
                one.record.take(seen.whole)
            self.told.emit()

    def _clients_changed(self) -> None:
        self.model.killed |= {one.client_id for one in self.own.rows.values() if one.standing == "killed"}

    def _end_lessons(self) -> None:
        for one in self.lessons.values():
            one.cancel(self.own)

    def close(self) -> None:
        """The window closes: nobody is asked, clients of one's own end, what was recorded is written before it goes."""
        self._stop()
        if self.recorder is not None:
            with contextlib.suppress(OSError):
                self.recorder.write()
            self.recorder = None
        self.own.close()

    # ---- recordings --------------------------------------------------------------------------------------------------

    def record(self, path: Path | None) -> None:
        """Write each reading to a new file from now on, with those that are kept; None: no more."""
        if self.recorder is not None:
            self._write(self.recorder)
        self.recorder = None
        if path is not None:
            recorder = self.recorder = Recorder(path, self.model.address)
            for state in self.model.kept:
                recorder.add(state)
            self._write(recorder)
        self.changed.emit()

    def _write(self, recorder: Recorder) -> None:
        def failed(error: Exception) -> None:
            self.said.emit(f"{recorder.path}: {engine_words(str(error))}")
            if self.recorder is recorder:
                self.recorder = None
            self.changed.emit()

        self.run(recorder.write, lambda _none: None, failed)

    def load(self, path: Path) -> None:
        """Show the recording in a file; nobody is asked any more."""

        def done(found: object) -> None:
            address, states = cast("tuple[str, list[ClusterState]]", found)
            self.record(None)
            self._stop()
            self.model.load(address, states, path.name)
            self.changed.emit()

        self.run(lambda: read_recording(path), done, lambda error: self.said.emit(engine_words(str(error))))
