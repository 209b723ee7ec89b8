"""The message unit: the check vector, every form, and invalid bytes."""

import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from raw_units import raw_unit, with_property_crc

from engine.codec import message
from engine.codec.message import Unit, check_frame, decode, decode_frame, list_fields
from engine.errors import CorruptUnit

VECTOR = bytes.fromhex(
    "0000007b daa320a7 77d18982 00000003 00000000 0000000000000005 00000000000004d2 00000000 0000018bcfe56800 c0a80102"
    "0000c350 0000018bcfe5687b 7f000001 00002a9f 00000000 0000000000000000 00000005 48656c6c6f 09 546f70696354657374"
    "0012 54414753 01 54616741 02 4b455953 01 6b31 02"
)


def test_the_check_vector_of_the_format_notes():
    unit = decode(VECTOR, base=1234)
    assert raw_unit(1234) == VECTOR
    assert (unit.offset, unit.size, unit.end, unit.version) == (1234, 123, 1357, 1)
    assert (unit.body_crc, unit.crc, unit.body) == (2010220930, "ok", b"Hello")
    assert (unit.queue_id, unit.flag, unit.queue_offset, unit.physical_offset) == (3, 0, 5, 1234)
    assert (unit.sys_flag, unit.reconsume_times, unit.prepared_transaction_offset) == (0, 0, 0)
    assert (unit.born_timestamp, unit.born_host) == (1_700_000_000_000, "192.168.1.2:50000")
    assert (unit.store_timestamp, unit.store_host) == (1_700_000_000_123, "127.0.0.1:10911")
    assert (unit.topic, unit.tags, unit.keys, unit.unique_key) == ("TopicTest", "TagA", ["k1"], None)
    assert unit.tags_code == 2598919
    assert unit.offset_msg_id == "7F00000100002A9F00000000000004D2"
    assert not unit.stale


def size_by_formula(fields):
    """Return the size of a unit by the formula of the format notes."""
    size = 91 + len(fields.get("body", b"Hello")) + len(fields.get("topic", b"TopicTest"))
    size += len(fields.get("properties", b"TAGS\x01TagA\x02KEYS\x01k1\x02")) + (fields.get("version") == 2)
    return size + 12 * bool(fields.get("sys_flag", 0) & 0x10) + 12 * bool(fields.get("sys_flag", 0) & 0x20)


FORMS = [
    pytest.param({}, id="V1"),
    pytest.param({"version": 2}, id="V2"),
    pytest.param({"version": 2, "topic": b"%RETRY%" + b"g" * 200}, id="V2, long topic"),
    pytest.param({"sys_flag": 0x10}, id="born host IPv6"),
    pytest.param({"sys_flag": 0x20}, id="store host IPv6"),
    pytest.param({"sys_flag": 0x30}, id="both IPv6"),
    pytest.param({"sys_flag": 0x30, "version": 2}, id="both IPv6, V2"),
    pytest.param({"body": b"", "topic": b"", "properties": b""}, id="nothing of variable length"),
    pytest.param({"body": bytes(100_000)}, id="a large body"),
    pytest.param({"topic": "主题".encode()}, id="topic outside ASCII"),
    pytest.param({"properties": b"x" * 32_767}, id="as many properties as there may be"),
    pytest.param({"queue_id": -1, "flag": -(1 << 31), "queue_offset": -1, "born": -1, "stored": -1}, id="below zero"),
    pytest.param({"queue_offset": (1 << 63) - 1, "prepared": 1 << 62, "reconsume": 1 << 30}, id="large numbers"),
]


@pytest.mark.parametrize("fields", FORMS)
def test_every_form_is_read_field_by_field(fields):
    raw = raw_unit(777, **fields)
    unit = decode(b"\xaa" * 5 + raw + b"\xbb" * 5, 5, 772)
    assert (len(raw), unit.size, unit.offset, unit.physical_offset) == (size_by_formula(fields), len(raw), 777, 777)
    assert unit.version == fields.get("version", 1)
    assert unit.body == fields.get("body", b"Hello")
    assert unit.topic == fields.get("topic", b"TopicTest").decode()
    assert unit.properties_raw == fields.get("properties", b"TAGS\x01TagA\x02KEYS\x01k1\x02")
    assert (unit.queue_id, unit.flag, unit.queue_offset) == (
        fields.get("queue_id", 3),
        fields.get("flag", 0),
        fields.get("queue_offset", 5),
    )
    assert (unit.prepared_transaction_offset, unit.reconsume_times) == (
        fields.get("prepared", 0),
        fields.get("reconsume", 0),
    )
    assert unit.crc == "ok"
    born, stored = len(unit.born_host_raw), len(unit.store_host_raw)
    flags = fields.get("sys_flag", 0)
    assert (born, stored) == (20 if flags & 0x10 else 8, 20 if flags & 0x20 else 8)


