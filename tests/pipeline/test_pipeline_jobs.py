"""The jobs as commands, on Spark: they answer like the engine, and write their output whole or not at all."""

import base64
import csv
import json
import os
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote

import pytest
from engine_units import store_of, units_of

from engine.cli.main import main
from engine.inspection.snapshot import open_store
from engine.pipeline import java, session, stats

pytestmark = [pytest.mark.spark, pytest.mark.golden]
LOCAL = ("--master", "local[2]", "--json")


def read_with_other_programs(folder, kind):
    """Read the rows of an export without Spark."""
    if kind == "parquet":
        import pyarrow.dataset as ds

        for path in folder.rglob("*.parquet"):
            topic, day = (unquote(part.partition("=")[2]) for part in path.relative_to(folder).parts[:2])
            for row in ds.dataset(path, format="parquet").to_table().to_pylist():
                stored = datetime.fromtimestamp(row["storeTimestamp"] / 1000, UTC)
                assert day == stored.date().isoformat()
                yield row | {"topic": topic, "properties": dict(row["properties"])}
        return
    for path in folder.glob("part-*"):
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file) if kind == "csv" else map(json.loads, file):
                row |= {name: base64.b64decode(row[name]) for name in ("body", "propertiesRaw")}
                if kind == "csv":
                    row |= {"physicalOffset": int(row["physicalOffset"]), "keys": row["keys"].split()}
                    row |= {"properties": json.loads(row["properties"])}
                yield row


@pytest.mark.parametrize(
    ("kind", "name"), [("parquet", "ipv6-and-unicode-5.3.3"), ("csv", "clean-5.3.3"), ("json", "propcrc-5.3.3")]
)
def test_an_export_imported_into_a_fresh_store_gives_the_same_units(pipeline, golden, tmp_path, kind, name):
    folder = store_of(golden(name))
    rows, _ = pipeline("export", folder, "--out", tmp_path / "rows", "--format", kind, "--split-bytes", "400_000")
    units = [unit for unit in units_of(folder) if unit.crc != "bad" and not unit.stale]
    assert rows[-1]["bytesWritten"] > 0
    assert (rows[-1]["damaged"], rows[-1]["filesChanged"]) == (0, 0)
    written = {row["physicalOffset"]: row for row in read_with_other_programs(tmp_path / "rows", kind)}
    for unit in units_of(folder):
        row = written.pop(unit.offset)
        assert (row["topic"], row["body"], row["propertiesRaw"]) == (unit.topic, unit.body, unit.properties_raw)
        assert (row["properties"], row["tags"] or None, row["keys"]) == (unit.properties, unit.tags, unit.keys)
    assert not written
    rows, _ = pipeline("import", tmp_path / "rows", "--out", tmp_path / "fresh")
    assert rows[-1]["units"] == len(units)
    assert units_of(tmp_path / "fresh") == units
    with open_store(folder) as old, open_store(tmp_path / "fresh") as new:
        assert new.log.max_offset == old.log.max_offset
        for topic, queues in new.topics().items():
            for number, queue in queues.items():
                assert queue.max_offset == old.topics()[topic][number].max_offset, (topic, number)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_parquet_stands_by_topic_and_day_and_a_filter_chooses(pipeline, spark, golden, tmp_path):
    folder = store_of(golden("clean-5.3.3"))
    pipeline("export", folder, "--out", tmp_path / "rows", "--where", "topic = 'TopicA' and tags = 'TagB'")
    expected = {u.offset: u for u in units_of(folder) if (u.topic, u.tags) == ("TopicA", "TagB")}
    rows = spark.read.parquet(str(tmp_path / "rows")).collect()
    assert {row.physicalOffset for row in rows} == set(expected)
    assert {path.parent.parent.name for path in (tmp_path / "rows").rglob("*.parquet")} == {"topic=TopicA"}
    for row in rows:
        unit = expected[row.physicalOffset]
        assert (row.body, row["keys"], row.properties) == (unit.body, unit.keys, unit.properties)
        assert (row.bornHost, row.storeHost, row.offsetMsgId) == (unit.born_host, unit.store_host, unit.offset_msg_id)
        assert (row.tagsCode, row.crc, str(row.day)[:3]) == (unit.tags_code, unit.crc, "202")


