"""Messages in a higher queue than that of their priority (CQ18)."""

from __future__ import annotations

import shutil
from pathlib import Path

import agree
import broken_stores
import handmade_stores
import pytest


def found(root: Path) -> list[dict]:
    return [record for record in agree.records_of("check", root) if record.get("id") == "CQ18"]


@pytest.mark.golden
def test_a_broker_puts_messages_into_the_queues_of_their_priorities(golden, golden_account):
    """Real answers: min(priority, 3) in topics of every type; other messages went where their clients asked."""
    root = golden("lite-priority-5.5.1")
    for line in golden_account("lite-priority-5.5.1", "truth.jsonl.xz"):
        if line["kind"] == "send" and line["topic"] in {"Jobs", "Plain"}:
            priority = line["properties"].get("_SYS_MSG_PRIORITY_")
            counts = isinstance(priority, int) and "__SHARDINGKEY" not in line["properties"]
            assert line["queueId"] == (min(priority, 3) if counts else line["askedQueueId"])
    assert found(root) == []


def test_a_message_in_a_higher_queue_is_a_note(tmp_path):
    handmade = handmade_stores.healthy()
    handmade.write(tmp_path / "store")
    broken_stores.priority_in_higher_queue(tmp_path / "store", handmade)
    (finding,) = found(tmp_path / "store")
    assert (finding["severity"], finding["evidence"]["expected"], finding["evidence"]["found"]) == ("note", 0, 1)


def test_members_of_a_batch_and_older_stores_are_not_judged(tmp_path):
    """A member of a batch has no CLUSTER, and stays in the queue of the batch."""
    handmade, root = handmade_stores.healthy(), tmp_path / "store"
    handmade.put("Orders", 1, more={"_SYS_MSG_PRIORITY_": "0"})
    handmade.write(root)
    (root / "config").mkdir(exist_ok=True)
    text = '{"topicConfigTable":{"Orders":{"attributes":{"message.type":"PRIORITY"}},"Payments":{}}}'
    (root / "config" / "topics.json").write_text(text)
    broken_stores.of_release_55(root)
    assert found(root) == []
    shutil.rmtree(root)
    handmade.put("Orders", 1, more={"_SYS_MSG_PRIORITY_": "0", "CLUSTER": "c"})
    handmade.write(root)
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "topics.json").write_text(text)
    assert found(root) == []


@pytest.mark.golden
def test_units_and_queue_have_a_column_of_priorities(golden):
    root = golden("lite-priority-5.5.1")
    entries = agree.records_of("queue", root, "Jobs", 3, "--resolve", "--to", 4)
    assert [entry["priority"] for entry in entries] == [3, 5, 9, 3]
    _, out, _ = agree.command("units", root, "--limit", 2)
    assert "Priority" in out
    _, out, _ = agree.command("units", golden("broker-tags-5.5.1"), "--limit", 2)
    assert "Priority" not in out
