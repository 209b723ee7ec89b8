"""Locate the units that an index leads to in the bytes of a mapped log (docs/formats/commit-log.md#unit). Pure."""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.codec.query_twin import twin_for

Int64 = npt.NDArray[np.int64]


_SIZE = struct.Struct(">i")
_FAR = 1 << 62  # beyond any log: such an offset comes from a damaged entry


class Span(NamedTuple):
    """The log from ``start`` to ``stop``. ``view`` are its bytes, None if they cannot be read."""

    start: int
    stop: int
    view: memoryview | None


class Units(NamedTuple):
    """Units by key, each key's in the order of the log; ``ends[i]`` is the number of units up to key ``i``.

    ``offsets`` are absolute; ``begins`` and ``stops`` count in the view of the span with number ``spans``.

    """

    offsets: list[int]
    begins: list[int]
    stops: list[int]
    spans: list[int]
    ends: list[int]


def place_units(ends: Int64, offsets: Int64, span_at: Callable[[int], Span]) -> Units:
    """Locate the units at the offsets of many keys; ``ends[i]`` is the number of offsets up to key ``i``.

    ``span_at`` returns a span that holds an offset (0 to 2⁶²); spans are numbered in the order of the calls. An
    offset whose bytes do not begin with a size that fits into the span is left out.

    """
    twin = twin_for(0)
    if twin is None:
        begins, stops, spans = _place_plain(offsets, span_at)
    else:
        out = np.empty((3, len(offsets)), np.int64)
        span_number, missing_index = 0, twin.place_units(offsets, 0, 0, b"", -1, out)
        while missing_index >= 0:
            span = span_at(int(offsets[missing_index]))
            missing_index = twin.place_units(offsets, span.start, span.stop, span.view or b"", span_number, out)
            span_number += 1
        begins, stops = out[:2].tolist()
        spans = out[2].tolist() if span_number > 1 else [0] * len(begins)
    units = Units(offsets.tolist(), begins, stops, spans, ends.tolist())
    return units if 0 not in stops else _drop_missing(units)


def _place_plain(offsets: Int64, span_at: Callable[[int], Span]) -> tuple[list[int], list[int], list[int]]:
    begins, stops, numbers = [], [], []
    spans: list[Span] = []
    for offset in offsets.tolist():
        number = next((n for n, span in enumerate(spans) if span.start <= offset < span.stop), len(spans))
        position = size = 0
        if 0 <= offset < _FAR:
            if number == len(spans):
                spans.append(span_at(offset))
            start, _, view = spans[number]
            position, available = offset - start, len(view) - offset + start if view is not None else 0
            size = _SIZE.unpack_from(view, position)[0] if view is not None and available >= _SIZE.size else 0
            size = size if _SIZE.size < size <= available else 0
        begins.append(position)
        stops.append(position + size if size else 0)
        numbers.append(number)
    return begins, stops, numbers


def _drop_missing(units: Units) -> Units:
    """Drop the offsets without a unit."""
    placed = [number for number, stop in enumerate(units.stops) if stop]
    ends = [bisect_left(placed, end) for end in units.ends]
    offsets, begins, stops, spans = ([column[number] for number in placed] for column in units[:4])
    return Units(offsets, begins, stops, spans, ends)
