"""Where the words of marked lines in a plot stand, so that no two of them touch; what has no room is left out. No Qt.

Every plot asks here: the words of lines of one place become one label, the others stand in the first free row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

GAP = 6.0
"""Px between two labels of one row."""


@dataclass(frozen=True, slots=True)
class LabelPlace:
    """Where a label stands: ``begin`` of its extent across the lines (px), and the row that it stands in."""

    begin: float
    row: int


def joined(words: Sequence[str], places: Sequence[float], roles: Sequence[str], apart: float = 1.0) -> list[str]:
    """The words of each line; of lines of one role that are less than ``apart`` px from each other the first says all,
    the others nothing.
    """
    said = list(words)
    for number, place in enumerate(places):
        for other in range(number):
            same = roles[other] == roles[number] and abs(places[other] - place) < apart
            if same and said[other] and said[number]:
                if said[number] not in said[other].split(" = "):
                    said[other] += f" = {said[number]}"
                said[number] = ""
    return said


def place_labels(
    places: Sequence[float], extents: Sequence[float], low: float, high: float, rows: int
) -> list[LabelPlace | None]:
    """Where the label of each line stands, whose extent across the lines is ``extents`` px: before its line, behind it
    where it would begin in front of ``low``; None outside of ``low`` to ``high``, where there are no words, and where
    every row is taken. What comes first has the first choice.
    """
    taken: list[list[tuple[float, float]]] = [[] for _ in range(rows)]
    found: list[LabelPlace | None] = []
    for place, extent in zip(places, extents, strict=True):
        found.append(_free(place, extent, (low, high), taken) if extent > 0 and low <= place <= high else None)
    return found


def _free(
    place: float, extent: float, edges: tuple[float, float], taken: list[list[tuple[float, float]]]
) -> LabelPlace | None:
    for row, spans in enumerate(taken):
        for begin in (place - extent - 4, place + 4):
            end = begin + extent
            inside = begin >= edges[0] and end <= edges[1]
            if inside and all(end + GAP <= low or begin >= high + GAP for low, high in spans):
                spans.append((begin, end))
                return LabelPlace(begin, row)
    return None
