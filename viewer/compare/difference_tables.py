"""Columns of the table of differences, and of their sums by topic and queue; no Qt."""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.inspection.difference_rows import Row, Side
from viewer.compare.differences_model import QueueTotal, place_of
from viewer.look.assets import tr, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import number
from viewer.runtime.places import Place
from viewer.widgets.columns import Chip, Column, RecordKind, chip_column, number_column, text_column, topic_column

KIND_WORDS = {
    "unit": words("unit"),
    "queue": words("queue entry"),
    "index": words("index entry"),
    "config": words("table"),
    "dataVersion": words("data version"),
    "checkpoint": words("checkpoint"),
    "state": words("state"),
}
SIDES = {
    "here": Chip("warn", words("only here")),
    "there": Chip("note", words("only there")),
    "differs": Chip("error", words("differs")),
}


@dataclass(frozen=True, slots=True)
class OtherWindowLink:
    """A link into the other window."""

    place: Place


def _side(row: Row) -> Chip:
    chip = SIDES[row.side]
    return Chip(chip.kind, tr(chip.word))


def _link_there(row: Row) -> OtherWindowLink | None:
    place = place_of(row, "there")
    return OtherWindowLink(place) if place is not None else None


KIND = RecordKind(
    "difference",
    (
        chip_column("side", words("Difference"), 120, _side, filterable=False),
        Column(
            "kind", words("Kind"), 100, lambda row: tr(KIND_WORDS[row.kind]), lambda row: row.kind, filterable=False
        ),
        text_column("subject", words("What"), 250, mono=True, elide="middle", filterable=False),
        number_column("count", words("Count"), 72, filterable=False),
        text_column("fields", words("Fields"), 200, filterable=False),
        Column(
            "here",
            words("Here"),
            240,
            lambda row: engine_words(row.text_here),
            lambda row: row.text_here,
            mono=True,
            filterable=False,
            jump=lambda row: place_of(row, "here"),
        ),
        Column(
            "there",
            words("There"),
            240,
            lambda row: engine_words(row.text_there),
            lambda row: row.text_there,
            mono=True,
            filterable=False,
            jump=_link_there,
        ),
    ),
    verdict=lambda row: tr(SIDES[row.side].word),
    record=lambda row: {
        "type": "difference",
        "kind": row.kind,
        "side": row.side,
        "subject": row.subject,
        "count": row.count,
        "bytes": row.size,
        "fields": row.fields,
        "here": row.text_here,
        "there": row.text_there,
        "physicalOffset": row.offset,
    },
)


def _total_column(key: str, title: str, side: Side) -> Column:
    return Column(
        key,
        title,
        120,
        lambda total: number(total.count(side)),
        lambda total: total.count(side),
        right=True,
        mono=True,
        filterable=False,
        jump=lambda total: _total_link(total, side),
    )


def _total_link(total: QueueTotal, side: Side) -> object | None:
    place = total.place(side)
    return OtherWindowLink(place) if place is not None and side == "there" else place


TOTAL = RecordKind(
    "differenceTotal",
    (
        topic_column(width=300),
        number_column("queueId", words("Queue"), 80, filterable=False),
        _total_column("here", words("Only here"), "here"),
        _total_column("there", words("Only there"), "there"),
        _total_column("differs", words("Differ"), "differs"),
        Column(
            "offsets",
            words("Queue offsets"),
            220,
            lambda total: total.offsets(),
            lambda total: total.offsets(),
            mono=True,
            filterable=False,
        ),
    ),
)


def named_sides(kind: RecordKind) -> RecordKind:
    """Return a table of differences in which this store is called A and the other one B."""
    columns = []
    for column in kind.columns:
        title = SIDE_TITLES.get(column.title, column.title)
        chip = _side_by_name if column.key == "side" else column.chip
        text = (lambda row: _side_by_name(row).word) if column.key == "side" else column.text
        columns.append(replace(column, title=title, chip=chip, text=text))
    return replace(kind, columns=tuple(columns), verdict=lambda _row: "")


SIDE_TITLES = {
    "Here": words("In A"),
    "There": words("In B"),
    "Only here": words("Only in A"),
    "Only there": words("Only in B"),
}
NAMED_SIDES = {"here": words("only in A"), "there": words("only in B")}


def _side_by_name(row: Row) -> Chip:
    chip = SIDES[row.side]
    return Chip(chip.kind, tr(NAMED_SIDES.get(row.side, chip.word)))
