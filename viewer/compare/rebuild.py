"""Queues and index built again from the log, in a new directory beside the store, and what differs from the store's.

The box asks where, says in numbers what it reads and writes, and keeps the table of what it found; each difference is
a link. The store itself is only read.
"""

from __future__ import annotations

import asyncio
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QLineEdit, QVBoxLayout

from engine.errors import StoreError
from viewer.compare.rebuild_work import Amounts, Answer, Compared, amounts, rebuild, refusal
from viewer.look.assets import tr, words
from viewer.look.formats import size
from viewer.look.theme import px
from viewer.pane.exporting import ask_export
from viewer.pane.target_folder import ask_target_folder
from viewer.runtime import places
from viewer.runtime.jobs import Cancelled, Control
from viewer.runtime.places import Place
from viewer.runtime.store_session import StoreSession
from viewer.widgets.basics import Button, Label, row
from viewer.widgets.columns import Chip, RecordKind, chip_column, number_column, text_column, topic_column
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from engine.rebuilding import Rebuilt
    from viewer.pane.store_window import StoreWindow


def place_of(one: Compared) -> Place | None:
    """Where a difference is seen: the entry of the store, or the unit that only a rebuilt entry points at."""
    if one.difference is None:
        return None
    if not one.there:
        return places.log(one.offset) if one.offset is not None else None
    if one.queue_id is None:
        return places.index(one.name, "entry", one.difference)
    return places.queue(one.topic, one.queue_id, one.difference)


def _verdict(one: Compared) -> Chip:
    if one.equal:
        return Chip("ok", tr("equal"))
    return Chip("warn", tr("differs") if one.there else tr("only rebuilt"))


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
    record=lambda one: {
        "topic": one.topic,
        "queueId": one.queue_id,
        "indexFile": one.name,
        "entries": one.here,
        "rebuilt": one.rebuilt,
        "firstDifference": one.difference,
        "physicalOffset": one.offset,
        "equal": one.equal,
    },
)


def amount_words(found: Amounts) -> str:
    """What a rebuild reads and writes, in numbers."""
    said = [
        tr("Reads {log} of log.", log=size(found.log)),
        tr(
            "Writes about as much as the store has: {queues:,} queues in {queue_bytes}, {files:,} index files in "
            "{index_bytes}.",
            queues=found.queues,
            queue_bytes=size(found.queue_bytes),
            files=found.index_files,
            index_bytes=size(found.index_bytes),
        ),
        tr("The store is only read."),
    ]
    if found.held:
        said.append(tr("A broker has it open: what it writes meanwhile may differ at the end."))
    return " ".join(said)


def built_words(built: Rebuilt) -> str:
    """What was built, in numbers."""
    said = [
        tr(
            "{units:,} units: {entries:,} entries in {queues:,} queues, {keys:,} keys in {files:,} index files",
            units=built.units,
            entries=built.entries,
            queues=built.queues,
            keys=built.index_entries,
            files=built.index_files,
        ),
    ]
    if built.damaged:
        said.append(
            tr("{n:,} damaged places of the log stepped over ({size})", n=built.damaged, size=size(built.damaged_bytes))
        )
    if built.stale:
        said.append(tr("{n:,} units are left over from before a truncation", n=built.stale))
    if built.deleted_topics:
        said.append(tr("deleted topics without queues: {topics}", topics=", ".join(built.deleted_topics)))
    return " · ".join(said)


