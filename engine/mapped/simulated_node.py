"""What a simulated disk holds of one file: the bytes that programs see, and the bytes that would survive a power loss.

Pure: no disk is touched here.
"""

from __future__ import annotations

import random

from engine.mapped.power_loss import PAGE, lose_pages, lose_rewritten


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
        if len(self.live) != len(self.durable):
            return lose_rewritten(self.live, self.durable, rng, keep)
        found = bytearray(self.durable)
        if self.live != found:
            lose_pages(found, self.live, rng, keep)
        return bytes(found)
