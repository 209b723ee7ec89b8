"""The plan of a start, compared with the start itself: both releases, on stores where they differ."""

from __future__ import annotations

import shutil
import struct

import peer
import pytest

from engine.cli.main import main
from engine.codec.message import Unit
from engine.config import from_mapping
from engine.inspection import recovery
from engine.inspection.snapshot import open_store
from engine.message_store import MessageStore

pytestmark = [pytest.mark.peer, pytest.mark.crash, pytest.mark.timeout(600)]

LOG_SIZE = 1 << 16
TIMEOUT_S = 240  # seconds; a start that comes up takes two where nothing else runs
CONFIG = {
    "mappedFileSizeCommitLog": LOG_SIZE,
    "mappedFileSizeConsumeQueue": 6000,
    "maxHashSlotNum": 100,
    "maxIndexNum": 400,
}
PLAN = {
    "config": CONFIG,
    "topics": [{"name": "TopicA", "queues": 2}],
    "body": {"min": 0, "max": 300},
    "seed": 5,
    "count": 600,
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return ``written(release)``, which writes a store of three log files with this release."""
    created_items = {}

    def of(release):
        if release not in created_items:
            work = tmp_path_factory.mktemp("written")
            peer.Peer(release, work).write(PLAN, work / "store")
            created_items[release] = work / "store"
        return created_items[release]

    return of


def planned(store, release):
    with open_store(store, from_mapping({**CONFIG, "timerWheelEnable": False})[0]) as opened:
        return recovery.plan(opened, release)


def log_file(store, number):
    return store / "commitlog" / f"{number * LOG_SIZE:020d}"


def test_4_9_waits_for_ever_at_a_gap_that_dispatch_has_to_cross(written, tmp_path):
    """A middle log file is lost and somebody removes the queues to have them built again: 4.9 never finishes its start,
    but the plan said that it would. 5.3 starts, and so does 4.9 if the queues reach past the gap.
    """
    store = tmp_path / "store"
    shutil.copytree(written("4.9.8"), store)
    log_file(store, 1).unlink()
    assert planned(store, "4.9").will_start
    shutil.rmtree(store / "consumequeue")
    assert planned(store, "5.3").will_start
    plan = planned(store, "4.9")
    (blocker,) = plan.blockers
    assert (blocker.finding, blocker.file) == ("RP02", str(log_file(store, 0)))

    frame = blocker.broker_log.splitlines()[-1]
    start = peer.Peer("4.9.8", tmp_path).start(PLAN, store, TIMEOUT_S, waits_in=frame)
    main = peer.main_thread(start.stack)
    assert frame in main
    assert "Thread.sleep" in main


@pytest.mark.parametrize("words", [["dispatch"], ["recover", "--apply", "--like", "4.9"]])
def test_4_9_starts_at_a_gap_when_the_queues_know_what_lies_behind_it(written, tmp_path, capsys, words):
    store, conf = tmp_path / "store", tmp_path / "broker.conf"
    shutil.copytree(written("4.9.8"), store)
    conf.write_text("".join(f"{name}={value}\n" for name, value in CONFIG.items()))
    log_file(store, 1).unlink()
    shutil.rmtree(store / "consumequeue")
    assert main([words[0], str(store), *words[1:], "--config", str(conf), "--yes", "--quiet"]) == 0
    assert planned(store, "4.9").will_start
    capsys.readouterr()
    start = peer.Peer("4.9.8", tmp_path).start(PLAN, store, TIMEOUT_S)
    assert (start.status, start.stack) == (0, "")


@pytest.mark.parametrize("size", [(1 << 31) - 1, (1 << 31) - 2])
def test_4_9_dies_of_a_length_that_no_array_has(written, tmp_path, size):
    """It allocates an array of the length field's size before it compares this with the rest of the file."""
    store = tmp_path / "store"
    shutil.copytree(written("4.9.8"), store)
    spoil_length(store, size)
    assert planned(store, "5.3").will_start
    (blocker,) = planned(store, "4.9").blockers
    error, frame = blocker.broker_log.splitlines()

    start = peer.Peer("4.9.8", tmp_path).start(PLAN, store, TIMEOUT_S)
    assert start.status == 1
    assert error in start.output
    assert frame in start.output


def test_a_length_that_a_large_heap_can_hold_is_a_note(written, tmp_path):
    store = tmp_path / "store"
    shutil.copytree(written("4.9.8"), store)
    spoil_length(store, 1_000_000_000)
    plan = planned(store, "4.9")
    assert plan.will_start
    assert any("asks for 1,000,000,000 bytes of heap" in note for note in plan.notes)
    start = peer.Peer("4.9.8", tmp_path).start(PLAN, store, TIMEOUT_S)
    assert (start.status, "OutOfMemoryError: Java heap space" in start.output) == (1, True)


def spoil_length(store, size):
    with open_store(store) as opened:
        unit = next(u for u in opened.units() if isinstance(u, Unit) and u.offset > 2.2 * LOG_SIZE)
    with log_file(store, 2).open("r+b") as file:
        file.seek(unit.offset - 2 * LOG_SIZE)
        file.write(struct.pack(">i", size))


@pytest.mark.parametrize("release", peer.RELEASES)
def test_an_empty_index_file_is_kept_and_a_shifted_log_file_is_taken_by_its_remainder(written, tmp_path, release):
    """An index file of 0 bytes was in neither list; the end of the log was 52 bytes behind the broker's."""
    java, store = peer.Peer(release, tmp_path), tmp_path / "store"
    shutil.copytree(written(release), store)
    newest = max((store / "index").iterdir())
    newest.write_bytes(b"")
    log_file(store, 2).rename(store / "commitlog" / f"{2 * LOG_SIZE - 52:020d}")
    plan = planned(store, release[:3])
    assert newest.name in {index.name for index in plan.index_kept}

    account = java.dump(PLAN, store, in_place=True)
    state = next(row for row in account if row["t"] == "state" and row["when"] == "started")
    assert plan.end_offset == state["maxPhy"]
    assert newest.stat().st_size > 0


@pytest.mark.parametrize("release", peer.RELEASES)
def test_a_log_of_one_blank_unit_begins_again_at_0(tmp_path, release):
    """RocketMQ leaves the eight bytes and overwrites them; our engine clears them. Neither asks."""
    config, store = from_mapping({**CONFIG, "timerWheelEnable": False})[0], tmp_path / "store"
    with MessageStore(store, config, services=False) as message_store:
        message_store.parts.commit_log.begin_at(0)
        assert message_store.parts.commit_log.append_blank()
    for _ in range(2):
        account = peer.Peer(release, tmp_path).dump(PLAN, store)
        (state,) = [row for row in account if row["t"] == "state" and row["when"] == "started"]
        assert state["maxPhy"] == 0
        with MessageStore(store, config, services=False) as opened:
            assert opened.recovery_plan.end_offset == 0
