"""Questions before something is written: opening somebody's own store for writing, and pulling a lab store's plug.

The title is the deed with its place, the body says in numbers what goes and what stays, the default is Cancel.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QVBoxLayout, QWidget

from engine.mapped.store_lock import holder_of
from viewer.look.assets import tr
from viewer.look.formats import size
from viewer.look.theme import px
from viewer.pane.plan_words import plan_kind, plan_rows, release_name
from viewer.runtime.recovery_plan import RecoveryJob, recovery_of
from viewer.widgets.basics import Button, Elided, Label, Mark, row
from viewer.widgets.facts import Fact, Facts
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from viewer.runtime.lab_session import LabSession
    from viewer.runtime.store_session import StoreSession


LONGEST_NAME = 80


class Question(QDialog):
    """``agreed()`` when the deed's own button is pressed; Cancel is the default."""

    agreed = Signal()

    def __init__(self, parent: QWidget, name: str, title: str, place: str, agree: str) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setWindowTitle(title)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.cancel = Button(tr("Cancel"))
        self.cancel.setObjectName(f"{name}.cancel")
        self.cancel.setDefault(True)
        self.cancel.clicked.connect(self.reject)
        self.agree = Button(agree, "danger")
        self.agree.setObjectName(f"{name}.deed")
        self.agree.clicked.connect(lambda: (self.agreed.emit(), self.accept()))
        self.box = QVBoxLayout(self)
        self.box.setContentsMargins(px(20), px(16), px(20), px(14))
        self.box.setSpacing(px(10))
        self.box.addWidget(Label(title, 18, "text", 600))
        if place:
            self.box.addWidget(Elided(place, 12, "text2", code=True, middle=True))

    def finish(self) -> None:
        """The buttons, below what the body says."""
        self.box.addWidget(row(None, self.cancel, self.agree, gap=8))
        self.cancel.setFocus()


class WriteDialog(Question):
    """Who holds the store, what opening it would do to it, and the question."""

    def __init__(self, parent: QWidget, session: StoreSession) -> None:
        super().__init__(
            parent, "lab.write.dialog", tr("Open this store for writing?"), str(session.path), tr("Open for writing")
        )
        self._session = session
        self._job: RecoveryJob = recovery_of(session)
        self._held, self._over = True, False
        self._mark, self._who = Mark(""), Label(tr("Looking who has the store open …"), 13, "text", wrap=True)
        self._who.setObjectName("lab.write.holder")
        line = row(self._mark, self._who, gap=8)
        line.box.setStretch(1, 1)
        self.box.addWidget(line)
        self.box.addWidget(
            Label(
                tr(
                    "Opening for writing does what a broker's start does: the plan below is carried out, a lock is "
                    "taken, and messages you put stay in this store."
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
        session.jobs.read(lambda: holder(session), self._show_holder, lambda error: self._show_holder(str(error)))
        if self._job.plan is None or self._job.stale:
            self._job.ask()
        self._show()

    def done(self, result: int) -> None:
        """It was answered: what still comes back finds nobody."""
        self._over = True
        super().done(result)

    def _show_holder(self, held: str) -> None:
        if self._over:
            return
        self._held = bool(held)
        self._mark.set_kind("error" if held else "ok")
        self._who.setText(
            tr("{who} Opening for writing is refused while that is so.", who=held)
            if held
            else tr("Nobody else has the store open for writing.")
        )
        self._show()

    def _show(self) -> None:
        if self._over:
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
        ready = plan is not None and not job.running and not self._held and not plan.blockers and plan.empty_log is None
        self.agree.setEnabled(ready)


def holder(session: StoreSession) -> str:
    """Who has the store open for writing, in words; empty for nobody. Takes no lock, writes nothing."""
    paths = session.snapshot.paths
    if paths is None or session.snapshot.lock_state != "held":
        return ""
    pid = holder_of(paths.lock)
    if pid is None:
        return tr("Another process has the store open for writing.")
    name = process_name(pid)
    return tr("Process {pid}{name} has the store open for writing.", pid=pid, name=f" ({name})" if name else "")


def process_name(pid: int) -> str:
    """The command of a process, as far as the system tells it; empty where it does not."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    return b" ".join(words[:3]).decode("utf-8", "replace").strip()[:LONGEST_NAME]


class PlugDialog(Question):
    """What a power loss would take now, in numbers."""

    def __init__(self, parent: QWidget, lab: LabSession) -> None:
        place = str(lab.folder or "")
        super().__init__(parent, "lab.plug.dialog", tr("Pull the plug of this lab store?"), place, tr("Pull the plug"))
        sample = lab.sample
        facts = []
        if sample is not None:
            found = sample.positions
            facts = [
                Fact(tr("Stays"), size(max(0, found.flushed - max(found.min, 0))), tr("flushed, on disk"), "ok"),
                Fact(tr("Goes"), size(found.unflushed), tr("not flushed; a few pages of it may be kept"), "error"),
            ]
        told = Facts(88)
        told.show_facts(facts)
        self.box.addWidget(told)
        self.box.addWidget(
            Label(
                tr(
                    "The engine's process ends at once. The directory becomes what a disk would have kept; what was "
                    "there before stays beside it for the comparison. Recovery follows when you ask for it."
                ),
                13,
                "text2",
                wrap=True,
            )
        )
        self.finish()
        self.resize(px(560), px(220))
