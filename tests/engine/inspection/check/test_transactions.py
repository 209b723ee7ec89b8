"""Half messages that the broker gave up."""

from __future__ import annotations

from handmade_stores import HandmadeStore

from engine.inspection.check.transactions import findings
from engine.inspection.snapshot import open_store


def test_half_messages_that_the_broker_gave_up_are_counted_with_the_first(tmp_path):
    made = HandmadeStore()
    made.put()
    for key in ("FIRST", "SECOND"):
        made.put("TRANS_CHECK_MAX_TIME_TOPIC", 0, unique=key, more={"REAL_TOPIC": "Orders"})
    root = made.write(tmp_path / "store")
    with open_store(root) as store:
        (finding,) = findings(store)
    assert (finding.id, finding.severity, finding.evidence["messages"]) == ("CF16", "chat", 2)
    assert f"the first is FIRST for Orders, at {made.units[1].offset} of the log" in finding.message
    assert finding.offset == made.units[1].offset


def test_a_store_without_them_is_silent(tmp_path):
    made = HandmadeStore()
    made.put()
    with open_store(made.write(tmp_path / "store")) as store:
        assert list(findings(store)) == []
