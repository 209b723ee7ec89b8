"""Queue entries of a block: both twins group rows alike and write the same bytes as unit-by-unit encoding."""

from __future__ import annotations

import os

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.codec import columns
from engine.codec.columns import UnitColumns
from engine.codec.consume_queue import CqUnit, encode
from engine.codec.queue_builder import EntryRows, QueueRuns, build_runs, run_ends

rows = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 4, 8, 12, 17]),
        st.integers(-1, 2),
        st.integers(-1, 2),
        st.integers(0, 4),
        st.integers(-5, 100),
        st.integers(1, 9),
        st.integers(-(2**63), 2**63 - 1),
    ),
    max_size=40,
)


def filled(rows: list[tuple[int, ...]]) -> UnitColumns:
    unit_columns = UnitColumns(max(len(rows), 1))
    unit_columns.count = len(rows)
    place = 0
    for number, (kind, topic, queue, offset, step, size, tag) in enumerate(rows):
        place += step
        unit_columns.sys_flag[number], unit_columns.topic_id[number], unit_columns.queue_id[number] = kind, topic, queue
        unit_columns.queue_offset[number], unit_columns.physical_offset[number], unit_columns.size[number] = (
            offset,
            place,
            size,
        )
        unit_columns.tags_code[number] = tag
    return unit_columns


def are_equal(runs: QueueRuns, other_runs: QueueRuns) -> bool:
    return all(
        getattr(runs, name).dtype == getattr(other_runs, name).dtype
        and (getattr(runs, name) == getattr(other_runs, name)).all()
        for name in QueueRuns.__slots__
    )


@settings(max_examples=80)
@given(rows, st.integers(0, 3))
def test_the_twins_agree_and_every_row_is_in_its_queue(rows, start_row):
    columns.twin()
    start_row = min(start_row, len(rows))
    units = filled(rows)
    runs = build_runs(units, start_row, len(rows))
    os.environ["STORESCOPE_PLAIN"] = "1"
    try:
        assert are_equal(runs, build_runs(units, start_row, len(rows)))
    finally:
        del os.environ["STORESCOPE_PLAIN"]
    expected: dict[tuple[int, int], list[int]] = {}
    for number in range(start_row, len(rows)):
        if rows[number][0] & 12 in {0, 8}:
            expected.setdefault((rows[number][1], rows[number][2]), []).append(number)
    assert list(zip(runs.topic_id.tolist(), runs.queue_id.tolist(), strict=True)) == list(expected)
    for group, expected_rows in enumerate(expected.values()):
        begin, stop = int(runs.start[group]), int(runs.start[group + 1])
        assert runs.row[begin:stop].tolist() == expected_rows
        offsets = [rows[number][3] for number in expected_rows]
        ends = [int(units.physical_offset[number]) + rows[number][5] for number in expected_rows]
        follows = offsets == list(range(offsets[0], offsets[0] + len(offsets))) and sorted(set(ends)) == ends
        assert runs.follows[group] == follows
        written = b"".join(
            encode(CqUnit(int(units.physical_offset[number]), rows[number][5], rows[number][6]))
            for number in expected_rows
        )
        assert runs.entries[begin:stop].tobytes() == written


@given(rows, rows)
def test_rows_of_several_blocks_are_joined_in_order(first_rows, second_rows):
    entry_rows = EntryRows(100)
    entry_rows.add(filled(first_rows), 0, len(first_rows))
    entry_rows.add(filled(second_rows), 0, len(second_rows))
    entry_rows.add_one(0, 1, 2, 3, 4, 5, 6)
    selected = entry_rows.select(np.arange(entry_rows.count - 1))
    assert selected.count == len(first_rows) + len(second_rows)
    assert selected.tags_code.tolist() == [row[6] for row in first_rows + second_rows]
    assert selected.size.dtype == np.int32
    assert (int(entry_rows.topic_id[selected.count]), int(entry_rows.tags_code[selected.count])) == (1, 6)


@settings(max_examples=80)
@given(rows, st.integers(0, 3))
def test_run_ends_equal_the_ends_of_full_runs(rows, start_row):
    columns.twin()
    start_row = min(start_row, len(rows))
    units = filled(rows)
    runs, ends = build_runs(units, start_row, len(rows)), run_ends(units, start_row, len(rows))
    os.environ["STORESCOPE_PLAIN"] = "1"
    try:
        plain = run_ends(units, start_row, len(rows))
    finally:
        del os.environ["STORESCOPE_PLAIN"]
    for run_end in (ends, plain):
        assert run_end.topic_id.tolist() == runs.topic_id.tolist()
        assert run_end.queue_id.tolist() == runs.queue_id.tolist()
        assert run_end.follows.tolist() == runs.follows.tolist()
        assert run_end.end.tolist() == runs.end[runs.start[1:] - 1].tolist()
