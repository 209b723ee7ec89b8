"""What a simulated disk holds of one file: the bytes that programs see, and the bytes that would survive a power loss.

Pure: no disk is touched here.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

PAGE = 4096
SECTOR = 512


class Node:
    """One file's content. ``live`` is what reading gives, ``durable`` what is surely on the disk.

    Pages in which the two differ are dirty: each of them may reach the disk at any moment, in any order.
    """

    __slots__ = ("durable", "durable_modified", "live", "modified")

    def __init__(self, size: int, modified: int) -> None:
        self.live = bytearray(size)
        self.durable = bytes(size)
        self.modified = modified
        self.durable_modified = modified

    def flush(self) -> None:
        """Everything is on the disk."""
        self.durable = bytes(self.live)
        self.durable_modified = self.modified

    def dirty_pages(self) -> list[int]:
        """Numbers of the pages that differ; all of them where the length differs."""
        live, durable = memoryview(self.live), memoryview(self.durable)
        if live == durable:
            return []
        starts = range(0, max(len(live), len(durable)), PAGE)
        return [at // PAGE for at in starts if live[at : at + PAGE] != durable[at : at + PAGE]]

    def write_back(self, rng: random.Random) -> None:
        """Some of the dirty pages reach the disk, as the kernel sees fit."""
        if len(self.live) != len(self.durable):
            return
        kept = bytearray(self.durable)
        for page in self.dirty_pages():
            if rng.random() < 0.5:
                kept[page * PAGE : (page + 1) * PAGE] = self.live[page * PAGE : (page + 1) * PAGE]
        self.durable = bytes(kept)

    def after_power_loss(self, rng: random.Random, keep: float) -> bytes:
        """What is found afterwards: ``keep`` is the chance of each dirty page; some pages are torn between sectors."""
        if len(self.live) != len(self.durable):  # a file cut and written anew: old, cut, or new up to some byte
            chance = rng.random()
            if chance < (1 - keep) / 2:
                return self.durable
            return bytes(self.live[: rng.choice((0, rng.randint(0, len(self.live)), len(self.live)))])
        found = bytearray(self.durable)
        for page in self.dirty_pages():
            if rng.random() >= keep:
                continue
            start, stop = page * PAGE, min((page + 1) * PAGE, len(found))
            torn = rng.random() < 0.25
            for at in range(start, stop, SECTOR):
                if not torn or rng.random() < 0.5:
                    found[at : min(at + SECTOR, stop)] = self.live[at : min(at + SECTOR, stop)]
        return bytes(found)


@dataclass(frozen=True, slots=True)
class NameChange:
    """A change of names that is not on the disk yet: ``node`` is at ``path`` now (None: nothing is). A rename is two of
    them in one ``group``, which reach the disk together.
    """

    path: str
    node: Node | None
    group: int
