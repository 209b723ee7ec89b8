import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from dispatching import stored

from engine import rebuilding
from engine.cli.main import main
from engine.mapped import undo
from engine.mapped.store_lock import StoreLock


@pytest.fixture
def copy(golden, tmp_path):
    """``copy(name)``: a copy of a golden store, which a test may change."""

    def made(name: str, archive: str = "store") -> Path:
        place = tmp_path / "store of mine"
        shutil.copytree(golden(name, archive), place)
        return place

    return made


def broker_conf(store: Path) -> str:
    path = store.parent / "broker.conf"
    path.write_text("maxHashSlotNum=100\nmaxIndexNum=400\nmappedFileSizeConsumeQueue=6000\n")
    return str(path)


def everything(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_queues_and_index_are_built_into_another_directory_and_the_store_is_left_alone(
    golden, tmp_path, unchanged, capsys
):
    store = unchanged(golden("multi-queue-ext-5.3.3"))
    target = tmp_path / "new" / "here"
    assert main(["dispatch", str(store), "--to", str(target), "--json"]) == 0
    assert stored(target) == stored(store)
    record = json.loads(capsys.readouterr().out)
    assert record["type"] == "dispatched"
    assert (record["units"], record["queues"], record["path"]) == (4858, 27, str(target))
    assert sorted(path.name for path in target.parent.iterdir()) == ["here"]


def test_a_nonempty_directory_is_refused(golden, tmp_path, capsys):
    (tmp_path / "mine").write_text("x")
    assert main(["dispatch", str(golden("clean-5.3.3")), "--to", str(tmp_path)]) == 2
    assert "new or empty folder" in capsys.readouterr().err


def test_without_yes_and_without_a_terminal_nothing_is_changed(golden, unchanged, capsys):
    store = unchanged(golden("clean-5.3.3"))
    assert main(["dispatch", str(store)]) == 2
    err = capsys.readouterr().err
    assert "11 queues in 21 files" in err
    assert "26 files of the index" in err
    assert "nothing was changed" in err


def test_one_queue_is_reported_in_the_singular(tmp_path, capsys):
    """The first store of a ``put`` was reported as "1 queues in 1 files"."""
    store = tmp_path / "teas"
    assert main(["put", str(store), "--topic", "Orders", "--body", "one cup of tea"]) == 0
    capsys.readouterr()
    assert main(["dispatch", str(store)]) == 2
    err = capsys.readouterr().err
    assert "1 queue in 1 file (" in err
    assert re.search(r"1 file of the index \([^)]*\) is replaced", err)


@pytest.mark.parametrize("name", ["clean-5.3.3", "clean-4.9.8", "batchcq-5.3.3", "lmq-5.3.3"])
def test_a_store_gets_the_same_queues_and_index_again(copy, name):
    store = copy(name)
    stored_before, other_files_before = (
        stored(store),
        set(everything(store)) - {f"index/{path.name}" for path in (store / "index").iterdir()},
    )
    assert main(["dispatch", str(store), "--yes"]) == 0
    assert stored(store) == stored_before
    other_files_after = set(everything(store)) - {f"index/{path.name}" for path in (store / "index").iterdir()}
    assert other_files_after == other_files_before


def test_lost_queues_are_built_as_rocketmq_builds_them(copy, golden):
    store = copy("queues-gone-5.3.3")
    assert main(["dispatch", str(store), "--yes", "--config", broker_conf(store)]) == 0
    theirs = stored(golden("queues-gone-5.3.3", "recovered"))
    assert {path: data for path, data in stored(store).items() if "index" not in path} == {
        path: data for path, data in theirs.items() if "index" not in path
    }


def test_wrong_queues_are_replaced(copy, golden):
    store = copy("clean-5.3.3")
    for path in (store / "consumequeue").rglob("0" * 18 + "*"):
        path.write_bytes(b"\xff" * path.stat().st_size)
    for path in (store / "index").iterdir():
        path.unlink()
    assert main(["dispatch", str(store), "--yes", "--config", broker_conf(store)]) == 0
    assert stored(store) == stored(golden("clean-5.3.3"))


def test_assumed_sizes_are_reported(copy, tmp_path, capsys):
    store = copy("queues-gone-5.3.3")
    assert main(["dispatch", str(store), "--to", str(tmp_path / "there")]) == 0
    err = capsys.readouterr().err
    assert "(mappedFileSizeConsumeQueue)" in err
    assert "(maxHashSlotNum)" in err


def test_a_stop_in_the_middle_leaves_the_store_as_it_was(copy, monkeypatch, tmp_path):
    store = copy("clean-5.3.3")
    files_before = everything(store)
    take = rebuilding._take

    def stop(*arguments: object) -> None:
        take(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(rebuilding, "_take", stop)
    assert main(["dispatch", str(store), "--yes"]) == 130
    assert everything(store) == files_before
    assert main(["dispatch", str(store), "--to", str(tmp_path / "there")]) == 130
    assert not (tmp_path / "there").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store of mine"]


def test_leftovers_of_a_killed_run_are_removed(copy):
    store = copy("clean-5.3.3")
    stored_before = stored(store)
    (store / rebuilding.STAGING / "consumequeue").mkdir(parents=True)
    (store / rebuilding.STAGING / "consumequeue" / "half").write_text("x")
    assert main(["dispatch", str(store), "--yes"]) == 0
    assert not (store / rebuilding.STAGING).exists()
    assert stored(store) == stored_before


def test_where_the_system_cannot_exchange_folders_they_are_renamed(copy, monkeypatch):
    monkeypatch.setattr(undo, "_system_call", lambda: None)
    store = copy("clean-5.3.3")
    stored_before = stored(store)
    assert main(["dispatch", str(store), "--yes"]) == 0
    assert stored(store) == stored_before


def test_a_locked_store_is_left_alone(copy, capsys):
    store = copy("clean-5.3.3")
    stored_before = stored(store)
    with StoreLock(store / "lock"):
        assert main(["dispatch", str(store), "--yes"]) == 3
    assert stored(store) == stored_before
    assert "lock" in capsys.readouterr().err


def test_damage_is_skipped_and_reported(copy, capsys):
    store = copy("clean-5.3.3")
    log = next((store / "commitlog").iterdir())
    raw = bytearray(log.read_bytes())
    size = int.from_bytes(raw[:4], "big")
    raw[size : size + 4] = b"\xff\xff\xff\xff"
    log.write_bytes(raw)
    assert main(["dispatch", str(store), "--yes", "--json"]) == 0
    output = capsys.readouterr()
    record = json.loads(output.out)
    assert (record["units"], record["leftBehind"]) == (4090, 1)
    assert "skipped because damaged: 1 place of the log" in output.err


def test_a_deleted_topic_gets_no_queue_again(copy, capsys):
    store = copy("broker-orders")
    stored_before = stored(store)
    assert main(["dispatch", str(store), "--yes"]) == 0
    assert stored(store) == stored_before
    assert "DroppedAuditTrail was deleted" in capsys.readouterr().err


def test_the_printed_commands_move_the_new_folders_into_the_store(copy, tmp_path, monkeypatch, capsys):
    """``dispatch --to NEW`` ended with a folder, and did not explain how to move it into the store."""
    store = copy("multi-queue-ext-5.3.3")
    files_before = everything(store)
    monkeypatch.chdir(tmp_path)
    assert main(["dispatch", store.name, "--to", "made anew"]) == 0
    built = everything(tmp_path / "made anew")
    script = "".join(line for line in capsys.readouterr().out.splitlines(keepends=True) if line.startswith("  "))
    subprocess.run(["sh", "-ec", script], check=True)
    replaced = {name.split("/")[0] for name in built}
    left_alone = {name: data for name, data in files_before.items() if name.split("/")[0] not in replaced}
    assert everything(store) == left_alone | built
    assert left_alone | everything(tmp_path / "store of mine.old") == files_before
