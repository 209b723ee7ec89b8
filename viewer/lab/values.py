"""Editor for every value of a store's configuration, with default, range and meaning; and a dialog around it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QDialog, QSizePolicy, QStackedWidget, QVBoxLayout, QWidget

from engine.config import MessageStoreConfig, from_mapping
from engine.errors import UsageError
from engine.lab.presets import NOT_IN_A_LAB
from viewer.look.assets import tr, tr_plural, words
from viewer.look.formats import number
from viewer.look.theme import px
from viewer.widgets.basics import Button, ElidedLine, Field, Hairline, Label, StatusMark
from viewer.widgets.boxes import row
from viewer.widgets.choices import ChoiceField
from viewer.widgets.columns import Column, RecordKind, gutter, text_column
from viewer.widgets.columns import RowAppearance as Look
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """A value: ``text`` is its new value, ``default`` RocketMQ's; ``choices`` are the permitted words, if limited."""

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
        """Return True if it differs from RocketMQ's default."""
        return self.text != self.default


def config_rows(config: MessageStoreConfig, search: str = "") -> list[ConfigRow]:
    """Return the values in the configuration's order, those that are fixed in a lab last.

    Only values whose name or meaning contains all words of ``search``.
    """
    search_words = search.casefold().split()
    rows = []
    for item in fields(MessageStoreConfig):
        if "java" not in item.metadata:
            continue
        row = _row(config, item)
        searched_text = f"{row.key} {item.metadata['meaning']} {row.meaning}".casefold()
        if all(word in searched_text for word in search_words):
            rows.append(row)
    return sorted(rows, key=lambda row: row.fixed)


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
    """Return ``128 … 2,147,483,647``, or the permitted words."""
    if choices:
        return " | ".join(choices)
    if isinstance(item.default, str):
        return tr("text")
    return f"{item.metadata['low']:,} … {item.metadata['high']:,}"


def as_text(value: object) -> str:
    """Return the value as a properties file writes it."""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def changed(config: MessageStoreConfig, key: str, text: str) -> MessageStoreConfig:
    """Return ``config`` with one value changed; raises :class:`UsageError` that says what is permitted."""
    if key in NOT_IN_A_LAB:
        raise UsageError(tr("a lab store keeps its files below its own folder, in the default form"))
    try:
        return from_mapping({key: text.strip()}, config)[0]
    except UsageError:
        row = next(row for row in config_rows(config) if row.key == key)
        span = f"{row.span} {row.unit}".strip()
        raise UsageError(tr("Allowed: {span}, found {text}", span=span, text=text.strip() or "“”")) from None


def differences(config: MessageStoreConfig) -> list[ConfigRow]:
    """Return the rows that differ from RocketMQ's defaults."""
    return [row for row in config_rows(config) if row.changed]


MAX_INTEGER_TEXT = "2,147,483,647"
MAX_VALUE_CHARACTERS, MAX_RANGE_CHARACTERS = 12, 24
"""Letters of a value and of a range in the table. The tool tip and the line below it have all of a longer one."""


def _in_cell(text: str) -> str:
    """Return a number with separators; the beginning of a long text."""
    if text.isascii() and text.isdecimal():
        return number(int(text))
    return _beginning(text, MAX_VALUE_CHARACTERS)


def _beginning(text: str, letters: int) -> str:
    return text if len(text) <= letters else text[: letters - 1].rstrip() + "…"


def _range_of(row: ConfigRow) -> str:
    return f"{row.span} {row.unit}".strip()


def _range_in_cell(row: ConfigRow) -> str:
    """Return the range without Java's largest integer, which takes the room of the meaning."""
    smallest, separator, largest = row.span.partition(" … ")
    is_open = bool(separator) and largest == MAX_INTEGER_TEXT
    return f"≥ {smallest} {row.unit}".strip() if is_open else _beginning(_range_of(row), MAX_RANGE_CHARACTERS)


