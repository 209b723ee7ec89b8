"""``sql``: a table, records, files, the list of relations."""

from __future__ import annotations

import io
import json

import contract_records
import pyarrow.parquet as pq
import pytest

from engine.cli.main import main

QUESTION = "SELECT topic, count(*) AS n FROM units GROUP BY 1 ORDER BY 2 DESC, 1"
pytestmark = pytest.mark.golden


@pytest.fixture
def store(golden):
    return str(golden("broker-orders-5.5.1"))


def test_a_table_and_records(store, capsys):
    assert main(["sql", store, QUESTION]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["topic", "n"]
    assert lines[1].split() == ["OrderEvents", "1,597"]
    assert lines[-1] == "-- 6 rows"
    assert main(["sql", store, QUESTION, "--json"]) == 0
    *rows, end = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line for record in (*rows, end) for line in contract_records.complaints(record)] == []
    assert rows[0]["row"] == {"topic": "OrderEvents", "n": 1597}
    assert (end["rows"], end["complete"]) == (6, True)


def test_the_question_may_come_from_standard_input(store, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 7 AS seven"))
    assert main(["sql", store, "-", "--format", "json"]) == 0
    assert capsys.readouterr().out == '{"seven":7}\n'


def test_without_a_question_relations_are_listed(store, capsys):
    assert main(["sql", store, "--json"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line for record in records for line in contract_records.complaints(record)] == []
    assert {"relation": "units", "column": "keys", "kind": "VARCHAR[]"}.items() <= {
        name: value for record in records if record["column"] == "keys" for name, value in record.items()
    }.items()
    assert {record["relation"] for record in records} >= {"units", "queue_entries", "index_entries", "findings"}


def test_files_are_new_and_outside_the_store(store, tmp_path, capsys):
    for kind in ("json", "csv", "parquet"):
        target = tmp_path / f"rows.{kind}"
        assert main(["sql", store, QUESTION, "--format", kind, "-o", str(target)]) == 0
        assert capsys.readouterr().out == "-- 6 rows\n"
        assert main(["sql", store, QUESTION, "--format", kind, "-o", str(target)]) == 2
        assert main(["sql", store, QUESTION, "--format", kind, "-o", str(target), "--overwrite"]) == 0
        assert main(["sql", store, QUESTION, "--format", kind, "-o", f"{store}/rows.{kind}"]) == 2
        capsys.readouterr()
    assert pq.read_table(tmp_path / "rows.parquet").num_rows == 6
    assert (tmp_path / "rows.csv").read_text().splitlines()[1] == "OrderEvents,1597"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((QUESTION, "--format", "parquet"), "-o FILE"),
        ((QUESTION, "-o", "x"), "--format"),
        (("SELECT nothing",), "nothing"),
        (("DELETE FROM units",), "a store is only read"),
    ],
)
def test_wrong_usage_is_one_line(store, words, complaint, capsys):
    assert main(["sql", store, *words]) == 2
    errors = capsys.readouterr().err
    assert complaint in errors
    assert errors.count("\n") == 1
