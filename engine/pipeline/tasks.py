"""Splits as Spark tasks: which splits a task reads, the data frame of the tasks' results, and the check that tasks see
the stores that the driver listed. A log that they do not see would look damaged everywhere.

A task gets its splits as one small pickled value and returns Arrow batches. Only these pass through the JVM.

Tasks carried out in this process, one after the other, for jobs so small that Spark would take longer to start.

The functions are those that Spark's workers run. A :class:`LocalRunner` replaces a Spark session. It has only what jobs
use of one: accumulators, broadcast values and the status of jobs.
"""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from engine.errors import CannotRead
from engine.pipeline.files import StorePlace
from engine.pipeline.progress import Cancelled
from engine.pipeline.spark_internals.worker_process import settling
from engine.pipeline.storage import storage_of
from engine.sentences import sentence

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from engine.pipeline.progress import Counter
    from engine.pipeline.splits import Split


TASK_BYTES = 512 << 20
"""Maximum bytes of the splits of a task that has several."""
MAX_TASKS = 20_000
"""Maximum number of tasks of a stage, unless there are more cores: the driver keeps a record of each task."""
TASKS_PER_CORE = 2
"""Minimum number of tasks for each core, so that one slow task does not leave the other cores idle."""
Work = Callable[[Sequence[Any]], Iterable["pa.RecordBatch"]]


def size_of(split: Split) -> int:
    """Return the number of bytes of a split."""
    return max(split.stop - split.start, 0)


