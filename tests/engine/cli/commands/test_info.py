"""``info``: what a store holds, in one record."""

from __future__ import annotations

from handmade_stores import healthy

from engine.cli.main import main
from engine.codec.checkpoint import Checkpoint, encode


def test_it_tells_the_log_the_queues_and_the_index(asked):
    (store,) = asked("info")
    assert (store["minOffset"], store["maxOffset"]) == (0, asked.made.end)
    assert store["files"]["consumequeue"] == 2
    assert {record["topic"]: record["queues"] for record in store["topics"]} == {
        name: [{"queueId": 0, "minOffset": 0, "maxOffset": 6}] for name in ("Orders", "Paid")
    }
    assert [row["indexCount"] for row in store["index"]] == [25], "24 keys, and the entry that no key gets"


def test_people_get_its_figures_in_words(asked):
    words = asked.words("info")
    for word in ("Orders", "Paid", f"{asked.made.end:,}"):
        assert word in words


def test_the_checkpoint_says_up_to_where_queue_entries_are_written(tmp_path, capsys):
    """RocketMQ 5.5 begins a recovery by this offset: only ``positions`` showed it."""
    store = healthy().write(tmp_path / "store")
    assert main(["info", str(store)]) == 0
    assert "Checkpoint, queue entries" not in capsys.readouterr().out
    (store / "checkpoint").write_bytes(encode(Checkpoint(1, 2, 3, logics_physical_offset=1_234)))
    assert main(["info", str(store)]) == 0
    assert "Checkpoint, queue entries  written up to 1,234 of the log" in capsys.readouterr().out