@pytest.mark.parametrize("fields", FORMS)
def test_the_parts_of_a_unit_cover_each_of_its_bytes_once(fields):
    raw = raw_unit(0, **fields)
    position = 0
    for part in list_fields(raw):
        assert part.position == position, part.name
        position += part.length
    assert position == len(raw)


@pytest.mark.parametrize("fields", FORMS)
def test_a_unit_with_a_property_crc_is_a_unit(fields):
    if len(fields.get("properties", b"")) < 32_000:
        unit = decode(with_property_crc(raw_unit(0, **fields)))
        assert unit.crc == "ok"
        assert unit.properties["__CRC32#"].isdecimal()


@pytest.mark.parametrize("fields", FORMS)
@pytest.mark.parametrize("kept_bytes", [0, 1, 7, 8, 47, 48, 87, 90, -1, -20])
def test_a_truncated_unit_is_reported(fields, kept_bytes):
    raw = raw_unit(0, **fields)
    end = kept_bytes if kept_bytes >= 0 else max(len(raw) + kept_bytes, 0)
    if end < len(raw):
        output = check_frame(raw[:end], 0, end)
        assert isinstance(output, str)
        assert output.startswith("cut off")
        with pytest.raises(CorruptUnit) as caught:
            decode(raw[:end], base=4000)
        assert caught.value.offset == 4000


def spoilt(position, value, form=">i"):
    raw = bytearray(raw_unit(0))
    struct.pack_into(form, raw, position, value)
    return bytes(raw) + bytes(300)


BROKEN = [
    pytest.param(spoilt(4, 0), "magic", id="no magic"),
    pytest.param(spoilt(4, 0xCBD43194, ">I"), "magic", id="a blank's magic"),
    pytest.param(spoilt(0, 0), "length field", id="length 0"),
    pytest.param(spoilt(0, 90), "length field", id="shorter than any unit"),
    pytest.param(spoilt(0, -1), "length field", id="length below zero"),
    pytest.param(spoilt(0, 0x7FFFFFFF), "length field", id="a huge length"),
    pytest.param(spoilt(0, 124), "propertiesLength", id="one byte too long"),
    pytest.param(spoilt(0, 122), "propertiesLength", id="one byte too short"),
    pytest.param(spoilt(84, -1), "bodyLength", id="body length below zero"),
    pytest.param(spoilt(84, 0x7FFFFFFF), "bodyLength", id="body length that overflows"),
    pytest.param(spoilt(84, 500), "bodyLength", id="body longer than the unit"),
    pytest.param(spoilt(93, -1, ">b"), "topicLength", id="topic length below zero"),
    pytest.param(spoilt(93, 120, ">b"), "topicLength", id="topic longer than the unit"),
    pytest.param(spoilt(103, -1, ">h"), "propertiesLength", id="properties length below zero"),
    pytest.param(spoilt(103, 0x7FFF, ">h"), "propertiesLength", id="properties longer than the unit"),
    pytest.param(spoilt(36, 0x30), "", id="flags that move every later field"),
]


@pytest.mark.parametrize(("raw", "message"), BROKEN)
def test_broken_lengths_are_named_and_never_followed(raw, message):
    frame_error = check_frame(raw, 0, len(raw))
    assert isinstance(frame_error, str)
    assert message in frame_error
    assert list_fields(raw) == []


CRCS = [
    pytest.param({"body_crc": 7}, "bad", id="wrong"),
    pytest.param({}, "ok", id="right"),
    pytest.param({"body_crc": message.crc31(b"Hello") - (1 << 31)}, "bad", id="the masked bit set"),
    pytest.param({"body": b""}, "ok", id="no body"),
]


@pytest.mark.parametrize(("fields", "crc"), CRCS)
def test_the_body_crc(fields, crc):
    raw = raw_unit(0, **fields)
    assert decode(raw).crc == crc
    assert decode(raw, crc=False).crc == "unchecked"


def test_a_unit_that_belongs_elsewhere_is_stale():
    assert decode(raw_unit(5000), base=0).stale
    assert decode(raw_unit(5000), base=0).offset_msg_id.endswith(f"{5000:016X}")


