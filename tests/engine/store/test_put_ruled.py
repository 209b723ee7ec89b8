"""Puts with rules: CRC, IPv6, versions, batches, light queues, units stored again (docs/formats/commit-log.md,
docs/formats/consume-queue.md#light-queues).
"""

from __future__ import annotations

import golden_stores
import pytest
from put_logs import PutLog

from engine.codec import batch, properties
from engine.codec import message as codec
from engine.codec.encode import Message
from engine.errors import CorruptUnit, UsageError
from engine.store.put_message import AppendMessageStatus, PutMessageStatus

Status = PutMessageStatus


# Property CRC, IPv6, version 2


def test_property_crc_when_configured(tmp_path) -> None:
    put = PutLog(tmp_path, enabled_append_prop_crc=True)
    for results in ({}, {"a": "b"}, {"__CRC32#": "1234567890", "a": "b"}):
        result = put.log.put_message(Message("T", b"x", 0, results))
        unit = put.files.read(result.append.physical_offset, result.append.size)
        assert properties.verify_crc(unit)
        assert codec.decode(unit).properties.keys() == {"__CRC32#", *results}
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


def test_4_9_removes_wait_from_messages_to_light_queues(tmp_path) -> None:
    put = PutLog(tmp_path, release="4.9", enable_lmq=True, enable_multi_dispatch=True)
    unit = put.unit(put.log.put_message(Message("T", b"x", 3, {"INNER_MULTI_DISPATCH": "%LMQ%a", "WAIT": "true"})))
    assert unit.properties == {"INNER_MULTI_DISPATCH": "%LMQ%a", "INNER_MULTI_QUEUE_OFFSET": "0"}
    put.offsets.load({(f"%LMQ%{n}", 0): 1 for n in range(20_001)})
    full = put.log.put_message(Message("T", b"x", 3, {"INNER_MULTI_DISPATCH": "%LMQ%a"}))
    assert full.status is Status.LMQ_CONSUME_QUEUE_NUM_EXCEEDED


@pytest.mark.parametrize(
    ("body", "extra", "status"),
    [(b"x", "v" * 32_720, "PROPERTIES_SIZE_EXCEEDED"), (b"x" * 1000, "v", "MESSAGE_SIZE_EXCEEDED")],
)
def test_messages_to_light_queues_are_checked_for_length_late(tmp_path, body, extra, status) -> None:
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
    position = 0
    while position < 100_000 and not isinstance(frame := codec.check_frame(data, position, len(data)), str):
        raw = data[position : position + frame.size]
        offset = put.log.append_raw(raw)
        repeated = put.files.read(offset, frame.size)
        unit, copy = codec.decode(raw), codec.decode(repeated)
        assert (copy.physical_offset, copy.queue_offset, copy.store_timestamp) == (
            offset,
            unit.queue_offset,
            unit.store_timestamp,
        )
        assert properties.verify_crc(repeated) is properties.verify_crc(raw)
        assert put.log.append_raw(repeated) == offset + frame.size
        position += frame.size
    assert position > 10_000


def test_invalid_units_are_not_stored_again(tmp_path) -> None:
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


@pytest.mark.parametrize(("release", "shared"), [("5.3", b"WAIT\x01true\x02"), ("5.4", b"")])
def test_a_classic_batch_becomes_a_unit_each(tmp_path, release, shared) -> None:
    """Since 5.3.4 the properties of the batch are not added to those of its messages. Ours added them always."""
    put = PutLog(tmp_path, release=release)
    put.log.put_message(Message("T", b"before", 2))
    many = [
        Message("T", b"one", 2, {"TAGS": "a"}, flag=1, reconsume_times=3, born_host="10.0.0.1:1"),
        Message("T", b"two", 2, properties_raw=b"KEYS\x01k", flag=2, born_host="10.0.0.2:2"),
        Message("T", b"", 2),
    ]
    result = put.log.put_batch(many, {"WAIT": "true"})
    units = put.units()[1:]
    assert result.status is Status.PUT_OK
    assert (result.append.queue_offset, result.append.message_count) == (1, 3)
    assert result.append.unit_offsets == tuple(unit.offset for unit in units)
    assert result.append.msg_id.split(",") == [unit.offset_msg_id for unit in units]
    assert result.append.end_offset == put.log.wrote
    assert [unit.queue_offset for unit in units] == [1, 2, 3]
    assert [unit.flag for unit in units] == [1, 2, 0]
    assert {(unit.born_host, unit.reconsume_times) for unit in units} == {("10.0.0.1:1", 3)}, (
        "the batch's, not their own"
    )
    assert [unit.properties_raw for unit in units] == [
        b"TAGS\x01a\x02" + shared,
        b"KEYS\x01k\x02" + shared if shared else b"KEYS\x01k",
        shared,
    ]
    assert put.log.put_message(Message("T", b"after", 2)).append.queue_offset == 4


def test_a_batch_lies_in_one_file(tmp_path) -> None:
    """The total size decides: even if the first elements would fit, all go to the next file."""
    put = PutLog(tmp_path, 1000)
    put.log.put_message(Message("T", b"x" * 300))
    result = put.log.put_batch([Message("T", b"y" * 100)] * 4)
    assert result.append.physical_offset == 1000
    too_long = put.log.put_batch([Message("T", b"y" * 400)] * 4)
    assert (too_long.status, too_long.append.status) == (Status.PUT_OK, AppendMessageStatus.END_OF_FILE)
    assert put.offsets.next("T", 0) == 5


