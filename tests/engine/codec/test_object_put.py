"""Message objects put by compiled code: the unit equals plain Python's, or nothing is written and a reason is
returned.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from array import array
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec import object_put
from engine.codec.encode import Message, TopicField, encode_unit
from engine.codec.message_columns import TopicRow
from engine.codec.object_put import (
    NO_PLACE,
    NO_ROOM,
    NOT_PLAIN,
    OTHER_MAP,
    POSITION,
    QUEUE_OFFSET,
    UNKNOWN_TOPIC_OR_HOST,
    ObjectPut,
)
from engine.store.put_message import RULED

STORE, NOW, BASE, ROOM = "127.0.0.1:10911", 1_700_000_000_000, 1 << 40, 4096
plain = st.characters(codec="utf-8", exclude_characters="\x01\x02")


class Log:
    """A buffer for units, and one topic with the queues 0 and 3."""

    def __init__(self, room: int = ROOM) -> None:
        actual_object_put = object_put.object_put(b"\x7f\x00\x00\x01\x00\x00\x2a\x9f", RULED, 8)
        assert actual_object_put is not None
        self.put: ObjectPut = actual_object_put
        self.target = bytearray(room)
        self.numbers = array("q", (5, 70))
        field = TopicField("größer")
        self.row = TopicRow(field.raw, field.magic)
        self.row.set_place(0, 0)
        self.row.set_place(3, 1)
        self.put.learn_topic("größer", self.row)
        self.put.learn_host("1.2.3.4:5")
        self.put.learn_numbers(self.numbers)
        assert self.put.learn_bytes(memoryview(self.target), BASE, room, 1000)

    def put_one(self, message: Any, position: int = 16) -> int:
        self.put.start(NOW, position)
        return self.put.put_one(message)


def message(**options: Any) -> Message:
    """Make a plain message with the given fields changed."""
    return Message(
        **{
            "topic": "größer",
            "body": b"just a body",
            "queue_id": 3,
            "born_host": "1.2.3.4:5",
            "born_timestamp": 7,
            **options,
        }
    )


@given(
    st.binary(max_size=200),
    st.none()
    | st.binary(max_size=30)
    | st.dictionaries(st.sampled_from(["TAGS", "KEYS", "a%s"]), st.text(plain, max_size=40)),
    st.sampled_from([0, 3]),
    st.sampled_from([0, 1, 4, 8, 12]),
    st.integers(-5, 1 << 30),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.none() | st.integers(-5, 1 << 60),
    st.sampled_from(["1.2.3.4:5", "[::1]:7"]),
)
def test_the_unit_equals_plain_pythons(body, text, queue, flags, number, offset, born, host) -> None:
    log = Log()
    log.put.learn_host("[::1]:7")
    raw, properties = (text, None) if isinstance(text, bytes) else (None, text)
    if properties:
        log.put.learn_map(properties)
    unit_message = message(
        body=body,
        queue_id=queue,
        properties=properties,
        properties_raw=raw,
        sys_flag=flags,
        flag=number,
        reconsume_times=number,
        prepared_transaction_offset=offset,
        born_timestamp=born,
        born_host=host,
    )
    queued = not flags & 4
    place = (0, 3).index(queue)
    queue_offset = log.numbers[place] if queued else 0
    unit = encode_unit(
        unit_message, queue_offset=queue_offset, physical_offset=BASE + 16, store_timestamp=NOW, store_host=STORE
    )
    assert log.put_one(unit_message) == len(unit)
    assert log.target[16 : 16 + len(unit)] == unit
    assert not any(log.target[:16])
    assert not any(log.target[16 + len(unit) :])
    assert (log.put.sheet[POSITION], log.put.sheet[QUEUE_OFFSET]) == (16 + len(unit), queue_offset)
    assert list(log.numbers) == [5 + (queued and queue == 0), 70 + (queued and queue == 3)]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"topic": "another"}, UNKNOWN_TOPIC_OR_HOST),
        ({"born_host": "1.2.3.4:6"}, UNKNOWN_TOPIC_OR_HOST),
        ({"topic": b"bytes"}, NOT_PLAIN),
        ({"queue_id": 1}, NO_PLACE),
        ({"queue_id": 1 << 30}, NO_PLACE),
        ({"queue_id": -1}, NOT_PLAIN),
        ({"queue_id": 1 << 70}, NOT_PLAIN),
        ({"queue_id": True}, NOT_PLAIN),
        ({"body": bytearray(3)}, NOT_PLAIN),
        ({"body": None}, NOT_PLAIN),
        ({"body": bytes(1001)}, NOT_PLAIN),
        ({"properties_raw": bytes(32_768)}, NOT_PLAIN),
        ({"properties": {"TAGS": "a"}}, OTHER_MAP),
        ({"properties": {"KEYS": "a", "TAGS": "b"}}, OTHER_MAP),
        ({"properties": {"KEYS": 7}}, NOT_PLAIN),
        ({"properties": {"KEYS": "a\x02"}}, NOT_PLAIN),
        ({"properties": {"KEYS": "\ud800"}}, NOT_PLAIN),
        ({"properties": [1], "properties_raw": b""}, NOT_PLAIN),
        ({"properties": {"TAGS": "a", "DELAY": "1"}, "properties_raw": b""}, NOT_PLAIN),
        ({"properties": {7: "a"}, "properties_raw": b""}, NOT_PLAIN),
        ({"properties": [1]}, NOT_PLAIN),
        ({"properties_raw": "text"}, NOT_PLAIN),
        ({"store_host": STORE}, NOT_PLAIN),
        ({"flag": 1 << 31}, NOT_PLAIN),
        ({"flag": 1.5}, NOT_PLAIN),
        ({"sys_flag": 0x10}, NOT_PLAIN),
        ({"sys_flag": 0x80}, NOT_PLAIN),
        ({"sys_flag": -1}, NOT_PLAIN),
        ({"reconsume_times": 1 << 64}, NOT_PLAIN),
        ({"prepared_transaction_offset": 1 << 63}, NOT_PLAIN),
        ({"born_timestamp": 1 << 63}, NOT_PLAIN),
        ({"born_timestamp": "now"}, NOT_PLAIN),
    ],
)
def test_a_refused_message_is_not_written(fields, why) -> None:
    log = Log()
    log.put.learn_map({"KEYS": "any"})
    assert log.put_one(message(**fields)) == why
    assert not any(log.target)
    assert (list(log.numbers), log.put.sheet[POSITION]) == ([5, 70], 16)
    assert log.put_one(message()) > 0


def test_raw_property_text_is_stored_beside_a_plain_map() -> None:
    log = Log()
    item = message(properties={"ORIGIN": "x", "another": "\ud800"}, properties_raw=b"TAGS\x01a\x02")
    unit = encode_unit(item, queue_offset=70, physical_offset=BASE + 16, store_timestamp=NOW, store_host=STORE)
    assert log.put_one(item) == len(unit)
    assert log.target[16 : 16 + len(unit)] == unit


def test_objects_that_are_no_complete_message_are_refused() -> None:
    log = Log()
    half = message()
    del half.body
    for strange in (None, 7, "text", object(), type("Other", (Message,), {})("größer", b""), half):
        assert log.put_one(strange) == NOT_PLAIN
    assert not any(log.target)


def test_a_unit_needs_room_for_the_blank_after_it() -> None:
    size = Log().put_one(message())
    assert Log(16 + size + 8).put_one(message()) == size
    short_log = Log(16 + size + 7)
    assert short_log.put_one(message()) == NO_ROOM
    assert not any(short_log.target)


def test_equal_texts_are_recognized_whatever_their_object() -> None:
    log = Log()
    topic, host = (bytes(text, "utf-8").decode() for text in ("größer", "1.2.3.4:5"))
    assert log.put_one(message(topic=topic, born_host=host)) > 0


def test_many_messages_are_put_until_something_changes() -> None:
    log = Log()
    many = [message(), message(queue_id=0), message(topic="another"), message()]
    out = array("q", bytes(8 * 12))
    log.put.start(NOW, 0)
    assert log.put.put_many(many, 0, out) == (2, UNKNOWN_TOPIC_OR_HOST)
    item, two = (
        encode_unit(m, queue_offset=n, physical_offset=BASE + position, store_timestamp=NOW, store_host=STORE)
        for m, n, position in ((many[0], 70, 0), (many[1], 5, out[1] - BASE))
    )
    assert bytes(log.target[: log.put.position]) == item + two
    assert (list(out[:2]), list(out[4:6]), list(out[8:10])) == (
        [BASE, BASE + len(item)],
        [70, 5],
        [len(item), len(two)],
    )
    assert log.put.put_many(many, 3, out) == (4, 0)
    assert (out[7], log.put.position) == (71, 2 * len(item) + len(two))


def test_more_topics_and_hosts_than_a_table_has_rows() -> None:
    log = Log()
    for number in range(100):
        log.put.learn_topic(f"T{number}", log.row)
        log.put.learn_host(f"10.0.0.{number}:1")
        assert log.put_one(message(topic=f"T{number}", born_host=f"10.0.0.{number}:1")) > 0
    assert log.put_one(message()) == UNKNOWN_TOPIC_OR_HOST


def test_property_names_with_rules_are_not_learnt() -> None:
    log = Log()
    assert not log.put.learn_map({"KEYS": "a", "DELAY": "1"})
    assert not log.put.learn_map({"a\x01": "b"})
    assert log.put.learn_map({"KEYS": "a"})
    assert not log.put.learn_map({"KEYS": "another"})


def test_bytes_that_cannot_be_written_to_are_refused() -> None:
    log = Log()
    assert not log.put.learn_bytes(memoryview(bytes(100)), 0, 100, 100)
    assert not log.put.learn_bytes(memoryview(bytearray(100))[::2], 0, 100, 100)
    assert not log.put.learn_bytes(memoryview(bytearray(7)), 0, 7, 100)


def test_plain_python_can_be_requested(monkeypatch) -> None:
    monkeypatch.setenv("STORESCOPE_PLAIN", "1")
    assert object_put.object_put(bytes(8), RULED, 8) is None
    assert object_put.twin() is None


def test_puts_pass_their_tests_without_machine_code() -> None:
    """Runs the put tests in plain Python; the others use machine code."""
    put_tests = sorted((Path(__file__).parent.parent / "store").glob("test_put_*.py"))
    assert put_tests
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", *map(str, put_tests)),
            *("-m", "not machine_code"),
        ],
        env={**os.environ, "STORESCOPE_PLAIN": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:]


def test_a_python_without_the_interpreters_lock_puts_by_plain_python(monkeypatch) -> None:
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: 1 if name == "Py_GIL_DISABLED" else None)
    assert object_put._load.__wrapped__() is None


def test_objects_with_another_layout_are_not_read_from_memory(monkeypatch) -> None:
    """A debug build of the interpreter has two more words in front of each object."""

    class ShiftedMessage:
        __slots__ = ("shift", *object_put.FIELDS)

        def __init__(self, *_arguments: object, **_keywords: object) -> None:
            for name in object_put.FIELDS:
                setattr(self, name, 0)  # all fields hold the same object, so no slot can be identified

    monkeypatch.setattr(object_put, "Message", ShiftedMessage)
    assert object_put.message_slots() is None


def test_code_that_writes_another_unit_is_not_used(monkeypatch) -> None:
    code, slots = object_put._load() or (None, None)
    assert code is not None
    assert slots is not None
    assert object_put._writes_same_unit(code, slots)
    monkeypatch.setattr(object_put, "encode_unit", lambda *_arguments, **_keywords: bytes(135))
    assert not object_put._writes_same_unit(code, slots)
