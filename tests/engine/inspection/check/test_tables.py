"""Tables that are missing, empty, or contradict queues and log. Each state is built in a broker's own store."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from broken_stores import BROKEN, table
from handmade_stores import healthy

from engine.cli.main import main
from engine.config import read_properties
from engine.inspection import open_store
from engine.inspection.findings import check
from engine.rules.findings import Finding, at_least

pytestmark = pytest.mark.golden


@pytest.fixture
def store(golden, tmp_path) -> Callable[..., Path]:
    """Copy a broker's store to spoil it. The timer wheel is left out because these tests do not need it."""

    def copy(name: str = "broker-orders") -> Path:
        path = tmp_path / "the store"
        return Path(shutil.copytree(golden(name), path, ignore=shutil.ignore_patterns("timerwheel")))

    return copy


def grave(root: Path, least: str = "warn") -> list[Finding]:
    with open_store(root) as opened:
        return [
            finding for finding in check(opened) if isinstance(finding, Finding) and at_least(finding.severity, least)
        ]


def only(root: Path, least: str = "warn") -> Finding:
    (results,) = grave(root, least)
    return results


def remove(root: Path, name: str) -> None:
    for suffix in ("", ".bak"):
        (root / "config" / f"{name}{suffix}").unlink()


def edit(root: Path, name: str, old: str, new: str) -> None:
    file = root / "config" / name
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def declare(root: Path, topic: str, **fields: int) -> None:
    file = root / "config" / "topics.json"
    table = json.loads(file.read_text())
    table["topicConfigTable"][topic].update(fields)
    file.write_text(json.dumps(table))


@pytest.mark.parametrize("name", ["broker-orders", "broker-orders-4.9.7"])
@pytest.mark.parametrize("table", ["consumerOffset.json", "topics.json", "subscriptionGroup.json"])
def test_a_table_that_is_gone_is_an_error(table, name, store):
    root = store(name)
    remove(root, table)
    finding = only(root)
    assert (finding.id, finding.severity, finding.file) == ("CF03", "error", str(root / "config" / table))
    assert finding.message.startswith(f"{table} is gone, there is no .bak: ")
    assert finding.evidence["witnesses"]
    assert finding.command == f"cp REPLICA/config/{table} '{root}'/config/"


def test_delay_offsets_are_missed_if_there_are_delayed_messages(store):
    root = store("broker-retries")
    remove(root, "delayOffset.json")
    finding = only(root)
    assert (finding.id, finding.severity) == ("CF03", "error")
    assert finding.evidence["witnesses"] == [f"SCHEDULE_TOPIC_XXXX/{number}" for number in (0, 1, 2, 3, 8, 17)]
    assert "delivered again" in finding.message


def test_delay_offsets_are_not_missed_without_delayed_messages(store):
    root = store()
    remove(root, "delayOffset.json")
    assert grave(root, "note") == []


@pytest.mark.parametrize("name", ["broker-orders", "broker-orders-4.9.7"])
def test_a_broker_without_any_table_is_one_finding(name, store):
    root = store(name)
    shutil.rmtree(root / "config")
    finding = only(root)
    assert (finding.id, finding.severity, finding.file) == ("CF03", "error", str(root / "config"))
    assert "bear a broker's mark (CLUSTER)" in finding.evidence["witnesses"][0]


def test_a_table_of_no_bytes_was_lost_while_it_was_written(store):
    root = store()
    for suffix in ("", ".bak"):
        (root / "config" / f"consumerOffset.json{suffix}").write_bytes(b"")
    finding = only(root)
    assert (finding.id, finding.severity) == ("CF03", "error")
    assert finding.message.startswith("consumerOffset.json is empty (0 bytes), so is its .bak: ")


