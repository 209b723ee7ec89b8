"""The incident card: there where messages are lost, folded and opened as somebody left it."""

from __future__ import annotations

from broken_stores import zero_log_from
from made_stores import MadeStore
from panes import on_store, settled

from viewer.findings.pane import FindingsPane
from viewer.pane.incident_card import IncidentCard


def drive_card(qapp, root, check) -> None:
    async def drive(pane, session) -> None:
        await settled(session.jobs)
        card = pane.findChild(IncidentCard)
        check(card, session)

    on_store(qapp, FindingsPane, root, drive)


def test_a_sound_store_has_no_card(qapp, tmp_path) -> None:
    made = MadeStore()
    for number in range(60):
        made.put(keys=f"K{number}")

    def check(card, _session) -> None:
        assert card.isHidden()

    drive_card(qapp, made.write(tmp_path / "s"), check)


def test_a_lost_tail_is_told_and_folds_to_a_line(qapp, tmp_path) -> None:
    made = MadeStore()
    for number in range(60):
        made.put(keys=f"K{number}")
    root = made.write(tmp_path / "s")
    zero_log_from(root, made.units[50].offset)

    def check(card, session) -> None:
        assert not card.isHidden()
        card._say("card")
        assert not card.folded
        card._say("table")
        assert card.table.total_rows() > 0
        card._say("line")
        assert card.folded
        assert session.incident_look == "line"
        assert card.accessibleDescription()

    drive_card(qapp, root, check)
