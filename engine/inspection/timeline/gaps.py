"""Times in which a log got nothing: a stall, an outage, or just a pause in the traffic.

Requests that were sent in such a time and stored behind it, first attempts in it, and delayed messages that were due in
it show that something was to be stored. Without them a gap is a pause, however long it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.inspection.timeline.clocks import MAX_SKEW_MS
from engine.inspection.timeline.unit_rows import DELIVERED, SENT, TRACED, Chunk, Ints, UnitRows

MIN_GAP_MS = 1000
MIN_PAUSE_MS = 10_000
PAUSE_FACTOR = 20
"""A gap without evidence is a pause if it is longer than this many times the usual gap (percentile 99)."""
WAIT_SHARE, LONE_WAIT_SHARE = 0.5, 0.8
"""Smallest share of a stall for which its longest request waited; a single request may have been late by itself."""
_WAIT_MS = 700
"""A message is late if it took this much longer than its producer's messages usually take."""
_AFTER_MS = 5000
_AFTER_ROWS = 4096
_BASE_ROWS = 64
_MIN_BASE_ROWS = 3
_MAX_JUDGED = 5000
_RATE_ROWS, _MIN_RATE_SPAN_MS = 1024, 1000
"""Messages of a process in front of a gap that show how many keys it usually makes, and how long they must take."""
_MIN_MADE, _MIN_MADE_SHARE = 10, 0.3
"""Fewest keys beyond the usual, and their smallest share of the messages that usually came, that show that a process
went on sending.
"""
_HALF = 1 << 15
"""Half of the numbers that keys have: what looks like a larger step may be one back."""


@dataclass(slots=True)
class Gap:
    """Nothing was stored between ``start`` and ``end`` (ms), the times of the units at ``offset_before`` and
    ``offset``.

    ``waited``: requests sent meanwhile and stored afterwards, ``longest_wait`` of them in ms; ``attempts``: messages
    whose first attempt was meanwhile; ``keys_made``: keys that producers made meanwhile for messages that are not in
    this log, beyond their usual number of those; ``due``: delayed messages that were due meanwhile, ``delivered``:
    delayed messages that were delivered right afterwards. ``usual`` (ms): percentile 99 of the gaps around.
    """

    start: int
    end: int
    offset_before: int
    offset: int
    usual: int
    waited: int = 0
    longest_wait: int = 0
    first_waited: int | None = None
    attempts: int = 0
    first_attempt: int | None = None
    keys_made: int = 0
    due: int = 0
    delivered: int = 0
    is_over: bool = True
    """False if messages are still late at the end of what follows the gap."""

    @property
    def length(self) -> int:
        return self.end - self.start

    @property
    def is_stall(self) -> bool:
        share = LONE_WAIT_SHARE if self.waited == 1 else WAIT_SHARE
        return self.waited > 0 and self.is_over and self.longest_wait >= share * self.length

    @property
    def is_outage(self) -> bool:
        return not self.is_stall and (self.attempts > 0 or self.keys_made > 0 or (self.due > 0 and self.delivered > 0))

    @property
    def is_pause(self) -> bool:
        unusual = self.length >= max(MIN_PAUSE_MS, PAUSE_FACTOR * self.usual)
        return unusual and not self.is_stall and not self.is_outage


def find_gaps(chunk: Chunk, excluded: set[int]) -> list[Gap]:
    """Return the gaps in front of the rows that ``chunk`` judges, except behind the ``excluded`` rows, in which a clock
    was set.
    """
    rows = chunk.rows
    if len(rows) < 2:
        return []
    difference = np.diff(rows.stored)
    usual = int(np.percentile(np.maximum(difference, 0), 99))
    places = np.flatnonzero(difference >= MIN_GAP_MS)
    places = places[(places + 1 >= chunk.begin) & (places + 1 < chunk.stop)]
    if len(places) > _MAX_JUDGED:  # the longest of them
        places = np.sort(places[np.argsort(difference[places])[-_MAX_JUDGED:]])
    judge = _Judge(rows)
    return [judge.gap(place, usual) for place in places.tolist() if place not in excluded]


