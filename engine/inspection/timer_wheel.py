"""The timer wheel that a start takes: ``timerwheel``, or the newest of its snapshots
(docs/formats/delays.md#wheel-snapshots).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.codec import timer
from engine.errors import CorruptUnit
from engine.files.layout import wheel_snapshot_position

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot


@dataclass(frozen=True, slots=True)
class WheelFile:
    """A file with a wheel. ``position``: bytes of the timer log that a snapshot includes; None for ``timerwheel``."""

    path: Path
    position: int | None = None

    @property
    def name(self) -> str:
        """Name of the file."""
        return self.path.name


@dataclass(frozen=True, slots=True)
class WheelInfo:
    """A snapshot with the number of messages that wait in it, and whether a start with snapshots takes it."""

    name: str
    position: int
    messages: int
    is_taken: bool


def wheel_snapshots(store: StoreSnapshot) -> list[WheelFile]:
    """The snapshots by position. A broker keeps the newest two. Raises :class:`CannotRead`."""
    if store.paths is None:
        return []
    files = []
    for entry in store.reading.entries(store.path):
        position = wheel_snapshot_position(entry.name)
        if position is not None:
            files.append(WheelFile(store.path / entry.name, position))
    return sorted(files, key=lambda file: file.position or 0)


def wheel_taken(store: StoreSnapshot) -> WheelFile | None:
    """The file that a start takes: the newest snapshot with ``timerWheelSnapshotFlush``, else ``timerwheel``.

    Without a configuration snapshots show that the option is on. None for a part of a store. Raises
    :class:`CannotRead`.
    """
    if store.paths is None:
        return None
    is_on = store.config is None or store.config.timer_wheel_snapshot_flush
    snapshots = wheel_snapshots(store) if is_on else []
    return snapshots[-1] if snapshots else WheelFile(store.paths.timerwheel)


def wheel_infos(store: StoreSnapshot) -> list[WheelInfo]:
    """The snapshots with their waiting messages, by position. Raises :class:`CannotRead`."""
    snapshots = wheel_snapshots(store)
    if not snapshots:
        return []
    precision = store.config.timer_precision_ms if store.config is not None else 1000
    min_time = delivered_until(store) // precision
    return [
        WheelInfo(
            file.name, file.position or 0, _waiting(store.small_file(file.path) or b"", min_time), file is snapshots[-1]
        )
        for file in snapshots
    ]


def delivered_until(store: StoreSnapshot) -> int:
    """The time (ms) up to which the wheel was delivered; 0 if timercheck is gone."""
    assert store.paths is not None
    data = store.small_file(store.paths.timercheck)
    try:
        return timer.decode_check(data).last_read_time if data else 0
    except CorruptUnit:
        return 0


def _waiting(wheel: bytes, min_time: int) -> int:
    """Messages in the slots of a time from ``min_time`` on (time in units of the precision)."""
    import numpy as np  # info starts without it

    from engine.codec.dtypes import TIMER_SLOT

    slots = np.frombuffer(wheel[: len(wheel) // timer.SLOT_SIZE * timer.SLOT_SIZE], TIMER_SLOT)
    return int(slots["count"][(slots["time"] >= min_time) & (slots["time"] > 0)].sum())
