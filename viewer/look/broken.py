"""Ranges of the log that are missing or damaged, hatched on every Line. No Qt.

A gap between files is seen from the files. A missing file after the last one is known from findings, damage from
findings and from counting the rows. A file that could not be read is neither missing nor damaged.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from viewer.look.assets import tr
from viewer.look.formats import number, size

DAMAGES = frozenset({"CL01", "CL02", "CL03"})
"""Rules whose findings are about a range of bytes that are no valid unit."""


GAP = "CL07"
"""The rule about files that are not contiguous."""


@dataclass(frozen=True, slots=True)
class UnreadableRange:
    """The bytes [start, end) of the log, and why they are not to be had."""

    start: int
    end: int
    kind: Literal["missing", "damaged", "unread"]

    @property
    def words(self) -> str:
        """Return the tool tip: kind, place and size."""
        kind_word = {"missing": tr("missing"), "damaged": tr("damaged"), "unread": tr("cannot be read")}[self.kind]
        return f"{kind_word} · {number(self.start)} – {number(self.end)} · {size(self.end - self.start)}"


def missing_in(files: Iterable[tuple[int, int]]) -> list[UnreadableRange]:
    """Return the gaps between (start, end) of files that do not follow each other."""
    gaps, previous_end = [], -1
    for start, end in sorted(files):
        if 0 <= previous_end < start:
            gaps.append(UnreadableRange(previous_end, start, "missing"))
        previous_end = max(previous_end, end)
    return gaps


def bytes_missing(files: Iterable[tuple[int, int]]) -> int:
    """Return the bytes in these gaps."""
    return sum(gap.end - gap.start for gap in missing_in(files))


def bytes_within(broken: Iterable[UnreadableRange], start: int, end: int, kinds: Container[str]) -> int:
    """Return the number of bytes of [start, end) in ranges of these ``kinds``."""
    return sum(
        max(0, min(broken_range.end, end) - max(broken_range.start, start))
        for broken_range in broken
        if broken_range.kind in kinds
    )


def missing_behind(end: int, findings: Iterable[Any]) -> list[UnreadableRange]:
    """Return the missing files after ``end``, the end of the last present one, that findings name."""
    return [
        UnreadableRange(finding.offset, finding.offset + int(finding.evidence["bytes"]), "missing")
        for finding in findings
        if finding.id == GAP
        and finding.offset is not None
        and finding.offset >= end > 0
        and finding.evidence.get("bytes", 0) > 0
    ]


def damaged_by(findings: Iterable[Any]) -> list[UnreadableRange]:
    """Return the ranges that findings of the log name as damaged."""
    damaged = []
    for finding in findings:
        if finding.id not in DAMAGES or finding.offset is None:
            continue
        evidence = finding.evidence
        length = (
            evidence.get("bytes")
            or evidence.get("bodyOffset", finding.offset) + evidence.get("bodyLength", 1) - finding.offset
        )
        damaged.append(UnreadableRange(finding.offset, finding.offset + max(1, int(length)), "damaged"))
    return damaged


def broken_in(
    files: Sequence[tuple[int, int, str]], findings: Sequence[Any], counted: Iterable[tuple[int, int]], unread: set[str]
) -> tuple[UnreadableRange, ...]:
    """Return all broken ranges in the order of the log.

    ``files`` are (start, end, path), ``counted`` the (start, end) of damage found while rows were counted, ``unread``
    the paths that cannot be read.
    """
    missing = missing_in((start, end) for start, end, _ in files)
    missing += missing_behind(max((end for _, end, _ in files), default=0), findings)
    blind = [UnreadableRange(start, end, "unread") for start, end, path in files if path in unread]
    damaged = damaged_by(findings)
    known_starts = {broken_range.start for broken_range in damaged}
    damaged += [
        UnreadableRange(span_start, span_end, "damaged")
        for span_start, span_end in counted
        if span_start not in known_starts
        and not any(hole.start <= span_start and span_end <= hole.end for hole in missing)
    ]
    return tuple(sorted((*missing, *blind, *damaged), key=lambda broken_range: (broken_range.start, broken_range.end)))
