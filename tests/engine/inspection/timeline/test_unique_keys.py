"""Unique keys in bulk, beside the parser of single ones."""

from __future__ import annotations

import numpy as np

from engine.codec.encode import Message
from engine.codec.message import parse_unique_key
from engine.codec.topic_table import TopicTable
from engine.inspection import open_store
from engine.inspection.block_scan import scan_log
from engine.inspection.timeline.unique_keys import unique_keys
from engine.message_store import MessageStore

JAVA = "0A0000011F4012345678001122330007"
SAME_PROCESS = "0A0000011F4012345678001122440008"
IPV6 = "FD0000000000000000000000000000027C6230946E0995940DF70004"


def read(tmp_path, keys):
    with MessageStore(tmp_path) as store:
        for key in keys:
            body = b"UNIQ_KEY\x01" + JAVA.encode()  # a body may hold anything
            store.put_message(Message("T", body, properties={"NOT_UNIQ_KEY": "x"}, unique_key=key))
    with open_store(tmp_path) as store:
        block = next(iter(scan_log(store.log, topics=TopicTable())))
        return unique_keys(block, np.arange(block.count))


def test_process_and_time_are_those_of_the_parser(tmp_path):
    keys, clients, times, counters = read(tmp_path, [JAVA, SAME_PROCESS, IPV6, JAVA.lower()])
    assert times.tolist() == [parse_unique_key(text).ms_in_month for text in (JAVA, SAME_PROCESS, IPV6, JAVA)]
    assert counters.tolist() == [parse_unique_key(text).counter for text in (JAVA, SAME_PROCESS, IPV6, JAVA)]
    assert clients[0] == clients[1] == clients[3] != clients[2]
    assert keys[0] == keys[3]
    assert len({*keys.tolist()}) == 3


def test_keys_of_another_form_have_no_process(tmp_path):
    keys, clients, times, counters = read(tmp_path, ["U0001", JAVA + "00", "G" * 32, "U0001", None])
    assert clients.tolist() == [0] * 5
    assert times.tolist() == counters.tolist() == [-1] * 5
    assert keys[0] == keys[3] != keys[1]
    assert (keys == 0).tolist() == [False] * 4 + [True]
