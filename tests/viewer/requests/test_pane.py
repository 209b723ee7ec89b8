"""The requests view with requests from the test: rows, fields, bytes, filter, states, without a window."""

from __future__ import annotations

from pathlib import Path

import pytest
import recorded_requests
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from engine.remoting.codes import RequestCode
from engine.remoting.exchanges import FrameEvent
from engine.remoting.recording import Recorder
from viewer.look.theme import px, theme
from viewer.requests.columns import FILTER_ENTRIES, INDENT, FilterEntry
from viewer.requests.pane import FILTER_LIST_WIDTH, RequestsPane, frame_fields
from viewer.requests.watch import RequestWatch
from viewer.runtime.places import Place
from viewer.widgets.record_view import RecordView
from viewer.widgets.table_tail import shows_last_row


def run(work, done, failed):
    try:
        result = work()
    except Exception as error:  # noqa: BLE001
        failed(error)
    else:
        done(result)


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> list[FrameEvent]:
    return recorded_requests.seen_in_a_talk(tmp_path_factory.mktemp("talk") / "store")


@pytest.fixture
def file(talk: list[FrameEvent], tmp_path: Path) -> Path:
    recorder = Recorder(tmp_path / "talk.requests")
    for frame in talk:
        recorder.take(frame)
    recorder.close()
    return tmp_path / "talk.requests"


@pytest.fixture
def pane(shown) -> RequestsPane:
    requests_pane = RequestsPane()
    requests_pane.set_watch(RequestWatch(run, requests_pane))
    shown(requests_pane, width=1400)
    requests_pane.resize(1400, 900)
    return requests_pane


def test_without_a_source_there_is_an_instruction(pane: RequestsPane) -> None:
    state = pane.table.note.state
    assert state is not None
    assert state.text.startswith("Nothing is recorded.")
    assert pane.hex.focusPolicy() == Qt.FocusPolicy.NoFocus, "nothing is there to go through"
    requested: list[bool] = []
    pane.recordRequested.connect(lambda: requested.append(True))
    pane.record.click()
    assert requested


def test_a_file_is_rows_with_fields_and_bytes(pane: RequestsPane, file: Path) -> None:
    """Two tables were empty without a message before a file was open and before a request was chosen."""
    assert pane.talks.note.state is not None
    pane.show_place(Place("requests", name=str(file)))
    assert pane.table.total_rows() == 12
    assert pane.talks.note.state is None
    assert pane.card_name.text() == "talk.requests"
    pane.table.go_to(4)
    names = [field_row.name for field_row in pane.fields.table.rows]
    assert names[0] == "Answer"
    assert {"msgId", "queueId", "topic"} <= set(names)
    pane.fields.setFocus()
    index = next(number for number, field_row in enumerate(pane.fields.table.rows) if field_row.name == "msgId")
    pane.fields.go_to(index)
    assert (pane.side.key, pane.hex.chosen_field) == ("answer", "extFields.msgId")
    pane.other_half()
    assert pane.side.key == "request"
    pane.hex.fieldChosen.emit("extFields.topic")
    assert pane.fields.current_row().name == "topic"


def test_links_lead_to_the_units_of_a_send_and_a_pull(pane: RequestsPane, file: Path) -> None:
    pane.open_file(file)
    went: list[Place] = []
    pane.placeRequested.connect(went.append)
    pane.table.go_to(4)
    assert pane.table.follow()
    index = next(number for number, field_row in enumerate(pane.fields.table.rows) if field_row.name == "msgId")
    pane.fields.go_to(index)
    assert pane.fields.follow()
    assert [place.kind for place in went] == ["queue", "log"]
    assert (went[0].topic, went[0].queue_offset) == ("Orders", 1)


def test_the_filter_its_buttons_and_its_errors(pane: RequestsPane, file: Path) -> None:
    pane.open_file(file)
    pane.filter.setFocus()
    pane.filter.setText('request = "PULL_MESSAGE"')
    QTest.keyClick(pane.filter, Qt.Key.Key_Return)
    assert pane.table.total_rows() == 3
    pane.pills["held"].click()
    assert (pane.filter.text(), pane.table.total_rows()) == ("held", 1)
    pane.set_filter("held and")
    assert pane.filter_fault.text()
    assert pane.table.total_rows() == 1
    pane.set_filter("waits")
    state = pane.table.note.state
    assert state is not None
    assert state.text == "No request matches the filter."
    state.steps[0][1]()
    assert pane.table.total_rows() == 12


