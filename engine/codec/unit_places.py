"""Units that an index leads to, found in bytes of the log that are lent on the way (spec 2.1, 4.4).

Pure. Two twins keep one contract, chosen as :mod:`engine.codec.query_twin` tells.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.codec import query_twin

Int64 = npt.NDArray[np.int64]
_SIZE = struct.Struct(">i")
_FAR = 1 << 62  # no log goes there: such an offset is a damaged entry's


class Span(NamedTuple):
    """The log from ``start`` to ``stop``, of which ``view`` can be read; nothing without one."""

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


def place_units(ends: Int64, offsets: Int64, span_at: Callable[[int], Span]) -> Units:
    """The units at the offsets of many keys, of which there are ``ends[i]`` up to key ``i``.

    ``span_at`` gives a span that holds an offset (0 to 2⁶²), and its answers are numbered as it is called. What does
    not begin with a size that fits into its span is no unit and left out.
    """
    twin = query_twin.ready(0)
    if twin is None:
        begins, stops, spans = _place_plain(offsets, span_at)
    else:
        out = np.empty((3, len(offsets)), np.int64)
        asked, left = 0, twin.place_units(offsets, 0, 0, b"", -1, out)
        while left >= 0:
            span = span_at(int(offsets[left]))
            left = twin.place_units(offsets, span.start, span.stop, span.view or b"", asked, out)
            asked += 1
        begins, stops = out[:2].tolist()
        spans = out[2].tolist() if asked > 1 else [0] * len(begins)
    units = Units(offsets.tolist(), begins, stops, spans, ends.tolist())
    return units if 0 not in stops else _without_lost(units)


def _place_plain(offsets: Int64, span_at: Callable[[int], Span]) -> tuple[list[int], list[int], list[int]]:
    begins, stops, numbers = [], [], []
    spans: list[Span] = []
    for offset in offsets.tolist():
        number = next((n for n, span in enumerate(spans) if span.start <= offset < span.stop), len(spans))
        at = size = 0
        if 0 <= offset < _FAR:
            if number == len(spans):
                spans.append(span_at(offset))
            start, _, view = spans[number]
            at, room = offset - start, len(view) - offset + start if view is not None else 0
            size = _SIZE.unpack_from(view, at)[0] if view is not None and room >= _SIZE.size else 0
            size = size if _SIZE.size < size <= room else 0
        begins.append(at)
        stops.append(at + size if size else 0)
        numbers.append(number)
    return begins, stops, numbers


def _without_lost(units: Units) -> Units:
    """Those that have been found."""
    there = [number for number, stop in enumerate(units.stops) if stop]
    ends = [bisect_left(there, end) for end in units.ends]
    offsets, begins, stops, spans = ([column[number] for number in there] for column in units[:4])
    return Units(offsets, begins, stops, spans, ends)
