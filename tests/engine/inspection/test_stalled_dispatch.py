"""The message at which dispatch of RocketMQ 5.5 stops (CQ17), as real brokers of 5.5.0 and 5.5.1 do."""

from __future__ import annotations

from pathlib import Path

import made_rocksdb
import pytest
from broken_stores import dispatch_stops
from handmade_stores import HandmadeStore, healthy

from engine.codec.message import decode
from engine.config import MessageStoreConfig
from engine.inspection import open_store
from engine.inspection.compatibility import CompatOptions, compare
from engine.inspection.findings import check
from engine.inspection.recovery import plan
from engine.inspection.stalled_dispatch import stalled_dispatch, unnumbered_queue, wrong_light_queue
from engine.inspection.where.evidence import where
from engine.releases import Release
from engine.rules.compatibility import MODES
from engine.rules.findings import Finding


@pytest.fixture
def handmade() -> HandmadeStore:
    return healthy()


@pytest.fixture
def root(tmp_path: Path, handmade: HandmadeStore) -> Path:
    root = handmade.write(tmp_path / "store")
    dispatch_stops(root, handmade)
    return root


def findings_of(root: Path, release: Release | None = None) -> dict[str, Finding]:
    with open_store(root) as store:
        store.release = release
        *findings, _ = check(store)
    return {finding.id: finding for finding in findings}


def test_a_killed_store_names_the_message_at_which_dispatch_stopped(root, handmade):
    """Consumers of all topics got nothing, and check only said that the next start dispatches these messages."""
    stalled, first_behind = handmade.units[-3], handmade.units[-2]
    finding = findings_of(root)["CQ17"]
    assert (finding.severity, finding.offset) == ("warn", stalled.offset)
    assert finding.message == (
        f"Dispatch stopped at the message Orders/0/{stalled.queue_offset} at {stalled.offset:,}, because of the name "
        f"of its light queue, %LMQ%$Orders$a$b; all messages from {first_behind.offset:,} on are in no queue"
    )
    assert "commitLogRecoverMaxNum" in finding.next_step


def test_beside_a_running_broker_it_is_an_error_with_a_step_that_needs_no_restart(root, monkeypatch):
    monkeypatch.setattr("engine.inspection.snapshot.lock_state", lambda *_: "held")
    findings = findings_of(root)
    assert findings["CQ17"].severity == "error"
    assert "longPollingEnable" in findings["CQ17"].next_step
    assert findings["CQ10"].caused_by == "CQ17"


def test_other_releases_do_not_stop_there(root):
    assert "CQ17" not in findings_of(root, release="5.4")


def test_a_message_that_dispatch_passed_is_no_finding(root, handmade, tmp_path):
    assert "CQ17" not in findings_of(handmade.write(tmp_path / "dispatched"))


def test_where_names_the_message_at_which_dispatch_stopped(root, handmade):
    with open_store(root) as store:
        (behind,) = where(store, "U" + f"{len(handmade.units) - 1:05d}")
        (itself,) = where(store, "U" + f"{len(handmade.units) - 3:05d}")
    assert behind.verdict == "notYetDispatched"
    assert "CQ17" in behind.next_step
    (evidence,) = (item for item in behind.evidence if item.what == "service")
    assert evidence.offset == handmade.units[-3].offset
    assert "CQ17" not in itself.next_step


@pytest.mark.parametrize(
    ("names", "offsets", "expected"),
    [
        ("%LMQ%$Orders$a", "0", ""),
        ("%LMQ%$Orders$a b", "0", ""),
        ("%LMQ%$Orders$a$b", "0", "%LMQ%$Orders$a$b"),
        ("%LMQ%$Orders$$", "0", "%LMQ%$Orders$$"),
        ("%LMQ%$Orders$", "0", "%LMQ%$Orders$"),
        ("%LMQ%$Orders", "0", "%LMQ%$Orders"),
        ("%LMQ%Orders$a$b$c", "0", ""),
        ("%LMQ%a,%LMQ%$b", "0,7", "%LMQ%$b"),
        ("%LMQ%$Orders$a$b", "", ""),
        ("%LMQ%$Orders$a$b", "0,1", ""),
    ],
)
def test_names_at_which_dispatch_stopped(names, offsets, expected):
    more = {"INNER_MULTI_DISPATCH": names}
    more |= {"INNER_MULTI_QUEUE_OFFSET": offsets} if offsets else {}
    store = HandmadeStore()
    store.put(more=more)
    assert wrong_light_queue(decode(bytes(store.log), 0, 0)) == expected


@pytest.mark.parametrize(
    ("names", "offsets", "expected"),
    [
        ("x,%LMQ%a", ",0", "x"),
        ("%LMQ%a,x,%LMQ%b", "0,,0", "x"),
        (",%LMQ%a", ",0", ""),
        ("%LMQ%a,x", "0,", None),
        ("%LMQ%a", "0", None),
        ("x", "", None),
    ],
)
def test_names_without_an_offset(names, offsets, expected):
    store = HandmadeStore()
    store.put(more={"INNER_MULTI_DISPATCH": names, "INNER_MULTI_QUEUE_OFFSET": offsets})
    assert unnumbered_queue(decode(bytes(store.log), 0, 0)) == expected


