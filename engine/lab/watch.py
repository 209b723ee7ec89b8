"""Samples of a running store: positions, rates since the previous sample, flushes, services."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from engine.lab.samples import FlushMark, PositionSample, Rates, ServiceState
from engine.message_store import MessageStore
from engine.sentences import sentence
from engine.services.flush import FlushRecord
from engine.services.status import Activity, read_activity
from engine.store.positions import Positions
from engine.store.running_flags import DISK_FULL

_MILLION = 1_000_000


class StoreWatch:
    """Samples ``store`` for one reader: rates and flushes are those since this reader's previous sample.

    ``statuses`` returns the number of messages by put status. ``disk_bytes`` is the simulated size of the store's disk,
    0 for its real size.
    """

    def __init__(self, store: MessageStore, statuses: Callable[[], Mapping[str, int]], disk_bytes: int = 0) -> None:
        self._store = store
        self._disk_bytes = disk_bytes
        self._statuses = statuses
        self._previous: PositionSample | None = None
        self._activity: Activity | None = None
        self._sampled_ns = 0
        self._moved: dict[str, tuple[int, int]] = {}  # service → ms since 1970, amount

    def sample(self) -> PositionSample:
        """Sample the store now."""
        store = self._store
        positions, activity = store.positions(), read_activity(store.parts, store.services)
        now_ns, now = time.perf_counter_ns(), time.time_ns() // _MILLION
        statuses = dict(self._statuses())
        previous, old_activity = self._previous, self._activity
        newest = old_activity.flushes[-1].number if old_activity is not None and old_activity.flushes else 0
        flushes = tuple(_mark(flushed) for flushed in activity.flushes if flushed.number > newest)
        rates = Rates()
        if previous is not None and old_activity is not None and now_ns > self._sampled_ns:
            rates = _rates(previous, positions, statuses, activity, old_activity, (now_ns - self._sampled_ns) / 1e9)
        self._note_moved(activity, now)
        self._previous = PositionSample(
            now,
            positions,
            rates,
            statuses,
            flushes,
            self._states(positions, activity),
            activity.last_file,
            activity.file_size,
            self._trouble(),
        )
        self._activity, self._sampled_ns = activity, now_ns
        return self._previous

    def _trouble(self) -> str:
        flags = self._store.flags
        if flags.bits & DISK_FULL and self._disk_bytes:
            gib = self._disk_bytes / (1 << 30)
            return sentence(
                "{why}; this lab's disk seems to have {gib:,.1f} GiB, and old files go with the next cleaning",
                why=flags.why,
                gib=gib,
            )
        return flags.why

    def _note_moved(self, activity: Activity, now: int) -> None:
        """Note when a counted value last changed, as exactly as the samples allow."""
        old_activity = self._activity
        if old_activity is None:
            return
        for name, old_value, new_value in (
            ("reput", old_activity.dispatched_units, activity.dispatched_units),
            ("clean", old_activity.deleted_files, activity.deleted_files),
            ("queues", old_activity.dirty_queues, activity.dirty_queues),
        ):
            moved = old_value - new_value if name == "queues" else new_value - old_value
            if moved > 0:
                self._moved[name] = now, moved

    def _states(self, positions: Positions, activity: Activity) -> dict[str, ServiceState]:
        states = {}
        for name, service in activity.services.items():
            last_ms, moved = self._moved.get(name, (None, 0))
            unit, waiting, waiting_bytes = "rounds", None, None
            if name == "flush":
                unit, waiting = "bytes", positions.waiting
                waiting_bytes = max(positions.committed - positions.flushed, 0)
                if activity.flushes:
                    newest = activity.flushes[-1]
                    last_ms, moved = newest.finished_ns // _MILLION, newest.bytes
            elif name == "commit":
                unit, waiting_bytes = "bytes", max(positions.wrote - positions.committed, 0)
                if activity.committed[0]:
                    last_ms, moved = activity.committed[0] // _MILLION, activity.committed[1]
            elif name == "reput":
                unit, waiting_bytes = "units", positions.behind
            elif name == "queues":
                unit, waiting = "queues", activity.dirty_queues
            elif name == "clean":
                unit = "files"
            else:
                moved = service.rounds
            states[name] = ServiceState(service.paused, waiting_bytes, last_ms, moved, unit, waiting)
        return states


def _mark(flushed: FlushRecord) -> FlushMark:
    return FlushMark(
        flushed.number,
        flushed.finished_ns // _MILLION,
        flushed.to_offset,
        flushed.bytes,
        flushed.duration_ns / 1e6,
        flushed.waiters,
    )


def _rates(
    previous: PositionSample,
    positions: Positions,
    statuses: Mapping[str, int],
    activity: Activity,
    old_activity: Activity,
    seconds: float,
) -> Rates:
    old = previous.positions

    def rate(now: int, then: int) -> float:
        return max(now - then, 0) / seconds

    flushes = activity.flushes[-1].number if activity.flushes else 0
    flushes_before = old_activity.flushes[-1].number if old_activity.flushes else 0
    return Rates(
        messages=rate(statuses.get("PUT_OK", 0), previous.statuses.get("PUT_OK", 0)),
        wrote=rate(positions.wrote, old.wrote),
        committed=rate(positions.committed, old.committed),
        flushed=rate(positions.flushed, old.flushed),
        dispatched=rate(activity.dispatched_units, old_activity.dispatched_units),
        flushes=rate(flushes, flushes_before),
    )
