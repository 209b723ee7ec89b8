"""What can be done with a recovery plan: it is saved, or tried on a copy of the store. The store is never touched."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from engine.errors import StoreError
from viewer.assets import tr
from viewer.bridge.jobs import Cancelled
from viewer.bridge.recovery_trial import save_plan, trial
from viewer.sayings import engine_words
from viewer.widgets.kit import Button

if TYPE_CHECKING:
    from engine.store.recovery_plan import RecoveryPlan
    from viewer.bridge.store_session import StoreSession


class RecoveryDeeds(QObject):
    """The two buttons. ``told(str)`` is a sentence for the status bar, ``copied(Path)`` a copy that was recovered."""

    told = Signal(str)
    copied = Signal(object)

    def __init__(self, panel: QWidget) -> None:
        super().__init__(panel)
        self._panel = panel
        self._session: StoreSession | None = None
        self._plan: RecoveryPlan | None = None
        self._running = False
        self.save = Button(tr("Save plan…"))
        self.save.setObjectName("recovery.save")
        self.save.setAccessibleName(tr("Save plan…"))
        self.save.clicked.connect(self._ask_save)
        self.attempt = Button(tr("Try on a copy…"), "primary")
        self.attempt.setObjectName("recovery.try")
        self.attempt.setAccessibleName(tr("Try on a copy…"))
        self.attempt.setToolTip(tr("Copies what recovery needs into a new directory, recovers it there and opens it."))
        self.attempt.clicked.connect(self._ask_copy)
        self._able()

    def show_plan(self, session: StoreSession | None, plan: RecoveryPlan | None) -> None:
        """Another plan, or none."""
        self._session, self._plan = session, plan
        self._able()

    def _able(self) -> None:
        self.save.setVisible(self._plan is not None)
        self.attempt.setVisible(self._plan is not None)
        self.attempt.setEnabled(self._plan is not None and self._plan.will_start and not self._running)

    def _ask_save(self) -> None:
        dialog = self._dialog(tr("Save the recovery plan"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilter("JSON (*.json)")
        dialog.selectFile("recovery-plan.json")
        dialog.fileSelected.connect(lambda name: self.save_to(Path(name)))
        dialog.open()

    def _ask_copy(self) -> None:
        dialog = self._dialog(tr("Directory for the copy, absent or empty"))
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly, True)
        dialog.fileSelected.connect(lambda name: self.try_in(Path(name)))
        dialog.open()

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
        if target.resolve().is_relative_to(session.path.resolve()):
            self.told.emit(tr("Nothing is written into the store: choose another folder."))
            return
        session.jobs.read(
            lambda: save_plan(plan, target),
            lambda _none: self.told.emit(tr("Recovery plan written to {path}", path=str(target))),
            lambda error: self.told.emit(f"{target}: {error}"),
        )

    def try_in(self, target: Path) -> None:
        """Copy, recover and show: a job that can be stopped."""
        session, plan = self._session, self._plan
        if session is not None and plan is not None and not self._running:
            self._running = True
            self._able()
            session.jobs.start(self._try(session, plan, target.absolute()))

    async def _try(self, session: StoreSession, plan: RecoveryPlan, target: Path) -> None:
        path, config = session.path, session.config
        try:
            done = await session.jobs.run(
                tr("Recovery on a copy"), lambda control: trial(control, path, config, plan, target)
            )
        except (Cancelled, asyncio.CancelledError):
            self.told.emit(tr("Stopped: nothing is left of the copy."))
        except (StoreError, OSError) as error:
            self.told.emit(engine_words(str(error)))
        else:
            self.told.emit(
                tr("Recovered in {path}: the log ends at {offset:,}.", path=str(target), offset=done.end_offset)
            )
            self.copied.emit(target)
        finally:
            self._running = False
            self._able()
