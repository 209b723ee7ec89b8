"""Dialog and job that save the report as one HTML file, never into the store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, Qt
from PySide6.QtWidgets import QDialog, QFileDialog, QVBoxLayout, QWidget

from engine.errors import StoreError
from engine.files.atomic_file import write_atomically
from engine.rules.masking import Masking
from viewer.look.assets import tr, tr_plural, words
from viewer.look.theme import px, ui
from viewer.pane.finding_rows import unread_findings
from viewer.reports.content import ReportInputs, gather
from viewer.reports.report_html import Picture, render
from viewer.runtime.bookmarks import SavedBookmarks, bookmarks_of
from viewer.runtime.jobs import Cancelled, Control
from viewer.runtime.recovery_plan import recovery_of
from viewer.runtime.store_session import StoreSession, in_store
from viewer.widgets.about_box import facts
from viewer.widgets.basics import Button, Label
from viewer.widgets.boxes import row
from viewer.widgets.choices import TickBox

FURTHER_MASKS = {
    "groups": words("Leave out names of consumer and producer groups"),
    "lmq": words("Leave out names of light queues"),
    "properties": words("Leave out values of users' properties"),
}
"""Further parts that can be masked, by the words of ``--mask``."""


class ReportBox(QDialog):
    """Asks what the report leaves out; the choice is in ``masking`` and ``pictures``."""

    def __init__(self, parent: QWidget, store: str, findings: int, *, is_checked: bool = True) -> None:
        super().__init__(parent)
        self.setObjectName("report.box")
        self.setWindowTitle(tr("Save a report"))
        self.setAccessibleName(tr("Save a report"))
        self.masked = TickBox(tr("Leave out bodies, keys, ids, hosts, paths and notes"))
        self.masked.setObjectName("report.masked")
        self.pictures = TickBox(tr("With a picture of the window"))
        self.pictures.setObjectName("report.pictures")
        self.pictures.setChecked(True)
        self.further_masks = {part: TickBox(tr(text)) for part, text in FURTHER_MASKS.items()}
        for part, tick in self.further_masks.items():
            tick.setObjectName(f"report.{part}")
        for tick in (self.masked, *self.further_masks.values()):
            tick.toggled.connect(lambda _on: self.pictures.setEnabled(not self.masking.any))
        save, cancel = Button(tr("Save…"), "primary"), Button(tr("Cancel"))
        save.setObjectName("report.save")
        save.clicked.connect(self.accept)
        cancel.clicked.connect(self.reject)
        explanation = tr_plural(
            "One HTML file that opens anywhere, without Storescope and without the store: what happened and what is "
            "lost, {n:,} finding with its bytes, the recovery plan, positions, groups, bookmarks, configuration, "
            "versions.",
            "One HTML file that opens anywhere, without Storescope and without the store: what happened and what is "
            "lost, {n:,} findings with their bytes, the recovery plan, positions, groups, bookmarks, configuration, "
            "versions.",
            n=findings,
        )
        if not is_checked:
            explanation += " " + tr("The check has not finished: the report has the findings so far and says so.")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(20), px(16), px(20), px(16))
        layout.setSpacing(px(10))
        layout.addWidget(Label(store, 12, "text2", code=True))
        about = Label(explanation, 13, "text", wrap=True)
        about.setFixedWidth(px(440))
        layout.addWidget(about)
        for box in (self.masked, *self.further_masks.values(), self.pictures):
            box.setFont(ui(13))
            layout.addWidget(box)
        layout.addWidget(row(None, cancel, save, gap=8))

    @property
    def masking(self) -> Masking:
        """Masking that the user chose."""
        on = self.masked.isChecked()
        groups, lmq, properties = (self.further_masks[part].isChecked() for part in ("groups", "lmq", "properties"))
        return Masking(on, on, on, groups, lmq, properties)


def ask_report(
    parent: QWidget, session: StoreSession, say: Callable[[str], object], grab_window: Callable[[], Picture]
) -> None:
    """Ask what to leave out and where to save, then write the file. See :func:`save_report`."""
    box = ReportBox(
        parent, str(session.path), len(session.findings), is_checked=session.findings_complete or bool(session.unread)
    )
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)

    def where() -> None:
        mask, grab = box.masking, grab_window if box.pictures.isChecked() else None
        name = session.survey.name if session.survey is not None else session.path.name
        dialog = QFileDialog(parent, tr("Save a report"), str(Path.home() / f"{name}-report.html"))
        dialog.setObjectName("report.dialog")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilters(["HTML (*.html)"])
        dialog.setDefaultSuffix("html")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda path: session.jobs.start(save_report(session, Path(path), say, mask, grab)))
        dialog.open()

    box.accepted.connect(where)
    box.open()


async def save_report(
    session: StoreSession,
    target: Path,
    say: Callable[[str], object],
    mask: Masking | None = None,
    grab_window: Callable[[], Picture] | None = None,
) -> bool:
    """Write the report on an open store to ``target``.

    Returns False if it was not written. ``say`` shows how it ended in the status bar. ``grab_window`` makes the
    picture of the window, which a masked report does not contain.
    """
    if session.closed:
        return False
    if in_store(session.path, target):
        say(tr("Nothing is written into the store: choose another folder."))
        return False
    inputs = _report_inputs(session, mask or Masking(), grab_window)

    def work(control: Control) -> None:
        write_atomically(target, render(gather(control, session.snapshot, inputs)))

    try:
        await session.jobs.run(tr("Writing the report"), work)
    except Cancelled:
        say(tr("The report was stopped; no file was written."))
        return False
    except (StoreError, OSError) as error:
        say(f"{target}: {error}")
        return False
    say(session.unread.beside(tr("Report saved: {path}", path=str(target))))
    return True


def _report_inputs(session: StoreSession, mask: Masking, grab_window: Callable[[], Picture] | None) -> ReportInputs:
    marks = bookmarks_of(session)
    pictures = (grab_window(),) if grab_window is not None and not mask.any else ()
    return ReportInputs(
        session.survey,
        (*unread_findings(session.unread), *session.findings),
        session.findings_complete,
        recovery_of(session).plan,
        SavedBookmarks(marks.list, marks.notes),
        facts(),
        mask,
        session.harmed,
        pictures,
        None if session.unread else session.incident,
    )


def grab_window(window: QWidget, caption: str) -> Picture:
    """Return the window as it is now, as PNG."""
    raw = QByteArray()
    buffer = QBuffer(raw)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    window.grab().save(buffer, "PNG")
    return Picture(bytes(raw.data()), caption)
