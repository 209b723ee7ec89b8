"""One table of a unit's fields: every user interface and codec takes its fields from it, and no other list exists."""

from __future__ import annotations

import ast
import struct
from collections.abc import Iterator
from pathlib import Path

import contract_records
import numpy as np
import pytest

from engine.codec import unit_fields
from engine.codec.columns import COLUMN_TYPES, UnitColumns
from engine.codec.encode import HEAD_FORMATS
from engine.codec.message import Unit, decode, list_fields
from engine.codec.unit_fields import BY_NAME, FIELDS, INSTEAD, OF_BYTES, OF_RECORDS
from engine.inspection import records
from engine.pipeline import export, schema
from engine.query import FIELDS as FILTER_FIELDS
from engine.query import GRAMMAR
from viewer.look.assets import catalogue
from viewer.look.field_words import explained
from viewer.widgets.columns import field_of

ROOT = Path(__file__).resolve().parents[3]
OWN_SPELLING = {name for name in BY_NAME if name.lower() != name}
"""Names that are nobody else's words, as ``topic`` and ``size`` are."""
OTHER_LISTS = {
    "engine/cli/commands/diff.py": "the table of differences on a terminal: which columns, and how wide",
    "engine/cli/commands/resend.py": "the table of sent messages on a terminal: which columns, and how wide",
    "viewer/waiting/waiting_model.py": "the table of waiting messages: which columns, in which order, how wide",
    "engine/cli/commands/rows.py": "the table of RocksDB rows on a terminal: which columns, and how wide",
    "engine/inspection/records.py": "the record of a RocksDB row, with the place of its message",
    "engine/cli/commands/waiting.py": "the table of waiting messages on a terminal: which columns, and how wide",
    "engine/cli/commands/units.py": "the table of units on a terminal: which columns, and how wide",
    "engine/codec/salvage.py": "fields whose mended value is whatever makes the rest fit",
    "engine/pipeline/export.py": "who makes the columns that are no numbers",
    "engine/pipeline/filters.py": "conditions by which a plan leaves parts unread",
    "engine/pipeline/schema.py": "columns of queue entries",
    "engine/pipeline/unit_batches.py": "who makes the columns that are no numbers",
    "engine/sql/entry_relations.py": "columns of queue entries",
    "engine/query/parse.py": "what people write in place of a field's name",
    "viewer/sql/result_columns.py": "names of columns whose values lead to a place",
    "viewer/compare/pair_columns.py": "the table of two stores: which columns of each, how wide",
    "viewer/log/columns.py": "the table of units: which columns, in which order, how wide",
    "viewer/log/export_work.py": "CSV and Markdown: which columns, in the order in which a person reads them",
    "viewer/log/unit_fields.py": "the detail of a unit: what is said beside each value",
    "viewer/look/evidence_words.py": "names of a finding's evidence, which are not all fields",
    "viewer/look/field_words.py": "names of tables and properties for fields that stand under another",
    "viewer/widgets/cell_filter.py": "fields that mean the same in every table",
}
"""Files that may name four fields in a row, each with what the list is: a choice of its own, not all fields again."""


def test_names_are_written_once():
    assert len(BY_NAME) == len(FIELDS)
    assert {field.name for field in OF_RECORDS} >= set(INSTEAD.values())


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_a_field_exists_in_every_place_that_uses_fields(field):
    if field.column:
        assert (field.attribute, field.column) in COLUMN_TYPES
        assert field.attribute in UnitColumns.__annotations__
    if field.kind is not None:
        assert FILTER_FIELDS[field.name].kind == field.kind
        assert f"  {field.name} " in GRAMMAR
        assert field.in_filters
    if field.spark:
        assert schema.UNIT[field.name] == ("bigint" if field.name == "size" else field.spark)
        assert field.on_spark
        assert field.name in dict(export.COLUMNS) or field.name in {"bodySha256", "physicalOffsetField"}
        assert hasattr(Unit, field.attribute) or field.name in {"file", "bodySha256"}
    if field.meaning:
        assert field.page
        assert field.meaning in catalogue("zh_CN").texts
    if field.name not in {"file", "bodySha256"}:
        assert explained("unit", field.name) is not None


