"""Files of tiered storage that are missing or cut (TS01), in copies of a real broker's store."""

from __future__ import annotations

import shutil
from pathlib import Path

import agree
import pytest

from engine.codec.tiered import segment_name

pytestmark = pytest.mark.golden
QUEUE = "tiered/a007e11b_PeerCluster/broker-a/Orders/1"


@pytest.fixture
def store(golden, tmp_path) -> Path:
    root = tmp_path / "store"
    shutil.copytree(golden("tiered-5.5.1"), root, ignore=shutil.ignore_patterns("timerwheel"))
    return root


def findings_of(root: Path) -> list[dict]:
    return [record for record in agree.records_of("check", root) if record["type"] == "finding"]


def test_a_brokers_own_files_are_healthy(golden):
    assert findings_of(golden("tiered-5.5.1")) == []


def test_missing_and_cut_files_are_one_error(store):
    (store / QUEUE / "COMMIT_LOG" / segment_name(0)).unlink()
    entries = store / QUEUE / "CONSUME_QUEUE" / segment_name(1000)
    entries.write_bytes(entries.read_bytes()[:500])
    (finding,) = findings_of(store)
    assert (finding["id"], finding["severity"]) == ("TS01", "error")
    assert sorted(finding["evidence"]["files"]) == [
        "broker-a/Orders/1/COMMIT_LOG/0",
        "broker-a/Orders/1/CONSUME_QUEUE/1000",
    ]


def test_files_that_are_not_here_are_a_note(store):
    shutil.rmtree(store / "tiered")
    (finding,) = findings_of(store)
    assert (finding["id"], finding["severity"]) == ("TS01", "note")
    assert "8 queues in tiered storage; their files are not here" in finding["message"]


def test_nothing_is_said_beside_a_running_broker(store, monkeypatch):
    (store / QUEUE / "COMMIT_LOG" / segment_name(0)).unlink()
    monkeypatch.setattr("engine.inspection.snapshot.lock_state", lambda *_: "held")
    assert findings_of(store) == []


def test_a_lost_table_of_tiered_files_is_an_error(store):
    """The check found no problem, and ``where`` said that retention had deleted the messages. A broker does not find
    them either.
    """
    table = store / "config" / "tieredStoreMetadata.json"
    table.write_bytes(table.read_bytes()[:50])
    table.with_name(f"{table.name}.bak").write_bytes(b"")
    (finding,) = findings_of(store)
    assert (finding["id"], finding["severity"]) == ("TS01", "error")
    assert "has files of tiered storage: a broker does not find the messages in them" in finding["message"]
    summary = next(record for record in agree.records_of("check", store) if record["type"] == "summary")
    assert summary["incident"]["lostAlready"] is None, "the queues do not show what tiered storage had"


def test_the_bak_of_a_damaged_table_is_used(store):
    table = store / "config" / "tieredStoreMetadata.json"
    table.with_name(f"{table.name}.bak").write_bytes(table.read_bytes())
    table.write_bytes(b"{")
    assert findings_of(store) == [] or {finding["id"] for finding in findings_of(store)} == {"CF01"}
