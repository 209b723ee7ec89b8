"""Puts with rules: CRC, IPv6, versions, batches, light queues, units stored again (docs/formats/commit-log.md,
docs/formats/consume-queue.md#light-queues).
"""

from __future__ import annotations

import golden_stores
import pytest
from put_logs import PutLog

from engine.codec import message as codec
from engine.codec import properties
from engine.codec.encode import Message
from engine.errors import CorruptUnit, UsageError
from engine.store.put.message import PutMessageStatus

Status = PutMessageStatus


# Property CRC, IPv6, version 2


def test_property_crc_when_configured(tmp_path) -> None:
    put = PutLog(tmp_path, enabled_append_prop_crc=True)
    for found in ({}, {"a": "b"}, {"__CRC32#": "1234567890", "a": "b"}):
        result = put.log.put_message(Message("T", b"x", 0, found))
        unit = put.files.read(result.append.physical_offset, result.append.size)
        assert properties.verify_crc(unit)
        assert codec.decode(unit).properties.keys() == {"__CRC32#", *found}
    size = put.log.wrote
    assert put.log.put_message(Message("T", b"", 0, {"p": "v" * 32_745})).status is Status.PROPERTIES_SIZE_EXCEEDED
    assert put.log.put_message(Message("T", b"", 0, {"p": "v" * 32_744})).ok
    assert put.log.wrote > size


def test_hosts_of_both_families(tmp_path) -> None:
    put = PutLog(tmp_path)
    for born, stored, bits in [
        ("10.0.0.1:1", "[2001:db8::1]:2", 0x20),
        ("[2001:db8::1]:1", None, 0x10),
        ("[::1]:1", "[::2]:2", 0x30),
    ]:
        result = put.log.put_message(Message("T", b"x", born_host=born, store_host=stored))
        unit = put.unit(result)
        assert unit.sys_flag == bits
        assert (unit.born_host, unit.store_host) == (born, stored or "127.0.0.1:10911")
        assert result.append.msg_id == unit.offset_msg_id


def test_versions(tmp_path) -> None:
    long = Message("%RETRY%" + "g" * 121, b"x")
    put = PutLog(tmp_path / "new")
    assert put.unit(put.log.put_message(long)).version == 2
    put = PutLog(tmp_path / "old", auto_message_version_on_topic_len=False)
    assert put.log.put_message(long).status is Status.MESSAGE_ILLEGAL


# Light queues


def test_a_message_to_light_queues_carries_their_offsets(tmp_path) -> None:
    put = PutLog(tmp_path, enable_lmq=True)
    message = Message("T", b"x", 3, {"INNER_MULTI_DISPATCH": "%LMQ%a,plain,%LMQ%b,"})
    assert put.unit(put.log.put_message(message)).properties_raw.endswith(b"INNER_MULTI_QUEUE_OFFSET\x010,,0\x02")
    put.log.put_message(Message("T", b"x", 0, {"INNER_MULTI_DISPATCH": "%LMQ%b"}))
    unit = put.unit(put.log.put_message(message))
    assert unit.properties["INNER_MULTI_QUEUE_OFFSET"] == "1,,2"
    assert unit.queue_offset == 1
    assert put.offsets.next("%LMQ%b", 0) == 3


def test_no_light_queues_unless_they_are_on(tmp_path) -> None:
    put = PutLog(tmp_path)
    unit = put.unit(put.log.put_message(Message("T", b"x", 3, {"INNER_MULTI_DISPATCH": "%LMQ%a"})))
    assert "INNER_MULTI_QUEUE_OFFSET" not in unit.properties


def test_4_9_takes_the_waiting_out_of_what_goes_to_light_queues(tmp_path) -> None:
    put = PutLog(tmp_path, like="4.9", enable_lmq=True, enable_multi_dispatch=True)
    unit = put.unit(put.log.put_message(Message("T", b"x", 3, {"INNER_MULTI_DISPATCH": "%LMQ%a", "WAIT": "true"})))
    assert unit.properties == {"INNER_MULTI_DISPATCH": "%LMQ%a", "INNER_MULTI_QUEUE_OFFSET": "0"}
    put.offsets.load({(f"%LMQ%{n}", 0): 1 for n in range(20_001)})
    full = put.log.put_message(Message("T", b"x", 3, {"INNER_MULTI_DISPATCH": "%LMQ%a"}))
    assert full.status is Status.LMQ_CONSUME_QUEUE_NUM_EXCEEDED


@pytest.mark.parametrize(
    ("body", "extra", "status"),
    [(b"x", "v" * 32_720, "PROPERTIES_SIZE_EXCEEDED"), (b"x" * 1000, "v", "MESSAGE_SIZE_EXCEEDED")],
)
def test_light_queues_find_out_late_what_is_too_long(tmp_path, body, extra, status) -> None:
    put = PutLog(tmp_path, enable_lmq=True, max_message_size=1000)
    result = put.log.put_message(Message("T", body, 0, {"INNER_MULTI_DISPATCH": "%LMQ%a", "p": extra}))
    assert (result.status, result.append.status.name) == (Status.MESSAGE_ILLEGAL, status)
    assert (put.log.wrote, put.offsets.next("%LMQ%a", 0), put.offsets.next("T", 0)) == (0, 0, 0)


# Units stored again


@pytest.mark.golden
@pytest.mark.parametrize("name", ["clean-5.3.3", "propcrc-5.3.3", "ipv6-and-unicode-5.3.3", "batchcq-5.3.3"])
def test_units_of_a_real_store_are_stored_again_elsewhere(golden, tmp_path, name) -> None:
    assert name in golden_stores.names()
    put = PutLog(tmp_path, 1 << 20)
    put.log.put_message(Message("T", b"something else first"))
    data = next(iter(sorted(golden(name).glob("commitlog/*")))).read_bytes()
    at = 0
    while at < 100_000 and not isinstance(frame := codec.check_frame(data, at, len(data)), str):
        raw = data[at : at + frame.size]
        offset = put.log.append_raw(raw)
        again = put.files.read(offset, frame.size)
        unit, copy = codec.decode(raw), codec.decode(again)
        assert (copy.physical_offset, copy.queue_offset, copy.store_timestamp) == (
            offset,
            unit.queue_offset,
            unit.store_timestamp,
        )
        assert properties.verify_crc(again) is properties.verify_crc(raw)
        assert put.log.append_raw(again) == offset + frame.size
        at += frame.size
    assert at > 10_000


def test_what_is_no_unit_is_not_stored_again(tmp_path) -> None:
    put = PutLog(tmp_path, 200)
    put.log.put_message(Message("T", b"x"))
    raw = put.files.read(0, put.log.wrote)
    for bad in (raw[:-1], raw + b"\0", b""):
        with pytest.raises(CorruptUnit):
            put.log.append_raw(bad)
    big = PutLog(tmp_path / "big")
    big.log.put_message(Message("T", b"x" * 200))
    with pytest.raises(UsageError, match="does not fit"):
        put.log.append_raw(big.files.read(0, big.log.wrote))
