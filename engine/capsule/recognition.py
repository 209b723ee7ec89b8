"""Recognise capsules, and refuse everything that would write into one. Loads nothing large."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from engine.errors import UsageError
from engine.sentences import sentence

MAGIC: Final = b"\x89STORESCOPE-CAPSULE\n"
LEFT_OUT = sentence("left out of the capsule")
NOT_WRITTEN = sentence("this is a capsule of a store: it can be read, but not changed or copied as a store")


class CapsuleIsReadOnly(UsageError):
    """Something would write into a capsule, or read it as it would be after a change."""

    def __init__(self, path: str) -> None:
        super().__init__(NOT_WRITTEN, file=path)


def is_capsule(path: str | Path) -> bool:
    """Return True if ``path`` is a file that begins as a capsule does; False if it cannot be read."""
    try:
        if not Path(path).is_file():
            return False
        with Path(path).open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):
        return False


def refuse_capsule(path: str | Path) -> None:
    """Raise :class:`CapsuleIsReadOnly` if ``path`` is a capsule."""
    if is_capsule(path):
        raise CapsuleIsReadOnly(str(path))
