"""The two questions before the store itself is changed: the mend, and its undoing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from viewer.findings.mend_words import backup_title, changes_in_words, restored_in_words
from viewer.findings.repair_work import refusal_to_write
from viewer.look.assets import tr
from viewer.look.engine_words import engine_words
from viewer.look.theme import px
from viewer.pane.confirmation import Confirmation, holder
from viewer.widgets.basics import Label, StatusMark
from viewer.widgets.boxes import row
from viewer.widgets.choices import ChoiceField
from viewer.widgets.facts import Fact, Facts

if TYPE_CHECKING:
    from engine.mapped.backup import BackupJournal
    from engine.patching.patches import Patch
    from viewer.runtime.store_session import StoreSession

FACT_WIDTH = 96


class WritingConfirmation(Confirmation):
    """A question whose button works only while nobody has the store open and its files may be changed."""

    def __init__(self, parent: QWidget, session: StoreSession, name: str, title: str, agree: str) -> None:
        super().__init__(parent, name, title, str(session.path), agree)
        self._session = session
        self._is_closed = False
        self.is_allowed = False
        self._mark = StatusMark("")
        self.holder_label = Label(tr("Checking who has the store open …"), 13, "text", wrap=True)
        self.holder_label.setObjectName(f"{name}.holder")
        self.agree.setEnabled(False)
        line = row(self._mark, self.holder_label, gap=8)
        line.box.setStretch(1, 1)
        self.box.addWidget(line)

    def refusal(self) -> str:
        """Return why the store may not be changed, "" if it may. Runs in a thread."""
        return refusal_to_write(self._session.path, self._session.config)

    def examine(self) -> None:
        """Find out, off the loop, if the store may be changed now."""
        session = self._session
        session.jobs.read(
            lambda: (holder(session), self.refusal()),
            lambda reasons: self._show_refusal(*reasons),
            lambda error: self._show_refusal("", str(error)),
        )

    def done(self, result: int) -> None:
        """Close the dialog; replies that arrive later are ignored."""
        self._is_closed = True
        super().done(result)

    def _show_refusal(self, holder_text: str, refusal: str) -> None:
        if self._is_closed:
            return
        if holder_text:
            words = tr("{who} Stop the broker first: nothing is changed before.", who=holder_text)
        elif refusal:
            words = engine_words(refusal)
        else:
            words = tr("Nobody has the store open for writing. The broker must stay stopped until this is done.")
        self.is_allowed = not (holder_text or refusal)
        self._mark.set_kind("ok" if self.is_allowed else "error")
        self.holder_label.setText(words)
        self.agree.setEnabled(self.is_allowed)


class MendConfirmation(WritingConfirmation):
    """Asks before the patches are made in the store itself. ``effect`` says what they do for the next start, and
    ``is_worse`` if it loses more with them.
    """

    def __init__(
        self,
        parent: QWidget,
        session: StoreSession,
        patches: Sequence[Patch],
        effect: str = "",
        *,
        is_worse: bool = False,
    ) -> None:
        super().__init__(parent, session, "repair.apply.dialog", tr("Mend this store itself?"), tr("Apply"))
        facts = Facts(FACT_WIDTH)
        folder = f"{session.path.resolve().name}.kept-…"
        facts.show_facts(
            [
                Fact(tr("Written"), changes_in_words(patches), code=False),
                *([Fact(tr("Effect"), effect, role="error" if is_worse else "text", code=False)] if effect else []),
                Fact(tr("Stays"), tr("every other byte of the store"), code=False),
                Fact(tr("Backup"), folder, tr("beside the store: the old bytes, and the journal kept.jsonl")),
                Fact(
                    tr("Way back"),
                    tr("Undo a change… restores every byte, as long as no broker has started since"),
                    code=False,
                ),
            ]
        )
        self.box.addWidget(facts)
        self.finish()
        self.resize(px(720), px(250))
        self.examine()


class UndoConfirmation(WritingConfirmation):
    """Asks which backup is restored. Emits ``chosen(BackupJournal)``."""

    chosen = Signal(object)

    def __init__(self, parent: QWidget, session: StoreSession, backups: Sequence[BackupJournal]) -> None:
        super().__init__(parent, session, "repair.undo.dialog", tr("Undo a change of this store?"), tr("Undo"))
        self._backups = tuple(backups)
        self.choice = ChoiceField()
        self.choice.setObjectName("repair.undo.choice")
        self.choice.setAccessibleName(tr("Change that is undone"))
        for backup in self._backups:
            self.choice.addItem(backup_title(backup))
        self._facts = Facts(FACT_WIDTH)
        self.choice.currentIndexChanged.connect(self._show_backup)
        self.confirmed.connect(lambda: self.chosen.emit(self._backups[self.choice.currentIndex()]))
        self.box.addWidget(self.choice)
        self.box.addWidget(self._facts)
        self.finish()
        self.resize(px(720), px(240))
        self._show_backup(0)
        self.examine()

    def refusal(self) -> str:
        """An interrupted command leaves files that it would refuse itself; restoring judges the backup."""
        return ""

    def _show_backup(self, number: int) -> None:
        backup = self._backups[number]
        self._facts.show_facts(
            [
                Fact(tr("Restored"), restored_in_words(backup), code=False),
                Fact(tr("Backup"), str(backup.folder), tr("stays there")),
            ]
        )
        self.agree.setEnabled(self.is_allowed and not backup.undone)

    def _show_refusal(self, holder_text: str, refusal: str) -> None:
        super()._show_refusal(holder_text, refusal)
        if not self._is_closed:
            self._show_backup(self.choice.currentIndex())
