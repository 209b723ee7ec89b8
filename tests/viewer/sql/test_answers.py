"""Answers of the view SQL: plain values, rows of a short answer, and pages of a long one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from viewer.runtime.worker import WorkerControl
from viewer.sql import sql_work
from viewer.sql.answers import Answer, AnswerFile, Question, as_record, cell_text, plan_text, rows_of

pytestmark = pytest.mark.golden
CONTROL = WorkerControl(1, lambda _frame: None)


@pytest.fixture
def ask(golden: Any, tmp_path: Path) -> Any:
    def answer(text: str, **options: Any) -> Answer:
        result = sql_work.ask(
            CONTROL, golden("broker-orders-5.5.1"), None, Question(text, **options), tmp_path / "rows.arrow"
        )
        assert isinstance(result, Answer), result
        return result

    return answer


def test_values_are_plain_and_a_record_is_that_of_the_command(ask: Any) -> None:
    answer = ask(
        "SELECT 7::HUGEINT AS n, 0.5 AS part, TIMESTAMPTZ '2026-11-20 09:41:07.225+00' AS time, keys, properties,"
        " true AS yes, 'x' AS word, NULL AS nothing, '\\xAA'::BLOB AS body FROM units WHERE physicalOffset = 0"
    )
    kinds = {column.name: column.kind for column in answer.columns}
    assert (kinds["n"], kinds["nothing"]) == ("integer", "text")
    assert kinds["part"] == "number"
    assert kinds["time"] == "time"
    assert kinds["keys"] == kinds["properties"] == "list"
    assert (kinds["yes"], kinds["word"], kinds["body"]) == ("boolean", "text", "bytes")
    (row,) = rows_of(answer)
    assert (row["n"], row["part"], row["time"]) == (7, 0.5, 1_795_167_667_225_000)
    record = as_record(row, answer.columns)
    assert record["time"] == "2026-11-20T09:41:07.225000+00:00"
    assert record["body"] == "qg=="
    assert isinstance(record["properties"], dict)
    assert cell_text(["a", "b"]) == '["a", "b"]'


def test_a_long_answer_is_read_in_pages_and_is_the_same_as_a_short_one(ask: Any, monkeypatch: Any) -> None:
    text = "SELECT physicalOffset, topic, storeTime, keys FROM units ORDER BY physicalOffset"
    short = ask(text)
    assert short.file is None
    monkeypatch.setattr(sql_work, "SHORT_ROWS", 100)
    long = ask(text)
    assert long.rows is None
    assert long.row_count == short.row_count == 2822
    source = AnswerFile(long)
    assert [tuple(row.values()) for row in source.rows(0, 2822)] == list(short.rows)
    page = source.read(1000, 10, 20)
    assert [row.number for row in page.rows] == list(range(990, 1020))
    assert (page.rows_before, page.is_first, page.is_last) == (10, False, False)
    assert source.read(2820, 0, 100).is_last
    assert source.position_of(7) == 7
    assert source.position(page.rows[0]) == source.number(page.rows[0]) == 990


def test_rows_are_told_apart_by_identity(ask: Any) -> None:
    first, second = rows_of(ask("SELECT 1 AS n UNION ALL SELECT 1"))
    assert dict(first) == dict(second)
    assert first != second
    assert len({first, second}) == 2


def test_columns_of_the_same_name_get_numbers(ask: Any) -> None:
    assert [column.name for column in ask("SELECT 1 AS n, 2 AS n").columns] == ["n", "n_2"]


def test_a_plan_is_text(ask: Any) -> None:
    answer = ask("EXPLAIN SELECT topic FROM units")
    assert answer.is_plan
    assert "topic" in plan_text(answer)
