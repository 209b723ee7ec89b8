"""Tasks carried out in this process, one after the other, for jobs so small that Spark would take longer to start.

The functions are those that Spark's workers run. A :class:`Here` stands where a session of Spark's stands, with as much
of it as jobs ask for: sums, values for all tasks, and what is under way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from engine.pipeline.progress import Cancelled

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(slots=True)
class Sum:
    """What tasks add up."""

    value: int

    def add(self, more: int) -> None:
        """Add ``more``."""
        self.value += more


@dataclass(frozen=True, slots=True)
class Lent:
    """A value that all tasks have."""

    value: Any

    def unpersist(self) -> None:
        """Nothing was sent anywhere."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The batches of all tasks."""

    batches: list[pa.RecordBatch]

    def toArrow(self) -> Rows:  # noqa: N802  Spark's name
        """They are Arrow already."""
        return self

    def to_batches(self) -> list[pa.RecordBatch]:
        """As the tasks gave them."""
        return self.batches

    def to_pylist(self) -> list[dict[str, Any]]:
        """All rows."""
        return [row for batch in self.batches for row in batch.to_pylist()]


class Here:
    """This process in the place of a session, its context and its status tracker."""

    defaultParallelism = 1  # noqa: N815  Spark's name

    def __init__(self) -> None:
        self._stages: list[SimpleNamespace] = []
        self._cancelled = False

    @property
    def sparkContext(self) -> Here:  # noqa: N802  Spark's name
        """Itself."""
        return self

    def over(self, shares: Sequence[Sequence[Any]], work: Callable[[Sequence[Any]], Iterable[pa.RecordBatch]]) -> Rows:
        """What ``work`` gives for each share. Raises :class:`Cancelled` where it was stopped between two."""
        stage = SimpleNamespace(
            name="tasks", numTasks=len(shares), numCompletedTasks=0, numActiveTasks=1, numFailedTasks=0
        )
        self._stages.append(stage)
        batches: list[pa.RecordBatch] = []
        for share in shares:
            if self._cancelled:
                raise Cancelled("stopped; nothing was left behind")
            batches += work(share)
            stage.numCompletedTasks += 1
        stage.numActiveTasks = 0
        return Rows(batches)

    def accumulator(self, value: int) -> Sum:
        """A sum that begins with ``value``."""
        return Sum(value)

    def broadcast(self, value: Any) -> Lent:
        """``value`` for all tasks."""
        return Lent(value)

    def cancelAllJobs(self) -> None:  # noqa: N802  Spark's name
        """Begin no further task."""
        self._cancelled = True

    def statusTracker(self) -> Here:  # noqa: N802  Spark's name
        """Itself."""
        return self

    def getJobIdsForGroup(self, _group: None) -> Sequence[int]:  # noqa: N802  Spark's name
        """A job for each time that tasks were carried out."""
        return range(len(self._stages))

    def getJobInfo(self, number: int) -> SimpleNamespace:  # noqa: N802  Spark's name
        """Each is one stage."""
        return SimpleNamespace(stageIds=[number])

    def getStageInfo(self, number: int) -> SimpleNamespace:  # noqa: N802  Spark's name
        """How far it is."""
        return self._stages[number]
