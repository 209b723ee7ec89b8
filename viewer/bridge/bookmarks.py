"""Places that somebody wants to find again: named, marked, with a note; kept for each store outside of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from PySide6.QtCore import QObject, Signal

from viewer.bridge import places
from viewer.bridge.places import Place, Search, UnknownPlace
from viewer.bridge.store_session import StoreSession

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


class Bookmarks(QObject):
    """The bookmarks of one store, in the order in which they were made. ``changed()`` after every change."""

    changed = Signal()

    def __init__(self, session: StoreSession) -> None:
        super().__init__(session)
        self._list: list[Bookmark] = []
        self._gone: list[tuple[int, Bookmark]] = []
        self.keep: Callable[[Sequence[Bookmark]], object] = lambda _list: None
        """Called with all of them after every change."""

    @property
    def list(self) -> tuple[Bookmark, ...]:
        """All of them."""
        return tuple(self._list)

    def at(self, place: str) -> Bookmark | None:
        """The bookmark of a place."""
        return next((one for one in self._list if one.place == place), None)

    def put(self, mark: Bookmark) -> None:
        """Add ``mark``, or put it in the stead of the one at its place."""
        at = next((n for n, one in enumerate(self._list) if one.place == mark.place), None)
        if at is None:
            self._list.append(mark)
            del self._list[:-MOST]
        else:
            self._list[at] = replace(mark, made=self._list[at].made)
        self._tell()

    def remove(self, place: str) -> None:
        """Take the bookmark of a place away; :meth:`undo` brings it back."""
        at = next((n for n, one in enumerate(self._list) if one.place == place), None)
        if at is not None:
            self._gone.append((at, self._list.pop(at)))
            self._tell()

    @property
    def can_undo(self) -> bool:
        """Whether one was taken away."""
        return bool(self._gone)

    def undo(self) -> None:
        """Put back what was taken away last."""
        if self._gone:
            at, mark = self._gone.pop()
            self._list.insert(min(at, len(self._list)), mark)
            self._tell()

    def fill(self, marks: Sequence[Bookmark]) -> None:
        """Take these instead; told, not kept."""
        self._list = list(marks)
        self.changed.emit()

    def merge(self, marks: Sequence[Bookmark]) -> None:
        """Add those whose places have none yet."""
        known = {one.place for one in self._list}
        self._list += [one for one in marks if one.place not in known]
        self._tell()

    def _tell(self) -> None:
        self.keep(self.list)
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


def read(file: Path) -> list[Bookmark]:
    """The bookmarks in ``file``; none where it is not there or holds nothing of the kind."""
    try:
        found = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return []
    return from_records(found.get("bookmarks")) if isinstance(found, dict) else []


def write(file: Path, store: Path, marks: Sequence[Bookmark]) -> None:
    """Keep ``marks``; the file is replaced at once, or stays as it was. Raises OSError."""
    if not marks and not file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".part")
    try:
        kept = {"store": str(store), "bookmarks": records(marks)}
        partial.write_text(json.dumps(kept, ensure_ascii=False, indent=1), "utf-8")
        partial.replace(file)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
