"""The incident card is shown where messages are lost, and stays folded or open as the user left it."""

from __future__ import annotations

from broken_stores import zero_log_from
from handmade_stores import HandmadeStore
from panes import on_store, wait_until_idle
from PySide6.QtCore import Qt

from viewer.findings.pane import FindingsPane
from viewer.pane.incident_card import IncidentCard
from viewer.runtime.places import recovery


def drive_card(qapp, root, check) -> None:
    async def drive(pane, session) -> None:
        await wait_until_idle(session.jobs)
        card = pane.findChild(IncidentCard)
        check(card, session)

    on_store(qapp, FindingsPane, root, drive)


def test_a_healthy_store_has_no_card(qapp, tmp_path) -> None:
    store = HandmadeStore()
    for number in range(60):
        store.put(keys=f"K{number}")

    def check(card, _session) -> None:
        assert card.isHidden()

    drive_card(qapp, store.write(tmp_path / "s"), check)


def test_a_lost_tail_is_shown_and_folds_to_a_line(qapp, tmp_path) -> None:
    store = HandmadeStore()
    for number in range(60):
        store.put(keys=f"K{number}")
    root = store.write(tmp_path / "s")
    zero_log_from(root, store.units[50].offset)

    def check(card, session) -> None:
        assert not card.isHidden()
        card._set_look("card")
        assert not card.folded
        card._set_look("table")
        assert card.table.total_rows() > 0
        card._set_look("line")
        assert card.folded
        assert session.incident_look == "line"
        assert card.accessibleDescription()

    drive_card(qapp, root, check)


def test_a_click_anywhere_on_the_line_opens_it_and_its_steps_are_links(qapp, tmp_path, qtbot) -> None:
    """Only the arrow at the far right opened the incident, and its first steps had no links."""
    store = HandmadeStore()
    for number in range(60):
        store.put(keys=f"K{number}")
    root = store.write(tmp_path / "s")
    zero_log_from(root, store.units[50].offset)

    def check(card, _session) -> None:
        card._set_look("line")
        qtbot.mouseClick(card._line, Qt.MouseButton.LeftButton)
        assert card.look == "card"
        emitted, actual_emitted = [], []
        card.placeRequested.connect(emitted.append)
        card.statusText.connect(actual_emitted.append)
        commands = [command for _text, command in card._incident.steps]
        assert any("--plan" in command for command in commands)
        for step in card._steps:
            if step._command:
                step._link.clicked.emit()
        assert emitted == [recovery()]
        assert actual_emitted == [f"Copied: {command}" for command in commands if command and "--plan" not in command]
        card._plan.clicked.emit()
        assert emitted == [recovery(), recovery()]

    drive_card(qapp, root, check)


def test_the_table_replaces_the_answers_and_its_head_has_the_sum(qapp, tmp_path) -> None:
    """With answers and table open, only four lines of findings remained, and the sum was the last row, outside the
    view.
    """
    store = HandmadeStore()
    for number in range(60):
        store.put(keys=f"K{number}")
    root = store.write(tmp_path / "s")
    zero_log_from(root, store.units[50].offset)

    def check(card, _session) -> None:
        card._set_look("table")
        assert card._open.isHidden()
        assert not card._below.isHidden()
        assert card._table_head.note.text() == "10 messages · 1 queue"

    drive_card(qapp, root, check)
