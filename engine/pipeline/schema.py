"""Columns of the data sources: the fields of the engine's records, in Spark's types.

Every row has ``store`` (path) and ``broker`` (null if it is unknown). In ``rocketmq-commitlog`` the column ``type``
names the kind of row: ``unit``, ``damage`` (``physicalOffset``, ``size``, ``reason`` and ``file`` only) or, on request,
``blank``. A queue or index file that cannot be read is a row of the type ``damage`` with ``file`` and ``reason``.
``physicalOffsetField`` is set if the offset in a unit is not its position. A body is binary here. Offsets and sizes are
bytes. Times are ms since the epoch; ``bornTime`` and ``storeTime`` are the same as timestamps, null before 1678 and
after 2261, which pandas and others cannot hold. Text that UTF-8 cannot hold has question marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from engine.codec.unit_fields import BY_NAME, OF_RECORDS
from engine.errors import UsageError
from engine.sentences import sentence

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
    columns = {"type": "string NOT NULL"}
    time_of = {ms: time for time, ms in TIMES.items()}
    for field in OF_RECORDS:
        columns[field.name] = field.spark
        if field.name in time_of:
            columns[time_of[field.name]] = "timestamp"
    # a span of damage may be longer than any unit
    return columns | {"size": "bigint", "reason": "string", "store": "string NOT NULL", "broker": "string"}


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


def select_columns(columns: Columns, names: Iterable[str]) -> Columns:
    """Return the columns ``names``, in that order; raises :class:`UsageError` for an unknown one.

    ``names`` may be columns with types of their own (:func:`user_columns`).
    """
    selected = {}
    types = names if isinstance(names, dict) else columns
    for name in names:
        if name not in columns:
            raise UsageError(
                sentence("{name} is not a column; the columns are {columns}", name=name, columns=", ".join(columns))
            )
        selected[name] = types[name]
    return selected


def user_columns(columns: Columns, user_schema: StructType) -> Columns:
    """Return the columns of a user's schema; raises :class:`UsageError` if a type differs."""
    selected = select_columns(columns, user_schema.names)
    for field in user_schema.fields:
        kind, user_type = columns[field.name], field.dataType.simpleString()
        if user_type != kind.removesuffix(_NEVER):
            raise UsageError(
                sentence(
                    "{name} is {type}, the given schema says {user_type}",
                    name=field.name,
                    type=kind.removesuffix(_NEVER),
                    user_type=user_type,
                )
            )
        if not field.nullable and not kind.endswith(_NEVER):
            raise UsageError(sentence("{name} is null in some rows, the given schema says NOT NULL", name=field.name))
        selected[field.name] = user_type if field.nullable else kind
    return selected


def ddl(columns: Columns) -> str:
    """Return the columns as the text of a Spark schema."""
    comments = {name: COMMENTS[name].replace("'", r"\'") for name in columns}
    return ", ".join(f"`{name}` {kind} COMMENT '{comments[name]}'" for name, kind in columns.items())


def arrow_type(kind: str) -> pa.DataType:
    """Return Arrow's type for a type name of Spark."""
    import pyarrow as pa

    plain: dict[str, Any] = {
        "string": pa.string(),
        "bigint": pa.int64(),
        "int": pa.int32(),
        "boolean": pa.bool_(),
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
    """Return the columns as Arrow's schema."""
    import pyarrow as pa

    return pa.schema([pa.field(name, arrow_type(kind), not kind.endswith(_NEVER)) for name, kind in columns.items()])


def time_array(ms: npt.NDArray[np.int64]) -> pa.Array:
    """Convert ms since the epoch to timestamps, null for None."""
    import pyarrow as pa

    in_range = (ms >= _FIRST_MS) & (ms <= _LAST_MS)
    return pa.array(np.where(in_range, ms, 0) * 1000, pa.int64(), mask=~in_range).cast(arrow_type("timestamp"))


def one_row(columns: Columns, values: Mapping[str, Any]) -> pa.RecordBatch:
    """Return a batch of one row, with null for columns that ``values`` does not have."""
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
    """Replace halves of surrogate pairs in ``value`` by question marks."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, tuple):
        return tuple(clean(item) for item in value)
    return [clean(item) for item in value] if isinstance(value, list) else value
