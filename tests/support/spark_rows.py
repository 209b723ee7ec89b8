"""Rows of the formats, compared with the records of the engine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from engine.pipeline import schema


def printable(value):
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


EARLIEST, LATEST = datetime(1678, 1, 1, tzinfo=UTC), datetime(2262, 1, 1, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MS = timedelta(milliseconds=1)


def instant(ms):
    """Return the moment of ``ms``; None without one, and outside the years that the columns can hold."""
    is_valid = ms is not None and (EARLIEST - EPOCH) // MS <= ms < (LATEST - EPOCH) // MS
    return EPOCH + ms * MS if is_valid else None


def assert_same(rows, expected, extra):
    """Assert equality field for field; a field that the record lacks is null, ``extra`` names columns beside the
    record's.
    """
    assert len(rows) == len(expected)
    for row, record in zip(rows, expected, strict=True):
        for time, ms in schema.TIMES.items():
            if time in row:
                assert row.pop(time) == instant(row.get(ms))
        if row.get("properties") is not None:
            row["properties"] = dict(row["properties"])
        assert {name: row[name] for name in record} == {name: printable(value) for name, value in record.items()}
        assert all(row[name] is None for name in row.keys() - record.keys() - extra)
