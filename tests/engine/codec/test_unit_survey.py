"""Surveys of files in machine code: what is simple to see is a row, the cursor is left in front of anything else."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest
from raw_units import raw_log, raw_unit

from engine.codec.columns import Window, aligned_buffer
from engine.codec.log_copies import LogBytes
from engine.codec.topic_table import TopicTable
from engine.codec.unit_survey import DAMAGED_UNIT, OPEN_END, OTHER_UNIT, PAUSED, Survey, Surveyor

BASE = 8192
PAGE = 4096
pytestmark = pytest.mark.machine_code


def survey(tmp_path: Path, data: bytes, *, stop: int = 1 << 40, live: tuple[int, int] = (0, 1)) -> tuple[Survey, int]:
    """Return the survey of a file through a window of 32 KiB, and the position of its cursor."""
    path = tmp_path / "image"
    path.write_bytes(data)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        window = Window(aligned_buffer(1 << 15), 0, 0, 0, descriptor, 0, PAGE)
        none = np.empty(0, np.int64)
        known = LogBytes(np.array([live[0]]), np.array([live[1]]), 0, none, none, none, none)
        rows = Surveyor().survey(window, stop, known, TopicTable())
        assert rows is not None
        return rows, window.base + window.cursor
    finally:
        os.close(descriptor)


def test_a_unit_cut_by_a_page_of_another_file_is_joined_where_the_next_units_begin(tmp_path: Path) -> None:
    log = raw_log(*({"body": random.Random(1).randbytes(900)} for _ in range(90)), base=BASE)
    size = len(log) // 90
    last_whole = 3 * PAGE // size * size
    gap = random.Random(2).randbytes(PAGE)
    rows, cursor = survey(tmp_path, log[: 3 * PAGE] + gap + log[3 * PAGE :] + bytes(100))
    last = len(log) - size  # the caller judges its end
    assert rows.runs.tolist() == [
        [0, BASE, last_whole, last_whole // size, 0],
        [PAGE + last_whole + size, BASE + last_whole + size, last - last_whole - size, 88 - last_whole // size, 0],
    ]
    assert rows.heads[:, :3].tolist() == [[last_whole, size, BASE + last_whole]]
    assert rows.joins.tolist() == [
        [last_whole, PAGE + last_whole + size, BASE + last_whole, size, BASE + 3 * PAGE],
    ]
    assert (rows.reason, cursor) == (OPEN_END, PAGE + last)


def test_a_survey_stops_in_front_of_a_damaged_unit_a_live_one_and_its_stop(tmp_path: Path) -> None:
    log = raw_log(*({"body": b"tea"} for _ in range(9)), base=BASE)
    size = len(log) // 9
    damaged = log[: 4 * size] + log[4 * size : 5 * size].replace(b"tea", b"TEA") + log[5 * size :] + bytes(100)
    rows, cursor = survey(tmp_path, damaged)
    assert (rows.reason, cursor, rows.runs.tolist()) == (DAMAGED_UNIT, 4 * size, [[0, BASE, 4 * size, 4, 0]])
    rows, cursor = survey(tmp_path, log + bytes(100), live=(BASE + 2 * size, BASE + 3 * size))
    assert (rows.reason, cursor, rows.runs.tolist()) == (OTHER_UNIT, 2 * size, [[0, BASE, 2 * size, 2, 0]])
    rows, cursor = survey(tmp_path, log + bytes(100), stop=6 * size)
    assert (rows.reason, cursor, rows.runs.tolist()) == (PAUSED, 5 * size, [[0, BASE, 5 * size, 5, 0]])


def test_a_unit_longer_than_the_window_is_left_to_the_caller(tmp_path: Path) -> None:
    log = raw_log({}, {"body": b"x" * 40_000}, {}, base=BASE)
    rows, cursor = survey(tmp_path, log + bytes(100))
    assert (rows.reason, cursor, len(rows.runs)) == (OTHER_UNIT, 0, 0)
    assert len(raw_unit()) < PAGE
