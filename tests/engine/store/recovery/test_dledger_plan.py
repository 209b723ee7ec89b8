"""Plans of starts on a DLedger log, compared with what real brokers made of the same stores."""

from __future__ import annotations

import json
from pathlib import Path

import golden_stores
import pytest
from dledger_damage import DAMAGE, as_dledger, copy_store
from handmade_stores import healthy

from engine.config import read_config
from engine.inspection.recovery import plan
from engine.inspection.snapshot import open_store
from engine.store.recovery.plan import RecoveryPlan

NAME = "dledger-crash-5.5.1"
STARTS = json.loads((golden_stores.GOLDEN / NAME / "starts.json").read_text(encoding="utf-8"))


@pytest.mark.golden
@pytest.mark.parametrize("case", sorted(STARTS))
def test_a_plan_says_what_a_real_start_made_of_a_damaged_dledger_log(golden, tmp_path, case):
    """There was no plan for a DLedger log: a start after a crash cuts entries off the queues that it never adds."""
    root = copy_store(golden(NAME), tmp_path / "store")
    DAMAGE[case](root)
    with open_store(root) as store:
        start = plan(store, "5.5", losses=False)
    expected = STARTS[case]
    assert start.will_start == expected["started"]
    if not start.will_start:
        return
    assert start.end_offset == expected["maxOffset"]
    assert f"endIndex={start.dledger.last_index}\n" in expected["checkpoint"]
    queues = {f"{queue.topic}/{queue.queue_id}": queue.max_offset for queue in start.queues}
    assert {**dict.fromkeys(queues, 0), **expected["queues"]} == queues


@pytest.mark.golden
def test_the_messages_that_a_start_after_a_crash_takes_out_of_their_queues_are_named(golden):
    with open_store(golden(NAME)) as store:
        start = plan(store, "5.5")
    lost = {(row.topic, row.queue_id): row.messages for row in start.undispatched.queues}
    assert lost == {("CartUpdates", 0): 27, ("ClickStream", 1): 28}
    assert start.dledger.queues_cut_at == 2_573_513


@pytest.mark.golden
def test_a_release_without_that_fault_cuts_nothing(golden):
    with open_store(golden(NAME)) as store:
        start = plan(store, "4.9")
    assert start.undispatched.messages == 0
    ends = {(queue.topic, queue.queue_id): queue.max_offset for queue in start.queues}
    assert ends["CartUpdates", 0] == 391


@pytest.mark.golden
def test_a_crash_of_5_5_cuts_no_queue_before_the_checkpoint_knows_where_queue_entries_end(golden, tmp_path):
    """The end that 5.5 compares is the checkpoint's logicsPhysicalOffset, not that of the queues: real 5.5.1 brokers
    that were killed in their first minute kept all queue entries, and the plan said that they lose some.
    """
    root = copy_store(golden(NAME), tmp_path / "store")
    with (root / "checkpoint").open("r+b") as file:
        file.seek(40)
        file.write(bytes(8))
    for release, cut in (("5.5", None), ("5.4", 2_573_513), ("5.3", 2_573_513)):
        with open_store(root) as store:
            start = plan(store, release)
        assert start.dledger.queues_cut_at == cut, release
        assert (start.undispatched.messages == 0) == (cut is None), release


@pytest.mark.golden
def test_a_start_in_a_group_puts_what_is_not_committed_into_queues_as_a_real_one_did(golden):
    """The plan took each group for one member, which commits its entries itself."""
    name = "dledger-old-leader-5.5.1"
    expected = json.loads((golden_stores.GOLDEN / name / "start.json").read_text(encoding="utf-8"))
    config = read_config(golden_stores.GOLDEN / name / "broker.conf")
    with open_store(golden(name), config) as store:
        start = plan(store, "5.5")
        older = plan(store, "5.4", losses=False)
    queues = {f"{queue.topic}/{queue.queue_id}": queue.max_offset for queue in start.queues}
    assert queues == expected["queues"]
    assert start.dledger.undecided_offset == expected["maxOffset"] + 48
    assert (start.dledger.queues_undecided, older.dledger.queues_undecided) == (True, False)
    assert (start.undispatched.messages, start.dropped.messages) == (0, 0)
    assert max(queue.max_offset for queue in older.queues if queue.topic == "Doomed") == 0


@pytest.mark.golden
def test_a_clean_start_keeps_queue_entries_of_replaced_messages_before_the_end(golden):
    name = "dledger-replaced-5.5.1"
    expected = json.loads((golden_stores.GOLDEN / name / "start.json").read_text(encoding="utf-8"))
    with open_store(golden(name)) as store:
        start = plan(store, "5.5")
    queues = {f"{queue.topic}/{queue.queue_id}": queue.max_offset for queue in start.queues}
    assert (start.end_offset, start.units_dropped, queues) == (expected["maxOffset"], 0, expected["queues"])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A store of 40 messages in a DLedger log."""
    healthy(40).write(tmp_path / "store")
    as_dledger(tmp_path / "store")
    return tmp_path / "store"


def plan_of(root: Path, release: str = "5.5") -> RecoveryPlan:
    with open_store(root) as store:
        return plan(store, release)


def test_a_clean_start_keeps_all_entries(root):
    start = plan_of(root)
    assert (start.exit, start.units_kept, start.bytes_dropped) == ("normal", 40, 0)
    assert (start.dledger.last_index, start.dledger.index_rebuilt_from) == (39, None)
    assert start.end_reason == "the end of the last entry"


@pytest.mark.parametrize(("release", "header_bytes"), [("4.9", 0), ("5.4", 40 * 48)])
def test_a_start_after_a_crash_walks_the_messages(root, release, header_bytes):
    """Releases from 5.0 on count the bytes of the messages, without the headers around them."""
    (root / "abort").touch()
    start = plan_of(root, release)
    assert (start.exit, start.units_kept, start.end_offset) == ("abnormal", 40, start.log_max)
    assert start.dledger.queues_cut_at == start.end_offset - header_bytes


def test_a_wrong_header_ends_the_log(tmp_path):
    healthy(40).write(tmp_path / "store")
    as_dledger(tmp_path / "store", index=50)
    start = plan_of(tmp_path / "store")
    assert (start.units_kept, start.dledger.last_index) == (39, 38)
    assert start.end_reason.endswith("its index is 50, expected 39")


def test_notes_name_what_the_group_decides_and_what_is_written_again(root):
    (root / "dledger-n0" / "checkpoint").write_text("committedIndex=5\nendIndex=39\n")
    with (root / "dledger-n0" / "index" / f"{0:020d}").open("r+b") as index:
        index.seek(20 * 32)
        index.write(bytes(32))
    start = plan_of(root)
    committed, rebuilt = start.notes
    assert committed.startswith("The checkpoint calls entries up to 5 committed, the log goes on to 39")
    assert rebuilt == "The index does not fit from entry 20 on: the start writes it again from there"


def test_an_index_file_of_another_length_stops_the_start(root):
    with (root / "dledger-n0" / "index" / f"{0:020d}").open("r+b") as index:
        index.truncate(3200)
    start = plan_of(root)
    assert "DL02" in {blocker.finding for blocker in start.blockers}
