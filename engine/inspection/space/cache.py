"""What the bytes of finished log files are, kept in the user's cache: a log of a tebibyte is not walked twice.

One file a log, outside the store: a line for each file of the log, checked by its name, length, time of the last change
and head bytes. Whatever cannot be read is made again; safe to delete at any time.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.inspection.side_index import stamp_of
from engine.inspection.space.log import Count, LogFileSpace, LogSpace
from engine.whole_file import PRIVATE, put_whole

if TYPE_CHECKING:
    from engine.inspection.log_reader import LogReader
    from engine.mapped.read_only import ReadOnlyFile

FORMAT = 2
SUFFIX = ".space"
CACHE_LIMIT = 128 << 20
"""Bytes that the accounts of all logs together may take; the longest unused go first."""
MOST_ROWS = 20_000
"""Rows of one log file's account beyond which it is not kept: it is walked each time."""


class SpaceCache:
    """The accounts of the files of ``log``; days are those of this machine's zone, so the zone is part of the key."""

    def __init__(self, log: LogReader, folder: Path) -> None:
        self._folder = folder
        places = "\n".join(str(one.absolute()) for one in log.sequence.folders)
        first = log.files[0].name if len(log.sequence.folders) == 1 and log.files else ""
        zone = f"{time.timezone} {time.altzone} {time.tzname}"
        self._path = folder / (hashlib.sha256(f"{places}\n{first}\n{zone}".encode()).hexdigest()[:32] + SUFFIX)
        self._held = dict(self._load())
        self._used: dict[str, str] = {}
        self._changed = False

    def take(self, file: ReadOnlyFile) -> LogSpace | None:
        """The account of ``file`` as it was counted, None where that is not known or the file is another one now."""
        line = self._held.get(file.name)
        if line is None:
            return None
        try:
            told = json.loads(line)
            stamp = _stamp(file)
            if not stamp[-1] or told["stamp"] != stamp:
                return None
            found = _decoded(told, file)
        except (ValueError, KeyError, TypeError):
            return None
        self._used[file.name] = line
        return found

    def keep(self, file: ReadOnlyFile, found: LogSpace, stamp: list[Any]) -> None:
        """Keep the account of a file that was walked to its end; ``stamp`` was taken before the walk."""
        rows = len(found.cells) + len(found.tags) + len(found.producers)
        if rows <= MOST_ROWS and stamp[-1] and stamp == _stamp(file):
            self._used[file.name] = json.dumps({"name": file.name, "stamp": stamp, **_encoded(found)})
            self._changed = True

    @staticmethod
    def stamp(file: ReadOnlyFile) -> list[Any]:
        """What tells this file from another one, and from itself at another time."""
        return _stamp(file)

    def save(self) -> None:
        """Write down what was kept; raises nothing."""
        if not self._changed:
            return
        kept = {**self._held, **self._used}
        lines = [json.dumps({"format": FORMAT}), *kept.values()]
        try:
            put_whole(self._path, "\n".join(lines), PRIVATE)
            _trim(self._folder)
        except OSError:
            return  # no cache, no harm

    def _load(self) -> Iterable[tuple[str, str]]:
        try:
            head, *lines = self._path.read_text(encoding="utf-8").splitlines()
            if json.loads(head)["format"] != FORMAT:
                return []
            return [(json.loads(line)["name"], line) for line in lines]
        except (OSError, ValueError, KeyError, TypeError):
            return []


def _stamp(file: ReadOnlyFile) -> list[Any]:
    return [file.start_offset, file.size, *stamp_of(file)]


def _encoded(found: LogSpace) -> dict[str, Any]:
    return {
        "file": asdict(found.files[0]),
        "cells": [[*key, one.bytes, one.messages] for key, one in found.cells.items()],
        "tags": [[*key, one.bytes, one.messages] for key, one in found.tags.items()],
        "producers": [[*key, one.bytes, one.messages] for key, one in found.producers.items()],
        "compressed": [[key, one.bytes, one.messages] for key, one in found.compressed.items()],
        "first": found.first_of,
    }


def _decoded(told: dict[str, Any], file: ReadOnlyFile) -> LogSpace:
    return LogSpace(
        files=[LogFileSpace(**{**told["file"], "path": file.path})],
        cells={(a, b, c, d): Count(size, many) for a, b, c, d, size, many in told["cells"]},
        tags={(a, b): Count(size, many) for a, b, size, many in told["tags"]},
        producers={(a, b): Count(size, many) for a, b, size, many in told["producers"]},
        compressed={key: Count(size, many) for key, size, many in told["compressed"]},
        first_of=dict(told["first"]),
        complete=True,
    )


def _trim(folder: Path) -> None:
    """Delete the longest unused accounts beyond the limit."""
    files = sorted(folder.glob(f"*{SUFFIX}"), key=lambda file: file.stat().st_mtime)
    total = sum(file.stat().st_size for file in files)
    for file in files[:-1]:
        if total <= CACHE_LIMIT:
            return
        total -= file.stat().st_size
        file.unlink(missing_ok=True)
