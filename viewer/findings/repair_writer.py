"""Write what is chosen in the window of repairs: patches as a file, a mended copy, changes of the store itself and
their undoing. Each asks first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from engine.errors import StoreError
from engine.mapped.backup import find_backups
from viewer.findings.mend_confirmations import MendConfirmation, UndoConfirmation
from viewer.findings.repair_model import loss_headline
from viewer.findings.repair_work import mend, mend_copy, open_patches, restore, save_patches
from viewer.look.assets import tr, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.pane.target_folder import ask_target_folder
from viewer.runtime.jobs import Cancelled
from viewer.runtime.store_session import in_store

if TYPE_CHECKING:
    from engine.mapped.backup import BackupJournal
    from engine.patching.patches import Patch
    from engine.repair.mend_in_place import MendedStore
    from viewer.findings.repair_model import RepairModel
    from viewer.runtime.jobs import Control
    from viewer.runtime.store_session import StoreSession

COPYING = words("Writing the mended copy")
MENDING = words("Mending the store")
RESTORING = words("Undoing a change of the store")


class RepairWriter(QObject):
    """Asks, then writes. ``box`` is the parent of the questions; ``say`` shows a sentence in the status bar.

    It outlives the box while it writes, so it has no parent.
    """

    changed = Signal()
    """A work has begun or ended, or the patches are saved."""
    told = Signal(str)
    storeChanged = Signal(str)
    """The store was changed and read again; the sentence on it."""

    def __init__(self, box: QWidget, session: StoreSession, model: RepairModel, say: Callable[[str], object]) -> None:
        super().__init__()
        self._box, self.session, self.model, self._say = box, session, model, say
        self.writing = ""
        """Title of the job that writes; "" while none does."""
        self.is_closed = False
        """True once the box is gone. A work that runs goes on."""

    # ---- patches as a file, a copy ---

    def ask_save(self) -> None:
        """Ask where the patches shall be written."""
        dialog = QFileDialog(self._box, tr("Save the patches"), str(Path.home() / "patches.json"))
        dialog.setObjectName("repair.dialog")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilter("JSON (*.json)")
        dialog.setDefaultSuffix("json")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda name: self.save_to(Path(name)))
        dialog.open()

    def ask_open(self) -> None:
        """Ask which list of patches is opened."""
        dialog = QFileDialog(self._box, tr("Open patches"), str(Path.home()))
        dialog.setObjectName("repair.openDialog")
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilter("JSON (*.json)")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda name: self.open_from(Path(name)))
        dialog.open()

    def open_from(self, source: Path) -> None:
        """Add the patches of a file to the list, if they fit to the store."""
        path = self.session.path

        def opened(patches: tuple[Patch, ...]) -> None:
            had_none = not self.session.bench.edits
            self.model.add(patches, tr("open {name}", name=source.name))
            if had_none:
                self.session.bench.note_saved()

        self.session.jobs.read(
            lambda: open_patches(path, source),
            opened,
            lambda error: self._tell(tr("No patch was added: {why}", why=engine_words(str(error)))),
        )

    def save_to(self, target: Path) -> None:
        """Write the taken patches as JSON; not into the store."""
        if in_store(self.session.path, target):
            self._tell(tr("Nothing is written into the store: choose another folder."))
            return
        patches = self.model.taken_patches

        def saved(_none: object) -> None:
            self.model.saved = patches, str(target)
            if set(self.session.bench.edits) <= set(patches):
                self.session.bench.note_saved()
            self.changed.emit()
            self._tell(tr("Patches written to {path}", path=str(target)))

        self.session.jobs.read(
            lambda: save_patches(patches, target),
            saved,
            lambda error: self._tell(f"{target}: {engine_words(str(error))}"),
        )

    def ask_copy(self) -> None:
        """Ask where the mended copy shall be written."""
        session = self.session
        ask_target_folder(
            self._box,
            "repair.target",
            tr("Folder for the mended copy"),
            tr("Save mended copy"),
            "mended",
            session.path,
            session.jobs.read,
            self.copy_to,
        )

    def copy_to(self, target: Path) -> None:
        """Write a mended copy: a job that can be stopped."""
        patches = self.model.taken_patches
        if patches and not self.writing:
            self.writing = COPYING
            self.session.jobs.start(self._copy(patches, target.absolute()))
            self.changed.emit()

    async def _copy(self, patches: tuple[Patch, ...], target: Path) -> None:
        path, config = self.session.path, self.session.config

        def work(control: Control) -> Path:
            return mend_copy(control, path, config, patches, target)

        try:
            await self.session.jobs.run(tr(COPYING), work, as_it_is=True)
        except (Cancelled, asyncio.CancelledError):
            result = tr("Stopped: nothing is left of the copy.")
        except (StoreError, OSError) as error:
            result = tr("No copy was written: {why}", why=engine_words(str(error)))
        else:
            result = tr_plural(
                "The mended copy is in {path} ({n:,} patch). The store stays as it is.",
                "The mended copy is in {path} ({n:,} patches). The store stays as it is.",
                n=len(patches),
                path=str(target),
            )
        finally:
            self.writing = ""
        self.changed.emit()
        self._tell(result)

    # ---- changing the store itself -----------------------------------------------------------------------------------

    def ask_apply(self) -> None:
        """Show what would be written into the store, and ask."""
        patches = self.model.taken_patches
        if not patches or self.writing:
            return
        current, patched = self.model.current, self.model.patched
        effect = loss_headline(current, patched) if current is not None else ""
        is_worse = current is not None and patched is not None and patched.is_worse_than(current)
        box = MendConfirmation(self._box, self.session, patches, effect, is_worse=is_worse)
        box.confirmed.connect(lambda: self.mend(patches))
        box.open()

    def mend(self, patches: Sequence[Patch]) -> None:
        """Make the changes in the store itself: a job that can be stopped, which takes everything back."""
        if not self.writing:
            self.writing = MENDING
            self.session.jobs.start(self._mend(tuple(patches)))
            self.changed.emit()

    async def _mend(self, patches: tuple[Patch, ...]) -> None:
        session = self.session
        path, config = session.path, session.config

        def work(control: Control) -> MendedStore:
            return mend(control, path, config, patches)

        mended: MendedStore | None = None
        try:
            mended = await session.jobs.run(tr(MENDING), work, as_it_is=True)
        except (Cancelled, asyncio.CancelledError):
            result = tr("Stopped: the store is as it was.")
        except (StoreError, OSError) as error:
            result = tr("The store was not changed: {why}", why=engine_words(str(error)))
        else:
            result = tr_plural(
                "The store is mended ({n:,} patch). Backup and journal: {folder}",
                "The store is mended ({n:,} patches). Backup and journal: {folder}",
                n=mended.patches,
                folder=str(mended.folder),
            )
        finally:
            self.writing = ""
        await self._report(result, has_changed=mended is not None)

    def ask_undo(self) -> None:
        """Ask which change of the store is undone."""
        path = self.session.path
        self.session.jobs.read(
            lambda: find_backups(path), self._ask_which, lambda error: self._tell(engine_words(str(error)))
        )

    def _ask_which(self, backups: list[BackupJournal]) -> None:
        if self.is_closed or self.writing:
            return
        if not backups:
            self._tell(tr("Nothing to undo: no backup of this store lies beside it."))
            return
        box = UndoConfirmation(self._box, self.session, backups)
        box.chosen.connect(self.restore)
        box.open()

    def restore(self, backup: BackupJournal) -> None:
        """Restore what a command changed in the store."""
        if not self.writing:
            self.writing = RESTORING
            self.session.jobs.start(self._restore(backup))
            self.changed.emit()

    async def _restore(self, backup: BackupJournal) -> None:
        session = self.session
        path = session.path
        is_restored = False
        try:
            await session.jobs.run(tr(RESTORING), lambda control: restore(control, path, backup), as_it_is=True)
        except (Cancelled, asyncio.CancelledError):
            result = tr("Stopped.")
        except (StoreError, OSError) as error:
            result = tr("Nothing was undone: {why}", why=engine_words(str(error)))
        else:
            is_restored = True
            result = tr("The store is as it was before. The backup stays in {folder}", folder=str(backup.folder))
        finally:
            self.writing = ""
        await self._report(result, has_changed=is_restored)

    async def _report(self, result: str, *, has_changed: bool) -> None:
        """Report ``result``; let every view read a changed store again."""
        if has_changed and not self.session.closed:
            try:
                await self.session.read_anew()
            except (StoreError, OSError) as error:
                result = f"{result} {engine_words(str(error))}"
            self.storeChanged.emit(result)
        else:
            self.changed.emit()
        self._tell(result)

    def _tell(self, text: str) -> None:
        self._say(text)
        self.told.emit(text)
