"""One list of a unit's flavours, and exactly those places that must handle each flavour themselves."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from raw_units import raw_unit

from engine.codec import compiled, unit_flavours
from engine.codec.message import decode
from engine.codec.unit_flavours import BY_MAGIC, BY_VERSION, FLAVOURS, MAGIC_BYTES, PREFIX, READ_BY, unread_versions

ROOT = Path(__file__).resolve().parents[3]
PLACES = {
    "engine/codec/compiled.py": "the compiled walk: its magic number, the width of the topic's length (given as the "
    "version, which it is in both), the first byte that the search for units looks for",
    "engine/codec/compiled_copies.py": "the units of a copy that is followed: both magic numbers",
    "engine/codec/compiled_search.py": "the compiled search for units anywhere: both magic numbers",
    "engine/codec/encode.py": "which topic is written in which flavour",
    "engine/codec/words.py": "what is said of a unit of a flavour that not every release reads",
    "engine/bench/data.py": "what a measurement is made of",
    "engine/client/messages.py": "what a client says of its own messages before a broker has stored them",
    "engine/inspection/check/next_start.py": "DK03: units that 4.9 takes for damage",
    "engine/inspection/info.py": "from which name of a topic on all its queues are looked at",
    "viewer/runtime/survey.py": "the oldest release that writes it",
}
"""File → what a further flavour asks for there. All else follows from ``engine/codec/unit_flavours.py``."""


def test_versions_and_magic_numbers_are_one_each():
    assert len(BY_MAGIC) == len(BY_VERSION) == len(FLAVOURS)
    assert len(PREFIX) == 3
    assert all(magic.startswith(PREFIX) for magic in MAGIC_BYTES)


@pytest.mark.parametrize("flavour", FLAVOURS, ids=lambda flavour: flavour.word)
def test_a_unit_of_each_flavour_is_read(flavour):
    unit = decode(raw_unit(version=flavour.version))
    assert unit.version == flavour.version
    assert bool(flavour.unread_by) == bool(flavour.unread_note)


def test_a_release_reads_its_flavours():
    flavour_1, flavour_2 = BY_VERSION[1], BY_VERSION[2]
    assert {flavour_1.magic} == READ_BY["4.9"]
    assert {flavour_1.magic, flavour_2.magic} <= READ_BY["5.3"]
    assert 2 in unread_versions("4.9")
    assert not {1, 2} & {*unread_versions("5.3")}


def test_the_compiled_twin_knows_all_flavours():
    known_values = {int(value) for name, value in vars(compiled).items() if re.fullmatch(r"_V\d+", name)}
    assert known_values == set(BY_MAGIC)


def flavour_uses(source: str) -> Iterator[int]:
    """Return the lines that distinguish flavours or contain their numbers."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Compare(left=left, comparators=others):
                sides = [left, *others]
                if any(map(_is_version, sides)) and any(map(_is_number, sides)):
                    yield node.lineno
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right) if _is_version(left) or _is_version(right):
                yield node.lineno
            case ast.Subscript(value=ast.Name(id="BY_VERSION"), slice=ast.Constant() | ast.IfExp()):
                yield node.lineno
            case ast.Name(id=name) if re.search("(^|_)V1(_|$)", name):
                yield node.lineno
            case ast.Constant(value=int(value)) if value in _NUMBERS:
                yield node.lineno
            case ast.Constant(value=bytes(value)) if PREFIX[:2] in value:
                yield node.lineno


_NUMBERS = {
    number for flavour in FLAVOURS for number in (flavour.magic, flavour.magic - (1 << 32), flavour.magic >> 24)
}


def _is_version(node: ast.expr) -> bool:
    """Return True for ``version`` as a name, a field, a column, or a row of a column."""
    match node:
        case ast.Name(id="version") | ast.Attribute(attr="version") | ast.Constant(value="version"):
            return True
        case ast.Subscript(value=value, slice=key):
            return _is_version(value) or _is_version(key)
        case ast.Call(args=[value]):
            return _is_version(value)
    return False


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


@pytest.mark.parametrize(
    "source",
    [
        "unit.version == 2",
        "1 != version",
        "row['version'] == 2",
        "columns.version[:rows] == 2",
        "at + frame.version",
        "at + int(self.version[row])",
        "BY_VERSION[2]",
        "BY_VERSION[2 if long else 1]",
        "magic == _V1",
        "len(raw) > MAX_V1_TOPIC_BYTES",
        "0xDAA320AB",
        "b'\\xda\\xa3 '",
    ],
)
def test_a_use_of_a_flavour_is_detected(source):
    assert list(flavour_uses(source))


@pytest.mark.parametrize(
    "source",
    [
        "unit.version == other.version",
        "BY_VERSION[unit.version]",
        "magic in MAGICS",
        "IPV6 + name_of(x)",
        "of.version & 255",
    ],
)
def test_code_derived_from_the_list_is_not_reported(source):
    assert not list(flavour_uses(source))


def test_every_use_of_a_flavour_is_listed():
    """If this fails, derive the place from ``engine/codec/unit_flavours.py``, or name it in PLACES."""
    files_with_uses = {
        path.relative_to(ROOT).as_posix()
        for package in ("engine", "viewer")
        for path in (ROOT / package).rglob("*.py")
        if path != Path(unit_flavours.__file__) and any(flavour_uses(path.read_text("utf-8")))
    }
    assert files_with_uses == set(PLACES)
