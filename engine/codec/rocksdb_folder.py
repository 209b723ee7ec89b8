"""Folders that RocksDB keeps for a broker: recognised and measured, not decoded (docs/formats/files.md#folders,
docs/formats/consume-queue.md#rocksdb).

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


@dataclass(frozen=True, slots=True)
class RocksFolder:
    """The content of a RocksDB folder in files and bytes. ``is_valid``: CURRENT names a manifest that exists."""

    folder: str
    manifest: str | None
    tables: int
    table_bytes: int
    write_ahead_logs: int
    write_ahead_bytes: int
    other_bytes: int
    is_valid: bool


def rocks_folder(folder: str, files: Iterable[NamedFile], current: bytes | None = None) -> RocksFolder | None:
    """Return the content of the folder (its path below the store), or None if it is no RocksDB folder.

    It is one if CURRENT is beside a manifest, or table files beside either. ``current`` is CURRENT's content.

    """
    all_files = list(files)
    names = {file.name for file in all_files}
    manifests = sorted(name for name in names if _MANIFEST.fullmatch(name))
    tables = [file for file in all_files if _TABLE.fullmatch(file.name)]
    logs = [file for file in all_files if _WRITE_AHEAD.fullmatch(file.name)]
    if sum(("CURRENT" in names, bool(manifests), bool(tables))) < 2:
        return None
    current_manifest = None
    if current is not None and _CURRENT_TEXT.fullmatch(current):
        current_manifest = current.strip().decode("ascii")
    table_bytes, log_bytes = sum(file.size for file in tables), sum(file.size for file in logs)
    return RocksFolder(
        folder,
        current_manifest or (manifests[-1] if manifests else None),
        len(tables),
        table_bytes,
        len(logs),
        log_bytes,
        sum(file.size for file in all_files) - table_bytes - log_bytes,
        "CURRENT" in names and (current_manifest in names if current is not None else bool(manifests)),
    )
