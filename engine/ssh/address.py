"""Addresses of stores on another machine: ``ssh://USER@HOST:PORT/path/of/the/store``. Loads nothing large."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.errors import UsageError
from engine.sentences import sentence

SCHEME: Final = "ssh:/"
_ADDRESS = re.compile(
    r"ssh:/{1,2}(?P<machine>(?:(?P<user>[^@/\s-][^@/\s]*)@)?(?P<host>\[[0-9a-fA-F:.]+\]|[^@/:\s\[\]-][^@/:\s]*)(?::(?P<port>\d{1,5}))?)"
    r"(?P<path>/.*)?"
)
NOT_WRITTEN = sentence("this store is on another machine: it can be read here, but not changed")

UPLOAD_HELP = (
    "for a store on another machine without Python: send the Python of this small archive there, and remove it when "
    "the connection ends (asks first)"
)
"""What the option ``--upload`` does."""


@dataclass(frozen=True, slots=True)
class SshAddress:
    """The parts of an address. ``path`` is absolute; one that begins with ``/~`` is below the user's home there."""

    machine: str
    """User, host and port as they were given."""
    host: str
    path: str
    user: str = ""
    port: int | None = None

    @property
    def root(self) -> Path:
        """The path by which the store is named here. ``Path`` keeps only one of the slashes behind ``ssh:``."""
        return Path(f"{SCHEME}{self.machine}{self.path}")

    def __str__(self) -> str:
        return f"ssh://{self.machine}{self.path}"


def is_ssh_address(path: str | Path) -> bool:
    """Return True for the address of a store on another machine, also as a ``Path``, which has only one slash."""
    return str(path).startswith(SCHEME)


def parse_address(path: str | Path) -> SshAddress:
    """Return the parts of an address. Raises :class:`UsageError`."""
    match = _ADDRESS.fullmatch(str(path))
    if match is None or match["path"] in {None, "/"}:
        raise UsageError(sentence("expected ssh://USER@HOST/path/of/the/store, found '{path}'", path=str(path)))
    port = int(match["port"]) if match["port"] else None
    return SshAddress(match["machine"], match["host"].strip("[]"), match["path"].rstrip("/"), match["user"] or "", port)


def refuse_ssh_address(path: str | Path) -> None:
    """Raise :class:`UsageError` if ``path`` is on another machine."""
    if is_ssh_address(path):
        raise UsageError(NOT_WRITTEN, file=str(path))
