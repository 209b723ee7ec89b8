"""``pipeline verify`` as a command, on Spark: its records of each store equal those of ``check --json``."""

import json
import shutil

import golden_stores
import pytest

from engine.cli.main import main

pytestmark = [pytest.mark.spark, pytest.mark.golden]


@pytest.fixture
def run_verify(capsys):
    def run(*words):
        capsys.readouterr()
        code = main([*map(str, words)])
        out = capsys.readouterr()
        return code, [json.loads(line) for line in out.out.splitlines()], out.err

    return run


def test_a_fleet_has_the_findings_and_the_exit_code_of_check(run_verify, golden, tmp_path, spark):
    fleet = tmp_path / "fleet"
    for name in ("clean-5.3.3", "crash-flip-5.3.3", "queues-gone-4.9.8"):
        shutil.copytree(golden(name), fleet / name / "store", ignore=shutil.ignore_patterns("timerwheel"))
    log = sorted((fleet / "clean-5.3.3" / "store" / "commitlog").iterdir())[0]
    with log.open("r+b") as file:
        file.seek(400_000)
        file.write(b"\x13" * 300)
    how = ("--master", "local[2]", "--log-file", tmp_path / "spark.log", "--split-bytes", "250_000", "--json")
    code, rows, _ = run_verify("pipeline", "verify", fleet / "*" / "store", *how)
    worst = 0
    for folder in sorted(fleet.iterdir()):
        store = str(folder / "store")
        item, expected, _ = run_verify("check", store, "--json")
        worst = max(worst, item)
        assert [row for row in rows if row.get("store") == store] == [{**row, "store": store} for row in expected]
    assert code == worst == 1
    summary = rows[-1]
    assert (summary["type"], summary["job"], summary["stores"]) == ("jobSummary", "verify", 3)
    assert summary["units"] > 8000
    assert summary["splits"] > summary["provenSplits"] >= 5
    assert summary["error"] == sum(row["error"] for row in rows if row["type"] == "summary")
    assert all(row["job"] == "verify" for row in rows if row["type"] == "progress")
    code, rows, _ = run_verify(
        "pipeline", "verify", fleet / "crash-flip-5.3.3", *how, "--only", "CQ99", "--fail-on", "chat"
    )
    assert (code, [row["type"] for row in rows if row["type"] != "progress"]) == (0, ["summary", "jobSummary"])


def test_a_path_without_a_store_is_one_line(run_verify, tmp_path, spark):
    (tmp_path / "empty").mkdir()
    code, rows, err = run_verify(
        "pipeline", "verify", tmp_path / "empty", "--log-file", tmp_path / "l", "--master", "local[2]"
    )
    assert (code, rows) == (3, [])
    assert err.count("\n") == 1
    assert "expected a store" in err


def test_workers_do_not_follow_a_foreign_configuration(run_verify, golden, tmp_path, spark):
    """The configuration of the live store reaches Spark's workers with its paths, but they read the copy."""
    live = shutil.copytree(golden("clean-5.3.3"), tmp_path / "live")
    copy = shutil.copytree(golden("crash-flip-5.3.3"), tmp_path / "copy", ignore=shutil.ignore_patterns("timerwheel"))
    conf = tmp_path / "broker.conf"
    conf.write_text(f"storePathRootDir={live}\nstorePathCommitLog={live}/commitlog\n")
    fingerprints_before = golden_stores.fingerprint(live), golden_stores.fingerprint(copy)
    options = ("--master", "local[2]", "--log-file", tmp_path / "spark.log", "--json", "--config", conf)
    _, rows, err = run_verify("pipeline", "verify", copy, *options)
    _, expected, _ = run_verify("check", copy, "--config", conf, "--json")
    assert [row for row in rows if row["type"] in {"finding", "summary"}] == [
        {**row, "store": str(copy)} for row in expected
    ]
    assert f"storePathCommitLog={live}/commitlog leads to another store" in err
    code, rows, err = run_verify("pipeline", "rebuild", copy, "--out", tmp_path / "new", *options)
    assert (code, rows) == (2, [])
    assert str(live) in err
    assert not (tmp_path / "new").exists()
    assert (golden_stores.fingerprint(live), golden_stores.fingerprint(copy)) == fingerprints_before
