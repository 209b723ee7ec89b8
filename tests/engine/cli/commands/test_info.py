"""``info``: what a store holds, in one record."""

from __future__ import annotations


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
