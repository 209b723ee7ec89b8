"""States of many entries of a simple queue at once, as ``CqUnit.state`` has that of one
(docs/formats/consume-queue.md#entry).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from engine.codec.consume_queue import PREFILLED_SIZE, State

_STATES: tuple[State, ...] = ("entry", "prefilled", "empty")


def runs_of_states(rows: np.ndarray) -> Iterator[tuple[int, int, State]]:
    """Yield the runs [first, end) of entries with the same state; ``rows`` have fields as in ``dtypes.CQ_UNIT``."""
    physical, size = rows["physical_offset"], rows["size"]
    codes = ((physical == 0) & (size == PREFILLED_SIZE)).astype(np.int8)
    codes[(physical < 0) | (size <= 0)] = 2
    edges = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(rows)]
    for start, end in pairwise(edges):
        if end > start:
            yield start, end, _STATES[codes[start]]
