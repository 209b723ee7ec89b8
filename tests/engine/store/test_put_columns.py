"""Messages put as columns make the bytes of single puts."""

from __future__ import annotations

import errno
from array import array

import pytest
from columns_of import columns_of
from hypothesis import given
from hypothesis import strategies as st
from put_logs import PutLog

from engine.codec import properties
from engine.codec.encode import Message
from engine.codec.message_columns import MessageColumns
from engine.mapped.mapped_file import MappedFile
from engine.store.put_message import PutMessageStatus

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
    log, all_at_once = PutLog(folder / "one", file_size, **config), PutLog(folder / "all", file_size, **config)
    columns = PutLog(folder / "columns", file_size, **config)
    singly = [log.log.put_message(message) for message in many]
    together = all_at_once.log.put_messages(many)
    message_columns = columns_of(many)
    in_columns = columns.log.append_columns(message_columns)
    assert log.bytes() == all_at_once.bytes() == columns.bytes()
    expected = [(result.status, result.append) for result in singly]
    assert [(result.status, result.append) for result in together] == expected
    assert [(result.status, result.append) for result in in_columns] == expected
    assert in_columns.end_offset == max((r.append.end_offset for r in singly if r.ok), default=0)
    assert in_columns.ok == all(result.ok for result in singly)


def test_columns_with_property_crcs_and_refusals(tmp_path) -> None:
    put = PutLog(tmp_path, enabled_append_prop_crc=True)
    columns = columns_of([Message("T", b"x", 0, {"a": "b"})] * 9)
    assert [result.append.queue_offset for result in put.log.append_columns(columns)] == list(range(9))
    assert all(properties.verify_crc(put.files.read(unit.offset, unit.size)) for unit in put.units())
    columns.topics = ["../T"]
    assert {result.status for result in put.log.append_columns(columns)} == {Status.MESSAGE_ILLEGAL}
    columns.topics, columns.topic_id = ["T"], [1] * 9
    with pytest.raises(ValueError, match="topic_id"):
        put.log.append_columns(columns)
    put.log.refuses = Status.SERVICE_NOT_AVAILABLE
    columns.topic_id = None
    refused = put.log.append_columns(columns)
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


def test_queue_position_tables_may_grow_during_a_run(tmp_path) -> None:
    """One topic is twice in the table, and queue ids exceed the table's first size. No row reads an outdated table."""
    ids, queues = [0, 1, 2, 1, 0, 1, 2, 0] * 5, [*range(40)]
    topics = ["A", "A", "B"]
    columns, log = PutLog(tmp_path / "columns", 1 << 16), PutLog(tmp_path / "one", 1 << 16)
    rows = len(ids)
    message_columns = MessageColumns(
        topics, b"x" * rows, array("i", [1] * rows), queue_id=array("i", queues), topic_id=array("i", ids)
    )
    assert columns.log.append_columns(message_columns).ok
    assert columns.log.append_columns(message_columns).ok
    for _ in range(2):
        for topic, queue in zip(ids, queues, strict=True):
            assert log.log.put_message(Message(topics[topic], b"x", queue)).ok
    assert columns.bytes() == log.bytes()
    assert columns.offsets.offsets() == log.offsets.offsets()
