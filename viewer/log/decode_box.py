"""The box that says how the bodies of a topic are decoded; the result for the chosen message is shown at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QDialog, QFileDialog, QFormLayout, QPlainTextEdit, QVBoxLayout, QWidget
from shiboken6 import isValid

from engine.decoding.decoders import DECODERS
from engine.decoding.rules import PACKINGS, DecodingRule, rule_of, topic_pattern, with_rule, without_topic
from engine.errors import StoreError
from viewer.look.assets import tr
from viewer.look.engine_words import engine_words
from viewer.look.formats import plain
from viewer.look.theme import mono, px
from viewer.pane.body_text import CHARSETS
from viewer.widgets.basics import Button, Field, Label
from viewer.widgets.boxes import row
from viewer.widgets.choices import ChoiceField

if TYPE_CHECKING:
    from engine.codec.message import Unit
    from viewer.runtime.store_session import StoreSession

PREVIEW_DELAY_MS = 150
MAX_PREVIEW_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True)
class Preview:
    """The chosen message decoded by a rule; ``names`` are offered for the option that takes one of them."""

    text: str
    is_error: bool = False
    names: tuple[str, ...] = ()


class DecodeBox(QDialog):
    """Asks for the decoder of a topic's bodies and its options.

    Emits ``ruleChosen(rule)`` on the button, ``removed()`` on "Do not decode", ``previewRequested(rule)`` after each
    change.
    """

    ruleChosen = Signal(object)
    removed = Signal()
    previewRequested = Signal(object)

    def __init__(self, parent: QWidget, topic: str, rule: DecodingRule | None) -> None:
        super().__init__(parent)
        self.setObjectName("decode.box")
        self.setWindowTitle(tr("Decode bodies"))
        self.setAccessibleName(tr("Decode bodies"))
        self.setMinimumWidth(px(560))
        self._topic = topic
        shown = rule if rule is not None else DecodingRule(topic_pattern(topic), "json")
        self.topic = self._field("topic", tr("Topic"), shown.topic)
        self.tag = self._field("tag", tr("Tag"), shown.tag)
        self._properties = shown.properties
        self.decoder = ChoiceField()
        for decoder in DECODERS.values():
            self.decoder.addItem(tr(decoder.title), decoder.name)
        self.encoding = self._choice("encoding", tr("Encoding"), CHARSETS, shown.option("encoding"))
        self.unpack = self._choice("unpack", tr("Compressed within"), PACKINGS, shown.unpack)
        self.skip = self._field("skip", tr("Bytes to skip"), str(shown.skip))
        self.file = self._field("file", tr("File"), shown.option("descriptorSet") or shown.option("schema"))
        self.name = ChoiceField()
        self.name.setEditable(True)
        self.name.setCurrentText(shown.option("messageType") or shown.option("name"))
        for widget, part, title in ((self.decoder, "decoder", tr("Decoder")), (self.name, "name", tr("Name"))):
            widget.setObjectName(f"decode.{part}")
            widget.setAccessibleName(title)
        self._file_row = row(self.file, self._browse_button(), gap=8)
        self._labels: dict[str, Label] = {}
        self.preview = QPlainTextEdit()
        self.preview.setObjectName("decode.preview")
        self.preview.setAccessibleName(tr("This message"))
        self.preview.setReadOnly(True)
        self.preview.setFont(mono(12))
        self.preview.setTabChangesFocus(True)
        self.preview.setFixedHeight(px(150))
        self.hint = Label("", 12, "text3")
        self.hint.setWordWrap(True)
        self.hint.setObjectName("decode.hint")
        self._build(exists=rule is not None)
        self.decoder.setCurrentIndex(max(self.decoder.findData(shown.decoder), 0))
        self._timer = QTimer(self, interval=PREVIEW_DELAY_MS, singleShot=True)
        self._timer.timeout.connect(self._ask_preview)
        self._connect()
        self._show_options()
        self._timer.start(0)

    def _field(self, part: str, title: str, text: str) -> Field:
        field = Field(title)
        field.setObjectName(f"decode.{part}")
        field.setText(text)
        return field

    def _choice(self, part: str, title: str, values: Sequence[str], shown: str) -> ChoiceField:
        choice = ChoiceField()
        choice.setObjectName(f"decode.{part}")
        choice.setAccessibleName(title)
        choice.addItem(tr("none") if part == "unpack" else "UTF-8", "")
        for value in values:
            if value != "UTF-8":
                choice.addItem(value, value)
        if shown and choice.findData(shown) < 0:
            choice.addItem(shown, shown)
        choice.setCurrentIndex(max(choice.findData(shown), 0))
        return choice

    def _browse_button(self) -> Button:
        button = Button(tr("Choose…"))
        button.setObjectName("decode.browse")
        button.clicked.connect(self._ask_file)
        return button

    def _build(self, *, exists: bool) -> None:
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(20), px(16), px(20), px(16))
        layout.setSpacing(px(10))
        form = self._form = QFormLayout()
        form.setHorizontalSpacing(px(12))
        form.setVerticalSpacing(px(8))
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for part, title, widget in (
            ("topic", tr("Topic"), self.topic),
            ("tag", tr("Tag"), self.tag),
            ("decoder", tr("Decoder"), self.decoder),
            ("encoding", tr("Encoding"), self.encoding),
            ("file", tr("File"), self._file_row),
            ("name", tr("Name"), self.name),
            ("unpack", tr("Compressed within"), self.unpack),
            ("skip", tr("Bytes to skip"), self.skip),
        ):
            label = self._labels[part] = Label(title, 12, "text2")
            form.addRow(label, widget)
        layout.addLayout(form)
        layout.addWidget(self.hint)
        layout.addWidget(Label(tr("This message"), 12, "text3"))
        layout.addWidget(self.preview)
        keep = Button(tr("Decode"), "primary")
        keep.setObjectName("decode.keep")
        keep.setDefault(True)
        keep.clicked.connect(self._keep)
        cancel = Button(tr("Cancel"))
        cancel.clicked.connect(self.reject)
        remove = Button(tr("Do not decode"), "danger")
        remove.setObjectName("decode.remove")
        remove.setVisible(exists)
        remove.clicked.connect(lambda: (self.removed.emit(), self.accept()))
        layout.addWidget(row(remove, None, cancel, keep, gap=8))

    def _connect(self) -> None:
        self.decoder.currentIndexChanged.connect(self._show_options)
        for choice in (self.decoder, self.encoding, self.unpack):
            choice.currentIndexChanged.connect(lambda _index: self._timer.start())
        for field in (self.topic, self.tag, self.skip, self.file):
            field.textChanged.connect(lambda _text: self._timer.start())
        self.name.currentTextChanged.connect(lambda _text: self._timer.start())

    def _show_options(self) -> None:
        decoder = self.decoder.currentData()
        self._form.setRowVisible(self._file_row, decoder in ("protobuf", "avro"))
        self._form.setRowVisible(self.name, decoder in ("protobuf", "own"))
        self._form.setRowVisible(self.encoding, decoder in ("json", "text"))
        self._labels["file"].setText(tr("Descriptor set") if decoder == "protobuf" else tr("Schema"))
        self._labels["name"].setText(tr("Message type") if decoder == "protobuf" else tr("Name"))
        self.adjustSize()

    def offer(self, rule: DecodingRule, why: str) -> None:
        """Choose what is likely for a topic without a rule, and say why. Nothing is decoded by it before the button."""
        self.hint.setText(tr("Suggested: {why}.", why=why))
        self.decoder.setCurrentIndex(max(self.decoder.findData(rule.decoder), 0))
        self.unpack.setCurrentIndex(max(self.unpack.findData(rule.unpack), 0))

    def rule(self) -> DecodingRule:
        """Return the rule as it is entered. Raises :class:`UsageError`."""
        decoder = str(self.decoder.currentData())
        record: dict[str, Any] = {
            "topic": self.topic.text().strip(),
            "tag": self.tag.text().strip(),
            "properties": dict(self._properties),
            "decoder": decoder,
            "unpack": str(self.unpack.currentData()),
        }
        skip = self.skip.text().strip() or "0"
        record["skip"] = int(skip) if skip.isdecimal() else skip
        if decoder in ("json", "text"):
            record["encoding"] = str(self.encoding.currentData())
        if decoder == "protobuf":
            record |= {"descriptorSet": self.file.text().strip(), "messageType": self.name.currentText().strip()}
        if decoder == "avro":
            record["schema"] = self.file.text().strip()
        if decoder == "own":
            record["name"] = self.name.currentText().strip()
        return rule_of(record)

    def show_preview(self, preview: Preview) -> None:
        """Show what the rule makes of the chosen message."""
        self.preview.setPlainText(preview.text)
        self.preview.setProperty("state", "error" if preview.is_error else "")
        if preview.names and [self.name.itemText(n) for n in range(self.name.count())] != list(preview.names):
            text = self.name.currentText()
            self.name.blockSignals(True)
            self.name.clear()
            self.name.addItems(list(preview.names))
            self.name.setCurrentText(text)
            self.name.blockSignals(False)

    def _ask_preview(self) -> None:
        try:
            self.previewRequested.emit(self.rule())
        except StoreError as error:
            self.show_preview(Preview(engine_words(error.what), is_error=True))

    def _ask_file(self) -> None:
        dialog = QFileDialog(self, self._labels["file"].text(), self.file.text())
        dialog.setObjectName("decode.fileDialog")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self.file.setText)
        dialog.open()

    def _keep(self) -> None:
        try:
            rule = self.rule()
        except StoreError as error:
            self.show_preview(Preview(engine_words(error.what), is_error=True))
            return
        self.ruleChosen.emit(rule)
        self.accept()


def preview_of(rule: DecodingRule, unit: Unit | None) -> Preview:
    """Return what ``rule`` makes of ``unit``; may take a second."""
    import json

    from engine.decoding.bodies import BodyDecoders

    names: tuple[str, ...] = ()
    try:
        if rule.decoder == "protobuf" and rule.option("descriptorSet"):
            from engine.decoding.protobuf_bodies import message_types

            names = tuple(message_types(rule.option("descriptorSet")))
        if rule.decoder == "own":
            from engine.decoding.own_decoders import own_decoder_names

            names = tuple(own_decoder_names())
    except StoreError as error:
        return Preview(engine_words(str(error)), is_error=True)
    if unit is None:
        return Preview("", names=names)
    body = BodyDecoders(()).decode(rule, unit.body, unit.sys_flag)
    if body.error:
        return Preview(plain(engine_words(body.error)), is_error=True, names=names)
    text = json.dumps(body.value, ensure_ascii=False, indent=2)[:MAX_PREVIEW_CHARACTERS]
    return Preview(text, names=names)


def ask_decoding(parent: QWidget, session: StoreSession, topic: str, unit: Unit | None) -> DecodeBox:
    """Ask how the bodies of ``topic`` are decoded, and keep the rule; ``unit`` is one of its messages."""
    tag, properties = (unit.tags, unit.properties) if unit is not None else (None, {})
    rules = session.decoding_rules
    current = next((rule for rule in rules if rule.matches(topic, tag, properties)), None)
    box = DecodeBox(parent, topic, current)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)

    def keep(rule: DecodingRule) -> None:
        listed = tuple(item for item in session.decoding_rules if item != current)
        session.set_decoding_rules(with_rule(listed, rule))

    def remove() -> None:
        listed = tuple(item for item in session.decoding_rules if item != current)
        session.set_decoding_rules(without_topic(listed, topic))

    def show(rule: DecodingRule) -> None:
        session.jobs.read(lambda: preview_of(rule, unit), _if_open(box, box.show_preview), lambda _error: None)

    box.ruleChosen.connect(keep)
    box.removed.connect(remove)
    box.previewRequested.connect(show)
    if current is None and unit is not None:

        def offer(guessed: Any) -> None:
            if guessed is not None:
                box.offer(guessed.rule, engine_words(guessed.why))

        session.jobs.read(lambda: _guess(unit), _if_open(box, offer), lambda _error: None)
    box.open()
    box.decoder.setFocus()
    return box


def _guess(unit: Unit) -> Any:
    from engine.decoding.guess import guess

    return guess(unit.topic, unit.body, unit.sys_flag)


def _if_open(box: DecodeBox, use: Callable[[Any], None]) -> Callable[[Any], None]:
    return lambda value: use(value) if isValid(box) else None
