"""set-offset, set-delay-offset, set-checkpoint: the change is shown, made, and undone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import golden_stores
import pytest
from undo_cases import kept_in, same

from engine.cli.main import main
from engine.codec.checkpoint import decode
from engine.inspection.snapshot import open_store
from engine.inspection.tables import offsets
from engine.mapped.store_lock import StoreLock

OFFSET = ["warehouse", "OrderEvents", "0"]


@pytest.fixture
def copy(golden, tmp_path):
    """``copy(name)``: a copy of a golden store, which a test may change."""

    def made(name: str) -> Path:
        place = tmp_path / "store of mine"
        shutil.copytree(golden(name), place)
        return place

    return made


def group_offset(store: Path, group: str, topic: str, queue: int) -> int | None:
    with open_store(store) as snapshot:
        rows = {(row.group, row.topic): row.offsets for row in offsets(snapshot)}
    return rows.get((group, topic), {}).get(queue)


@pytest.mark.golden
@pytest.mark.parametrize("name", ["broker-orders-4.9.7", "broker-orders", "broker-orders-5.5.1"])
def test_a_group_offset_is_set_and_set_back(copy, tmp_path, capsys, name):
    store = copy(name)
    with open_store(store) as snapshot:
        row = next(row for row in offsets(snapshot) if row.mode == "cluster" and row.offsets.get(0, 0) > 100)
        group, topic, old = row.group, row.topic, row.offsets[0]
    files_before = golden_stores.fingerprint(store)
    assert main(["set-offset", str(store), group, topic, "0", str(old - 100), "--plan"]) == 0
    words = capsys.readouterr().out
    assert f"100 entries are read again: offsets {old - 100} to {old - 1}" in words
    assert golden_stores.changes(files_before, golden_stores.fingerprint(store)) == []
    assert main(["set-offset", str(store), group, topic, "0", str(old - 100), "--yes", "--json"]) == 0
    patch, patched = map(json.loads, capsys.readouterr().out.splitlines())
    assert (patch["type"], patch["action"], patch["file"]) == ("patch", "replaceFile", "config/consumerOffset.json")
    assert group_offset(store, group, topic, 0) == old - 100
    (folder,) = kept_in(tmp_path)
    assert patched["kept"]["folder"] == str(folder)
    assert main(["recover", str(store), "--undo", str(folder), "--yes"]) == 0
    assert same(store, files_before) == []


@pytest.mark.golden
def test_what_a_new_offset_means_is_said(golden, capsys):
    store = golden("broker-orders-5.5.1")
    for number, words in (
        ("393", "Nothing changes"),
        ("394", "1 entry is never read: offset 393"),
        ("0", "393 entries are read again: offsets 0 to 392"),
    ):
        assert main(["set-offset", str(store), *OFFSET, number, "--plan"]) == 0
        assert words in capsys.readouterr().out
    assert main(["set-offset", str(store), "new", "OrderEvents", "0", "400", "--plan"]) == 0
    assert "There was no offset: 24 entries are read from there on" in capsys.readouterr().out


@pytest.mark.golden
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([*OFFSET, "425"], 2, "expected an offset from 0 to 424, found 425"),
        ([*OFFSET, "-1"], 2, "expected an offset from 0 to 424, found -1"),
        (["a@b", "OrderEvents", "0", "1"], 2, "without '@'"),
        (["warehouse", "NoSuchTopic", "0", "1"], 3, "no queue 0 of topic NoSuchTopic"),
        (["warehouse", "OrderEvents", "4", "1"], 3, "no queue 4 of topic OrderEvents"),
    ],
)
def test_what_cannot_be_is_refused(golden, unchanged, capsys, arguments, code, words):
    store = unchanged(golden("broker-orders-5.5.1"))
    assert main(["set-offset", str(store), *arguments, "--yes"]) == code
    assert words in capsys.readouterr().err


@pytest.mark.golden
def test_offsets_in_a_rocksdb_are_left_alone(golden, unchanged, capsys):
    store = unchanged(golden("rocksdb-orders-5.5.1"))
    with open_store(store) as snapshot:
        row = next(row for row in offsets(snapshot) if row.mode == "cluster")
        queue = min(row.offsets)
    assert main(["set-offset", str(store), row.group, row.topic, str(queue), "0", "--yes"]) == 3
    assert "in a RocksDB" in capsys.readouterr().err


@pytest.mark.golden
def test_a_held_store_is_refused_and_without_yes_nothing_is_changed(copy, capsys):
    store = copy("broker-orders-5.5.1")
    files_before = golden_stores.fingerprint(store)
    assert main(["set-offset", str(store), *OFFSET, "1"]) == 2
    assert "--yes" in capsys.readouterr().err
    lock = StoreLock(store / "lock")
    try:
        assert main(["set-offset", str(store), *OFFSET, "1", "--yes"]) == 3
    finally:
        lock.release()
    changed = golden_stores.changes(files_before, golden_stores.fingerprint(store))
    assert [line for line in changed if "lock" not in line] == []
    assert group_offset(store, "warehouse", "OrderEvents", 0) == 393


@pytest.mark.golden
def test_a_broken_table_is_not_written_over(copy, capsys):
    store = copy("broker-orders-5.5.1")
    for name in ("consumerOffset.json", "consumerOffset.json.bak"):
        (store / "config" / name).write_bytes(b'{"offsetTable":{"T@g":{0:')
    assert main(["set-offset", str(store), *OFFSET, "1", "--yes"]) == 3
    assert "cannot load this table" in capsys.readouterr().err


@pytest.mark.golden
def test_a_delay_level_goes_on_at_another_offset(copy, capsys):
    store = copy("broker-retries")
    with open_store(store) as snapshot:
        queues = snapshot.topics()["SCHEDULE_TOPIC_XXXX"]
        queue = max(queues, key=lambda number: queues[number].max_offset)
    assert main(["set-delay-offset", str(store), str(queue + 1), "0", "--plan"]) == 0
    assert "delivered again" in capsys.readouterr().out
    assert main(["set-delay-offset", str(store), str(queue + 1), "0", "--yes"]) == 0
    assert f"{queue + 1}:0" in (store / "config" / "delayOffset.json").read_text()
    assert main(["set-delay-offset", str(store), "0", "0", "--plan"]) == 2


@pytest.mark.golden
def test_the_start_with_another_checkpoint_is_shown_beside_todays(copy, capsys):
    store = copy("crash-5.4.0")
    files_before = golden_stores.fingerprint(store)
    assert main(["set-checkpoint", str(store), "physicMsgTimestamp", "0", "--plan"]) == 0
    words = capsys.readouterr().out
    assert "it begins at file: " in words
    assert "the log ends at: " in words
    assert golden_stores.changes(files_before, golden_stores.fingerprint(store)) == []
    assert main(["set-checkpoint", str(store), "physicMsgTimestamp", "1", "--yes"]) == 0
    assert decode((store / "checkpoint").read_bytes()).physic_msg_timestamp == 1
    assert main(["set-checkpoint", str(store), "physicMsgTimestamp", "-5", "--yes"]) == 2
    (store / "checkpoint").write_bytes(bytes(10))
    assert main(["set-checkpoint", str(store), "logicsMsgTimestamp", "1", "--yes"]) == 3
    error = capsys.readouterr().err
    assert "checkpoint at offset 10: the file ends before logicsMsgTimestamp" in error
    assert main(["set-checkpoint", str(store), "physicMsgTimestamp", "2", "--yes"]) == 0
    assert (store / "checkpoint").read_bytes() == bytes(7) + b"\2" + bytes(2)
    (store / "checkpoint").unlink()
    assert main(["set-checkpoint", str(store), "physicMsgTimestamp", "1", "--yes"]) == 3
    assert "there is no checkpoint" in capsys.readouterr().err
