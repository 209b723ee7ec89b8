"""Clocks that were set: jumps of the store time, or of one producer's born times.

The difference between store and born time of a producer's messages is nearly constant. A jump that stays is a clock
that was set; one that goes back to normal is a delay. Whose clock it was shows in the other producers, and in which of
the two times went on as before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from engine.inspection.timeline.unit_rows import SENT, Chunk, Ints, UnitRows

MIN_STEP_MS = 1000
MIN_STEP_BACK_MS = 100
"""Store times of one log never decrease as long as the broker's clock does not; a difference below this is ignored."""
MAX_SKEW_MS = 25 * 3_600_000
"""Producers whose clock is further away from the broker's are not used."""
_WINDOW_MS = 10_000
_WINDOW_ROWS = 2048
_MIN_ROWS = 4
_MIN_SPAN_MS = 2000
_MAX_CANDIDATES = 20_000
_MAX_STEPS_BACK = 200

Clock = Literal["broker", "producer", "unknown"]


@dataclass(slots=True)
class ClockStep:
    """A clock went ``amount`` ms forward (negative: back) between the rows ``row`` and ``next_row``."""

    row: int
    next_row: int
    amount: int
    clock: Clock
    hosts: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Jump:
    """The difference of one producer's messages jumps by ``amount`` between two rows and stays there."""

    row: int
    next_row: int
    amount: int
    host: int


def find_clock_steps(chunk: Chunk) -> list[ClockStep]:
    """Return the steps at rows that ``chunk`` judges, in order."""
    rows = chunk.rows
    backward = _steps_back(rows)
    steps = [_step_of(rows, jumps, backward) for jumps in _clusters(_lasting_jumps(rows))]
    covered = {row for step in steps if step.clock == "broker" for row in range(step.row, step.next_row + 1)}
    for row in backward:
        if row not in covered:
            steps.append(ClockStep(row, row + 1, int(rows.stored[row + 1] - rows.stored[row]), "broker"))
    return sorted(
        (step for step in steps if chunk.begin <= step.next_row < chunk.stop or (step.row < 0 == chunk.begin)),
        key=lambda step: step.row,
    )


def _steps_back(rows: UnitRows) -> list[int]:
    """Return the rows behind which the store time goes back; single units with a wrong time are passed over."""
    difference = np.diff(rows.stored)
    steps = np.flatnonzero(difference < -MIN_STEP_BACK_MS)[:_MAX_STEPS_BACK]
    real = []
    for row in steps.tolist():
        is_peak = row > 0 and difference[row - 1] > 0 and abs(difference[row - 1] + difference[row]) < MIN_STEP_MS
        is_dip = row + 1 < len(difference) and abs(difference[row + 1] + difference[row]) < MIN_STEP_MS
        if not (is_peak or is_dip):
            real.append(row)
    return real


def _lasting_jumps(rows: UnitRows) -> list[_Jump]:
    sent = np.flatnonzero(rows.flags & SENT != 0)
    order = sent[np.argsort(rows.host[sent], kind="stable")]
    host, delay, born = rows.host[order], rows.delay[order], rows.born[order]
    is_same = host[1:] == host[:-1]
    places = np.flatnonzero(is_same & (np.abs(np.diff(delay)) >= MIN_STEP_MS))
    if not len(places) or len(places) > _MAX_CANDIDATES:
        return []
    begins = np.flatnonzero(np.concatenate(([True], ~is_same)))
    jumps = []
    for place in places.tolist():
        number = int(np.searchsorted(begins, place, "right")) - 1
        begin = int(begins[number])
        stop = int(begins[number + 1]) if number + 1 < len(begins) else len(order)
        amount = _lasting_amount(delay, born, place, begin, stop)
        if amount:
            jumps.append(_Jump(int(order[place]), int(order[place + 1]), amount, int(host[place])))
    return sorted(jumps, key=lambda jump: jump.row)


