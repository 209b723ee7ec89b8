"""Many messages in one call: singly, together or as columns, the bytes and the answers are the same (spec 2.8).

What the log keeps of a topic for those who put.

Whole units stored again, many at once, lie as if they had been stored one by one.
"""

from __future__ import annotations

import errno
import random
from array import array
from pathlib import Path

import numpy as np
import pytest
from columns_of import columns_of
from hypothesis import given
from hypothesis import strategies as st
from put_logs import PutLog
from raw_units import raw_unit, with_property_crc

from engine.codec import properties
from engine.codec.encode import Message
from engine.codec.message_columns import MessageColumns
from engine.errors import StoreError, UsageError
from engine.mapped.mapped_file import MappedFile
from engine.mapped.mapped_file_queue import MappedFileQueue
from engine.store.put import columns as module
from engine.store.put.columns import Topic, append_replicated, append_units
from engine.store.put.message import PutMessageStatus

Status = PutMessageStatus


plain = st.characters(exclude_categories=["Cs"], exclude_characters="\x01\x02")
simple = st.builds(
    Message,
    st.sampled_from(["A", "B"]),
    st.binary(max_size=200),
    st.sampled_from([0, 1, 9, 70_000]),
    st.fixed_dictionaries({"UNIQ_KEY": st.text(plain, max_size=9), "TAGS": st.just("a")}),
    flag=st.integers(-5, 5),
    sys_flag=st.sampled_from([0, 1, 4, 8, 12]),
    born_timestamp=st.integers(0, 1 << 40),
    born_host=st.sampled_from(["10.0.0.1:1", "[::1]:2"]),
)


@given(st.lists(simple, min_size=8, max_size=30), st.integers(300, 1500), st.sampled_from([150, 1 << 20]))
def test_columns_make_the_bytes_of_single_puts(tmp_path_factory, many, file_size, longest) -> None:
    folder = tmp_path_factory.mktemp("columns")
    config = {"max_message_size": longest}
    one, all_at_once = PutLog(folder / "one", file_size, **config), PutLog(folder / "all", file_size, **config)
    columns = PutLog(folder / "columns", file_size, **config)
    singly = [one.log.put_message(message) for message in many]
    together = all_at_once.log.put_messages(many)
    what = columns_of(many)
    in_columns = columns.log.append_columns(what)
    assert one.bytes() == all_at_once.bytes() == columns.bytes()
    expected = [(result.status, result.append) for result in singly]
    assert [(result.status, result.append) for result in together] == expected
    assert [(result.status, result.append) for result in in_columns] == expected
    assert in_columns.end_offset == max((r.append.end_offset for r in singly if r.ok), default=0)
    assert in_columns.ok == all(result.ok for result in singly)


def test_columns_with_property_crcs_and_refusals(tmp_path) -> None:
    put = PutLog(tmp_path, enabled_append_prop_crc=True)
    what = columns_of([Message("T", b"x", 0, {"a": "b"})] * 9)
    assert [result.append.queue_offset for result in put.log.append_columns(what)] == list(range(9))
    assert all(properties.verify_crc(put.files.read(unit.offset, unit.size)) for unit in put.units())
    what.topics = ["../T"]
    assert {result.status for result in put.log.append_columns(what)} == {Status.MESSAGE_ILLEGAL}
    what.topics, what.topic_id = ["T"], [1] * 9
    with pytest.raises(ValueError, match="topic_id"):
        put.log.append_columns(what)
    put.log.refuses = Status.SERVICE_NOT_AVAILABLE
    what.topic_id = None
    refused = put.log.append_columns(what)
    assert ({result.status for result in refused}, refused.ok, refused.end_offset) == ({put.log.refuses}, False, 0)


