"""Pages of bytes, and the fields in them."""

from __future__ import annotations

from viewer.widgets.hex_pages import FieldMap, HexField, Pages, hex_fields

FAR = (1 << 43) + 5


FIELDS = [
    HexField("totalSize", 0, 4, "frame"),
    HexField("magicCode", 4, 4, "frame"),
    HexField("body", 8, 40, "body"),
    HexField("properties.KEYS", 48, 16, "props"),
]


def test_pages_tell_what_is_missing_and_give_what_is_here():
    pages = Pages(FAR - 10, FAR + 10_000)
    assert len(pages.missing(FAR, FAR + 9000)) == 3
    for page in pages.missing(FAR - 100, FAR + 99_999):
        start, size = pages.span(page)
        assert start >= FAR - 10
        assert start + size <= FAR + 10_000
        pages.put(page, bytes([page % 256]) * size)
    assert pages.missing(FAR, FAR + 9000) == []
    got = pages.get(FAR - 12, 4096)
    assert got[:2] == [None, None]
    assert None not in got[2:]


def test_a_page_that_came_short_ends_with_nothing():
    pages = Pages(0, 8192)
    pages.put(0, b"abc")
    assert pages.get(1, 4) == [98, 99, None, None]


def test_fields_are_found_by_byte_and_by_row():
    fields = FieldMap(FIELDS)
    assert fields.at(3).name == "totalSize"
    assert fields.at(47).name == "body"
    assert fields.at(64) is None
    assert fields.at(-1) is None
    assert [f.name for f in fields.beginning_in(0, 16)] == ["totalSize", "magicCode", "body"]


def test_properties_alternate_their_fill():
    groups = [f.group for f in hex_fields([("properties.A", 0, 2), ("properties.B", 2, 2), ("queueId", 4, 4)])]
    assert groups == ["props", "propsAlt", "id"]
