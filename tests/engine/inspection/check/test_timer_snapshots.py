"""The timer wheel in snapshots (``timerWheelSnapshotFlush``): which one a start takes, and what it lacks.

The store is one of a real broker. ``README.md`` beside it says what the broker did with copies of it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import agree
import pytest

from engine.codec import timer
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.inspection.timer_wheel import wheel_infos
from engine.rules.findings import Finding

pytestmark = pytest.mark.golden
NEWEST, OLDER = "timerwheel.3276", "timerwheel.2184"
WAITING = 40
SIZES = (
    "mappedFileSizeTimerLog=1040\nmappedFileSizeCommitLog=1048576\nmappedFileSizeConsumeQueue=6000\n"
    "maxHashSlotNum=100\nmaxIndexNum=400\n"
)


@pytest.fixture
def store(golden, tmp_path) -> Path:
    """Copy the store; the wheels are links until a test replaces one."""
    root = tmp_path / "store"
    shutil.copytree(golden("wheel-snapshots-5.5.1"), root, ignore=shutil.ignore_patterns("timerwheel*"))
    for name in ("timerwheel", NEWEST, OLDER):
        (root / name).symlink_to(golden("wheel-snapshots-5.5.1") / name)
    return root


def replace_wheel(root: Path, name: str, size: int = timer.WHEEL_SIZE) -> None:
    """Put a wheel without any message in the place of ``name``."""
    (root / name).unlink(missing_ok=True)
    with (root / name).open("wb") as file:
        file.truncate(size)


def findings_of(root: Path, *options: str) -> list[dict]:
    return [record for record in agree.records_of("check", root, *options) if record["type"] == "finding"]


def test_the_newest_snapshot_is_taken_and_has_the_waiting_messages(store):
    with open_store(store) as opened:
        older, newest = wheel_infos(opened)
        *findings, summary = check(opened)
    assert (older.name, older.is_taken) == (OLDER, False)
    assert (newest.name, newest.position, newest.messages, newest.is_taken) == (NEWEST, 3276, WAITING, True)
    assert findings == []
    assert summary.complete
    _, out, _ = agree.command("info", store)
    assert f"{NEWEST}: 40 messages wait; a start with timerWheelSnapshotFlush=true takes it" in out


def test_positions_are_compared_as_numbers(store):
    """The name with the highest text was called the snapshot that counts."""
    replace_wheel(store, "timerwheel.52")
    with open_store(store) as opened:
        assert [wheel.is_taken for wheel in wheel_infos(opened)] == [False, False, True]
        assert [item for item in check(opened) if isinstance(item, Finding)] == []


def test_a_snapshot_that_lacks_waiting_messages_is_reported(store):
    replace_wheel(store, NEWEST)
    (finding,) = findings_of(store)
    assert (finding["id"], finding["severity"], Path(finding["file"]).name) == ("TM03", "error", NEWEST)
    assert finding["evidence"]["messages"] == WAITING
    assert "mv STORE/timerwheel.[0-9]* STORE.wheels/" in finding["command"].replace(str(store), "STORE")


def test_a_start_without_the_setting_reads_the_other_wheel(store, tmp_path):
    (tmp_path / "broker.conf").write_text("timerWheelSnapshotFlush=false\n" + SIZES)
    (finding,) = findings_of(store, "--config", str(tmp_path / "broker.conf"))
    assert (finding["id"], Path(finding["file"]).name) == ("TM03", "timerwheel")
    assert finding["evidence"]["beforeRebuilt"] == 18  # a real broker had 22 of 40 then


def test_a_snapshot_of_another_length_stops_a_start_with_the_setting(store, tmp_path):
    replace_wheel(store, NEWEST, 100)
    for setting, blockers in (("true", 1), ("false", 0)):
        (tmp_path / "broker.conf").write_text(f"timerWheelSnapshotFlush={setting}\n{SIZES}")
        _, out, _ = agree.command("recover", store, "--plan", "--config", tmp_path / "broker.conf")
        assert out.count(f"{NEWEST}: expected 38,707,200 bytes, found 100") == blockers
