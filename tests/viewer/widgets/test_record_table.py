from __future__ import annotations

from dataclasses import dataclass

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QAbstractItemModelTester

from viewer.widgets.columns import Chip, RecordKind, RowAppearance, chip_column, gutter, number_column, text_column
from viewer.widgets.record_table import RecordRole, RecordTable, ValueRole


@dataclass(frozen=True)
class Entry:
    queue_offset: int
    topic: str
    verdict: str = "ok"


def look(row):
    return RowAppearance("error", "errorFill", "error", "cut here", 2) if row.verdict == "edge" else None


KIND = RecordKind(
    "cq",
    (
        gutter(),
        number_column("queueOffset", "Queue offset", 100),
        text_column("topic", "Topic", 100),
        chip_column(
            "verdict", "Verdict", 80, lambda row: Chip("ok") if row.verdict == "ok" else Chip("error", row.verdict)
        ),
    ),
    look=look,
    verdict=lambda row: row.verdict,
)
FAR = (1 << 62) + 3


@pytest.fixture
def table(qtbot, qtmodeltester):
    model = RecordTable(KIND, [Entry(FAR, "orders"), Entry(FAR + 1, "orders", "missing"), Entry(FAR + 2, "", "edge")])
    qtmodeltester.data_display_may_return_none = True
    qtmodeltester.check(model)
    return model


def test_values_stay_whole_beyond_32_bits(table):
    index = table.index(0, 1)
    assert index.data() == "4,611,686,018,427,387,907"
    assert index.data(ValueRole) == FAR
    assert table.data(index, RecordRole).queue_offset == FAR


def test_the_head_says_it_in_words_and_the_field_name_in_its_tip(table):
    assert table.headerData(1, Qt.Orientation.Horizontal) == "Queue offset"
    assert table.headerData(1, Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole) == "Queue offset · queueOffset"


def test_a_screen_reader_hears_the_verdict_first(table):
    spoken = table.index(1, 0).data(Qt.ItemDataRole.AccessibleTextRole)
    assert spoken.startswith("missing. ")
    assert "Queue offset 4,611,686,018,427,387,908" in spoken


def test_words_of_an_edge_stand_in_their_column(table):
    assert table.index(2, 2).data() == "cut here"


def test_the_model_keeps_qts_promises_while_rows_change(qtbot, table):
    tester = QAbstractItemModelTester(table, QAbstractItemModelTester.FailureReportingMode.Warning)
    table.set_rows([Entry(n, "t") for n in range(500)])
    table.set_rows([Entry(n, "t") for n in range(400, 450)])
    table.set_kind(RecordKind("cq", KIND.columns[:2]))
    table.set_rows([])
    assert table.rowCount() == 0
    assert tester.model() is table


def test_a_row_that_took_the_place_of_another_shows_its_own_text(table):
    """Texts are kept by the identity of the row: memory of a freed row must not lend its text to a new one."""
    for number in range(2000):
        table.set_rows([Entry(number, f"t{number}")])
        assert table.texts(0)[1:3] == [f"{number:,}", f"t{number}"]


def test_terms_for_the_filter_name_field_and_value():
    assert KIND.columns[2].filter_text(Entry(1, 'a"b')) == 'topic = "a\\"b"'
    assert KIND.columns[1].filter_text(Entry(7, ""), exclude=True) == "not queueOffset = 7"


def test_a_row_never_wears_the_texts_of_another_one():
    """Rows of the positions showed name and number of other rows for seconds. Texts were kept by the address of a row
    that had been replaced, and a new row with another name got that address.
    """
    table = RecordTable(KIND, [Entry(1, "T"), Entry(2, "T")])
    for number in (0, 1):
        assert table.texts(number)[1] == str(number + 1)
        table.look(number)
    addresses = {id(row) for row in table.rows}
    table.replace_row(0, Entry(3, "T"))
    table.replace_row(1, Entry(4, "T"))
    rows = [Entry(number, "T") for number in range(100, 400)]
    assert any(id(row) in addresses for row in rows), "addresses are given again"
    table.set_rows(rows)
    assert [table.texts(number)[1] for number in range(300)] == [str(row.queue_offset) for row in rows]
