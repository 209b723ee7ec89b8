"""Place the words of marked lines in a plot so that no two touch; words without room are left out. No Qt.

All plots use this. Lines at the same place share one label. The other labels go into the first free row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

GAP = 6.0
"""Px between two labels of one row."""


@dataclass(frozen=True, slots=True)
class LabelPlace:
    """The place of a label: ``begin`` of its extent across the lines (px), and its row."""

    begin: float
    row: int


def joined(words: Sequence[str], places: Sequence[float], roles: Sequence[str], apart: float = 1.0) -> list[str]:
    """Merge the words of lines that share a place. Lines of one role that are less than ``apart`` px from each other
    get one label, on the first of them; the others get "" as their label.
    """
    labels = list(words)
    for number, place in enumerate(places):
        for earlier in range(number):
            same = roles[earlier] == roles[number] and abs(places[earlier] - place) < apart
            if same and labels[earlier] and labels[number]:
                if labels[number] not in labels[earlier].split(" = "):
                    labels[earlier] += f" = {labels[number]}"
                labels[number] = ""
    return labels


def place_labels(
    places: Sequence[float], extents: Sequence[float], start: float, end: float, rows: int
) -> list[LabelPlace | None]:
    """Return the place of each line's label, which needs ``extents`` px across the lines. A label stands before its
    line, or after it if it would begin before ``start``. It is None for lines outside ``start`` to ``end``,
    without words, or if every row is occupied. Earlier lines choose first.
    """
    occupied: list[list[tuple[float, float]]] = [[] for _ in range(rows)]
    label_places: list[LabelPlace | None] = []
    for place, extent in zip(places, extents, strict=True):
        label_places.append(
            _free(place, extent, (start, end), occupied) if extent > 0 and start <= place <= end else None
        )
    return label_places


def _free(
    place: float, extent: float, edges: tuple[float, float], occupied: list[list[tuple[float, float]]]
) -> LabelPlace | None:
    for row, spans in enumerate(occupied):
        for begin in (place - extent - 4, place + 4):
            end = begin + extent
            inside = begin >= edges[0] and end <= edges[1]
            if inside and all(end + GAP <= span_start or begin >= span_end + GAP for span_start, span_end in spans):
                spans.append((begin, end))
                return LabelPlace(begin, row)
    return None
