"""Columns of messages: both twins write the same units as :func:`encode_unit`, and gathered messages lose nothing."""

from __future__ import annotations

from array import array

import numpy as np
import pytest
from columns_of import columns_of as columns_of_messages
from hypothesis import given
from hypothesis import strategies as st

from engine.codec import write_job
from engine.codec.encode import Message, TopicField, encode_unit, host_raw
from engine.codec.message_columns import Encoder, MessageColumns, Run, TopicRow, encode_rows_plain, twin

NOW = 1_700_000_000_123
OWN_HOST = "127.0.0.1:10911"

rows = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.binary(max_size=90),
        st.binary(max_size=60),
        st.integers(0, 12),
        st.integers(-9, 9),
        st.sampled_from([0, 1, 2, 4, 8, 12]),
        st.integers(0, 1 << 60),
        st.integers(0, 2),
        st.integers(0, 2),
        st.integers(-2, 20),
        st.integers(0, 1 << 60),
    ),
    min_size=1,
    max_size=12,
)
TOPICS = ["T", "Ж" * 9, "%RETRY%" + "g" * 130]
HOSTS = ["10.0.0.1:1", "[2001:db8::7]:65535", "127.0.0.1:10911"]


def columns_of(rows) -> MessageColumns:
    topic, body, text, queue, flag, sys_flag, born, born_host, store_host, repeated, prepared = zip(*rows, strict=True)
    i32, i64 = (lambda column: np.array(column, np.int32)), (lambda column: np.array(column, np.int64))
    return MessageColumns(
        TOPICS,
        b"".join(body),
        i32([len(b) for b in body]),
        b"".join(text),
        i32([len(t) for t in text]),
        i32(queue),
        i32(topic),
        i32(flag),
        i32(sys_flag),
        i64(born),
        i32(born_host),
        i32(store_host),
        i32(repeated),
        i64(prepared),
        HOSTS,
    )


def run_of(columns: MessageColumns, places: int = 16) -> Run:
    topics = []
    for number, name in enumerate(columns.topics):
        field = TopicField(name)
        topics.append(TopicRow(field.raw, field.magic))
        for queue in range(places):
            topics[-1].set_place(queue, number * places + queue)
    return Run(columns, topics, host_raw(OWN_HOST))


