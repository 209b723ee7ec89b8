"""When RocketMQ deletes files of the log, and what holds them (docs/formats/cleaning.md). Pure: cleaning and its
forecast share it.

Disk use is a share from 0 to 1 (−1 where it is not known), times are ms since the epoch, hours are of the local day.
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
class Levels:
    """Shares of a disk, as RocketMQ bounds them: ``full`` 75 %, ``force`` 85 %, ``warn`` 90 % by default."""

    full: float
    force: float
    warn: float


@dataclass(frozen=True, slots=True)
class Pressure:
    """Which rule is in force: room is ``needed`` (any hour will do), files go ``at_once`` (whatever their age),
    ``refused``: puts are refused meanwhile; ``of``: the disk that says so.
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


def levels(config: MessageStoreConfig) -> Levels:
    """The three levels of a configuration, within RocketMQ's bounds."""
    return Levels(
        full=min(max(config.disk_max_used_space_ratio, 10), 95) / 100,
        force=min(max(config.disk_space_clean_forcibly_ratio, 30), 85) / 100,
        warn=min(max(config.disk_space_warning_level_ratio, 35), 90) / 100,
    )


def grade_of(used: float, at: Levels) -> Grade:
    """Whether a disk that is ``used`` so far makes files go at once, and puts be refused."""
    return "warn" if used > at.warn else "force" if used > at.force else ""


def pressure(log: float, queues: float, at: Levels, share: float | None = None, share_force: float = 0.8) -> Pressure:
    """The rule in force: ``log`` and ``queues`` are the use of their disks, ``share`` of the part that one of several
    stores on a disk may take (None where it has the disk alone).
    """
    for used, of in ((log, "log"), (queues, "queues")):
        grade = grade_of(used, at)
        if grade:
            return Pressure(grade, used, "log" if of == "log" else "queues")
    if share is not None:
        rule: Rule = "shareForce" if share > share_force else "share" if share > at.full else "none"
        return Pressure(rule, share, "share")
    for used, of in ((log, "log"), (queues, "queues")):
        if used < 0 or used > at.full:
            return Pressure("unknown" if used < 0 else "max", used, "log" if of == "log" else "queues")
    return Pressure("none", max(log, queues), "log" if log >= queues else "queues")


def delete_hours(delete_when: str) -> tuple[int, ...]:
    """The hours that ``deleteWhen`` names; what is no number counts for nothing."""
    texts = (text.strip() for text in delete_when.split(";"))
    return tuple(int(text) for text in texts if text.isascii() and text.isdigit())


def is_hour(now: int, hours: Sequence[int]) -> bool:
    """Whether expired files go now."""
    return time.localtime(now / 1000).tm_hour in hours


def is_due(modified: int, now: int, reserved_hours: int) -> bool:
    """Whether a file last changed at ``modified`` is old enough."""
    return now >= modified + reserved_hours * HOUR_MS


def next_hour(since: int, hours: Sequence[int]) -> int | None:
    """The first moment from ``since`` on at which expired files go; None where no hour is named that a day has."""
    if is_hour(since, hours):
        return since
    at = since // HOUR_MS * HOUR_MS
    for _ in range(DAYS_AHEAD * 96):  # quarters: zones and their changes keep to them
        at += HOUR_MS // 4
        if at >= since and is_hour(at, hours):
            return at
    return None


@dataclass(frozen=True, slots=True)
class Expiry:
    """What becomes of one file: ``goes_at`` (ms; None: never as things stand), and what holds it until then.

    ``held_by``: ``goes`` (the next run takes it), ``age``, ``hour``, ``order`` (an older file in front of it is held),
    ``newest`` (the last file is never deleted), ``off`` (deleteWhen names no hour).
    """

    goes_at: int | None
    held_by: Hold
    due_at: int


def forecast(
    modified: Sequence[int],
    now: int,
    *,
    reserved_hours: int,
    hours: Sequence[int],
    rule: Pressure,
    forcibly: bool = True,
) -> list[Expiry]:
    """For each file of the log, oldest first, when it goes, as long as nothing else changes.

    Deletion is in order: a file waits for the ones in front of it. The disk's use is taken as it is now: under pressure
    files go until there is room, and how many that takes depends on what else lies on the disk.
    """
    found: list[Expiry] = []
    free_at = now
    blocked = False
    for number, changed in enumerate(modified):
        due = changed + reserved_hours * HOUR_MS
        if number == len(modified) - 1:
            found.append(Expiry(None, "newest", due))
            break
        if rule.at_once and forcibly:
            found.append(Expiry(now, "goes", due))
            continue
        late = free_at > due
        free_at = max(free_at, due)
        goes = free_at if rule.needed else next_hour(free_at, hours)
        if goes is None or blocked:
            blocked = True
            found.append(Expiry(None, "off", due))
        elif goes <= now:
            found.append(Expiry(goes, "goes", due))
        elif free_at <= now:
            found.append(Expiry(goes, "hour", due))
        else:
            found.append(Expiry(goes, "order" if late else "age", due))
    return found
