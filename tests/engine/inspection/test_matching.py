"""A filter selects the same units whether the log is walked unit by unit or in blocks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.codec.message import Unit
from engine.codec.unit_scan import Stop
from engine.inspection import open_store
from engine.inspection.log_reader import LogReader
from engine.inspection.matching import matching_units
from engine.query import parse
from engine.query.filter import Filter, scope_filter

pytestmark = pytest.mark.golden

STORES = ("broker-orders", "crash-flip-5.3.3", "crash-late-5.3.3", "batchcq-5.3.3", "first-files-deleted-5.3.3")
FILTERS = (
    "true",
    "queueId = 1",
    'keys contains "1"',
    'body contains "e" and not tags = "TagA"',
    'crc = "ok"',
    'crc = "unchecked"',
    'file endswith "0"',
    "size < 0",
)


def matches_of(log: LogReader, expected: Filter, near: int, start: int | None, stop: int | None) -> list[Unit | Stop]:
    return list(matching_units(log, expected, start, stop, near=near))


@pytest.mark.full_form(keep=2)
@pytest.mark.parametrize("name", STORES)
def test_walks_by_unit_and_by_block_give_the_same_units(golden: Callable[..., Path], name: str) -> None:
    with open_store(golden(name), None) as store:
        log = store.log
        units = [item for item in log.walk() if isinstance(item, Unit)]
        middle = units[len(units) // 2].offset
        for text in FILTERS:
            condition = parse(text)
            test = condition.compile(log.file_name)
            for start, stop in ((None, None), (middle, None), (None, middle), (units[1].offset, middle)):
                *plain, stop_item = log.walk(start, stop)
                expected = [item for item in plain if isinstance(item, Unit) and test(item)]
                for near in (0, 5000, 1 << 30):
                    *rows, end = matches_of(log, condition, near, start, stop)
                    assert rows == expected, (text, start, stop, near)
                    assert end == stop_item, (text, start, stop, near)


def test_without_crc_units_are_unchecked(golden: Callable[..., Path]) -> None:
    with open_store(golden("broker-orders"), None) as store:
        for near in (0, 1 << 30):
            items = list(matching_units(store.log, parse('crc = "unchecked"'), crc=False, near=near))
            assert {item.crc for item in items if isinstance(item, Unit)} == {"unchecked"}


def test_the_end_of_the_searched_range_is_reported(golden: Callable[..., Path]) -> None:
    with open_store(golden("broker-orders"), None) as store:
        observed: list[int] = []
        list(matching_units(store.log, parse("size < 0"), on_progress=observed.append, near=3000))
        assert len(observed) > 3
        assert observed == sorted(observed)


def test_a_topic_a_queue_and_a_condition_are_one_filter() -> None:
    assert scope_filter() is None
    assert scope_filter("a", 2, "size > 1") == parse('topic = "a" and queueId = 2 and size > 1')
    assert scope_filter(where="size > 1 or size < 0", queue=0) == parse("queueId = 0 and (size > 1 or size < 0)")
