"""Timers whose queue, log, wheel and ``timercheck`` contradict each other. Each state is built in a broker's own
store.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from broken_stores import timer_message_passed_over
from handmade_stores import HandmadeStore
from planted_faults import patch

from engine.codec import timer
from engine.codec.message import Unit
from engine.config import MessageStoreConfig
from engine.inspection.check.timer import findings
from engine.inspection.findings import check
from engine.inspection.log_reader import LogReader
from engine.inspection.snapshot import open_store
from engine.inspection.where.evidence import where
from engine.rules.findings import Finding, at_least
from engine.system_names import TIMER_TOPIC
from engine.times import local_time_text, time_text

pytestmark = pytest.mark.golden
WAITING = 5
"""Messages that wait in the store: due after the broker was closed."""


@pytest.fixture(scope="module")
def wheel(golden) -> tuple[int, list[tuple[int, bytes]]]:
    """Return the length of a broker's wheel, and its nonzero slots with their numbers."""
    data = (golden("broker-pop") / "timerwheel").read_bytes()
    return len(data), [(number, slot.encoded()) for number, slot in timer.used_slots(data)]


@pytest.fixture
def store(golden, wheel, tmp_path) -> Path:
    """Copy a broker's store with timers. Only the nonzero part of the wheel is written."""
    source, root = golden("broker-pop"), tmp_path / "store"
    shutil.copytree(source, root, ignore=shutil.ignore_patterns("timerwheel"))
    length, slots = wheel
    with (root / "timerwheel").open("wb") as file:
        file.truncate(length)
        for number, slot in slots:
            file.seek(number * timer.SLOT_SIZE)
            file.write(slot)
    return root


def findings_of(root: Path, least: str = "warn") -> list[Finding]:
    with open_store(root) as opened:
        return [
            finding for finding in check(opened) if isinstance(finding, Finding) and at_least(finding.severity, least)
        ]


def checked(root: Path) -> timer.TimerCheck:
    return timer.decode_check((root / "config" / "timercheck").read_bytes())


def timer_log(root: Path) -> Path:
    return root / "timerlog" / f"{0:020d}"


def units(root: Path) -> list[timer.TimerLogUnit]:
    return [unit for unit in timer.walk(timer_log(root).read_bytes(), 0) if isinstance(unit, timer.TimerLogUnit)]


def first_waiting(root: Path) -> timer.TimerLogUnit:
    return next(unit for unit in units(root) if unit.due >= checked(root).last_read_time)


def test_a_brokers_own_timers_are_healthy(store):
    assert sum(unit.due >= checked(store).last_read_time for unit in units(store)) == WAITING
    assert findings_of(store, "note") == []


def test_a_count_ahead_of_the_queue_is_a_warning_if_the_timer_log_has_the_right_one(store):
    patch(store / "config" / "timercheck", 16, struct.pack(">q", 9000))
    (finding,) = findings_of(store)
    assert (finding.id, finding.severity, finding.offset) == ("TM01", "warn", 16)
    assert (finding.evidence["expected"], finding.evidence["found"]) == (369, 9000)
    assert "A start uses the timer log instead, which ends with message 368" in finding.message
    run(finding)
    assert checked(store).queue_offset == 369
    assert findings_of(store, "note") == []


def run(finding: Finding) -> None:
    assert finding.command is not None
    subprocess.run(finding.command, shell=True, check=True, capture_output=True)


def test_a_count_ahead_of_the_queue_is_an_error_without_a_timer_log(store):
    patch(store / "config" / "timercheck", 16, struct.pack(">q", 9000))
    shutil.rmtree(store / "timerlog")
    observed = {finding.id: finding for finding in findings_of(store)}
    assert observed["TM01"].severity == "error"


@pytest.mark.parametrize("how", ["gone", "empty"])
def test_without_timercheck_all_timers_are_read_again(how, store):
    file = store / "config" / "timercheck"
    file.unlink() if how == "gone" else file.write_bytes(b"")
    (finding,) = findings_of(store)
    assert (finding.id, finding.severity) == ("TM01", "warn")
    assert "reads all 369 timer messages again" in finding.message


