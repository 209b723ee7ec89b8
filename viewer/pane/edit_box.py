"""The box that asks for a change by hand and stages it as a patch. Nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QGridLayout, QMenu, QVBoxLayout, QWidget

from engine.errors import StoreError
from viewer.look.assets import tr, tr_plural
from viewer.look.engine_words import engine_words
from viewer.look.theme import px
from viewer.pane.edit_kinds import BY_ID, EDIT_KINDS, EditKind, base_patches, bytes_of_text, edit_title, make_patches
from viewer.widgets.basics import Button, Field, Label
from viewer.widgets.boxes import row
from viewer.widgets.choices import TickBox

if TYPE_CHECKING:
    from engine.patching.patches import Patch
    from viewer.runtime.store_session import StoreSession

MAX_NUMBER_BYTES = 8


class EditBox(QDialog):
    """Asks for the values of one kind of change. A change that does not fit is explained, and the box stays open."""

    def __init__(
        self,
        parent: QWidget,
        session: StoreSession,
        kind: EditKind,
        values: Mapping[str, str],
        say: Callable[[str], object],
    ) -> None:
        super().__init__(parent)
        self._session, self._kind, self._say = session, kind, say
        self._closed = False
        self.setObjectName("edit.box")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr(kind.title))
        self.setAccessibleName(tr(kind.title))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(20), px(16), px(20), px(14))
        layout.setSpacing(px(10))
        layout.addWidget(Label(tr(kind.title), 18, "text", 600))
        note = tr("It becomes a patch in the list. Nothing is written into the store.")
        layout.addWidget(Label(f"{tr(kind.note)} {note}" if kind.note else note, 13, "text2", wrap=True))
        grid = QGridLayout()
        grid.setHorizontalSpacing(px(12))
        grid.setVerticalSpacing(px(6))
        self.fields: dict[str, Field] = {}
        self.number: Field | None = None
        for number, part in enumerate(kind.fields):
            field = self.fields[part.key] = Field(part.example, code=True)
            field.setObjectName(f"edit.{part.key}")
            field.setAccessibleName(tr(part.label))
            field.setMinimumWidth(px(380))
            field.setText(values.get(part.key, ""))
            field.textEdited.connect(lambda _text: self._show_fault(""))
            grid.addWidget(Label(tr(part.label), 13, "text2"), 2 * number, 0)
            grid.addWidget(field, 2 * number, 1)
            if part.key == "bytes":
                self._add_number(grid, 2 * number + 1)
        layout.addLayout(grid)
        self.tick = TickBox(tr(kind.tick) if kind.tick else "")
        self.tick.setObjectName("edit.tick")
        self.tick.setVisible(bool(kind.tick))
        self.tick.setChecked(bool(values.get("unit")))
        layout.addWidget(self.tick)
        self.fault = Label("", 12, "error", wrap=True)
        self.fault.setObjectName("edit.fault")
        layout.addWidget(self.fault)
        self.stage_button, cancel = Button(tr("Stage the patch"), "primary"), Button(tr("Cancel"))
        self.stage_button.setObjectName("edit.stage")
        self.stage_button.setDefault(True)
        self.stage_button.clicked.connect(self.stage)
        cancel.clicked.connect(self.reject)
        layout.addWidget(row(None, cancel, self.stage_button, gap=8))
        self._show_fault("")
        empty = next((field for key, field in self.fields.items() if not field.text()), None)
        first = empty or self.fields.get("bytes") or next(iter(self.fields.values()))
        first.setFocus()

    def _add_number(self, grid: QGridLayout, line: int) -> None:
        """Add a field that has a few bytes as a number; each of the two fields follows the other."""
        source, number = self.fields["bytes"], Field("", code=True)
        self.number = number
        number.setObjectName("edit.asNumber")
        number.setAccessibleName(tr("As a number"))
        grid.addWidget(Label(tr("As a number"), 13, "text2"), line, 0)
        grid.addWidget(number, line, 1)

        def show_number() -> None:
            try:
                data = bytes_of_text(source.text())
            except StoreError:
                data = b""
            number.setEnabled(0 < len(data) <= MAX_NUMBER_BYTES)
            number.setText(str(int.from_bytes(data, "big", signed=True)) if number.isEnabled() else "")

        def take_number(text: str) -> None:
            size = len(bytes_of_text(source.text()))
            try:
                value = int(text.replace(",", ""), 0) % (1 << 8 * size)
            except ValueError:
                return
            source.setText(value.to_bytes(size, "big").hex(" ").upper())

        source.textEdited.connect(lambda _text: show_number())
        number.textEdited.connect(take_number)
        show_number()

    def done(self, result: int) -> None:
        """Close the box; answers that arrive later are ignored."""
        self._closed = True
        super().done(result)

    def values(self) -> dict[str, str]:
        """Return the typed values."""
        return {key: field.text() for key, field in self.fields.items()}

    def stage(self) -> None:
        """Make the patches of the change, and close if there are some."""
        session, kind, values, tick = self._session, self._kind, self.values(), self.tick.isChecked()
        path, config, base = session.path, session.config, base_patches(session)
        self.stage_button.setEnabled(False)
        session.jobs.read(
            lambda: make_patches(path, config, base, kind, values, tick=tick),
            lambda patches: self._staged(patches, edit_title(kind, values)),
            lambda error: self._show_fault(engine_words(str(error))),
        )

    def _staged(self, patches: tuple[Patch, ...], title: str) -> None:
        if self._closed or self._session.closed:
            return
        if not patches:
            self._show_fault(tr("Nothing changes: it is so already."))
            return
        self._session.stage(patches, title)
        self._say(
            tr_plural("Staged: {what} ({n:,} patch)", "Staged: {what} ({n:,} patches)", n=len(patches), what=title)
        )
        if self._session.patches:  # the views show the store as patched: they show this change, too
            self._session.jobs.start(self._session.read_anew(base_patches(self._session)))
        self.accept()

    def _show_fault(self, text: str) -> None:
        if self._closed:
            return
        self.stage_button.setEnabled(True)
        self.fault.setText(text)
        self.fault.setVisible(bool(text))


def ask_edit(
    parent: QWidget,
    session: StoreSession,
    kind_id: str,
    values: Mapping[str, str] | None = None,
    say: Callable[[str], object] = lambda _words: None,
) -> EditBox | None:
    """Open the box of a kind of change, filled in with ``values``; say why if the store cannot be changed."""
    if session.snapshot.kind != "store" or session.snapshot.writing_refusal:
        why = engine_words(session.snapshot.writing_refusal) or tr(
            "Only a whole store can be mended; this is a part of one."
        )
        say(why)
        return None
    box = EditBox(parent, session, BY_ID[kind_id], values or {}, say)
    box.open()
    return box


def edit_menu(parent: QWidget, ask: Callable[[str], object]) -> QMenu:
    """Return a menu of all kinds of changes; ``ask`` is called with the id of one."""
    menu = QMenu(parent)
    menu.setObjectName("edit.menu")
    for kind in EDIT_KINDS:
        action = menu.addAction(f"{tr(kind.title)}…")
        action.setObjectName(f"edit.kind.{kind.id}")
        action.triggered.connect(lambda _on=False, kind_id=kind.id: ask(kind_id))
    return menu
