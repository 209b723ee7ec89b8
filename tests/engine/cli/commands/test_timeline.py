"""``timeline``: the events as records and as a table."""

from __future__ import annotations

import json

import contract_records
import pytest

from engine.cli.main import main
from engine.message_store import Message, MessageStore
from engine.system_names import TRACE_TOPIC


def records_of(capsys, *arguments):
    assert main(["timeline", *arguments, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.golden
def test_events_come_in_order_of_time_and_a_summary_last(golden, capsys):
    *events, summary = records_of(capsys, str(golden("broker-crash", "store-recovered")))
    assert [line for record in (*events, summary) for line in contract_records.complaints(record)] == []
    times = [event["from"] if event["from"] is not None else event["to"] for event in events]
    assert times == sorted(times)
    assert [event["kind"] for event in events[-3:]] == ["crash", "start", "cleanStop"]
    assert events[-3]["evidence"] == {
        "certainty": "likely",
        "source": "index/20261121081547782",
        "indexFileMade": 1_795_248_947_782,
        "firstMessageStored": 1_795_248_938_676,
        "indexedFrom": 2_617_592,
    }
    assert (summary["type"], summary["events"], summary["complete"]) == ("timelineSummary", len(events), True)
    assert (summary["lastRun"], summary["zoneMs"], summary["units"]) == ("closed", 0, 3392)


@pytest.mark.golden
def test_kinds_times_and_a_limit_choose_events(golden, capsys):
    store = str(golden("broker-crash", "store-recovered"))
    *events, summary = records_of(capsys, store, "--kind", "crash,start")
    assert ([event["kind"] for event in events], summary["events"]) == (["crash", "start"], 2)
    *events, _ = records_of(capsys, store, "--begin", "1795248940000", "--end", "1795248950000")
    assert [event["kind"] for event in events] == ["crash", "start"]
    *events, summary = records_of(capsys, store, "--limit", "1")
    assert (len(events), summary["listed"]) == (1, 1)
    assert summary["events"] == sum(summary["kinds"].values())


@pytest.mark.golden
def test_the_first_line_is_a_summary(golden, capsys):
    assert main(["timeline", str(golden("broker-crash", "store-recovered")), "--limit", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("-- 8 events; 2 of 8 listed (--limit): topicAppears 4")
    assert lines[1].endswith("the last run was closed cleanly")
    assert lines[2].startswith("-- from born to stored: half within 1 ms")


def test_a_capsule_has_no_traces(tmp_path, capsys):
    """Its trace messages have no bodies. They were counted as messages that are not understood."""
    with MessageStore(tmp_path / "store") as store:
        store.put_message(Message(TRACE_TOPIC, b"Pub\x01 and more text"))
    capsule = str(tmp_path / "x.capsule")
    assert main(["capsule", str(tmp_path / "store"), "-o", capsule]) == 0
    assert main(["timeline", capsule, "--traces"]) == 2
    assert "a capsule has no bodies" in capsys.readouterr().err
    assert main(["timeline", capsule]) == 0


def test_an_unknown_kind_is_wrong_usage(capsys):
    assert main(["timeline", ".", "--kind", "crash,nothing"]) == 2
    assert "found 'crash,nothing'" in capsys.readouterr().err


def test_a_store_without_messages_has_no_events(tmp_path, capsys):
    (tmp_path / "commitlog").mkdir()
    (summary,) = records_of(capsys, str(tmp_path))
    assert (summary["events"], summary["units"], summary["lastRun"]) == (0, 0, None)


def test_traces_are_listed_on_request(tmp_path, capsys):
    fields = ("Pub", 1000, "R", "shop", "Orders", "ID", "T", "K1", "10.0.0.9:1", 6, 61, 0, "7F00", "true")
    body = "\x01".join(map(str, fields)).encode() + b"\x02"
    with MessageStore(tmp_path) as store:
        store.put_message(Message(TRACE_TOPIC, body, born_host="10.0.0.5:4000"))
    assert main(["timeline", str(tmp_path)]) == 0
    assert "-- 1 message of traces (RMQ_SYS_TRACE_TOPIC): --traces lists" in capsys.readouterr().out
    *events, summary = records_of(capsys, str(tmp_path), "--traces")
    assert [event["kind"] for event in events] == ["messageSent", "cleanStop"]
    assert [line for record in (*events, summary) for line in contract_records.complaints(record)] == []
    assert summary["traceMessages"] == 1
    *events, _ = records_of(capsys, str(tmp_path), "--message", "K7")
    assert [event["kind"] for event in events] == ["cleanStop"]
