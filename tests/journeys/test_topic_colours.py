"""Two windows with two stores: each keeps the colours of its own topics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QImage
from walker import Run, Walker

from viewer.look.theme import TOPICS_LIGHT
from viewer.shell.main_window import MainWindow
from viewer.shell.windows import close_all, open_beside
from viewer.widgets.line_strip import LineStrip

pytestmark = pytest.mark.journey


@pytest.fixture
def alone(run: Run) -> Iterator[None]:
    """Close every second window, whatever happens."""
    yield
    run(close_all())


def _colourful(picture: QImage) -> int:
    """Return the number of pixels that are not grey."""
    return sum(
        picture.pixelColor(x, y).saturation() > 60
        for x in range(0, picture.width(), 3)
        for y in range(0, picture.height(), 3)
    )


def _line(window: MainWindow) -> QImage:
    return Walker(window).find(LineStrip, "units.line").grab().toImage()


def test_two_stores_in_two_windows_keep_their_colours(
    run: Run, walker: Walker, orders: Path, damaged: Path, alone: None
) -> None:
    """Colours were one set per program: the second store replaced those of the first, whose Line turned grey."""

    async def walk() -> None:
        window = walker.window
        await walker.open(orders)
        await walker.rest()
        assert window.session is not None
        coloured_before, order = _colourful(_line(window)), window.session.colours.order
        assert coloured_before > 20
        other_window = open_beside(window, damaged, "log")
        assert other_window is not None
        beside = Walker(other_window)
        await walker.until(
            lambda: other_window.session is not None and other_window.session.survey is not None, "it stands"
        )
        await beside.rest()
        assert window.session.colours.order == order
        assert _colourful(_line(window)) > coloured_before * 0.8
        assert other_window.session is not None
        assert any(other_window.session.colours.order)
        assert _colourful(_line(other_window)) > 20

    run(walk())


def test_a_log_by_itself_has_colours(
    run: Run, walker: Walker, orders: Path, tmp_path: Path, copied: Callable[[Path], Path]
) -> None:
    """Without queues the large topics were unknown: the Line was all grey, and only Space counted them."""

    async def walk() -> None:
        await walker.open(copied(orders) / "commitlog")
        session = walker.window.session
        assert session is not None
        await walker.until(lambda: any(session.colours.order), "the log's units are counted")
        await walker.rest()
        assert session.survey is not None
        assert not session.survey.topics
        assert _colourful(_line(walker.window)) > 20

    run(walk())


def test_a_compared_store_has_the_colours_of_the_first(
    run: Run, walker: Walker, orders: Path, alone: None, copied: Callable[[Path], Path]
) -> None:
    async def walk() -> None:
        await walker.open(orders)
        await walker.rest()
        other_window = walker.window.workspace.comparison.begin(copied(orders))
        assert other_window is not None
        await walker.until(
            lambda: other_window.session is not None and other_window.session.survey is not None, "it stands"
        )
        assert walker.window.session is not None
        assert other_window.session is not None
        colours, other_colours = walker.window.session.colours, other_window.session.colours
        assert other_colours.order == colours.order
        colours.offer([name for name in reversed(colours.order) if name][:1] + [f"new {n}" for n in range(9)])
        names = [name for name in colours.order if name in other_colours.order and name]
        assert all(other_colours.color(name) == colours.color(name) for name in names)
        assert len(TOPICS_LIGHT) == len(other_colours.order)

    run(walk())
