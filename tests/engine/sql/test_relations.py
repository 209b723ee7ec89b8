"""Only the columns that a question names are read, and conditions are met."""

from __future__ import annotations

import pyarrow.dataset as ds
import pytest

from engine.sql.relations import RELATIONS, Relation, needed_columns

COLUMNS = {"size": "int", "topic": "string", "body": "binary"}


def test_columns_are_those_of_the_answer_and_of_its_condition():
    assert list(needed_columns(COLUMNS, ["topic"], None)) == ["topic"]
    assert list(needed_columns(COLUMNS, ["topic"], ds.field("size") > 3)) == ["size", "topic"]


@pytest.mark.golden
def test_a_question_reads_no_column_that_it_does_not_name(ask, monkeypatch):
    asked = []
    units = RELATIONS["units"]

    def batches(store, columns, on_progress):
        asked.append(sorted(columns))
        return units.batches(store, columns, on_progress)

    monkeypatch.setitem(RELATIONS, "units", Relation(units.columns, batches))
    rows = ask("SELECT topic, count(*) AS n FROM units WHERE size > 900 GROUP BY 1 ORDER BY 1")
    assert asked == [["size", "topic"]]
    assert sum(row["n"] for row in rows) == ask("SELECT count(*) AS n FROM units WHERE size > 900")[0]["n"] > 100
