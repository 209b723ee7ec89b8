"""Errors that the engine raises on purpose: whose fault, and where.

Three kinds: the *store* is wrong (:class:`CorruptUnit`, :class:`WrongFileSize`), the *caller* is wrong
(:class:`UsageError`, :class:`BadFilter`), the *surroundings* are wrong (:class:`CannotRead`, :class:`StoreLocked`,
or the ``OSError`` as it came). Readers report damage as values and raise only where they cannot go on at all.
"""

from __future__ import annotations

import os
import re

_CONNECT = "Connect call failed"
_SEVERAL = "Multiple exceptions: "
_NUMBER = re.compile(r"\[Errno (\d+)\]")


def cause_of(error: BaseException, otherwise: str = "no answer") -> str:
    """Why it went wrong, for a person: of an ``OSError`` the file and what the system says, without its number, and
    without what asyncio says instead of it; ``otherwise`` where the error has no words.
    """
    if isinstance(error, OSError) and error.strerror:
        words = error.strerror
        if error.errno is not None and words.startswith(_CONNECT):
            words = os.strerror(error.errno)
        return f"{error.filename}: {words}" if error.filename else words
    said = str(error)
    if said.startswith(_SEVERAL):  # a name with several addresses
        said = ", ".join(dict.fromkeys(os.strerror(int(number)) for number in _NUMBER.findall(said))) or said
    return said or otherwise


class StoreError(Exception):
    """Base of all errors that this engine raises on purpose.

    ``what`` says what was expected and what was found; ``file`` and ``offset`` (bytes) say where.
    """

    def __init__(self, what: str, *, file: str | None = None, offset: int | None = None) -> None:
        self.what = what
        self.file = file
        self.offset = offset
        super().__init__(what)

    def __str__(self) -> str:
        place = self.file or ""
        if self.offset is not None:
            place = f"{place} at offset {self.offset:,}".strip()
        return f"{place}: {self.what}" if place else self.what


class NotAStore(StoreError):
    """The path holds nothing that can be read as a store; ``what`` says what was found instead."""


class CorruptUnit(StoreError):
    """The bytes at ``offset`` are no unit of the kind that was asked for."""


class WrongFileSize(StoreError):
    """A file's length does not fit its kind."""


class CannotRead(StoreError):
    """The surroundings forbid it: no rights, an input/output error, a file that is gone."""


class Undecoded(CannotRead):
    """It stands in a part of the store that is recognised and not decoded: nothing can be told of it."""


class LinkedFile(StoreError):
    """A file of the store has a second name (a hard link): what is written here would change the other store, too."""


class BadArchive(StoreError):
    """An archive that is damaged, holds too much, or would lay something outside the folder it is unpacked to."""


class StoreLocked(StoreError):
    """Somebody else has the store open for writing; ``pid`` is the number of that process where it is known."""

    def __init__(self, what: str, *, file: str | None = None, pid: int | None = None) -> None:
        super().__init__(what, file=file)
        self.pid = pid


class NotWriteable(StoreError):
    """The store takes nothing now: a flag says why (:attr:`engine.message_store.MessageStore.flags`), or it follows a
    master.
    """


class StoreClosed(NotWriteable):
    """The store was closed: it takes nothing and gives nothing any more, somebody else may have it open."""


class UsageError(StoreError):
    """The caller asked for something that makes no sense; ``what`` names the permitted range."""


class BadFilter(UsageError):
    """A filter text that cannot be understood; ``at`` and ``length`` mark the offending word in characters."""

    def __init__(self, what: str, at: int, length: int = 1) -> None:
        super().__init__(what)
        self.at = at
        self.length = length

    def __str__(self) -> str:
        return f"filter, character {self.at + 1}: {self.what}"
