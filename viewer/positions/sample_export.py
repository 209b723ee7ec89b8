"""What a live history holds, as records: each look with positions, gaps, rates and the flushes since the look before.

The arrays are copied on the loop, the records are made of them in a thread; no Qt.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from viewer.runtime.position_look import KEYS

if TYPE_CHECKING:
    from viewer.runtime.live_history import LiveHistory
    from viewer.runtime.sample_ring import Floats, PeakSeries

GAP_FIELDS = (("commit", "to_commit"), ("flush", "to_flush"), ("dispatch", "to_dispatch"))
FIELDS = (
    "at", "messages", *KEYS, *(name for _, name in GAP_FIELDS), "write_rate", "put_rate", "flushes", "flush_bytes",
    "flush_ms",
)  # fmt: skip
"""``at`` is ms since 1970; positions, gaps and ``flush_bytes`` are bytes, ``write_rate`` bytes and ``put_rate``
messages a second; ``flush_ms`` is the longest of the flushes since the look before. None (empty) is not known.
"""


@dataclass(frozen=True, slots=True)
class Held:
    """Copies of all that is needed: rows of integers, and series as (times in s, values)."""

    rows: npt.NDArray[np.int64]
    unknown: int
    series: dict[str, tuple[Floats, Floats]]
    took: tuple[Floats, Floats]
    group: tuple[Floats, Floats]


def held_of(history: LiveHistory) -> Held:
    """What ``history`` holds now."""
    found = {name: _copy(history.gaps[key]) for key, name in GAP_FIELDS}
    found |= {"write_rate": _copy(history.bytes), "put_rate": _copy(history.puts)}
    rows, unknown = history.held_rows()
    return Held(rows, unknown, found, _copy(history.took), _copy(history.group))


def _copy(series: PeakSeries) -> tuple[Floats, Floats]:
    return series.times.copy(), series.values.copy()


def sample_records(held: Held) -> Iterator[dict[str, int | float | None]]:
    """A record of :data:`FIELDS` for each look, oldest first."""
    seconds = held.rows[:, 0] / 1000
    values = {name: _at(times, found, seconds) for name, (times, found) in held.series.items()}
    edges = np.searchsorted(held.took[0], seconds, "right")
    before = 0
    for number, row in enumerate(held.rows.tolist()):
        record: dict[str, int | float | None] = {
            name: None if value == held.unknown else value for name, value in zip(FIELDS[: len(row)], row, strict=True)
        }
        for name, found in values.items():
            value = float(found[number])
            record[name] = None if np.isnan(value) else round(value, 1) if name.endswith("rate") else int(value)
        edge = int(edges[number])
        record["flushes"] = edge - before
        record["flush_bytes"] = int(held.group[1][before:edge].sum())
        record["flush_ms"] = round(float(held.took[1][before:edge].max()), 3) if edge > before else None
        before = edge
        yield record


def _at(times: Floats, values: Floats, wanted: Floats) -> Floats:
    """The values that stood at the ``wanted`` times; NaN before the first."""
    if not len(times):
        return np.full(len(wanted), np.nan)
    numbers = np.searchsorted(times, wanted, "right") - 1
    found: Floats = np.where(numbers < 0, np.nan, values[np.maximum(numbers, 0)])
    return found
