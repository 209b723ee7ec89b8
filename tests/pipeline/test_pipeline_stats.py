"""``pipeline stats`` as a command: the engine's own figures, and the progress of the job."""

import pytest
from engine_units import store_of, units_of

pytestmark = [pytest.mark.spark, pytest.mark.golden]


def test_stats_say_what_the_log_holds_and_how_the_job_went(pipeline, golden):
    folder = store_of(golden("broker-orders"))
    units = units_of(folder)
    rows, _ = pipeline("stats", folder, "--split-bytes", "300_000", "--by", "topic,key")
    total = next(row for row in rows if row["type"] == "stats")
    assert (total["messages"], total["unitBytes"]) == (len(units), sum(unit.size for unit in units))
    topics = {row["topic"]: row["messages"] for row in rows if row["type"] == "statsTopic"}
    assert topics == {name: sum(u.topic == name for u in units) for name in {u.topic for u in units}}
    summary = rows[-1]
    assert summary["type"] == "jobSummary"
    assert summary["units"] == len(units)
    assert summary["splits"] >= 4
    assert summary["tasks"] >= 1
    assert summary["triedAgain"] == 0
    for progress in (row for row in rows if row["type"] == "progress"):
        assert progress["step"] == "counting"
        assert progress["tasks"] >= progress["done"]
