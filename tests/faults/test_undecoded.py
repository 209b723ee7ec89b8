"""A part of a store that is recognised and not decoded is not absent: nothing is concluded from it, nothing is written
over it. Every command and every writer is asked over each kind of such a store.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
import struct
import sys
from pathlib import Path

import pytest
import recorded_requests
from golden_stores import changes, fingerprint
from handmade_stores import healthy
from handmade_stores import into_dledger as into_dledger_behind
from writing_commands import WRITERS

from engine.cli.command_table import COMMANDS
from engine.cli.main import main
from engine.codec.dledger import EntryHeader, encode_header
from engine.codec.message import Unit
from engine.config import MessageStoreConfig
from engine.errors import Undecoded
from engine.inspection.snapshot import open_store
from engine.lab.server import OwnStore
from engine.message_store import MessageStore
from engine.remoting.recording import Recorder

GOLDEN = (
    "rocks-5.5.1",
    "rocks-separate-5.5.1",
    "combine-5.5.1",
    "rocksdb-orders-5.5.1",
    "rocksdb-tables-v2-5.5.1",
    "rocksdb-timer-index-5.5.1",
)
MADE = ("popped", "popped elsewhere", "single tables", "dledger", "dledger by another name", "dledger in commitlog")
READERS = {
    "info",
    "units",
    "queue",
    "index",
    "trace",
    "get",
    "message",
    "offset",
    "where",
    "conversation",
    "positions",
    "rows",
    "waiting",
    "resend",
    "timeline",
    "histogram",
    "sql",
    "groups",
    "space",
    "diff",
    "check",
    "config",
    "compat",
    "snapshot",
    "capsule",
    "mcp",
    "mqadmin",
}
IN_PLACE = {"repair", "set_values"}
"""Commands that add no message: a RocksDB does not hinder them."""
TO_A_NEW_PLACE = {"copy", "pipeline", "salvage"}
NO_STORE = {"bench", "cluster", "completion", "doctor", "namesrv"}


READ_FROM_ROCKSDB = (
    ["queue", "STORE", "TOPIC", "0"],
    ["get", "STORE", "TOPIC", "0", "0"],
    ["offset", "STORE", "TOPIC", "0", "--time", "1795000000000"],
    ["where", "STORE", "TOPIC/0/3"],
    ["positions", "STORE"],
    ["queryMsgByOffset", "-s", "STORE", "-t", "TOPIC", "-i", "0", "-o", "3"],
    ["queryCq", "-s", "STORE", "-t", "TOPIC", "-q", "0", "-i", "3", "-c", "2"],
    ["printMsg", "-s", "STORE", "-t", "TOPIC"],
    ["printMsgByQueue", "-s", "STORE", "-t", "TOPIC", "-i", "0"],
    ["topicStatus", "-s", "STORE", "-t", "TOPIC"],
)
"""What is answered from queues in a RocksDB, with the extra."""
QUEUE_QUESTIONS = (*READ_FROM_ROCKSDB, ["space", "STORE", "--quick"], ["recover", "STORE", "--plan"])
"""What cannot be answered without the queues."""
WITHOUT_QUEUES = (
    ["info", "STORE"],
    ["check", "STORE", "--fail-on", "error"],
    ["index", "STORE"],
    ["units", "STORE", "--limit", "3"],
)
"""What can be answered, as far as the rest goes."""
CONCLUSIONS = re.compile(
    r"NO_MESSAGE_IN_QUEUE|notYetDispatched|notInQueue|not dispatched yet|has no folder|found no folder|no group has|"
    r"CQ10|CF03|CF08|RP01|no queue knows|would start: +yes|no consume queue holds|build the queues|, lower: |"
    r"dispatches it|0 messages|no problems found"
)
"""Sentences that were concluded from queues and tables which nobody had read."""


def test_every_command_is_a_writer_or_writes_into_no_store_that_is_there():
    assert set(WRITERS) | READERS | TO_A_NEW_PLACE | NO_STORE == set(COMMANDS)


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recording")
    recorder = Recorder(folder / "talk.requests")
    recorded_requests.seen_in_a_talk(folder / "first", recorder.take)
    recorder.close()
    return folder / "talk.requests"


@pytest.fixture
def without_rocksdb(monkeypatch):
    """Act as if the extra ``storescope[rocksdb]`` were not installed."""
    monkeypatch.setitem(sys.modules, "rocksdict", None)


@pytest.fixture
def undecoded(golden, tmp_path):
    """Return a function that makes a store of one of the kinds of ``GOLDEN`` and ``MADE``."""

    def make(kind: str) -> Path:
        root = tmp_path / "store"
        shutil.copytree(golden(kind if kind in GOLDEN else "clean-5.5.1"), root)
        tables = golden("rocksdb-orders-5.5.1") / "config" / "topics"
        if kind == "popped":
            shutil.copytree(tables, root / "kvStore")
        elif kind == "popped elsewhere":
            shutil.copytree(tables, root / "moved" / "by" / "somebody")
        elif kind == "single tables":
            shutil.copytree(tables, root / "config" / "metadata")
        elif kind.startswith("dledger"):
            into_dledger(root, {"dledger": "dledger-n0", "dledger by another name": "raft"}.get(kind))
        return root

    return make


def into_dledger(root: Path, folder: str | None) -> None:
    """Move the log's units into entries of DLedger, in ``folder`` or in commitlog itself; queues lead to the units."""
    with open_store(root) as store:
        units = [store.log.sequence.read(item.offset, item.size) for item in store.units() if isinstance(item, Unit)]
    data, index = bytearray(), bytearray()
    for number, unit in enumerate(units):
        position = len(data)
        header = EntryHeader(1, 48 + len(unit), number, 1, position, 0, 0, 0, len(unit))
        data += encode_header(header) + unit
        index += struct.pack(">iqiqq", 1, position, 48 + len(unit), number, 1)
    for path in (root / "commitlog").iterdir():
        path.unlink()
    places = {"data": root / "commitlog"} if folder is None else {"data": root / folder / "data"}
    places["index"] = root / (folder or "commitlog") / "index"
    for path in places.values():
        path.mkdir(parents=True, exist_ok=True)
    (places["data"] / f"{0:020d}").write_bytes(data.ljust(2 << 20, b"\0"))
    second = root / "dledger-n9" / "data"  # nobody knows which of the two a broker uses
    second.mkdir(parents=True)
    shutil.copy(places["data"] / f"{0:020d}", second)
    if folder is not None:
        (places["index"] / f"{0:020d}").write_bytes(index)


