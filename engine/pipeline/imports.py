"""An export read back: its rows in the order of their physical offsets, each as the bytes of a unit again.

The inverse of :mod:`engine.pipeline.export`. The command line appends the units to a store; this folder writes no
store. A small export is read in this process (:func:`iter_units`), in the order in which Spark reads and sorts it.
"""

from __future__ import annotations

import base64
import csv
import json
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from engine.codec.encode import HEAD_FORMATS, HOST_BITS, host_bits, host_raw
from engine.codec.unit_fields import INSTEAD, NUMBERS, OF_BYTES, OF_RECORDS
from engine.codec.unit_flavours import BY_VERSION
from engine.errors import CannotRead, StoreError
from engine.pipeline.export import COLUMNS, CSV, SCHEMA, arrow_schema
from engine.pipeline.export_parquet import NULL_FOLDER
from engine.pipeline.spark_internals.worker_process import settling
from engine.sentences import sentence

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


_BY_LENGTH = {"size", "bodyLength"}
_IN_BYTES = {INSTEAD.get(name, name) for name, _ in OF_BYTES} - _BY_LENGTH
NEEDED = (
    "physicalOffset",
    "crc",
    *(field.name for field in OF_RECORDS if field.name in _IN_BYTES and field.name != "physicalOffset"),
    "propertiesRaw",
)
"""Columns that a unit is made of again, and its CRC's."""
_GLOB = re.compile(r"[{}\[\]*?\\]")
"""What Spark takes for a pattern in the name of a folder."""
_IN_FOLDERS = ("topic", "day")
UNITS = "physicalOffset bigint, crc string, unit binary"


def read(spark: SparkSession, folder: str, kind: str) -> DataFrame:
    """Return the rows of an export in the format ``kind``, as :data:`engine.pipeline.export.COLUMNS`."""
    folder = _GLOB.sub(r"\\\g<0>", folder)
    if kind == "parquet":
        return spark.read.schema(SCHEMA).parquet(folder)
    if kind == "json":
        return spark.read.schema(SCHEMA).json(folder)
    from pyspark.sql import functions as F  # noqa: N812  as everywhere

    written = {"properties": "string", "keys": "string", "propertiesRaw": "string", "body": "string"}
    schema = ", ".join(f"`{name}` {written.get(name, kind)}" for name, kind in COLUMNS)
    rows = spark.read.schema(schema).csv(folder, header=True, multiLine=True, **CSV)
    back = {
        "properties": F.from_json("properties", "map<string,string>"),
        "keys": F.split("keys", " "),
        "propertiesRaw": F.unbase64("propertiesRaw"),
        "body": F.unbase64("body"),
    }
    return rows.select(*(back[name].alias(name) if name in back else F.col(name) for name, _ in COLUMNS))


def check_columns(folder: str, kind: str) -> None:
    """Raise :class:`StoreError` where Parquet of an export lacks a column, or has one of another type."""
    if kind != "parquet":
        return
    from pyarrow import ArrowException
    from pyarrow.parquet import read_schema

    expected_schema = arrow_schema()
    for path in sorted(Path(folder).glob("topic=*/day=*/*.parquet")):
        try:
            schema = read_schema(path)
        except (OSError, ArrowException) as error:
            reason = str(error).partition("\n")[0]
            raise StoreError(
                sentence("expected Parquet that 'pipeline export' wrote: {reason}", reason=reason), file=str(path)
            ) from None
        for name in NEEDED:
            column_type = schema.field(name).type if name in schema.names else None
            if name not in _IN_FOLDERS and column_type != expected_schema.field(name).type:
                actual = "found none" if column_type is None else f"found {column_type}"
                raise StoreError(
                    sentence(
                        "column {name}: expected {type}, {actual}",
                        name=name,
                        type=expected_schema.field(name).type,
                        actual=actual,
                    ),
                    file=str(path),
                )


def units_of(rows: DataFrame) -> DataFrame:
    """Return ``physicalOffset``, ``crc`` and the unit's bytes, sorted by the offset."""
    return rows.select(*NEEDED).orderBy("physicalOffset").mapInArrow(_encode, UNITS)


def _encode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for batch in settling(batches):
        rows = [
            dict(zip(NEEDED, row, strict=True)) for row in zip(*(c.to_pylist() for c in batch.columns), strict=True)
        ]
        units = [unit_bytes(row) for row in rows]
        offsets, crcs = batch.column(0), batch.column(1)
        yield pa.RecordBatch.from_arrays(
            [offsets.cast(pa.int64()), crcs.cast(pa.string()), pa.array(units, pa.binary())],
            names=["physicalOffset", "crc", "unit"],
        )


