"""The rows of an answer as JSON lines, CSV or Parquet."""

from __future__ import annotations

import base64
import csv
import json
import math
from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO
from uuid import UUID

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.sql.store_queries import Answer


def rows(answer: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    """Yield the rows as JSON knows their values: times in ISO 8601, bytes in base64, a map as an object.

    Of two columns with the same name the second is called ``name_2``, and so on.
    """
    for batch in answer:
        names = unique_names(batch.schema.names)
        columns = [_plain_values(column) for column in batch.columns]
        for values in zip(*columns, strict=True):
            yield dict(zip(names, values, strict=True))


def unique_names(names: list[str]) -> list[str]:
    """Return the names with numbers behind those that stand there already."""
    result: list[str] = []
    for name in names:
        number, unique = 1, name
        while unique in result:
            number += 1
            unique = f"{name}_{number}"
        result.append(unique)
    return result


def _plain_values(column: pa.Array) -> list[Any]:
    import pyarrow as pa

    kind = column.type
    values: list[Any] = column.to_pylist()
    if pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind):
        return values
    return [plain_value(value, is_map=pa.types.is_map(kind)) for value in values]


def plain_value(value: Any, *, is_map: bool = False) -> Any:
    """Return a value of a row as JSON knows it; a number that JSON does not know is its text."""
    if is_map and isinstance(value, list):
        return {str(key): plain_value(inner) for key, inner in value}
    match value:
        case datetime() | date() | time_of_day():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case float() if not math.isfinite(value):
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case UUID():
            return str(value)
        case list() | tuple():
            return [plain_value(item) for item in value]
        case dict():
            return {str(key): plain_value(inner) for key, inner in value.items()}
        case _:
            return value


def write_json(answer: Iterable[pa.RecordBatch], out: TextIO) -> int:
    """Write an object a row, a line each; return how many."""
    count = 0
    for row in rows(answer):
        out.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")
        count += 1
    return count


def write_csv(answer: Answer, out: TextIO) -> int:
    """Write a head and a line a row (RFC 4180; lists and objects as JSON, null as nothing); return the rows."""
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(unique_names(answer.schema.names))
    count = 0
    for row in rows(answer):
        lines.writerow(
            json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value for value in row.values()
        )
        count += 1
    return count


def write_parquet(answer: Answer, out: BinaryIO) -> int:
    """Write the rows with their own types; return how many."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = unique_names(answer.schema.names)
    shape = pa.schema([field.with_name(name) for field, name in zip(answer.schema, names, strict=True)])
    count = 0
    with pq.ParquetWriter(out, shape) as writer:
        for batch in answer:
            writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=shape))
            count += batch.num_rows
    return count
