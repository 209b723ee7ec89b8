"""Places that somebody wants to find again: named, marked, with a note; kept for each store outside of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from PySide6.QtCore import QObject, Signal

from engine.whole_file import put_whole
from viewer.look.assets import tr
from viewer.runtime import places
from viewer.runtime.edit import Edit
from viewer.runtime.kept_files import read_kept
from viewer.runtime.places import Place, Search, UnknownPlace
from viewer.runtime.store_session import StoreSession

KINDS = ("note", "ok", "warn", "error", "live", "chat")
"""Marks of a bookmark: each a shape and a colour."""
MOST = 2000


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
            found = places.parse(self.place)
        except UnknownPlace:
            return None
        return None if isinstance(found, Search) else found

    @property
    def offset(self) -> int | None:
        """The byte of the log that it marks."""
        goal = self.goal
        return goal.offset if goal is not None and goal.kind == "log" else None


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of a store: its bookmarks, and the notes about it as a whole."""

    marks: tuple[Bookmark, ...] = ()
    notes: str = ""


class Bookmarks(QObject):
    """The bookmarks of one store, in the order in which they were made. ``changed()`` after every change,
    ``edited(Edit)`` after one that can be taken back.
    """

    changed = Signal()
    edited = Signal(object)

    def __init__(self, session: StoreSession) -> None:
        super().__init__(session)
        self._list: list[Bookmark] = []
        self._notes = ""
        self.keep: Callable[[Kept], object] = lambda _kept: None
        """Called with everything after every change."""

    @property
    def list(self) -> tuple[Bookmark, ...]:
        """All of them."""
        return tuple(self._list)

    @property
    def notes(self) -> str:
        """What somebody wrote about the store as a whole."""
        return self._notes

    def set_notes(self, text: str) -> None:
        """Other words about the store; kept, not told: whoever writes them sees them."""
        if text != self._notes:
            before, self._notes = self._notes, text
            self.keep(Kept(self.list, text))
            self.edited.emit(Edit(tr("notes on this store"), before, text, self._put_notes, run="notes"))

    def _put_notes(self, text: str) -> None:
        self._notes = text
        self._tell()

    def at(self, place: str) -> Bookmark | None:
        """The bookmark of a place."""
        return next((one for one in self._list if one.place == place), None)

    def put(self, mark: Bookmark) -> None:
        """Add ``mark``, or put it in the stead of the one at its place."""
        before = self.list
        at = next((n for n, one in enumerate(self._list) if one.place == mark.place), None)
        if at is None:
            self._list.append(mark)
            del self._list[:-MOST]
        else:
            self._list[at] = replace(mark, made=self._list[at].made)
        self._edited(mark, before)

    def remove(self, place: str) -> None:
        """Take the bookmark of a place away."""
        before, gone = self.list, self.at(place)
        if gone is not None:
            self._list.remove(gone)
            self._edited(gone, before)

    def _edited(self, mark: Bookmark, before: tuple[Bookmark, ...]) -> None:
        self._tell()
        self.edited.emit(Edit(tr("bookmark {name}", name=mark.name), before, self.list, self._put_list))

    def _put_list(self, marks: Sequence[Bookmark]) -> None:
        self._list = [*marks]
        self._tell()

    def fill(self, kept: Kept) -> None:
        """What was kept, in front of what was made meanwhile; told, not kept."""
        known = {one.place for one in kept.marks}
        self._list = [*kept.marks, *(one for one in self._list if one.place not in known)]
        self._notes = self._notes or kept.notes
        self.changed.emit()

    def merge(self, kept: Kept) -> None:
        """Add the bookmarks whose places have none yet, and the notes that are not there yet."""
        known = {one.place for one in self._list}
        self._list += [one for one in kept.marks if one.place not in known]
        if kept.notes and kept.notes not in self._notes:
            self._notes = f"{self._notes}\n{kept.notes}".strip()
        self._tell()

    def _tell(self) -> None:
        self.keep(Kept(self.list, self._notes))
        self.changed.emit()


_known: WeakKeyDictionary[StoreSession, Bookmarks] = WeakKeyDictionary()


def bookmarks_of(session: StoreSession) -> Bookmarks:
    """The bookmarks of an open store."""
    found = _known.get(session)
    if found is None:
        found = _known[session] = Bookmarks(session)
    return found


# ---- how they are kept -----------------------------------------------------------------------------------------------


def records(marks: Sequence[Bookmark]) -> list[dict[str, Any]]:
    """As JSON keeps them."""
    return [asdict(one) for one in marks]


def from_records(found: object) -> list[Bookmark]:
    """What JSON kept; what is no bookmark is left out."""
    marks = []
    for item in found if isinstance(found, list) else []:
        if isinstance(item, dict) and isinstance(item.get("place"), str) and isinstance(item.get("name"), str):
            known = {f.name: item[f.name] for f in fields(Bookmark) if isinstance(item.get(f.name), (str, int))}
            known["kind"] = known["kind"] if known.get("kind") in KINDS else "note"
            marks.append(Bookmark(**known))
    return marks[:MOST]


def file_of(folder: Path, store: Path) -> Path:
    """Where the bookmarks of ``store`` are kept below the settings' ``folder``."""
    name = hashlib.sha256(str(store).encode()).hexdigest()[:16]
    return folder / "bookmarks" / f"{name}.json"


def read(file: Path) -> Kept:
    """What ``file`` keeps; raises as :func:`read_kept`."""
    found = read_kept(file)
    notes = found.get("notes")
    return Kept(tuple(from_records(found.get("bookmarks"))), notes if isinstance(notes, str) else "")


def write(file: Path, store: Path, kept: Kept) -> None:
    """Keep it; the file is replaced at once, or stays as it was. Raises OSError."""
    if kept == Kept() and not file.exists():
        return
    said = {"store": str(store), "notes": kept.notes, "bookmarks": records(kept.marks)}
    put_whole(file, json.dumps(said, ensure_ascii=False, indent=1))
