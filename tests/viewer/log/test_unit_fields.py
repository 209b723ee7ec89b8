from __future__ import annotations

import pytest

from engine.codec.flipped_bits import explain
from engine.codec.message import Unit, list_fields
from engine.codec.words import UnitNote, words
from engine.inspection import open_store
from viewer.log.columns import unit_kind
from viewer.log.rows import LogSource, UnitRow, unit_row
from viewer.log.unit_fields import DecodedUnit, describe, say
from viewer.runtime import places


def units(golden, name):
    with open_store(golden(name)) as store:
        return [(unit, store.log.read(unit.offset, unit.size)) for unit in store.units() if isinstance(unit, Unit)]


def decoded(unit, raw):
    wrong = explain(unit.body, unit.body_crc) if unit.crc == "bad" else None
    return DecodedUnit(unit, list_fields(raw), wrong, words=words(unit))


def lines(groups, title=None):
    results = {}
    for group in groups:
        if title is None or group.title == title:
            for line in group.lines:
                results[line.name or line.value] = line
    return results


@pytest.mark.parametrize(
    "name", ["clean-4.9.8", "clean-5.3.3", "broker-transactions", "broker-retries", "ipv6-and-unicode-5.3.3"]
)
def test_every_painted_field_has_its_line(golden, name):
    for unit, raw in units(golden, name)[:150]:
        actual_lines = lines(describe(decoded(unit, raw)))
        for part in list_fields(raw):
            plain = not part.name.startswith("properties.")
            assert not plain or part.name in actual_lines, part.name
        for key in unit.properties:
            assert f"properties.{key}" in actual_lines


def test_offsets_and_keys_are_links(golden):
    unit, raw = next(u for u in units(golden, "clean-5.3.3") if u[0].keys and u[0].prepared_transaction_offset == 0)
    actual_lines = lines(describe(decoded(unit, raw)))
    assert actual_lines["queueOffset"].place == places.queue(unit.topic, unit.queue_id, unit.queue_offset)
    near = (unit.offset, unit.store_timestamp)
    assert actual_lines["properties.UNIQ_KEY"].place == places.trace(unit.topic, unit.unique_key, *near)
    keys = actual_lines["properties.KEYS"]
    assert places.trace(unit.topic, unit.keys[0], *near) in {keys.place, *(line.place for line in keys.lines)}


def test_a_committed_message_leads_to_its_half_message(golden):
    unit, raw = next(u for u in units(golden, "broker-transactions") if u[0].transaction_type == 8)
    line = lines(describe(decoded(unit, raw)))["preparedTransactionOffset"]
    assert line.place == places.log(unit.prepared_transaction_offset)


def test_a_wrong_crc_is_shown_with_the_computed_one(golden):
    unit, raw = next(u for u in units(golden, "crash-flip-5.3.3") if u[0].crc == "bad")
    line = lines(describe(decoded(unit, raw)))["bodyCRC"]
    assert line.tone == "error"
    assert "bad" in line.note
    assert line.lines


def test_the_producer_of_a_unique_key_is_named_with_its_time(golden):
    for unit, raw in units(golden, "broker-orders")[:50]:
        line = lines(describe(decoded(unit, raw))).get("properties.UNIQ_KEY")
        if line is not None and line.lines:
            client, sample = line.lines
            assert client.value == unit.born_host.rpartition(":")[0]
            assert sample.value[:13] <= f"{9999}"
            return
    raise AssertionError("no unit with a unique key")


def test_the_history_of_a_unit_is_in_sentences(golden):
    half, raw = next(u for u in units(golden, "broker-transactions") if u[0].topic == "RMQ_SYS_TRANS_HALF_TOPIC")
    sentences = [line.value for line in lines(describe(decoded(half, raw)), "In words").values() if line.is_sentence]
    assert any(sentence.startswith("half message") for sentence in sentences)


def test_rows_keep_only_the_head_of_a_body(golden):
    kind = unit_kind(places.queue)
    for unit, _ in units(golden, "clean-5.3.3")[:200]:
        row = unit_row(unit)
        assert isinstance(row, UnitRow)
        assert len(row.preview) <= 160
        assert kind.as_record(row)["physicalOffset"] == unit.offset
        assert kind.columns[5].jump(row) == places.queue(unit.topic, unit.queue_id, unit.queue_offset)


def test_a_log_without_files_is_an_empty_table(tmp_path):
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "config").mkdir()
    with open_store(tmp_path) as store:
        page = LogSource(store.log).read(0, 10, 10)
    assert (page.rows, page.is_first, page.is_last) == ([], True, True)


def test_sentences_show_numbers_with_separators_and_absent_facts_as_such():
    assert say(UnitNote("checked", {"checks": 15_000})) == "its producer was asked 15,000 times"
    assert (
        say(UnitNote("op", {"count": 2, "offsets": [1234, 5]}))
        == "answers for 2 half messages, by half-queue offset: 1,234, 5"
    )
    assert "?" in say(UnitNote("retryTopic", {"group": None}))
