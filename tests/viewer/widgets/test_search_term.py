"""Search terms as they are typed: text, hex, expressions, numbers, and terms that cannot be searched."""

from __future__ import annotations

import pytest

from viewer.widgets.search_term import InvalidSearch, SearchTerm


@pytest.mark.parametrize(
    ("sought", "data", "span"),
    [
        (SearchTerm("text", "grün"), "xGRÜN grün".encode(), (7, 12)),
        (SearchTerm("text", "Key"), b"a KEY", (2, 5)),
        (SearchTerm("text", "Key", case=True), b"a KEY", None),
        (SearchTerm("hex", "DA A3 ?? a7"), b"\x00\xda\xa3\x20\xa7", (1, 5)),
        (SearchTerm("hex", "0xDAA3"), b"\xda\xa3", (0, 2)),
        (SearchTerm("regex", "so-[0-9]+"), b"..SO-42", (2, 7)),
        (SearchTerm("number", "42"), b"42", None),
    ],
)
def test_occurrences(sought: SearchTerm, data: bytes, span: tuple[int, int] | None) -> None:
    sought.check()
    assert sought.find(data) == span


def test_all_occurrences_do_not_overlap_and_are_bounded() -> None:
    assert SearchTerm("text", "AA").find_all(b"aaaaa") == [(0, 2), (2, 4)]
    assert len(SearchTerm("text", "a").find_all(b"a" * 500, 64)) == 64


@pytest.mark.parametrize(("text", "span"), [("42", (42, 42)), ("0x2A..1_000", (42, 1000)), ("-3 … 1,000", (-3, 1000))])
def test_numbers_and_ranges(text: str, span: tuple[int, int]) -> None:
    assert SearchTerm("number", text).range == span


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("text", "", "Nothing"),
        ("hex", "DA A", "hex"),
        ("hex", "zz", "zz"),
        ("regex", "(", "expression"),
        ("regex", "x*", "everywhere"),
        ("number", "many", "many"),
        ("number", "9..3", "ends before"),
    ],
)
def test_a_term_that_cannot_be_searched_says_why(kind: str, text: str, reason: str) -> None:
    with pytest.raises(InvalidSearch, match=reason):
        SearchTerm(kind, text).check()  # type: ignore[arg-type]
