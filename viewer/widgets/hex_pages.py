"""Bytes around a unit for the hex view, in pages that arrive one by one, and the fields over them; no Qt.

Offsets are absolute and 64-bit. A row has sixteen bytes. Row 0 begins at the origin, the first byte of the unit,
so a field is always in the same column; row −1 lies before it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from engine.codec.unit_fields import OF_BYTES

PAGE = 4096
MAX_PAGES = 64
ROW_BYTES = 16
MARGIN_BYTES = 1024
"""Bytes before and after the shown span that can be scrolled to."""

_FILLS = {name: place.fill for name, place in OF_BYTES}
PROPERTY = "properties."


@dataclass(frozen=True, slots=True)
class HexField:
    """A coloured field: ``position`` counts from the origin, ``group`` is the name of its fill."""

    name: str
    position: int
    length: int
    group: str = "frame"

    @property
    def label(self) -> str:
        """The name as the margin shows it."""
        return self.name.removeprefix(PROPERTY)

    @property
    def end(self) -> int:
        return self.position + self.length


def hex_fields(parts: Sequence[tuple[str, int, int]]) -> list[HexField]:
    """Return the fields of a unit's parts (name, position, length). Properties alternate between two fills."""
    fields, alternate = [], False
    for name, position, length in parts:
        group: str = _FILLS.get(name, "frame")
        if name.startswith(PROPERTY):
            group, alternate = ("propsAlt" if alternate else "props"), not alternate
        fields.append(HexField(name, position, length, group))
    return fields


class FieldMap:
    """Fields by position: the field that holds a byte, and the fields that begin in a row."""

    def __init__(self, fields: Sequence[HexField]) -> None:
        self.fields = sorted((f for f in fields if f.length > 0), key=lambda f: f.position)
        self._positions = [f.position for f in self.fields]

    def at(self, position: int) -> HexField | None:
        """The field that holds the byte at ``position`` from the origin."""
        number = bisect_right(self._positions, position) - 1
        if number < 0:
            return None
        field = self.fields[number]
        return field if position < field.end else None

    def named(self, name: str) -> HexField | None:
        """The first field with that name."""
        return next((f for f in self.fields if f.name == name), None)

    def beginning_in(self, start: int, end: int) -> list[HexField]:
        """Fields whose first byte lies in [start, end)."""
        return self.fields[bisect_right(self._positions, start - 1) : bisect_right(self._positions, end - 1)]


class Pages:
    """Bytes by page: the pages that have been read, and those to fetch next.

    At most :data:`MAX_PAGES` pages are held.
    """

    def __init__(self, start: int, end: int) -> None:
        self.low = start
        self.high = end
        self._pages: OrderedDict[int, bytes] = OrderedDict()

    def span(self, page: int) -> tuple[int, int]:
        """Offset and size of ``page``."""
        start = max(self.low, page * PAGE)
        return start, min(self.high, (page + 1) * PAGE) - start

    def put(self, page: int, data: bytes) -> None:
        """Store the bytes of ``page``. They are fewer than requested at the end of a file."""
        self._pages[page] = data
        while len(self._pages) > MAX_PAGES:
            self._pages.popitem(last=False)

    def missing(self, start: int, end: int) -> list[int]:
        """Numbers of the pages of [start, end) that have not been read."""
        start, end = max(start, self.low), min(end, self.high)
        return (
            [page for page in range(start // PAGE, (end - 1) // PAGE + 1) if page not in self._pages]
            if start < end
            else []
        )

    def get(self, offset: int, size: int) -> list[int | None]:
        """The bytes from ``offset`` on; None for each byte that has not been read."""
        values: list[int | None] = []
        while size > 0:
            page = offset // PAGE
            start, length = self.span(page)
            take = min(size, (page + 1) * PAGE - offset)
            data = self._pages.get(page)
            if data is None or length <= 0:
                values += [None] * take
            else:
                self._pages.move_to_end(page)
                position = offset - start
                piece = data[max(0, position) : max(0, position + take)]
                missing_before = min(take, max(0, -position))
                values += [None] * missing_before + list(piece) + [None] * (take - missing_before - len(piece))
            offset += take
            size -= take
        return values
