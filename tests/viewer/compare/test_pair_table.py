"""The table of two logs: halves with a column of signs between them, and heads that follow their widths."""

from __future__ import annotations

from PySide6.QtGui import QColor

from viewer.compare.pair_columns import OTHER, OWN
from viewer.compare.pair_rows import PairRow
from viewer.compare.pair_table import PairHeads, PairTable
from viewer.log.rows import NonUnitRow, UnitRow
from viewer.look.theme import C

UNIT = UnitRow(100, 50, "Orders", 1, 7, 1_700_000_000_000, None, ["K1"], "ok", "", False, 0, b"")
DAMAGE = NonUnitRow("damage", 150, 50, 200, "length field")


def test_a_side_without_the_message_is_grey_and_damage_is_red(qtbot) -> None:
    table = PairTable()
    qtbot.addWidget(table)
    table.resize(1400, 200)
    rows = [PairRow(100, 150, UNIT, None, "own"), PairRow(150, 200, UNIT, DAMAGE, "differs")]
    table.set_rows(rows)
    table.show()
    table.grab()
    picture = table.viewport().grab().toImage()
    left, right = table.sign_span()
    height = table.row_height()

    def ground(x: int, row: int) -> QColor:
        return picture.pixelColor(x, row * height + 2)

    assert ground(5, 0) == C("pane")
    assert ground(right + 5, 0) == C("sunken")
    assert ground(right + 5, 1) == C("errorFill")
    assert ground((left + right) // 2, 0) == C("raised")


def test_heads_stand_over_their_halves_at_every_width(qtbot) -> None:
    table = PairTable()
    heads = PairHeads(table)
    for widget in (table, heads):
        qtbot.addWidget(widget)
    for width in (1600, 1232):
        table.resize(width, 200)
        heads.resize(width, 32)
        table.show()
        heads.show()
        table.set_rows([PairRow(100, 150, UNIT, UNIT, "same")])
        table.grab()
        left, right = table.sign_span()
        assert heads.heads[OWN].width() == left
        assert heads.heads[OTHER].x() == right
        assert abs(left - (width - right)) < 40, "both halves have about the same width"
    assert "own.keys" not in {column.key for column in table.kind.columns}
    heads.show_store(OTHER, "/backup/store", "ok", "closed")
    assert heads.heads[OTHER].note.text() == "/backup/store"
    assert not heads.chips[OTHER].isHidden()
