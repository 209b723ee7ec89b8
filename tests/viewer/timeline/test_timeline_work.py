"""The job of the view Timeline."""

from __future__ import annotations

from typing import Any

import pytest

from viewer.runtime.worker import WorkerControl
from viewer.timeline import timeline_work


@pytest.mark.golden
def test_a_stop_ends_the_read_without_a_result_and_the_rows_are_limited(golden: Any, monkeypatch: Any) -> None:
    store = golden("broker-crash", "store-recovered")
    control = WorkerControl(1, lambda _frame: None)
    monkeypatch.setattr(timeline_work, "MAX_EVENTS", 3)
    timeline = timeline_work.find_events(control, store, None)
    assert timeline is not None
    assert (len(timeline.events), timeline.units) == (3, 3392)
    control.stop.set()
    assert timeline_work.find_events(control, store, None) is None
