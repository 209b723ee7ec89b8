"""High contrast, the frame at the target of a jump, accessible names, and every control reached by keyboard."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QAbstractButton, QAbstractScrollArea, QComboBox, QLineEdit, QPlainTextEdit, QWidget
from walker import Run, Walker

from viewer.look.theme import C, theme
from viewer.runtime import places
from viewer.shell import jump_highlight
from viewer.shell.views import BY_KIND

pytestmark = pytest.mark.journey
CONTROLS = (QAbstractButton, QLineEdit, QPlainTextEdit, QComboBox)


def test_every_control_has_a_name_for_a_screen_reader(run: Run, walker: Walker, damaged: Path) -> None:
    """In every view buttons, fields and tables have a name; a placeholder alone is not enough."""

    async def walk() -> None:
        await walker.open(damaged)
        mute: set[str] = set()
        for view in BY_KIND:
            walker.window.show_view(view)
            await asyncio.sleep(0.02)
            for part in walker.window.panes[view].findChildren(QWidget):
                named = part.accessibleName() or (part.text() if isinstance(part, QAbstractButton) else "")
                request = isinstance(part, CONTROLS) or (isinstance(part, QAbstractScrollArea) and part.objectName())
                inner = part.objectName().startswith("qt_") or isinstance(part.parent(), QLineEdit)
                if request and not inner and part.isVisible() and not named:
                    mute.add(f"{view}: {type(part).__name__} {part.objectName()}")
        assert not mute, sorted(mute)

    run(walk())


def test_section_11_high_contrast_and_back(run: Run, walker: Walker, damaged: Path) -> None:
    async def walk() -> None:
        await walker.open(damaged)
        colour_before = C("hair").name()
        await walker.act("theme.contrast")
        assert walker.action("theme.contrast").isChecked()
        assert walker.window.settings.contrast
        assert C("errorFill").name() == C("pane").name()
        await walker.act("theme.dark")
        assert C("pane").name() == "#000000"
        await walker.act("theme.light")
        await walker.act("theme.contrast")
        assert C("hair").name() == colour_before
        assert not theme.contrast
        assert walker.window.settings.contrast is None

    run(walk())


def test_section_7_with_less_motion_nothing_moves_or_fades(run: Run, walker: Walker, damaged: Path) -> None:
    async def walk() -> None:
        window = walker.window
        await walker.open(damaged)
        await walker.until(lambda: walker.window.findChild(QWidget, "pulse") is None, "no frame stands")
        assert walker.action("theme.motion").text() == "Less motion"
        await walker.act("theme.motion")
        assert walker.action("theme.motion").isChecked()
        assert window.settings.motion is False
        window.go(places.log(1_310_900))
        await walker.rest()
        assert walker.value("units.table", "Physical offset") == 1_310_900
        assert not window.workspace.jumps._timer.isActive(), "no row is looked for"
        assert window.findChild(QWidget, "pulse") is None
        await walker.act("language.zh_CN")
        assert walker.action("theme.motion").text() == "减少动态效果"
        await walker.act("theme.motion")
        assert not walker.action("theme.motion").isChecked()
        assert window.settings.motion is None

    run(walk())


def test_section_7_a_frame_stands_for_a_moment_where_a_jump_ended(
    run: Run, walker: Walker, damaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The moment lasts as long as the test looks: a busy machine may work longer than a frame is shown."""
    position = [(1_310_900 + 8, 4, "text")]

    def framed() -> list[tuple[int, int, str]]:
        return [frame for frame in walker.hex._shown.frames if frame[2] == "text"]

    async def walk() -> None:
        await walker.open(damaged)
        await walker.until(lambda: walker.window.findChild(QWidget, "pulse") is None, "no frame stands")
        monkeypatch.setattr(jump_highlight, "DURATION_MS", 600_000)
        walker.window.go(places.log(1_310_900))
        await walker.until(lambda: walker.window.findChild(QWidget, "pulse") is not None, "the frame stands")
        assert walker.value("units.table", "Physical offset") == 1_310_900
        walker.window.go(replace(places.log(1_310_900), field="bodyCRC"))
        await walker.until(lambda: framed() == position, "the field is framed in the bytes")
        monkeypatch.setattr(jump_highlight, "DURATION_MS", 10)
        frame, observed = walker.hex.set_hits, []
        monkeypatch.setattr(walker.hex, "set_hits", lambda *spans: (frame(*spans), observed.append(framed())))
        walker.window.go(replace(places.log(1_310_900), field="bodyCRC"))
        await walker.until(lambda: observed == [position, []], "that frame goes by itself")
        await walker.until(lambda: walker.window.findChild(QWidget, "pulse") is None, "the row's goes too")

    run(walk())
