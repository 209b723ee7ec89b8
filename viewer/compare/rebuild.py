"""Dialog that rebuilds queues and index from the log into a new directory and shows what differs from the store.

The store itself is only read.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QLineEdit, QVBoxLayout, QWidget

from engine.errors import StoreError
from viewer.compare.rebuild_work import Amounts, ComparedFile, RebuildComparison, amounts, rebuild, refusal
from viewer.look.assets import tr, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import size
from viewer.look.theme import px
from viewer.pane.exporting import ask_export_of
from viewer.pane.target_folder import ask_target_folder
from viewer.runtime import places
from viewer.runtime.jobs import Cancelled, Control
from viewer.runtime.places import Place
from viewer.runtime.store_session import StoreSession
from viewer.widgets.basics import Button, Label
from viewer.widgets.boxes import row
from viewer.widgets.columns import Chip, RecordKind, chip_column, number_column, text_column, topic_column
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from engine.rebuilding import Rebuilt


def place_of(compared: ComparedFile) -> Place | None:
    """Return the place of a difference: the store's entry, or the unit that only a rebuilt entry points at."""
    if compared.difference is None:
        return None
    if not compared.in_store:
        return places.log(compared.offset) if compared.offset is not None else None
    if compared.queue_id is None:
        return places.index(compared.name, "entry", compared.difference)
    return places.queue(compared.topic, compared.queue_id, compared.difference)


def _verdict(compared: ComparedFile) -> Chip:
    if compared.equal:
        return Chip("ok", tr("equal"))
    return Chip("warn", tr("differs") if compared.in_store else tr("only rebuilt"))


KIND = RecordKind(
    "rebuilt",
    (
        topic_column(width=230, filterable=False),
        number_column("queueId", words("Queue"), 64, filterable=False),
        text_column("name", words("Index file"), 160, mono=True, filterable=False),
        number_column("here", words("Entries here"), 100, filterable=False),
        number_column("rebuilt", words("Rebuilt"), 100, filterable=False),
        number_column("difference", words("First difference"), 120, jump=place_of, filterable=False),
        chip_column("equal", words("Compared"), 120, _verdict, filterable=False),
    ),
    record=lambda compared: {
        "topic": compared.topic,
        "queueId": compared.queue_id,
        "indexFile": compared.name,
        "entries": compared.here,
        "rebuilt": compared.rebuilt,
        "firstDifference": compared.difference,
        "physicalOffset": compared.offset,
        "equal": compared.equal,
    },
)


def amount_words(amounts: Amounts) -> str:
    """Describe in numbers what a rebuild reads and writes."""
    sentences = [
        tr("Reads {log} of log.", log=size(amounts.log)),
        tr(
            "Writes about as much as the store has: {queues} in {queue_bytes}, {files} in {index_bytes}.",
            queues=tr_plural("{n:,} queue", "{n:,} queues", n=amounts.queues),
            queue_bytes=size(amounts.queue_bytes),
            files=tr_plural("{n:,} index file", "{n:,} index files", n=amounts.index_files),
            index_bytes=size(amounts.index_bytes),
        ),
        tr("The store is only read."),
    ]
    if amounts.is_locked:
        sentences.append(tr("A broker has it open: what it writes meanwhile may differ at the end."))
    return " ".join(sentences)


def built_words(built: Rebuilt) -> str:
    """Describe in numbers what was built."""
    clauses = [
        tr(
            "{units}: {entries} in {queues}, {keys} in {files}",
            units=tr_plural("{n:,} unit", "{n:,} units", n=built.units),
            entries=tr_plural("{n:,} entry", "{n:,} entries", n=built.entries),
            queues=tr_plural("{n:,} queue", "{n:,} queues", n=built.queues),
            keys=tr_plural("{n:,} key", "{n:,} keys", n=built.index_entries),
            files=tr_plural("{n:,} index file", "{n:,} index files", n=built.index_files),
        ),
    ]
    if built.damaged:
        clauses.append(
            tr_plural(
                "{n:,} damaged place of the log skipped ({size})",
                "{n:,} damaged places of the log skipped ({size})",
                n=built.damaged,
                size=size(built.damaged_bytes),
            )
        )
    if built.stale:
        clauses.append(
            tr_plural(
                "{n:,} unit is left over from before a truncation",
                "{n:,} units are left over from before a truncation",
                n=built.stale,
            )
        )
    if built.deleted_topics:
        clauses.append(tr("deleted topics without queues: {topics}", topics=", ".join(built.deleted_topics)))
    return " · ".join(clauses)


