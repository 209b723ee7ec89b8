"""Place the flags of a line so that no two touch: first by side, then by level. Pure arithmetic, no Qt.

A flag is a box with words on a stem. All boxes of one lane hang on the same line. A higher level is further away
from it, so its stem crosses the lower levels. Therefore no box may cover a stem.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

GAP = 6.0
SAME_STEM = 4.0
"""Distance in px below which two stems are drawn as one."""
MAX_LEVELS = 3
MAX_NAME_CHARACTERS = 32
"""Of a name on a flag. The tool tip has the full name."""


@dataclass(frozen=True, slots=True)
class FlagRequest:
    """A flag that belongs at ``x`` (px) and is ``width`` px wide.

    ``side`` is tried first (1 right of the stem, −1 left).
    """

    x: float
    width: float
    side: int = 1


@dataclass(frozen=True, slots=True)
class FlagPlace:
    """The place of a flag: ``left`` edge of its box in px, side of its stem, level (0 is next to the line)."""

    left: float
    side: int
    level: int


def place_flags(
    requests: Sequence[FlagRequest], left_x: float, right_x: float, levels: int = MAX_LEVELS
) -> list[FlagPlace]:
    """Return places in the order of ``requests``. Every box lies inside [left_x, right_x].

    If even the highest level is taken a box may overlap. The caller merges flags of equal places first, so this
    needs more than ``levels`` flags within one box's width.
    """
    by_x = sorted(range(len(requests)), key=lambda n: (requests[n].x, n))
    tries = [_place_in(order, requests, (left_x, right_x), levels) for order in (by_x, by_x[::-1])]
    best = min(tries, key=lambda places: (_touching(requests, places), sum(p.level for p in places.values())))
    return [best[number] for number in range(len(requests))]


def _place_in(
    order: list[int], requests: Sequence[FlagRequest], edges: tuple[float, float], levels: int
) -> dict[int, FlagPlace]:
    placed: dict[int, FlagPlace] = {}
    for rank, number in enumerate(order):
        placed_before = [(requests[n], placed[n]) for n in order[:rank]]
        later_xs = [requests[n].x for n in order[rank + 1 :]]
        placed[number] = _first_free(requests[number], placed_before, later_xs, edges, levels)
    return placed


def _touching(requests: Sequence[FlagRequest], places: dict[int, FlagPlace]) -> int:
    numbers = sorted(places)
    return sum(
        not _free(places[n], requests[n], [(requests[m], places[m]) for m in numbers if m < n], []) for n in numbers
    )


def _first_free(
    request: FlagRequest,
    placed_before: list[tuple[FlagRequest, FlagPlace]],
    later_xs: list[float],
    edges: tuple[float, float],
    levels: int,
) -> FlagPlace:
    left_x, right_x = edges
    fallback: FlagPlace | None = None
    for level in range(levels):
        for side in (request.side, -request.side):
            start = request.x if side > 0 else request.x - request.width
            if start < left_x or start + request.width > right_x:
                continue
            fallback = FlagPlace(start, side, level)
            if _free(fallback, request, placed_before, later_xs):
                return fallback
    if fallback is not None:
        return fallback
    return FlagPlace(min(max(request.x, left_x), max(left_x, right_x - request.width)), 1, levels - 1)


def _free(
    place: FlagPlace, request: FlagRequest, placed_before: list[tuple[FlagRequest, FlagPlace]], later_xs: list[float]
) -> bool:
    end = place.left + request.width
    for other_request, other_place in placed_before:
        other_start, other_end = other_place.left, other_place.left + other_request.width
        if other_place.level == place.level and place.left < other_end + GAP and other_start < end + GAP:
            return False
        if other_place.level != place.level and abs(other_request.x - request.x) < SAME_STEM:
            continue  # both share one stem
        if other_place.level < place.level and other_start - GAP / 2 < request.x < other_end + GAP / 2:
            return False  # our stem would run through a lower box
        if other_place.level > place.level and place.left - GAP / 2 < other_request.x < end + GAP / 2:
            return False  # a higher flag's stem runs here
    later_xs = [x for x in later_xs if abs(x - request.x) >= SAME_STEM]
    return place.level > 0 or not any(place.left < x < end + GAP for x in later_xs)


def share_flags(flags: Iterable[tuple[str, int, str]]) -> list[tuple[str, int, str]]:
    """Merge flags (name, offset, role) of equal offsets into one, "committed = confirm", in the colour of the first."""
    shared: dict[int, tuple[list[str], str]] = {}
    for name, offset, role in flags:
        shared.setdefault(offset, ([], role))[0].append(name)
    return [(" = ".join(names), offset, role) for offset, (names, role) in shared.items()]


class Scale:
    """Convert offsets to pixels and back over one stretch. 64-bit offsets stay Python integers until the last
    division.
    """

    __slots__ = ("_left", "_low", "_span", "_width")

    def __init__(self, start_offset: int, end_offset: int, left_x: float, width: float) -> None:
        self._low, self._span = start_offset, max(1, end_offset - start_offset)
        self._left, self._width = left_x, width

    def x(self, offset: int) -> float:
        """Pixel of ``offset``, clamped to the stretch."""
        inside = min(max(offset - self._low, 0), self._span)
        return self._left + self._width * (inside / self._span)

    def offset(self, x: float) -> int:
        """The offset under a pixel, clamped to the stretch."""
        share = min(max((x - self._left) / max(1.0, self._width), 0.0), 1.0)
        return self._low + int(share * self._span)


SMALL_GAP = 8.0
"""Width in px below which a gap shows only its number, without an arrow."""


def inside_gap(start: float, end: float, width: float) -> bool:
    """Return whether words of ``width`` px fit into the middle of the arrow from ``start`` to ``end``."""
    return width + 40 < end - start


def place_words(gaps: Sequence[tuple[float, float, float]], left_x: float, right_x: float) -> list[float]:
    """Return the left edges of the words of gaps (start, end, width of the words; px) on one line, in the order of
    ``gaps``.

    Words go into their gap, or else beside it, as near as possible without touching other words or arrows. All
    lie inside [left_x, right_x]; they overlap only if nothing is free.
    """
    arrows = [(start, end) if end - start >= SMALL_GAP else None for start, end, _ in gaps]
    words: dict[int, tuple[float, float]] = {}
    order = sorted(range(len(gaps)), key=lambda n: (not inside_gap(*gaps[n]), gaps[n][0], n))
    for number in order:
        start, end, width = gaps[number]
        if inside_gap(start, end, width):
            word_x = (start + end - width) / 2
        else:
            other_arrows = [arrow for n, arrow in enumerate(arrows) if arrow is not None and n != number]
            word_x = _beside(start, end, width, [*other_arrows, *words.values()], (left_x, right_x))
        words[number] = (word_x, word_x + width)
    return [words[number][0] for number in range(len(gaps))]


def _beside(
    start: float, end: float, width: float, occupied: Sequence[tuple[float, float]], edges: tuple[float, float]
) -> float:
    tries = [end + SMALL_GAP, start - width - SMALL_GAP]
    for taken_start, taken_end in occupied:
        tries += [max(taken_end, end) + SMALL_GAP, min(taken_start, start) - width - SMALL_GAP]
    fitting = [x for x in tries if edges[0] <= x and x + width <= edges[1]]
    free = [
        x for x in fitting if all(x >= taken_end or x + width <= taken_start for taken_start, taken_end in occupied)
    ]
    near = sorted(free, key=lambda x: max(x - end, start - x - width))
    return (near or fitting or [max(edges[0], min(tries[0], edges[1] - width))])[0]
