"""Keeps the accounts of finished log files in the user's cache: a log of a tebibyte is not walked twice.

One cache file per log, outside the store: a line for each file of the log, checked by its name, length, time of the
last change and head bytes. Unreadable lines are counted again; the cache may be deleted at any time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.inspection.log_cache import LogCacheFile, stamp_of
from engine.inspection.space.log import Count, LogFileSpace, LogSpace

if TYPE_CHECKING:
    from engine.inspection.log_reader import LogReader
    from engine.mapped.read_only import ReadOnlyFile

FORMAT = 2
SUFFIX = ".space"
CACHE_LIMIT = 128 << 20
"""Bytes that the accounts of all logs together may take; the least recently used are deleted first."""
MAX_ROWS = 20_000
"""Largest number of rows of a log file's account that is cached; larger files are walked each time."""


class SpaceCache:
    """The cached accounts of the files of ``log``; days are in this machine's zone, so the zone is part of the key."""

    def __init__(self, log: LogReader, folder: Path) -> None:
        zone = f"{time.timezone} {time.altzone} {time.tzname}"
        self._file = LogCacheFile.of(log, folder, SUFFIX, CACHE_LIMIT, zone)
        self._held = dict(self._load())
        self._used: dict[str, str] = {}
        self._changed = False

    def take(self, file: ReadOnlyFile) -> LogSpace | None:
        """The cached account of ``file``; None if there is none, or if the file has changed."""
        line = self._held.get(file.name)
        if line is None:
            return None
        try:
            fields = json.loads(line)
            stamp = _stamp(file)
            if not stamp[-1] or fields["stamp"] != stamp:
                return None
            log_space = _decoded(fields, file)
        except (ValueError, KeyError, TypeError):
            return None
        self._used[file.name] = line
        return log_space

    def keep(self, file: ReadOnlyFile, log_space: LogSpace, stamp: list[Any]) -> None:
        """Keep the account of a file that was walked to its end; ``stamp`` was taken before the walk."""
        rows = len(log_space.cells) + len(log_space.tags) + len(log_space.producers)
        if rows <= MAX_ROWS and stamp[-1] and stamp == _stamp(file):
            self._used[file.name] = json.dumps({"name": file.name, "stamp": stamp, **_encoded(log_space)})
            self._changed = True

    @staticmethod
    def stamp(file: ReadOnlyFile) -> list[Any]:
        """Stamp that identifies this file and its state."""
        return _stamp(file)

    def save(self) -> None:
        """Write the kept accounts; raises nothing."""
        if not self._changed:
            return
        lines_by_name = {**self._held, **self._used}
        lines = [json.dumps({"format": FORMAT}), *lines_by_name.values()]
        self._file.write("\n".join(lines).encode())

    def _load(self) -> Iterable[tuple[str, str]]:
        try:
            head, *lines = self._file.read().decode().splitlines()
            if json.loads(head)["format"] != FORMAT:
                return []
            return [(json.loads(line)["name"], line) for line in lines]
        except (OSError, ValueError, KeyError, TypeError):
            return []


def _stamp(file: ReadOnlyFile) -> list[Any]:
    return [file.start_offset, file.size, *stamp_of(file)]


def _encoded(log_space: LogSpace) -> dict[str, Any]:
    return {
        "file": asdict(log_space.files[0]),
        "cells": [[*key, count.bytes, count.messages] for key, count in log_space.cells.items()],
        "tags": [[*key, count.bytes, count.messages] for key, count in log_space.tags.items()],
        "producers": [[*key, count.bytes, count.messages] for key, count in log_space.producers.items()],
        "compressed": [[key, count.bytes, count.messages] for key, count in log_space.compressed.items()],
        "first": log_space.first_of,
    }


def _decoded(fields: dict[str, Any], file: ReadOnlyFile) -> LogSpace:
    return LogSpace(
        files=[LogFileSpace(**{**fields["file"], "path": file.path})],
        cells={(a, b, c, d): Count(size, many) for a, b, c, d, size, many in fields["cells"]},
        tags={(a, b): Count(size, many) for a, b, size, many in fields["tags"]},
        producers={(a, b): Count(size, many) for a, b, size, many in fields["producers"]},
        compressed={key: Count(size, many) for key, size, many in fields["compressed"]},
        first_of=dict(fields["first"]),
        complete=True,
    )
