"""What a member of a DLedger group gets from its leader, as real members of 5.5.1 got it."""

from __future__ import annotations

import json

import agree
import golden_stores
import pytest

from engine.errors import UsageError
from engine.inspection.dledger_members import plan_following
from engine.inspection.snapshot import open_store

pytestmark = pytest.mark.golden
OLD, NEW = "dledger-old-leader-5.5.1", "dledger-replaced-5.5.1"


def test_a_member_is_cut_at_the_newest_entry_that_its_leader_has(golden):
    """The second store is the first one after its leader had replaced entries."""
    expected = json.loads((golden_stores.GOLDEN / NEW / "start.json").read_text(encoding="utf-8"))
    with open_store(golden(OLD)) as store, open_store(golden(NEW)) as leader:
        following = plan_following(store, leader)
    assert (following.common_index, following.common_end) == (299, 125_090)
    assert (following.replaced_entries, sum(following.replaced.values()), following.copied) == (28, 28, 7)
    assert following.replaced["Doomed", 0] == 4
    assert following.end_offset == expected["maxOffset"]
    assert (following.committed_lost, following.can_lead) == (0, True)


def test_a_leader_that_lacks_committed_entries_is_named(golden):
    with open_store(golden(NEW)) as store, open_store(golden(OLD)) as leader:
        following = plan_following(store, leader)
    assert (following.committed_lost, following.can_lead) == (7, False)


def test_recover_shows_what_comes_from_a_leader(golden):
    words = ("recover", str(golden(OLD)), "--plan", "--leader", str(golden(NEW)))
    _, output, _ = agree.command(*words)
    assert "both logs are equal up to entry 299, which ends at 125,090" in output
    assert "28 entries of this member behind it are replaced" in output
    assert "7 entries come from the leader; the log then ends at 127,651" in output
    _, output, _ = agree.command(*words, "--json")
    assert json.loads(output.splitlines()[-1])["commonIndex"] == 299


def test_a_leader_needs_a_plan_and_a_dledger_log(golden):
    status, _, error = agree.command("recover", str(golden(OLD)), "--apply", "--leader", str(golden(NEW)))
    assert (status, "--leader needs --plan" in error) == (2, True)
    with (
        open_store(golden(OLD)) as store,
        open_store(golden("clean-5.3.3")) as leader,
        pytest.raises(UsageError, match="expected a store with a DLedger log"),
    ):
        plan_following(store, leader)
