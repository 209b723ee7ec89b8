"""Many records of whole numbers written at once look as those that are written one by one."""

from __future__ import annotations

import io
import random

import numpy as np
import pytest

from engine.cli.number_rows import NumberCells, record_at, row_count, rows_text
from engine.cli.output import Column, Output

COLUMNS = (
    Column("Offset", "offset", "number"),
    Column("Place", "place", "number"),
    Column("Size", "size", "number"),
    Column("State", "state"),
    Column("Verdict", "verdict"),
)
LEAST, MOST = -(1 << 63), (1 << 63) - 1


def numbers(seed: int, count: int) -> np.ndarray:
    rng = random.Random(seed)
    values = [
        rng.choice((rng.randint(LEAST, MOST), rng.randint(-1001, 1001), 0, 10 ** rng.randrange(19)))
        for _ in range(count)
    ]
    return np.array(values, np.int64)


def fields_of(seed: int, count: int, start: int = 0):
    offsets = np.arange(start, start + count)
    rows = {"type": "cq", "offset": offsets, "place": numbers(seed, count), "size": np.full(count, 132)}
    return {**rows, "ext": None, "state": "entry"}


def written(fields, *, at_once: bool, **options) -> str:
    stream = io.StringIO()
    out = Output(stream=stream, **options)
    for part in (fields, fields):
        if at_once:
            out.rows(part, COLUMNS)
        else:
            for row in range(row_count(part)):
                out.record(record_at(part, row), COLUMNS)
    out.flush()
    return stream.getvalue()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("options", [{"as_json": True}, {"as_json": False}, {"as_json": False, "markdown": True}])
def test_records_at_once_are_written_as_one_by_one(seed, options):
    fields = fields_of(seed, 350)
    assert written(fields, at_once=True, **options) == written(fields, at_once=False, **options)


def test_numbers_that_grow_out_of_their_column_are_written_as_one_by_one():
    fields = fields_of(1, 500) | {"place": np.array([7] * 300 + [MOST] * 200), "size": np.arange(500) - 250}
    assert written(fields, at_once=True, as_json=False) == written(fields, at_once=False, as_json=False)


def test_every_number_is_written_as_python_writes_it():
    values = np.array([LEAST, LEAST + 1, -1000, -1, 0, 9, 10, 999, 1000, 999_999, MOST], np.int64)
    assert rows_text([NumberCells(values), "\n"]) == "".join(f"{value}\n" for value in values.tolist())
    assert rows_text([NumberCells(values, 26), "|"]) == "".join(f"{value:>26,}|" for value in values.tolist())
    assert rows_text([NumberCells(values, 20)]) is None
