"""Rows of an export hold what the codec reads of each unit, and can be made the unit's bytes again.

Parquet written by tasks: every row once, in its place, named as Spark names places, and nothing of what failed.

Rows of an export as lines, as Spark's own writers make them.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import resource
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pytest
from golden_stores import names
from pyarrow.parquet import ParquetFile
from raw_units import raw_unit

from engine.cli.main import main
from engine.codec.message import Unit
from engine.codec.unit_scan import walk
from engine.errors import StoreError
from engine.pipeline import export
from engine.pipeline.export import COLUMNS, LINES, SCHEMA, ExportOptions, arrow_schema, day_of, rows_of
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
        found = {row["physicalOffset"]: row for row in rows(folder)}
        for unit, file in walked(folder):
            row = found.pop(unit.offset)
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
            again = next(walk(unit_bytes(row), unit.offset))
            assert again == unit
        if "crash" not in name:
            assert not found


@pytest.mark.golden
@pytest.mark.parametrize("name", names())
def test_rows_of_every_golden_store_are_those_of_units(golden, capsys, name):
    for folder in stores_of(golden(name))[:1]:
        assert main(["units", str(folder), "--json", "--body"]) == 0
        told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        known = {r["physicalOffset"]: r for r in told if r["type"] == "unit" and "physicalOffsetField" not in r}
        found = rows(folder, split_bytes=random.Random(name).choice([20_011, 300_007, 1 << 26]))
        assert len(found) == len({row["physicalOffset"] for row in found})
        for row in found:
            record = known.pop(row["physicalOffset"])
            digest = record.pop("bodySha256")
            row |= {"type": "unit", "properties": dict(row["properties"])}
            body = row.pop("body")
            assert base64.b64decode(record.pop("body")) == body
            assert hashlib.sha256(body).hexdigest() == digest
            assert {field: row[field] for field in record} == record
        assert not known


def made_store(folder, *units):
    data = b""
    for unit in units:
        data += raw_unit(len(data), **unit)
    (folder / "commitlog").mkdir(parents=True)
    (folder / "commitlog" / f"{0:020}").write_bytes(data + bytes(4096))
    return folder


def test_a_filter_decides_by_columns_and_by_the_unit_itself(tmp_path):
    folder = made_store(tmp_path / "s", *({"queue_id": n % 3, "body": b"body %d" % n} for n in range(30)))
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
    folder = made_store(
        tmp_path / "s",
        {"topic": b"\xed\xa0\x80", "properties": b"TAGS\x01\xff\xfe\x02", "stored": -5},
        {"topic": b"", "stored": 1 << 62, "properties": b"", "body": b""},
    )
    first, second = rows(folder)
    assert (first["day"], second["day"]) == ("0000-00-00", "0000-00-00")
    assert (second["topic"], second["tags"], second["keys"]) == ("", None, [])
    assert first["propertiesRaw"] == b"TAGS\x01\xff\xfe\x02"


def test_what_is_masked_is_masked_in_every_column(tmp_path):
    folder = made_store(
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


ODD = [
    "%RETRY%group",
    "a b",
    "a/b=c:d",
    "x{y}[z]^",
    "q\"u'o#t*e?",
    "back\\slash",
    "主题",
    "\x01\x7f",
    "123",
    "TopicA",
    "",
]


def splits_of(folder, split_bytes=300_007):
    return plan(find_stores([str(folder)]), split_bytes).splits


def made_rows(topics, days=("2026-01-02", "2026-01-03")):
    """Rows of an export that differ in topic, day and offset."""
    cells = [(topic, day) for topic in topics for day in days]
    columns = {"topic": [topic for topic, _ in cells], "day": [day for _, day in cells]}
    columns["physicalOffset"] = list(range(len(cells)))
    columns["body"] = [b"%d" % n for n in range(len(cells))]
    shape = arrow_schema()
    return pa.RecordBatch.from_arrays(
        [pa.array(columns.get(kind.name, [None] * len(cells)), kind.type) for kind in shape], schema=shape
    )


def read_back(folder):
    """(topic, day, row) of every row below ``folder``, files in the order of their names."""
    for path in sorted(folder.rglob("*.parquet")):
        topic, day = (unquote(part.partition("=")[2]) for part in path.relative_to(folder).parts[-3:-1])
        for row in ParquetFile(path).read().to_pylist():
            yield topic, day, row


@pytest.mark.golden
@pytest.mark.parametrize("name", names()[::4])
def test_rows_of_golden_stores_come_back_once_and_in_order(golden, tmp_path, monkeypatch, name):
    monkeypatch.setattr(export, "MAX_OPEN_FILES", 2)
    for number, folder in enumerate(stores_of(golden(name))):
        batches = list(rows_of(splits_of(folder), ExportOptions()))
        place = tmp_path / str(number)
        rows = export.write_rows(batches, place, "part-0", buffer_bytes=20_000)
        expected = [row for batch in batches for row in batch.to_pylist()]
        assert rows == len(expected)
        found = {}
        for topic, day, row in read_back(place):
            found.setdefault((topic, day), []).append(row)
        for row in expected:
            topic, day = row.pop("topic"), row.pop("day")
            assert found[topic or export.NULL_FOLDER, day].pop(0) == row
        assert not any(found.values())


def test_a_place_whose_file_was_closed_gets_another(tmp_path, monkeypatch):
    monkeypatch.setattr(export, "MAX_OPEN_FILES", 3)
    batch = made_rows([f"T{n}" for n in range(7)])
    assert export.write_rows([batch] * 4, tmp_path / "rows", "part-0", buffer_bytes=1) == 56
    assert len(list((tmp_path / "rows").rglob("*.parquet"))) == 7 * 2 * 4
    assert sorted(row["physicalOffset"] for _, _, row in read_back(tmp_path / "rows")) == sorted([*range(14)] * 4)


def test_odd_topics_have_the_places_that_spark_gives_them(spark, tmp_path):
    batch = made_rows([*ODD, None])
    export.write_rows([batch], tmp_path / "ours", "part-0")
    theirs = spark.createDataFrame(pa.Table.from_batches([batch]), SCHEMA)
    theirs.write.partitionBy("topic", "day").parquet(str(tmp_path / "theirs"))
    named = [
        {str(path.parent.relative_to(root)) for path in root.rglob("part-*")}
        for root in (tmp_path / "ours", tmp_path / "theirs")
    ]
    assert named[0] == named[1]
    read = [
        sorted(spark.read.schema(SCHEMA).parquet(str(tmp_path / root)).collect(), key=lambda row: row.physicalOffset)
        for root in ("ours", "theirs")
    ]
    assert read[0] == read[1]
    assert [row.topic for row in read[0]][::2] == [*ODD[:-1], None, None]


def test_types_are_those_that_spark_reads_without_being_told(spark, tmp_path):
    export.write_rows([made_rows(["TopicA"])], tmp_path / "rows", "part-0")
    seen = {field.name: field.dataType.simpleString() for field in spark.read.parquet(str(tmp_path / "rows")).schema}
    assert {name: kind for name, kind in seen.items() if name not in ("topic", "day")} == {
        name: {"map<string,string>": "map<string,string>"}.get(kind, kind)
        for name, kind in export.COLUMNS
        if name not in ("topic", "day")
    }


def test_attempts_that_nobody_tells_of_are_not_in_the_result(spark, golden, tmp_path, monkeypatch):
    """As where Spark runs a task again, or twice: its first folder is there, and is no part of the answer."""
    store = stores_of(golden("clean-5.3.3"))[0]
    place = Path.mkdir

    def mkdir(self, *words, **more):
        place(self, *words, **more)
        if self.name == export.ATTEMPTS:
            export.write_rows(
                [made_rows(["given up"])], self / "00000-given-up", "part-00000"
            )  # no attempt has that number

    (tmp_path / "rows").mkdir()
    monkeypatch.setattr(Path, "mkdir", mkdir)
    export.write(spark, splits_of(store), ExportOptions(), tmp_path / "rows")
    found = sorted(row["physicalOffset"] for _, _, row in read_back(tmp_path / "rows"))
    expected = sorted(
        n for batch in rows_of(splits_of(store), ExportOptions()) for n in batch["physicalOffset"].to_pylist()
    )
    assert found == expected
    assert {path.name.partition("=")[0] for path in (tmp_path / "rows").iterdir()} == {"topic", export.SUCCESS_FILE}


def test_a_folder_that_tasks_do_not_share_is_said(tmp_path):
    with pytest.raises(StoreError, match="executors need to see the same folder"):
        export._put_in_place(tmp_path / "elsewhere", tmp_path)


def test_nothing_to_write_is_an_empty_whole(spark, tmp_path):
    (tmp_path / "rows").mkdir()
    export.write(spark, (), ExportOptions(), tmp_path / "rows")
    assert [path.name for path in (tmp_path / "rows").iterdir()] == [export.SUCCESS_FILE]
    assert spark.read.schema(SCHEMA).parquet(str(tmp_path / "rows")).count() == 0


def test_no_space_is_one_line_with_the_place(tmp_path):
    """A limit on the size of files stands for a disk that is full: the system refuses the write in the same way."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    batch = made_rows([f"T{n}" for n in range(40)], days=[f"2026-01-{n:02d}" for n in range(1, 29)])
    rows = pa.RecordBatch.from_arrays(
        [
            pa.array([b"x" * 500 + b"%d" % n for n in range(batch.num_rows)])
            if kind.name == "body"
            else pa.array(["T"] * batch.num_rows)
            if kind.name in ("topic", "day")
            else column
            for kind, column in zip(batch.schema, batch.columns, strict=True)
        ],
        schema=batch.schema,
    )
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(StoreError, match="cannot be written") as told:
            export.write_rows([rows], tmp_path / "rows", "part-0")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert str(tmp_path / "rows") in str(told.value)
    assert "\n" not in str(told.value)


ROW = dict.fromkeys(name for name, _ in COLUMNS)
BYTES = next(name for name, kind in COLUMNS if kind == "binary")


def test_json_leaves_nothing_out_and_has_bytes_in_base64():
    line = LINES["json"]({**ROW, BYTES: b"\0body", "properties": [("K", "v"), ("A", "€")]})
    found = json.loads(line)
    assert list(found) == [name for name, _ in COLUMNS]
    assert (base64.b64decode(found[BYTES]), found["properties"]) == (b"\0body", {"K": "v", "A": "€"})
    assert line.endswith("\n")
    assert "€" in line


def test_csv_quotes_what_needs_it_and_breaks_long_bytes_into_lines():
    names = [name for name, _ in COLUMNS]
    cells = LINES["csv"]({**ROW, "topic": 'a "b", c', "properties": [("K", "v")]}).rstrip("\n")
    assert '"a ""b"", c"' in cells
    assert '"{""K"":""v""}"' in cells
    assert LINES["csv"](ROW) == "," * (len(names) - 1) + "\n"
    assert "\r\n" in LINES["csv"]({**ROW, BYTES: bytes(100)})
