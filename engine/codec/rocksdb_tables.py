"""Rows of the tables that a broker keeps in a RocksDB (docs/formats/config-tables.md#rocksdb), decoded into the
same values as the JSON files of the tables.

Three layouts: a database for each table (``configManagerVersion=v1``), one database with families for all of them
(``useSingleRocksDBForAllConfigs``), and one family with binary keys for all (``configManagerVersion=v2``).

Pure: rows in, values out. A row that cannot be decoded raises ``ValueError``: a broker would not start with it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from engine.codec.config_tables import whole_number
from engine.codec.json_dialect import parse
from engine.sentences import sentence

Row = tuple[bytes, bytes]
Value = dict[str | int, Any]

TOPICS, GROUPS, OFFSETS = "topics.json", "subscriptionGroup.json", "consumerOffset.json"
VERSION_KEY = b"kvDataVersionKey"
SEPARATE_VERSION_FAMILY = "kvDataVersion"
_FORBIDDEN_FAMILY = "forbidden"


@dataclass(frozen=True, slots=True)
class TableFamilies:
    """Column families that hold a table: its rows, its version, and the forbidden table of groups."""

    rows: str
    version: str
    forbidden: str | None = None


SEPARATE = {
    TOPICS: TableFamilies("default", SEPARATE_VERSION_FAMILY),
    GROUPS: TableFamilies("default", SEPARATE_VERSION_FAMILY, _FORBIDDEN_FAMILY),
    OFFSETS: TableFamilies("default", SEPARATE_VERSION_FAMILY),
}
"""Families in a database for each table."""
SINGLE = {
    TOPICS: TableFamilies("topic", "topicVersion"),
    GROUPS: TableFamilies("subscriptionGroup", "subscriptionGroupVersion", _FORBIDDEN_FAMILY),
    OFFSETS: TableFamilies("consumerOffset", "consumerOffsetVersion"),
}
"""Families in the database of all tables (``config/metadata``)."""


def table_value(name: str, rows: Iterable[Row], version: bytes | None, forbidden: Iterable[Row] = ()) -> Value:
    """Return the value of a table from its rows: a name and a JSON object each."""
    value: Value = {"dataVersion": _json(version, VERSION_KEY) if version else {}}
    if name == OFFSETS:
        value["offsetTable"] = {_name(key): _offsets(key, data) for key, data in rows}
    elif name == TOPICS:
        value["topicConfigTable"] = {_name(key): _json(data, key) for key, data in rows}
    else:
        value["subscriptionGroupTable"] = {_name(key): _json(data, key) for key, data in rows}
        value["forbiddenTable"] = {_name(key): _json(data, key) for key, data in forbidden}
    return value


def _name(key: bytes) -> str:
    return key.decode("utf-8", "replace")


def _json(data: bytes, key: bytes) -> Value:
    parsed = parse(data)
    if parsed.complaint or not isinstance(parsed.value, dict):
        raise ValueError(
            sentence(
                "expected a JSON object in row {key}: {why}",
                key=_name(key),
                why=parsed.complaint or sentence("found no object"),
            )
        )
    return parsed.value


def _offsets(key: bytes, data: bytes) -> Value:
    """Return the offsets of a group in a topic. Queue numbers are quoted here, but not in the JSON file."""
    offsets = _json(data, key).get("offsetTable")
    if not isinstance(offsets, dict):
        raise ValueError(sentence("expected an offsetTable in row {key}", key=_name(key)))
    return {
        (number if (number := whole_number(queue)) is not None else queue): offset for queue, offset in offsets.items()
    }


# -- version 2 (org.apache.rocketmq.broker.config.v2)

_TABLE_PREFIX, _VERSION_RECORD, _DATA_RECORD, _SEPARATOR = 1, 1, 2, 1
_OFFSET_TABLE, _PULL_OFFSET_TABLE, _TOPIC_TABLE, _GROUP_TABLE = 1, 2, 3, 4
_V2_TABLES = {_OFFSET_TABLE: OFFSETS, _TOPIC_TABLE: TOPICS, _GROUP_TABLE: GROUPS}
_HEAD = struct.Struct(">bhb")
_LENGTH = struct.Struct(">h")
_QUEUE_ID = struct.Struct(">i")
_OFFSET = struct.Struct(">q")
_VERSION = struct.Struct(">qqq")
_JSON_FORM = 1


def version_2_values(rows: Iterable[Row]) -> dict[str, Value]:
    """Return the values of all tables from the rows of ``config/rdb``. Offsets of pull consumers are left out."""
    topics: Value = {"dataVersion": {}, "topicConfigTable": {}}
    groups: Value = {"dataVersion": {}, "subscriptionGroupTable": {}}
    offsets: Value = {"dataVersion": {}, "offsetTable": {}}
    values = {TOPICS: topics, GROUPS: groups, OFFSETS: offsets}
    for key, data in rows:
        try:
            prefix, table, record = _HEAD.unpack_from(key)
            name = _V2_TABLES.get(table)
            if prefix != _TABLE_PREFIX or name is None:
                continue
            if record == _VERSION_RECORD:
                state, timestamp, counter = _VERSION.unpack(data)
                values[name]["dataVersion"] = {"counter": counter, "stateVersion": state, "timestamp": timestamp}
            elif record == _DATA_RECORD and table == _OFFSET_TABLE:
                _add_offset(offsets["offsetTable"], key, data)
            elif record == _DATA_RECORD:
                row_name, _ = _text(key, _HEAD.size)
                if data[:1] != bytes([_JSON_FORM]):
                    raise ValueError(sentence("expected JSON in row {key}, found another form", key=row_name))
                rows_of_table = topics["topicConfigTable"] if name == TOPICS else groups["subscriptionGroupTable"]
                rows_of_table[row_name] = _json(data[1:], row_name.encode())
        except struct.error as error:
            raise ValueError(sentence("expected a row of a table, found the key {key}", key=key[:80].hex())) from error
    return values


def _add_offset(table: Value, key: bytes, data: bytes) -> None:
    group, position = _text(key, _HEAD.size)
    topic, position = _text(key, position + 1)
    (queue_id,) = _QUEUE_ID.unpack_from(key, position + 1)
    (offset,) = _OFFSET.unpack(data)
    table.setdefault(f"{topic}@{group}", {})[queue_id] = offset


def _text(key: bytes, position: int) -> tuple[str, int]:
    """Return a text with its length before it, and the position after it."""
    (length,) = _LENGTH.unpack_from(key, position)
    start = position + _LENGTH.size
    if length < 0 or start + length > len(key):
        raise struct.error
    return key[start : start + length].decode("utf-8", "replace"), start + length
