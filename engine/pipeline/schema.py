"""Columns of the data sources: the fields of the engine's records, in Spark's types.

Every row has ``store`` (path) and ``broker`` (null where nothing tells it). In ``rocketmq-commitlog`` the column
``type`` says what a row is: ``unit``, ``damage`` (``physicalOffset``, ``size``, ``reason`` and ``file`` only) or, where
they are asked for, ``blank``. A queue or index file that cannot be read as one is a row of the type ``damage`` with
``file`` and ``reason``. ``physicalOffsetField`` is set where a unit says that it lies elsewhere. A body is binary here.
Offsets and sizes are bytes. Times are ms since the epoch; ``bornTime`` and ``storeTime`` are the same as timestamps,
null before 1678 and behind 2261, which pandas and others cannot hold. Text that no UTF-8 can hold has question marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from engine.codec.unit_fields import BY_NAME, OF_RECORDS
from engine.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_FIRST_MS, _LAST_MS = -9_214_560_000_000, 9_214_646_399_999
"""1678-01-01 and the end of 2261, UTC."""
Columns = dict[str, str]
"""Name → type in Spark's words, in order; those that are null in no row say ``NOT NULL``."""
_NEVER = " NOT NULL"

TIMES = {field.name.removesuffix("stamp"): field.name for field in OF_RECORDS if field.kind == "time"}
"""Timestamps, each with the column of ms that it is made of."""


def _of_units() -> Columns:
    found = {"type": "string NOT NULL"}
    time_of = {ms: time for time, ms in TIMES.items()}
    for field in OF_RECORDS:
        found[field.name] = field.spark
        if field.name in time_of:
            found[time_of[field.name]] = "timestamp"
    # a span of damage may be longer than any unit
    return found | {"size": "bigint", "reason": "string", "store": "string NOT NULL", "broker": "string"}


UNIT: Columns = _of_units()
CQ: Columns = {
    "type": "string NOT NULL",
    "topic": "string",
    "queueId": "int",
    "queueOffset": "bigint",
    "physicalOffset": "bigint",
    "size": "int",
    "tagsCode": "bigint",
    "ext": "struct<address:bigint,size:int,tagsCode:bigint,storeTimestamp:bigint,bitMap:string>",
    "state": "string",
    "batchSize": "int",
    "storeTimestamp": "bigint",
    "storeTime": "timestamp",
    "file": "string",
    "reason": "string",
    "store": "string NOT NULL",
    "broker": "string",
}
INDEX: Columns = {
    "type": "string NOT NULL",
    "file": "string",
    "entry": "int",
    "slot": "int",
    "keyHash": "int",
    "phyOffset": "bigint",
    "timeDiff": "int",
    "storeTimestamp": "bigint",
    "storeTime": "timestamp",
    "prev": "int",
    "reason": "string",
    "store": "string NOT NULL",
    "broker": "string",
}
COMMENTS = {
    **{field.name: field.on_spark for field in OF_RECORDS},
    **{time: BY_NAME[ms].on_spark.removesuffix(", ms since the epoch") for time, ms in TIMES.items()},
    "type": "what the row is: unit, cq, indexEntry; blank; damage, with a reason",
    "reason": "of damage: what is wrong",
    "store": "path of the store",
    "broker": "name of the broker, if known",
    "ext": "what the ext file holds for the entry",
    "state": "entry, prefilled or empty",
    "batchSize": "messages of a batch",
    "entry": "number of the entry in its file",
    "slot": "the hash slot it hangs at",
    "keyHash": "hash of topic and key",
    "phyOffset": "where the unit begins in the commit log, bytes",
    "timeDiff": "seconds behind the first entry of the file",
    "prev": "number of the next older entry of the slot",
}


def chosen(columns: Columns, names: Iterable[str]) -> Columns:
    """The columns ``names``, in that order; raises :class:`UsageError` for one that is none.

    ``names`` may be columns with types of their own (:func:`given`).
    """
    found = {}
    types = names if isinstance(names, dict) else columns
    for name in names:
        if name not in columns:
            raise UsageError(f"{name} is no column; there are {', '.join(columns)}")
        found[name] = types[name]
    return found


def given(columns: Columns, asked: StructType) -> Columns:
    """The columns that Spark asks for, of a user's schema too; raises :class:`UsageError` where a type is another."""
    found = chosen(columns, asked.names)
    for field in asked.fields:
        kind, told = columns[field.name], field.dataType.simpleString()
        if told != kind.removesuffix(_NEVER):
            raise UsageError(f"{field.name} is {kind.removesuffix(_NEVER)}, the schema that was given says {told}")
        if not field.nullable and not kind.endswith(_NEVER):
            raise UsageError(f"{field.name} is null in some rows, the schema that was given says NOT NULL")
        found[field.name] = told if field.nullable else kind
    return found


def ddl(columns: Columns) -> str:
    """The columns as Spark reads a schema."""
    told = {name: COMMENTS[name].replace("'", r"\'") for name in columns}
    return ", ".join(f"`{name}` {kind} COMMENT '{told[name]}'" for name, kind in columns.items())


def arrow_type(kind: str) -> pa.DataType:
    """Arrow's type for one of Spark's words above."""
    import pyarrow as pa

    plain: dict[str, Any] = {
        "string": pa.string(),
        "bigint": pa.int64(),
        "int": pa.int32(),
        "binary": pa.binary(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "map<string,string>": pa.map_(pa.string(), pa.string()),
        "array<string>": pa.list_(pa.string()),
    }
    kind = kind.removesuffix(_NEVER)
    if kind in plain:
        return plain[kind]
    fields = kind.removeprefix("struct<").removesuffix(">").split(",")
    return pa.struct([(name, plain[inner]) for name, _, inner in (field.partition(":") for field in fields)])


def arrow_schema(columns: Columns) -> pa.Schema:
    """The columns as Arrow's schema."""
    import pyarrow as pa

    return pa.schema([pa.field(name, arrow_type(kind), not kind.endswith(_NEVER)) for name, kind in columns.items()])


def time_array(ms: npt.NDArray[np.int64]) -> pa.Array:
    """Timestamps of ms since the epoch, null where there is none."""
    import pyarrow as pa

    held = (ms >= _FIRST_MS) & (ms <= _LAST_MS)
    return pa.array(np.where(held, ms, 0) * 1000, pa.int64(), mask=~held).cast(arrow_type("timestamp"))


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