def test_a_waiting_unit_that_leads_elsewhere_is_never_delivered(store):
    unit = first_waiting(store)
    with open_store(store) as opened:
        other_unit = next(iter(opened.units()))
    patch(timer_log(store), unit.offset + 28, struct.pack(">q", other_unit.offset))
    (finding,) = findings_of(store)
    assert (finding.id, finding.severity, finding.file, finding.offset) == (
        "TM02",
        "error",
        str(timer_log(store)),
        unit.offset,
    )
    assert f"where a unit of {other_unit.topic} is (due 2026-" in finding.message
    assert finding.evidence["messages"] == 1


def test_a_delivered_unit_that_leads_elsewhere_is_a_note(store):
    patch(timer_log(store), units(store)[3].offset + 28, struct.pack(">q", 1))
    (finding,) = findings_of(store, "note")
    assert (finding.id, finding.severity) == ("TM02", "note")


def test_waiting_messages_that_the_log_has_deleted_are_counted(store, monkeypatch):
    least = first_waiting(store).physical_offset + 1
    monkeypatch.setattr(LogReader, "min_offset", property(lambda _: least))
    with open_store(store) as opened:
        (finding,) = (item for item in findings(opened) if item.id == "TM02")
    assert (finding.severity, finding.evidence["messages"]) == ("error", 1)
    assert (
        finding.message
        == "The log has deleted messages that wait for their time (messages: 1): they are never delivered"
    )


@pytest.mark.parametrize("how", ["gone", "empty", "zero"])
def test_a_lost_timer_log_loses_the_waiting_messages(how, store):
    waiting = [unit for unit in units(store) if unit.due >= checked(store).last_read_time]
    if how == "gone":
        shutil.rmtree(store / "timerlog")
    else:
        timer_log(store).write_bytes(b"" if how == "empty" else bytes(102_400))
    (finding,) = findings_of(store)
    assert (finding.id, finding.severity) == ("TM03", "error")
    assert finding.evidence["messages"] == len(waiting) == WAITING
    assert "messages that are not due yet are never delivered (5)" in finding.message
    with open_store(store) as opened:
        queue = opened.queue("rmq_sys_wheel_timer", 0)
        assert queue is not None
        places = {queue.entry(number).physical_offset for number in finding.evidence["queueOffsets"]}
    assert places == {unit.physical_offset for unit in waiting}
    run(finding)
    assert checked(store).queue_offset == finding.evidence["firstQueueOffset"]


@pytest.mark.parametrize("how", ["gone", "zero"])
def test_a_lost_wheel_is_rebuilt_by_the_next_start(how, store):
    wheel = store / "timerwheel"
    wheel.unlink()
    if how == "zero":
        with wheel.open("wb") as file:
            file.truncate(timer.WHEEL_SIZE)
    (finding,) = findings_of(store, "note")
    assert (finding.id, finding.severity) == ("TM03", "note")
    assert "messages wait there for their time (5)" in finding.message
    assert "the next start of RocketMQ 5.3.3 rebuilds it" in finding.message


def split_timer_log(root: Path) -> int:
    """Split the timer log into files of 20 units and a blank, the first waiting unit in front; return their size."""
    data, size, units_per_file = timer_log(root).read_bytes(), 1108, 20
    saved_units = units(root)
    shutil.rmtree(root / "timerlog")
    (root / "timerlog").mkdir()
    first_waiting_unit, *other_units = sorted(saved_units, key=lambda unit: unit.due < checked(root).last_read_time)
    ordered_units = [first_waiting_unit, *reversed(other_units)]
    runs = [ordered_units[start : start + units_per_file] for start in range(0, len(ordered_units), units_per_file)]
    for number, run_ in enumerate(runs):
        raw = b"".join(data[unit.offset : unit.offset + timer.UNIT_SIZE] for unit in run_)
        blank = struct.pack(">iqI", size - len(raw), 0, 0xCBD43194)
        (root / "timerlog" / f"{number * size:020d}").write_bytes((raw + blank).ljust(size, b"\0"))
    patch(root / "config" / "timercheck", 8, struct.pack(">q", len(runs) * size))
    return size


