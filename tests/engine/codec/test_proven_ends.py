"""Ends of units that machine code proves: never one that :func:`judge_end` does not."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest
from raw_units import raw_blank, raw_unit

from engine.codec import proven_ends
from engine.codec.columns import Window
from engine.codec.proven_ends import OTHER_BYTES, PROVEN, find_borders, judge_ends
from engine.codec.unit_search import FOLLOWING_BYTES, PAGE_BYTES, judge_end

GOOD_TEXTS = (b"", b"A\x01b\x02", b"A\x01b")
TEXTS = (*GOOD_TEXTS, b"\x01b\x02", b"A\x02", b"\x02", b"A\x01b\x02\x02", b"A\x01\xe5\x90\x8d\x02", b"A\x01\0\x02")
TOPICS = (b"Orders", b"Orders", b"O rders", "名".encode(), b"\x80")


def cases(rng: random.Random) -> list[tuple[int, bytes, bytes]]:
    """Return physical offsets, units, and what follows each."""
    rows = []
    for _ in range(3000):
        offset = rng.randrange(1 << 30)
        unit = raw_unit(
            offset,
            topic=rng.choice(TOPICS),
            body=rng.randbytes(rng.choice((0, 10, 5000))),
            properties=rng.choice(rng.choice((GOOD_TEXTS, TEXTS))),
            version=rng.choice((1, 2)),
            sys_flag=rng.choice((0, 16, 32, 48)),
        )
        end = offset + len(unit)
        behind = (
            raw_unit(end),
            raw_unit(end + 1),
            raw_blank(90),
            bytes(40),
            rng.randbytes(40),
            b"\0\0\0\1" + bytes(40),
        )
        if rng.random() < 0.1:
            unit = unit[:-3] + rng.randbytes(3)
        rows.append((offset, unit, rng.choice(behind)[:FOLLOWING_BYTES].ljust(FOLLOWING_BYTES, b"\0")))
    return rows


def test_no_end_is_proven_that_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, data, positions = cases(random.Random(1)), bytearray(), []
    for _, unit, following in rows:
        positions.append(len(data))
        data += unit + following
    buffer = np.frombuffer(bytes(data), np.uint8)
    window = Window(buffer, 0, 0, len(buffer))
    columns = (
        np.array(positions),
        np.array([len(unit) for _, unit, _ in rows]),
        np.array([offset for offset, _, _ in rows]),
    )
    verdicts = judge_ends(window, *columns)
    judged = [judge_end(unit, offset, following) for offset, unit, following in rows]
    assert {judged[number] for number in np.flatnonzero(verdicts == PROVEN).tolist()} == {"proven"}
    assert {judged[number] for number in np.flatnonzero(verdicts == OTHER_BYTES).tolist()} == {"wrong"}
    assert (verdicts == PROVEN).sum() > 100
    assert (verdicts == OTHER_BYTES).sum() > 20
    monkeypatch.setattr(proven_ends, "twin", lambda: None)
    assert not judge_ends(window, *columns).any()


@pytest.mark.parametrize("change", ["none", "body", "other host", "offset behind", "no machine code"])
def test_a_unit_in_two_pieces_is_joined_where_its_crc_proves_it(
    tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(2)
    offset = 5 * PAGE_BYTES - 700
    unit = raw_unit(offset, body=rng.randbytes(6000))
    end = offset + len(unit)
    behind = bytearray(raw_unit(end + (change == "offset behind"), body=b"behind" * 20))
    if change == "other host":
        behind[67] ^= 1
    cut = 6 * PAGE_BYTES - offset
    pieces = bytearray(rng.randbytes(100) + unit[:cut] + rng.randbytes(3 * PAGE_BYTES) + unit[cut:] + behind)
    if change == "body":
        pieces[400] ^= 1
    if change == "no machine code":
        monkeypatch.setattr(proven_ends, "twin", lambda: None)
    (tmp_path / "image").write_bytes(pieces)
    descriptor = os.open(tmp_path / "image", os.O_RDONLY)
    run = len(pieces) - len(behind)
    columns = (np.array([value]) for value in (descriptor, 100, descriptor, run, offset, len(unit)))
    borders = find_borders(*columns)
    os.close(descriptor)
    assert borders.tolist() == ([6 * PAGE_BYTES] if change == "none" else [-1])