class RebuildBox(QDialog):
    """Stays beside the window; :meth:`begin` starts, ``answer`` is what was found last."""

    def __init__(self, window: StoreWindow, session: StoreSession) -> None:
        super().__init__(window)
        self._window, self._session = window, session
        self._control: Control | None = None
        self._running = self._stopped = False
        self.answer: Answer | None = None
        self.setObjectName("rebuild.box")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Rebuild queues and index elsewhere"))
        self.setAccessibleName(tr("Rebuild queues and index elsewhere"))
        self.resize(px(980), px(520))
        self._closed = False
        self.finished.connect(lambda _n: self._leave())
        self.told = Label("", 12, "text2", wrap=True)
        self.told.setObjectName("rebuild.told")
        self.field = QLineEdit()
        self.field.setObjectName("rebuild.target")
        self.field.setAccessibleName(tr("Directory for what is built, absent or empty"))
        self.field.setPlaceholderText(tr("Directory for what is built, absent or empty"))
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
        layout.addWidget(self.told)
        layout.addWidget(row(self.field, self.choose, self.start, self.stop))
        layout.addWidget(self.table, 1)
        layout.addWidget(self.table.strip)
        layout.addWidget(self.note)
        layout.addWidget(row(self.copy, self.export, None, self.close_button))
        self._able()

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
        self.field.textChanged.connect(lambda _text: self._able())

    def show_amounts(self, found: Amounts) -> None:
        """What it will read and write, or why it cannot be done."""
        if not self._closed:
            self.told.setText(found.why or amount_words(found))
            self.field.setEnabled(not found.why)
            self.choose.setEnabled(not found.why)

    def begin(self) -> None:
        """Build in the directory of the field, and compare."""
        text = self.field.text().strip()
        if text and not self._running and self.field.isEnabled():
            self._running, self._stopped = True, False
            self._able()
            self._session.jobs.start(self.run(Path(text).expanduser()))

    async def run(self, target: Path) -> None:
        """The rebuilding as a job of the window's; says in the box how it ended."""
        session, began = self._session, time.monotonic()
        store = session.path

        def work(control: Control) -> Answer | str:
            self._control = control
            if self._stopped:
                raise Cancelled
            return refusal(store, target) or rebuild(control, store, session.config, target)

        self.note.setText("")
        self.table.set_state(State("loading", tr("Building queues and index…")))
        said, answer = "", None
        try:
            found = await session.jobs.run(tr("Rebuilding queues and index"), work)
        except (Cancelled, asyncio.CancelledError):
            said = tr("Stopped: nothing is left of what was built.")
        except (StoreError, OSError) as error:
            said = str(error)
        else:
            said, answer = (found, None) if isinstance(found, str) else ("", found)
        self._control, self._running = None, False
        if self._closed:
            return
        self._able()
        if answer is None:
            self._show_rows()  # what was found before is there still
            self.note.setText(said)
            return
        self._show(answer, target, time.monotonic() - began)

    def _show(self, answer: Answer, target: Path, seconds: float) -> None:
        self.answer = answer
        self._show_rows()
        self.table.set_rows(sorted(answer.rows, key=lambda one: one.equal))
        self.table.first_row()
        differ = sum(not one.equal for one in answer.rows)
        verdict = (
            tr("{n:,} of {all:,} queues and index files differ.", n=differ, all=len(answer.rows))
            if differ
            else tr("All {all:,} queues and index files are equal.", all=len(answer.rows))
        )
        where = tr("Built in {path} in {seconds:.1f} s.", path=str(target), seconds=seconds)
        self.note.setText(f"{verdict} {where} {built_words(answer.built)}")
        self._window.say(verdict)
        self._able()
        store = str(self._session.path)
        self._window.note(
            "dispatch.rebuild",
            tr("Rebuild queues and index elsewhere"),
            {"to": str(target), "differ": differ},
            shlex.join(["storescope", "dispatch", store, "--to", str(target)]),
        )

    def _show_rows(self) -> None:
        """The table of what was found last, or why there is none."""
        if self.answer is None:
            self.table.set_state(State("empty", tr("Nothing was built yet.")))
        elif self.answer.rows:
            self.table.set_state(None)
        else:
            self.table.set_state(State("empty", tr("There are no queues and no index files.")))

    def cancel(self) -> None:
        """Stop what is being built; nothing is left of it."""
        self._stopped = True
        if self._control is not None:
            self._control.stop.set()

    def _leave(self) -> None:
        self._closed = True
        self.cancel()

    def _go(self, place: Place) -> None:
        if self._window.session is self._session:
            self._window.go(place)
        else:
            self.note.setText(tr("The store of this table is not open any more."))

    def _able(self) -> None:
        running = self._running
        self.start.setEnabled(not running and bool(self.field.text().strip()))
        self.stop.setEnabled(running)
        self.copy.setEnabled(not running and self.answer is not None)
        self.export.setEnabled(not running and self.answer is not None)

    def _ask(self) -> None:
        ask_target_folder(
            self,
            "rebuild.dialog",
            tr("Folder for what is built"),
            tr("Choose"),
            "rebuilt",
            self._session.path,
            self._session.jobs.read,
            lambda path: self.field.setText(str(path)),
        )

    def _copy(self) -> None:
        if self.answer is not None:
            head = "\t".join(tr(column.title) for column in KIND.columns if column.key)
            rows = sorted(self.answer.rows, key=lambda one: one.equal)
            QGuiApplication.clipboard().setText("\n".join([head, *(KIND.as_text(one) for one in rows)]))

    def _export(self) -> None:
        ask_export(self._window.pane(self._window.view), self.table, "rebuilt.jsonl")


def ask_rebuild(window: StoreWindow) -> RebuildBox | None:
    """The box for the open store; None without one."""
    session = window.session
    if session is None:
        return None
    box = RebuildBox(window, session)
    session.jobs.read(
        lambda: amounts(session.snapshot), box.show_amounts, lambda error: box.show_amounts(Amounts(why=str(error)))
    )
    box.show()
    box.field.setFocus()
    return box