def run_command(*words):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(word) for word in words])
    return code, out.getvalue(), err.getvalue()


@pytest.mark.golden
@pytest.mark.parametrize("kind", [*GOLDEN, *MADE])
def test_nothing_is_written_into_a_store_with_a_part_that_is_not_decoded(kind, undecoded, recording):
    """``put``, ``serve`` and ``recover --apply`` built file queues into the folder of a RocksDB and said nothing.
    ``dispatch`` did the same where the RocksDB lay in ``consumequeue_rocksdb``.
    """
    root = undecoded(kind)
    fingerprint_before = fingerprint(root)
    for name, words in WRITERS.items():
        if name in IN_PLACE and not kind.startswith("dledger"):
            continue
        requests = [{"STORE": root, "RECORDING": recording}.get(word, word) for word in words]
        code, out, err = run_command(*requests)
        assert code == 3, (name, out, err)
        refusals = (
            "does not change",
            "not decoded",
            "only reads",
            "does not write into queues in a RocksDB",
            "no plan is made",
        )
        assert any(refusal in err for refusal in refusals), (name, err)
        assert err.count("storescope: ") == 1, (name, err)
        assert changes(fingerprint_before, fingerprint(root)) == [], name
        assert list(root.parent.iterdir()) == [root], name  # no folder of what was kept
    for opened in (
        lambda: MessageStore(root),
        lambda: MessageStore(root, services=False, empty_log=True),
        lambda: OwnStore(root, MessageStoreConfig(), "5.3"),
    ):
        with pytest.raises(Undecoded, match="nothing is written into this store"):
            opened()
        assert changes(fingerprint_before, fingerprint(root)) == []
        assert list(root.parent.iterdir()) == [root]


@pytest.mark.golden
@pytest.mark.parametrize("kind", ["rocks-5.5.1", "combine-5.5.1", "rocksdb-orders-5.5.1", "rocksdb-tables-v2-5.5.1"])
def test_a_store_with_a_rocksdb_is_changed_in_place(kind, undecoded):
    """What changes bytes and adds no message leaves nothing behind in the RocksDB; a valid store gets no repair."""
    root = undecoded(kind)
    before = fingerprint(root)
    code, out, _ = run_command("repair", root, "--apply", "--yes")
    assert (code, changes(before, fingerprint(root))) == (0, []), out
    code, _, err = run_command("set-checkpoint", root, "physicMsgTimestamp", "1", "--yes")
    assert code == 0, err
    assert {change.partition(":")[0] for change in changes(before, fingerprint(root))} <= {".", "checkpoint", "lock"}


