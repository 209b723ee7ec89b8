"""The model of the Rows view, without Qt: rows of a RocksDB, their columns, and what the table says without rows."""

from __future__ import annotations

import json
import sys

import agree
import pytest

from engine.errors import CannotRead
from engine.inspection import open_store
from viewer.look.assets import catalogue
from viewer.rows import rows as subject
from viewer.rows.rows import COUNTS, NONE, STATES, SUBJECTS, TIMES, TITLES, VERDICTS, RowsModel, RowsRead
from viewer.runtime import places

pytestmark = pytest.mark.golden


@pytest.fixture
def store(golden):
    pytest.importorskip("rocksdict")
    with open_store(golden("rocksdb-rows-5.5.1")) as opened:
        yield opened


@pytest.mark.parametrize("name", ["timer", "transactions", "pop"])
def test_rows_are_those_of_the_command(golden, store, name):
    _, printed, _ = agree.command("rows", str(golden("rocksdb-rows-5.5.1")), "--of", name, "--json")
    records = [json.loads(line) for line in printed.splitlines()]
    rows_read = subject.read_rows(store, name)
    assert records
    assert [subject.record(line) for line in rows_read.lines] == records
    assert rows_read.is_complete
    assert rows_read.folder in {"rocksdbstore", "kvStore"}


def test_a_row_leads_to_its_message_and_to_its_queue_entry(store):
    pops = subject.read_rows(store, "pop").lines
    line = next(line for line in pops if line.verdict == "match")
    columns = {column.key: column for column in subject.rows_kind("pop").columns}
    assert columns["physicalOffset"].jump(line) == places.log(line.physical_offset)
    assert columns["queueOffset"].jump(line) == places.queue(line.topic, line.queue_id, line.queue_offset)
    assert store.log.unit_at(line.physical_offset).topic == line.topic


def test_only_so_many_rows_are_read(store, monkeypatch):
    monkeypatch.setattr(subject, "MAX_ROWS", 2)
    model = RowsModel()
    model.take(subject.read_rows(store, "timer"))
    assert len(model.lines) == 2
    assert "the first 2" in model.head_note()


def test_the_chosen_row_is_found_again(store):
    model = RowsModel()
    model.take(subject.read_rows(store, "timer"))
    chosen = model.lines[-1]
    model.take(subject.read_rows(store, "timer"))
    assert model.lines[model.line_like(chosen)].row.key == chosen.row.key
    assert model.line_like(None) == 0
    assert "all lead to their message" in model.summary()


def test_without_rows_the_table_says_why(golden, store, monkeypatch):
    model = RowsModel()
    with open_store(golden("clean-5.3.3")) as other_store:
        assert subject.subjects_of(other_store) == ()
        model.take(subject.read_rows(other_store, "timer"))
    assert model.table_state().kind == "empty"
    assert "keeps them in files" in model.table_state().text
    model.take(RowsRead("pop"))
    assert model.table_state().text == NONE["pop"]
    model.error = "disk gone"
    assert (model.table_state().kind, model.table_state().text) == ("error", "disk gone")

    def damaged(_subject):
        raise CannotRead("torn", file="x")

    monkeypatch.setattr(store.rocksdb_rows, "rows", damaged)
    model.take(subject.read_rows(store, "timer"))
    assert (model.table_state().kind, model.table_state().text) == ("unread", "torn")


def test_without_the_extra_the_table_names_it(golden, monkeypatch):
    monkeypatch.setitem(sys.modules, "rocksdict", None)
    with open_store(golden("rocksdb-rows-5.5.1")) as opened:
        model = RowsModel()
        model.take(subject.read_rows(opened, subject.subjects_of(opened)[0]))
    assert model.table_state().kind == "unread"
    assert "pip install 'storescope[rocksdb]'" in model.table_state().text


def test_all_words_are_in_chinese():
    texts = catalogue("zh_CN").texts
    chips = [chip.word for table in (STATES, VERDICTS) for chip in table.values()]
    used = [*TITLES.values(), *NONE.values(), *TIMES.values(), *COUNTS.values(), *chips]
    assert [text for text in used if text not in texts] == []
    assert tuple(TITLES) == tuple(NONE) == SUBJECTS
