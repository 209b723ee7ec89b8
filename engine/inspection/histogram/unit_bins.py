"""Adds the blocks of a walk over the log to bins of store time."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.codec import columns as unit_columns
from engine.codec.block_texts import property_values
from engine.codec.machine_code_build import twins
from engine.codec.message import TRANSACTION_MASK
from engine.inspection.histogram.delay_buckets import buckets_of
from engine.inspection.histogram.time_bins import TimeBins, Units
from engine.inspection.timeline.clocks import MAX_SKEW_MS
from engine.inspection.timeline.unit_rows import SENT, SLOW_MS, topic_flags

if TYPE_CHECKING:
    from engine.codec.columns import UnitColumns
    from engine.codec.machine_code import Twins
    from engine.codec.topic_table import TopicTable
    from engine.codec.unit_scan import Damage
    from engine.query.vector import BlockFilter

_DELAY_MARKS = (
    *(b"REAL_TOPIC", b"TIMER_DELIVER_MS", b"TIMER_DELAY_SEC", b"TIMER_DELAY_MS"),
    *(b"TIMER_OUT_MS", b"TIMER_ENQUEUE_MS", b"TIMER_DEQUEUE_MS"),
)
"""Properties of a message that the broker delivered from a delay."""
_BINS = 0
"""Place of the number of bins in the state of the compiled twin (:mod:`engine.codec.compiled_times`)."""


@dataclass
class LogHistogram:
    """Bins of a part of the log, and what was met on the way.

    ``damaged`` and ``unread`` are bytes that are no unit, or could not be read. ``steps_back`` counts units that were
    stored before the unit in front of them: the clock was set back, or damage changed a time.
    """

    bins: TimeBins = field(default_factory=TimeBins)
    units: int = 0
    damaged: int = 0
    unread: int = 0
    steps_back: int = 0
    largest_step_ms: int = 0
    looked_to: int = 0
    is_complete: bool = False

    def merge(self, later: LogHistogram) -> None:
        """Add the histogram of the part behind this one."""
        self.bins.merge(later.bins)
        self.units += later.units
        self.damaged += later.damaged
        self.unread += later.unread
        self.steps_back += later.steps_back
        self.largest_step_ms = max(self.largest_step_ms, later.largest_step_ms)
        self.looked_to = max(self.looked_to, later.looked_to)

    def add_damage(self, damage: Damage) -> None:
        """Count bytes that are no unit."""
        if damage.unread:
            self.unread += damage.size
        else:
            self.damaged += damage.size
        self.looked_to = max(self.looked_to, damage.offset + damage.size)


class UnitBins:
    """Adds the units of blocks to ``histogram``: those that ``block_filter`` takes, stored in [begin, end) ms.

    A time from born to stored is counted for messages that a producer sent: a delayed, retried or transactional message
    has the born time of its first sending, which says nothing about storing. Nor does that of a producer whose clock is
    days away.
    """

    def __init__(
        self,
        histogram: LogHistogram,
        topics: TopicTable,
        block_filter: BlockFilter | None = None,
        begin: int | None = None,
        end: int | None = None,
    ) -> None:
        self._histogram, self._bins, self._topics = histogram, histogram.bins, topics
        self._filter, self._begin, self._end = block_filter, begin, end
        self._columns = np.zeros(1, np.int64)
        self._is_sent = np.zeros(1, np.bool_)
        self._foldings = 0
        self._last_stored: int | None = None
        self.last_unit: tuple[int, int, int] | None = None
        """Offset, size and store time of the last unit that was added."""

    def continue_from(self, stored: int) -> None:
        """The unit in front of the first block was stored at ``stored``."""
        self._last_stored = stored

    def add(self, block: UnitColumns) -> None:
        """Add a block's units."""
        if not block.count:
            return
        histogram = self._histogram
        histogram.looked_to = int(block.offset[block.count - 1]) + int(block.size[block.count - 1])
        rows = self._rows(block)
        count = block.count if isinstance(rows, slice) else len(rows)
        if not count:
            return
        self._learn_topics()
        compiled = _twin()
        if compiled is not None:
            self._add_compiled(compiled, block, rows, count)
        else:
            self._add_plain(block, rows)

    def _add_compiled(
        self, compiled: Twins, block: UnitColumns, rows: slice | npt.NDArray[np.intp], count: int
    ) -> None:
        histogram, bins = self._histogram, self._bins
        last_stored = self._last_stored
        state = np.array([0, 0, 0, last_stored or 0, last_stored is not None, 0], np.int64)
        slow = np.empty(count, np.int64)
        has_rows = not isinstance(rows, slice)
        place = 0
        while place < count:
            state[_BINS] = len(bins)
            place = compiled.add_units(
                rows if has_rows else slow,
                count,
                has_rows,
                place,
                block["offset"],
                block["size"],
                block["store_timestamp"],
                block["born_timestamp"],
                block["topic_id"],
                block["reconsume_times"],
                block["prepared_transaction_offset"],
                block["sys_flag"],
                self._columns,
                self._is_sent,
                bins.width,
                SLOW_MS,
                MAX_SKEW_MS,
                TRANSACTION_MASK,
                *bins.open_tables(),
                slow,
                state,
            )
            bins.take_new_bins(int(state[_BINS]))
            if place < count:
                bins.extend()
        _, steps_back, largest_step, stored, _, slow_count = state.tolist()
        last_row = int(rows[-1]) if not isinstance(rows, slice) else count - 1
        histogram.units += count
        histogram.steps_back += steps_back
        histogram.largest_step_ms = max(histogram.largest_step_ms, largest_step)
        self._last_stored = stored
        self.last_unit = int(block.offset[last_row]), int(block.size[last_row]), stored
        if slow_count:
            slow_rows = slow[:slow_count][~_are_delayed(block, slow[:slow_count])]
            times = block.store_timestamp[slow_rows]
            delays = times - block.born_timestamp[slow_rows]
            is_possible = delays <= MAX_SKEW_MS
            bins.add_delays(times[is_possible], buckets_of(delays[is_possible]))

    def _add_plain(self, block: UnitColumns, rows: slice | npt.NDArray[np.intp]) -> None:
        histogram, stored = self._histogram, block.store_timestamp[rows]
        is_ordered = self._count_steps(stored)
        offsets, sizes = block.offset[rows], block.size[rows]
        self.last_unit = int(offsets[-1]), int(sizes[-1]), int(stored[-1])
        histogram.units += len(stored)
        topic_ids = block.topic_id[rows]  # −1, a topic without a number, takes the last place
        delays = stored - block.born_timestamp[rows]
        timed = self._timed(block, rows, topic_ids, delays)
        buckets = buckets_of(delays if timed is None else delays[timed])
        columns = self._columns.take(topic_ids)
        self._bins.add(Units(offsets, sizes, stored, columns, timed, buckets, is_ordered))

    def _rows(self, block: UnitColumns) -> slice | npt.NDArray[np.intp]:
        """The rows of the units that count: a slice where these are all, whose columns need no copy."""
        rows: slice | npt.NDArray[np.intp]
        if self._filter is not None:
            rows = self._filter.rows(block)
        elif np.count_nonzero(block["kind"]):
            rows = np.flatnonzero(block["kind"] == 0)
        else:
            rows = slice(0, block.count)
        if self._begin is None and self._end is None:
            return rows
        numbers = np.arange(block.count)[rows]
        stored = block.store_timestamp[numbers]
        is_within = np.ones(len(numbers), np.bool_)
        if self._begin is not None:
            is_within &= stored >= self._begin
        if self._end is not None:
            is_within &= stored < self._end
        return numbers[is_within]

    def _count_steps(self, stored: npt.NDArray[np.int64]) -> bool:
        """Count units that were stored before the one in front of them. Return True if there is none in ``stored``."""
        histogram = self._histogram
        if self._last_stored is not None and stored[0] < self._last_stored:
            histogram.steps_back += 1
            histogram.largest_step_ms = max(histogram.largest_step_ms, self._last_stored - int(stored[0]))
        self._last_stored = int(stored[-1])
        count = int(np.count_nonzero(stored[1:] < stored[:-1]))
        if count:
            histogram.steps_back += count
            histogram.largest_step_ms = max(histogram.largest_step_ms, int((stored[:-1] - stored[1:]).max()))
        return not count

    def _learn_topics(self) -> None:
        """Give columns to topics that are new; where topics were put together, look up all again."""
        names = self._topics.names
        known = len(self._columns) - 1
        if len(names) == known:
            return
        columns = [self._bins.column_of(name) for name in names[known:]]
        if self._bins.foldings != self._foldings:
            self._foldings = self._bins.foldings
            columns = [self._bins.column_of(name) for name in names]
            known = 0
        self._columns = np.array([*self._columns[:known].tolist(), *columns, 0], np.int64)
        sent = [topic_flags(name) & SENT != 0 for name in names[len(self._is_sent) - 1 :]]
        self._is_sent = np.array([*self._is_sent[:-1].tolist(), *sent, False], np.bool_)

    def _timed(
        self,
        block: UnitColumns,
        rows: slice | npt.NDArray[np.intp],
        topic_ids: npt.NDArray[np.int32],
        delays: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.bool_] | None:
        """Return which units a producer sent and the broker stored at once; None: all."""
        reconsume_times, prepared = block.reconsume_times[rows], block.prepared_transaction_offset[rows]
        transactions = block.sys_flag[rows] & TRANSACTION_MASK
        timed = None
        if any(np.count_nonzero(values) for values in (reconsume_times, prepared, transactions)):
            timed = (reconsume_times == 0) & (prepared == 0) & (transactions == 0)
        if not self._is_sent[:-1].all() or int(topic_ids.min()) < 0:
            is_sent = self._is_sent.take(topic_ids)
            timed = is_sent if timed is None else timed & is_sent
        is_possible = np.abs(delays) <= MAX_SKEW_MS
        if not is_possible.all():
            timed = is_possible if timed is None else timed & is_possible
        slow = np.flatnonzero(delays >= SLOW_MS)
        is_delayed = _are_delayed(block, np.arange(block.count)[rows][slow])
        if is_delayed.any():
            timed = np.ones(len(delays), np.bool_) if timed is None else timed
            timed[slow[is_delayed]] = False
        return timed


def _are_delayed(block: UnitColumns, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    """Return whether the broker delivered each of the units from a delay."""
    is_delayed = np.zeros(len(rows), np.bool_)
    for mark in _DELAY_MARKS:
        is_delayed |= property_values(block, rows, mark).starts >= 0
    return is_delayed


def _twin() -> Twins | None:
    """Return the compiled twin; None if it is not available or ``STORESCOPE_PLAIN=1`` asks for plain Python."""
    return None if unit_columns.twin() is None else _load()


@functools.cache
def _load() -> Twins:
    return twins("compiled_times")
