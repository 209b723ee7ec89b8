"""Confirmations before writing: opening a store for writing, and cutting the power of a lab store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QWidget

from viewer.look.assets import tr
from viewer.look.engine_words import engine_words
from viewer.look.formats import size
from viewer.look.theme import px
from viewer.pane.confirmation import Confirmation, holder
from viewer.pane.plan_words import plan_kind, plan_rows, release_name
from viewer.runtime.recovery_plan import RecoveryJob, recovery_of
from viewer.widgets.basics import Label, StatusMark
from viewer.widgets.boxes import row
from viewer.widgets.facts import Fact, Facts
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from viewer.runtime.lab_session import LabSession
    from viewer.runtime.store_session import StoreSession


class WriteConfirmation(Confirmation):
    """Asks before a store is opened for writing: who has it open, and what opening would change."""

    def __init__(self, parent: QWidget, session: StoreSession) -> None:
        super().__init__(
            parent, "lab.write.dialog", tr("Open this store for writing?"), str(session.path), tr("Open for writing")
        )
        self._session = session
        self._job: RecoveryJob = recovery_of(session)
        self._has_holder, self._is_closed = True, False
        self._mark, self._holder_label = (
            StatusMark(""),
            Label(tr("Checking who has the store open …"), 13, "text", wrap=True),
        )
        self._holder_label.setObjectName("lab.write.holder")
        line = row(self._mark, self._holder_label, gap=8)
        line.box.setStretch(1, 1)
        self.box.addWidget(line)
        self.box.addWidget(
            Label(
                tr(
                    "Opening for writing does what a broker's start does: it carries out the plan below and takes "
                    "a lock, and messages that you put stay in this store."
                ),
                13,
                "text2",
                wrap=True,
            )
        )
        self.plan = RecordView("lab.write.plan", plan_kind())
        self.plan.setAccessibleName(tr("What opening for writing does"))
        self.box.addWidget(self.plan, 1)
        self.box.addWidget(self.plan.strip)
        self.finish()
        self.resize(px(820), px(480))
        self._job.changed.connect(self._show)
        session.jobs.read(
            lambda: holder(session), self._show_holder, lambda error: self._show_holder(engine_words(str(error)))
        )
        if self._job.plan is None or self._job.stale:
            self._job.start()
        self._show()

    def done(self, result: int) -> None:
        """Close the dialog; replies that arrive later are ignored."""
        self._is_closed = True
        super().done(result)

    def _show_holder(self, holder_text: str) -> None:
        if self._is_closed:
            return
        self._has_holder = bool(holder_text)
        self._mark.set_kind("error" if holder_text else "ok")
        self._holder_label.setText(
            tr("{who} Opening for writing is refused while that is so.", who=holder_text)
            if holder_text
            else tr("Nobody else has the store open for writing.")
        )
        self._show()

    def _show(self) -> None:
        if self._is_closed:
            return
        job = self._job
        plan = job.plan
        self.plan.set_rows(plan_rows(plan, harmed=self._session.harmed) if plan is not None else [])
        state: State | None = None
        if job.running:
            state = State("loading", tr("Reading as recovery would …"))
        elif job.error:
            state = State("error", job.error)
        elif plan is not None:
            state = State("note", tr("What {release} would do, and what is done here.", release=release_name(plan)))
        self.plan.set_state(state)
        ready = (
            plan is not None
            and not job.running
            and not self._has_holder
            and not plan.blockers
            and plan.empty_log is None
        )
        self.agree.setEnabled(ready)


class PowerLossDialog(Confirmation):
    """Asks before the power is cut, with numbers of what a power loss would take now."""

    def __init__(self, parent: QWidget, lab: LabSession) -> None:
        place = str(lab.folder or "")
        super().__init__(parent, "lab.plug.dialog", tr("Cut the power of this lab store?"), place, tr("Cut the power"))
        sample = lab.sample
        facts = []
        if sample is not None:
            positions = sample.positions
            facts = [
                Fact(tr("Kept"), size(max(0, positions.flushed - max(positions.min, 0))), tr("flushed, on disk"), "ok"),
                Fact(tr("Lost"), size(positions.unflushed), tr("not flushed; a few pages of it may be kept"), "error"),
            ]
        facts_list = Facts(88)
        facts_list.show_facts(facts)
        self.box.addWidget(facts_list)
        self.box.addWidget(
            Label(
                tr(
                    "The engine's process ends at once. The folder then has only what a disk would have kept; the "
                    "state before is saved beside it for the comparison. Recovery starts when you ask for it."
                ),
                13,
                "text2",
                wrap=True,
            )
        )
        self.finish()
        self.resize(px(560), px(220))
