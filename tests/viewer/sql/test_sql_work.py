"""The worker's part of the view SQL: answers beside a recount in Python, limits, stops, exports."""

from __future__ import annotations

import builtins
import csv
import json
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import golden_stores
import pyarrow.parquet as pq
import pytest
from handmade_stores import healthy

from engine.codec.message import Unit
from engine.decoding.bodies import decoding_by
from engine.decoding.rules import DecodingRule
from engine.errors import UsageError
from engine.inspection import open_store
from engine.inspection.groups import group_progress
from viewer.runtime.worker import Cancelled, WorkerControl
from viewer.sql import sql_work
from viewer.sql.answers import Answer, Question, Refusal
from viewer.sql.examples import EXAMPLES

STORES = ("broker-orders-5.5.1", "broker-crash", "broker-retries", "broker-transactions")
TEXTS = {example.title: example.text for example in EXAMPLES}


def control() -> WorkerControl:
    return WorkerControl(1, lambda _frame: None)


def ask(store: Path, text: str, folder: Path, **options: Any) -> Answer | Refusal:
    return sql_work.ask(control(), store, None, Question(text, **options), folder / "rows.arrow")


def rows(store: Path, title: str, folder: Path) -> list[tuple[Any, ...]]:
    answer = ask(store, TEXTS[title], folder)
    assert isinstance(answer, Answer), answer
    assert answer.rows is not None
    return list(answer.rows)


@pytest.mark.golden
@pytest.mark.parametrize("name", STORES)
def test_the_examples_answer_like_a_recount_in_python(name: str, golden: Any, tmp_path: Path) -> None:
    path = golden(name)
    with open_store(path) as store:
        units = [item for item in store.log.walk() if isinstance(item, Unit) and not item.stale]
        entries = {
            (topic, queue_id, entry.queue_offset): entry.physical_offset
            for topic, queues in store.queues.by_topic().items()
            for queue_id, queue in queues.items()
            for entry in queue.entries()
            if entry.state == "entry"
        }
        behind: Counter[tuple[str, str]] = Counter()
        for progress in group_progress(store):
            behind[progress.group, progress.topic] += progress.behind or 0
    offsets = {unit.offset for unit in units}

    counts, sizes = Counter(unit.topic for unit in units), Counter[str]()
    for unit in units:
        sizes[unit.topic] += unit.size
    biggest = rows(path, "The biggest topics, in messages and bytes", tmp_path)
    assert {topic: (messages, size) for topic, messages, size in biggest} == {
        topic: (count, sizes[topic]) for topic, count in counts.items()
    }
    lag = rows(path, "How far each group is behind", tmp_path)
    assert {(group, topic): total or 0 for group, topic, total in lag} == behind
    without_entry = rows(path, "Messages to which no queue entry leads", tmp_path)
    assert {row[3] for row in without_entry} == offsets - set(entries.values())
    without_message = rows(path, "Queue entries that lead to no message", tmp_path)
    assert {tuple(row[:3]) for row in without_message} == {
        place for place, offset in entries.items() if offset not in offsets
    }
    slowest = rows(path, "The slowest messages, from born to stored", tmp_path)
    delays = sorted((unit.store_timestamp - unit.born_timestamp for unit in units), reverse=True)
    assert [row[0] for row in slowest] == delays[:100]
    keys = Counter(
        unit.properties["UNIQ_KEY"]
        for unit in units
        if "UNIQ_KEY" in unit.properties and not unit.topic.startswith(("%", "RMQ_SYS_"))
    )
    twice = rows(path, "Messages that were sent twice: the same unique key", tmp_path)
    assert {row[0]: row[1] for row in twice} == {key: count for key, count in keys.items() if count > 1}


@pytest.mark.golden
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
def test_every_example_is_answered(example: Any, golden: Any, tmp_path: Path) -> None:
    answer = ask(golden("broker-crash"), example.text, tmp_path)
    assert isinstance(answer, Answer)
    assert answer.columns


def test_a_limit_leaves_out_further_rows_and_says_so(tmp_path: Path) -> None:
    store = healthy().write(tmp_path / "store")
    everything = ask(store, "SELECT * FROM range(1000)", tmp_path)
    assert isinstance(everything, Answer)
    assert (everything.row_count, everything.is_cut) == (1000, False)
    few = ask(store, "SELECT * FROM range(1000)", tmp_path, row_limit=10)
    assert isinstance(few, Answer)
    assert (few.row_count, few.is_cut) == (10, True)
    exactly = ask(store, "SELECT * FROM range(1000)", tmp_path, row_limit=1000)
    assert isinstance(exactly, Answer)
    assert not exactly.is_cut


