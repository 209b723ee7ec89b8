"""``info``: one record with the contents of a store."""

from __future__ import annotations

from handmade_stores import healthy

from engine.cli.main import main
from engine.codec.checkpoint import Checkpoint, encode


def test_the_record_has_log_queues_and_index(storescope):
    (store,) = storescope("info")
    assert (store["minOffset"], store["maxOffset"]) == (0, storescope.store.end)
    assert store["files"]["consumequeue"] == 2
    assert {topic_row["topic"]: topic_row["queues"] for topic_row in store["topics"]} == {
        name: [{"queueId": 0, "minOffset": 0, "maxOffset": 6}] for name in ("Orders", "Paid")
    }
    assert [row["indexCount"] for row in store["index"]] == [25], "24 keys, and the entry that no key gets"


def test_the_printed_text_has_the_figures(storescope):
    printed = storescope.text("info")
    for word in ("Orders", "Paid", f"{storescope.store.end:,}"):
        assert word in printed


def test_the_checkpoints_offset_of_queue_entries_is_shown(tmp_path, capsys):
    """RocketMQ 5.5 begins a recovery at this offset. Only ``positions`` showed it."""
    store = healthy().write(tmp_path / "store")
    assert main(["info", str(store)]) == 0
    assert "Checkpoint, queue entries" not in capsys.readouterr().out
    (store / "checkpoint").write_bytes(encode(Checkpoint(1, 2, 3, logics_physical_offset=1_234)))
    assert main(["info", str(store)]) == 0
    assert "Checkpoint, queue entries  written up to 1,234 of the log" in capsys.readouterr().out