def test_a_batch_with_property_crcs(tmp_path) -> None:
    put = PutLog(tmp_path, enabled_append_prop_crc=True)
    put.log.put_batch([Message("T", b"x", properties_raw=b"a\x01b"), Message("T", b"y")])
    for unit in put.units():
        assert properties.verify_crc(put.files.read(unit.offset, unit.size))


NO_BATCHES = [
    pytest.param([], None, id="nothing"),
    pytest.param([Message("T", b"x"), Message("U", b"x")], None, id="two topics"),
    pytest.param([Message("T", b"x"), Message("T", b"x", 1)], None, id="two queues"),
    pytest.param([Message("%RETRY%g", b"x")], None, id="retry topic"),
    pytest.param([Message("T", b"x", sys_flag=4)], None, id="transaction"),
    pytest.param([Message("T", b"x")], {"DELAY": "1"}, id="delayed"),
    pytest.param([Message("T", b"x", properties={"DELAY": "1"})], None, id="delayed element"),
    pytest.param([Message("T", b"x")], {"DELAY": "x"}, id="delayed by nonsense"),
    pytest.param([Message("T", b"x" * 100_001)], None, id="too long"),
    pytest.param([Message("T", b"x", born_host="?")], None, id="no host"),
    pytest.param([Message("T", None)], None, id="no body"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("many", "shared"), NO_BATCHES)
def test_no_batch(tmp_path, many, shared) -> None:
    put = PutLog(tmp_path, max_message_size=100_000)
    assert put.log.put_batch(many, shared).status is Status.MESSAGE_ILLEGAL
    assert put.log.wrote == 0


def test_properties_of_a_batch_count_for_each_element(tmp_path) -> None:
    put = PutLog(tmp_path, release="5.3")
    many = [Message("T", b"x"), Message("T", b"x", 0, {"p": "v" * 20_000})]
    assert put.log.put_batch(many, {"q": "v" * 20_000}).status is Status.PROPERTIES_SIZE_EXCEEDED


def test_an_inner_batch_is_one_unit(tmp_path) -> None:
    put = PutLog(tmp_path)
    many = [Message("Batch", b"one", 1, {"TAGS": "a"}), Message("Batch", b"two", 1, {"TAGS": "b"}, flag=9)]
    for base in (0, 2):
        result = put.log.put_batch(many, {"UNIQ_KEY": "U"})
        unit = put.unit(result)
        assert (result.append.queue_offset, result.append.message_count) == (base, 2)
        assert unit.sys_flag == codec.INNER_BATCH | codec.NEED_UNWRAP
        assert unit.properties == {"UNIQ_KEY": "U", "INNER_NUM": "2", "INNER_BASE": str(base)}
        assert [(member.body, member.flag) for member in batch.members(unit.body)] == [(b"one", 0), (b"two", 9)]
    assert put.log.put_message(Message("Batch", b"x", 1)).append.queue_offset == 4


def test_without_a_unique_key_a_batch_topic_takes_a_classic_batch(tmp_path) -> None:
    put = PutLog(tmp_path)
    assert len(put.log.put_batch([Message("Batch", b"one"), Message("Batch", b"two")]).append.unit_offsets) == 2


def test_a_ready_inner_batch_may_be_put_as_a_message(tmp_path) -> None:
    put = PutLog(tmp_path)
    flags = codec.INNER_BATCH | codec.NEED_UNWRAP
    for results in ({"properties": {"INNER_NUM": "3"}}, {"properties_raw": b"INNER_NUM\x013\x02"}):
        result = put.log.put_message(Message("Batch", b"...", sys_flag=flags, **results))
        assert result.append.message_count == 3
    assert put.unit(result).properties == {"INNER_NUM": "3", "INNER_BASE": "3"}
    assert (
        put.log.put_message(Message("Batch", b"", sys_flag=flags, properties={"INNER_NUM": "0"})).append.message_count
        == 1
    )
    for bad in ("40000", "x"):
        result = put.log.put_message(Message("Batch", b"", sys_flag=flags, properties={"INNER_NUM": bad}))
        assert result.status is Status.MESSAGE_ILLEGAL


def test_a_batch_is_stored_as_the_client_encoded_it(tmp_path) -> None:
    """This includes properties without a terminator, which a map could not reproduce."""
    put = PutLog(tmp_path, release="5.3")
    members = batch.encode_member(7, b"one", b"a\x01b") + batch.encode_member(0, b"two", b"")
    result = put.log.put_encoded_batch(Message("T", members, 3, {"UNIQ_KEY": "U"}))
    units = put.units()
    assert result.append.unit_offsets == tuple(unit.offset for unit in units)
    assert [(unit.body, unit.flag, unit.queue_id, unit.queue_offset) for unit in units] == [
        (b"one", 7, 3, 0),
        (b"two", 0, 3, 1),
    ]
    assert [unit.properties_raw for unit in units] == [b"a\x01b\x02UNIQ_KEY\x01U\x02", b"UNIQ_KEY\x01U\x02"]


@pytest.mark.parametrize("body", [b"", b"x", batch.encode_member(0, b"one", b"") + b"rest of it"])
def test_a_batch_with_invalid_members_is_refused_completely(tmp_path, body) -> None:
    put = PutLog(tmp_path)
    assert put.log.put_encoded_batch(Message("T", body)).status is Status.MESSAGE_ILLEGAL
    assert put.log.wrote == 0
