"""Accounts for a store's bytes by topic, queue, kind of file, tag, producer and day, apparent and allocated.

Every byte of every file is in exactly one row, so the rows add up to the files. :func:`quick_space` asks file lists and
queues only; :func:`space_of` walks the log as well and distinguishes units, blanks, damage and zero tail.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from engine.callbacks import Cancelled
from engine.errors import CannotRead
from engine.inspection.space.files import LOG, QUEUE_KINDS, StoreFile, list_files, still_as_listed
from engine.inspection.space.queues import PartSpace, index_parts, queue_parts, share_out, spread

if TYPE_CHECKING:
    from pathlib import Path

    from engine.inspection.snapshot import StoreSnapshot
    from engine.inspection.space.log import LogFileSpace, LogSpace

Method = Literal["walked", "unread", "cut", "queues", "sampled"]
"""``walked``: every byte of the log; ``unread``: all that can be read of it; ``cut``: up to where the walk stopped."""
DEAD = ("stale", "beyondEnd", "belowMin")
"""Parts that a broker never reads again."""
WRITTEN = ("units", "stale", "beyondEnd")


@dataclass(frozen=True, slots=True)
class NamedSpace:
    """Bytes (of units) and messages of a topic under one tag, or from one producer host; ``name`` None: without."""

    topic: str
    name: str | None
    bytes: int
    messages: int


@dataclass(frozen=True, slots=True)
class KindSpace:
    """All files of one kind, in bytes."""

    kind: str
    files: int
    bytes: int
    allocated: int


@dataclass(frozen=True, slots=True)
class Space:
    """The account.

    ``bytes`` and ``allocated`` cover the files as listed at ``at`` (ms), ``counted`` is the sum of the rows;
    ``changed``: number of files whose length has changed since.
    """

    at: int
    method: Method
    rows: tuple[PartSpace, ...]
    kinds: tuple[KindSpace, ...]
    bytes: int
    allocated: int
    counted: int
    changed: int
    tags: tuple[NamedSpace, ...] = ()
    producers: tuple[NamedSpace, ...] = ()
    compressed: tuple[NamedSpace, ...] = ()
    deleted_topics: tuple[str, ...] = ()
    files: tuple[LogFileSpace, ...] = field(default=())
    took_ms: int = 0
    queues_in: str | None = None
    """The folder of the RocksDB that holds the rows of all queues: no bytes of it are of one queue."""
    is_log_decoded: bool = True
    """False if messages are in a DLedger log: a topic without a message here may have some there."""

    @property
    def equal(self) -> bool:
        """True if the rows add up to the files to the byte."""
        return self.counted == self.bytes

    @property
    def file_count(self) -> int:
        return sum(kind.files for kind in self.kinds)

    @property
    def dead(self) -> int:
        """Bytes that no consumer can ever get: below the minimum, beyond the end, stale, of deleted topics."""
        return sum(row.bytes for row in self.rows if self.is_dead(row))

    def is_dead(self, row: PartSpace) -> bool:
        """Return True if nothing reads this row's bytes any more."""
        return row.part in DEAD or (row.topic in self.deleted_topics and row.part in {"units", "entries"})


def space_of(
    store: StoreSnapshot,
    cancelled: Cancelled | None = None,
    progress: Callable[[int, int], None] | None = None,
    cache: Path | None = None,
) -> Space:
    """Return the exact account, from one walk of the log.

    If ``cancelled`` stops it, the account is ``cut`` and names what was not walked. Counts of finished files are kept
    in the folder ``cache``, if any, and not repeated.
    """
    from engine.inspection.space.cache import SpaceCache
    from engine.inspection.space.log import walk_space

    begun = time.monotonic()
    files = list_files(store)
    space_cache = SpaceCache(store.log, cache) if cache is not None else None
    log_space = walk_space(store.log, cancelled, progress, live=store.lock_state == "held", cache=space_cache)
    rows = [*_log_rows(log_space, files), *_other_rows(store, files)]
    return _account(
        store,
        files,
        rows,
        "walked" if log_space.complete else "cut" if log_space.stopped else "unread",
        begun,
        tags=_named((topic, tag, count.bytes, count.messages) for (topic, tag), count in log_space.tags.items()),
        producers=_named(
            (topic, host, count.bytes, count.messages) for (host, topic), count in log_space.producers.items()
        ),
        compressed=_named((topic, None, count.bytes, count.messages) for topic, count in log_space.compressed.items()),
        log_files=tuple(log_space.files),
        first_of=log_space.first_of if log_space.complete else {},
    )


def quick_space(store: StoreSnapshot) -> Space:
    """The account from file lists and queues: bytes of the log by the sizes in queue entries, no days, no tags.

    Bytes that no queue points to are one row, ``notInQueues``; long queues are sampled (``method`` says so).
    """
    from engine.inspection.space.queues import log_rows

    begun = time.monotonic()
    files = list_files(store)
    rows, sampled = log_rows(store, files)
    return _account(store, files, [*rows, *_other_rows(store, files)], "sampled" if sampled else "queues", begun)


