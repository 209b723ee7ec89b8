"""Rows of units, made from lists, for tests of the timeline's judgements."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from engine.inspection.timeline.unit_rows import SENT, Chunk, UnitRows

_TYPES = {"topic": np.int32, "flags": np.uint8} | dict.fromkeys(("host", "store_host", "key", "client"), np.uint64)
_DEFAULTS = {"flags": SENT, "host": 1, "store_host": 1, "due": -1, "key_time": -1}


def chunk_of(**columns: list[int]) -> Chunk:
    """Return a chunk of rows that judges all of them; columns that are not given have the value of a usual send."""
    count = len(next(iter(columns.values())))
    values = {"offset": list(range(0, 100 * count, 100)), **columns}
    arrays = {
        column.name: np.array(
            values.get(column.name, [_DEFAULTS.get(column.name, 0)] * count), _TYPES.get(column.name, np.int64)
        )
        for column in fields(UnitRows)
    }
    return Chunk(UnitRows(**arrays), 0, count)


def steady(count: int, interval: int = 100, start: int = 1_000_000) -> list[int]:
    """Return ``count`` times (ms) in equal distances."""
    return list(range(start, start + count * interval, interval))
