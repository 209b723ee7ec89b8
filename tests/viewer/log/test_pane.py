"""The log view on real stores: rows, linked selection, filter, damage."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from pathlib import Path

import pytest
from panes import on_store, wait_until_idle
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from engine.codec.message import Unit
from engine.inspection import open_store
from viewer.log.pane import UnitsPane
from viewer.log.rows import UnitRow
from viewer.runtime import places
from viewer.widgets.record_table import ValueRole

BAD = 1_199_052
"""Where crash-flip-5.3.3 has the unit with a flipped byte."""


@pytest.fixture
def on(qapp, golden):
    """``on(name, drive)``: the pane on a golden store."""
    return lambda name, drive: on_store(qapp, UnitsPane, golden(name), drive)


async def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        await asyncio.sleep(0.02)
        assert time.monotonic() < end, "it did not come to pass"


def value(table, number, key):
    column = next(n for n, c in enumerate(table.kind.columns) if c.key == key)
    return table.model().data(table.model().index(number, column), ValueRole)


def field_value(pane, name):
    index = pane.unit.detail._find(name)
    return index.siblingAtColumn(1).data() if index is not None else None


def test_the_log_opens_with_its_first_unit_chosen_in_all_three_panes(on):
    async def drive(pane, _session):
        assert pane.objectName() is not None
        assert value(pane.table, 0, "physicalOffset") == 0
        assert pane.table.current_row().offset == 0
        assert field_value(pane, "physicalOffset") == "0"
        assert pane.unit.hex.origin == 0
        assert pane.table.total_rows() >= pane.table.model().rowCount() > 50

    on("clean-5.3.3", drive)


def test_row_field_and_bytes_are_selected_together(on):
    async def drive(pane, session):
        emitted = []
        pane.placeMoved.connect(emitted.append)
        pane.show_place(places.log(BAD, "bodyCRC"))
        await wait_until_idle(session.jobs)
        assert pane.table.current_row().offset == BAD
        assert session.selection == BAD
        assert emitted[-1] == places.log(BAD)
        assert pane.unit.detail.chosen_field == "bodyCRC"
        assert pane.unit.hex.selection() == (BAD + 8, BAD + 12)
        assert "bodyCRC" in pane.unit.bytes_head.note.text()
        pane.unit.hex._cursor = BAD + 13
        pane.unit.hex._choose_field_at_cursor()
        assert pane.unit.detail.chosen_field == "queueId"
        pane.unit.detail.setCurrentIndex(pane.unit.detail._find("storeTimestamp"))
        assert pane.unit.hex.chosen_field == "storeTimestamp"
        QTest.keyClick(pane.table, Qt.Key.Key_Down)
        await wait_until_idle(session.jobs)
        assert pane.unit.hex.origin == pane.table.current_row().offset > BAD
        assert pane.unit.detail.chosen_field == pane.unit.hex.chosen_field == "storeTimestamp"

    on("crash-flip-5.3.3", drive)


def test_a_wrong_crc_names_the_bits_that_explain_it(on):
    async def drive(pane, session):
        pane.show_place(places.log(BAD))
        await wait_until_idle(session.jobs)
        group = pane.unit.detail._find("bodyCRC")
        assert pane.unit.detail.model().rowCount(group) >= 1
        assert "byte 287 of the body" in pane.unit.detail.model().index(0, 1, group).data()

    on("crash-flip-5.3.3", drive)


def test_the_old_row_is_not_shown_as_the_next_one(on):
    async def drive(pane, session):
        await wait_until_idle(session.jobs)
        pane.table.choose_next(1)
        row = pane.table.current_row()
        assert field_value(pane, "physicalOffset") is None
        assert f"{row.offset:,}" in pane.unit.detail_head.note.text()
        for _ in range(30):
            pane.table.choose_next(1)
        await wait_until_idle(session.jobs)
        assert field_value(pane, "physicalOffset") == f"{pane.table.current_row().offset:,}"

    on("clean-5.3.3", drive)


def test_a_filter_shows_its_hits_and_can_be_removed(on):
    async def drive(pane, session):
        pane.show_place(places.log(BAD))
        await wait_until_idle(session.jobs)
        pane.filter.apply('topic = "orders" and queueOffset >= 750')
        await until(lambda: pane.model.filter.complete)
        await wait_until_idle(session.jobs)
        rows = [pane.model.log.row(item) for item in session.snapshot.log.walk() if hasattr(item, "topic")]
        expected = [r.offset for r in rows if r.topic == "orders" and r.queue_offset >= 750]
        assert pane.model.filter.source.offsets == expected
        assert pane.table.total_rows() == len(expected)
        assert pane.table.current_row().offset == expected[0]
        assert "complete" in pane.status()
        pane.filter.apply("")
        await wait_until_idle(session.jobs)
        assert pane.model.filter.source is None
        assert pane.table.current_row().offset == expected[0]

    on("crash-flip-5.3.3", drive)


def test_a_long_filter_is_stopped_with_a_message_and_continues(on, monkeypatch):
    monkeypatch.setattr("viewer.log.filter.MATCHES_PER_ROUND", 40)
    monkeypatch.setattr("viewer.log.filter.FIRST_BYTES", 0)

    async def drive(pane, session):
        pane.filter.apply('topic = "TopicA"')
        await until(lambda: not pane.model.filter.running)
        assert len(pane.model.filter.source.offsets) == 40
        assert pane.table.strip.state.kind == "cut"
        pane.table.strip.step()
        await until(lambda: not pane.model.filter.running)
        assert len(pane.model.filter.source.offsets) == 80
        assert sorted(set(pane.model.filter.source.offsets)) == pane.model.filter.source.offsets

    on("crash-flip-5.3.3", drive)


def test_a_filter_without_hits_offers_to_clear_it(on):
    async def drive(pane, session):
        pane.filter.apply("size > 4GiB")
        await until(lambda: pane.model.filter.complete)
        await wait_until_idle(session.jobs)
        assert pane.table.note.state.kind == "empty"
        assert pane.unit.current is None
        pane.table.note.step()
        await wait_until_idle(session.jobs)
        assert pane.table.note.state is None
        assert pane.table.current_row() is not None

    on("clean-5.3.3", drive)


def test_an_invalid_filter_keeps_the_last_rows(on):
    async def drive(pane, session):
        pane.filter.apply('topic = "orders"')
        await until(lambda: pane.model.filter.complete)
        count = pane.table.total_rows()
        pane.filter.set_text("sise > 3")
        pane.filter._edited("sise > 3")
        assert not pane.filter.apply()
        assert pane.table.strip.state.kind == "stale"
        assert pane.table.total_rows() == count

    on("crash-flip-5.3.3", drive)


def test_damage_is_a_row_that_leads_to_the_next_unit(qapp, golden, tmp_path):
    store = tmp_path / "store"
    shutil.copytree(golden("crash-flip-5.3.3"), store)
    file = next(p for p in store.rglob("commitlog/00000000000001048576"))
    with file.open("r+b") as raw:
        raw.seek(1_200_606 - 1_048_576)
        raw.write(b"\xff" * 2000)

    async def drive(pane, session):
        pane.show_place(places.log(1_200_700))
        await wait_until_idle(session.jobs)
        row = pane.table.current_row()
        assert (row.kind, row.offset, row.end) == ("damage", 1_200_606, 1_202_928)
        assert pane.unit.hex._shown.damage == ((1_200_606, 1_202_928),)
        assert pane.unit.detail_head.note.text().startswith("Damaged · was orders/0/757 and 3 more")
        pane.table.choose_next(1)
        await wait_until_idle(session.jobs)
        assert pane.table.current_row().offset == 1_202_928
        pane.next_problem(-1)
        await wait_until_idle(session.jobs)
        assert pane.table.current_row().offset == 1_200_606

    on_store(qapp, UnitsPane, store, drive)


def test_json_and_the_equal_command_are_copied(on):
    async def drive(pane, session):
        pane.show_place(places.log(BAD))
        await wait_until_idle(session.jobs)
        pane.commands()["copy.json"]()
        await wait_until_idle(session.jobs)
        record = json.loads(QGuiApplication.clipboard().text())
        assert (record["type"], record["physicalOffset"], record["crc"]) == ("unit", BAD, "bad")
        pane.commands()["copy.cli"]()
        command = QGuiApplication.clipboard().text()
        assert command.startswith("storescope units ")
        assert f"--from {BAD} --limit 1" in command

    on("crash-flip-5.3.3", drive)


def test_the_body_is_shown_as_text_json_and_unpacked(on):
    async def drive(pane, session):
        row = next(r for r in pane.table.table.rows if isinstance(r, UnitRow) and "Z" in r.marks)
        pane.show_place(places.log(row.offset))
        await wait_until_idle(session.jobs)
        for key in ("text", "json", "hex"):
            pane.unit.tabs.choose(key)
            await wait_until_idle(session.jobs)
            assert "→" in pane.unit.body._note.text()
        pane.unit.tabs.choose("text")
        assert pane.unit.body.text().startswith(row.preview[:40].decode())
        pane.unit.tabs.choose("bytes")
        assert pane.unit.hex.isVisible()

    on("crash-flip-5.3.3", drive)


def test_a_click_on_the_line_goes_there_and_frames_the_screen(on):
    async def drive(pane, session):
        await wait_until_idle(session.jobs)
        pane.line.offsetChosen.emit(800_000)
        await wait_until_idle(session.jobs)
        frame_start, frame_end = pane.line._frame
        assert frame_start <= 800_000 < frame_end
        assert pane.table.current_row().offset == 0 if pane.table.current_row() else True
        assert "TopicA" in pane.line.words_at(pane.line.width() / 2)
        assert pane.line.grab().width() == 1400

    on("crash-flip-5.3.3", drive)


@pytest.mark.full_form(keep=3)
@pytest.mark.parametrize(
    "name", ["batchcq-5.3.3", "ipv6-and-unicode-5.3.3", "broker-transactions", "broker-pop", "propcrc-5.3.3"]
)
def test_every_unit_of_a_store_is_decoded_and_shown(on, name):
    async def drive(pane, session):
        pane.table.first_row()
        offsets = [r.offset for r in pane.table.table.rows][:120]
        for offset in offsets[:: max(1, len(offsets) // 25)]:
            pane.show_place(places.log(offset))
            await wait_until_idle(session.jobs, quiet=1)
            assert pane.unit.current is not None
            assert pane.unit.current.problem == ""
            assert pane.unit.detail.model().rowCount() >= 1
        assert pane.grab().width() == 1400

    on(name, drive)


@pytest.fixture
def growing_store(golden, tmp_path):
    """Make a store whose newest 40 units are not written yet; return its folder, these units, and a function that
    writes them.
    """
    store = tmp_path / "store"
    shutil.copytree(golden("clean-5.3.3"), store)
    with open_store(store) as actual_store:
        ahead = [item for item in actual_store.units() if isinstance(item, Unit)][-40:]
        later = actual_store.log.read(ahead[0].offset, ahead[-1].end - ahead[0].offset)
        file = actual_store.log.sequence.find(ahead[0].offset)

    def write(data):
        with Path(file.path).open("r+b") as raw:
            raw.seek(ahead[0].offset - file.start_offset)
            raw.write(data)

    write(bytes(len(later)))
    return store, ahead, lambda: write(later)


def test_units_that_are_written_while_it_is_open_appear(qapp, growing_store):
    store, ahead, write_later = growing_store

    async def drive(pane, session):
        session.logGrown.connect(pane.refresh)
        pane.table.last_row()
        await wait_until_idle(session.jobs)
        assert (pane.table.current_row().kind, pane.table.current_row().offset) == ("zero", ahead[0].offset)
        write_later()
        session.follow(True)
        session.look(anyway=True)
        await wait_until_idle(session.jobs)
        assert pane.table.current_row().offset == ahead[-1].offset
        assert pane.table.table.rows[-1].kind == "zero"
        offsets = [row.offset for row in pane.table.table.rows]
        assert {unit.offset for unit in ahead} <= set(offsets)
        assert offsets == sorted(set(offsets))

    on_store(qapp, UnitsPane, store, drive)


def test_a_unit_written_after_the_end_was_read_can_be_opened(qapp, growing_store):
    """A request of a busy broker links to its unit. The log had been read to its end before the unit was written: the
    old end row was taken for the unit, and the message beside the table stayed that of the old end.
    """
    store, ahead, write_later = growing_store

    async def drive(pane, session):
        pane.table.last_row()
        await wait_until_idle(session.jobs)
        assert (pane.table.current_row().kind, pane.table.current_row().offset) == ("zero", ahead[0].offset)
        write_later()
        session.look(anyway=True)
        await until(lambda: pane.table.source.end == ahead[-1].end)
        pane.show_place(places.log(ahead[20].offset))
        await until(lambda: pane.table.current_row() is not None)
        await wait_until_idle(session.jobs)
        assert pane.table.current_row().offset == ahead[20].offset
        pane.table.last_row()
        await wait_until_idle(session.jobs)
        assert pane.table.current_row().offset == ahead[-1].end

    on_store(qapp, UnitsPane, store, drive)


def test_a_chosen_end_that_becomes_a_unit_is_decoded(qapp, growing_store):
    """The end of the log was chosen when a unit was written there. The table showed the unit, but the message beside it
    still said that nothing was written.
    """
    store, ahead, write_later = growing_store

    async def drive(pane, session):
        session.logGrown.connect(pane.refresh)
        pane.table.last_row()
        await wait_until_idle(session.jobs)
        write_later()
        session.look(anyway=True)
        await until(lambda: isinstance(pane.table.current_row(), UnitRow))
        await wait_until_idle(session.jobs)
        assert pane.table.current_row().offset == ahead[0].offset
        assert field_value(pane, "physicalOffset") == f"{ahead[0].offset:,}"

    on_store(qapp, UnitsPane, store, drive)


def test_background_counts_update_the_figures_without_replacing_messages(on):
    async def drive(pane, session):
        await wait_until_idle(session.jobs)
        emitted, grew = [], []
        pane.statusMessage.connect(emitted.append)
        pane.statusUpdated.connect(grew.append)
        pane._lined(pane.model.extent)
        await wait_until_idle(session.jobs)
        assert emitted == []
        assert grew[0].startswith("1")
        assert "of log" in grew[0]

    on("clean-5.3.3", drive)


def damaged(store, tmp_path):
    """Copy a golden store with a wrong unit length and two zeroed units; return it and the units."""
    path = tmp_path / "store"
    shutil.copytree(store, path)
    with open_store(path) as opened:
        units = [item for item in opened.log.items(0, 40) if isinstance(item, Unit) and item.keys]
        file = Path(opened.log.files[0].path)
    wrong, unit = units[3], units[9]
    data = bytearray(file.read_bytes())
    data[wrong.offset : wrong.offset + 4] = (217_728_000).to_bytes(4, "big")
    data[unit.offset : unit.end] = bytes(unit.size)
    file.write_bytes(data)
    return path, wrong, unit


def test_a_damaged_unit_is_salvaged_as_far_as_possible(qapp, golden, tmp_path):
    """An operator needs to know which message was lost, but the row showed a length and a reason, and the body was
    empty.
    """
    path, wrong, message = damaged(golden("broker-orders"), tmp_path)

    async def drive(pane, _session):
        pane.show_place(places.log(wrong.offset))
        await until(lambda: pane.unit.current is not None and pane.unit.current.row.offset == wrong.offset)
        row = pane.table.current_row()
        text = ", ".join((f"{wrong.topic}/{wrong.queue_id}/{wrong.queue_offset}", *wrong.keys))
        assert row.was == text, (row, pane.unit.current.row)
        assert pane.table.kind.look(row).words.startswith(f"Damaged · was {row.was} · length field says 217,728,000")
        assert field_value(pane, "totalSize").startswith("217,728,000")
        assert field_value(pane, "topic") == wrong.topic
        assert pane.unit.hex._shown.damage == ((wrong.offset, wrong.offset + 4),)
        pane.unit.tabs.choose("text")
        await until(lambda: pane.unit.body.text() != "")
        assert pane.unit.body.text() == wrong.body.decode()
        pane.show_place(places.log(message.offset))
        await until(lambda: pane.unit.current is not None and pane.unit.current.row.offset == message.offset)
        assert pane.table.current_row().was == f"{message.topic}/{message.queue_id}/{message.queue_offset}"
        await until(lambda: pane.unit.body.text() != wrong.body.decode())
        assert pane.unit.body.text() == "There is no body here that can be read."

    on_store(qapp, UnitsPane, path, drive)


def test_the_data_inspector_covers_no_byte_and_no_character(on):
    """If there is no room beside the bytes, it is below the tree."""

    async def drive(pane, _session):
        pane.unit.toggle_inspector()
        for width, aside in ((1400, True), (960, False), (1400, True)):
            pane.resize(width, 800)
            await asyncio.sleep(0.05)
            inspector, hex_view = pane.unit.inspector, pane.unit.hex
            assert inspector.isVisible()
            assert (inspector.parentWidget() is pane.unit._right) == aside
            assert not aside or hex_view.width() >= hex_view.full_width()
            assert pane.unit.detail.width() >= 200

    on("clean-5.3.3", drive)


def test_a_chosen_group_highlights_the_bytes_of_its_fields(on):
    """With Times, Hosts or Properties chosen, head and bytes still described the previously chosen field."""

    async def drive(pane, _session):
        detail, unit_hex = pane.unit.detail, pane.unit.hex
        pane.unit.choose_field("flag")
        assert pane.unit.bytes_head.note.text().startswith("flag · 4 B")
        group = detail._find("bornTimestamp").parent()
        detail.setCurrentIndex(group)
        assert unit_hex.chosen_field == ""
        assert unit_hex._shown.also_chosen == {"bornTimestamp", "storeTimestamp"}
        assert pane.unit.bytes_head.note.text() == "Times · 2 fields · 16 B"
        detail.setCurrentIndex(detail._items.index(0, 0, detail._find("properties.UNIQ_KEY")))
        assert unit_hex.chosen_field == "properties.UNIQ_KEY", "what it is made of is told of its bytes"
        assert not unit_hex._shown.also_chosen
        detail.setCurrentIndex(detail._find("offsetMsgId"))
        assert unit_hex.chosen_field == "", "it is made of two fields and has no bytes of its own"

    on("clean-5.3.3", drive)


def test_a_message_of_a_batch_has_its_own_bytes_keys_and_body(on):
    """A unit with fifteen messages was a row of control pictures. Its messages had no bytes, key or body, and Body as
    JSON showed the frames around them.
    """

    async def drive(pane, session):
        unit = next(item for item in session.snapshot.log.walk(0) if isinstance(item, Unit) and item.sys_flag & 0x80)
        pane.go_to(unit.offset)
        await wait_until_idle(session.jobs)
        row = pane.table.current_row()
        decoded = pane.unit.current.decoded
        member_1, member_2 = decoded.members[:2]
        assert row.preview == member_1.body[:160]
        line = pane.unit.detail._find("member.1")
        assert not pane.unit.detail.isExpanded(line)
        pane.unit.detail.setCurrentIndex(line)
        body = next(position for name, position, _ in decoded.parts if name == "body")
        start = unit.offset + body + member_2.position
        assert pane.unit.hex.selection() == (start, start + member_2.size)
        assert pane.unit.bytes_head.note.text().startswith(f"message 2 of the batch · {member_2.size:,} B")
        pane.unit.tabs.choose("text")
        await wait_until_idle(session.jobs)
        assert pane.unit.body.text() == member_2.body.decode()
        pane.unit.detail.setCurrentIndex(pane.unit.detail._find("bornTimestamp"))
        await wait_until_idle(session.jobs)
        shown = pane.unit.body.text()
        assert all(member.body.decode() in shown for member in decoded.members)
        assert "── message 1 of the batch" in shown

    on("batchcq-5.3.3", drive)


def test_a_unit_with_an_overwritten_end_is_salvaged(qapp, golden, tmp_path):
    """Header and 359 of 374 bytes of the body were visible in the hex view, but the detail said that the body is
    unknown, and the link to the queue entry was disabled.
    """
    store = Path(shutil.copytree(golden("broker-orders"), tmp_path / "store"))
    log = sorted((store / "commitlog").iterdir())[1]
    log.chmod(0o644)
    with open_store(store) as opened:
        units = [unit for unit in opened.log.walk(int(log.name) + 100_000) if isinstance(unit, Unit)]
    pages = ((unit, unit.offset // 4096 * 4096 + 4096) for unit in units)
    page = next(page for unit, page in pages if unit.offset + 150 < page < unit.offset + 88 + len(unit.body))
    with log.open("r+b") as file:
        file.seek(page - int(log.name))
        file.write(bytes(4096))

    async def drive(pane, session):
        pane.go_to(page)
        await wait_until_idle(session.jobs)
        loaded = pane.unit.current
        assert loaded.decoded is not None
        assert loaded.decoded.unit.offset < page
        assert field_value(pane, "physicalOffset") == f"{loaded.decoded.unit.offset:,}"
        pane.unit.tabs.choose("text")
        await wait_until_idle(session.jobs)
        assert pane.unit.body.text()
        assert "no body here" not in pane.unit.body.text()
        last_lost = len(loaded.lost) - 1
        pane.unit.tabs.choose("bytes")
        pane.unit.detail.setCurrentIndex(pane.unit.detail._find(f"lost.{last_lost}"))
        lost = loaded.lost[last_lost]
        assert pane.unit.hex.selection() == (lost.offset, lost.offset + lost.size)

    on_store(qapp, UnitsPane, store, drive)


def test_damage_that_is_shown_first_is_salvaged_too(qapp, golden, tmp_path):
    """A store opened at a damaged place named its messages only in the table. Detail and bytes kept the state from
    before the queues were read.
    """
    store = Path(shutil.copytree(golden("broker-orders"), tmp_path / "store"))
    log = sorted((store / "commitlog").iterdir())[0]
    log.chmod(0o644)
    with log.open("r+b") as file:
        file.seek(4)
        file.write(bytes(4))

    async def drive(pane, session):
        await wait_until_idle(session.jobs)
        await until(lambda: pane.unit.current is not None and pane.unit.current.lost)
        assert pane.table.current_row().offset == 0
        assert pane.unit.current.decoded is not None

    on_store(qapp, UnitsPane, store, drive)