class _Judge:
    """Finds the evidence of a gap in the rows around it."""

    def __init__(self, rows: UnitRows) -> None:
        self._rows = rows
        self._delay = rows.delay
        self._by_host = _Groups(rows.host, np.flatnonzero(rows.flags & SENT != 0))
        has_time = (rows.flags & (SENT | TRACED) != 0) & (rows.client != 0)
        self._by_client = _Groups(rows.client, np.flatnonzero(has_time))
        self._since_key = rows.born - rows.key_time
        self._due_rows = np.flatnonzero(rows.due >= 0)

    def gap(self, place: int, usual: int) -> Gap:
        """Return the gap behind row ``place``."""
        rows = self._rows
        start, end = int(rows.stored[place]), int(rows.stored[place + 1])
        gap = Gap(start, end, int(rows.offset[place]), int(rows.offset[place + 1]), usual)
        later_rows = np.arange(place + 1, min(place + 1 + _AFTER_ROWS, len(rows)))
        later_rows = later_rows[(rows.stored[later_rows] >= end) & (rows.stored[later_rows] <= end + _AFTER_MS)]
        sent = later_rows[rows.flags[later_rows] & SENT != 0]
        self._judge_sends(gap, place, sent)
        for client in np.unique(rows.client[sent]).tolist():
            gap.keys_made += self._keys_made(gap, place, client) if client else 0
        due = rows.due[self._due_rows[self._due_rows <= place]]
        gap.due = int(np.count_nonzero((due > start + MIN_GAP_MS) & (due < end - MIN_GAP_MS)))
        gap.delivered = int(np.count_nonzero(rows.flags[later_rows] & DELIVERED))
        return gap

    def _judge_sends(self, gap: Gap, place: int, sent: npt.NDArray[np.intp]) -> None:
        rows, delays = self._rows, self._delay
        bases: dict[int, float | None] = {}
        key_bases: dict[int, float | None] = {}
        latest_excess = 0.0
        for row in sent.tolist():
            host = int(rows.host[row])
            if host not in bases:
                bases[host] = self._by_host.base(delays, host, place)
            base = bases[host]
            if base is None or abs(base) > MAX_SKEW_MS:
                continue
            excess = float(delays[row]) - base
            latest_excess = excess
            arrived = int(rows.stored[row] - max(excess, 0.0))
            if excess >= _WAIT_MS and gap.start - _WAIT_MS <= arrived < gap.end - _WAIT_MS / 2:
                gap.waited += 1
                gap.longest_wait = max(gap.longest_wait, gap.end - max(arrived, gap.start))
                gap.first_waited = min(arrived, gap.first_waited if gap.first_waited is not None else arrived)
            client = int(rows.client[row])
            if not client:
                continue
            if client not in key_bases:
                key_bases[client] = self._by_client.base(self._since_key, client, place)
            key_base = key_bases[client]
            if key_base is None or int(rows.key_time[row]) == self._by_client.last(rows.key_time, client, place):
                continue  # the second: keys that only look like a Java client's
            since_first = float(self._since_key[row]) - key_base
            first_attempt = int(arrived - since_first)
            if since_first >= _WAIT_MS and gap.start - _AFTER_MS <= first_attempt < gap.end - _WAIT_MS:
                gap.attempts += 1
                earlier_attempt = gap.first_attempt
                gap.first_attempt = first_attempt if earlier_attempt is None else min(earlier_attempt, first_attempt)
        gap.is_over = latest_excess < max(_WAIT_MS, gap.longest_wait / 2) or not gap.waited

    def _keys_made(self, gap: Gap, place: int, client: int) -> int:
        """Return how many keys the process ``client`` made in the gap that are in no unit; 0 if not more than usual.

        Keys are numbered. A process that also sends elsewhere leaves numbers out all the time, at a rate that the
        messages in front of the gap show.
        """
        rows = self._rows
        earlier_rows, later_rows = self._by_client.around(client, place, _RATE_ROWS)
        if len(earlier_rows) < _BASE_ROWS:
            return 0
        times, numbers = rows.key_time[earlier_rows], rows.key_number[earlier_rows]
        steps = (numbers - numbers[-1] + _HALF) % (2 * _HALF) - _HALF
        span, last_time, last_number = int(np.ptp(times)), int(times.max()), int(numbers[-1] + steps.max())
        later_rows = later_rows[rows.key_time[later_rows] >= last_time + gap.length // 2]
        if span < _MIN_RATE_SPAN_MS or not len(later_rows):
            return 0
        next_row = later_rows[np.argmin(rows.key_time[later_rows])]
        elapsed = int(rows.key_time[next_row]) - last_time
        missing = (int(rows.key_number[next_row]) - last_number) % (2 * _HALF) - 1
        usually_here = len(earlier_rows) * elapsed / span
        usually_elsewhere = max(int(np.ptp(steps)) + 1 - len(earlier_rows), 0) * elapsed / span
        surplus = missing - usually_elsewhere
        least = max(_MIN_MADE, 5 * math.sqrt(usually_elsewhere), _MIN_MADE_SHARE * usually_here)
        return int(surplus) if surplus >= least else 0


class _Groups:
    """Rows by host or client, to compare a row with the usual value of its group."""

    def __init__(self, group: npt.NDArray[np.uint64], rows: npt.NDArray[np.intp]) -> None:
        self._order = rows[np.argsort(group[rows], kind="stable")]
        self._groups = group[self._order]

    def around(self, group: int, place: int, count: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return up to ``count`` rows of the group up to ``place``, and up to as many behind it."""
        begin = int(np.searchsorted(self._groups, np.uint64(group), "left"))
        stop = int(np.searchsorted(self._groups, np.uint64(group), "right"))
        middle = begin + int(np.searchsorted(self._order[begin:stop], place, "right"))
        return self._order[max(begin, middle - count) : middle], self._order[middle : min(stop, middle + count)]

    def last(self, values: Ints, group: int, place: int) -> int | None:
        """Return the value of the group's last row up to ``place``."""
        begin = int(np.searchsorted(self._groups, np.uint64(group), "left"))
        stop = int(np.searchsorted(self._groups, np.uint64(group), "right"))
        middle = begin + int(np.searchsorted(self._order[begin:stop], place, "right"))
        return int(values[self._order[middle - 1]]) if middle > begin else None

    def base(self, values: Ints, group: int, place: int) -> float | None:
        """Return the median of the group's last rows up to ``place``, else of its rows further behind; None if they are
        too few.
        """
        begin = int(np.searchsorted(self._groups, np.uint64(group), "left"))
        stop = int(np.searchsorted(self._groups, np.uint64(group), "right"))
        middle = begin + int(np.searchsorted(self._order[begin:stop], place, "right"))
        near = self._order[max(begin, middle - _BASE_ROWS) : middle]
        if len(near) < _MIN_BASE_ROWS:
            near = self._order[max(begin, middle) : min(stop, middle + 4 * _BASE_ROWS)]
        return float(np.median(values[near])) if len(near) >= _MIN_BASE_ROWS else None
