"""Bookmarks of a store: a table whose rows are links to their places, with the note of the selected row below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QPlainTextEdit, QVBoxLayout, QWidget

from viewer.look.assets import tr, tr_plural, words
from viewer.look.theme import px, ui
from viewer.pane import Pane
from viewer.pane.bookmark_box import ask_bookmark
from viewer.pane.log_survey import LogSurvey
from viewer.pane.table_commands import table_commands
from viewer.runtime import places
from viewer.runtime.bookmarks import Bookmark, bookmarks_of
from viewer.runtime.places import Place
from viewer.widgets.basics import Button, Hairline, Label, PaneHead
from viewer.widgets.boxes import column, stacked
from viewer.widgets.columns import Chip, Column, RecordKind, chip_column, moment_column, text_column
from viewer.widgets.line_strip import LineStrip
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from viewer.runtime.store_session import StoreSession

BOOKMARKS = RecordKind(
    "bookmark",
    (
        chip_column("kind", "", 36, lambda row: Chip(row.kind)),
        text_column("name", words("Name"), 280),
        Column(
            "place",
            words("Place"),
            260,
            lambda row: row.place,
            lambda row: row.place,
            mono=True,
            elide="middle",
            jump=lambda row: row.goal,
        ),
        text_column("note", words("Note"), 360),
        moment_column("made", words("Made"), 186),
    ),
    verdict=lambda row: row.kind,
    record=lambda row: {"place": row.place, "name": row.name, "mark": row.kind, "note": row.note, "made": row.made},
    command=lambda row: ["storescope", "view", "STORE", "--at", row.place],
)


class BookmarksPane(Pane):
    """View of a store's bookmarks and of the notes on the store."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("bookmarks.pane")
        self.strip = LineStrip("bookmarks.line")
        self.strip.offsetChosen.connect(lambda offset: self.placeRequested.emit(places.log(offset)))
        self._survey = LogSurvey(self.strip)
        edit, remove = Button(tr("Edit…"), "flat"), Button(tr("Remove"), "flat")
        edit.setObjectName("bookmarks.edit")
        remove.setObjectName("bookmarks.remove")
        edit.clicked.connect(self.edit)
        remove.clicked.connect(self.remove)
        self.head = PaneHead(tr("Bookmarks"), tr("saved for this store, outside its folder"), edit, remove)
        self.table = RecordView("bookmarks.table", BOOKMARKS)
        self.table.setAccessibleName(tr("Bookmarks"))
        self.table.placeRequested.connect(self.placeRequested)
        self.table.rowChosen.connect(self._show_note)
        self._note = Label("", 13, "text", wrap=True, select=True)
        self._note.setObjectName("bookmarks.note")
        self.notes = QPlainTextEdit()
        self.notes.setObjectName("bookmarks.notes")
        self.notes.setAccessibleName(tr("Notes on this store"))
        self.notes.setPlaceholderText(tr("Notes on this store: what was seen, what was tried"))
        self.notes.setTabChangesFocus(True)
        self.notes.textChanged.connect(self._save_notes)
        below = column(
            self._note, Label(tr("Notes on this store"), 12, "text3"), self.notes, gap=6, margins=(14, 8, 14, 10)
        )
        self.retheme()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(stacked(self.strip, self.head, self.table, self.table.strip, Hairline(), below, room=2))
        self.lead = self.table

    def set_session(self, session: StoreSession | None) -> None:
        """Show the bookmarks of another store."""
        super().set_session(session)
        self._survey.set_session(session)
        if session is not None:
            bookmarks_of(session).changed.connect(self._fill)
            self._survey.read_extent()
        self._fill()

    def show_place(self, place: Place) -> None:
        """Show all bookmarks and select the one named in ``place``."""
        index = next((number for number, bookmark in enumerate(self._list()) if bookmark.name == place.name), None)
        if index is not None:
            self.table.go_to_row(index)

    def refresh(self) -> None:
        """Draw the log again after the store has grown."""
        self._survey.on_log_grown()

    def retheme(self) -> None:
        """Apply fonts and colours."""
        self.notes.setFont(ui(13))
        self.notes.setFixedHeight(px(110))
        self.table.refresh_look()

    def status(self) -> str:
        """Return the number of bookmarks in words."""
        return tr_plural("{n:,} bookmark", "{n:,} bookmarks", n=len(self._list()))

    def focus_stops(self) -> Sequence[QWidget]:
        """Return the parts between which F6 moves the focus."""
        return self.table, self.notes

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the commands for copying, stepping, editing and removing."""
        commands: dict[str, Callable[[], object]] = table_commands(self, lambda: self.table, "bookmarks.jsonl")
        if self._chosen() is not None:
            commands |= {"bookmark.edit": self.edit, "bookmark.remove": self.remove}
        return commands

    def edit(self) -> None:
        """Ask for name, mark and note of the selected bookmark."""
        chosen = self._chosen()
        if chosen is not None and self.session is not None:
            ask_bookmark(self, self.session, chosen.place, chosen.name)

    def remove(self) -> None:
        """Remove the selected bookmark."""
        chosen = self._chosen()
        if chosen is not None and self.session is not None:
            bookmarks_of(self.session).remove(chosen.place)
            message = tr("Removed {name}.", name=chosen.name)
            self.table.set_state(State("note", message, steps=((tr("Undo"), self.undoRequested.emit),)))
            self.statusMessage.emit(message)

    def _list(self) -> tuple[Bookmark, ...]:
        return bookmarks_of(self.session).list if self.session is not None else ()

    def _chosen(self) -> Bookmark | None:
        row = self.table.current_row()
        return row if isinstance(row, Bookmark) else None

    def _fill(self) -> None:
        rows, chosen = list(self._list()), self._chosen()
        self.table.set_rows(list(rows))
        empty = State("hint", tr("No bookmark yet. Ctrl+B saves the current place with a name and a note."))
        self.table.set_state(None if rows else empty)
        index = next(
            (number for number, bookmark in enumerate(rows) if chosen is not None and bookmark.place == chosen.place), 0
        )
        if rows:
            self.table.go_to_row(index)
        else:
            self._show_note(None)
        notes = bookmarks_of(self.session).notes if self.session is not None else ""
        if notes != self.notes.toPlainText():
            self.notes.blockSignals(True)
            self.notes.setPlainText(notes)
            self.notes.blockSignals(False)

    def _save_notes(self) -> None:
        if self.session is not None:
            bookmarks_of(self.session).set_notes(self.notes.toPlainText())

    def _show_note(self, chosen: Bookmark | None) -> None:
        self._note.setText((chosen.note or tr("No note.")) if chosen is not None else "")
        if chosen is not None and chosen.offset is not None:
            self.strip.set_frame(chosen.offset, chosen.offset + 1)