@given(rows)
def test_both_twins_write_the_units_of_single_messages(message_rows) -> None:
    expected, next_offsets = [], {}
    offset = 5000
    for topic, body, text, queue, flag, sys_flag, born, born_host, store_host, repeated, prepared in message_rows:
        message = Message(
            TOPICS[topic],
            body,
            queue,
            None,
            text,
            flag=flag,
            sys_flag=sys_flag,
            born_timestamp=born,
            born_host=HOSTS[born_host],
            store_host=HOSTS[store_host],
            reconsume_times=repeated,
            prepared_transaction_offset=prepared,
        )
        queue_offset = next_offsets.get((topic, queue), 0) if sys_flag in (0, 1, 2, 8) else 0
        unit = encode_unit(message, queue_offset=queue_offset, physical_offset=offset, store_timestamp=NOW)
        if sys_flag in (0, 1, 2, 8):
            next_offsets[topic, queue] = queue_offset + 1
        expected.append((offset, queue_offset, len(unit), unit))
        offset += len(unit)
    columns = columns_of(message_rows)
    columns.check()
    assert twin() is not None
    for encode in (Encoder().encode, encode_rows_plain):
        run, numbers, target = run_of(columns), array("q", [0] * 48), bytearray(b"\xee" * 10_000)
        why, end = encode(run, memoryview(target), 100, 10_000, 4900, NOW, numbers, 1000)
        assert (why, run.row) == (write_job.DONE, len(message_rows))
        assert bytes(target[:end]) == b"\xee" * 100 + b"".join(unit for *_, unit in expected)
        assert set(target[end:]) <= {0xEE}
        assert list(zip(*(run.out[n * run.rows : (n + 1) * run.rows] for n in range(3)), strict=True)) == [
            (position, queue_offset, size) for position, queue_offset, size, _ in expected
        ]
        assert {(n // 16, n % 16): number for n, number in enumerate(numbers) if number} == next_offsets


def small(**columns: object) -> MessageColumns:
    return MessageColumns(["T"], b"abcdef", np.array([1, 2, 3], np.int32), **columns)  # type: ignore[arg-type]


def i32(*numbers: int) -> object:
    return np.array(numbers, np.int32)


STOPS = [
    pytest.param(small(), {}, write_job.DONE, 3, id="nothing stops it"),
    pytest.param(small(), {"limit": 93 + 94 + 95 + 8}, write_job.DONE, 3, id="eight bytes to spare"),
    pytest.param(small(), {"limit": 93 + 94 + 95 + 7}, write_job.NO_ROOM, 2, id="a byte less"),
    pytest.param(small(), {"longest_body": 2}, write_job.RULED, 2, id="body too long"),
    pytest.param(small(queue_id=i32(0, 15, 16)), {}, write_job.NO_PLACE, 2, id="queue never heard of"),
    pytest.param(small(queue_id=i32(0, -1, 0)), {}, write_job.RULED, 1, id="queue below zero"),
    pytest.param(small(topic_id=i32(0, 1, 0)), {}, write_job.RULED, 1, id="no such topic"),
    pytest.param(small(topic_id=i32(0, -1, 0)), {}, write_job.RULED, 1, id="topic below zero"),
    pytest.param(small(born_host=i32(0, 3, 0)), {}, write_job.RULED, 1, id="no such host"),
    pytest.param(small(store_host=i32(0, 0, -1)), {}, write_job.RULED, 2, id="host below zero"),
    *[
        pytest.param(small(sys_flag=i32(0, bit, 0)), {}, write_job.RULED, 1, id=f"bit {bit}")
        for bit in (16, 32, 64, 128)
    ],
]


@pytest.mark.parametrize(("columns", "changed_limits", "why", "row"), STOPS)
def test_where_both_twins_stop(columns, changed_limits, why, row) -> None:
    limits = {"limit": 1000, "longest_body": 1000, **changed_limits}
    outcomes = []
    for encode in (Encoder().encode, encode_rows_plain):
        run, target = run_of(columns), bytearray(1000)
        stop = encode(run, memoryview(target), 0, limits["limit"], 0, NOW, array("q", [0] * 48), limits["longest_body"])
        outcomes.append((stop, run.row, run.body, run.text, bytes(target), run.out.tolist()))
        assert (stop[0], run.row) == (why, row)
    assert outcomes[0] == outcomes[1]


def test_a_topic_that_may_not_be_stored_stops_both() -> None:
    for encode in (Encoder().encode, encode_rows_plain):
        run = Run(small(), [TopicRow(b"", 0)], host_raw(OWN_HOST))
        assert encode(run, memoryview(bytearray(1000)), 0, 1000, 0, NOW, array("q", [0]), 99)[0] == write_job.RULED


@pytest.mark.parametrize(
    ("columns", "word"),
    [
        (small(queue_id=np.zeros(3, np.int64)), "queue_id"),
        (small(flag=np.zeros(2, np.int32)), "flag"),
        (small(flag=np.zeros(6, np.int32)[::2]), "flag"),
        (small(properties=b"x"), "properties"),
        (small(properties=b"x", properties_length=i32(1, 1, -1)), "properties"),
        (small(properties=b"x", properties_length=i32(1, 1, 0)), "properties"),
        (MessageColumns(["T"], b"abc", np.array([1], np.int32)), "bodies"),
        (MessageColumns(["T"], b"abc", np.array([4, -1], np.int32)), "bodies"),
    ],
)
def test_columns_that_do_not_fit_are_refused(columns, word) -> None:
    with pytest.raises(ValueError, match=word):
        columns.check()


plain = st.characters(exclude_categories=["Cs"], exclude_characters="\x02")
names = st.sampled_from([("TAGS",), ("UNIQ_KEY", "KEYS"), ("%s", "ключ", "a")])
messages = st.builds(
    Message,
    st.sampled_from(["A", "B"]),
    st.binary(max_size=90),
    st.integers(0, 9),
    names.flatmap(lambda results: st.fixed_dictionaries({name: st.text(plain, max_size=40) for name in results}))
    | st.none(),
    flag=st.integers(-2, 2),
    sys_flag=st.sampled_from([0, 1, 8]),
    born_timestamp=st.integers(0, 1 << 60),
    born_host=st.sampled_from(HOSTS),
    reconsume_times=st.integers(0, 2),
    prepared_transaction_offset=st.integers(0, 2),
)
raw_messages = messages.flatmap(
    lambda message: st.binary(max_size=30).map(lambda raw: message.changed(properties_raw=raw, properties=None))
)
same_names = names.flatmap(
    lambda results: st.lists(
        messages.flatmap(
            lambda message: st.fixed_dictionaries({name: st.text(plain, max_size=70) for name in results}).map(
                lambda properties: message.changed(properties=properties)
            )
        ),
        min_size=1,
        max_size=9,
    )
)


@given(
    same_names
    | st.lists(raw_messages, min_size=1, max_size=9)
    | st.lists(messages | raw_messages, min_size=1, max_size=9)
)
def test_messages_as_columns_make_the_same_units(many) -> None:
    columns = columns_of_messages(many)
    assert len(columns) == len(many)
    for encode in (Encoder().encode, encode_rows_plain):
        run, target = run_of(columns), bytearray(20_000)
        assert encode(run, memoryview(target), 0, 20_000, 0, NOW, array("q", [0] * 48), 1000)[0] == write_job.DONE
        for row, message in enumerate(many):
            offset, queue_offset, size = (run.out[n * run.rows + row] for n in range(3))
            expected = encode_unit(
                message, queue_offset=queue_offset, physical_offset=offset, store_timestamp=NOW, store_host=OWN_HOST
            )
            assert bytes(target[offset : offset + size]) == expected
    run = run_of(columns)
    for message in many:
        second_message = run.message()
        assert (second_message.topic, second_message.body, second_message.queue_id, second_message.flag) == (
            message.topic,
            message.body,
            message.queue_id,
            message.flag,
        )
        run.skip()


def test_queue_positions_grow() -> None:
    topic = TopicRow(b"\x01T", 1)
    topic.set_place(1000, 7)
    assert (topic.places[1000], topic.places[999], topic.places[0]) == (7, -1, -1)
    assert bytes(topic.alone) == topic.row