@pytest.mark.golden
@pytest.mark.parametrize("name", ["clean-5.5.1", "crash-5.4.0", "broker-tags-5.5.1"])
def test_the_rocksdb_of_every_store_of_5_4_hinders_no_command(name, golden, tmp_path):
    """``rocksdbstore`` holds no record by default: no table file, and a write-ahead log without a byte."""
    root = tmp_path / "store"
    shutil.copytree(golden(name), root)
    code, out, _ = run_command("info", root, "--json")
    assert code == 0
    assert not any("RocksDB" in note for note in json.loads(out.splitlines()[0])["notes"])
    assert run_command("put", root, "--topic", "Orders", "--body", "tea", "--yes")[0] == 0


@pytest.mark.golden
@pytest.mark.parametrize(
    ("kind", "topic"),
    [("rocks-5.5.1", "TopicA"), ("rocks-separate-5.5.1", "TopicA"), ("rocksdb-orders-5.5.1", "OrderEvents")],
)
def test_nothing_is_concluded_from_queues_in_a_rocksdb_without_the_extra(kind, topic, golden, without_rocksdb):
    """``get`` said NO_MESSAGE_IN_QUEUE, ``where`` that the next start dispatches the message, ``groups`` that no group
    has an offset. ``consumequeue_rocksdb`` was not known at all: the store had "lost all its consume queues".
    """
    root = golden(kind)
    for question in QUEUE_QUESTIONS:
        words = [word.replace("STORE", str(root)).replace("TOPIC", topic) for word in question]
        for extra in ((), ("--json",)):
            code, out, err = run_command(*words, *extra)
            assert code == 3, (question, out, err)
            assert "unknown: the queues are in a RocksDB" in out + err, question
            assert not CONCLUSIONS.search(out + err), (question, out, err)
            assert question not in READ_FROM_ROCKSDB or "pip install 'storescope[rocksdb]'" in err, question
    for question in WITHOUT_QUEUES:
        code, out, err = run_command(*(word.replace("STORE", str(root)) for word in question))
        assert not CONCLUSIONS.search(out + err), (question, out, err)
        assert question[0] in ("check",) or code == 0, (question, out, err)
    findings = [json.loads(line) for line in run_command("check", root, "--json")[1].splitlines()]
    assert {record["id"] for record in findings if record["type"] == "finding"} == {"DK02"}, "the store is healthy"
    (account,) = (json.loads(line) for line in run_command("info", root, "--json")[1].splitlines())
    assert account["topics"] is None
    assert "storescope[rocksdb]" in account["unknown"]["queues"]


@pytest.mark.golden
@pytest.mark.parametrize("kind", ["rocks-5.5.1", "rocks-separate-5.5.1"])
def test_space_and_check_read_the_queues_of_a_rocksdb(kind, golden):
    """They ended with 3, and without --quick nothing was known of the groups that still read a file."""
    pytest.importorskip("rocksdict")
    code, out, err = run_command("space", golden(kind), "--quick")
    assert (code, err) == (0, "")
    assert "the queues are rows of one RocksDB" in out
    assert "cannot be told" not in out
    code, out, err = run_command("space", golden(kind), "--quick", "--json")
    units = [row for row in map(json.loads, out.splitlines()) if row.get("part") == "units"]
    assert {row["topic"] for row in units} >= {"TopicA"}
    code, out, _ = run_command("check", golden(kind), "--json")
    assert {json.loads(line).get("id") for line in out.splitlines()} == {None}


@pytest.mark.golden
def test_a_damaged_rocksdb_is_reported_and_nothing_is_concluded(golden, tmp_path):
    pytest.importorskip("rocksdict")
    root = tmp_path / "store"
    shutil.copytree(golden("rocks-5.5.1"), root)
    table = max((root / "consumequeue").glob("*.sst"), key=lambda path: path.stat().st_size)
    table.unlink()
    for question in (*READ_FROM_ROCKSDB, ["info", "STORE"], ["check", "STORE"]):
        words = [word.replace("STORE", str(root)).replace("TOPIC", "TopicA") for word in question]
        code, out, err = run_command(*words)
        assert code == 3, (question, out, err)
        assert f"{table.name}: " in out + err, (question, out, err)
        assert "expected a table file of" in out + err, (question, out, err)
        assert not CONCLUSIONS.search(out + err), (question, out, err)


