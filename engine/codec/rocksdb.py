"""Folders that RocksDB keeps for a broker: recognised and sized, not decoded (spec 1, 3.9).

Pure: names, lengths and the text of ``CURRENT`` come from the caller.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from engine.codec.dledger import NamedFile

_MANIFEST = re.compile(r"MANIFEST-\d+", re.ASCII)
_TABLE = re.compile(r"\d+\.(sst|ldb)", re.ASCII)
_WRITE_AHEAD = re.compile(r"\d+\.log", re.ASCII)
_CURRENT_TEXT = re.compile(rb"MANIFEST-\d+\n?")

PURPOSES = {
    "consumequeue": "consume queues",
    "kvStore": "pop records",
    "config/topics": "topics",
    "config/subscriptionGroups": "subscription groups",
    "config/consumerOffsets": "consumer offsets",
    "config/rdb": "configuration tables",
    "config/users": "users",
    "config/acls": "access rules",
}
"""Folders of a store that may be a RocksDB → what the broker keeps there."""


@dataclass(frozen=True, slots=True)
class RocksFolder:
    """What a RocksDB folder holds, in files and bytes. ``sound``: CURRENT names a manifest that is there."""

    folder: str
    manifest: str | None
    tables: int
    table_bytes: int
    write_ahead_logs: int
    write_ahead_bytes: int
    other_bytes: int
    sound: bool

    @property
    def words(self) -> str:
        """What was found, and what this program does not do with it."""
        purpose = PURPOSES.get(self.folder, "data")
        doubt = "" if self.sound else "; CURRENT and MANIFEST do not fit together"
        return (
            f"{self.folder} is a RocksDB of {purpose}: {self.tables} table files with {self.table_bytes:,} bytes, "
            f"{self.write_ahead_logs} write-ahead logs with {self.write_ahead_bytes:,} bytes{doubt}. "
            f"RocksDB is not decoded: its {purpose} are not listed."
        )


def recognise(folder: str, files: Iterable[NamedFile], current: bytes | None = None) -> RocksFolder | None:
    """What the folder (its path below the store) holds, or None where it is no RocksDB.

    It is one where CURRENT stands beside a manifest, or table files beside either. ``current`` is CURRENT's content.
    """
    known = list(files)
    names = {file.name for file in known}
    manifests = sorted(name for name in names if _MANIFEST.fullmatch(name))
    tables = [file for file in known if _TABLE.fullmatch(file.name)]
    logs = [file for file in known if _WRITE_AHEAD.fullmatch(file.name)]
    if sum(("CURRENT" in names, bool(manifests), bool(tables))) < 2:
        return None
    named = None
    if current is not None and _CURRENT_TEXT.fullmatch(current):
        named = current.strip().decode("ascii")
    table_bytes, log_bytes = sum(file.size for file in tables), sum(file.size for file in logs)
    return RocksFolder(
        folder,
        named or (manifests[-1] if manifests else None),
        len(tables),
        table_bytes,
        len(logs),
        log_bytes,
        sum(file.size for file in known) - table_bytes - log_bytes,
        "CURRENT" in names and (named in names if current is not None else bool(manifests)),
    )
