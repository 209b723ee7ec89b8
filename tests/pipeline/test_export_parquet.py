"""The tasks themselves write the rows of an export as Parquet files by topic and day."""

from __future__ import annotations

import resource
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pytest
from golden_stores import names
from pyarrow.parquet import ParquetFile

from engine.errors import StoreError
from engine.pipeline import export, export_parquet
from engine.pipeline.export import SCHEMA, ExportOptions, arrow_schema, rows_of
from engine.pipeline.files import find_stores
from engine.pipeline.splits import plan


def rows(folder, wish=None, split_bytes=300_007):
    splits = plan(find_stores([str(folder)]), split_bytes).splits
    return [row for split in splits for batch in rows_of([split], wish or ExportOptions()) for row in batch.to_pylist()]


def stores_of(folder):
    return [path.parent for path in sorted(folder.rglob("commitlog"))]


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


def export_rows(topics, days=("2026-01-02", "2026-01-03")):
    """Return rows of an export that differ in topic, day and offset."""
    cells = [(topic, day) for topic in topics for day in days]
    columns = {"topic": [topic for topic, _ in cells], "day": [day for _, day in cells]}
    columns["physicalOffset"] = list(range(len(cells)))
    columns["body"] = [b"%d" % n for n in range(len(cells))]
    shape = arrow_schema()
    return pa.RecordBatch.from_arrays(
        [pa.array(columns.get(kind.name, [None] * len(cells)), kind.type) for kind in shape], schema=shape
    )


def read_back(folder):
    """Return (topic, day, row) of every row below ``folder``, files in the order of their names."""
    for path in sorted(folder.rglob("*.parquet")):
        topic, day = (unquote(part.partition("=")[2]) for part in path.relative_to(folder).parts[-3:-1])
        for row in ParquetFile(path).read().to_pylist():
            yield topic, day, row


@pytest.mark.golden
@pytest.mark.parametrize("name", names()[::4])
def test_rows_of_golden_stores_come_back_once_and_in_order(golden, tmp_path, monkeypatch, name):
    monkeypatch.setattr(export_parquet, "MAX_OPEN_FILES", 2)
    for number, folder in enumerate(stores_of(golden(name))):
        batches = list(rows_of(splits_of(folder), ExportOptions()))
        place = tmp_path / str(number)
        rows = export_parquet.write_rows(batches, place, "part-0", buffer_bytes=20_000)
        expected = [row for batch in batches for row in batch.to_pylist()]
        assert rows == len(expected)
        results = {}
        for topic, day, row in read_back(place):
            results.setdefault((topic, day), []).append(row)
        for row in expected:
            topic, day = row.pop("topic"), row.pop("day")
            assert results[topic or export_parquet.NULL_FOLDER, day].pop(0) == row
        assert not any(results.values())


def test_a_place_whose_file_was_closed_gets_another(tmp_path, monkeypatch):
    monkeypatch.setattr(export_parquet, "MAX_OPEN_FILES", 3)
    batch = export_rows([f"T{n}" for n in range(7)])
    assert export_parquet.write_rows([batch] * 4, tmp_path / "rows", "part-0", buffer_bytes=1) == 56
    assert len(list((tmp_path / "rows").rglob("*.parquet"))) == 7 * 2 * 4
    assert sorted(row["physicalOffset"] for _, _, row in read_back(tmp_path / "rows")) == sorted([*range(14)] * 4)


def test_odd_topics_have_the_places_that_spark_gives_them(spark, tmp_path):
    batch = export_rows([*ODD, None])
    export_parquet.write_rows([batch], tmp_path / "ours", "part-0")
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
    export_parquet.write_rows([export_rows(["TopicA"])], tmp_path / "rows", "part-0")
    observed = {
        field.name: field.dataType.simpleString() for field in spark.read.parquet(str(tmp_path / "rows")).schema
    }
    assert {name: kind for name, kind in observed.items() if name not in ("topic", "day")} == {
        name: {"map<string,string>": "map<string,string>"}.get(kind, kind)
        for name, kind in export.COLUMNS
        if name not in ("topic", "day")
    }


def test_files_of_unreported_attempts_are_not_in_the_result(spark, golden, tmp_path, monkeypatch):
    """If Spark runs a task again, or twice, the folder of the first attempt exists, and is no part of the result."""
    store = stores_of(golden("clean-5.3.3"))[0]
    original_mkdir = Path.mkdir

    def mkdir(self, *words, **options):
        original_mkdir(self, *words, **options)
        if self.name == export_parquet.ATTEMPTS:
            export_parquet.write_rows(
                [export_rows(["given up"])], self / "00000-given-up", "part-00000"
            )  # no attempt has that number

    (tmp_path / "rows").mkdir()
    monkeypatch.setattr(Path, "mkdir", mkdir)
    export_parquet.write(spark, splits_of(store), ExportOptions(), tmp_path / "rows")
    physical_offsets = sorted(row["physicalOffset"] for _, _, row in read_back(tmp_path / "rows"))
    expected = sorted(
        n for batch in rows_of(splits_of(store), ExportOptions()) for n in batch["physicalOffset"].to_pylist()
    )
    assert physical_offsets == expected
    assert {path.name.partition("=")[0] for path in (tmp_path / "rows").iterdir()} == {
        "topic",
        export_parquet.SUCCESS_FILE,
    }


def test_a_folder_that_tasks_do_not_share_is_an_error(tmp_path):
    with pytest.raises(StoreError, match="executors need to see the same folder"):
        export_parquet._put_in_place(tmp_path / "elsewhere", tmp_path)


def test_nothing_to_write_is_an_empty_whole(spark, tmp_path):
    (tmp_path / "rows").mkdir()
    export_parquet.write(spark, (), ExportOptions(), tmp_path / "rows")
    assert [path.name for path in (tmp_path / "rows").iterdir()] == [export_parquet.SUCCESS_FILE]
    assert spark.read.schema(SCHEMA).parquet(str(tmp_path / "rows")).count() == 0


def test_no_space_is_one_line_with_the_place(tmp_path):
    """A limit on the size of files replaces a full disk: the system refuses the write in the same way."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    batch = export_rows([f"T{n}" for n in range(40)], days=[f"2026-01-{n:02d}" for n in range(1, 29)])
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
        with pytest.raises(StoreError, match="cannot be written") as raises:
            export_parquet.write_rows([rows], tmp_path / "rows", "part-0")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert str(tmp_path / "rows") in str(raises.value)
    assert "\n" not in str(raises.value)