@pytest.mark.golden
@pytest.mark.parametrize("kind", ["rocksdb-orders-5.5.1", "rocksdb-tables-v2-5.5.1"])
def test_nothing_is_concluded_from_tables_in_a_rocksdb_without_the_extra(kind, golden, without_rocksdb):
    root = golden(kind)
    for question in (["groups", root], ["consumerProgress", "-s", root, "-g", "warehouse"], ["config", root]):
        code, out, err = run_command(*question)
        assert code == 3, (question, out, err)
        assert "unknown: the consumer offsets are in a RocksDB" in out + err
        assert not CONCLUSIONS.search(out + err), (question, out, err)
    ids = {json.loads(line).get("id") for line in run_command("check", root, "--json")[1].splitlines()}
    assert not ids & {"CF03", "CF06", "CF08", "CQ10", "CQ14"}


@pytest.mark.golden
def test_file_queues_beside_a_rocksdb_are_looked_at(golden):
    """The plan said "cannot be told" beside a RocksDB, though a broker with storeType=default reads the files."""
    root = golden("combine-5.5.1")
    code, out, _ = run_command("get", root, "TopicA", "0", "0")
    assert code == 0
    assert "FOUND" in out
    code, out, err = run_command("recover", root, "--plan")
    assert code == 0, err
    assert "TopicA" in out
    assert "There are also file queues" in run_command("info", root)[1]


@pytest.mark.golden
def test_file_queues_that_ended_long_before_the_log_do_not_count(golden, tmp_path, without_rocksdb):
    """A store that went over to RocksDB queues keeps its old files: the messages behind them are not lost."""
    root = tmp_path / "store"
    shutil.copytree(golden("combine-5.5.1"), root)
    for path in (root / "consumequeue").glob("*/*/*"):
        entries = path.read_bytes()
        path.write_bytes(entries[: 20 * 5].ljust(len(entries), b"\0"))
    code, _, err = run_command("get", root, "TopicA", "0", "0")
    assert code == 3
    assert "unknown: the queues are in a RocksDB" in err
    conf = tmp_path / "broker.conf"
    conf.write_text("storeType=default\n")
    assert run_command("get", root, "TopicA", "0", "0", "--config", conf)[0] == 0
    assert "which of the two a broker uses" in run_command("info", root)[1]


@pytest.mark.golden
@pytest.mark.parametrize("kind", ["dledger", "dledger by another name", "dledger in commitlog"])
def test_nothing_is_concluded_from_a_dledger_log(kind, undecoded):
    root = undecoded(kind)
    fingerprint_before = fingerprint(root)
    for question in (*QUEUE_QUESTIONS, ["units", "STORE"], ["message", "STORE", "nothing"], ["where", "STORE", "x"]):
        words = [word.replace("STORE", str(root)).replace("TOPIC", "TopicA") for word in question]
        code, out, err = run_command(*words)
        assert code == 3, (question, out, err)
        assert "not decoded" in out + err, (question, out, err)
        assert not CONCLUSIONS.search(out + err), (question, out, err)
        assert "neverSeen" not in out, (question, out)
        assert "no unit of the log" not in out, (question, out)
        assert "0 units" not in out, (question, out)
    assert "ask a running broker of it" in run_command("where", root, "x")[1]
    (places,) = [json.loads(line) for line in run_command("positions", root, "--json")[1].splitlines()][:1]
    assert places["wrote"]["offset"] is None, "the log was said to end at 0"
    code, out, err = run_command("check", root)
    assert code == 0, out
    assert "DLedger" in out
    assert changes(fingerprint_before, fingerprint(root)) == []


