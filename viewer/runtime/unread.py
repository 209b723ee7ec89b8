"""The parts of the open store that a read of the window or a job of the worker could not read. Nothing may be concluded
from bytes that were not read, so the list outlives that read. It becomes empty when all parts can be read again, or
when the store is read anew.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from engine.errors import CannotRead, CorruptUnit
from viewer.look.assets import tr
from viewer.look.engine_words import engine_words

if TYPE_CHECKING:
    from engine.mapped.reading import Reading, Unread

MAX_TRIED = 64
"""Number of unread files that are tried again each time; further ones are tried when these can be read."""


class UnreadFiles(QObject):
    """Parts of a store that could not be read. Emits ``changed()`` when :attr:`list` changes."""

    changed = Signal()

    def __init__(self, store: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._noted: dict[tuple[str, str], Unread] = {}

    def __bool__(self) -> bool:
        return bool(self._noted)

    @property
    def list(self) -> tuple[Unread, ...]:
        """All unread parts in the order of the attempts. Each kind of attempt on a file is listed once."""
        return tuple(self._noted.values())

    def note(self, items: Iterable[Unread]) -> None:
        """Add a part that could not be read."""
        old_count = len(self._noted)
        for item in items:
            self._noted.setdefault((item.file, item.action), item)
        if len(self._noted) != old_count:
            self.changed.emit()

    def keep(self, still_unread: Iterable[Unread]) -> bool:
        """Keep only the items that are ``still_unread`` after a refresh. Return True if there are fewer now."""
        kept_items: dict[tuple[str, str], Unread] = {(item.file, item.action): item for item in still_unread}
        fewer = len(kept_items) < len(self._noted)
        if fewer:
            self._noted = kept_items
            self.changed.emit()
        return fewer

    @property
    def words(self) -> str:
        """The first file with the reason, and how many more there are; empty where everything could be read."""
        if not self._noted:
            return ""
        first_item, other_files = self.list[0], len({item.file for item in self.list}) - 1
        item_words = self.entry_text(first_item)
        return item_words if other_files <= 0 else tr("{said} · and {n:,} more", said=item_words, n=other_files)

    @property
    def count(self) -> str:
        """``3 unread``: how many files and folders, in two words; ``1 not decoded`` where everything could be read."""
        if not self._noted:
            return ""
        files = len({item.file for item in self.unreadable})
        if files:
            return tr("{n:,} unread", n=files)
        return tr("{n:,} not decoded", n=len({item.file for item in self.undecoded}))

    @property
    def unreadable(self) -> tuple[Unread, ...]:
        """The parts that could not be read."""
        return tuple(item for item in self._noted.values() if item.action != "decode")

    @property
    def undecoded(self) -> tuple[Unread, ...]:
        """Parts that were asked for and are not decoded."""
        return tuple(item for item in self._noted.values() if item.action == "decode")

    def entry_text(self, item: Unread) -> str:
        """Return one of them in words, with the file's path below the store."""
        file = os.path.relpath(item.file, self._store) if _below(item.file, self._store) else item.file
        return engine_words(item.words_of(file))

    @property
    def edge(self) -> str:
        """Return the completeness of a job that looked at everything: complete, or the parts that it could not read."""
        return tr("incomplete: {unread}", unread=self.words) if self._noted else tr("complete")

    def beside(self, result: str) -> str:
        """Add to a job's result that it is incomplete, if it is."""
        return f"{result} · {self.edge}" if self._noted else result


def _below(file: str, folder: Path) -> bool:
    return file != str(folder) and Path(file).is_relative_to(folder)


def still_unread(noted: Iterable[Unread], *, anew: bool, store_reading: Reading | None = None) -> tuple[Unread, ...]:
    """Return the items of ``noted`` that still cannot be opened, listed or examined.

    A file that does not exist any more is not unread. A failed read stays in the list unless ``anew``: only reading the
    bytes again shows which of them are good.
    """
    noted = tuple(noted)
    from engine.mapped import reading as reading_module

    reading = reading_module.Reading() if store_reading is None else store_reading.with_own_records()
    return (*(item for item in noted[:MAX_TRIED] if _fails(item, anew, reading)), *noted[MAX_TRIED:])


def _fails(item: Unread, anew: bool, reading: Reading) -> bool:
    try:
        if item.action == "open":
            descriptor = reading.open(item.file, listed=False)
            if descriptor >= 0:
                os.close(descriptor)
        elif item.action == "list":
            reading.entries(item.file)
        elif item.action == "look":
            reading.status(item.file)
        else:
            return not anew
    except CannotRead:
        return True
    except CorruptUnit:
        return False  # it is there, and no file
    return False
