"""The window with the messages of a topic at its brokers, by offset and time, as the Log view shows a log.

It only pulls: no offset is committed, and no group is left at a broker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QCloseEvent, QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import QAbstractButton, QDialog, QVBoxLayout, QWidget

from engine.errors import BadFilter, UsageError
from engine.system_names import DLQ_PREFIX, RETRY_PREFIX
from viewer.log.columns import unit_kind
from viewer.log.filter_line import FilterLine
from viewer.log.rows import UnitRow
from viewer.look.assets import tr, tr_plural
from viewer.look.engine_words import engine_words
from viewer.look.formats import number
from viewer.look.theme import follow, px
from viewer.remote.remote_panes import RemotePanes
from viewer.remote.remote_session import RemoteSession, Stopped
from viewer.remote.rows import MAX_MATCHES, RemoteLog, RemoteSource, ScanProgress, scan
from viewer.runtime.places import parse_number, parse_time
from viewer.widgets.basics import Button, Field, Label, ThemedPanel, ToolButton
from viewer.widgets.boxes import splitter, stacked, wrapped_row
from viewer.widgets.cell_filter import combined
from viewer.widgets.choices import ChoiceField
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView
from viewer.widgets.row_window import ListSource

if TYPE_CHECKING:
    from engine.client.topic_reader import QueueRange
    from engine.codec.message import Unit
    from viewer.cluster.access import AccessFiles
    from viewer.remote.dead_letter_box import DeadLetterBox
    from viewer.remote.send_box import Ask, SendBox
    from viewer.runtime.store_session import StoreSession


@dataclass(frozen=True)
class Actions:
    """What a window may do besides reading. ``is_own`` returns whether the user declared the cluster to be their own,
    ``folder`` is for journals.
    """

    ask: Ask
    is_own: Callable[[], bool]
    folder: Path


class RemoteWindow(QDialog):
    """Emits ``operationDone(command, words, parameters, line)`` for the operation log once a topic was opened, and
    after each act. Without ``actions`` it only reads.
    """

    operationDone = Signal(str, str, object, str)

    def __init__(
        self,
        addresses: Sequence[str],
        access: AccessFiles,
        store: StoreSession | None = None,
        parent: QWidget | None = None,
        actions: Actions | None = None,
    ) -> None:
        super().__init__(parent)
        self._actions = actions
        self.setObjectName("remote.window")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowFlag(Qt.WindowType.WindowMaximizeButtonHint)
        self.session = RemoteSession(addresses, access, store, self)
        self.source: RemoteSource | None = None
        self._queues: list[QueueRange] = []
        self._scan = 0
        """Number of the running scan; a scan with another number stops."""
        self._matches: ListSource[UnitRow] | None = None
        self._read_count = 0
        self._next_offset: int | None = None
        self._build()
        self._say("")
        self._show_title()
        self.resize(px(1180), px(700))

    # ---- building ----------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        self.table = RecordView("remote.table", unit_kind(lambda *_entry: None), runner=self.session.read)
        self.table.setAccessibleName(tr("Messages at the broker"))
        self.table.filters = True
        self.table.rowChosen.connect(self._row_chosen)
        self.table.failed.connect(self._failed)
        self.table.filled.connect(self._filled)
        self.table.termRequested.connect(self._use_term)
        self.panes = RemotePanes(self)
        self.panes.statusText.connect(self._say)
        self.panes.termRequested.connect(self._use_term)
        self.note = Label("", 12, "text3", wrap=True, select=True)
        self.note.setObjectName("remote.note")
        self.status = Label("", 12, "text2", wrap=True, select=True)
        self.status.setObjectName("remote.status")
        self.new_button = Button(tr("Send a message…"), "flat")
        self.copy_button = Button(tr("Send a copy…"), "flat")
        self.letters_button = Button(tr("Send to its topic again…"), "flat")
        for name, button, action in (
            ("send", self.new_button, self.ask_message),
            ("copy", self.copy_button, self.ask_copy),
            ("letters", self.letters_button, self.ask_letters),
        ):
            button.setObjectName(f"remote.{name}")
            button.setAutoDefault(False)
            button.clicked.connect(lambda _on=False, action=action: action())
        bottom = ThemedPanel("pane", ("top",))
        box = QVBoxLayout(bottom)
        box.setContentsMargins(px(12), px(6), px(12), px(6))
        box.setSpacing(px(2))
        box.addWidget(self.status)
        box.addWidget(self.note)
        box.addWidget(wrapped_row(self.new_button, self.copy_button, self.letters_button, None))
        detail = self.panes.build()
        self.panes.begin(self.session)
        rows = stacked(self.table, self.table.strip, room=0)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._bar())
        layout.addWidget(self._filter_bar())
        layout.addWidget(splitter(True, (rows, 420), (detail, 300)), 1)
        layout.addWidget(bottom)
        follow(self, self._retheme)
        for keys, action in (("F5", self.refresh), ("Ctrl+L", self.filter.focus), ("Ctrl+G", self._focus_place)):
            QShortcut(QKeySequence(keys), self, action)

    def _bar(self) -> QWidget:
        self.topic = Field(tr("Topic"), code=True, width=250)
        self.topic.returnPressed.connect(self.open_topic)
        self.open_button = Button(tr("Show"), "primary")
        self.queue = ChoiceField()
        self.queue.setAccessibleName(tr("Queue"))
        self.queue.setSizeAdjustPolicy(ChoiceField.SizeAdjustPolicy.AdjustToContents)
        self.queue.activated.connect(self._choose_queue)
        self.place = Field(tr("Offset, or time: 2026-11-20 09:41:07"), code=True, width=270)
        self.place.returnPressed.connect(self.go_to_place)
        self.begin_button, self.end_button = Button(tr("Begin")), Button(tr("End"))
        self.refresh_tool = ToolButton("refresh", tr("Read the ends of the queue again (F5)"))
        self.stop_button = Button(tr("Stop"), "flat")
        for name, field in (("topic", self.topic), ("queue", self.queue), ("place", self.place)):
            field.setObjectName(f"remote.{name}")
        buttons: dict[str, tuple[QAbstractButton, Callable[[], object]]] = {
            "show": (self.open_button, self.open_topic),
            "begin": (self.begin_button, self.go_to_begin),
            "end": (self.end_button, self.go_to_end),
            "refresh": (self.refresh_tool, self.refresh),
            "stop": (self.stop_button, self.stop),
        }
        for name, (button, action) in buttons.items():
            button.setObjectName(f"remote.{name}")
            button.clicked.connect(lambda _on=False, action=action: action())
            if isinstance(button, Button):
                button.setAutoDefault(False)  # Enter in a field is for that field
        bar = ThemedPanel("pane", ("bottom",))
        line = wrapped_row(
            self.topic,
            self.open_button,
            self.queue,
            8,
            self.place,
            self.begin_button,
            self.end_button,
            self.refresh_tool,
            self.stop_button,
            None,
            margins=(12, 6, 12, 6),
        )
        box = QVBoxLayout(bar)
        box.setContentsMargins(0, 0, 0, 1)
        box.addWidget(line)
        return bar

    def _filter_bar(self) -> QWidget:
        self.filter = FilterLine()
        self.filter.setObjectName("remote.filter.line")
        self.filter.field.setObjectName("remote.filter")
        self.filter.applied.connect(self.filter_rows)
        bar = ThemedPanel("pane", ("bottom",))
        box = QVBoxLayout(bar)
        box.setContentsMargins(0, 0, 0, 1)
        box.addWidget(self.filter)
        return bar

    def _retheme(self) -> None:
        self.table.refresh_look()
        self.panes.retheme()

    def _show_title(self) -> None:
        address = ";".join(self.session.addresses)
        topic = self.source.queue.topic if self.source is not None else ""
        self.setWindowTitle(
            tr("Messages of {topic} at {address}", topic=topic, address=address)
            if topic
            else tr("Messages at {address}", address=address)
        )
        self.setAccessibleName(self.windowTitle())
        has_queue = self.source is not None
        for part in (self.queue, self.place, self.begin_button, self.end_button, self.refresh_tool, self.filter):
            part.setEnabled(has_queue)
        self.stop_button.setEnabled(False)
        self._show_acts()
        if not has_queue:
            self.table.set_rows([])
            self.table.set_state(State("hint", tr("Enter a topic: its messages are read at its brokers.")))

    # ---- topic and queue ---------------------------------------------------------------------------------------------

    def show_topic(self, topic: str, broker: str = "", queue_id: int | None = None, offset: int | None = None) -> None:
        """Open a topic: at a queue and an offset if they are given, else at the first queue with messages."""
        self.topic.setText(topic)
        self.open_topic(broker, queue_id, offset)

    def open_topic(self, broker: str = "", queue_id: int | None = None, offset: int | None = None) -> None:
        """Read the queues of the topic in the field, and show one."""
        topic = self.topic.text().strip()
        if not topic:
            return
        self._forget()
        self.table.set_state(State("loading", tr("Asking the brokers…")))
        self.stop_button.setEnabled(True)

        def done(queues: list[QueueRange]) -> None:
            self._queues = queues
            self.queue.clear()
            for ends in queues:
                self.queue.addItem(_queue_text(ends))
            wanted = next(
                (
                    index
                    for index, ends in enumerate(queues)
                    if ends.queue.queue_id == queue_id and broker in {"", ends.queue.broker}
                ),
                next((index for index, ends in enumerate(queues) if ends.max_offset > ends.min_offset), 0),
            )
            self.operationDone.emit("cluster.browse", tr("Show the messages of a topic"), {"topic": topic}, self.line())
            self.queue.setCurrentIndex(wanted)
            self._choose_queue(wanted, offset)

        self.session.read(lambda: self.session.reader().queues(topic), done, self._failed)

    def line(self) -> str:
        """Return the command that prints messages of the topic."""
        import shlex

        servers, topic = ";".join(self.session.addresses), self.topic.text().strip()
        words = ["storescope", "consumeMessage", "-n", servers, "-t", topic, *self.session.access.options()]
        return shlex.join(words)

    def _forget(self) -> None:
        self._scan += 1
        self.source = self._matches = None
        self.session.snapshot.log = None
        self.panes.show_row(None)
        self.queue.clear()
        self._say("")
        self.note.setText("")
        self._show_title()

    def _choose_queue(self, index: int, offset: int | None = None) -> None:
        ends = self._queues[index]
        self._scan += 1
        self._matches = None
        source = self.source = RemoteSource(self.session.reader(), ends)
        self._show_rows_of(source.log)
        kind = unit_kind(lambda *_entry: None)
        self.table.set_kind(replace(kind, command=self._command))
        self.panes.origin = tr("in the log of {broker}, as it wrote it into the message", broker=ends.queue.broker)
        self.note.setText(
            tr(
                "Physical offsets are places in the commit log of {broker} ({address}), as it wrote them into the "
                "messages. Nothing is committed, and no group is left there.",
                broker=ends.queue.broker,
                address=ends.address,
            )
        )
        self._show_title()
        if self.filter.in_force:
            self.filter_rows(self.filter.in_force)
            return
        self._show_source(source.start if offset is None else offset, choose=offset is not None)

    def _show_rows_of(self, log: RemoteLog) -> None:
        self.panes.show_row(None)
        self.session.snapshot.log = log

    def _command(self, row: UnitRow) -> list[str]:
        source = self.source
        assert source is not None
        queue = source.queue
        words = ["storescope", "consumeMessage", "-n", ";".join(self.session.addresses), "-t", queue.topic]
        words += ["-b", queue.broker, "-i", str(queue.queue_id), "-o", str(row.queue_offset), "-c", "1"]
        return [*words, *self.session.access.options()]

    def _show_source(self, offset: int, *, choose: bool) -> None:
        assert self.source is not None
        self.table.set_state(State("loading", tr("Asking the brokers…")))
        self.stop_button.setEnabled(True)
        self.table.set_source(self.source, offset, choose=choose)

    # ---- going -------------------------------------------------------------------------------------------------------

    def _focus_place(self) -> None:
        self.place.setFocus()
        self.place.selectAll()

    def go_to_place(self) -> None:
        """Go to the offset or the time in the field."""
        source, text = self.source, self.place.text().strip()
        if source is None or not text:
            return
        offset = parse_number(text)
        if offset is not None:
            self._go(offset)
            return
        time_ms = parse_time(text)
        if time_ms is None:
            self._say(tr("“{text}” is no offset and no time like 2026-11-20 09:41:07.", text=text))
            return
        self.stop_button.setEnabled(True)

        def done(found_offset: int) -> None:
            if source is not self.source:
                return
            self.stop_button.setEnabled(False)
            if found_offset >= source.end:
                self._say(tr("No message is stored at that time or later: this is the end of the queue."))
                self.go_to_end()
            else:
                self._go(found_offset)

        self.session.read(lambda: self.session.reader().offset_at(source.queue, time_ms), done, self._failed)

    def _go(self, offset: int) -> None:
        source = self.source
        if source is None:
            return
        if not source.start <= offset < source.end:
            if source.start == source.end:
                self._say(tr("The queue has no messages."))
            else:
                self._say(
                    tr(
                        "Offset {offset:,} is out of range: the queue has {first:,} to {last:,}.",
                        offset=offset,
                        first=source.start,
                        last=source.end - 1,
                    )
                )
            return
        self._say("")
        self._end_filter()
        if self.table.source is source:
            self.table.go_to(offset)
            self.stop_button.setEnabled(self.table.loading)
        else:
            self._show_source(offset, choose=True)

    def go_to_begin(self) -> None:
        """Go to the first message."""
        if self.source is not None:
            self._go(self.source.start)

    def go_to_end(self) -> None:
        """Go to the last message."""
        if self.source is not None:
            self._go(max(self.source.end - 1, self.source.start))

    def refresh(self) -> None:
        """Read the ends of the queue again, and the rows at its end."""
        source = self.source
        if source is None:
            return

        def done(ends: QueueRange) -> None:
            if source is not self.source:
                return
            source.take_ends(ends)
            self.queue.setItemText(self.queue.currentIndex(), _queue_text(ends))
            if self._matches is not None:
                self._continue_scan()
            elif self.table.source is source:
                self.table.reload(anew=True)
            else:
                self._show_source(source.start, choose=False)

        self.stop_button.setEnabled(True)
        self.session.read(lambda: self.session.reader().ends(source.queue), done, self._failed)

    def stop(self) -> None:
        """End the wait for a broker, or the scan of a filter."""
        self._scan += 1
        self.session.cancel()
        self.stop_button.setEnabled(False)
        if self._matches is not None:
            self._show_scan(stopped=True)

    # ---- filter ------------------------------------------------------------------------------------------------------

    def _use_term(self, action_name: str, term: str) -> None:
        try:
            text = combined(self.filter.text(), action_name, term)
        except BadFilter as error:
            self._say(engine_words(str(error)))
            return
        if action_name == "prepare":
            self.filter.prepare(text)
        elif action_name == "copy":
            QGuiApplication.clipboard().setText(term)
        else:
            self.filter.apply(text)

    def filter_rows(self, text: str) -> None:
        """Show only messages that match; "" shows all."""
        source = self.source
        self._scan += 1
        if source is None:
            return
        self.panes.show_row(None)
        if not text:
            self._matches = None
            self._say("")
            self._show_source(source.start, choose=False)
            return
        self._matches = ListSource()
        self._read_count, self._next_offset = 0, source.start
        self.table.set_source(self._matches)
        self._continue_scan()

    def _end_filter(self) -> None:
        if self._matches is not None:
            self._scan += 1
            self._matches = None
            self.filter.apply("")

    def _continue_scan(self) -> None:
        from engine.query import parse

        source, start = self.source, self._next_offset
        if source is None or start is None:
            return
        self._scan += 1
        scan_number, base = self._scan, self._read_count
        try:
            matching = parse(self.filter.in_force)
        except BadFilter as error:
            self._failed(error)
            return
        self.stop_button.setEnabled(True)
        self._show_scan(running=True)

        def on_progress(progress: ScanProgress) -> None:
            self.session.report(lambda: self._take_matches(scan_number, base, progress))

        def done(_none: object) -> None:
            if scan_number == self._scan:
                self.stop_button.setEnabled(False)
                self._show_scan()

        def failed(error: Exception) -> None:
            if scan_number == self._scan:
                self._failed(error)

        self.session.read(
            lambda: scan(source, matching, start, on_progress, lambda: scan_number != self._scan), done, failed
        )

    def _take_matches(self, scan_number: int, base: int, progress: ScanProgress) -> None:
        if scan_number != self._scan or self._matches is None:
            return
        self._read_count, self._next_offset = base + progress.read_count, progress.next_offset
        if progress.matches:
            self._matches.append(progress.matches)
            self.table.reload(anew=True)
        self._show_scan(running=True)

    def _show_scan(self, *, running: bool = False, stopped: bool = False) -> None:
        source, matches = self.source, self._matches
        if source is None or matches is None or self._next_offset is None:
            return
        text = tr_plural(
            "{n:,} match in {count} messages read, up to offset {offset} of {end}",
            "{n:,} matches in {count} messages read, up to offset {offset} of {end}",
            n=matches.total,
            count=number(self._read_count),
            offset=number(self._next_offset),
            end=number(source.end),
        )
        is_complete = self._next_offset >= source.end
        if running:
            self.table.set_state(State("loading", text))
        elif stopped or not is_complete:
            why = tr("Stopped.") if stopped else tr("More than {n:,} matches are not listed.", n=MAX_MATCHES)
            self.table.set_state(State("cut", f"{why} {text}", steps=((tr("Go on"), self._continue_scan),)))
        else:
            self.table.set_state(State("empty" if not matches.total else "note", text))

    # ---- acts --------------------------------------------------------------------------------------------------------

    def _show_acts(self) -> None:
        """Offer what is possible: an act needs a cluster of the user's own, and most of them a message."""
        is_own = self._actions is not None and self._actions.is_own()
        has_row = self.table.current_row() is not None
        topic = self.source.queue.topic if self.source is not None else ""
        self.letters_button.setVisible(topic.startswith((DLQ_PREFIX, RETRY_PREFIX)))
        for button, needs_row in ((self.new_button, False), (self.copy_button, True), (self.letters_button, True)):
            button.setEnabled(is_own and (has_row or not needs_row))
            button.setToolTip(
                tr("Only on a cluster that you declared to be yours, in the Cluster view")
                if not is_own
                else tr("Choose a message first.")
                if needs_row and not has_row
                else ""
            )

    def ask_message(self) -> SendBox | None:
        """Show the box that sends a message."""
        return self._ask_send(None)

    def ask_copy(self) -> SendBox | None:
        """Show the box that sends a message, filled with the chosen one."""
        loaded = self.panes.current
        if loaded is None or loaded.decoded is None:
            self._say(tr("Choose a message first."))
            return None
        return self._ask_send(loaded.decoded.unit)

    def _ask_send(self, unit: Unit | None) -> SendBox | None:
        actions = self._actions
        if actions is None or not actions.is_own():
            return None
        from viewer.remote.send_box import SendBox
        from viewer.remote.send_work import NewMessage, message_of

        topic = self.source.queue.topic if self.source is not None else self.topic.text().strip()
        try:
            message = NewMessage(topic, b"") if unit is None else message_of(unit)
        except UsageError as error:
            self._say(engine_words(str(error)))
            return None
        box = SendBox(self.session.addresses, self.session.access, actions.ask, self)
        box.fill(message)
        box.operationDone.connect(self.operationDone)
        box.operationDone.connect(lambda *_words: self.refresh())
        box.placeRequested.connect(self.show_topic)
        box.open()
        return box

    def ask_letters(self) -> DeadLetterBox | None:
        """Show the box that sends the chosen dead letters to their topics again."""
        actions, source, row = self._actions, self.source, self.table.current_row()
        if actions is None or not actions.is_own() or source is None or row is None:
            return None
        from viewer.remote.dead_letter_box import DeadLetterBox
        from viewer.remote.dead_letter_work import LetterRequest, journal_of

        span = self.table.chosen_span()
        if span is None:
            offsets: tuple[int, ...] = (row.queue_offset,)
        elif self._matches is not None:
            offsets = tuple(match.queue_offset for match in self._matches.rows[span[0] : span[1] + 1])
        else:
            offsets = tuple(range(span[0], span[1] + 1))
        try:
            actions.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self._say(f"{actions.folder}: {error.strerror}")
            return None
        journal = journal_of(actions.folder, self.session.addresses)
        request = LetterRequest(self.session.addresses, source.queue, offsets, journal, access=self.session.access)
        box = DeadLetterBox(request, actions.ask, self)
        box.operationDone.connect(self.operationDone)
        box.open()
        return box

    # ---- what comes --------------------------------------------------------------------------------------------------

    def _filled(self) -> None:
        source = self.source
        if source is None or self._matches is not None:
            return
        self.stop_button.setEnabled(False)
        index = self.queue.currentIndex()
        if 0 <= index < len(self._queues):
            ends = replace(self._queues[index], min_offset=source.start, max_offset=source.end)
            self._queues[index] = ends
            self.queue.setItemText(index, _queue_text(ends))
        is_empty = self.table.table.rowCount() == 0
        self.table.set_state(State("empty", tr("The queue has no messages.")) if is_empty else None)

    def _failed(self, error: Exception) -> None:
        self.stop_button.setEnabled(False)
        if isinstance(error, Stopped):
            state = State("cut", tr("Stopped."), steps=((tr("Go on"), self._again),))
        else:
            kind = "cut" if self.table.table.rowCount() else "error"  # an error in the table would cover its rows
            state = State(kind, engine_words(str(error)), steps=((tr("Try again"), self._again),))
        self.table.set_state(state)

    def _again(self) -> None:
        if self.source is None:
            self.open_topic()
        elif self._matches is not None:
            self._continue_scan()
        else:
            self.refresh()

    def _row_chosen(self, row: Any) -> None:
        self.panes.show_row(row)
        self._show_acts()

    def _say(self, text: str) -> None:
        self.status.setText(text)
        self.status.setVisible(bool(text))

    def closeEvent(self, event: QCloseEvent) -> None:
        """End the connection."""
        self._end()
        super().closeEvent(event)

    def done(self, result: int) -> None:
        """End the connection, also on Esc."""
        self._end()
        super().done(result)

    def _end(self) -> None:
        self._scan += 1
        self.session.close()


def _queue_text(ends: QueueRange) -> str:
    queue = ends.queue
    if ends.max_offset == ends.min_offset:
        return tr("{broker} / {queue} · empty", broker=queue.broker, queue=queue.queue_id)
    return f"{queue.broker} / {queue.queue_id} · {number(ends.min_offset)} – {number(ends.max_offset - 1)}"
