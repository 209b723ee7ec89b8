"""Details of one finding: description, expected and found values, bytes, safe steps, known issues."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QApplication, QFrame, QScrollArea, QVBoxLayout, QWidget

from engine.rules.catalogue import RULES
from engine.rules.findings import Finding
from viewer.look.assets import tr
from viewer.look.engine_words import engine_words
from viewer.look.rule_pages import GROUPS, WORDS
from viewer.look.theme import px
from viewer.pane.finding_bytes import HexInput, bytes_of
from viewer.pane.finding_facts import (
    evidence_facts,
    is_in_log,
    next_steps,
    place_of,
    title,
)
from viewer.pane.log_survey import in_log
from viewer.pane.patched_bytes import Changes, file_changes, log_changes
from viewer.pane.plan_words import release_name
from viewer.runtime.recovery_plan import recovery_of
from viewer.runtime.store_session import StoreSession
from viewer.widgets.basics import Button, ElidedLine, Hairline, Label, PaneHead, ThemedPanel
from viewer.widgets.boxes import column, empty, fill, row
from viewer.widgets.facts import Fact, Facts
from viewer.widgets.hex_view import HexView
from viewer.widgets.record_state import State, StateLine

HEX_ROWS, MAX_HEX_ROWS = 5, 16


class FindingDetail(ThemedPanel):
    """``placeRequested(place)`` to go to the bytes, ``planRequested()`` for the recovery plan, ``statusText(text)``."""

    placeRequested = Signal(object)
    planRequested = Signal()
    statusText = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._finding: Finding | None = None
        self._session: StoreSession | None = None
        go = Button(tr("Go to bytes"), "flat", "go-to")
        go.setObjectName("finding.go")
        go.clicked.connect(self._go)
        copy = Button(tr("Copy as command"), "flat")
        copy.clicked.connect(self._copy)
        self._go_button, self._copy_button = go, copy
        self.head = PaneHead(tr("Finding"), "", go, copy)
        self._message = Label("", 13, wrap=True, select=True)
        self._why = Label("", 12, "text2", wrap=True, select=True)
        self._facts = Facts(112)
        self.hex = HexView("finding.hex")
        self.hex.setAccessibleName(tr("Bytes of the finding"))
        self._steps = QVBoxLayout()
        self._steps.setSpacing(px(6))
        self._issues = Label("", 12, "text2", select=True, wrap=True)
        self._command = Label("", 12, select=True, wrap=True, code=True)
        self._command.setObjectName("finding.command")
        take = Button(tr("Copy"), "pill")
        take.setObjectName("finding.copyCommand")
        take.setAccessibleName(tr("Copy the command"))
        take.clicked.connect(self._take_command)
        self._command_row = row(self._command, take, gap=8)
        self._command_row.box.setStretch(0, 1)
        self.state = StateLine(strip=False)
        self._build()
        self.show_finding(None, None)

    def _build(self) -> None:
        steps = QWidget()
        steps.setLayout(self._steps)
        self._steps.setContentsMargins(0, 0, 0, 0)
        self._safe = column(
            Label(tr("Safe next steps"), 13, "text", 600),
            steps,
            self._command_row,
            self._issues,
            gap=7,
            margins=(14, 10, 14, 10),
        )
        self._hex_box = column(Hairline(), self.hex, Hairline(), gap=0)
        self._words = column(self._message, self._why, self._facts, gap=8, margins=(14, 10, 14, 8))
        inner = ThemedPanel()
        box = QVBoxLayout(inner)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        self._without = column(None, row(None, self.state, None), None)
        fill(box, (self._words, self._hex_box, self._safe, self._without, None))
        box.setStretch(3, 100)
        scroll = QScrollArea()
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(inner)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(0)
        fill(outer, (self.head, scroll))

    def show_finding(self, finding: Finding | None, session: StoreSession | None, words: str = "") -> None:
        """Show another finding; None with ``words`` if there is none."""
        self._finding, self._session = finding, session
        for part in (self._words, self._hex_box, self._safe, self._go_button, self._copy_button):
            part.setVisible(finding is not None)
        self._without.setVisible(finding is None)
        self.state.show_state(None if finding is not None or not words else State("empty", words))
        if finding is None or session is None:
            self.head.set_title(tr("Finding"))
            self.head.set_note("")
            return
        self.head.set_title(title(finding))
        self.head.set_note(
            " · ".join(filter(None, (finding.id, tr(WORDS[finding.severity]), tr(GROUPS[finding.group]))))
        )
        self._message.setText(engine_words(finding.message))
        self.say_why()
        self._facts.show_facts([Fact(name, value, code=len(value) < 48) for name, value in evidence_facts(finding)])
        self._show_steps(finding, str(session.path))
        self._command.setText(session.with_config(finding.command or ""))
        self._command_row.setVisible(bool(finding.command))
        self._issues.setText(
            tr("Known issues: {issues}", issues=", ".join(finding.known_issues)) if finding.known_issues else ""
        )
        self._issues.setVisible(bool(finding.known_issues))
        self._go_button.setVisible(place_of(finding) is not None)
        self._load_bytes(finding, session)

    def say_why(self) -> None:
        """Say why it is a finding; if the plan is known and starts after it, that the next start leaves it alone."""
        finding, session = self._finding, self._session
        if finding is None or session is None:
            return
        rule = RULES.get(finding.id)
        text = engine_words(finding.explanation or (rule.explanation if rule is not None else ""))
        plan = recovery_of(session).plan
        walked = plan is None or plan.blockers or finding.group != "log" or not in_log(finding)
        if plan is not None and not walked and (finding.offset or 0) < plan.start_offset:
            text += " " + tr(
                "The next start of {release} begins after this place: it does not read here and cuts nothing.",
                release=release_name(plan),
            )
        self._why.setText(text)

    def _show_steps(self, finding: Finding, path: str) -> None:
        empty(self._steps)
        for number, (step, words) in enumerate(next_steps(finding, path), 1):
            note = ElidedLine("" if words == finding.command else words, 12, "text2")  # a command stands below, whole
            sentence = Label(step, 13, "text", 600 if words else 400, wrap=not words)
            line = row(Label(str(number), 13, "accent", 600), sentence, *([note] if words else []))
            line.box.setStretch(2 if words else 1, 1)
            self._steps.addWidget(line)

    def _load_bytes(self, finding: Finding, session: StoreSession) -> None:
        store, log = session.snapshot, session.snapshot.log

        def done(bytes_shown: HexInput) -> None:
            if finding is self._finding:
                self._show_bytes(bytes_shown, session)

        session.jobs.read(
            lambda: bytes_of(finding, log.read, log.end_offset, store.reading),
            done,
            lambda error: self.statusText.emit(str(error)),
        )

    def _show_bytes(self, bytes_shown: HexInput, session: StoreSession) -> None:
        self._hex_box.setVisible(bytes_shown.read is not None)
        if bytes_shown.read is None:
            self.hex.clear()
            return
        self.hex.runner = session.jobs.read
        self._fit_hex()
        self.hex.show_bytes(
            bytes_shown.read,
            bytes_shown.start,
            bytes_shown.fields,
            bytes_shown.size,
            bytes_shown.low,
            bytes_shown.high,
            bytes_shown.damage,
            bytes_shown.frames,
        )
        self.hex.set_changes(self._changes(session))

    def _changes(self, session: StoreSession) -> Changes:
        """Return the shown bytes that patches change."""
        finding = self._finding
        if not session.patches or finding is None or not finding.file:
            return {}
        file = Path(finding.file)
        if is_in_log(file):
            return log_changes(session.patches, *self.hex.limits)
        name = file.relative_to(session.path).as_posix() if file.is_relative_to(session.path) else finding.file
        return file_changes(session.patches, name, *self.hex.limits)

    def _fit_hex(self) -> None:
        """Show as many whole rows of bytes as fit below the words, at least some."""
        words = (self._words, self._safe, self.state)
        used_height = sum(part.height() for part in words if not part.isHidden())
        free = self.height() - self.head.height() - used_height - 2
        rows = max(HEX_ROWS, min(MAX_HEX_ROWS, self.hex.rows_in(free)))
        self.hex.setFixedHeight(self.hex.height_of(rows))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another room: other rows."""
        super().resizeEvent(event)
        self.state.fit(self.width())
        if not self._hex_box.isHidden():
            self._fit_hex()

    def _go(self) -> None:
        place = place_of(self._finding) if self._finding is not None else None
        if place is not None:
            self.placeRequested.emit(place)

    def _take_command(self) -> None:
        if self._finding is not None and self._finding.command and self._session is not None:
            text = self._session.with_config(self._finding.command)
            QApplication.clipboard().setText(text)
            self.statusText.emit(tr("Copied: {text}", text=text))

    def _copy(self) -> None:
        if self._finding is None or self._session is None:
            return
        text = self._session.command_line(["storescope", "check", "STORE", "--only", self._finding.id, "--json"])
        QApplication.clipboard().setText(text)
        self.statusText.emit(tr("Copied: {text}", text=text))