def test_columns_have_the_types_of_the_table():
    block = UnitColumns(3)
    for name, kind in COLUMN_TYPES:
        assert getattr(block, name).dtype == np.dtype(kind)
        assert np.dtype(kind).name in UnitColumns.__annotations__[name], name


@pytest.mark.golden
def test_a_record_has_every_field_in_the_order_of_the_table(golden):
    from engine.inspection import open_store

    with open_store(golden("clean-5.3.3")) as store:
        unit = next(item for item in store.units() if isinstance(item, Unit))
    record = records.unit(unit, "file", body=True)
    assert list(record) == ["type", *(field.name for field in OF_RECORDS if field.always), "body"]
    assert list(contract_records.UNIT) == [field.name for field in OF_RECORDS if field.always]
    for field in OF_RECORDS:
        if field.column and field.always:
            assert record[field.name] == getattr(unit, field.attribute)
            assert field_of(field.name)({field.name: 1}) == 1


def test_positions_are_those_of_the_smallest_unit():
    position = 0
    for name, place in OF_BYTES:
        assert place.position == position, name
        position += place.width or {"bornHost": 8, "storeHost": 8}.get(name, 0)
    assert position == 91
    assert BY_NAME["body"].in_bytes.position == HEAD_FORMATS[0].size


def test_positions_match_the_codec():
    plain = bytes.fromhex(
        "0000007b daa320a7 77d18982 00000003 00000000 0000000000000005 00000000000004d2 00000000 0000018bcfe56800"
        "c0a801020000c350 0000018bcfe5687b 7f00000100002a9f 00000000 0000000000000000 00000005 48656c6c6f 09"
        "546f70696354657374 0012 54414753 01 54616741 02 4b455953 01 6b31 02"
    )
    unit = decode(plain)
    results = {part.name: plain[part.position : part.position + part.length] for part in list_fields(plain)}
    for field in FIELDS:
        if field.column and field.in_bytes is not None and field.name != "physicalOffset":
            letter = {4: "i", 8: "q"}[field.in_bytes.width]
            assert struct.unpack(f">{letter}", results[field.name])[0] == getattr(unit, field.attribute), field.name
    assert list(results)[: len(OF_BYTES)] == [name for name, _ in OF_BYTES]


def lists_of_fields(source: str) -> Iterator[tuple[int, int]]:
    """Return the lines where a tuple, list, set or dictionary names four or more fields, and how many fields it
    names.
    """
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Tuple() | ast.List() | ast.Set():
                items = list(node.elts)
            case ast.Dict():
                items = [*node.keys, *node.values]
            case _:
                continue
        named = {text for item in items for text in _texts(item)} & OWN_SPELLING
        if len(named) >= 4:
            yield node.lineno, len(named)


def _texts(item: ast.expr | None) -> Iterator[str]:
    for constant in item.elts if isinstance(item, ast.Tuple) else item.args if isinstance(item, ast.Call) else [item]:
        if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
            yield constant.value


def test_a_list_of_fields_is_detected():
    assert list(lists_of_fields('A = ("queueId", "queueOffset", "sysFlag", "bodyCRC")')) == [(1, 4)]
    assert list(lists_of_fields('A = {"queueId": 1, "x": "queueOffset", "sysFlag": ("bodyCRC", 2)}')) == [(1, 4)]
    assert list(lists_of_fields('A = [C("A", "queueId"), C("queueOffset"), C("sysFlag", 1), ("bodyCRC",)]')) == [(1, 4)]
    assert not list(lists_of_fields('A = ("topic", "body", "flag", "properties", "queueId", "queueOffset", "sysFlag")'))


def test_no_other_module_lists_the_fields():
    """If this fails, take the fields from ``engine/codec/unit_fields.py``, or explain the list in OTHER_LISTS."""
    files_with_lists = {
        path.relative_to(ROOT).as_posix()
        for package in ("engine", "viewer")
        for path in (ROOT / package).rglob("*.py")
        if path != Path(unit_fields.__file__) and any(lists_of_fields(path.read_text("utf-8")))
    }
    assert files_with_lists <= OTHER_LISTS.keys()
    assert all((ROOT / path).exists() for path in OTHER_LISTS)
