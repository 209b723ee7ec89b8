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

import base64
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from engine.codec.columns import UNIT, UnitColumns
from engine.codec.topic_table import TopicTable
from engine.codec.unit_fields import FIELDS, NUMBERS, OF_RECORDS
from engine.codec.unit_scan import Damage
from engine.errors import CannotRead, StoreError
from engine.pipeline import tasks, unit_texts
from engine.pipeline.unit_texts import TopicTexts
from engine.query.filter import Filter
from engine.rules.masking import Masking

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from engine.pipeline.progress import Counter
    from engine.pipeline.splits import Split
    from engine.pipeline.tasks import LocalRunner


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
    """:data:`COLUMNS` for Arrow."""
    import pyarrow as pa

    text = pa.string()
    nested = {"map<string,string>": pa.map_(text, text), "array<string>": pa.list_(text)}
    kinds = {"string": text, "bigint": pa.int64(), "int": pa.int32(), "binary": pa.binary()}
    return pa.schema([(name, nested.get(kind) or kinds[kind]) for name, kind in COLUMNS])


def exported_rows(
    spark: SparkSession, splits: Sequence[Split], options: ExportOptions | None = None, counter: Counter | None = None
) -> DataFrame:
    """The rows of ``splits``; an empty frame where there are none."""
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
    """Rows in pieces of about :data:`BATCH_BYTES`."""
    if not len(rows):
        return
    piece = np.cumsum(block.size[rows], dtype=np.int64) // BATCH_BYTES
    yield from np.split(rows, np.flatnonzero(np.diff(piece)) + 1)


def batch_of(block: UnitColumns, rows: npt.NDArray[np.intp], names: TopicTexts, split: Split) -> pa.RecordBatch:
    """The rows of a block as Arrow columns; nothing of the block is kept."""
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
    """:func:`day_of` of each time."""
    import pyarrow as pa

    numbers, places = np.unique(times // DAY_MS, return_inverse=True)
    return pa.array([day_of(number * DAY_MS) for number in numbers.tolist()], pa.string()).take(pa.array(places))


def day_of(ms: int) -> str:
    """The UTC day of a time; ``0000-00-00`` where no calendar has it."""
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
        raise StoreError("expected what a task wrote: executors need to see the same folder", file=str(folder))
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
    :class:`StoreError` where something cannot be written.
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
        raise StoreError(f"cannot be written: {reason}", file=str(folder)) from error
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
    """The files that one task writes; those used last are open."""

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


_NAMES: Final = tuple(name for name, _ in COLUMNS)
_BASE64_LINE_CHARS: Final = 76
_QUOTED: Final = frozenset(',"\r\n')


def write_texts(
    runner: LocalRunner, splits: Sequence[Split], options: ExportOptions, folder: Path, kind: str, counter: Counter
) -> None:
    """Write the rows of ``splits`` below ``folder``, a file of ``json`` or ``csv`` for each share of them.

    Raises :class:`StoreError` where something cannot be written.
    """
    shares = tasks.share_out(splits, runner.defaultParallelism)
    runner.over(shares, partial(_text_files_task, options, folder, kind, counter))
    (folder / SUCCESS_FILE).touch()


def _text_files_task(
    options: ExportOptions, folder: Path, kind: str, counter: Counter, splits: Sequence[Split]
) -> Iterable[pa.RecordBatch]:
    units = 0
    path = folder / f"part-{sum(1 for _ in folder.iterdir()):05d}.{kind}"
    line = LINES[kind]
    try:
        with path.open("x", encoding="utf-8", newline="") as file:
            if kind == "csv":
                file.write(",".join(_NAMES) + "\n")
            for batch in rows_of(splits, options, counter):
                units += batch.num_rows
                file.writelines(map(line, batch.to_pylist()))
    except CannotRead:
        raise
    except OSError as error:
        raise StoreError(f"cannot be written: {error.strerror}", file=str(path)) from error
    tasks.count_splits(counter, splits, units)
    return ()


def _json(row: dict[str, Any]) -> str:
    fields: dict[str, Any] = {
        name: _base64(value) if isinstance(value, bytes) else value for name, value in row.items()
    }
    if fields["properties"] is not None:
        fields["properties"] = dict(fields["properties"])
    return _text(fields) + "\n"


def _csv(row: dict[str, Any]) -> str:
    return ",".join(_cell(row[name]) for name in _NAMES) + "\n"


def _cell(value: Any) -> str:
    """Return a CSV cell: properties as JSON, keys with spaces between, bytes in base64 with Spark's line breaks, and an
    empty cell for null.
    """
    match value:
        case None:
            return ""
        case bytes():
            encoded = _base64(value)
            text = "\r\n".join(
                encoded[position : position + _BASE64_LINE_CHARS]
                for position in range(0, len(encoded), _BASE64_LINE_CHARS)
            )
        case list():
            is_map = bool(value) and isinstance(value[0], tuple)
            text = _text(dict(value)) if is_map else " ".join(value)
        case _:
            text = str(value)
    return '"' + text.replace('"', '""') + '"' if _QUOTED & set(text) else text


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


LINES: Final[dict[str, Callable[[dict[str, Any]], str]]] = {"json": _json, "csv": _csv}