def test_one_client_and_one_opaque_are_followed(pane: RequestsPane, file: Path) -> None:
    pane.open_file(file)
    pane.table.go_to(4)
    opaque = pane.table.current_row().opaque
    pane.follow_opaque()
    assert pane.table.total_rows() == 1
    assert pane.table.current_row().opaque == opaque
    pane.follow_opaque()
    pane.follow_client()
    assert pane.filter.text() == 'client = "C1"'
    pane.follow_client()
    pane.table.go_to(4)
    pane.next_of_client(1)
    assert pane.table.current_row().exchange.number == 5


def test_each_frame_is_a_row_linked_to_its_other_half(pane: RequestsPane, file: Path) -> None:
    pane.open_file(file)
    pane.table.go_to(4)
    exchange = pane.table.current_row()
    pane.shape.choose("frames")
    assert pane.table.total_rows() == pane._log.showable == 22
    chosen = pane.table.current_row()
    assert (chosen.row, chosen.frame) == (exchange, "request"), "what was chosen stays chosen"
    assert not pane.side.isVisible()
    names = [item.name for item in pane.fields.table.rows]
    assert (names[0], names[-1]) == ("Request", "Answer")
    pane.other_half()
    answer = pane.table.current_row()
    assert (answer.row, answer.frame) == (exchange, "answer")
    assert pane.fields.table.rows[0].name == "Answer"
    pane.fields.go_to(len(pane.fields.table.rows) - 1)
    assert pane.fields.follow(), "the last field leads back"
    assert pane.table.current_row() is chosen
    column = next(n for n, item in enumerate(pane.table.kind.columns) if item.key == "other")
    pane.table.setCurrentIndex(pane.table.table.index(pane.table.currentIndex().row(), column))
    assert pane.table.follow()
    assert pane.table.current_row() is answer
    pane.follow_opaque()
    assert pane.table.total_rows() == 2
    pane.set_filter('frame = "answer"')
    assert pane.table.total_rows() == 10
    messages: list[str] = []
    pane.statusMessage.connect(messages.append)
    pane.other_half()
    assert "filter hides" in messages[-1]
    pane.set_filter("")
    pane.follow_client()
    assert pane.table.total_rows() == 22
    pane.commands()["requests.frames"]()
    assert (pane.shape.key, pane.table.total_rows()) == ("exchanges", 12)
    assert pane.side.isVisible()


def test_frames_come_live_pause_and_are_exported(pane: RequestsPane, talk: list[FrameEvent], tmp_path: Path) -> None:
    watch = pane.watch
    assert watch is not None
    watch.source_status.kind = "live"
    pane.show_frames(True)
    for frame in talk:
        watch.rowsChanged.emit(*watch.log.take([frame]))
    assert pane.table.total_rows() == len(pane.table.table.rows) == 22
    assert pane.status().startswith("0 requests a second · 22 frames")
    QTest.keyClick(pane.table, Qt.Key.Key_Space)
    assert watch.source_status.kind == "paused"
    messages: list[str] = []
    pane.statusMessage.connect(messages.append)
    pane.write(tmp_path / "out.jsonl")
    assert messages[-1] == f"22 rows written to {tmp_path / 'out.jsonl'}"
    pane.write(tmp_path / "out.requests")
    pane.replay(tmp_path / "again")
    assert messages[-1].startswith("11 requests were sent again: ")
    pane.open_file(tmp_path / "out.requests")
    assert (pane.shape.key, pane.table.total_rows()) == ("frames", 22)
    pane.set_filter("opaque = 123456")
    state = pane.table.note.state
    assert state is not None
    assert state.text == "No frame matches the filter."


def test_a_live_filter_adds_and_removes_rows_as_answers_arrive(pane: RequestsPane, talk: list[FrameEvent]) -> None:
    watch = pane.watch
    assert watch is not None
    watch.source_status.kind = "live"
    pane.set_filter("answerCode = 17 or waits")
    for frame in talk:
        watch.rowsChanged.emit(*watch.log.take([frame]))
        assert pane.table.table.rows == watch.log.rows
    assert [row.exchange.answer_code for row in watch.log.rows] == [17]


def test_a_line_of_the_conversations_is_a_filter(pane: RequestsPane, file: Path) -> None:
    pane.open_file(file)
    pane.talks.setFocus()
    index = next(number for number, entry in enumerate(pane.talks.table.rows) if "PULL_MESSAGE" in entry.name)
    pane.talks.go_to(index)
    QApplication.processEvents()
    assert pane.filter.text() == "code = 11"
    assert pane.table.total_rows() == 3


