"""Messages of compacted topics: replaced for consumers while the log has them, or alive when the log has not."""

from __future__ import annotations

import shutil

import pytest
from planted_faults import patch

from engine.inspection import open_store
from engine.inspection.where.evidence import where

pytestmark = pytest.mark.golden
STORE = "broker-compaction-5.5.1"


def verdicts(golden_account):
    """Queue offset → unique key of what consumers of StockLevels/0 got, and of what was sent to it."""
    lines = list(golden_account(STORE, "truth.jsonl.xz"))
    (pull,) = [
        line for line in lines if line["kind"] == "pull" and (line["topic"], line["queue"]) == ("StockLevels", 0)
    ]
    sent = {line["offset"]: line["msgId"] for line in lines if line["kind"] == "send" and line["queue"] == 0}
    return {offset: key for offset, key, _ in pull["messages"]}, sent


def test_only_what_consumers_get_is_found(golden, golden_account):
    """Every message of a compacted topic was "found" as long as the log had it."""
    received, _ = verdicts(golden_account)
    with open_store(golden(STORE)) as store:
        for offset in (0, 3, 85, 86, 106, 107, 250, 251, 399):
            (result,) = where(store, f"StockLevels/0/{offset}")
            assert result.verdict == ("found" if offset in received else "replaced"), offset
            if result.verdict == "replaced":
                assert result.evidence[-1].what == "compaction"
                assert "has a later message with the same key, at queue offset" in result.evidence[-1].holds


def without_first_files(golden, tmp_path):
    root = tmp_path / "store"
    shutil.copytree(golden(STORE), root, ignore=shutil.ignore_patterns("timerwheel"))
    (root / "commitlog" / f"{0:020d}").unlink()
    return root


def test_a_message_lives_on_when_the_log_has_deleted_it(golden, golden_account, tmp_path):
    received, _ = verdicts(golden_account)
    with open_store(without_first_files(golden, tmp_path)) as store:
        for text in ("StockLevels/0/86", received[86]):
            (result,) = where(store, text)
            assert (result.verdict, result.topic, result.queue_offset) == ("found", "StockLevels", 86)
            assert "lives on in compaction/compactionLog/StockLevels/0" in result.evidence[-1].holds
        (gone,) = where(store, "StockLevels/0/3")
        assert gone.verdict == "expired"
        assert "does not have it" in gone.evidence[-1].holds


def test_damaged_bytes_may_hold_it(golden, tmp_path):
    root = without_first_files(golden, tmp_path)
    patch(min((root / "compaction" / "compactionLog" / "StockLevels" / "0").iterdir()), 1503, bytes(8))
    with open_store(root) as store:
        (result,) = where(store, "StockLevels/0/3")
    assert result.verdict == "unknown"
    assert result.evidence[-1].holds.endswith("in damaged bytes at 1,503")
    assert {item.offset for item in result.evidence if item.what == "compaction"} == {None}
    assert "CM02" in result.next_step


def test_a_named_message_with_another_body_is_no_absent_one(golden, golden_account, tmp_path):
    """Its body was changed in the compaction log: then nothing says that a later message replaced it."""
    root = without_first_files(golden, tmp_path)
    patch(min((root / "compaction" / "compactionLog" / "StockLevels" / "0").iterdir()), 120, b"\xff\xff")
    with open_store(root) as store:
        (result,) = where(store, "StockLevels/0/86")
    assert result.verdict == "unknown"
    assert result.evidence[-1].holds.endswith("in damaged bytes at 0")


def test_a_message_that_lost_files_lack_is_not_called_replaced(golden, tmp_path):
    root = tmp_path / "store"
    shutil.copytree(golden(STORE), root, ignore=shutil.ignore_patterns("timerwheel"))
    for part in ("compactionLog", "compactionCq"):
        max((root / "compaction" / part / "StockLevels" / "0").iterdir()).unlink()
    with open_store(root) as store:
        (lost,) = where(store, "StockLevels/0/399")
        (replaced,) = where(store, "StockLevels/0/3")
    assert (lost.verdict, "CM03" in lost.next_step) == ("notInQueue", True)
    assert replaced.verdict == "replaced"
