"""Timer log and ``timercheck`` are written again from the messages that wait; a start builds the wheel from them."""

from __future__ import annotations

from pathlib import Path

from broken_stores import BROKEN
from handmade_stores import HandmadeStore

from engine.codec import timer
from engine.config import MessageStoreConfig
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.inspection.waiting import find_waiting
from engine.inspection.where.evidence import where
from engine.mapped.disk import RealDisk
from engine.patching.apply import apply_patches
from engine.patching.patches import PatchList
from engine.repair.repair import Repair
from engine.repair.timer_state import repair_timers
from engine.rules.findings import Finding
from engine.times import local_time_text

FILE_BYTES = 520
DAY_MS = 86_400_000


def with_timers(root: Path) -> tuple[HandmadeStore, int]:
    """Store seven timer messages: 0 and 3 were delivered, 1 is overdue, 2 was recalled by 5, 4 and 6 are not due.
    Return the store, and the time in ms at its begin.
    """
    store = HandmadeStore()
    start = store.time
    for number, delay in enumerate((1000, 2000, 90_000, 3000, 80_000, 90_000, 3 * DAY_MS)):
        more = {"REAL_TOPIC": "Orders", "TIMER_OUT_MS": str(start + delay)}
        if number == 5:
            more["TIMER_DEL_UNIQKEY"] = "Orders+K2"
        store.put("rmq_sys_wheel_timer", 0, more=more, unique=f"K{number}")
    for number in (0, 3):
        more = {"TIMER_OUT_MS": str(start)}
        store.put("Orders", 0, more=more, unique=f"K{number}", step=4000)
    store.put("Orders", 0, step=60_000 - 8000)
    store.write(root, index=False)
    (root / "config").mkdir()
    check_file = timer.TimerCheck(start // 1000 * 1000 + 60_000, 0, 99, 99, 5, 6, 7)
    (root / "config" / "timercheck").write_bytes(check_file.encoded())
    return store, start


def mended(root: Path, config: MessageStoreConfig | None = None) -> Repair | None:
    with open_store(root, config) as store:
        repair = repair_timers(store, [item for item in check(store) if isinstance(item, Finding)])
    if repair is not None:
        apply_patches(root, PatchList(repair.patches), RealDisk())
    return repair


def units(root: Path) -> list[timer.TimerLogUnit]:
    found = []
    for file in sorted((root / "timerlog").iterdir()):
        items = timer.walk(file.read_bytes(), int(file.name))
        found += [item for item in items if isinstance(item, timer.TimerLogUnit)]
    return found


def timer_check(root: Path) -> timer.TimerCheck:
    return timer.decode_check((root / "config" / "timercheck").read_bytes())


def test_a_unit_is_written_for_each_message_that_waits(tmp_path):
    root = tmp_path / "store"
    store, start = with_timers(root)
    (root / "timerlog").mkdir()
    (root / "timerlog" / f"{0:020d}").write_bytes(bytes(FILE_BYTES))
    (root / "timerwheel").write_bytes(bytes(640))
    repair = mended(root)
    assert "3 messages that wait, and none of the others again" in repair.gains
    assert (repair.costs, repair.certainty) == ("", "certain")
    assert not (root / "timerwheel").exists()
    found = units(root)
    assert [file.name for file in (root / "timerlog").iterdir()] == [f"{FILE_BYTES:020d}"]
    by_offset = {unit.offset: number for number, unit in enumerate(store.units)}
    assert [by_offset[unit.physical_offset] for unit in found] == [1, 4, 6]
    now = store.time // 1000 * 1000
    assert [unit.due - now for unit in found][0] == 0
    assert found[1].due == start + 80_000
    assert found[2].words == ["roll"]
    assert found[2].delay == 2 * DAY_MS
    assert timer_check(root) == timer.TimerCheck(now, 0, 7, 7, 5, 6, 7)
    with open_store(root) as opened:
        assert not {item.id for item in check(opened) if isinstance(item, Finding)} & {"TM01", "TM03", "TM04", "TM05"}


def test_where_and_waiting_know_that_a_mended_timer_delivers_what_is_overdue(tmp_path):
    """The timer log has it in the slot that is read next. Both said that the timer had passed over it for good."""
    root = tmp_path / "store"
    store, _ = with_timers(root)
    (root / "timerlog").mkdir()
    (root / "timerlog" / f"{0:020d}").write_bytes(bytes(FILE_BYTES))
    assert mended(root) is not None
    with open_store(root) as opened:
        rows = find_waiting(opened, kinds=("timer",)).rows
        assert [(row.unique_key, row.state) for row in rows] == [
            ("K1", "overdue"),
            ("K4", "waiting"),
            ("K6", "waiting"),
        ]
        (answer,) = where(opened, "rmq_sys_wheel_timer/0/1")
        assert answer.verdict == "delayed"
        last_start = local_time_text(store.time // 1000 * 1000 + timer.CATCH_UP_SLOTS * 1000)
        assert f"a broker that starts later than {last_start} passes over it" in [row.holds for row in answer.evidence]


def test_a_start_goes_on_behind_the_last_message_although_it_was_delivered(tmp_path):
    """It takes the place in the queue from the last unit of the timer log."""
    root = tmp_path / "store"
    store = HandmadeStore()
    for number, delay in enumerate((80_000, 1000)):
        more = {"REAL_TOPIC": "Orders", "TIMER_OUT_MS": str(store.time + delay)}
        store.put("rmq_sys_wheel_timer", 0, more=more, unique=f"K{number}")
    store.put("Orders", 0, more={"TIMER_OUT_MS": "1"}, unique="K1", step=5000)
    store.write(root, index=False)
    (root / "config").mkdir()
    check_file = timer.TimerCheck(store.time, 0, 99, 99, 0, 0, 0)
    (root / "config" / "timercheck").write_bytes(check_file.encoded())
    assert mended(root, MessageStoreConfig(mapped_file_size_timer_log=FILE_BYTES)) is not None
    waiting, last = units(root)
    assert waiting.physical_offset == store.units[0].offset
    assert last.physical_offset == store.units[1].offset
    assert last.due < timer_check(root).last_read_time <= waiting.due


def test_without_a_known_file_size_the_timer_reads_its_queue_again(tmp_path):
    """A broker does not start with a timer log of another file size than its own."""
    root = tmp_path / "store"
    with_timers(root)
    repair = mended(root)
    assert not (root / "timerlog").exists()
    assert timer_check(root).queue_offset == 1
    assert repair.costs.startswith("3 messages may be delivered again")


def test_rows_in_a_rocksdb_stay(tmp_path):
    store = HandmadeStore()
    store.put()
    root = store.write(tmp_path / "store")
    BROKEN["TM06"](root, store)
    assert mended(root) is None


def test_a_damaged_file_of_another_length_does_not_give_the_length(tmp_path):
    """The new files got the length of the damaged first file, and the real store of 5.5.1 did not load."""
    root = tmp_path / "store"
    with_timers(root)
    (root / "timerlog").mkdir()
    (root / "timerlog" / f"{0:020d}").write_bytes(bytes(FILE_BYTES + 76))
    (root / "timerlog" / f"{FILE_BYTES:020d}").write_bytes(bytes(FILE_BYTES))
    assert mended(root, MessageStoreConfig(mapped_file_size_timer_log=FILE_BYTES)) is not None
    assert {file.stat().st_size for file in (root / "timerlog").iterdir()} == {FILE_BYTES}


def test_without_a_configuration_the_names_of_the_files_give_the_length(tmp_path):
    root = tmp_path / "store"
    with_timers(root)
    (root / "timerlog").mkdir()
    for number, size in enumerate((FILE_BYTES + 76, FILE_BYTES)):
        (root / "timerlog" / f"{number * FILE_BYTES:020d}").write_bytes(bytes(size))
    assert mended(root) is not None
    assert {file.stat().st_size for file in (root / "timerlog").iterdir()} == {FILE_BYTES}