@pytest.mark.parametrize("how", ["gone", "empty"])
def test_a_backup_is_used_and_the_command_restores_it(how, store):
    root = store()
    file = root / "config" / "topics.json"
    file.unlink() if how == "gone" else file.write_bytes(b"")
    finding = only(root, "note")
    assert (finding.id, finding.severity, finding.evidence["used"]) == ("CF03", "note", "topics.json.bak")
    assert finding.command is not None
    subprocess.run(finding.command, shell=True, check=True)
    assert grave(root, "note") == []


def test_offsets_reset_to_zero_are_compared_with_the_backup(store):
    root = store()
    file = root / "config" / "consumerOffset.json"
    file.write_text(re.sub(r"(\d+):\d+(?=[,\n}])", r"\1:0", file.read_text()))
    finding = only(root)
    assert (finding.id, finding.severity) == ("CF03", "warn")
    assert finding.message.startswith("consumerOffset.json has lower offsets than its .bak (queues: 18, at 0: 18): ")
    assert finding.evidence["expected"]["OrderEvents/0@warehouse"] == 389
    assert finding.evidence["found"]["OrderEvents/0@warehouse"] == 0
    assert finding.command == f"diff '{root}'/config/consumerOffset.json.bak '{root}'/config/consumerOffset.json"


def test_a_retry_queue_without_its_offset_is_consumed_again(store):
    root = store("broker-retries")
    edit(root, "consumerOffset.json", '"%RETRY%billing@billing":{0:67\n\t\t},\n', "")
    finding = only(root)
    assert (finding.id, finding.severity, finding.evidence["messages"]) == ("CF03", "warn", 67)
    assert "no offset in %RETRY%billing" in finding.message


def test_a_group_that_never_consumed_what_it_sent_back_lost_no_offset(store):
    """A consumer of 5.5 sent 59 messages back and stopped before the first was delivered again. The check warned of a
    lost offset in a healthy store.
    """
    root = store("broker-retries-5.5.1")
    assert grave(root) == []
    with open_store(root) as opened:
        findings = [finding for finding in check(opened) if isinstance(finding, Finding) and finding.id == "CF03"]
    assert [item.severity for item in findings] == ["chat", "chat"]
    assert findings[1].message == (
        "Group pricing has no offset in %RETRY%pricing: the messages there are not consumed yet (59)"
    )


def test_a_group_that_is_not_declared_is_a_note(store):
    root = store()
    edit(root, "subscriptionGroup.json", '"billing":{', '"other":{')
    finding = only(root, "note")
    assert (finding.id, finding.severity, finding.evidence["groups"]) == ("CF03", "note", ["billing"])


def test_text_after_the_table_is_cut_by_the_command(store):
    root = store()
    file = root / "config" / "topics.json"
    sound = file.read_bytes().rstrip()
    file.write_bytes(sound + b"\n}\n\t}")
    (root / "config" / "topics.json.bak").write_bytes(sound.replace(b'"perm":1', b'"perm":4'))
    finding = only(root)
    assert (finding.id, finding.evidence["used"]) == ("CF04", "bak")
    assert finding.evidence["differences"] == [
        "topicConfigTable.rmq_sys_SYNC_BROKER_MEMBER_broker-a.perm: 1 → 4",
    ]
    assert finding.command is not None
    subprocess.run(finding.command, shell=True, check=True)
    assert grave(root, "note") == []


