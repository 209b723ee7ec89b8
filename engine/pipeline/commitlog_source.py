"""``rocketmq-commitlog``: a row for each unit of the logs of one store, or of many (see :mod:`engine.pipeline.schema`).

Options: ``path`` (a store, or a pattern of stores), ``broker`` (the name for all of them), ``splitBytes`` (what a task
reads, 256 MiB), ``crc`` (false leaves bodies unchecked), ``body`` (true adds it), ``blanks`` (true gives them rows),
``columns`` (names with commas between: only these are decoded, as with a schema that is given), ``queues`` (false: they
spare no reading).

Conditions on topic, queueId, queueOffset, physicalOffset and storeTimestamp leave parts of the logs unread
(:mod:`engine.pipeline.pruning`), those on store and broker whole logs; together with those on other numbers they leave
rows undecoded. What is left unread is told in Spark's log. Where a query names a few columns, ``columns`` or a schema
says so to the format: Spark itself drops the others only after they were decoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from engine.pipeline import filters, schema, splits
from engine.pipeline.options import NOTHING, LogOptions, Parts, grouped, tell
from engine.pipeline.pruning import needed
from engine.pipeline.rows import rows_of
from engine.pipeline.splits import SplitPlan
from engine.pipeline.workers import settling

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceStreamReader, Filter
    from pyspark.sql.types import StructType

NAME = "rocketmq-commitlog"


class CommitLogSource(DataSource):
    """The format ``rocketmq-commitlog``, to be read at once or followed."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.asked = LogOptions(options)

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        """The columns that are asked for, as Spark reads them."""
        return schema.ddl(self.asked.columns)

    def reader(self, schema: StructType) -> CommitLogReader:
        """A reader of the columns of ``schema``."""
        return CommitLogReader(self.asked, schema.names)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        """A reader that follows the logs."""
        from engine.pipeline.stream_source import CommitLogStream

        return CommitLogStream(self.asked, schema.names)


class CommitLogReader(DataSourceReader):
    """Plans and reads the splits."""

    def __init__(self, asked: LogOptions, names: Sequence[str]) -> None:
        self.asked = asked
        self.columns = schema.chosen(schema.UNIT, names)
        self.conditions: list[filters.Condition] = []

    def pushFilters(self, filters_: list[Filter]) -> Iterable[Filter]:  # noqa: N802  Spark's name
        """Take note of the conditions that spare work; Spark tests all of them again on the rows that come."""
        self.conditions = filters.conditions(filters_)
        return filters_

    def partitions(self) -> Sequence[InputPartition]:
        """One for each task; what is left unread goes to Spark's log."""
        plan = self.plan()
        tell(NAME, plan.skipped)
        return grouped(plan.splits, self.asked.split_bytes) or [NOTHING]

    def plan(self) -> SplitPlan:
        """The splits that can hold what is asked for."""
        stores = filters.of_stores(self.conditions, self.asked.stores())
        want = needed(stores, filters.want(self.conditions), self.asked.queues)
        return splits.plan(stores, self.asked.split_bytes, want)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition as Arrow batches."""
        assert isinstance(partition, Parts)
        return settling(rows_of(partition.parts, self.columns, self.asked, self.conditions))
