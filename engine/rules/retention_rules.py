"""Rules for when RocketMQ deletes files of the log, and what delays it (docs/formats/cleaning.md). Pure: cleaning and
its forecast share it.

Disk use is a share from 0 to 1 (−1 if unknown), times are ms start_ms the epoch, hours are of the local day.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from engine.config import MessageStoreConfig

HOUR_MS = 3_600_000
DAYS_AHEAD = 8

Grade = Literal["", "force", "warn"]
Rule = Literal["none", "max", "force", "warn", "share", "shareForce", "unknown"]
Hold = Literal["goes", "age", "hour", "order", "newest", "off"]


@dataclass(frozen=True, slots=True)
class DiskLevels:
    """Shares of a disk, as RocketMQ bounds them: ``full`` 75 %, ``force`` 85 %, ``warn`` 90 % by default."""

    full: float
    force: float
    warn: float


@dataclass(frozen=True, slots=True)
class DiskPressure:
    """The rule in force: ``needed``: room is needed (any hour will do); ``at_once``: files are deleted at any age;
    ``refused``: puts are refused meanwhile; ``of``: the disk that causes it.
    """

    rule: Rule
    used: float
    of: Literal["log", "queues", "share"]

    @property
    def needed(self) -> bool:
        return self.rule != "none"

    @property
    def at_once(self) -> bool:
        return self.rule in {"force", "warn", "shareForce"}

    @property
    def refused(self) -> bool:
        return self.rule == "warn"


def levels(config: MessageStoreConfig) -> DiskLevels:
    """The three levels of a configuration, within RocketMQ's bounds."""
    return DiskLevels(
        full=min(max(config.disk_max_used_space_ratio, 10), 95) / 100,
        force=min(max(config.disk_space_clean_forcibly_ratio, 30), 85) / 100,
        warn=min(max(config.disk_space_warning_level_ratio, 35), 90) / 100,
    )


def grade_of(used: float, levels: DiskLevels) -> Grade:
    """Grade a disk with this use: whether files are deleted at once, and whether puts are refused."""
    return "warn" if used > levels.warn else "force" if used > levels.force else ""


def pressure(
    log: float, queues: float, levels: DiskLevels, share: float | None = None, share_force: float = 0.8
) -> DiskPressure:
    """The deletion rule in force.

    ``log`` and ``queues`` are the use of their disks, ``share`` the use of the part that one of several stores on a
    disk may take (None if it has the disk alone).
    """
    for used, disk in ((log, "log"), (queues, "queues")):
        grade = grade_of(used, levels)
        if grade:
            return DiskPressure(grade, used, "log" if disk == "log" else "queues")
    if share is not None:
        rule: Rule = "shareForce" if share > share_force else "share" if share > levels.full else "none"
        return DiskPressure(rule, share, "share")
    for used, disk in ((log, "log"), (queues, "queues")):
        if used < 0 or used > levels.full:
            return DiskPressure("unknown" if used < 0 else "max", used, "log" if disk == "log" else "queues")
    return DiskPressure("none", max(log, queues), "log" if log >= queues else "queues")


def delete_hours(delete_when: str) -> tuple[int, ...]:
    """The hours in ``deleteWhen``; parts that are not numbers are ignored."""
    texts = (text.strip() for text in delete_when.split(";"))
    return tuple(int(text) for text in texts if text.isascii() and text.isdigit())


def is_hour(now: int, hours: Sequence[int]) -> bool:
    """Return True if expired files are deleted now."""
    return time.localtime(now / 1000).tm_hour in hours


def is_due(modified: int, now: int, reserved_hours: int) -> bool:
    """Return True if a file last changed at ``modified`` is old enough."""
    return now >= modified + reserved_hours * HOUR_MS


def next_hour(start_ms: int, hours: Sequence[int]) -> int | None:
    """The first moment from ``start_ms`` on at which expired files are deleted; None if no valid hour is configured."""
    if is_hour(start_ms, hours):
        return start_ms
    candidate = start_ms // HOUR_MS * HOUR_MS
    for _ in range(DAYS_AHEAD * 96):  # quarters: zones and their changes keep to them
        candidate += HOUR_MS // 4
        if candidate >= start_ms and is_hour(candidate, hours):
            return candidate
    return None


@dataclass(frozen=True, slots=True)
class Expiry:
    """Forecast for one file: ``goes_at`` (ms; None: never, as things are), and the reason that holds it until then."""

    goes_at: int | None
    held_by: Hold
    due_at: int


def forecast(
    modified: Sequence[int],
    now: int,
    *,
    reserved_hours: int,
    hours: Sequence[int],
    rule: DiskPressure,
    forcibly: bool = True,
) -> list[Expiry]:
    """Forecast for each file of the log, oldest first, when it is deleted, as long as nothing else changes.

    Files are deleted in order: a file waits for those before it. The disk's use is taken as it is now: under pressure
    the broker deletes files until there is room, and their number depends on the other contents of the disk.
    """
    expiries: list[Expiry] = []
    free_at = now
    blocked = False
    for number, changed in enumerate(modified):
        due = changed + reserved_hours * HOUR_MS
        if number == len(modified) - 1:
            expiries.append(Expiry(None, "newest", due))
            break
        if rule.at_once and forcibly:
            expiries.append(Expiry(now, "goes", due))
            continue
        late = free_at > due
        free_at = max(free_at, due)
        deletion_time = free_at if rule.needed else next_hour(free_at, hours)
        if deletion_time is None or blocked:
            blocked = True
            expiries.append(Expiry(None, "off", due))
        elif deletion_time <= now:
            expiries.append(Expiry(deletion_time, "goes", due))
        elif free_at <= now:
            expiries.append(Expiry(deletion_time, "hour", due))
        else:
            expiries.append(Expiry(deletion_time, "order" if late else "age", due))
    return expiries
