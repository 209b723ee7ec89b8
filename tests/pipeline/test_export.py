"""Rows of an export hold the decoded fields of each unit, and can be turned into the unit's bytes again."""

from __future__ import annotations

import base64
import hashlib
import json
import random

import pytest
from golden_stores import third_of_names
from raw_units import raw_unit

from engine.cli.main import main
from engine.codec.message import Unit
from engine.codec.unit_scan import walk
from engine.pipeline.export import COLUMNS, ExportOptions, day_of, rows_of
from engine.pipeline.files import find_stores
from engine.pipeline.imports import unit_bytes
from engine.pipeline.splits import plan
from engine.query import parse
from engine.rules.masking import Masking

pytest.importorskip("pyarrow")


def rows(folder, wish=None, split_bytes=300_007):
    splits = plan(find_stores([str(folder)]), split_bytes).splits
    return [row for split in splits for batch in rows_of([split], wish or ExportOptions()) for row in batch.to_pylist()]


def stores_of(folder):
    return [path.parent for path in sorted(folder.rglob("commitlog"))]


def walked(folder):
    for path in sorted((folder / "commitlog").iterdir()):
        for item in walk(path.read_bytes(), int(path.name)):
            if isinstance(item, Unit) and not item.stale:
                yield item, path.name


@pytest.mark.golden
@pytest.mark.parametrize("name", ["ipv6-and-unicode-5.3.3", "batchcq-5.3.3", "crash-5.3.3"])
def test_rows_of_golden_stores_are_the_units_and_their_bytes(golden, name):
    for folder in stores_of(golden(name))[:1]:
        results = {row["physicalOffset"]: row for row in rows(folder)}
        for unit, file in walked(folder):
            row = results.pop(unit.offset)
            assert (row["topic"], row["queueId"], row["queueOffset"], row["size"]) == (
                unit.topic,
                unit.queue_id,
                unit.queue_offset,
                unit.size,
            )
            assert (row["bornHost"], row["storeHost"], row["offsetMsgId"]) == (
                unit.born_host,
                unit.store_host,
                unit.offset_msg_id,
            )
            assert (dict(row["properties"]), row["tags"], row["keys"], row["uniqueKey"]) == (
                unit.properties,
                unit.tags,
                unit.keys,
                unit.unique_key,
            )
            assert (row["body"], row["propertiesRaw"], row["crc"]) == (unit.body, unit.properties_raw, unit.crc)
            assert (row["file"], row["bodyLength"], row["tagsCode"]) == (file, len(unit.body), unit.tags_code)
            second_row = next(walk(unit_bytes(row), unit.offset))
            assert second_row == unit
        if "crash" not in name:
            assert not results


@pytest.mark.full_form(keep=6)
@pytest.mark.golden
@pytest.mark.parametrize("name", third_of_names(1))
def test_rows_of_every_golden_store_are_those_of_units(golden, capsys, name):
    for folder in stores_of(golden(name))[:1]:
        assert main(["units", str(folder), "--json", "--body"]) == 0
        records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        known_values = {
            r["physicalOffset"]: r for r in records if r["type"] == "unit" and "physicalOffsetField" not in r
        }
        actual_rows = rows(folder, split_bytes=random.Random(name).choice([20_011, 300_007, 1 << 26]))
        assert len(actual_rows) == len({row["physicalOffset"] for row in actual_rows})
        for row in actual_rows:
            record = known_values.pop(row["physicalOffset"])
            digest = record.pop("bodySha256")
            row |= {"type": "unit", "properties": dict(row["properties"])}
            body = row.pop("body")
            assert base64.b64decode(record.pop("body")) == body
            assert hashlib.sha256(body).hexdigest() == digest
            assert {field: row[field] for field in record} == record
        assert not known_values


def write_store(folder, *units):
    data = b""
    for unit in units:
        data += raw_unit(len(data), **unit)
    (folder / "commitlog").mkdir(parents=True)
    (folder / "commitlog" / f"{0:020}").write_bytes(data + bytes(4096))
    return folder


def test_a_filter_decides_by_columns_and_by_the_unit_itself(tmp_path):
    folder = write_store(tmp_path / "s", *({"queue_id": n % 3, "body": b"body %d" % n} for n in range(30)))
    assert [row["queueId"] for row in rows(folder, ExportOptions(parse("queueId = 2")))] == [2] * 10
    assert [row["body"] for row in rows(folder, ExportOptions(parse("body = 'body 7' and queueId = 1")))] == [b"body 7"]
    assert len(rows(folder, ExportOptions(parse("keys = 'k1' and file like '0000%'")))) == 30


@pytest.mark.golden
@pytest.mark.parametrize("name", ["crash-flip-5.3.3", "first-files-deleted-5.3.3"])
def test_a_task_gives_the_rows_of_its_splits_one_by_one(golden, name):
    for folder in stores_of(golden(name)):
        splits = plan(find_stores([str(folder)]), 50_021).splits
        together = [row for batch in rows_of(splits, ExportOptions()) for row in batch.to_pylist()]
        assert together == rows(folder, split_bytes=50_021)


def test_malformed_names_and_odd_times_do_not_stop_an_export(tmp_path):
    folder = write_store(
        tmp_path / "s",
        {"topic": b"\xed\xa0\x80", "properties": b"TAGS\x01\xff\xfe\x02", "stored": -5},
        {"topic": b"", "stored": 1 << 62, "properties": b"", "body": b""},
    )
    first_row, second_row = rows(folder)
    assert (first_row["day"], second_row["day"]) == ("0000-00-00", "0000-00-00")
    assert (second_row["topic"], second_row["tags"], second_row["keys"]) == ("", None, [])
    assert first_row["propertiesRaw"] == b"TAGS\x01\xff\xfe\x02"


def test_a_masked_value_is_masked_in_every_column(tmp_path):
    folder = write_store(
        tmp_path / "s", {"properties": b"KEYS\x01secret\x02UNIQ_KEY\x01secret2\x02", "body": b"secret3"}
    )
    (row,) = rows(folder, ExportOptions(None, Masking.of("bodies,keys,hosts")))
    assert "secret" not in str(row)
    assert str(tmp_path) not in str(row)
    assert (row["body"], row["propertiesRaw"], row["bodyCRC"]) == (None, None, None)
    assert row["keys"][0].startswith("key-")
    assert row["properties"] is not None
    assert list(row) == [name for name, _ in COLUMNS]


def test_days_are_those_of_utc():
    assert day_of(1_700_000_000_000) == "2023-11-14"
    assert day_of(0) == "1970-01-01"
    assert day_of(-1) == "0000-00-00"
