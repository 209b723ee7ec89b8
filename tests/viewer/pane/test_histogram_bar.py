"""The histogram in the Log view: filled behind, under the filter in force, brushed, undone, hidden, and kept."""

from __future__ import annotations

import pytest
from counted_histogram import counted
from panes import on_store, wait_until, wait_until_idle

from engine.codec.message import Unit
from engine.query import parse
from viewer.log.pane import UnitsPane
from viewer.pane import histogram_feed
from viewer.pane.histogram_model import HistogramModel
from viewer.runtime.settings import Settings

pytestmark = pytest.mark.golden


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(histogram_feed, "default_cache", lambda: tmp_path / "cache")
    monkeypatch.setattr(histogram_feed, "IDLE_MS", 10)


async def filled(pane: UnitsPane) -> HistogramModel:
    model = pane.times.strip.model
    await wait_until(lambda: model.bars() and not model.is_filling, "the histogram is read")
    return model


def expected_messages(session, model: HistogramModel, where: str = "true") -> list[int]:
    test = parse(where).compile(session.snapshot.log.file_name)
    bins = counted(session.snapshot.units(crc=False), model.shown.width, test)
    return [sum(bins[start].messages.values()) for start in sorted(bins)]


def test_the_strip_fills_itself_under_each_filter_and_a_brush_can_be_taken_back(qapp, golden, tmp_path) -> None:
    async def drive(pane: UnitsPane, session) -> None:
        model = await filled(pane)
        assert [bar.messages for bar in model.bars()] == expected_messages(session, model)
        assert list((tmp_path / "cache").rglob("*.times"))
        pane.filter.apply("queueId = 1")
        await wait_until_idle(session.jobs)
        model = await filled(pane)
        assert [bar.messages for bar in model.bars()] == expected_messages(session, model, "queueId = 1")
        bars = model.bars()
        begin, end = bars[len(bars) // 3].begin, bars[2 * len(bars) // 3].end
        edits = []
        pane.edited.connect(edits.append)
        pane.times.strip.rangeBrushed.emit(begin, end)
        assert edits[-1].old_value == "queueId = 1"
        assert edits[-1].new_value == pane.filter.in_force
        assert pane.filter.in_force.startswith("queueId = 1 and storeTimestamp >= ")
        await wait_until_idle(session.jobs)
        model = await filled(pane)
        assert begin <= model.begin
        assert model.end <= end + model.shown.width
        where = pane.filter.in_force
        assert [bar.messages for bar in model.bars()] == expected_messages(session, model, where)
        assert sum(bar.messages for bar in model.bars()) == len(pane.model.filter.source.offsets)
        pane.times.strip.undoRequested.emit()
        assert pane.filter.in_force == "queueId = 1"
        pane.times.strip.undoRequested.emit()
        assert pane.filter.in_force == "queueId = 1", "only a brushed range is taken back"

    on_store(qapp, UnitsPane, golden("broker-orders"), drive)


def test_a_click_leads_to_the_first_unit_of_a_bar_and_a_zoom_to_the_millisecond(qapp, golden) -> None:
    async def drive(pane: UnitsPane, session) -> None:
        model = await filled(pane)
        bar = max(model.bars(), key=lambda bar: bar.messages)
        pane.times.strip.offsetChosen.emit(bar.first)
        await wait_until_idle(session.jobs)
        assert pane.table.current_row().offset == bar.first
        assert bar.begin <= session.snapshot.log.unit_at(bar.first).store_timestamp < bar.end
        model.show(bar.begin, bar.begin + 60)
        pane.times.strip.moved.emit()
        await wait_until(lambda: model.shown.width == 1, "the bars of 1 ms are read")
        stored = [
            item.store_timestamp
            for item in session.snapshot.units(crc=False)
            if isinstance(item, Unit) and model.begin <= item.store_timestamp < model.end
        ]
        assert sum(bar.messages for bar in model.bars()) == len(stored) > 0

    on_store(qapp, UnitsPane, golden("broker-orders"), drive)


def test_a_hidden_strip_reads_nothing_and_the_choice_is_kept(qapp, golden, tmp_path) -> None:
    settings = Settings(tmp_path / "settings")
    settings.histogram_shown = False

    def make() -> UnitsPane:
        pane = UnitsPane()
        pane.use(settings)
        return pane

    async def drive(pane: UnitsPane, session) -> None:
        assert pane.times.strip.isHidden()
        assert not pane.times.strip.model.overview.starts
        pane.commands()["view.histogram"]()
        await filled(pane)
        pane.commands()["histogram.bytes"]()
        assert (settings.histogram_shown, settings.histogram_bytes) == (True, True)

    on_store(qapp, make, golden("broker-orders"), drive)


def test_a_long_log_is_read_when_the_user_asks(qapp, golden, monkeypatch) -> None:
    monkeypatch.setattr(histogram_feed, "MAX_LOG_BYTES", 1)

    async def drive(pane: UnitsPane, session) -> None:
        strip = pane.times.strip
        await wait_until(lambda: "Enter or a click reads the log" in strip.model.words)
        strip.fillRequested.emit()
        await filled(pane)

    on_store(qapp, UnitsPane, golden("broker-orders"), drive)
