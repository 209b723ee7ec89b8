"""History of a message on one line: the text of each step, and the place it leads to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt

from engine.inspection.copy_out import copy_found
from engine.inspection.samples import sample
from engine.inspection.where.evidence import Evidence, WhereResult
from engine.rules.where import HistoryStep, Route
from viewer.look.formats import set_zone
from viewer.runtime.places import Place, log, queue, trace
from viewer.where.history_line import MAX_GROUPS, HistoryLine, history_steps
from viewer.widgets.basics import Link

DAY = 1_795_248_308_560
FOUND = WhereResult(
    "found",
    700,
    "Orders",
    2,
    17,
    routes=(
        Route("queue", "Orders/2/17", "found", ""),
        Route("uniqueKey", "U1", "notInIndex", ""),
        Route("key", "K1", "found", ""),
    ),
    life=(
        HistoryStep("born", DAY),
        HistoryStep("half", DAY + 40, 300),
        HistoryStep("committed", DAY + 90, 700),
        HistoryStep("dispatched"),
        HistoryStep("indexed"),
        HistoryStep("consumed", who=("billing", "pricing")),
    ),
)


@pytest.fixture(autouse=True)
def _utc() -> Any:
    from datetime import UTC

    set_zone(UTC)
    yield
    set_zone(None)


def test_every_step_leads_to_where_it_is_seen() -> None:
    steps = history_steps(FOUND)
    assert [[piece.text for piece in pieces] for pieces in steps] == [
        ["born 2026-11-21 08:05:08.560"],
        ["half message 08:05:08.600"],
        ["committed 08:05:08.650"],
        ["in its queue"],
        ["in the index"],
        ["read past by", "billing", "pricing"],
    ]
    assert [[piece.place for piece in pieces] for pieces in steps] == [
        [None],
        [log(300)],
        [log(700)],
        [queue("Orders", 2, 17)],
        [trace("Orders", "K1")],
        [None, Place("groups", name="billing"), Place("groups", name="pricing")],
    ]


def test_only_the_first_of_many_groups_are_named() -> None:
    many = tuple(f"g{n}" for n in range(MAX_GROUPS + 3))
    pieces = history_steps(WhereResult("consumed", 1, "T", 0, 0, life=(HistoryStep("consumed", who=many),)))[0]
    assert [piece.text for piece in pieces[-2:]] == ["g5", "and 3 more"]
    assert pieces[-1].place == Place("groups")


def test_the_line_is_walked_by_keyboard_and_runs_on_where_it_is_narrow(qtbot: Any) -> None:
    line = HistoryLine()
    qtbot.addWidget(line)
    requested: list[object] = []
    line.placeRequested.connect(requested.append)
    line.show_result(FOUND)
    line.resize(900, 60)
    line.show()
    links = line.findChildren(Link)
    assert [link.focusPolicy() for link in links] == [Qt.FocusPolicy.TabFocus] * 6
    qtbot.keyClick(links[1], Qt.Key.Key_Return)
    assert requested == [log(700)]
    assert line.layout().heightForWidth(300) > line.layout().heightForWidth(2000)
    line.resize(300, line.layout().heightForWidth(300))
    assert max(link.mapTo(line, link.rect().topRight()).x() for link in links) < 300
    assert "→ read past by billing pricing" in line.accessibleDescription()
    line.show_result(WhereResult("neverSeen", None, None, None, None))
    assert line.isHidden()


def test_the_command_that_copies_the_remains_of_a_message(tmp_path: Path) -> None:
    from engine.inspection import open_store

    with open_store(sample("orders-damaged"), None) as store:
        assert copy_found(store, FOUND) == f"storescope copy {store.path} NEW --where 'physicalOffset == 700'"
        torn = WhereResult("damaged", 700, None, None, None, evidence=[Evidence("was", None, 700, "Orders/2/17")])
        assert copy_found(store, torn) == f"storescope message {store.path} 700 --json --body"
        assert copy_found(store, WhereResult("expired", 700, "Orders", 2, 17)) == ""
    with open_store(store.path / "commitlog", None) as log_alone:
        assert copy_found(log_alone, FOUND) == ""
