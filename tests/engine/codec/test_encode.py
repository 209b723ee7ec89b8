"""Encoding units: the check vector, every unit of real stores, and generated messages."""

from __future__ import annotations

import golden_stores
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raw_units import raw_unit, with_property_crc

from engine.codec import batch, properties
from engine.codec import message as codec
from engine.codec.encode import (
    Message,
    TopicField,
    UnitRun,
    delete_property,
    encode_batch,
    encode_properties,
    encode_unit,
    host_raw,
    joined_properties,
    stored_properties,
)

VECTOR = (
    "0000007b daa320a7 77d18982 00000003 00000000 0000000000000005 00000000000004d2 00000000 0000018bcfe56800"
    "c0a80102 0000c350 0000018bcfe5687b 7f000001 00002a9f 00000000 0000000000000000 00000005 48656c6c6f"
    "09 546f70696354657374 0012 54414753 01 54616741 02 4b455953 01 6b31 02"
)
MESSAGE = Message(
    "TopicTest",
    b"Hello",
    3,
    {"TAGS": "TagA", "KEYS": "k1"},
    born_timestamp=1_700_000_000_000,
    born_host="192.168.1.2:50000",
)
PLACE = {"queue_offset": 5, "physical_offset": 1234, "store_timestamp": 1_700_000_000_123}


def test_check_vector() -> None:
    assert encode_unit(MESSAGE, **PLACE) == bytes.fromhex(VECTOR)


def test_check_vector_with_a_property_crc() -> None:
    unit = encode_unit(MESSAGE, **PLACE, property_crc=True)
    assert unit == with_property_crc(bytes.fromhex(VECTOR))
    assert unit.endswith(b"__CRC32#\x016196592561\x02")


@pytest.mark.golden
@pytest.mark.parametrize("name", golden_stores.names())
def test_every_unit_of_a_real_store_is_encoded_to_its_own_bytes(golden, name) -> None:
    for path in sorted(golden(name).glob("**/commitlog/*")):
        data = path.read_bytes()
        position = 0
        while not isinstance(frame := codec.check_frame(data, position, len(data)), str):
            unit = codec.decode_frame(data, position, frame, 0)
            place = {
                "queue_offset": unit.queue_offset,
                "physical_offset": unit.physical_offset,
                "store_timestamp": unit.store_timestamp,
            }
            stored = data[position : position + frame.size]
            if unit.crc != "bad":
                assert encode_unit(Message.of_unit(unit), **place) == stored, position
                if properties.CRC32 in unit.properties:
                    assert encode_unit(Message.of_unit(unit), **place, property_crc=True) == stored, position
            position += frame.size


i32 = st.integers(-(1 << 31), (1 << 31) - 1)
i64 = st.integers(-(1 << 63), (1 << 63) - 1)
plain = st.characters(exclude_categories=["Cs"], exclude_characters="\x01\x02")
names = st.text(plain, min_size=1, max_size=12)
values = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x02"), min_size=1, max_size=40)
hosts = st.tuples(st.ip_addresses(), st.integers(0, 65_535)).map(
    lambda pair: f"[{pair[0]}]:{pair[1]}" if pair[0].version == 6 else f"{pair[0]}:{pair[1]}"
)
messages = st.builds(
    Message,
    st.text(plain, min_size=1, max_size=30),
    st.binary(max_size=300),
    st.integers(0, (1 << 31) - 1),
    st.dictionaries(names.filter(lambda name: name != "__CRC32#"), values, max_size=6),
    flag=i32,
    sys_flag=st.sampled_from([0, 1, 2, codec.PREPARED, codec.COMMIT, codec.ROLLBACK, 0x101, 0x301]),
    born_timestamp=i64,
    born_host=hosts,
    store_host=hosts,
    reconsume_times=i32,
    prepared_transaction_offset=i64,
)


@given(messages, i64, i64, i64, st.booleans())
def test_an_encoded_unit_is_decoded(message, queue_offset, physical_offset, stored, with_crc) -> None:
    unit = codec.decode(
        encode_unit(
            message,
            queue_offset=queue_offset,
            physical_offset=physical_offset,
            store_timestamp=stored,
            property_crc=with_crc,
        ),
        base=physical_offset,
    )
    assert unit.crc == "ok"
    assert (unit.queue_offset, unit.physical_offset, unit.store_timestamp) == (queue_offset, physical_offset, stored)
    assert (unit.topic, unit.body, unit.queue_id, unit.flag) == (
        message.topic,
        message.body,
        message.queue_id,
        message.flag,
    )
    assert {name: value for name, value in unit.properties.items() if name != "__CRC32#"} == message.properties
    assert unit.sys_flag & ~0x30 == message.sys_flag
    assert (unit.born_timestamp, unit.reconsume_times) == (message.born_timestamp, message.reconsume_times)
    assert unit.prepared_transaction_offset == message.prepared_transaction_offset
    assert unit.born_host_raw == host_raw(message.born_host)
    assert unit.store_host_raw == host_raw(message.store_host)


