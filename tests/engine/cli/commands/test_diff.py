"""diff: what differs is listed, counted, and told by the exit code; both stores stay as they are."""

from __future__ import annotations

import json
import shutil

import golden_stores
import pytest

from engine.cli.main import main

pytestmark = pytest.mark.golden


@pytest.fixture
def pair(golden, tmp_path):
    """A golden store, and a copy that a test may change."""
    store = golden("broker-orders-5.5.1")
    return store, shutil.copytree(store, tmp_path / "copy")


def records(capsys) -> list[dict]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_copy_is_equal(pair, unchanged, capsys):
    store, copy = pair
    unchanged(copy)
    assert main(["diff", str(unchanged(store)), str(copy)]) == 0
    assert "-- no difference; " in capsys.readouterr().out
    assert main(["diff", str(store), str(copy), "--json"]) == 0
    (compared,) = records(capsys)
    assert (compared["type"], compared["equal"], compared["differences"]) == ("compared", True, 0)


def test_differences_are_listed_and_counted(pair, capsys):
    store, copy = pair
    log = min((copy / "commitlog").iterdir())
    data = bytearray(log.read_bytes())
    data[16] ^= 1  # the flag of the first unit
    log.write_bytes(data)
    shutil.rmtree(copy / "consumequeue" / "OrderEvents" / "0")
    for name in ("delayOffset.json", "delayOffset.json.bak"):
        (copy / "config" / name).unlink()
    assert main(["diff", str(store), str(copy), "--json"]) == 1
    *differences, compared = records(capsys)
    by_part = {row["part"]: row for row in differences}
    assert (by_part["unit"]["fields"], by_part["unit"]["physicalOffset"]) == ("flag", 0)
    queue = by_part["queue"]
    assert (queue["kind"], queue["topic"], queue["queueId"], queue["count"]) == ("onlyInA", "OrderEvents", 0, 424)
    assert (by_part["config"]["kind"], by_part["config"]["subject"]) == ("onlyInA", "delayOffset.json")
    assert compared["counts"]["queue"] == {"onlyInA": 424}
    assert compared["differences"] == sum(number for sides in compared["counts"].values() for number in sides.values())
    assert main(["diff", str(copy), str(store), "--limit", "1"]) == 1
    text = capsys.readouterr().out
    assert "-- queue: 424 only in B" in text
    assert "the first 1 of" in text


def test_stores_that_cannot_be_read_are_not_called_equal(pair, capsys):
    store, copy = pair
    queue = copy / "consumequeue" / "OrderEvents" / "0"
    shutil.rmtree(queue)
    queue.symlink_to(copy / "nowhere")
    assert main(["diff", str(store), str(copy), "--json"]) != 0
    compared = next(record for record in records(capsys) if record["type"] == "compared")
    assert (compared["equal"], compared["complete"]) == (False, False)


def test_other_folders_are_refused(pair, tmp_path, capsys):
    store, _ = pair
    assert main(["diff", str(store), str(tmp_path / "absent")]) == 3
    assert "absent" in capsys.readouterr().err
    files_before = golden_stores.fingerprint(store)
    assert main(["diff", str(store)]) == 2
    assert golden_stores.changes(files_before, golden_stores.fingerprint(store)) == []
