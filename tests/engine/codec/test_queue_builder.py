"""Queue entries of a block: both twins group alike, and give the bytes that unit by unit gives."""

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


def same(one: QueueRuns, other: QueueRuns) -> bool:
    return all(
        getattr(one, name).dtype == getattr(other, name).dtype and (getattr(one, name) == getattr(other, name)).all()
        for name in QueueRuns.__slots__
    )


@settings(max_examples=80)
@given(rows, st.integers(0, 3))
def test_the_twins_agree_and_every_row_stands_in_its_queue(rows, first):
    columns.twin()
    first = min(first, len(rows))
    units = filled(rows)
    runs = build_runs(units, first, len(rows))
    os.environ["STORESCOPE_PLAIN"] = "1"
    try:
        assert same(runs, build_runs(units, first, len(rows)))
    finally:
        del os.environ["STORESCOPE_PLAIN"]
    expected: dict[tuple[int, int], list[int]] = {}
    for number in range(first, len(rows)):
        if rows[number][0] & 12 in {0, 8}:
            expected.setdefault((rows[number][1], rows[number][2]), []).append(number)
    assert list(zip(runs.topic_id.tolist(), runs.queue_id.tolist(), strict=True)) == list(expected)
    for group, wanted in enumerate(expected.values()):
        begin, stop = int(runs.start[group]), int(runs.start[group + 1])
        assert runs.row[begin:stop].tolist() == wanted
        offsets = [rows[number][3] for number in wanted]
        ends = [int(units.physical_offset[number]) + rows[number][5] for number in wanted]
        follows = offsets == list(range(offsets[0], offsets[0] + len(offsets))) and sorted(set(ends)) == ends
        assert runs.follows[group] == follows
        written = b"".join(
            encode(CqUnit(int(units.physical_offset[number]), rows[number][5], rows[number][6])) for number in wanted
        )
        assert runs.entries[begin:stop].tobytes() == written


@given(rows, rows)
def test_rows_of_several_blocks_stand_one_behind_the_other(one, other):
    entry_rows = EntryRows(100)
    entry_rows.add(filled(one), 0, len(one))
    entry_rows.add(filled(other), 0, len(other))
    entry_rows.add_one(0, 1, 2, 3, 4, 5, 6)
    both = entry_rows.select(np.arange(entry_rows.count - 1))
    assert both.count == len(one) + len(other)
    assert both.tags_code.tolist() == [row[6] for row in one + other]
    assert both.size.dtype == np.int32
    assert (int(entry_rows.topic_id[both.count]), int(entry_rows.tags_code[both.count])) == (1, 6)


@settings(max_examples=80)
@given(rows, st.integers(0, 3))
def test_the_ends_of_runs_are_those_of_the_runs(rows, first):
    columns.twin()
    first = min(first, len(rows))
    units = filled(rows)
    runs, ends = build_runs(units, first, len(rows)), run_ends(units, first, len(rows))
    os.environ["STORESCOPE_PLAIN"] = "1"
    try:
        plain = run_ends(units, first, len(rows))
    finally:
        del os.environ["STORESCOPE_PLAIN"]
    for results in (ends, plain):
        assert results.topic_id.tolist() == runs.topic_id.tolist()
        assert results.queue_id.tolist() == runs.queue_id.tolist()
        assert results.follows.tolist() == runs.follows.tolist()
        assert results.end.tolist() == runs.end[runs.start[1:] - 1].tolist()
