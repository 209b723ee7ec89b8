"""Columns of two logs side by side; no Qt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from viewer.compare.pair_rows import PairRow
from viewer.log.columns import look as look_of_log_row
from viewer.log.columns import unit_kind
from viewer.log.rows import LogRow, NonUnitRow, UnitRow
from viewer.look.assets import tr, words
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.widgets.columns import Column, Record, RecordKind, RowAppearance

Side = str
OWN, OTHER = "own", "other"
SIDE_COLUMNS = ("physicalOffset", "size", "topic", "queueId", "queueOffset", "storeTimestamp", "keys", "crc")
"""Columns of the log that each side shows."""
SIGN_KEY = "sign"
SIGN_TEXTS = {
    "same": "=",
    "differs": "≠",
    "own": "◂",
    "other": "▸",
    "unrelated": "◂ ▸",
    "unread": "?",
    "end": "",
}
SIGN_TONES = {"same": "text3", "differs": "error", "unread": "text2"}
SIGN_WORDS = {
    "same": words("the same bytes"),
    "differs": words("differs"),
    "own": words("only in A"),
    "other": words("only in B"),
    "unrelated": words("two other messages"),
    "unread": words("cannot be compared: it cannot be read"),
    "end": words("end of the log"),
}
ABSENCE_WORDS = {
    "beginning": (words("not here: A begins later"), words("not here: B begins later")),
    "end": (words("not here: behind the end of A"), words("not here: behind the end of B")),
    "": (words("not in A"), words("not in B")),
}


def side_of(row: PairRow, side: Side) -> LogRow | None:
    """Return what one of the logs has in a row."""
    return row.own if side == OWN else row.other


def words_of(row: PairRow, side: Side) -> RowAppearance | None:
    """Return the look of one side: blanks, damage, and messages that are not there; None for a unit without trouble."""
    log_row = side_of(row, side)
    if log_row is not None:
        return look_of_log_row(log_row)
    if row.sign == "end":
        return None
    text = ABSENCE_WORDS[row.absence][side == OTHER]
    return RowAppearance("", "sunken", "text3", tr(text))


def sign_tone(row: PairRow) -> str:
    """Return the colour of the sign between both sides."""
    return SIGN_TONES.get(row.sign, "warn")


def _on_side(column: Column, side: Side) -> Column:
    """Return a column of the log for one side of a pair; empty where that side has no unit."""

    def unit_of(row: Record) -> UnitRow | None:
        log_row = side_of(row, side)
        return log_row if isinstance(log_row, UnitRow) else None

    def any_of(row: Record) -> LogRow | None:
        return side_of(row, side)

    read: Callable[[Record], LogRow | None] = any_of if column.key in {"physicalOffset", "size"} else unit_of

    def text(row: Record) -> str:
        log_row = read(row)
        return "" if log_row is None else column.text(log_row)

    def value(row: Record) -> object:
        log_row = read(row)
        return None if log_row is None else column.value(log_row)

    tone, chip, tip = column.tone, column.chip, column.tip
    return replace(
        column,
        key=f"{side}.{column.key}",
        text=text,
        value=value,
        tone=(lambda row: tone(log_row) if (log_row := read(row)) is not None else "text") if tone else None,
        chip=(lambda row: chip(log_row) if (log_row := read(row)) is not None else None) if chip else None,
        tip=(lambda row: tip(log_row) if (log_row := read(row)) is not None else "") if tip else None,
        jump=(lambda row: _own_entry(unit_of(row))) if side == OWN and column.jump is not None else None,
        slim=False,
        leaves=False,
        grows=column.key == "topic",
        filterable=False,
        term=lambda _row: None,
    )


def _own_entry(unit: UnitRow | None) -> Place | None:
    return places.queue(unit.topic, unit.queue_id, unit.queue_offset) if unit is not None else None


def _gutter() -> Column:
    return Column("", "", 26, lambda _: "", lambda _: None, filterable=False)


def pair_kind(*, with_keys: bool = True) -> RecordKind:
    """Return the table of two logs: the columns of A, the sign, the columns of B."""
    keys = [key for key in SIDE_COLUMNS if with_keys or key != "keys"]
    log_columns = {column.key: column for column in unit_kind(places.queue).columns if column.key}
    sign = Column(
        SIGN_KEY,
        "",
        44,
        lambda row: SIGN_TEXTS[row.sign],
        lambda row: row.sign,
        tone=sign_tone,
        tip=lambda row: tr(SIGN_WORDS[row.sign]),
        filterable=False,
    )
    own, other = ([_gutter(), *(_on_side(log_columns[key], side) for key in keys)] for side in (OWN, OTHER))
    return RecordKind("pair", (*own, sign, *other), _row_look, _verdict, _record, _command)


def _row_look(_row: PairRow) -> RowAppearance:
    """A fill, so that each side can have its own over it."""
    return RowAppearance(fill="pane")


def _verdict(row: PairRow) -> str:
    parts = [tr(SIGN_WORDS[row.sign])]
    for name, side in (("A", OWN), ("B", OTHER)):
        look = words_of(row, side)
        if look is not None and look.words:
            parts.append(f"{name}: {look.words}")
    return ". ".join(parts)


def _record(row: PairRow) -> dict[str, object]:
    sides = {name: _side_record(side_of(row, side)) for name, side in (("a", OWN), ("b", OTHER))}
    return {"type": "pair", "sign": row.sign, **sides}


def _side_record(row: LogRow | None) -> dict[str, object] | None:
    if row is None:
        return None
    if isinstance(row, NonUnitRow):
        return {"type": row.kind, "physicalOffset": row.offset, "size": row.size}
    return {
        "type": "unit",
        "physicalOffset": row.offset,
        "size": row.size,
        "topic": row.topic,
        "queueId": row.queue_id,
        "queueOffset": row.queue_offset,
        "storeTimestamp": row.store_timestamp,
    }


def _command(row: PairRow) -> list[str]:
    """The command that prints this row; ``OTHER_STORE`` stands for the path of B."""
    log_row = row.own if row.own is not None else row.other
    store, offset = ("STORE" if row.own is not None else "OTHER_STORE"), log_row.offset if log_row is not None else 0
    return ["storescope", "units", store, "--from", str(offset), "--limit", "1", "--json"]
