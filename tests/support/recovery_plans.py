"""Plans of recovery for tests: of a store with some settings, and after numbers in its checkpoint were changed."""

from __future__ import annotations

import struct

from engine.config import from_mapping
from engine.inspection import recovery
from engine.inspection.snapshot import open_store


def planned(root, release, **settings):
    """Return the plan of a store with some configuration settings."""
    with open_store(root, from_mapping({"timerWheelEnable": False, **settings})[0]) as store:
        return recovery.plan(store, release)


def change_checkpoint(root, position, value):
    """Set one of the checkpoint's 8-byte numbers."""
    with (root / "checkpoint").open("r+b") as file:
        file.seek(position)
        file.write(struct.pack(">q", value))
