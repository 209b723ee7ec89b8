"""Pages of a body among pages of other files, chosen by its CRC."""

from __future__ import annotations

import random
import zlib

import numpy as np
import pytest

from engine.codec.crc import crc31
from engine.codec.page_choice import PAGE_BYTES, PageChoice, append_zeros, find_breaks, find_least_similar, raw_crc

GAPS: tuple[dict[int, int], ...] = (
    {},
    {0: 2},
    {3: 1},
    {20: 4},
    {3: 2, 9: 1},
    {0: 1, 20: 3},
    {3: 2, 9: 1, 14: 3},
    dict.fromkeys(range(1, 20, 4), 2),
    dict.fromkeys(range(0, 20, 2), 1),
)
"""Pages of another file in front of a page of the body."""


def span(rng: random.Random, gaps: dict[int, int], count: int = 20) -> tuple[list[bytes], list[int]]:
    """Return pages of a body with others between, and the numbers of the body's."""
    pages: list[bytes] = []
    numbers = []
    for number in range(count + 1):
        pages += [rng.randbytes(PAGE_BYTES) for _ in range(gaps.get(number, 0))]
        if number < count:
            numbers.append(len(pages))
            pages.append(rng.randbytes(PAGE_BYTES))
    return pages, numbers


@pytest.mark.parametrize("size", [0, 1, 4096, 70_000])
def test_zeros_are_appended_without_reading_them(size: int) -> None:
    data = b"order 4711"
    assert append_zeros(raw_crc(data), size) == raw_crc(data + bytes(size))


@pytest.mark.parametrize("gaps", GAPS, ids=str)
@pytest.mark.parametrize(("head", "tail"), [(b"", b""), (b"begin", b""), (bytes(700), b"the end" * 99)])
def test_the_pages_of_a_body_are_chosen(gaps: dict[int, int], head: bytes, tail: bytes) -> None:
    pages, numbers = span(random.Random(1), gaps)
    body = head + b"".join(pages[number] for number in numbers) + tail
    registers = np.array([raw_crc(page) for page in pages], np.uint32)
    choice = PageChoice(registers, len(numbers), head, tail, crc31(body))
    assert list(choice.iter_choices()) == [numbers]
    assert zlib.crc32(body) & 0x7FFFFFFF == crc31(body)


@pytest.mark.parametrize("known", [(0, 1), (0,), (1,), ()])
def test_pages_are_left_out_between_breaks_of_the_text(known: tuple[int, ...]) -> None:
    """One border of a block of another file may look as if the text went on there."""
    gaps = {4: 2, 11: 3, 15: 1}
    pages, numbers = span(random.Random(4), gaps)
    registers = np.array([raw_crc(page) for page in pages], np.uint32)
    choice = PageChoice(registers, 20, b"", b"", crc31(b"".join(pages[number] for number in numbers)))
    blocks = [(4, 6), (13, 16), (20, 21)]
    breaks = [*blocks[0], *blocks[1], *(blocks[2][index] for index in known)]
    choices = {tuple(chosen) for chosen in choice.iter_choices_at(breaks)}  # some are found in several ways
    assert choices == ({tuple(numbers)} if known else set())


def test_breaks_are_where_the_text_does_not_go_on() -> None:
    rng = random.Random(5)
    words = b"tea coffee order paid".split()
    text = b" ".join(rng.choices(words, k=20_000))
    pages = [text[start : start + PAGE_BYTES] for start in range(0, 8 * PAGE_BYTES, PAGE_BYTES)]
    pages[3] = b"{" + pages[3][2:] + b"}"
    data = np.frombuffer(b"".join(pages), np.uint8).reshape(-1, PAGE_BYTES)
    assert find_breaks(data) == [3, 4]


def test_no_more_is_tried_than_allowed() -> None:
    """The chance of a wrong choice with the right CRC grows with what is tried."""
    pages, numbers = span(random.Random(2), {5: 30, 300: 30, 700: 20}, 900)
    registers = np.array([raw_crc(page) for page in pages], np.uint32)
    choice = PageChoice(registers, len(numbers), b"", b"", 1)
    assert list(choice.iter_choices(50_000)) == []
    assert choice.combinations <= 50_000


def test_pages_unlike_the_others_are_named() -> None:
    rng = random.Random(3)
    words = b"tea coffee order paid".split()
    text = [b" ".join(rng.choices(words, k=2000))[:PAGE_BYTES] for _ in range(9)]
    pages = [*text[:4], rng.randbytes(PAGE_BYTES), *text[4:], bytes(PAGE_BYTES)]
    data = np.frombuffer(b"".join(pages), np.uint8).reshape(-1, PAGE_BYTES)
    sample = np.frombuffer(b" ".join(rng.choices(words, k=99)), np.uint8)
    assert find_least_similar(data, sample, 2) == [4, 10]
    assert find_least_similar(data, sample, 0) == []
