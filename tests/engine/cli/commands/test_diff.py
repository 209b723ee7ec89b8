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


def test_a_real_slave_that_was_killed_lags(golden, capsys):
    """The 779 messages that the slave never got were 3,129 differences, one row each in the index."""
    master, slave = golden("master-slave-5.5.1", "master"), golden("master-slave-5.5.1", "slave")
    assert main(["diff", str(master), str(slave), "--json"]) == 1
    *differences, compared = records(capsys)
    assert len(differences) < 30
    (tail,) = compared["ends"]
    assert (tail["kind"], tail["end"], tail["count"], tail["physicalOffset"]) == ("onlyInA", "tail", 779, 1_008_343)
    assert sum(queue["onlyInA"]["count"] for queue in compared["queues"]) == 779
    first = compared["firstDifference"]
    assert (first["a"]["physicalOffset"], first["b"]) == (1_008_343, None)
    assert compared["counts"]["unit"] == compared["counts"]["queue"] == {"onlyInA": 779}
    assert compared["alignment"] == "offsets"
    assert {row["part"] for row in differences if "dataVersion." in row["subject"]} == {"dataVersion"}
    assert main(["diff", str(slave), str(master)]) == 1
    text = capsys.readouterr().out
    assert (
        "-- A ends at 1,008,343: 779 units of B are behind its end (A lags, was copied earlier, or lost its end)"
        in text
    )
    assert "--   A: no unit" in text


def test_a_copy_with_other_offsets_is_compared_by_message(pair, tmp_path, capsys):
    store, _ = pair
    assert main(["copy", str(store), str(tmp_path / "chosen"), "--where", 'topic != "AuditTrail"']) == 0
    config = tmp_path / "broker.conf"
    config.write_text("mappedFileSizeCommitLog=262144\n")
    assert main(["copy", str(store), str(tmp_path / "other-sizes"), "--config", str(config)]) == 0
    capsys.readouterr()
    assert main(["diff", str(store), str(tmp_path / "chosen"), "--json"]) == 1
    *differences, compared = records(capsys)
    assert {(row["part"], row["kind"], row["topic"]) for row in differences if row["part"] == "unit"} == {
        ("unit", "onlyInA", "AuditTrail")
    }
    assert {queue["topic"] for queue in compared["queues"]} == {"AuditTrail"}
    assert compared["counts"]["unit"] == {"onlyInA": 290}
    assert main(["diff", str(store), str(tmp_path / "other-sizes"), "--json"]) == 1
    *differences, compared = records(capsys)
    assert {row["part"] for row in differences} == {"checkpoint", "state"}
    assert (compared["alignment"], compared["firstDifference"]) == ("both", None)


def test_a_store_is_compared_with_itself_as_patches_leave_it(pair, tmp_path, capsys):
    _, copy = pair
    log = min((copy / "commitlog").iterdir())
    data = bytearray(log.read_bytes())
    data[11] ^= 1  # the body CRC of the first unit
    log.write_bytes(data)
    patches = str(tmp_path / "patches")
    main(["repair", str(copy), "--plan", "--save", patches])
    capsys.readouterr()
    assert main(["diff", str(copy), "--patched", patches, "--json"]) == 1
    *differences, _ = records(capsys)
    assert {row["part"] for row in differences} == {"unit"}
    assert {row["physicalOffset"] for row in differences} == {0}


def test_a_store_in_dledger_mode_is_compared_with_its_classic_copy(golden, tmp_path, capsys):
    store, copy = str(golden("broker-dledger-5.5.1")), str(tmp_path / "copy")
    assert main(["copy", store, copy]) == 0
    capsys.readouterr()
    assert main(["diff", store, copy, "--json"]) == 1
    *differences, compared = records(capsys)
    assert {row["part"] for row in differences} == {"checkpoint"}
    assert (compared["alignment"], compared["queues"]) == ("messages", [])


def test_a_crashed_store_and_what_a_real_broker_made_of_it(golden, capsys):
    """Recovery built a queue again and changed index and checkpoint. No unit differs."""
    crashed, recovered = golden("crash-late-5.3.3"), golden("crash-late-5.3.3", "recovered")
    main(["diff", str(crashed), str(recovered), "--json"])
    compared = records(capsys)[-1]
    assert compared["alignment"] == "offsets"
    assert compared["counts"].keys() == {"queue", "index", "checkpoint", "state"}
    assert compared["counts"]["queue"] == {"onlyInB": 501}


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("crash-4.9.8", {"index": {"onlyInA": 3, "onlyInB": 4}}),
        ("crash-5.4.0", {"index": {"onlyInA": 3, "onlyInB": 2}}),
        ("crash-flip-5.3.3", {"queue": {"onlyInA": 97}}),
        ("crash-power-5.3.3", {"queue": {"onlyInB": 1_344}, "index": {"onlyInB": 8_243}}),
    ],
)
def test_what_the_recovery_of_each_release_changed_is_counted(golden, capsys, name, counts):
    assert main(["diff", str(golden(name)), str(golden(name, "recovered")), "--json"]) == 1
    compared = records(capsys)[-1]
    others = {"checkpoint", "state"}
    assert {part: numbers for part, numbers in compared["counts"].items() if part not in others} == counts
    assert (compared["alignment"], compared["firstDifference"]) == ("offsets", None)


@pytest.mark.parametrize("name", ["clean-4.9.8", "broker-transactions-5.4.0"])
def test_a_copy_with_smaller_log_files_is_compared_by_message(golden, tmp_path, capsys, name):
    """Offsets agree up to the end of the first small file only. No message differs, in either direction."""
    sizes = tmp_path / "broker.conf"
    sizes.write_text("mappedFileSizeCommitLog=262144")
    assert main(["copy", str(golden(name)), str(tmp_path / "copy"), "--config", str(sizes), "--quiet"]) == 0
    capsys.readouterr()
    for pair in ((golden(name), tmp_path / "copy"), (tmp_path / "copy", golden(name))):
        main(["diff", *map(str, pair), "--json"])
        compared = records(capsys)[-1]
        assert compared["alignment"] == "both"
        assert compared["counts"].keys() <= {"checkpoint", "state"}
