"""Write the rows of an export as Parquet files by topic and day, from the tasks themselves.

Each task writes its own files by topic and day, and the driver moves them into place. Rows that pass through the JVM to
Spark's own writer cost three times as much as reading and writing them. So a task writes with pyarrow into a folder of
its attempt and returns only that folder's name. Attempts that Spark gave up, or ran twice, are not returned and are
deleted with the folder they are in. The result has the form of an export by Spark: ``topic=…/day=…/part-*.parquet``,
with names escaped as Hive does it, and ``_SUCCESS`` when it is complete.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.errors import CannotRead, StoreError
from engine.pipeline import tasks
from engine.pipeline.export import ExportOptions, rows_of
from engine.sentences import sentence

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from engine.pipeline.progress import Counter
    from engine.pipeline.splits import Split
    from engine.pipeline.tasks import LocalRunner

BUFFER_BYTES: Final = 64 << 20
"""Bytes of rows that a task keeps before it writes a row group of each place it has rows for."""
MAX_OPEN_FILES: Final = 256
"""Files that a task has open at once; a place whose file was closed gets another."""
ATTEMPTS: Final = ".attempts"
SUCCESS_FILE: Final = "_SUCCESS"
NULL_FOLDER: Final = "__HIVE_DEFAULT_PARTITION__"
"""How Hive calls the place of rows without a topic."""
ONE_OF_A_KIND: Final = frozenset({"physicalOffset", "uniqueKey", "offsetMsgId", "propertiesRaw", "body", "crc"})
"""Columns in which no value comes twice: a dictionary of them would be made and thrown away."""
_UNSAFE = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{\[\]^]")


def write(
    spark: SparkSession | LocalRunner,
    splits: Sequence[Split],
    options: ExportOptions,
    folder: Path,
    counter: Counter | None = None,
) -> None:
    """Write the rows of ``splits`` below ``folder``, which is there, empty, and seen by the executors too.

    Raises :class:`StoreError` where tasks wrote to disks that this machine does not see.
    """
    attempts = folder / ATTEMPTS
    attempts.mkdir()
    shares = tasks.share_out(splits, spark.sparkContext.defaultParallelism)
    written = (
        tasks.run_tasks(spark, shares, partial(_parquet_files_task, options, str(attempts), counter), "attempt string")
        if shares
        else None
    )
    for row in written.toArrow().to_pylist() if written is not None else ():
        _put_in_place(attempts / row["attempt"], folder)
    shutil.rmtree(attempts)
    (folder / SUCCESS_FILE).touch()


def _put_in_place(attempt: Path, folder: Path) -> None:
    """Move the files of an attempt below ``folder``. Their names contain the task, so none exists already."""
    if not attempt.is_dir():
        raise StoreError(
            sentence("expected what a task wrote: executors need to see the same folder"), file=str(folder)
        )
    for file in sorted(attempt.glob("*/*/*.parquet")):
        place = folder / file.relative_to(attempt).parent
        place.mkdir(parents=True, exist_ok=True)
        file.rename(place / file.name)


def _parquet_files_task(
    options: ExportOptions, attempts: str, counter: Counter | None, splits: Sequence[Split]
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    task, attempt = _place_of_task(Path(attempts))
    name = f"{task:05d}-{attempt}"
    units = write_rows(rows_of(splits, options, counter), Path(attempts) / name, f"part-{task:05d}")
    tasks.count_splits(counter, splits, units)
    yield pa.RecordBatch.from_arrays([pa.array([name], pa.string())], names=["attempt"])


def _place_of_task(attempts: Path) -> tuple[int, int]:
    """Number and attempt of the task that Spark has begun here; without it, tasks come one after the other."""
    worker: Any = sys.modules.get("pyspark")
    context = worker.TaskContext.get() if worker is not None else None
    if context is None:
        return sum(1 for _ in attempts.iterdir()), 0
    return context.partitionId(), context.taskAttemptId()


def write_rows(batches: Iterable[pa.RecordBatch], folder: Path, name: str, buffer_bytes: int = BUFFER_BYTES) -> int:
    """Write rows as ``topic=…/day=…/NAME-….parquet`` below ``folder``, a new one; gives how many rows there were.

    At most about ``buffer_bytes`` of rows are kept, and files of :data:`MAX_OPEN_FILES` places are open. Raises
    :class:`StoreError` if something cannot be written.
    """
    rows = 0
    try:
        folder.mkdir()
        files = _Files(folder, name)
        try:
            waiting: dict[tuple[str | None, str | None], list[pa.RecordBatch]] = {}
            held_bytes = 0
            for batch in batches:
                rows += batch.num_rows
                held_bytes += batch.nbytes
                for key, part in _by_place(batch):
                    waiting.setdefault(key, []).append(part)
                if held_bytes >= buffer_bytes:
                    files.write_all(waiting)
                    held_bytes = 0
            files.write_all(waiting)
        finally:
            files.close()
    except CannotRead:
        raise
    except OSError as error:
        reason = error.strerror or str(error).partition("\n")[0]
        raise StoreError(sentence("cannot be written: {reason}", reason=reason), file=str(folder)) from error
    return rows


def _by_place(batch: pa.RecordBatch) -> Iterator[tuple[tuple[str | None, str | None], pa.RecordBatch]]:
    """Yield the rows of each topic and day, in their order, without these two columns: the folder's name holds them."""
    import pyarrow as pa

    topics, days = (batch.column(name).dictionary_encode() for name in ("topic", "day"))
    numbers = [
        np.asarray(column.indices.fill_null(-1)).astype(np.int64) + 1  # 0 is a row that has none
        for column in (topics, days)
    ]
    place = numbers[0] * (len(days.dictionary) + 1) + numbers[1]
    order = np.argsort(place, kind="stable")
    sorted_place = place[order]
    begins = np.flatnonzero(np.diff(sorted_place, prepend=-1))
    other_columns = batch.select([column for column in batch.schema.names if column not in ("topic", "day")])
    if len(begins) > 1:
        other_columns = other_columns.take(pa.array(order))
    words = [[None, *(word or None for word in column.dictionary.to_pylist())] for column in (topics, days)]
    for begin, end in zip(begins, [*begins[1:], len(order)], strict=True):
        topic, day = divmod(int(sorted_place[begin]), len(days.dictionary) + 1)
        yield (words[0][topic], words[1][day]), other_columns.slice(begin, end - begin)


