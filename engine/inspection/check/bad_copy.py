"""DK04: files that a copy changed: names without content, or carriage returns in front of all line feeds.

Findings on what is in such files have no causes of their own: another copy takes them all away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from engine.inspection.snapshot import StoreSnapshot
from engine.mapped.read_only import ReadOnlyFile
from engine.rules import catalogue
from engine.rules.findings import HAPPENED, RESTORABLE, Finding

LEAST_EMPTY = 4
EMPTY_SHARE = 0.25
"""Share of a store's files that have no byte if a copy made names only; a broker that dies leaves a single one."""
LEAST_LINE_FEEDS = 64
"""Number of line feeds that must all have a carriage return in front of them."""
SAMPLE_BYTES = 4 << 20
MOST_NAMED = 20
_BROKEN_LOG = frozenset({"CL01", "CL05", "CL06", "CL07"})
_NEVER_TEXT = frozenset({"CF01", "CF03", "CF04", "CF05", "CF10", "AB01"})
"""Rules that do not follow from a copy in text mode: tables are text."""
_OF_EMPTY = frozenset({"CQ10", "RP01", "RP03", "CL11", "CK01", "CK05", "IX05", "IX08", "IX10", "CF02", "CQ06"})
"""Rules that follow from empty files although they name another place."""


def explained(store: StoreSnapshot, findings: list[Finding]) -> list[Finding]:
    """Return ``findings``; if a copy changed the files, DK04 comes first and what it explains follows from it.

    Raises :class:`CannotRead`.
    """
    if store.paths is None or store.lock_state == "held":
        return findings
    is_broken = any(finding.id in _BROKEN_LOG for finding in findings)
    text_files = list(_in_text_mode(store)) if is_broken else []
    if text_files:
        return [_text_mode(text_files), *(_following_text(finding) for finding in findings)]
    files = [path for path, _ in _every_file(store)]
    empty = {path for path, size in _every_file(store) if not size}
    if len(empty) < LEAST_EMPTY or len(empty) < EMPTY_SHARE * len(files):
        return findings
    return [_empty(store, sorted(empty), len(files)), *(_following_empty(finding, empty) for finding in findings)]


# -- names without content


def _every_file(store: StoreSnapshot) -> Iterator[tuple[str, int]]:
    """(path, bytes) of the files of log, queues and index, and of the tables."""
    assert store.paths is not None
    queues = [queue for queues in store.topics().values() for queue in queues.values()]
    for file in (*store.log.files, *(file for queue in queues for file in queue.files)):
        yield file.path, file.size
    for reader in store.index_files():
        yield reader.path, reader.size
    if store.reading.exists(store.paths.config):
        for entry in store.reading.entries(store.paths.config):
            if entry.name.endswith((".json", ".json.bak")):
                yield entry.path, store.reading.look_at(entry).st_size


def _empty(store: StoreSnapshot, empty: Sequence[str], file_count: int) -> Finding:
    parts = sorted({Path(path).relative_to(store.path).parts[0] for path in empty if path.startswith(str(store.path))})
    text = f"{len(empty):,} of {file_count:,} files of the store have no byte, in {', '.join(parts)}"
    evidence: dict[str, Any] = {
        "expected": "files with content",
        "found": len(empty),
        "files": empty[:MOST_NAMED],
        RESTORABLE: True,
    }
    evidence[HAPPENED] = (
        f"{len(empty):,} of {file_count:,} files of the store have no byte: "
        "a copy leaves them so if its disk is full or if it is ended"
    )
    return catalogue.DK04.found(text, str(store.path), None, evidence)


def _following_empty(finding: Finding, empty: set[str]) -> Finding:
    is_explained = finding.file in empty or finding.id in _OF_EMPTY
    return finding.follows("DK04") if is_explained and finding.caused_by is None else finding


# -- text mode


def _in_text_mode(store: StoreSnapshot) -> Iterator[ReadOnlyFile]:
    """Files of the log in which each line feed has a carriage return in front of it."""
    for file in store.log.files:
        data = file.read(0, min(file.size, SAMPLE_BYTES))
        line_feeds = data.count(b"\n")
        if line_feeds >= LEAST_LINE_FEEDS and data.count(b"\r\n") == line_feeds:
            yield file


def _text_mode(files: Sequence[ReadOnlyFile]) -> Finding:
    text = (
        f"{len(files):,} files of the log have a carriage return in front of every line feed: they were transferred "
        "in text mode"
    )
    evidence: dict[str, Any] = {
        "expected": "bytes as a broker wrote them",
        "found": "0D 0A for each 0A",
        RESTORABLE: True,
    }
    evidence["files"] = [file.name for file in files[:MOST_NAMED]]
    evidence[HAPPENED] = "the files of the commit log were transferred in text mode: every line feed became two bytes"
    return catalogue.DK04.found(text, files[0].path, 0, evidence, kind="text")


def _following_text(finding: Finding) -> Finding:
    is_explained = finding.id not in _NEVER_TEXT and finding.caused_by is None
    return finding.follows("DK04") if is_explained else finding