def unit_bytes(row: dict[str, Any]) -> bytes:
    """Return the bytes of the unit that an exported row was made of. Raises :class:`StoreError` if there was none."""
    topic, body, text = (row["topic"] or "").encode(), row["body"] or b"", row["propertiesRaw"] or b""
    try:
        born, stored = host_raw(row["bornHost"]), host_raw(row["storeHost"])
        flags = row["sysFlag"] & ~HOST_BITS | host_bits(born, stored)
        flavour = BY_VERSION[row["version"]]
        named = flavour.topic_length.pack(len(topic)) + topic
        size = 72 + len(born) + len(stored) + len(body) + len(named) + 2 + len(text)
        head = HEAD_FORMATS[flags & HOST_BITS].pack(
            size,
            flavour.magic,
            row["bodyCRC"],
            row["queueId"],
            row["flag"],
            row["queueOffset"],
            row["physicalOffset"],
            flags,
            row["bornTimestamp"],
            born,
            row["storeTimestamp"],
            stored,
            row["reconsumeTimes"],
            row["preparedTransactionOffset"],
            len(body),
        )
        return b"".join((head, body, named, struct.pack(">H", len(text)), text))
    except (struct.error, ValueError, TypeError, AttributeError) as error:
        raise StoreError(
            sentence(
                "row with the physicalOffset {value} is no unit: {error}", value=row["physicalOffset"], error=error
            )
        ) from None


Unit = tuple[int, str, bytes]
"""Physical offset, what is known of the CRC, and the unit's bytes."""
_NUMBERS: Final = tuple(name for name in NEEDED if name in NUMBERS)
_BYTES: Final = ("body", "propertiesRaw")
_MAX_CELL_CHARS: Final = 1 << 30
_BATCH_ROWS: Final = 4096


def export_size(folder: str, kind: str) -> int:
    """Return the bytes of an export's rows, of Parquet without its compression. Raises ``OSError``, Arrow's own
    exceptions.
    """
    files = _files(Path(folder), kind)
    if kind != "parquet":
        return sum(path.stat().st_size for path in files)
    from pyarrow.parquet import read_metadata

    metadata = (read_metadata(path) for path in files)
    return sum(
        file_metadata.row_group(number).total_byte_size
        for file_metadata in metadata
        for number in range(file_metadata.num_row_groups)
    )


def iter_units(folder: str, kind: str, store: str | None, check: Callable[[], None]) -> Iterator[Unit]:
    """Yield all units of the export, or those of one store, sorted; ``check`` is called now and then, and may raise.

    Raises :class:`StoreError` for what is no row of a unit, :class:`CannotRead`.
    """
    units: list[Unit] = []
    for path in _files(Path(folder), kind):
        check()
        try:
            for row in _ROWS[kind](path):
                if store is None or row.get("store") == store:
                    units.append((row["physicalOffset"], row["crc"], unit_bytes(row)))
        except OSError as error:
            raise CannotRead(
                sentence("cannot be read: {value}", value=error.strerror or error), file=str(path)
            ) from error
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(
                sentence("expected rows of 'pipeline export': {error}", error=error), file=str(path)
            ) from error
    units.sort(key=lambda unit: unit[0])
    yield from units


def _files(folder: Path, kind: str) -> list[Path]:
    """Return the files with rows. As in Spark, names that begin with ``_`` or a dot are left out."""
    return sorted(folder.glob("topic=*/day=*/*.parquet" if kind == "parquet" else "part-*"))


def _parquet(path: Path) -> Iterator[dict[str, Any]]:
    from pyarrow.parquet import ParquetFile

    word = path.parent.parent.name.partition("=")[2]
    topic = None if word == NULL_FOLDER else unquote(word)
    with ParquetFile(path) as file:
        for batch in file.iter_batches(_BATCH_ROWS, columns=[*NEEDED, "store"]):
            for row in batch.to_pylist():
                yield row | {"topic": topic}


def _json(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            row = json.loads(line)
            yield row | {name: _raw(row[name]) for name in _BYTES}


def _csv(path: Path) -> Iterator[dict[str, Any]]:
    old_limit = csv.field_size_limit(_MAX_CELL_CHARS)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                numbers = {name: int(row[name]) for name in _NUMBERS}
                yield row | numbers | {name: _raw(row[name]) for name in _BYTES}
    finally:
        csv.field_size_limit(old_limit)


def _raw(text: str | None) -> bytes | None:
    return base64.b64decode("".join(text.split()), validate=True) if text else None


_ROWS: Final[dict[str, Callable[[Path], Iterator[dict[str, Any]]]]] = {"parquet": _parquet, "json": _json, "csv": _csv}
