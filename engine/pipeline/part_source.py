"""Shared code of the formats of queue and index files: parts of files as tasks, their rows as batches, damage as a
row.

A format is a :class:`PartSource` with its name, its columns and its reader; a reader is a :class:`PartReader` that
lists the parts of a store and reads one. A part is a small value with ``store``, ``broker``, ``path`` and the bytes
[``start``, ``stop``) of the file.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter, InputPartition

from engine.errors import CannotRead, UsageError
from engine.pipeline import filters, schema
from engine.pipeline.files import StorePlace, Unread
from engine.pipeline.filters import QueryLimits
from engine.pipeline.options import Options, Parts, describe_read, make_partitions, report_skipped
from engine.pipeline.schema import user_columns
from engine.pipeline.spark_internals.worker_process import in_one_line, settling
from engine.pipeline.splits import SkippedRange
from engine.sentences import plural, sentence

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

NO_WRITER = sentence("this format is read only: 'storescope pipeline import' makes a store of an export")
BATCH_ROWS = 1 << 16
"""Entries of one batch."""


class PartReader(DataSourceReader):
    """Plans and reads parts of files."""

    NAME: ClassVar[str]
    COLUMNS: ClassVar[schema.Columns]

    def __init__(self, options: Options, names: Iterable[str]) -> None:
        self.read_options = options
        self.columns = schema.select_columns(self.COLUMNS, names)
        self.conditions: list[filters.Condition] = []

    @abstractmethod
    def parts_of(self, store: StorePlace, limits: QueryLimits, skipped: list[SkippedRange]) -> Iterable[Any]:
        """Return the parts that can hold what the query asks for, 16 MiB at most each, and :class:`Unread` for what
        cannot be read; others are put into ``skipped``. Raises :class:`CannotRead`.
        """

    @abstractmethod
    def rows_of(self, part: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one part."""

    @in_one_line
    def partitions(self) -> Sequence[InputPartition]:
        """Return one partition for each task; bytes that are left unread are reported in Spark's log."""
        limits = filters.plan_limits(self.conditions)
        skipped: list[SkippedRange] = []
        stores = filters.select_stores(self.conditions, self.read_options.stores())
        parts = [part for store in stores for part in self._parts(store, limits, skipped)]
        report_skipped(self.NAME, skipped)
        return make_partitions(
            parts,
            self.read_options.split_bytes,
            describe_read(self.columns, self.conditions, parts, skipped, crc=False),
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition as Arrow batches."""
        assert isinstance(partition, Parts)
        return settling(batch for part in partition.parts for batch in self._rows(part))

    def _parts(self, store: StorePlace, limits: QueryLimits, skipped: list[SkippedRange]) -> list[Any]:
        parts: list[Any] = []
        try:
            parts.extend(self.parts_of(store, limits, skipped))
        except CannotRead as error:
            parts.append(Unread.of(store, error))
        if self.read_options.fails:
            for part in parts:
                if isinstance(part, Unread):
                    raise part.error
        return parts

    def _rows(self, part: Any) -> Iterator[pa.RecordBatch]:
        if isinstance(part, Unread):
            yield unread_row(self.columns, part)
        else:
            yield from self.rows_of(part)


class PartSource(DataSource):
    """A format of parts."""

    READER: ClassVar[type[PartReader]]

    @in_one_line
    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.read_options = Options(options, self.READER.COLUMNS)

    @classmethod
    def name(cls) -> str:
        return cls.READER.NAME

    def schema(self) -> str:
        """Return the requested columns as Spark's schema."""
        return schema.ddl(self.read_options.columns)

    @in_one_line
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: ARG002
        """Refuse: these formats are only read."""
        raise UsageError(NO_WRITER)

    @in_one_line
    def reader(self, schema: StructType) -> PartReader:
        """Return a reader of the columns of ``schema``."""
        return self.READER(self.read_options, user_columns(self.READER.COLUMNS, schema))


def whole(
    part: Any,
    batches: Iterable[pa.RecordBatch],
    columns: schema.Columns,
    entry: int,
    named: dict[str, Any],
    fail: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The batches of a part with entries of ``entry`` bytes; behind them a row of the type ``damage``, with ``named``
    beside it, where the file is gone or shorter than it was. With ``fail`` raises :class:`CannotRead` instead.
    """
    reason: str | None = None
    done = 0
    try:
        for batch in batches:
            done += batch.num_rows
            yield batch
        missing = part.stop - part.start - done * entry
        if missing > 0:
            reason = plural(
                "the file was cut short while it was read: {n:,} byte is missing",
                "the file was cut short while it was read: {n:,} bytes are missing",
                n=missing,
            )
    except CannotRead as error:
        reason = str(error)
        if fail:
            raise
    if reason is not None:
        if fail:
            raise CannotRead(reason, file=part.path)
        yield damage_batch(columns, reason, named)


def unread_row(columns: schema.Columns, part: Unread) -> pa.RecordBatch:
    """Return the row for a store, a folder or a file that could not even be listed."""
    return damage_batch(columns, str(part.error), {"store": part.store, "broker": part.broker})


def damage_batch(columns: schema.Columns, reason: str, named: dict[str, Any]) -> pa.RecordBatch:
    """Return the row for a file that cannot be read."""
    return schema.one_row(columns, {"type": "damage", "reason": reason, **named})


def batch_of(columns: schema.Columns, values: dict[str, Any], rows: int) -> pa.RecordBatch:
    """Make a batch of ``rows`` rows from values by column: arrays, or a value (none too) that is the same in every
    row.
    """
    import pyarrow as pa

    shape = schema.arrow_schema(columns)
    arrays = []
    for field in shape:
        value = values.get(field.name)
        if isinstance(value, str | int | None):
            arrays.append(pa.repeat(pa.scalar(value, field.type), rows))
        else:
            arrays.append(value if isinstance(value, pa.Array) else pa.array(value, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=shape)
