"""A log that has lost its tail is one finding, with its witnesses."""

from __future__ import annotations

import pytest
from broken_stores import zero_log_from
from made_stores import MadeStore

from engine.inspection import open_store
from engine.inspection.check.tail import of_torn_units
from engine.inspection.findings import check
from engine.rules import catalogue
from engine.rules.findings import Finding


@pytest.mark.parametrize("lost", [1, 5])
def test_what_the_queues_know_behind_the_end_is_one_lost_tail(tmp_path, lost):
    made = MadeStore()
    for number in range(60):
        made.put(keys=f"K{number}")
    root = made.write(tmp_path / "s")
    zero_log_from(root, made.units[-lost].offset)
    with open_store(root) as store:
        found = [one for one in check(store) if isinstance(one, Finding) and one.severity in {"warn", "error"}]
    (tail,) = [one for one in found if one.id == "CL11"]
    assert tail.evidence["messages"] == lost
    assert tail.message.startswith(f"The last {lost} messages are lost" if lost > 1 else "The last message is lost")
    assert tail.offset == made.units[-lost].offset
    assert not [one for one in found if one.id == "CQ13"]


def test_an_entry_that_leads_to_torn_properties_follows_from_them():
    of_unit = catalogue.CQ09.found("tags", None, 1, {"expected": {"physicalOffset": 640}})
    of_other = catalogue.CQ09.found("tags", None, 1, {"expected": {"physicalOffset": 700}})
    key = catalogue.IX06.found("key", None, 1, {"found": {"phyOffset": 640}})
    told = list(of_torn_units([of_unit, of_other, key], {640}))
    assert [one.caused_by for one in told] == ["CL04", None, "CL04"]