@pytest.mark.parametrize("folder", ["dledger-n0/data", "commitlog"])
def test_where_finds_the_messages_from_before_a_dledger_log(folder, tmp_path):
    """A store that was classic before: ``where`` answered nothing, though the message is in a unit of commitlog."""
    handmade = healthy(60)
    root = handmade.write(tmp_path / "store")
    begins = into_dledger_behind(root, folder)
    old = next(unit for unit in reversed(handmade.units) if unit.offset < begins and unit.topic == "Orders")
    new = next(unit for unit in handmade.units if unit.offset > begins and unit.topic == "Orders")
    (root / "config").mkdir()
    offsets = {"offsetTable": {"Orders@readers": {"0": 100, "1": 100}}}
    (root / "config" / "consumerOffset.json").write_text(json.dumps(offsets))
    place = f"{old.topic}/{old.queue_id}/{old.queue_offset}"
    for words in ([old.keys[1]], [old.keys[0]], [str(old.offset)], [place], [place, "--group", "readers"]):
        code, out, err = run_command("where", root, *words)
        assert code == 3, (words, out, err)
        assert out.startswith(f"{'consumed' if len(words) > 1 else 'found'} at {old.offset:,}, {place}"), (words, out)
        assert "some of the messages are in a DLedger log" in err + out, words
    new_place = f"{new.topic}/{new.queue_id}/{new.queue_offset}"
    for text in (new.keys[1], new.keys[0], str(new.offset), new_place, "K9999"):
        code, out, err = run_command("where", root, text)
        assert code == 3, (text, out, err)
        assert out.startswith("unknown"), (text, out)
        assert "may be in the part of the log that is not decoded" in out, text
        assert not re.search("no unit can be read|neverSeen|truncated|newest unit is of", out), (text, out)
    if folder == "commitlog":
        return
    assert "points into the DLedger log" in run_command("where", root, new.keys[1])[1]
    assert f"points at {new.offset:,}, in the DLedger log" in run_command("where", root, new_place)[1]
    code, out, _ = run_command("where", root, "all")
    assert code == 3
    assert out.count("found at") >= 16
    assert out.rpartition("\nunknown at")[2].count("points into the DLedger log"), "one key of both parts"


def test_a_file_that_is_missing_from_before_a_dledger_log_is_an_error(tmp_path):
    """The check of a store that changed to DLedger ignored a gap in its classic files."""
    root = healthy(90).write(tmp_path / "store")
    into_dledger_behind(root)
    assert run_command("check", root)[0] == 0
    files = sorted((root / "commitlog").iterdir())
    files[1].unlink()
    expected = ("CL07", int(files[1].name))
    code, out, _ = run_command("check", root, "--json")
    graver = [row for row in map(json.loads, out.splitlines()) if row.get("severity") in ("warn", "error")]
    assert (code, [(row["id"], row["offset"]) for row in graver]) == (1, [expected])