def test_a_topic_of_128_units_makes_a_unit_of_version_2() -> None:
    message_v1, message_v2 = Message("%RETRY%" + "g" * 120, b"x"), Message("%RETRY%" + "g" * 121, b"x")
    assert codec.decode(encode_unit(message_v1, **PLACE)).version == 1
    assert codec.decode(encode_unit(message_v2, **PLACE)).version == 2
    assert codec.decode(encode_unit(message_v2, **PLACE)).topic == message_v2.topic


def test_a_topic_whose_bytes_do_not_fit_a_signed_byte_is_refused() -> None:
    """RocketMQ chooses the version by UTF-16 units but writes the length in bytes. A length of 193 was read as −63, and
    recovery ended there.
    """
    with pytest.raises(ValueError, match="193 bytes"):
        TopicField("%RETRY%" + "é" * 93)


def test_host_bits_follow_the_hosts() -> None:
    unit = codec.decode(
        encode_unit(MESSAGE.changed(born_host="[2001:db8::42]:1", sys_flag=codec.STORE_HOST_V6), **PLACE)
    )
    assert unit.sys_flag == codec.BORN_HOST_V6
    assert unit.born_host == "[2001:db8::42]:1"


@pytest.mark.parametrize(
    "host", ["", "1.2.3.4", "1.2.3.4:", "1.2.3.4:65536", "1.2.3:1", "[::1]", "host:1", "1.2.3.4:-1"]
)
def test_an_invalid_host_is_refused(host) -> None:
    with pytest.raises(ValueError, match="expected ip:port"):
        host_raw(host)


def test_null_values_are_omitted_and_empty_ones_written() -> None:
    assert encode_properties({"a": None, "b": "", "c": "None"}) == b"b\x01\x02c\x01None\x02"


@pytest.mark.parametrize("bad", [{"a": "x\x02y"}, {"": "x"}, {"a\x01": "x"}, {"a\x02": "x"}, {"a": "\ud800"}])
def test_properties_that_cannot_be_read_back_are_refused(bad) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  a UnicodeEncodeError is one
        encode_properties(bad)


def test_percent_signs_have_no_special_meaning() -> None:
    assert properties.decode(encode_properties({"100%s": "%d", "%%": "5%"})) == {"100%s": "%d", "%%": "5%"}


CUTS = [
    (b"", b""),
    (b"a\x01b\x02", b"a\x01b\x02"),
    (b"x\x011\x02y\x012\x02x\x013", b"y\x012\x02"),
    (b"ax\x011\x02x\x012", b"ax\x011\x02"),
]


@pytest.mark.parametrize(("raw", "remaining"), CUTS)
def test_a_property_is_cut_out_of_text(raw, remaining) -> None:
    assert delete_property(raw, "x") == remaining


def test_an_old_crc_is_replaced() -> None:
    old = b"a\x01b\x02__CRC32#\x010000000000\x02"
    assert stored_properties(old, True) == b"a\x01b\x02" + bytes(20)
    assert stored_properties(b"a\x01b", True) == b"a\x01b\x02" + bytes(20)
    assert stored_properties(b"", True) == bytes(20)
    assert stored_properties(old, False) == old


@given(st.lists(messages, max_size=5))
def test_a_batch_comes_apart_into_its_messages(many) -> None:
    members = batch.members(encode_batch(many))
    assert [(m.flag, m.body, m.properties) for m in members] == [(m.flag, m.body, m.properties) for m in many]


def test_property_texts_are_joined_with_one_separator() -> None:
    assert joined_properties(b"a\x01b", b"c\x01d") == b"a\x01b\x02c\x01d"
    assert joined_properties(b"a\x01b\x02", b"c\x01d") == b"a\x01b\x02c\x01d"
    assert joined_properties(b"a\x01b", b"") == b"a\x01b"
    assert joined_properties(b"", b"c\x01d") == b"c\x01d"


