"""What of the open store could not be read, whoever met it: a short look of the window, or a job of the worker.

Nothing may be concluded from bytes that were not seen, so this outlives the look that met it. It ends where all of it
can be read again, or where the store is looked at anew.
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
    from engine.mapped.reading import Unread

MOST_TRIED = 64
"""Unread files that are tried again at each look; more are tried when these can be read."""


class UnreadLedger(QObject):
    """``changed()`` when :attr:`list` has become another."""

    changed = Signal()

    def __init__(self, store: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._noted: dict[tuple[str, str], Unread] = {}

    def __bool__(self) -> bool:
        return bool(self._noted)

    @property
    def list(self) -> tuple[Unread, ...]:
        """All of it, in the order in which it was met; of one file each thing that was tried once."""
        return tuple(self._noted.values())

    def note(self, found: Iterable[Unread]) -> None:
        """A look or a job could not read this."""
        before = len(self._noted)
        for one in found:
            self._noted.setdefault((one.file, one.action), one)
        if len(self._noted) != before:
            self.changed.emit()

    def keep(self, still: Iterable[Unread]) -> bool:
        """The store was looked at again: of what was noted ``still`` cannot be read. Whether something can be now."""
        kept: dict[tuple[str, str], Unread] = {(one.file, one.action): one for one in still}
        fewer = len(kept) < len(self._noted)
        if fewer:
            self._noted = kept
            self.changed.emit()
        return fewer

    @property
    def words(self) -> str:
        """The first file with the reason, and how many more there are; empty where everything could be read."""
        if not self._noted:
            return ""
        first, more = self.list[0], len({one.file for one in self.list}) - 1
        said = self.said(first)
        return said if more <= 0 else tr("{said} · and {n:,} more", said=said, n=more)

    @property
    def count(self) -> str:
        """``3 unread``: how many files and folders, in two words; ``1 not decoded`` where everything could be read."""
        if not self._noted:
            return ""
        files = len({one.file for one in self.unreadable})
        if files:
            return tr("{n:,} unread", n=files)
        return tr("{n:,} not decoded", n=len({one.file for one in self.undecoded}))

    @property
    def unreadable(self) -> tuple[Unread, ...]:
        """What could not be read."""
        return tuple(one for one in self._noted.values() if one.action != "decode")

    @property
    def undecoded(self) -> tuple[Unread, ...]:
        """Parts that were asked for and are not decoded."""
        return tuple(one for one in self._noted.values() if one.action == "decode")

    def said(self, one: Unread) -> str:
        """One of them in words, its file by its name below the store."""
        file = os.path.relpath(one.file, self._store) if _below(one.file, self._store) else one.file
        return engine_words(one.words.replace(one.file, file, 1))

    @property
    def edge(self) -> str:
        """How far a job came that looked at all there is: complete, or what it could not read."""
        return tr("incomplete: {unread}", unread=self.words) if self._noted else tr("complete")

    def beside(self, said: str) -> str:
        """What a job ends with: that it is not all is said beside it."""
        return f"{said} · {self.edge}" if self._noted else said


def _below(file: str, folder: Path) -> bool:
    return file != str(folder) and Path(file).is_relative_to(folder)


def still_unread(noted: Iterable[Unread], *, anew: bool) -> tuple[Unread, ...]:
    """Those of ``noted`` that still cannot be opened, listed or looked at; what is gone by now is not there, and so not
    unread. What failed while it was read is kept until the store is looked at ``anew``: which of its bytes are good
    shows when they are asked for.
    """
    noted = tuple(noted)
    return (*(one for one in noted[:MOST_TRIED] if _fails(one, anew)), *noted[MOST_TRIED:])


def _fails(one: Unread, anew: bool) -> bool:
    from engine.mapped.reading import Reading

    reading = Reading()
    try:
        if one.action == "open":
            descriptor = reading.open(one.file, listed=False)
            if descriptor >= 0:
                os.close(descriptor)
        elif one.action == "list":
            reading.entries(one.file)
        elif one.action == "look":
            reading.look(one.file)
        else:
            return not anew
    except CannotRead:
        return True
    except CorruptUnit:
        return False  # it is there, and no file
    return False
