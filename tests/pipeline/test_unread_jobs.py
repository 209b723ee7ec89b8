"""Jobs over a fleet with an unreadable store: they report it, exit with 3, and do the rest."""

import json

import pytest
from failing_storage import FailingDisks, make_fleet

from engine.cli.main import main
from engine.pipeline import files, queue_files, storage

pytestmark = pytest.mark.spark


@pytest.fixture
def job(spark, capsys, tmp_path, monkeypatch):
    """Return a function that runs a job over the stores a and b; ``hurt`` (a path in the fleet) cannot be read."""
    fleet = make_fleet(tmp_path)

    def run(*words, hurt):
        failing = FailingDisks()
        failing.hurt = f"{fleet}/{hurt}".rstrip("/")
        with monkeypatch.context() as patched:
            for module in (storage, files, queue_files):
                patched.setattr(module, "storage_of", lambda path: (failing, path))
            capsys.readouterr()
            log = ("--log-file", str(tmp_path / "spark.log"))
            code = main(["pipeline", *map(str, words), f"{fleet}/*/store", "--master", "local[2]", "--json", *log])
        records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        return code, {
            kind: [record for record in records if record["type"] == kind] for kind in {r["type"] for r in records}
        }

    return run


WORDS = {
    "stats": ("stats", "--by", "topic", "--by-store"),
    "verify": ("verify",),
    "trace": ("trace", "--key", "K7"),
}


@pytest.mark.parametrize("name", WORDS)
@pytest.mark.parametrize("hurt", ["a/store/commitlog", "a"])
def test_the_other_stores_are_done(job, name, hurt):
    """A folder that could not be listed ended the job of a whole fleet."""
    code, record = job(*WORDS[name], hurt=hurt)
    assert code == 3
    (row,) = record["unreadable"]
    assert row["file"].endswith(hurt) or row["file"].endswith("a/store")
    assert row["error"] == "Input/output error"
    assert row["action"] in ("list", "look")
    (summary,) = record["jobSummary"]
    assert (summary["stores"], summary["units"] > 0) == (1, True)


def test_a_log_file_that_cannot_be_read_is_told(job):
    code, record = job(*WORDS["stats"], hurt="a/store/commitlog/00000000000000000000")
    assert code == 3
    assert [row["file"].rpartition("/")[2] for row in record["unreadable"]] == ["00000000000000000000"]


def test_nothing_is_written_of_a_store_that_is_not_read_whole(job, tmp_path):
    code, _ = job("rebuild", "--out", tmp_path / "built", hurt="a/store/commitlog")
    assert code == 3
    assert sorted(path.name for path in tmp_path.joinpath("built").iterdir()) in (["b"], ["consumequeue", "index"])


def test_stores_of_which_none_can_be_read_are_told_before_spark_starts(job):
    code, output = job("stats", hurt="")
    assert code == 3
    assert "jobSummary" not in output
