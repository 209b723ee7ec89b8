"""Output of ``dispatch`` and ``pipeline rebuild`` about the queues and indexes that they built."""

from __future__ import annotations

from typing import Any, Protocol

from engine.cli.output import Output
from engine.english import number_of


class Built(Protocol):
    """What was built for one store."""

    units: int
    queues: int
    entries: int
    index_files: int
    index_entries: int
    damaged: int
    damaged_bytes: int
    stale: int
    deleted_topics: list[str]


def rebuilt_figures(done: Built) -> dict[str, Any]:
    """Return the fields of a ``dispatched`` record."""
    return {
        "units": done.units,
        "queues": done.queues,
        "entries": done.entries,
        "indexFiles": done.index_files,
        "indexEntries": done.index_entries,
        "leftBehind": done.damaged,
        "bytesLeftBehind": done.damaged_bytes,
        "staleUnits": done.stale,
        "deletedTopics": done.deleted_topics,
    }


def print_rebuilt(out: Output, done: Built, place: str, of: str = "") -> None:
    """Print what was built in ``place``, and which units have no entry there. ``of`` is the prefix of each remark."""
    out.line(
        f"{number_of(done.units, 'unit', 'units')}: {number_of(done.entries, 'entry', 'entries')} in "
        f"{number_of(done.queues, 'queue', 'queues')}, {number_of(done.index_entries, 'key', 'keys')} in "
        f"{number_of(done.index_files, 'index file', 'index files')} in {place}"
    )
    if done.damaged:
        out.say(
            f"{of}skipped because damaged: {number_of(done.damaged, 'place', 'places')} of the log, "
            f"{number_of(done.damaged_bytes, 'byte', 'bytes')}"
        )
    if done.stale:
        out.say(
            f"{of}{number_of(done.stale, 'unit is', 'units are')} left over from before a truncation and have no entry"
        )
    for topic in done.deleted_topics:
        out.say(f"{of}{topic} was deleted: its units are in the log, it has no queue")
