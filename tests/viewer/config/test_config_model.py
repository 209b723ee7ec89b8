"""The model of the Config view: the chosen table, its values, and its differences from the ``.bak`` file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from handmade_stores import HandmadeStore

from engine.inspection import open_store
from engine.inspection.tree_values import MAX_VALUES
from viewer.config.config_model import ConfigModel, TableRow, read_rows

TOPICS = {"topicConfigTable": {"A": {"perm": 6}}}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    store = HandmadeStore()
    store.put()
    written = store.write(tmp_path / "s")
    (written / "config").mkdir()
    return written


def rows(root: Path, **files: object) -> list[TableRow]:
    """Return the tables of a store with these files; ``_bak`` at the end of a name means ``.json.bak``."""
    for name, content in files.items():
        file = f"{name.removesuffix('_bak')}.json" + (".bak" if name.endswith("_bak") else "")
        (root / "config" / file).write_text(content if isinstance(content, str) else json.dumps(content))
    with open_store(root) as store:
        return read_rows(store)


def shown(model: ConfigModel) -> tuple[str, ...]:
    """Return the kinds of the states of both pages; "" for a page that needs no message."""
    states = (model.values_state(len(model.values())), model.changes_state())
    return tuple(state.kind if state is not None else "" for state in states)


def test_before_and_without_tables_nothing_is_chosen(root: Path):
    model = ConfigModel()
    assert (model.table_state(), model.status(), shown(model)) == (None, "", ("empty", "empty"))
    assert model.take(rows(root)) is None
    assert model.table_state().text == "The store has no tables below config/."


def test_the_named_table_is_chosen_once_and_then_the_one_that_the_user_chose(root: Path):
    """A table named by a place was chosen again at each refresh, whatever the user had chosen since."""
    tables = rows(root, topics=TOPICS, subscriptionGroup={"subscriptionGroupTable": {}}, consumerFilter={})
    names = [row.name for row in tables]
    model = ConfigModel(pending_table="topics.json")
    assert model.take(tables) == names.index("topics.json")
    assert model.status() == "3 tables"
    model.chosen = tables[names.index("consumerFilter.json")]
    assert model.take(tables[::-1]) == names[::-1].index("consumerFilter.json")
    model.forget_store()
    assert model.take(tables) == 0


def test_a_table_has_its_values_and_what_changed(root: Path):
    model = ConfigModel(pending_table="topics.json")
    model.take(rows(root, topics=TOPICS, topics_bak={"topicConfigTable": {"A": {"perm": 4}}}))
    assert model.values()[-1].value == "6"
    assert model.chosen.differing == "1 value"
    assert shown(model) == ("", "")


@pytest.mark.parametrize(
    ("files", "states", "differing"),
    [
        ({"topics": TOPICS}, ("", "empty"), ""),
        ({"topics": TOPICS, "topics_bak": TOPICS}, ("", "empty"), "the same"),
        ({"topics": "{broken", "topics_bak": TOPICS}, ("note", "error"), "not comparable"),
        ({"topics": TOPICS, "topics_bak": "{broken"}, ("", "error"), "not comparable"),
        ({"topics": {}}, ("empty", "empty"), ""),
    ],
)
def test_pages_without_rows_have_a_reason(root: Path, files: dict, states: tuple, differing: str):
    model = ConfigModel()
    model.take(rows(root, **files))
    assert (shown(model), model.chosen.differing) == (states, differing)


def test_only_the_first_values_of_a_large_table_are_listed(root: Path):
    model = ConfigModel()
    model.take(rows(root, topics=TOPICS))
    assert model.values_state(MAX_VALUES - 1) is None
    assert model.values_state(MAX_VALUES).kind == "cut"


def test_unreadable_tables_have_a_reason_until_they_are_readable(root: Path):
    model = ConfigModel()
    model.fail("Permission denied")
    assert (model.table_state().kind, model.table_state().text) == ("error", "Permission denied")
    model.take(rows(root, topics=TOPICS))
    assert model.table_state() is None
