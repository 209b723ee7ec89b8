"""Where the flags of a line stand so that no two of them touch: first by side, then by level. Pure arithmetic, no Qt.

A flag is a box with words on a stem. All boxes of one lane hang on the same line; a higher level stands further away
from it, so that a stem crosses the lower levels: no box may cover a stem either.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

GAP = 6.0
MAX_LEVELS = 3
MOST_LETTERS = 32
"""Of a name on a flag: the whole of it is said in the tool tip."""


@dataclass(frozen=True, slots=True)
class FlagWish:
    """A flag that is to stand at ``x`` (px) and is ``width`` px wide.

    ``side`` is tried first (1 right of the stem, −1 left).
    """

    x: float
    width: float
    side: int = 1


@dataclass(frozen=True, slots=True)
class FlagPlace:
    """Where a flag came to stand: ``left`` edge of its box in px, side of its stem, level (0 next to the line)."""

    left: float
    side: int
    level: int


def place_flags(wishes: Sequence[FlagWish], left: float, right: float, levels: int = MAX_LEVELS) -> list[FlagPlace]:
    """Places in the order of ``wishes``; every box lies inside [left, right].

    Where even the highest level is taken, a box may overlap: the caller shares flags of equal places first, so that
    this needs more than ``levels`` flags within one box's width.
    """
    rising = sorted(range(len(wishes)), key=lambda n: (wishes[n].x, n))
    tries = [_place_in(order, wishes, (left, right), levels) for order in (rising, rising[::-1])]
    best = min(tries, key=lambda places: (_touching(wishes, places), sum(p.level for p in places.values())))
    return [best[number] for number in range(len(wishes))]


def _place_in(
    order: list[int], wishes: Sequence[FlagWish], edges: tuple[float, float], levels: int
) -> dict[int, FlagPlace]:
    placed: dict[int, FlagPlace] = {}
    for rank, number in enumerate(order):
        before = [(wishes[n], placed[n]) for n in order[:rank]]
        coming = [wishes[n].x for n in order[rank + 1 :]]
        placed[number] = _first_free(wishes[number], before, coming, edges, levels)
    return placed


def _touching(wishes: Sequence[FlagWish], places: dict[int, FlagPlace]) -> int:
    numbers = sorted(places)
    return sum(not _free(places[n], wishes[n], [(wishes[m], places[m]) for m in numbers if m < n], []) for n in numbers)


def _first_free(
    wish: FlagWish,
    before: list[tuple[FlagWish, FlagPlace]],
    coming: list[float],
    edges: tuple[float, float],
    levels: int,
) -> FlagPlace:
    left, right = edges
    fallback: FlagPlace | None = None
    for level in range(levels):
        for side in (wish.side, -wish.side):
            start = wish.x if side > 0 else wish.x - wish.width
            if start < left or start + wish.width > right:
                continue
            fallback = FlagPlace(start, side, level)
            if _free(fallback, wish, before, coming):
                return fallback
    if fallback is not None:
        return fallback
    return FlagPlace(min(max(wish.x, left), max(left, right - wish.width)), 1, levels - 1)


def _free(place: FlagPlace, wish: FlagWish, before: list[tuple[FlagWish, FlagPlace]], coming: list[float]) -> bool:
    end = place.left + wish.width
    for other, stands in before:
        low, high = stands.left, stands.left + other.width
        if stands.level == place.level and place.left < high + GAP and low < end + GAP:
            return False
        if stands.level != place.level and abs(other.x - wish.x) < 1:
            continue  # one stem for both
        if stands.level < place.level and low - GAP / 2 < wish.x < high + GAP / 2:
            return False  # our stem would run through a lower box
        if stands.level > place.level and place.left - GAP / 2 < other.x < end + GAP / 2:
            return False  # a higher flag's stem runs here
    return place.level > 0 or not any(place.left < x < end + GAP for x in coming if x != wish.x)


def share_flags(flags: Iterable[tuple[str, int, str]]) -> list[tuple[str, int, str]]:
    """Flags (name, offset, role) of equal offsets become one, "committed = confirm", in the colour of the first."""
    shared: dict[int, tuple[list[str], str]] = {}
    for name, offset, role in flags:
        shared.setdefault(offset, ([], role))[0].append(name)
    return [(" = ".join(names), offset, role) for offset, (names, role) in shared.items()]


class Scale:
    """Offsets to pixels and back over one stretch; 64-bit offsets stay Python integers until the last division."""

    __slots__ = ("_left", "_low", "_span", "_width")

    def __init__(self, low: int, high: int, left: float, width: float) -> None:
        self._low, self._span = low, max(1, high - low)
        self._left, self._width = left, width

    def x(self, offset: int) -> float:
        """Pixel of ``offset``, held inside the stretch."""
        inside = min(max(offset - self._low, 0), self._span)
        return self._left + self._width * (inside / self._span)

    def offset(self, x: float) -> int:
        """The offset under a pixel, held inside the stretch."""
        share = min(max((x - self._left) / max(1.0, self._width), 0.0), 1.0)
        return self._low + int(share * self._span)


SMALL_GAP = 8.0
"""Width in px below which a gap is its number only, without an arrow."""


def inside_gap(start: float, end: float, width: float) -> bool:
    """Whether words of ``width`` px stand in the middle of the arrow from ``start`` to ``end``."""
    return width + 40 < end - start


def place_words(gaps: Sequence[tuple[float, float, float]], left: float, right: float) -> list[float]:
    """Left edges of the words of gaps (start, end, width of the words; px) on one line, in the order of ``gaps``.

    Words stand in their gap, or else beside it, as near as no other words and no other arrow are touched; all inside
    [left, right], where they may overlap only if nothing is free.
    """
    arrows = [(start, end) if end - start >= SMALL_GAP else None for start, end, _ in gaps]
    words: dict[int, tuple[float, float]] = {}
    order = sorted(range(len(gaps)), key=lambda n: (not inside_gap(*gaps[n]), gaps[n][0], n))
    for number in order:
        start, end, width = gaps[number]
        if inside_gap(start, end, width):
            at = (start + end - width) / 2
        else:
            taken = [arrow for n, arrow in enumerate(arrows) if arrow is not None and n != number]
            at = _beside(start, end, width, [*taken, *words.values()], (left, right))
        words[number] = (at, at + width)
    return [words[number][0] for number in range(len(gaps))]


def _beside(
    start: float, end: float, width: float, taken: Sequence[tuple[float, float]], edges: tuple[float, float]
) -> float:
    tries = [end + SMALL_GAP, start - width - SMALL_GAP]
    for low, high in taken:
        tries += [max(high, end) + SMALL_GAP, min(low, start) - width - SMALL_GAP]
    fitting = [at for at in tries if edges[0] <= at and at + width <= edges[1]]
    free = [at for at in fitting if all(at >= high or at + width <= low for low, high in taken)]
    near = sorted(free, key=lambda at: max(at - end, start - at - width))
    return (near or fitting or [max(edges[0], min(tries[0], edges[1] - width))])[0]