def test_a_wheel_is_rebuilt_from_at_most_two_files(store):
    split_timer_log(store)
    (store / "timerwheel").unlink()
    finding = next(item for item in findings_of(store) if "wheel" in item.message)
    assert (finding.id, finding.severity, finding.evidence["beforeRebuilt"]) == ("TM03", "error", 1)
    run(finding)
    assert checked(store).flush_position == 0


@pytest.mark.parametrize("lost_file", [0, 2])
def test_a_lost_file_in_front_of_the_end_loses_the_messages_in_it(store, lost_file):
    """A start goes on behind the last unit of the timer log, so it did not read these messages again, and check was
    silent. After a broker that did not close, too.
    """
    (store / "abort").touch()
    size = split_timer_log(store)
    before = [item.evidence.get("messages") for item in findings_of(store) if (item.id, item.kind) == ("TM03", "log")]
    (store / "timerlog" / f"{lost_file * size:020d}").unlink()
    after = [item for item in findings_of(store) if (item.id, item.kind) == ("TM03", "log")]
    assert before == []
    assert [(item.severity, item.evidence["messages"]) for item in after] == ([] if lost_file else [("error", 1)])


def test_no_finding_while_a_broker_moves_the_timers(store, monkeypatch):
    shutil.rmtree(store / "timerlog")
    monkeypatch.setattr("engine.inspection.snapshot.lock_state", lambda *_: "held")
    assert not [finding for finding in findings_of(store, "note") if finding.id.startswith("TM")]


def test_a_time_that_the_wheel_has_not_reached_is_an_error(store):
    """The timer of a real 5.3.3 whose timercheck was ten minutes ahead did not deliver the messages due meanwhile, and
    check reported no problems. With the time of the printed command it delivered all of them.
    """
    waiting = [unit.due for unit in units(store) if unit.due >= checked(store).last_read_time]
    patch(store / "config" / "timercheck", 0, struct.pack(">q", max(waiting) + 3_600_000))
    (actual_finding,) = [finding for finding in findings_of(store) if finding.id == "TM01"]
    assert (actual_finding.severity, actual_finding.offset, actual_finding.evidence["messages"]) == (
        "error",
        0,
        WAITING,
    )
    last_start = time_text(min(waiting) + (7 * 86_400 - 60) * 1000)
    assert f"a broker that starts later than {last_start} passes over the first of them" in actual_finding.message
    assert "send them again" in actual_finding.next_step
    run(actual_finding)
    assert checked(store).last_read_time == min(waiting) // 1000 * 1000
    assert findings_of(store, "note") == []


def test_a_time_ahead_is_an_error_after_a_crash_as_well(store):
    """It was a note there, so repair left it, and a real 5.5.1 never delivered the messages."""
    (store / "abort").touch()
    patch(store / "config" / "timercheck", 0, struct.pack(">q", checked(store).last_read_time + 10**9))
    assert [(item.kind, item.severity) for item in findings_of(store) if item.id == "TM01"] == [("ahead", "error")]


def test_a_broker_that_was_idle_when_it_closed_skipped_no_message(store):
    waiting = [unit.due for unit in units(store) if unit.due >= checked(store).last_read_time]
    patch(store / "config" / "timercheck", 0, struct.pack(">q", min(waiting) - 1000))
    assert findings_of(store, "note") == []


def passed_over(root: Path) -> Finding:
    (skipped,) = [candidate for candidate in findings_of(root) if candidate.id == "TM05"]
    return skipped


