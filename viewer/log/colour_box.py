"""The dialog of the colouring rules: name, filter and tint of each, in the order of evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QDialog, QListWidgetItem, QVBoxLayout, QWidget

from viewer.log.colour_rules import TINTS, Rule
from viewer.look.assets import tr
from viewer.look.theme import C, mono, px, ui
from viewer.widgets.basics import Button, Field, Label
from viewer.widgets.boxes import column, row
from viewer.widgets.choices import ChoiceField, ChoiceList
from viewer.widgets.paint import mark


class ColourBox(QDialog):
    """Emits ``changed(rules)`` when they are applied. An invalid filter shows its error and colours nothing."""

    changed = Signal(object)

    def __init__(self, rules: Sequence[Rule], added: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("colour.rules.box")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Colouring rules"))
        self.setAccessibleName(tr("Colouring rules"))
        self.rules = list(rules)
        self._filling = False
        self.list = ChoiceList()
        self.list.setObjectName("colour.list")
        self.list.setAccessibleName(tr("Colouring rules"))
        self.list.setIconSize(QSize(px(34), px(18)))
        self.name = Field(tr("Name of the rule"))
        self.name.setObjectName("colour.name")
        self.text = Field(tr("Filter"), code=True)
        self.text.setObjectName("colour.filter")
        self.tint = ChoiceField()
        self.tint.setObjectName("colour.tint")
        self.tint.setAccessibleName(tr("Colour and shape"))
        for key, (_role, label) in TINTS.items():
            self.tint.addItem(sample(key), tr(label), key)
        self.fault = Label("", 12, "error", wrap=True)
        self.fault.setObjectName("colour.fault")
        self._lay_out()
        self._wire()
        self._fill(0)
        if added:
            self.add(added)

    def _lay_out(self) -> None:
        self.resize(px(640), px(420))
        self.buttons = {
            name: Button(tr(text), kind)
            for name, text, kind in (
                ("add", "Add", ""),
                ("delete", "Delete", ""),
                ("up", "Up", ""),
                ("down", "Down", ""),
                ("close", "Cancel", ""),
                ("apply", "Apply", "primary"),
            )
        }
        for name, button in self.buttons.items():
            button.setObjectName(f"colour.{name}")
        side = column(*(self.buttons[n] for n in ("add", "delete", "up", "down")), None, gap=6)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(20), px(16), px(20), px(16))
        layout.setSpacing(px(10))
        layout.addWidget(Label(tr("The first rule that matches a row colours it."), 12, "text3"))
        layout.addWidget(row(self.list, side, gap=10), 1)
        layout.addWidget(row(self.name, self.tint, gap=8))
        layout.addWidget(self.text)
        layout.addWidget(self.fault)
        layout.addWidget(row(None, self.buttons["close"], self.buttons["apply"], gap=8))

    def _wire(self) -> None:
        self.list.currentRowChanged.connect(self._chosen)
        self.list.itemChanged.connect(self._ticked)
        self.name.textEdited.connect(lambda _text: self._edited())
        self.text.textEdited.connect(lambda _text: self._edited())
        self.tint.activated.connect(lambda _n: self._edited())
        actions = {"add": self.add, "delete": self.delete, "up": self._up, "down": self._down, "close": self.reject}
        for name, action in actions.items():
            self.buttons[name].clicked.connect(lambda _=False, action=action: action())
        self.buttons["apply"].clicked.connect(self.apply)

    # ---- commands ----------------------------------------------------------------------------------------------------

    def add(self, text: str = "") -> None:
        """Add a rule at the top, where it is evaluated first."""
        tints = list(TINTS)
        self.rules.insert(0, Rule(tr("Rule {n}", n=len(self.rules) + 1), text, tints[len(self.rules) % len(tints)]))
        self._fill(0)
        (self.text if not text else self.name).setFocus()

    def delete(self) -> None:
        """Delete the chosen rule."""
        row = self.list.currentRow()
        if 0 <= row < len(self.rules):
            del self.rules[row]
            self._fill(min(row, len(self.rules) - 1))

    def apply(self) -> None:
        """Colour by these rules."""
        self.changed.emit(list(self.rules))
        self.accept()

    def _up(self) -> None:
        self._move(-1)

    def _down(self) -> None:
        self._move(1)

    def _move(self, by: int) -> None:
        row = self.list.currentRow()
        if 0 <= row < len(self.rules) and 0 <= row + by < len(self.rules):
            self.rules[row], self.rules[row + by] = self.rules[row + by], self.rules[row]
            self._fill(row + by)

    # ---- below -------------------------------------------------------------------------------------------------------

    def _fill(self, row_number: int) -> None:
        self._filling = True
        self.list.clear()
        for rule in self.rules:
            item = QListWidgetItem(sample(rule.tint), f"{rule.name}   {rule.text}")
            item.setFont(mono(12))
            item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
            item.setCheckState(Qt.CheckState.Checked if rule.on else Qt.CheckState.Unchecked)
            self.list.addItem(item)
        self._filling = False
        self.list.setCurrentRow(row_number)
        self._chosen(self.list.currentRow())

    def _chosen(self, row: int) -> None:
        if self._filling:
            return
        is_rule = 0 <= row < len(self.rules)
        for part in (self.name, self.text, self.tint, *(self.buttons[n] for n in ("delete", "up", "down"))):
            part.setEnabled(is_rule)
        rule = self.rules[row] if is_rule else Rule("", "")
        self.name.setText(rule.name)
        self.text.setText(rule.text)
        self.tint.setCurrentIndex(max(0, self.tint.findData(rule.tint)))
        self.fault.setText(rule.fault if is_rule and rule.text else "")

    def _edited(self) -> None:
        row = self.list.currentRow()
        if not 0 <= row < len(self.rules):
            return
        edited_rule = replace(
            self.rules[row], name=self.name.text(), text=self.text.text(), tint=self.tint.currentData()
        )
        self.rules[row] = edited_rule
        self.fault.setText(edited_rule.fault)
        self._filling = True
        item = self.list.item(row)
        item.setText(f"{edited_rule.name}   {edited_rule.text}")
        item.setIcon(sample(edited_rule.tint))
        self._filling = False

    def _ticked(self, item: QListWidgetItem) -> None:
        row = self.list.row(item)
        if not self._filling and 0 <= row < len(self.rules):
            self.rules[row] = replace(self.rules[row], on=item.checkState() == Qt.CheckState.Checked)


def sample(tint: str) -> QIcon:
    """Return a tint as a small picture: its background with its shape."""
    picture = QPixmap(px(34), px(18))
    picture.fill(C(TINTS[tint][0]))
    p = QPainter(picture)
    p.setFont(ui(11))
    p.setPen(C("line"))
    p.drawRect(QRectF(0.5, 0.5, picture.width() - 1, picture.height() - 1))
    mark(p, f"rule.{tint}", QRectF(picture.rect()).center(), 4.5 * px(100) / 100)
    p.end()
    return QIcon(picture)
