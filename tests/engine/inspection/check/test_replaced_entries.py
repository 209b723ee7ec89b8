"""What a check says of entries that a leader of a DLedger group replaced, or may replace."""

from __future__ import annotations

import golden_stores
import pytest

from engine.config import read_config
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.rules.findings import Finding

pytestmark = pytest.mark.golden


def test_queue_entries_of_replaced_messages_are_one_finding(golden):
    """They were copies of another store (CL14), lost messages (CL11) and overwritten bytes (CL01)."""
    with open_store(golden("dledger-replaced-5.5.1")) as store:
        findings = [item for item in check(store) if isinstance(item, Finding)]
    (cause,) = (item for item in findings if item.id == "DL06")
    assert cause.message.startswith("28 queue entries are of messages that the leader of term 2 replaced, from 125,138")
    assert cause.evidence["found"]["Orders/0"] == [75, 77]
    followers = {item.id for item in findings if item.caused_by == "DL06"}
    assert followers == {"CL11", "CQ04", "IX06"}
    assert {item.id for item in findings if item.caused_by is None} == {"DL06", "CQ14"}


def test_entries_that_are_not_committed_are_told_as_far_as_the_group_is_known(golden):
    root = golden("dledger-old-leader-5.5.1")
    severities = []
    for config in (None, read_config(golden_stores.GOLDEN / "dledger-old-leader-5.5.1" / "broker.conf")):
        with open_store(root, config) as store:
            (finding,) = (item for item in check(store, only={"DL05"}) if isinstance(item, Finding))
        severities.append(finding.severity)
    assert finding.message.startswith("28 entries from 300 on are not committed by the checkpoint")
    assert severities == ["chat", "note"]
