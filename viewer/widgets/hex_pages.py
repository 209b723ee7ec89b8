"""Bytes around a unit for the hex view: pages that come when they come, and fields over them; no Qt.

Offsets are absolute and 64-bit. Rows have sixteen bytes and begin at the origin, the unit's first byte, so that a
field is always in the same column; row −1 lies in front of it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from engine.codec.unit_fields import OF_BYTES

PAGE = 4096
KEPT = 64
ROW_BYTES = 16
AROUND = 1024
"""Bytes in front of and behind the shown span that can be scrolled to."""

_FILLS = {name: place.fill for name, place in OF_BYTES}
PROPERTY = "properties."


@dataclass(frozen=True, slots=True)
class HexField:
    """A painted field: ``position`` counts from the origin; ``group`` is the name of its fill."""

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
    """Painted fields of a unit's parts (name, position, length); properties alternate between two fills."""
    fields, other = [], False
    for name, position, length in parts:
        group: str = _FILLS.get(name, "frame")
        if name.startswith(PROPERTY):
            group, other = ("propsAlt" if other else "props"), not other
        fields.append(HexField(name, position, length, group))
    return fields


class FieldMap:
    """Fields by place: which one holds a byte, which begin in a row."""

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
        """The first field of that name."""
        return next((f for f in self.fields if f.name == name), None)

    def beginning_in(self, low: int, high: int) -> list[HexField]:
        """Fields whose first byte lies in [low, high)."""
        return self.fields[bisect_right(self._positions, low - 1) : bisect_right(self._positions, high - 1)]


class Pages:
    """Bytes by page: what is here, and which page to fetch next. At most :data:`KEPT` pages are held."""

    def __init__(self, low: int, high: int) -> None:
        self.low = low
        self.high = high
        self._pages: OrderedDict[int, bytes] = OrderedDict()

    def span(self, page: int) -> tuple[int, int]:
        """Offset and size of ``page``."""
        start = max(self.low, page * PAGE)
        return start, min(self.high, (page + 1) * PAGE) - start

    def put(self, page: int, data: bytes) -> None:
        """The bytes of ``page``; fewer than asked for where the file is shorter."""
        self._pages[page] = data
        while len(self._pages) > KEPT:
            self._pages.popitem(last=False)

    def missing(self, low: int, high: int) -> list[int]:
        """Pages of [low, high) that are not here."""
        low, high = max(low, self.low), min(high, self.high)
        return (
            [page for page in range(low // PAGE, (high - 1) // PAGE + 1) if page not in self._pages]
            if low < high
            else []
        )

    def get(self, offset: int, size: int) -> list[int | None]:
        """Byte by byte from ``offset`` on; None where it is not here."""
        found: list[int | None] = []
        while size > 0:
            page = offset // PAGE
            start, length = self.span(page)
            take = min(size, (page + 1) * PAGE - offset)
            data = self._pages.get(page)
            if data is None or length <= 0:
                found += [None] * take
            else:
                self._pages.move_to_end(page)
                at = offset - start
                piece = data[max(0, at) : max(0, at + take)]
                lead = min(take, max(0, -at))
                found += [None] * lead + list(piece) + [None] * (take - lead - len(piece))
            offset += take
            size -= take
        return found
