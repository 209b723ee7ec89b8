"""``copy`` of golden stores: byte for byte if a store was closed cleanly and kept its first files.

For the others the result of RocketMQ's rules for the same units, with an explanation of each difference here.
"""

from __future__ import annotations

import agree
import golden_stores
import pytest
from explicit_plans import account

from engine.codec.message import Unit
from engine.codec.unit_scan import Damage
from engine.inspection.snapshot import open_store

pytestmark = pytest.mark.golden

FOLDERS = ("commitlog", "consumequeue", "consumequeue_ext", "batchconsumequeue")
CRASHED = golden_stores.names("recovered.tar.xz")
QUEUES_GONE = ["queues-gone-4.9.8", "queues-gone-5.3.3"]
"""Closed cleanly, their queues deleted afterwards."""
FIRST_FILES_GONE = "first-files-deleted-5.3.3"
LEFT_OPEN = ["broker-crash", "broker-crash-5.5.1"]
OTHERS = list(dict.fromkeys([*CRASHED, *QUEUES_GONE, FIRST_FILES_GONE, *LEFT_OPEN]))
CLEAN = [name for name in golden_stores.names() if name not in OTHERS]

EXPLAINED = {
    # The entry of the unit that was left behind is missing, and the ones behind it moved up, as in a broker.
    "crash-flip-5.3.3": {"CL09"},
    # A torn unit whose body is whole passes RocketMQ's check, and ours.
    "crash-power-5.3.3": {"CL04"},
}


def copied(source, target, *options):
    return agree.records_of("copy", source, target, *options)[-1]


def digests_of_files(root):
    """Return every file of the log, of queues and ext queues by name; those of the index in order, their names are
    times.
    """
    results = {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file():
                results[str(path.relative_to(root))] = path.read_bytes()
    results["index"] = [path.read_bytes() for path in sorted((root / "index").glob("*"))]
    return results


def differences(store, other_store):
    """Return the names of files that differ or are in one store only."""
    store, other_store = digests_of_files(store), digests_of_files(other_store)
    return sorted(name for name in store.keys() | other_store.keys() if store.get(name) != other_store.get(name))


@pytest.mark.parametrize("name", CLEAN)
def test_a_copy_has_the_bytes_of_the_real_store(golden, unchanged, tmp_path, name):
    source = unchanged(golden(name))
    done = copied(source, tmp_path / "copy")
    assert done["leftBehind"] == 0
    assert differences(source, tmp_path / "copy") == []
    for path in (source / "config").rglob("*") if (source / "config").is_dir() else ():
        if path.is_file():
            assert (tmp_path / "copy" / path.relative_to(source)).read_bytes() == path.read_bytes()
    assert not (tmp_path / "copy" / "abort").exists()


@pytest.mark.full_form(keep=7)
@pytest.mark.parametrize("name", OTHERS)
def test_every_unit_comes_along_and_a_copy_of_the_copy_is_the_same(golden, tmp_path, name):
    source = golden(name)
    done = copied(source, tmp_path / "copy")
    with open_store(source) as store:
        listed = [unit for unit in store.units() if isinstance(unit, Unit)]
        good = [(unit.topic, unit.queue_offset, unit.body, unit.properties_raw) for unit in listed if unit.crc == "ok"]
    with open_store(tmp_path / "copy") as copy:
        units = [unit for unit in copy.units() if isinstance(unit, Unit)]
        assert [(unit.topic, unit.queue_offset, unit.body, unit.properties_raw) for unit in units] == good
        assert copy.log.min_offset == store.log.min_offset
        for unit_before, unit_after in zip(listed, units, strict=False):
            if unit_before.crc == "bad":
                break
            assert unit_after.offset == unit_before.offset
    assert done["units"] == len(good)
    wrong = {row["id"] for row in agree.records_of("check", tmp_path / "copy") if row.get("severity") == "error"}
    assert wrong <= EXPLAINED.get(name, set())
    copied(tmp_path / "copy", tmp_path / "again")
    assert differences(tmp_path / "copy", tmp_path / "again") == []


@pytest.mark.parametrize("name", CRASHED)
def test_of_a_crashed_store_files_ahead_of_need_and_stale_entries_stay_behind(golden, tmp_path, name):
    """The copy has queue entries that the source never wrote, or lost; those that lead to units are the same."""
    source = golden(name)
    done = copied(source, tmp_path / "copy")
    theirs = digests_of_files(source)
    changed = [path for path in differences(source, tmp_path / "copy") if path.startswith("commitlog")]
    if not done["leftBehind"]:
        assert [path for path in changed if any(theirs[path])] == []
    with open_store(source) as source_store, open_store(tmp_path / "copy") as copied_store:
        damage = first_damage(source_store) if done["leftBehind"] else done["maxOffset"]
        for topic, queues in source_store.topics().items():
            for number, queue in queues.items():
                led = [entry for entry in queue.entries() if entry.physical_offset < damage and entry.state == "entry"]
                assert list(copied_store.queue(topic, number).entries())[: len(led)] == led, (topic, number)


def first_damage(store):
    bad = (item for item in store.units() if isinstance(item, Damage) or (isinstance(item, Unit) and item.crc == "bad"))
    return next(item.offset for item in bad)


@pytest.mark.parametrize("name", QUEUES_GONE)
def test_queues_that_are_gone_are_built_again_as_rocketmq_builds_them(golden, golden_account, tmp_path, name):
    copied(golden(name), tmp_path / "copy")
    tally = agree.queue(tmp_path / "copy", golden_account(name, "expected.jsonl.xz"))
    assert tally.compared > 100
    assert not tally.differences, str(tally)


def test_without_its_first_files_a_queue_begins_with_slots_that_point_nowhere(golden, tmp_path):
    """The source still has entries of deleted messages; a new queue has pre-filled slots instead.

    The index begins with the first remaining message, so its files are cut at other messages.
    """
    source = golden(FIRST_FILES_GONE)
    copied(source, tmp_path / "copy")
    changed = differences(source, tmp_path / "copy")
    assert not [path for path in changed if path.startswith(("commitlog", "consumequeue_ext", "batch"))]
    with open_store(source) as source_store, open_store(tmp_path / "copy") as copied_store:
        for topic, queues in source_store.topics().items():
            for number, queue in queues.items():
                copied_queue = copied_store.queue(topic, number)
                assert (copied_queue.min_offset, copied_queue.max_offset) == (queue.min_offset, queue.max_offset)
                assert list(copied_queue.entries(queue.min_offset)) == list(queue.entries(queue.min_offset))
                assert {entry.state for entry in copied_queue.entries(None, queue.min_offset)} <= {"prefilled"}
        assert sum(f.header.entries for f in copied_store.index_files()) <= sum(
            f.header.entries for f in source_store.index_files()
        )


def test_what_a_crashed_broker_had_not_dispatched_is_dispatched(golden, tmp_path):
    source = golden("broker-crash")
    copied(source, tmp_path / "copy")
    assert differences(source, tmp_path / "copy") == ["commitlog/00000000000003145728"]
    assert not any((source / "commitlog/00000000000003145728").read_bytes())


def test_a_deleted_topic_gets_no_queue_and_keeps_its_units(golden, tmp_path):
    done = copied(golden("broker-orders"), tmp_path / "copy")
    assert done["deletedTopics"] == ["DroppedAuditTrail"]
    assert any(fields[4] == "DroppedAuditTrail" for fields in account(tmp_path / "copy")["units"])