def test_a_file_that_is_too_large_is_cut(tmp_path: Path, monkeypatch: Any) -> None:
    store = healthy().write(tmp_path / "store")
    monkeypatch.setattr(sql_work, "SHORT_ROWS", 10)
    monkeypatch.setattr(sql_work, "MAX_FILE_BYTES", 1000)
    answer = ask(store, "SELECT * FROM range(1000000)", tmp_path, row_limit=1_000_000)
    assert isinstance(answer, Answer)
    assert answer.is_cut
    assert answer.row_count < 1_000_000


def test_a_mistake_is_a_refusal_with_its_place(tmp_path: Path) -> None:
    store = healthy().write(tmp_path / "store")
    refusal = ask(store, "SELECT nothing FROM units", tmp_path)
    assert isinstance(refusal, Refusal)
    assert (refusal.start, refusal.length) == (7, 7)
    assert 'column "nothing" not found' in refusal.reason
    refusal = ask(store, "DELETE FROM units", tmp_path)
    assert isinstance(refusal, Refusal)
    assert "a store is only read" in refusal.reason


def test_a_long_question_is_stopped(tmp_path: Path) -> None:
    store = healthy().write(tmp_path / "store")
    running = control()
    threading.Timer(0.3, running.stop.set).start()
    question = Question("SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range % 7 = b.range % 11")
    begin = time.monotonic()
    with pytest.raises(Cancelled):
        sql_work.ask(running, store, None, question, tmp_path / "rows.arrow")
    assert time.monotonic() - begin < 60


def test_bodies_are_read_only_if_they_are_asked_for(tmp_path: Path) -> None:
    store = healthy().write(tmp_path / "store")
    assert isinstance(ask(store, "SELECT body FROM units", tmp_path), Refusal)
    answer = ask(store, "SELECT body FROM units", tmp_path, with_bodies=True)
    assert isinstance(answer, Answer)
    with open_store(store) as opened:
        bodies = [item.body for item in opened.log.walk() if isinstance(item, Unit)]
    assert [row[0] for row in answer.rows or ()] == bodies


def test_bodies_are_decoded_by_the_rules_in_force(tmp_path: Path) -> None:
    """The sheet had bodies only as bytes, while the command decoded them."""
    store = healthy().write(tmp_path / "store")
    question = "SELECT decoded FROM units WHERE topic = 'Orders'"
    with decoding_by([DecodingRule("Orders", "text")]):
        answer = ask(store, question, tmp_path, with_bodies=True, is_decoded=True)
        assert isinstance(ask(store, question, tmp_path, with_bodies=True), Refusal)
    assert isinstance(answer, Answer)
    with open_store(store) as opened:
        texts = [item.body.decode() for item in opened.units() if isinstance(item, Unit) and item.topic == "Orders"]
    assert [json.loads(row[0]) for row in answer.rows or ()] == texts
    assert answer.question.command[-1] == "--decoded"


def test_all_rows_are_exported_outside_of_the_store(tmp_path: Path) -> None:
    store = healthy().write(tmp_path / "store")
    before = golden_stores.fingerprint(store)
    question = Question("SELECT topic, physicalOffset FROM units", row_limit=1)
    targets = [tmp_path / f"rows.{suffix}" for suffix in ("csv", "jsonl", "parquet")]
    counts = {sql_work.export(control(), store, None, question, target) for target in targets}
    assert len(counts) == 1
    with targets[0].open() as lines:
        table = list(csv.reader(lines))
    records = [json.loads(line) for line in targets[1].read_text().splitlines()]
    assert table[0] == ["topic", "physicalOffset"]
    assert len(table) - 1 == len(records) == pq.read_table(targets[2]).num_rows == counts.pop()
    assert {int(row[1]) for row in table[1:]} == {record["physicalOffset"] for record in records}
    with pytest.raises(UsageError, match="outside the store"):
        sql_work.export(control(), store, None, question, store / "rows.csv")
    assert golden_stores.changes(before, golden_stores.fingerprint(store)) == []


def test_a_stopped_export_leaves_no_file(tmp_path: Path) -> None:
    store = healthy().write(tmp_path / "store")
    running = control()
    running.stop.set()
    question = Question("SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range % 7 = b.range % 11")
    with pytest.raises(Cancelled):
        sql_work.export(running, store, None, question, tmp_path / "rows.csv")
    assert not (tmp_path / "rows.csv").exists()


def test_without_duckdb_the_vocabulary_says_how_to_install_it(monkeypatch: Any) -> None:
    complete = sql_work.vocabulary(control())
    assert complete.missing == ""
    assert "count" in complete.functions
    real_import = builtins.__import__

    def without_duckdb(name: str, *arguments: Any, **words: Any) -> Any:
        if name == "duckdb":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real_import(name, *arguments, **words)

    monkeypatch.setattr(builtins, "__import__", without_duckdb)
    vocabulary = sql_work.vocabulary(control())
    assert vocabulary.missing == "SQL needs the package duckdb: pip install 'storescope[sql]'"
    assert vocabulary.relations == complete.relations