def test_a_copy_changes_only_the_named_fields() -> None:
    copy = MESSAGE.changed(queue_id=7)
    assert (copy.queue_id, copy.topic, MESSAGE.queue_id) == (7, "TopicTest", 3)
    assert copy != MESSAGE
    assert copy.changed(queue_id=3) == MESSAGE


def test_tags_and_keys_go_into_the_map() -> None:
    message = Message("T", b"", properties={"p": "1"}, tags="TagA", keys="a b", unique_key="U")
    assert message.properties == {"p": "1", "TAGS": "TagA", "KEYS": "a b", "UNIQ_KEY": "U"}
    assert (message.tags, message.keys, message.waits) == ("TagA", ["a", "b"], True)
    assert not Message("T", b"", properties={"WAIT": "false"}).waits


def test_a_handmade_unit_is_encoded_identically() -> None:
    raw = raw_unit(1234, sys_flag=codec.BORN_HOST_V6 | codec.STORE_HOST_V6, flag=-1, prepared=99)
    unit = codec.decode(raw)
    second_unit = encode_unit(
        Message.of_unit(unit), queue_offset=5, physical_offset=1234, store_timestamp=unit.store_timestamp
    )
    assert second_unit == raw


run_texts = st.sampled_from([b"", b"a\x01b", b"a\x01b\x02", b"__CRC32#\x010000000000\x02k\x01v\x02"])
elements = st.tuples(st.integers(0, 2**31 - 1), st.binary(max_size=20), run_texts)


@given(st.lists(elements, min_size=1, max_size=4), run_texts, st.booleans(), st.sampled_from(["1.2.3.4:5", "[::1]:6"]))
def test_a_run_of_units_equals_separately_encoded_units(many, shared, crc, host) -> None:
    body = b"".join(batch.encode_member(*member) for member in many)
    full_message = Message("Topic", body, 2, born_timestamp=5, born_host=host, sys_flag=1, reconsume_times=3)
    run = UnitRun(full_message, batch.spans(body), shared, stored_host=host_raw("[::2]:7"), property_crc=crc)
    data, offsets = run.place(40, 1000, 99)
    expected = b""
    for number, (flag, content, member_properties) in enumerate(many):
        raw = joined_properties(member_properties, shared)
        assert offsets[number] == 1000 + len(expected)
        message = full_message.changed(body=content, flag=flag, properties_raw=raw, store_host="[::2]:7")
        expected += encode_unit(
            message, queue_offset=40 + number, physical_offset=offsets[number], store_timestamp=99, property_crc=crc
        )
    assert bytes(data) == expected
    assert run.size == len(expected)


def test_a_run_without_a_time_is_born_when_it_is_stored() -> None:
    body = batch.encode_member(0, b"one", b"") + batch.encode_member(0, b"two", b"")
    run = UnitRun(Message("Topic", body), batch.spans(body), b"", stored_host=host_raw("1.2.3.4:5"))
    data, offsets = run.place(40, 1000, 99)
    units = [codec.decode(bytes(data), offset - 1000, base=1000) for offset in offsets]
    assert [(unit.born_timestamp, unit.store_timestamp, unit.queue_offset) for unit in units] == [
        (99, 99, 40),
        (99, 99, 41),
    ]


def test_values_that_do_not_fit_their_field_are_refused() -> None:
    long_text = b"a\x01" + b"b" * 40_000
    with pytest.raises(ValueError, match="properties of 40,002 bytes do not fit"):
        encode_unit(MESSAGE.changed(properties_raw=long_text), **PLACE)
    with pytest.raises(ValueError, match="properties of 40,002 bytes do not fit"):
        encode_batch([MESSAGE.changed(properties_raw=long_text)])
    with pytest.raises(ValueError, match="a number does not fit its field"):
        encode_unit(MESSAGE.changed(queue_id=1 << 31), **PLACE)
    member = batch.encode_member(0, b"", b"")
    with pytest.raises(ValueError, match="a number does not fit its field"):
        UnitRun(Message("T", member, 1 << 31), batch.spans(member), b"", stored_host=bytes(8))


def test_many_sets_of_property_names_are_encoded_correctly() -> None:
    """Map formats are cached by their names, and dropped when there are too many."""
    for number in range(5000):
        assert encode_properties({f"name{number}": "v"}) == b"name%d\x01v\x02" % number


def test_a_message_equals_only_messages_and_its_repr_has_no_body() -> None:
    assert MESSAGE != "TopicTest"
    assert repr(MESSAGE) == "Message('TopicTest', 5 bytes, queue 3, {'TAGS': 'TagA', 'KEYS': 'k1'})"
