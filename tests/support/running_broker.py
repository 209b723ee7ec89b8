"""The real RocketMQ store while it writes: its acknowledgements with their times, and the rows on the screen."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from bisect import bisect_left
from pathlib import Path
from typing import Any

import peer
from PySide6.QtCore import QEvent, QObject, QTimer

from viewer.log.rows import UnitRow
from viewer.widgets.record_view import RecordView

TIMEOUT_S = 120.0


class RunningBroker:
    """``peer write --hold``: puts the plan's messages, then stays open until :meth:`stop`. ``acknowledged`` holds (end
    of the unit in the log, monotonic time at which its answer was read here), in the order of the log.
    """

    def __init__(self, folder: Path, plan: dict[str, Any], hold_ms: int, release: str = "5.3.3") -> None:
        self.store = folder / "store"
        path = folder / "plan.json"
        path.write_text(json.dumps(plan), encoding="utf-8")
        self.acknowledged: list[tuple[int, float]] = []
        self.refused = 0
        command = [
            "bash",
            str(peer.PEER),
            "-v",
            release,
            "write",
            "--store",
            str(self.store),
            "--plan",
            str(path),
            "--hold",
            str(hold_ms),
        ]
        environment = {**os.environ, "PEER_BUILD": peer.BUILD, "PEER_JVM": "-Xmx1g -XX:TieredStopAtLevel=1"}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self._reader = threading.Thread(target=self._read, name="broker", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            now = time.monotonic()
            if '"put"' not in line:
                continue
            row = json.loads(line)
            if row.get("status") == "PUT_OK" and row.get("phy", -1) >= 0:
                self.acknowledged.append((row["phy"] + row["bytes"], now))
            else:
                self.refused += 1

    def wait_for(self, count: int) -> None:
        """Wait until so many messages were acknowledged."""
        end = time.monotonic() + TIMEOUT_S
        while len(self.acknowledged) < count:
            assert self._process.poll() is None, "the broker ended"
            assert time.monotonic() < end, f"{len(self.acknowledged)} messages in {TIMEOUT_S:.0f} s"
            time.sleep(0.05)

    def stop(self) -> None:
        """Close the store cleanly."""
        if self._process.poll() is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                self._process.wait(TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self.end()

    def end(self) -> None:
        """End the process, even with messages left to put: for tests that need its store no more."""
        self._process.kill()
        self._process.wait(60)
        self._reader.join(60)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


class ScreenWatch(QObject):
    """Notes at each paint of the log's table the offset up to which units are on the screen."""

    def __init__(self, table: RecordView) -> None:
        super().__init__(table)
        self._table = table
        self.shown: list[tuple[int, float]] = []
        table.viewport().installEventFilter(self)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:  # noqa: N802 (Qt's name)
        """Note that a paint begins; it is done when the loop is back."""
        if event.type() == QEvent.Type.Paint:
            table = self._table
            top = table.verticalScrollBar().value()
            rows = table.table.rows[top : top + table.visible_rows() + 1]
            ends = [row.end for row in rows if isinstance(row, UnitRow)]
            end = max(ends, default=-1)
            if ends and (not self.shown or end > self.shown[-1][0]):
                QTimer.singleShot(0, self, lambda: self._painted(end))
        return False

    def _painted(self, end: int) -> None:
        if not self.shown or end > self.shown[-1][0]:
            self.shown.append((end, time.monotonic()))

    def latencies(self, acknowledged: list[tuple[int, float]], since: float) -> list[float]:
        """Return the seconds from each answer after ``since`` to the first paint with its unit, or a later one, on the
        screen; a unit that never came counts until now.
        """
        ends, now, results = [end for end, _ in self.shown], time.monotonic(), []
        for end, position in acknowledged:
            if position < since:
                continue
            number = bisect_left(ends, end)
            results.append(max(0.0, (self.shown[number][1] if number < len(ends) else now) - position))
        return results


def locks_held(pid: int, folder: Path) -> list[str]:
    """Return lines of the kernel's lock table in which a process locks a file of ``folder``."""
    lines = Path("/proc/locks").read_text("utf-8").splitlines()
    inodes = {path.stat().st_ino for path in (folder, *folder.rglob("*"))}
    return [line for line in lines if f" {pid} " in line and int(line.split()[-3].split(":")[-1]) in inodes]


def written_descriptors(pid: int, folder: Path) -> list[str]:
    """Return files below ``folder`` that a process has open with rights beyond reading, or mapped."""
    results = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = link.readlink()
            flags = Path(f"/proc/{pid}/fdinfo/{link.name}").read_text("utf-8")
        except OSError:
            continue
        if folder in target.parents:
            mode = int(next(line for line in flags.splitlines() if line.startswith("flags")).split()[1], 8) & 3
            if mode != os.O_RDONLY:
                results.append(str(target))
    maps = Path(f"/proc/{pid}/maps").read_text("utf-8")
    return results + [line for line in maps.splitlines() if str(folder) in line]


def plan_of(count: int, body: int = 300, pause_every: int = 0, pause_ms: int = 0) -> dict[str, Any]:
    """Return plain traffic for the peer; files of 8 MiB roll during the test."""
    return {
        "config": {"mappedFileSizeCommitLog": 8 << 20, "mappedFileSizeConsumeQueue": 20 * 30_000},
        "topics": [{"name": "Orders", "queues": 4}, {"name": "Payments", "queues": 4}],
        "body": {"min": body, "max": body},
        "keys": {"max": 1, "space": 500},
        "seed": 7,
        "count": count,
        "pauseEvery": pause_every,
        "pauseMs": pause_ms,
    }


def quantile(values: list[float], share: float) -> float:
    """Return the value below which ``share`` of them are."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0
