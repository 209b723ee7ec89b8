"""Lag of a streaming query, from Spark's progress; and places in a log without a walk over the whole."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from handmade_stores import LOG_SIZE, HandmadeStore

from engine.pipeline.files import find_stores
from engine.pipeline.stream_offsets import Log, lag


def progress(done: object, latest: object) -> dict[str, object]:
    return {"sources": [{"endOffset": done, "latestOffset": latest}]}


THERE = {"/a": {"first": 0, "offset": 900}, "/b": {"first": 400, "offset": 500}}


def test_lag_is_the_number_of_bytes_that_were_not_delivered():
    assert lag(progress({"/a": {"offset": 600}, "/b": 500}, THERE)) == {"/a": 300, "/b": 0}


def test_a_log_that_was_never_read_is_behind_from_its_first_byte():
    assert lag(progress({}, THERE)) == {"/a": 900, "/b": 100}


def test_texts_and_listeners_tell_the_same():
    actual_progress = progress(json.dumps({"/a": {"offset": 600}}), json.dumps(THERE))
    assert (
        lag(json.dumps(actual_progress))
        == lag(SimpleNamespace(json=json.dumps(actual_progress)))
        == lag(actual_progress)
        == {"/a": 300, "/b": 100}
    )


def test_where_no_offsets_are_named_nothing_is_told():
    assert lag({"sources": [{"endOffset": None, "latestOffset": None}]}) == {}
    assert lag({}) == {}


@pytest.fixture
def small_store():
    store = HandmadeStore()
    for _ in range(120):
        store.put()
    return store


@pytest.fixture
def log(small_store, tmp_path):
    (place,) = find_stores([str(small_store.write(tmp_path / "store"))])
    return Log(place)


def test_the_first_unit_and_the_last_before_an_offset(small_store, log):
    assert (log.first, log.first_mark().offset, log.first_mark().time) == (0, 0, small_store.units[0].store_timestamp)
    for number in (1, 40, 119):
        results = log.last_before(small_store.units[number].offset)
        assert (results.offset, results.end) == (small_store.units[number - 1].offset, results.offset + results.size)
    assert log.last_before(0) is None


def test_the_first_unit_of_a_time(small_store, log):
    for number in (0, 33, 34, 119):
        unit = small_store.units[number]
        assert log.since(unit.store_timestamp, 0, small_store.end) == unit.offset
    assert log.since(small_store.time + 1, 0, small_store.end) == small_store.end
    assert log.since(0, small_store.units[50].offset, small_store.end) == small_store.units[50].offset


def test_a_unit_is_known_again_until_its_bytes_change_or_its_file_goes(small_store, log, tmp_path):
    mark = log.last_before(small_store.end)
    assert log.holds(mark)
    file = max((tmp_path / "store" / "commitlog").iterdir())
    data = bytearray(file.read_bytes())
    data[mark.offset - int(file.name) + 90] ^= 1
    file.write_bytes(bytes(data))
    assert log.holds(mark) is False
    file.unlink()
    (place,) = find_stores([str(tmp_path / "store")])
    assert Log(place).holds(mark) is None


def test_a_cut_is_where_something_begins(small_store, log):
    unit = small_store.units[20]
    assert log.cut(unit.offset - 5, small_store.end) == unit.offset
    assert log.cut(unit.offset, small_store.end) == unit.offset
    assert log.cut(LOG_SIZE, small_store.end) == LOG_SIZE
