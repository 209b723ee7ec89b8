"""Areas for numbers: a squarified treemap layout (Bruls, Huizing, van Wijk), pure arithmetic, no Qt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Box(NamedTuple):
    """A rectangle in px."""

    x: float
    y: float
    width: float
    height: float

    def inset(self, left: float, top: float, right: float, bottom: float) -> Box:
        """The box without its margins; never of negative size."""
        return Box(
            self.x + left, self.y + top, max(self.width - left - right, 0.0), max(self.height - top - bottom, 0.0)
        )

    def holds(self, x: float, y: float) -> bool:
        return self.x <= x < self.x + self.width and self.y <= y < self.y + self.height

    @property
    def middle(self) -> tuple[float, float]:
        return self.x + self.width / 2, self.y + self.height / 2


def squarify(sizes: Sequence[float], room: Box) -> list[Box]:
    """A box for each of ``sizes`` (largest first, none negative), areas in their proportion, as square as may be.

    Boxes of size 0 are empty and stand in the room's far corner.
    """
    found: list[Box] = []
    left = float(sum(sizes))
    number = 0
    while number < len(sizes) and sizes[number] > 0 and room.width > 0 and room.height > 0:
        end = _row_end(sizes, number, left, room)
        line = float(sum(sizes[number:end]))
        share = line / left
        if room.width >= room.height:
            width, y = room.width * share, room.y
            for size in sizes[number:end]:
                height = room.height * size / line
                found.append(Box(room.x, y, width, height))
                y += height
            room = Box(room.x + width, room.y, room.width - width, room.height)
        else:
            height, x = room.height * share, room.x
            for size in sizes[number:end]:
                width = room.width * size / line
                found.append(Box(x, room.y, width, height))
                x += width
            room = Box(room.x, room.y + height, room.width, room.height - height)
        left -= line
        number = end
    corner = Box(room.x + room.width, room.y + room.height, 0.0, 0.0)
    return found + [corner] * (len(sizes) - len(found))


def _row_end(sizes: Sequence[float], start: int, left: float, room: Box) -> int:
    """Up to which size a row along the shorter side gets no worse by one more."""
    area = room.width * room.height / left
    short = min(room.width, room.height) ** 2
    total, largest, best, end = 0.0, sizes[start] * area, float("inf"), start
    while end < len(sizes) and sizes[end] > 0:
        one = sizes[end] * area
        total += one
        worst = max(short * largest / total**2, total**2 / (short * one))
        if worst > best:
            break
        best = worst
        end += 1
    return max(end, start + 1)


def bands(sizes: Sequence[float], room: Box) -> list[Box]:
    """Boxes one below the other over the whole width, heights in proportion."""
    total, y, found = float(sum(sizes)) or 1.0, room.y, []
    for size in sizes:
        height = room.height * size / total
        found.append(Box(room.x, y, room.width, height))
        y += height
    return found