def test_a_name_without_an_offset_keeps_brokers_from_starting(tmp_path, handmade, monkeypatch):
    """check advised to start the broker; real 5.3.3, 5.4.0 and 5.5.1 do not start."""
    root = handmade.write(tmp_path / "store")
    dispatch_stops(root, handmade, "x,%LMQ%a", ",0")
    assert "CQ17" not in findings_of(root, "4.9")
    finding = findings_of(root, "5.3")["CQ17"]
    assert finding.severity == "error"
    assert "because it names x, which is no light queue, before a light queue" in finding.message
    assert "enableMultiDispatch=false" in finding.next_step
    monkeypatch.setattr("engine.inspection.snapshot.lock_state", lambda *_: "held")
    assert "while it runs" in findings_of(root, "5.3")["CQ17"].next_step


def test_the_last_message_of_a_killed_store_keeps_brokers_from_starting(tmp_path, handmade):
    root = tmp_path / "store"
    handmade.put(more={"INNER_MULTI_DISPATCH": "x,%LMQ%a", "INNER_MULTI_QUEUE_OFFSET": ",0"})
    handmade.write(root)
    assert "CQ17" not in findings_of(root, "5.5")  # a broker that closed its store has passed the message
    (root / "abort").touch()
    finding = findings_of(root, "5.5")["CQ17"]
    assert finding.message.endswith("which is no light queue, before a light queue")
    assert finding.severity == "error"


@pytest.mark.parametrize("release", ["4.9", "5.3", "5.5"])
def test_the_plan_of_the_start_names_the_message_at_which_it_fails(tmp_path, handmade, release):
    """recover --plan and compat said that the broker would start and lose nothing."""
    root = handmade.write(tmp_path / "store")
    dispatch_stops(root, handmade, "x,%LMQ%a", ",0")
    (root / "abort").touch()
    message = handmade.units[-3]
    with open_store(root) as store:
        (blocker,) = plan(store, release).blockers
    assert (blocker.finding, f"at {message.offset:,}" in blocker.message) == ("CQ17", True)
    assert 'NumberFormatException: For input string: ""' in blocker.broker_log
    with open_store(root, MessageStoreConfig(enable_lmq=True)) as store:
        assert plan(store, release).will_start
    (answer,) = compare(lambda: open_store(root), CompatOptions(((release, MODES["files"]),)))
    assert answer.verdict == "refused"
    assert ("enableMultiDispatch", "false", True) in [
        (setting.key, setting.value, setting.is_needed_to_start) for setting in answer.settings
    ]


def test_with_queues_in_a_rocksdb_the_broker_starts_and_dispatch_stops_again(tmp_path, handmade):
    """Real 5.3.3, 5.4.0 and 5.5.1 start, and write no row of the units that they dispatch together with the message."""
    dispatched = handmade.end
    handmade.put(more={"INNER_MULTI_DISPATCH": "x,%LMQ%a", "INNER_MULTI_QUEUE_OFFSET": ",0"})
    handmade.put("Payments", 0)
    root = handmade.write(tmp_path / "store")
    made_rocksdb.make_database(root / "consumequeue", made_rocksdb.rows_of_store(handmade))
    rows = made_rocksdb.QueueRows(root / "consumequeue")
    rows.forget_from(dispatched)
    rows.write()
    assert "CQ17" not in findings_of(root)  # a start after a stop begins behind the message
    (root / "abort").touch()
    finding = findings_of(root)["CQ17"]
    assert (finding.severity, finding.offset) == ("error", dispatched)
    assert "enableLmq=false" in finding.next_step
    with open_store(root) as store:
        start = plan(store)
    assert start.will_start
    assert start.dispatch_stops_at is not None
    assert start.dispatch_stops_at.offset == dispatched
    assert any("dispatch stops at the message" in note for note in start.notes)
    with open_store(root, MessageStoreConfig(enable_multi_dispatch=True)) as store:
        assert plan(store).dispatch_stops_at is None
    (answer,) = compare(lambda: open_store(root), CompatOptions((("5.5", MODES["rocksdb"]),)))
    assert (answer.verdict, answer.exit_code) == ("loses", 1)
    assert "dispatch would stop at the message" in answer.message


@pytest.mark.parametrize(("release", "verdict"), [("5.4", "refused"), ("5.5", "loses")])
def test_beside_a_rocksdb_for_light_queues_the_broker_starts(tmp_path, handmade, release, verdict):
    """Files get no entries of light queues with combineCQUseRocksdbForLmq, which 5.5 needs: real 5.5.1 starts."""
    root = handmade.write(tmp_path / "store")
    dispatch_stops(root, handmade, "x,%LMQ%a", ",0")
    (root / "abort").touch()
    (answer,) = compare(lambda: open_store(root), CompatOptions(((release, MODES["combined"]),)))
    assert answer.verdict == verdict


def test_a_part_of_a_store_is_not_judged(root):
    with open_store(next((root / "commitlog").iterdir())) as store:
        assert stalled_dispatch(store) is None
