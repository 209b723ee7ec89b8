"""Progress of a job on Spark, reported while it runs, and the way to stop it.

A :class:`Watch` is around the actions of one job. A thread asks Spark's status tracker for stages and tasks and tells a
callback, a few times a second and only where something changed; the tasks themselves count units and bytes into
accumulators, which the driver learns of as each task ends. Stopping cancels what runs on the cluster: the action then
ends with :class:`Cancelled`, and what was staged is removed by the ``with`` around it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from engine.errors import StoreError
from engine.sentences import sentence

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_INTERVAL_S = 0.25
"""Seconds between two looks."""
JOIN_TIMEOUT_S = 5.0


class Cancelled(StoreError):
    """The job was stopped before its end; its staged files are removed."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of a job: ``done`` of ``tasks`` have ended, ``failed`` were tried again."""

    number: int
    name: str
    done: int
    tasks: int
    running: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a job: ``step`` describes the current step; units and bytes are those of tasks that have ended.

    ``total_bytes`` is 0 if it is not known.
    """

    job: str
    step: str
    stages: tuple[Stage, ...]
    units: int
    bytes: int
    total_bytes: int
    seconds: float

    @property
    def done(self) -> int:
        """The number of tasks that have ended."""
        return sum(stage.done for stage in self.stages)

    @property
    def tasks(self) -> int:
        """The number of tasks of all known stages."""
        return sum(stage.tasks for stage in self.stages)

    @property
    def failed(self) -> int:
        """The number of tasks that were tried again."""
        return sum(stage.failed for stage in self.stages)

    @property
    def units_per_second(self) -> float:
        """Units of ended tasks per second of the step so far."""
        return self.units / self.seconds if self.seconds > 0 else 0.0

    def record(self) -> dict[str, Any]:
        """Return the ``progress`` record, from which another program draws its progress bar."""
        return {
            "type": "progress",
            "job": self.job,
            "step": self.step,
            "stages": [
                {
                    "stage": s.number,
                    "name": s.name,
                    "done": s.done,
                    "tasks": s.tasks,
                    "running": s.running,
                    "triedAgain": s.failed,
                }
                for s in self.stages
            ],
            "done": self.done,
            "tasks": self.tasks,
            "units": self.units,
            "bytes": self.bytes,
            "totalBytes": self.total_bytes,
            "unitsPerSecond": round(self.units_per_second),
            "seconds": round(self.seconds, 3),
        }


OnProgress = Callable[[Progress], None]


@dataclass(slots=True)
class Counter:
    """Counters of tasks, on the driver and, as its copy, in every task."""

    units: Any
    bytes: Any
    damaged: Any
    damage: Any
    unread: Any

    def add(self, units: int, size: int) -> None:
        """Add what a task has read."""
        self.units.add(units)
        self.bytes.add(size)

    def step_over(self, size: int) -> None:
        """Add damage of ``size`` bytes that a task does not yield."""
        self.damaged.add(1)
        self.damage.add(size)

    def leave_out(self, size: int) -> None:
        """Add ``size`` bytes that a task could not read and does not yield."""
        self.unread.add(size)


@dataclass(slots=True)
class _Step:
    name: str = ""
    total_bytes: int = 0
    begun: float = field(default_factory=time.monotonic)
    stages: dict[int, Stage] = field(default_factory=dict)


class Watch:
    """Watches the jobs of one session from ``with`` to its end; ``tell`` is called from the watching thread."""

    def __init__(
        self, spark: SparkSession, job: str, tell: OnProgress | None = None, poll_interval_s: float = POLL_INTERVAL_S
    ) -> None:
        self._context = spark.sparkContext
        self._job, self._tell, self._poll_interval_s = job, tell, poll_interval_s
        self._step = _Step()
        self._over = threading.Event()
        self._cancelled = threading.Event()
        self._thread: threading.Thread | None = None
        self._last: Progress | None = None
        self._failed = 0
        self._tasks = 0
        self._known: set[int] = set()
        self.counter = Counter(*(self._context.accumulator(0) for _ in range(5)))

    def __enter__(self) -> Self:
        self._known = set(self._context.statusTracker().getJobIdsForGroup(None))
        if self._tell is not None:
            self._thread = threading.Thread(target=self._run, name=f"progress of {self._job}", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Report nothing from now on."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(JOIN_TIMEOUT_S)
            self._look()

    def step(self, name: str, total_bytes: int = 0) -> None:
        """Name the step that begins now. Raises :class:`Cancelled` where the job was stopped."""
        self.check()
        self._look()
        self._failed += sum(stage.failed for stage in self._step.stages.values())
        self._tasks += sum(stage.done for stage in self._step.stages.values())
        self._known.update(self._context.statusTracker().getJobIdsForGroup(None))
        self._step = _Step(name, total_bytes)

    def cancel(self) -> None:
        """Stop everything that runs; from any thread. The action that waits ends with an error soon."""
        self._cancelled.set()
        self._context.cancelAllJobs()

    def check(self) -> None:
        """Raise :class:`Cancelled` if the job was stopped."""
        if self._cancelled.is_set():
            raise Cancelled(sentence("stopped; nothing was left behind"))

    @property
    def cancelled(self) -> bool:
        """Return True if the job was stopped."""
        return self._cancelled.is_set()

    @property
    def units(self) -> int:
        """The number of units that ended tasks have walked."""
        return int(self.counter.units.value)

    @property
    def tried_again(self) -> int:
        """Tasks that failed and were tried again, in all steps."""
        self._look()
        return self._failed + sum(stage.failed for stage in self._step.stages.values())

    @property
    def tasks(self) -> int:
        """Tasks that have ended, in all steps."""
        self._look()
        return self._tasks + sum(stage.done for stage in self._step.stages.values())

    def now(self) -> Progress:
        """Return the current progress."""
        step = self._step
        stages = tuple(step.stages[number] for number in sorted(step.stages))
        seconds = time.monotonic() - step.begun
        walked = int(self.counter.bytes.value)
        return Progress(self._job, step.name, stages, self.units, walked, step.total_bytes, seconds)

    def _run(self) -> None:
        while not self._over.wait(self._poll_interval_s):
            self._look()
            now = self.now()
            if self._tell is not None and now.stages and _differs(now, self._last):
                self._last = now
                self._tell(now)

    def _look(self) -> None:
        """Ask the status tracker; a stopped context gives no more answers."""
        step = self._step
        try:
            tracker = self._context.statusTracker()
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(None) if job not in self._known]
            numbers = {number for job in jobs if job is not None for number in job.stageIds}
            for number in numbers:
                info = tracker.getStageInfo(number)
                if info is not None and info.numTasks:
                    step.stages[number] = Stage(
                        number,
                        _short(info.name),
                        info.numCompletedTasks,
                        info.numTasks,
                        info.numActiveTasks,
                        info.numFailedTasks,
                    )
        except Exception:  # noqa: BLE001  py4j's errors of a gateway that is gone: the action itself raises them
            return


def _short(name: str) -> str:
    """Return ``toArrow`` of a call: the action, without its place."""
    return name.partition(" at ")[0]


def _differs(now: Progress, reported: Progress | None) -> bool:
    return reported is None or (now.stages, now.units, now.step) != (reported.stages, reported.units, reported.step)
