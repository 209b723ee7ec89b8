"""Batches of rows on their way to Spark: small ones are joined, and no row is lost or moved."""

import random

import pyarrow as pa
import pytest

from engine.pipeline.unit_rows import SMALL_BATCH_BYTES, SMALL_BATCH_ROWS, join_small_batches


def batch(begin, rows, size=0):
    columns = {
        "n": pa.array(range(begin, begin + rows), pa.int64()),
        "body": pa.array([bytes(size)] * rows, pa.binary()),
    }
    return pa.RecordBatch.from_pydict(columns)


@pytest.mark.parametrize("seed", range(10))
def test_rows_keep_their_order_in_fewer_batches(seed):
    rng, batches, rows = random.Random(seed), [], 0
    for _ in range(rng.randrange(1, 60)):
        batches.append(batch(rows, rng.choice([0, 1, 17, 300, SMALL_BATCH_ROWS])))
        rows += batches[-1].num_rows
    all_joined = list(join_small_batches(batches))
    assert [n for joined in all_joined for n in joined.column(0).to_pylist()] == list(range(rows))
    assert all(joined.num_rows >= SMALL_BATCH_ROWS for joined in all_joined[:-1])
    assert {joined.schema for joined in all_joined} == {batches[0].schema}


def test_few_rows_of_large_bodies_are_not_gathered():
    results = list(join_small_batches([batch(n, 1, SMALL_BATCH_BYTES) for n in range(5)]))
    assert [item.num_rows for item in results] == [1] * 5


def test_no_batches_are_none():
    assert list(join_small_batches([])) == []
