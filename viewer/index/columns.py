"""Columns of the tables of index files, of a slot's chain and of a trace's steps; no Qt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from viewer.look.assets import tr, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import clock, day, full_moment, hexadecimal, number, size
from viewer.widgets.columns import (
    Chip,
    Column,
    RecordKind,
    RowAppearance,
    chip_column,
    field_of,
    number_column,
    text_column,
)

VERDICTS = {  # verdict: shape, words
    "match": ("ok", words("match")),
    "collision": ("warn", words("collision")),
    "hashDiffers": ("chat", words("other hash")),
    "outOfTime": ("out", words("out of time")),
    "gone": ("error", words("gone")),
    "loop": ("loop", words("loop, stopped")),
    "beyondCount": ("error", words("beyond count")),
    "empty": ("out", words("empty")),
    "ok": ("ok", words("ok")),
    "cut": ("warn", words("list cut off")),
}
MEANINGS = {
    "match": words("the unit carries this topic and key"),
    "collision": words("same hash, but the unit carries another key"),
    "hashDiffers": words("another key that shares only the slot"),
    "outOfTime": words("outside the window, so the broker leaves it out"),
    "gone": words("there is no message with such a key at this offset"),
    "loop": words("the chain comes back to an earlier entry: the walk stops here"),
    "beyondCount": words("the link leads past the entries of the file"),
    "empty": words("no entry in this slot"),
}
ToUnit = Callable[[int], object]
"""Makes the place of a unit in the log."""


def file_kind(to_unit: ToUnit) -> RecordKind:
    """The table of index files: header fields and the numbers worked out."""
    columns = (
        text_column("name", words("File"), 150, mono=True, elide="never"),
        chip_column("health", words("State"), 92, _health, filterable=False, tip=_health_tip),
        _moment("beginTimestamp", words("Begins")),
        _moment("endTimestamp", words("Ends")),
        number_column("beginPhyOffset", words("First unit"), 118, jump=lambda r: _place(to_unit, r.begin_phy_offset)),
        number_column("endPhyOffset", words("Last unit"), 118, jump=lambda row: _place(to_unit, row.end_phy_offset)),
        number_column("hashSlotCount", words("Used slots"), 88),
        number_column("indexCount", words("Next entry"), 92),
        number_column("slots", words("Slots"), 84, filterable=False, tip=_known_by),
        number_column("entries", words("Room"), 96, filterable=False, tip=_known_by),
        Column(
            "size",
            words("Size"),
            84,
            lambda row: size(row.size),
            lambda row: row.size,
            right=True,
            mono=True,
            slim=True,
        ),
    )

    def look(row: Any) -> RowAppearance | None:
        if row.begin_timestamp is None:
            return RowAppearance("error", "errorFill", "error", row.trouble, words_from=1)
        return RowAppearance("warn") if row.trouble else None

    return RecordKind("indexFile", columns, look, lambda row: row.trouble, _file_record, _file_command)


HEALTH = {
    "loop": ("loop", words("loop")),
    "error": ("error", words("damaged")),
    "warn": ("warn", words("doubtful")),
}


def _health(row: Any) -> Chip | None:
    if row.health not in HEALTH:
        return None
    shape, label = HEALTH[row.health]
    return Chip(shape, tr(label))


def _known_by(row: Any) -> str:
    return engine_words(row.geometry)


def _health_tip(row: Any) -> str:
    return "\n".join(engine_words(sentence) for sentence in ([row.trouble] if row.trouble else []) + list(row.messages))


def chain_kind(to_unit: ToUnit) -> RecordKind:
    """The entries of one slot, newest first."""
    columns = (
        number_column("entry", words("Entry"), 84),
        chip_column("verdict", words("Verdict"), 104, _chip),
        number_column("phyOffset", words("Physical offset"), 120, jump=lambda row: _place(to_unit, row.phy_offset)),
        _second("storeTimestamp", words("Stored")),
        Column(
            "keyHash",
            words("Key hash"),
            118,
            lambda r: number(r.key_hash),
            lambda r: r.key_hash,
            right=True,
            mono=True,
            tip=lambda row: "" if row.key_hash is None else hexadecimal(row.key_hash),
        ),
        number_column("prev", words("Previous"), 84, slim=True),
        text_column("key", words("Key of the unit"), 140, mono=True, elide="middle", filterable=False),
    )

    def look(row: Any) -> RowAppearance | None:
        if row.verdict == "cut":
            text = tr("The list is cut off here: the chain continues with entry {n:,}.", n=row.entry)
            return RowAppearance("warn", "", "warn", text, words_from=2, strong=True)
        return None

    return RecordKind("indexEntry", columns, look, _spoken)


def step_kind(to_unit: ToUnit, traced_text: str = "") -> RecordKind:
    """Columns of the steps of a trace as ``trace --json`` gives them; ``traced_text`` is the ``topic#key`` that a
    match carries.
    """
    columns = (
        number_column("step", words("Step"), 46, tone=lambda _: "text3"),
        text_column("file", words("File"), 112, mono=True, elide="middle", tone=lambda _: "text2"),
        Column(
            "kind", words("Kind"), 52, lambda row: tr(row.kind), lambda row: row.kind, tone=lambda _: "text2", slim=True
        ),
        Column(
            "entry",
            words("Number"),
            92,
            _number,
            lambda row: row.slot if row.kind == "slot" else row.entry,
            right=True,
            mono=True,
        ),
        number_column("phyOffset", words("Physical offset"), 118, jump=lambda row: _place(to_unit, row.phy_offset)),
        _second("storeTimestamp", words("Time")),
        chip_column("verdict", words("Verdict"), 112, _step_chip, tip=lambda row: tr(MEANINGS.get(row.verdict, ""))),
        Column(
            "key",
            words("Key of the unit"),
            110,
            lambda row: _step_key(row, traced_text),
            lambda row: row.key,
            mono=True,
            elide="middle",
            tone=lambda _: "text2",
            filterable=False,
        ),
    )
    return RecordKind("traceStep", columns, verdict=_spoken, record=_step_record)


def _moment(key: str, title: str) -> Column:
    """A moment to the second, without its year."""
    read = field_of(key)
    return Column(
        key,
        title,
        122,
        lambda row: f"{day(read(row))[5:]} {clock(read(row))[:8]}".strip(),
        read,
        mono=True,
        tip=lambda row: full_moment(read(row)),
        elide="never",
    )


def _second(key: str, title: str) -> Column:
    """A time of day to the second: an index knows no more."""
    read = field_of(key)
    return Column(
        key,
        title,
        80,
        lambda row: clock(read(row))[:8],
        read,
        mono=True,
        tip=lambda row: full_moment(read(row)),
        elide="never",
    )


def _place(to_unit: ToUnit, offset: int | None) -> object | None:
    return to_unit(offset) if offset is not None and offset >= 0 else None


def _chip(row: Any) -> Chip | None:
    shape, label = VERDICTS.get(row.verdict, ("chat", row.verdict))
    return Chip(shape) if row.verdict == "ok" else Chip(shape, tr(label))


def _step_chip(row: Any) -> Chip | None:
    if row.kind == "slot" and row.verdict == "match":
        return None
    return _chip(row)


def _step_key(row: Any, traced_text: str) -> str:
    if row.kind == "slot":
        return f"→ {row.entry:,}" if row.entry else ""
    return row.key or (traced_text if row.verdict == "match" else "")


def _number(row: Any) -> str:
    return number(row.slot if row.kind == "slot" else row.entry)


def _spoken(row: Any) -> str:
    return tr(VERDICTS.get(row.verdict, ("", row.verdict))[1])


def _file_record(row: Any) -> dict[str, Any]:
    return {
        "type": "indexFile",
        "name": row.name,
        "beginTimestamp": row.begin_timestamp,
        "endTimestamp": row.end_timestamp,
        "beginPhyOffset": row.begin_phy_offset,
        "endPhyOffset": row.end_phy_offset,
        "hashSlotCount": row.hash_slot_count,
        "indexCount": row.index_count,
    }


def _file_command(row: Any) -> list[str]:
    return ["storescope", "index", "STORE", "--file", row.name, "--entries", "--json"]


def _step_record(row: Any) -> dict[str, Any]:
    return {
        "type": "traceStep",
        "file": row.file,
        "kind": row.kind,
        "slot": row.slot,
        "entry": row.entry,
        "keyHash": row.key_hash,
        "phyOffset": row.phy_offset,
        "storeTimestamp": row.store_timestamp,
        "prev": row.prev,
        "verdict": row.verdict,
    }
