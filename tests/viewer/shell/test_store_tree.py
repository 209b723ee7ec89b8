"""The tree of an incomplete store."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.inspection import open_store
from viewer.look.broken import UnreadableRange
from viewer.look.topic_kinds import is_system_topic
from viewer.runtime import places
from viewer.runtime.survey import card_status, survey
from viewer.shell.main_window import MainWindow
from viewer.shell.store_tree import _facts_of
from viewer.widgets.store_tree_rows import store_nodes

HOLE = UnreadableRange(1 << 20, 2 << 20, "missing")


@pytest.fixture
def holed(golden: Callable[..., Path], tmp_path: Path) -> Path:
    """A cleanly closed store without its second log file."""
    shutil.copytree(golden("broker-orders"), tmp_path / "store")
    (tmp_path / "store" / "commitlog" / f"{HOLE.start:020d}").unlink()
    return tmp_path / "store"


@pytest.mark.golden
def test_a_store_without_its_log_is_not_called_closed(holed: Path) -> None:
    for file in (holed / "commitlog").iterdir():
        file.unlink()
    with open_store(holed) as store:
        actual_survey = survey(store)
    assert card_status(actual_survey, {}, complete=False) == ("error", "the log is gone")
    assert actual_survey.messages == 2_808, (
        "what the files of the queues hold, though none of it counts without the log"
    )
    assert _facts_of(actual_survey, {}, 0)[0] == "0 B · 5 topics · 2,808 entries"


@pytest.mark.golden
def test_a_log_alone_shows_the_facts_of_its_units(
    run: Any, window: MainWindow, golden: Callable[..., Path], tmp_path: Path
) -> None:
    """Card and tree showed "0 topics · 0 messages" above a table full of topics."""
    shutil.copytree(golden("clean-5.3.3") / "commitlog", tmp_path / "store" / "commitlog")

    async def walk() -> None:
        assert await window.open(tmp_path / "store", "findings")
        session, side = window.session, window.side
        assert session is not None
        for _ in range(2000):  # the units are counted after the first rows
            if session.counted_topics and session.survey is not None:
                break
            assert "0 topics" not in side.card.facts.text()
            await asyncio.sleep(0.02)
        await window.settled(60)
        actual_survey = session.survey
        assert actual_survey is not None
        facts = _facts_of(actual_survey, session.counted_topics, session.counted_units)
        assert facts[0] == "1.97 MiB · 4 topics · 4,091 units"
        assert side.card.facts.text() in facts
        topics = side.model.find("topics")
        assert topics is not None
        coloured = {node.topic for node in topics.children if session.colours.color(node.topic) is not None}
        assert coloured == {"TopicA", "TopicB", "orders"}, "all but the broker's own"
        assert topics.badge == "4"
        assert side.tree.isExpanded(side.model.index_of("topics"))
        assert side.model.find("index") is not None
        assert window.view == "findings"
        assert window.panes["findings"].isAncestorOf(window.focusWidget())
        assert window.status.message.text() == window.panes["findings"].status()
        window.show_view("log")
        await window.settled(60)
        assert window.focusWidget() is window.panes["log"].table

    run(walk())


@pytest.mark.golden
def test_a_log_without_queues_shows_no_number_before_the_count(golden: Callable[..., Path]) -> None:
    actual_survey = survey(open_store(golden("queues-gone-5.3.3")))
    assert _facts_of(actual_survey, {}, 0) == ["1.28 MiB · 2 files"]
    topics = next(node for node in store_nodes(actual_survey, places, is_system_topic) if node.name == "topics")
    assert topics.badge == ""
