"""Units are chosen by a filter or by their offsets, and a message that is no longer there is not another one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from handmade_stores import HandmadeStore

from engine.inspection.snapshot import open_store
from engine.query import parse
from engine.resend.journal import Journal
from engine.resend.resend_plan import plan_resend
from engine.resend.store_messages import at_offsets, default_journal, matching, read_planned


def test_chosen_units_come_in_the_order_of_the_log(tmp_path: Path) -> None:
    made = HandmadeStore()
    offsets = [made.put("Orders", unique=f"U{number}").offset for number in range(5)]
    made.put("Payments")
    with open_store(made.write(tmp_path / "store")) as store:
        seen: list[int] = []
        units = list(matching(store, parse('topic = "Orders"'), seen.append))
        assert [unit.offset for unit in units] == offsets
        chosen = [offsets[3], offsets[1], offsets[1] + 1]
        assert [unit.offset for unit in at_offsets(store, chosen, seen.append)] == [offsets[1], offsets[3]]
        assert default_journal(store.path) == tmp_path / "store.resent.jsonl"


def test_a_message_is_only_read_if_it_is_the_planned_one(tmp_path: Path) -> None:
    made = HandmadeStore()
    made.put("Orders", unique="U1", body=b"tea")
    with open_store(made.write(tmp_path / "store")) as store, Journal(tmp_path / "journal") as journal:
        (planned,) = plan_resend(matching(store, parse("true"), lambda _: None), journal).messages
        message = read_planned(store, planned)
        assert not isinstance(message, str)
        assert message.body == b"tea"
        for other in ({"store_timestamp": 1}, {"unique_key": "U2"}, {"physical_offset": 7}, {"member": 0}):
            answer = read_planned(store, replace(planned, identity=planned.identity._replace(**other)))
            assert answer == "the message is no longer in the log"