def test_messages_that_were_deleted_unread_are_counted_by_group(store, capsys):
    root = store()
    min((root / "commitlog").iterdir()).unlink()
    edit(root, "consumerOffset.json", "{0:396,1:369", "{0:12,1:369")
    finding = only(root)
    assert (finding.id, finding.severity) == ("CF06", "warn")
    assert finding.evidence["queues"]["OrderEvents/0"]["offset"] == 12
    first_offset, lost_count = finding.evidence["queues"]["OrderEvents/0"]["first"], finding.evidence["lost"]
    assert lost_count == first_offset - 12 > 100
    with open_store(root) as opened:
        queue = opened.queue("OrderEvents", 0)
        assert queue is not None
        assert (
            queue.entry(first_offset).physical_offset
            >= opened.log.min_offset
            > queue.entry(first_offset - 1).physical_offset
        )
    assert main(["groups", str(root), "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (row,) = [row for row in rows if row["group"] == "billing" and row["offset"] == 12]
    assert (row["state"], row["behind"]) == ("belowMin", row["maxOffset"] - 12)
    assert row["oldestUnreadTimestamp"] > 0


def test_queues_hidden_from_consumers_are_named_with_the_groups_behind(store):
    root = store()
    declare(root, "OrderEvents", readQueueNums=2, writeQueueNums=2)
    finding = only(root)
    assert (finding.id, finding.severity) == ("CF07", "error")
    assert finding.evidence["expected"] == 4
    assert finding.evidence["unread"] == {"warehouse": 1}
    assert finding.command == "mqadmin updateTopic -b BROKER -t OrderEvents -r 4 -w 2 -p 6"


def test_completely_read_queues_may_be_removed(store):
    root = store()
    declare(root, "PaymentEvents", readQueueNums=2, writeQueueNums=2)
    assert only(root).severity == "warn"


PERMS = [
    pytest.param({"perm": 2}, "error", "may not be read (perm 2); unread by", id="no read"),
    pytest.param({"perm": 4}, "note", "may not be written (perm 4)", id="no write"),
    pytest.param({"writeQueueNums": 8}, "warn", "has writeQueueNums 8 and readQueueNums 4", id="wider to write"),
]


@pytest.mark.parametrize(("fields", "severity", "words"), PERMS)
def test_a_topic_without_permissions_is_reported(fields, severity, words, store):
    root = store()
    declare(root, "OrderEvents", **fields)
    finding = only(root, "note")
    assert (finding.id, finding.severity) == ("CF07", severity)
    assert words in finding.message


def test_offsets_of_a_topic_without_queues_are_reported(store, capsys):
    root = store()
    edit(root, "consumerOffset.json", '"AuditTrail@ledger"', '"Gone@ledger"')
    finding = only(root)
    assert (finding.id, finding.severity) == ("CF08", "warn")
    assert finding.evidence["found"] == {"ledger": 142}
    assert main(["groups", str(root), "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["state"] for row in rows if row["topic"] == "Gone"} == {"gone"}


LEVELS = [
    pytest.param("2:24", "2:999", "error", "Delay level 2 is delivered from 999 on, its queue ends at 24", id="beyond"),
    pytest.param(
        "2:24,", "", "warn", "were delivered (2): all of them are delivered again (messages: 24)", id="missing"
    ),
]


@pytest.mark.parametrize(("old", "new", "severity", "words"), LEVELS)
def test_delay_levels_are_compared_with_their_queues(old, new, severity, words, store):
    root = store("broker-retries")
    edit(root, "delayOffset.json", old, new)
    finding = only(root)
    assert (finding.id, finding.severity) == ("CF09", severity)
    assert words in finding.message


def test_queues_of_a_topic_that_is_not_declared_are_hidden_from_clients(store):
    root = store()
    edit(root, "topics.json", "OrderEvents", "Elsewhere")
    reported = {finding.evidence["topic"]: finding for finding in grave(root)}
    assert {item.id for item in reported.values()} == {"CQ14"}
    assert reported["OrderEvents"].severity == "error"
    assert reported["OrderEvents"].evidence["unread"].keys() == {"warehouse", "billing"}
    assert reported["OrderEvents"].command == "mqadmin updateTopic -b BROKER -t OrderEvents -r 4 -w 4 -p 6"


def test_an_unreadable_table_is_not_absent(store):
    root = store()
    remove(root, "consumerOffset.json")
    (root / "config" / "consumerOffset.json").mkdir()
    assert "CF03" not in {finding.id for finding in grave(root, "note")}


def test_no_group_name_is_shown_where_groups_are_masked(store, capsys):
    root = store()
    declare(root, "OrderEvents", readQueueNums=2)
    edit(root, "topics.json", "PaymentEvents", "Elsewhere")
    edit(root, "subscriptionGroup.json", '"warehouse":{', '"other":{')
    file = root / "config" / "consumerOffset.json"
    file.write_text(re.sub(r"(\d+):\d+(?=[,\n}])", r"\1:3", file.read_text()).replace("AuditTrail@", "Gone@"))
    min((root / "commitlog").iterdir()).unlink()
    main(["check", str(root), "--json", "--mask", "groups"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    texts = [json.dumps(line) for line in lines if str(line.get("id")).startswith("CF") or line.get("id") == "CQ14"]
    assert {json.loads(line)["id"] for line in texts} >= {"CF03", "CF06", "CF07", "CF08", "CQ14"}
    for group in ("billing", "warehouse", "ledger"):
        assert not [line for line in texts if group in line]


def test_one_unit_bears_a_brokers_mark(store, monkeypatch):
    root = store()
    monkeypatch.setattr("engine.inspection.broker_traces.BrokerTraces._marked", lambda _: 1)
    shutil.rmtree(root / "config")
    assert only(root).evidence["witnesses"][0] == "1 of the first units bears a broker's mark (CLUSTER)"


def test_commands_name_the_configuration_that_the_store_was_opened_with(store, tmp_path):
    root = store()
    (root / "config" / "topics.json").write_bytes(b"{")
    file = tmp_path / "broker.conf"
    file.write_text("enableLmq=false\n", encoding="utf-8")
    with open_store(root, read_properties(file)[0]) as opened:
        (summary,) = [finding for finding in check(opened) if not isinstance(finding, Finding)]
    assert str(file) in (opened.config_words or "")
    assert summary.incident is not None
    assert any(f"--config {file}" in (step["command"] or "") for step in summary.incident["firstSteps"])


def checked(root: Path) -> list[Finding]:
    with open_store(root) as store:
        *results, _ = check(store)
    return results


def grave_ids(root: Path) -> list[str]:
    return [finding.id for finding in checked(root) if at_least(finding.severity, "warn")]


def test_tables_of_another_broker_are_one_finding_with_both_differences(tmp_path):
    """A user declared five topics again by hand, although the offsets belonged to another broker."""
    new_store = healthy()
    root = new_store.write(tmp_path / "store")
    BROKEN["CF14"](root, new_store)
    assert grave_ids(root) == ["CF14"]
    (finding,) = [finding for finding in checked(root) if finding.id == "CF14"]
    assert (finding.evidence["lacking"], finding.evidence["withoutQueues"]) == (
        ["Orders", "Payments"],
        ["Prices", "Stock"],
    )
    assert {finding.caused_by for finding in checked(root) if finding.id in ("CQ14", "CF08")} == {"CF14"}


def test_a_single_missing_topic_does_not_mean_another_broker(tmp_path):
    root = healthy().write(tmp_path / "store")
    table(root, "topics.json", json.dumps({"topicConfigTable": {"Orders": {}}}))
    assert grave_ids(root) == ["CQ14"]


def test_offsets_of_deleted_topics_do_not_mean_another_broker(tmp_path):
    root = healthy().write(tmp_path / "store")
    table(root, "topics.json", json.dumps({"topicConfigTable": {"Orders": {}, "Payments": {}}}))
    offsets = {"Old@billing": {"0": 7}, "Older@billing": {"0": 8}, "Oldest@billing": {"0": 9}}
    table(root, "consumerOffset.json", json.dumps({"offsetTable": offsets}))
    assert set(grave_ids(root)) == {"CF08"}


@pytest.mark.golden
@pytest.mark.parametrize("other_store", ["broker-retries", "broker-transactions-5.4.0"])
def test_swapped_tables_of_real_brokers(golden, tmp_path, other_store):
    root = tmp_path / "store"
    shutil.copytree(golden("broker-orders"), root)
    shutil.rmtree(root / "config")
    shutil.copytree(golden(other_store) / "config", root / "config")
    assert grave_ids(root) == ["CF14"]
