"""A repair: the patches that mend one kind of harm, why, and what they gain and cost."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from engine.inspection.snapshot import StoreSnapshot
from engine.patching.patches import SAMPLE_BYTES, Patch, sample_digest

Certainty = Literal["certain", "likely"]
"""``certain``: the store's other bytes prove the new ones. ``likely``: they agree with them without proving them."""


@dataclass(frozen=True, slots=True)
class Repair:
    """Patches that belong together: they are applied all or not at all.

    ``name`` is what a person types, ``rules`` are the findings that it mends. ``gains`` and ``costs`` are sentences,
    ``costs`` is "" if nothing is lost by it. ``new_units`` counts the units of the log that no start has read before:
    messages that can be read again, and placeholders of lost ones.
    """

    name: str
    rules: frozenset[str]
    title: str
    patches: tuple[Patch, ...]
    gains: str
    costs: str = ""
    certainty: Certainty = "certain"
    new_units: int = 0
    moves_messages: bool = False
    """True if placeholders begin elsewhere than the messages: queue entries have to lead to them."""

    def record(self) -> dict[str, Any]:
        """Return the repair as JSON has it; its patches have records of their own."""
        return {
            "type": "repair",
            "name": self.name,
            "rules": sorted(self.rules),
            "title": self.title,
            "patches": len(self.patches),
            "gains": self.gains,
            "costs": self.costs,
            "certainty": self.certainty,
        }


def sample_of(store: StoreSnapshot, path: Path) -> tuple[int, str]:
    """Return the size of a file in bytes and its :func:`~engine.patching.patches.sample_digest`.

    Raises :class:`engine.errors.CannotRead`.
    """
    info = store.reading.status(path)
    size = info.st_size if info is not None else 0
    descriptor = store.reading.open(path)
    try:
        head = store.reading.read(str(path), descriptor, SAMPLE_BYTES, 0, size)
        tail = store.reading.read(str(path), descriptor, SAMPLE_BYTES, max(size - SAMPLE_BYTES, 0), size)
    finally:
        os.close(descriptor)
    return size, sample_digest(head, tail)
