"""Small stores need no Spark: the functions of its tasks run here, and the records are the same."""

import csv
import json
import shutil

import pytest
from pyarrow import parquet

from engine.cli import pipeline_import
from engine.cli.main import main
from engine.codec.message import Unit
from engine.inspection.snapshot import open_store
from engine.pipeline import session

pytestmark = [pytest.mark.spark, pytest.mark.golden]


class SparkStarted(Exception):
    """Spark was started."""


@pytest.fixture
def run_job(spark, capsys):
    """Return the records of a job, by Spark if ``by_spark``; the summary apart."""

    def answered(*words, by_spark):
        capsys.readouterr()
        master = ["--master", "local[2]"] if by_spark else []
        code = main(["pipeline", *map(str, words), "--json", *master])
        output = capsys.readouterr()
        records = [json.loads(line) for line in output.out.splitlines()]
        *remaining_records, summary = [record for record in records if record["type"] != "progress"]
        assert (summary["type"], output.err) == ("jobSummary", "")
        assert (summary["master"] is None) is not by_spark
        if words[0] == "trace":
            remaining_records.sort(key=json.dumps)
        return code, remaining_records, {name: summary[name] for name in ("job", "stores", "splits", "units", "bytes")}

    return answered


def bytes_below(folder):
    """Return the bytes of queue files by name, and of index files in the order of their names, which are times."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    index = [path.read_bytes() for path in files if path.parent.name == "index"]
    return {path.relative_to(folder): path.read_bytes() for path in files if path.parent.name != "index"}, index


@pytest.mark.parametrize(("name", "split_bytes"), [("clean-5.3.3", "1_000_003"), ("crash-flip-5.3.3", "134_217_728")])
def test_records_are_those_of_spark(run_job, golden, tmp_path, monkeypatch, name, split_bytes):
    folder = next(path.parent for path in sorted(golden(name).rglob("commitlog")))
    with open_store(folder) as store:
        units = [item for item in store.units() if isinstance(item, Unit)]
    keys = [word for unit in units[::40] if unit.unique_key for word in ("--key", unit.unique_key)] + ["--key", "none"]
    cut = ["--split-bytes", split_bytes]
    requests = [("stats", folder, *cut), ("verify", folder, *cut), ("trace", folder, *keys, *cut)]
    by_spark = [run_job(*words, by_spark=True) for words in requests]
    built = run_job("rebuild", folder, "--out", tmp_path / "new", *cut, by_spark=True)
    (tmp_path / "new").rename(tmp_path / "spark")

    def refused(*_words, **_how):
        raise SparkStarted

    monkeypatch.setattr(session, "start", refused)
    assert [run_job(*words, by_spark=False) for words in requests] == by_spark
    assert run_job("rebuild", folder, "--out", tmp_path / "new", *cut, by_spark=False) == built
    assert bytes_below(tmp_path / "new") == bytes_below(tmp_path / "spark")


def rows_below(folder, kind):
    """Return the rows of an export as other programs read them, in the order of their offsets."""
    rows = []
    if kind == "parquet":
        for path in folder.rglob("*.parquet"):
            place = str(path.relative_to(folder).parent)
            rows += [row | {"place": place} for row in parquet.ParquetFile(path).read().to_pylist()]
    for path in folder.glob("part-*"):
        with path.open(newline="", encoding="utf-8") as file:
            rows += csv.DictReader(file) if kind == "csv" else map(json.loads, file)
    return sorted(rows, key=lambda row: int(row["physicalOffset"]))


@pytest.mark.parametrize(
    ("kind", "name", "options"),
    [
        ("parquet", "ipv6-and-unicode-5.3.3", []),
        ("parquet", "lmq-5.3.3", ["--mask", "keys,hosts,groups,lmq"]),
        ("csv", "ipv6-and-unicode-5.3.3", []),
        ("csv", "lmq-5.3.3", ["--where", "tags = 'TagA'"]),
        ("json", "broker-transactions", []),
    ],
)
def test_exports_and_imports_are_those_of_spark(run_job, golden, tmp_path, monkeypatch, kind, name, options):
    """Small exports started Spark for seven seconds, although everything else took one."""
    monkeypatch.setattr("engine.rules.masking.os.urandom", bytes)  # the salt of a masked export
    folder = next(path.parent for path in sorted(golden(name).rglob("commitlog")))
    words = ("export", folder, "--out", tmp_path / "new", "--format", kind, "--split-bytes", "300_000", *options)
    response = run_job(*words, by_spark=True)
    (tmp_path / "new").rename(tmp_path / "spark")
    if not options:
        fresh = run_job("import", tmp_path / "spark", "--out", tmp_path / "fresh", by_spark=True)
        (tmp_path / "fresh").rename(tmp_path / "fresh-spark")

    def refused(*_words, **_how):
        raise SparkStarted

    monkeypatch.setattr(session, "start", refused)
    assert run_job(*words, by_spark=False) == response
    rows = rows_below(tmp_path / "new", kind)
    assert rows == rows_below(tmp_path / "spark", kind)
    assert rows
    names = {path.name for path in (tmp_path / "new").iterdir()}
    assert {"_SUCCESS", "_storescope.json"} < names
    if options:
        return
    for source in ("new", "spark"):  # what either wrote is read here
        assert run_job("import", tmp_path / source, "--out", tmp_path / "fresh", by_spark=False) == fresh
        logs = [sorted((tmp_path / which / "commitlog").iterdir()) for which in ("fresh", "fresh-spark")]
        assert [path.read_bytes() for path in logs[0]] == [path.read_bytes() for path in logs[1]]
        shutil.rmtree(tmp_path / "fresh")


@pytest.mark.parametrize("kind", ["parquet", "json", "csv"])
def test_wrong_rows_are_an_error_without_spark(run_job, golden, tmp_path, capsys, kind):
    folder = next(path.parent for path in sorted(golden("lmq-5.3.3").rglob("commitlog")))
    run_job("export", folder, "--out", tmp_path / "rows", "--format", kind, by_spark=False)
    spoiled = next((tmp_path / "rows").rglob("part-*"))
    spoiled.write_bytes(spoiled.read_bytes()[: spoiled.stat().st_size // 2])
    assert main(["pipeline", "import", str(tmp_path / "rows"), "--out", str(tmp_path / "fresh")]) == 3
    err = capsys.readouterr().err
    assert spoiled.name in err
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]


def test_spark_starts_only_where_it_is_asked_for(golden, tmp_path, capsys, monkeypatch):
    """Spark was started from 512 MiB on, where it takes 2 to 14 times as long as this process."""

    def refused(*_words, **_how):
        raise SparkStarted

    monkeypatch.setattr(session, "start", refused)
    folder = str(next(path.parent for path in sorted(golden("clean-5.3.3").rglob("commitlog"))))
    assert main(["pipeline", "stats", folder]) == 0
    assert "answered in this process (--spark starts Spark)" in capsys.readouterr().out
    for words in (["--spark"], ["--master", "local[*]"]):
        with pytest.raises(SparkStarted):
            main(["pipeline", "stats", folder, *words])
    assert main(["pipeline", "stats", folder, "--no-spark", "--master", "local[2]"]) == 2
    assert main(["pipeline", "export", folder, "--out", str(tmp_path / "rows")]) == 0
    monkeypatch.setattr(pipeline_import, "IMPORT_MEMORY_BYTES", 1 << 10)
    words = ["pipeline", "import", str(tmp_path / "rows"), "--out", str(tmp_path / "fresh")]
    with pytest.raises(SparkStarted):
        main(words)
    assert main([*words, "--no-spark"]) == 0


def test_an_export_refuses_fields_of_decoded_bodies_before_it_begins(golden, tmp_path, capsys):
    """The job began, and ended in a task with the error that bodies are not decoded there."""
    words = ("pipeline", "export", golden("clean-5.3.3"), "--out", tmp_path / "out", "--where", "body.price > 10.5")
    assert main([*map(str, words)]) == 2
    assert "body.price: jobs of the pipeline do not decode bodies" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
