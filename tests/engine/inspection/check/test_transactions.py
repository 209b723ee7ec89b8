"""Half messages that the broker discarded."""

from __future__ import annotations

from handmade_stores import HandmadeStore

from engine.inspection.check.transactions import findings
from engine.inspection.snapshot import open_store


def test_discarded_half_messages_are_counted_and_the_first_is_named(tmp_path):
    handmade = HandmadeStore()
    handmade.put()
    for key in ("FIRST", "SECOND"):
        handmade.put("TRANS_CHECK_MAX_TIME_TOPIC", 0, unique=key, more={"REAL_TOPIC": "Orders"})
    root = handmade.write(tmp_path / "store")
    with open_store(root) as store:
        (finding,) = findings(store)
    assert (finding.id, finding.severity, finding.evidence["messages"]) == ("CF16", "chat", 2)
    assert f"the first is FIRST for Orders, at {handmade.units[1].offset} of the log" in finding.message
    assert finding.offset == handmade.units[1].offset


def test_a_store_without_discarded_half_messages_has_no_finding(tmp_path):
    handmade = HandmadeStore()
    handmade.put()
    with open_store(handmade.write(tmp_path / "store")) as store:
        assert list(findings(store)) == []
