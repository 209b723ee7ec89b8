"""Both twins add the units of real and made logs to the same bins as a plain count of the units."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from counted_histogram import compare, counted

from engine.codec.columns import UnitColumns
from engine.codec.topic_table import TopicTable
from engine.inspection import open_store
from engine.inspection.block_scan import scan_log
from engine.inspection.histogram.time_bins import TimeBins
from engine.inspection.histogram.unit_bins import LogHistogram, UnitBins
from engine.query import parse

Golden = Callable[[str], Path]
STORES = ["clean-5.3.3", "crash-4.9.8", "broker-orders", "broker-retries-5.5.1", "broker-transactions", "broker-lmq"]


@pytest.fixture(params=["compiled", "plain"])
def twin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "plain":
        monkeypatch.setenv("STORESCOPE_PLAIN", "1")


@pytest.mark.parametrize("name", STORES)
@pytest.mark.parametrize("max_bins", [20, 100_000])
@pytest.mark.usefixtures("twin")
def test_the_bins_are_those_of_a_plain_count(golden: Golden, name: str, max_bins: int) -> None:
    with open_store(golden(name)) as store:
        topics, histogram = TopicTable(), LogHistogram(TimeBins(max_bins))
        unit_bins = UnitBins(histogram, topics)
        for block in scan_log(store.log, crc=False, topics=topics, rows=100):
            if isinstance(block, UnitColumns):
                unit_bins.add(block)
        assert len(histogram.bins) <= max_bins
        compare(histogram.bins.table(), counted(store.units(crc=False), histogram.bins.width))


@pytest.mark.usefixtures("twin")
def test_with_a_filter_and_a_time_only_those_units_count(golden: Golden) -> None:
    with open_store(golden("broker-orders")) as store:
        unit_filter = parse("queueId = 1 and size > 200")
        times = [item.store_timestamp for item in store.units(crc=False) if hasattr(item, "store_timestamp")]
        begin, end = sorted(times)[len(times) // 4], sorted(times)[3 * len(times) // 4]
        topics, histogram = TopicTable(), LogHistogram()
        block_filter = unit_filter.on_blocks(topics, store.log.file_name, crc=False)
        unit_bins = UnitBins(histogram, topics, block_filter, begin, end)
        for block in scan_log(store.log, crc=False, topics=topics):
            if isinstance(block, UnitColumns):
                unit_bins.add(block)
        test = unit_filter.compile(store.log.file_name)
        expected = counted(
            store.units(crc=False),
            histogram.bins.width,
            lambda unit: test(unit) and begin <= unit.store_timestamp < end,
        )
        compare(histogram.bins.table(), expected)
        assert histogram.units == sum(sum(counts.messages.values()) for counts in expected.values()) > 0
