"""Figures and words of ``dispatch`` and ``pipeline rebuild`` about the queues and indexes that were built."""

from __future__ import annotations

from typing import Any, Protocol

from engine.cli.output import Output


class Built(Protocol):
    """The figures of one store."""

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
    """The fields that the ``dispatched`` records of both commands have."""
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
    """Print what is in ``place`` now, and what has no entry there; ``of`` stands before what is said of the store."""
    out.line(
        f"{done.units:,} units: {done.entries:,} entries in {done.queues:,} queues, {done.index_entries:,} keys in "
        f"{done.index_files:,} index files in {place}"
    )
    if done.damaged:
        out.say(f"{of}skipped because damaged: {done.damaged:,} places of the log, {done.damaged_bytes:,} bytes")
    if done.stale:
        out.say(f"{of}{done.stale:,} units are left over from before a truncation and have no entry")
    for topic in done.deleted_topics:
        out.say(f"{of}{topic} was deleted: its units are in the log, it has no queue")
