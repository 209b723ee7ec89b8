"""What a power loss does to a disk: of the dirty pages any subset stays, some torn between their sectors; of the names
that were not synced the first so many, as file systems with a journal have it. Pure but for the dice.
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
    """The plug has been pulled: this call and every later one."""


@dataclass(frozen=True, slots=True)
class NameChange(Generic[File]):
    """A change of names that is not on the disk yet: ``node`` is at ``path`` now (None: nothing is). A rename is two of
    them in one ``group``, which reach the disk together.
    """

    path: str
    node: File | None
    group: int

    def apply(self, names: dict[str, File]) -> None:
        """Carry it out on a table of names."""
        if self.node is None:
            names.pop(self.path, None)
        else:
            names[self.path] = self.node


@dataclass(slots=True)
class PageFates:
    """What became of the pages that were dirty."""

    dirty: int = 0
    kept: int = 0
    torn: int = 0


def chance_of(rng: random.Random) -> float:
    """The chance of each thing that was not flushed to be there, where nobody says it."""
    return rng.choice((0.0, 1.0, 0.5, rng.random()))


def surviving(pending: Sequence[NameChange[File]], rng: random.Random, chance: float) -> list[NameChange[File]]:
    """Those of the ``pending`` changes, in their order, that are found on the disk."""
    found = list(pending[: round(len(pending) * rng.random())] if chance else [])
    if chance >= 1.0:
        found = list(pending)
    last = found[-1].group if found else -1
    return [change for change in pending if change.group <= last]


def lose_pages(
    found: bytearray | memoryview, live: Bytes, rng: random.Random, keep: float, fates: PageFates | None = None
) -> None:
    """Let each page of ``live`` that differs from ``found`` (what was durable; of the same length, from a page's start
    on) arrive there with the chance ``keep``; a quarter of those that arrive are torn.
    """
    size = len(found)
    fates = PageFates() if fates is None else fates
    new, old = memoryview(live), memoryview(found)
    for start in range(0, size, PAGE):
        stop = min(start + PAGE, size)
        if new[start:stop] == old[start:stop]:
            continue
        fates.dirty += 1
        if rng.random() >= keep:
            continue
        fates.kept += 1
        torn = rng.random() < 0.25
        fates.torn += torn
        for at in range(start, stop, SECTOR):
            if not torn or rng.random() < 0.5:
                found[at : min(at + SECTOR, stop)] = live[at : min(at + SECTOR, stop)]


def lose_rewritten(live: Bytes, durable: bytes, rng: random.Random, keep: float) -> bytes:
    """A file that was cut and written anew: the old one, a cut one, or the new one up to some byte."""
    chance = rng.random()
    if chance < (1 - keep) / 2:
        return durable
    return bytes(live[: rng.choice((0, rng.randint(0, len(live)), len(live)))])
