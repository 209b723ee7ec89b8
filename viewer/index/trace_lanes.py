"""A trace of a key, collected: the steps as rows of a table and the files as lanes of cards; no Qt.

Takes the records of :mod:`engine.inspection.key_trace` in the order they come.

And where each card stands. A lane is an index file in the order the query walks (newest first); its cards are the
entries of the chain. Long runs of entries that only share the slot are folded into one card, and a lane shows at most
:data:`MAX_CARDS` cards: the table below the canvas has every step.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from engine.codec.index import HEADER_SIZE, SLOT_SIZE
from engine.codec.index_keys import IndexType, key_text
from engine.codec.java import index_key_hash
from engine.inspection.key_trace import Match, TraceEnd, TraceFile, TraceStep, trace
from engine.inspection.snapshot import StoreSnapshot
from viewer.look.assets import tr, tr_plural
from viewer.look.engine_words import engine_words
from viewer.look.formats import clock, day

MAX_STEPS = 100_000
WINDOW_MS = 60_000
"""Ms before and after a unit to which a trace is narrowed if it would not reach the unit otherwise."""
"""Steps after which a trace is cut off: a chain is as long as its file has entries at most."""


WALKED_IN_FULL = 3
"""Walked files up to which every lane is drawn in full; beyond it lanes without anything of the key are one line."""


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step with its number (from 1) as the table shows it; attributes as in the record."""

    step: int
    file: str
    kind: str
    slot: int
    entry: int
    key_hash: int
    phy_offset: int | None
    store_timestamp: int | None
    prev: int | None
    verdict: str
    key: str | None


@dataclass(frozen=True, slots=True)
class TraceQuery:
    """The question of a trace: times in ms, None for an open end."""

    topic: str
    key: str
    begin: int | None = None
    end: int | None = None
    most: int = 32
    near: tuple[int, int] | None = None
    """Offset and store time (ms) of the unit from which the key was taken: the trace must reach it."""
    index_type: IndexType | None = None
    """What ``key`` is; None for a key of any kind."""

    @property
    def indexed_text(self) -> str:
        """The text behind ``topic#``."""
        return key_text(self.key, self.index_type)

    @property
    def text(self) -> str:
        """The text that RocketMQ hashes."""
        return f"{self.topic}#{self.indexed_text}"

    @property
    def key_hash(self) -> int:
        return index_key_hash(self.topic, self.indexed_text)


@dataclass(slots=True)
class TraceResult:
    """The result of a trace; ``cut`` if it was stopped or grew too long."""

    question: TraceQuery
    files: list[TraceFile] = field(default_factory=list)
    steps: list[StepRow] = field(default_factory=list)
    matches: list[Match] = field(default_factory=list)
    end: TraceEnd | None = None
    slots: int | None = None
    cut: bool = False

    def count(self, verdict: str) -> int:
        """Return the number of steps with this verdict."""
        return sum(step.verdict == verdict for step in self.steps if step.kind == "entry")

    @property
    def passed_over(self) -> int:
        """Files that were skipped."""
        return sum(not file.chosen for file in self.files)

    @property
    def slot_position(self) -> int | None:
        """First byte of the slot in its file."""
        return None if self.slots is None else HEADER_SIZE + SLOT_SIZE * (self.question.key_hash % self.slots)


def ask(store: StoreSnapshot, question: TraceQuery, cancel: threading.Event) -> TraceResult:
    """Trace a key; reads the disk. Ends early, and says so, when ``cancel`` is set."""
    end_of_time = (1 << 63) - 1
    begin = 0 if question.begin is None else question.begin
    end = end_of_time if question.end is None else question.end
    arguments = question.topic, question.key, begin, end, question.most, question.index_type
    answer = collect(question, trace(store, *arguments), cancel)
    readers = store.index_files()
    answer.slots = next((r.geometry.slots for r in reversed(readers) if r.geometry is not None), None)
    return answer


