"""Avro by a schema file."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime

import fastavro
import pytest
from fastavro.schema import fingerprint, to_parsing_canonical_form

from engine.decoding.avro_bodies import prepare
from engine.decoding.values import BadBody
from engine.errors import UsageError

_ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "time", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
_CHAIN = {
    "type": "record",
    "name": "Chain",
    "fields": [{"name": "n", "type": "int"}, {"name": "next", "type": ["null", "Chain"]}],
}


@pytest.fixture
def read(tmp_path):
    def reader(schema):
        file = tmp_path / "schema.avsc"
        file.write_text(json.dumps(schema))
        return prepare(str(file))

    return reader


def _written(schema, datum) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), datum)
    return stream.getvalue()


def test_a_datum_is_read_by_its_schema(read):
    body = _written(_ORDER, {"id": 7, "note": "x", "time": datetime(2026, 1, 2, tzinfo=UTC)})
    value = {"id": 7, "note": "x", "time": "2026-01-02T00:00:00+00:00"}
    assert read(_ORDER)(body) == value
    header = b"\xc3\x01" + bytes.fromhex(fingerprint(to_parsing_canonical_form(_ORDER), "CRC-64-AVRO"))
    assert read(_ORDER)(header + body) == value


def test_a_recursive_schema_is_read(read):
    chain = {"n": 1, "next": {"n": 2, "next": None}}
    assert read(_CHAIN)(_written(_CHAIN, chain)) == chain


def test_a_body_nested_a_hundred_thousand_times_does_not_end_the_program(read):
    """fastavro's compiled reader has no bound for its depth: such a body ended the process with a segmentation fault.
    A schema that contains itself is read by its plain reader.
    """
    with pytest.raises(BadBody, match="recursion"):
        read(_CHAIN)(b"\x02\x02" * 100_000)


@pytest.mark.parametrize("body", [b"", b"\x0e\x02\xff\xff\xff\xff\x7f", b"\xff" * 30, b"\x0e\x06"])
def test_bytes_that_are_no_such_datum_are_refused(read, body):
    with pytest.raises(BadBody, match="not valid Avro"):
        read(_ORDER)(body)


def test_bytes_behind_the_datum_and_container_files_are_refused(read):
    body = _written(_ORDER, {"id": 7, "note": None, "time": datetime(2026, 1, 2, tzinfo=UTC)})
    with pytest.raises(BadBody, match="3 bytes follow the value"):
        read(_ORDER)(body + b"abc")
    with pytest.raises(BadBody, match="an Avro container file"):
        read(_ORDER)(b"Obj\x01" + body)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": "null"},
        {"type": "map", "values": {"type": "array", "items": {"type": "record", "name": "Empty", "fields": []}}},
    ],
)
def test_an_array_whose_items_take_no_bytes_is_refused(read, schema):
    """Its length is a number in the body: five bytes promised billions of items, and reading them took hours."""
    with pytest.raises(UsageError, match="may be endless"):
        read(schema)


@pytest.mark.parametrize("text", ['{"type":', '{"type": "array", "items": "Unknown"}', '{"type": "nothing"}', "5"])
def test_what_is_no_schema_is_named(tmp_path, text):
    file = tmp_path / "bad.avsc"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        prepare(str(file))
    assert str(caught.value).startswith(str(file))
