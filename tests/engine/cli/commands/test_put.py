"""``put`` creates a store, continues one after a question, and refuses one that is open or that no broker starts."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import agree
import golden_stores
import pytest
from explicit_plans import write_conf, write_plan

from engine.cli.main import main
from engine.cli.put_plan import read_plan
from engine.config import read_properties
from engine.inspection import open_store
from engine.message_store import MessageStore

SIZES = {
    "mappedFileSizeCommitLog": 65_536,
    "mappedFileSizeConsumeQueue": 2000,
    "maxHashSlotNum": 50,
    "maxIndexNum": 200,
}
PUT_FIELDS = {"type", "status", "physicalOffset", "queueOffset", "msgId", "size", "storeTimestamp"}


def records(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def put_one(store, *options):
    return main(["put", str(store), "--topic", "T", "--body", "tea", "--json", *options])


@pytest.fixture
def store_path(tmp_path, capsys):
    """Make a small store with one message. Its index file has no key yet, so the number of slots is not visible in
    it.
    """
    assert put_one(tmp_path / "store", "--config", str(write_conf(tmp_path / "broker.conf", SIZES))) == 0
    capsys.readouterr()
    return tmp_path / "store"


def conf_of(store):
    return "--config", str(store.parent / "broker.conf")


def test_an_empty_directory_becomes_a_store(tmp_path, capsys):
    conf = write_conf(tmp_path / "broker.conf", SIZES)
    store = tmp_path / "a store"
    store.mkdir()
    options = (
        "--queue",
        "2",
        "--tags",
        "A",
        "--keys",
        "k1 k2",
        "--unique-key",
        "u",
        "--property",
        "a=b=c",
        "--flag",
        "7",
    )
    assert put_one(store, "--config", str(conf), *options) == 0
    (row,) = records(capsys)
    assert row.keys() >= PUT_FIELDS
    assert (row["type"], row["status"], row["physicalOffset"], row["queueOffset"]) == ("put", "PUT_OK", 0, 0)
    assert main(["message", str(store), row["msgId"], "--json"]) == 0
    (unit,) = records(capsys)
    assert (unit["queueId"], unit["flag"], unit["keys"]) == (2, 7, ["k1", "k2"])
    assert unit["properties"] == {"a": "b=c", "TAGS": "A", "KEYS": "k1 k2", "UNIQ_KEY": "u"}
    assert not (store / "abort").exists()


def test_keys_that_no_broker_knows_are_named(tmp_path, capsys):
    conf = write_conf(tmp_path / "broker.conf", {**SIZES, "brokerName": "a", "mappedFileSizeComitLog": 1})
    assert put_one(tmp_path / "store", "--config", str(conf)) == 0
    assert capsys.readouterr().err == f"storescope: {conf}: no broker knows mappedFileSizeComitLog\n"


def test_an_impossible_value_is_refused_with_what_is_permitted(tmp_path, capsys):
    conf = write_conf(tmp_path / "broker.conf", {"mappedFileSizeCommitLog": 3})
    assert put_one(tmp_path / "store", "--config", str(conf)) == 2
    assert "a whole number from 128" in capsys.readouterr().err
    assert not (tmp_path / "store").exists()


def test_an_existing_store_is_confirmed_with_figures(store_path, capsys):
    files_before = golden_stores.fingerprint(store_path)
    assert put_one(store_path, *conf_of(store_path)) == 2
    err = capsys.readouterr().err
    assert "its log ends at 95" in err
    assert "Then 1 message of 1 topic is appended, 3 bytes of bodies." in err
    assert golden_stores.changes(files_before, golden_stores.fingerprint(store_path)) == []
    assert put_one(store_path, "--yes", *conf_of(store_path)) == 0
    assert [(row["physicalOffset"], row["queueOffset"]) for row in records(capsys)] == [(95, 1)]


def test_sizes_of_a_store_that_exists_are_kept(store_path, capsys):
    plan = {"messages": [{"topic": "T", "body": "x" * 4000, "properties": {"KEYS": f"k{n}"}} for n in range(40)]}
    call = ["put", str(store_path), "--plan", str(write_plan(store_path.parent / "p.json", plan)), "--yes", "--json"]
    assert main(call) == 3
    assert "give the broker's configuration" in capsys.readouterr().err
    assert main([*call, *conf_of(store_path)]) == 0
    assert main(call) == 0
    assert len(records(capsys)) == 80
    assert {file.stat().st_size for file in (store_path / "commitlog").iterdir()} == {65_536}
    assert {file.stat().st_size for file in (store_path / "consumequeue/T/0").iterdir()} == {2000}


def test_a_locked_store_is_refused_with_the_writers_name(store_path, capsys):
    code = (
        "import sys; from engine.message_store import MessageStore; from engine.config import from_mapping; import os\n"
        f"store = MessageStore({str(store_path)!r}, from_mapping({SIZES!r})[0])\n"
        "print(os.getpid(), flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        pid = holder.stdout.readline().strip()
        assert put_one(store_path, "--yes") == 3
        assert pid in capsys.readouterr().err
    finally:
        holder.communicate("")


def test_a_store_that_a_broker_refuses_is_refused(store_path, capsys):
    (store_path / "consumequeue/T/0/00000000000000002000").write_bytes(bytes(7))
    files_before = golden_stores.fingerprint(store_path)
    assert put_one(store_path, "--yes") == 3
    assert "a broker would not start" in capsys.readouterr().err
    assert golden_stores.changes(files_before, golden_stores.fingerprint(store_path)) == []


def test_a_store_without_a_log_needs_confirmation_too(tmp_path, capsys):
    conf = write_conf(tmp_path / "broker.conf", SIZES)
    with MessageStore(tmp_path / "store", read_properties(conf)[0]):
        pass
    assert put_one(tmp_path / "store", "--config", str(conf)) == 2
    assert "has no commit log yet" in capsys.readouterr().err
    assert put_one(tmp_path / "store", "--config", str(conf), "--yes") == 0


def test_a_folder_that_is_not_a_store_is_left_alone(tmp_path, capsys):
    (tmp_path / "letter.txt").write_text("dear")
    assert put_one(tmp_path, "--yes") == 3
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]
    assert "expected a store" in capsys.readouterr().err


def test_after_a_crash_recovery_comes_first(golden, tmp_path, capsys):
    store = tmp_path / "store"
    shutil.copytree(golden("crash-5.3.3"), store)
    assert put_one(store, "--yes") == 0
    output = capsys.readouterr()
    assert "after a crash" in output.err
    assert json.loads(output.out)["physicalOffset"] > 0
    assert not (store / "abort").exists()


def test_a_refused_message_has_a_status_and_no_offset(tmp_path, capsys):
    conf = write_conf(tmp_path / "broker.conf", SIZES)
    plan = {"messages": [{"topic": "T" * 200, "body": "x"}, {"topic": "T", "body": "x"}]}
    store = str(tmp_path / "store")
    assert main(["put", store, "--plan", str(write_plan(tmp_path / "p", plan)), "--config", str(conf), "--json"]) == 1
    refused, stored = records(capsys)
    assert (refused["status"], refused["physicalOffset"], refused["msgId"]) == ("MESSAGE_ILLEGAL", None, None)
    assert stored["status"] == "PUT_OK"


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--topic", "T"],
        ["--body", "x"],
        ["--plan", "p", "--topic", "T"],
        ["--plan", "p", "--flag", "1"],
        ["--topic", "T", "--body", "x", "--property", "nothing"],
    ],
)
def test_exactly_one_of_plan_and_message_is_required(tmp_path, options, capsys):
    assert main(["put", str(tmp_path / "store"), *options]) == 2
    assert capsys.readouterr().err.startswith("storescope: ")
    assert not (tmp_path / "store").exists()


@pytest.fixture
def put_plan_store(tmp_path, capsys):
    """Make a small store with one message. Its index file has no key yet, so the number of slots is not visible in
    it.
    """
    assert put_one(tmp_path / "store", "--config", str(write_conf(tmp_path / "broker.conf", SIZES))) == 0
    capsys.readouterr()
    return tmp_path / "store"


def test_a_batch_topic_of_a_plan_is_declared(tmp_path, capsys):
    plan = {"config": SIZES, "topics": [{"name": "B", "queues": 2, "type": "BatchCQ"}], "messages": []}
    assert main(["put", str(tmp_path / "store"), "--plan", str(write_plan(tmp_path / "p", plan))]) == 0
    assert capsys.readouterr().err == ""
    with MessageStore(tmp_path / "store", read_plan(str(tmp_path / "p")).with_settings(None)) as store:
        assert store.tables.is_batch_topic("B")


@pytest.mark.parametrize(
    ("name", "entries"), [("broker-tags-5.5.1", 3), ("crash-5.4.0", 3), ("clean-5.3.3", 2), ("clean-4.9.8", 2)]
)
def test_a_put_indexes_tags_where_the_release_of_the_store_does(golden, tmp_path, name, entries):
    """A message put into a store of 5.4 or later had no tag entry in the index, so a query by tag missed it."""
    shutil.copytree(golden(name), tmp_path / "store", ignore=shutil.ignore_patterns("timerwheel"))
    put = ["put", tmp_path / "store", "--topic", "Ours", "--body", "x", "--tags", "new", "--keys", "K-new", "--yes"]
    status, _, error = agree.command(*put, "--unique-key", "U-new")
    assert status == 0, error
    with open_store(tmp_path / "store") as store:
        offsets = [
            entry.phy_offset for reader in store.index_files() for _, entry in reader.entries() if entry is not None
        ]
    assert offsets.count(max(offsets)) == entries
    response = agree.records_of("trace", tmp_path / "store", "Ours", "--tag", "new")
    assert response[-1]["matches"] == (entries == 3)
