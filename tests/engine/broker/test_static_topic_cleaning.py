"""Cleaning of static topics over two brokers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from brokers import run_scenario
from static_topic_brokers import MOVED, declare, moved_queue

from engine.broker.static_topic_cleaning import clean
from engine.codec.queue_mappings import MappedRange


def test_cleaning_forgets_empty_ranges_and_queues_that_moved_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with moved_queue(tmp_path) as (first, second, _):
            await clean(second.server.broker)
            assert second.server.broker.static_topics.mappings["T"].queues == {0: MOVED}
            back = (*MOVED, MappedRange(2, 1, "a", 20_000))
            again = MappedRange(3, 2, "b", 30_000)
            await declare(first, {0: back}, epoch=3, count=2)
            empty = (replace(MOVED[0], queue_id=5), *back[1:], again)  # a has no messages in queue 5
            await declare(second, {0: empty}, epoch=4, count=6)
            await declare(first, {0: MOVED}, epoch=4, count=6)
            await clean(second.server.broker)
            assert second.server.broker.static_topics.mappings["T"].queues == {0: empty[1:]}

    run_scenario(scenario)