TAGS_CODES = [
    pytest.param("T", {}, 0, id="no tag"),
    pytest.param("T", {"TAGS": "TagA"}, 2598919, id="a tag"),
    pytest.param("T", {"TAGS": "polygenelubricants"}, -(1 << 31), id="a hash below zero"),
    pytest.param("SCHEDULE_TOPIC_XXXX", {"DELAY": "3", "TAGS": "TagA"}, 10_100, id="delay level 3"),
    pytest.param("SCHEDULE_TOPIC_XXXX", {"DELAY": "99"}, 7_200_100, id="a level past the last is the last"),
    pytest.param("SCHEDULE_TOPIC_XXXX", {"DELAY": "0", "TAGS": "TagA"}, 2598919, id="level 0"),
    pytest.param("SCHEDULE_TOPIC_XXXX", {"DELAY": "x", "TAGS": "TagA"}, 2598919, id="no number"),
    pytest.param("SCHEDULE_TOPIC_XXXX", {"TAGS": "TagA"}, 2598919, id="no level"),
]


@pytest.mark.parametrize(("topic", "properties", "code"), TAGS_CODES)
def test_tags_code(topic, properties, code):
    assert message.tags_code_of(topic, properties, 100) == code


IDS = [
    pytest.param("7F00000100002A9F00000000000004D2", (bytes([127, 0, 0, 1, 0, 0, 0x2A, 0x9F]), 1234), id="IPv4"),
    pytest.param(
        "20010DB800000000000000000000004200002A9F00000000000004D2",
        (socket.inet_pton(socket.AF_INET6, "2001:db8::42") + bytes([0, 0, 0x2A, 0x9F]), 1234),
        id="IPv6",
    ),
]


@pytest.mark.parametrize(("text", "parsed"), IDS)
def test_offset_message_ids_both_ways(text, parsed):
    assert message.parse_offset_message_id(text) == parsed
    assert message.parse_offset_message_id(text.lower()) == parsed
    assert message.offset_message_id(*parsed) == text


@pytest.mark.parametrize("text", ["", "7F", "G" * 32, "7F" * 15, "7 " * 16, "7F" * 28 + "0", "ü" * 32])
def test_invalid_offset_message_ids(text):
    assert message.parse_offset_message_id(text) is None or len(text) in {32, 56}
    assert message.parse_offset_message_id(text) is None


def test_a_unique_key_contains_its_producer():
    unique_key = message.parse_unique_key("7F0000016CA35FFD2B2768C31D7F0001")
    assert unique_key == ("127.0.0.1", 0x6CA3, 0x5FFD2B27, 0x68C31D7F, 1)
    assert message.parse_unique_key("no key") is None
    assert message.parse_unique_key("20010DB8" + "0" * 48).ip == "2001:db8::"


FLAGS = [
    (0, []),
    (0x301, ["compressed, zlib"]),
    (0x101, ["compressed, lz4"]),
    (0x201, ["compressed, zstd"]),
    (0x701, ["compressed, unknown type 7"]),
    (0x300, ["compression type 3, body not compressed"]),
    (0x4, ["PREPARED of a transaction"]),
    (0x38, ["COMMIT of a transaction", "born host IPv6", "store host IPv6"]),
    (0xC2, ["multi tags", "needs unwrapping", "inner batch"]),
    (-(1 << 31), ["unknown bits 0x80000000"]),
]


@pytest.mark.parametrize(("flags", "words"), FLAGS)
def test_names_of_system_flags(flags, words):
    assert message.sys_flag_words(flags) == words


BATCH_SIZES = [
    (b"", 1),
    (b"INNER_NUM\x014\x02", 1),
    (b"INNER_NUM\x014\x02INNER_BASE\x018\x02", 4),
    (b"INNER_NUM\x01x\x02INNER_BASE\x018\x02", 1),
]


@pytest.mark.parametrize(("properties", "size"), BATCH_SIZES)
def test_messages_in_a_unit(properties, size):
    assert decode(raw_unit(0, properties=properties)).batch_size == size


@given(st.binary(max_size=400), st.integers(0, 50))
def test_any_bytes_are_measured_without_an_error(raw, position):
    frame = check_frame(raw, position, len(raw))
    if not isinstance(frame, str):
        assert isinstance(decode_frame(raw, position, frame, 0), Unit)
    list_fields(raw, position)


@given(st.data())
def test_a_unit_with_a_few_bytes_changed_is_read_or_refused(data):
    raw = bytearray(raw_unit(0, sys_flag=data.draw(st.sampled_from([0, 0x10, 0x20, 0x30]))))
    for position in data.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, max_size=6)):
        raw[position] = data.draw(st.integers(0, 255))
    results = check_frame(raw, 0, len(raw))
    if not isinstance(results, str):
        unit = decode_frame(raw, 0, results, 0)
        assert unit.size <= len(raw)
        assert len(unit.body) + len(unit.properties_raw) <= len(raw)