def test_new_rows_stay_in_view_until_the_user_scrolls_up(pane: RequestsPane, talk: list[FrameEvent]) -> None:
    watch = pane.watch
    assert watch is not None
    watch.source_status.kind = "live"
    for frame in talk:
        watch.rowsChanged.emit(*watch.log.take([frame]))
    assert pane.table.total_rows() == 12
    assert pane.chip.isVisible()
    QTest.keyClick(pane.table, Qt.Key.Key_Space)
    assert watch.source_status.kind == "paused"
    assert pane.pause.isChecked()


def test_the_end_stays_in_view_message_is_shown_only_while_true(pane: RequestsPane, talk: list[FrameEvent]) -> None:
    """The edge said "The end stays in view" while the table showed rows of a minute ago. The view had been left and
    reopened, which scrolled back to a row that was chosen long ago.
    """
    watch = pane.watch
    assert watch is not None
    watch.source_status.kind = "live"

    def more(times: int) -> None:
        for _ in range(times):
            for frame in talk:
                watch.rowsChanged.emit(*watch.log.take([frame]))

    def edge() -> str:
        state = pane.table.strip.state
        assert state is not None
        return state.text

    more(12)
    assert shows_last_row(pane.table)
    pane.hide()
    more(12)
    pane.show()
    assert shows_last_row(pane.table)
    more(2)
    assert shows_last_row(pane.table)
    assert edge().startswith("The end stays in view")
    pane.table.go_to(watch.log.rows[-3].number)
    point = pane.table.visualRect(pane.table.currentIndex()).center()
    QTest.mouseClick(pane.table.viewport(), Qt.MouseButton.LeftButton, pos=point)
    chosen = pane.table.current_row()
    more(12)
    assert edge().startswith("The table is paused")
    assert pane.table.current_row() is chosen, "what is shown below stands in the table"
    assert not shows_last_row(pane.table)
    state = pane.table.strip.state
    assert state is not None
    state.steps[0][1]()
    assert edge().startswith("The end stays in view")
    assert shows_last_row(pane.table)
    pane.table.go_to(watch.log.rows[-1].number)
    pane.next_of_client(-1)
    assert edge().startswith("The table is paused")


def test_an_unreadable_file_keeps_the_table_with_a_reason(pane: RequestsPane, tmp_path: Path) -> None:
    (tmp_path / "no").write_text("hello")
    pane.open_file(tmp_path / "no")
    state = pane.table.note.state
    assert state is not None
    assert state.kind == "error"
    assert "holds no requests" in state.text


def test_shown_rows_are_exported_and_replayed(pane: RequestsPane, file: Path, tmp_path: Path) -> None:
    messages: list[str] = []
    pane.statusMessage.connect(messages.append)
    pane.ask_export()
    pane.ask_replay()
    assert messages[0] == "There is nothing to export yet."
    assert messages[1] == "Nothing here can be sent again: this needs a recording with complete frames."
    pane.open_file(file)
    pane.write(tmp_path / "out.jsonl")
    assert messages[-1] == f"12 rows written to {tmp_path / 'out.jsonl'}"
    pane.replay(tmp_path / "again")
    assert messages[-1].startswith("11 requests were sent again: ")


def test_every_part_of_a_frame_has_a_fill(talk: list[FrameEvent]) -> None:
    for frame in talk[1:-1]:
        fields = frame_fields(frame.data)
        assert {"totalLength", "headerLength"} <= {field.name for field in fields}
        assert {field.group for field in fields} <= {"frame", "id", "host", "body", "topic", "props", "propsAlt"}


@pytest.mark.parametrize("dark", [False, True])
def test_the_view_is_drawn_in_both_themes(pane: RequestsPane, file: Path, dark: bool) -> None:
    pane.open_file(file)
    pane.table.go_to(4)
    dark_before = theme.dark
    theme.dark = dark
    try:
        pane.retheme()
        assert not pane.grab().isNull()
    finally:
        theme.dark = dark_before


def test_names_of_common_requests_are_complete_beside_their_count(qtbot) -> None:
    """GET_TOPIC_STATS_INFO was shown as "GET_TOPI…S_INFO"."""
    view = RecordView("requests.talks", FILTER_ENTRIES)
    qtbot.addWidget(view)
    view.resize(px(FILTER_LIST_WIDTH), 400)
    view.show()
    codes = (RequestCode.GET_TOPIC_STATS_INFO, RequestCode.QUERY_CONSUMER_OFFSET, RequestCode.SEND_MESSAGE_V2)
    names = [f"{INDENT}{code.name}  {int(code)}" for code in codes]
    view.set_rows([FilterEntry("code", name, 1_234, "") for name in names])
    slot = next(slot for slot in view.slots_on_screen() if slot.column.key == "name")
    assert [view.painter.shortened(slot.column, name, slot.width) for name in names] == names
