"""Conditions on texts of a block: keys, tags, unique keys, properties, bodies, hosts and ids."""

from __future__ import annotations

import random
import re
import warnings

import pytest

from engine.query.text_verdicts import needed_text


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("9{4}", "9999"),
        ("order-0{2,}1", "order-00"),
        ("ab+c", "ab"),
        ("ab*cde", "cde"),
        ("abc?d", "ab"),
        (r"^K\d+-end$", "-end"),
        (r"a\.b\/c", "a.b/c"),
        ("[abc]xyz[^]]q", "xyz"),
        ("(one|two) three", " three"),
        ("(?:x)yy", "yy"),
        ("ab{1}?c", "abc"),
        ("a{,3}bb", "bb"),
        ("{a}", "{a}"),
        ("a|b", ""),
        (r"\x41b", ""),
        (r"(a)\1bcd", ""),
        ("(?i)abc", ""),
        ("(?#|)abc", ""),
        ("((a)b)cdef", ""),
        ("订单{2}号", "订单单号"),
    ],
)
def test_the_text_that_a_pattern_needs(pattern: str, text: str) -> None:
    assert needed_text(pattern) == text


def test_every_match_has_the_text_that_its_pattern_needs() -> None:
    pick = random.Random(5)
    pieces = [
        *"aab(){}|.^$*+?[]\\-,12",
        "{2}",
        "{1,2}",
        "{,2}",
        r"\d",
        r"\b",
        r"\.",
        "[ab]",
        "[^a]",
        "(?:",
        "(?=",
        "(?i)",
    ]
    tried = needed = 0
    while tried < 3000:
        pattern = "".join(pick.choices(pieces, k=pick.randint(1, 9)))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                results = re.compile(pattern)
        except (re.error, FutureWarning, DeprecationWarning):
            continue
        tried += 1
        text = needed_text(pattern)
        needed += bool(text)
        for _ in range(20):
            line = "".join(pick.choices("aaabb.-12|({", k=pick.randint(0, 14)))
            if results.search(line):
                assert text in line, (pattern, line)
    assert needed > 1000
