"""What keeps a broker from starting, in the broker's own words."""

from __future__ import annotations

import shutil

import pytest
from made_stores import healthy

from engine.inspection import recovery
from engine.inspection.snapshot import open_store

NOT_MATCHED = "length not matched message store config value, please check it manually"


@pytest.fixture
def made(tmp_path):
    return healthy().write(tmp_path / "store")


def blockers(path, like="5.3"):
    with open_store(path) as store:
        plan = recovery.plan(store, like)
    assert plan.will_start == (not plan.blockers)
    return [(b.finding, b.broker_log) for b in plan.blockers]


def test_a_healthy_store_starts(made):
    assert blockers(made) == []


def test_a_log_file_of_another_size(made):
    file = sorted((made / "commitlog").iterdir())[1]
    with file.open("r+b") as f:
        f.truncate(1000)
    assert blockers(made) == [("CL07", f"{file}\t1000 {NOT_MATCHED}")]


def test_a_queue_file_of_another_size(made):
    file = made / "consumequeue" / "Orders" / "1" / f"{0:020d}"
    with file.open("r+b") as f:
        f.truncate(333)
    assert ("CQ01", f"{file}\t333 {NOT_MATCHED}") in blockers(made)


def test_an_empty_last_file_is_deleted_by_5_3_and_stops_4_9(made):
    file = made / "commitlog" / f"{1 << 30:020d}"
    file.touch()
    assert blockers(made) == []
    with open_store(made) as store:
        assert str(file) in recovery.plan(store).files_deleted
    assert blockers(made, "4.9") == [("CL07", f"{file}\t0 {NOT_MATCHED}")]


def test_a_name_that_is_no_number(made):
    first = min((made / "commitlog").iterdir())
    shutil.copy(first, made / "commitlog" / "copy-of-first")
    log = 'load exception java.lang.NumberFormatException: For input string: "copy-of-first"'
    assert blockers(made) == [("CL07", log)]


def test_a_folder_among_the_files_stops_4_9_only(made):
    (made / "commitlog" / "0lost+found").mkdir()
    assert blockers(made) == []
    assert [finding for finding, _ in blockers(made, "4.9")] == ["CL07"]


def test_a_table_whose_backup_is_bad_too(made):
    (made / "config").mkdir()
    (made / "config" / "topics.json").write_text('{"dataVersion":{}} and more')
    assert blockers(made) == []
    (made / "config" / "topics.json.bak").write_text("{")
    assert blockers(made) == [("CF01", f"load {made}/config/topics.json.bak Failed")]


def test_a_topic_in_the_folder_of_the_other_kind(made):
    (made / "config").mkdir()
    (made / "config" / "topics.json").write_text(
        '{"topicConfigTable":{"Orders":{"topicName":"Orders","attributes":{"queue.type":"BatchCQ"}}}}'
    )
    log = "load exception java.lang.RuntimeException: The queue type of topic: Orders should be "
    assert blockers(made) == [("CQ11", log + "SimpleCQ, but is BatchCQ")]


def test_a_timer_wheel_of_another_length(made):
    (made / "timerwheel").write_bytes(bytes(640))
    assert [finding for finding, _ in blockers(made)] == ["TM04"]
    assert blockers(made, "4.9") == []


def test_a_checkpoint_that_is_a_folder(made):
    (made / "checkpoint").unlink()
    (made / "checkpoint").mkdir()
    assert [finding for finding, _ in blockers(made)] == ["CK05"]