def _account(
    store: StoreSnapshot,
    files: list[StoreFile],
    rows: list[PartSpace],
    method: Method,
    begun: float,
    tags: tuple[NamedSpace, ...] = (),
    producers: tuple[NamedSpace, ...] = (),
    compressed: tuple[NamedSpace, ...] = (),
    log_files: tuple[LogFileSpace, ...] = (),
    first_of: dict[str, int] | None = None,
) -> Space:
    from engine.inspection.deleted_topics import deleted_topics

    merged = tuple(_merged(rows))
    kinds: dict[str, KindSpace] = {}
    for file in files:
        kind_space = kinds.get(file.kind, KindSpace(file.kind, 0, 0, 0))
        kinds[file.kind] = KindSpace(
            file.kind, kind_space.files + 1, kind_space.bytes + file.size, kind_space.allocated + file.allocated
        )
    deleted: list[str] = []
    with contextlib.suppress(CannotRead):
        deleted = deleted_topics(store, first_of) if first_of and store.paths is not None else []
    return Space(
        at=round(time.time() * 1000),
        method=method,
        rows=merged,
        kinds=tuple(kinds.values()),
        bytes=sum(file.size for file in files),
        allocated=sum(file.allocated for file in files),
        counted=sum(row.bytes for row in merged),
        changed=still_as_listed(store.reading, files),
        tags=tags,
        producers=producers,
        compressed=compressed,
        deleted_topics=tuple(deleted),
        files=log_files,
        took_ms=round((time.monotonic() - begun) * 1000),
        queues_in=_queues_in(store),
        is_log_decoded=store.undecoded_part("log") is None,
    )


def _queues_in(store: StoreSnapshot) -> str | None:
    """The folder of the RocksDB that holds the queues; None for files, and for what cannot be read."""
    queues = store.queues.rocksdb
    return queues.folder.name if queues is not None and store.why_unknown("queues") is None else None


def _log_rows(log_space: LogSpace, files: list[StoreFile]) -> Iterator[PartSpace]:
    """The log's rows: units by cell, then bytes that are no units, then files of the folder that are not part of the
    log.
    """
    listed = {file.path: file for file in files if file.kind == LOG}
    parts = {"units": 0, "entryHeaders": 0, "unreadable": 0, "blank": 0, "zeroTail": 0, "notLookedAt": 0}
    allocated, listed_paths, counts = dict.fromkeys(parts, 0), set(), dict.fromkeys(parts, 0)
    for log_file in log_space.files:
        file = listed.get(log_file.path)
        if file is None:
            continue
        listed_paths.add(log_file.path)
        accounted = log_file.written + log_file.headers + log_file.unreadable + log_file.blank + log_file.zero
        file_parts = [
            ("units", log_file.written),
            ("entryHeaders", log_file.headers),
            ("unreadable", log_file.unreadable),
            ("blank", log_file.blank),
            ("zeroTail", log_file.zero),
            ("notLookedAt", max(file.size - accounted, 0)),
        ]
        shares = share_out(file.allocated, file_parts)
        for name, size in file_parts:
            parts[name] += size
            allocated[name] += shares[name]
            counts[name] += size > 0
    cells = list(log_space.cells.items())
    for ((topic, queue, day, part), count), share in zip(
        cells, spread(allocated["units"], [count.bytes for _, count in cells]), strict=True
    ):
        yield PartSpace(LOG, part, count.bytes, share, topic, queue, day, count.messages)
    for name in ("entryHeaders", "unreadable", "blank", "zeroTail", "notLookedAt"):
        if parts[name]:
            yield PartSpace(LOG, name, parts[name], allocated[name], files=counts[name])
    walked = {log_file.path for log_file in log_space.files}
    for file in files:
        if file.kind == LOG and file.path not in listed_paths:
            part = "notLookedAt" if not log_space.complete and file.path not in walked else "notRead"
            yield PartSpace(LOG, part, file.size, file.allocated, files=1)


def _other_rows(store: StoreSnapshot, files: list[StoreFile]) -> Iterator[PartSpace]:
    yield from queue_parts(store, files)
    yield from index_parts(store, files)
    for file in files:
        if file.kind not in {LOG, "index", *QUEUE_KINDS}:
            yield PartSpace(file.kind, "file", file.size, file.allocated, files=1)


def _merged(rows: Iterable[PartSpace]) -> Iterator[PartSpace]:
    """Merge rows of the same thing, in the order of their first."""
    rows_by_key: dict[tuple[object, ...], PartSpace] = {}
    for row in rows:
        key = (row.kind, row.part, row.topic, row.queue_id, row.day)
        earlier = rows_by_key.get(key)
        if earlier is None:
            rows_by_key[key] = row
            continue
        counts = [n for n in (earlier.messages, row.messages) if n is not None]
        rows_by_key[key] = replace(
            earlier,
            bytes=earlier.bytes + row.bytes,
            allocated=earlier.allocated + row.allocated,
            messages=sum(counts) if counts else None,
            files=earlier.files + row.files,
            note=earlier.note or row.note,
        )
    yield from rows_by_key.values()


def _named(counts: Iterable[tuple[str, str | None, int, int]]) -> tuple[NamedSpace, ...]:
    """Largest first."""
    return tuple(
        sorted((NamedSpace(*item) for item in counts), key=lambda item: (-item.bytes, item.topic, item.name or ""))
    )
