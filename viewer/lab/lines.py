"""Lines of the lab: the log now, and after a power loss; parts and flags, no Qt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewer.look.assets import tr
from viewer.look.formats import size
from viewer.widgets.recovery_line import LineFlag, Part

if TYPE_CHECKING:
    from engine.store.positions import Positions

MAX_SAFE_RATIO = 3
"""Maximum length of the flushed part of the line, as a multiple of the unflushed part."""


def now_line(positions: Positions, *, open_here: bool = True) -> tuple[list[Part], list[LineFlag]]:
    """Return the tail of the log: on disk, in the page cache, in the pool, and free space.

    ``open_here`` says that the window shows that store.
    """
    min_offset = max(positions.min, 0)
    flushed, wrote = max(positions.flushed, min_offset), max(positions.wrote, min_offset)
    places = (min_offset, flushed, max(positions.committed, flushed), wrote) if open_here else (None,) * 4
    lengths = _tail_lengths(min_offset, positions.flushed, positions.committed, positions.wrote)
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


def _tail_lengths(min_offset: int, flushed: int, committed: int, wrote: int) -> list[float]:
    """Return the parts' shares of the line.

    The unflushed part stays visible however long the log is; the line is not to scale then.
    """
    flushed, committed = max(flushed, min_offset), max(committed, flushed, min_offset)
    unsafe = max(wrote - flushed, 0)
    safe = flushed - min_offset
    if unsafe:
        safe = min(safe, MAX_SAFE_RATIO * unsafe)
    raw = [float(safe), float(committed - flushed), float(max(wrote - committed, 0))]
    total = sum(raw)
    if total <= 0:
        return [0.0, 0.0, 0.0, 1.0]
    free_share = 0.08
    widths = [0.0 if length <= 0 else max(0.03, length / total) for length in raw]
    return [length / sum(widths) * (1 - free_share) for length in widths] + [free_share]


def sized(words: str, count: int) -> str:
    """Return ``page cache 13.0 MiB``."""
    return f"{words} {size(count)}" if count > 0 else ""
