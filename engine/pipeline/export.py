"""Units as rows for files that other programs read: Parquet by topic and day, CSV, or JSON lines.

A task walks its splits, applies the filter, masks, and yields rows. Spark writes them as text; this module writes
Parquet. The columns are those of the ``unit`` record and ``propertiesRaw``: the property text byte for byte, because
without it the unit cannot be rebuilt. ``day`` is the UTC day of the store time. Damage, blanks and units with another
physical offset than their position give no rows.

Parquet: each task writes its own files by topic and day, and the driver moves them into place. Rows that pass through
the JVM to Spark's own writer cost three times as much as reading and writing them. So a task writes with pyarrow into a
folder of its attempt and returns only that folder's name. Attempts that Spark gave up, or ran twice, are not returned
and are deleted with the folder they are in. The result has the form of an export by Spark:
``topic=…/day=…/part-*.parquet``, with names escaped as Hive does it, and ``_SUCCESS`` when it is complete.

JSON lines and CSV can also be written in this process: the same texts as those of Spark's own writers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from engine.codec.columns import UNIT, UnitColumns
from engine.codec.topic_table import TopicTable
from engine.codec.unit_fields import FIELDS, NUMBERS, OF_RECORDS
from engine.codec.unit_scan import Damage
from engine.pipeline import tasks, unit_texts
from engine.pipeline.unit_texts import TopicTexts
from engine.query.filter import Filter
from engine.rules.masking import Masking

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from engine.pipeline.progress import Counter
    from engine.pipeline.splits import Split

CSV: dict[str, Any] = {"escape": '"', "ignoreLeadingWhiteSpace": False, "ignoreTrailingWhiteSpace": False}
"""Quotes are doubled, as most programs want them, and blanks around a text are kept."""
DAY_MS = 86_400_000
BATCH_BYTES = 16 << 20
"""Bytes of units in one batch of rows: a task holds about three times as much."""
_PLACES = ("store", "broker")
_MASKED = {"propertiesRaw", *(field.name for field in FIELDS if field.masked)}
_LATEST_MS = 253_402_300_799_999

_NOT_EXPORTED = {"file", "bodySha256", "body", "physicalOffsetField"}
COLUMNS: tuple[tuple[str, str], ...] = (
    ("store", "string"),
    ("broker", "string"),
    ("file", "string"),
    *((field.name, field.spark) for field in OF_RECORDS if field.name not in _NOT_EXPORTED),
    ("propertiesRaw", "binary"),
    ("body", "binary"),
    ("day", "string"),
)
"""Name and Spark's type of every column of an export."""
SCHEMA = ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS)


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """The options of an export and its masking; sent to the tasks."""

    where: Filter | None = None
    mask: Masking | None = None


def arrow_schema() -> pa.Schema:
    """Return :data:`COLUMNS` as Arrow's schema."""
    import pyarrow as pa

    text = pa.string()
    nested = {"map<string,string>": pa.map_(text, text), "array<string>": pa.list_(text)}
    kinds = {"string": text, "bigint": pa.int64(), "int": pa.int32(), "binary": pa.binary()}
    return pa.schema([(name, nested.get(kind) or kinds[kind]) for name, kind in COLUMNS])


def exported_rows(
    spark: SparkSession, splits: Sequence[Split], options: ExportOptions | None = None, counter: Counter | None = None
) -> DataFrame:
    """Return the rows of ``splits``; an empty frame if there are none."""
    cores = spark.sparkContext.defaultParallelism
    work = partial(_task, options or ExportOptions(), counter)
    return tasks.run_tasks(spark, tasks.share_out(splits, cores), work, SCHEMA)


def write_text(rows: DataFrame, folder: str, kind: str) -> None:
    """Write ``rows`` below ``folder``, which Spark makes, as lines of ``json`` or ``csv``."""
    if kind == "json":
        rows.write.option("ignoreNullFields", "false").json(folder, mode="errorifexists")
    else:
        csv_columns(rows).write.csv(folder, mode="errorifexists", header=True, emptyValue="", **CSV)


def csv_columns(rows: DataFrame) -> DataFrame:
    """Return columns that a line of CSV can hold: properties as JSON, keys with spaces between, bytes in base64."""
    from pyspark.sql import functions as F  # noqa: N812  as everywhere

    columns = {
        "properties": F.to_json("properties"),
        "keys": F.array_join("keys", " "),
        "propertiesRaw": F.base64("propertiesRaw"),
        "body": F.base64("body"),
    }
    return rows.select(*(columns[name].alias(name) if name in columns else F.col(name) for name, _ in COLUMNS))


