"""Commands of a recovery plan: it is saved, or tried on a copy of the store. The store itself is never written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from engine.errors import StoreError
from engine.store.recovery.plan import RecoveryPlan
from viewer.findings.recovery_trial import Trial, again, save_plan, trial
from viewer.look.assets import tr
from viewer.look.engine_words import engine_words
from viewer.pane.target_folder import ask_target_folder
from viewer.runtime.jobs import Cancelled
from viewer.runtime.recovery_plan import recovery_of
from viewer.runtime.store_session import StoreSession, in_store
from viewer.widgets.basics import Button

if TYPE_CHECKING:
    from viewer.runtime.control import Control


class RecoveryCommands(QObject):
    """The two buttons.

    Emits ``statusText(str)`` for the status bar, ``requested()`` if a plan is needed, ``trialDone(Trial)`` with the
    result of recovery on a copy, ``changed()`` when other commands become possible.
    """

    statusText = Signal(str)
    requested = Signal()
    trialDone = Signal(object)
    changed = Signal()

    def __init__(self, panel: QWidget) -> None:
        super().__init__(panel)
        self._panel = panel
        self._session: StoreSession | None = None
        self._plan: RecoveryPlan | None = None
        self._after_plan: Callable[[], None] | None = None
        self.trial: Trial | None = None
        self.running = False
        self.save = Button(tr("Save plan…"))
        self.save.setObjectName("recovery.save")
        self.save.setAccessibleName(tr("Save plan…"))
        self.save.clicked.connect(self.ask_save)
        self.attempt = Button(tr("Try on a copy…"), "primary")
        self.attempt.setObjectName("recovery.try")
        self.attempt.setAccessibleName(tr("Try on a copy…"))
        self.attempt.setToolTip(
            tr("Copies what recovery needs into a new directory, recovers it there and compares it with the plan.")
        )
        self.attempt.clicked.connect(self.ask_copy)
        self._able()

    def show_plan(self, session: StoreSession | None, plan: RecoveryPlan | None) -> None:
        """Show another plan, or none. A request that came before there was a plan is run now."""
        if session is not self._session:
            self._after_plan = self.trial = None
        self._session, self._plan = session, plan
        self._able()
        if plan is not None and self._after_plan is not None:
            after_plan, self._after_plan = self._after_plan, None
            after_plan()

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the commands that can run now."""
        commands: dict[str, Callable[[], object]] = {"recovery.save": self.ask_save, "recovery.try": self.ask_copy}
        if self.trial is not None and not self.running:
            commands["recovery.again"] = self.again
        return commands

    @property
    def _refusal(self) -> str:
        """The reason why no copy of this store can be recovered here."""
        return self._session.writing_refusal if self._session is not None else ""

    def _able(self) -> None:
        self.save.setVisible(self._plan is not None)
        self.attempt.setVisible(self._plan is not None and not self._refusal)
        self.attempt.setEnabled(self._plan is not None and self._plan.will_start and not self.running)

    def ask_save(self) -> None:
        """Ask where the plan shall be written."""
        if self._later(self.ask_save):
            return
        dialog = self._dialog(tr("Save the recovery plan"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilter("JSON (*.json)")
        dialog.selectFile("recovery-plan.json")
        dialog.fileSelected.connect(lambda name: self.save_to(Path(name)))
        dialog.open()

    def ask_copy(self) -> None:
        """Ask where the copy shall be made; says why where a broker would not start."""
        if self.running or self._later(self.ask_copy):
            return
        if self._plan is not None and not self._plan.will_start:
            self.statusText.emit(tr("A broker would not start here: there is nothing to try."))
            return
        if self._refusal:
            self.statusText.emit(tr("Nothing can be tried on a copy: {why}", why=self._refusal))
            return
        session = self._session
        if session is not None:
            ask_target_folder(
                self._panel,
                "recovery.target",
                tr("Folder for the copy"),
                tr("Try on a copy"),
                "copy",
                session.path,
                session.jobs.read,
                self.try_in,
            )

    def _later(self, work: Callable[[], None]) -> bool:
        """Return whether ``work`` has to wait for a plan, which is then requested."""
        if self._plan is not None:
            return False
        self._after_plan = work
        self.requested.emit()
        return True

    def _dialog(self, title: str) -> QFileDialog:
        dialog = QFileDialog(self._panel, title, str(Path.home()))
        dialog.setObjectName("recovery.dialog")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        return dialog

    def save_to(self, target: Path) -> None:
        """Write the plan as one JSON record; not into the store."""
        session, plan = self._session, self._plan
        if session is None or plan is None:
            return
        job = recovery_of(session)
        other_start, written = job.other_start, job.written
        if in_store(session.path, target):
            self.statusText.emit(tr("Nothing is written into the store: choose another folder."))
            return
        session.jobs.read(
            lambda: save_plan(plan, other_start, written, target),
            lambda _none: self.statusText.emit(tr("Recovery plan written to {path}", path=str(target))),
            lambda error: self.statusText.emit(f"{target}: {engine_words(str(error))}"),
        )

    def try_in(self, target: Path) -> None:
        """Copy, recover and compare: a job that can be stopped."""
        session, plan = self._session, self._plan
        if session is None or plan is None or self.running:
            return
        path, config, copy = session.path, session.config, target.absolute()
        self._begin(session, lambda control: trial(control, path, config, plan, copy))

    def again(self) -> None:
        """Recover the copy once more, and compare the result with the previous one."""
        session, tried = self._session, self.trial
        if session is None or tried is None or self.running:
            return
        config = session.config
        self._begin(session, lambda control: again(control, tried, config))

    def _begin(self, session: StoreSession, work: Callable[[Control], Trial]) -> None:
        self.running = True
        self._able()
        self.changed.emit()
        session.jobs.start(self._try(session, work))

    async def _try(self, session: StoreSession, work: Callable[[Control], Trial]) -> None:
        done: Trial | None = None
        try:
            done = await session.jobs.run(tr("Recovery on a copy"), work)
        except (Cancelled, asyncio.CancelledError):
            self.statusText.emit(tr("Stopped: nothing is left of the copy.") if self.trial is None else tr("Stopped."))
        except (StoreError, OSError) as error:
            self.statusText.emit(engine_words(str(error)))
        finally:
            self.running = False
            self._able()
            if done is not None and session is self._session:
                self.trial = done
                self.statusText.emit(
                    tr(
                        "Recovered in {path}: the log ends at {offset:,}.",
                        path=str(done.folder),
                        offset=done.end_offset,
                    )
                )
                self.trialDone.emit(done)
            self.changed.emit()
