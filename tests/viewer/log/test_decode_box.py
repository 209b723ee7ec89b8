"""The box in which the user says how the bodies of a topic are decoded, and what the Log shows then."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2
from handmade_stores import HandmadeStore
from panes import on_store, wait_until, wait_until_idle
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from engine.codec.message import Unit
from engine.decoding.rules import DecodingRule, rule_of, rule_record
from viewer.log.decode_box import DecodeBox
from viewer.log.pane import UnitsPane


@pytest.fixture
def store(tmp_path: Path) -> Path:
    made = HandmadeStore()
    for number in range(20):
        body = json.dumps({"customer": {"id": str(number % 4)}}).encode()
        made.put("Orders", body=body, tags="T", keys=f"K{number}")
    made.put("Other", body=b"\x00\x01\x02")
    return made.write(tmp_path / "store")


@pytest.mark.parametrize(
    "record",
    [
        {"topic": "Orders", "decoder": "json", "encoding": "GB18030", "unpack": "gzip", "skip": 5},
        {"topic": "Ord*", "tag": "T", "properties": {"a": "b"}, "decoder": "text"},
        {"topic": "O", "decoder": "protobuf", "descriptorSet": "/x/shop.desc", "messageType": "shop.Order"},
        {"topic": "O", "decoder": "avro", "schema": "/x/order.avsc"},
        {"topic": "O", "decoder": "own", "name": "pairs"},
    ],
)
def test_a_rule_is_the_same_after_it_was_shown(qtbot, record):
    box = DecodeBox(None, "O", rule_of(record))  # type: ignore[arg-type]
    qtbot.addWidget(box)
    assert rule_record(box.rule()) == record


def test_only_the_options_of_the_decoder_are_shown(qtbot):
    box = DecodeBox(None, "O", None)  # type: ignore[arg-type]
    qtbot.addWidget(box)
    box.show()
    shown = {}
    for name in ("json", "msgpack", "protobuf", "own"):
        box.decoder.setCurrentIndex(box.decoder.findData(name))
        shown[name] = (box.encoding.isVisible(), box.file.isVisible(), box.name.isVisible())
    assert shown == {
        "json": (True, False, False),
        "msgpack": (False, False, False),
        "protobuf": (False, True, True),
        "own": (False, False, True),
    }


def test_a_mistake_keeps_the_box_open_with_its_reason(qtbot):
    box = DecodeBox(None, "O", None)  # type: ignore[arg-type]
    qtbot.addWidget(box)
    box.skip.setText("five")
    rules = []
    box.ruleChosen.connect(rules.append)
    box.findChild(QWidget, "decode.keep").click()
    assert not rules
    assert "skip of a rule: expected a number of bytes" in box.preview.toPlainText()


def _box(pane: UnitsPane) -> DecodeBox | None:
    return pane.window().findChild(DecodeBox)


def _summary(pane: UnitsPane) -> str:
    current = pane.unit.current
    return current.body.summary if current is not None and current.body is not None else ""


def test_bodies_are_decoded_by_keyboard_and_their_fields_filter_and_are_columns(qapp, store):
    async def drive(pane: UnitsPane, session) -> None:
        saved = []
        session.decodingSaveRequested.connect(saved.append)
        await wait_until(lambda: pane.unit.current is not None and pane.unit.current.decoded, "a message is shown")
        pane.commands()["body.decode"]()
        await wait_until(
            lambda: (box := _box(pane)) is not None and "customer" in box.preview.toPlainText(), "a preview"
        )
        box = _box(pane)
        assert box is not None
        assert box.hint.text() == "Suggested: a body is valid JSON."
        QTest.keyClick(box.decoder, Qt.Key.Key_Return)
        await wait_until(lambda: pane.unit.current is not None and pane.unit.current.body is not None, "it is decoded")
        assert saved == [(DecodingRule("Orders", "json"),)]
        line = pane.unit.current.body.lines[0].lines[0]
        assert (line.name, line.value) == ("body.customer.id", "0")
        assert pane.unit.detail.choose_field("body.customer.id")
        pane.unit.columnRequested.emit("body.customer.id")
        await wait_until_idle(session.jobs)
        rows = pane.table.table.rows
        assert [dict(row.extra).get("body.customer.id") for row in rows[:4]] == ["0", "1", "2", "3"]
        assert dict(rows[20].extra)["body.customer.id"] is None
        QTest.keyClicks(pane.filter.field, 'body.customer.id = "3"')
        QTest.keyClick(pane.filter.field, Qt.Key.Key_Return)
        await wait_until(lambda: pane.model.filter.complete, "the filter has run")
        assert pane.table.total_rows() == 5
        assert "body.customer.id" in list(pane.tools.known_values("body."))

    on_store(qapp, UnitsPane, store, drive)


def test_a_filter_on_fields_of_bodies_without_a_rule_says_what_to_do(qapp, store):
    async def drive(pane: UnitsPane, session) -> None:
        messages: list[str] = []
        pane.statusMessage.connect(messages.append)
        pane.filter.apply("body.customer.id = 3")
        await wait_until(lambda: any("choose first how bodies are decoded" in text for text in messages), "it says so")

    on_store(qapp, UnitsPane, store, drive)


def test_other_rules_decode_the_shown_message_again(qapp, store):
    async def drive(pane: UnitsPane, session) -> None:
        session.set_decoding_rules([DecodingRule("Orders", "text")])
        await wait_until(lambda: _summary(pane) != "", "it is text")
        assert _summary(pane) == "Text"
        session.set_decoding_rules([DecodingRule("Orders", "cbor")])
        await wait_until(lambda: _summary(pane) == "not decoded", "it fails")
        pane.commands()["body.decode"]()
        await wait_until(lambda: _box(pane) is not None, "the box is open")
        _box(pane).findChild(QWidget, "decode.remove").click()
        assert session.decoding_rules == ()

    on_store(qapp, UnitsPane, store, drive)


def test_the_names_in_a_descriptor_set_are_offered(qapp, store, tmp_path):
    files = descriptor_pb2.FileDescriptorSet()
    files.file.add(name="a.proto", package="shop", syntax="proto3").message_type.add(name="Order")
    (tmp_path / "a.desc").write_bytes(files.SerializeToString())

    async def drive(pane: UnitsPane, session) -> None:
        await wait_until(lambda: pane.unit.current is not None and pane.unit.current.decoded, "a message is shown")
        pane.commands()["body.decode"]()
        await wait_until_idle(session.jobs)
        box = _box(pane)
        box.decoder.setCurrentIndex(box.decoder.findData("protobuf"))
        box.file.setText(str(tmp_path / "a.desc"))
        await wait_until(lambda: box.name.findText("shop.Order") >= 0, "the name is offered")
        box.reject()

    on_store(qapp, UnitsPane, store, drive)


def test_the_box_opens_for_a_message_of_another_view_once_it_is_read(qapp, store):
    async def drive(pane: UnitsPane, session) -> None:
        await wait_until(lambda: pane.unit.current is not None, "a message is shown")
        offset = [unit.offset for unit in session.snapshot.units() if isinstance(unit, Unit)][-1]
        session.wished = offset, "body.decode"
        pane.go_to(offset)
        await wait_until(lambda: _box(pane) is not None, "the box is open")
        assert _box(pane).topic.text() == "Other"
        assert pane.unit.current.row.offset == offset
        _box(pane).reject()

    on_store(qapp, UnitsPane, store, drive)
