"""An export read back: its rows in the order of their physical offsets, each as the bytes of a unit again.

The way back from :mod:`engine.pipeline.export`. What appends them to a store lives above: this floor writes no store.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.codec.encode import HEADS, HOST_BITS, host_bits, host_raw
from engine.codec.unit_fields import INSTEAD, OF_BYTES, OF_RECORDS
from engine.codec.unit_flavours import BY_VERSION
from engine.errors import StoreError
from engine.pipeline.export import COLUMNS, CSV, SCHEMA, arrow_schema
from engine.pipeline.insides.worker_process import settling

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_BY_LENGTH = {"size", "bodyLength"}
_IN_BYTES = {INSTEAD.get(name, name) for name, _ in OF_BYTES} - _BY_LENGTH
NEEDED = (
    "physicalOffset", "crc",
    *(field.name for field in OF_RECORDS if field.name in _IN_BYTES and field.name != "physicalOffset"),
    "propertiesRaw",
)  # fmt: skip
"""Columns that a unit is made of again, and its CRC's."""
_GLOB = re.compile(r"[{}\[\]*?\\]")
"""What Spark takes for a pattern in the name of a folder."""
_IN_FOLDERS = ("topic", "day")
UNITS = "physicalOffset bigint, crc string, unit binary"


def read(spark: SparkSession, folder: str, kind: str) -> DataFrame:
    """The rows of an export in the format ``kind``, under the columns of :data:`engine.pipeline.export.COLUMNS`."""
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


def must_be_rows(folder: str, kind: str) -> None:
    """Raise :class:`StoreError` where Parquet of an export lacks a column, or has one of another type."""
    if kind != "parquet":
        return
    from pyarrow import ArrowException
    from pyarrow.parquet import read_schema

    wanted = arrow_schema()
    for path in sorted(Path(folder).glob("topic=*/day=*/*.parquet")):
        try:
            found = read_schema(path)
        except (OSError, ArrowException) as error:
            told = str(error).partition("\n")[0]
            raise StoreError(f"expected Parquet that 'pipeline export' wrote: {told}", file=str(path)) from None
        for name in NEEDED:
            kinds = found.field(name).type if name in found.names else None
            if name not in _IN_FOLDERS and kinds != wanted.field(name).type:
                is_now = "found none" if kinds is None else f"found {kinds}"
                raise StoreError(f"column {name}: expected {wanted.field(name).type}, {is_now}", file=str(path))


def units_of(rows: DataFrame) -> DataFrame:
    """``physicalOffset``, ``crc`` and the unit's bytes, sorted by the offset."""
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
    """The unit that a row of an export was made of, byte for byte. Raises :class:`StoreError` where it was none."""
    topic, body, text = (row["topic"] or "").encode(), row["body"] or b"", row["propertiesRaw"] or b""
    try:
        born, stored = host_raw(row["bornHost"]), host_raw(row["storeHost"])
        flags = row["sysFlag"] & ~HOST_BITS | host_bits(born, stored)
        flavour = BY_VERSION[row["version"]]
        named = flavour.topic_length.pack(len(topic)) + topic
        size = 72 + len(born) + len(stored) + len(body) + len(named) + 2 + len(text)
        head = HEADS[flags & HOST_BITS].pack(
            size, flavour.magic, row["bodyCRC"],
            row["queueId"], row["flag"], row["queueOffset"], row["physicalOffset"], flags, row["bornTimestamp"], born,
            row["storeTimestamp"], stored, row["reconsumeTimes"], row["preparedTransactionOffset"], len(body),
        )  # fmt: skip
        return b"".join((head, body, named, struct.pack(">H", len(text)), text))
    except (struct.error, ValueError, TypeError, AttributeError) as error:
        raise StoreError(f"row with the physicalOffset {row['physicalOffset']} is no unit: {error}") from None
