"""Units that no broker would write are shown with their raw values, are not trusted, and cause no traceback."""

from __future__ import annotations

import struct
import zlib

import agree
import pytest
from clean_answers import QUESTIONS, status_and_error
from handmade_stores import HandmadeStore
from raw_units import raw_unit

# -- units that no broker would write


def store_of_units(path, *raws):
    """Write a store whose log contains these bytes, one unit after the other."""
    folder = path / "store" / "commitlog"
    folder.mkdir(parents=True)
    data = b"".join(raws)
    (folder / f"{0:020d}").write_bytes(data.ljust(max(len(data) + 4096, 8192), b"\0"))
    return path / "store"


HOSTILE_TOPICS = [
    b"../../../etc/passwd",
    b"a/b/c",
    b"..",
    b".",
    b"",
    b"\x1b[2J\x9b31m",
    b"\n\r\0",
    b"\xff\xfe",
    b"%00",
    b"-s",
]


@pytest.mark.parametrize("topic", HOSTILE_TOPICS)
def test_a_topic_is_a_name_and_never_a_path(tmp_path, topic):
    raw = raw_unit(0, topic=topic, properties=b"KEYS\x01k\x02UNIQ_KEY\x01u\x02")
    store = store_of_units(tmp_path, raw, raw_unit(len(raw), topic=topic))
    for question in (*QUESTIONS, ["where", "STORE", "u"], ["where", "STORE", "k"], ["message", "STORE", "0"]):
        status_and_error(store, question)
    text = topic.decode("utf-8", "replace")
    if not text.startswith("-"):
        for question in (
            ["queue", "STORE", text, "3"],
            ["get", "STORE", text, "3", "0"],
            ["trace", "STORE", text, "k"],
        ):
            status_and_error(store, question)


def test_a_topic_of_ten_thousand_letters(tmp_path):
    raw = raw_unit(0, topic=b"t" * 10_000, version=2)
    store = store_of_units(tmp_path, raw)
    (unit, *_) = agree.records_of("units", store)
    assert unit["topic"] == "t" * 10_000
    for question in QUESTIONS:
        status_and_error(store, question)
    for command in (["queue", store, "t" * 10_000, 3], ["where", store, f"{'t' * 10_000}/3/5"]):
        status, _, err = agree.command(*command)
        assert status in {0, 1, 3}
        assert err.count("\n") <= 1


def test_properties_without_separators_and_with_nothing_else(tmp_path):
    raws, position = [], 0
    for text in (b"no separators", b"\x01" * 50, b"\x02" * 50, b"\x01\x02" * 50, b"KEYS\x01" + b" " * 999, b"\0" * 99):
        raws.append(raw_unit(position, properties=text))
        position += len(raws[-1])
    store = store_of_units(tmp_path, *raws)
    units = [unit for unit in agree.records_of("units", store) if unit["type"] == "unit"]
    assert len(units) == len(raws)
    for question in QUESTIONS:
        status_and_error(store, question)


def test_a_body_that_unpacks_to_gigabytes_is_truncated_and_reported(tmp_path):
    once = zlib.compress(bytes(200 << 20), 9)
    raw = raw_unit(0, body=once, sys_flag=0x301, properties=b"UNIQ_KEY\x01u\x02")
    store = store_of_units(tmp_path, raw, bytes(1 << 20))
    status, out, err = agree.command("message", store, "0")
    assert (status, err) == (0, "")
    assert "16 MiB" in out or "16.0 MiB" in out
    for question in QUESTIONS:
        status_and_error(store, question)


@pytest.mark.parametrize("flag", [0x101, 0x201, 0x301, 0x401, 0x701])
def test_a_body_that_does_not_match_its_flag(tmp_path, flag):
    store = store_of_units(tmp_path, raw_unit(0, body=b"not packed at all", sys_flag=flag))
    status, out, err = agree.command("message", store, "0")
    assert (status, err) == (0, "")
    assert "body:" in out


def test_an_inner_batch_with_wrong_lengths(tmp_path):
    body = struct.pack(">iiiii", 0x7FFFFFFF, 0, 0, 0, -1) + b"x" * 40
    text = b"INNER_NUM\x012147483647\x02INNER_BASE\x010\x02UNIQ_KEY\x01u\x02"
    store = store_of_units(tmp_path, raw_unit(0, body=body, sys_flag=0xC0, properties=text))
    for question in (*QUESTIONS, ["message", "STORE", "0"]):
        status_and_error(store, question)


def test_times_outside_the_calendar(tmp_path):
    raws, position = [], 0
    for time in (-1, 0, -(1 << 63), (1 << 63) - 1, 1 << 55):
        raws.append(
            raw_unit(position, stored=time, born=time, properties=b"TIMER_OUT_MS\x01%d\x02UNIQ_KEY\x01u\x02" % time)
        )
        position += len(raws[-1])
    store = store_of_units(tmp_path, *raws)
    for question in (*QUESTIONS, ["where", "STORE", "u"], ["message", "STORE", "0"]):
        status_and_error(store, question)


def test_a_store_with_numbers_at_their_limits(tmp_path):
    handmade_store = HandmadeStore()
    handmade_store.put(queue_offset=(1 << 63) - 1)
    handmade_store.put(queue_id=-1)
    handmade_store.put(queue_offset=-7)
    handmade_store.put(physical_offset=1 << 62)
    store = handmade_store.write(tmp_path / "store", queues=False)
    for question in (*QUESTIONS, ["where", "STORE", f"Orders/0/{(1 << 63) - 1}"], ["where", "STORE", "Orders/0/-7"]):
        status_and_error(store, question)
