"""Rows of an export become the bytes of their units again; a small export needs no Spark."""

from __future__ import annotations

import base64
import csv
import json

import pytest
from raw_units import raw_unit

from engine.codec.message import BORN_HOST_V6, STORE_HOST_V6, decode
from engine.errors import CannotRead, StoreError
from engine.pipeline.imports import NEEDED, check_columns, export_size, iter_units, unit_bytes

UNITS = [
    pytest.param(raw_unit(100), id="plain"),
    pytest.param(raw_unit(0, version=2, topic=b"T" * 200), id="version 2"),
    pytest.param(raw_unit(0, sys_flag=BORN_HOST_V6 | STORE_HOST_V6), id="hosts of IPv6"),
    pytest.param(raw_unit(0, body=b"", properties=b""), id="nothing in it"),
    pytest.param(raw_unit(7, body=bytes(range(256)), reconsume=3, prepared=99, flag=-1), id="every byte"),
]


def row_of(raw, store="a"):
    """Return the row of a unit in an export."""
    unit = decode(raw)
    return {
        "store": store,
        "physicalOffset": unit.physical_offset,
        "crc": "ok",
        "version": unit.version,
        "bodyCRC": unit.body_crc,
        "queueId": unit.queue_id,
        "flag": unit.flag,
        "queueOffset": unit.queue_offset,
        "sysFlag": unit.sys_flag,
        "bornTimestamp": unit.born_timestamp,
        "bornHost": unit.born_host,
        "storeTimestamp": unit.store_timestamp,
        "storeHost": unit.store_host,
        "reconsumeTimes": unit.reconsume_times,
        "preparedTransactionOffset": unit.prepared_transaction_offset,
        "topic": unit.topic,
        "body": unit.body,
        "propertiesRaw": unit.properties_raw,
    }


@pytest.mark.parametrize("raw", UNITS)
def test_a_row_is_the_unit_again_byte_for_byte(raw):
    row = row_of(raw)
    assert set(NEEDED) <= row.keys()
    assert unit_bytes(row) == raw


@pytest.mark.parametrize(
    "wrong", [{"bornHost": "nowhere"}, {"storeHost": None}, {"queueId": 1 << 40}, {"sysFlag": None}], ids=str
)
def test_a_row_that_is_no_unit_is_named_by_its_offset(wrong):
    with pytest.raises(StoreError, match="row with the physicalOffset 100 is no unit"):
        unit_bytes(row_of(raw_unit(100)) | wrong)


def in_text(row):
    return row | {name: base64.b64encode(row[name]).decode() for name in ("body", "propertiesRaw")}


def write_json(folder, *rows):
    folder.mkdir(exist_ok=True)
    (folder / "part-0.json").write_text("".join(json.dumps(in_text(row)) + "\n" for row in rows), "utf-8")


def read(folder, kind, store=None):
    return list(iter_units(str(folder), kind, store, lambda: None))


def test_lines_are_read_in_the_order_of_the_log(tmp_path):
    later, earlier = raw_unit(500), raw_unit(100, body=b"first")
    write_json(tmp_path / "out", row_of(later), row_of(earlier))
    assert read(tmp_path / "out", "json") == [(100, "ok", earlier), (500, "ok", later)]
    assert export_size(str(tmp_path / "out"), "json") == (tmp_path / "out/part-0.json").stat().st_size


def test_one_store_of_several_is_taken_alone(tmp_path):
    write_json(tmp_path / "out", row_of(raw_unit(100), "a"), row_of(raw_unit(200), "b"))
    assert [offset for offset, _, _ in read(tmp_path / "out", "json", "b")] == [200]


def test_csv_is_read_with_bodies_of_any_length(tmp_path):
    """The csv module refuses cells over 128 KiB by default; its limit is restored afterwards."""
    raw = raw_unit(100, body=b"x" * 200_000)
    row = in_text(row_of(raw))
    folder = tmp_path / "out"
    folder.mkdir()
    with (folder / "part-0.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, row)
        writer.writeheader()
        writer.writerow(row)
    limit_before = csv.field_size_limit()
    assert read(folder, "csv") == [(100, "ok", raw)]
    assert csv.field_size_limit() == limit_before


def test_files_that_spark_leaves_beside_are_not_read(tmp_path):
    write_json(tmp_path / "out", row_of(raw_unit(100)))
    (tmp_path / "out/_SUCCESS").write_text("")
    (tmp_path / "out/.part-0.json.crc").write_text("no json")
    assert len(read(tmp_path / "out", "json")) == 1


@pytest.mark.parametrize("line", ["no json", "{}", '{"body": "?", "propertiesRaw": ""}'])
def test_a_line_that_is_no_export_is_an_error_with_its_file(tmp_path, line):
    (tmp_path / "part-0.json").write_text(line + "\n")
    with pytest.raises(StoreError, match="expected rows of 'pipeline export'"):
        read(tmp_path, "json")


def test_a_file_that_cannot_be_read_is_not_taken_for_an_empty_one(tmp_path):
    (tmp_path / "part-0.json").mkdir()
    with pytest.raises(CannotRead, match="cannot be read"):
        read(tmp_path, "json")


def test_parquet_of_another_program_lacks_a_column(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    folder = tmp_path / "topic=T" / "day=2024-01-01"
    folder.mkdir(parents=True)
    parquet.write_table(pa.table({"physicalOffset": pa.array([1], pa.int64())}), folder / "x.parquet")
    with pytest.raises(StoreError, match="found none"):
        check_columns(str(tmp_path), "parquet")
    check_columns(str(tmp_path), "json")