def test_columns_on_a_disk_that_fills_up(tmp_path, monkeypatch) -> None:
    put = PutLog(tmp_path)
    many = [Message("T", b"x", 0, {"a": "b"})] * 9

    def full(*_arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    put.log.put_message(many[0])
    with monkeypatch.context() as patch:
        patch.setattr(MappedFile, "target", full)
        patch.setattr(MappedFile, "append", full)
        refused = put.log.put_messages(many)
        assert {result.status for result in refused} == {Status.UNKNOWN_ERROR}
        assert (refused.ok, put.log.lock_time) == (False, 0)
    assert put.log.put_messages(many)[0].append.queue_offset == 1


def test_tables_of_places_that_grow_under_a_run(tmp_path) -> None:
    """A topic that stands twice in the table and queues beyond the table's first room: no row looks at an old table."""
    ids, queues = [0, 1, 2, 1, 0, 1, 2, 0] * 5, [*range(40)]
    topics = ["A", "A", "B"]
    columns, one = PutLog(tmp_path / "columns", 1 << 16), PutLog(tmp_path / "one", 1 << 16)
    rows = len(ids)
    what = MessageColumns(
        topics, b"x" * rows, array("i", [1] * rows), queue_id=array("i", queues), topic_id=array("i", ids)
    )
    assert columns.log.append_columns(what).ok
    assert columns.log.append_columns(what).ok
    for _ in range(2):
        for topic, queue in zip(ids, queues, strict=True):
            assert one.log.put_message(Message(topics[topic], b"x", queue)).ok
    assert columns.bytes() == one.bytes()
    assert columns.offsets.offsets() == one.offsets.offsets()


@pytest.mark.parametrize(("length", "magic"), [(6, 0xDAA320A7), (127, 0xDAA320A7), (128, 0xDAA320AB)])
def test_a_legal_topic_has_its_field_and_the_same_for_columns(length, magic):
    topic = Topic("T" * length, legal=True, auto_version=True)
    assert (topic.legal, topic.magic & 0xFFFFFFFF, topic.places) == (True, magic, {})
    assert topic.raw.endswith(b"T" * length)
    assert topic.field is not None
    assert topic.fixed == topic.field.fixed


@pytest.mark.parametrize(("name", "legal"), [("Orders", False), ("T" * 70_000, True)])
def test_a_topic_that_may_not_be_stored_or_does_not_fit_a_field_is_not_legal(name, legal):
    topic = Topic(name, legal=legal, auto_version=True)
    assert (topic.legal, topic.raw, topic.fixed) == (False, b"", 0)


def units(seed, count, largest=900):
    pick = random.Random(seed)
    return [raw_unit(pick.randrange(1 << 40), body=pick.randbytes(pick.randrange(largest))) for _ in range(count)]


def together(log, listed):
    data = np.frombuffer(b"".join(listed), np.uint8)
    stored = np.full(len(listed), 1_700_000_000_123)
    return append_units(log, data, np.array([len(unit) for unit in listed]), stored)


@pytest.mark.parametrize("file_size", [1100, 4096, 1 << 16])
@pytest.mark.parametrize("seed", range(5))
def test_files_are_those_of_single_appends(tmp_path, seed, file_size):
    one, many = PutLog(tmp_path / "one", file_size), PutLog(tmp_path / "many", file_size)
    listed = units(seed, 120)
    for unit in listed:
        one.log.append_raw(unit)
    pick, row = random.Random(seed), 0
    while row < len(listed):
        count = pick.randrange(1, 50)
        assert together(many.log, listed[row : row + count]) == many.log.wrote
        row += count
    assert many.bytes() == one.bytes()
    assert [unit.physical_offset for unit in many.units()] == [unit.offset for unit in many.units()]
    assert [unit.body for unit in many.units()] == [unit.body for unit in one.units()]
    assert many.files.last.store_timestamp == 1_700_000_000_123


def test_a_unit_longer_than_a_file_is_refused_before_anything_is_written(tmp_path):
    log = PutLog(tmp_path, 1000)
    with pytest.raises(UsageError, match="does not fit into files of 1,000"):
        together(log.log, [raw_unit(), raw_unit(body=bytes(2000))])
    assert log.bytes() == []


def test_without_a_file_nothing_can_be_stored(tmp_path, monkeypatch):
    log = PutLog(tmp_path)
    monkeypatch.setattr(MappedFileQueue, "last_or_create", lambda *_: None)
    with pytest.raises(UsageError, match="no new file"):
        together(log.log, [raw_unit()])


def test_units_with_a_property_crc_are_told():
    plain, sealed = raw_unit(), with_property_crc(raw_unit())
    data = np.frombuffer(plain + sealed + plain, np.uint8)
    sizes = np.array([len(plain), len(sealed), len(plain)])
    assert module.with_property_crc(data, sizes).tolist() == [False, True, False]


FILE = 4096


def filled(folder: Path) -> list[bytes]:
    log = PutLog(folder, FILE)
    for number in range(40):
        assert log.log.put_message(Message("Orders", b"%d" % number * 99, 0)).ok
    return log.bytes()


def test_files_are_those_of_the_master_wherever_its_log_begins(tmp_path: Path) -> None:
    master = filled(tmp_path / "a")
    for first in (0, 1):
        copy = PutLog(tmp_path / f"b{first}", FILE)
        end = append_replicated(copy.log, first * FILE, b"".join(master[first:]), 7)
        assert (end, copy.bytes()) == (first * FILE + sum(map(len, master[first:])), master[first:])
        assert copy.files.files[-1].store_timestamp == 7


def test_a_gap_and_a_repetition_are_refused(tmp_path: Path) -> None:
    master = filled(tmp_path / "a")
    copy = PutLog(tmp_path / "b", FILE)
    append_replicated(copy.log, 0, master[0], 0)
    for offset in (0, FILE * 2):
        with pytest.raises(StoreError, match="expected bytes of offset"):
            append_replicated(copy.log, offset, master[1], 0)
    assert copy.bytes()[0] == master[0]
