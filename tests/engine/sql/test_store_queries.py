"""Questions only: nothing is written, no other file is reached, and errors are sentences."""

from __future__ import annotations

import builtins
import threading
import time

import pytest

from engine.errors import CannotRead, UsageError
from engine.inspection.snapshot import open_store
from engine.message_store import Message, MessageStore
from engine.sql.relations import RELATIONS, Relation
from engine.sql.store_queries import BadQuestion, MissingPackages, StoreQueries, duckdb_words


@pytest.fixture
def queries(tmp_path):
    with MessageStore(tmp_path / "store") as store:
        for number in range(100):
            store.put_message(Message("Orders", b"x" * number, keys=f"K{number}"))
    with open_store(tmp_path / "store") as opened, StoreQueries(opened) as made:
        yield made


def values(answer):
    return [tuple(row.values()) for batch in answer for row in batch.to_pylist()]


def test_one_question_after_another(queries):
    assert values(queries.ask("SELECT count(*), max(bodyLength) FROM units")) == [(100, 99)]
    assert values(queries.ask("SELECT count(*) FROM units a JOIN units b USING (physicalOffset)")) == [(100,)]
    counts = ("count(*) FROM units", "count(*) FROM queue_entries", "sum(messages) FROM queues")
    assert values(queries.ask(" UNION ALL ".join(f"SELECT {count}" for count in counts))) == [(100,)] * 3
    assert ("units",) in values(queries.ask("SHOW TABLES"))
    assert values(queries.ask("DESCRIBE units"))[0][0] == "physicalOffset"
    assert values(queries.ask("EXPLAIN SELECT topic FROM units"))
    next(queries.ask("SELECT * FROM units"))
    assert values(queries.ask("SELECT keys[1] FROM units WHERE queueOffset = 7")) == [("K7",)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT nothing FROM units", 'Referenced column "nothing" not found'),
        ("SELECT * FROM nowhere", "Table with name nowhere does not exist"),
        ("SELEC 1", "syntax error"),
        ("", "expected one question in SQL, found 0"),
        ("SELECT 1; SELECT 2", "expected one question in SQL, found 2"),
        ("SELECT body FROM units", 'Referenced column "body" not found'),
        ("CREATE TABLE t AS SELECT 1", "found CREATE: a store is only read"),
        ("COPY units TO 'x.csv'", "found COPY: a store is only read"),
        ("ATTACH 'x.db'", "found ATTACH: a store is only read"),
        ("SET enable_external_access = true", "a store is only read"),
        ("INSTALL httpfs", "a store is only read"),
        ("SELECT * FROM read_text('/etc/hostname')", "file system operations are disabled"),
        ("SELECT * FROM 'other.parquet'", "file system operations are disabled"),
        ("SELECT * FROM glob('/*')", "disabled"),
    ],
)
def test_what_is_no_question_about_the_store_is_refused(queries, text, words):
    with pytest.raises(UsageError) as error:
        values(queries.ask(text))
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("SELECT nothing FROM units", "nothing"),
        ("SELECT '消息', nothing FROM units", "nothing"),
        ("SELECT *\nFROM nowhere", "nowhere"),
        ("EXPLAIN SELECT nothing FROM units", "nothing"),
        ("SELECT topic FROM units WHERE topic = 3 AND", "AND"),
        ("SELECT fo(topic) FROM units", "fo(topic)"),
        ("SELECT units.nothing FROM units", "units.nothing"),
    ],
)
def test_an_error_names_the_characters_that_it_is_about(queries, text, word):
    with pytest.raises(BadQuestion) as error:
        values(queries.ask(text))
    assert error.value.start is not None
    assert text[error.value.start : error.value.start + error.value.length] == word
    assert not str(error.value).startswith(("Binder", "Parser", "Catalog"))


def test_an_error_without_a_place_names_none(queries):
    with pytest.raises(BadQuestion) as error:
        values(queries.ask("SELECT CAST(keys[1] AS INTEGER) FROM units"))
    assert (error.value.start, error.value.length) == (None, 0)
    assert "Could not convert string 'K0'" in str(error.value)
    with pytest.raises(BadQuestion) as error:
        values(queries.ask("SELECT topic + queueId + [1] FROM units"))
    assert "Candidate functions" not in str(error.value)
    assert len(str(error.value)) < 200


def test_words_for_a_completion():
    functions, keywords = duckdb_words()
    assert {"count", "date_trunc", "list_contains", "quantile_cont"} <= set(functions)
    assert {"SELECT", "FROM", "WHERE"} <= set(keywords)


def test_what_cannot_be_read_is_the_error(queries, monkeypatch):
    def batches(_store, _columns, _on_progress):
        raise CannotRead("Input/output error", file="/store/commitlog/0")
        yield

    monkeypatch.setitem(RELATIONS, "units", Relation(RELATIONS["units"].columns, batches))
    with StoreQueries(queries._readers["units"]._store) as others, pytest.raises(CannotRead, match="Input/output"):
        values(others.ask("SELECT topic FROM units"))


def test_a_question_is_stopped(queries):
    timer = threading.Timer(0.2, queries.interrupt)
    timer.start()
    begin = time.monotonic()
    with pytest.raises(UsageError):
        values(
            queries.ask("SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range % 7 = b.range % 11")
        )
    timer.join()
    assert time.monotonic() - begin < 60
    assert values(queries.ask("SELECT count(*) FROM units")) == [(100,)]


def test_without_the_package_the_error_says_how_to_install_it(queries, monkeypatch):
    real_import = builtins.__import__

    def without_duckdb(name, *arguments, **words):
        if name == "duckdb":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real_import(name, *arguments, **words)

    monkeypatch.setattr(builtins, "__import__", without_duckdb)
    with pytest.raises(MissingPackages, match=r"pip install 'storescope\[sql\]'"):
        queries.ask("SELECT 1")
