"""Every value of a store's configuration as a row: name, value, default, range, meaning; and changing one. No Qt."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from engine.config import MessageStoreConfig, from_mapping
from engine.errors import UsageError
from engine.lab.presets import NOT_IN_A_LAB
from viewer.look.assets import tr, words
from viewer.widgets.columns import Column, RecordKind, gutter, text_column
from viewer.widgets.columns import RowLook as Look


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """One value: ``text`` as it will be, ``default`` RocketMQ's; ``choices`` where only some words are permitted."""

    key: str
    text: str
    default: str
    unit: str
    span: str
    meaning: str
    choices: tuple[str, ...] = ()
    fixed: bool = False

    @property
    def changed(self) -> bool:
        """Whether it differs from RocketMQ's default."""
        return self.text != self.default


def config_rows(config: MessageStoreConfig, search: str = "") -> list[ConfigRow]:
    """Every value, in the order of the configuration's page, those that a lab store keeps at the end; only those that
    ``search`` finds in name or meaning.
    """
    wanted = search.casefold().split()
    found = []
    for item in fields(MessageStoreConfig):
        if "java" not in item.metadata:
            continue
        row = _row(config, item)
        spoken = f"{row.key} {item.metadata['meaning']} {row.meaning}".casefold()
        if all(word in spoken for word in wanted):
            found.append(row)
    return sorted(found, key=lambda row: row.fixed)


def _row(config: MessageStoreConfig, item: Any) -> ConfigRow:
    choices = item.metadata["choices"] or (("true", "false") if isinstance(item.default, bool) else ())
    key = str(item.metadata["java"])
    unit = tr(str(item.metadata["unit"])) if item.metadata["unit"] else ""
    meaning = tr(str(item.metadata["meaning"]))
    value, default = as_text(getattr(config, item.name)), as_text(item.default)
    return ConfigRow(
        key, value, default, unit, range_words(item, choices), meaning, tuple(choices), key in NOT_IN_A_LAB
    )


def range_words(item: Any, choices: tuple[str, ...]) -> str:
    """``128 … 2,147,483,647``, or the words there are."""
    if choices:
        return " | ".join(choices)
    if isinstance(item.default, str):
        return tr("text")
    return f"{item.metadata['low']:,} … {item.metadata['high']:,}"


def as_text(value: object) -> str:
    """A value as a properties file writes it."""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def changed(config: MessageStoreConfig, key: str, text: str) -> MessageStoreConfig:
    """``config`` with one value changed; raises :class:`UsageError` that says what is permitted."""
    if key in NOT_IN_A_LAB:
        raise UsageError(tr("a lab store keeps its files below its own folder, in the default form"))
    try:
        return from_mapping({key: text.strip()}, config)[0]
    except UsageError:
        row = next(row for row in config_rows(config) if row.key == key)
        span = f"{row.span} {row.unit}".strip()
        raise UsageError(tr("Permitted is {span}, found {text}", span=span, text=text.strip() or "“”")) from None


def differences(config: MessageStoreConfig) -> list[ConfigRow]:
    """The rows that differ from RocketMQ's defaults."""
    return [row for row in config_rows(config) if row.changed]


def row_kind() -> RecordKind:
    """The table of values."""
    return RecordKind(
        "configValue",
        (
            gutter(20),
            text_column("key", words("Name"), 260, mono=True, elide="middle"),
            Column("value", words("Value"), 130, lambda row: row.text, lambda row: row.text, mono=True,
                   tone=lambda row: "accent" if row.changed else "text"),
            Column("default", words("Default"), 120, lambda row: row.default, lambda row: row.default, mono=True,
                   tone=lambda _row: "text3"),
            Column("range", words("Range"), 190, lambda row: f"{row.span} {row.unit}".strip(), lambda row: row.span,
                   mono=True, tone=lambda _row: "text2"),
            text_column("meaning", words("Meaning"), 300),
        ),
        look=lambda row: Look(mark="note") if row.changed else None,
        verdict=lambda row: tr("differs from the default") if row.changed else "",
        record=lambda row: {row.key: row.text},
    )  # fmt: skip
