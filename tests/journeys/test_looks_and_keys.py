"""Colours and language at run time, a small window, the keyboard alone, and what is copied."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from clipped_widgets import clipped_widgets
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QPushButton, QWidget
from walker import ALT, CTRL, Run, Walker

from viewer.look.theme import theme
from viewer.shell.views import AT_FOOT, BY_KIND, LISTENING, ON_RAIL

pytestmark = pytest.mark.journey
ROOT = Path(__file__).resolve().parents[2]
LOG = "units.table"


def test_colours_change_while_everything_stands(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await walker.choose(LOG, 5)
        chosen = walker.value(LOG, "Physical offset")
        light = walker.window.grab().toImage().pixelColor(800, 300).lightness()
        await walker.act("theme.dark")
        for view in BY_KIND:
            walker.window.show_view(view)
            await walker.rest()
        walker.window.show_view("log")
        await walker.rest()
        dark = walker.window.grab().toImage().pixelColor(800, 300).lightness()
        assert light > 200
        assert dark < 90
        assert walker.value(LOG, "Physical offset") == chosen
        assert walker.hex.origin == chosen
        await walker.act("theme.light")
        assert not theme.dark

    run(walk())


def test_chinese_everywhere_and_back(run: Run, walker: Walker, damaged: Path) -> None:
    """English sentences appear in no view: names, statuses and measured values of rules stay as they are. Nothing is
    cut in the smallest window.
    """

    async def walk() -> None:
        walker.window.resize(1280, 720)
        await walker.open(damaged)
        await walker.act("language.zh_CN")
        session = walker.window.session
        assert session is not None
        await walker.until(lambda: session.findings_complete, "the check ends")
        english: dict[str, set[str]] = {}
        for view in BY_KIND:
            walker.window.show_view(view)
            await walker.rest()
            assert not clipped_widgets(walker.window), view
            english[view] = sentences(walker) - {finding.message for finding in session.findings}
        assert not {view: words for view, words in english.items() if words}
        assert "物理偏移量" in walker.heads(LOG)
        await walker.act("language.en")
        assert "Physical offset" in walker.heads(LOG)
        assert walker.window.view == view

    run(walk())


def sentences(walker: Walker) -> set[str]:
    """Return texts of at least three English words on labels, heads and in the placeholders of fields."""
    texts = [label.text() for label in walker.window.findChildren(QLabel) if label.isVisible()]
    texts += [field.placeholderText() for field in walker.window.findChildren(QLineEdit) if field.isVisible()]
    for name in ("units.table", "queue.table", "index.files", "findings.table", "recovery.plan", "positions.now"):
        if walker.table(name).isVisible():
            texts += walker.heads(name)
            if name in {"recovery.plan", "positions.now"}:
                texts += [text for row in walker.rows(name) for text in row.values() if text]
    return {text for text in texts if is_english(text)}


def is_english(text: str) -> bool:
    """Return True if the text is an English phrase: three words in small letters, and no Chinese."""
    if any("\u4e00" <= letter <= "\u9fff" for letter in text):
        return False
    small = [word for word in text.split() if len(word) > 1 and word.strip(".,:;").isalpha() and word.islower()]
    return len(small) >= 3


def test_a_small_window_keeps_its_offsets_and_cuts_nothing(run: Run, walker: Walker, damaged: Path) -> None:
    """A window that fits may still cut its parts: a button of the lab had lost its first letter (see
    ``test_requests.py``, with an open lab). In half a screen the heads of Findings and Space had lost buttons, and
    Space its right edge.
    """

    async def walk() -> None:
        walker.window.resize(1280, 720)
        await walker.open(damaged)
        for view in BY_KIND:
            walker.window.show_view(view)
            await walker.rest()
            assert not clipped_widgets(walker.window), view
            assert walker.window.size().width() == 1280, view
            assert walker.window.size().height() == 720, view
        assert walker.window.minimumSizeHint().width() <= 1280
        assert walker.window.minimumSizeHint().height() <= 720
        walker.window.layouts.tie(True)
        walker.window.resize(640, 720)
        await walker.until(lambda: walker.window.size().width() == 640, "half a screen is enough")
        for view in BY_KIND:
            walker.window.show_view(view)
            await walker.rest()
            assert not clipped_widgets(walker.window), view
            assert walker.window.size().width() == 640, view

    run(walk())


def test_a_cut_widget_is_reported(qtbot: Any) -> None:
    box = QWidget()
    qtbot.addWidget(box)
    line = QHBoxLayout(box)
    narrow, button, outside = QPushButton("Commit now and here"), QPushButton("ok"), QPushButton("Export…", box)
    line.addWidget(narrow)
    line.addWidget(button)
    narrow.setFixedWidth(40)
    box.resize(300, 60)
    box.show()
    outside.setGeometry(280, 0, 120, 30)
    outside.show()
    actual_clipped_widgets = clipped_widgets(box)
    assert len(actual_clipped_widgets) == 2
    assert any("'Commit now and here'" in line and "narrower than its words" in line for line in actual_clipped_widgets)
    assert any("'Export…'" in line and "100 px lie outside" in line for line in actual_clipped_widgets)


def test_keyboard_alone(run: Run, walker: Walker, orders: Path) -> None:
    """Ctrl+G, Enter, arrows, F6 around the panes, F7 and F8 from anywhere, Ctrl+1 to Ctrl+8, Ctrl+L, Escape, ?."""

    async def walk() -> None:
        await walker.open(orders)
        walker.window.activateWindow()
        await walker.until(walker.window.isActiveWindow, "the window is active", 60)
        assert walker.window.focusWidget() is walker.table(LOG), "the rows have the focus at once"
        walker.press(walker.window, Qt.Key.Key_G, CTRL)
        box = walker.find(QLineEdit, "goto.field")
        assert walker.window.focusWidget() is box
        box.insert("OrderPaid/0/10")
        await walker.key(box, Qt.Key.Key_Return)
        await walker.until(lambda: walker.window.view == "queue")
        await walker.rest()
        await walker.key(walker.table("queue.table"), Qt.Key.Key_Return)
        assert walker.window.view == "log"
        offset_before = walker.value(LOG, "Physical offset")
        await walker.key(walker.window, Qt.Key.Key_F8)
        offset_after = walker.value(LOG, "Physical offset")
        assert offset_after > offset_before
        await walker.key(walker.window, Qt.Key.Key_F7)
        assert walker.value(LOG, "Physical offset") == offset_before
        names = set()
        for _ in range(8):
            await walker.key(walker.window, Qt.Key.Key_F6)
            focus = walker.window.focusWidget()
            while focus is not None and not focus.objectName():
                focus = focus.parentWidget()
            names.add(focus.objectName() if focus is not None else "")
        assert {"units.table", "unit.detail", "unit.hex", "filter.field", "goto.field"} <= names
        rail = [view.kind for view in (*ON_RAIL, *LISTENING, *AT_FOOT)]
        for number, view in enumerate(rail, 1):
            walker.press(walker.window, Qt.Key(Qt.Key.Key_0.value + number), CTRL)
            await walker.rest()
            assert walker.window.view == view
        await walker.key(walker.window, Qt.Key.Key_L, CTRL)
        assert walker.window.view == "log"
        assert walker.window.focusWidget() is walker.find(QLineEdit, "filter.field")
        await walker.key(walker.window, Qt.Key.Key_Left, ALT)
        assert walker.window.view == rail[-1]

    run(walk())


def test_search_palette_and_sheet_of_keys_open_by_key(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await walker.act("palette.open")
        assert walker.window.palette_box.isVisible()
        walker.press(walker.window.palette_box.field, Qt.Key.Key_Escape)
        assert not walker.window.palette_box.isVisible()
        await walker.act("help.keys")
        sheet = next(part for part in walker.window.findChildren(QWidget) if type(part).__name__ == "KeySheet")
        assert sheet.isVisible()
        assert "Open a capsule or one file of a log…" in walker.texts(sheet)
        sheet.close()

    run(walk())


@pytest.mark.full_form(keep=2)
@pytest.mark.parametrize(
    ("place", "name", "same"),
    [
        ("log:1050", "units.table", ("physicalOffset", "Physical offset")),
        ("queue:StockReserved/1/7", "queue.table", ("physicalOffset", "Physical offset")),
        ("groups", "groups.table", ("offset", "Next offset")),
        ("index", "index.files", ("beginPhyOffset", "First unit")),
        ("positions", "positions.now", ("offset", "Offset")),
    ],
)
def test_what_is_copied_is_what_the_terminal_prints(
    run: Run, walker: Walker, orders: Path, place: str, name: str, same: tuple[str, str]
) -> None:
    async def walk() -> str:
        await walker.open(orders, place)
        await walker.until(lambda: walker.table(name).currentIndex().isValid() or walker.table(name).go_to_row(0))
        await walker.rest()
        field, head = same
        await walker.act("copy.row")
        assert walker.row(name)[head] in walker.clipboard
        await walker.act("copy.json")
        await walker.rest()
        record = walker.copied()
        assert record[field] == walker.value(name, head)
        walker.table(name).setFocus()
        await walker.act("copy.cli")
        return json.dumps({"command": walker.clipboard, "record": record})

    row = json.loads(run(walk()))
    words = shlex.split(row["command"])
    assert words[0] == "storescope"
    assert str(orders) in words
    done = subprocess.run(
        [sys.executable, "-m", "engine.cli.main", *words[1:]]
        if "--json" in words
        else [sys.executable, "-m", "engine.cli.main", *words[1:], "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = [json.loads(line) for line in done.stdout.splitlines()]
    expected = row["record"][same[0]]
    assert any(expected in flat(line) for line in printed), (row, printed[:3])


def flat(value: object) -> list[object]:
    """Return every value of a record, however deep."""
    if isinstance(value, dict):
        return [item for inner in value.values() for item in flat(inner)]
    if isinstance(value, list):
        return [item for inner in value for item in flat(inner)]
    return [value]