def _task(options: ExportOptions, counter: Counter | None, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
    units = 0
    for batch in rows_of(splits, options, counter):
        units += batch.num_rows
        yield batch
    tasks.count_splits(counter, splits, units)


def rows_of(
    splits: Iterable[Split], options: ExportOptions, counter: Counter | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``splits`` that the options ask for, masked; ``counter`` counts damage."""
    from engine.pipeline.splits import read_split

    for split in tasks.join_splits(splits):
        topics = TopicTable()
        names = TopicTexts(topics)
        for block in read_split(split, topics=topics):
            if isinstance(block, UnitColumns):
                rows = select_rows(block, topics, options.where, _name_of(split.path))
                for part in _parts(block, rows):
                    yield mask_batch(batch_of(block, part, names, split), options.mask)
            elif isinstance(block, Damage) and counter is not None:
                (counter.leave_out if block.unread else counter.step_over)(block.size)


def select_rows(block: UnitColumns, topics: TopicTable, where: Filter | None, file: str) -> npt.NDArray[np.intp]:
    """The rows of a block that are units of this place (no left-overs in a reused file) and that the filter takes."""
    current_rows = np.flatnonzero((block["kind"] == UNIT) & (block["physical_offset"] == block["offset"]))
    return current_rows if where is None else where.on_blocks(topics, lambda _: file).rows(block, current_rows)


def _parts(block: UnitColumns, rows: npt.NDArray[np.intp]) -> Iterator[npt.NDArray[np.intp]]:
    """Yield rows in pieces of about :data:`BATCH_BYTES`."""
    if not len(rows):
        return
    piece = np.cumsum(block.size[rows], dtype=np.int64) // BATCH_BYTES
    yield from np.split(rows, np.flatnonzero(np.diff(piece)) + 1)


def batch_of(block: UnitColumns, rows: npt.NDArray[np.intp], names: TopicTexts, split: Split) -> pa.RecordBatch:
    """Return the rows of a block as Arrow columns; the block may be reused afterwards."""
    import pyarrow as pa

    raw = unit_texts.raw_properties(block, rows)
    property_texts, hosts = unit_texts.texts(raw), unit_texts.hosts(block, rows)
    columns: dict[str, pa.Array] = {
        "topic": names.of(block, rows),
        "bornHost": hosts.born,
        "storeHost": hosts.stored,
        "offsetMsgId": hosts.ids,
        "crc": unit_texts.crc_words(block, rows),
        "properties": property_texts.properties,
        "tags": property_texts.tags,
        "keys": property_texts.keys,
        "uniqueKey": property_texts.unique_key,
        "propertiesRaw": raw,
        "body": unit_texts.bodies(block, rows),
        "day": days_of(block.store_timestamp[rows]),
    }
    constants = {"store": split.store, "broker": split.broker, "file": _name_of(split.path)}
    shape = arrow_schema()
    arrays = []
    for kind in shape:
        column = NUMBERS.get(kind.name)
        if column is not None:
            arrays.append(pa.array(getattr(block, column)[rows], kind.type))
        elif kind.name in constants:
            arrays.append(pa.repeat(pa.scalar(constants[kind.name], kind.type), len(rows)))
        else:
            arrays.append(columns[kind.name])
    return pa.RecordBatch.from_arrays(arrays, schema=shape)


def days_of(times: npt.NDArray[np.int64]) -> pa.Array:
    """Return :func:`day_of` each time."""
    import pyarrow as pa

    numbers, places = np.unique(times // DAY_MS, return_inverse=True)
    return pa.array([day_of(number * DAY_MS) for number in numbers.tolist()], pa.string()).take(pa.array(places))


def day_of(ms: int) -> str:
    """Return the UTC day of a time; ``0000-00-00`` if no calendar has it."""
    return _day(ms // DAY_MS) if 0 <= ms <= _LATEST_MS else "0000-00-00"


_days: dict[int, str] = {}


def _day(number: int) -> str:
    text = _days.get(number)
    if text is None:
        text = _days[number] = datetime.fromtimestamp(number * 86_400, UTC).date().isoformat()
    return text


def mask_batch(batch: pa.RecordBatch, mask: Masking | None) -> pa.RecordBatch:
    """Return the rows masked; ``propertiesRaw`` is null then, because it would reveal everything."""
    if mask is None or not mask.any:
        return batch
    import pyarrow as pa

    def rule(name: str, value: Any) -> Any:
        if name == "propertiesRaw" or value is None:
            return None
        if name == "properties":
            return list(mask.property_values(dict(value)).items())
        return mask.pseudonym("store", value) if name in _PLACES else mask.value(name, value)

    arrays = []
    for kind, column in zip(batch.schema, batch.columns, strict=True):
        if kind.name in _MASKED or (kind.name in _PLACES and mask.hosts):
            arrays.append(pa.array([rule(kind.name, value) for value in column.to_pylist()], kind.type))
        else:
            arrays.append(column)
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def _name_of(path: str) -> str:
    return path.rsplit("/", 1)[-1]
