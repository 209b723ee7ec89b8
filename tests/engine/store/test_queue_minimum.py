"""The minimum of a queue: the first entry whose unit the log still holds (docs/formats/consume-queue.md#bounds)."""

from __future__ import annotations

import pytest

from engine.store.queue_minimum import Span, corrected_minimum

FILE = Span(100, 200)  # five entries that point to 500, 600, …

CASES = [
    pytest.param(0, 0, 100, id="all are there: a remembered 0 becomes the file's begin"),
    pytest.param(120, 600, 120, id="the remembered one is still there"),
    pytest.param(120, 650, 140, id="the first that is there"),
    pytest.param(100, 700, 140, id="found exactly"),
    pytest.param(100, 901, 200, id="nothing is there: a future entry"),
    pytest.param(200, 0, 200, id="already at the end"),
]


@pytest.mark.parametrize(("minimum", "log_min", "found"), CASES)
def test_the_minimum_is_the_first_entry_whose_unit_the_log_holds(minimum, log_min, found):
    assert corrected_minimum(minimum, FILE, FILE, log_min, lambda at: at * 5) == found


def test_entries_that_point_to_0_make_a_restart_forget_the_minimum():
    """RocketMQ's own wart: as long as the log begins at 0, units that fill up the front count as there
    (docs/formats/consume-queue.md#bounds).
    """
    assert corrected_minimum(0, Span(0, 100), Span(0, 100), 0, lambda at: 0 if at < 60 else 900) == 0
    assert corrected_minimum(60, Span(0, 100), Span(0, 100), 0, lambda at: 0 if at < 60 else 900) == 60


def test_an_empty_last_file_leaves_everything():
    assert corrected_minimum(40, Span(0, 100), Span(100, 100), 500, lambda _at: 0) == 40
