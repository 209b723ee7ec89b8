"""The editor of a question: words in colours, completion, and the mark below what is wrong."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QStringListModel, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QKeyEvent,
    QSyntaxHighlighter,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
)
from PySide6.QtWidgets import QCompleter, QListView, QPlainTextEdit, QTextEdit, QWidget

from viewer.look.assets import tr
from viewer.look.theme import C, follow, mono, px
from viewer.sql.completion import Part, Words
from viewer.widgets.focus import FocusRing

STYLES: dict[Part, tuple[str, bool]] = {
    "comment": ("text3", False),
    "text": ("ok", False),
    "number": ("note", False),
    "keyword": ("accent", True),
    "function": ("note", False),
    "relation": ("text", True),
}
"""Colour role of a part of a question, and whether it is bold; columns look like other words."""
MIN_LETTERS = 2
"""Letters of a word after which completions are offered by themselves."""
_PLAIN = Qt.KeyboardModifier.NoModifier
_ENTER = {Qt.Key.Key_Return, Qt.Key.Key_Enter}
_TAKING = {*_ENTER, Qt.Key.Key_Tab}


class Highlighter(QSyntaxHighlighter):
    """Colours the words of a question. A text or a comment of several lines is one part."""

    def __init__(self, document: QTextDocument) -> None:
        super().__init__(document)
        self.words = Words()

    def highlightBlock(self, _text: str) -> None:
        block = self.currentBlock()
        begin, length = block.position(), block.length()
        for start, end, part in self.words.parts(self.document().toPlainText()):
            if part in STYLES and start < begin + length and end > begin:
                first = max(start - begin, 0)
                self.setFormat(first, end - begin - first, _format(*STYLES[part]))


def _format(role: str, is_bold: bool) -> QTextCharFormat:
    style = QTextCharFormat()
    style.setForeground(C(role))
    if is_bold:
        style.setFontWeight(QFont.Weight.DemiBold)
    return style


class Editor(QPlainTextEdit):
    """Emits ``runRequested`` on Ctrl+Enter, ``stopRequested`` on Esc, ``olderRequested(1)`` on Alt+Up and
    ``olderRequested(-1)`` on Alt+Down.
    """

    runRequested = Signal()
    stopRequested = Signal()
    olderRequested = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("sql.editor")
        self.setAccessibleName(tr("Question in SQL"))
        self.setProperty("bare", True)
        self.setFrameShape(QPlainTextEdit.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setPlaceholderText("SELECT topic, count(*) FROM units GROUP BY 1")
        FocusRing(self)
        self.words = Words()
        self._fault: tuple[int, int] | None = None
        self._highlighter = Highlighter(self.document())
        self._model = QStringListModel(self)
        self.completer = QCompleter(self._model, self)
        self.completer.setWidget(self)
        self.completer.setCompletionMode(QCompleter.CompletionMode.UnfilteredPopupCompletion)
        self.completer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self.completer.activated.connect(self.take)
        self._popup = QListView()
        self._popup.setObjectName("sql.suggestions")
        self._popup.setAccessibleName(tr("Suggestions"))
        self.completer.setPopup(self._popup)
        self._start = 0
        self.textChanged.connect(lambda: self.show_fault(None, 0))
        self._retheme()
        follow(self, self._retheme)

    def use(self, words: Words) -> None:
        """Use these words for colours and completion."""
        self.words = self._highlighter.words = words
        self._highlighter.rehighlight()

    def set_text(self, text: str) -> None:
        """Replace the text in a step that can be undone; the cursor goes to its end."""
        cursor = QTextCursor(self.document())
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.insertText(text)
        self.setTextCursor(cursor)
        self._popup.hide()

    def insert(self, word: str) -> None:
        """Write a word where the cursor is."""
        self.textCursor().insertText(word)
        self.setFocus()

    # ---- faults ------------------------------------------------------------------------------------------------------

    def show_fault(self, start: int | None, length: int) -> None:
        """Mark the characters from ``start`` on as wrong; None marks nothing."""
        self._fault = None if start is None else (start, max(length, 1))
        selections = []
        if self._fault is not None:
            selection = QTextEdit.ExtraSelection()
            last = max(self.document().characterCount() - 1, 0)
            begin = min(self._fault[0], max(last - 1, 0))
            selection.cursor = QTextCursor(self.document())
            selection.cursor.setPosition(begin)
            selection.cursor.setPosition(min(begin + self._fault[1], last), QTextCursor.MoveMode.KeepAnchor)
            style = QTextCharFormat()
            style.setUnderlineStyle(QTextCharFormat.UnderlineStyle.WaveUnderline)
            style.setUnderlineColor(C("error"))
            style.setBackground(C("errorFill"))
            selection.format = style
            selections.append(selection)
        self.setExtraSelections(selections)

    # ---- completion --------------------------------------------------------------------------------------------------

    def offer(self, *, always: bool = True) -> None:
        """Show words that may stand at the cursor; with ``always`` also before a letter is typed."""
        cursor = self.textCursor().position()
        suggestions = self.words.suggest(self.toPlainText(), cursor)
        if not suggestions.words or (not always and cursor - suggestions.start < MIN_LETTERS):
            self._popup.hide()
            return
        self._start = suggestions.start
        self._model.setStringList(list(suggestions.words))
        self._popup.setCurrentIndex(self._model.index(0))
        rect = self.cursorRect()
        rect.setWidth(px(280))
        self.completer.complete(rect)

    def take(self, word: str) -> None:
        """Put a word in the place of what was typed of it."""
        cursor = self.textCursor()
        cursor.setPosition(self._start, QTextCursor.MoveMode.KeepAnchor)
        cursor.insertText(word)
        self.setTextCursor(cursor)

    # ---- keys --------------------------------------------------------------------------------------------------------

    def event(self, event: QEvent) -> bool:
        """Keep keys of the editor that are commands of the window elsewhere."""
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) and _is_own_key(event):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Handle completion, earlier questions and Esc; all else is typing."""
        key, alt = event.key(), event.modifiers() == Qt.KeyboardModifier.AltModifier
        if self._popup.isVisible() and key in _TAKING and event.modifiers() == _PLAIN:
            index = self._popup.currentIndex()
            self._popup.hide()
            if index.isValid():
                self.take(str(index.data()))
        elif key == Qt.Key.Key_Space and event.modifiers() == Qt.KeyboardModifier.ControlModifier:
            self.offer()
        elif alt and key in {Qt.Key.Key_Up, Qt.Key.Key_Down}:
            self.olderRequested.emit(1 if key == Qt.Key.Key_Up else -1)
        elif key in _ENTER and event.modifiers() == Qt.KeyboardModifier.ControlModifier:
            self._popup.hide()  # an open list gets the key before the window's command does
            self.runRequested.emit()
        elif key == Qt.Key.Key_Escape and self._popup.isVisible():
            self._popup.hide()
        elif key == Qt.Key.Key_Escape:
            self.stopRequested.emit()
        else:
            super().keyPressEvent(event)
            is_letter = event.text().isprintable() and bool(event.text().strip())
            if is_letter or (key == Qt.Key.Key_Backspace and self._popup.isVisible()):
                self.offer(always=False)
            else:
                self._popup.hide()

    def _retheme(self) -> None:
        self.setFont(mono(13))
        self._popup.setFont(mono(12))
        self._popup.setStyleSheet(
            f"QListView {{ background: {_name('pane')}; border: 1px solid {_name('line')}; padding: 4px; }}"
            f"QListView::item {{ color: {_name('text')}; padding: 2px 6px; border-radius: 4px; }}"
            f"QListView::item:selected {{ background: {_name('select')}; color: {_name('text')}; }}"
        )
        self._highlighter.rehighlight()
        if self._fault is not None:
            self.show_fault(*self._fault)


def _name(role: str) -> str:
    colour: QColor = C(role)
    return colour.name()


def _is_own_key(event: QKeyEvent) -> bool:
    alt, control = Qt.KeyboardModifier.AltModifier, Qt.KeyboardModifier.ControlModifier
    if event.modifiers() == alt:
        return event.key() in {Qt.Key.Key_Up, Qt.Key.Key_Down}
    return event.key() == Qt.Key.Key_Space and event.modifiers() == control
