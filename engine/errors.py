"""Errors that the engine raises on purpose: whose fault, and where.

There are three kinds: the *store* is wrong (:class:`CorruptUnit`, :class:`WrongFileSize`), the *caller* is wrong
(:class:`UsageError`, :class:`BadFilter`), the *environment* is wrong (:class:`CannotRead`, :class:`StoreLocked`,
or the original ``OSError``). Readers report damage as values and raise only if they cannot continue.

"""

from __future__ import annotations

import os
import re

from engine.sentences import join, msgid, sentence

_CONNECT = "Connect call failed"
_SEVERAL = "Multiple exceptions: "
_NUMBER = re.compile(r"\[Errno (\d+)\]")
SYSTEM_ERRORS = (
    msgid("Address already in use"),
    msgid("Broken pipe"),
    msgid("Cannot allocate memory"),
    msgid("Cannot assign requested address"),
    msgid("Connection refused"),
    msgid("Connection reset by peer"),
    msgid("Connection timed out"),
    msgid("Device or resource busy"),
    msgid("File exists"),
    msgid("File name too long"),
    msgid("Input/output error"),
    msgid("Is a directory"),
    msgid("Name or service not known"),
    msgid("Network is unreachable"),
    msgid("No route to host"),
    msgid("No space left on device"),
    msgid("No such file or directory"),
    msgid("Not a directory"),
    msgid("Operation not permitted"),
    msgid("Permission denied"),
    msgid("Read-only file system"),
    msgid("Stale file handle"),
    msgid("Too many open files"),
)
"""Errors of the system whose text (``os.strerror``) the catalogues translate."""


def cause_of(error: BaseException, otherwise: str = "no answer") -> str:
    """Describe the cause of an error for the user.

    For an ``OSError`` this is the file and the system's text, without its number and without asyncio's
    replacement text. ``otherwise`` is returned if the error has no text.

    """
    if isinstance(error, OSError) and error.strerror:
        words = error.strerror
        if error.errno is not None and words.startswith(_CONNECT):
            words = os.strerror(error.errno)
        return sentence("{place}: {what}", place=error.filename, what=sentence(words)) if error.filename else words
    message = str(error)
    if message.startswith(_SEVERAL):  # a name with several addresses
        causes = dict.fromkeys(os.strerror(int(number)) for number in _NUMBER.findall(message))
        message = join(", ", map(sentence, causes)) or message
    return message or otherwise


class StoreError(Exception):
    """Base of all errors that this engine raises on purpose.

    ``what`` says what was expected and what was found; ``file`` and ``offset`` (bytes) say where.
    """

    def __init__(self, problem: str, *, file: str | None = None, offset: int | None = None) -> None:
        self.what = problem
        self.file = file
        self.offset = offset
        super().__init__(problem)

    def __str__(self) -> str:
        place = self.file or ""
        if self.offset is not None:
            place = f"{place} at offset {self.offset:,}".strip()
        return sentence("{place}: {what}", place=place, what=self.what) if place else self.what


class NotAStore(StoreError):
    """The path holds nothing that can be read as a store; ``what`` describes its content."""


class CorruptUnit(StoreError):
    """The bytes at ``offset`` are no unit of the requested kind."""


class WrongFileSize(StoreError):
    """A file's length does not fit its kind."""


class CannotRead(StoreError):
    """The environment prevents reading: missing rights, an input/output error, a missing file."""


class Undecoded(CannotRead):
    """The data is in a part of the store that is recognised and not decoded: nothing is known about it."""


class DamagedDatabase(CannotRead):
    """A RocksDB of the store is damaged or incomplete: nothing is known about what it holds."""


class MissingExtra(CannotRead):
    """An optional package is not installed; ``what`` names the extra."""


class LinkedFile(StoreError):
    """A file of the store has a second name (a hard link): what is written here would change the other store, too."""


class BadArchive(StoreError):
    """An archive is damaged, too large, or would write outside the target folder."""


class StoreLocked(StoreError):
    """Another process has the store open for writing; ``pid`` is its number if known."""

    def __init__(self, problem: str, *, file: str | None = None, pid: int | None = None) -> None:
        super().__init__(problem, file=file)
        self.pid = pid


class NotWriteable(StoreError):
    """The store takes no messages now.

    A flag says why (:attr:`engine.message_store.MessageStore.flags`), or it follows a master.
    """


class StoreClosed(NotWriteable):
    """The store was closed. It can be neither read nor written any more: another process may have it open."""


class UsageError(StoreError):
    """The caller asked for something that makes no sense; ``what`` names the permitted range."""


class BadFilter(UsageError):
    """A filter text that cannot be understood; ``at`` and ``length`` mark the offending word in characters."""

    def __init__(self, problem: str, position: int, length: int = 1) -> None:
        super().__init__(problem)
        self.at = position
        self.length = length

    def __str__(self) -> str:
        return sentence("filter, character {n}: {what}", n=self.at + 1, what=self.what)
