"""The chart of an answer."""

from __future__ import annotations

from viewer.sql.answers import ResultColumn, SqlRow
from viewer.sql.chart import MAX_BARS, chart_of, usual_form, value_columns

TOPIC, TIME, COUNT, SIZE = (
    ResultColumn("topic", "text"),
    ResultColumn("minute", "time"),
    ResultColumn("messages", "integer"),
    ResultColumn("bytes", "number"),
)


def rows(columns, *values):
    names = tuple(column.name for column in columns)
    return [SqlRow(number, names, value) for number, value in enumerate(values)]


def test_names_are_bars_of_one_column() -> None:
    columns = (TOPIC, COUNT, SIZE)
    assert usual_form(columns) == "bars"
    assert value_columns(columns) == ["messages", "bytes"]
    table = rows(columns, ("Orders", 3, 0.5), (None, 1, 2.0), ("Payments", None, 1.0))
    data = chart_of(columns, table, 3, "bars", "messages")
    assert [(bar.name, bar.value, bar.words) for bar in data.bars] == [("Orders", 3.0, "3"), ("#2", 1.0, "1")]
    assert [bar.value for bar in chart_of(columns, table, 3, "bars", "bytes").bars] == [0.5, 2.0, 1.0]
    many = rows((TOPIC, COUNT), *((f"T{number}", number) for number in range(100)))
    data = chart_of((TOPIC, COUNT), many, 100, "bars", "")
    assert len(data.bars) == MAX_BARS
    assert data.note == "messages · the first 40 of 100 rows"


def test_times_are_lines_of_all_columns_in_order() -> None:
    columns = (TIME, COUNT, SIZE)
    assert usual_form(columns) == "lines"
    table = rows(columns, (2_000_000, 5, 1.0), (1_000_000, 4, float("nan")), (None, 9, 9.0))
    data = chart_of(columns, table, 3, "lines", "")
    assert data.are_times
    assert [(line.name, line.xs, line.ys) for line in data.series] == [
        ("messages", (1.0, 2.0), (4.0, 5.0)),
        ("bytes", (2.0,), (1.0,)),
    ]
    assert data.note == "over minute · 3 rows"


def test_one_column_of_numbers_is_drawn_over_the_number_of_its_rows() -> None:
    data = chart_of((COUNT,), rows((COUNT,), (3,), (7,)), 2, "lines", "")
    assert [(line.xs, line.ys) for line in data.series] == [((0.0, 1.0), (3.0, 7.0))]


def test_without_numbers_or_rows_it_says_why() -> None:
    assert "column of numbers" in chart_of((TOPIC,), rows((TOPIC,), ("a",)), 1, "bars", "").why
    assert "no rows" in chart_of((TOPIC, COUNT), [], 0, "bars", "").why