def test_a_masked_export_tells_nothing_and_cannot_be_imported(pipeline, golden, tmp_path, capsys):
    folder = store_of(golden("lmq-5.3.3"))
    pipeline("export", folder, "--out", tmp_path / "rows", "--format", "json", "--mask", "bodies,keys,hosts")
    text = "".join(path.read_text() for path in (tmp_path / "rows").iterdir() if path.name.startswith("part"))
    rows = [json.loads(line) for line in text.splitlines()]
    units = units_of(folder)
    assert len(rows) == len(units)
    assert all(row["body"] is None and row["propertiesRaw"] is None for row in rows)
    for unit in units:
        assert unit.born_host.rpartition(":")[0] not in text
        assert unit.unique_key is None or unit.unique_key not in text
    assert str(folder) not in (tmp_path / "rows" / "_storescope.json").read_text() + text
    assert main(["pipeline", "import", str(tmp_path / "rows"), "--out", str(tmp_path / "fresh")]) == 2
    assert "masked" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        pytest.param(["stats", "{tmp}/nothing"], 3, "expected a store", id="no store"),
        pytest.param(["export", "{store}"], 2, "--out", id="no output place"),
        pytest.param(["export", "{store}", "--out", "{tmp}"], 2, "does not exist yet", id="a place that exists"),
        pytest.param(["export", "{store}", "--out", "/proc/x/y"], 3, "/proc", id="a place without rights"),
        pytest.param(["export", "{store}", "--out", "{tmp}/o", "--where", "topic ="], 2, "filter", id="a wrong filter"),
        pytest.param(["import", "{tmp}", "--out", "{tmp}/o"], 3, "pipeline export", id="no export"),
        pytest.param(["trace", "{store}"], 2, "--key", id="no key"),
        pytest.param(["stats", "{store}", "--by", "colour"], 2, "colour", id="a wrong word"),
        pytest.param(["trace", "{store}", "--keys-file", "{tmp}/none"], 3, "none: No such file", id="no keys"),
        pytest.param(["export", "{store}", "--out", "{tmp}/new/o", "--log-file", "/proc/x"], 3, "/proc", id="no log"),
    ],
)
def test_an_impossible_job_is_one_line_and_leaves_nothing(
    spark, golden, tmp_path, capsys, monkeypatch, words, code, message
):
    store = store_of(golden("lmq-5.3.3"))
    texts = [word.format(tmp=tmp_path, store=store) for word in words]
    log = [] if "--log-file" in texts else ["--log-file", str(tmp_path / "spark.log")]
    monkeypatch.setattr(session._Current, "running", None if not log else session._Current.running)
    assert main(["pipeline", *texts, *LOCAL, *log]) == code
    line = capsys.readouterr().err
    assert message in line
    assert line.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir() if path.name != "spark.log"] == []


def test_a_damaged_export_is_one_line(pipeline, golden, tmp_path):
    folder = tmp_path / "rows [1]"
    pipeline("export", store_of(golden("lmq-5.3.3")), "--out", folder)
    spoiled = next(folder.rglob("*.parquet"))
    spoiled.write_bytes(spoiled.read_bytes()[:100])
    for path in folder.rglob(".*.crc"):
        path.unlink()
    _, output = pipeline("import", folder, "--out", tmp_path / "fresh", code=3)
    assert output.count("\n") == 1
    assert spoiled.name in output
    assert "Parquet magic bytes not found" in output  # read before Spark is started
    assert not [path for path in tmp_path.iterdir() if "fresh" in path.name]


def test_a_file_deleted_during_the_count_is_reported(pipeline, golden, tmp_path, monkeypatch):
    shutil.copytree(store_of(golden("clean-5.3.3")), tmp_path / "store")
    first_file, second_file = sorted((tmp_path / "store" / "commitlog").iterdir())
    size, count = first_file.stat().st_size, stats.stats

    def counted(*words):
        first_file.unlink()
        os.truncate(second_file, 100_000)
        return count(*words)

    monkeypatch.setattr(stats, "stats", counted)
    rows, output = pipeline("stats", tmp_path / "store")
    assert f"{first_file}: had {size:,} bytes when the job began, is gone now" in output
    assert f"{second_file}: had {size:,} bytes when the job began, has 100,000 bytes now" in output
    total = next(row for row in rows if row["type"] == "stats")
    assert total["bytes"] == 2 * size == sum(total[name] for name in ("unitBytes", "stale", "blank", "damage", "zeros"))
    assert total["damage"] >= size
    assert rows[-1]["filesChanged"] == 2


def test_without_java_one_sentence_says_so(golden, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(session._Current, "running", None)
    monkeypatch.setattr(java, "_find_packaged_java", lambda: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main(["pipeline", "stats", "--spark", str(store_of(golden("lmq-5.3.3")))]) == 3
    line = capsys.readouterr().err
    assert "Spark needs Java 17 or 21: no Java was found" in line
    assert line.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("moment", ["while Spark starts", pytest.param("in the middle", marks=pytest.mark.spark_full)])
def test_an_interrupted_job_says_nothing_and_leaves_nothing(golden, tmp_path, moment):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    words = ["export", store_of(golden("clean-5.3.3")), "--out", tmp_path / "new" / "o", "--split-bytes", "3_000"]
    job = subprocess.Popen(
        [sys.executable, "-m", "engine.cli.main", "pipeline", *map(str, words), *LOCAL],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    with job:
        if moment == "in the middle":
            assert '"progress"' in job.stdout.readline()
        else:
            while not any(path.stat().st_size for path in scratch.glob("*.log")):
                assert job.poll() is None
        job.send_signal(signal.SIGINT)
        _, output = job.communicate(timeout=250)
    assert (job.returncode, output) == (130, "")
    assert [path.name for path in tmp_path.iterdir()] == ["scratch"]
    assert list(scratch.iterdir()) == []
