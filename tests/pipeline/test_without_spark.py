"""Small stores are answered without Spark, by the functions that its tasks run: the records are the same."""

import json

import pytest

from engine.cli import pipeline_jobs
from engine.cli.main import main
from engine.codec.message import Unit
from engine.inspection.snapshot import open_store
from engine.pipeline import session

pytestmark = [pytest.mark.spark, pytest.mark.golden]


class Started(Exception):
    """Spark was asked for."""


@pytest.fixture
def ask(spark, capsys):
    """The records of a job, by Spark where ``by_spark``; the summary apart."""

    def answered(*words, by_spark):
        capsys.readouterr()
        master = ["--master", "local[2]"] if by_spark else []
        code = main(["pipeline", *map(str, words), "--json", *master])
        said = capsys.readouterr()
        records = [json.loads(line) for line in said.out.splitlines()]
        *rest, summary = [one for one in records if one["type"] != "progress"]
        assert (summary["type"], said.err) == ("jobSummary", "")
        assert (summary["master"] is None) is not by_spark
        if words[0] == "trace":
            rest.sort(key=json.dumps)
        return code, rest, {name: summary[name] for name in ("job", "stores", "splits", "units", "bytes")}

    return answered


def bytes_below(folder):
    """What stands in queue files by their names, and in index files in the order of theirs, which are times."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    index = [path.read_bytes() for path in files if path.parent.name == "index"]
    return {path.relative_to(folder): path.read_bytes() for path in files if path.parent.name != "index"}, index


@pytest.mark.parametrize(("name", "split_bytes"), [("clean-5.3.3", "1_000_003"), ("crash-flip-5.3.3", "134_217_728")])
def test_records_are_those_of_spark(ask, golden, tmp_path, monkeypatch, name, split_bytes):
    folder = next(path.parent for path in sorted(golden(name).rglob("commitlog")))
    with open_store(folder) as store:
        units = [item for item in store.units() if isinstance(item, Unit)]
    keys = [word for unit in units[::40] if unit.unique_key for word in ("--key", unit.unique_key)] + ["--key", "none"]
    cut = ["--split-bytes", split_bytes]
    asked = [("stats", folder, *cut), ("verify", folder, *cut), ("trace", folder, *keys, *cut)]
    by_spark = [ask(*words, by_spark=True) for words in asked]
    built = ask("rebuild", folder, "--out", tmp_path / "new", *cut, by_spark=True)
    (tmp_path / "new").rename(tmp_path / "spark")

    def refused(*_words, **_how):
        raise Started

    monkeypatch.setattr(session, "start", refused)
    assert [ask(*words, by_spark=False) for words in asked] == by_spark
    assert ask("rebuild", folder, "--out", tmp_path / "new", *cut, by_spark=False) == built
    assert bytes_below(tmp_path / "new") == bytes_below(tmp_path / "spark")


def test_who_asks_for_spark_or_has_large_stores_gets_it_and_who_does_not_is_told(golden, capsys, monkeypatch):
    def refused(*_words, **_how):
        raise Started

    monkeypatch.setattr(session, "start", refused)
    folder = str(next(path.parent for path in sorted(golden("clean-5.3.3").rglob("commitlog"))))
    assert main(["pipeline", "stats", folder]) == 0
    assert "answered without Spark: that is under 512.0 MiB (--spark starts it)" in capsys.readouterr().out
    for words in (["--spark"], ["--master", "local[*]"]):
        with pytest.raises(Started):
            main(["pipeline", "stats", folder, *words])
    monkeypatch.setattr(pipeline_jobs, "SMALL_BYTES", 1 << 16)
    with pytest.raises(Started):
        main(["pipeline", "stats", folder])
