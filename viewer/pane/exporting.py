"""Export of a table: every row as JSON lines, CSV or Markdown, with a dialog for format and file.

Files are written off the loop and never into the store.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QFileDialog, QVBoxLayout, QWidget

from engine.files.atomic_file import atomic_text
from viewer.look.assets import tr, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.look.theme import px
from viewer.pane import Pane
from viewer.runtime.jobs import Cancelled, Control
from viewer.runtime.store_session import StoreSession, in_store
from viewer.widgets.basics import Button, Field, Label
from viewer.widgets.boxes import row
from viewer.widgets.choices import ChoiceField
from viewer.widgets.columns import Record, RecordKind
from viewer.widgets.record_view import RecordView
from viewer.widgets.row_window import RowSource

ROWS_PER_ROUND = 500
ToRecord = Callable[[Record], dict[str, Any]]
Say = Callable[[str], object]
"""Shows a sentence in the status bar."""


def ask_export(pane: Pane, table: RecordView, name: str, to_record: ToRecord | None = None) -> TableExportBox | None:
    """Ask for a file and export the rows of a pane's table into it.

    ``to_record`` makes fuller records than the table's.
    """
    session = pane.session
    return (
        ask_export_of(session, pane, pane.statusMessage.emit, table, name, to_record) if session is not None else None
    )


def ask_export_of(
    session: StoreSession, parent: QWidget, say: Say, table: RecordView, name: str, to_record: ToRecord | None = None
) -> TableExportBox:
    """Ask for a file over ``parent`` and export the rows of ``table`` into it; ``say`` tells the user how it ended."""
    box = TableExportBox(name, Path.home(), parent)
    box.exportRequested.connect(lambda path: export(session, say, table, path, to_record))
    box.open()
    return box


def export(session: StoreSession, say: Say, table: RecordView, target: Path, to_record: ToRecord | None = None) -> None:
    """Write all rows of ``table`` to ``target`` in a job that is listed and can be cancelled."""
    if session.closed:
        return
    if in_store(session.path, target):
        say(tr("Nothing is written into the store: choose another folder."))
        return
    source, kind = table.source, table.kind

    async def work() -> None:
        try:
            count = await session.jobs.run(
                tr("Exporting {name}", name=target.name),
                lambda control: write_rows(control, source, kind, target, to_record),
            )
        except Cancelled:
            say(tr("The export was stopped; no file was written."))
        except OSError as error:
            say(f"{target}: {engine_words(error.strerror or str(error))}")
        else:
            message = tr_plural(
                "{n:,} row written to {path}", "{n:,} rows written to {path}", n=count, path=str(target)
            )
            say(session.unread.beside(message))

    session.jobs.start(work())


def write_rows(
    control: Control, source: RowSource[Record], kind: RecordKind, target: Path, to_record: ToRecord | None = None
) -> int:
    """Write every row of ``source`` and return their number. The file appears only when it is complete."""
    with atomic_text(target, newline="") as out:
        forms = {".csv": _csv_writer, ".md": _markdown_writer}
        form = forms.get(target.suffix)
        write = form(out, kind) if form is not None else _json_writer(out, to_record or kind.as_record)
        return _write_all(control, source, write)


def _write_all(control: Control, source: RowSource[Record], write: Callable[[Record], None]) -> int:
    position, count = source.start, 0
    while True:
        control.check()
        page = source.read(position, 0, ROWS_PER_ROUND)
        for record in page.rows:
            write(record)
        count += len(page.rows)
        if page.is_last or not page.rows:
            return count
        position = source.behind(page.rows[-1])
        control.report(position - source.start, max(1, source.end - source.start))


def _json_writer(out: IO[str], to_record: ToRecord) -> Callable[[Record], None]:
    return lambda row: print(json.dumps(to_record(row), ensure_ascii=False, default=_plain), file=out)


def _csv_writer(out: IO[str], kind: RecordKind) -> Callable[[Record], None]:
    columns = [column for column in kind.columns if column.key]
    import csv  # loaded only for an export

    writer = csv.writer(out)
    writer.writerow([column.key for column in columns])
    return lambda row: writer.writerow([_cell(column.value(row)) for column in columns])


def _markdown_writer(out: IO[str], kind: RecordKind) -> Callable[[Record], None]:
    """Write the table's head and return a function that writes a row as it is shown."""
    columns = [column for column in kind.columns if column.title]
    print(f"| {' | '.join(column.head for column in columns)} |", file=out)
    print(f"|{' --- |' * len(columns)}", file=out)

    def line(row: Record) -> None:
        look = kind.look(row)
        cells = [column.text(row).replace("\\", "\\\\").replace("|", "\\|") for column in columns]
        if look is not None and look.words:
            cells[-1] = look.words.replace("|", "\\|")
        print(f"| {' | '.join(cells)} |", file=out)

    return line