def row_kind() -> RecordKind:
    """Return the table of values."""
    return RecordKind(
        "configValue",
        (
            gutter(20),
            text_column("key", words("Name"), 250, mono=True, elide="middle"),
            Column(
                "value",
                words("Value"),
                104,
                lambda row: _in_cell(row.text),
                lambda row: row.text,
                mono=True,
                tip=lambda row: row.text,
                tone=lambda row: "accent" if row.changed else "text",
            ),
            Column(
                "default",
                words("Default"),
                104,
                lambda row: _in_cell(row.default),
                lambda row: row.default,
                mono=True,
                tip=lambda row: row.default,
                tone=lambda _row: "text3",
            ),
            Column(
                "range",
                words("Range"),
                170,
                _range_in_cell,
                lambda row: row.span,
                mono=True,
                tip=_range_of,
                tone=lambda _row: "text2",
            ),
            text_column("meaning", words("Meaning"), 372),
        ),
        look=lambda row: Look(mark="note") if row.changed else None,
        verdict=lambda row: tr("differs from the default") if row.changed else "",
        record=lambda row: {row.key: row.text},
    )


class ValuesEditor(QWidget):
    """Emits ``changed()`` when :attr:`config` has changed, or the input is not permitted (:attr:`wrong`)."""

    changed = Signal()

    def __init__(self, name: str, config: MessageStoreConfig) -> None:
        super().__init__()
        self.config = config
        self.search = Field(tr("Search names and meanings"), width=280, icon_name="search")
        self.search.setObjectName(f"{name}.search")
        self.search.textChanged.connect(lambda _text: self._show_rows())
        self.table = RecordView(f"{name}.values", row_kind())
        self.table.setAccessibleName(tr("Configuration values"))
        self.table.rowChosen.connect(self._row_chosen)
        self._key = Label("", 12, "text", 600, code=True)
        self._key.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        self.value = Field(tr("Value"), code=True, width=220)
        self.value.setObjectName(f"{name}.value")
        self.value.textEdited.connect(lambda _text: self._apply_input())
        self.choice = ChoiceField()
        self.choice.setObjectName(f"{name}.choice")
        self.choice.setAccessibleName(tr("Value"))
        self.choice.activated.connect(lambda _n: self._apply_input())
        self._editor = QStackedWidget()
        self._editor.addWidget(self.value)
        self._editor.addWidget(self.choice)
        self._editor.setFixedSize(px(224), px(30))
        self._note = ElidedLine("", 12, "text3")
        self._note_mark = StatusMark("")
        self.reset = Button(tr("Default"), "flat")
        self.reset.setObjectName(f"{name}.default")
        self.reset.clicked.connect(self._reset_value)
        editor = row(self._key, self._editor, self.reset, self._note_mark, self._note, gap=8)
        editor.box.setStretch(4, 1)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(px(6))
        for part in (row(self.search, None, gap=8), Hairline(), self.table, self.table.strip, Hairline(), editor):
            box.addWidget(part)
        box.setStretch(2, 1)
        self._show_rows()

    @property
    def wrong(self) -> bool:
        """Return True if the input is not permitted."""
        return bool(self.value.property("state") == "error")

    @property
    def note(self) -> str:
        """Remark on the value."""
        return self._note.text()

    def set_config(self, config: MessageStoreConfig) -> None:
        """Show another configuration."""
        self.config = config
        self._show_rows()

    def _show_rows(self) -> None:
        chosen = self.table.current_row()
        rows = config_rows(self.config, self.search.text())
        self.table.set_rows(list(rows))
        self.table.set_state(None if rows else State("empty", tr("No value matches these words.")))
        keys = [row.key for row in rows]
        if rows:
            self.table.go_to_row(keys.index(chosen.key) if chosen is not None and chosen.key in keys else 0)
        self._row_chosen(self.table.current_row())
        self.changed.emit()

    def _row_chosen(self, chosen: ConfigRow | None) -> None:
        for part in (self._editor, self.reset):
            part.setEnabled(chosen is not None and not chosen.fixed)
        self.value.setProperty("state", "")
        self._key.setText(chosen.key if chosen is not None else "")
        if chosen is None:
            self._say("", "")
            return
        if chosen.choices:
            self.choice.clear()
            self.choice.addItems(list(chosen.choices))
            self.choice.setCurrentText(chosen.text)
            self.choice.setAccessibleName(chosen.key)
            self._editor.setCurrentWidget(self.choice)
        else:
            self.value.setText(chosen.text)
            self.value.setAccessibleName(chosen.key)
            self._editor.setCurrentWidget(self.value)
        fixed = tr("a lab store keeps its files below its own folder, in the default form")
        self._say("", fixed if chosen.fixed else _range_of(chosen) + f" · {chosen.meaning}")

    def set_value(self, key: str, text: str) -> bool:
        """Set the value ``key``; return False if it is not permitted, and show why."""
        try:
            self.config = changed(self.config, key, text)
        except UsageError as error:
            self._say("error", error.what)
            return False
        self._refresh()
        return True

    def _apply_input(self) -> None:
        chosen = self.table.current_row()
        if chosen is None:
            return
        text = self.choice.currentText() if chosen.choices else self.value.text()
        try:
            self.config = changed(self.config, chosen.key, text)
        except UsageError as error:
            self._say("error", error.what)
            self.value.setProperty("state", "error")
        else:
            self._say("ok" if text.strip() != chosen.default else "", _range_of(chosen))
            self.value.setProperty("state", "")
            self._refresh()
        self.value.style().unpolish(self.value)
        self.value.style().polish(self.value)
        self.changed.emit()

    def _refresh(self) -> None:
        """Update the rows; selection and input stay."""
        selected_row = self.table.currentIndex().row()
        self.table.blockSignals(True)
        self.table.set_rows(list(config_rows(self.config, self.search.text())))
        if selected_row >= 0:
            self.table.go_to_row(selected_row)
        self.table.blockSignals(False)
        self.changed.emit()

    def _reset_value(self) -> None:
        chosen = self.table.current_row()
        if chosen is not None and self.set_value(chosen.key, chosen.default):
            self._row_chosen(self.table.current_row())
            self.changed.emit()

    def _say(self, kind: str, remark: str) -> None:
        self._note_mark.set_kind(kind)
        self._note.set_role("error" if kind == "error" else "text3")
        self._note.setText(remark)
        self._note.setAccessibleName(remark)


