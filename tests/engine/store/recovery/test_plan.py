"""Recovery of handmade stores, one peculiarity of a broker per test (docs/formats/recovery.md,
docs/formats/consume-queue.md#append, #bounds).

The printed plan: blockers of several files together, and the number of messages that no start dispatches.
"""

from __future__ import annotations

import shutil
import struct

import handmade_stores
import pytest
from handmade_stores import HandmadeStore, healthy, unit_bytes, write_queue

from engine.config import MessageStoreConfig
from engine.errors import UsageError
from engine.inspection import recovery
from engine.inspection.snapshot import open_store
from engine.store.recovery.plan import Blocker, Loss, QueueLoss, blocker_text, group_blockers, undispatched_words

SIZE = handmade_stores.LOG_SIZE


def plan_of(path, release="5.3", config=None):
    with open_store(path, config) as store:
        return recovery.plan(store, release)


def bounds(plan):
    return {(q.topic, q.queue_id): (q.min_offset, q.max_offset) for q in plan.queues}


def expected_bounds(store):
    return {key: (0, value) for key, value in store.next_offsets.items()}


@pytest.mark.parametrize("release", ["5.3", "4.9"])
@pytest.mark.parametrize("abort", [False, True])
def test_a_healthy_store_keeps_everything(tmp_path, release, abort):
    store = healthy()
    plan = plan_of(store.write(tmp_path, abort=abort), release)
    assert (plan.end_offset, plan.bytes_dropped, plan.units_dropped) == (store.end, 0, 0)
    assert bounds(plan) == expected_bounds(store)
    assert plan.will_start
    assert not any(queue.entries_dropped or queue.entries_added for queue in plan.queues)


def test_a_normal_exit_begins_at_the_file_that_the_queues_reach(tmp_path):
    store = healthy()
    plan = plan_of(store.write(tmp_path))
    assert plan.start_offset == store.end // SIZE * SIZE
    assert plan.units == 0