def _lasting_amount(delay: Ints, born: Ints, place: int, begin: int, stop: int) -> int:
    """Return by how much the difference jumps behind ``place``; 0 if it does not stay or too few messages show it."""
    earlier_rows = slice(max(begin, place - _WINDOW_ROWS + 1), place + 1)
    later_rows = slice(place + 1, min(stop, place + 1 + _WINDOW_ROWS))
    earlier = delay[earlier_rows][np.abs(born[earlier_rows] - born[place]) <= _WINDOW_MS]
    later = delay[later_rows][np.abs(born[later_rows] - born[place + 1]) <= _WINDOW_MS]
    if len(earlier) < _MIN_ROWS or len(later) < _MIN_ROWS:
        return 0
    spans = [
        int(np.ptp(born[part][np.abs(born[part] - born[near]) <= _WINDOW_MS]))
        for part, near in ((earlier_rows, place), (later_rows, place + 1))
    ]
    old, new = float(np.median(earlier)), float(np.median(later))
    amount = new - old
    jump = int(delay[place + 1] - delay[place])
    if min(spans) < _MIN_SPAN_MS or min(abs(old), abs(new)) > MAX_SKEW_MS:
        return 0
    if abs(amount) < MIN_STEP_MS or abs(amount - jump) > 0.25 * abs(jump) + 200:
        return 0
    if any(np.subtract(*np.percentile(part, (90, 10))) > 0.25 * abs(amount) for part in (earlier, later)):
        return 0
    higher, normal = (later, old) if amount > 0 else (earlier, new)
    return round(amount) if float(np.percentile(higher, 2)) >= normal + 0.5 * abs(amount) else 0


def _clusters(jumps: list[_Jump]) -> list[list[_Jump]]:
    """Group jumps of several producers that one step of the broker's clock explains."""
    clusters: list[list[_Jump]] = []
    for jump in jumps:
        for cluster in reversed(clusters[-8:]):
            start, end = max(member.row for member in cluster), min(member.next_row for member in cluster)
            is_alike = abs(jump.amount - cluster[0].amount) <= 0.3 * abs(cluster[0].amount)
            if is_alike and jump.row < end and jump.next_row > start:
                cluster.append(jump)
                break
        else:
            clusters.append([jump])
    return clusters


def _step_of(rows: UnitRows, jumps: list[_Jump], backward: list[int]) -> ClockStep:
    row, next_row = max(jump.row for jump in jumps), min(jump.next_row for jump in jumps)
    amount = round(float(np.median([jump.amount for jump in jumps])))
    hosts = sorted({jump.host for jump in jumps})
    if _producers_across(rows, row, next_row) - set(hosts):
        return ClockStep(row, next_row, -amount, "producer", hosts)
    step_back = next((place for place in backward if row <= place < next_row), None)
    if step_back is not None and amount < 0:
        return ClockStep(step_back, step_back + 1, amount, "broker", hosts)
    stored, born = int(rows.stored[next_row] - rows.stored[row]), int(rows.born[next_row] - rows.born[row])
    if len(hosts) > 1:
        is_brokers = True
    elif born < -MIN_STEP_BACK_MS or (amount < 0 and born >= -0.8 * amount and stored <= -0.2 * amount):
        is_brokers = False
    elif amount > 0 and stored >= 0.8 * amount and born <= 0.2 * amount:
        is_brokers = True
    else:
        return ClockStep(row, next_row, amount, "unknown", hosts)
    if not is_brokers:
        return ClockStep(row, next_row, -amount, "producer", hosts)
    place = row + int(np.argmax(np.diff(rows.stored[row : next_row + 1]))) if amount > 0 else row
    return ClockStep(place, place + 1, amount, "broker", hosts)


def _producers_across(rows: UnitRows, row: int, next_row: int) -> set[int]:
    """Return the producers with messages on both sides of a step."""
    sides = slice(max(0, row - _WINDOW_ROWS), row + 1), slice(next_row, next_row + _WINDOW_ROWS)
    return set.intersection(*(set(rows.host[part][rows.flags[part] & SENT != 0].tolist()) for part in sides))
