"""The messages of two logs side by side: one row for each message, in the order of both logs.

A row has the offset of its message in each log, -1 where the log does not have it. Rows follow the order of the first
log. Messages that only the second log has come behind the message that they follow there. Where both logs have
messages of their own between two common ones, these share rows, as in any comparison of two texts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.inspection.difference_rows import Control
from engine.inspection.message_differences import LogRange, MessagePairs, pair_messages

MAX_ALIGNED_UNITS = 1 << 21
"""Units of each log that are put side by side; their columns need about 100 bytes each meanwhile."""
SAME, DIFFERS, ONLY_OWN, ONLY_OTHER, UNRELATED = range(5)
"""What a row holds: one message on both sides, with the same bytes or not; one side only; two other messages."""
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class AlignedMessages:
    """Rows of aligned messages, one a message of two logs: its offset in each log or -1, and the row's contents."""

    offsets: Numbers
    other_offsets: Numbers
    kinds: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.kinds)


def align_messages(
    control: Control, own_range: LogRange, other_range: LogRange, max_units: int = MAX_ALIGNED_UNITS
) -> AlignedMessages | None:
    """Put the messages of two ranges side by side; None if one of them has more than ``max_units`` units."""
    pairs = pair_messages(control, own_range, other_range, max_units)
    return None if pairs is None else _rows_of(pairs)


def _rows_of(pairs: MessagePairs) -> AlignedMessages:
    own_count, other_count = len(pairs.units), len(pairs.other_units)
    counterparts, is_equal = np.full(own_count, -1, np.int64), np.zeros(own_count, bool)
    counterparts[pairs.indexes], is_equal[pairs.indexes] = pairs.other_indexes, pairs.is_equal
    is_paired = counterparts >= 0
    paired, own_only = np.flatnonzero(is_paired), np.flatnonzero(~is_paired)
    pair_numbers = np.full(other_count, -1, np.int64)
    pair_numbers[counterparts[paired]] = np.arange(len(paired))
    last_paired = np.maximum.accumulate(np.where(pair_numbers >= 0, np.arange(other_count), -1))
    other_only = np.flatnonzero(pair_numbers < 0)
    previous = last_paired[other_only]
    # gap 0 lies before the first pair, gap n behind pair n - 1, which is line 0 of its gap
    own_gaps = np.cumsum(is_paired, dtype=np.int64)[own_only]
    other_gaps = np.where(previous >= 0, pair_numbers[previous] + 1, 0)
    other_order = np.argsort(other_gaps, kind="stable")
    other_only, other_gaps = other_only[other_order], other_gaps[other_order]
    own_lines, other_lines = _number_within(own_gaps), _number_within(other_gaps)
    lines_a_gap = max([2, *(int(lines.max()) + 2 for lines in (own_lines, other_lines) if len(lines))])
    keys = np.concatenate(
        [
            (np.arange(len(paired)) + 1) * lines_a_gap,
            own_gaps * lines_a_gap + own_lines + 1,
            other_gaps * lines_a_gap + other_lines + 1,
        ]
    )
    distinct_keys, rows = np.unique(keys, return_inverse=True)
    offsets, other_offsets = (np.full(len(distinct_keys), -1, np.int64) for _ in range(2))
    kinds = np.full(len(distinct_keys), SAME, np.uint8)
    pair_rows, own_rows, other_rows = np.split(rows, [len(paired), len(paired) + len(own_only)])
    offsets[pair_rows] = pairs.units["offset"][paired]
    other_offsets[pair_rows] = pairs.other_units["offset"][counterparts[paired]]
    kinds[pair_rows] = np.where(is_equal[paired], SAME, DIFFERS)
    offsets[own_rows] = pairs.units["offset"][own_only]
    kinds[own_rows] = ONLY_OWN
    other_offsets[other_rows] = pairs.other_units["offset"][other_only]
    kinds[other_rows] = np.where(kinds[other_rows] == ONLY_OWN, UNRELATED, ONLY_OTHER)
    return AlignedMessages(offsets, other_offsets, kinds)


def _number_within(gaps: Numbers) -> Numbers:
    """Number the units of each gap 0, 1, 2 …; the gaps are in order."""
    starts = np.flatnonzero(np.diff(gaps, prepend=-1))
    return np.arange(len(gaps)) - np.repeat(starts, np.diff(np.append(starts, len(gaps))))
