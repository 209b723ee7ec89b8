"""Conditions that prevent a broker's start, with the broker's own messages."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import pytest
from handmade_stores import healthy

from engine.config import MessageStoreConfig
from engine.inspection import recovery
from engine.inspection.snapshot import open_store
from engine.mapped.store_lock import StoreLock
from engine.store.recovery.blockers import no_accelerated_start, out_of_memory, waits_for_ever

NOT_MATCHED = "length not matched message store config value, please check it manually"


@pytest.fixture
def store_path(tmp_path):
    return healthy().write(tmp_path / "store")


def blockers(path, release="5.3"):
    with open_store(path) as store:
        plan = recovery.plan(store, release)
    assert plan.will_start == (not plan.blockers)
    return [(b.finding, b.broker_log) for b in plan.blockers]


def test_a_healthy_store_starts(store_path):
    assert blockers(store_path) == []


def test_a_log_file_of_another_size(store_path):
    file = sorted((store_path / "commitlog").iterdir())[1]
    with file.open("r+b") as f:
        f.truncate(1000)
    assert blockers(store_path) == [("CL07", f"{file}\t1000 {NOT_MATCHED}")]


def test_a_queue_file_of_another_size(store_path):
    file = store_path / "consumequeue" / "Orders" / "1" / f"{0:020d}"
    with file.open("r+b") as f:
        f.truncate(333)
    assert ("CQ01", f"{file}\t333 {NOT_MATCHED}") in blockers(store_path)


def test_an_empty_last_file_is_deleted_by_5_3_and_stops_4_9(store_path):
    file = store_path / "commitlog" / f"{1 << 30:020d}"
    file.touch()
    assert blockers(store_path) == []
    with open_store(store_path) as store:
        assert str(file) in recovery.plan(store).files_deleted
    assert blockers(store_path, "4.9") == [("CL07", f"{file}\t0 {NOT_MATCHED}")]


def test_a_name_that_is_no_number(store_path):
    first_file = min((store_path / "commitlog").iterdir())
    shutil.copy(first_file, store_path / "commitlog" / "copy-of-first")
    log = 'load exception java.lang.NumberFormatException: For input string: "copy-of-first"'
    assert blockers(store_path) == [("CL07", log)]


def test_a_folder_among_the_files_stops_4_9_only(store_path):
    (store_path / "commitlog" / "0lost+found").mkdir()
    assert blockers(store_path) == []
    assert [finding for finding, _ in blockers(store_path, "4.9")] == ["CL07"]


def test_a_table_whose_backup_is_bad_too(store_path):
    (store_path / "config").mkdir()
    (store_path / "config" / "topics.json").write_text('{"dataVersion":{}} and more')
    assert blockers(store_path) == []
    (store_path / "config" / "topics.json.bak").write_text("{")
    assert blockers(store_path) == [("CF01", f"load {store_path}/config/topics.json.bak Failed")]


def test_a_topic_in_the_folder_of_the_other_kind(store_path):
    (store_path / "config").mkdir()
    (store_path / "config" / "topics.json").write_text(
        '{"topicConfigTable":{"Orders":{"topicName":"Orders","attributes":{"queue.type":"BatchCQ"}}}}'
    )
    log = "load exception java.lang.RuntimeException: The queue type of topic: Orders should be "
    assert blockers(store_path) == [("CQ11", log + "SimpleCQ, but is BatchCQ")]


def test_a_timer_wheel_of_another_length(store_path):
    (store_path / "timerwheel").write_bytes(bytes(640))
    assert [finding for finding, _ in blockers(store_path)] == ["TM04"]
    assert blockers(store_path, "4.9") == []


def test_a_checkpoint_that_is_a_folder(store_path):
    (store_path / "checkpoint").unlink()
    (store_path / "checkpoint").mkdir()
    assert [finding for finding, _ in blockers(store_path)] == ["CK05"]


def test_a_store_that_a_broker_has_open(store_path):
    with StoreLock(store_path / "lock"):
        assert blockers(store_path) == [("AB01", "java.lang.RuntimeException: Lock failed,MQ already started")]


def test_a_folder_in_the_place_of_an_index_file(store_path):
    (store_path / "index" / "20261128000000000").mkdir(parents=True)
    assert [finding for finding, _ in blockers(store_path)] == ["IX08"]


FILES = [
    SimpleNamespace(path="a", start_offset=0, end_offset=100),
    SimpleNamespace(path="b", start_offset=100, end_offset=200),
]


def test_a_length_that_no_array_of_java_has():
    assert out_of_memory(FILES, 150, (1 << 31) - 3) == []
    (blocker,) = out_of_memory(FILES, 150, (1 << 31) - 1)
    assert (blocker.finding, blocker.file) == ("CL01", "b")
    assert "OutOfMemoryError" in blocker.broker_log


@pytest.mark.parametrize(
    ("release", "abort", "time", "offset", "refused"),
    [
        ("5.5", True, 1, 0, True),
        ("5.5", True, 1, None, True),
        ("5.5", True, 1, 500, False),
        ("5.5", True, 0, 0, False),
        ("5.5", False, 1, 0, False),
        ("5.3", True, 1, 0, False),
    ],
)
def test_an_accelerated_recovery_without_a_start_offset(tmp_path, release, abort, time, offset, refused):
    checkpoint = SimpleNamespace(physic_msg_timestamp=time, logics_physical_offset=offset)
    config = MessageStoreConfig(enable_accelerated_recovery=True)
    source = SimpleNamespace(checkpoint=checkpoint, config=config, abort=abort, root=tmp_path)
    assert [blocker.finding for blocker in no_accelerated_start(source, release)] == ["CK05"] * refused


def test_a_start_that_waits_for_a_stalled_dispatch():
    assert waits_for_ever(FILES, None, 200, "5.3") == []
    (blocker,) = waits_for_ever(FILES, (120, "no file"), 200, "4.9")
    assert (blocker.finding, blocker.file) == ("RP02", "b")
    assert "80 bytes before the end of the log: no file" in blocker.message
    assert "reputOffset=120 maxOffset=200 behind=80" in blocker.broker_log
