"""The box for a bookmark's name, mark and note."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QButtonGroup, QDialog, QPlainTextEdit, QVBoxLayout, QWidget
from shiboken6 import isValid

from engine.codec.message import Unit
from viewer.look.assets import tr, words
from viewer.look.theme import mono, px, ui
from viewer.runtime.bookmarks import Bookmark, bookmarks_of
from viewer.runtime.places import Place, parse
from viewer.widgets.basics import Button, Field, Label, StatusMark
from viewer.widgets.boxes import row

if TYPE_CHECKING:
    from viewer.runtime.store_session import StoreSession

MARKS = (
    ("note", words("Blue dot")),
    ("ok", words("Green tick")),
    ("warn", words("Amber triangle")),
    ("error", words("Red diamond")),
    ("live", words("Orange ring")),
    ("chat", words("Grey circle")),
)


class BookmarkBox(QDialog):
    """Asks for name, mark and note of a bookmark.

    Emits ``bookmarkSaved(name, kind, note)`` on Enter or the button, ``removed()`` on "Remove it".
    """

    bookmarkSaved = Signal(str, str, str)
    removed = Signal()

    def __init__(self, parent: QWidget, place: str, name: str, kind: str, note: str, *, exists: bool) -> None:
        super().__init__(parent)
        self.setObjectName("bookmark.box")
        self.setWindowTitle(tr("Bookmark"))
        self.setAccessibleName(tr("Bookmark"))
        self.setMinimumWidth(px(420))
        self.name = Field(tr("Name"))
        self.name.setObjectName("bookmark.name")
        self.name.setText(name)
        self.name.selectAll()
        self.note = QPlainTextEdit(note)
        self.note.setObjectName("bookmark.note")
        self.note.setAccessibleName(tr("Note"))
        self.note.setFont(ui(13))
        self.note.setTabChangesFocus(True)
        self.note.setFixedHeight(px(96))
        self._marks = QButtonGroup(self)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(20), px(16), px(20), px(16))
        layout.setSpacing(px(10))
        where = Label(place, 12, "text2", code=True, select=True)
        where.setFont(mono(12))
        layout.addWidget(where)
        layout.addWidget(self.name)
        layout.addWidget(self._mark_row(kind))
        layout.addWidget(Label(tr("Note"), 12, "text3"))
        layout.addWidget(self.note)
        layout.addWidget(self._buttons(exists))
        self.name.returnPressed.connect(self._keep)
        QShortcut(QKeySequence("Ctrl+Return"), self, self._keep)

    @property
    def kind(self) -> str:
        """The chosen mark."""
        chosen = self._marks.checkedButton()
        return str(chosen.property("mark")) if chosen is not None else "note"

    def _mark_row(self, kind: str) -> QWidget:
        parts: list[QWidget | int | None] = []
        for mark, title in MARKS:
            button = Button(tr(title), "pill")
            button.setObjectName(f"bookmark.{mark}")
            button.setCheckable(True)
            button.setChecked(mark == kind)
            button.setProperty("mark", mark)
            self._marks.addButton(button)
            parts.append(row(StatusMark(mark), button, gap=4))
        half = len(parts) // 2
        box = QWidget()
        lines = QVBoxLayout(box)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(px(6))
        lines.addWidget(row(*parts[:half], None, gap=10))
        lines.addWidget(row(*parts[half:], None, gap=10))
        return box

    def _buttons(self, exists: bool) -> QWidget:
        keep = Button(tr("Keep the bookmark"), "primary")
        keep.setObjectName("bookmark.keep")
        keep.clicked.connect(self._keep)
        cancel = Button(tr("Cancel"))
        cancel.clicked.connect(self.reject)
        remove = Button(tr("Remove it"), "danger")
        remove.setObjectName("bookmark.remove")
        remove.setVisible(exists)
        remove.clicked.connect(lambda: (self.removed.emit(), self.accept()))
        return row(remove, None, cancel, keep, gap=8)

    def offer_name(self, name: str) -> None:
        """Set a better name for the place, unless the user has typed one meanwhile."""
        if name and not self.name.isModified():
            self.name.setText(name)
            self.name.selectAll()

    def _keep(self) -> None:
        self.bookmarkSaved.emit(self.name.text().strip(), self.kind, self.note.toPlainText().strip())
        self.accept()


def message_name(item: object) -> str:
    """Return ``CartUpdates/1/0 · K4``: the queue entry of a unit and its first key. Empty for anything else."""
    if not isinstance(item, Unit):
        return ""
    entry = f"{item.topic}/{item.queue_id}/{item.queue_offset:,}"
    return " · ".join((entry, *item.keys[:1]))


def ask_bookmark(parent: QWidget, session: StoreSession, place: str, name: str) -> None:
    """Ask for name, mark and note of the bookmark at ``place``. An existing bookmark is changed."""
    marks = bookmarks_of(session)
    bookmark = marks.at(place)
    shown = bookmark if bookmark is not None else Bookmark(place, name)
    box = BookmarkBox(parent, place, shown.name, shown.kind, shown.note, exists=bookmark is not None)

    def keep(name: str, kind: str, note: str) -> None:
        marks.put(Bookmark(place, name or place, kind, note, round(time.time() * 1000)))

    box.bookmarkSaved.connect(keep)
    box.removed.connect(lambda: marks.remove(place))
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    log_place = parse(place) if bookmark is None and place.startswith("log:") else None
    if isinstance(log_place, Place) and log_place.offset is not None:
        offset, log = log_place.offset, session.snapshot.log

        def offer(name: str) -> None:
            if isValid(box):
                box.offer_name(name)

        session.jobs.read(lambda: message_name(log.unit_at(offset, crc=False)), offer, lambda _error: None)
    box.open()
    box.name.setFocus()
