"""Filters from cells and other views on a filter line: applied, joined, prepared, or passed to the rules.

Completion offers values that the log contains, the most frequent first.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from handmade_stores import HandmadeStore
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from engine.inspection import open_store
from engine.query import parse
from viewer.log.columns import unit_kind
from viewer.log.log_model import LogModel
from viewer.log.tools import MAX_SAMPLES, MAX_VALUE_CHARACTERS, SAME_WORDS, LogTools, same_term, sample
from viewer.log.unit_panes import UnitPanes
from viewer.runtime import places
from viewer.widgets.record_view import RecordView


@pytest.fixture
def tools(qtbot: Any, themed_app: object) -> LogTools:
    table, host = RecordView("units.table", unit_kind(places.queue)), QWidget()
    unit = UnitPanes(host)
    log_tools = LogTools(LogModel(), table, unit)
    for widget in (log_tools.line, table, host, unit.build()):
        qtbot.addWidget(widget)
    return log_tools


def test_a_condition_replaces_the_filter_or_narrows_it(tools: LogTools) -> None:
    applied: list[str] = []
    tools.line.applied.connect(applied.append)
    tools.take_term("only", "queueId = 3")
    tools.take_term("and", 'topic = "Orders"')
    assert applied == ["queueId = 3", 'queueId = 3 and topic = "Orders"']


def test_a_condition_is_prepared_without_being_applied(tools: LogTools) -> None:
    tools.take_term("prepare", "queueId = 3")
    assert (tools.line.text(), tools.line.in_force) == ("queueId = 3", "")


def test_a_condition_is_copied_with_a_message(tools: LogTools) -> None:
    emitted: list[str] = []
    tools.statusText.connect(emitted.append)
    tools.take_term("copy", "queueId = 3")
    assert QGuiApplication.clipboard().text() == "queueId = 3"
    assert emitted == ["Copied queueId = 3"]


def test_colouring_is_passed_to_the_rules(tools: LogTools, qtbot: Any) -> None:
    with qtbot.waitSignal(tools.ruleRequested) as blocker:
        tools.take_term("colour", "queueId = 3")
    assert blocker.args == ["queueId = 3"]


def test_without_a_chosen_cell_there_is_a_message(tools: LogTools) -> None:
    emitted: list[str] = []
    tools.statusText.connect(emitted.append)
    tools._by_cell("only")
    assert emitted == ["A filter cannot search for this value."]


def test_values_are_those_of_the_model_and_files_those_of_the_store(tools: LogTools) -> None:
    tools._model.values = {"tags": ("T1", "T2")}
    assert list(tools.known_values("tags")) == ["T1", "T2"]
    assert list(tools.known_values("file")) == []
    log = SimpleNamespace(files=[SimpleNamespace(name="00000000000000000000")])
    survey = SimpleNamespace(topics=[SimpleNamespace(name="Orders")], last_time=1_700_000_000_000)
    tools.session = cast("Any", SimpleNamespace(survey=survey, snapshot=SimpleNamespace(log=log)))
    assert list(tools.known_values("file")) == ["00000000000000000000"]
    assert list(tools.known_values("topic")) == ["Orders"]


def test_the_last_minutes_are_those_of_the_log(tools: LogTools) -> None:
    assert tools.last_minutes() == "storeTimestamp > now - 5m"
    survey = SimpleNamespace(topics=[], last_time=1_700_000_000_000)
    tools.session = cast("Any", SimpleNamespace(survey=survey))
    assert tools.last_minutes().startswith("storeTimestamp >= ")


def values(tmp_path, handmade: HandmadeStore):
    with open_store(handmade.write(tmp_path / "store")) as store:
        return sample(store.log)


def test_values_include_fields_properties_and_property_names(tmp_path):
    store = HandmadeStore()
    for number in range(9):
        store.put(topic="Paid" if number % 3 else "Orders", tags="T", keys=f"K{number}", more={"region": "eu"})
    record = values(tmp_path, store)
    assert record["topic"] == ("Paid", "Orders")
    assert record["tags"] == ("T",)
    assert set(record["keys"]) >= {f"K{number}" for number in range(9)}
    assert "region" in record["properties"]
    assert record["properties.region"] == ("eu",)


def test_too_long_values_are_left_out_and_their_number_is_limited(tmp_path):
    store = HandmadeStore()
    store.put(tags="t" * (MAX_VALUE_CHARACTERS + 1))
    for number in range(MAX_SAMPLES + 60):
        store.put(keys=f"K{number}")
    record = values(tmp_path, store)
    assert "tags" not in record
    assert len(record["keys"]) <= MAX_SAMPLES


def test_a_log_without_a_unit_has_no_values(tmp_path):
    assert values(tmp_path, HandmadeStore()) == {}


def unit(**changes):
    values = {
        "topic": "Orders",
        "queue_id": 3,
        "keys": [],
        "unique_key": None,
        "sys_flag": 0,
        "offset": 500,
        "prepared_transaction_offset": 0,
        "properties": {},
    }
    return SimpleNamespace(**values | changes)


def test_a_queue_is_its_topic_and_number():
    assert same_term("queue", unit()) == 'topic = "Orders" and queueId = 3'


def test_any_key_matches_or_else_the_unique_key():
    assert same_term("key", unit(keys=["a", "b"], unique_key="U")) == 'keys = "a" or keys = "b"'
    assert same_term("key", unit(unique_key="U")) == 'uniqueKey = "U"'
    assert same_term("key", unit()) is None


def test_units_of_a_transaction_point_at_the_half_message_and_share_its_key():
    half = unit(offset=500, properties={"TRAN_MSG": "true"}, unique_key="U")
    end = unit(offset=900, prepared_transaction_offset=500, unique_key="U")
    assert same_term("transaction", half) == same_term("transaction", end)
    assert "500" in same_term("transaction", end)
    assert same_term("transaction", unit()) is None


@pytest.mark.parametrize("kind", SAME_WORDS)
def test_every_filter_can_be_read(kind):
    parse(same_term(kind, unit(keys=['"quoted"'], unique_key="U", properties={"TRAN_MSG": "true"})))