def ask_near(store: StoreSnapshot, question: TraceQuery, cancel: threading.Event) -> TraceResult:
    """Trace like :func:`ask`; if the newest matches do not reach the unit of the key, narrow the time window around it.

    A broker returns only so many matches, so an old unit of a frequent key would be out of reach.
    """
    answer = ask(store, question, cancel)
    near = question.near
    if near is None or question.begin is not None or question.end is not None:
        return answer
    if len(answer.matches) < question.most or near[0] in {match.unit.offset for match in answer.matches}:
        return answer
    return ask(store, replace(question, begin=max(0, near[1] - WINDOW_MS), end=near[1] + WINDOW_MS), cancel)


def collect(question: TraceQuery, records: Iterable[object], cancel: threading.Event | None = None) -> TraceResult:
    """The records of a trace as one answer."""
    answer = TraceResult(question)
    for record in records:
        if isinstance(record, TraceFile):
            answer.files.append(record)
        elif isinstance(record, TraceStep):
            answer.steps.append(_row(len(answer.steps) + 1, record))
        elif isinstance(record, Match):
            answer.matches.append(record)
        elif isinstance(record, TraceEnd):
            answer.end = record
        if len(answer.steps) >= MAX_STEPS or (cancel is not None and cancel.is_set()):
            answer.cut = True
            break
    return answer


def _row(number: int, s: TraceStep) -> StepRow:
    return StepRow(
        number, s.file, s.kind, s.slot, s.entry, s.key_hash, s.phy_offset, s.store_timestamp, s.prev, s.verdict, s.key
    )


def lanes(answer: TraceResult) -> list[ChainLane]:
    """Return a lane for each file, newest first, in the words of the window's language."""
    by_file: dict[str, list[StepRow]] = {}
    for step in answer.steps:
        by_file.setdefault(step.file, []).append(step)
    many = sum(file.chosen for file in answer.files) > WALKED_IN_FULL
    return [_lane(answer, file, by_file.get(file.file, []), many) for file in answer.files]


def with_lanes(answer: TraceResult) -> tuple[TraceResult, list[ChainLane]]:
    """An answer and its lanes, worked out in one go off the loop: a chain may have a hundred thousand steps."""
    return answer, lanes(answer)


def _lane(answer: TraceResult, file: TraceFile, steps: list[StepRow], many: bool) -> ChainLane:
    span = time_span(file.begin_timestamp, file.end_timestamp)
    if not file.chosen:
        form = "damaged, not walked: {why}" if file.damaged else "skipped: {why}"
        return ChainLane(file.file, span, False, tr(form, why=engine_words(file.why)), damaged=file.damaged)
    slot = next((step for step in steps if step.kind == "slot"), None)
    entries = [step for step in steps if step.kind == "entry"]
    loop = next((step.entry for step in entries if step.verdict == "loop"), None)
    drawn = [step for step in entries if step.verdict != "loop"]
    cards, left_out = fold([_card(answer, step) for step in drawn])
    return ChainLane(
        file.file,
        span,
        True,
        engine_words(file.why),
        slot=slot.slot if slot else None,
        slot_step=slot.step if slot else -1,
        first=slot.entry if slot else 0,
        cards=tuple(cards),
        loop_to=loop,
        end_note=_end_note(entries, loop, left_out),
        left_out=left_out,
        quiet=_quiet(slot, entries) if many else "",
    )


def _quiet(slot: StepRow | None, entries: list[StepRow]) -> str:
    """Return the text of a lane that contains only other keys; "" for any other lane."""
    if slot is None or any(step.verdict != "hashDiffers" for step in entries):
        return ""
    if slot.verdict == "beyondCount":
        return ""
    if not entries:
        return tr("slot {slot:,} is empty", slot=slot.slot)
    return tr_plural(
        "slot {slot:,}: {n:,} entry, all of other keys",
        "slot {slot:,}: {n:,} entries, all of other keys",
        slot=slot.slot,
        n=len(entries),
    )


