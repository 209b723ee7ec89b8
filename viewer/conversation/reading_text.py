"""The text of a conversation: each step with its heading, facts and body, one below the other; and find in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from PySide6.QtCore import QRegularExpression, QUrl, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
)
from PySide6.QtWidgets import QTextBrowser, QTextEdit

from viewer.conversation.conversation_model import body_lines, step_chip, step_facts, step_heading
from viewer.conversation.conversation_work import ConversationRow
from viewer.look.assets import tr
from viewer.look.formats import number
from viewer.look.theme import C, follow, mono, px, ui
from viewer.runtime import places
from viewer.widgets.search_term import SearchTerm

MAX_HITS = 5_000
EXCERPT_LETTERS = 60
TONES = {"error": "error", "warn": "warn", "ok": "ok", "note": "note"}


@dataclass(frozen=True, slots=True)
class TextHit:
    """An occurrence in the text: its characters, the number of its step, and the text around it."""

    number: int
    start: int
    end: int
    step: int
    excerpt: str


class ReadingText(QTextBrowser):
    """The text. ``placeRequested(place)`` for a link, ``stepReached(number)`` when a click reaches another step."""

    placeRequested = Signal(object)
    stepReached = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("conversation.text")
        self.setAccessibleName(tr("The conversation as text"))
        self.setOpenLinks(False)
        self.setProperty("bare", True)
        self.setFrameShape(QTextBrowser.Shape.NoFrame)
        self._rows: Sequence[ConversationRow] = ()
        self._starts: list[int] = []
        """Position of the first character of each step."""
        self.anchorClicked.connect(self._follow_link)
        follow(self, self._draw)

    def show_rows(self, rows: Sequence[ConversationRow]) -> None:
        """Show these steps from the first one on."""
        self._rows = rows
        self._draw()
        self.moveCursor(QTextCursor.MoveOperation.Start)

    def show_step(self, step_number: int) -> None:
        """Scroll to a step."""
        if 1 <= step_number <= len(self._starts):
            self._scroll_to(self._starts[step_number - 1])

    def step_at(self, position: int) -> int:
        """Return the number of the step that the character at ``position`` belongs to; 0 without steps."""
        return sum(start <= position for start in self._starts)

    # ---- find --------------------------------------------------------------------------------------------------------

    def find_hits(self, term: SearchTerm) -> list[TextHit]:
        """Return the occurrences of ``term``, at most :data:`MAX_HITS`, and frame them."""
        hits: list[TextHit] = []
        text = self.toPlainText()
        flags = QTextDocument.FindFlag(0)
        if term.case:
            flags |= QTextDocument.FindFlag.FindCaseSensitively
        expression = QRegularExpression(term.text)
        if not term.case:
            expression.setPatternOptions(QRegularExpression.PatternOption.CaseInsensitiveOption)
        needle: str | QRegularExpression = expression if term.kind == "regex" else term.text
        cursor = QTextCursor(self.document())
        while len(hits) < MAX_HITS:
            cursor = self.document().find(needle, cursor, flags)
            if cursor.isNull() or not cursor.hasSelection():
                break
            start, end = cursor.selectionStart(), cursor.selectionEnd()
            line_start = max(text.rfind("\n", 0, start) + 1, start - EXCERPT_LETTERS // 2)
            line_end = text.find("\n", end)
            excerpt = text[line_start : min(line_start + EXCERPT_LETTERS, line_end if line_end >= 0 else len(text))]
            hits.append(TextHit(len(hits) + 1, start, end, self.step_at(start), excerpt.strip()))
        self._frame(hits, None)
        return hits

    def show_hit(self, hits: Sequence[TextHit], hit: TextHit) -> None:
        """Scroll to ``hit`` and mark it among the others."""
        self._frame(hits, hit)
        self._scroll_to(hit.start)

    def forget_hits(self) -> None:
        """Remove the frames."""
        self.setExtraSelections([])

    def _frame(self, hits: Sequence[TextHit], chosen: TextHit | None) -> None:
        selections = []
        for hit in hits:
            selection = QTextEdit.ExtraSelection()
            selection.cursor = QTextCursor(self.document())
            selection.cursor.setPosition(hit.start)
            selection.cursor.setPosition(hit.end, QTextCursor.MoveMode.KeepAnchor)
            form = QTextCharFormat()
            form.setBackground(C("accent") if hit is chosen else C("accent", 0.25))
            if hit is chosen:
                form.setForeground(C("pane"))
            selection.format = form
            selections.append(selection)
        self.setExtraSelections(selections)

    # ---- drawing -----------------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        top = self.verticalScrollBar().value()
        self.setFont(ui(13))
        self.document().setDocumentMargin(px(12))
        self.document().setDefaultFont(ui(13))
        code = mono(12)
        self.document().setDefaultStyleSheet(
            f"pre {{ font-family: '{code.family()}'; font-size: {code.pixelSize()}px; color: {C('text').name()};"
            f" margin: {px(2)}px 0 {px(16)}px 0; white-space: pre-wrap; }}"
            f"h4 {{ color: {C('text').name()}; margin: {px(4)}px 0 {px(2)}px 0; }}"
            f"p {{ color: {C('text2').name()}; margin: 0 0 {px(2)}px 0; }}"
            f"a {{ color: {C('accent').name()}; text-decoration: none; }}"
        )
        self.setHtml("".join(map(self._step_html, self._rows)))
        self._starts = self._find_starts()
        self.verticalScrollBar().setValue(top)

    def _step_html(self, row: ConversationRow) -> str:
        tone = TONES.get(step_chip(row).kind)
        style = f' style="color:{C(tone).name()}"' if tone is not None else ""
        link = ""
        if row.physical_offset is not None:
            place = number(row.physical_offset)
            name = f"{row.topic}/{row.queue_id}/{row.queue_offset} @ {place}" if row.topic else place
            link = f' · <a href="log:{row.physical_offset}">{escape(name)}</a>'
        facts = "".join(f"<p>{escape(line)}</p>" for line in step_facts(row))
        body = body_lines(row)
        note = f"<p>{escape(row.text_note)}</p>" if row.text_note else ""
        return (
            f'<h4><a name="step{row.number}"></a><span{style}>{escape(step_heading(row))}</span>{link}</h4>{facts}'
            f"<pre>{escape(body)}</pre>{note}"
        )

    def _find_starts(self) -> list[int]:
        starts, block = [], self.document().begin()
        while block.isValid():
            if block.blockFormat().headingLevel() == 4:
                starts.append(block.position())
            block = block.next()
        return starts

    def _scroll_to(self, position: int) -> None:
        cursor = QTextCursor(self.document())
        cursor.setPosition(position)
        self.setTextCursor(cursor)
        top = self.cursorRect(cursor).top() + self.verticalScrollBar().value()
        self.verticalScrollBar().setValue(max(0, top - px(40)))

    def _follow_link(self, link: QUrl) -> None:
        if link.scheme() == "log":
            self.placeRequested.emit(places.log(int(link.path())))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the text, and a frame around it while it has the focus."""
        super().paintEvent(event)
        if self.hasFocus():
            painter = QPainter(self.viewport())
            painter.setPen(QPen(C("accent"), 2))
            painter.drawRect(self.viewport().rect().adjusted(1, 1, -1, -1))
            painter.end()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Show the frame."""
        super().focusInEvent(event)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Remove the frame."""
        super().focusOutEvent(event)
        self.viewport().update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        if not self.textCursor().hasSelection() and (step := self.step_at(self.textCursor().position())):
            self.stepReached.emit(step)
