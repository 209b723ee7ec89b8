"""Units that an index leads to, found in bytes of the log that are lent on the way (spec 2.1, 4.4).

Pure. Two twins keep one contract, chosen as :mod:`engine.codec.query_twin` tells.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.codec import query_twin

Int64 = npt.NDArray[np.int64]
_SIZE = struct.Struct(">i")
_FAR = 1 << 62  # no log goes there: such an offset is a damaged entry's


class Span(NamedTuple):
    """Bytes [start, stop) of the log; without a view none of them can be read."""

    start: int
    stop: int
    view: memoryview | None


class Units(NamedTuple):
    """Units by key, each key's in the order of the log: ``ends[i]`` of them up to key ``i``.

    ``offsets`` are absolute; ``begins`` and ``stops`` count in the view of the span with number ``spans``.
    """

    offsets: list[int]
    begins: list[int]
    stops: list[int]
    spans: list[int]
    ends: list[int]


def place_units(counts: Int64, offsets: Int64, span_at: Callable[[int], Span]) -> Units:
    """The units at the offsets of many keys, those of key ``i`` being ``offsets[i, :counts[i]]`` in any order; they are
    sorted there.

    ``span_at`` gives a span that holds an offset (0 to 2⁶²), and its answers are numbered as it is called. What does
    not begin with a size that fits into its span is no unit and left out.
    """
    twin = query_twin.ready(0)
    if twin is None:
        return _place_plain(counts, offsets, span_at)
    rows, known = np.zeros((4, 3), np.int64), 0
    state, ends = np.zeros(3, np.int64), np.empty(len(counts), np.int64)
    out = np.empty((4, int(counts.sum())), np.int64)
    while True:
        wanted = twin.place_units(counts, offsets, rows, known, state, out, ends)
        if state[0] == len(counts):
            placed, begins, stops, spans = out[:, : state[2]].tolist()
            return Units(placed, begins, stops, spans, ends.tolist())
        span = span_at(wanted)
        if known == len(rows):
            rows = np.concatenate([rows, np.zeros_like(rows)])
        rows[known] = span.start, span.stop, np.frombuffer(span.view, np.uint8).ctypes.data if span.view else 0
        known += 1


def _place_plain(counts: Int64, offsets: Int64, span_at: Callable[[int], Span]) -> Units:
    found: list[tuple[int, int, int, int]] = []
    ends: list[int] = []
    spans: list[Span] = []
    for row, count in zip(offsets, counts.tolist(), strict=True):
        for offset in sorted(row[:count].tolist()):
            if not 0 <= offset < _FAR:
                continue
            number = next((n for n, span in enumerate(spans) if span.start <= offset < span.stop), len(spans))
            if number == len(spans):
                spans.append(span_at(offset))
            start, stop, view = spans[number]
            at, room = offset - start, stop - offset
            size = _SIZE.unpack_from(view, at)[0] if view is not None and room >= _SIZE.size else 0
            if _SIZE.size < size <= room:
                found.append((offset, at, at + size, number))
        ends.append(len(found))
    placed, begins, stops, numbers = ([one[column] for one in found] for column in range(4))
    return Units(placed, begins, stops, numbers, ends)
