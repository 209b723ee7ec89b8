"""The feed of a time histogram: behind a growing log, and where a log cannot be read."""

from __future__ import annotations

import shutil

import pytest
from panes import on_store, wait_until, wait_until_idle, write_in_place

from engine.errors import StoreError
from engine.inspection import open_store
from viewer.log.pane import UnitsPane
from viewer.pane import histogram_feed

pytestmark = pytest.mark.golden


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(histogram_feed, "default_cache", lambda: tmp_path / "cache")
    monkeypatch.setattr(histogram_feed, "IDLE_MS", 10)
    monkeypatch.setattr(histogram_feed, "REST_MS", 50)
    monkeypatch.setattr(histogram_feed, "SHARE", 0)


def test_bars_come_for_messages_that_a_growing_log_gets(qapp, golden, tmp_path) -> None:
    copy = tmp_path / "store"
    shutil.copytree(golden("clean-5.3.3"), copy)
    log = sorted((copy / "commitlog").iterdir())[-1]
    log.chmod(0o644)
    with open_store(copy) as store:
        offsets = [item.offset for item in store.units(crc=False) if hasattr(item, "topic")]
        base = store.log.files[-1].start_offset
    cut = next(offset for offset in offsets if offset > (base + offsets[-1]) // 2) - base
    content = log.read_bytes()
    log.write_bytes(content[:cut] + bytes(len(content) - cut))

    async def drive(pane: UnitsPane, session) -> None:
        model = pane.times.strip.model
        await wait_until(lambda: model.bars() and not model.is_filling)
        units = model.overview.units
        assert units < len(offsets)
        write_in_place(log, content)
        session.look(anyway=True)
        await wait_until(lambda: model.overview.units == len(offsets), "the new messages are counted")

    on_store(qapp, UnitsPane, copy, drive)


def test_a_log_that_cannot_be_read_is_named_and_no_bars_are_made_up(qapp, golden, monkeypatch) -> None:
    async def drive(pane: UnitsPane, session) -> None:
        feed, strip = pane.times.feed, pane.times.strip
        await wait_until(lambda: strip.model.bars() and not strip.model.is_filling)
        await wait_until_idle(session.jobs)

        async def fail(*_args: object, **_options: object) -> None:
            raise StoreError("/store/commitlog: cannot be read")

        monkeypatch.setattr(session.jobs, "in_worker", fail)
        feed.show("queueId = 0")
        await wait_until(lambda: "cannot be read" in strip.model.words)
        assert not strip.model.bars()
        feed.show("")
        assert strip.model.bars(), "what was read before is shown at once"

    on_store(qapp, UnitsPane, golden("broker-orders"), drive)


def test_no_bars_are_read_while_a_filter_runs(qapp, golden, monkeypatch) -> None:
    """The bars of the filter before were read while the next one ran, which took three times as long."""

    async def drive(pane: UnitsPane, session) -> None:
        feed = pane.times.feed
        await wait_until(lambda: pane.times.strip.model.bars() and not pane.times.strip.model.is_filling)
        pane.times.pause()
        assert pane.times.strip.model.bars(), "the bars stay"
        monkeypatch.setattr(feed, "_begin", lambda: pytest.fail("bars are read"))
        feed.show("queueId = 0")
        assert feed.pending
        pane.times.pause()
        assert not feed.pending

    on_store(qapp, UnitsPane, golden("broker-orders"), drive)