def _cell(value: object) -> object:
    if isinstance(value, (list, tuple)):
        return " ".join(str(item) for item in value)
    return _plain(value) if isinstance(value, (bytes, bytearray)) else value


def _plain(value: object) -> object:
    return value.hex() if isinstance(value, (bytes, bytearray)) else str(value)


FORMS = (
    ("jsonl", words("JSON lines: every field")),
    ("csv", words("CSV: one line a row")),
    ("md", words("Markdown table, as it is shown")),
)


class TableExportBox(QDialog):
    """Asks for format and file. ``exportRequested(path)`` starts the export."""

    exportRequested = Signal(object)

    def __init__(self, name: str, folder: Path, parent: QWidget, forms: Sequence[tuple[str, str]] = FORMS) -> None:
        super().__init__(parent)
        self.setObjectName("export.box")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Export the table"))
        self.setAccessibleName(tr("Export the table"))
        self._folder, self._stem, self._touched = folder, Path(name).stem, False
        self.form = ChoiceField()
        self.form.setObjectName("export.form")
        self.form.setAccessibleName(tr("Form"))
        for suffix, text in forms:
            self.form.addItem(tr(text), suffix)
        self.path = Field(tr("File"), code=True)
        self.path.setObjectName("export.path")
        browse, cancel, go = Button(tr("Choose…")), Button(tr("Cancel")), Button(tr("Export"), "primary")
        for button, part in ((browse, "browse"), (cancel, "cancel"), (go, "go")):
            button.setObjectName(f"export.{part}")
        browse.clicked.connect(lambda: ask_target(self, self.path.text(), self._chosen))
        cancel.clicked.connect(self.reject)
        go.clicked.connect(self._go)
        self.form.currentIndexChanged.connect(lambda _n: self._formed())
        self.path.textEdited.connect(lambda _text: setattr(self, "_touched", True))
        self.resize(px(560), px(180))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(20), px(16), px(20), px(16))
        layout.setSpacing(px(10))
        layout.addWidget(row(Label(tr("Form"), 13, "text", 600), self.form, None))
        layout.addWidget(row(self.path, browse))
        layout.addStretch(1)
        layout.addWidget(row(None, cancel, go))
        self._formed()

    def _formed(self) -> None:
        suffix = self.form.currentData()
        if not self._touched:
            self.path.setText(str(self._folder / f"{self._stem}.{suffix}"))
        else:
            self.path.setText(str(Path(self.path.text()).with_suffix(f".{suffix}")))

    def _chosen(self, path: str) -> None:
        self._touched = True
        self.path.setText(path)
        form_index = self.form.findData(Path(path).suffix.removeprefix("."))
        if form_index >= 0:
            self.form.setCurrentIndex(form_index)

    def _go(self) -> None:
        if self.path.text().strip():
            self.exportRequested.emit(Path(self.path.text()).expanduser())
            self.accept()


def ask_target(box: QWidget, path: str, chosen: Callable[[str], object]) -> None:
    """Ask for the file to write, with ``path`` proposed, and call ``chosen`` with the answer."""
    dialog = QFileDialog(box, tr("Export the table"), path)
    dialog.setObjectName("export.dialog")
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.fileSelected.connect(chosen)
    dialog.open()
