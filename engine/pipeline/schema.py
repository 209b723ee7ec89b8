"""Columns of the data sources: the fields of the engine's records, in Spark's types.

Every row has ``store`` (path) and ``broker`` (null where nothing tells it). In ``rocketmq-commitlog`` the column
``type`` says what a row is: ``unit``, ``damage`` (``physicalOffset``, ``size``, ``reason`` and ``file`` only) or, where
they are asked for, ``blank``. A queue or index file that cannot be read as one is a row of the type ``damage`` with
``file`` and ``reason``. ``physicalOffsetField`` is set where a unit says that it lies elsewhere. A body is binary here.
Offsets and sizes are bytes, times are ms since the epoch. Text that no UTF-8 can hold has question marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from engine.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

Columns = dict[str, str]
"""Name → type in Spark's words, in order."""

UNIT: Columns = {
    "type": "string", "physicalOffset": "bigint", "size": "bigint", "version": "int", "file": "string",
    "topic": "string", "queueId": "int", "queueOffset": "bigint", "flag": "int", "sysFlag": "int",
    "bornTimestamp": "bigint", "bornHost": "string", "storeTimestamp": "bigint", "storeHost": "string",
    "reconsumeTimes": "int", "preparedTransactionOffset": "bigint", "bodyCRC": "int", "crc": "string",
    "bodyLength": "int", "properties": "map<string,string>", "tags": "string", "keys": "array<string>",
    "uniqueKey": "string", "tagsCode": "bigint", "offsetMsgId": "string", "bodySha256": "string", "body": "binary",
    "physicalOffsetField": "bigint", "reason": "string", "store": "string", "broker": "string",
}  # fmt: skip
CQ: Columns = {
    "type": "string", "topic": "string", "queueId": "int", "queueOffset": "bigint", "physicalOffset": "bigint",
    "size": "int", "tagsCode": "bigint",
    "ext": "struct<address:bigint,size:int,tagsCode:bigint,storeTimestamp:bigint,bitMap:string>", "state": "string",
    "batchSize": "int", "storeTimestamp": "bigint", "file": "string", "reason": "string", "store": "string",
    "broker": "string",
}  # fmt: skip
INDEX: Columns = {
    "type": "string", "file": "string", "entry": "int", "slot": "int", "keyHash": "int", "phyOffset": "bigint",
    "timeDiff": "int", "storeTimestamp": "bigint", "prev": "int", "reason": "string", "store": "string",
    "broker": "string",
}  # fmt: skip


def chosen(columns: Columns, names: Iterable[str]) -> Columns:
    """The columns ``names``, in that order; raises :class:`UsageError` for one that is none."""
    found = {}
    for name in names:
        if name not in columns:
            raise UsageError(f"{name} is no column; there are {', '.join(columns)}")
        found[name] = columns[name]
    return found


def ddl(columns: Columns) -> str:
    """The columns as Spark reads a schema."""
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())


def arrow_type(kind: str) -> pa.DataType:
    """Arrow's type for one of Spark's words above."""
    import pyarrow as pa

    plain: dict[str, Any] = {
        "string": pa.string(), "bigint": pa.int64(), "int": pa.int32(), "binary": pa.binary(),
        "map<string,string>": pa.map_(pa.string(), pa.string()), "array<string>": pa.list_(pa.string()),
    }  # fmt: skip
    if kind in plain:
        return plain[kind]
    fields = kind.removeprefix("struct<").removesuffix(">").split(",")
    return pa.struct([(name, plain[inner]) for name, _, inner in (field.partition(":") for field in fields)])


def arrow_schema(columns: Columns) -> pa.Schema:
    """The columns as Arrow's schema."""
    import pyarrow as pa

    return pa.schema([(name, arrow_type(kind)) for name, kind in columns.items()])


def one_row(columns: Columns, values: Mapping[str, Any]) -> pa.RecordBatch:
    """A batch of one row: null where ``values`` has nothing for a column."""
    import pyarrow as pa

    shape = arrow_schema(columns)
    arrays = [pa.array([values.get(field.name)], field.type) for field in shape]
    return pa.RecordBatch.from_arrays(arrays, schema=shape)


def text_array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Values that hold text, with question marks for halves of surrogate pairs, which no UTF-8 can hold."""
    import pyarrow as pa

    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array([clean(value) for value in values], kind)


def clean(value: Any) -> Any:
    """``value`` with question marks for halves of surrogate pairs."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, tuple):
        return tuple(clean(one) for one in value)
    return [clean(one) for one in value] if isinstance(value, list) else value
