"""Unique ids have Java's parts, and no two are equal."""

from __future__ import annotations

import itertools
import os
import time

from engine.codec.message import parse_unique_key
from engine.remoting.unique_ids import unique_id


def test_an_id_tells_process_and_time() -> None:
    now = 1_700_000_123_456
    parts = parse_unique_key(unique_id(now))
    assert parts is not None
    assert (parts.ip, parts.pid) == ("127.0.0.1", os.getpid() & 0xFFFF)
    local = time.localtime(now / 1000)
    month = int(time.mktime((local.tm_year, local.tm_mon, 1, 0, 0, 0, 0, 0, -1))) * 1000
    assert parts.ms_in_month == now - month


def test_ids_of_one_moment_and_over_a_month_s_end_differ() -> None:
    now = 1_700_000_000_000
    unique_ids = [unique_id(now + day * 86_400_000) for day in range(40) for _ in range(3)]
    assert len(set(unique_ids)) == len(unique_ids)
    counters = [parse_unique_key(text).counter for text in unique_ids]
    assert [(next_counter - counter) & 0xFFFF for counter, next_counter in itertools.pairwise(counters)] == [1] * 119
