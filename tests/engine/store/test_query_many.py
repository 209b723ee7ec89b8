from typing import NamedTuple

import numpy as np
from lent_stores import MemoryLog
from raw_units import raw_log, raw_unit

from engine.config import from_mapping
from engine.message_store import Message, MessageStore
from engine.store.query_many import query_messages


class Answers(NamedTuple):
    ends: np.ndarray
    offsets: np.ndarray


class Index:
    def __init__(self, *found: list[int]) -> None:
        self.found = found

    def query_offsets(self, topic, keys, max_count, begin, end):
        ends = np.cumsum([len(mine) for mine in self.found], dtype=np.int64)
        return Answers(ends, np.array([offset for mine in self.found for offset in mine], np.int64))


def test_many_keys_are_answered_as_one_by_one(tmp_path):
    config, _ = from_mapping({"mappedFileSizeCommitLog": 4096, "maxHashSlotNum": 5, "maxIndexNum": 30})
    with MessageStore(tmp_path, config) as store:
        for number in range(60):
            store.put_message(Message("T", b"%d" % number, properties={"KEYS": f"k{number % 7} 键{number % 3}"}))
        assert store.wait_dispatched(10_000)
        wanted = ["k1", "键2", "not there", "k6", "k1"]
        with store.query_messages("T", wanted, 5) as together:
            for number, key in enumerate(wanted):
                with store.query_message("T", key, 5) as alone:
                    assert [bytes(m) for m in together.of(number)] == [bytes(m) for m in alone.messages]
            assert len(together) == len(together.offsets) == sum(len(together.of(number)) for number in range(5))


def test_what_the_log_has_no_more_is_left_out():
    log = MemoryLog(raw_log(*({"body": b"%d" % number} for number in range(3))))
    size = len(raw_unit(body=b"0"))
    index = Index([0, 10**9], [10**9], [size, 2 * size], [])
    with query_messages(index, log, "TopicTest", ["a", "b", "c", "d"]) as found:
        assert [unit.body for unit in found.units()] == [b"0", b"1", b"2"]
        assert [[len(m) for m in found.of(number)] for number in range(4)] == [[size], [], [size, size], []]
    assert log.lent == 0


def test_without_index_or_keys_nothing_is_found():
    log = MemoryLog(raw_log({}))
    assert len(query_messages(None, log, "T", ["a", "b"]).of(1)) == 0
    assert len(query_messages(Index(), log, "T", [])) == 0