class ValuesDialog(QDialog):
    """Emits ``valuesAccepted(MessageStoreConfig)`` when the values are accepted."""

    valuesAccepted = Signal(object)

    def __init__(self, parent: QWidget, name: str, title: str, config: MessageStoreConfig) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setWindowTitle(title)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.editor = ValuesEditor(name, config)
        self._summary = ElidedLine("", 12, "text2")
        self.agree = Button(tr("Use these values"), "primary")
        self.agree.setObjectName(f"{name}.deed")
        self.agree.clicked.connect(self._accept)
        cancel = Button(tr("Cancel"))
        cancel.setObjectName(f"{name}.cancel")
        cancel.clicked.connect(self.reject)
        box = QVBoxLayout(self)
        box.setContentsMargins(px(20), px(16), px(20), px(14))
        box.setSpacing(px(10))
        box.addWidget(Label(title, 18, "text", 600))
        box.addWidget(self.editor, 1)
        button_row = row(self._summary, None, cancel, self.agree, gap=8)
        button_row.box.setStretch(0, 1)
        box.addWidget(button_row)
        self.editor.changed.connect(self._show)
        self._show()
        self.resize(px(1120), px(560))

    def _show(self) -> None:
        self._summary.setText(values_words(self.editor.config))
        self.agree.setEnabled(not self.editor.wrong)

    def _accept(self) -> None:
        self.valuesAccepted.emit(self.editor.config)
        self.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Accept the values on Enter only while a button has the focus."""
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and not isinstance(self.focusWidget(), Button):
            event.accept()
            return
        super().keyPressEvent(event)


def values_words(config: MessageStoreConfig) -> str:
    """Describe how many values differ from RocketMQ's defaults, and which."""
    changed_rows = differences(config)
    if not changed_rows:
        return tr("RocketMQ's defaults")
    names = ", ".join(f"{changed_row.key}={changed_row.text}" for changed_row in changed_rows)
    summary = tr_plural(
        "{n} value differs from RocketMQ's defaults", "{n} values differ from RocketMQ's defaults", n=len(changed_rows)
    )
    return f"{summary}: {names}"
