"""Output of ``dispatch`` and ``pipeline rebuild`` about the queues and indexes that they built."""

from __future__ import annotations

from typing import Any, Protocol

from engine.cli.output import Output
from engine.english import number_of


class Built(Protocol):
    """The trees that were built for one store."""

    units: int
    queues: int
    entries: int
    index_files: int
    index_entries: int
    damaged: int
    damaged_bytes: int
    stale: int
    deleted_topics: list[str]


def rebuilt_figures(built: Built) -> dict[str, Any]:
    """Return the fields of a ``dispatched`` record."""
    return {
        "units": built.units,
        "queues": built.queues,
        "entries": built.entries,
        "indexFiles": built.index_files,
        "indexEntries": built.index_entries,
        "leftBehind": built.damaged,
        "bytesLeftBehind": built.damaged_bytes,
        "staleUnits": built.stale,
        "deletedTopics": built.deleted_topics,
    }


def print_rebuilt(out: Output, built: Built, place: str, prefix: str = "") -> None:
    """Print what was built in ``place``, and which units have no entry there. ``prefix`` begins each remark."""
    out.line(
        f"{number_of(built.units, 'unit', 'units')}: {number_of(built.entries, 'entry', 'entries')} in "
        f"{number_of(built.queues, 'queue', 'queues')}, {number_of(built.index_entries, 'key', 'keys')} in "
        f"{number_of(built.index_files, 'index file', 'index files')} in {place}"
    )
    if built.damaged:
        out.say(
            f"{prefix}skipped because damaged: {number_of(built.damaged, 'place', 'places')} of the log, "
            f"{number_of(built.damaged_bytes, 'byte', 'bytes')}"
        )
    if built.stale:
        units = number_of(built.stale, "unit is", "units are")
        out.say(f"{prefix}{units} left over from before a truncation and have no entry")
    for topic in built.deleted_topics:
        out.say(f"{prefix}{topic} was deleted: its units are in the log, it has no queue")
