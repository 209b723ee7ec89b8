"""The lab's lines: where the log stands now, and what a pulled plug left of it; parts and flags, no Qt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewer.look.assets import tr
from viewer.look.formats import size
from viewer.widgets.recovery_line import LineFlag, Part

if TYPE_CHECKING:
    from engine.store.positions import Positions

TAIL = 3
"""The safe part of the line is at most so many times as long as what is not safe yet."""


def now_line(positions: Positions, *, open_here: bool = True) -> tuple[list[Part], list[LineFlag]]:
    """The tail of the log as it stands: on disk, in the page cache, in the pool, and room behind it. ``open_here``: the
    window shows that store.
    """
    low = max(positions.min, 0)
    flushed, wrote = max(positions.flushed, low), max(positions.wrote, low)
    places = (low, flushed, max(positions.committed, flushed), wrote) if open_here else (None,) * 4
    lengths = _tail_lengths(low, positions.flushed, positions.committed, positions.wrote)
    parts = [
        Part(lengths[0], "disk", tr("on disk"), places[0], places[1]),
        Part(lengths[1], "cache", tr("page cache"), places[1], places[2]),
        Part(lengths[2], "pool", tr("pool"), places[2], places[3]),
        Part(lengths[3], "zero"),
    ]
    flags = [LineFlag(lengths[0], tr("flushed"), "posLog3", places[1])]
    if lengths[1] or lengths[2]:
        flags.append(LineFlag(sum(lengths[:3]), tr("wrote"), "posLog2", places[3]))
    return parts, flags


def _tail_lengths(low: int, flushed: int, committed: int, wrote: int) -> list[float]:
    """Shares of the line: what is not safe is seen however long the log is; the line is not to scale then."""
    flushed, committed = max(flushed, low), max(committed, flushed, low)
    unsafe = max(wrote - flushed, 0)
    safe = flushed - low
    if unsafe:
        safe = min(safe, TAIL * unsafe)
    raw = [float(safe), float(committed - flushed), float(max(wrote - committed, 0))]
    total = sum(raw)
    if total <= 0:
        return [0.0, 0.0, 0.0, 1.0]
    rest = 0.08
    widths = [0.0 if one <= 0 else max(0.03, one / total) for one in raw]
    return [one / sum(widths) * (1 - rest) for one in widths] + [rest]


def sized(words: str, count: int) -> str:
    """``page cache 13.0 MiB``."""
    return f"{words} {size(count)}" if count > 0 else ""
