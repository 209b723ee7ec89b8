"""The way of one key through the index files as lanes of cards, and where each card stands. Pure, no Qt.

A lane is an index file in the order the query walks (newest first); its cards are the entries of the chain. Long runs
of entries that only share the slot are folded into one card, and a lane shows at most :data:`MOST_CARDS` cards: the
table below the canvas has every step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

MOST_CARDS = 48
FOLD_FROM = 3
LANE_WALKED = 106
LANE_PASSED = 40
LANE_GAP = 8
CARD_HEIGHT = 82
ROW_STEP = 96
NAME_WIDTH = 216
SLOT_WIDTH = 104
ARROW = 36
CARD_MIN = 168
CARD_MAX = 220
NOTE_WIDTH = 264


@dataclass(frozen=True, slots=True)
class ChainCard:
    """One entry of a chain, or ``folded`` entries in a row that only share the slot.

    ``step`` is the row in the table.
    """

    step: int
    entry: int
    verdict: str
    key: str = ""
    offset: int | None = None
    when: str = ""
    note: str = ""
    folded: int = 1


@dataclass(frozen=True, slots=True)
class ChainLane:
    """One index file:

    walked (``chosen``) or passed over, with ``why``; ``loop_to`` is the entry a loop leads back to.
    """

    name: str
    span: str
    chosen: bool
    why: str
    slot: int | None = None
    slot_step: int = -1
    first: int = 0
    cards: tuple[ChainCard, ...] = ()
    loop_to: int | None = None
    end_note: tuple[str, ...] = ()
    left_out: int = 0
    damaged: bool = False  # passed over because it cannot be taken apart
    quiet: str = ""  # drawn as one line with these words: nothing here but other keys


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in px."""

    x: float
    y: float
    width: float
    height: float

    def holds(self, x: float, y: float) -> bool:
        return self.x <= x <= self.x + self.width and self.y <= y <= self.y + self.height


@dataclass(slots=True)
class LanePlace:
    """Where a lane, its slot and its cards stand; ``rows`` are the card numbers of each row."""

    lane: ChainLane
    box: Box
    slot: Box | None = None
    cards: list[Box] = field(default_factory=list)
    note: Box | None = None


def fold(cards: Sequence[ChainCard]) -> tuple[list[ChainCard], int]:
    """Cards with runs of other hashes folded, and how many cards were left out at the end."""
    folded: list[ChainCard] = []
    run: list[ChainCard] = []

    def close_run() -> None:
        if len(run) >= FOLD_FROM:
            first = run[0]
            folded.append(ChainCard(first.step, first.entry, "hashDiffers", folded=len(run)))
        else:
            folded.extend(run)
        run.clear()

    for card in cards:
        if card.verdict == "hashDiffers":
            run.append(card)
            continue
        close_run()
        folded.append(card)
    close_run()
    return folded[:MOST_CARDS], max(0, len(folded) - MOST_CARDS)


def place_lanes(lanes: Sequence[ChainLane], width: float, zoom: float = 1.0) -> tuple[list[LanePlace], float]:
    """Places of all lanes on a canvas of ``width`` px, and the height they need."""
    y = 10.0
    places = []
    for lane in lanes:
        place = _place_lane(lane, 12.0, y, width - 24, zoom)
        places.append(place)
        y += place.box.height + LANE_GAP
    return places, y + 4


def _place_lane(lane: ChainLane, x: float, y: float, width: float, zoom: float) -> LanePlace:
    if not lane.chosen or lane.quiet:
        return LanePlace(lane, Box(x, y, width, LANE_PASSED * zoom))
    slot = Box(x + (NAME_WIDTH + 12) * zoom, y + 34 * zoom, SLOT_WIDTH * zoom, 38 * zoom)
    start = slot.x + slot.width
    has_note = bool(lane.end_note)
    room = x + width - start - 12
    per_row, card_width = _row_of_cards(room, len(lane.cards) + has_note, zoom)
    place = LanePlace(lane, Box(x, y, width, 0), slot)
    step = card_width + ARROW * zoom
    for number in range(len(lane.cards)):
        row, column = divmod(number, per_row)
        place.cards.append(
            Box(start + ARROW * zoom + column * step, y + (12 + row * ROW_STEP) * zoom, card_width, CARD_HEIGHT * zoom)
        )
    if has_note:
        row, column = divmod(len(lane.cards), per_row)
        left = start + ARROW * zoom + column * step
        wide = min(NOTE_WIDTH * zoom, x + width - left - 8)
        place.note = Box(left, y + (12 + row * ROW_STEP) * zoom, wide, CARD_HEIGHT * zoom)
    rows = (len(lane.cards) + has_note + per_row - 1) // per_row
    place.box = Box(x, y, width, (LANE_WALKED + max(0, rows - 1) * ROW_STEP) * zoom)
    return place


def _row_of_cards(room: float, wanted: int, zoom: float) -> tuple[int, float]:
    """How many cards stand in a row, and how wide each is."""
    most = max(1, int(room / ((CARD_MIN + ARROW) * zoom)))
    per_row = max(1, min(most, max(wanted, 4)))
    return per_row, max(120 * zoom, min(CARD_MAX * zoom, room / per_row - ARROW * zoom))
