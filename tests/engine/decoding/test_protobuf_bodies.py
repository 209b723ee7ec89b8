"""Protobuf by a descriptor set."""

from __future__ import annotations

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from engine.decoding.decoders import MissingDecoder
from engine.decoding.protobuf_bodies import message_types, prepare
from engine.decoding.values import BadBody
from engine.errors import UsageError

_TYPES = {"int64": 3, "string": 9, "message": 11, "bytes": 12}


def descriptor_set() -> descriptor_pb2.FileDescriptorSet:
    """Return what ``protoc`` writes for a message with a nested one, a map's worth of lines and a time."""
    files = descriptor_pb2.FileDescriptorSet()
    file = files.file.add(name="shop.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    order = file.message_type.add(name="Order")
    line = order.nested_type.add(name="Line")
    fields = (
        (order, "id", "int64", 1, ""),
        (order, "customer_name", "string", 1, ""),
        (order, "lines", "message", 3, ".shop.Order.Line"),
        (order, "created", "message", 1, ".google.protobuf.Timestamp"),
        (order, "raw", "bytes", 1, ""),
        (line, "sku", "string", 1, ""),
        (line, "next", "message", 1, ".shop.Order.Line"),
    )
    for message, name, kind, label, type_name in fields:
        message.field.add(name=name, number=len(message.field) + 1, type=_TYPES[kind], label=label)
        if type_name:
            message.field[-1].type_name = type_name
    return files


@pytest.fixture
def schema(tmp_path):
    file = tmp_path / "shop.desc"
    file.write_bytes(descriptor_set().SerializeToString())
    return str(file)


def _message():
    from google.protobuf import timestamp_pb2

    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(descriptor_set().file[0])
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))()


def test_a_message_is_read_by_its_descriptor_set(schema):
    """Fields keep their names in the schema; 64-bit numbers are texts, as in protobuf's own JSON."""
    order = _message()
    order.id, order.customer_name, order.raw = 2**60, "Ann", b"\x00"
    order.lines.add(sku="A-1")
    order.created.seconds = 1
    assert prepare(schema, "shop.Order")(order.SerializeToString()) == {
        "id": str(2**60),
        "customer_name": "Ann",
        "lines": [{"sku": "A-1"}],
        "created": "1970-01-01T00:00:01Z",
        "raw": "AA==",
    }
    assert message_types(schema) == ["shop.Order", "shop.Order.Line"]


@pytest.mark.parametrize("body", [b"\xff", b"hello", b"\x12\xff\xff\xff\xff\x07"])
def test_bytes_that_are_no_such_message_are_refused(schema, body):
    with pytest.raises(BadBody):
        prepare(schema, "shop.Order")(body)


def test_fields_of_another_message_are_not_taken_for_an_empty_one(schema):
    with pytest.raises(BadBody, match=r"no field of shop.Order is in the body"):
        prepare(schema, "shop.Order")(b"\xa0\x06\x05")
    value = prepare(schema, "shop.Order")(b"\x08\x07\xa0\x06\x05")
    assert value == {"id": "7", "(unknown)": "1 field is not in shop.Order"}


def test_deep_nesting_is_refused(schema):
    body = b""
    for _ in range(300):
        length = bytes([len(body)]) if len(body) < 128 else bytes([len(body) & 127 | 128, len(body) >> 7])
        body = b"\x12" + length + body
    with pytest.raises(BadBody):
        prepare(schema, "shop.Order.Line")(body)


def test_what_is_wrong_with_the_schema_is_said(schema, tmp_path):
    with pytest.raises(UsageError, match=r"no message 'shop.Ordr'; there are shop.Order, shop.Order.Line"):
        prepare(schema, "shop.Ordr")
    with pytest.raises(MissingDecoder, match="No such file"):
        prepare(str(tmp_path / "none.desc"), "shop.Order")
    (tmp_path / "text.desc").write_text("message Order {}")
    with pytest.raises(UsageError, match="expected a set of descriptors"):
        prepare(str(tmp_path / "text.desc"), "shop.Order")
    files = descriptor_set()
    files.file[0].dependency.append("shop/money.proto")
    (tmp_path / "part.desc").write_bytes(files.SerializeToString())
    with pytest.raises(UsageError, match="--include_imports"):
        prepare(str(tmp_path / "part.desc"), "shop.Order")
