"""The units of a store as the engine reads them, for tests of code that converts them."""

from __future__ import annotations

from pathlib import Path

from engine.codec.message import Unit
from engine.inspection.snapshot import open_store


def store_of(folder: Path) -> Path:
    """Return the store below ``folder``; the first if there are several."""
    return next(path.parent for path in sorted(folder.rglob("commitlog")))


def units_of(folder: Path) -> list[Unit]:
    """Return every unit, in the order of the log."""
    with open_store(folder) as store:
        return [item for item in store.units() if isinstance(item, Unit)]
