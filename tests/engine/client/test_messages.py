"""Messages as producers send them, and units as consumers receive them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.client.errors import WrongMessage
from engine.client.messages import (
    Message,
    ReceivedMessage,
    check_group,
    compressed,
    encode_batch,
    property_text,
    read_messages,
    received,
    reply_to,
    sent_properties,
)
from engine.client.routes import MessageQueue
from engine.codec import batch, encode
from engine.codec import message as codec
from engine.codec.compression import unpack
from engine.errors import CorruptUnit

QUEUE = MessageQueue("T", "broker-a", 3)


def unit(body: bytes, properties: dict[str, str], offset: int = 5, sys_flag: int = 0) -> bytes:
    message = encode.Message("T", body, 3, properties, sys_flag=sys_flag, born_timestamp=1, reconsume_times=2)
    return encode.encode_unit(message, queue_offset=offset, physical_offset=offset * 1000, store_timestamp=2)


def test_the_protocol_s_own_batch_member_is_written() -> None:
    """See docs/protocol/check-vectors.md#send-request; the order of properties differs."""
    encoded = encode_batch([Message("T", b"B1", tags="TagA", keys="k1", msg_id="U")], 0)
    (member,) = batch.members(encoded.body)
    assert (member.body, member.properties) == (b"B1", {"KEYS": "k1", "TAGS": "TagA", "WAIT": "true", "UNIQ_KEY": "U"})
    assert encoded.properties.startswith("WAIT\x01true\x02UNIQ_KEY\x01")
    assert encode_batch([Message("T", b"B1")], 0, with_id=False).properties == "WAIT\x01true\x02"
    with pytest.raises(WrongMessage, match="over max value"):
        encode_batch([Message("T", b"x" * 60)] * 2, 0, max_body=100)


def test_units_are_read_as_messages() -> None:
    body, bits = compressed(b"tea " * 2000, "zlib")
    message, unpacked_message = read_messages(
        unit(b"a", {"UNIQ_KEY": "U", "TAGS": "t", "KEYS": "k l"}) + unit(body, {}, 6, bits), QUEUE
    )
    assert (message.topic, message.body, message.msg_id, message.tags, message.keys) == ("T", b"a", "U", "t", "k l")
    assert (message.queue_offset, message.physical_offset, message.reconsume_times) == (5, 5000, 2)
    assert (message.born_timestamp, message.store_timestamp, message.queue) == (1, 2, QUEUE)
    assert message.transaction_id == "U"
    assert unpacked_message.body == b"tea " * 2000
    assert unpacked_message.msg_id == unpacked_message.offset_msg_id
    assert unpacked_message.sys_flag & codec.COMPRESSED == 0


@pytest.mark.parametrize(
    ("kind", "head", "tail"),
    [("zlib", "785e", ""), ("lz4", "04224d18607073", "00000000"), ("zstd", "28b52ffd0058", "010000")],
)
def test_bodies_are_packed_as_java_packs_them(kind: str, head: str, tail: str) -> None:
    """The bytes are those of real clients: a flushed zstd stream ends with an empty block, and lz4 declares blocks
    of 4 MiB.
    """
    body = b"a large cup of tea " * 500
    packed, bits = compressed(body, kind)
    assert packed.hex().startswith(head)
    assert packed.hex().endswith(tail)
    assert unpack(packed, bits).data == body


def test_an_inner_batch_is_split_into_messages() -> None:
    inner = batch.encode(0, b"one", {"KEYS": "1"}) + batch.encode(0, b"two", {"KEYS": "2"})
    raw = unit(inner, {"CLUSTER": "C"}, 10, codec.INNER_BATCH | codec.NEED_UNWRAP)
    messages = read_messages(raw, QUEUE)
    assert [(item.body, item.queue_offset, item.keys) for item in messages] == [(b"one", 10, "1"), (b"two", 11, "2")]
    assert messages[0].properties["CLUSTER"] == "C"


def test_a_reply_goes_to_the_topic_of_its_request() -> None:
    (message,) = read_messages(
        unit(b"?", {"CLUSTER": "C", "CORRELATION_ID": "7", "REPLY_TO_CLIENT": "me", "TTL": "3000"}), QUEUE
    )
    reply = reply_to(message, b"!")
    assert reply.topic == "C_REPLY_TOPIC"
    assert reply.properties == {
        "MSG_TYPE": "reply",
        "CORRELATION_ID": "7",
        "REPLY_TO_CLIENT": "me",
        "TTL": "3000",
    }
    with pytest.raises(WrongMessage):
        reply_to(read_messages(unit(b"?", {}), QUEUE)[0], b"!")


def test_names_and_texts_are_validated() -> None:
    check_group("%RETRY%-_a1")
    for wrong in ("", "a b", "a" * 256):
        with pytest.raises(WrongMessage):
            check_group(wrong)
    with pytest.raises(WrongMessage, match="32,767"):
        property_text({"a": "b" * 32_768})
    with pytest.raises(WrongMessage, match="known are lz4, zlib, zstd"):
        compressed(b"", "snappy")


def test_plain_units_are_read_like_all_others() -> None:
    """The fast path for plain units gives the same message as the general path."""
    raw = unit(b"tea", {"UNIQ_KEY": "U", "KEYS": "k"})
    (quick,) = read_messages(raw, QUEUE)
    slow = received(codec.decode(raw), QUEUE)
    for name in (
        *(slot for slot in ReceivedMessage.__slots__ if not slot.startswith("_")),
        "properties",
        "msg_id",
        "offset_msg_id",
        "born_host",
        "store_host",
    ):
        assert getattr(quick, name) == getattr(slow, name), name


def test_invalid_bytes_are_refused_at_every_position() -> None:
    raw = unit(b"tea", {"KEYS": "k"})
    for position in (0, 3, 4, 84, 87, 91):
        for value in (0xFF, 0x7F):
            wrong = bytearray(raw)
            wrong[position] = value
            with pytest.raises(CorruptUnit):
                read_messages(bytes(wrong), QUEUE)
    for length in range(1, len(raw)):
        with pytest.raises(CorruptUnit):
            read_messages(raw[:length], QUEUE)


def test_fields_added_by_a_consumer_are_visible_on_every_access() -> None:
    (message,) = read_messages(unit(b"a", {"KEYS": "k"}), QUEUE)
    message.note({"MIN_OFFSET": "0"})
    message.note({"MAX_OFFSET": "9"})
    assert message.properties == {"KEYS": "k", "MIN_OFFSET": "0", "MAX_OFFSET": "9"}
    message.note({"CONSUME_START_TIME": "1"})
    assert message.properties["CONSUME_START_TIME"] == "1"
    assert "Orders" not in repr(message)


@given(
    keys=st.sampled_from(["", "order-1", "a b", "ключ", "a\x01b"]),
    tags=st.sampled_from(["", "hot", "标签", "\x02", "x" * 32_500]),
    waits=st.booleans(),
    level=st.sampled_from([0, 3]),
    properties=st.sampled_from([{}, {"a": "1"}, {"WAIT": "maybe"}]),
)
def test_the_fast_path_builds_the_same_property_text(keys, tags, waits, level, properties) -> None:
    message = Message("T", b"x", tags, keys, properties, delay_level=level, waits=waits, msg_id="7F00")

    def text_or_refusal(build) -> str:
        try:
            return build()
        except WrongMessage as error:
            return f"refused: {error}"

    assert text_or_refusal(lambda: sent_properties(message)) == text_or_refusal(
        lambda: property_text({**message.all_properties(), "UNIQ_KEY": message.msg_id})
    )
