"""Many messages in one call: singly, together or as columns, the bytes and the answers are the same (spec 2.8)."""

from __future__ import annotations

import errno
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st
from put_logs import NOW, PutLog

from engine.codec import message as codec
from engine.codec import properties
from engine.codec.encode import Message
from engine.codec.gather import gather
from engine.codec.message_columns import MessageColumns
from engine.mapped.mapped_file import MappedFile
from engine.store.put.message import RULED, PutMessageStatus

Status = PutMessageStatus


plain = st.characters(exclude_categories=["Cs"], exclude_characters="\x01\x02")
messages = st.builds(
    Message,
    st.sampled_from(["A", "B", "Ж", "Batch", "%RETRY%" + "g" * 121, "t" * 128]),
    st.binary(max_size=200),
    st.integers(-1, 3),
    st.dictionaries(
        st.sampled_from(["TAGS", "KEYS", "p", "DELAY", "INNER_NUM", "UNIQ_KEY", "INNER_MULTI_DISPATCH"]),
        st.sampled_from(["", "1", "x", "中", "%LMQ%a,%LMQ%b"]) | st.text(plain, max_size=9),
        max_size=4,
    )
    | st.none(),
    st.binary(max_size=20) | st.none(),
    flag=st.integers(-5, 5),
    sys_flag=st.sampled_from([0, 0, 0, 1, 4, 8, 12, 0x80, 0xC0, 0x10]),
    born_timestamp=st.none() | st.integers(0, 1 << 40),
    born_host=st.sampled_from(["10.0.0.1:1", "[::1]:2"]),
    store_host=st.sampled_from([None, None, "[::1]:10911"]),
    reconsume_times=st.integers(0, 3),
    prepared_transaction_offset=st.integers(0, 1 << 40),
)


@given(st.lists(messages, max_size=12), st.booleans(), st.booleans())
def test_one_by_one_and_all_at_once_make_the_same_bytes(tmp_path_factory, many, crc, lmq) -> None:
    folder = tmp_path_factory.mktemp("twice")
    config = {"enabled_append_prop_crc": crc, "enable_lmq": lmq}
    one, all_at_once = PutLog(folder / "one", 2000, **config), PutLog(folder / "all", 2000, **config)
    singly = [one.log.put_message(message) for message in many]
    together = all_at_once.log.put_messages(many)
    assert one.bytes() == all_at_once.bytes()
    assert [(result.status, result.append) for result in together] == [
        (result.status, result.append) for result in singly
    ]
    assert together.ok == all(result.ok for result in singly)
    assert one.offsets.offsets() == all_at_once.offsets.offsets()


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
    what = gather(many, RULED)
    in_columns = columns.log.append_columns(what)
    assert one.bytes() == all_at_once.bytes() == columns.bytes()
    expected = [(result.status, result.append) for result in singly]
    assert [(result.status, result.append) for result in together] == expected
    assert [(result.status, result.append) for result in in_columns] == expected
    assert in_columns.end_offset == max((r.append.end_offset for r in singly if r.ok), default=0)
    assert in_columns.ok == all(result.ok for result in singly)


def test_columns_with_property_crcs_and_refusals(tmp_path) -> None:
    put = PutLog(tmp_path, enabled_append_prop_crc=True)
    what = gather([Message("T", b"x", 0, {"a": "b"})] * 9, RULED)
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


def test_many_at_once_while_the_lock_is_held_too_long(tmp_path) -> None:
    put = PutLog(tmp_path)
    put.log.put_messages([Message("T", b"x")] * 9)
    put.log.locked_since = NOW
    put.now += 5000
    assert {result.status for result in put.log.put_messages([Message("T", b"x")] * 9)} == {Status.OS_PAGE_CACHE_BUSY}


def test_no_files_for_many_at_once(tmp_path) -> None:
    put = PutLog(tmp_path, 1000)
    put.files._allocate = lambda _start: None
    refused = put.log.put_messages([Message("T", b"x")] * 9)
    assert {result.status for result in refused} == {Status.CREATE_MAPPED_FILE_FAILED}


@given(messages)
def test_a_message_that_is_taken_comes_back_equal(tmp_path_factory, message) -> None:
    put = PutLog(tmp_path_factory.mktemp("one"), 1 << 16)
    result = put.log.put_message(message)
    if not result.ok:
        assert result.status is not Status.PUT_OK
        assert put.log.wrote == 0
        return
    unit = put.unit(result)
    assert unit.crc == "ok"
    assert (unit.body, unit.flag, unit.reconsume_times) == (message.body, message.flag, message.reconsume_times)
    assert unit.born_timestamp == (NOW if message.born_timestamp is None else message.born_timestamp)
    assert (unit.born_host, unit.store_host) == (message.born_host, message.store_host or "127.0.0.1:10911")
    assert unit.prepared_transaction_offset == message.prepared_transaction_offset
    assert unit.properties.get("REAL_TOPIC", unit.topic) == message.topic
    assert int(unit.properties.get("REAL_QID", unit.queue_id)) == message.queue_id
    if unit.topic == message.topic and not message.sys_flag & codec.INNER_BATCH:
        raw, found = message.properties_raw, message.properties
        stored = {name: value for name, value in (found or {}).items() if value}
        assert unit.properties_raw == raw if raw is not None else unit.properties == stored


@pytest.mark.parametrize("found", [{"a": "b"}, {"a": "b\x02"}], ids=["columns", "one by one"])
def test_whether_anybody_waits_for_the_flush(tmp_path, found) -> None:
    rushed = [Message("T", b"x", 0, {**found, "WAIT": "false"})] * 9
    for kind, waits in (("SYNC_FLUSH", True), ("ASYNC_FLUSH", False)):
        put = PutLog(tmp_path / kind, flush_disk_type=kind)
        assert put.log.put_messages([*rushed, Message("T", b"x", 0, {**found, "WAIT": "true"})]).waits is waits
        assert put.log.put_messages(rushed).waits is False


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