def test_4_9_begins_at_the_third_last_file(tmp_path):
    store = healthy()
    plan = plan_of(store.write(tmp_path), "4.9")
    assert plan.start_offset == (store.end // SIZE - 2) * SIZE


def test_an_abnormal_exit_begins_at_the_last_file_older_than_the_checkpoint(tmp_path):
    store = healthy()
    store.write(tmp_path, abort=True)
    second = next(u for u in store.units if u.offset == SIZE)
    store.write_checkpoint(tmp_path, second.store_timestamp + 3000, second.store_timestamp + 3000)
    assert plan_of(tmp_path).start_offset == SIZE
    store.write_checkpoint(tmp_path, second.store_timestamp + 2999, second.store_timestamp + 3000)
    assert plan_of(tmp_path).start_offset == 0


def test_a_missing_checkpoint_means_the_first_file(tmp_path):
    store = healthy()
    plan = plan_of(store.write(tmp_path, abort=True, checkpoint=False))
    assert (plan.start_offset, plan.units, plan.limit_timestamp) == (0, len(store.units), 0)
    assert "no checkpoint" in plan.why
    assert plan.index_deleted  # every index file is newer than a missing checkpoint


def test_an_empty_log_destroys_every_queue(tmp_path):
    store = healthy()
    store.write(tmp_path)
    for file in (tmp_path / "commitlog").iterdir():
        file.unlink()
    plan = plan_of(tmp_path)
    assert (plan.end_offset, plan.start_file) == (0, None)
    assert set(bounds(plan).values()) == {(0, 0)}
    assert len(plan.files_deleted) == len(list((tmp_path / "consumequeue").rglob("0*0")))


def test_an_all_zero_preallocated_file_becomes_the_append_file_and_later_ones_go(tmp_path):
    store = healthy()
    store.log += struct.pack(">iI", room := SIZE - len(store.log) % SIZE, 0xCBD43194).ljust(room, b"\0")
    store.write(tmp_path, abort=True)
    for number in (0, 1):
        (tmp_path / "commitlog" / f"{store.end + number * SIZE:020d}").write_bytes(bytes(SIZE))
    plan = plan_of(tmp_path)
    assert plan.end_offset == store.end
    assert [path[-20:] for path in plan.files_deleted] == [f"{store.end + SIZE:020d}"]
    assert plan.bytes_dropped == 0


def test_a_blank_at_the_end_without_a_next_file_is_cut_off(tmp_path):
    store = healthy()
    end = store.end
    store.log += struct.pack(">iI", room := SIZE - len(store.log) % SIZE, 0xCBD43194).ljust(room, b"\0")
    plan = plan_of(store.write(tmp_path))
    assert plan.end_offset == end
    assert plan.bytes_dropped == 8
    assert plan.end_reason == "the last file ends with a blank unit"


def test_a_log_shorter_than_its_queues_cuts_them(tmp_path):
    store = healthy()
    store.write(tmp_path, abort=True)
    lost = [u for u in store.units if u.offset >= store.units[40].offset]
    file = tmp_path / "commitlog" / f"{lost[0].offset // SIZE * SIZE:020d}"
    for later in sorted((tmp_path / "commitlog").iterdir()):
        if later.name > file.name:
            later.write_bytes(bytes(SIZE))
    data = bytearray(file.read_bytes())
    data[lost[0].offset % SIZE :] = bytes(SIZE - lost[0].offset % SIZE)
    file.write_bytes(data)
    plan = plan_of(tmp_path)
    assert plan.end_offset == lost[0].offset
    for queue in plan.queues:
        total = sum((u.topic, u.queue_id) == (queue.topic, queue.queue_id) for u in lost)
        remaining = store.next_offsets[queue.topic, queue.queue_id] - total
        assert (queue.max_offset, queue.entries_dropped) == (remaining, total)
        assert queue.truncate_to == remaining * 20


def test_missing_queues_are_rebuilt(tmp_path):
    store = healthy()
    store.write(tmp_path)
    shutil.rmtree(tmp_path / "consumequeue")
    texts = frozenset({"mappedFileSizeConsumeQueue"})
    plan = plan_of(tmp_path, config=MessageStoreConfig(mapped_file_size_consume_queue=400, given=texts))
    assert bounds(plan) == expected_bounds(store)
    assert (plan.start_offset, plan.units) == (0, len(store.units))
    assert all(queue.created for queue in plan.queues)


@pytest.mark.parametrize(("release", "least"), [("5.3", 9), ("4.9", 0)])
def test_a_queue_rebuilt_from_its_middle_is_pre_filled(tmp_path, release, least):
    """When 4.9 corrects the minimum it reads the first unit. A pre-filled entry points to offset 0, which the log
    still has.
    """
    store = HandmadeStore()
    for number in range(20):
        store.put("Orders", 0, keys=f"K{number}", queue_offset=9 + number)
    plan = plan_of(store.write(tmp_path, queues=False), release)
    assert bounds(plan) == {("Orders", 0): (least, 29)}


def test_stale_units_after_the_end_are_handled_as_by_a_broker(tmp_path):
    """A broker does not compare PHYSICALOFFSET with the position, so an old unit right after the last new one is
    dispatched.
    """
    store = healthy(20)
    store.write(tmp_path, abort=True)
    file = tmp_path / "commitlog" / f"{store.end // SIZE * SIZE:020d}"
    data = bytearray(file.read_bytes())
    stale = unit_bytes("Orders", 0, 99, 77, handmade_stores.START, b"old")
    data[store.end % SIZE : store.end % SIZE + len(stale)] = stale
    file.write_bytes(data)
    plan = plan_of(tmp_path)
    assert plan.end_offset == store.end + len(stale)
    assert plan.units == 21


def test_transactional_units_are_not_entered(tmp_path):
    store = HandmadeStore()
    for number in range(6):
        store.put("Half", 0, sys_flag=(0, 4, 8, 12)[number % 4])
    plan = plan_of(store.write(tmp_path, queues=False))
    assert bounds(plan) == {("Half", 0): (0, 3)}
    assert plan.units == 6


def test_light_queues_get_their_own_offsets(tmp_path):
    store = HandmadeStore()
    for number in range(5):
        names = {"INNER_MULTI_DISPATCH": "%LMQ%a,%LMQ%b/c,%LMQ%d", "INNER_MULTI_QUEUE_OFFSET": f"{number},7,{number}"}
        store.put("Parent", 1, more=names)
    plan = plan_of(store.write(tmp_path, queues=False))
    assert bounds(plan) == {("Parent", 1): (0, 5), ("%LMQ%a", 0): (0, 5), ("%LMQ%d", 0): (0, 5)}


def test_a_gap_shifts_later_entries(tmp_path):
    store = HandmadeStore()
    for number in (0, 1, 3, 4):
        store.put("Orders", 0, queue_offset=number)
    store.write(tmp_path, queues=False)
    plan = plan_of(tmp_path)
    assert bounds(plan) == {("Orders", 0): (0, 4)}
    assert plan.queues[0].shifted == 2


def test_version_two_is_damage_to_4_9(tmp_path):
    store = healthy(5)
    offset = store.put("Orders", 0, magic=0xDAA320AB).offset
    store.put("Orders", 0)
    store.write(tmp_path, abort=True)
    assert plan_of(tmp_path, "5.3").end_offset == store.end
    plan = plan_of(tmp_path, "4.9")
    assert plan.end_offset == offset
    assert plan.units_dropped == 2


def test_a_wrong_body_ends_the_log_unless_no_crc_is_checked(tmp_path):
    store = healthy()
    store.write(tmp_path, abort=True)
    bad = store.units[30]
    file = tmp_path / "commitlog" / f"{bad.offset // SIZE * SIZE:020d}"
    data = bytearray(file.read_bytes())
    data[bad.offset % SIZE + 88] ^= 0x10
    file.write_bytes(data)
    plan = plan_of(tmp_path)
    assert plan.end_offset == bad.offset
    assert "CRC" in plan.end_reason
    assert plan.units_dropped == len(store.units) - 30
    assert plan_of(tmp_path, config=MessageStoreConfig(check_crc_on_recover=False)).end_offset == store.end


def test_groups_beyond_the_new_end_are_listed(tmp_path):
    store = healthy()
    store.write(tmp_path)
    (tmp_path / "config").mkdir()
    end = store.next_offsets["Orders", 1]
    (tmp_path / "config" / "consumerOffset.json").write_text(
        f'{{"offsetTable":{{"Orders@billing":{{0:1,1:{end + 3}}},"Gone@billing":{{0:9}}}}}}'
    )
    plan = plan_of(tmp_path)
    assert [(g.group, g.topic, g.queue_id, g.offset, g.max_offset) for g in plan.groups_beyond] == [
        ("billing", "Orders", 1, end + 3, end)
    ]


def test_an_empty_last_queue_file_stops_a_5_3_start(tmp_path):
    store = HandmadeStore()
    for _ in range(20):
        store.put("Orders", 0)
    store.put("Half", 0, sys_flag=4)
    store.write(tmp_path)
    (tmp_path / "consumequeue" / "Orders" / "0" / f"{400:020d}").write_bytes(bytes(400))
    assert plan_of(tmp_path, "4.9").will_start
    assert [b.finding for b in plan_of(tmp_path).blockers] == ["CQ06"]


def test_a_truncation_keeps_the_first_unit_of_a_file_unread(tmp_path):
    store = HandmadeStore()
    for _ in range(20):
        store.put("Orders", 0)
    store.write(tmp_path)
    (tmp_path / "consumequeue" / "Orders" / "0" / f"{400:020d}").write_bytes(bytes(400))
    assert bounds(plan_of(tmp_path)) == {("Orders", 0): (0, 21)}


def test_a_part_of_a_store_has_no_recovery(tmp_path):
    new_store = healthy()
    new_store.write(tmp_path)
    with open_store(tmp_path / "commitlog") as store, pytest.raises(UsageError):
        recovery.plan(store)


def test_a_negative_body_length_counts_as_no_body(tmp_path):
    store = HandmadeStore()
    store.put("Orders", 0, body=b"")
    store.put("Orders", 0)
    store.write(tmp_path, queues=False)
    file = tmp_path / "commitlog" / f"{0:020d}"
    data = bytearray(file.read_bytes())
    struct.pack_into(">i", data, 84, -5)
    file.write_bytes(data)
    assert plan_of(tmp_path).units_kept == 2


def test_write_queue_makes_files_of_one_size(tmp_path):
    write_queue(tmp_path / "q", bytes(900), 400)
    assert [f.stat().st_size for f in sorted((tmp_path / "q").iterdir())] == [400, 400, 400]


def test_4_9_knows_no_batch_queues(tmp_path):
    store = healthy(10)
    store.write(tmp_path)
    write_queue(tmp_path / "batchconsumequeue" / "Batches" / "0", bytes(46), 460)
    assert ("Batches", 0) in bounds(plan_of(tmp_path))
    assert ("Batches", 0) not in bounds(plan_of(tmp_path, "4.9"))


def test_equal_blockers_are_printed_once():
    same = [Blocker("CQ01", f"/s/{n}: expected 400 bytes", "log", f"/s/{n}") for n in range(3)]
    different = Blocker("CF01", "/s/topics.json: no JSON", "log", "/s/topics.json")
    assert [len(group) for group in group_blockers([*same, different])] == [3, 1]
    assert blocker_text(same[0]) == ("CQ01", "expected 400 bytes")


def test_messages_queues_units_and_times():
    loss = Loss((QueueLoss("T", 0, 1200, 5, 9, 100, 0, 0), QueueLoss("T", 1, 1, 5, 5)), 0, 100, 9_000)
    actual_undispatched_words = undispatched_words(loss)
    assert actual_undispatched_words.startswith("1,201 messages of 2 queues will be in no queue after the next start")
    assert actual_undispatched_words.endswith("no later start will dispatch them: units 100 to 9,000")
    item = Loss((QueueLoss("T", 0, 1, 5, 5, 100, 1_700_000_000_000, 1_700_000_000_000),), 0, 100, 100)
    assert "1 message of 1 queue will be" in undispatched_words(item)
    assert ", stored 2023-11-14" in undispatched_words(item)
