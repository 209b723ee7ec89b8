"""Rules about units and files of the log, case by case."""

from __future__ import annotations

import numpy as np
import pytest

from engine.rules import log_rules
from engine.rules.log_rules import LogFile

TIMES = [
    pytest.param([10, 20, 20, 30], 5, [], id="rising"),
    pytest.param([10, 30, 20, 40], 5, [(2, 10)], id="one step back"),
    pytest.param([10, 30, 20, 21, 22, 40], 5, [(2, 10)], id="the clock stays back: told once"),
    pytest.param([1, 2, 3], 9, [(0, 8)], id="against the block before"),
    pytest.param([], 9, [], id="nothing"),
]


@pytest.mark.parametrize(("times", "newest", "steps"), TIMES)
def test_steps_back_of_the_clock(times, newest, steps):
    backward_times = log_rules.backward_times(np.array(times, np.int64), newest)
    assert [(step.row, step.milliseconds) for step in backward_times] == steps


FILES = [
    pytest.param([(0, 100), (100, 100), (200, 100)], [], id="healthy"),
    pytest.param([(0, 100), (200, 100)], [("gap", 100, 200)], id="gap"),
    pytest.param([(0, 100), (100, 60), (200, 100)], [("size", 100, 200)], id="short"),
    pytest.param([(0, 100), (100, 130), (200, 100)], [("size", 100, 200)], id="long"),
    pytest.param([(0, 100), (100, 100), (200, 0)], [("empty", 200, 200)], id="empty last file"),
    pytest.param([(300, 100), (400, 100)], [], id="first files have expired"),
    pytest.param([], [], id="no files"),
]


@pytest.mark.parametrize(("files", "faults"), FILES)
def test_the_sequence_of_files(files, faults):
    file_sequence = log_rules.file_sequence([LogFile("f", *file) for file in files], 100)
    assert [(fault.kind, fault.offset, fault.end) for fault in file_sequence] == faults


LENGTHS = [
    pytest.param([(0, 100), (100, 100)], 100, id="all equal"),
    pytest.param([(0, 101), (100, 100)], 100, id="the distance decides between two"),
    pytest.param([(0, 60), (100, 100)], 100, id="one cut short"),
    pytest.param([(0, 77)], 77, id="one file"),
    pytest.param([], 0, id="none"),
]


@pytest.mark.parametrize(("files", "length"), LENGTHS)
def test_the_likely_length(files, length):
    assert log_rules.likely_length([LogFile("f", *file) for file in files]) == length


def test_a_blank_reaches_to_the_end_of_its_file():
    assert log_rules.blank_fault(90, 10, 100) is None
    assert log_rules.blank_fault(90, 11, 100) == "the blank says 11 bytes, 10 are left in the file"


@pytest.mark.parametrize(("blank", "unit", "fits"), [(100, 92, True), (100, 93, False)])
def test_a_unit_needs_eight_bytes_more(blank, unit, fits):
    assert log_rules.would_have_fitted(blank, unit) is fits