class RebuildBox(QDialog):
    """Dialog beside the store window; :meth:`begin` starts, ``comparison`` is the last result.

    Its signals are those of a :class:`~viewer.pane.Pane`. ``say`` shows a sentence in the status bar.
    """

    placeRequested = Signal(object)
    operationDone = Signal(str, str, object, str)

    def __init__(self, parent: QWidget, session: StoreSession, say: Callable[[str], object]) -> None:
        super().__init__(parent)
        self._session, self._say = session, say
        self._control: Control | None = None
        self._running = self._stopped = False
        self.comparison: RebuildComparison | None = None
        self.setObjectName("rebuild.box")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Rebuild queues and index elsewhere"))
        self.setAccessibleName(tr("Rebuild queues and index elsewhere"))
        self.resize(px(980), px(520))
        self._closed = False
        self.finished.connect(lambda _n: self._on_finished())
        self.amounts_label = Label("", 12, "text2", wrap=True)
        self.amounts_label.setObjectName("rebuild.told")
        self.field = QLineEdit()
        self.field.setObjectName("rebuild.target")
        self.field.setAccessibleName(tr("New or empty folder for the result"))
        self.field.setPlaceholderText(tr("New or empty folder for the result"))
        self.table = RecordView("rebuild.table", KIND)
        self.table.setAccessibleName(tr("Queues and index files, here and rebuilt"))
        self._show_rows()
        self.table.placeRequested.connect(self._go)
        self.note = Label("", 12, "text2", wrap=True)
        self.note.setObjectName("rebuild.note")
        self._buttons()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(16), px(14), px(16), px(12))
        layout.setSpacing(px(8))
        layout.addWidget(self.amounts_label)
        layout.addWidget(row(self.field, self.choose, self.start, self.stop))
        layout.addWidget(self.table, 1)
        layout.addWidget(self.table.strip)
        layout.addWidget(self.note)
        layout.addWidget(row(self.copy, self.export, None, self.close_button))
        self._update_buttons()

    def _buttons(self) -> None:
        self.choose, self.start, self.stop, self.copy, self.export, self.close_button = (
            Button(tr("Choose…")),
            Button(tr("Build and compare"), "primary"),
            Button(tr("Stop")),
            Button(tr("Copy the table")),
            Button(tr("Export the table…")),
            Button(tr("Close")),
        )
        for name in ("choose", "start", "stop", "copy", "export"):
            getattr(self, name).setObjectName(f"rebuild.{name}")
        self.close_button.setObjectName("rebuild.close")
        self.choose.clicked.connect(self._ask)
        self.start.clicked.connect(self.begin)
        self.stop.clicked.connect(self.cancel)
        self.copy.clicked.connect(self._copy)
        self.export.clicked.connect(self._export)
        self.close_button.clicked.connect(self.reject)
        self.field.returnPressed.connect(self.begin)
        self.field.textChanged.connect(lambda _text: self._update_buttons())

    def show_amounts(self, job_amounts: Amounts) -> None:
        """Show what the rebuild will read and write, or why it is refused."""
        if not self._closed:
            self.amounts_label.setText(job_amounts.refusal or amount_words(job_amounts))
            self.field.setEnabled(not job_amounts.refusal)
            self.choose.setEnabled(not job_amounts.refusal)

    def begin(self) -> None:
        """Build into the chosen directory and compare."""
        text = self.field.text().strip()
        if text and not self._running and self.field.isEnabled():
            self._running, self._stopped = True, False
            self._update_buttons()
            self._session.jobs.start(self.run(Path(text).expanduser()))

    async def run(self, target: Path) -> None:
        """Rebuild and compare as a job of the window; the dialog's note says how it ended."""
        session, start_time = self._session, time.monotonic()
        store = session.path

        def work(control: Control) -> RebuildComparison | str:
            self._control = control
            if self._stopped:
                raise Cancelled
            return refusal(store, target) or rebuild(control, store, session.config, target)

        self.note.setText("")
        self.table.set_state(State("loading", tr("Building queues and index…")))
        note, comparison = "", None
        try:
            outcome = await session.jobs.run(tr("Rebuilding queues and index"), work)
        except (Cancelled, asyncio.CancelledError):
            note = tr("Stopped: nothing is left of what was built.")
        except (StoreError, OSError) as error:
            note = engine_words(str(error))
        else:
            note, comparison = (outcome, None) if isinstance(outcome, str) else ("", outcome)
        self._control, self._running = None, False
        if self._closed:
            return
        self._update_buttons()
        if comparison is None:
            self._show_rows()  # the earlier result stays visible
            self.note.setText(note)
            return
        self._show(comparison, target, time.monotonic() - start_time)

    def _show(self, comparison: RebuildComparison, target: Path, seconds: float) -> None:
        self.comparison = comparison
        self._show_rows()
        self.table.set_rows(sorted(comparison.rows, key=lambda compared: compared.equal))
        self.table.first_row()
        differing_count = sum(not compared.equal for compared in comparison.rows)
        verdict = (
            tr_plural(
                "{part:,} of {n:,} queue or index file differs.",
                "{part:,} of {n:,} queues and index files differ.",
                n=len(comparison.rows),
                part=differing_count,
            )
            if differing_count
            else tr_plural(
                "The {n:,} queue or index file is equal.",
                "All {n:,} queues and index files are equal.",
                n=len(comparison.rows),
            )
        )
        target_sentence = tr("Built in {path} in {seconds:.1f} s.", path=str(target), seconds=seconds)
        self.note.setText(f"{verdict} {target_sentence} {built_words(comparison.built)}")
        self._say(verdict)
        self._update_buttons()
        self.operationDone.emit(
            "dispatch.rebuild",
            tr("Rebuild queues and index elsewhere"),
            {"to": str(target), "differ": differing_count},
            self._session.command_line(["storescope", "dispatch", "STORE", "--to", str(target)]),
        )

    def _show_rows(self) -> None:
        """Show the last result, or why there is none."""
        if self.comparison is None:
            self.table.set_state(State("hint", tr("Nothing was built yet.")))
        elif self.comparison.rows:
            self.table.set_state(None)
        else:
            self.table.set_state(State("empty", tr("There are no queues and no index files.")))

    def cancel(self) -> None:
        """Stop the rebuild; nothing of it remains."""
        self._stopped = True
        if self._control is not None:
            self._control.stop.set()

    def _on_finished(self) -> None:
        self._closed = True
        self.cancel()

    def _go(self, place: Place) -> None:
        if self._session.closed:
            self.note.setText(tr("The store of this table is not open any more."))
        else:
            self.placeRequested.emit(place)

    def _update_buttons(self) -> None:
        running = self._running
        self.start.setEnabled(not running and bool(self.field.text().strip()))
        self.stop.setEnabled(running)
        self.copy.setEnabled(not running and self.comparison is not None)
        self.export.setEnabled(not running and self.comparison is not None)

    def _ask(self) -> None:
        ask_target_folder(
            self,
            "rebuild.dialog",
            tr("Folder for the result"),
            tr("Choose"),
            "rebuilt",
            self._session.path,
            self._session.jobs.read,
            lambda path: self.field.setText(str(path)),
        )

    def _copy(self) -> None:
        if self.comparison is not None:
            head = "\t".join(tr(column.title) for column in KIND.columns if column.key)
            rows = sorted(self.comparison.rows, key=lambda compared: compared.equal)
            QGuiApplication.clipboard().setText("\n".join([head, *(KIND.as_text(compared) for compared in rows)]))

    def _export(self) -> None:
        ask_export_of(self._session, self, self._say, self.table, "rebuilt.jsonl")


def ask_rebuild(parent: QWidget, session: StoreSession, say: Callable[[str], object]) -> RebuildBox:
    """Open the dialog for an open store."""
    box = RebuildBox(parent, session, say)
    session.jobs.read(
        lambda: amounts(session.snapshot),
        box.show_amounts,
        lambda error: box.show_amounts(Amounts(refusal=engine_words(str(error)))),
    )
    box.show()
    box.field.setFocus()
    return box
