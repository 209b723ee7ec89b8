"""``rocketmq-commitlog``: a row for each unit of the logs of one store, or of many (see :mod:`engine.pipeline.schema`).

Options: ``path`` (a store, or a pattern of stores), ``broker`` (the name for all of them), ``splitBytes`` (what a task
reads, 256 MiB), ``crc`` (false leaves bodies unchecked), ``body`` (true adds it), ``blanks`` (true gives them rows),
``columns`` (names with commas between: only these are decoded, as with a schema that is given), ``queues`` and
``times`` (what is believed to spare reading, see below), ``unreadable`` (``row``: a store, a folder or a file that
cannot be read is a row of the type ``damage`` with the reason, and the others are read; ``fail``: the read fails).

Conditions leave parts of the logs unread (:mod:`engine.pipeline.pruning`) and rows undecoded, and change nothing in
what comes: those on physicalOffset, store and broker by themselves, those on topic, queueId and queueOffset where the
entries of all queues tile a stretch of the log and each of its units says itself that it is another's (``queues`` is
``prove``). What a wrong entry, or a clock that was set back, would hide is behind options that say so. ``queues`` as
``trust``: entries that tile a stretch are believed. ``times`` as ``trust``: files are in the order of the clock, and
conditions on storeTimestamp pass over whole files. With ``queues`` as ``off`` no queue is looked at. Only columns that
a query needs are decoded, and bodies are held against their CRC only where it needs ``crc``
(:mod:`engine.pipeline.insides.one_read_each`). What is left unread is told in Spark's log and by ``explain()``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from engine.pipeline import filters, schema, splits
from engine.pipeline.files import Unread
from engine.pipeline.insides.worker_process import in_one_line, settling
from engine.pipeline.options import LogOptions, Parts, partitions, tell, words
from engine.pipeline.part_source import unread_row
from engine.pipeline.pruning import needed
from engine.pipeline.schema import UNIT, given
from engine.pipeline.splits import SplitPlan
from engine.pipeline.unit_rows import needs_crc, rows_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceStreamReader
    from pyspark.sql.types import StructType

NAME = "rocketmq-commitlog"


class PlainLogReader(DataSourceReader):
    """Plans and reads the splits."""

    def __init__(self, asked: LogOptions, names: Iterable[str]) -> None:
        self.asked = asked
        self.columns = schema.chosen(schema.UNIT, names)
        self.conditions: list[filters.Condition] = []

    @in_one_line
    def partitions(self) -> Sequence[InputPartition]:
        """One for each task; what is left unread goes to Spark's log."""
        plan = self.plan()
        tell(NAME, plan.skipped)
        crc = needs_crc(self.columns, self.asked, self.conditions)
        told = words(self.columns, self.conditions, plan.splits, plan.skipped, crc)
        return partitions([*plan.unread, *plan.splits], self.asked.split_bytes, told)

    def plan(self) -> SplitPlan:
        """The splits that can hold what is asked for."""
        stores = filters.of_stores(self.conditions, self.asked.stores())
        want = needed(stores, filters.want(self.conditions), self.asked.trust)
        return splits.plan(stores, self.asked.split_bytes, want, without_unread=not self.asked.fails)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition as Arrow batches."""
        assert isinstance(partition, Parts)
        parts = [part for part in partition.parts if not isinstance(part, Unread)]
        unread = (unread_row(self.columns, part) for part in partition.parts if isinstance(part, Unread))
        return settling(itertools.chain(unread, rows_of(parts, self.columns, self.asked, self.conditions)))


class CommitLogReader(filters.Pushed, PlainLogReader):
    """Is handed conditions too."""


class CommitLogSource(DataSource):
    """The format ``rocketmq-commitlog``, to be read at once or followed."""

    READER: ClassVar[type[PlainLogReader]] = CommitLogReader

    @in_one_line
    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.asked = LogOptions(options)

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        """The columns that are asked for, as Spark reads them."""
        return schema.ddl(self.asked.columns)

    @in_one_line
    def reader(self, schema: StructType) -> PlainLogReader:
        """A reader of the columns of ``schema``."""
        return self.READER(self.asked, given(UNIT, schema))

    @in_one_line
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        """A reader that follows the logs."""
        from engine.pipeline.stream_source import CommitLogStream

        return CommitLogStream(self.asked, given(UNIT, schema))


class PlainCommitLogSource(CommitLogSource):
    """The format where Spark has no place for :mod:`engine.pipeline.insides.one_read_each`."""

    READER = PlainLogReader
