"""Stretches of the log that are not there, or not whole: every Line hatches them; no Qt.

A missing file is told from the files that are there. One behind the last of them is told by findings, damage by these
and by whoever counted the rows; a file that could not be read is neither.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from viewer.look.assets import tr
from viewer.look.formats import number, size

DAMAGES = frozenset({"CL01", "CL02", "CL03"})
"""Rules whose findings tell a stretch of bytes that are no whole unit."""


GAP = "CL07"
"""The rule that tells of files that do not follow each other."""


@dataclass(frozen=True, slots=True)
class Broken:
    """The bytes [start, end) of the log, and why they are not to be had."""

    start: int
    end: int
    kind: Literal["missing", "damaged", "unread"]

    @property
    def words(self) -> str:
        """For a tip: what it is, where, how much."""
        said = {"missing": tr("missing"), "damaged": tr("damaged"), "unread": tr("cannot be read")}[self.kind]
        return f"{said} · {number(self.start)} – {number(self.end)} · {size(self.end - self.start)}"


def missing_in(files: Iterable[tuple[int, int]]) -> list[Broken]:
    """What no file holds between the (start, end) of two files that do not follow each other."""
    found, behind = [], -1
    for start, end in sorted(files):
        if 0 <= behind < start:
            found.append(Broken(behind, start, "missing"))
        behind = max(behind, end)
    return found


def bytes_missing(files: Iterable[tuple[int, int]]) -> int:
    """How many bytes that are."""
    return sum(one.end - one.start for one in missing_in(files))


def bytes_within(broken: Iterable[Broken], low: int, high: int, kinds: Container[str]) -> int:
    """How many bytes of [low, high) lie in stretches of these ``kinds``."""
    return sum(max(0, min(one.end, high) - max(one.start, low)) for one in broken if one.kind in kinds)


def missing_behind(end: int, findings: Iterable[Any]) -> list[Broken]:
    """The files that were there behind ``end``, where the last one that is there stops: findings tell of them."""
    return [
        Broken(one.offset, one.offset + int(one.evidence["bytes"]), "missing")
        for one in findings
        if one.id == GAP and one.offset is not None and one.offset >= end > 0 and one.evidence.get("bytes", 0) > 0
    ]


def damaged_by(findings: Iterable[Any]) -> list[Broken]:
    """The stretches that findings of the log tell."""
    found = []
    for one in findings:
        if one.id not in DAMAGES or one.offset is None:
            continue
        held = one.evidence
        length = held.get("bytes") or held.get("bodyOffset", one.offset) + held.get("bodyLength", 1) - one.offset
        found.append(Broken(one.offset, one.offset + max(1, int(length)), "damaged"))
    return found


def broken_in(
    files: Sequence[tuple[int, int, str]], findings: Sequence[Any], counted: Iterable[tuple[int, int]], unread: set[str]
) -> tuple[Broken, ...]:
    """All of it, in the order of the log. ``files`` as (start, end, path), ``counted`` as (start, end) of stretches
    that whoever counted the rows met, ``unread`` the paths that cannot be read.
    """
    found = missing_in((start, end) for start, end, _ in files)
    found += missing_behind(max((end for _, end, _ in files), default=0), findings)
    blind = [Broken(start, end, "unread") for start, end, path in files if path in unread]
    told = damaged_by(findings)
    known = {one.start for one in told}
    told += [
        Broken(low, high, "damaged")
        for low, high in counted
        if low not in known and not any(hole.start <= low and high <= hole.end for hole in found)
    ]
    return tuple(sorted((*found, *blind, *told), key=lambda one: (one.start, one.end)))
