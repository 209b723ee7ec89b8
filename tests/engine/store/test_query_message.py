"""Queries by key continue with older messages if the newest are deleted; ids are checked
(docs/formats/commit-log.md#message-ids, docs/formats/index-file.md#query).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from memory_logs import MemoryLog
from raw_units import raw_log, raw_unit

from engine.config import from_mapping
from engine.message_store import Message, MessageStore
from engine.store.query_message import (
    by_offset_id,
    by_unique_key,
    earliest_message_time,
    look_message_by_offset,
    query_message,
    query_messages,
)

KEYED = b"UNIQ_KEY\x01u1\x02KEYS\x01k1\x02"


class Answer(NamedTuple):
    offsets: list
    last_update_timestamp: int = 77
    last_update_offset: int = 88


class Index:
    """An index that answers each round with the next list."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.ends = []

    def query_offset(self, topic, key, max_count, begin, end):
        self.ends.append(end)
        return Answer(self.answers.pop(0) if self.answers else [])


def units(count):
    log = raw_log(*[{"properties": KEYED, "stored": 1000 + n, "body": b"%d" % n} for n in range(count)])
    return MemoryLog(log), len(raw_unit(properties=KEYED, body=b"0"))


def test_messages_are_returned_in_log_order():
    log, size = units(3)
    index = Index([2 * size, 0])
    with query_message(index, log, "TopicTest", "k1") as actual_query_message:
        assert [unit.body for unit in actual_query_message.units()] == [b"0", b"2"]
        assert (actual_query_message.index_last_update_timestamp, actual_query_message.index_last_update_offset) == (
            77,
            88,
        )
    assert log.lent == 0


def test_older_messages_are_queried_in_up_to_three_rounds():
    log, size = units(3)
    index = Index([10**9], [10**9], [10**9], [0])
    assert len(query_message(index, log, "TopicTest", "k1", begin=0)) == 0
    assert len(index.ends) == 1  # its time is unknown: −1 is before any window
    index = Index([10**9], [0])
    assert len(query_message(index, log, "TopicTest", "k1", begin=-5)) == 1
    assert index.ends[1] == -1
    assert size


def test_an_unknown_key_returns_no_index_position():
    """Each release of RocketMQ returns 0 for both values in this case. We returned the end of the index."""
    log, _ = units(1)
    actual_query_message = query_message(Index([]), log, "TopicTest", "k1")
    assert (actual_query_message.index_last_update_timestamp, actual_query_message.index_last_update_offset) == (0, 0)
    actual_query_message = query_message(Index([10**9], []), log, "TopicTest", "k1", begin=-5)
    assert (actual_query_message.index_last_update_timestamp, actual_query_message.index_last_update_offset) == (
        77,
        88,
    ), "the first round found some"


def test_no_index_finds_nothing():
    log, _ = units(1)
    assert len(query_message(None, log, "TopicTest", "k1")) == 0


def test_a_unique_key_is_compared_by_text():
    log, size = units(3)
    results = by_unique_key(Index([0, size]), log, "TopicTest", "u1")
    assert results is not None
    assert results.offset == size
    assert by_unique_key(Index([0, size]), log, "TopicTest", "other") is None
    assert by_unique_key(Index([0]), log, "Other", "u1") is None


def test_an_offset_id_names_the_unit_that_has_it():
    log, size = units(2)
    unit = look_message_by_offset(log, size)
    assert unit is not None
    assert unit.body == b"1"
    assert by_offset_id(log, unit.offset_msg_id.lower()) == unit
    assert by_offset_id(log, "00" * 16) is None
    assert by_offset_id(log, "no id") is None


def test_bytes_without_a_unit_are_none():
    log, size = units(2)
    for offset in (-1, 1, size + 3, 2 * size, 10**12):
        assert look_message_by_offset(log, offset) is None
    assert log.lent == 0


def test_the_earliest_time_is_the_first_units():
    log, _ = units(2)
    assert earliest_message_time(log) == 1000
    assert earliest_message_time(MemoryLog(b"", min_offset=-1)) == -1


class Answers(NamedTuple):
    ends: np.ndarray
    offsets: np.ndarray


class IndexOfMany:
    def __init__(self, *arguments: list[int]) -> None:
        self.found = arguments

    def query_offsets(self, topic, keys, max_count, begin, end):
        ends = np.cumsum([len(key_offsets) for key_offsets in self.found], dtype=np.int64)
        return Answers(ends, np.array([offset for key_offsets in self.found for offset in key_offsets], np.int64))


def test_many_keys_are_answered_like_single_ones(tmp_path):
    config, _ = from_mapping({"mappedFileSizeCommitLog": 4096, "maxHashSlotNum": 5, "maxIndexNum": 30})
    with MessageStore(tmp_path, config) as store:
        for number in range(60):
            store.put_message(Message("T", b"%d" % number, properties={"KEYS": f"k{number % 7} 键{number % 3}"}))
        assert store.wait_dispatched(10_000)
        expected = ["k1", "键2", "not there", "k6", "k1"]
        with query_messages(store.parts.index, store.parts.log, "T", expected, 5) as together:
            for number, key in enumerate(expected):
                with store.query_message("T", key, 5) as alone:
                    assert [bytes(m) for m in together.of(number)] == [bytes(m) for m in alone.messages]
            assert len(together) == len(together.offsets) == sum(len(together.of(number)) for number in range(5))


def test_deleted_messages_are_left_out():
    log = MemoryLog(raw_log(*({"body": b"%d" % number} for number in range(3))))
    size = len(raw_unit(body=b"0"))
    index = IndexOfMany([0, 10**9], [10**9], [size, 2 * size], [])
    with query_messages(index, log, "TopicTest", ["a", "b", "c", "d"]) as actual_query_messages:
        assert [unit.body for unit in actual_query_messages.units()] == [b"0", b"1", b"2"]
        assert [[len(m) for m in actual_query_messages.of(number)] for number in range(4)] == [
            [size],
            [],
            [size, size],
            [],
        ]
    assert log.lent == 0


def test_without_index_or_keys_nothing_is_found():
    log = MemoryLog(raw_log({}))
    assert len(query_messages(None, log, "T", ["a", "b"]).of(1)) == 0
    assert len(query_messages(IndexOfMany(), log, "T", [])) == 0
