"""How full the hash slots of an index file are: chain lengths counted slot by slot (spec 4.1, 4.2).

Reads the whole entry table once, in pieces, and counts every entry for its slot (keyHash mod number of slots): links
are not followed, so that a loop cannot hold the count up. numpy is imported when the count begins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.codec.index import ENTRY_SIZE, Geometry, IndexHeader

PIECE = 1 << 20
LONGEST_BAR = 10


@dataclass(frozen=True, slots=True)
class SlotLoad:
    """What a count found.

    ``cells``: mean chain length of equal stretches of slots; ``histogram``: slots with 0, 1, … entries, the last bar
    counts all longer ones; ``longest``: the longest chain and its slot; ``bad``: entries whose hash is below zero.
    """

    slots: int
    entries: int
    used: int
    cells: tuple[float, ...]
    histogram: tuple[int, ...]
    longest: int
    longest_slot: int
    bad: int
    complete: bool


def count_slots(
    read: Callable[[int, int], bytes],
    header: IndexHeader,
    geometry: Geometry,
    cells: int = 896,
    cancelled: Callable[[], bool] = lambda: False,
    progress: Callable[[int, int], None] | None = None,
) -> SlotLoad:
    """Count the entries of every slot.

    ``read(position, size)`` gives bytes of the file, fewer where it ends; ``cells`` is how many stretches are wanted
    (never more than there are slots); ``progress(done, total)`` hears entries. ``cancelled`` ends the count early, and
    ``complete`` says so.
    """
    import numpy as np

    from engine.codec.dtypes import INDEX_ENTRY

    slots = max(1, geometry.slots)
    lengths = np.zeros(slots, dtype=np.int64)
    total = min(header.entries, max(0, geometry.entries - 1))
    done = bad = 0
    complete = True
    while done < total:
        if cancelled():
            complete = False
            break
        wanted = min(PIECE, total - done)
        raw = read(geometry.entry_position(1 + done), wanted * ENTRY_SIZE)
        got = len(raw) // ENTRY_SIZE
        if got == 0:
            complete = False
            break
        hashes = np.frombuffer(raw, INDEX_ENTRY, got)["key_hash"].astype(np.int64)
        real = hashes[hashes >= 0]
        bad += got - len(real)
        lengths += np.bincount(real % slots, minlength=slots)
        done += got
        if progress is not None:
            progress(done, total)
    bars = np.bincount(np.minimum(lengths, LONGEST_BAR), minlength=LONGEST_BAR + 1)
    count = max(1, min(cells, slots))
    edges = np.linspace(0, slots, count + 1).astype(np.int64)
    means = np.add.reduceat(lengths, edges[:-1]) / np.maximum(np.diff(edges), 1)
    longest = int(lengths.argmax())
    return SlotLoad(
        slots=slots,
        entries=done,
        used=int(np.count_nonzero(lengths)),
        cells=tuple(float(mean) for mean in means),
        histogram=tuple(int(bar) for bar in bars),
        longest=int(lengths[longest]),
        longest_slot=longest,
        bad=bad,
        complete=complete,
    )


def cell_of(slot: int, slots: int, cells: int) -> int:
    """Number of the stretch that holds ``slot``, as :func:`count_slots` cut them."""
    return min(cells - 1, max(0, ((slot + 1) * cells - 1) // max(1, slots)))
