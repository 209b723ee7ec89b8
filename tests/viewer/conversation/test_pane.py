"""The view Conversation on real stores: steps, text, find with a list of hits, and the ways to other views."""

from __future__ import annotations

import pytest
from panes import on_store, wait_until_idle
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from viewer.conversation.pane import ConversationPane
from viewer.runtime import places
from viewer.runtime.places import Place

pytestmark = pytest.mark.golden


def test_a_transaction_is_read_from_top_to_bottom(qapp, golden) -> None:
    async def drive(pane: ConversationPane, session) -> None:
        pane.show_place(Place("conversation", key="K5"))
        assert pane.busy()
        await wait_until_idle(session.jobs)
        assert pane.status() == "1 message · 7 units · 15.9 s"
        steps = [pane.table.kind.columns[4].text(row) for row in pane.model.rows]
        assert steps[:4] == ["half message", "committed", "half message", "op message"]
        text = pane.text.toPlainText()
        assert text.index("half message") < text.index("REAL_QID removed") < text.index("TRANSACTION_CHECK_TIMES = 3")
        assert text.count('"pallet": 54178') == 1, "the same body is shown once"
        assert text.count("the same body as in step 1") == 5
        emitted = []
        pane.placeRequested.connect(emitted.append)
        pane.commands()["list.next"]()
        assert session.selection == 5151
        assert pane.table.follow()
        assert emitted == [places.log(5151)]
        pane._copy_command()
        assert QGuiApplication.clipboard().text().endswith("--events -- K5")

    on_store(qapp, ConversationPane, golden("broker-transactions-5.4.0"), drive)


def test_find_lists_all_hits_and_says_which_one_is_shown(qapp, golden) -> None:
    async def drive(pane: ConversationPane, session) -> None:
        pane.field.setText("K5")
        QTest.keyClick(pane.field, Qt.Key.Key_Return)
        await wait_until_idle(session.jobs)
        pane.commands()["find.open"]()
        QTest.keyClicks(pane.find_line.field, "check_times")
        QTest.keyClick(pane.find_line.field, Qt.Key.Key_Return)
        assert [hit.step for hit in pane._hits] == [3, 5, 6]
        assert pane.find_line.result.text() == "1 of 3"
        QTest.keyClick(pane.find_line.field, Qt.Key.Key_Return)
        assert pane.find_line.result.text() == "2 of 3"
        pane.commands()["find.previous"]()
        pane.commands()["find.previous"]()
        assert pane.find_line.result.text() == "3 of 3", "the search goes round"
        pane.hits.go_to_row(0)
        assert pane.find_line.result.text() == "1 of 3"
        assert "TRANSACTION_CHECK_TIMES = 1" in pane._hits[0].excerpt
        pane.find_line.field.setText("no such words")
        QTest.keyClick(pane.find_line.field, Qt.Key.Key_Return)
        assert pane.find_line.result.text() == "Not found"
        QTest.keyClick(pane.find_line.field, Qt.Key.Key_Escape)
        assert pane.find_line.isHidden()
        assert pane._hits == []

    on_store(qapp, ConversationPane, golden("broker-transactions-5.4.0"), drive)


def test_a_name_that_nobody_has_leads_to_the_view_that_says_why(qapp, golden) -> None:
    async def drive(pane: ConversationPane, session) -> None:
        pane.show_place(Place("conversation", key="nobody"))
        await wait_until_idle(session.jobs)
        assert pane.model.rows == ()
        state = pane.model.table_state()
        assert state is not None
        assert state.text == "No unit of this store has this name."
        emitted = []
        pane.placeRequested.connect(emitted.append)
        pane._open_where()
        pane._open_other_tab("chain")
        assert emitted == [Place("where", key="nobody"), places.trace("", "nobody")]

    on_store(qapp, ConversationPane, golden("broker-transactions-5.4.0"), drive)


def test_a_message_that_was_delivered_again_shows_what_changed(qapp, golden) -> None:
    async def drive(pane: ConversationPane, session) -> None:
        pane.show_place(Place("conversation", key="K77"))
        await wait_until_idle(session.jobs)
        words = [pane.table.kind.verdict(row) for row in pane.model.rows]
        assert words == ["stored", "waits for a retry", "delivered again"]
        assert "REAL_TOPIC = %RETRY%pricing" in pane.text.toPlainText()
        assert [row.shows_message for row in pane.model.rows] == [False] * 3

    on_store(qapp, ConversationPane, golden("broker-retries-5.5.1"), drive)
