"""Bookmarks: places of a store with a name, a mark and a note. They are saved outside of the store."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from PySide6.QtCore import QObject, Signal

from engine.files.atomic_file import write_atomically
from viewer.look.assets import tr
from viewer.runtime import places
from viewer.runtime.edit import Edit
from viewer.runtime.file_saver import VERSION, read_saved
from viewer.runtime.places import Place, Search, UnknownPlace
from viewer.runtime.store_session import StoreSession

KINDS = ("note", "ok", "warn", "error", "live", "chat")
"""Marks of a bookmark: each a shape and a colour."""
MAX_BOOKMARKS = 2000


@dataclass(frozen=True, slots=True)
class Bookmark:
    """``place`` in its written form; ``kind`` one of :data:`KINDS`; ``made`` in ms since the epoch."""

    place: str
    name: str
    kind: str = "note"
    note: str = ""
    made: int = 0

    @property
    def goal(self) -> Place | None:
        """The place itself; None where its text means none."""
        try:
            place = places.parse(self.place)
        except UnknownPlace:
            return None
        return None if isinstance(place, Search) else place

    @property
    def offset(self) -> int | None:
        """The byte of the log that it marks."""
        goal = self.goal
        return goal.offset if goal is not None and goal.kind == "log" else None


@dataclass(frozen=True, slots=True)
class SavedBookmarks:
    """Saved state of a store: its bookmarks, and the notes about it as a whole."""

    marks: tuple[Bookmark, ...] = ()
    notes: str = ""


class Bookmarks(QObject):
    """The bookmarks of one store, in the order in which they were made.

    Emits ``changed()`` after every change, ``edited(Edit)`` after one that can be undone.
    """

    changed = Signal()
    edited = Signal(object)
    saveRequested = Signal(object)
    """Everything, as :class:`SavedBookmarks`, after every change."""

    def __init__(self, session: StoreSession) -> None:
        super().__init__(session)
        self._list: list[Bookmark] = []
        self._notes = ""

    @property
    def list(self) -> tuple[Bookmark, ...]:
        """All of them."""
        return tuple(self._list)

    @property
    def notes(self) -> str:
        """The user's notes about the store as a whole."""
        return self._notes

    def set_notes(self, text: str) -> None:
        """Replace the notes about the store. Saves them; no ``changed``: the editor shows them already."""
        if text != self._notes:
            old_notes, self._notes = self._notes, text
            self.saveRequested.emit(SavedBookmarks(self.list, text))
            self.edited.emit(Edit(tr("notes on this store"), old_notes, text, self._put_notes, run="notes"))

    def _put_notes(self, text: str) -> None:
        self._notes = text
        self._tell()

    def at(self, place: str) -> Bookmark | None:
        """Return the bookmark of a place, or None."""
        return next((mark for mark in self._list if mark.place == place), None)

    def put(self, mark: Bookmark) -> None:
        """Add ``mark``, or replace the bookmark of the same place."""
        old_list = self.list
        index = next((n for n, listed in enumerate(self._list) if listed.place == mark.place), None)
        if index is None:
            self._list.append(mark)
            del self._list[:-MAX_BOOKMARKS]
        else:
            self._list[index] = replace(mark, made=self._list[index].made)
        self._edited(mark, old_list)

    def remove(self, place: str) -> None:
        """Remove the bookmark of a place."""
        old_list, mark = self.list, self.at(place)
        if mark is not None:
            self._list.remove(mark)
            self._edited(mark, old_list)

    def _edited(self, mark: Bookmark, old_list: tuple[Bookmark, ...]) -> None:
        self._tell()
        self.edited.emit(Edit(tr("bookmark {name}", name=mark.name), old_list, self.list, self._put_list))

    def _put_list(self, marks: Sequence[Bookmark]) -> None:
        self._list = [*marks]
        self._tell()

    def fill(self, saved: SavedBookmarks) -> None:
        """Insert the saved bookmarks before those made meanwhile. Emits ``changed``; does not save."""
        saved_places = {mark.place for mark in saved.marks}
        self._list = [*saved.marks, *(mark for mark in self._list if mark.place not in saved_places)]
        self._notes = self._notes or saved.notes
        self.changed.emit()

    def merge(self, saved: SavedBookmarks) -> None:
        """Add the bookmarks whose places have none yet, and the notes that are not there yet."""
        places_marked = {mark.place for mark in self._list}
        self._list += [mark for mark in saved.marks if mark.place not in places_marked]
        if saved.notes and saved.notes not in self._notes:
            self._notes = f"{self._notes}\n{saved.notes}".strip()
        self._tell()

    def _tell(self) -> None:
        self.saveRequested.emit(SavedBookmarks(self.list, self._notes))
        self.changed.emit()


_known: WeakKeyDictionary[StoreSession, Bookmarks] = WeakKeyDictionary()


def bookmarks_of(session: StoreSession) -> Bookmarks:
    """The bookmarks of an open store."""
    bookmarks = _known.get(session)
    if bookmarks is None:
        bookmarks = _known[session] = Bookmarks(session)
    return bookmarks


# ---- how they are kept -----------------------------------------------------------------------------------------------


def records(marks: Sequence[Bookmark]) -> list[dict[str, Any]]:
    """Return ``marks`` as JSON objects."""
    return [asdict(mark) for mark in marks]


def from_records(items: object) -> list[Bookmark]:
    """Read bookmarks from JSON values; skips what is no bookmark."""
    marks = []
    for item in items if isinstance(items, list) else []:
        if isinstance(item, dict) and isinstance(item.get("place"), str) and isinstance(item.get("name"), str):
            values = {f.name: item[f.name] for f in fields(Bookmark) if isinstance(item.get(f.name), (str, int))}
            values["kind"] = values["kind"] if values.get("kind") in KINDS else "note"
            marks.append(Bookmark(**values))
    return marks[:MAX_BOOKMARKS]


def file_of(folder: Path, store: Path) -> Path:
    """Return the file below the settings' ``folder`` that holds the bookmarks of ``store``."""
    name = hashlib.sha256(str(store).encode()).hexdigest()[:16]
    return folder / "bookmarks" / f"{name}.json"


def read(file: Path) -> SavedBookmarks:
    """Read the bookmarks and notes in ``file``; raises as :func:`read_saved`."""
    saved = read_saved(file)
    notes = saved.get("notes")
    return SavedBookmarks(tuple(from_records(saved.get("bookmarks"))), notes if isinstance(notes, str) else "")


def write(file: Path, store: Path, saved: SavedBookmarks) -> None:
    """Save bookmarks and notes. The file is replaced atomically or stays as it was. Raises OSError."""
    if saved == SavedBookmarks() and not file.exists():
        return
    document = {"version": VERSION, "store": str(store), "notes": saved.notes, "bookmarks": records(saved.marks)}
    write_atomically(file, json.dumps(document, ensure_ascii=False, indent=1))