def test_what_is_said_of_a_store_that_went_over_to_a_dledger_log(tmp_path):
    """``info`` said that the messages are in the DLedger log, ``space`` that topics have none or that no queue entry
    points at them, ``queue`` showed no entry, ``positions`` that no unit is where the index ends.
    """
    handmade = healthy(60)
    root = handmade.write(tmp_path / "store")
    begins = into_dledger_behind(root)
    old = [unit for unit in handmade.units if unit.offset < begins]
    assert f"0 to {old[-1].offset + old[-1].size:,} in 2 files; unknown: some of" in run_command("info", root)[1]
    code, out, _ = run_command("queue", root, "Orders", "0", "--resolve", "--json")
    entries = [json.loads(line) for line in out.splitlines()]
    assert code == 3
    entries = [entry for entry in entries if entry["type"] == "cq"]
    verdicts = [(entry["physicalOffset"] < begins, entry.get("verdict")) for entry in entries]
    assert set(verdicts) == {(True, "ok"), (False, None)}
    assert "the log is not decoded there" in run_command("positions", root)[1]
    code, out, _ = run_command("space", root, "--quick", "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert "notInQueues" not in {row.get("part") for row in rows}
    assert re.search(r"Orders +0 +[\d,]+ +[\d.]+%", run_command("space", root, "--quick")[1]), "it may have messages"
    assert run_command("check", root)[0] == 0


@pytest.mark.golden
@pytest.mark.parametrize("kind", ["rocks-5.5.1", "rocksdb-orders-5.5.1"])
def test_a_message_whose_queue_is_in_a_rocksdb_is_found_in_the_log_without_the_extra(kind, golden, without_rocksdb):
    """``where`` with a key ended with an error in front of its answer."""
    with open_store(golden(kind)) as store:
        unit = next(item for item in store.units() if isinstance(item, Unit))
    code, out, err = run_command("where", golden(kind), unit.unique_key or unit.offset)
    assert code == 3
    assert f"at {unit.offset:,}" in out, (out, err)
    assert "its queue is in a part of the store that is not decoded" in out


@pytest.mark.golden
@pytest.mark.parametrize(
    ("kind", "folder"),
    [("rocks-separate-5.5.1", "consumequeue_rocksdb"), ("rocksdb-timer-index-5.5.1", "rocksdbstore")],
)
def test_a_copy_of_what_recovery_reads_has_the_parts_that_are_not_decoded(kind, folder, golden, tmp_path):
    """The set left ``consumequeue_rocksdb`` behind: a broker that started on the copy had no queues."""
    assert run_command("snapshot", golden(kind), tmp_path / "copy", "--recovery-set")[0] == 0
    in_store, in_copy = (
        {path.name for path in (place / folder).iterdir()} for place in (golden(kind), tmp_path / "copy")
    )
    assert in_store == in_copy


@pytest.mark.golden
def test_an_index_in_a_rocksdb_is_not_a_missing_one(golden, tmp_path, without_rocksdb):
    """With ``indexFileWriteEnable=false`` the check said that a query by key finds nothing, while the broker answered
    from ``rocksdbstore``.
    """
    root = tmp_path / "store"
    shutil.copytree(golden("rocksdb-timer-index-5.5.1"), root)
    shutil.rmtree(root / "index")
    with open_store(root) as store:
        unit = next(item for item in store.units() if isinstance(item, Unit) and item.unique_key)
    assert "IX10" not in run_command("check", root)[1]
    code, out, err = run_command("trace", root, unit.topic, unit.unique_key)
    assert code == 3
    assert "unknown: the index is in a RocksDB (rocksdbstore/)" in err
    code, out, _ = run_command("where", root, unit.unique_key)
    assert "notInIndex" not in out
    assert "there is no index" not in out
    assert run_command("index", root)[0] == 3
    assert "would start: yes" in run_command("recover", root, "--plan")[1]


@pytest.mark.golden
@pytest.mark.parametrize("kind", ["rocks-5.5.1", "rocksdb-orders-5.5.1"])
def test_a_store_with_queues_in_a_rocksdb_is_copied_out_without_its_tables(kind, golden, tmp_path):
    """The new store has file queues of every message; the content of a RocksDB is named, and is not in it."""
    code, out, _ = run_command("copy", golden(kind), tmp_path / "copy")
    assert code == 3
    assert "unknown: the queues are in a RocksDB" in out
    assert not list((tmp_path / "copy").rglob("CURRENT"))
    assert run_command("put", tmp_path / "copy", "--topic", "Orders", "--body", "tea", "--yes")[0] == 0


@pytest.mark.golden
def test_messages_that_the_log_has_deleted_may_live_on_in_a_compaction_log(golden, tmp_path):
    """``where`` said that retention had deleted the message, and the check that a group had lost its messages."""
    root = tmp_path / "store"
    shutil.copytree(golden("first-files-deleted-5.3.3"), root)
    with open_store(root) as store:
        topic, queue_id, first_in_log = next(
            (topic, number, queue.first_in_log)
            for topic, queues in store.topics().items()
            for number, queue in queues.items()
            if queue.first_in_log > 0 and not topic.startswith(("SCHEDULE", "RMQ", "%", "rmq"))
        )
    (root / "config").mkdir(exist_ok=True)
    offsets = {"offsetTable": {f"{topic}@readers": {str(queue_id): 0}}}
    (root / "config" / "consumerOffset.json").write_text(json.dumps(offsets))
    assert "CF06" in run_command("check", root)[1]
    assert run_command("where", root, f"{topic}/{queue_id}/{first_in_log - 1}")[1].startswith("expired")

    path = root / "compaction" / "compactionLog" / topic / str(queue_id)
    path.mkdir(parents=True)
    (path / f"{0:020d}").write_bytes(b"unit")
    assert "CF06" not in run_command("check", root)[1]
    code, out, err = run_command("where", root, f"{topic}/{queue_id}/{first_in_log - 1}")
    assert code == 1
    assert out.startswith("unknown")
    assert f"may live on in compaction/compactionLog/{topic}/{queue_id}, in damaged bytes at 0" in out + err
    assert "compaction/compactionLog" in run_command("info", root)[1]
    assert "compaction/compactionLog" in run_command("space", root, "--quick")[1]
    code, _, err = run_command("put", root, "--topic", "Orders", "--body", "tea", "--yes")
    assert code == 3
    assert "compaction/compactionLog" in err