def _card(answer: TraceResult, step: StepRow) -> ChainCard:
    key_text = step.key or (answer.question.text if step.verdict in {"match", "outOfTime"} else "")
    note = {
        "collision": tr("same hash, other key"),
        "hashDiffers": tr("same slot only"),
        "gone": tr("no unit at this offset"),
        "beyondCount": tr("beyond the file's count"),
        "outOfTime": _out_of_time(answer.question, step),
    }.get(step.verdict, "")
    when = clock(step.store_timestamp)[:8]
    return ChainCard(step.step, step.entry, step.verdict, key_text, step.phy_offset, when, note)


def _out_of_time(question: TraceQuery, step: StepRow) -> str:
    time = step.store_timestamp
    if time is not None and question.end is not None and time > question.end:
        return tr("after the window")
    if time is not None and question.begin is not None and time < question.begin:
        return tr("before the window: the chain ends")
    return tr("its time is below zero")


def _end_note(entries: list[StepRow], loop: int | None, left_out: int) -> tuple[str, ...]:
    if loop is not None:
        return (
            tr("loop, walk stopped"),
            tr("back to {entry:,}; entries to which it once led may be missing", entry=loop),
        )
    if left_out:
        return (tr_plural("{n:,} more step", "{n:,} more steps", n=left_out), tr("the table below has them all"))
    if entries and entries[-1].verdict == "beyondCount":
        return (
            tr("link leads out of the file"),
            tr("entry {entry:,} is beyond the file's count", entry=entries[-1].entry),
        )
    return ()


def time_span(begin: int, end: int) -> str:
    """Format two times, such as ``11-19 05:22 – 19:01``: the second day only if it differs; seconds for short spans."""
    if not day(begin) or not day(end):
        return ""
    first_day, last_day = day(begin)[5:], day(end)[5:]
    keep = 5 if end - begin >= 3_600_000 else 8
    tail = clock(end)[:keep] if first_day == last_day else f"{last_day} {clock(end)[:keep]}"
    return f"{first_day} {clock(begin)[:keep]} – {tail}"


MAX_CARDS = 48
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
    """An entry of a chain, or ``folded`` entries in a row that only share the slot.

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
    """An index file:

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
    damaged: bool = False  # passed over because it cannot be decoded
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
    """Position of a lane, its slot and its cards; ``rows`` are the card numbers of each row."""

    lane: ChainLane
    box: Box
    slot: Box | None = None
    cards: list[Box] = field(default_factory=list)
    note: Box | None = None


def fold(cards: Sequence[ChainCard]) -> tuple[list[ChainCard], int]:
    """Fold runs of cards with other hashes; returns the cards and how many were left out at the end."""
    folded: list[ChainCard] = []
    run: list[ChainCard] = []

    def close_run() -> None:
        if len(run) >= FOLD_FROM:
            first_card = run[0]
            folded.append(ChainCard(first_card.step, first_card.entry, "hashDiffers", folded=len(run)))
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
    return folded[:MAX_CARDS], max(0, len(folded) - MAX_CARDS)


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
        note_left = start + ARROW * zoom + column * step
        wide = min(NOTE_WIDTH * zoom, x + width - note_left - 8)
        place.note = Box(note_left, y + (12 + row * ROW_STEP) * zoom, wide, CARD_HEIGHT * zoom)
    rows = (len(lane.cards) + has_note + per_row - 1) // per_row
    place.box = Box(x, y, width, (LANE_WALKED + max(0, rows - 1) * ROW_STEP) * zoom)
    return place


def _row_of_cards(room: float, card_count: int, zoom: float) -> tuple[int, float]:
    """Return the number of cards in a row, and the width of each."""
    max_per_row = max(1, int(room / ((CARD_MIN + ARROW) * zoom)))
    per_row = max(1, min(max_per_row, max(card_count, 4)))
    return per_row, max(120 * zoom, min(CARD_MAX * zoom, room / per_row - ARROW * zoom))