def delivery(root: Path) -> tuple[Unit, Path, int]:
    """Return the first delivered timer message, its file and its position in it."""
    with open_store(root) as store:
        for item in store.units():
            if isinstance(item, Unit) and item.topic != TIMER_TOPIC and "TIMER_OUT_MS" in item.properties:
                file = store.log.sequence.find(item.offset)
                assert file is not None
                return item, Path(file.path), item.offset - file.start_offset
    raise AssertionError


def forget_delivery(root: Path) -> str:
    """Change the unique key of the first timer message where it is delivered; return the original key."""
    unit, path, position = delivery(root)
    key = unit.unique_key
    assert key is not None
    patch(path, path.read_bytes().index(key.encode(), position), bytes(reversed(key.encode())))
    return key


def test_a_message_may_have_been_delivered_where_the_log_is_damaged(store):
    unit, path, position = delivery(store)
    patch(path, position, bytes(unit.size))
    assert "TM05" not in [finding.id for finding in findings_of(store)]


def test_a_skipped_message_is_reported(store):
    """A real 5.5.1 skipped a timer message larger than its buffer. It was never delivered, not even after a restart
    with a larger buffer, and check reported no problems.
    """
    key = forget_delivery(store)
    finding = passed_over(store)
    assert (finding.severity, finding.evidence["messages"], finding.command) == ("warn", 1, None)
    assert f"The timer passed over 1 message and never delivered it: {key} for " in finding.message
    assert "send them again" in finding.next_step


def test_where_reports_that_the_timer_skipped_a_message(store):
    key = forget_delivery(store)
    with open_store(store) as opened:
        (result,) = where(opened, key)
    assert result.verdict == "passedOver"
    assert result.evidence[-1].what == "service"


@pytest.mark.parametrize("precision_ms", [1000, 500])
def test_where_names_the_last_start_that_delivers_a_waiting_message(store, precision_ms):
    """A waiting message was "delayed until then", even in a store that no broker starts within seven days of that."""
    waiting = first_waiting(store)
    last_start = waiting.due + (7 * 86_400 - 60) * precision_ms
    with open_store(store, MessageStoreConfig(timer_precision_ms=precision_ms)) as opened:
        (result,) = where(opened, str(waiting.physical_offset))
    assert result.verdict == "delayed"
    assert f"a broker that starts later than {local_time_text(last_start)} passes over it" in [
        item.holds for item in result.evidence
    ]


def test_messages_in_the_wheel_are_delivered_after_the_time_is_set_back(tmp_path):
    """No message was delivered since the first of them was due, so none is delivered twice."""
    root, handmade = tmp_path / "store", HandmadeStore()
    root.mkdir()
    timer_message_passed_over(root, handmade)
    skipped = passed_over(root)
    assert (skipped.severity, skipped.evidence["messages"]) == ("error", 1)
    assert "deliver" in skipped.next_step
    run(skipped.of_store(str(root)))
    assert checked(root).last_read_time == (handmade.time - 60_000) // 1000 * 1000 + 1000
    assert "TM05" not in [finding.id for finding in findings_of(root)]


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (
            MessageStoreConfig(max_message_size=50),
            "the timer of RocketMQ 5.4.0 reads at most 150 (maxMessageSize + 100)",
        ),
        (None, "with the default maxMessageSize the timer of RocketMQ 5.4.0 reads at most 150"),
    ],
)
def test_a_message_too_large_for_the_buffer_is_reported_with_the_limit(config, why, tmp_path, monkeypatch):
    """A real 5.4.0 with the default maxMessageSize never delivered a body of 4 MiB, and check found no problem."""
    monkeypatch.setattr(
        "engine.inspection.check.timer.MessageStoreConfig", lambda: MessageStoreConfig(max_message_size=50)
    )
    root = tmp_path / "store"
    root.mkdir()
    timer_message_passed_over(root, HandmadeStore())
    with open_store(root, config) as opened:
        finding = next(
            candidate for candidate in check(opened) if isinstance(candidate, Finding) and candidate.id == "TM05"
        )
    assert why in finding.message
    assert (finding.severity, finding.command) == ("warn", None)
    assert "aise maxMessageSize before another such message is due" in finding.next_step
