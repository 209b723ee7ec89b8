"""The rows that a box of the Log view is about: the chosen row or rows, marked rows, all rows of the filter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QButtonGroup, QDialog, QRadioButton, QVBoxLayout, QWidget

from viewer.log.log_model import LogModel
from viewer.look.assets import tr
from viewer.look.theme import px
from viewer.widgets.basics import Button, Label
from viewer.widgets.record_view import RecordView


@dataclass(frozen=True, slots=True)
class RowScope:
    """Rows to choose: a key, what they are in words, and whether there are any."""

    key: str
    text: str
    able: bool = True


def row_scopes(model: LogModel, table: RecordView) -> list[RowScope]:
    """Return the scopes of a table: ``row``, ``span`` if several rows are selected, ``marked``, ``filter``."""
    filter_text, marked_count = model.filter.text, len(model.markings.marked)
    span = model.chosen_span(table.chosen_span())
    scopes = [RowScope("row", tr("The chosen row"), table.current_row() is not None and span is None)]
    if span is not None:
        scopes.append(RowScope("span", tr("The chosen rows, {first:,} to {last:,}", first=span[0], last=span[1])))
    return [
        *scopes,
        RowScope("marked", tr("Marked rows: {n:,}", n=marked_count), bool(marked_count)),
        RowScope("filter", tr("All rows of the filter: {text}", text=filter_text or tr("none")), bool(filter_text)),
    ]


class RowScopeBox(QDialog):
    """A box that begins with the choice of rows. Names of its widgets begin with ``name``."""

    def __init__(
        self, name: str, title: str, scopes: Sequence[RowScope], chosen_scope: str, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._name = name
        self.setObjectName(f"{name}.box")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(title)
        self.setAccessibleName(title)
        self._scope_group = QButtonGroup(self)
        self.scope_buttons: dict[str, QRadioButton] = {}
        for scope in scopes:
            button = QRadioButton(scope.text.replace("&", "&&"))
            button.setObjectName(f"{name}.scope.{scope.key}")
            button.setAccessibleName(scope.text)
            button.setEnabled(scope.able)
            button.setChecked(scope.key == chosen_scope)
            self._scope_group.addButton(button)
            self.scope_buttons[scope.key] = button

    def chosen_scope(self, default: str) -> str:
        """Return the key of the chosen scope."""
        return next((key for key, button in self.scope_buttons.items() if button.isChecked()), default)

    def begin_layout(
        self, width: int, height: int, buttons: Mapping[str, tuple[Button, Callable[[], object]]]
    ) -> QVBoxLayout:
        """Set the size, name the buttons and connect each, and return the layout, which has the scopes already."""
        self.resize(px(width), px(height))
        for name, (button, on_click) in buttons.items():
            button.setObjectName(f"{self._name}.{name}")
            button.clicked.connect(lambda _checked, on_click=on_click: on_click())
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(20), px(16), px(20), px(16))
        layout.setSpacing(px(8))
        layout.addWidget(Label(tr("Rows"), 13, "text", 600))
        for scope_button in self.scope_buttons.values():
            layout.addWidget(scope_button)
            if scope_button.isChecked():
                scope_button.setFocus()
        return layout
