"""A model of a disk after a power loss.

Any subset of the dirty pages survives, some of them torn between their sectors. Of the unsynced changes of names the
first few survive, as on journaling file systems. Pure apart from the random numbers.

Every file has two contents: ``live`` is what programs read, ``durable`` is what the last flush made safe. ``later`` is
one of the contents that the disk may have when the power is back::

    live       AAAAAAAA  BBBBBBBB  CCCCCCCC  DDDDDDDD     pages of 4 KiB, each of 8 sectors
    durable    AAAAAAAA  bbbbbbbb  cccccccc  dddddddd     page A was flushed, the others are dirty
    later      AAAAAAAA  BBBBBBBB  cccccccc  DdDDddDd     B was written back in time, C was not, D is torn

    changes    create x │ rename y → z │ delete w         since the last sync
    later      create x │ rename y → z                    the first so many; a rename is never cut in half

The kernel may write dirty pages back at any time and in any order. So a later page may be there without an earlier
one: nothing may be concluded from the bytes behind a hole. A file that was truncated and rewritten has its old
content, or any beginning of its new content.

"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

PAGE = 4096
SECTOR = 512
File = TypeVar("File")
Bytes = bytes | bytearray | memoryview


class PowerLoss(Exception):
    """The power is cut: this call and every later one fails."""


@dataclass(frozen=True, slots=True)
class NameChange(Generic[File]):
    """A change of names that is not on the disk yet: ``node`` is at ``path`` now (None: nothing is).

    A rename is two of them in one ``group``, which reach the disk together.

    """

    path: str
    node: File | None
    group: int

    def apply(self, names: dict[str, File]) -> None:
        """Apply the change to a table of names."""
        if self.node is None:
            names.pop(self.path, None)
        else:
            names[self.path] = self.node


@dataclass(slots=True)
class PageFates:
    """Counts of the pages that were dirty."""

    dirty: int = 0
    survived: int = 0
    torn: int = 0


def choose_survival_chance(rng: random.Random) -> float:
    """Choose the survival chance of unflushed data if the caller gives none."""
    return rng.choice((0.0, 1.0, 0.5, rng.random()))


def surviving_changes(pending: Sequence[NameChange[File]], rng: random.Random, chance: float) -> list[NameChange[File]]:
    """Return those of the ``pending`` changes, in their order, that reach the disk."""
    durable = list(pending[: round(len(pending) * rng.random())] if chance else [])
    if chance >= 1.0:
        durable = list(pending)
    last_group = durable[-1].group if durable else -1
    return [change for change in pending if change.group <= last_group]


def lose_pages(
    durable: bytearray | memoryview, live: Bytes, rng: random.Random, chance: float, fates: PageFates | None = None
) -> None:
    """Copy each page of ``live`` that differs from ``durable`` there with the chance ``chance``; a quarter of these
    pages is torn.

    Both have the same length and begin at a page's start.

    """
    size = len(durable)
    fates = PageFates() if fates is None else fates
    new, old = memoryview(live), memoryview(durable)
    for start in range(0, size, PAGE):
        stop = min(start + PAGE, size)
        if new[start:stop] == old[start:stop]:
            continue
        fates.dirty += 1
        if rng.random() >= chance:
            continue
        fates.survived += 1
        torn = rng.random() < 0.25
        fates.torn += torn
        for sector_start in range(start, stop, SECTOR):
            if not torn or rng.random() < 0.5:
                durable[sector_start : min(sector_start + SECTOR, stop)] = live[
                    sector_start : min(sector_start + SECTOR, stop)
                ]


def lose_rewritten(live: Bytes, durable: bytes, rng: random.Random, chance: float) -> bytes:
    """Return the content of a file that was truncated and rewritten: the old one, an empty one, or a part of the new
    one.
    """
    draw = rng.random()
    if draw < (1 - chance) / 2:
        return durable
    return bytes(live[: rng.choice((0, rng.randint(0, len(live)), len(live)))])
