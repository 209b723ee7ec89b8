"""The meaning of fields in plain text."""

from __future__ import annotations

import re

from engine.query import FIELDS as FILTER_FIELDS
from viewer.look.assets import catalogue
from viewer.look.field_words import FIELDS, explained


def test_every_field_of_a_unit_an_entry_and_an_index_file_is_explained():
    from engine.codec.message import list_fields
    from tests.support.handmade_stores import unit_bytes

    drawn = {name for name, _, _ in list_fields(unit_bytes("T", 0, 0, 0, 1, properties={"KEYS": "K", "x": "y"}))}
    assert [name for name in sorted(drawn) if explained("field", name) is None] == []
    request = set(FILTER_FIELDS) - {
        "file",
        "transaction",
        "priority",
        "liteTopic",
        "compressed",
        "batch",
        "delayed",
        "retry",
        "deadLetter",
    }
    assert [name for name in sorted(request) if explained("field", name) is None] == []
    for kind, names in {
        "cq": ("queueOffset", "physicalOffset", "size", "tagsCode"),
        "indexFile": (
            "beginTimestamp",
            "endTimestamp",
            "beginPhyOffset",
            "endPhyOffset",
            "hashSlotCount",
            "indexCount",
        ),
        "indexEntry": ("keyHash", "phyOffset", "storeTimestamp", "prev"),
    }.items():
        assert [name for name in names if explained(kind, name) is None] == []
    assert explained("cq", "size") != explained("unit", "size")


def test_explanations_are_sentences_with_a_page_in_both_languages():
    chinese = catalogue("zh_CN").texts
    for name, (text, page) in FIELDS.items():
        assert text.endswith("."), name
        assert re.fullmatch(r"docs/formats/[a-z-]+\.md(#[a-z-]+)?", page), name
        assert chinese.get(text), name
