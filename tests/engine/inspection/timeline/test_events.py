"""Events as records."""

from __future__ import annotations

from contract_records import complaints

from engine.inspection.timeline.events import TimelineEvent


def test_an_event_without_a_beginning_has_the_time_of_its_end():
    event = TimelineEvent("deleted", None, 500, 100, "gone", "certain", "commitlog", {"bytes": 100})
    assert event.time == 500
    assert event.record() == {
        "type": "timelineEvent",
        "kind": "deleted",
        "from": None,
        "to": 500,
        "physicalOffset": 100,
        "message": "gone",
        "evidence": {"certainty": "certain", "source": "commitlog", "bytes": 100},
    }
    assert complaints(event.record()) == []