def share_out(splits: Sequence[Split], cores: int, task_bytes: int = TASK_BYTES) -> list[list[Split]]:
    """Return the splits of each task, in the order of the files: about equal bytes, never more tasks than splits.

    The larger of two tasks a core and ``task_bytes`` a task, up to :data:`MAX_TASKS`, decides how many there are.
    """
    total = sum(map(size_of, splits))
    tasks = max(1, min(len(splits), max(cores * TASKS_PER_CORE, min(-(-total // task_bytes), MAX_TASKS))))
    shares: list[list[Split]] = [[]]
    filled, assigned = 0, 0
    for number, split in enumerate(splits):
        goal = (total - assigned) / (tasks - len(shares) + 1)
        remaining = len(splits) - number
        if (
            shares[-1]
            and len(shares) < tasks
            and (filled + size_of(split) / 2 > goal or remaining <= tasks - len(shares))
        ):
            assigned += filled
            filled = 0
            shares.append([])
        shares[-1].append(split)
        filled += size_of(split)
    return [share for share in shares if share]


def join_splits(splits: Iterable[Split]) -> Iterator[Split]:
    """Join splits that follow one another in a file: the items in them are the same, and no cut has to be found.

    For tasks that give no row a split. Most of the time of a cut goes into its anchor, 16 ms each.
    """
    previous: Split | None = None
    for split in splits:
        if previous is not None and (previous.path, previous.stop) == (split.path, split.start):
            previous = dataclasses.replace(previous, stop=split.stop, gap_to=split.gap_to)
            continue
        if previous is not None:
            yield previous
        previous = split
    if previous is not None:
        yield previous


def splits_by_store(splits: Sequence[Split], paths: Sequence[str]) -> list[list[Split]]:
    """Return the splits of each store, by its path, in their order."""
    by_path: dict[str, list[Split]] = {path: [] for path in paths}
    for split in splits:
        if split.store in by_path:
            by_path[split.store].append(split)
    return [by_path[path] for path in paths]


def run_tasks(
    spark: SparkSession | LocalRunner, shares: Sequence[Sequence[Any]], work: Work, schema: str
) -> DataFrame | Any:
    """Run one task for each share. Return the rows of the batches that ``work`` yields for its splits, with ``schema``.

    ``work`` travels to the tasks: a function of a module, or a :func:`functools.partial` of one. The shares travel as
    the chunks of an Arrow table, of which Java makes a partition each: a task then needs one Python process, not two.
    """
    if isinstance(spark, LocalRunner):
        return spark.over(shares, work)
    import pyarrow as pa

    chunks = [pa.array([pickle.dumps(list(share))], pa.binary()) for share in shares]
    frame = spark.createDataFrame(pa.table({"splits": pa.chunked_array(chunks, pa.binary())}))
    return frame.mapInArrow(_Task(work), schema)


class _Task:
    """The function that runs in a worker."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in settling(batches):
            for packed in batch.column(0).to_pylist():
                yield from self._work(pickle.loads(packed))  # noqa: S301  our own driver packed it


def count_splits(counter: Counter | None, splits: Sequence[Split], units: int) -> None:
    """Tell the driver what a task has walked."""
    if counter is not None:
        counter.add(units, sum(map(size_of, splits)))


MAX_CHECKED_FOLDERS = 16
"""Number of folders that each task looks for: usually all of a fleet lie on one disk."""
MAX_CHECK_TASKS = 64
_seen: set[tuple[str, str]] = set()
"""Applications, each with a folder that its executors see."""


def check_visible(spark: SparkSession, stores: Iterable[StorePlace]) -> None:
    """Raise :class:`CannotRead` with the first log that a task on some executor does not see; asked once a session."""
    context = spark.sparkContext
    application = str(context.applicationId)
    folders = [folder for store in stores for folder in store.log_folders][:MAX_CHECKED_FOLDERS]
    folders = [folder for folder in folders if (application, folder) not in _seen]
    if not folders:
        return
    tasks = max(1, min(context.defaultParallelism, MAX_CHECK_TASKS))
    unseen = context.parallelize(range(tasks), tasks).mapPartitions(partial(_unseen, folders)).collect()
    missing = set(unseen)
    for folder in folders:
        if folder in missing:
            raise CannotRead(sentence("executors do not see it: stores lie where all machines see them"), file=folder)
        _seen.add((application, folder))


def _unseen(folders: Sequence[str], _: Iterable[int]) -> Iterator[str]:
    for folder in folders:
        storage, local = storage_of(folder)
        try:
            if not storage.is_folder(local):
                yield folder
        except CannotRead:
            yield folder


@dataclass(slots=True)
class LocalAccumulator:
    """A sum that tasks add to."""

    value: int

    def add(self, amount: int) -> None:
        """Add an amount."""
        self.value += amount


@dataclass(frozen=True, slots=True)
class LocalBroadcast:
    """A value that all tasks have."""

    value: Any

    def unpersist(self) -> None:
        """Do nothing: the value was not sent anywhere."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The batches of all tasks."""

    batches: list[pa.RecordBatch]

    def toArrow(self) -> Rows:  # noqa: N802  Spark's name
        """Return the batches, which are Arrow already."""
        return self

    def to_batches(self) -> list[pa.RecordBatch]:
        """Return the batches as the tasks gave them."""
        return self.batches

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return all rows."""
        return [row for batch in self.batches for row in batch.to_pylist()]


class LocalRunner:
    """Replaces a Spark session, its context and its status tracker: everything runs in this process."""

    defaultParallelism = 1  # noqa: N815  Spark's name

    def __init__(self) -> None:
        self._stages: list[SimpleNamespace] = []
        self._cancelled = False

    @property
    def sparkContext(self) -> LocalRunner:  # noqa: N802  Spark's name
        """This object."""
        return self

    def over(self, shares: Sequence[Sequence[Any]], work: Callable[[Sequence[Any]], Iterable[pa.RecordBatch]]) -> Rows:
        """Return the results of ``work`` for each share. Raises :class:`Cancelled` where it was stopped between two."""
        stage = SimpleNamespace(
            name="tasks", numTasks=len(shares), numCompletedTasks=0, numActiveTasks=1, numFailedTasks=0
        )
        self._stages.append(stage)
        batches: list[pa.RecordBatch] = []
        for share in shares:
            if self._cancelled:
                raise Cancelled(sentence("stopped; nothing was left behind"))
            batches += work(share)
            stage.numCompletedTasks += 1
        stage.numActiveTasks = 0
        return Rows(batches)

    def accumulator(self, value: int) -> LocalAccumulator:
        """Return a sum that begins with ``value``."""
        return LocalAccumulator(value)

    def broadcast(self, value: Any) -> LocalBroadcast:
        """Return ``value`` as a broadcast for all tasks."""
        return LocalBroadcast(value)

    def cancelAllJobs(self) -> None:  # noqa: N802  Spark's name
        """Start no further task."""
        self._cancelled = True

    def statusTracker(self) -> LocalRunner:  # noqa: N802  Spark's name
        """This object."""
        return self

    def getJobIdsForGroup(self, _group: None) -> Sequence[int]:  # noqa: N802  Spark's name
        """Return one job for each run of tasks."""
        return range(len(self._stages))

    def getJobInfo(self, number: int) -> SimpleNamespace:  # noqa: N802  Spark's name
        """Return the job, which has one stage."""
        return SimpleNamespace(stageIds=[number])

    def getStageInfo(self, number: int) -> SimpleNamespace:  # noqa: N802  Spark's name
        """Return the progress."""
        return self._stages[number]