class _Files:
    """The files that one task writes; the ones used last are open."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._open: dict[tuple[str | None, str | None], Any] = {}
        self._made: dict[tuple[str | None, str | None], int] = {}

    def write_all(self, waiting: dict[tuple[str | None, str | None], list[pa.RecordBatch]]) -> None:
        """Write a row group of each topic and day, and release its rows."""
        import pyarrow as pa

        while waiting:
            key = next(iter(waiting))
            self._writer(key, waiting[key][0].schema).write_table(pa.Table.from_batches(waiting.pop(key)))

    def _writer(self, key: tuple[str | None, str | None], schema: pa.Schema) -> Any:
        """The writer of a place; it is the last in the order from now on."""
        from pyarrow.parquet import ParquetWriter

        writer = self._open.pop(key, None)
        if writer is None:
            if len(self._open) >= MAX_OPEN_FILES:
                self._open.pop(next(iter(self._open))).close()
            number = self._made.get(key, 0)
            self._made[key] = number + 1
            place = self._folder / f"topic={hive_name(key[0])}" / f"day={hive_name(key[1])}"
            place.parent.mkdir(exist_ok=True)
            place.mkdir(exist_ok=True)
            dictionary = [column for column in schema.names if column not in ONE_OF_A_KIND]
            writer = ParquetWriter(
                place / f"{self._name}-{number}.parquet", schema, compression="snappy", use_dictionary=dictionary
            )
        self._open[key] = writer
        return writer

    def close(self) -> None:
        """Write the ends of all files."""
        while self._open:
            self._open.popitem()[1].close()


def hive_name(value: str | None) -> str:
    """Escape a value as the name of a folder, as Hive and Spark do."""
    if not value:
        return NULL_FOLDER
    return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", value)
